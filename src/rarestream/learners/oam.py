"""OAM: online AUC maximisation, with a few kept rows of each class.

A positive should outscore a negative by one; the hinge of the miss is summed over pairs:

    |w|^2 / 2 + C / 2 sum max(0, 1 - <w, x+ - x->)

That would compare a row with every earlier row of the other class. [1, Algorithm 1]
compares it with at most N of them, a uniform sample B, which stands for all n:

    C_t = C max(1, n / N)

"sequential" [1, Algorithm 3] takes the kept rows z of the other class in turn, each time
with the weights as they now are:

    l = max(0, 1 - y <w, x - z>),   tau = min(C_t / 2, l / |x - z|^2),   w <- w + tau y (x - z)

"gradient" [1, Algorithm 4] takes one step for all that the same weights miss:

    w <- w + C_t / 2 sum of y (x - z) over z in B with y <w, x - z> < 1

Then the row may be kept [1, Algorithm 2]: the n-th row of its class with probability
min(1, N / n), in the place of a random one once there are N. Chance is a function of
`seed` and of the number t of rows learned so far, this one included:

    r = splitmix64(seed, t) mod n,    kept in place r if r < N

A row of importance h meets the other class with h C_t in place of C_t; n, t and chance
count rows, whatever their importance. With scale="max", kept values shrink with the
measure of their feature, as the weights do.

Where this differs from the text of [1]: both classes keep N rows. A pair of equal rows
moves nothing. The 1/2 of C_t / 2 is that of the sum above in both updates; it matters
only to who compares values of C.

[1] Zhao, Hoi, Jin, Yang. Online AUC Maximization. ICML 2011.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream.blocks import Block
from rarestream.learners.base import About, Learner, Tuning
from rarestream.learners.registry import register
from rarestream.learners.settings import one_of, positive, whole
from rarestream.learners.state import Layout, State, padded

LEARNING_RATES = {"sequential": 0.03, "gradient": 0.003}


@register("oam")
@dataclass(frozen=True, kw_only=True)
class Oam(Learner):
    """OAM of Zhao, Hoi, Jin and Yang (ICML 2011): a buffer of stored rows per class, O(buffer k) per row."""

    update: str = one_of(
        "sequential",
        "One passive-aggressive step per stored row (sequential), or one step for all (gradient).",
        "sequential",
        "gradient",
    )
    learning_rate: float = positive(
        None, "Maximum step of a pair: C in [1]. None: 0.03 for sequential, 0.003 for gradient."
    )
    buffer: int = whole(100, "Number of rows stored per class: N in [1].", least=1, most=1_000_000)
    seed: int = whole(0, "Seed of the random choice of stored rows.")

    tuning: ClassVar[Tuning | None] = Tuning("learning_rate", low=3e-4)
    about: ClassVar[About] = About(
        title="OAM",
        objective="hinge loss on pairs",
        cost="O(buffer k)",
        published="O(buffer d)",
        sparse="no",
        returns="last iterate",
        paper="Zhao, Hoi, Jin, Yang 2011, Algorithms 1 to 4",
    )

    def _checked(self, field: Any, value: Any) -> Any:
        if field.name == "learning_rate" and value is None:
            value = LEARNING_RATES[self.update]
        return super()._checked(field, value)

    def multiplications(self, rows: int, nonzeros: int, features: int) -> float:
        return 2.0 * self.buffer * nonzeros

    @property
    def layout(self) -> Layout:
        return Layout({"w": 1}, ("rows_pos", "rows_neg", "longest"))

    def kernel_settings(self) -> list[float]:
        return [float(self.update == "gradient"), self.learning_rate, float(self.buffer), float(self.seed)]

    # The kept rows: N places for positives, then N for negatives, each with room for the longest row so far. A file
    # holds them end to end.

    def extra_arrays(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        return {
            "lengths": np.zeros(2 * self.buffer, np.int32),
            "indices": np.zeros((2 * self.buffer, 0), np.int32),
            "values": np.zeros((2 * self.buffer, 0), dtype),
            "now": np.zeros(slots, dtype),  # room to spread out the row that is being learned; zeros between rows
            "tau": np.zeros(self.buffer, dtype),  # and for the steps of its pairs
        }

    def grown(self, state: State, slots: int) -> State:
        return super().grown(state, slots)._replace(extra={**state.extra, "now": padded(state.extra["now"], slots)})

    def reserve(self, state: State, block: Block) -> State:
        longest = int(np.diff(block.indptr).max(initial=0))
        return state if longest <= state.extra["indices"].shape[1] else self._roomy(state, longest)

    def _roomy(self, state: State, longest: int) -> State:
        """The state with room for kept rows of that length, and some to spare."""
        wider = {}
        for name in ("indices", "values"):
            narrow = state.extra[name]
            wider[name] = np.zeros((len(narrow), longest + longest // 4), narrow.dtype)
            wider[name][:, : narrow.shape[1]] = narrow
        return state._replace(extra={**state.extra, **wider})

    def dump_extra(self, state: State, n_features: int) -> Mapping[str, NDArray[Any]]:
        lengths = state.extra["lengths"]
        used = np.arange(state.extra["indices"].shape[1]) < lengths[:, None]
        return {"lengths": lengths, **{name: state.extra[name][used] for name in ("indices", "values")}}

    def load_extra(self, state: State, saved: Mapping[str, NDArray[Any]]) -> State:
        lengths, indices, values = saved["lengths"], saved["indices"], saved["values"]
        for name, array, size in (("lengths", lengths, 2 * self.buffer), ("indices", indices, len(values))):
            if array.dtype != np.int32 or array.shape != (size,):
                raise ValueError(f"array {name!r} is {array.dtype}{list(array.shape)}")
        if values.dtype != state.table.dtype or values.ndim != 1:
            raise ValueError(f"array 'values' is {values.dtype}{list(values.shape)}")
        if (lengths < 0).any() or lengths.sum(dtype=np.int64) != len(indices):
            raise ValueError("array 'lengths' does not add up to the rows kept")
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        falls = np.flatnonzero(indices[1:] <= indices[:-1]) + 1
        if not np.isin(falls, starts).all() or (indices < 0).any() or (indices >= state.features).any():
            raise ValueError(f"array 'indices' must ascend within 0 .. {state.features - 1}, row by row")
        state = self._roomy(state, int(lengths.max()))
        used = np.arange(state.extra["indices"].shape[1]) < lengths[:, None]
        state.extra["lengths"][:] = lengths
        state.extra["indices"][used] = indices
        state.extra["values"][used] = values
        return state

    def check(self, state: State) -> None:
        tally = self.tally(state)
        rows, longest = np.array([tally["rows_pos"], tally["rows_neg"]]), tally["longest"]
        if (rows < 0).any() or (rows > 2**53).any() or (rows % 1 != 0).any() or longest < 0:
            raise ValueError("its rows of each class are not counts")
        places = np.tile(np.arange(self.buffer), 2)
        if state.extra["lengths"][places >= np.repeat(rows, self.buffer)].any():
            raise ValueError("it keeps more rows than it has seen")
        norms = np.sqrt(np.square(state.extra["values"], dtype=np.float64).sum(axis=1))
        if not (norms <= longest * (1 + 1e-5)).all():
            raise ValueError("it keeps a row longer than any it has seen")
