"""OPAUC: descent on the pairwise square loss, each row against all rows of the other class.

A row need not meet the others one by one: their mean m and covariance C are all that the
gradient takes of them [1]. With m, C, n those of the other class:

    s = <w, x>,    e = y - (s - <w, m>)

    w <- (w + eta (e (x - m) - C w)) / (1 + eta lambda)

rank = 0 keeps C in full: one d x d sum of x x' per class, and O(d^2) per row.

rank > 0 is [1]'s OPAUCr: a sketch Z of `rank` columns takes the sum's place. Each row draws r,
and adds x r' to the Z of its class, r to rho:

    r = random signs / sqrt(rank),    C w = (Z - m rho') v / n,    v = (Z - m rho')' w

E r r' = 1 makes C right on average. The published form multiplies with Z in O(d rank). Here
w = sigma (u + M alpha), where M holds the sums and sketches of both classes: v comes from the
inner products M'u and M'M, the step goes into u and alpha, and a row costs
O(k rank + rank^2), exactly.

A row of importance h counts as h rows learned at one score: h times in m and C (r is sqrt(h)
times as long), and its step is h eta long. While the other class has not been seen, there is
no pair, and nothing is learned.

Where this differs from [1]: r holds signs, not normal numbers (the same second moments, exact
on every machine); the sketch is centred, Z - m rho', so that its C has no negative
eigenvalue; the penalty takes its proximal step, a division, in place of 1 - eta lambda.

[1] Gao, Jin, Zhu, Zhou. One-Pass AUC Optimization. ICML 2013.
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
from rarestream.learners.span import DENSE
from rarestream.learners.state import Layout, State


@register("opauc")
@dataclass(frozen=True, kw_only=True)
class Opauc(Learner):
    """OPAUC of Gao, Jin, Zhu and Zhou (ICML 2013): covariances in a sketch, or in full for a few thousand features."""

    learning_rate: float = positive(0.3, "Learning rate: eta in [1].")
    l2: float = non_negative(0.0, "Strength of the l2 penalty, which shrinks weights: lambda in [1].")
    rank: int = whole(50, "Number of columns of the covariance sketch: tau in [1]. 0: full covariances.")
    seed: int = whole(0, "Seed of the random signs of the sketch.")

    about: ClassVar[About] = About(
        title="OPAUC",
        objective="square loss on pairs",
        cost="O(k rank + rank^2); O(d^2) with `rank=0`",
        published="O(d rank); O(d^2)",
        sparse="no",
        returns="last iterate",
        paper="Gao, Jin, Zhu, Zhou 2013, Algorithm 1",
    )

    def multiplications(self, rows: int, nonzeros: int, features: int) -> float:
        if not self.rank:
            return 2.0 * rows * features**2
        return 2.0 * self.rank * nonzeros + 2.0 * self.rank**2 * rows

    @property
    def native(self) -> str:
        return "Opauc" if self.rank else "OpaucExact"

    def kernel_settings(self) -> list[float]:
        return [self.learning_rate, self.l2, *([self.rank, self.seed] if self.rank else [])]

    @property
    def layout(self) -> Layout:
        if self.rank == 0:
            return DENSE
        return Layout(
            {"u": 1, "u_low": 1, "sum_neg": 1, "sketch_neg": self.rank, "sum_pos": 1, "sketch_pos": self.rank}
        )

    def extra_arrays(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        if self.rank == 0:
            return no_pairs(dtype)
        m = 2 * (1 + self.rank)
        return {"span": np.zeros(1 + 2 * m + m * m), "drawn": np.zeros(2 * self.rank)}

    def reserve(self, state: State, block: Block) -> State:
        return state if self.rank else reserve_pairs(state, block, "Opauc")

    def dump_extra(self, state: State, n_features: int) -> Mapping[str, NDArray[Any]]:
        return state.extra if self.rank else dump_pairs(state)

    def load_extra(self, state: State, saved: Mapping[str, NDArray[Any]]) -> State:
        return super().load_extra(state, saved) if self.rank else load_pairs(state, saved)
