"""ClassLanes: one learner for each of several classes, all in one pass over the rows.

Class c learns to tell its rows from all others. The classes are lanes with equal settings (engines/lanes.py), in groups
of at most `MAX_GROUP`. A row that one group cannot learn is learned by none.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import LARGEST_INDEX, Block
from rarestream.engines.base import out_of_memory
from rarestream.engines.lanes import WIDTH, LaneGroup, Lanes, LaneState
from rarestream.engines.single import Single
from rarestream.learners import Learner
from rarestream.learners.dual_averaging import DualAveraging
from rarestream.learners.state import COUNTS, SPARE, TALLY, State, copy_touched
from rarestream.threads import run_all

MAX_GROUP = 32  # lanes per kernel: with more, a coordinate is too large
CHUNK = 4096  # coordinates that are looked at together

Codes = NDArray[np.int32]


def can_share(learner: Learner) -> bool:
    """Return whether classes of a learner can learn in one pass: it has lanes, without evidence and a half-life.

    Evidence would count the features of each class, and a half-life needs one time for all lanes.
    """
    if learner.lane() is None or COUNTS.keys() <= learner.layout.columns.keys():
        return False
    return not getattr(learner, "half_life", 0.0)


def have_equal_rates(learner: Learner) -> bool:
    """Return whether the classes of a learner can share their rates: dual averaging on the logistic loss, rate_power=0.

    Then v grows by x^2 whatever the slope of the loss is. Only where that is exactly 0, at log odds of 37 or more, does
    a Model leave v as it is, and classes with equal rates do not.
    """
    plain = DualAveraging(loss="logistic", rate_power=0.0)
    free = ("learning_rate", "beta", "l1")
    return isinstance(learner, DualAveraging) and plain == dataclasses.replace(
        learner, **{name: getattr(plain, name) for name in free}
    )


class ClassLanes:
    """The classes of a learner, and their state.

    Parameters
    ----------
    learner : Learner
        One for which `can_share` holds.
    scale : str
        How rows are scaled.
    classes : int, >= 1
        Their number.
    slots : int
        Coordinates to make room for.
    threads : int, >= 1
        Maximum number of threads that learn.
    """

    def __init__(self, learner: Learner, scale: str, classes: int, slots: int, threads: int = 1) -> None:
        self.learner, self.scale, self.count = learner, scale, classes
        self.equal_rates = have_equal_rates(learner)
        self._threads = threads
        self._touched: NDArray[np.int64] | None = None  # None: not known
        self._groups = self._started(classes, slots)

    def _started(self, classes: int, slots: int) -> list[LaneGroup]:
        """Return so many classes that have learned nothing yet."""
        return [
            LaneGroup.start([self.learner] * size, self.scale, slots=slots, classes=True, equal_rates=self.equal_rates)
            for size in _sizes(classes, self._threads)
        ]

    @property
    def slots(self) -> int:
        """The number of coordinates there is room for."""
        return self._groups[0].slots

    @property
    def nbytes(self) -> int:
        """The memory that the state takes, room for more features included."""
        return self.slots * sum(group.bytes for group in self._groups)

    def reserve(self, n_features: int, exactly: bool = False) -> None:
        """Make room for so many features, and some more unless `exactly`; DataError if they do not fit in memory."""
        slots = n_features + SPARE
        try:
            for group in self._groups:
                group.reserve(slots, slots if exactly else LARGEST_INDEX + 1)
        except MemoryError:
            needed = slots * sum(group.bytes for group in self._groups)
            raise out_of_memory(n_features - 1, needed, "OneVsRest") from None

    def learn(self, block: Block, codes: Codes) -> tuple[int, NDArray[np.float64]]:
        """Learn the rows in order, up to one that is too large for some class.

        Parameters
        ----------
        block : Block
        codes : array of int32
            The class of each row; of another number, it is negative for all classes.

        Returns
        -------
        int
            The number of rows learned.
        array of shape (rows, classes)
            The scores that they had before.
        """
        self.reserve(block.width)
        self._touched = None
        before = _Kept(block, self._groups) if len(self._groups) > 1 else None
        learned, parts = self._learn_groups(block, codes)
        done = min(learned)
        if max(learned) > done and before is not None:
            before.restore()
            _, parts = self._learn_groups(block[:done], codes[:done])
        return done, _beside(parts)[:done]

    def _learn_groups(self, block: Block, codes: Codes) -> tuple[list[int], list[NDArray[np.float32]]]:
        firsts = np.cumsum([0] + [len(group.numbers) for group in self._groups])

        def learn(item: tuple[LaneGroup, int]) -> tuple[int, NDArray[np.float32]]:
            group, first = item
            lanes = codes - np.int32(first)
            lanes[(lanes < 0) | (lanes >= len(group.numbers))] = -1
            return group.learn(block, lanes)

        found = run_all(learn, list(zip(self._groups, firsts.tolist(), strict=False)), self._threads)
        return [learned for learned, _ in found], [scores for _, scores in found]

    def score(self, block: Block) -> NDArray[np.float64]:
        """Return the score of each row for each class."""
        known = block.within(self.slots)
        return _beside(run_all(lambda group: group.score(known), self._groups, self._threads))

    def add(self, classes: int) -> None:
        """Add classes that are copies of the last one."""
        if not self.tally(0)[:2].any():  # no row was learned yet: nothing to copy
            self.count += classes
            self._groups = self._started(self.count, self.slots)
            return
        last = self._groups.pop()
        lanes, slots = list(range(len(last.numbers))), last.slots
        lanes += [lanes[-1]] * classes
        for first in range(0, len(lanes), MAX_GROUP):
            parts = [(last.lanes, last.state, lane) for lane in lanes[first : first + MAX_GROUP]]
            self._groups.append(LaneGroup(*Lanes.picked(parts), self.scale))
        assert self.slots == slots
        self.count += classes

    def touched(self) -> NDArray[np.int64]:
        """Return the coordinates that a row has touched, ascending."""
        if self._touched is None:
            seen = np.zeros(self.slots, bool)
            for group in self._groups:
                table, rates = group.state.table, group.state.rates
                for start in range(0, self.slots, CHUNK) if rates is None else ():
                    part = table[start : start + CHUNK]
                    if part.view(np.bool_).any():  # of bytes: it ends at the first that is not zero
                        seen[start : start + CHUNK] |= part.any(axis=1)
                if rates is not None:
                    seen |= rates != 0
            self._touched = np.flatnonzero(seen)
        return self._touched

    def single(self, number: int) -> Single:
        """Return a class as an engine of its own."""
        group, lane = self._place(number)
        state, touched = group.state, self.touched()
        alone = self.learner.start(self.slots, np.float32)
        alone.table[touched] = self._pairs(number, touched)
        alone.tally[: len(TALLY)] = state.tally(lane)
        largest = None if state.largest is None else state.largest.copy()
        return Single(self.learner, self.scale, alone._replace(largest=largest))

    def _pairs(self, number: int, touched: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return z and n of some coordinates for a class."""
        group, lane = self._place(number)
        columns = [group.state.table[touched, column] for column in group.lanes.columns(lane)]
        if group.state.rates is not None:
            columns.append(group.state.rates[touched])
        return np.stack(columns, axis=1)

    def nonzeros(self, number: int, n_features: int) -> int:
        """Return how many of the first weights are not zero for a class."""
        touched = self.touched()
        pairs = self._pairs(number, touched[touched < n_features])
        state = State(pairs, self.tally(number), None, {})
        return int(np.count_nonzero(self.learner.kernel().weights(state, 0, len(pairs))))

    def load(self, number: int, engine: Single) -> None:
        """Give a class the state of an engine of the same learner, for which there is room."""
        self._touched = None
        group, lane = self._place(number)
        state = group.state
        slots = min(engine.slots, self.slots)
        pairs: NDArray[Any] = np.zeros((slots, 2), np.float32)
        copy_touched(engine.state.table[:slots], pairs)
        touched = np.flatnonzero(pairs.view(np.uint64)[:, 0])
        for column, numbers in zip(group.lanes.columns(lane), pairs[touched].T, strict=not self.equal_rates):
            state.table[touched, column] = numbers
        if state.rates is not None:
            if lane and not np.array_equal(state.rates[:slots], pairs[:, 1]):
                raise ValueError("its classes do not have equal rates")
            state.rates[:slots] = pairs[:, 1]
        tally = engine.state.tally
        state.counts[:, lane], state.means[:, lane] = tally[:2], tally[2:6]
        if state.largest is not None and engine.largest is not None:
            state.largest[:slots] = engine.largest[:slots]

    def weights(self, number: int, start: int, stop: int) -> NDArray[np.float32]:
        """Return the weights of the coordinates from `start` to `stop` for a class."""
        group, lane = self._place(number)
        return group.weights(lane, slice(start, stop))

    def tally(self, number: int) -> NDArray[np.float64]:
        """Return the numbers of TALLY of a class."""
        group, lane = self._place(number)
        return group.state.tally(lane)

    @property
    def largest(self) -> NDArray[np.float32] | None:
        """The largest |x| of each coordinate, with scale="max"; all groups have the same."""
        return self._groups[0].state.largest

    def _place(self, number: int) -> tuple[LaneGroup, int]:
        for group in self._groups:
            if number < len(group.numbers):
                return group, number
            number -= len(group.numbers)
        raise IndexError("there is no such class")


class _Part(NamedTuple):
    """The numbers of a group that a block may change."""

    state: LaneState
    table: NDArray[np.float32]
    counts: NDArray[np.float64]
    means: NDArray[np.float64]
    largest: NDArray[np.float32] | None
    rates: NDArray[np.float32] | None


class _Kept:
    """What several groups know before a block, to return to if one of them cannot learn all of it."""

    def __init__(self, block: Block, groups: list[LaneGroup]) -> None:
        touched = np.zeros(groups[0].slots, bool)
        touched[block.indices[(block.indices >= 0) & (block.indices < len(touched))]] = True
        self._touched = np.flatnonzero(touched)
        self._parts = [self._part(group.state) for group in groups]

    def _part(self, state: LaneState) -> _Part:
        largest, rates = (None if array is None else array[self._touched] for array in (state.largest, state.rates))
        return _Part(state, state.table[self._touched], state.counts.copy(), state.means.copy(), largest, rates)

    def restore(self) -> None:
        for state, table, counts, means, *others in self._parts:
            state.table[self._touched] = table
            state.counts[:], state.means[:] = counts, means
            for array, before in zip((state.largest, state.rates), others, strict=True):
                if array is not None:
                    array[self._touched] = before


def _beside(parts: list[NDArray[np.float32]]) -> NDArray[np.float64]:
    """Return the scores of all groups as one array."""
    return (parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)).astype(np.float64)


def _sizes(classes: int, threads: int) -> list[int]:
    """Return how many classes each group has: whole registers, and about as many in each."""
    groups = max(math.ceil(classes / MAX_GROUP), min(threads, math.ceil(classes / WIDTH)))
    size = math.ceil(classes / groups / WIDTH) * WIDTH
    return [min(size, classes - first) for first in range(0, classes, size)]
