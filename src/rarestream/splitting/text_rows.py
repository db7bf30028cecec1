"""The rows of text files as they are written, with the text or time of a column.

Where rows are, and what is in a column, is found by the readers of the formats; a row is then the bytes of its lines. A
line that is no row, blank or a comment, belongs to no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import NO_TAG, Block, no_tag
from rarestream.errors import DataError, advice
from rarestream.features import Hashed
from rarestream.features.plan import TablePlan
from rarestream.readers.formats import Format
from rarestream.readers.reading import RawText, Reading
from rarestream.readers.refusals import Refusals
from rarestream.readers.sources import Source
from rarestream.readers.stream import spare_threads
from rarestream.readers.tables import TableOptions, no_such_column
from rarestream.splitting.rules import Parts
from rarestream.writers.files import BackgroundFile, compressed_together

LINE_END = 10
KEYS = {"svmlight": "qid", "vw": "tag"}  # what identifies a row where there are no columns


class Piece(NamedTuple):
    """Some rows."""

    rows: int
    texts: Sequence[str] | None  # of the column, empty where there is none
    labels: NDArray[np.int8] | None  # 0: not known
    place: Callable[[int], str]  # where a row is
    split: Callable[[Parts, int], Sequence[Any]]  # what to write to each part


class TextRows:
    """One pass over the rows of text files.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    format : Format
        Their format.
    options : FormatOptions
        Of the format.
    column : str, optional
        The column whose text is wanted.
    wanted : bool
        Whether the text of a column, or of what stands for one, is wanted.
    """

    def __init__(
        self, sources: Sequence[Source], format: Format, options: Any, column: str | None, wanted: bool
    ) -> None:
        self._format = format
        self._column = column
        self._wanted = wanted
        self.refusals = Refusals(options.max_bad_rows)
        features: Any = None
        if isinstance(options, TableOptions):
            features = Hashed(1, names=False)
            features.plan = TablePlan(missing=options.missing, label=options.label, tag=options.tag)
        elif format.name != "svmlight":
            features = Hashed(names=False)
        threads = spare_threads() if options.threads is None else options.threads
        self._reading = Reading(sources, options, self.refusals, features, threads, keep_text=True)
        self._first: Any = None  # the heading of the first file
        self._names: list[str] = []  # keys of the first objects
        self.keyed = False  # whether a row has a text in the column

    @property
    def heading(self) -> bytes:
        """What every part starts with, once a piece was yielded."""
        text: bytes = getattr(self._first, "text", b"")
        return text if not text or text.endswith(b"\n") else text + b"\n"

    def pieces(self) -> Iterator[Piece]:
        """Yield all rows, in order."""
        started = False
        generator: Any = self._format.read(self._reading)
        with closing(generator) as blocks:
            for block in blocks:
                raw, lines = self._reading.raw, self._reading.piece
                if raw is None or lines is None:
                    raise DataError(
                        f"split: {self._format.name} is no text, and its rows cannot be copied as they are. Split "
                        "the data that it was made of."
                    )
                if not started:
                    started = True
                    self._first = raw.context
                    self._check_column(raw)
                elif raw.context is not self._first:
                    self._check_heading(raw.context)
                texts = _texts(block) if self._wanted else None
                self.keyed |= texts is not None
                place = partial(_place, lines.name, lines.between, lines.before, lines.lines)
                yield Piece(len(block), texts, block.labels, place, partial(_split, raw, lines.lines))
        if self._column is not None and not self.keyed:
            if self._names and self._column not in self._names:
                raise no_such_column(advice("column", "--column"), self._column, self._names)
            raise DataError(f"split: no row has anything in the column {self._column!r}.")

    def _check_column(self, raw: RawText) -> None:
        if self._column is None:
            return
        if self._format.name == "jsonl":  # objects have any keys; whether a row has this one shows at the end
            _, found = _native.survey_jsonl(raw.text, missing=[])
            self._names = [name for name, *_ in found]
        elif self._column not in raw.context.names:
            raise no_such_column(advice("column", "--column"), self._column, raw.context.names)

    def _check_heading(self, heading: Any) -> None:
        first = self._first
        if heading is not None and first is not None and heading.names != first.names:
            raise DataError(
                f"{heading.place}: its columns are not those of {first.place}, in the same order, so one heading does "
                "not fit the rows of both. Split the files apart."
            )


def _place(name: str, between: str, before: int, lines: NDArray[np.int64], row: int) -> str:
    return f"{name}{between}{before + int(lines[row])}"


def _texts(block: Block) -> list[str] | None:
    tags = block.tags
    if tags is None or (tags == no_tag(tags.dtype)).all():
        return None
    if tags.dtype.kind in "iu":
        return ["" if tag == NO_TAG else str(tag) for tag in tags.tolist()]
    texts: list[str] = tags.tolist()
    return texts


def _split(raw: RawText, lines: NDArray[np.int64], parts: Parts, count: int) -> list[NDArray[np.uint8]]:
    """Return the bytes of the rows that start in these lines, for each part."""
    text = raw.text
    if text[-1] != LINE_END:  # the last row of a file is not the last of a part
        text = np.append(text, np.uint8(LINE_END))
    line_ends = np.flatnonzero(text == LINE_END) + 1
    line_starts = np.concatenate([[0], line_ends[:-1]])
    last = lines.copy()  # the line in which each row ends
    if raw.multiline:
        at = np.searchsorted(raw.lines, lines, "right")
        last = np.append(raw.lines, len(line_ends) + 1)[at] - 1
        blank = _blank(text, line_starts, line_ends)
        while (over := (last > lines) & blank[last - 1]).any():  # blank lines between rows
            last[over] -= 1
    return _native.split_text(text, line_starts[lines - 1], line_ends[last - 1], parts, count)


def _blank(text: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    sizes = ends - starts
    found: NDArray[np.bool_] = (sizes == 1) | ((sizes == 2) & (text[starts] == ord("\r")))
    return found


@contextmanager
def text_outputs(names: Sequence[str]) -> Iterator[list[TextOutput]]:
    """Open files for the parts, which appear together at the end."""
    with compressed_together(names) as files:
        yield [TextOutput(file) for file in files]


class TextOutput:
    """The file of a part."""

    def __init__(self, file: BackgroundFile) -> None:
        self._file = file

    def start(self, rows: TextRows) -> None:
        self._file.write(rows.heading)

    def write(self, text: NDArray[np.uint8]) -> None:
        if len(text):
            self._file.write(text.data)

    def close(self) -> None:
        pass
