"""Training is evaluation: every row is scored before it is learned (progressive validation).

run = train(model, read("clicks.svm.gz"))
print(model.progress.auc)
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError, RowError
from rarestream.evaluate.resume import Place
from rarestream.metrics import SortedCheck, StreamingAuc
from rarestream.model import Model
from rarestream.readers import Stream


class Learning(Protocol):
    """What can be trained: a Model, or many settings at once."""

    rows: int
    positives: int
    source: dict[str, Any]
    order: SortedCheck

    @property
    def progress(self) -> StreamingAuc: ...
    @property
    def nonzeros(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    def learn(self, block: Block, *, again: bool = False) -> NDArray[np.float64]: ...


class Step(NamedTuple):
    """Some rows that were just learned, and the score each had before."""

    block: Block
    scores: NDArray[np.float64]
    mark: bool  # whether a count of rows that was asked for is reached


class Run:
    """One run of training: iterate over it, and it learns, a step at a time.

    After each step `model.source` says how far the data were learned, so the model may be saved, and resumed from,
    at any of them. Leaving the loop ends the run. Blocks are cut at each of `marks`, ascending counts of
    `model.rows`; that changes no weight.
    """

    def __init__(
        self,
        model: Learning,
        stream: Stream,
        *,
        place: Place | None = None,
        passes: int | None = None,
        max_rows: int | None = None,
        marks: Iterable[int] = (),
    ) -> None:
        if passes is not None and passes < 1:
            raise ValueError(f"train: passes must be >= 1, got {passes}.")
        if max_rows is not None and max_rows < 1:
            raise ValueError(f"train: max_rows must be >= 1, got {max_rows}.")
        place = place or Place()
        self.model = model
        self.stream = stream
        self.place = dataclasses.replace(place, passes=max(passes or place.passes, place.number))
        self.rows = 0  # learned in this run
        self.nonzeros = 0  # of these rows
        self.refused = 0  # rows that broke a rule and were skipped
        self.refusals: list[str] = []  # what was wrong with the first of them
        self.interrupted = False
        self._max_rows = max_rows
        self._marks = iter(marks)
        self._waiting = False
        self._hurried = False

    @property
    def fraction(self) -> float | None:
        """How much of the way is behind, 0 to 1; None if nobody can know."""
        shares = [] if self._max_rows is None else [self.rows / self._max_rows]
        within = self.stream.fraction
        if within is not None:
            shares.append((self.place.number - 1 + within) / self.place.passes)
        return max(shares, default=None)

    def interrupt(self) -> None:
        """Ends the run after the rows at hand; from a pipe, after those that have come. Meant for signal handlers.

        A second time it ends the run at once: what was learned stays.
        """
        if self.interrupted:
            self._hurried = True
            if self._waiting:
                raise KeyboardInterrupt
        self.interrupted = True
        self.stream.stop()

    @property
    def _leaving(self) -> bool:
        """Whether rows that may still come are left for later. Those from a pipe would be lost."""
        return self._hurried or (self.interrupted and self.stream.replayable)

    def __iter__(self) -> Iterator[Step]:
        try:
            for block in self._blocks():
                behind = 0  # of the block
                for piece, mark in self._cut(block):
                    yield self._learned(piece, mark, behind)
                    behind += len(piece)
                    if self._leaving or self.rows == self._max_rows:
                        return
        except KeyboardInterrupt:
            if not self.interrupted:
                raise

    def _learned(self, block: Block, mark: bool, behind: int) -> Step:
        try:
            scores = self.model.learn(block, again=self.place.number > 1)
        except RowError as error:
            place = self.stream.where(behind + error.row)
            if place is None:
                raise
            raise RowError(error.where, error.row, error.says, place) from error
        self.rows += len(block)
        self.nonzeros += block.nonzeros
        self._move(rows=self.place.rows + len(block))
        return Step(block, scores, mark)

    def _blocks(self) -> Iterator[Block]:
        """The blocks of the passes that are left."""
        if self.place.complete and self.place.number >= self.place.passes:
            return
        first = self.place.number + self.place.complete  # a pass that came to its end is not read again
        for number in range(first, self.place.passes + 1):
            if number > self.place.number:
                self._move(number=number, rows=0, complete=False)
            self.stream.skip(self.place.rows)
            blocks = iter(self.stream)
            if self.interrupted:  # before there was a pass to stop
                self.stream.stop()
            while True:
                self._waiting = True
                block = next(blocks, None)
                self._waiting = False
                self._count_refusals()
                if block is None:
                    break
                yield block
            if self.interrupted:
                return
        # A line that was left out is still to be learned; not where rows are shuffled, as it would change their order.
        self._move(complete=self.stream.unfinished is None or self.stream.settings["shuffle"] is not None)

    def _cut(self, block: Block) -> Iterator[tuple[Block, bool]]:
        if self._max_rows is not None:
            block = block[: self._max_rows - self.rows]
        end = self.model.rows + len(block)
        while len(block):
            at = self._next_mark()
            if at > end:
                yield block, False
                return
            size = len(block) - (end - at)
            yield block[:size], True
            block = block[size:]

    def _next_mark(self) -> int:
        """The first mark beyond the rows learned."""
        for mark in self._marks:
            if mark > self.model.rows:
                self._marks = itertools.chain([mark], self._marks)
                return mark
        return 1 << 62

    def _count_refusals(self) -> None:
        if self.place.number == 1 or not self.refused:  # later passes meet the same rows again
            self.refused, self.refusals = self.stream.refused, self.stream.refusals

    def _move(self, **changes: int | bool) -> None:
        self.place = dataclasses.replace(self.place, **changes)  # type: ignore[arg-type]
        self.model.source = self.place.source(self.stream)


def train(
    model: Model,
    stream: Stream,
    *,
    passes: int = 1,
    max_rows: int | None = None,
    report: Callable[[Run, Step], object] | None = None,
) -> Run:
    """Learns a stream from its start. `report` is told of every step."""
    run = Run(model, stream, passes=passes, max_rows=max_rows)
    for step in run:
        if report is not None:
            report(run, step)
    return run


def doubling(first: int = 1000, factor: float = 2.0) -> Iterator[int]:
    """Marks at growing distances: first, then each `factor` times the one before."""
    if factor <= 1:
        raise DataError(f"doubling: the factor must be > 1, got {factor}.")
    mark = float(first)
    while mark < 2**62:
        yield round(mark)
        mark *= factor
