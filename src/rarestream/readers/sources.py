"""Input sources: a path, a glob, several of them, standard input, an open binary file, or rows in memory."""

from __future__ import annotations

import contextlib
import glob
import io
import os
import select
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sized
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple, cast

from rarestream.errors import DataError, plain

LARGEST_READ = 1 << 30  # bytes of a single read
LAST_READS = 16  # after a stop: what a pipe holds is still read, but a fast writer cannot keep the reader busy for ever

ROWS, FRAME = "<rows>", "<frame>"  # the names of rows in memory
NO_MATCH = "no file matches. Check the pattern, and that the shell left it alone."

SourceLike = str | os.PathLike[str] | BinaryIO


class StoppedError(Exception):
    """Reading was stopped because the rest is not wanted."""


class NothingYetError(Exception):
    """A pipe had no bytes within the time allowed; it may have some later."""


class Source(NamedTuple):
    """One input. A path is opened again for each pass, a seekable file is rewound, a pipe can be read only once."""

    name: str  # as messages show it
    base: str  # without its folder
    size: int | None  # bytes, as stored; None if it is not known, as for standard input
    path: str | None = None
    file: Any = None  # a binary file, when there is no path
    start: int | None = None  # where in `file` the data starts; None: it cannot be rewound
    data: Any = None  # rows in memory, when there is neither a path nor a file; `size` is then their number
    format: str | None = None  # of `data`
    again: bool = False  # whether `data` can be read again although their number is not known

    @property
    def replayable(self) -> bool:
        """Whether the data can be read again."""
        return self.size is not None or self.again

    def open(self) -> Raw:
        """Open the source at its start."""
        if self.path is not None:
            return Raw(self, _opened(self.path, waiting=self.replayable), owned=True)
        if self.start is not None:
            self.file.seek(self.start)
        return Raw(self, self.file, owned=False)


class Raw:
    """An open source: reads bytes as they are stored, and counts them."""

    def __init__(self, source: Source, file: Any, owned: bool) -> None:
        self.source = source
        self.position = 0
        self.patience: float | None = None  # seconds that a read waits for a pipe; None: no limit
        self._file = file
        self._owned = owned
        self._wait: _PipeWait | _PipeWithoutPoll | None = None
        fd = _descriptor(file)
        if fd is not None and not stat.S_ISREG(os.fstat(fd).st_mode):
            # A caller's file object may hold bytes in its buffer, unseen by poll: its first read is not polled.
            polled = isinstance(file, io.FileIO) or file is _stdin()
            self._wait = _PipeWait(fd, polled) if hasattr(select, "poll") else _PipeWithoutPoll()

    @property
    def piped(self) -> bool:
        """Whether bytes arrive as another program writes them: a pipe, a terminal, a socket."""
        return self._wait is not None

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end. Raises NothingYetError after `patience` seconds."""
        try:
            if self._wait is not None:
                self._wait.until_readable(self.patience)
            read = getattr(self._file, "read1", self._file.read)
            data: bytes = read(min(size, LARGEST_READ))
        except OSError as error:
            raise DataError(f"{self.source.name}: cannot be read: {_reason(error)}.") from None
        except ValueError as error:
            raise DataError(f"{self.source.name}: cannot be read: {error}.") from None
        self._count(len(data))
        return data

    def readinto(self, view: memoryview) -> int:
        """Read into `view`, as `read` does. Returns the number of bytes."""
        if self._wait is not None or not isinstance(self._file, io.FileIO):
            data = self.read(len(view))
            view[: len(data)] = data
            return len(data)
        try:
            size = self._file.readinto(view)
        except OSError as error:
            raise DataError(f"{self.source.name}: cannot be read: {_reason(error)}.") from None
        self._count(size)
        return size

    def stop(self, last_reads: int = 0) -> None:
        """End a wait for input, now or later, with StoppedError. Safe to call from any thread and signal handler.

        Bytes that are in the pipe already are still returned, by up to `last_reads` reads.
        """
        if self._wait is not None:
            self._wait.stop(last_reads)

    def close(self) -> None:
        """Close the file, unless it is the caller's own."""
        if self._wait is not None:
            self._wait.close()
        if self._owned:
            self._file.close()

    def _count(self, size: int) -> None:
        self.position += size
        expected = self.source.size
        if size == 0 and expected is not None and self.position < expected:
            raise DataError(
                f"{self.source.name}: shrank while it was read: {expected:,} bytes at the start, "
                f"{self.position:,} now. Read a finished file, or a copy of it."
            )


class _PipeWait:
    """Waits until a pipe has bytes, or until `stop` is called.

    `stop` writes to a pipe of its own, which the wait polls beside the data: the only way to wake a poll from another
    thread or a signal handler.
    """

    def __init__(self, fd: int, polled: bool) -> None:
        self._fd = fd
        self._polled = polled
        self._last_reads = 0
        self._closing = threading.RLock()  # reentrant: a signal handler may call stop while its thread holds the lock
        self._open = True
        self._wake_read, self._wake_write = os.pipe()
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._poll.register(self._wake_read, select.POLLIN)

    def until_readable(self, patience: float | None) -> None:
        if not self._polled:
            self._polled = True
            return
        ready = {fd for fd, _ in self._poll.poll(None if patience is None else 1000 * patience)}
        if self._wake_read in ready:
            if self._fd not in ready or not self._last_reads:
                raise StoppedError
            self._last_reads -= 1
        elif not ready:
            raise NothingYetError

    def stop(self, last_reads: int) -> None:
        with self._closing:
            if self._open:
                self._last_reads = last_reads
                os.write(self._wake_write, b".")

    def close(self) -> None:
        with self._closing:
            if self._open:
                self._open = False
                os.close(self._wake_read)
                os.close(self._wake_write)


class _PipeWithoutPoll:
    """Replaces `_PipeWait` on Windows: a read waits until bytes come, and `stop` takes effect before the next read."""

    def __init__(self) -> None:
        self._stopped = False

    def until_readable(self, patience: float | None) -> None:
        if self._stopped:
            raise StoppedError
        if patience is not None:  # some bytes have come: they are passed on at once, as the next may be long in coming
            raise NothingYetError

    def stop(self, last_reads: int) -> None:
        self._stopped = True

    def close(self) -> None:
        pass


def expand(where: SourceLike | Iterable[SourceLike] | Iterable[Mapping[str, Any]]) -> list[Source]:
    """Return the sources that the user named. Every file is opened now, so that a wrong name is an error at once."""
    if isinstance(where, str | os.PathLike):
        return _from_name(os.fspath(where))
    if any(hasattr(where, method) for method in ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__")):
        return [_from_frame(where)]
    if hasattr(where, "read"):
        return [_from_file(where)]
    if isinstance(where, Mapping):
        raise DataError("read: a dict is one row; pass a list of rows, such as [row].")
    if isinstance(where, Iterable):
        items = iter(where)
        first = list(islice(items, 1))
        if first and isinstance(first[0], Mapping):
            return [_from_rows(where, chain(first, items))]
        sources = [source for item in chain(first, items) for source in expand(cast(SourceLike, item))]
        if not sources:
            raise DataError("read: no file given.")
        return sources
    raise DataError(
        "read: data comes from a path, several paths, a glob, '-', an open binary file, a frame, or dicts, "
        f"got {type(where).__name__}."
    )


def _from_rows(rows: Any, items: Iterator[Any]) -> Source:
    """Return the source of rows in memory; `items` are those of an iterator, which can be read only once."""
    if isinstance(rows, Sized):
        return Source(ROWS, ROWS, len(rows), data=rows, format="rows")
    return Source(ROWS, ROWS, None, data=items, format="rows")


def _from_frame(frame: Any) -> Source:
    """Return the source of a frame. A result of DuckDB is not asked for its length: that would run the query."""
    size = len(frame) if hasattr(frame, "__dataframe__") and hasattr(frame, "__len__") else None
    again = hasattr(frame, "__len__") or not hasattr(frame, "__arrow_c_stream__")
    return Source(FRAME, FRAME, size, data=frame, format="frame", again=again)


def _from_name(name: str) -> list[Source]:
    if name == "-":
        return [Source("-", "-", None, file=_stdin())]
    if not os.path.lexists(name) and glob.has_magic(name):
        matches = [match for match in sorted(glob.glob(name, recursive=True)) if not os.path.isdir(match)]
        if not matches:
            raise DataError(f"{plain(name)}: {NO_MATCH}")
        return [_from_path(match) for match in matches]
    return [_from_path(name)]


def _from_path(path: str) -> Source:
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        raise DataError(f"{plain(path)}: cannot be read: {_reason(error)}.") from None
    if os.path.isdir(path):
        raise DataError(f"{plain(path)}: is a directory. Name its files, for example {plain(path.rstrip('/'))}/*.svm")
    if not regular:
        return Source(plain(path), os.path.basename(path), None, path)
    with _opened(path) as file:
        return Source(plain(path), os.path.basename(path), os.fstat(file.fileno()).st_size, path)


def _from_file(file: Any) -> Source:
    name = getattr(file, "name", None)
    name = name if isinstance(name, str) else "<file>"
    if isinstance(file, io.TextIOBase):
        raise DataError(f"{name}: is open as text; open it in binary mode, 'rb'.")
    base = os.path.basename(name)
    if not (hasattr(file, "seekable") and file.seekable()):
        return Source(name, base, None, file=file)
    start = file.tell()
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    return Source(name, base, size, file=file, start=start)


def _opened(path: str, waiting: bool = True) -> io.FileIO:
    """Open a file. With `waiting`, opening a named pipe waits until another program writes to it."""
    try:
        return open(path, "rb", buffering=0, opener=None if waiting or not hasattr(os, "O_NONBLOCK") else _at_once)
    except OSError as error:
        raise DataError(f"{plain(path)}: cannot be read: {_reason(error)}.") from None


def _at_once(path: str, flags: int) -> int:
    fd = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(fd, True)
    return fd


def _stdin() -> Any:
    return getattr(sys.stdin, "buffer", sys.stdin)


def _descriptor(file: Any) -> int | None:
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return int(file.fileno())
    return None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower() if error.errno is not None else str(error)
