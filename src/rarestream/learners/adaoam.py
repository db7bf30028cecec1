"""AdaOAM: one-pass AUC optimisation with a rate of its own for every coordinate.

The square loss of a row against all earlier rows z of the other class [1, equation (2)],

    lambda |w|^2 / 2 + mean of (1 - y <w, x - z>)^2 / 2

needs of them only their number n, mean m and mean outer product Q. With s = <w, x>,

    g = lambda w + (s - <w, m> - y) (x - m) + (Q - m m') w
      = lambda w + (s - <w, m> - y) x + (y - s) m + Q w

and every coordinate takes its step [1, Algorithm 1]

    v <- v + g^2,    w <- w - eta g / (epsilon + sqrt(v)).

rank = 0: Q is kept, d x d numbers a class, and a row costs O(d^2).
rank > 0: Q is estimated from d x rank numbers a class, and a row costs O(d rank):

    Z <- Z + x r',    Q ~ Z Z' / n

where r has rank entries +-1/sqrt(rank), drawn for every row: E[r r'] = I, so E[Z Z'] is the
sum of x x'. The sign of entry c in row t is bit c mod 64 of splitmix64(seed, ...).

A row of importance h counts as h rows learned at one score: n, m and Q count it h times (Z
takes sqrt(h) x r'), v takes h g^2, the step is h times as long. While only one class has been seen, nothing is learned. With
scale="max", m, Z and Q shrink with the measure of their feature, v with its square; w stays, as a step's length does not
depend on it.

Where this differs from the text of [1]:

[1] Ding, Zhao, Hoi, Ong. An Adaptive Gradient Method for Online AUC Maximization. AAAI 2015.
[2] Gao, Jin, Zhu, Zhou. One-Pass AUC Optimization. ICML 2013.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream.learners.base import About, Learner, State, non_negative, padded, positive, register, whole


@register("adaoam")
@dataclass(frozen=True, kw_only=True)
class AdaOam(Learner):
    """AdaOAM of Ding, Zhao, Hoi and Ong (AAAI 2015): O(d rank) a row with sketched covariances, O(d^2) with exact ones."""

    learning_rate: float = positive(0.1, "Length of the steps: eta in [1].")
    l2: float = non_negative(0.0, "Strength of the penalty that shrinks weights: lambda in [1].")
    epsilon: float = positive(1.0, "Holds back the first steps of a coordinate: delta in [1].")
    rank: int = whole(8, "Columns of the sketched covariances; 0: exact.", most=1000)
    seed: int = whole(0, "Which signs the sketch draws.")

    about: ClassVar[About] = About(
        objective="square loss on pairs",
        cost="O(d rank); O(d^2) exact",
        published="O(d^2)",
        sparse="no",
        returns="last iterate",
        paper="Ding, Zhao, Hoi, Ong 2015, Algorithm 1",
    )
    numbers: ClassVar[tuple[str, ...]] = ("rows", "longest", "ww")
    stacked: ClassVar[bool] = True

    @property
    def columns(self) -> Mapping[str, int]:  # type: ignore[override]
        return {"w": 1, "v": 1, "sum_neg": 1, "sum_pos": 1, "sketch_neg": self.rank, "sketch_pos": self.rank}

    @property
    def name(self) -> str:
        return "adaoam"

    def kernel_settings(self) -> list[float]:
        return [self.learning_rate, self.l2, self.epsilon, float(self.rank), float(self.seed)]

    def more(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        return {"now": np.zeros(slots, dtype)}

    def grown(self, state: State, slots: int) -> State:
        return super().grown(state, slots)._replace(more={**state.more, "now": padded(state.more["now"], slots)})

    def kept(self, state: State, d: int) -> Mapping[str, NDArray[Any]]:
        return {}

    def taken(self, state: State, kept: Mapping[str, NDArray[Any]]) -> State:
        return state
