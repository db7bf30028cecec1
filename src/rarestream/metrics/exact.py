"""AUC of rows that are all there: the share of (positive, negative) pairs ranked right, a tie counting half.

    auc = P(s+ > s-) + P(s+ = s-) / 2

Pairs are counted in integers by native/auc.hpp, so the result is exact. With
importances a pair weighs the product of its rows' importances, summed in double
precision with the rounding carried along. The interval is explained in
estimate.py; the comparison of two scorers on the same rows is DeLong's, with the
differences of the placements in place of the placements.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.metrics import student
from rarestream.metrics.estimate import Difference, Estimate, Placements, checked_level, interval, welch
from rarestream.metrics.rows import Rows, one_class, refuse, rows_of, surveyed


def auc(labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None) -> float:
    """The exact AUC of scores, ties half.

    Labels are -1/+1, 0/1 or booleans; scores any numbers but nan (infinite ones rank first and
    last); importances are finite and >= 0, and a row of importance 0 does not count. Both
    classes must be there.
    """
    rows = rows_of("auc", labels, scores, importances, narrow=True)
    fault, row, n_pos, n_neg, value = _native.exact_auc(*rows)
    if fault:
        refuse("auc", fault, row, labels, rows)
    if not (n_pos and n_neg):
        one_class("auc", n_pos, n_neg)
    return value


def auc_interval(
    labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None, level: float = 0.95
) -> Estimate:
    """The exact AUC with its confidence interval: DeLong's variance, within [0, 1] (see estimate.py)."""
    checked_level(level)
    rows = surveyed("auc_interval", labels, scores, importances)
    value, spread_pos, spread_neg = _native.exact_placed(*rows)
    n_pos, n_neg = _effective_rows(rows)
    return interval(Placements(value, spread_pos, spread_neg, n_pos, n_neg), level)


def auc_difference(
    labels: ArrayLike,
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    importances: ArrayLike | None = None,
    level: float = 0.95,
) -> Difference:
    """AUC of `scores_a` less that of `scores_b` on the same rows, with `.p_value` too (DeLong, paired).

    With less than two rows in a class, or rows that all differ alike, the data cannot tell how sure the
    difference is: the interval is then [-1, 1] and the p-value nan.
    """
    checked_level(level)
    a = surveyed("auc_difference", labels, scores_a, importances)
    b = surveyed("auc_difference", labels, scores_b, importances)
    gap = _native.placements(*a) - _native.placements(*b)
    value = _native.exact_auc(*a)[4] - _native.exact_auc(*b)[4]
    variance, freedom = welch(Placements(value, _spread(gap, a, True), _spread(gap, a, False), *_effective_rows(a)))
    if not gap.any():
        return Difference(0.0, 0.0, 0.0, 0.0, level, p_value=1.0)
    if variance <= 0:
        return Difference(value, -1.0, 1.0, 0.0, level, p_value=math.nan)
    error = math.sqrt(variance)
    half = student.quantile((1 + level) / 2, freedom) * error
    p_value = 2 * student.cdf(-abs(value) / error, freedom)
    return Difference(value, max(-1.0, value - half), min(1.0, value + half), 0.0, level, p_value=p_value)


def _spread(values: NDArray[np.float64], rows: Rows, positive: bool) -> float:
    mine = (rows.labels > 0) == positive
    weights = None if rows.importances is None else rows.importances[mine] / rows.importances[mine].max()
    mean = np.average(values[mine], weights=weights)
    return float(np.average((values[mine] - mean) ** 2, weights=weights))


def _effective_rows(rows: Rows) -> tuple[float, float]:
    """Positives and negatives: how many rows of equal importance they count as."""
    positive = rows.labels > 0
    if rows.importances is None:
        n_pos = int(np.count_nonzero(positive))
        return float(n_pos), float(len(positive) - n_pos)
    return _effective(rows.importances[positive]), _effective(rows.importances[~positive])


def _effective(importances: NDArray[np.float64]) -> float:
    """(sum h)^2 / sum h^2, whatever the scale of h."""
    scaled = importances / importances.max()
    return float(scaled.sum() ** 2 / np.square(scaled).sum())
