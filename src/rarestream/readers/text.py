"""Reads text formats. All that does not depend on the format is here and in rows.py.

A format supplies a `Parser`, which turns a chunk of whole rows into ParsedRows. This module reads the chunks, parses
them on threads, puts them back in order, and names file, line and column in messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.readers.chunks import Chunk, Chunks, NextLine, TooLongRowError
from rarestream.readers.parser import ParsedRows, Parser
from rarestream.readers.prefetch import Prefetch
from rarestream.readers.reading import RawText, Reading
from rarestream.readers.rows import RowsToBlocks, in_bytes


def read_text(reading: Reading, parser: Parser) -> Iterator[Block]:
    """Yield the rows of all sources, one Block for each chunk."""
    return _TextReader(reading, parser).pieces()


class _ParsedChunk(NamedTuple):
    """The rows of a chunk and its position in the sources."""

    name: str
    begins: bool
    position: int
    rows: ParsedRows
    raw: tuple[NDArray[np.uint8], Any] | None  # its text, if it is wanted, and what the parser knows of the source


class _TextReader:
    def __init__(self, reading: Reading, parser: Parser) -> None:
        self.reading = reading
        self.parser = parser
        self.blocks = RowsToBlocks(reading, parser)
        self.lines = 0  # of the current source, before the current chunk
        self.context: Any = None  # what `start` returned for the current source

    def pieces(self) -> Iterator[Block]:
        reading = self.reading
        chunks = Chunks(
            reading.sources, reading.chunk, reading.longest_line, reading.options.finished, self.parser.row_end
        )
        with closing(chunks):
            reading.when_stopped(chunks.end)
            try:
                for chunk in self._parsed(chunks):
                    before = 0 if chunk.begins else self.lines
                    self.lines = before + chunk.rows.lines_read
                    block, error = self.blocks.block(chunk.name, before, chunk.rows)
                    reading.position = chunk.position
                    if chunk.raw is not None:
                        text, context = chunk.raw
                        invalid = np.array([row.line for row in chunk.rows.bad], np.int64)
                        lines = np.union1d(chunk.rows.lines, invalid)
                        reading.raw = RawText(text, lines, chunk.begins, self.parser.multiline, context)
                    if len(block):
                        yield block
                    if error is not None:
                        raise error
            except TooLongRowError as error:
                wrong = self.parser.too_long(error.text, self._number(error.line), in_bytes(reading.longest_line))
                raise DataError(f"{self._place(error.line)}: {wrong}") from None

            if chunks.unfinished_line is not None:
                reading.unfinished = self._place(chunks.unfinished_line)

    def _number(self, line: NextLine) -> int:
        return 1 if line.begins else self.lines + 1

    def _place(self, line: NextLine) -> str:
        return f"{line.name}:{self._number(line)}"

    def _parsed(self, chunks: Chunks) -> Iterator[_ParsedChunk]:
        # The first chunk decides which label is positive, and more in some formats: it is parsed before the others.
        buffer = bytearray()
        first = chunks.take(buffer)
        if first is None:
            return
        rows = self._parse_first(first)
        while chunks.may_grow and len(first.text) < self.reading.chunk and self.blocks.undecided(rows):
            self.blocks.add_names(rows)
            chunks.put_back(first)
            del first  # releases the buffer, which is about to be filled again
            first = chunks.take(buffer)
            assert first is not None
            rows = self._parse_first(first)
        yield _ParsedChunk(first.name, first.begins, first.position, rows, self._raw(first, self.context))
        del first

        def take(buffer: bytearray) -> Callable[[], _ParsedChunk] | None:
            chunk = chunks.take(buffer)
            if chunk is None:
                return None
            if chunk.begins:
                self.context = self.parser.start(chunk)
            context = self.context
            return lambda: _ParsedChunk(
                chunk.name,
                chunk.begins,
                chunk.position,
                self.parser.parse(chunk, context),
                self._raw(chunk, context),
            )

        if self.reading.threads and not chunks.exhausted:
            yield from Prefetch(take, chunks.stop, self.reading.threads)
        else:
            while (task := take(buffer)) is not None:
                parsed = task()
                del task
                yield parsed

    def _raw(self, chunk: Chunk, context: Any) -> tuple[NDArray[np.uint8], Any] | None:
        """Return a copy of the text, whose buffer is used again, if it is wanted."""
        return (chunk.text.copy(), context) if self.reading.keep_text else None

    def _parse_first(self, chunk: Chunk) -> ParsedRows:
        self.context = self.parser.start(chunk)
        return self.parser.parse_first(chunk, self.context)
