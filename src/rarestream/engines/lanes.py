"""Lanes: many settings of the FTRL and dual-averaging learners side by side, in one pass over the rows.

A coordinate holds z and n of every lane, in float32, and once for all lanes what evidence counts; the rows are decoded
once for all. A lane learns what a Model of its learner would learn in float32, but for the order in which a row's score
is summed, and whatever lanes stand beside it. With scale="none" a row may be too large to learn: where it is so for
one lane, no lane learns it; the caller decides whether to refuse the row or to drop the lane.

Lanes are settings, which share the labels of the rows, or classes: then each lane has counts of its own, and a row is
positive in the lane of its class and negative in all others. Classes have equal rates where v grows by the same amount
whatever the slope of the loss is: n is then stored once for all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream import _native
from rarestream.blocks import Block
from rarestream.engines.base import more_slots, overflow
from rarestream.engines.single import Single
from rarestream.learners import Learner, State
from rarestream.learners.state import COUNTS, TALLY, Layout, copy_touched, padded, zeros
from rarestream.system import cores
from rarestream.threads import run_all

MOST, WIDTH = _native.MAX_LANES, _native.LANE_GROUP  # lanes of a kernel: at most MOST, a multiple of WIDTH
GROUP = 16  # lanes whose numbers are adjacent in a coordinate: native/lanes/types.hpp
LINE = 64  # bytes of a cache line
CHUNK = 1 << 15  # coordinates that a thread copies at a time

Scores = NDArray[np.float32]


class LaneState(NamedTuple):
    """The state of some lanes."""

    table: NDArray[np.float32]  # (slots, 2 width): z and n; with equal rates z alone, in whole groups
    counts: NDArray[np.float64]  # of positives and negatives: (2,), or (2, width) where lanes are classes
    means: NDArray[np.float64]  # (4, width): a, b, w0, n0, as in TALLY
    having: NDArray[np.float32] | None  # (slots, 2): positives and negatives that have the feature, if a lane needs it
    largest: NDArray[np.float32] | None
    rates: NDArray[np.float32] | None = None  # (slots,): n, with equal rates

    def tally(self, lane: int) -> NDArray[np.float64]:
        """Return the numbers of TALLY of a lane."""
        counts = self.counts if self.counts.ndim == 1 else self.counts[:, lane]
        return np.array([*counts, *self.means[:, lane]])


class Lanes:
    """Some settings side by side, and the memory layout of their state, which it does not own.

    `classes`: whether they are classes, each with counts of its own; `equal_rates`: and with equal rates.
    """

    def __init__(self, learners: Sequence[Learner], classes: bool = False, equal_rates: bool = False) -> None:
        self.learners = list(learners)
        self.classes, self.equal_rates = classes, equal_rates
        self.width = -(-len(self.learners) // WIDTH) * WIDTH  # number of lanes, unused ones included

    @property
    def bytes(self) -> int:
        """Memory per coordinate."""
        return 4 * self.stride + 8 * self.any_evidence + 4 * self.equal_rates

    @property
    def stride(self) -> int:
        """Numbers of a coordinate in the table."""
        return -(-self.width // GROUP) * GROUP if self.equal_rates else 2 * self.width

    @property
    def any_evidence(self) -> bool:
        """Whether a lane needs to know how many positives and negatives have a feature."""
        return any(COUNTS.keys() <= learner.layout.columns.keys() for learner in self.learners)

    @property
    def layout(self) -> Layout:
        """The columns of a coordinate: z and n of each group of lanes."""
        groups = [(first, min(GROUP, self.width - first)) for first in range(0, self.width, GROUP)]
        return Layout({f"{word}{first}": size for first, size in groups for word in "zn"})

    def columns(self, lane: int) -> list[int]:
        """Return the columns of z and n of a lane; with equal rates that of z."""
        if self.equal_rates:
            return [lane]
        first = lane // GROUP * GROUP
        z = first + lane
        return [z, z + min(GROUP, self.width - first)]

    def table(self, slots: int, in_order: bool = False) -> NDArray[np.float32]:
        """Return a table of zeros that starts on a cache line: half as many lines to touch.

        `in_order`: its coordinates will be used one after the other, so that large pages cost no memory for nothing.
        """
        size, skipped = slots * self.stride, LINE // 4
        room = zeros((size + skipped,), np.float32, in_order=in_order)
        skip = -room.ctypes.data % LINE // 4
        return room[skip : skip + size].reshape(slots, self.stride)

    def start(self, slots: int, largest: bool) -> LaneState:
        """Return the state before the first row; `largest`: with the largest value of each coordinate."""
        values = zeros((slots,), np.float32) if largest else None
        having = zeros((slots, 2), np.float32) if self.any_evidence else None
        counts = np.zeros((2, self.width) if self.classes else 2)
        rates = zeros((slots,), np.float32) if self.equal_rates else None
        return LaneState(self.table(slots), counts, np.zeros((4, self.width)), having, values, rates)

    def grown(self, state: LaneState, slots: int, used: int | None = None) -> LaneState:
        """Return the same state with room for more coordinates; `used` as for `picked`."""
        table = self.table(slots, in_order=used is not None)
        copy_touched(state.table[:used], table)
        having, largest, rates = (
            None if one is None else padded(one[:used], slots) for one in (state.having, state.largest, state.rates)
        )
        return state._replace(table=table, having=having, largest=largest, rates=rates)

    def state(self, lane: int, state: LaneState, dtype: DTypeLike = np.float32) -> State:
        """Return the state of one lane, as that of a Model of its learner."""
        alone = self.learners[lane].start(len(state.table), dtype)
        columns = self.columns(lane)
        _move([state.table], columns, alone.table[:, : len(columns)])
        if state.rates is not None:
            alone.table[:, 1] = state.rates
        if alone.table.shape[1] > 2:
            assert state.having is not None
            copy_touched(state.having, alone.table[:, 2:])
        alone.tally[: len(TALLY)] = state.tally(lane)
        return alone._replace(largest=_copied(state.largest))

    @classmethod
    def picked(
        cls,
        parts: Sequence[tuple[Lanes, LaneState, int]],
        used: int | None = None,
        half_lives: Mapping[int, float] | None = None,
        share_counts: bool = False,
    ) -> tuple[Lanes, LaneState]:
        """Return lanes picked from several groups, with their states; all have learned the same rows in equal room.

        `used`: coordinates are used one after the other, and those from this one on are not yet. `half_lives`: what
        some of the picked lanes, which have none, get. `share_counts`: what evidence counts is not copied.
        """
        like, faded = parts[0][0], half_lives or {}
        learners = [
            lanes.learners[lane] if number not in faded else with_half_life(lanes.learners[lane], faded[number])
            for number, (lanes, _, lane) in enumerate(parts)
        ]
        picked = cls(learners, like.classes, like.equal_rates)
        parts = [*parts, *[parts[0]] * (picked.width - len(parts))]
        first = parts[0][1]
        slots, means = len(first.table), np.zeros((4, picked.width))
        table = picked.table(slots, in_order=used is not None)
        having = next((known.having for _, known, _ in parts if known.having is not None), None)
        if having is not None:
            having = None if not picked.any_evidence else having if share_counts else padded(having[:used], slots)
        largest = None if first.largest is None else padded(first.largest[:used], slots)
        counts = np.zeros((2, picked.width)) if picked.classes else first.counts.copy()
        rates = None if first.rates is None else first.rates.copy()
        state = LaneState(table, counts, means, having, largest, rates)
        tables = {id(known.table): known.table[:used] for _, known, _ in parts}
        first_of = dict(zip(tables, np.cumsum([0] + [table.shape[1] for table in tables.values()]), strict=False))
        columns = np.zeros(picked.stride, np.intp)  # their places if all tables are put side by side
        factors = np.ones(picked.stride, np.float32)
        for to, (lanes, known, lane) in enumerate(parts):
            state.means[:, to] = known.means[:, lane]
            if picked.classes:
                counts[:, to] = known.counts[:, lane]
            columns[picked.columns(to)] = first_of[id(known.table)] + np.array(lanes.columns(lane))
            if to in faded:
                factors[picked.columns(to)] = _native.half_life_units(float(first.counts.sum()), faded[to])
        _move(list(tables.values()), columns, state.table[:used], factors)
        return picked, state


def forgets(learner: Learner) -> bool:
    """Return whether a learner with a half-life forgets old rows altogether: what evidence counts does not fade."""
    return not learner.settings.get("evidence")


def with_half_life(learner: Learner, half_life: float) -> Learner:
    """Return a learner of lanes with a half-life."""
    change: dict[str, Any] = {"half_life": half_life}  # which all learners that have lanes know
    return dataclasses.replace(learner, **change)


def _move(
    tables: Sequence[NDArray[np.float32]],
    columns: Sequence[int] | NDArray[np.intp],
    into: NDArray[Any],
    factors: NDArray[np.float32] | None = None,
) -> None:
    """Copy columns of several tables, as if these stood side by side, each times its factor, into one of zeros."""
    wanted = np.asarray(columns, np.int32)
    if factors is None:
        factors = np.ones(len(wanted), np.float32)

    def move(start: int) -> None:
        some = slice(start, start + CHUNK)
        _native.pick_columns([table[some] for table in tables], wanted, factors, into[some])

    run_all(move, range(0, len(into), CHUNK), cores())


class LaneKernel:
    """The compiled loop over lanes. It borrows a state per call."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        settings = [learner.lane() for learner in lanes.learners]
        self._core = _native.LaneKernel([setting for setting in settings if setting is not None])
        assert None not in settings and self._core.lanes == lanes.width

    def learn(
        self,
        state: LaneState,
        block: Block,
        scale: _native.Scale | int,
        isa: str = "",
        classes: NDArray[np.int32] | None = None,
        repeats: float = 1.0,
    ) -> tuple[int, NDArray[np.float32]]:
        """Return how many rows were learned, and the score of each row under each lane before it was learned.

        Rows of importance 0 are scored and change nothing. `classes` has the lane in which each row is positive, in
        place of its label, where lanes are classes; a row whose number is no lane is negative in all.
        """
        scores = np.empty((len(block), len(self.lanes.learners)), np.float32)
        flat = state._replace(counts=state.counts.reshape(-1))
        return self._core.learn(*flat, block, scale, scores, isa, classes, repeats), scores

    def learn_prepared(
        self,
        state: LaneState,
        prepared: _native.PreparedRows,
        first: int,
        scale: _native.Scale | int,
        scores: Scores,
        isa: str = "",
    ) -> int:
        """Learn prepared rows from one on, as many as `scores` has; they were counted when they were prepared."""
        table, counts, means, _, largest, _ = state
        return self._core.learn_prepared(table, counts, means, largest, prepared, first, scale, scores, isa)

    def score_alone(
        self, state: LaneState, lane: int, block: Block, scale: _native.Scale | int, scores: NDArray[np.float64]
    ) -> int:
        """Write the scores of the rows under one lane, bit for bit those of a Model; the first not finite, or -1."""
        table, counts, _, having, largest, _ = state
        return self._core.score(table, counts, having, largest, lane, block, scale, scores)

    def add_weights(
        self, state: LaneState, shares: NDArray[np.float64], first: int, total: NDArray[np.float64]
    ) -> None:
        """Add the weights of coordinates under each lane, bit for bit those of a Model, times its share."""
        self._core.add_weights(state.table, state.counts, state.having, shares, first, total)

    def write_alone(
        self,
        state: LaneState,
        lane: int,
        first: int,
        features: NDArray[np.int32],
        weights: NDArray[np.float64] | None,
        table: NDArray[Any],
    ) -> None:
        """See `LaneGroup.write_single`."""
        setting = self.lanes.learners[lane].lane()
        assert setting is not None
        self._core.write_alone(state.table, state.counts, state.having, lane, setting, first, features, weights, table)

    def score(self, state: LaneState, block: Block, scale: _native.Scale | int) -> NDArray[np.float32]:
        """Return the score of each row under each lane."""
        rows = len(block)
        unlearned = dataclasses.replace(block, labels=np.ones(rows, np.int8), importances=np.zeros(rows))
        return self.learn(state, unlearned, scale, classes=np.zeros(rows, np.int32) if self.lanes.classes else None)[1]


def _copied(array: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    return None if array is None else array.copy()


class LaneGroup:
    """Settings that learn side by side, and their state.

    Parameters
    ----------
    lanes : Lanes
    state : LaneState
        The state of the lanes; the group takes ownership.
    scale : str
        How rows are scaled.
    numbers : sequence of int, optional
        The caller's numbers of the settings, by default from 0; dropped settings have none.
    """

    def __init__(self, lanes: Lanes, state: LaneState, scale: str, numbers: Sequence[int] | None = None) -> None:
        self.lanes, self.state = lanes, state
        self.numbers = list(range(len(lanes.learners)) if numbers is None else numbers)
        self.lane_of = list(range(len(self.numbers)))  # the lane of each number
        self._kernel = LaneKernel(lanes)
        self._scale = scale
        self._scale_code = _native.Scale[scale]

    @classmethod
    def start(
        cls,
        learners: Sequence[Learner],
        scale: str,
        numbers: Sequence[int] | None = None,
        slots: int = 0,
        classes: bool = False,
        equal_rates: bool = False,
    ) -> LaneGroup:
        """Return a group that has learned nothing yet; `classes`, `equal_rates`: as for Lanes."""
        lanes = Lanes(learners, classes, equal_rates)
        return cls(lanes, lanes.start(slots, largest=scale == "max"), scale, numbers)

    @property
    def bytes(self) -> int:
        """Memory per feature."""
        return self.lanes.bytes

    @property
    def slots(self) -> int:
        """The number of coordinates there is room for."""
        return len(self.state.table)

    def reserve(self, slots: int, most: int, used: int | None = None) -> None:
        """Make room for so many coordinates, and some more, but never for more than `most`; `used` as for `regroup`."""
        if slots > self.slots:
            self.state = self.lanes.grown(self.state, more_slots(slots, self.slots, most), used)

    def learn(
        self,
        block: Block,
        classes: NDArray[np.int32] | None = None,
        repeats: float = 1.0,
    ) -> tuple[int, Scores]:
        """Learn the rows, up to one that is too large for some lane.

        `classes`, in a group of classes, has the lane in which each row is positive; no lane: it is negative in all.
        `repeats`: as for `Kernel.learn`.

        Returns
        -------
        int
            The number of rows learned.
        array of shape (rows, settings)
            The scores of the rows under each setting before they were learned.
        """
        learned, scores = self._kernel.learn(self.state, block, self._scale_code, "", classes, repeats)
        return learned, self._of_numbers(scores)

    def learn_prepared(self, prepared: _native.PreparedRows, first: int, into: Scores) -> int:
        """Learn prepared rows from one on, and write their scores under each setting; return how many were learned."""
        scores = into
        if not self._whole or into.strides[1] != into.itemsize:
            scores = np.empty((len(into), len(self.lanes.learners)), np.float32)
        learned = self._kernel.learn_prepared(self.state, prepared, first, self._scale_code, scores)
        if scores is not into:
            into[:learned] = self._of_numbers(scores)[:learned]
        return learned

    def score(self, block: Block) -> Scores:
        """Return the scores of the rows under each setting."""
        return self._of_numbers(self._kernel.score(self.state, block, self._scale_code))

    def _of_numbers(self, scores: Scores) -> Scores:
        """Return the scores of the settings, in the order of their numbers, from those of all lanes."""
        return scores if self._whole else scores[:, self.lane_of]

    @property
    def _whole(self) -> bool:
        """Whether no setting was dropped: each has the lane of its place."""
        return len(self.lane_of) == len(self.lanes.learners)

    def share_counts(self, counts: NDArray[np.float32] | None) -> None:
        """Take what evidence counts from another group, which has learned the same rows, if a lane needs it."""
        if self.state.having is not None:
            self.state = self.state._replace(having=counts)

    def score_alone(self, number: int, block: Block, scores: NDArray[np.float64]) -> int:
        """Write the scores of the rows under one setting; the same bits as of a Model of that setting."""
        return self._kernel.score_alone(self.state, self._lane(number), block, self._scale_code, scores)

    def single(self, number: int, dtype: DTypeLike = np.float32) -> Single:
        """Return one setting as an engine of its own."""
        lane = self._lane(number)
        return Single(self.lanes.learners[lane], self._scale, self.lanes.state(lane, self.state, dtype))

    def write_single(
        self,
        number: int,
        slots: slice,
        features: NDArray[np.int32],
        weights: NDArray[np.float64] | None,
        into: State,
    ) -> None:
        """Write the numbers of one setting at some coordinates into its state alone, under the numbers of the features.

        With `weights`, its sums z are those that give the coordinates these weights; only where the classes have a
        feature alike, so that evidence makes its weight small, the weight is smaller. The tally is not written.
        """
        self._kernel.write_alone(self.state, self._lane(number), slots.start, features, weights, into.table)
        if self.state.largest is not None and into.largest is not None:
            into.largest[features] = self.state.largest[slots]

    def tally(self, number: int) -> NDArray[np.float64]:
        """Return the numbers of TALLY of a setting."""
        return self.state.tally(self._lane(number))

    def add_weights(self, shares: NDArray[np.float64], first: int, total: NDArray[np.float64]) -> None:
        """Add the weights of coordinates from the first on under each setting, times its share, to some numbers."""
        of_lanes = np.zeros(len(self.lanes.learners))
        of_lanes[self.lane_of] = shares[self.numbers]
        self._kernel.add_weights(self.state, of_lanes, first, total)

    def weights(self, number: int, slots: slice) -> NDArray[np.float32]:
        """Return the weights of some coordinates under one setting."""
        alone = self.state_at(number, slots)
        weights: NDArray[np.float32] = self.learner(number).kernel().weights(alone, 0, alone.slots)
        return weights

    def state_at(self, number: int, slots: slice) -> State:
        """Return the state of one setting at some coordinates."""
        lane, state = self._lane(number), self.state
        columns = [state.table[slots, self.lanes.columns(lane)]]
        if state.rates is not None:
            columns.append(state.rates[slots, np.newaxis])
        if len(self.lanes.learners[lane].layout.columns) > 2:
            assert state.having is not None
            columns.append(state.having[slots])
        return State(np.ascontiguousarray(np.concatenate(columns, axis=1)), state.tally(lane), None, {})

    def failing(self, row: Block, repeats: float = 1.0) -> list[int]:
        """Return the settings that cannot learn a row, which the group cannot."""
        failed = [number for number in self.numbers if self.single(number).learn_in_group(row, repeats) == 0]
        return failed or list(self.numbers)  # none fails alone: the row is at the bound, where rounding decides

    def drop(self, numbers: Container[int]) -> None:
        """Drop some settings. Their lanes stay and are ignored."""
        left = [pair for pair in zip(self.numbers, self.lane_of, strict=True) if pair[0] not in numbers]
        self.numbers, self.lane_of = [number for number, _ in left], [lane for _, lane in left]

    @classmethod
    def regroup(
        cls,
        groups: Sequence[LaneGroup],
        numbers: Sequence[int],
        used: int | None = None,
        half_lives: Mapping[int, float] | None = None,
        share_counts: bool = False,
    ) -> LaneGroup:
        """Return some settings of several groups, which have all learned the same rows, as one group.

        `used`: coordinates are used one after the other, and those from this one on are not yet. `half_lives`: by their
        place in `numbers`, of settings that have none so far. `share_counts`: what evidence counts is that of the old
        groups, not a copy: only one of all these groups may count rows from then on.
        """
        group_of = {number: group for group in groups for number in group.numbers}
        parts = [(group_of[number].lanes, group_of[number].state, group_of[number]._lane(number)) for number in numbers]
        return cls(*Lanes.picked(parts, used, half_lives, share_counts), groups[0]._scale, numbers)

    def renumber(self, coordinates: NDArray[np.integer[Any]], first: int) -> None:
        """Number coordinates anew: these become first, first + 1, ... All others are zero, and are forgotten."""
        slots = first + len(coordinates)
        table = self.lanes.table(slots, in_order=True)
        table[first:] = self.state.table[coordinates]
        having, largest = self.state.having, self.state.largest
        if having is not None:
            having = np.concatenate([np.zeros((first, 2), np.float32), having[coordinates]])
        if largest is not None:
            largest = np.concatenate([np.zeros(first, np.float32), largest[coordinates]])
        self.state = self.state._replace(table=table, having=having, largest=largest)

    def learner(self, number: int) -> Learner:
        """Return a setting."""
        return self.lanes.learners[self._lane(number)]

    def _lane(self, number: int) -> int:
        return self.lane_of[self.numbers.index(number)]

    def overflow(self, number: int) -> str:
        """Return the reason why a setting cannot learn a row."""
        return overflow(self.lanes.learners[self._lane(number)], self._scale, "float32")
