"""Checks labels, scores and importances from callers, and converts them to the arrays of the core."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.blocks import narrow_labels, numeric, raise_label_fault
from rarestream.errors import DataError, advice

MODERATE = 1e100  # importances in a stream lie between this and its inverse: native/bind_auc.cpp


class ScoredRows(NamedTuple):
    """Labels, scores and importances in the types of the core."""

    labels: NDArray[np.int8]
    scores: NDArray[Any]  # float64; also float32 with `narrow`
    importances: NDArray[np.float64] | None


def as_rows(
    where: str,
    labels: ArrayLike,
    scores: ArrayLike,
    importances: ArrayLike | None = None,
    *,
    narrow: bool = False,
) -> ScoredRows:
    """Return the three as contiguous arrays of equal length. With `narrow`, float32 scores are not converted."""
    rows = ScoredRows(_labels(where, labels), _scores(where, scores, narrow), _importances(where, importances))
    n = len(rows.scores)
    if len(rows.labels) != n or (rows.importances is not None and len(rows.importances) != n):
        extra = "" if rows.importances is None else f" and {len(rows.importances)} importances"
        raise DataError(f"{where}: {len(rows.labels)} labels but {n} scores{extra}; a row has one of each.")
    return rows


def valid_rows(where: str, labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None) -> ScoredRows:
    """Return the rows, or raise a DataError if one is invalid or a class is missing."""
    rows = as_rows(where, labels, scores, importances, narrow=True)
    fault, row, n_pos, n_neg = _native.survey_labels(*rows)
    if fault:
        raise_fault(where, fault, row, labels, rows)
    if not (n_pos and n_neg):
        raise_one_class(where, n_pos, n_neg)
    return rows


def raise_one_class(where: str, n_pos: int, n_neg: int) -> NoReturn:
    """Raise a DataError: a class is missing."""
    raise DataError(
        f"{where}: needs rows of both classes, got {n_pos} positive and {n_neg} negative "
        "(rows of importance 0 aside). "
        + advice("Pass more rows; on a stream, StreamingAuc waits for the other class.", "Use more rows.")
    )


def both_classes(where: str, rows: int, positives: int) -> None:
    """Raise a DataError unless some rows are positive and some negative."""
    if not 0 < positives < rows:
        what = f"all {rows:,} rows are {'positive' if positives else 'negative'}" if rows else "there are no rows"
        raise DataError(
            f"{where}: {what}; AUC compares positives with negatives. Use rows of both, and check "
            f"which label counts as positive ({advice('positive=VALUE of read', '--positive VALUE')})."
        )


def raise_fault(where: str, fault: int, row: int, labels: ArrayLike, rows: ScoredRows) -> NoReturn:
    """Raise a DataError for the fault that the core found at a row."""
    if fault in (_native.ScoredFault.label, _native.ScoredFault.mixed_labels):
        raise_label_fault(where, fault, row, labels)
    if fault == _native.ScoredFault.score:
        raise DataError(
            f"{where}: row {row} has the score nan, which has no rank. Drop such rows or give them a score; "
            "infinite scores are fine."
        )
    assert rows.importances is not None
    value = rows.importances[row]
    if value >= 0 and np.isfinite(value):  # valid for the exact AUC, but not in a stream
        raise DataError(
            f"{where}: row {row} has the importance {value}; importances in a stream lie between {1 / MODERATE:g} and "
            f"{MODERATE:g}, or are 0, which skips a row. Multiply them all by the same number."
        )
    raise DataError(f"{where}: row {row} has the importance {value}; importances are finite and >= 0 (0 skips a row).")


def _vector(where: str, what: str, given: ArrayLike) -> NDArray[Any]:
    array = numeric(given, f"{where}: {what}")
    if array.ndim != 1:
        raise DataError(f"{where}: {what} must be one-dimensional, got shape {array.shape}.")
    return array


def _labels(where: str, given: ArrayLike) -> NDArray[np.int8]:
    return narrow_labels(_vector(where, "labels", given))


def _scores(where: str, given: ArrayLike, narrow: bool) -> NDArray[Any]:
    array = _vector(where, "scores", given)
    return np.ascontiguousarray(array, np.float32 if narrow and array.dtype == np.float32 else np.float64)


def _importances(where: str, given: ArrayLike | None) -> NDArray[np.float64] | None:
    return None if given is None else np.ascontiguousarray(_vector(where, "importances", given), np.float64)
