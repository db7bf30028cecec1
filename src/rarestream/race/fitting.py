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

from rarestream.blocks import Block
from rarestream.engines.lanes import WIDTH, LaneGroup
from rarestream.errors import DataError, RowError
from rarestream.features import COLUMNS, Hashed, Space, described, of_block
from rarestream.learners import Learner
from rarestream.model import Model

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
        for group in self._groups:
            group.reserve(n_features, n_features if most is None else most)

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
        jobs = [partial(self._learn_group, group, block, scores) for group in self._groups]
        jobs += [partial(self._learn_alone, *item, block, again, scores) for item in self._models.items()]
        list((self._pool.map if self._pool else map)(lambda job: job(), jobs))
        if len(self.errors) > known:
            scores[:, list(self.errors)] = np.nan
            self.drop(self.errors)
        return scores

    def score(self, block: Block) -> NDArray[np.float64]:
        """Return the score of each row under each setting; NaN for settings that have dropped out."""
        scores = np.full((len(block), len(self.learners)), np.nan)
        for group in self._groups:
            scores[:, group.numbers] = group.score(block)
        for number, model in self._models.items():
            scores[:, number] = model.score(block)
        return scores

    def model(self, number: int, n_features: int) -> Model:
        """Return what a setting has learned so far as a Model; raise the reason if it has dropped out."""
        if number in self.errors:
            raise self.errors[number]
        for group in self._groups:
            if number in group.numbers:
                return Model.from_engine(group.single(number), n_features, self.features or COLUMNS)
        return self._models[number]

    def drop(self, numbers: Container[int]) -> None:
        """Drop some settings; the others are regrouped once a whole register of lanes is free."""
        self._models = {number: model for number, model in self._models.items() if number not in numbers}
        for group in self._groups:
            group.drop(numbers)
        needed = _divided([number for group in self._groups for number in group.numbers], self._threads)
        if sum(math.ceil(len(part) / WIDTH) * WIDTH * 8 for part in needed) != sum(
            group.bytes for group in self._groups
        ):
            self._groups = [LaneGroup.regroup(self._groups, part) for part in needed]

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

    def _learn_group(self, group: LaneGroup, block: Block, scores: Scores) -> None:
        """Learn rows in lanes. Lanes for which a row is too large drop out, and the others continue."""
        done = 0
        while group.numbers:
            learned, lane_scores = group.learn(block[done:])
            scores[done : done + learned, group.numbers] = lane_scores[:learned]
            done += learned
            if done == len(block):
                return
            if changed := block.changed():
                raise RowError("race", done, changed)
            row = block[done : done + 1]
            failed = group.failing(row)
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
