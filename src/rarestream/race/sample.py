"""Sample: an even sample of the rows of a stream, with their scores under every setting of a race.

Each class has a sample of its own, so that rare positives stay when negatives are thinned. A class that is full drops
every other row, and from then on takes every other row that arrives: the sample is spread evenly over the stream.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Scored(NamedTuple):
    """Rows, in no particular order, with the score of each under each setting."""

    labels: NDArray[np.int8]
    scores: NDArray[np.float32]
    importances: NDArray[np.float64] | None

    @property
    def fewest(self) -> int:
        """Number of rows of the rarer class."""
        positives = int(np.count_nonzero(self.labels > 0))
        return min(positives, len(self.labels) - positives)


class Sample:
    """An even sample of scored rows.

    Parameters
    ----------
    settings : int
        Number of scores per row.
    room : int
        Maximum number of rows per class.
    """

    def __init__(self, settings: int, room: int) -> None:
        self._classes = [_ClassSample(settings, room), _ClassSample(settings, room)]  # negatives, positives
        self._weighted = False

    def add(
        self,
        first: int,
        labels: NDArray[np.int8],
        scores: NDArray[np.float32],
        importances: NDArray[np.float64] | None,
    ) -> None:
        """Add the next rows of the stream; `first` is the number of the first of them."""
        self._weighted |= importances is not None
        counts = np.ones(len(labels)) if importances is None else importances
        for positive, sample in enumerate(self._classes):
            mine = np.flatnonzero(((labels > 0) == positive) & (counts > 0))
            sample.add(first + mine, scores, mine, counts[mine])

    @property
    def thinned(self) -> bool:
        """Whether rows were dropped."""
        return any(sample.every > 1 for sample in self._classes)

    def since(self, number: int) -> Scored:
        """Return the rows from this number on."""
        parts = [sample.since(number) for sample in self._classes]
        labels = np.repeat(np.array([-1, 1], np.int8), [len(weights) for _, weights in parts])
        scores = np.concatenate([scores for scores, _ in parts])
        return Scored(labels, scores, np.concatenate([weights for _, weights in parts]) if self._weighted else None)


class _ClassSample:
    """The sample of one class."""

    def __init__(self, settings: int, room: int) -> None:
        self._numbers = np.zeros(room, np.int64)
        self._scores = np.zeros((room, settings), np.float32)
        self._weights = np.zeros(room)
        self._size = 0
        self.every = 1  # every n-th row of the class is taken
        self._seen = 0

    def add(
        self,
        numbers: NDArray[np.int64],
        scores: NDArray[np.float32],
        at: NDArray[np.intp],
        weights: NDArray[np.float64],
    ) -> None:
        """Add every n-th of the rows at places `at` of `scores`."""
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
