"""Dual averaging with per-coordinate rates, on the AUC or the logistic loss.

    s = <w, x>
    logistic:  c = sigmoid(s + w0) - [y = +1]
               v0 <- v0 + c^2,    w0 <- w0 - gamma c / (beta + sqrt(v0))
    auc:       c = 2 (1 - p) min(s - b - 1, 0)   if y = +1
               c = 2      p  max(s - a + 1, 0)   if y = -1

p is the share of positives so far, a and b the mean scores of positives and negatives,
each row scored before it is learned. The auc loss is the squared hinge: a row beyond the
other class's mean by more than one teaches nothing. Each coordinate accumulates

    z <- z + c x,    v <- v + |c|^r x^2

and its weight is read off them when needed:

    w = -gamma soft(z, lambda) / (beta + sqrt(v)),    soft(z, t) = sign(z) max(|z| - t, 0).

Three more numbers, all 0 by default, change the weight. Two of them change the regulariser: with
g = soft(z, lambda) / (beta + sqrt(v)),

    w = -gamma g |g|^q,    z <- z + c x + kappa (sqrt(v') - sqrt(v)) g,    v' = v + |c|^r x^2.

The power q (0, 1/2 or 1 are quick) makes small weights smaller: the regulariser is |w|^(1 + 1/(1 + q)) in place of
w^2. It suits models that are to be small: they keep the largest |w| v^(1/4) then, as a power, and evidence too, makes
the weights of rare features large. The proximal share kappa pulls towards past weights: 0 is dual averaging, 1 with r
= 2 is FTRL-Proximal. With the auc loss and q = 1, learning rates above 1/2 can diverge.

Evidence multiplies a weight by how unequally the two classes have its feature. Of c+ of the N+ positives so far, and of
c- of the N- negatives, x_j was not 0:

    a = (c+ + 1) / (N+ + 1),    b = (c- + 1) / (N- + 1),    w = -gamma g |g|^q (|a - b| / sqrt(a b))^p.

|a - b| / sqrt(a b) is about |ln(a / b)| where that is small, and needs no logarithm. The counts are those before the
row, both when it is scored and when it is learned. They take two more numbers for each feature. p (0, 1/2 or 1 are
quick) is 0 by default: no counts.

With a budget B the leader is looked for among the weights of which at most B are not zero:

    w = argmin <z, w> + sum (beta + sqrt(v)) w^2 / (2 gamma),    |{j: w_j != 0}| <= B
      = -gamma z / (beta + sqrt(v))   where |z w| is among the B largest,    0 elsewhere.

z and v accumulate for all coordinates. |z w|, with a power too, is compared in a histogram with 512 bins
from a number to its double (native/magnitude_histogram.hpp), so that a row costs O(k): a bin is kept or
dropped as a whole, and where it does not fit, a few weights less than B are kept.

With a half-life H old rows fade, for streams that drift. Time t is the number of rows so far, by importance. Before
a row at time t, one that was learned at time t' counts 2^(-(t - t') / H) times in z and v: after a row of importance h,

    z <- 2^(-h/H) z,    v <- 2^(-h/H) v    of all coordinates.

w0 does not decay, but v0 <- 2^(-h/H) v0 + h c^2. The class means are over about the latest H / ln 2 rows at most:

    a <- a + min(1, h / n+ max(1, ln 2 (n+ + n-) / H)) (s - a)   if y = +1,    and likewise b,

where n+ and n- count all rows of each class, this one included, as p does. A row still costs O(k), as the state holds
2^u z and 2^(u/2) sqrt(v) with u = (t mod 16 H) / H, which do not change while time passes; once in 16 H rows, all of
them are multiplied by a power of two (native/half_life.hpp).

Against FTRL-Proximal: no term -sigma w in z, a small beta, and r = 1/2 in place of
2. The defaults were chosen once, for all data sets. The intercept takes plain AdaGrad steps. The score is s,
without the intercept. A row of importance h counts as h rows learned at one score.

[1] Xiao. Dual Averaging Methods for Regularized Stochastic Learning and Online
    Optimization. JMLR 2010.
[2] Duchi, Hazan, Singer. Adaptive Subgradient Methods. JMLR 2011.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream import _native
from rarestream._native import LaneSetting, Loss
from rarestream.learners.base import About, Learner
from rarestream.learners.registry import register
from rarestream.learners.settings import HALF_LIVES, RATES, STRENGTHS, non_negative, one_of, positive, whole, zero_or
from rarestream.learners.state import MERGED_PAIR, MERGED_PAIR_AND_COUNTS, PAIR, PAIR_AND_COUNTS, Layout, State

LEARNING_RATES = {"auc": 0.25, "logistic": 1.3}


@register("dual-logistic", loss="logistic")
@register("dual-auc", loss="auc")
@dataclass(frozen=True, kw_only=True)
class DualAveraging(Learner):
    """Dual averaging with per-coordinate learning rates: O(k) per row, good without tuning."""

    loss: str = one_of(
        "auc", "Loss to minimise: the squared hinge loss on pairs, or the logistic loss.", "auc", "logistic"
    )
    learning_rate: float = positive(None, "Learning rate: gamma. None: 0.25 for auc, 1.3 for logistic.", **RATES)
    beta: float = positive(
        0.03, "Smoothing term of the per-coordinate learning rates: larger values shorten early steps.", **RATES
    )
    l1: float = non_negative(0.0, "Strength of the l1 penalty, which makes weights exactly zero: lambda.", **STRENGTHS)
    rate_power: float = non_negative(0.5, "Exponent of past loss slopes in the accumulators: r.", most=2.0)
    power: float = non_negative(0.0, "Power of weights: q. Above 0, small weights are made smaller.", most=1.0)
    proximal: float = non_negative(
        0.0, "Share of the pull towards past weights: kappa. 0: dual averaging, 1: as FTRL-Proximal.", most=1.0
    )
    evidence: float = non_negative(
        0.0, "Power of a factor that is large where the classes have a feature unequally: p. 0: none.", most=1.0
    )
    budget: int = whole(
        0, "Maximum number of non-zero weights at any time: B. 0: no limit. Not with l1 or evidence.", most=2**31 - 1
    )
    half_life: float = zero_or(
        0.0, "Rows after which a row counts half: H. 0: rows never fade. Not with budget.", **HALF_LIVES
    )

    about: ClassVar[About] = About(
        title="dual averaging",
        objective="squared hinge on pairs, or logistic",
        cost="O(k)",
        published="-",
        sparse="exact zeros with `l1` or `budget`",
        returns="last iterate",
        paper="ours; Xiao 2010, Algorithm 1, and Duchi et al. 2011, equation (3)",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for other in ("l1", "evidence", "half_life"):  # of these, what each weight is worth would change at every row
            if self.budget and getattr(self, other):
                raise ValueError(
                    f"DualAveraging: budget and {other} cannot be combined; leave one of them 0, got "
                    f"budget={self.budget} and {other}={getattr(self, other)}."
                )

    def _checked(self, field: Any, value: Any) -> Any:
        if field.name == "learning_rate" and value is None:
            value = LEARNING_RATES[self.loss]
        return super()._checked(field, value)

    @property
    def loss_is_logistic(self) -> bool:  # type: ignore[override]
        return self.loss == "logistic"

    @property
    def name(self) -> str:
        return f"dual-{self.loss}"

    @property
    def title(self) -> str:
        return f"dual averaging, {'logistic' if self.loss_is_logistic else 'AUC'}"

    @property
    def native(self) -> str:
        form = "Evidence" if self.evidence else "Power" if self._has_power else ""
        return f"DualAveraging{form}{'Budget' if self.budget else 'HalfLife' if self.half_life else ''}"

    @property
    def layout(self) -> Layout:
        if self.budget or self.half_life:  # what a weight is worth depends on others, or on the time: no rule to merge
            return PAIR_AND_COUNTS if self.evidence else PAIR
        return MERGED_PAIR_AND_COUNTS if self.evidence else MERGED_PAIR

    @property
    def _has_power(self) -> bool:
        return self.power > 0 or self.proximal > 0 or self.evidence > 0

    def kernel_settings(self) -> list[float]:
        plain = [float(self.loss_is_logistic), self.learning_rate, self.l1, self.beta, self.rate_power]
        power = [self.power, self.proximal] if self._has_power else []
        last = [number for number in (self.evidence, float(self.budget), self.half_life) if number]
        return [*plain, *power, *last]

    def lane(self) -> LaneSetting | None:
        if self.budget:  # what a weight is worth depends on all others
            return None
        if not {self.power, self.evidence} <= {0.0, 0.5, 1.0}:  # lanes take no logarithms
            return None
        return LaneSetting(
            loss=Loss.logistic if self.loss_is_logistic else Loss.pairwise_hinge,
            power=self.power,
            proximal=self.proximal,
            evidence=self.evidence,
            learning_rate=self.learning_rate,
            l1=self.l1,
            l2=0.0,
            beta=self.beta,
            rate_power=self.rate_power,
            intercept=True,
            half_life=self.half_life,
            mean_gradient=self._has_power,
        )

    def rank_factors(self, state: State, start: int, stop: int) -> NDArray[np.float64] | None:
        # A power or evidence makes the weights of rare features large: how much of one was seen counts too. With a
        # half-life the numbers of all features are in the same units, so their order does not change.
        if not (self.power or self.evidence):
            return None
        return np.sqrt(state.table[start:stop, 1].astype(np.float64))

    # The ladder knows what all weights are worth. That follows from z and n, so no file keeps it.

    def extra_arrays(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        return {"ladder": _native.ladder(np.zeros(0, dtype), float(self.budget))} if self.budget else {}

    def dump_extra(self, state: State, n_features: int) -> Mapping[str, NDArray[Any]]:
        return {}

    def load_extra(self, state: State, saved: Mapping[str, NDArray[Any]]) -> State:
        if not self.budget:
            return state
        # No number stands on the ladder yet, so all weights live.
        weight = self.kernel().weights(state, 0, state.slots)
        with np.errstate(over="ignore"):  # infinite worth has a rung, too
            worth = state.table[:, 0] * weight
        return state._replace(extra={"ladder": _native.ladder(worth, float(self.budget))})
