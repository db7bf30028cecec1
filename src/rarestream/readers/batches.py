"""Reads tables that come in batches of rows in Arrow's layout: Parquet and Arrow files, and frames in memory.

A format supplies a `Table`, which opens a source and yields its batches. This module decides the plan on the first
rows, encodes batches on threads while the next are read, keeps their order, and names file and row in messages. Rows
count from 0, as frames count them. What the cells become is explained in tables.py and native/arrow/rows.hpp.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np

from rarestream import _native
from rarestream.blocks import Block
from rarestream.errors import DataError, MissingExtraError, RarestreamError, advice, plain
from rarestream.features.faults import cell_message
from rarestream.readers.labels import OneLabelError
from rarestream.readers.parser import BadRow, ParsedRows, parsed_rows
from rarestream.readers.prefetch import Prefetch
from rarestream.readers.reading import Reading
from rarestream.readers.rows import RowsToBlocks
from rarestream.readers.sources import Source, StoppedError
from rarestream.readers.tables import (
    MOST_COLUMNS,
    ColumnCounts,
    PlannedTable,
    TableOptions,
    hashed_space,
    plan_of,
    require_label,
)

FIRST = 50_000  # rows that decide the plan, and which label is positive
MOST_ROWS = 32_768  # rows that are encoded at once
MOST_CELLS = 1 << 20  # and their cells, approximately


def rows_at_once(columns: int) -> int:
    """Return how many rows of a table are encoded at once, so that memory stays bounded however wide it is."""
    return max(64, min(MOST_ROWS, MOST_CELLS // max(columns, 1)))


class Table(Protocol):
    """An open source: a table with named columns."""

    names: Sequence[str]  # of all columns

    def batches(self, wanted: Sequence[str]) -> Iterator[tuple[_native.ArrowBatch, int]]:
        """Yield batches with at least the wanted columns, and how much of the source has been read, as its size counts.

        Called once. A RarestreamError passes through; any other exception means that the source cannot be read.
        """

    def close(self) -> None: ...


class _Slice(NamedTuple):
    """Some rows of a batch."""

    source: _OpenTable
    batch: _native.ArrowBatch
    start: int
    stop: int
    before: int  # rows of the source before `start`
    position: int


class _OpenTable:
    """A source that is being read."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        self.name = name
        self.names = list(names)
        self.numbers: dict[str, int] = {}  # the parser's numbers of its columns, once there is a plan


class BatchRules:
    """What is known of the rows; a `rarestream.readers.parser.RowRules`."""

    def __init__(self, space: Any) -> None:
        self.space = space

    def message(self, bad: BadRow) -> str:
        return cell_message(bad.rule, bad.field, bad.token) or f"rule {bad.rule} is broken by {bad.token!r}."


def read_batches(reading: Reading, open_table: Callable[[Source], Table]) -> Iterator[Block]:
    """Yield the rows of all sources, in order, one Block for each batch or part of a large batch."""
    return _BatchReader(reading, open_table).pieces()


class _BatchReader:
    def __init__(self, reading: Reading, open_table: Callable[[Source], Table]) -> None:
        self.reading = reading
        self.options: TableOptions = reading.options
        self.open_table = open_table
        self.space = hashed_space(reading)
        self.blocks = RowsToBlocks(reading, BatchRules(self.space), between=": row ", first=f"first {FIRST:,} rows")
        self.table: PlannedTable | None = None
        self.stopped = False

    def pieces(self) -> Iterator[Block]:
        slices = self._slices()
        with closing(slices):
            self.reading.when_stopped(self._stop)
            for piece, rows in self._parsed(slices):
                block, error = self.blocks.block(piece.source.name, piece.before, rows)
                self.reading.position = piece.position
                if len(block):
                    yield block
                if error is not None:
                    raise error
            if not self.reading.stopped:
                self.reading.position = sum(source.size or 0 for source in self.reading.sources)

    def _stop(self) -> None:
        self.stopped = True

    # -- batches

    def _slices(self) -> Generator[_Slice, None, None]:
        finished = 0
        for source in self.reading.sources:
            with closing(self._opened(source)) as table:
                opened = _OpenTable(source.name, table.names)
                _check_names(opened)
                if self.table is not None:
                    self._number(opened)
                before = 0
                for batch, position in _read(source, table, self._wanted(opened)):
                    size = rows_at_once(len(batch.columns))
                    for start in range(0, len(batch), size):
                        if self.stopped:
                            return
                        stop = min(len(batch), start + size)
                        yield _Slice(opened, batch, start, stop, before + start, finished + position)
                    before += len(batch)
            finished += source.size or 0

    def _opened(self, source: Source) -> Table:
        try:
            return self.open_table(source)
        except (RarestreamError, StoppedError):
            raise
        except Exception as error:
            raise _unreadable(source.name, error) from None

    def _wanted(self, opened: _OpenTable) -> list[str]:
        """Return the columns that are needed: those of the plan, or all that are not to be ignored."""
        if self.table is None:
            kinds = {} if self.space.plan is None else {column.name: column.kinds for column in self.space.plan.columns}
            return [name for name in opened.names if name not in self.options.ignore and kinds.get(name, 1)]
        ignored = {column.name for column in self.table.plan.columns if not column.kinds}
        return [name for name in opened.names if name in opened.numbers and name not in ignored]

    def _number(self, opened: _OpenTable) -> None:
        assert self.table is not None
        numbers = self.table.columns_of(opened.name, opened.names, self.reading)
        opened.numbers = {name: number for name, number in zip(opened.names, numbers, strict=True) if number >= 0}

    # -- rows

    def _parsed(self, slices: Iterator[_Slice]) -> Iterator[tuple[_Slice, ParsedRows]]:
        # The first rows decide the plan and which label is positive.
        first: list[_Slice] = []
        for piece in slices:
            first.append(piece)
            if piece.source is not first[0].source or sum(one.stop - one.start for one in first) >= FIRST:
                break
        if not first:
            return
        self._decide([piece for piece in first if piece.source is first[0].source])
        if first[-1].source is not first[0].source:
            self._number(first[-1].source)
        waiting = len(first)
        decisive: list[tuple[_Slice, ParsedRows]] = []
        with closing(self._encoded(chain(first, slices))) as encoded:
            del first
            for parsed in encoded:
                if waiting > 0:
                    decisive.append(parsed)
                    waiting -= 1
                    if waiting:
                        continue
                    self._decide_labels([rows for _, rows in decisive])
                    yield from decisive
                    decisive.clear()
                else:
                    yield parsed

    def _encoded(self, slices: Iterator[_Slice]) -> Generator[tuple[_Slice, ParsedRows], None, None]:
        def take(buffer: bytearray) -> Callable[[], tuple[_Slice, ParsedRows]] | None:
            piece = next(slices, None)
            return None if piece is None else lambda: (piece, self._parse(piece))

        if self.reading.threads:
            yield from Prefetch(take, self._stop, self.reading.threads)
        else:
            while (task := take(bytearray())) is not None:
                yield task()

    def _decide(self, first: Sequence[_Slice]) -> None:
        opened = first[0].source
        counts: list[ColumnCounts] = []
        if self.space.plan is None:
            batches = list({id(piece.batch): piece.batch for piece in first}.values())
            ignored = set(self.options.ignore) | set(self.options.roles.values())
            try:
                _, found = _native.survey_arrow(
                    batches,
                    wanted=[name not in ignored for name, _ in batches[0].columns],
                    missing=list(self.options.missing),
                    rows=FIRST,
                )
            except ValueError as error:
                raise _unreadable_column(opened.name, error) from None
            by_name = {column[0]: ColumnCounts(*column) for column in found}
            nothing = ColumnCounts("", 0, 0, 0, 0, 0, 0)
            counts = [by_name.get(name, nothing._replace(name=name)) for name in opened.names]
        plan = plan_of(self.space, counts, self.options)
        require_label(opened.name, plan, opened.names, self.reading)
        self.table = PlannedTable(self.space, plan)
        self._number(opened)

    def _decide_labels(self, parsed: Sequence[ParsedRows]) -> None:
        """Decide which label is positive on the labels of all the first rows."""
        texts: dict[str, float] = {}
        labels = []
        for rows in parsed:
            if len(rows.bad) > self.reading.refusals.allowed:
                return  # there will be an error
            codes = np.array([texts.setdefault(text, len(texts)) for text in rows.label_texts or ()], np.float64)
            known = ~np.isnan(rows.labels)
            raw = rows.labels.copy()
            raw[known] = codes[rows.labels[known].astype(np.intp)]
            labels.append(raw)
        with suppress(OneLabelError):  # it is raised again where its first row is
            self.blocks.rule.signs(np.concatenate(labels), list(texts))

    def _parse(self, piece: _Slice) -> ParsedRows:
        assert self.table is not None
        numbers = piece.source.numbers
        try:
            return parsed_rows(
                self.table.parser.parse_arrow(
                    piece.batch,
                    columns=[numbers.get(name, -1) for name, _ in piece.batch.columns],
                    start=piece.start,
                    stop=piece.stop,
                    stop_after=self.reading.refusals.stop_after,
                )
            )
        except ValueError as error:
            raise _unreadable_column(piece.source.name, error) from None


def _read(source: Source, table: Table, wanted: Sequence[str]) -> Iterator[tuple[_native.ArrowBatch, int]]:
    try:
        yield from table.batches(wanted)
    except (RarestreamError, StoppedError):
        raise
    except Exception as error:
        raise _unreadable(source.name, error) from None


def _check_names(opened: _OpenTable) -> None:
    if len(opened.names) > MOST_COLUMNS:
        raise DataError(
            f"{opened.name}: {len(opened.names):,} columns; a table has at most {MOST_COLUMNS:,}. Put a sparse matrix "
            "into svmlight files, or its names into a list or map column."
        )
    if len(set(opened.names)) < len(opened.names):
        doubled = next(name for name in opened.names if opened.names.count(name) > 1)
        raise DataError(f"{opened.name}: two columns are named {plain(doubled)!r}. Rename one.")


def _unreadable(name: str, error: Exception) -> DataError:
    reason = plain(str(error).strip().split("\n")[0].rstrip(".")) or type(error).__name__
    return DataError(f"{name}: cannot be read: {reason}.")


def _unreadable_column(name: str, error: Exception) -> DataError:
    ignore = advice("ignore=[...]", "--ignore COLUMNS")
    return DataError(f"{name}: {plain(str(error))}. Leave the column out with {ignore}, or convert it.")


def pyarrow(what: str) -> Any:
    """Return the package pyarrow, which `what` needs."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError(f'Reading {what} needs the package pyarrow: pip install "rarestream[arrow]"') from None
    return pyarrow


def exported(batch: Any) -> _native.ArrowBatch:
    """Return a record batch of another library, without copying it."""
    return _native.ArrowBatch(*batch.__arrow_c_array__())
