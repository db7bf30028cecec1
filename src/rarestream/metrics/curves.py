"""What else says how good a ranking of rare positives is: average precision, recall at a false-positive rate.

Both read the curve through every distinct score, from the highest down; equal
scores are one step, so the order of rows does not matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics.rows import surveyed


def average_precision(labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None) -> float:
    """The mean of precision over recall: sum of precision at each score times the recall gained there."""
    found, false = _native.tally_scores(*surveyed("average_precision", labels, scores, importances))
    so_far = np.cumsum(found)
    return float((found * (so_far / (so_far + np.cumsum(false)))).sum() / so_far[-1])


def recall_at_fpr(
    labels: ArrayLike, scores: ArrayLike, fprs: ArrayLike, importances: ArrayLike | None = None
) -> NDArray[np.float64]:
    """For each of `fprs`, the largest recall whose false-positive rate is no higher; no interpolation."""
    wanted = np.asarray(fprs, np.float64)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise DataError(f"recall_at_fpr: rates lie between 0 and 1, got {wanted}.")
    found, false = _native.tally_scores(*surveyed("recall_at_fpr", labels, scores, importances))
    recall, rate = (np.concatenate([[0.0], np.cumsum(part)]) for part in (found, false))
    recall, rate = recall / recall[-1], rate / rate[-1]
    reached: NDArray[np.float64] = recall[np.searchsorted(rate, wanted, side="right") - 1]
    return reached
