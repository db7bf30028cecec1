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
