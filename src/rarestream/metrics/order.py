"""Is a stream sorted by label? Online learning needs both classes mixed."""

from __future__ import annotations

import numpy as np

from rarestream.blocks import Labels
from rarestream.errors import advice

ENOUGH = 16.0  # runs to expect before saying anything
SUSPICIOUS = 5.0  # times fewer than expected
SELDOM = 16  # rows after which single ones are judged


class SortedCheck:
    """Counts runs of equal labels against the number that a random order would have.

    With n positives and m negatives in random order one expects 1 + 2nm / (n + m) runs, and hardly ever far
    fewer. The classes' own counts set the expectation, so rare positives raise no alarm.
    """

    def __init__(self) -> None:
        self.positives = 0
        self.negatives = 0
        self.runs = 0
        self._last = 0
        self._warned = False

    @property
    def expected(self) -> float:
        """Runs to expect of these counts in random order."""
        rows = self.positives + self.negatives
        return 1 + 2 * self.positives * self.negatives / rows if rows else 0.0

    @property
    def suspicious(self) -> bool:
        """Whether the labels so far look sorted."""
        expected = self.expected
        return expected >= ENOUGH and self.runs * SUSPICIOUS <= expected

    @property
    def message(self) -> str:
        """What there is to say of labels that look sorted."""
        return (
            f"The rows look sorted by label: {self.positives + self.negatives:,} rows "
            f"({self.positives:,} positive) change label {self.runs - 1:,} times, where a random order would "
            f"about {self.expected - 1:,.0f} times. An online learner forgets the class it saw first: "
            f"{advice('shuffle them, as read(..., shuffle=SEED) does', 'pass --shuffle SEED')}."
        )

    def add(self, labels: Labels, positives: int | None = None) -> str | None:
        """Counts a block's labels; as soon as it can be told, and once, a message that they look sorted.

        `positives`: how many there are among them, if that is known.
        """
        rows = len(labels)
        if not rows:
            return None
        if positives is None:
            positives = int(np.count_nonzero(labels > 0))
        if rows == 1:  # a fifth of what it costs as a block
            first = last = 1 if positives else -1
            changes = 0
        else:
            first, last = int(labels[0]), int(labels[-1])
            changes = int(np.count_nonzero(labels[1:] != labels[:-1]))
        self.positives += positives
        self.negatives += rows - positives
        self.runs += changes + (first != self._last)
        self._last = last
        if self._warned or (rows == 1 and (self.positives + self.negatives) % SELDOM) or not self.suspicious:
            return None
        self._warned = True
        return self.message

    def state(self) -> list[int]:
        """All it knows, as whole numbers."""
        return [self.positives, self.negatives, self.runs, self._last]

    @classmethod
    def from_state(cls, state: list[int]) -> SortedCheck:
        """That whose `state()` this is; ValueError if it cannot be one. It has said what it has to say."""
        self = cls()
        self.positives, self.negatives, self.runs, self._last = state
        whole = all(isinstance(number, int) and not isinstance(number, bool) for number in state)
        if not whole or min(state[:2]) < 0 or self._last not in (-1, 0, 1):
            raise ValueError(f"its label order is {state!r}")
        if not 0 <= self.runs <= self.positives + self.negatives or (self.runs == 0) != (self._last == 0):
            raise ValueError(f"its label order is {state!r}")
        self._warned = self.suspicious
        return self
