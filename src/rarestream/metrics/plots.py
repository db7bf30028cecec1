"""Curves of a ranking as few points: what a plot needs of them. Every point is one of the exact curve.

A curve through millions of scores is thinned to some hundred of its points: the two ends, and then again and again
the point that is farthest from the line drawn so far (Douglas and Peucker), so that corners stay.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics.rows import ScoredRows, valid_rows

Floats = NDArray[np.float64]

POINTS = 400  # of a curve, at most
BINS = 50  # of a histogram


class RocCurve(NamedTuple):
    """Points of a ROC curve, by descending threshold; rows with a score of at least `threshold` count as positive."""

    fpr: Floats
    recall: Floats
    threshold: Floats  # inf for the first point, (0, 0)


class PrecisionRecallCurve(NamedTuple):
    """Points of a precision-recall curve, by descending threshold. Average precision is the area below its steps."""

    recall: Floats
    precision: Floats
    threshold: Floats


class LiftCurve(NamedTuple):
    """Points of a lift curve: how many times more frequent positives are among the rows of highest score."""

    share: Floats  # of all rows that have a score of at least `threshold`
    lift: Floats
    threshold: Floats


class ScoreHistogram(NamedTuple):
    """The shares of each class in bins of equal width. Infinite scores are in the first and the last bin."""

    edges: Floats  # one more than there are bins
    positives: Floats
    negatives: Floats


def roc_curve(
    labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None, *, points: int = POINTS
) -> RocCurve:
    """Compute the ROC curve: recall against the false-positive rate, from (0, 0) to (1, 1).

    Parameters
    ----------
    labels, scores, importances : array-like
        As for `auc`.
    points : int, >= 2, default 400
        Maximum number of points.

    Returns
    -------
    RocCurve
        Arrays `fpr`, `recall` and `threshold`.

    Raises
    ------
    DataError
        If a row or `points` is invalid, or a class is missing.
    """
    return _roc(_steps("roc_curve", labels, scores, importances, points), points)


def precision_recall_curve(
    labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None, *, points: int = POINTS
) -> PrecisionRecallCurve:
    """Compute the precision-recall curve: which share of the rows above a threshold is positive.

    Parameters
    ----------
    labels, scores, importances, points
        As for `roc_curve`.

    Returns
    -------
    PrecisionRecallCurve
        Arrays `recall`, `precision` and `threshold`.

    Raises
    ------
    DataError
        As for `roc_curve`.
    """
    return _precision_recall(_steps("precision_recall_curve", labels, scores, importances, points), points)


def lift_curve(
    labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None, *, points: int = POINTS
) -> LiftCurve:
    """Compute the lift curve: the share of positives among the rows of highest score, divided by that of all rows.

    Parameters
    ----------
    labels, scores, importances, points
        As for `roc_curve`.

    Returns
    -------
    LiftCurve
        Arrays `share`, `lift` and `threshold`.

    Raises
    ------
    DataError
        As for `roc_curve`.
    """
    return _lift(_steps("lift_curve", labels, scores, importances, points), points)


def ranking_curves(
    labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None
) -> tuple[RocCurve, PrecisionRecallCurve, LiftCurve]:
    """Return all three curves of a ranking, for which the rows are sorted once."""
    steps = _steps("ranking_curves", labels, scores, importances, POINTS)
    return _roc(steps, POINTS), _precision_recall(steps, POINTS), _lift(steps, POINTS)


def score_histogram(
    labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None, *, bins: int = BINS
) -> ScoreHistogram:
    """Compute a histogram of the scores of each class, in bins of equal width.

    Parameters
    ----------
    labels, scores, importances : array-like
        As for `auc`.
    bins : int, >= 1, default 50
        Number of bins, from the smallest to the largest finite score.

    Returns
    -------
    ScoreHistogram
        Arrays `edges`, `positives` and `negatives`; the shares of a class add up to 1.

    Raises
    ------
    DataError
        If a row or `bins` is invalid, or a class is missing.
    """
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise DataError(f"score_histogram: bins must be a whole number >= 1, got {bins!r}.")
    rows = _counted(valid_rows("score_histogram", labels, scores, importances))
    numbers = rows.scores.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    parts = np.arange(bins + 1) / bins
    edges = low * (1 - parts) + high * parts  # high - low could overflow
    at = np.clip(np.searchsorted(edges, numbers, "right") - 1, 0, bins - 1)
    weights = np.ones(len(at)) if rows.importances is None else rows.importances / rows.importances.max()
    shares = []
    for mine in (rows.labels > 0, rows.labels <= 0):
        inside = np.bincount(at[mine], weights[mine], bins)
        shares.append(inside / inside.sum())
    return ScoreHistogram(edges, *shares)


class _Steps(NamedTuple):
    """For each distinct score, from the highest down: the importance of the rows with at least this score, by class."""

    true: Floats
    false: Floats
    threshold: Floats


def _steps(where: str, labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None, points: int) -> _Steps:
    if isinstance(points, bool) or not isinstance(points, int | np.integer) or points < 2:
        raise DataError(f"{where}: points must be a whole number >= 2, got {points!r}.")
    rows = _counted(valid_rows(where, labels, scores, importances))
    true, false = _native.tally_scores(*rows)
    return _Steps(np.cumsum(true), np.cumsum(false), np.unique(rows.scores)[::-1].astype(np.float64))


def _roc(steps: _Steps, points: int) -> RocCurve:
    fpr, recall = (np.concatenate([[0.0], part]) / part[-1] for part in (steps.false, steps.true))
    kept = thinned(fpr, recall, points)
    return RocCurve(fpr[kept], recall[kept], np.concatenate([[np.inf], steps.threshold])[kept])


def _precision_recall(steps: _Steps, points: int) -> PrecisionRecallCurve:
    recall, precision = steps.true / steps.true[-1], steps.true / (steps.true + steps.false)
    kept = thinned(recall, precision, points)
    return PrecisionRecallCurve(recall[kept], precision[kept], steps.threshold[kept])


def _lift(steps: _Steps, points: int) -> LiftCurve:
    rows = steps.true + steps.false
    share, lift = rows / rows[-1], (steps.true / rows) / (steps.true[-1] / rows[-1])
    kept = thinned(np.log(share), lift, points)  # the few rows of highest score matter most
    return LiftCurve(share[kept], lift[kept], steps.threshold[kept])


def _counted(rows: ScoredRows) -> ScoredRows:
    """Return the rows whose importance is not 0."""
    if rows.importances is None:
        return rows
    counted = rows.importances > 0
    return ScoredRows(rows.labels[counted], rows.scores[counted], rows.importances[counted])


def thinned(x: Floats, y: Floats, points: int) -> NDArray[np.int64]:
    """Return which points to keep of a line through many: its ends, and those farthest from the line so far.

    Distances are measured with both axes scaled to the same length. Points on the line between their neighbours are
    dropped even if there are few.
    """
    last = len(x) - 1
    if last < 2:
        return np.arange(last + 1)
    width, height = (float(np.ptp(axis)) or 1.0 for axis in (x, y))
    u, v = x / width, y / height
    kept = {0, last}

    def farthest(a: int, b: int) -> tuple[float, int, int, int]:
        """Return the point between two that is farthest from the line between them: (-distance, a, point, b)."""
        du, dv = u[b] - u[a], v[b] - v[a]
        inside_u, inside_v = u[a + 1 : b] - u[a], v[a + 1 : b] - v[a]
        length = float(np.hypot(du, dv))
        gap = np.abs(du * inside_v - dv * inside_u) / length if length else np.hypot(inside_u, inside_v)
        at = int(gap.argmax())
        return -float(gap[at]), a, a + 1 + at, b

    heap = [farthest(0, last)]
    while heap and len(kept) < points:
        gap, a, at, b = heapq.heappop(heap)
        if -gap <= 1e-12:
            break
        kept.add(at)
        for start, end in ((a, at), (at, b)):
            if end - start > 1:
                heapq.heappush(heap, farthest(start, end))
    return np.array(sorted(kept))
