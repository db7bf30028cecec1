"""One process per state directory."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from rarestream.errors import plain
from rarestream.serve.log.errors import StateLockedError
from rarestream.system import lock_file

NAME = "lock"
HELD = (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN)  # what systems say of a file that another process has locked


class StateLock:
    """The lock of a state directory: a flock on the file `lock` in it, which holds the number of the process.

    The system releases it when the process ends, however it ends. The file stays: removing it would let two processes
    lock two files of the same name.

    Parameters
    ----------
    state
        The directory. It is made if it is not there.

    Raises
    ------
    StateLockedError
        If another process has locked it, or its file system has no locks.
    """

    def __init__(self, state: str | os.PathLike[str]) -> None:
        self.path = os.path.join(os.fspath(state), NAME)
        os.makedirs(state, exist_ok=True)
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                self._lock(file, state)
                if _same(file, self.path):
                    break
            except BaseException:
                os.close(file)
                raise
            os.close(file)  # the file that was locked has been removed meanwhile: lock the one that is there now
        number = f"{os.getpid()}\n".encode()
        with suppress(OSError):  # the number is for people: a full disk must not keep a service from starting
            os.write(file, number)
            os.ftruncate(file, len(number))
        self._file: int | None = file

    def _lock(self, file: int, state: str | os.PathLike[str]) -> None:
        try:
            lock_file(file)
        except OSError as error:
            if error.errno not in HELD:
                raise StateLockedError(
                    f"{plain(state)}: its file system has no locks ({error.strerror}), and two servers on one "
                    "directory would destroy each other's log. Choose a directory on a local disk."
                ) from error
            raise StateLockedError(
                f"{plain(state)}: is in use by {_holder(file)}. Stop that one first, or choose another directory."
            ) from error

    def release(self) -> None:
        """Let other processes have the directory."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> StateLock:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def _holder(file: int) -> str:
    """Return the process that the file names; it may not have come to writing its number."""
    number = os.read(file, 20).strip()
    return f"process {number.decode()}" if number.isdigit() else "another process"


def _same(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False
