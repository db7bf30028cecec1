"""AdaOAM: descent on the pairwise square loss, with a rate of its own for every coordinate.

A row need not meet the others one by one: of the other class, the gradient takes the mean m
and the covariance C, as in OPAUC [2]. With m, C, n those of the other class:

    s = <w, x>,    g = lambda w + (s - <w, m> - y) (x - m) + C w

The steps are AdaGrad's [1, Algorithm 1]:

    v <- v + g^2,    w <- w - eta g / (epsilon + sqrt(v))

rank = 0 keeps C in full: one d x d sum of x x' per class, and O(d^2) per row.

rank > 0 is the sketch of [2], a matrix Z of `rank` columns. Each row draws r, and adds x r' to
the Z of its class, r to rho:

    r = random signs / sqrt(rank),    C w = (Z - m rho') u / n,    u = (Z - m rho')' w

E r r' = 1 makes C right on average. g has no zeros, and every coordinate its own rate: so a row
passes over all coordinates, O(d rank), however few it has itself.

A row of importance h counts as h rows learned at one score: h times in m, C (r is sqrt(h) times
as long) and v, and its step is h eta long. While the other class has not been seen, there is
no pair, and nothing is learned. With scale="max", when x_j shrinks by f, so do m_j, the rows
of C and Z and sqrt(v_j); and w_j by f (epsilon + sqrt(v_j)) / (epsilon + f sqrt(v_j)), as the
last step would.

Where this differs from [1]: w is not projected to the ball of radius 1 / sqrt(lambda), which
holds the minimum anyway; the sketch is that of `opauc`, centred and of signs.

[1] Ding, Zhao, Hoi, Ong. An Adaptive Gradient Method for Online AUC Maximization. AAAI 2015.
[2] Gao, Jin, Zhu, Zhou. One-Pass AUC Optimization. ICML 2013.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream.blocks import Block
from rarestream.learners.base import About, Learner
from rarestream.learners.pairs import dump_pairs, load_pairs, no_pairs, reserve_pairs
from rarestream.learners.registry import register
from rarestream.learners.settings import non_negative, positive, whole
from rarestream.learners.state import Layout, State


@register("adaoam")
@dataclass(frozen=True, kw_only=True)
class AdaOam(Learner):
    """AdaOAM of Ding, Zhao, Hoi and Ong (AAAI 2015): covariances as in OPAUC, one pass over all coordinates per row."""

    learning_rate: float = positive(0.1, "Learning rate: eta in [1].")
    l2: float = non_negative(0.0, "Strength of the l2 penalty, which shrinks weights: lambda in [1].")
    epsilon: float = positive(0.1, "Smoothing term of the per-coordinate learning rates: delta in [1].")
    rank: int = whole(8, "Number of columns of the covariance sketch. 0: full covariances.", most=10_000)
    seed: int = whole(0, "Seed of the random signs of the sketch.")

    about: ClassVar[About] = About(
        title="AdaOAM",
        objective="square loss on pairs",
        cost="O(d rank); O(d^2) with `rank=0`",
        published="O(d^2)",
        sparse="no",
        returns="last iterate",
        paper="Ding, Zhao, Hoi, Ong 2015, Algorithm 1",
    )

    @property
    def layout(self) -> Layout:
        sketches = {"sketch_neg": self.rank, "sketch_pos": self.rank} if self.rank else {}
        return Layout({"w": 1, "v": 1, "sum_neg": 1, "sum_pos": 1, **sketches}, ("ww", "longest"), stacked=True)

    def multiplications(self, rows: int, nonzeros: int, features: int) -> float:
        return 2.0 * rows * features * (self.rank + 2 if self.rank else features)

    def kernel_settings(self) -> list[float]:
        return [self.learning_rate, self.l2, self.epsilon, float(self.rank), float(self.seed)]

    def extra_arrays(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        return {"drawn": np.zeros(2 * self.rank)} if self.rank else no_pairs(dtype)

    def reserve(self, state: State, block: Block) -> State:
        return state if self.rank else reserve_pairs(state, block, "AdaOam")

    def dump_extra(self, state: State, n_features: int) -> Mapping[str, NDArray[Any]]:
        return state.extra if self.rank else dump_pairs(state)

    def load_extra(self, state: State, saved: Mapping[str, NDArray[Any]]) -> State:
        return super().load_extra(state, saved) if self.rank else load_pairs(state, saved)

    def check(self, state: State) -> None:
        tally = self.tally(state)
        if (state.table[:, 1] < 0).any() or tally["ww"] < 0 or tally["longest"] < 0:
            raise ValueError("its squares are negative")
