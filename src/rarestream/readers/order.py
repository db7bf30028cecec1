"""Is a stream sorted by label? Online learning needs both classes mixed."""

from __future__ import annotations

from rarestream.blocks import Labels
from rarestream.errors import advice

ENOUGH = 16.0  # runs to expect before saying anything
SUSPICIOUS = 5.0  # times fewer than expected


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

    def add(self, labels: Labels) -> str | None:
        """Counts a block's labels; as soon as it can be told, and once, a message that they look sorted."""
        if not len(labels):
            return None
        positives = int((labels > 0).sum())
        self.positives += positives
        self.negatives += len(labels) - positives
        self.runs += int((labels[1:] != labels[:-1]).sum()) + int(labels[0] != self._last)
        self._last = int(labels[-1])
        if self._warned or self.expected < ENOUGH or self.runs * SUSPICIOUS > self.expected:
            return None
        self._warned = True
        return (
            f"The rows look sorted by label: {self.positives + self.negatives:,} rows "
            f"({self.positives:,} positive) change label {self.runs - 1:,} times, where a random order would "
            f"about {self.expected - 1:,.0f} times. An online learner forgets the class it saw first: "
            f"pass {advice('shuffle=SEED', '--shuffle SEED')}."
        )
