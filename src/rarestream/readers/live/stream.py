"""Streams of Blocks that do not end by themselves, with the position of their source after every row."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block, concatenate
from rarestream.errors import DataError, advice
from rarestream.readers.chunks import CHUNK, Chunk
from rarestream.readers.formats import Format
from rarestream.readers.live.dead_letters import DeadLetters
from rarestream.readers.live.lines import JoinedLines, Lines, LineSource, Position
from rarestream.readers.options import FormatOptions
from rarestream.readers.parser import ParsedRows, Parser
from rarestream.readers.prefetch import Prefetch
from rarestream.readers.rows import RowsToBlocks
from rarestream.readers.sources import Source
from rarestream.readers.split import split_blocks
from rarestream.readers.stream import Stream

TICK = 0.25  # seconds without rows after which whoever learns gets an empty Block, and may save, or tell of it
FIRST_ROWS = 1000  # that decide what columns become and which label is positive, if as many come soon
FIRST_WAIT = 5.0  # seconds that the first rows wait for more


class LiveStream(Stream, ABC):
    """An iterable of Blocks that goes on as rows come, made by `follow`.

    It can be iterated over once. `stop` ends it; so do the end of a pipe, and `idle` seconds without rows.

    Parameters
    ----------
    source : Source
        What messages call the source.
    kind : str
        The kind of source, for model files.
    key : str
        What the model file keeps the position under.
    position : dict
        Where to start; empty: where the source starts.
    dead_letters : DeadLetters
        What becomes of invalid rows.
    idle : float, optional
        Seconds without rows after which the stream ends.

    Attributes
    ----------
    ticks : bool
        Whether an empty Block is yielded about every quarter of a second while there are no rows.
    """

    def __init__(
        self,
        source: Source,
        kind: str,
        key: str,
        format: Format,
        options: FormatOptions,
        *,
        rows: int,
        named: str | None,
        features: Any,
        position: Position,
        dead_letters: DeadLetters,
        idle: float | None = None,
    ) -> None:
        if options.shuffle is not None:
            raise DataError("follow: rows that are still to come cannot be shuffled. Drop shuffle.")
        self._dead_letters = dead_letters
        super().__init__([source], format, options, rows=rows, named=named, features=features, refusals=dead_letters)
        self.kind, self.key = kind, key
        self.address = key  # what to follow it by again, without secrets
        self.ticks = False
        self._position = position  # after the rows that were learned
        self._idle = idle
        self._moved = time.monotonic()  # when rows came last

    @property
    def name(self) -> str:
        """What messages call the source."""
        return self._sources[0].name

    @property
    def position(self) -> Position:
        """Where the source is after the rows that were learned: see `learned`. Ready for JSON."""
        return self._dead_letters.noted(self._position)

    @abstractmethod
    def learned(self, rows: int) -> None:
        """Take note that the first so many rows of the Block yielded last were learned; asking for the next implies it.

        Parameters
        ----------
        rows : int
            Number of rows, up to all of the Block.
        """

    def behind(self) -> str:
        """Return how much waits to be read, such as "1,204 messages behind"; empty if that is not known."""
        return ""

    def take_notes(self) -> list[str]:
        """Return what happened since the last call and a user should know, such as that a file was rotated."""
        return []

    def flush(self) -> None:
        """Write invalid rows to disk; call it before the position is saved."""
        self._dead_letters.flush()

    def saved(self) -> None:
        """Take note that the position is in a model file."""

    def skip(self, rows: int) -> Stream:
        """Not for live streams, which start at a position; 0 is allowed."""
        if rows:
            raise DataError("follow: rows cannot be skipped; pass the position to start at.")
        return self

    def __iter__(self) -> Iterator[Block]:
        if self._passes:
            raise DataError(f"{self.name}: a live stream can be iterated over only once. Call follow again.")
        self._passes = 1
        return self._live()

    @abstractmethod
    def _live(self) -> Iterator[Block]:
        """Yield the rows as they come."""

    def _waits(self) -> Iterator[Block]:
        """What to yield while there are no rows."""
        if self.ticks:
            yield NO_ROWS

    @property
    def _idle_for_long(self) -> bool:
        return self._idle is not None and time.monotonic() - self._moved >= self._idle


NO_ROWS = concatenate([])


class _Parsed(NamedTuple):
    """Some lines and the rows that they have; None: there are none, but the position has changed."""

    lines: Lines
    rows: ParsedRows | None


class LineStream(LiveStream):
    """The rows of a source of lines."""

    def __init__(self, source: LineSource, format: Format, options: FormatOptions, **more: Any) -> None:
        if format.parser is None:
            raise DataError(
                f"{source.name}: rows of the format {format.name} cannot be followed one by one; they come in files. "
                "Follow the folder that the files are written to, or send lines of text."
            )
        if format.name == "csv" and not source.headed and not options.columns:  # type: ignore[attr-defined]
            raise DataError(
                f"{source.name}: messages have no heading that names their columns. Pass "
                f"{advice('columns=[...]', '--columns NAMES')}, or send JSON objects."
            )
        self.replayable_source = source.replayable
        base = source.name.rstrip("/").rpartition("/")[2]
        super().__init__(Source(source.name, base, None), source.kind, source.key, format, options, **more)
        self._source = source
        self.address = source.address or source.key
        self._context: Any = None  # what the parser's `start` returned for the current file
        self._current: Lines | None = None  # the lines of the Block yielded last
        self._after: NDArray[np.int64] = np.zeros(0, np.int64)  # how many of these are read after each of its rows
        self._of_rows: NDArray[np.int64] = np.zeros(0, np.int64)  # the line of each of its rows

    @property
    def replayable(self) -> bool:
        """Whether rows that were read and not learned can be read again, by another stream."""
        return self.replayable_source

    def behind(self) -> str:
        return self._source.behind()

    def take_notes(self) -> list[str]:
        notes = []
        while self._source.notes:
            notes.append(self._source.notes.pop(0))
        return notes

    def saved(self) -> None:
        self._source.saved(self._position)

    def where(self, row: int) -> str | None:
        """Return where a row of the Block yielded last is, such as "clicks.csv:1043"; None if there is no such row."""
        if self._current is None or not 0 <= row < len(self._of_rows):
            return None
        return self._current.place(int(self._of_rows[row]))

    def learned(self, rows: int) -> None:
        if rows and self._current is not None:
            self._pass(self._current, int(self._after[rows - 1]))

    def _pass(self, lines: Lines, number: int) -> None:
        """Move to the position after some lines."""
        self._position = lines.position(number)
        self._dead_letters.pass_line(number)

    def _live(self) -> Iterator[Block]:
        reading, source = self._reading, self._source
        assert self._format.parser is not None
        with closing(source), closing(self._dead_letters):
            parser = self._format.parser(reading)
            source.row_end = parser.row_end
            source.start(self._position)
            reading.when_stopped(source.stop)
            head = source.head()
            if head:
                self._context = parser.start(_chunk(source.name, head, True))
            blocks = RowsToBlocks(reading, parser)
            first = yield from self._first(parser, blocks)
            if first is None:
                return
            yield from self._blocks_of(first, blocks)
            for parsed in self._parsed(parser):
                if parsed is None:
                    if self._idle_for_long:
                        return
                    yield from self._waits()
                else:
                    self._moved = time.monotonic()
                    yield from self._blocks_of(parsed, blocks)

    def _first(self, parser: Parser, blocks: RowsToBlocks) -> Generator[Block, None, _Parsed | None]:
        """Wait for the first rows, which decide what columns become and which label is positive; return them."""
        parts: list[Lines] = []
        known = self._features is not None  # what columns become is decided, by rows that came earlier
        began = 0.0
        while True:
            taken = self._source.take(TICK)
            if taken is not None and not taken.text:
                if not parts:
                    self._position = taken.position(0)
                    yield from self._waits()  # the position has moved
                continue
            if taken is not None:
                began = began or time.monotonic()
                parts.append(taken)
            over = self._over or (taken is None and self._idle_for_long)
            if over and (not parts or (self._reading.stopped and self.replayable)):
                return None
            if parts:
                lines = parts[0] if len(parts) == 1 else JoinedLines(parts)
                full = len(lines.text) >= CHUNK or over
                waited = time.monotonic() - began >= FIRST_WAIT
                if known or full or waited or lines.text.count(b"\n") >= FIRST_ROWS:
                    chunk = _chunk(self._source.name, lines.text, lines.begins)
                    if lines.begins or self._context is None:
                        self._context = parser.start(chunk)
                    rows = parser.parse_first(chunk, self._context)
                    if full or not blocks.undecided(rows):
                        self._moved = time.monotonic()
                        return _Parsed(lines, rows)
                    blocks.add_names(rows)
            if taken is None:
                yield from self._waits()

    @property
    def _over(self) -> bool:
        return self._source.ended or (self._reading.stopped and self.replayable)

    def _parsed(self, parser: Parser) -> Iterator[_Parsed | None]:
        """Yield rows in the order of the source; None when none came for a while."""

        def take(buffer: bytearray) -> Callable[[], list[_Parsed]] | None:
            lines = self._source.take(TICK)
            if lines is None:
                return None if self._over else list
            if not lines.text:
                return lambda: [_Parsed(lines, None)]
            chunk = _chunk(self._source.name, lines.text, lines.begins)
            if lines.begins:
                self._context = parser.start(chunk)
            context = self._context
            return lambda: [_Parsed(lines, parser.parse(chunk, context))]

        if self._reading.threads:
            for found in Prefetch(take, self._source.stop, self._reading.threads):
                yield found[0] if found else None
            return
        while (task := take(bytearray())) is not None:
            found = task()
            yield found[0] if found else None

    def _blocks_of(self, parsed: _Parsed, blocks: RowsToBlocks) -> Iterator[Block]:
        """Yield the rows of some lines."""
        lines, dead_letters = parsed.lines, self._dead_letters
        if parsed.rows is None:
            self._pass(lines, 0)
            return
        dead_letters.begin(lines)
        self._reading.piece = None
        block, error = blocks.block(self._source.name, 0, parsed.rows, lines.place)
        # A row that is one too many is read again by whoever starts after the rows before it.
        end = lines.text.count(b"\n") if error is None else max(0, dead_letters.last_line - 1)
        at = np.zeros(0, np.int64) if self._reading.piece is None else self._reading.piece.lines
        after = np.append(at[1:] - 1, end)
        start = 0
        for piece in split_blocks([block], self._rows):
            self._current = lines
            self._of_rows = at[start : start + len(piece)]
            self._after = after[start : start + len(piece)]
            start += len(piece)
            yield piece
            self.learned(len(piece))
        self._pass(lines, end)
        if not start:
            yield from self._waits()  # the position has moved
        if error is not None:
            raise error


def _chunk(name: str, text: bytes, begins: bool) -> Chunk:
    return Chunk(name, np.frombuffer(text, np.uint8), begins, 0)
