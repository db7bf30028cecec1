"""Fit many settings over the same rows: side by side in lanes where they can share a pass, in a Model each where not.

A setting that cannot learn a row, because its weights grow beyond float32, drops out with the reason; the others
continue.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import LARGEST_INDEX, Block
from rarestream.engines.compact import UNSEEN, CompactSlots
from rarestream.engines.lanes import WIDTH, LaneGroup
from rarestream.engines.single import Single
from rarestream.errors import DataError, RowError
from rarestream.features import COLUMNS, Hashed, Space, described, of_block
from rarestream.learners import Learner
from rarestream.learners.state import SPARE, TALLY
from rarestream.model import Model

WIDE_BYTES = 1 << 26  # of lanes; above, only features that were seen have a coordinate
MAX_GROUP, MIN_GROUP = 32, 16  # lanes per kernel: with more a coordinate is too large; fewer are not worth a thread

Scores = NDArray[np.float32]


class ManyFits:
    """Settings that learn the same rows in one pass.

    Parameters
    ----------
    learners : sequence of Learner
        The settings; they are numbered in this order.
    scale : {"unit", "max", "none"}, default "unit"
        How rows are scaled.
    threads : int, >= 1, default 1
        Maximum number of threads that learn.

    Attributes
    ----------
    errors : dict of int to Exception
        Why settings have dropped out, by their number.
    """

    def __init__(self, learners: Sequence[Learner], scale: str = "unit", threads: int = 1) -> None:
        self.learners = list(learners)
        self.errors: dict[int, Exception] = {}
        self.features: Space | None = None  # that of the first rows
        self._scale, self._threads = scale, threads
        in_lanes = [number for number, learner in enumerate(learners) if learner.lane() is not None]
        self._groups = [
            LaneGroup.start([learners[number] for number in numbers], scale, numbers)
            for numbers in _divided(in_lanes, threads)
        ]
        self._compact: CompactSlots | None = None  # of lanes that would be very wide
        self._most = LARGEST_INDEX + 1
        alone = [number for number in range(len(learners)) if number not in in_lanes]
        self._models = {number: Model(learners[number], scale=scale) for number in alone}
        jobs = len(self._groups) + len(self._models)
        self._pool = ThreadPoolExecutor(min(threads, jobs)) if threads > 1 and jobs > 1 else None

    @property
    def left(self) -> list[int]:
        """The numbers of the settings that still learn."""
        return [number for group in self._groups for number in group.numbers] + list(self._models)

    @property
    def bytes(self) -> int:
        """Memory per feature, of all settings together."""
        alone = sum(sum(model.learner.layout.columns.values()) * 4 for model in self._models.values())
        return sum(group.bytes for group in self._groups) + alone

    def reserve(self, n_features: int, most: int | None = None) -> None:
        """Make room for so many features and some more, but at most for `most`. Models make room by themselves."""
        self._most = n_features if most is None else most
        lane_bytes = sum(group.bytes for group in self._groups)
        if self._compact is None and n_features * lane_bytes > WIDE_BYTES:
            self._compact = self._compacted()  # no lanes: no bytes
        if self._compact is not None:
            self._compact.reserve(n_features, LARGEST_INDEX + 1)
            return
        for group in self._groups:
            group.reserve(n_features, self._most)

    def seen_with(self, block: Block) -> int:
        """Return how many features need memory once these rows are learned, at the most."""
        if self._models or not self._groups:
            return block.width
        if self._compact is None:
            self._compact = self._compacted()
        return self._compact.used + len(self._compact.new_features_in(block))

    def _compacted(self) -> CompactSlots:
        """Give slots to the features that rows have shown so far, and return them."""
        slots = self._groups[0].slots
        seen = np.zeros(slots, bool)
        for group in self._groups:
            for numbers in (group.state.table, group.state.having):
                if numbers is not None:
                    seen |= numbers.any(axis=1)
            if group.state.largest is not None:
                seen |= group.state.largest > 0
        features = np.flatnonzero(seen).astype(np.int32)
        compact = CompactSlots(slots)
        compact.load(features)
        for group in self._groups:
            group.renumber(features, UNSEEN)
        return compact

    def _in_lanes(self, block: Block) -> Block:
        """Return rows to learn under the coordinates that lanes have, which get room for them."""
        if self._compact is None:
            return block
        rows = self._compact.added(block)
        used = UNSEEN + self._compact.used
        for group in self._groups:
            group.reserve(used + SPARE, UNSEEN + self._most + SPARE, used)
        return rows

    def learn(self, block: Block, again: bool = False) -> Scores:
        """Learn the rows with every setting.

        Parameters
        ----------
        block : Block
            Rows with labels, as wide as the room that was made for them.
        again : bool
            Whether the rows were learned before.

        Returns
        -------
        array of shape (rows, settings)
            The scores that the rows had before they were learned; NaN for settings that have dropped out.
        """
        if self.features is None:
            self.features = of_block(block.space)
        elif self.features is not block.space:
            self._join_space(block.space)
        scores = np.full((len(block), len(self.learners)), np.nan, np.float32)
        known = len(self.errors)
        in_lanes = self._in_lanes(block)
        jobs = [partial(self._learn_group, group, block, in_lanes, scores) for group in self._groups]
        jobs += [partial(self._learn_alone, *item, block, again, scores) for item in self._models.items()]
        list((self._pool.map if self._pool else map)(lambda job: job(), jobs))
        if len(self.errors) > known:
            scores[:, list(self.errors)] = np.nan
            self.drop(self.errors)
        return scores

    def score(self, block: Block) -> NDArray[np.float64]:
        """Return the score of each row under each setting; NaN for settings that have dropped out."""
        scores = np.full((len(block), len(self.learners)), np.nan)
        in_lanes = block if self._compact is None else self._compact.known(block)
        for group in self._groups:
            scores[:, group.numbers] = group.score(in_lanes)
        for number, model in self._models.items():
            scores[:, number] = model.score(block)
        return scores

    def model(self, number: int, n_features: int) -> Model:
        """Return what a setting has learned so far as a Model; raise the reason if it has dropped out."""
        if number in self.errors:
            raise self.errors[number]
        for group in self._groups:
            if number in group.numbers:
                return Model.from_engine(self._single(group, number), n_features, self.features or COLUMNS)
        return self._models[number]

    def _single(self, group: LaneGroup, number: int) -> Single:
        """Return a setting as an engine of its own."""
        if self._compact is None:
            return group.single(number)
        learner, used = group.learner(number), slice(UNSEEN, UNSEEN + self._compact.used)
        state = learner.start(self._compact.room, np.float32, largest=group.state.largest is not None)
        state.tally[: len(TALLY)] = group.tally(number)
        group.write_single(number, used, self._compact.features, None, state)
        return Single(learner, self._scale, state)

    def drop(self, numbers: Container[int]) -> None:
        """Drop some settings; the others are regrouped once a whole register of lanes is free."""
        self._models = {number: model for number, model in self._models.items() if number not in numbers}
        for group in self._groups:
            group.drop(numbers)
        needed = _divided([number for group in self._groups for number in group.numbers], self._threads)
        if sum(math.ceil(len(part) / WIDTH) * WIDTH * 8 for part in needed) != sum(
            group.bytes for group in self._groups
        ):
            used = None if self._compact is None else UNSEEN + self._compact.used
            self._groups = [LaneGroup.regroup(self._groups, part, used) for part in needed]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _join_space(self, space: Hashed | None) -> None:
        """Take over the names of other rows; DataError if their features are not those of the first ones."""
        mine = self.features
        if mine is None or not mine.compatible(space):
            raise DataError(
                f"race: rows of {described(mine)} and of {described(space)} cannot be learned together. "
                "Read or make all of them with the same features."
            )
        if isinstance(mine, Hashed) and isinstance(space, Hashed):
            mine.take_names(space)

    def _learn_group(self, group: LaneGroup, block: Block, in_lanes: Block, scores: Scores) -> None:
        """Learn rows in lanes. Lanes for which a row is too large drop out, and the others continue."""
        done = 0
        while group.numbers:
            learned, lane_scores = group.learn(in_lanes[done:])
            scores[done : done + learned, group.numbers] = lane_scores[:learned]
            done += learned
            if done == len(block):
                return
            if changed := block.changed():
                raise RowError("race", done, changed)
            failed = group.failing(in_lanes[done : done + 1])
            self.errors |= {number: RowError("race", done, group.overflow(number)) for number in failed}
            left = [number for number in group.numbers if number not in failed]
            group.drop(failed)
            if left:
                smaller = LaneGroup.regroup([group], left)
                self._groups[self._groups.index(group)] = group = smaller

    def _learn_alone(self, number: int, model: Model, block: Block, again: bool, scores: Scores) -> None:
        try:
            scores[:, number] = model.learn(block, again=again)
        except (DataError, MemoryError) as error:
            self.errors[number] = error


def fit_many(
    learners: Sequence[Learner],
    rows: Callable[[int], Iterable[Block]],
    *,
    scale: str = "unit",
    n_features: int = 0,
    passes: int = 1,
    watch: Callable[[Block, Scores, int], object] | None = None,
) -> tuple[ManyFits, float]:
    """Fit a list of settings over rows that are in memory.

    Parameters
    ----------
    learners : sequence of Learner
        The settings.
    rows : callable
        Given the number of a pass, from 0, returns its Blocks.
    scale : {"unit", "max", "none"}, default "unit"
        How rows are scaled.
    n_features : int, default 0
        The largest feature index plus one.
    passes : int, >= 1, default 1
        Total number of passes.
    watch : callable, optional
        Called with every Block that was learned, the scores its rows had before, and the number of the pass.

    Returns
    -------
    ManyFits
        A model, or the reason why there is none, for each setting.
    float
        Processor time in seconds.
    """
    start = time.thread_time()
    fits = ManyFits(learners, scale)
    fits.reserve(n_features)
    for number in range(passes):
        for block in rows(number):
            if not fits.left:
                break
            scores = fits.learn(block, again=number > 0)
            if watch is not None:
                watch(block, scores, number)
    return fits, time.thread_time() - start


def _divided(numbers: list[int], threads: int) -> list[list[int]]:
    """Return the settings divided between kernels, about as many for each."""
    if not numbers:
        return []
    count = len(numbers)
    groups = max(math.ceil(count / MAX_GROUP), min(threads, math.ceil(count / MIN_GROUP)))
    size = math.ceil(count / groups / WIDTH) * WIDTH
    return [numbers[first : first + size] for first in range(0, count, size)]
