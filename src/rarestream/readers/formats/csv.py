"""The CSV format: a table as text, its first row the names of the columns.

As RFC 4180 has it: cells are separated by a delimiter, and in quotes if they contain it, a quote or a line end; a quote
within quotes is doubled. The delimiter is found in the first rows: comma, tab, semicolon or bar. Files are UTF-8. Blank
lines are skipped. What the cells become is explained in tables.py. The parser is native/csv.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rarestream.errors import DataError, advice, plain
from rarestream.readers.formats import text_format
from rarestream.readers.options import option
from rarestream.readers.tables import (
    MOST_COLUMNS,
    ColumnCounts,
    PlannedTable,
    TableOptions,
    hashed_space,
    plan_of,
    require_label,
    table_message,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rarestream.readers.chunks import Chunk
    from rarestream.readers.parser import BadRow, ParsedRows
    from rarestream.readers.picking import Wanted
    from rarestream.readers.reading import Reading

DELIMITERS = ",\t;|"
QUOTE = '"'
SNIFFED = 1 << 16  # bytes of text in which the delimiter is looked for

# Messages for the numbers of csv::Rule.
RAGGED, AFTER_QUOTE, UNCLOSED = 20, 21, 24
RULES = {
    AFTER_QUOTE: 'text after a closing quote, {0}. A quote inside quotes must be doubled, as in "5"" pipe".',
    22: "a NUL byte; this looks like binary data, or UTF-16, not CSV in UTF-8.",
    23: "not UTF-8, {0}. Convert the file, for example with iconv -f latin1 -t utf8.",
    UNCLOSED: "the quote that opens here is never closed.",
}


def _check_delimiter(value: Any) -> str:
    names = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}
    text = names.get(value, value)
    if not isinstance(text, str) or len(text) != 1 or not text.isascii() or text in '"\n\r\0' or text.isalnum():
        raise ValueError("one character that is no letter, digit, quote or line end, or the word tab")
    return text


@dataclass(frozen=True, kw_only=True)
class CsvOptions(TableOptions):
    """The options of CSV files."""

    delimiter: str | None = option(
        None,
        metavar="CHAR",
        help="The character between cells; tab for a tab.",
        check=_check_delimiter,
        cli_default="found in the first rows",
    )
    columns: tuple[str, ...] = option(
        (),
        metavar="NAMES",
        help="Names of the columns, for files whose first row is data.",
        cli_default="the first row",
    )
    quoting: bool = option(True, off="--no-quoting", help="Whether cells may be in quotes.", cli_default="on")


@dataclass
class Heading:
    """The columns of a file."""

    place: str
    names: list[str]
    skipped: bool  # whether they are its first row
    text: bytes = b""  # as they are written
    numbers: list[int] | None = None  # of the parser's columns, once there is a plan


class CsvParser:
    """Parses CSV text; a `rarestream.readers.parser.Parser`."""

    name = "csv"
    multiline = True

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._options: CsvOptions = reading.options
        self.space = hashed_space(reading)
        self._decides = self.space.plan is None  # whether the first rows decide the plan
        self._delimiter = self._options.delimiter
        self._quote = QUOTE if self._options.quoting else ""
        self._table: PlannedTable | None = None

    # -- where rows end

    def row_end(self, buffer: bytearray, filled: int) -> int:
        return self._row_end(buffer, filled)[0]

    def _row_end(self, buffer: bytearray | bytes, filled: int) -> tuple[int, int]:
        import numpy as np

        from rarestream import _native

        text = np.frombuffer(buffer, np.uint8)
        delimiter = self._delimiter or self._find_delimiter(bytes(buffer[: min(filled, SNIFFED)]))
        return _native.csv_row_end(text, filled, delimiter=delimiter, quote=self._quote)

    def too_long(self, text: bytes, line: int, limit: str) -> str:
        _, opened = self._row_end(text, len(text))
        if opened >= 0:
            at = line + text.count(b"\n", 0, opened)
            return (
                f"row longer than {limit}: the quote that opens in line {at} is never closed. Close it, or, if quotes "
                f"are ordinary characters in this file, pass {advice('quoting=False', '--no-quoting')}."
            )
        return f"line longer than {limit}; a row must fit in that. Check that the file has line ends, and is CSV text."

    def _find_delimiter(self, head: bytes) -> str:
        found = self._delimiter = self._reading.facts["delimiter"] = self._sniffed(head)
        return found

    def _sniffed(self, head: bytes) -> str:
        """Return the delimiter that the most first rows have equally often; that of .tsv files is the tab."""
        name = self._reading.sources[0].base.lower()
        if any(part in name for part in (".tsv", ".tab")):
            return "\t"
        lines = [line for line in head.split(b"\n")[:20] if line.strip()]
        if len(lines) > 1 and not head.endswith(b"\n"):
            lines = lines[:-1]
        best, found = (0, 0), ","
        for delimiter in DELIMITERS:
            counts = [_unquoted(line, self._quote).count(delimiter.encode()) for line in lines]
            if counts and counts[0]:
                same = sum(count == counts[0] for count in counts)
                if (same, counts[0]) > best:
                    best, found = (same, counts[0]), delimiter
        return found

    # -- columns

    def start(self, chunk: Chunk) -> Heading:
        if self._delimiter is None:  # of a file that fits in one chunk, nobody has asked where its rows end
            self._find_delimiter(chunk.text[:SNIFFED].tobytes())
        if self._options.columns:
            names = list(self._options.columns)
            self._check_names(chunk.name, names)
            return self._heading(chunk.name, names, False)
        end = self._first_row_end(chunk.text)
        row = chunk.text[:end].tobytes()
        try:
            text = row.decode()
        except UnicodeDecodeError as error:
            raise DataError(
                f"{chunk.name}:1:{error.start + 1}: {RULES[23].format(repr(row[error.start : error.start + 4])[1:])}"
            ) from None
        if "\0" in text:
            raise DataError(f"{chunk.name}:1:{text.index(chr(0)) + 1}: {RULES[22]}")
        names = self._cells(text, chunk.name)
        names = [name.strip() or f"#{number}" for number, name in enumerate(names, 1)]  # an index without a name
        self._check_names(chunk.name, names)
        return self._heading(chunk.name, names, True, row.lstrip(b"\r\n"))

    def _heading(self, place: str, names: list[str], skipped: bool, text: bytes = b"") -> Heading:
        heading = Heading(place, names, skipped, text)
        if self._table is not None:
            heading.numbers = self._table.columns_of(place, names, self._reading)
        return heading

    def _first_row_end(self, text: NDArray[np.uint8]) -> int:
        data = text.tobytes()
        at = 0
        while True:
            at = data.find(b"\n", at) + 1
            if at == 0:
                return len(data)
            end, _ = self._row_end(data[:at], at)
            if end and data[:end].strip():
                return end

    def _cells(self, text: str, place: str) -> list[str]:
        import csv

        assert self._delimiter is not None
        quoting: Any = csv.QUOTE_MINIMAL if self._quote else csv.QUOTE_NONE
        limit = csv.field_size_limit(1 << 30)
        try:
            rows = csv.reader(
                text.splitlines(keepends=True), delimiter=self._delimiter, quotechar=QUOTE, quoting=quoting, strict=True
            )
            return next((row for row in rows if row), [])
        except csv.Error as error:
            raise DataError(f"{place}:1: the names of the columns are not valid CSV ({error}).") from None
        finally:
            csv.field_size_limit(limit)

    def _check_names(self, place: str, names: Sequence[str]) -> None:
        if len(names) > MOST_COLUMNS:
            raise DataError(
                f"{place}:1: {len(names):,} columns; a table has at most {MOST_COLUMNS:,}. A wide matrix of numbers is "
                "better stored as svmlight: index:value for what is not zero."
            )
        doubled = (
            next((name for number, name in enumerate(names) if name in names[:number]), None)
            if (len(set(names)) < len(names))
            else None
        )
        if doubled is not None:
            at = [number for number, name in enumerate(names, 1) if name == doubled]
            raise DataError(
                f"{place}:1: two columns are named {plain(doubled)!r}, number {at[0]} and {at[1]}. Rename one, or pass "
                f"{advice('columns=[...]', '--columns NAMES')} for a file without a heading."
            )

    @property
    def delimiter(self) -> str:
        """The delimiter, once it is known; a comma before."""
        return self._delimiter or ","

    def first_row(self, chunk: Chunk) -> bytes:
        """Return the first row of a source as it is written, blank lines before it left out."""
        return chunk.text[: self._first_row_end(chunk.text)].tobytes().lstrip(b"\r\n")

    def columns(self, chunk: Chunk, context: Heading) -> list[ColumnCounts]:
        """Return what the cells of each column of a chunk are."""
        from rarestream import _native

        _, found = _native.survey_csv(
            chunk.text,
            names=context.names,
            missing=list(self._options.missing),
            delimiter=self.delimiter,
            quote=self._quote,
            skip_header=context.skipped,
        )
        return [ColumnCounts(*column) for column in found]

    def pick(self, chunk: Chunk, context: Heading, wanted: Wanted) -> tuple[Any, ...]:
        """Return the rows of a chunk as they are written, and some of their cells."""
        from rarestream import _native

        roles = [wanted.key, wanted.time, wanted.label, wanted.absent]
        return _native.pick_csv(
            chunk.text,
            columns=[roles.index(name) if name in roles else -1 for name in context.names],
            names=roles,
            delimiter=self.delimiter,
            quote=self._quote,
            skip_header=context.skipped and chunk.begins,
            rows=wanted.rows,
            label=bool(wanted.label),
            stop_after=self._reading.refusals.stop_after,
        )

    # -- rows

    def parse_first(self, chunk: Chunk, context: Heading) -> ParsedRows:
        counts: list[ColumnCounts] = []
        if self._decides:
            self.space.plan = None  # of fewer rows of a pipe, if there is one
            counts = self.columns(chunk, context)
        plan = plan_of(self.space, counts, self._options)
        require_label(context.place, plan, context.names, self._reading)
        self._table = PlannedTable(self.space, plan)
        context.numbers = self._table.columns_of(context.place, context.names, self._reading)
        return self.parse(chunk, context)

    def parse(self, chunk: Chunk, context: Heading) -> ParsedRows:
        from rarestream.readers.parser import parsed_rows

        assert self._table is not None and context.numbers is not None
        return parsed_rows(
            self._table.parser.parse_csv(
                chunk.text,
                columns=context.numbers,
                delimiter=self.delimiter,
                quote=self._quote,
                skip_header=context.skipped and chunk.begins,
                stop_after=self._reading.refusals.stop_after,
            )
        )

    def message(self, bad: BadRow) -> str:
        from rarestream.readers.parser import quoted

        if bad.rule == RAGGED:
            cells, columns = bad.token.decode().split()
            has = f"{cells} cell" if cells == "1" else f"{cells} cells"
            return (
                f"this row has {has}, but there are {columns} columns. Put cells that contain the delimiter in quotes; "
                f"the delimiter is {self._delimiter!r}."
            )
        message = table_message(bad) or RULES[bad.rule].format(quoted(bad.token))
        if bad.rule in (AFTER_QUOTE, UNCLOSED):
            option = advice("quoting=False", "--no-quoting")
            message += f" If quotes are ordinary characters in this file, pass {option}."
        return message


def _unquoted(line: bytes, quote: str) -> bytes:
    """Return a line without what is in quotes."""
    return b"".join(line.split(quote.encode())[::2]) if quote else line


FORMAT = text_format("csv", (".csv", ".tsv", ".tab"), CsvOptions, CsvParser, "Tables as text, comma- or tab-separated.")
