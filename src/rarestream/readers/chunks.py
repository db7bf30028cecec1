"""Text in chunks of whole lines, in constant memory whatever the file's size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.readers.compression import Bytes, text_of
from rarestream.readers.sources import Raw, Source, StoppedError

CHUNK = 1 << 20  # bytes of text, about
LONGEST_LINE = 64 << 20  # a longer line is refused: memory stays bounded on any input

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Chunk(NamedTuple):
    name: str  # of the source
    text: NDArray[np.uint8]  # whole lines; borrowed from the buffer they were read to
    begins: bool  # whether line 1 of the source is its first
    position: int  # stored bytes read so far, of all sources


class TooLongLineError(Exception):
    """A line beyond LONGEST_LINE in the named source; whoever counts lines knows which one."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Chunks:
    """The chunks of several sources, one source after the other; a chunk never spans two.

    A chunk is filled up before it is given out, also from a slow pipe: what is decided on the first chunk
    of a stream must not depend on how its bytes happened to arrive.
    """

    def __init__(self, sources: Sequence[Source], size: int = CHUNK, longest: int = LONGEST_LINE) -> None:
        self._waiting = list(reversed(sources))
        self._size = size
        self._longest = longest
        self._raw: Raw | None = None
        self._text: Bytes | None = None
        self._carry = b""  # the start of a line whose end has not been read
        self._begins = True
        self._position = 0  # of the sources already finished
        self._ended = False
        self._stopped = False

    @property
    def exhausted(self) -> bool:
        """Whether `take` has nothing more to give."""
        return self._raw is None and not self._waiting

    def take(self, buffer: bytearray) -> Chunk | None:
        """The next chunk, read into `buffer`, which must hold no chunk still in use; None after the last."""
        while True:
            if self._raw is None or self._text is None:
                if not self._waiting:
                    return None
                if self._stopped:
                    raise StoppedError
                self._raw = self._waiting.pop().open()
                self._text = text_of(self._raw)
                self._begins = True
            name = self._raw.source.name
            stop, filled = self._fill(buffer, self._text, name)
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

    def _fill(self, buffer: bytearray, text: Bytes, name: str) -> tuple[int, int]:
        """Reads until the buffer has a chunk; where its last whole line ends, and where the bytes end."""
        searched = filled = len(self._carry)
        buffer[:filled] = self._carry
        wanted = filled + self._size
        self._ended = False
        while True:
            if len(buffer) < wanted:
                buffer.extend(bytes(wanted - len(buffer)))
            elif len(buffer) > 4 * max(wanted, self._size):
                del buffer[wanted:]  # a long line has passed
            with memoryview(buffer) as view:
                while filled < wanted:
                    with view[filled:wanted] as room:
                        got = text.readinto(room)
                    if got == 0:
                        self._ended = True
                        return filled, filled
                    filled += got
            stop = buffer.rfind(b"\n", searched, filled) + 1
            if stop:
                return stop, filled
            if filled > self._longest:
                raise TooLongLineError(name)
            searched, wanted = filled, min(2 * wanted, self._longest + 1)

    def stop(self) -> None:
        """Ends a `take` that waits for a pipe in another thread."""
        self._stopped = True
        raw = self._raw
        if raw is not None:
            raw.stop()

    def close(self) -> None:
        self._waiting.clear()
        if self._raw is not None:
            self._raw.close()
            self._raw = self._text = None
