"""Auto: races many settings on the first rows, then continues as the best of them.

The settings are learning rates around the defaults of both losses of DualAveraging, and the
accumulators of AdaGrad (`Auto.candidates`). Each learns every row in a lane of its own. After `rows`
rows one is chosen and becomes the model's learner; the others are dropped. Let A be the AUC of the
scores that the rows, without the first quarter, had before they were learned, and e the standard error
of its difference from that of the default, DualAveraging(loss="auc"). The setting with the largest
A - e is chosen; with fewer than 30 of those rows in a class, the default.

Until then the model scores with the leading settings, found by the same rule after 512, 1024, 2048, ...
rows; before that, with the default. The model's progressive AUC is that of the leading settings, and in
the end that of the settings that were chosen.

The race also ends before a row with so many new features that the lanes would need more than a gigabyte,
and before rows that are learned a second time: their scores would tell nothing about new ones. Lanes are
float32, whatever the dtype of the model. A row of importance h counts as h rows learned at one score, in
the AUC too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rarestream.learners.base import About, Learner, RacePlan, Tuning
from rarestream.learners.dual_averaging import DualAveraging
from rarestream.learners.registry import register
from rarestream.learners.settings import whole


@register("auto")
@dataclass(frozen=True, kw_only=True)
class Auto(Learner):
    """Races many settings on the first rows and continues with the best: nothing to tune."""

    rows: int = whole(16384, "Number of rows after which the best setting is chosen.", least=1, most=2**20)

    tuning: ClassVar[Tuning | None] = None
    about: ClassVar[About] = About(
        title="auto",
        objective="AUC or logistic, whichever ranks better",
        cost="O(k); several times as much while it races",
        published="-",
        sparse="no; prune afterwards",
        returns="last iterate",
        paper="ours",
    )

    def kernel_settings(self) -> list[float]:
        raise TypeError("Auto: it has no kernel of its own; engines.Race runs it.")

    def race_plan(self) -> RacePlan:
        return RacePlan(self.candidates(), self.rows)

    @staticmethod
    def candidates() -> list[Learner]:
        """Return the settings that `auto` and `rarestream race` try, the default first.

        These are learning rates around the defaults of both losses, with larger ones for long streams, and the
        accumulators of AdaGrad, which suit large vocabularies.
        """
        return Auto.first_candidates()

    @staticmethod
    def first_candidates() -> list[Learner]:
        """Return the settings of the first version, which never change: model files that list none raced these."""
        factors = (1.0, 0.25, 0.4, 0.6, 0.8, 1.3, 1.7, 2.5, 4.0, 6.0)
        return [
            *(DualAveraging(loss="auc", learning_rate=round(0.25 * factor, 4)) for factor in factors),
            *(DualAveraging(loss="logistic", learning_rate=round(1.3 * factor, 4)) for factor in factors),
            *(
                DualAveraging(loss="logistic", learning_rate=rate, rate_power=2.0, beta=1e-8)
                for rate in (0.5, 1.0, 2.0, 4.0)
            ),
        ]
