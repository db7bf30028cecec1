"""AUC and its variance as a textbook states them: slow, plain NumPy, written only to be read."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def auc_of_all_pairs(labels, scores, importances=None):
    """Every (positive, negative) pair looked at, in exact fractions."""
    labels, scores = np.asarray(labels), np.asarray(scores)
    weights = [Fraction(h) for h in (np.ones(len(labels)) if importances is None else importances)]
    won = total = Fraction(0)
    for i in np.flatnonzero(labels > 0):
        for j in np.flatnonzero(labels <= 0):
            pair = weights[i] * weights[j]
            won += pair * Fraction(int(scores[i] > scores[j]) * 2 + int(scores[i] == scores[j]), 2)
            total += pair
    return won / total


def auc_by_sorting(labels, scores):
    """The same for many rows: each positive's place among the sorted negatives, counted in integers."""
    positive = np.asarray(labels) > 0
    negatives = np.sort(np.asarray(scores)[~positive])
    mine = np.asarray(scores)[positive]
    below = int(np.searchsorted(negatives, mine, "left").astype(np.int64).sum())
    upto = int(np.searchsorted(negatives, mine, "right").astype(np.int64).sum())
    return (below + upto) / (2 * len(mine) * len(negatives))


def placements(labels, scores):
    """V10 of the positives and V01 of the negatives (DeLong et al., 1988)."""
    positive = np.asarray(labels) > 0
    x, y = np.asarray(scores)[positive], np.asarray(scores)[~positive]
    psi = (x[:, None] > y[None, :]) + 0.5 * (x[:, None] == y[None, :])
    return psi.mean(axis=1), psi.mean(axis=0)


def delong_variance(labels, scores):
    v10, v01 = placements(labels, scores)
    return v10.var(ddof=1) / len(v10) + v01.var(ddof=1) / len(v01)


def delong_variance_of_difference(labels, a, b):
    """The variance, and its degrees of freedom after Welch and Satterthwaite."""
    (a10, a01), (b10, b01) = placements(labels, a), placements(labels, b)
    contrast = np.array([1.0, -1.0])
    pos = contrast @ np.cov(a10, b10) @ contrast / len(a10)
    neg = contrast @ np.cov(a01, b01) @ contrast / len(a01)
    return pos + neg, (pos + neg) ** 2 / (pos**2 / (len(a10) - 1) + neg**2 / (len(a01) - 1))
