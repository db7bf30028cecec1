"""Auto: races many settings on the first rows, then goes on as the best of them.

The settings are learning rates around the defaults of both losses of DualAveraging, and the
accumulators of AdaGrad (`Auto.candidates`). Each learns every row in a lane of its own. Once
`rows` rows have been learned, one stays and becomes the model's learner; the others are dropped. With
A the AUC of the scores that the rows but the first quarter had before they were learned, and e the
standard error of its difference from that of the default, DualAveraging(loss="auc"), the one with the
largest A - e stays. With fewer than 30 of those rows in a class the default does.

Until then the model scores as the lane in the lead, found by the same rule after 512, 1024, 2048, ...
rows; before, as the default. The model's progressive AUC is that of the lane in the lead, and at last
that of the settings kept.

The race also ends before a row with so large an index that the lanes would need more than a gigabyte,
and before rows that come a second time: their scores would say nothing about new ones. Lanes are float32,
whatever the model is after. A row of importance h counts as h rows learned at one score, in the AUC too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rarestream.learners.base import About, Learner
from rarestream.learners.dual_averaging import DualAveraging
from rarestream.learners.registry import register
from rarestream.learners.settings import whole


@register("auto")
@dataclass(frozen=True, kw_only=True)
class Auto(Learner):
    """Races settings on the first rows and goes on with the best of them: nothing to tune."""

    rows: int = whole(16384, "How many rows are raced before one of the settings is kept.", least=1, most=2**20)

    about: ClassVar[About] = About(
        objective="that of the settings it keeps",
        cost="O(k); several times as much while it races",
        published="ours",
        sparse="no; prune afterwards",
        returns="last iterate",
        paper="ours",
    )

    @property
    def name(self) -> str:
        return "auto"

    def kernel_settings(self) -> list[float]:
        raise TypeError("Auto: it has no kernel of its own; engines.Race runs it.")

    @staticmethod
    def candidates() -> list[Learner]:
        """Return the settings that `auto` and `rarestream race` try, the default first.

        Learning rates around the defaults of both losses, further up for long streams; and the accumulators of AdaGrad,
        which large vocabularies want.
        """
        return Auto.first_candidates()

    @staticmethod
    def first_candidates() -> list[Learner]:
        """Return the settings of the first version, which never change: model files that name none raced these."""
        factors = (1.0, 0.25, 0.4, 0.6, 0.8, 1.3, 1.7, 2.5, 4.0, 6.0)
        found: list[Learner] = [DualAveraging(loss="auc", learning_rate=round(0.25 * factor, 4)) for factor in factors]
        found += [DualAveraging(loss="logistic", learning_rate=round(1.3 * factor, 4)) for factor in factors]
        found += [
            DualAveraging(loss="logistic", learning_rate=rate, rate_power=2.0, beta=1e-8)
            for rate in (0.5, 1.0, 2.0, 4.0)
        ]
        return found
