"""Reads text formats with one row per line. All that does not depend on the format is here.

A format supplies a `Parser`, which turns a chunk of whole lines into rows. This module reads the chunks, parses them on
threads, puts them back in order, maps labels to -1 and +1, skips and counts invalid rows up to `max_bad_rows`, and
names file, line and column in messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block, Importances, Indices, Indptr, Values
from rarestream.errors import DataError
from rarestream.readers.chunks import Chunk, Chunks, NextLine, TooLongLineError
from rarestream.readers.formats import Reading
from rarestream.readers.labels import LabelRule, OneLabelError
from rarestream.readers.locations import PieceLines
from rarestream.readers.prefetch import Prefetch

LONGEST_QUOTE = 40  # bytes of a file's text that a message quotes


class BadRow(NamedTuple):
    """A line that breaks a rule of its format. Lines and columns count from 1, lines within the chunk."""

    line: int
    column: int
    rule: int  # what it breaks; `Parser.message` explains it
    token: bytes  # the text that breaks it


class ParsedRows(NamedTuple):
    """The rows of a chunk, in CSR form. Lines and columns count from 1, lines within the chunk.

    Rows are as in a Block: indices ascend and are unique within a row, values are finite. No other code may hold a
    reference through which `indptr` and `indices` can be written to.
    """

    indptr: Indptr
    indices: Indices
    values: Values
    width: int
    labels: NDArray[np.float64]  # as written; NaN where there is none
    importances: Importances | None
    tags: NDArray[np.int64] | None
    lines: NDArray[np.int64]  # of each row
    columns: NDArray[np.int32]  # where the label of each row starts
    lines_read: int
    bad: list[BadRow]  # in order; parsing may stop after one more than `Refusals.allowed`


class Parser(Protocol):
    """What a text format supplies. `parse` may run in several threads at once, and should release the GIL."""

    name: str  # of the format, for messages

    def parse_first(self, chunk: Chunk) -> ParsedRows:
        """Parse the first chunk, and decide what it decides for all others, such as whether indices count from 0.

        It is called again, with more lines, if the first lines of a pipe do not decide which label is positive.
        """

    def parse(self, chunk: Chunk) -> ParsedRows:
        """Parse a chunk; its `begins` says whether it starts a file, where a heading may be."""

    def message(self, bad: BadRow) -> str:
        """Return what is wrong with a line, and what to do about it, as a sentence."""


def read_text(reading: Reading, parser: Parser) -> Iterator[Block]:
    """Yield the rows of all sources, one Block for each chunk."""
    return _TextReader(reading, parser).pieces()


def quoted(token: bytes) -> str:
    """Return text of a file in quotes, shortened and safe to print."""
    return repr(token[:LONGEST_QUOTE])[1:] + ("..." if len(token) > LONGEST_QUOTE else "")


class _ParsedChunk(NamedTuple):
    """The rows of a chunk and its position in the sources."""

    name: str
    begins: bool
    position: int
    rows: ParsedRows


class _TextReader:
    def __init__(self, reading: Reading, parser: Parser) -> None:
        self.reading = reading
        self.options = reading.options
        self.parser = parser
        self.rule = LabelRule(self.options.positive, self.options.labels_optional, self.options.classes)
        self.lines = 0  # of the current source, before the current chunk

    def pieces(self) -> Iterator[Block]:
        options = self.options
        with closing(Chunks(self.reading.sources, options.chunk, options.longest_line, options.finished)) as chunks:
            self.reading.when_stopped(chunks.end)
            try:
                for chunk in self._parsed(chunks):
                    block, error = self._labelled(chunk)
                    self.reading.position = chunk.position
                    if len(block):
                        yield block
                    if error is not None:
                        raise error
            except TooLongLineError as error:
                raise DataError(
                    f"{self._place(error.line)}: line longer than {_size(options.longest_line)}; a row must fit in "
                    f"that. Check that the file has line ends, and is {self.parser.name} text."
                ) from None

            if chunks.unfinished_line is not None:
                self.reading.unfinished = self._place(chunks.unfinished_line)

    def _place(self, line: NextLine) -> str:
        return f"{line.name}:{1 if line.begins else self.lines + 1}"

    def _parsed(self, chunks: Chunks) -> Iterator[_ParsedChunk]:
        # The first chunk decides which label is positive, and more in some formats: it is parsed before the others.
        buffer = bytearray()
        first = chunks.take(buffer)
        if first is None:
            return
        rows = self.parser.parse_first(first)
        while chunks.may_grow and len(first.text) < self.options.chunk and self._too_early(rows):
            chunks.put_back(first)
            del first  # releases the buffer, which is about to be filled again
            first = chunks.take(buffer)
            assert first is not None
            rows = self.parser.parse_first(first)
        yield _ParsedChunk(first.name, first.begins, first.position, rows)
        del first

        def take(buffer: bytearray) -> Callable[[], _ParsedChunk] | None:
            chunk = chunks.take(buffer)
            if chunk is None:
                return None
            return lambda: _ParsedChunk(chunk.name, chunk.begins, chunk.position, self.parser.parse(chunk))

        if self.options.threads and not chunks.exhausted:
            yield from Prefetch(take, chunks.stop, self.options.threads)
        else:
            while (task := take(buffer)) is not None:
                parsed = task()
                del task
                yield parsed

    def _too_early(self, rows: ParsedRows) -> bool:
        """Return whether the first lines of a pipe do not yet decide which label is positive."""
        if len(rows.bad) > self.reading.refusals.allowed:
            return False
        return len(rows.labels) == 0 or self.rule.undecided(rows.labels)

    def _labelled(self, chunk: _ParsedChunk) -> tuple[Block, DataError | None]:
        """Return the valid rows of a chunk with their labels, and the error that ends the stream, if any.

        With an error, the rows are those before the row that caused it.
        """
        name, begins, _, rows = chunk
        before = 0 if begins else self.lines
        self.lines = before + rows.lines_read
        bad = [(row.line, f"{name}:{before + row.line}:{row.column}: {self.parser.message(row)}") for row in rows.bad]
        block = Block(*rows[:4], None, rows.importances, rows.tags, own=True)
        try:
            signs = self.rule.signs(rows.labels)
        except OneLabelError as error:
            if self.reading.stopped:  # stopped before both labels occurred: nothing can be learned
                return block[:0], None
            for _, message in bad:
                limit_error = self.reading.refusals.add(message)
                if limit_error is not None:  # the rest of the chunk was not parsed, and may have held the other label
                    return block[:0], limit_error
            line, column = before + int(rows.lines[0]), rows.columns[0]
            chunk_size = _size(self.options.chunk)
            return block[:0], DataError(f"{name}:{line}:{column}: {error.message(f'first {chunk_size}')}")
        self.reading.classes = self.rule.classes
        block = replace(block, labels=signs)
        if not self.options.labels_optional and not signs.all():
            for row in np.flatnonzero(signs == 0):
                place = f"{name}:{before + rows.lines[row]}:{rows.columns[row]}"
                bad.append((int(rows.lines[row]), f"{place}: {self.rule.error_message(float(rows.labels[row]))}"))
            bad.sort()
        self.reading.piece = PieceLines(name, before, rows.lines)
        if not bad:
            return block, None
        kept = signs != 0 if not self.options.labels_optional else np.ones(len(signs), bool)
        for line, message in bad:
            limit_error = self.reading.refusals.add(message)
            if limit_error is not None:
                kept &= rows.lines < line
                break
        self.reading.piece = PieceLines(name, before, rows.lines[kept])
        return block.take(np.flatnonzero(kept)), limit_error


def _size(size: int) -> str:
    return f"{size >> 20} MB" if size >> 20 else f"{size} bytes"
