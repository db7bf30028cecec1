"""AUC of several classes: Hand and Till's M, over pairs of classes, and the mean of each class against all others.

A(i | j) is the share of pairs of a row of class i and one of class j that the score of class i ranks correctly, a tie
counting one half. M is the mean of A(i | j) over all ordered pairs of classes [1]: it does not depend on how frequent
the classes are. The AUC of a class against the rest does.

[1] Hand, Till. A simple generalisation of the area under the ROC curve for multiple class classification problems.
    Machine Learning 45, 2001.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream.blocks import numeric
from rarestream.errors import DataError
from rarestream.metrics.exact import auc

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassesAuc:
    """The result of `pairwise_auc`.

    Attributes
    ----------
    value : float
        Hand and Till's M: the mean of `matrix`, without its diagonal.
    one_vs_rest : float
        The mean of `per_class`.
    classes : array of shape (classes,)
        The classes, in the order of the columns of the scores.
    matrix : array of shape (classes, classes)
        At (i, j) the AUC of the score of class i for the rows of class i against those of class j. The diagonal is nan.
    per_class : array of shape (classes,)
        The AUC of the score of each class for its rows against all others.
    left_out : list
        Classes without rows. Their entries are nan, and no mean has them.
    """

    value: float
    one_vs_rest: float
    classes: NDArray[Any]
    matrix: Floats
    per_class: Floats
    left_out: list[Any]

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        classes = len(self.classes) - len(self.left_out)
        return f"ClassesAuc({self.value:.6g}, one_vs_rest={self.one_vs_rest:.6g}, {classes} classes)"


def pairwise_auc(
    labels: ArrayLike, scores: ArrayLike, classes: ArrayLike | None = None, importances: ArrayLike | None = None
) -> ClassesAuc:
    """Compute the AUC of scores for several classes: between each two, and of each against the rest.

    Parameters
    ----------
    labels : array-like of shape (rows,)
        The class of each row: numbers or text.
    scores : array-like of shape (rows, classes)
        A score for each class; any numbers except nan.
    classes : array-like of shape (classes,), optional
        The class of each column of the scores. By default the classes in `labels`, in ascending order.
    importances : array-like of shape (rows,), optional
        As for `auc`.

    Returns
    -------
    ClassesAuc
        Hand and Till's M, the mean of one against the rest, and what they are means of.

    Raises
    ------
    DataError
        If a row is invalid, a label is not one of the classes, or fewer than two classes have rows.
    """
    where = "pairwise_auc"
    given, matrix = np.asarray(labels), numeric(scores, f"{where}: scores")
    if given.ndim != 1 or matrix.ndim != 2 or len(given) != len(matrix):
        raise DataError(
            f"{where}: labels must have the shape (rows,) and scores (rows, classes), got {given.shape} and "
            f"{matrix.shape}."
        )
    names = np.unique(given) if classes is None else np.asarray(classes)
    if names.shape != (matrix.shape[1],) or len(np.unique(names)) < len(names):
        what = "of the labels" if classes is None else "given"
        raise DataError(
            f"{where}: {matrix.shape[1]} columns of scores need as many different classes, got {len(names)} {what}. "
            "Pass classes=[...], in the order of the columns."
        )
    unknown = np.flatnonzero(~np.isin(given, names))
    if len(unknown):
        raise DataError(
            f"{where}: row {unknown[0]} has the label {given[unknown[0]].item()!r}, which is not one of the classes."
        )
    if np.isnan(matrix).any():
        row, column = np.argwhere(np.isnan(matrix))[0]
        raise DataError(
            f"{where}: row {row} has the score nan for the class {names[column].item()!r}, which has no rank."
        )
    weights = None if importances is None else _weights(importances, len(given))
    members = [given == name if weights is None else (given == name) & (weights > 0) for name in names]
    present = [bool(mine.any()) for mine in members]
    if sum(present) < 2:
        raise DataError(f"{where}: needs rows of at least two classes, got {sum(present)}. Use more rows.")
    k = len(names)
    found, against = np.full((k, k), np.nan), np.full(k, np.nan)
    for i in np.flatnonzero(present):
        score = np.ascontiguousarray(matrix[:, i])
        against[i] = auc(members[i], score, weights)
        for j in np.flatnonzero(present):
            if i != j:
                two = members[i] | members[j]
                found[i, j] = auc(members[i][two], score[two], None if weights is None else weights[two])
    return ClassesAuc(
        float(np.nanmean(found)),
        float(np.nanmean(against)),
        names,
        found,
        against,
        [name.item() for name, there in zip(names, present, strict=True) if not there],
    )


def _weights(importances: ArrayLike, rows: int) -> Floats:
    weights = numeric(importances, "pairwise_auc: importances").astype(np.float64)
    if weights.shape != (rows,):
        raise DataError(f"pairwise_auc: {rows} rows need importances of shape ({rows},), got {weights.shape}.")
    wrong = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if len(wrong):
        raise DataError(
            f"pairwise_auc: row {wrong[0]} has the importance {weights[wrong[0]]}; importances are finite and >= 0 "
            "(0 skips a row)."
        )
    return weights
