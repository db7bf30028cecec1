"""Single: one learner and its state."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream import _native
from rarestream.blocks import LARGEST_INDEX, Block
from rarestream.engines import arrays as file_arrays
from rarestream.engines.arrays import Arrays
from rarestream.engines.base import GroupEngine, Learned, more_slots, out_of_memory
from rarestream.engines.merging import Change, rules_of
from rarestream.learners import Learner, State
from rarestream.learners.state import COUNTS, SPARE, TALLY


class Single(GroupEngine):
    """One learner and its state.

    Parameters
    ----------
    learner : Learner
    scale : str
        How rows are scaled.
    state : State
        A state of the learner; the engine takes ownership.
    """

    def __init__(self, learner: Learner, scale: str, state: State) -> None:
        super().__init__(learner, scale)
        self.state = state
        self._kernel = learner.kernel()

    @classmethod
    def start(cls, learner: Learner, scale: str, n_features: int, dtype: DTypeLike) -> Single:
        """Return an engine that has learned nothing yet."""
        return cls(learner, scale, learner.start(n_features + SPARE, dtype, largest=scale == "max"))

    @property
    def tally(self) -> NDArray[np.float64]:
        return self.state.tally[: len(TALLY)]

    @property
    def largest(self) -> NDArray[np.float32] | None:
        return self.state.largest

    @property
    def slots(self) -> int:
        return self.state.slots

    @property
    def weight_dtype(self) -> np.dtype[Any]:
        return self.state.table.dtype

    @property
    def nbytes(self) -> int:
        arrays = [self.state.table, self.state.tally, self.state.largest, *self.state.extra.values()]
        return sum(array.nbytes for array in arrays if array is not None)

    def learn(self, block: Block, scores: NDArray[np.float64]) -> Learned:
        self.reserve(block.width)
        self.state = self.learner.reserve(self.state, block)
        return Learned(self._kernel.learn(self.state, block, self.scale_code, scores), self)

    def score(self, block: Block, scores: NDArray[np.float64]) -> int:
        return self._kernel.score(self.state, block.within(self.state.slots), self.scale_code, scores)

    def one_row(
        self,
        gate: _native.Gate,
        progress: _native.StreamingSketch,
        calibration: NDArray[np.float64] | None,
        n_features: int,
    ) -> _native.OneRow | None:
        table, tally, largest, extra = self.state
        if extra:  # which may need more room for a row
            return None
        limit = min(n_features, self.state.features)
        core = self._kernel.core
        return _native.OneRow(core, table, tally, largest, self.scale_code, gate, progress, calibration, limit)

    def with_half_life(self, half_life: float) -> Single:
        before = self.learner.settings.get("half_life")
        if before is None:
            raise ValueError(
                f"Model.with_half_life: {self.learner.name} has no half_life; dual-auc, dual-logistic, ftrl-auc and "
                "ftrl-proximal have one."
            )
        change: dict[str, Any] = {"half_life": half_life}
        learner = dataclasses.replace(self.learner, **change)
        # z and n are in units that depend on the half-life and on the rows so far: native/half_life.hpp.
        rows = float(self.tally[:2].sum())
        old, new = (
            _native.half_life_units(rows, one) if one else (1.0, 1.0) for one in (before, learner.settings["half_life"])
        )
        table = self.state.table
        for start, stop in self.chunks(len(table)):
            used = start + np.flatnonzero(table[start:stop, 1])  # memory that no row has touched stays so
            for column, (now, later) in enumerate(zip(old, new, strict=True)):
                table[used, column] *= table.dtype.type(later / now)
        return Single(learner, self.scale, self.state)

    def weights(self, start: int, stop: int) -> NDArray[Any]:
        return self._kernel.weights(self.state, start, stop)

    def rank_keys(self, start: int, stop: int) -> NDArray[Any]:
        weights, factors = self.weights(start, stop), self.learner.rank_factors(self.state, start, stop)
        return weights if factors is None else weights * factors

    def reserve(self, n_features: int, exactly: bool = False) -> None:
        needed = n_features + SPARE
        if needed <= self.state.slots:
            return
        slots = needed if exactly else more_slots(needed, self.state.slots, LARGEST_INDEX + 1)
        try:
            self.state = self.learner.grown(self.state, slots)
        except MemoryError:
            numbers = sum(self.learner.layout.columns.values())
            raise out_of_memory(n_features - 1, slots * numbers * self.weight_dtype.itemsize) from None

    # -- groups

    def merge_rules(self) -> NDArray[np.int8]:
        return rules_of([self.learner])

    def learn_in_group(self, block: Block, repeats: float) -> int:
        self.reserve(block.width)
        return self._kernel.learn(self.state, block, self.scale_code, np.empty(len(block)), repeats)

    def numbers_at(self, features: NDArray[np.int32]) -> NDArray[Any]:
        table = self.state.table
        if features.max(initial=-1) < self.state.slots:
            return table.take(features, axis=0)
        numbers = np.zeros((len(features), table.shape[1]), table.dtype)
        known = features < self.state.slots
        numbers[known] = table[features[known]]
        return numbers

    @property
    def tallies(self) -> NDArray[np.float64]:
        return self.tally[:, np.newaxis]

    def largest_at(self, features: NDArray[np.int32]) -> NDArray[np.float32] | None:
        if self.state.largest is None:
            return None
        largest = np.zeros(len(features), np.float32)
        known = features < self.state.slots
        largest[known] = self.state.largest[features[known]]
        return largest

    def adopt(self, change: Change) -> str | None:
        self.reserve(int(change.features.max(initial=-1)) + 1)
        self.state.table[change.features] = change.numbers
        self.tally[:] = change.tally[:, 0]
        if self.state.largest is not None and change.largest is not None:
            self.state.largest[change.features] = change.largest
        return None

    # -- files

    def dump(self, n_features: int) -> dict[str, NDArray[Any]]:
        state = self.state
        return {
            "tally": state.tally.copy(),
            **file_arrays.dump_table(state.table[:n_features], self.learner.layout),
            **file_arrays.dump_extra(self.learner.dump_extra(state, n_features)),
            **file_arrays.dump_largest(state.largest),
        }

    def load(self, arrays: Arrays, n_features: int) -> None:
        state, layout = self.state, self.learner.layout
        state.tally[:] = file_arrays.load_tally(arrays, len(layout.numbers))
        file_arrays.load_table(arrays, state.table, layout, n_features)
        for name in ("n", *COUNTS):  # roots and counts; all others of the table are zero
            if name in layout.columns and (arrays[name] < 0).any():
                raise ValueError(f"array {name!r} has negative entries")
        self.state = self.learner.load_extra(state, file_arrays.load_extra(arrays))
        self.learner.check(self.state)
        file_arrays.load_largest(arrays, self.state.largest, n_features)
