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

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics.estimate import Bounded, Estimate, Placements, checked_level, interval, unknown
from rarestream.metrics.rows import ScoredRows, as_rows, raise_fault

if TYPE_CHECKING:
    from rarestream.metrics.partial import Roc

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

    def partial(self, max_fpr: float, min_recall: float | None = None) -> Bounded:
        """Return the partial AUC so far, as `partial_auc` computes it, with certified limits.

        Parameters
        ----------
        max_fpr : float, above 0 and at most 1
            Largest false-positive rate that counts. The smaller it is, the wider the limits: the ranks of negatives
            are known to about a ten-thousandth of their number.
        min_recall : float, at least 0 and below 1, optional
            Count only the area above this recall.

        Returns
        -------
        Bounded
            The value, and between which numbers the exact one certainly lies; all three are the same while each class
            has fewer than 32768 rows. nan, with the limits 0 and 1, while a class is missing.

        Raises
        ------
        DataError
            If a limit is not in its range.
        """
        from rarestream.metrics.partial import area, checked_limits

        rate, recall = checked_limits("StreamingAuc.partial", max_fpr, min_recall)
        pos, neg, curve = self._curve()
        if curve is None:
            return Bounded(math.nan, 0.0, 1.0)
        whole = rate * (1 - recall)
        value = min(1.0, area(curve, 0.0, rate, recall) / whole)
        low = area(curve, 0.0, rate - neg.too_high, recall + pos.too_low) / whole if rate > neg.too_high else 0.0
        high = area(curve, neg.too_low, rate + neg.too_low, recall - pos.too_high) / whole
        return Bounded(value, max(0.0, min(low, value)), min(1.0, max(high, value)))

    def recall_at_fpr(self, fpr: float) -> Bounded:
        """Return the largest recall at a false-positive rate, as `recall_at_fpr` computes it, with certified limits.

        Parameters
        ----------
        fpr : float, between 0 and 1
            Maximum false-positive rate.

        Returns
        -------
        Bounded
            As for `partial`.

        Raises
        ------
        DataError
            If the rate is not between 0 and 1.
        """
        if not 0 <= fpr <= 1:
            raise DataError(f"StreamingAuc.recall_at_fpr: fpr must be between 0 and 1, got {fpr}.")
        pos, neg, curve = self._curve()
        if curve is None:
            return Bounded(math.nan, 0.0, 1.0)
        # The slack is that of the sums of the weights, whose last digits decide whether a rate is reached.
        slack = 1e-12 * (neg.too_low + neg.too_high > 0)
        reached = np.searchsorted(curve.rate, [fpr - neg.too_high - slack, fpr, fpr + neg.too_low + slack], "right") - 1
        low, value, high = (float(curve.recall[at]) if at >= 0 else 0.0 for at in reached.tolist())
        return Bounded(value, max(0.0, low - pos.too_low), min(1.0, high + pos.too_high))

    def average_precision(self) -> Bounded:
        """Return the average precision so far, as `average_precision` computes it, with certified limits.

        Returns
        -------
        Bounded
            As for `partial`. The limits are narrow only if positives are many more than about a ten-thousandth of the
            negatives, which is how well the number of false positives is known.
        """
        from rarestream.metrics.curves import average_precision_limits

        pos, neg, curve = self._curve()
        if curve is None:
            return Bounded(math.nan, 0.0, 1.0)
        totals = float(pos.weights.sum()), float(neg.weights.sum())
        value, low, high = average_precision_limits(*curve, totals, pos.errors, neg.errors)
        return Bounded(value, max(0.0, min(low, value)), min(1.0, max(high, value)))

    def _curve(self) -> tuple[_Points, _Points, Roc | None]:
        """Return the points of both classes, and the ROC curve through them; None while a class is missing.

        By how much the curve may be off, and why, is in docs/metrics.md.
        """
        from rarestream.metrics.partial import roc

        state = self.state()
        pos, neg = (_Points.of(state, name) for name in ("pos", "neg"))
        if not (len(pos.scores) and len(neg.scores)):
            return pos, neg, None
        labels = np.repeat(np.array([1, -1], np.int8), [len(pos.scores), len(neg.scores)])
        scores, weights = (np.concatenate(part) for part in zip(pos[:2], neg[:2], strict=True))
        return pos, neg, roc(ScoredRows(labels, scores, weights))

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


class _Points(NamedTuple):
    """The points of the sketch of a class, and by how much, as shares of its weight, its ranks may be off."""

    scores: NDArray[np.float64]
    weights: NDArray[np.float64]
    too_low: float
    too_high: float

    @property
    def errors(self) -> tuple[float, float]:
        return self.too_low, self.too_high

    @classmethod
    def of(cls, state: State, name: str) -> _Points:
        """Return those of the class `name` in what `state()` returned."""
        kept, at = state[f"{name}_weights"], 0
        weights = [np.zeros(0)]
        for level, points, weighted in state[f"{name}_runs"].reshape(-1, 3).tolist():
            # A point of level l stands for 4 * 8^(l - 1) rows: native/rank_sketch.hpp.
            each = 2.0 ** (3 * level - 1) if level else 1.0
            weights.append(kept[at : at + points] if weighted else np.full(points, each))
            at += points if weighted else 0
        joined = np.concatenate(weights)
        total = float(joined.sum()) or 1.0
        _, _, too_low, too_high = state[f"{name}_sums"].tolist()
        return cls(state[f"{name}_scores"], joined, too_low / total, too_high / total)


def _effective(rows: int, weight: float, squares: float) -> float:
    """Return the effective number of rows. The squares of tiny importances may have underflowed."""
    return min(float(rows), max(1.0, weight * (weight / squares))) if squares > 0 else float(rows)
