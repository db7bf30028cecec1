"""SPAM: stochastic proximal steps on the pairwise square loss.

A positive should outscore a negative by one; the squared miss is averaged over all pairs. Given
the mean scores of the classes the loss is a sum over rows [1, Theorem 1], and row t makes a
proximal step of length eta = xi / sqrt(t) against l1 |w|_1 + l2 / 2 |w|^2:

    s = <w, x>,    a = <w, S+> / n+,    b = <w, S-> / n-

    y = +1:  g = 2 (1 - p) (s - b - 1) x
    y = -1:  g = 2      p  (s - a + 1) x                             gradient="sparse"

    w <- soft(w - eta g, eta l1) / (1 + eta l2),    soft(z, t) = sign(z) max(|z| - t, 0)

S+, S- are the sums of the rows of each class, n+, n- their numbers, p = n+ / t; all count the
current row, and a, b are those of the current w in every row. [2] differentiates through a and b
as well; with the mean rows m+ = S+ / n+ and m- = S- / n- the gradient has further terms:

    y = +1:  g += 2 (1 - p) (a m+ - s m-) - v (m- - m+)
    y = -1:  g += 2      p  (b m- - s m+) - v (m- - m+)              gradient="full"

    v = 2 p (1 - p) (b - a)

Both have the same mean, p (1 - p) times the gradient of the loss over all pairs.

All of it is computed exactly, and only the last of the four ways visits every coordinate:

- sparse, l2: w = sigma u. The row moves its own u; the penalty divides sigma; <u, S+> and <u, S->
  are kept up. O(k).
- sparse, with l1: in a step every u shrinks by eta l1 / sigma. T is the sum of that so far, and a
  coordinate keeps sign(u) (T + |u|), the level of T at which it dies: that does not change until
  the row has it. Of all weights together, <u, S> falls by <sign u, S> times what T grows, and
  <sign u, S> only changes where rows step or weights die; a heap of the levels tells which die.
  O(k log d).
- full, l2: w = sigma (u + alpha+ S+ + alpha- S-), and the inner products of u, S+ and S-. O(k).
- full, with l1: one pass over all coordinates in every row. O(d).

So that digits are kept, sigma is now and then set back to 1 and T to 0: without l1 when sigma has
fallen by 1e-12, in a pass over all coordinates, with l1 when T exceeds the mean |u|, in a pass
over the weights that are not zero. Both are seldom enough not to count.

A row of importance h counts as h rows learned at one score: h times in S, n and t, and its step
is h eta long. While only one class has been seen, g = 0 and nothing is learned.

Where this differs: [1] has p, a and b of the distribution, here they are of the rows so far, as in
[2]. The code behind [2] leaves out the terms of v, which biases the step, and lets a stand still
while negatives arrive, and b while positives do.

[1] Natole, Ying, Lyu. Stochastic Proximal Algorithms for AUC Maximization. ICML 2018.
[2] Zhou, Ying, Skiena. Online AUC Optimization for Sparse High-Dimensional Datasets. ICDM 2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream.learners.base import About, Learner
from rarestream.learners.registry import register
from rarestream.learners.settings import non_negative, one_of, positive
from rarestream.learners.span import DENSE, SPAN
from rarestream.learners.state import Layout, State, padded

# Of the sparse gradient: w = sigma u, <u, S>, T, <sign u, S>, the number of living u, and where T is set back.
SCALED = Layout(
    columns={"u": 1, "sum_neg": 1, "sum_pos": 1},
    numbers=("sigma", "u_neg", "u_pos", "level", "q_neg", "q_pos", "living", "bound"),
    stacked=False,
)
CHILDREN = 4  # of an entry of the heap, as in native/zeroing_heap.hpp


@register("spam")
@dataclass(frozen=True, kw_only=True)
class Spam(Learner):
    """SPAM of Natole, Ying and Lyu (ICML 2018): O(k) per row, O(k log d) with l1 and its exact zeros."""

    learning_rate: float = positive(1.5, "Initial learning rate: xi; row t has the rate xi / sqrt(t).")
    penalty: str = one_of("l2", "Penalty: l1, l2, or both with elasticnet.", "l1", "l2", "elasticnet")
    l1: float = non_negative(
        1e-4, "Strength of the l1 penalty, which makes weights exactly zero. Ignored with penalty='l2'."
    )
    l2: float = non_negative(1e-4, "Strength of the l2 penalty, which shrinks weights. Ignored with penalty='l1'.")
    gradient: str = one_of(
        "sparse",
        "Gradient of [1], a multiple of the row (sparse), or of [2], through the class means too (full).",
        "sparse",
        "full",
    )

    about: ClassVar[About] = About(
        title="SPAM",
        objective="square loss on pairs",
        cost="O(k); O(k log d) with `l1`; O(d) with `l1` and the full gradient",
        published="O(d)",
        sparse="exact zeros with `l1`",
        returns="last iterate",
        paper="Natole, Ying, Lyu 2018, Algorithm 1",
    )

    @property
    def native(self) -> str:
        if self.gradient == "sparse":
            return "Spam"
        return "SpamFullL1" if self._strengths[0] > 0 else "SpamFull"

    @property
    def layout(self) -> Layout:
        return {"Spam": SCALED, "SpamFull": SPAN, "SpamFullL1": DENSE}[self.native]

    @property
    def _strengths(self) -> tuple[float, float]:
        """l1 and l2 as the penalty counts them."""
        return 0.0 if self.penalty == "l2" else self.l1, 0.0 if self.penalty == "l1" else self.l2

    def kernel_settings(self) -> list[float]:
        return [self.learning_rate, *self._strengths]

    # The heap of native/zeroing_heap.hpp. A file keeps its order; the rest follows from the table.

    def extra_arrays(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        if self.gradient == "full" or self._strengths[0] == 0:
            return {}
        return {
            "heap": np.zeros(slots, np.int32),
            "level": np.zeros(slots, dtype),
            "place": np.zeros(slots, np.int32),
        }

    def grown(self, state: State, slots: int) -> State:
        wider = {name: padded(part, slots) for name, part in state.extra.items()}
        return super().grown(state, slots)._replace(extra=wider)

    def dump_extra(self, state: State, n_features: int) -> Mapping[str, NDArray[Any]]:
        return {"heap": state.extra["heap"][: int(self.tally(state)["living"])]} if state.extra else {}

    def load_extra(self, state: State, saved: Mapping[str, NDArray[Any]]) -> State:
        if not state.extra:
            return state
        heap, levels = saved["heap"], abs(state.table[:, 0])
        tally = self.tally(state)
        living = np.flatnonzero(levels > tally["level"])
        if heap.dtype != np.int32 or heap.ndim != 1 or not np.array_equal(np.sort(heap), living):
            raise ValueError("array 'heap' does not hold every weight that is not zero, once")
        if len(heap) != tally["living"]:
            raise ValueError("array 'heap' is not as long as the tally says")
        ordered = levels[heap]
        if (ordered[1:] < ordered[np.arange(len(heap) - 1) // CHILDREN]).any():
            raise ValueError("array 'heap' is out of order")
        state.extra["heap"][: len(heap)] = heap
        state.extra["level"][: len(heap)] = ordered
        state.extra["place"][heap] = np.arange(1, len(heap) + 1)
        return state

    def check(self, state: State) -> None:
        if "sigma" in self.layout.numbers and self.tally(state)["sigma"] < 0:
            raise ValueError("its sigma is negative")
