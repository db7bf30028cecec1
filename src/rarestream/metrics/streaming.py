"""StreamingAuc: the AUC of all rows so far, in bounded memory, with a certified bound on its error.

Each class has a sketch of the order of its scores. The newest 32768 rows of a
class are kept unchanged. When there are that many, they are sorted, and every four
neighbours are replaced by one of the middle two: a run of 8192 points. Eight runs
of a level are merged into one of the next level in the same way. A threshold splits
at most one group of neighbours in each collapse, so the rank of any threshold
changes by less than half a group per collapse, which is less than 1 / 16384 of the
class per level. The AUC is a mean rank: its error is at most the sum of those of the
classes. Only comparisons are used, so the scale of the scores does not matter.

The proof, and the case of unequal importances, are in docs/metrics.md; the code is
in native/rank_sketch.hpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics.estimate import Estimate, Placements, checked_level, interval, unknown
from rarestream.metrics.rows import ScoredRows, as_rows, raise_fault

State = dict[str, NDArray[Any]]


class StreamingAuc:
    """AUC of a stream in bounded memory, a tie counting one half.

    `add` blocks of rows, and read `auc` at any time. It is exact while each class has fewer than 32768 rows, and
    certainly within `auc.bound` afterwards. How rows are divided into blocks makes no difference. It needs a few
    megabytes at most, and may be shared between threads.
    """

    __slots__ = ("_sketch",)

    def __init__(self) -> None:
        self._sketch = _native.StreamingSketch()

    def add(self, labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None) -> None:
        """Add rows.

        Parameters
        ----------
        labels : array-like of shape (rows,)
            -1 and +1, 0 and 1, or booleans.
        scores : array-like of shape (rows,)
            Any numbers except nan.
        importances : array-like of shape (rows,), optional
            0, or between 1e-100 and 1e100. A row of importance 0 is ignored. By default 1.

        Raises
        ------
        DataError
            If a row is invalid. No row is added then.
        """
        rows = as_rows("StreamingAuc.add", labels, scores, importances)
        self.count(rows, labels)

    def count(self, rows: ScoredRows, labels: ArrayLike | None = None) -> None:
        """Add rows that are in the types of the core. `labels` are the original ones, for an error message."""
        fault, row = self._sketch.add(*rows)
        if fault:
            raise_fault("StreamingAuc.add", fault, row, rows.labels if labels is None else labels, rows)

    def merge(self, other: StreamingAuc) -> None:
        """Add all rows of another StreamingAuc. The bound is that of a single stream of all rows.

        Parameters
        ----------
        other : StreamingAuc
            It does not change.
        """
        self._sketch.merge(other._sketch)

    @property
    def auc(self) -> Estimate:
        """AUC so far, with its 95 % interval; nan, with the interval [0, 1], while a class is missing."""
        return self.estimate()

    def estimate(self, level: float = 0.95) -> Estimate:
        """Return the AUC so far with a confidence interval: DeLong's, widened by the certified bound.

        Scores made while learning come from a changing model and are not independent, so for progressive AUC the
        interval is an approximation. The bound is not.

        Parameters
        ----------
        level : float, between 0 and 1, default 0.95
            Confidence level.

        Returns
        -------
        Estimate
            nan, with the interval [0, 1], while a class is missing.

        Raises
        ------
        DataError
            If `level` is not between 0 and 1.
        """
        checked_level(level)
        (rows_pos, weight_pos, squares_pos) = self._sketch.totals(True)
        (rows_neg, weight_neg, squares_neg) = self._sketch.totals(False)
        if not (rows_pos and rows_neg):
            return unknown(level)
        auc, spread_pos, spread_neg, bound = self._sketch.placed()
        n_pos = _effective(rows_pos, weight_pos, squares_pos)
        n_neg = _effective(rows_neg, weight_neg, squares_neg)
        return interval(Placements(auc, spread_pos, spread_neg, n_pos, n_neg), level, bound)

    @property
    def n_pos(self) -> int:
        """Number of positive rows."""
        return self._sketch.totals(True)[0]

    @property
    def n_neg(self) -> int:
        """Number of negative rows."""
        return self._sketch.totals(False)[0]

    @property
    def weight_pos(self) -> float:
        """Sum of the importances of positive rows."""
        return self._sketch.totals(True)[1]

    @property
    def weight_neg(self) -> float:
        """Sum of the importances of negative rows."""
        return self._sketch.totals(False)[1]

    def state(self) -> State:
        """Return the complete state, for `from_state`.

        Returns
        -------
        dict of str to array
            Named arrays; small after few rows.
        """
        return self._sketch.state()

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> StreamingAuc:
        """Return the StreamingAuc with this state, bit for bit.

        Parameters
        ----------
        state : mapping of str to array
            What `state()` returned.

        Returns
        -------
        StreamingAuc
            It continues as the original would.

        Raises
        ------
        DataError
            If the state is invalid.
        """
        self = cls()
        try:
            self._sketch.load({name: np.asarray(array) for name, array in state.items()})
        except ValueError as error:
            raise DataError(f"StreamingAuc.from_state: {error}. Pass what state() returned.") from None
        return self

    def __getstate__(self) -> State:
        return self.state()

    def __setstate__(self, state: State) -> None:
        self._sketch = type(self).from_state(state)._sketch

    def __repr__(self) -> str:
        return f"StreamingAuc(auc={self.auc}, n_pos={self.n_pos}, n_neg={self.n_neg})"


def _effective(rows: int, weight: float, squares: float) -> float:
    """Return the effective number of rows. The squares of tiny importances may have underflowed."""
    return min(float(rows), max(1.0, weight * (weight / squares))) if squares > 0 else float(rows)
