"""Auto: races many settings, scores with the best of them, and continues with fewer and fewer, in the end one.

The 24 settings (`Auto.candidates`) are of DualAveraging and FtrlProximal: the list whose mixtures ranked the validation
rows of many data sets and streams best. Each learns every row in a lane of its own. After 512, 1024, 2048, ... rows
they are compared. Let A_j be the AUC of setting j on the scores that rows had before they were learned: all rows but
the first quarter, the latest 131,072 at most, and of the larger class four for each row of the other; and e_ij the
standard error of A_i - A_j. The setting b with the largest A_j - e_j0 leads, where 0 is the default,
DualAveraging(loss="logistic", evidence=0.5, proximal=0.5). With fewer than 30 of those rows in a class, the default
leads. Until the next comparison the model scores with a mixture of the settings,

    s = sum_j u_j (sd_b / sd_j) s_j / sum_j u_j,    u_j = max(0, 1 - t_j^2 / 8)^4,    t_j = max(A_b - A_j, 0) / e_jb

where sd_j is the standard deviation of the scores s_j on these rows: about exp(-t^2 / 2), so that settings which rank
as well as the leader, as far as the rows can tell, count as much. A sum of linear models is a linear model.

    rows              settings
    up to 16,384      24; with more than 335,544 features (64 MB), only up to the first comparison from 2,048 rows on
    up to `rows`      8, in case the stream drifts: the best one without evidence also with half-lives of 65,536 and
                      262,144 rows; the leader, if it is another, also with 65,536; and the best others, the default
                      among them
    then              `keep`; by default one, the leader, which starts from the weights of the mixture

The race ends after 65,536 rows or twice as many, if at most two settings, the leader included, still count in the
mixture. With more than 335,544 features it also ends after 2,048, 4,096 or 8,192 rows, if none is likely to be better
by .0005: A_j + e_jb < A_b + .0005 for all j. With `keep` > 1 it never ends: settings are compared every 131,072 rows,
on these, and the mixture follows a stream that drifts. Its scores then have the spread of the default's, sd_0 in place
of sd_b, so that they can be compared when another setting leads. With a `budget` B, six settings of DualAveraging that
are good at small sizes race, each with that budget, up to 16,384 rows (`Auto.small_candidates`); the leading one scores
alone, as a mixture would have more weights.

The model's progressive AUC is that of the present mixture, on the latest 131,072 rows before the last comparison and
all rows since. The race also goes on with fewer settings before a row with so many new features that the lanes would
need more than a gigabyte, and ends before rows that are learned a second time: their scores would tell nothing about
new ones. Lanes are float32, whatever the dtype of the model. A row of importance h counts as h rows learned at one
score, in the AUC too. A setting that cannot learn a row, because its numbers would overflow, drops out with a
warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from rarestream.learners.base import About, Learner, RacePlan, Tuning
from rarestream.learners.dual_averaging import DualAveraging
from rarestream.learners.ftrl_proximal import FtrlProximal
from rarestream.learners.registry import register
from rarestream.learners.settings import whole


@register("auto")
@dataclass(frozen=True, kw_only=True)
class Auto(Learner):
    """Races many settings on the first rows and continues with the best: nothing to tune."""

    rows: int = whole(2**18, "Number of rows after which the best settings continue.", least=1, most=2**40)
    keep: int = whole(1, "Number of settings that then continue: 1, or more for streams that drift.", least=1, most=16)

    budget: int = whole(
        0, "Maximum number of non-zero weights at any time. 0: no limit. Not with keep.", most=2**31 - 1
    )

    tuning: ClassVar[Tuning | None] = None
    about: ClassVar[About] = About(
        title="auto",
        objective="AUC or logistic, whichever ranks better",
        cost="O(k); several times as much while it races",
        published="-",
        sparse="exact zeros with `budget`; or prune afterwards",
        returns="last iterate; a mixture of several while it races",
        paper="ours",
    )

    def kernel_settings(self) -> list[float]:
        raise TypeError("Auto: it has no kernel of its own; engines.Race runs it.")

    def race_plan(self) -> RacePlan:
        if self.budget:
            return RacePlan(self.small_candidates(self.budget), min(self.rows, 1 << 14))
        return RacePlan(self.candidates(), self.rows, self.keep, half_lives=(2.0**16, 2.0**18))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget and self.keep > 1:
            raise ValueError(
                f"Auto: budget and keep cannot be combined; leave budget 0 or keep 1, got budget={self.budget} and "
                f"keep={self.keep}."
            )

    @staticmethod
    def small_candidates(budget: int) -> list[Learner]:
        """Return the settings that `auto` tries with a budget, the default first."""
        small = partial(DualAveraging, budget=budget)
        return [
            *(small(loss="logistic", power=1.0, proximal=0.5, learning_rate=rate) for rate in (1.3, 0.6, 2.6)),
            small(loss="logistic", power=0.5, proximal=0.5),
            small(loss="logistic"),
            small(loss="auc", power=1.0),
        ]

    @staticmethod
    def candidates() -> list[Learner]:
        """Return the settings that `auto` and `rarestream race` try, the default first."""
        logistic = partial(DualAveraging, loss="logistic")
        auc = partial(DualAveraging, loss="auc")
        squares = partial(DualAveraging, rate_power=2.0, beta=1e-4)  # accumulates as AdaGrad does
        return [  # those with evidence first: what they count is then kept once for sixteen settings side by side
            *(logistic(evidence=0.5, proximal=0.5, learning_rate=rate) for rate in (1.3, 0.6)),
            logistic(evidence=0.5, proximal=0.5, learning_rate=1.0, rate_power=1.0),
            logistic(evidence=0.5, proximal=0.5, learning_rate=0.5, rate_power=1.0, power=1.0),
            squares(loss="logistic", evidence=0.5, learning_rate=2.0),
            squares(loss="logistic", evidence=0.5, proximal=0.5, learning_rate=0.5),
            squares(loss="logistic", evidence=1.0, learning_rate=0.5),
            auc(evidence=0.5, learning_rate=0.5),
            auc(evidence=0.5, proximal=0.5, learning_rate=0.12, power=1.0),
            auc(evidence=0.5, proximal=0.5, learning_rate=0.12, rate_power=1.0),
            squares(loss="auc", evidence=0.5, proximal=0.5, learning_rate=0.25),
            squares(loss="logistic", proximal=0.5, learning_rate=0.5),
            *(logistic(proximal=0.5, learning_rate=rate, power=1.0) for rate in (1.3, 2.6)),
            logistic(proximal=1.0, learning_rate=2.6),
            logistic(learning_rate=2.21),
            logistic(learning_rate=1.0, rate_power=2.0, beta=1e-8),
            auc(learning_rate=0.25, power=1.0),
            auc(proximal=1.0, learning_rate=0.5),
            *(auc(learning_rate=rate) for rate in (0.25, 0.1)),
            *(FtrlProximal(learning_rate=rate, beta=beta) for rate, beta in ((0.3, 0.1), (4.0, 1.0), (0.6, 0.3))),
        ]

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
