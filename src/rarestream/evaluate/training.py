"""Training with progressive validation: every row is scored before it is learned.

run = train(model, read("clicks.svm.gz"), progress="lines")
print(model.progress.auc)
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError, RowError
from rarestream.evaluate.progress import Callback, ProgressMeter, callbacks, shown, wants_to_stop
from rarestream.evaluate.resume import Place
from rarestream.metrics import SortedCheck, StreamingAuc
from rarestream.model import Model
from rarestream.readers import Stream
from rarestream.readers.live.stream import LiveStream

if TYPE_CHECKING:
    from rarestream.evaluate.given import GivenBlocks

NO_SCORES = np.zeros(0)


class Learning(Protocol):
    """What a TrainingRun can train: a Model, or a race of many settings."""

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
    """Some rows that were just learned, and the score that each had before."""

    block: Block
    scores: NDArray[np.float64]
    mark: bool  # whether `model.rows` is now one of the marks


class TrainingRun:
    """One run of training. Iterating over it learns the data, one Step at a time.

    After each step `model.source` stores how far the data were learned, so the model can be saved at any step and
    training resumed from there. Leaving the loop ends the run.

    A step of a live stream may have no rows: none came for a while.

    Parameters
    ----------
    model : Model or Racing
        What to train.
    stream : Stream or iterable of Block
        The data.
    place : Place, optional
        Where to start in the data, as `place_in` returns it. By default at the start.
    passes : int, >= 1, optional
        Total number of passes, those before `place` included. By default that of `place`.
    max_rows : int, >= 1, optional
        Number of rows to learn in this run. By default all.
    marks : iterable of int, ascending
        Counts of `model.rows` at which a step ends, for reports. They change no weight.

    Attributes
    ----------
    rows : int
        Number of rows learned in this run.
    nonzeros : int
        Number of their non-zeros.
    refused : int
        Number of invalid rows skipped.
    refusals : list of str
        Messages for the first few of them.
    unlabelled : int
        Number of rows left out because they have no label.
    interrupted : bool
        Whether `interrupt` was called.
    stopped : bool
        Whether a callback of `train` ended the run before its end.

    Raises
    ------
    ValueError
        If `passes` or `max_rows` is below 1.
    """

    def __init__(
        self,
        model: Learning,
        stream: Stream | GivenBlocks | Iterable[Block],
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
        self.stream = _as_stream(stream, passes or place.passes)
        self.place = dataclasses.replace(place, passes=max(passes or place.passes, place.number))
        self.rows = 0
        self.nonzeros = 0
        self.refused = 0
        self.refusals: list[str] = []
        self.unlabelled = 0
        self.interrupted = False
        self.stopped = False
        self._max_rows = max_rows
        self._marks = iter(marks)
        self._waiting = False
        self._hurried = False

    @property
    def fraction(self) -> float | None:
        """Share of the run that is done, 0 to 1; None if it is not known."""
        shares = [] if self._max_rows is None else [self.rows / self._max_rows]
        within = self.stream.fraction
        if within is not None:
            shares.append((self.place.number - 1 + within) / self.place.passes)
        return max(shares, default=None)

    def interrupt(self) -> None:
        """End the run after the current rows; of a pipe, after the rows that have arrived. For signal handlers.

        A second call ends the run at once. What was learned is kept.
        """
        if self.interrupted:
            self._hurried = True
            if self._waiting:
                raise KeyboardInterrupt
        self.interrupted = True
        self.stream.stop()

    @property
    def _leaving(self) -> bool:
        """Whether to leave the remaining rows for a later run. Those of a pipe would be lost, so they are learned."""
        return self._hurried or (self.interrupted and self.stream.replayable)

    def __iter__(self) -> Iterator[Step]:
        try:
            for block in self._blocks():
                start = 0  # of the piece in the block
                if not len(block):  # of a live stream, while no rows come
                    self._move()
                    yield Step(block, NO_SCORES, False)
                    if self._leaving:
                        return
                for piece, mark in self._cut(block):
                    yield self._learned(piece, mark, start)
                    start += len(piece)
                    if self._leaving or self.rows == self._max_rows:
                        return
        except KeyboardInterrupt:
            if not self.interrupted:
                raise

    def _learned(self, block: Block, mark: bool, start: int) -> Step:
        try:
            scores = self.model.learn(block, again=self.place.number > 1)
        except RowError as error:
            place = self.stream.where(start + error.row)
            if place is None:
                raise
            raise RowError(error.where, error.row, error.reason, place) from error
        self.rows += len(block)
        self.nonzeros += block.nonzeros
        if isinstance(self.stream, LiveStream):
            self.stream.learned(start + len(block))
        self._move(rows=self.place.rows + len(block))
        return Step(block, scores, mark)

    def _blocks(self) -> Iterator[Block]:
        """Yield the blocks of the remaining passes."""
        if self.place.complete and self.place.number >= self.place.passes:
            return
        first = self.place.number + self.place.complete  # a complete pass is not read again
        for number in range(first, self.place.passes + 1):
            if number > self.place.number:
                self._move(number=number, rows=0, complete=False)
            if isinstance(self.stream, LiveStream):
                self.stream.ticks = True
            else:
                self.stream.skip(self.place.rows)
            blocks = iter(self.stream)
            if self.interrupted:  # before this pass began, so that its stop was not seen
                self.stream.stop()
            while True:
                self._waiting = True
                block = next(blocks, None)
                self._waiting = False
                self._count_refusals()
                if block is None:
                    break
                yield block
            if self.interrupted or isinstance(self.stream, LiveStream):
                return
        # A line that was left out is learned later, except after a shuffle, whose order it would change.
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
        """Return the first mark beyond the rows learned."""
        for mark in self._marks:
            if mark > self.model.rows:
                self._marks = itertools.chain([mark], self._marks)
                return mark
        return 1 << 62

    def _count_refusals(self) -> None:
        if self.place.number == 1 or not self.refused:  # later passes skip the same rows again
            self.refused, self.refusals = self.stream.refused, self.stream.refusals
        self.unlabelled = max(self.unlabelled, self.stream.unlabelled)

    def _move(self, **changes: int | bool) -> None:
        self.place = dataclasses.replace(self.place, **changes)  # type: ignore[arg-type]
        self.model.source = self.place.source(self.stream, self.model.source)


def _as_stream(data: Stream | GivenBlocks | Iterable[Block], passes: int) -> Stream | GivenBlocks:
    if isinstance(data, Stream):
        return data
    from rarestream.evaluate.given import as_stream  # not above: who reads files does not need it

    return as_stream(data, passes)


def train(
    model: Model,
    stream: Stream | Iterable[Block],
    *,
    passes: int = 1,
    max_rows: int | None = None,
    on_step: Callback | Iterable[Callback] | None = None,
    every: float = 2.0,
    progress: str | None = None,
    save: str | os.PathLike[str] | None = None,
    save_every: float = 30.0,
) -> TrainingRun:
    """Learn a stream: one that `read` has opened from its start, one of `follow` from its position on.

    Parameters
    ----------
    model : Model
        The model to train.
    stream : Stream or iterable of Block
        The data, as `read` returns them, or Blocks, for example those of `make_rare_stream` or a list.
    passes : int, >= 1, default 1
        Number of passes.
    max_rows : int, >= 1, optional
        Number of rows to learn. By default all.
    on_step : callable or list of callables, optional
        Called with a `Progress` now and then (see `every`) and at the end. One that returns True, or raises
        `StopTraining`, ends the run; any other exception is raised. What was learned is kept.
    every : int or float, default 2.0
        An int, >= 1: after so many rows each. A float, > 1: each time the number of rows has grown by this factor, from
        1,000 rows on. As `--progress` of the command line.
    progress : {None, "lines", "rich"}, default None
        How to show progress: not at all; a line of a table for each record; or a live bar with the AUC, in a terminal
        or a notebook, which needs the package rich (and in notebooks ipywidgets).
    save : path, optional
        A file to save the model to, now and then and at the end, also if a row is invalid.
    save_every : int or float, default 30.0
        An int, >= 1: save after so many rows each. A float, > 0: after so many seconds each.

    Returns
    -------
    TrainingRun
        The run, with the counts of what was learned; `stopped` says whether a callback ended it.

    Raises
    ------
    DataError
        If a row is invalid; the message names file and line. Rows before it have been learned.
    MissingExtraError
        If `progress` is "rich", and rich is not installed.
    """
    data = _as_stream(stream, passes)
    saving = None if save is None else Saving(model, data, save, save_every)
    called = callbacks(on_step)
    wanted = bool(called) or progress == "lines"
    run = TrainingRun(model, data, passes=passes, max_rows=max_rows, marks=marks_every(every) if wanted else ())
    meter = ProgressMeter(model, waits=data.settings["shuffle"] is not None)
    show = shown(progress, run, meter)

    def record() -> bool:
        made = meter.record(run.fraction, run.place.number)
        if show is not None:
            show.mark(made)
        return wants_to_stop(called, made)

    try:
        for step in run:
            if len(step.block):
                meter.add(step.block, step.scores if wanted else None)
            if show is not None:
                show.step()
            if saving is not None:
                saving.step(len(step.block))
            if step.mark and record():
                run.stopped = True
                break
        if wanted and meter.rows > meter.recorded_rows:
            record()
    finally:
        if show is not None:
            show.close()
        if saving is not None and saving.unsaved:
            saving.save()
    return run


class Saving:
    """Saves a model now and then while it learns; with the position of a live source, which is told when it is saved.

    Parameters
    ----------
    model : Model
        What learns.
    stream : Stream or GivenBlocks
        What it learns.
    path : path
        The file to write.
    every : int, float or None
        An int, >= 1: after so many rows each. A float, > 0: after so many seconds each, if there were rows. None: only
        when `save` is called.
    kind : str
        As for `Model.save`.

    Raises
    ------
    ValueError
        If `every` is none of these.
    """

    def __init__(
        self,
        model: Any,
        stream: Stream | GivenBlocks,
        path: str | os.PathLike[str],
        every: float | None,
        kind: str = "resumable",
    ) -> None:
        if every is not None and not (every >= 1 if isinstance(every, int) else 0 < every < math.inf):
            raise ValueError(
                f"train: save_every must be a number of rows >= 1, or of seconds > 0 such as 30.0, got {every!r}."
            )
        self._model, self._stream, self._path, self._every, self._kind = model, stream, path, every, kind
        self._begins = isinstance(stream, LiveStream)
        self.unsaved = 0  # rows that were learned since the last save
        self.rows = 0  # that were learned before it, in this run
        self.at = time.monotonic()  # when that was, or when training began

    def step(self, rows: int) -> bool:
        """Count rows that were learned; save the model if that is due, and return whether it was saved."""
        self.unsaved += rows
        if self._begins and not rows:  # the position that a live stream starts at: what comes after it is not lost
            self.save()
            return True
        if self._every is None or not self.unsaved:
            return False
        due = self.unsaved if isinstance(self._every, int) else time.monotonic() - self.at
        if due < self._every:
            return False
        self.save()
        return True

    def save(self) -> None:
        """Save the model."""
        live = self._stream if isinstance(self._stream, LiveStream) else None
        if live is not None:
            live.flush()
        self._model.save(self._path, self._kind)
        self._begins = False
        if live is not None:
            live.saved()
        self.rows, self.unsaved, self.at = self.rows + self.unsaved, 0, time.monotonic()


def marks_every(rows: float) -> Iterator[int]:
    """Return marks for a TrainingRun: every so many rows if an int is given, else at a growth by this factor.

    Raises
    ------
    ValueError
        If an int is below 1, or a float is not above 1.
    """
    if isinstance(rows, int | np.integer) and not isinstance(rows, bool):
        if rows < 1:
            raise ValueError(f"train: every must be a number of rows >= 1, or a factor > 1 such as 2.0, got {rows}.")
        return itertools.count(int(rows), int(rows))
    if not (isinstance(rows, float) and 1 < rows < math.inf):
        raise ValueError(f"train: every must be a number of rows >= 1, or a factor > 1 such as 2.0, got {rows!r}.")
    return doubling(factor=rows)


def doubling(first: int = 1000, factor: float = 2.0) -> Iterator[int]:
    """Yield marks for a TrainingRun: `first`, then each `factor` (> 1) times the one before."""
    if factor <= 1:
        raise DataError(f"doubling: the factor must be > 1, got {factor}.")
    mark = float(first)
    while mark < 2**62:
        yield round(mark)
        mark *= factor
