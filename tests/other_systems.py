"""Hides from this process what macOS and Windows lack, so that the guards for them run on Linux.

This shows that nothing else is called there. It does not replace a test on such a machine.
"""

from __future__ import annotations

import builtins
import errno
import io
import mmap
import os
import select
import shutil
import sys
import types
from typing import Any

FILES_OF_LINUX = ("/proc", "/sys")
open_files = "/proc/self/fd"


def macos() -> None:
    """Hides what only Linux has. To be called before rarestream is imported."""
    if hasattr(os, "sched_getaffinity"):
        del os.sched_getaffinity
    for name in [name for name in vars(mmap) if name.startswith("MADV_")]:
        delattr(mmap, name)
    real = io.open

    def checked(file: Any, *arguments: Any, **options: Any) -> Any:
        if str(file).startswith(FILES_OF_LINUX):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file)
        return real(file, *arguments, **options)

    io.open = builtins.open = checked  # pathlib has the first, everybody else the second


def windows() -> None:
    """Hides what only POSIX has, and refuses to rename and to remove open files. To be called before rarestream is
    imported."""
    macos()
    for module in ("fcntl", "pwd", "resource", "termios"):
        sys.modules[module] = None  # type: ignore[assignment]
    for place, names in (
        (os, ("fchmod", "set_blocking", "sysconf", "O_NOFOLLOW", "O_NONBLOCK")),
        (select, ("poll", "POLLIN")),
        (mmap, ("MAP_PRIVATE", "MAP_ANONYMOUS", "MAP_ANON")),
    ):
        for name in names:
            delattr(place, name)
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    for name in ("replace", "unlink", "remove"):
        setattr(os, name, _refusing_open_files(getattr(os, name)))
    sys.modules["msvcrt"] = _locks()


def _refusing_open_files(change: Any) -> Any:
    def checked(path: Any, *others: Any, **options: Any) -> None:
        links = [f"{open_files}/{number}" for number in os.listdir(open_files)]
        if os.path.realpath(path) in [os.readlink(link) for link in links if os.path.lexists(link)]:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        change(path, *others, **options)

    return checked


def _locks() -> types.ModuleType:
    """Byte locks of Windows, as far as they are used; nothing is ever unlocked."""
    module: Any = types.ModuleType("msvcrt")
    locked = set()

    def locking(handle: int, mode: int, size: int) -> None:
        assert (mode, size) == (module.LK_NBLCK, 1)
        what = (os.fstat(handle).st_ino, os.lseek(handle, 0, os.SEEK_CUR))
        if what in locked:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        locked.add(what)

    module.LK_NBLCK, module.locking = 2, locking
    return module  # type: ignore[no-any-return]
