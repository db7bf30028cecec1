"""The time of a stream of rows that are roughly in order, and the rows whose times cannot be right."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BEHIND, AHEAD = "behind", "ahead"


class Clock:
    """The latest time of a stream, and which of its rows are taken.

    A row is *behind* if its time is more than `disorder` before the latest time of the rows before it: what it belongs
    to may have been decided. A row that is more than `jump` after all rows before it is held back until the next row
    comes. If that one is not more than `disorder` before it, time has moved on, and the row is taken. Otherwise the
    row is *ahead*, alone with its time: one wrong clock must not end the time of all others.

    This depends on the rows of the stream alone, so it does not matter when another stream is read.

    Parameters
    ----------
    disorder : float
        Seconds that a row may be before the latest.
    jump : float
        Seconds by which a single row moves the time.
    """

    def __init__(self, disorder: float, jump: float) -> None:
        self.disorder = disorder
        self.jump = jump
        self.latest = -math.inf
        self.rows = 0
        self.held: tuple[int, float, Any] | None = None  # number, time and contents of a row
        self.ended = False

    @property
    def watermark(self) -> float:
        """The time that no further row is before."""
        return math.inf if self.ended else self.latest - self.disorder

    def take(self, time: float, row: Any) -> tuple[list[tuple[float, Any]], list[tuple[int, float, str]]]:
        """Count a row. Returns the rows to process now, in order, and those that are refused: number, time and why."""
        taken: list[tuple[float, Any]] = []
        refused: list[tuple[int, float, str]] = []
        number, self.rows = self.rows, self.rows + 1
        if self.held is not None:
            held_number, held_time, held_row = self.held
            self.held = None
            if time >= held_time - self.disorder:
                self.latest = held_time
                taken.append((held_time, held_row))
            else:
                refused.append((held_number, held_time, AHEAD))
        if time < self.latest - self.disorder:
            refused.append((number, time, BEHIND))
        elif time - self.latest > self.jump and self.latest != -math.inf:
            self.held = number, time, row
        else:
            self.latest = max(self.latest, time)
            taken.append((time, row))
        return taken, refused

    def takes_all(self, times: NDArray[np.float64]) -> bool:
        """Return whether `take` would return each of these rows, and then count them. Quicker than one by one."""
        if self.held is not None or self.latest == -math.inf or not len(times):
            return False
        before = np.maximum.accumulate(np.concatenate(([self.latest], times)))
        if (times < before[:-1] - self.disorder).any() or (times - before[:-1] > self.jump).any():
            return False
        self.latest = float(before[-1])
        self.rows += len(times)
        return True

    def advance(self, time: float) -> list[tuple[float, Any]]:
        """Move the time on, if it is later. Returns a row that was held back and is taken now."""
        taken = []
        if self.held is not None and time >= self.held[1] - self.disorder:
            taken = [self.held[1:]]
            self.latest = max(self.latest, self.held[1])
            self.held = None
        if time == math.inf:
            self.ended = True
        else:
            self.latest = max(self.latest, time)
        return taken
