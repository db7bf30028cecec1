"""Bad rows: refused at once, or skipped and counted up to a stated number."""

from __future__ import annotations

from rarestream.errors import DataError, advice

SHOWN = 5  # messages kept


class Refusals:
    """Counts bad rows against `allowed`; the first messages are kept."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.count = 0
        self.first: list[str] = []

    def add(self, message: str) -> DataError | None:
        """Counts a bad row; the error to raise if it was one too many."""
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(message)
        if self.count <= self.allowed:
            return None
        if self.allowed == 0:
            return DataError(message)
        listed = "".join(f"\n  {one}" for one in self.first)
        rule = advice("max_bad_rows=", "--max-bad-rows ")
        return DataError(
            f"{self.count} bad rows, but {rule}{self.allowed} allows no more than {self.allowed}. The first:{listed}"
        )
