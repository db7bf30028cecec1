"""Partial AUC: the part of the area under the ROC curve at low false-positive rates, which is what rare events need.

With R(x) the recall at a false-positive rate x, on straight lines between the points of the ROC curve (so a tie
counts one half, as in `auc`),

    one-way:  1 / f            * integral from 0 to f of R(x) dx
    two-way:  1 / (f (1 - r))  * integral from 0 to f of max(0, R(x) - r) dx

are 1 for a perfect ranking. McClish's standardisation [1] maps the one-way area to 1 / 2 for a random ranking:

    (1 + (A - f^2 / 2) / (f - f^2 / 2)) / 2,     A the integral itself.

[1] McClish. Analyzing a portion of the ROC curve. Medical Decision Making 9, 1989.
[2] Yang, Lu, Lyu, Hu. Two-way partial AUC and its properties. Statistical Methods in Medical Research 28, 2019.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics.rows import ScoredRows, valid_rows

Floats = NDArray[np.float64]


class Roc(NamedTuple):
    """The points of a ROC curve, from (0, 0) to (1, 1); both ascend."""

    rate: Floats  # of false positives
    recall: Floats


def partial_auc(
    labels: ArrayLike,
    scores: ArrayLike,
    max_fpr: float,
    min_recall: float | None = None,
    importances: ArrayLike | None = None,
    *,
    standardized: bool = False,
) -> float:
    """Compute the area under the ROC curve up to a false-positive rate, as a share of the largest possible one.

    Parameters
    ----------
    labels, scores, importances : array-like
        As for `auc`.
    max_fpr : float, above 0 and at most 1
        Largest false-positive rate that counts. With 1 the result is the AUC.
    min_recall : float, at least 0 and below 1, optional
        Count only the area above this recall: the two-way partial AUC.
    standardized : bool, default False
        McClish's standardisation: a random ranking has 0.5, whatever `max_fpr`, as scikit-learn's
        `roc_auc_score(max_fpr=...)` has it. Not with `min_recall`.

    Returns
    -------
    float
        The partial AUC; 1 for a perfect ranking. It is between 0 and 1; standardised, a ranking that is worse than a
        random one may be below 0.5 and, for a small `max_fpr`, no lower than just below that.

    Raises
    ------
    DataError
        If a limit or a row is invalid, or a class is missing.
    """
    rate, recall = checked_limits("partial_auc", max_fpr, min_recall)
    if standardized and min_recall is not None:
        raise DataError(
            "partial_auc: standardized is for the one-way area. Drop min_recall, or leave it as it is: "
            "the two-way area of a perfect ranking is 1."
        )
    curve = roc(valid_rows("partial_auc", labels, scores, importances))
    found = area(curve, 0.0, rate, recall)
    if standardized:
        least = rate * rate / 2
        return 0.5 * (1 + (found - least) / (rate - least))
    return min(1.0, found / (rate * (1 - recall)))


def checked_limits(where: str, max_fpr: float, min_recall: float | None) -> tuple[float, float]:
    """Return the limits of a partial AUC, or raise a DataError."""
    rate, recall = float(max_fpr), 0.0 if min_recall is None else float(min_recall)
    if not 0 < rate <= 1:
        raise DataError(f"{where}: max_fpr must be above 0 and at most 1, got {max_fpr}; 0.1 is 10 % of the negatives.")
    if not 0 <= recall < 1:
        raise DataError(f"{where}: min_recall must be at least 0 and below 1, got {min_recall}.")
    return rate, recall


def roc(rows: ScoredRows) -> Roc:
    """Return the ROC curve through every distinct score, from the highest down. Rows of importance 0 do not count."""
    true, false = _native.tally_scores(*rows)
    recall, rate = (np.concatenate([[0.0], np.cumsum(part)]) for part in (true, false))
    return Roc(rate / rate[-1], recall / recall[-1])


def area(curve: Roc, start: float, stop: float, floor: float = 0.0) -> float:
    """Return the area between a ROC curve and the height `floor`, for rates from `start` to `stop`.

    Beyond the rate 1 the curve stays at 1, and before 0 it is 0.
    """
    last = int(np.searchsorted(curve.rate, stop)) + 1
    x, y = curve.rate[:last], curve.recall[:last]
    if stop > 1:
        x, y = np.append(x, stop), np.append(y, 1.0)
    left, right = np.clip(x[:-1], start, stop), np.clip(x[1:], start, stop)
    wide = right > left
    left, right = left[wide], right[wide]
    slope = np.diff(y)[wide] / np.diff(x)[wide]
    below = y[:-1][wide] - floor
    begin, end = below + slope * (left - x[:-1][wide]), below + slope * (right - x[:-1][wide])
    height = np.where(begin >= 0, (begin + end) / 2, 0.0)  # mean height above the floor
    crossing = (begin < 0) & (end > 0)
    height[crossing] = end[crossing] ** 2 / (2 * (end - begin)[crossing])
    return float(np.sum(height * (right - left)))
