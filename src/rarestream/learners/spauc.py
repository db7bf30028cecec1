"""SPAUC: stochastic proximal descent on the pairwise square loss, with an unbiased gradient.

The loss over all pairs is a function of class means and variances of the scores [1]; a row's
gradient needs the mean rows m+ and m- of both classes, besides the row itself:

    s = <w, x>,    a = <w, m+>,    b = <w, m->

    y = +1:  c = 2 (1 - p) (s - a),    g = c (x - m+) - v (m+ - m-)
    y = -1:  c = 2      p  (s - b),    g = c (x - m-) - v (m+ - m-)

    v = 2 p (1 - p) (1 + b - a)

    w <- soft(w - eta g, eta lambda),    eta = 2 / (mu (t - 1) + 1)

p is the share of positives among the t rows so far; p, m+, m- count the current row. a and b
are those of the current w in every row. soft(z, t) = sign(z) max(|z| - t, 0).

Without l1, O(k) per row is exact: w = u + M alpha, where M holds the two class sums; u moves with
x, alpha with the means, and a and b come from the inner products M'u and M'M, which are kept
up. With l1 > 0 every weight is thresholded in every row: one pass over all coordinates, which
also sums a and b for the next row.

A row of importance h counts as h rows learned at one score: h times in p, m+, m- and t, and its
step is h eta long. While only one class has been seen, g = 0 and nothing is learned.

Where this differs from the code behind [2]: there a is only refreshed by positives and b by
negatives, in between they are those of older weights.

[1] Lei, Ying. Stochastic Proximal AUC Maximization. JMLR 2021.
[2] Zhou, Ying, Skiena. Online AUC Optimization for Sparse High-Dimensional Datasets. ICDM 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rarestream.learners.base import About, Learner, Tuning
from rarestream.learners.registry import register
from rarestream.learners.settings import non_negative, positive
from rarestream.learners.span import DENSE, SPAN
from rarestream.learners.state import Layout


@register("spauc")
@dataclass(frozen=True, kw_only=True)
class Spauc(Learner):
    """SPAUC of Lei and Ying (JMLR 2021): O(k) per row without l1, one pass over all coordinates with it."""

    mu: float = positive(0.003, "Decay of the learning rate: row t has the rate 2 / (mu (t - 1) + 1).")
    l1: float = non_negative(0.0, "Strength of the l1 penalty, which makes weights exactly zero: lambda.")

    tuning: ClassVar[Tuning | None] = Tuning("mu", 1e-4, 0.02)
    about: ClassVar[About] = About(
        title="SPAUC",
        objective="square loss on pairs",
        cost="O(k); O(d) with `l1`",
        published="O(d)",
        sparse="exact zeros with `l1`",
        returns="last iterate",
        paper="Lei, Ying 2021, Algorithm 1",
    )

    @property
    def native(self) -> str:
        return "Spauc" if self.l1 == 0 else "SpaucL1"

    @property
    def layout(self) -> Layout:
        return SPAN if self.l1 == 0 else DENSE

    def kernel_settings(self) -> list[float]:
        return [self.mu] if self.l1 == 0 else [self.mu, self.l1]
