"""Standings: the AUCs of several scorers on the same rows, and the standard errors of their differences.

The comparison is DeLong's, as in exact.py: the variance of the difference of two AUCs is that of the
differences of their placements. Placements are computed once for each scorer, which takes a sort; any two
can then be compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.metrics.rows import raise_one_class


class Standings:
    """The AUCs of the columns of `scores`, ties counting one half, and the standard errors of their differences.

    Parameters
    ----------
    labels : array of shape (rows,)
        -1 and +1.
    scores : array of shape (rows, scorers)
        One column for each scorer.
    importances : array of shape (rows,), optional
        Rows of importance 0 do not count.
    """

    def __init__(
        self,
        labels: NDArray[np.int8],
        scores: NDArray[np.floating],
        importances: NDArray[np.float64] | None = None,
    ) -> None:
        counts = np.ones(len(labels), bool) if importances is None else importances > 0
        classes = [(labels > 0) & counts, (labels <= 0) & counts]
        if not (classes[0].any() and classes[1].any()):
            raise_one_class("Standings", *(int(mine.sum()) for mine in classes))
        self._classes = [_Class(mine, importances) for mine in classes]
        self._placed = [
            _native.placements(labels, np.ascontiguousarray(scores[:, one]), importances)
            for one in range(scores.shape[1])
        ]
        self.aucs = np.array([self._classes[0].mean(placed) for placed in self._placed])

    def errors(self, other: int) -> NDArray[np.float64]:
        """Return the standard error of each AUC minus that of scorer `other`; infinite if a class has only one row."""
        return np.array([self._error(placed - self._placed[other]) for placed in self._placed])

    def _error(self, gap: NDArray[np.float64]) -> float:
        if not gap.any():  # the same ranking: no difference, however few the rows
            return 0.0
        return float(np.sqrt(sum(one.variance(gap) for one in self._classes)))


class _Class:
    """The rows of a class, and their effective number."""

    def __init__(self, mine: NDArray[np.bool_], importances: NDArray[np.float64] | None) -> None:
        self._mine = np.flatnonzero(mine)
        self._weights = None if importances is None else _shares(importances[self._mine])
        self._rows = float(len(self._mine)) if self._weights is None else 1 / float(np.square(self._weights).sum())

    def mean(self, values: NDArray[np.float64]) -> float:
        mine = values[self._mine]
        # Not mine @ weights: the order in which BLAS sums depends on the processor.
        return float(mine.mean() if self._weights is None else (mine * self._weights).sum())

    def variance(self, values: NDArray[np.float64]) -> float:
        """Return the variance of the mean of the values; infinite for one row."""
        if self._rows <= 1:
            return float("inf")
        return self.mean(np.square(values - self.mean(values))) / (self._rows - 1)


def _shares(importances: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = importances / importances.max()  # the sum of large ones could overflow
    return scaled / float(scaled.sum())
