"""What can be wrong with a log, or with who uses it."""

from __future__ import annotations

import os

from rarestream.errors import DataError, RarestreamError, plain


class LogError(RarestreamError):
    """A log that cannot be read or written as asked."""


class LogFullError(LogError):
    """There is no space for an append: the disk, a quota or the largest size of a file. The log is as it was before."""


class LogBrokenError(LogError):
    """Writing failed in a way that leaves it unknown what is on disk. The log refuses everything from then on."""


class LogDamagedError(LogError, DataError):
    """A log whose files are not as they were written.

    Attributes
    ----------
    path : str
        The file.
    offset : int
        The first byte that is wrong.
    last : int
        Sequence number of the last entry before it; one less than the first of the log if there is none.
    reason : str
        What is wrong there.
    """

    def __init__(self, path: str, offset: int, last: int, reason: str) -> None:
        self.path, self.offset, self.last, self.reason = path, offset, last, reason
        good = f"The log is good up to entry {last:,}. To keep that, and" if last else "No entry is before it. To"
        super().__init__(
            f"{plain(path)}: damaged at byte {offset:,}: {reason}. {good} move the rest aside: "
            f"{repair_command(os.path.dirname(path))}"
        )

    def __reduce__(self) -> tuple[type[LogDamagedError], tuple[str, int, int, str]]:
        return LogDamagedError, (self.path, self.offset, self.last, self.reason)


class StateLockedError(RarestreamError):
    """Another process uses the directory."""


def repair_command(folder: str) -> str:
    """Return the command that repairs the log in a folder, to paste into a shell."""
    import shlex

    return f"rarestream log repair {plain(shlex.quote(os.path.dirname(folder.rstrip('/')) or '.'))}"
