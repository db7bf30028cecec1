"""The other measures as a textbook states them: loops over rows and pairs, written only to be read."""

from __future__ import annotations

import itertools
import math

import numpy as np
from auc_textbook import auc_of_all_pairs


def roc_points(labels, scores, importances=None):
    """The points of the ROC curve, one for each distinct score, from (0, 0)."""
    weights = np.ones(len(labels)) if importances is None else importances
    n_pos = sum(h for y, h in zip(labels, weights, strict=True) if y > 0)
    n_neg = sum(h for y, h in zip(labels, weights, strict=True) if y <= 0)
    points = [(0.0, 0.0)]
    for threshold in sorted(set(scores.tolist()), reverse=True):
        above = [(y, h) for y, s, h in zip(labels, scores, weights, strict=True) if s >= threshold]
        points.append((sum(h for y, h in above if y <= 0) / n_neg, sum(h for y, h in above if y > 0) / n_pos))
    return points


def partial_area(points, max_fpr, min_recall, slices=500):
    """The area under the lines between the points, by the middle of many slices."""
    total = 0.0
    for k in range(slices):
        x = (k + 0.5) / slices * max_fpr
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            if x0 <= x < x1:
                total += max(0.0, y0 + (y1 - y0) * (x - x0) / (x1 - x0) - min_recall)
                break
    return total / slices / (1 - min_recall)


def group_auc(labels, scores, groups, importances, weight):
    """The value, and the numbers of groups, of groups left out, and of their rows."""
    weighted = total = 0.0
    used = left_out = rows_left_out = 0
    for group in sorted(set(groups.tolist())):
        mine = (groups == group) & (importances > 0)
        if not mine.any():
            continue
        y, s, h = labels[mine], scores[mine], importances[mine]
        if len(set(y.tolist())) < 2:
            left_out += 1
            rows_left_out += len(y)
            continue
        used += 1
        share = {"rows": h.sum(), "positives": h[y > 0].sum(), "equal": 1.0}[weight]
        weighted += share * float(auc_of_all_pairs(y, s, h))
        total += share
    return weighted / total if total else math.nan, used, left_out, rows_left_out


def losses(labels, probabilities, importances):
    """Log loss and Brier score."""
    log = square = total = 0.0
    for y, p, h in zip(labels, probabilities, importances, strict=True):
        happened = min(max(p if y > 0 else 1 - p, 2.220446049250313e-16), 1 - 2.220446049250313e-16)
        log -= h * math.log(happened)
        square += h * (p - (y > 0)) ** 2
        total += h
    return log / total, square / total


def calibration_error(labels, probabilities, importances, bins, by):
    """The expected calibration error: each distinct probability is put in a bin, whole."""
    total = sum(importances)
    inside = {}
    before = 0.0
    for p in sorted(set(probabilities.tolist())):
        mine = [(y > 0, h) for y, q, h in zip(labels, probabilities, importances, strict=True) if q == p and h > 0]
        weight = sum(h for _, h in mine)
        if not mine:
            continue
        place = int(p * bins) if by == "width" else int(bins * ((before + weight / 2) / total))
        before += weight
        entry = inside.setdefault(min(place, bins - 1), [0.0, 0.0, 0.0])
        entry[0] += weight
        entry[1] += weight * p
        entry[2] += sum(h for positive, h in mine if positive)
    return sum(abs(p - positive) for _, p, positive in inside.values()) / total
