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
from rarestream.system import cores
from rarestream.threads import run_all

TOGETHER = 4  # scorers whose rows a thread places at a time
THREAD_SCORES = 1 << 14  # for fewer scores, a thread is not worth it


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
        classes = [np.flatnonzero((labels > 0) & counts), np.flatnonzero((labels <= 0) & counts)]
        self._positives = len(classes[0])
        if not all(map(len, classes)):
            raise_one_class("Standings", *map(len, classes))
        order = np.concatenate(classes)
        self._importances = None if importances is None else importances[order]
        self._placed = self._placements(labels[order], np.ascontiguousarray(scores[order]))
        self._errors: dict[int, NDArray[np.float64]] = {}
        positives = self._placed[:, : self._positives]
        if self._importances is None:
            self.aucs = np.array([one.mean() for one in positives])
        else:
            shares = _shares(self._importances[: self._positives])
            # Not positives @ shares: the order in which BLAS sums depends on the processor.
            self.aucs = np.array([(one * shares).sum() for one in positives])

    def _placements(self, labels: NDArray[np.int8], scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the placement of every row under each scorer, computed on all cores."""
        placed = np.empty(scores.shape[::-1])

        def place(first: int) -> None:
            some = placed[first : first + TOGETHER]
            _native.scorer_placements(labels, scores, self._importances, first, some)

        run_all(place, range(0, len(placed), TOGETHER), cores() if placed.size > THREAD_SCORES else 1)
        return placed

    def errors(self, other: int) -> NDArray[np.float64]:
        """Return the standard error of each AUC minus that of scorer `other`; infinite if a class has only one row."""
        if other not in self._errors:
            found = _native.placement_errors(self._positives, self._placed, self._importances, other)
            self._errors[other] = found
        return self._errors[other]


def _shares(importances: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = importances / importances.max()  # the sum of large ones could overflow
    return scaled / float(scaled.sum())
