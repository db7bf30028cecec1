"""The machine, asked in one place: its cores, its memory, and files that appear whole or not at all.

A file is written aside, flushed to disk and renamed, so that at any moment its path holds the old file or the new one.
The file aside is locked while somebody writes it. One that nobody locks was left by a process that was killed, and goes
when the same path is written again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rarestream.errors import OutputError, plain

NAME = 40  # characters of a file's name that stand in the name of the file aside, which must not become too long
MEMINFO = "/proc/meminfo"
CGROUPS = (  # the limit and the use of memory that a container has, in versions 2 and 1
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
UNKNOWN_FREE = 2 << 30  # bytes that are taken to be free where the machine does not tell


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine_memory() -> int:
    """The bytes of memory that this process may use: those of the machine, or the limit of its container."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([total, *(limit for limit, _ in _limits())])


def free_memory() -> int:
    """The bytes of memory that are free for this process, on the machine and within the limit of its container."""
    free = UNKNOWN_FREE
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path(MEMINFO).read_text().splitlines()
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    return max(0, min([free, *(limit - used for limit, used in _limits())]))


def _limits() -> Iterator[tuple[int, int]]:
    """The limit and the use of memory of each container that has a limit."""
    for limit, used in CGROUPS:
        most = _number_in(limit)
        if most is not None:
            yield most, _number_in(used) or 0


def _number_in(path: str) -> int | None:
    """The number that a file of the system holds; None if there is no such file, or no number in it."""
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file, or leaves the one that is there as it was and raises OutputError."""
    with whole(path) as file:
        file.write(data)


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to. It is at `path` once the `with` block ends; if that raises, nothing has changed.

    A symbolic link stays: what it points to is written. Raises OutputError, which names the path, if the file cannot be
    made; and for any OSError of the block, which is taken for one of writing.
    """
    target = _target(path)
    aside, handle = _made_aside(path, target)
    try:
        # Closed, and so unlocked, only once it has its name: nobody may take it for one that was left.
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(aside, target)
            _flush_folder(target.parent)
    except BaseException as error:
        aside.unlink(missing_ok=True)
        if not isinstance(error, OSError) or isinstance(error, OutputError | BrokenPipeError):
            raise
        what = "was left as it was" if target.exists() else "was not made"
        raise OutputError(
            f"{plain(path)}: could not be saved ({error.strerror}); the file {what}. "
            "Free some space or choose another folder, and save again."
        ) from error


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises what `whole` would at its start, so that it is known before any work is done. Changes nothing."""
    aside, handle = _made_aside(path, _target(path))
    aside.unlink(missing_ok=True)
    os.close(handle)


def _target(path: str | os.PathLike[str]) -> Path:
    """What a path points to in the end, where a regular file is or could be."""
    target = Path(os.path.realpath(path))
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return target
    except OSError as error:  # too long a name, a circle of links, a file where a folder should be
        raise _cannot(path, error) from error
    if stat.S_ISDIR(mode):
        raise OutputError(f"{plain(path)}: is a directory; name a file in it.")
    if not stat.S_ISREG(mode):  # renaming would replace a device, /dev/null too
        raise OutputError(f"{plain(path)}: is not a regular file. Choose another name.")
    return target


def _made_aside(path: str | os.PathLike[str], target: Path) -> tuple[Path, int]:
    """A new file beside the target, open and locked. Those that were left there are removed."""
    begin = f".{target.name[:NAME]}-{zlib.crc32(os.fsencode(target.name)):08x}-"
    try:
        _remove_left(target.parent, begin)
        while True:
            aside = target.with_name(f"{begin}{os.urandom(8).hex()}.part")
            handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            with contextlib.suppress(OSError):  # a file system without locks: nothing is ever removed there
                fcntl.flock(handle, fcntl.LOCK_EX)
            if os.fstat(handle).st_nlink:
                break
            os.close(handle)  # before it was locked, somebody took it for one that was left
        with contextlib.suppress(OSError):
            os.fchmod(handle, os.stat(target).st_mode & 0o777)
    except OSError as error:
        raise _cannot(path, error) from error
    return aside, handle


def _remove_left(folder: Path, begin: str) -> None:
    """Removes files aside that a killed process has left: those whose lock can be had."""
    named = re.compile(re.escape(begin) + r"[0-9a-f]{16}\.part")
    try:
        with os.scandir(folder) as entries:
            found = [entry.path for entry in entries if named.fullmatch(entry.name)]
    except PermissionError:  # a folder that can be written but not listed
        return
    for path in found:
        with contextlib.suppress(OSError):  # gone meanwhile, or not ours, or written right now
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
            finally:
                os.close(handle)


def _cannot(path: str | os.PathLike[str], error: OSError) -> OutputError:
    return OutputError(f"{plain(path)}: cannot be written ({error.strerror}). Choose another name or folder.")


def _flush_folder(folder: Path) -> None:
    """So that the new name outlives a power cut, where the file system can do that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
