"""What a format supplies: a Parser, which turns chunks into ParsedRows.

The modules of the formats import this one before a command knows what to do, so it imports little.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rarestream.errors import quoted as quoted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rarestream.blocks import Importances, Indices, Indptr, Values
    from rarestream.readers.chunks import Chunk


class BadRow(NamedTuple):
    """A row that breaks a rule of its format. Lines and columns count from 1, lines within the chunk."""

    line: int
    column: int
    rule: int  # what it breaks; `message` explains it
    token: bytes  # the text that breaks it
    field: str = ""  # the table's column, where there is one


class ParsedRows(NamedTuple):
    """The rows of a chunk, in CSR form. Lines and columns count from 1, lines within the chunk.

    Rows are as in a Block: indices ascend and are unique within a row, values are finite. No other code may hold a
    reference through which `indptr` and `indices` can be written to.
    """

    indptr: Indptr
    indices: Indices
    values: Values
    width: int
    labels: NDArray[np.float64]  # as written; NaN where there is none. With `label_texts`: positions in it
    importances: Importances | None
    tags: NDArray[np.int64] | list[str] | None  # an empty text: none
    lines: NDArray[np.int64]  # of each row
    columns: NDArray[np.int32]  # where the label of each row starts
    lines_read: int
    bad: list[BadRow]  # in order; parsing may stop after one more than `Refusals.allowed`
    label_texts: list[str] | None = None
    names: Any = None  # names of features that this thread has not met before, a `_native.NewNames`


def parsed_rows(parsed: tuple[Any, ...]) -> ParsedRows:
    """Return what a native parser returned."""
    return ParsedRows._make((*parsed[:10], [BadRow(*row) for row in parsed[10]], *parsed[11:]))


class RowRules(Protocol):
    """What a format knows of its rows."""

    space: Any  # the feature space of the rows; None: columns are numbers

    def message(self, bad: BadRow) -> str:
        """Return what is wrong with a row, and what to do about it, as a sentence."""


class Parser(RowRules, Protocol):
    """What a text format supplies; `LineParser` has defaults for most of it.

    `parse` may run in several threads at once, and should release the GIL. The other methods run in one at a time.
    """

    name: str  # of the format, for messages
    space: Any  # the feature space of the rows; None: columns are numbers
    multiline: bool  # whether a row may have several lines

    def start(self, chunk: Chunk) -> Any:
        """Return what `parse` needs to know of a source, such as the columns of its heading, from its first chunk.

        Called for each source in order. It may raise a DataError that names the file.
        """

    def parse_first(self, chunk: Chunk, context: Any) -> ParsedRows:
        """Parse the first chunk, and decide what it decides for all others, such as whether indices count from 0.

        `start` and `parse_first` are called again, with more rows, if the first rows of a pipe do not decide which
        label is positive.
        """

    def parse(self, chunk: Chunk, context: Any) -> ParsedRows:
        """Parse a chunk. `chunk.begins` says whether it starts a file; `context` is what `start` returned for that."""

    def message(self, bad: BadRow) -> str:
        """Return what is wrong with a row, and what to do about it, as a sentence."""

    def row_end(self, buffer: bytearray, filled: int) -> int:
        """Return where the last whole row in `buffer[:filled]` ends; 0 if there is none. The buffer starts a row."""

    def too_long(self, text: bytes, line: int, limit: str) -> str:
        """Return what is wrong with a row longer than the limit: `text` is what was read of it, `line` its first."""


class LineParser(ABC):
    """The defaults of a Parser: a row is a line, and files have no heading. `parse` and `message` are missing."""

    name: str
    space: Any = None
    multiline = False

    def start(self, chunk: Chunk) -> Any:
        return None

    def parse_first(self, chunk: Chunk, context: Any) -> ParsedRows:
        return self.parse(chunk, context)

    @abstractmethod
    def parse(self, chunk: Chunk, context: Any) -> ParsedRows: ...

    @abstractmethod
    def message(self, bad: BadRow) -> str: ...

    def row_end(self, buffer: bytearray, filled: int) -> int:
        return buffer.rfind(b"\n", 0, filled) + 1

    def too_long(self, text: bytes, line: int, limit: str) -> str:
        return (
            f"line longer than {limit}; a row must fit in that. Check that the file has line ends, and is {self.name} "
            "text."
        )
