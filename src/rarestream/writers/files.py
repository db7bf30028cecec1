"""Output files: complete when they appear, compressed by their suffix, on a thread of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from rarestream.system import whole
from rarestream.writers.compression import compressed

if TYPE_CHECKING:
    from concurrent.futures import Future

STDOUT = "-"


class BackgroundFile:
    """Writes to a file, which may compress, on another thread, while the next rows are made.

    Parameters
    ----------
    file : binary file
        It stays open.

    Attributes
    ----------
    size : int
        Bytes written so far.
    """

    def __init__(self, file: BinaryIO) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._file = file
        self._beside = ThreadPoolExecutor(1)
        self._last: Future[int] | None = None
        self.size = 0

    def write(self, data: Any) -> int:
        """Write bytes, which must not change any more. An error of the write before is raised here."""
        self._wait()
        self.size += len(data)
        self._last = self._beside.submit(self._file.write, data)
        return len(data)

    def flush(self) -> None:
        """Wait until everything is written."""
        self._wait()
        self._file.flush()

    def close(self) -> None:
        """Wait until everything is written, and end the thread."""
        try:
            self._wait()
        finally:
            self._beside.shutdown()

    def _wait(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.result()


@contextmanager
def opened(name: str, level: int | None = None) -> Iterator[BackgroundFile]:
    """Open a file to write, or standard output for "-". A file appears once the `with` block ends, and not if it raises.

    Parameters
    ----------
    name : str
        Of the file, compressed if its suffix says so.
    level : int, optional
        How much gzip compresses, 1 to 9.

    Yields
    ------
    BackgroundFile
        What to write to.
    """
    if name == STDOUT:
        sys.stdout.flush()
        with _beside(sys.stdout.buffer) as file:
            yield file
        sys.stdout.buffer.flush()
        return
    with whole(name) as raw:
        inside = compressed(raw, name, level)
        try:
            with _beside(inside) as file:
                yield file
        except BaseException:
            if inside is not raw:
                with suppress(Exception):  # it would be closed later, and by then `raw` is
                    inside.close()
            raise
        if inside is not raw:
            inside.close()


@contextmanager
def _beside(file: BinaryIO) -> Iterator[BackgroundFile]:
    background = BackgroundFile(file)
    try:
        yield background
    finally:
        background.close()
