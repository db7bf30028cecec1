"""Group AUC: the AUC within each group of rows, such as those of one user, averaged over the groups.

A model may rank users well, and the rows of each user badly; what is shown to a user follows from the latter. Only
pairs of the same group count, and a group with one class has none: it is left out, and counted. The groups are averaged
by their rows, as in [1], where the measure is that of impressions per user.

[1] Zhou et al. Deep Interest Network for Click-Through Rate Prediction. KDD 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream.errors import DataError
from rarestream.metrics.rows import valid_rows

Weight = Literal["rows", "positives", "equal"]
Floats = NDArray[np.float64]


class GroupTable(NamedTuple):
    """The groups that have both classes, in ascending order: arrays of equal length."""

    group: NDArray[Any]
    auc: Floats
    rows: Floats  # their importance, which is their number if there are none
    positives: Floats


@dataclass(frozen=True, eq=False)
class GroupAuc:
    """The result of `group_auc`.

    Attributes
    ----------
    value : float
        The mean AUC of the groups that have both classes.
    groups : int
        Number of these groups.
    left_out : int
        Number of groups with one class, which have no AUC.
    rows_left_out : int
        Number of their rows.
    weight : {"rows", "positives", "equal"}
        How the groups were weighted.
    table : GroupTable
        Arrays `group`, `auc`, `rows` and `positives` of the groups that have both classes.
    """

    value: float
    groups: int
    left_out: int
    rows_left_out: int
    weight: Weight
    table: GroupTable

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"GroupAuc({self.value:.6g}, groups={self.groups}, left_out={self.left_out}, weight={self.weight!r})"


def group_auc(
    labels: ArrayLike,
    scores: ArrayLike,
    groups: ArrayLike,
    importances: ArrayLike | None = None,
    weight: Weight = "rows",
) -> GroupAuc:
    """Compute the AUC within each group of rows, and its mean over the groups.

    Parameters
    ----------
    labels, scores, importances : array-like
        As for `auc`. Rows of importance 0 belong to no group.
    groups : array-like of shape (rows,)
        The group of each row, such as its user: numbers or text.
    weight : {"rows", "positives", "equal"}
        How much a group counts in the mean: as much as its rows (the default, as in click-through-rate prediction), as
        its positives, or as any other. With importances, rows and positives are their sums.

    Returns
    -------
    GroupAuc
        The mean, the numbers of groups and rows left out, and a table of the groups.

    Raises
    ------
    DataError
        If a row, a group or `weight` is invalid, or no group has both classes.
    """
    if weight not in get_args(Weight):
        raise DataError(f"group_auc: weight must be one of {', '.join(map(repr, get_args(Weight)))}, got {weight!r}.")
    rows = valid_rows("group_auc", labels, scores, importances)
    names, codes = _codes(groups, len(rows.labels))
    positive, numbers = rows.labels > 0, rows.scores
    if rows.importances is not None:
        counted = rows.importances > 0
        codes, positive, numbers = codes[counted], positive[counted], numbers[counted]
        weights = rows.importances[counted]
        total = np.bincount(codes, weights, len(names))
        total_pos = np.bincount(codes, weights * positive, len(names))
        # Relative to the largest of its class in its group: sums must not lose groups and classes of small importance.
        largest = np.zeros(2 * len(names))
        np.maximum.at(largest, 2 * codes + positive, weights)
        weights = weights / largest[2 * codes + positive]
    else:
        weights = None
        total = np.bincount(codes, np.ones(len(codes)), len(names))
        total_pos = np.bincount(codes, positive, len(names))
    order = np.lexsort((numbers, codes))
    codes, positive, numbers = codes[order], positive[order], numbers[order]
    aucs = _aucs(codes, numbers, positive, None if weights is None else weights[order], len(names))

    counts = np.bincount(codes, minlength=len(names))
    count_pos = np.bincount(codes, positive, len(names))
    both, there = (count_pos > 0) & (count_pos < counts), counts > 0
    if not both.any():
        raise DataError(
            f"group_auc: none of {int(there.sum()):,} groups has rows of both classes. Use larger groups, or `auc`."
        )
    shares = {"rows": total[both], "positives": total_pos[both], "equal": np.ones(int(both.sum()))}[weight]
    shares = shares / shares.max()
    return GroupAuc(
        float((aucs[both] * shares).sum() / shares.sum()),
        int(both.sum()),
        int((there & ~both).sum()),
        int(counts[~both].sum()),
        weight,
        GroupTable(names[both], aucs[both], *(sums[both].astype(np.float64) for sums in (total, total_pos))),
    )


def _codes(groups: ArrayLike, rows: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the groups in ascending order, and the number of that of each row."""
    given = np.asarray(groups)
    if given.shape != (rows,):
        raise DataError(f"group_auc: {rows} rows need groups of shape ({rows},), got {given.shape}.")
    if given.dtype.kind == "f" and np.isnan(given).any():
        row = int(np.flatnonzero(np.isnan(given))[0])
        raise DataError(f"group_auc: row {row} has the group nan. Drop such rows, or give them a group of their own.")
    try:
        names, codes = np.unique(given, return_inverse=True)
    except TypeError:
        raise DataError("group_auc: groups must be all numbers or all text, got a mix. Turn them into text.") from None
    return names, codes.reshape(-1)


def _aucs(
    codes: NDArray[np.int64],
    scores: NDArray[Any],
    positive: NDArray[np.bool_],
    weights: Floats | None,
    groups: int,
) -> Floats:
    """Return the AUC of each group, nan where a class is missing. Rows are sorted by group, then by score."""
    first = np.ones(len(codes), bool)  # of equal scores of a group
    first[1:] = (codes[1:] != codes[:-1]) | (scores[1:] != scores[:-1])
    step = np.cumsum(first) - 1
    true = np.bincount(step, positive if weights is None else weights * positive)
    false = np.bincount(step, ~positive if weights is None else weights * ~positive)
    group = codes[first]
    all_true, all_false = np.bincount(group, true, groups), np.bincount(group, false, groups)
    fresh = false.copy()  # with the negatives of the group before taken off where a group begins
    begins = np.flatnonzero(np.diff(group)) + 1
    fresh[begins] -= all_false[group[begins - 1]]
    below = np.cumsum(fresh) - false / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.bincount(group, true * below, groups) / (all_true * all_false)
    return np.clip(found, 0.0, 1.0)
