"""Reads text in chunks of whole rows, in constant memory whatever the size of the file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import DataError
from rarestream.readers.compression import ByteReader, Plain, open_text
from rarestream.readers.sources import LAST_READS, NothingYetError, Raw, Source, StoppedError

CHUNK = 1 << 20  # approximate bytes of text
LONGEST_LINE = 64 << 20  # a longer row is an error, so that memory stays bounded on any input
PIPE_DELAY = 0.1  # seconds that lines from a pipe wait for more before they are returned

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Chunk(NamedTuple):
    """Some whole rows of a source; in most formats a row is a line."""

    name: str  # of the source
    text: NDArray[np.uint8]  # a view of the buffer that the rows were read into
    begins: bool  # whether its first line is line 1 of the source
    position: int  # stored bytes read so far, of all sources


class NextLine(NamedTuple):
    """The line after the chunks returned so far. Its number is known to the caller, who counts lines."""

    name: str  # of the source
    begins: bool  # whether it is line 1


class TooLongRowError(Exception):
    """A row longer than LONGEST_LINE; `text` is what was read of it."""

    def __init__(self, line: NextLine, text: bytes) -> None:
        super().__init__(line.name)
        self.line, self.text = line, text


def last_line_end(buffer: bytearray, filled: int) -> int:
    """Return where the last whole line in `buffer[:filled]` ends; 0 if there is none."""
    return buffer.rfind(b"\n", 0, filled) + 1


class Chunks:
    """The chunks of several sources, one source after the other; a chunk never spans two sources.

    A chunk is filled before it is returned. Whole rows from a pipe are returned after at most PIPE_DELAY, because the
    program that writes to it may be waiting for an answer.

    Parameters
    ----------
    sources : sequence of Source
        What to read.
    size : int
        Approximate bytes of text in a chunk.
    longest : int
        Maximum bytes of a row.
    finished : bool
        False: the last row of the last source is left out if it has no line end, as it may be incomplete.
    row_end : callable
        `row_end(buffer, filled)` returns where the last whole row in `buffer[:filled]`, which starts a row, ends; 0 if
        there is none. By default a row is a line.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        size: int = CHUNK,
        longest: int = LONGEST_LINE,
        finished: bool = True,
        row_end: Callable[[bytearray, int], int] = last_line_end,
    ) -> None:
        self._waiting = list(reversed(sources))
        self._size = size
        self._longest = longest
        self._finished = finished
        self._row_end = row_end
        self.unfinished_line: NextLine | None = None  # a last line that was left out
        self._raw: Raw | None = None
        self._text: ByteReader | None = None
        self._carry = b""  # the start of a row whose end has not been read
        self._begins = True
        self._position = 0  # stored bytes of the sources read to their end
        self._ended = False  # whether the current source has ended
        self._stopped = False  # the consumer has left
        self._ending = False  # nothing more is to be read, but what has been read is wanted

    @property
    def exhausted(self) -> bool:
        """Whether `take` will return None."""
        return self._raw is None and not self._waiting

    @property
    def may_grow(self) -> bool:
        """Whether a chunk that is put back may be returned again with more rows."""
        return self._raw is not None and self._raw.piped

    def put_back(self, chunk: Chunk) -> None:
        """Make the next `take` return the last chunk again, with what has arrived since."""
        self._carry = chunk.text.tobytes() + self._carry
        self._begins = chunk.begins

    def take(self, buffer: bytearray) -> Chunk | None:
        """Return the next chunk, read into `buffer`, which must hold no chunk still in use; None after the last."""
        while True:
            if self._ending and not self.may_grow:
                self.close()
            if self._raw is None or self._text is None:
                if not self._waiting:
                    return None
                if self._stopped:
                    raise StoppedError
                self._raw = self._waiting.pop().open()
                try:
                    if self._ending:  # set while the source was being opened
                        raise StoppedError
                    self._text = open_text(self._raw)
                except StoppedError:
                    if self._stopped:
                        raise
                    self.close()
                    return None
                self._begins = True
            name = self._raw.source.name
            stop, filled = self._fill(buffer, self._text, self._raw)
            self._carry = bytes(memoryview(buffer)[stop:filled])
            position = self._position + self._raw.position
            begins, self._begins = self._begins, False
            if stop == filled and self._ended:
                self._position = position
                self._raw.close()
                self._raw = self._text = None
            if stop:
                return Chunk(name, np.frombuffer(buffer, np.uint8, stop), begins, position)

    def _fill(self, buffer: bytearray, text: ByteReader, raw: Raw) -> tuple[int, int]:
        """Read until the buffer has a chunk. Returns where its last whole row ends, and where its bytes end."""
        filled = len(self._carry)
        buffer[:filled] = self._carry
        wanted = filled + self._size
        self._ended = False
        raw.patience = until = None
        while True:
            if len(buffer) < wanted:
                buffer.extend(bytes(wanted - len(buffer)))
            elif len(buffer) > 4 * max(wanted, self._size):
                del buffer[wanted:]  # an unusually long row is over: give its memory back
            try:
                with memoryview(buffer) as view:
                    while filled < wanted and not self._ended:
                        with view[filled:wanted] as free:
                            count = text.readinto(free)
                        if count == 0:
                            if self._ending and raw.piped:
                                raise StoppedError
                            self._ended = True
                        filled += count
                        if raw.piped:
                            until = until or time.monotonic() + PIPE_DELAY
                            raw.patience = max(0.0, until - time.monotonic())
            except NothingYetError:
                raw.patience = until = None
            except (StoppedError, DataError):
                # Ctrl-C reaches the writer of a pipe too, which may stop in the middle of a row or of a gzip member.
                if self._stopped or not (self._ending and raw.piped):
                    raise
                self._ended = True
                filled = self._without_mark(buffer, filled)
                stop = self._row_end(buffer, filled)
                return stop, stop  # an incomplete last row is dropped
            filled = self._without_mark(buffer, filled)
            if self._ended:
                stop = self._end_of_last_row(buffer, filled, text, raw)
                return stop, stop
            stop = self._row_end(buffer, filled)
            if stop:
                return stop, filled
            if filled > self._longest:
                raise TooLongRowError(NextLine(raw.source.name, self._begins), bytes(memoryview(buffer)[:filled]))
            if filled >= wanted:
                wanted = min(2 * wanted, self._longest + 1)

    def _without_mark(self, buffer: bytearray, filled: int) -> int:
        """Remove a byte order mark from the start of a source. Returns where the bytes end now."""
        if self._begins and filled >= len(BYTE_ORDER_MARK) and buffer.startswith(BYTE_ORDER_MARK):
            del buffer[: len(BYTE_ORDER_MARK)]
            return filled - len(BYTE_ORDER_MARK)
        return filled

    def _end_of_last_row(self, buffer: bytearray, filled: int, text: ByteReader, raw: Raw) -> int:
        """Return where the rows of a source that has ended end.

        The last row of a log may be incomplete. The last row of a pipe, of a compressed file, or of a file
        that another one follows is complete.
        """
        growing = isinstance(text, Plain) and raw.source.replayable and not self._waiting
        stop = filled if self._finished or not growing else self._row_end(buffer, filled)
        if stop < filled:
            self.unfinished_line = NextLine(raw.source.name, self._begins and stop == 0)
        return stop

    def stop(self) -> None:
        """End a `take` that waits for a pipe in another thread."""
        self._stopped = True
        raw = self._raw
        if raw is not None:
            raw.stop()

    def end(self) -> None:
        """Read nothing more. Whole rows that have arrived from a pipe are still returned.

        Safe to call from a signal handler.
        """
        self._ending = True
        raw = self._raw
        if raw is not None:
            raw.stop(LAST_READS)

    def close(self) -> None:
        """Close the current source and forget the others."""
        self._waiting.clear()
        if self._raw is not None:
            self._raw.close()
            self._raw = self._text = None
