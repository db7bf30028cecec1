"""Text that bytes are added to, cut into whole rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import DataError
from rarestream.readers.chunks import LONGEST_LINE
from rarestream.readers.live.lines import Lines
from rarestream.readers.rows import in_bytes


class TextLines(Lines):
    """Lines of a text that is read from its start to its end.

    Parameters
    ----------
    text : bytes
        The lines.
    begins : bool
        Whether they start a file.
    """

    def __init__(self, text: bytes, begins: bool) -> None:
        self.text, self.begins = text, begins
        self._found: NDArray[np.intp] | None = None

    def bytes_of(self, lines: int) -> int:
        """Return the bytes of the first so many lines."""
        if lines == 0:
            return 0
        if self._found is None:
            self._found = np.flatnonzero(np.frombuffer(self.text, np.uint8) == 0x0A)
        return int(self._found[lines - 1]) + 1


class Unfinished:
    """Bytes that have come and are not yet cut into rows."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bytes = bytearray()

    def __len__(self) -> int:
        return len(self._bytes)

    def add(self, data: bytes) -> None:
        """Add bytes that came later."""
        self._bytes += data

    def take_rows(self, row_end: Callable[[bytearray, int], int]) -> bytes:
        """Return the whole rows that are there, and forget them.

        Raises
        ------
        DataError
            If the first row is too long to be one.
        """
        end = row_end(self._bytes, len(self._bytes)) if b"\n" in self._bytes else 0
        if not end and len(self._bytes) > LONGEST_LINE:
            raise DataError(
                f"{self._name}: a row longer than {in_bytes(LONGEST_LINE)}; a row must fit in that. Check that it has "
                "line ends, and that quotes are closed."
            )
        rows = bytes(self._bytes[:end])
        del self._bytes[:end]
        return rows

    def take_all(self) -> bytes:
        """Return everything as rows, and forget it: a last one without a line end gets one."""
        rest = bytes(self._bytes)
        self._bytes.clear()
        return rest if not rest or rest.endswith(b"\n") else rest + b"\n"

    def clear(self) -> None:
        """Forget everything."""
        self._bytes.clear()
