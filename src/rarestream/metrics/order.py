"""Detects streams that are sorted by label. Online learning needs both classes mixed."""

from __future__ import annotations

import numpy as np

from rarestream.blocks import Labels
from rarestream.errors import advice

ENOUGH = 16.0  # expected runs below which nothing is reported
SUSPICIOUS = 5.0  # factor by which runs must be fewer than expected
SELDOM = 16  # single rows between two checks


class SortedCheck:
    """Compares the number of runs of equal labels with that expected in random order.

    n positives and m negatives in random order have 1 + 2nm / (n + m) runs on average, and hardly ever far fewer. The
    expectation follows from the counts of the classes, so rare positives cause no false alarm.
    """

    def __init__(self) -> None:
        self.positives = 0
        self.negatives = 0
        self.runs = 0
        self._last = 0
        self._warned = False

    @property
    def expected(self) -> float:
        """Expected number of runs in random order."""
        rows = self.positives + self.negatives
        return 1 + 2 * self.positives * self.negatives / rows if rows else 0.0

    @property
    def suspicious(self) -> bool:
        """Whether the labels so far look sorted."""
        expected = self.expected
        return expected >= ENOUGH and self.runs * SUSPICIOUS <= expected

    @property
    def message(self) -> str:
        """The warning for labels that look sorted."""
        return (
            f"The rows look sorted by label: {self.positives + self.negatives:,} rows "
            f"({self.positives:,} positive) change label {_times(self.runs - 1)}; about {self.expected - 1:,.0f} "
            "changes expected in random order. An online learner forgets the class it saw first: "
            f"{advice('shuffle them, as read(..., shuffle=SEED) does', 'pass --shuffle SEED')}."
        )

    def add(self, labels: Labels, positives: int | None = None) -> str | None:
        """Count the labels of a block.

        Parameters
        ----------
        labels : array
            -1 and +1.
        positives : int, optional
            Number of positive ones, if known.

        Returns
        -------
        str or None
            The warning, once, as soon as labels look sorted.
        """
        rows = len(labels)
        if not rows:
            return None
        if positives is None:
            positives = int(np.count_nonzero(labels > 0))
        if rows == 1:
            return self.add_one(positives == 1)
        self.positives += positives
        self.negatives += rows - positives
        self.runs += int(np.count_nonzero(labels[1:] != labels[:-1])) + (int(labels[0]) != self._last)
        self._last = int(labels[-1])
        return self._warning()

    def add_one(self, positive: bool) -> str | None:
        """Count the label of a row alone, in a fifth of the time; return the warning as `add` does."""
        if positive:
            self.positives += 1
        else:
            self.negatives += 1
        label = 1 if positive else -1
        if label != self._last:
            self.runs += 1
            self._last = label
        return None if self._warned or (self.positives + self.negatives) % SELDOM else self._warning()

    def _warning(self) -> str | None:
        if self._warned or not self.suspicious:
            return None
        self._warned = True
        return self.message

    def state(self) -> list[int]:
        """Return the counts, for `from_state`."""
        return [self.positives, self.negatives, self.runs, self._last]

    @classmethod
    def from_state(cls, state: list[int]) -> SortedCheck:
        """Return the check that has this `state()`; ValueError if there can be none. A warning is not repeated."""
        self = cls()
        self.positives, self.negatives, self.runs, self._last = state
        whole = all(isinstance(number, int) and not isinstance(number, bool) for number in state)
        if not whole or min(state[:2]) < 0 or self._last not in (-1, 0, 1):
            raise ValueError(f"its label order is {state!r}")
        if not 0 <= self.runs <= self.positives + self.negatives or (self.runs == 0) != (self._last == 0):
            raise ValueError(f"its label order is {state!r}")
        self._warned = self.suspicious
        return self


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count:,} times")
