"""Average precision, and recall at a false-positive rate: metrics for rare positives.

Both follow the curve through every distinct score, from the highest down; equal
scores are one step, so the order of rows does not matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics.rows import valid_rows

Floats = NDArray[np.float64]


def average_precision(labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None) -> float:
    """Compute average precision: the sum over all scores of precision times the gain in recall.

    Parameters
    ----------
    labels, scores, importances : array-like
        As for `auc`.

    Returns
    -------
    float
        The average precision, between 0 and 1.

    Raises
    ------
    DataError
        As for `auc`.
    """
    true, false = _native.tally_scores(*valid_rows("average_precision", labels, scores, importances))
    so_far = np.cumsum(true)
    return float((true * (so_far / (so_far + np.cumsum(false)))).sum() / so_far[-1])


def recall_at_fpr(
    labels: ArrayLike, scores: ArrayLike, fprs: ArrayLike, importances: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Compute the largest recall at given false-positive rates, without interpolation.

    Parameters
    ----------
    labels, scores, importances : array-like
        As for `auc`.
    fprs : array-like, between 0 and 1
        Maximum false-positive rates.

    Returns
    -------
    array
        The recall at each rate.

    Raises
    ------
    DataError
        If a rate or a row is invalid, or a class is missing.
    """
    wanted = np.asarray(fprs, np.float64)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise DataError(f"recall_at_fpr: rates must be between 0 and 1, got {wanted}.")
    true, false = _native.tally_scores(*valid_rows("recall_at_fpr", labels, scores, importances))
    recall, rate = (np.concatenate([[0.0], np.cumsum(part)]) for part in (true, false))
    recall, rate = recall / recall[-1], rate / rate[-1]
    reached: NDArray[np.float64] = recall[np.searchsorted(rate, wanted, side="right") - 1]
    return reached


def average_precision_limits(
    rate: Floats,
    recall: Floats,
    totals: tuple[float, float],
    errors_pos: tuple[float, float],
    errors_neg: tuple[float, float],
) -> tuple[float, float, float]:
    """Return the average precision of a ROC curve that is not exact, and two numbers that the exact one is between.

    The proof is in docs/metrics.md.

    Parameters
    ----------
    rate, recall : array
        The curve, from (0, 0) to (1, 1).
    totals : tuple of float
        Importance of all positives, and of all negatives.
    errors_pos, errors_neg : tuple of float
        By how much, as shares, the number of positives and of negatives above a threshold may be too high (as the
        ranks of a sketch are too low), and too low.
    """
    (low_pos, high_pos), (low_neg, high_neg) = errors_pos, errors_neg

    def precision(true: Floats, false: Floats) -> Floats:
        true, false = totals[0] * true, totals[1] * false
        both = true + false
        return np.divide(true, both, out=np.ones_like(both), where=both > 0)

    value = float((precision(recall[1:], rate[1:]) * np.diff(recall)).sum())
    # Between two neighbouring breakpoints the same points of the curve may be those of a recall r.
    ends = np.unique(np.clip(np.concatenate([[0.0, 1.0], recall + high_pos, recall - low_pos]), 0, 1))
    begin, width = ends[:-1], np.diff(ends)
    middle = begin + width / 2
    slack = 1e-14 * (low_pos + high_pos > 0)  # of the rounding of recalls
    first = np.searchsorted(recall, middle - high_pos - slack)
    last = np.minimum(np.searchsorted(recall, middle + low_pos + slack), len(recall) - 1)
    most = precision(np.minimum(1.0, recall + high_pos), np.maximum(0.0, rate - low_neg))
    # The recall is at least r, and at least what is left of the point's own.
    false = np.minimum(1.0, rate + high_neg)
    high = float((_range_max(most, first, last) * width).sum())
    by_point = _range_max(-precision(np.maximum(0.0, recall - low_pos), false), first, last)
    by_recall = precision(begin, _range_max(false, first, last))
    return value, float((np.maximum(-by_point, by_recall) * width).sum()), high


def _range_max(values: Floats, first: NDArray[np.int64], last: NDArray[np.int64]) -> Floats:
    """Return the largest of `values[first : last + 1]` for each pair: by maxima of ranges whose lengths double."""
    size = last - first + 1
    level = np.frexp(size)[1] - 1  # floor(log2(size))
    found = np.empty(len(first))
    maxima = values
    for exponent in range(int(level.max()) + 1):
        mine = level == exponent
        found[mine] = np.maximum(maxima[first[mine]], maxima[last[mine] + 1 - (1 << exponent)])
        step = 1 << exponent
        maxima = np.maximum(maxima[:-step], maxima[step:]) if len(maxima) > step else maxima
    return found
