"""Sample: the scores of rows under every entrant, as many as fit, evenly thinned.

Each class is kept apart, so that rare positives stay when negatives are thinned. A class that is full drops every
other of its rows, and from then on takes every other one that comes: what is kept is spread evenly over the stream.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Scored(NamedTuple):
    """Rows, in no particular order, with the score of each under each entrant."""

    labels: NDArray[np.int8]
    scores: NDArray[np.float32]
    importances: NDArray[np.float64] | None

    @property
    def fewest(self) -> int:
        """Rows of the rarer class."""
        positives = int(np.count_nonzero(self.labels > 0))
        return min(positives, len(self.labels) - positives)


class Sample:
    def __init__(self, entrants: int, room: int) -> None:
        self._classes = [_Kept(entrants, room), _Kept(entrants, room)]  # negatives, positives
        self._weighed = False

    def add(
        self,
        first: int,
        labels: NDArray[np.int8],
        scores: NDArray[np.float32],
        importances: NDArray[np.float64] | None,
    ) -> None:
        """Rows as they come; `first` is the number of the first of them."""
        self._weighed |= importances is not None
        counts = np.ones(len(labels)) if importances is None else importances
        for positive, kept in enumerate(self._classes):
            mine = np.flatnonzero(((labels > 0) == positive) & (counts > 0))
            kept.add(first + mine, scores, mine, counts[mine])

    @property
    def thinned(self) -> bool:
        """Whether rows had to go."""
        return any(kept.every > 1 for kept in self._classes)

    def since(self, number: int) -> Scored:
        """The rows from a number on."""
        parts = [kept.since(number) for kept in self._classes]
        labels = np.repeat(np.array([-1, 1], np.int8), [len(weights) for _, weights in parts])
        scores = np.concatenate([scores for scores, _ in parts])
        return Scored(labels, scores, np.concatenate([weights for _, weights in parts]) if self._weighed else None)


class _Kept:
    """The rows of a class."""

    def __init__(self, entrants: int, room: int) -> None:
        self._numbers = np.zeros(room, np.int64)
        self._scores = np.zeros((room, entrants), np.float32)
        self._weights = np.zeros(room)
        self._size = 0
        self.every = 1
        self._seen = 0

    def add(
        self,
        numbers: NDArray[np.int64],
        scores: NDArray[np.float32],
        at: NDArray[np.intp],
        weights: NDArray[np.float64],
    ) -> None:
        """Those of the rows `at` some places of `scores` that are due."""
        room = len(self._numbers)
        done = 0
        while done < len(at):
            due = np.arange(done + -(self._seen + done) % self.every, len(at), self.every)
            if not len(due):
                break
            due = due[: room - self._size]
            here = slice(self._size, self._size + len(due))
            self._numbers[here], self._weights[here] = numbers[due], weights[due]
            self._scores[here] = scores[at[due]]
            self._size = here.stop
            done = int(due[-1]) + 1
            if self._size == room:
                self._thin()
        self._seen += len(at)

    def _thin(self) -> None:
        half = -(-self._size // 2)
        for part in (self._numbers, self._scores, self._weights):
            part[:half] = part[: self._size : 2].copy()
        self._size = half
        self.every *= 2

    def since(self, number: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        first = int(np.searchsorted(self._numbers[: self._size], number))
        return self._scores[first : self._size], self._weights[first : self._size]
