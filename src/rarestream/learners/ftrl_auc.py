"""FTRL-AUC: follow the regularised leader on the pairwise square loss.

A positive should outscore a negative by one; the squared miss is averaged over all
pairs. In the surrogate of [1, Theorem 1] a row meets the other class only through its
mean score, so k non-zeros cost O(k):

    s = <w, x>,    g = 2 (1 - p) (s - b - 1) x   if y = +1
                   g = 2      p  (s - a + 1) x   if y = -1

p is the share of positives so far, a and b the mean scores of positives and negatives:
means="lazy" averages the scores that rows had when they came, means="exact" takes those
that all rows so far would have now, a = <w, x+> with x+ the mean of the positives, and
likewise b. Each coordinate accumulates

    z <- z + g - (sqrt(v + g^2) - sqrt(v)) / gamma * w,     v <- v + g^2

and its weight is read off them, never stored, so it cannot go stale:

    w = -gamma soft(z, lambda) / (beta + sqrt(v) + gamma l2),    soft(z, t) = sign(z) max(|z| - t, 0).

Exact means cost O(k) too: with the class sums S+ and S- of x, the products <w, S+> and
<w, S-> change by s when a row comes, and by the changes of w times S+ and S- when it is
learned. [1, Figure 2] recomputes them, in O(d), and only that of the row's own class.

A row of importance h counts as h rows learned at one score: p, a, b count it h times,
and g and g^2 enter z and v h times.

With a half-life H old rows fade, for streams that drift. Time t is the number of rows so far,
by importance. Before a row at time t, one that was learned at time t' counts
2^(-(t - t') / H) times in z and v: after a row of importance h,

    z <- 2^(-h/H) z,    v <- 2^(-h/H) v    of all coordinates.

The class means are over about the latest H / ln 2 rows at most:

    a <- a + min(1, h / n+ max(1, ln 2 (n+ + n-) / H)) (s - a)   if y = +1,    and likewise b,

where n+ and n- count all rows of each class, this one included, as p does. A row still
costs O(k): native/half_life.hpp.

Where this differs from the text of [1]: p counts the current row, as Theorem 1 defines
it, and w is current when read; Algorithm 1 prints both one row behind. While only one
class has been seen, p is 0 or 1 and nothing is learned.

[1] Zhou, Ying, Skiena. Online AUC Optimization for Sparse High-Dimensional Datasets.
    ICDM 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rarestream._native import LaneSetting, Loss
from rarestream.learners.base import About, Learner
from rarestream.learners.registry import register
from rarestream.learners.settings import HALF_LIVES, RATES, STRENGTHS, non_negative, one_of, positive, zero_or
from rarestream.learners.state import MERGED_PAIR, PAIR, Layout

EXACT = Layout({"z": 1, "n": 1, "sum_neg": 1, "sum_pos": 1}, ("dot_neg", "dot_pos"))  # with S-, S+; <w, S->, <w, S+>


@register("ftrl-auc")
@dataclass(frozen=True, kw_only=True)
class FtrlAuc(Learner):
    """FTRL-AUC of Zhou, Ying and Skiena (ICDM 2020): O(k) per row, exact zeros with l1 > 0."""

    learning_rate: float = positive(0.6, "Learning rate: gamma in [1].", **RATES)
    l1: float = non_negative(
        0.0, "Strength of the l1 penalty, which makes weights exactly zero: lambda in [1].", **STRENGTHS
    )
    l2: float = non_negative(0.0, "Strength of the l2 penalty, which shrinks weights.", **STRENGTHS)
    beta: float = positive(
        1.0, "Smoothing term of the per-coordinate learning rates: the 1 of gamma / (1 + sqrt(v)) in [1].", **RATES
    )

    means: str = one_of(
        "lazy", "Class means of the scores rows had when learned (lazy), or would have now (exact).", "lazy", "exact"
    )
    half_life: float = zero_or(
        0.0, "Rows after which a row counts half: H. 0: rows never fade. Not with means='exact'.", **HALF_LIVES
    )

    about: ClassVar[About] = About(
        title="FTRL-AUC",
        objective="square loss on pairs",
        cost="O(k)",
        published="O(k); exact means O(d)",
        sparse="exact zeros with `l1`",
        returns="last iterate",
        paper="Zhou, Ying, Skiena 2020, Algorithm 1",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.means == "exact" and self.half_life:  # the products with class sums would change at every row
            raise ValueError(
                f"FtrlAuc: means='exact' and half_life cannot be combined; leave half_life 0 or means='lazy', got "
                f"means={self.means!r} and half_life={self.half_life}."
            )

    @property
    def native(self) -> str:
        if self.means == "exact":
            return "FtrlAucExact"
        return "FtrlAucHalfLife" if self.half_life else "FtrlAuc"

    @property
    def layout(self) -> Layout:
        if self.means == "exact":
            return EXACT
        return PAIR if self.half_life else MERGED_PAIR

    def kernel_settings(self) -> list[float]:
        plain = [self.learning_rate, self.l1, self.l2, self.beta]
        return [*plain, self.half_life] if self.half_life else plain

    def lane(self) -> LaneSetting | None:
        if self.means != "lazy":
            return None
        return LaneSetting(
            loss=Loss.pairwise_square,
            power=0.0,
            proximal=1.0,
            evidence=0.0,
            learning_rate=self.learning_rate,
            l1=self.l1,
            l2=self.l2,
            beta=self.beta,
            rate_power=2.0,
            intercept=False,
            half_life=self.half_life,
            mean_gradient=False,
        )
