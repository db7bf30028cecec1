"""The rows of a table as they are written, with the key, the time and the label of each.

For programs that pass rows on, such as joins: no features are made. The parsers of the CSV and JSON lines formats find
rows and cells, and what is wrong with them, so a row that is valid here is valid for a model.

A time is a date in ISO form, in UTC unless it has an offset, or a number since 1970: of seconds, or if it is 1e11 or
more, of milliseconds; from 1e14 on of microseconds, from 1e17 on of nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rarestream.errors import DataError, advice, plain, quoted
from rarestream.readers.chunks import CHUNK, LONGEST_LINE, Chunk, Chunks, NextLine, TooLongRowError
from rarestream.readers.formats import format_of_suffix, load_format
from rarestream.readers.parser import BadRow
from rarestream.readers.reading import Reading
from rarestream.readers.refusals import Refusals
from rarestream.readers.rows import in_bytes
from rarestream.readers.sources import SourceLike, StoppedError, expand

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rarestream.readers.tables import ColumnCounts

FORMATS = ("csv", "jsonl")

# Messages for the numbers of picking::Rule. {0} is the column, {1} the text of the cell.
RULES = {
    40: "the key {0} is missing. Every row needs one.",
    41: "the time {0} is missing. Every row needs one.",
    42: "{1} in {0} is no time: an ISO date such as 2026-01-31T23:59:59Z, or a number since 1970, is expected.",
    43: "the label {0} is missing. Every row needs one.",
    44: "this row has a column {0} already.",
    45: "{0} is a list or an object; one value is expected.",
}


class Wanted(NamedTuple):
    """What is wanted of rows; the names of columns, and empty for none."""

    key: str
    time: str
    label: str = ""
    absent: str = ""  # a column that no row may have
    rows: bool = True  # whether the text of rows is wanted


class PickedRows(NamedTuple):
    """Some rows of a source."""

    source: str
    rows: list[bytes]  # without their line ends; JSON objects without their last brace; empty if they are not wanted
    keys: list[bytes]
    times: NDArray[np.float64]  # seconds since 1970
    labels: list[bytes]  # empty if they are not wanted
    lines: NDArray[np.int64]  # of each row in its source, from 1
    position: int  # stored bytes read so far, of all sources
    bad: list[str]  # what is wrong with invalid rows; after more than `max_bad_rows` of them, the rest is left unread


class PickingParser(Protocol):
    """What the parser of a format supplies for picking, beside what reading needs."""

    def start(self, chunk: Chunk) -> Any: ...
    def row_end(self, buffer: bytearray, filled: int) -> int: ...
    def too_long(self, text: bytes, line: int, limit: str) -> str: ...
    def message(self, bad: BadRow) -> str: ...

    def columns(self, chunk: Chunk, context: Any) -> list[ColumnCounts]:
        """Return what the cells of each column of a chunk are."""

    def pick(self, chunk: Chunk, context: Any, wanted: Wanted) -> tuple[Any, ...]:
        """Return (rows, keys, times, labels, lines, lines_read, bad) of a chunk."""


class PickedTable:
    """Reads a table: iterate over it once for its rows.

    Parameters
    ----------
    where : path, glob pattern, "-" or binary file
        CSV or JSON lines; compressed files are decompressed automatically.
    wanted : Wanted
        The columns. An empty time: the one column of which most cells in the first rows are dates.
    max_bad_rows : int
        Invalid rows of a chunk that do not end its parsing.
    format : {"csv", "jsonl"}, optional
        By default it follows from the suffix of the first file, or from the first character: a brace for JSON lines.
    usual_time : str
        The time, if it is not named and there is a column of this name.
    time_option, key_option, label_option : str
        What messages call the arguments that name these columns.
    options
        Those of the format: columns, quoting, delimiter.

    Attributes
    ----------
    wanted : Wanted
        The columns, once the first rows were read.
    format : str
        Likewise.
    heading : bytes or None
        The first row of a CSV file as it is written, without its line end; None if it has no heading.
    line_end : bytes
        That of the heading, or of the first row.
    delimiter : str
        Of CSV.
    size : int or None
        Stored bytes of all files; None if it is not known.
    """

    def __init__(
        self,
        where: SourceLike,
        wanted: Wanted,
        max_bad_rows: int = 0,
        format: str | None = None,
        usual_time: str = "",
        time_option: str = "time",
        key_option: str = "key",
        label_option: str = "label",
        **options: Any,
    ) -> None:
        self.sources = expand(where)
        self.wanted = wanted
        self.format = format
        self.heading: bytes | None = None
        self.line_end = b"\n"
        self.delimiter = ","
        sizes = [source.size for source in self.sources]
        self.size = None if None in sizes else sum(size for size in sizes if size is not None)
        self.piped = self.size is None
        self._refusals = Refusals(max_bad_rows)  # for the parser
        self._words = {"key": key_option, "time": time_option, "label": label_option}
        self._options = options
        self._usual_time = usual_time
        self._parser: PickingParser | None = None
        self._names: list[str] = []
        self._lines = 0
        self._chunks = Chunks(self.sources, CHUNK, LONGEST_LINE, True, self._row_end)
        if format is None:
            named = format_of_suffix(self.sources[0].name)
            self.format = None if named is None else named.name
        if self.format is not None and self.format not in FORMATS:
            raise DataError(
                f"{self.sources[0].name}: is in the format {self.format}; a join reads {' and '.join(FORMATS)}. "
                "If that is what it is, name its format."
            )

    def stop(self) -> None:
        """End a wait for rows in another thread."""
        self._chunks.stop()

    def __iter__(self) -> Iterator[PickedRows]:
        context: Any = None
        buffer = bytearray()
        with closing(self._chunks) as chunks:
            try:
                while (chunk := chunks.take(buffer)) is not None:
                    parser = self._parser_of(chunk.text[:64].tobytes())
                    if chunk.begins:
                        context = parser.start(chunk)
                        while self._undecided(chunk, parser, context) and chunks.may_grow:
                            chunks.put_back(chunk)
                            del chunk  # releases the buffer, which is about to be filled again
                            chunk = chunks.take(buffer)
                            assert chunk is not None
                            context = parser.start(chunk)
                        self._begin(chunk, parser, context)
                    yield self._picked(chunk, parser, context)
                    del chunk
            except TooLongRowError as error:
                assert self._parser is not None
                wrong = self._parser.too_long(error.text, self._number(error.line), in_bytes(LONGEST_LINE))
                raise DataError(f"{error.line.name}:{self._number(error.line)}: {wrong}") from None
            except StoppedError:
                return

    def _number(self, line: NextLine) -> int:
        return 1 if line.begins else self._lines + 1

    def _row_end(self, buffer: bytearray, filled: int) -> int:
        return self._parser_of(bytes(buffer[: min(filled, 64)])).row_end(buffer, filled)

    def _parser_of(self, head: bytes) -> PickingParser:
        """Return the parser, made when the first bytes are there."""
        if self._parser is None:
            if self.format is None:
                self.format = "jsonl" if head.lstrip().startswith(b"{") else "csv"
            options = self._options if self.format == "csv" else {}
            reading = Reading(self.sources, load_format(self.format).make_options(**options), self._refusals)
            if self.format == "csv":
                from rarestream.readers.formats.csv import CsvParser

                self._parser = CsvParser(reading)
            else:
                from rarestream.readers.formats.jsonl import JsonlParser

                self._parser = JsonlParser(reading)
        return self._parser

    # -- columns

    def _undecided(self, chunk: Chunk, parser: PickingParser, context: Any) -> bool:
        """Return whether the first rows of a pipe are needed and not there yet."""
        return not self.wanted.time and not any(sum(column[1:]) for column in parser.columns(chunk, context))

    def _begin(self, chunk: Chunk, parser: PickingParser, context: Any) -> None:
        """Check the columns of a source; those of the first one decide."""
        if self.format == "csv":
            self._begin_csv(chunk, parser, context)
        elif not self._names:
            counts = parser.columns(chunk, context)
            self._names = [column.name for column in counts]
            if self._names:
                self._check_columns(chunk.name, counts)

    def _begin_csv(self, chunk: Chunk, parser: Any, context: Any) -> None:
        if self._names:
            if context.names != self._names:
                raise DataError(
                    f"{chunk.name}: has other columns than {self.sources[0].name}, or in another order; rows of "
                    "several files are passed on under one heading."
                )
            if not self.wanted.time:  # the files before had no rows
                self._check_columns(chunk.name, parser.columns(chunk, context))
            return
        self._names = context.names
        self.delimiter = parser.delimiter
        first = parser.first_row(chunk)
        self.line_end = b"\r\n" if first.endswith(b"\r\n") else b"\n"
        if context.skipped:
            self.heading = first.strip(b"\r\n")
        self._check_columns(chunk.name, parser.columns(chunk, context))
        if self.wanted.absent in self._names:
            raise DataError(f"{chunk.name}:1: {self._taken()}")

    def _check_columns(self, place: str, counts: Sequence[ColumnCounts]) -> None:
        from rarestream.readers.tables import no_such_column

        for word in ("key", "time", "label"):
            name = getattr(self.wanted, word)
            if name and name not in self._names:
                error = no_such_column(self._words[word], name, self._names)
                raise DataError(f"{place}: {str(error).removeprefix('read: ')}")
        if not self.wanted.time and self._usual_time in self._names:
            self.wanted = self.wanted._replace(time=self._usual_time)
        if not self.wanted.time and any(sum(column[1:]) for column in counts):
            self.wanted = self.wanted._replace(time=self._time_column(place, counts))

    def _time_column(self, place: str, counts: Sequence[ColumnCounts]) -> str:
        taken = (self.wanted.key, self.wanted.label)
        dates = [column.name for column in counts if 2 * column.date > sum(column[1:])]
        dates = [name for name in dates if name not in taken]
        if len(dates) == 1:
            return dates[0]
        found = f"{len(dates)} columns hold dates" if dates else "no column holds dates"
        names = ", ".join(plain(name) for name in dates or self._names[:30])
        raise DataError(
            f"{place}: {found} ({'' if dates else 'columns: '}{names}). Name the one with the time of the row: "
            f"{self._words['time']}{advice('=', ' ')}COLUMN."
        )

    def _taken(self) -> str:
        option = advice("another name", "--as NAME")
        return f"there is a column {self.wanted.absent!r} already. Choose another name for the new one: {option}."

    # -- rows

    def _picked(self, chunk: Chunk, parser: PickingParser, context: Any) -> PickedRows:
        before = 0 if chunk.begins else self._lines
        rows, keys, times, labels, lines, lines_read, bad = parser.pick(chunk, context, self.wanted)
        self._lines = before + lines_read
        messages = [
            f"{chunk.name}:{before + row.line}:{row.column}: {self._message(row, parser)}"
            for row in map(BadRow._make, bad)
        ]
        return PickedRows(chunk.name, rows, keys, times, labels, lines + before, chunk.position, messages)

    def _message(self, row: BadRow, parser: PickingParser) -> str:
        if row.rule not in RULES:
            return parser.message(row)
        if row.rule == 44:
            return self._taken()
        return RULES[row.rule].format(repr(row.field), quoted(row.token))
