"""StreamingAuc: the AUC of all rows so far, in bounded memory, with a certified bound on its error.

Each class keeps a sketch of the order of its scores. The newest 32768 rows of a
class are kept as they are. Full, they are sorted, and every four neighbours are
replaced by one of the middle two: a run of 8192 points. Eight runs of a level
merge and thin into one of the next level in the same way. A threshold cuts at
most one group of neighbours in each collapse, so the rank of any threshold is
off by less than half a group a collapse, which is under 1 / 16384 of the class a
level. The AUC is a mean rank: its error is at most the sum of both classes'.
Only comparisons are used, so the scale of the scores does not matter.

The proof, and the case of unequal importances, stand in docs/metrics.md; the
core in native/sketch.hpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics.estimate import Estimate, Placements, checked_level, interval, unknown
from rarestream.metrics.rows import Rows, refuse, rows_of

State = dict[str, NDArray[Any]]


class StreamingAuc:
    """AUC of a stream, ties half: `add` blocks of rows, read `auc` at any time.

    Exact while each class has fewer than 32768 rows; then within `auc.bound` for certain. Where blocks
    are cut does not matter. Two streams' sketches `merge` into one. At most a few megabytes, and
    safe to share between threads.
    """

    __slots__ = ("_sketch",)

    def __init__(self) -> None:
        self._sketch = _native.StreamingSketch()

    def add(self, labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None) -> None:
        """Counts rows: labels -1/+1 or 0/1, scores, and importances (default 1; 0 skips the row)."""
        rows = rows_of("StreamingAuc.add", labels, scores, importances)
        self.count(rows, labels)

    def count(self, rows: Rows, labels: ArrayLike | None = None) -> None:
        """`add` for rows in the core's types; `labels` as they came, for the message if one is refused."""
        fault, row = self._sketch.add(*rows)
        if fault:
            refuse("StreamingAuc.add", fault, row, rows.labels if labels is None else labels, rows)

    def merge(self, other: StreamingAuc) -> None:
        """Counts all rows the other has counted; the bounds add up as if they had been one stream."""
        self._sketch.merge(other._sketch)

    @property
    def auc(self) -> Estimate:
        """The AUC so far; nan, with the interval [0, 1], while a class is missing. See `estimate`."""
        return self.estimate()

    def estimate(self, level: float = 0.95) -> Estimate:
        """The AUC with a confidence interval: DeLong's on the sketch, widened by the certified bound.

        Scores made while learning come from changing models and are not independent, so for
        progressive AUC the interval is an approximation; the bound is not.
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
        """Positive rows counted."""
        return self._sketch.totals(True)[0]

    @property
    def n_neg(self) -> int:
        """Negative rows counted."""
        return self._sketch.totals(False)[0]

    @property
    def weight_pos(self) -> float:
        """The sum of the positive rows' importances."""
        return self._sketch.totals(True)[1]

    @property
    def weight_neg(self) -> float:
        """The sum of the negative rows' importances."""
        return self._sketch.totals(False)[1]

    def state(self) -> State:
        """All there is to know, as named arrays; small while few rows were counted."""
        return self._sketch.state()

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> StreamingAuc:
        """The StreamingAuc whose `state()` this is, bit for bit."""
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
    """How many rows of equal importance they count as; squares of tiny importances may have vanished."""
    return min(float(rows), max(1.0, weight * (weight / squares))) if squares > 0 else float(rows)
