"""Text in chunks of whole lines, in constant memory whatever the file's size."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import DataError
from rarestream.readers.compression import Bytes, Plain, text_of
from rarestream.readers.sources import LAST_READS, NothingYetError, Raw, Source, StoppedError

CHUNK = 1 << 20  # bytes of text, about
LONGEST_LINE = 64 << 20  # a longer line is refused: memory stays bounded on any input
MOMENT = 0.1  # seconds that the first lines from a pipe wait for more

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Chunk(NamedTuple):
    name: str  # of the source
    text: NDArray[np.uint8]  # whole lines; borrowed from the buffer they were read to
    begins: bool  # whether line 1 of the source is its first
    position: int  # stored bytes read so far, of all sources


class Lines(NamedTuple):
    """What follows the chunks given out, in the source at hand; whoever counts lines knows which line it is."""

    name: str  # of the source
    begins: bool  # whether it is line 1


class TooLongLineError(Exception):
    """A line beyond LONGEST_LINE."""

    def __init__(self, lines: Lines) -> None:
        super().__init__(lines.name)
        self.lines = lines


class Chunks:
    """The chunks of several sources, one source after the other; a chunk never spans two.

    A chunk is filled up before it is given out. From a pipe whole lines are given out a moment after they came, if
    that is sooner: whoever writes to it may be waiting for an answer.
    """

    def __init__(
        self, sources: Sequence[Source], size: int = CHUNK, longest: int = LONGEST_LINE, finished: bool = True
    ) -> None:
        self._waiting = list(reversed(sources))
        self._size = size
        self._longest = longest
        self._finished = finished
        self.left_out: Lines | None = None  # the last line, if it may still be being written
        self._raw: Raw | None = None
        self._text: Bytes | None = None
        self._carry = b""  # the start of a line whose end has not been read
        self._begins = True
        self._position = 0  # of the sources already finished
        self._ended = False  # the source at hand
        self._stopped = False  # nobody wants the rest
        self._ending = False  # no more is to be read; what has come is wanted

    @property
    def exhausted(self) -> bool:
        """Whether `take` has nothing more to give."""
        return self._raw is None and not self._waiting

    @property
    def may_grow(self) -> bool:
        """Whether a chunk that is put back may come again with more lines."""
        return self._raw is not None and self._raw.piped

    def put_back(self, chunk: Chunk) -> None:
        """The next `take` gives the last chunk again, with what has come since."""
        self._carry = chunk.text.tobytes() + self._carry
        self._begins = chunk.begins

    def take(self, buffer: bytearray) -> Chunk | None:
        """The next chunk, read into `buffer`, which must hold no chunk still in use; None after the last."""
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
                    if self._ending:  # it came while the source was opened
                        raise StoppedError
                    self._text = text_of(self._raw)
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
            start = len(BYTE_ORDER_MARK) if begins and buffer.startswith(BYTE_ORDER_MARK) else 0
            if stop > start:
                text = np.frombuffer(buffer, np.uint8, stop - start, start)
                return Chunk(name, text, begins, position)

    def _fill(self, buffer: bytearray, text: Bytes, raw: Raw) -> tuple[int, int]:
        """Reads until the buffer has a chunk; where its last whole line ends, and where the bytes end."""
        filled = len(self._carry)
        buffer[:filled] = self._carry
        searched, wanted = 0, filled + self._size
        self._ended = False
        raw.patience = until = None
        while True:
            if len(buffer) < wanted:
                buffer.extend(bytes(wanted - len(buffer)))
            elif len(buffer) > 4 * max(wanted, self._size):
                del buffer[wanted:]  # a long line has passed
            try:
                with memoryview(buffer) as view:
                    while filled < wanted:
                        with view[filled:wanted] as room:
                            got = text.readinto(room)
                        if got == 0:
                            if self._ending and raw.piped:
                                raise StoppedError
                            self._ended = True
                            stop = self._end_of_last_line(buffer, filled, text, raw)
                            return stop, stop
                        filled += got
                        if raw.piped:
                            until = until or time.monotonic() + MOMENT
                            raw.patience = max(0.0, until - time.monotonic())
            except NothingYetError:
                raw.patience = until = None
            except (StoppedError, DataError):
                # The Ctrl-C that ends the pipe may have ended its writer too, in mid-line or in a gzip member.
                if self._stopped or not (self._ending and raw.piped):
                    raise
                self._ended = True
                stop = buffer.rfind(b"\n", 0, filled) + 1
                return stop, stop  # the line that is not whole is dropped
            stop = buffer.rfind(b"\n", searched, filled) + 1
            if stop:
                return stop, filled
            if filled > self._longest:
                raise TooLongLineError(Lines(raw.source.name, self._begins))
            searched = filled
            if filled == wanted:
                wanted = min(2 * wanted, self._longest + 1)

    def _end_of_last_line(self, buffer: bytearray, filled: int, text: Bytes, raw: Raw) -> int:
        """Where the lines of a source that has ended end.

        A log's last line may still be being written; that of a pipe, of a compressed file or of a file with a
        successor is not.
        """
        growing = isinstance(text, Plain) and raw.source.replayable and not self._waiting
        stop = filled if self._finished or not growing else buffer.rfind(b"\n", 0, filled) + 1
        if stop < filled:
            self.left_out = Lines(raw.source.name, self._begins and stop == 0)
        return stop

    def stop(self) -> None:
        """Ends a `take` that waits for a pipe in another thread."""
        self._stopped = True
        raw = self._raw
        if raw is not None:
            raw.stop()

    def end(self) -> None:
        """Nothing more is read: pipes end where they are, and the whole lines that came from them are given out.

        Any signal handler may call it.
        """
        self._ending = True
        raw = self._raw
        if raw is not None:
            raw.stop(LAST_READS)

    def close(self) -> None:
        self._waiting.clear()
        if self._raw is not None:
            self._raw.close()
            self._raw = self._text = None
