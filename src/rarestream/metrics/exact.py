"""Exact AUC: the share of (positive, negative) pairs that are ranked correctly, a tie counting one half.

    auc = P(s+ > s-) + P(s+ = s-) / 2

Pairs are counted in integers by native/auc.hpp, so the result is exact. With
importances the weight of a pair is the product of its rows' importances, summed in
double precision with compensated rounding. The interval is explained in
estimate.py; the comparison of two scorers on the same rows is DeLong's, with the
differences of the placements instead of the placements.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.metrics import student
from rarestream.metrics.estimate import Difference, Estimate, Placements, checked_level, interval, welch
from rarestream.metrics.rows import ScoredRows, as_rows, raise_fault, raise_one_class, valid_rows


def auc(labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None) -> float:
    """Compute the exact AUC of scores, a tie counting one half.

    Parameters
    ----------
    labels : array-like of shape (rows,)
        -1 and +1, 0 and 1, or booleans.
    scores : array-like of shape (rows,)
        Any numbers except nan; infinite ones rank first and last.
    importances : array-like of shape (rows,), optional
        Finite and >= 0. A row of importance h counts as h rows. By default 1.

    Returns
    -------
    float
        The AUC, between 0 and 1.

    Raises
    ------
    DataError
        If a row is invalid, or a class is missing.
    """
    rows = as_rows("auc", labels, scores, importances, narrow=True)
    fault, row, n_pos, n_neg, value = _native.exact_auc(*rows)
    if fault:
        raise_fault("auc", fault, row, labels, rows)
    if not (n_pos and n_neg):
        raise_one_class("auc", n_pos, n_neg)
    return value


def auc_interval(
    labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None, level: float = 0.95
) -> Estimate:
    """Compute the exact AUC with a confidence interval, based on DeLong's variance and within [0, 1].

    Parameters
    ----------
    labels, scores, importances : array-like
        As for `auc`.
    level : float, between 0 and 1, default 0.95
        Confidence level.

    Returns
    -------
    Estimate
        The AUC, with `low` and `high`.

    Raises
    ------
    DataError
        If a row or the level is invalid, or a class is missing.
    """
    checked_level(level)
    rows = valid_rows("auc_interval", labels, scores, importances)
    value, spread_pos, spread_neg = _native.exact_placed(*rows)
    n_pos, n_neg = effective_rows(rows)
    return interval(Placements(value, spread_pos, spread_neg, n_pos, n_neg), level)


def auc_difference(
    labels: ArrayLike,
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    importances: ArrayLike | None = None,
    level: float = 0.95,
) -> Difference:
    """Compute the AUC of `scores_a` minus that of `scores_b` on the same rows (DeLong's paired comparison).

    Parameters
    ----------
    labels, importances : array-like
        As for `auc`.
    scores_a, scores_b : array-like
        The scores of two scorers for the same rows.
    level : float, between 0 and 1, default 0.95
        Confidence level.

    Returns
    -------
    Difference
        The difference, with `low`, `high` and `p_value`. If a class has fewer than two rows, or all rows differ by the
        same amount, the variance is not known: the interval is then [-1, 1] and the p-value nan.

    Raises
    ------
    DataError
        If a row or the level is invalid, or a class is missing.
    """
    checked_level(level)
    a = valid_rows("auc_difference", labels, scores_a, importances)
    b = valid_rows("auc_difference", labels, scores_b, importances)
    gap = _native.placements(*a) - _native.placements(*b)
    value = _native.exact_auc(*a)[4] - _native.exact_auc(*b)[4]
    variance, freedom = welch(Placements(value, _spread(gap, a, True), _spread(gap, a, False), *effective_rows(a)))
    if not gap.any():
        return Difference(0.0, 0.0, 0.0, 0.0, level, p_value=1.0)
    if variance <= 0:
        return Difference(value, -1.0, 1.0, 0.0, level, p_value=math.nan)
    error = math.sqrt(variance)
    half = student.quantile((1 + level) / 2, freedom) * error
    p_value = 2 * student.cdf(-abs(value) / error, freedom)
    return Difference(value, max(-1.0, value - half), min(1.0, value + half), 0.0, level, p_value=p_value)


def _spread(values: NDArray[np.float64], rows: ScoredRows, positive: bool) -> float:
    mine = (rows.labels > 0) == positive
    weights = None if rows.importances is None else rows.importances[mine] / rows.importances[mine].max()
    mean = np.average(values[mine], weights=weights)
    return float(np.average((values[mine] - mean) ** 2, weights=weights))


def effective_rows(rows: ScoredRows) -> tuple[float, float]:
    """Return the effective numbers of positives and negatives."""
    positive = rows.labels > 0
    if rows.importances is None:
        n_pos = int(np.count_nonzero(positive))
        return float(n_pos), float(len(positive) - n_pos)
    return _effective(rows.importances[positive]), _effective(rows.importances[~positive])


def _effective(importances: NDArray[np.float64]) -> float:
    """Return (sum h)^2 / sum h^2, without overflow whatever the scale of h."""
    scaled = importances / importances.max()
    return float(scaled.sum() ** 2 / np.square(scaled).sum())
