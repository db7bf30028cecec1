"""What depends on the machine and its operating system: cores, memory, locks, and atomic writes.

A file is written under a temporary name beside its final one, flushed to disk and renamed, so that at any moment its
path holds the old file or the new one. Where the system has flock, the temporary file is locked while it is written:
one that nobody locks was left by a process that was killed, and is removed when the same path is written again. On
Windows an open file cannot be removed, and one that was last written to an hour ago is taken to be left.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from rarestream.errors import OutputError, plain

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

WINDOWS = os.name == "nt"
NAME = 40  # characters of a file's name that stand in the name of the temporary file, which must not become too long
STALE = 3600.0  # seconds after which a temporary file is taken to be left, where there is no flock
LOCKED_BYTE = (1 << 31) - 2  # Windows locks bytes, and nobody may read a locked one: this one is beyond most files
MEMINFO = "/proc/meminfo"
CGROUPS = (  # the limit and the use of memory that a container has, in versions 2 and 1
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
UNKNOWN_TOTAL = 4 << 30  # bytes that the machine is taken to have where it does not tell
UNKNOWN_FREE = 2 << 30  # bytes that are taken to be free where the machine does not tell


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine_memory() -> int:
    """Return the bytes of memory that this process may use: those of the machine, or the limit of its container."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        total = _windows_memory()[0]
    return min([total, *(limit for limit, _ in _limits())])


def free_memory() -> int:
    """Return the bytes of memory that are free for this process, on the machine and in its container."""
    try:
        with open(MEMINFO, encoding="ascii") as lines:
            free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):  # not Linux
        free = _windows_memory()[1]
    return max(0, min([free, *(limit - used for limit, used in _limits())]))


def _windows_memory() -> tuple[int, int]:
    """Return the bytes of memory that Windows has and that are free; elsewhere, what is taken for them."""
    if sys.platform == "win32":
        import ctypes

        class Status(ctypes.Structure):  # MEMORYSTATUSEX
            _fields_ = (
                ("length", ctypes.c_ulong),
                ("load", ctypes.c_ulong),
                ("total", ctypes.c_ulonglong),
                ("free", ctypes.c_ulonglong),
                ("others", ctypes.c_ulonglong * 5),
            )

        status = Status(length=ctypes.sizeof(Status))
        if ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
            return status.total, status.free
    return UNKNOWN_TOTAL, UNKNOWN_FREE


def _limits() -> Iterator[tuple[int, int]]:
    """Yield the limit and the use of memory of each container that has a limit."""
    for limit, used in CGROUPS:
        most = _number_in(limit)
        if most is not None:
            yield most, _number_in(used) or 0


def _number_in(path: str) -> int | None:
    """Return the number that a file of the system holds; None if there is no such file, or no number in it."""
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def lock_file(handle: int) -> None:
    """Lock an open file until it is closed, so that no other process locks it. Does nothing if the system has no locks.

    Parameters
    ----------
    handle
        The file descriptor.

    Raises
    ------
    OSError
        If another process has locked the file, or its file system has no locks.
    """
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    with contextlib.suppress(ImportError):
        import msvcrt

        windows: Any = msvcrt
        before = os.lseek(handle, 0, os.SEEK_CUR)
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        try:
            windows.locking(handle, windows.LK_NBLCK, 1)
        finally:
            os.lseek(handle, before, os.SEEK_SET)


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file atomically.

    Parameters
    ----------
    path
        Where to write. A symbolic link stays: the file that it points to is written.
    data
        What the file is to hold.

    Raises
    ------
    OutputError
        If the file cannot be written. The file that was there is unchanged.
    """
    with whole(path) as file:
        file.write(data)


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write atomically: it is at `path` once the `with` block ends, and unchanged if the block raises.

    Parameters
    ----------
    path
        Where to write. A symbolic link stays: the file that it points to is written.

    Yields
    ------
    file
        A binary file to write to.

    Raises
    ------
    OutputError
        If the file cannot be created or written. Any OSError of the block is taken for one of writing.
    """
    target = _target(path)
    temporary, handle = _open_temporary(path, target)
    try:
        # Closed, and so unlocked, only once it has its name: nobody may take it for one that was left.
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if WINDOWS:  # which cannot rename an open file
                file.close()
            os.replace(temporary, target)
            flush_folder(os.path.dirname(target))
    except BaseException as error:
        _remove(temporary)
        if not isinstance(error, OSError) or isinstance(error, OutputError | BrokenPipeError):
            raise
        what = "was left as it was" if os.path.exists(target) else "was not made"
        raise OutputError(
            f"{plain(path)}: could not be saved ({error.strerror}); the file {what}. "
            "Free some space or choose another folder, and save again."
        ) from error


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check that a file can be written, before any work is done. Changes nothing.

    Raises
    ------
    OutputError
        If `whole` would raise it on entering its `with` block.
    """
    temporary, handle = _open_temporary(path, _target(path))
    if WINDOWS:  # which cannot remove an open file
        os.close(handle)
        _remove(temporary)
    else:  # locked until it is gone
        _remove(temporary)
        os.close(handle)


def _target(path: str | os.PathLike[str]) -> str:
    """Return what a path points to in the end, where a regular file is or could be."""
    target = os.path.realpath(os.fspath(path))
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


def _open_temporary(path: str | os.PathLike[str], target: str) -> tuple[str, int]:
    """Create a file beside the target, open and locked. Those that were left there are removed."""
    import zlib

    folder, name = os.path.split(target)
    begin = f".{name[:NAME]}-{zlib.crc32(os.fsencode(name)):08x}-"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)  # Windows: no changed line ends
    try:
        _remove_left(folder, begin)
        while True:
            temporary = os.path.join(folder, f"{begin}{os.urandom(8).hex()}.part")
            handle = os.open(temporary, flags, 0o666)
            if fcntl is None:
                break
            with contextlib.suppress(OSError):  # a file system without locks: nothing is ever removed there
                fcntl.flock(handle, fcntl.LOCK_EX)
            if os.fstat(handle).st_nlink:
                break
            os.close(handle)  # before it was locked, another process took it for one that was left
        if hasattr(os, "fchmod"):  # Windows has no modes
            with contextlib.suppress(OSError):
                os.fchmod(handle, os.stat(target).st_mode & 0o777)
    except OSError as error:
        raise _cannot(path, error) from error
    return temporary, handle


def _remove_left(folder: str, begin: str) -> None:
    """Remove temporary files that a killed process has left: those that can be locked, or are old."""
    named = re.compile(re.escape(begin) + r"[0-9a-f]{16}\.part")
    try:
        with os.scandir(folder) as entries:
            found = [entry.path for entry in entries if named.fullmatch(entry.name)]
    except PermissionError:  # a folder that can be written but not listed
        return
    for path in found:
        with contextlib.suppress(OSError):  # gone meanwhile, or not ours, or written right now
            if fcntl is None:
                if time.time() - os.stat(path).st_mtime > STALE:
                    os.unlink(path)
                continue
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
            finally:
                os.close(handle)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _cannot(path: str | os.PathLike[str], error: OSError) -> OutputError:
    return OutputError(f"{plain(path)}: cannot be written ({error.strerror}). Choose another name or folder.")


def flush_folder(folder: str) -> None:
    """Flush a folder to disk, so that a new name in it outlives a power cut, where the file system can do that."""
    with contextlib.suppress(OSError):
        sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Flush a folder to disk, as `flush_folder` does, and raise OSError if the disk reports an error."""
    if WINDOWS:  # which opens no folders
        return
    import errno

    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot do it
            raise
    finally:
        os.close(handle)
