"""Invalid rows: an error at once, or skipped and counted up to a limit."""

from __future__ import annotations

from rarestream.errors import DataError, advice

SHOWN = 5  # messages that are kept
MANY = 1 << 62  # more invalid rows than any file has, as a 64-bit number


class Refusals:
    """Counts invalid rows and keeps the first messages.

    Parameters
    ----------
    allowed : int, >= 0
        Maximum number of invalid rows to skip.
    """

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.count = 0
        self.first: list[str] = []

    @property
    def stop_after(self) -> int:
        """The number of invalid rows after which a parser may stop."""
        return min(self.allowed, MANY) + 1

    def add(self, message: str, line: int = 0) -> DataError | None:
        """Count an invalid row. Returns the error to raise if the limit is exceeded, else None.

        Parameters
        ----------
        message : str
            Where the row is and what is wrong with it.
        line : int
            Its number in the chunk that is being read, from 1; 0: not known.
        """
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(message)
        if self.count <= self.allowed:
            return None
        if self.allowed == 0:
            return DataError(message)
        listed = "".join(f"\n  {message}" for message in self.first)
        rule = advice("max_bad_rows=", "--max-bad-rows ")
        return DataError(f"{self.count} invalid rows, more than {rule}{self.allowed} allows. The first:{listed}")
