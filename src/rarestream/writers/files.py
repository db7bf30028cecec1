"""Output files: complete when they appear, compressed by their suffix, on a thread of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
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
    """Open a file to write, or standard output for "-". A file appears once the `with` block ends, not if it raises.

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
    with compressed_together([name], level) as files:
        yield files[0]


@contextmanager
def compressed_together(names: Sequence[str], level: int | None = None) -> Iterator[list[BackgroundFile]]:
    """Open files to write, each compressed if its suffix says so, which appear together as with `whole_together`."""
    with whole_together(names) as raws:
        pairs = [(raw, compressed(raw, name, level)) for raw, name in zip(raws, names, strict=True)]
        insides = [inside for raw, inside in pairs if inside is not raw]
        try:
            with ExitStack() as stack:
                yield [stack.enter_context(_beside(inside)) for _, inside in pairs]
        except BaseException:
            for inside in insides:
                with suppress(Exception):  # it would be closed later, and by then its file is
                    inside.close()
            raise
        for inside in insides:
            inside.close()


@contextmanager
def whole_together(names: Sequence[str]) -> Iterator[list[BinaryIO]]:
    """Open files to write that appear together once the `with` block ends, and not if it raises.

    All are on disk before the first gets its name, so that a full disk leaves none. They get their names one after the
    other.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(whole(name)) for name in names]
        yield files
        for file in files:
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def _beside(file: BinaryIO) -> Iterator[BackgroundFile]:
    background = BackgroundFile(file)
    try:
        yield background
    finally:
        background.close()
