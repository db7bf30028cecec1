"""The fields of a trial's row: which trial it is, every setting that was tried, and what the chosen one did."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NotRequired, TypedDict, cast

from rarestream.study.store import Row

TRIAL, MISSING = "trial", "missing"  # kinds; a missing row, never in a file, says that a data set was not found
CORRECTED, PUBLISHED = "corrected", "published"  # modes: this library's learners, or the arithmetic of the paper's code
FULL, QUICK, NONE = "full", "quick", "none"  # grids; another study may name its own


class Point(TypedDict):
    """A setting that was tried. None: no number, and `error` says why, or the setting was not tried."""

    params: dict[str, Any]
    valid_auc: float | None
    test_auc: float | None
    nonzeros: int | None
    seconds: float | None
    error: NotRequired[str | None]
    at_published_size: NotRequired[dict[str, float]]


class CurvePoints(TypedDict):
    """Test AUC against rows learned, and against seconds of learning."""

    rows: list[int]
    seconds: list[float]
    test_auc: list[float]


class SizePoints(TypedDict):
    """Test AUC of the model pruned to several sizes."""

    nonzeros: list[int]
    test_auc: list[float]


class TrialRow(TypedDict, total=False):
    """A line of results.jsonl."""

    kind: str
    dataset: str
    source: str  # a checksum of the rows: results of other rows are not mixed with these
    ratio: float | None  # positive:negative ratio that the rows were cut to; None: all rows
    method: str
    mode: str
    grid: str
    trial: int
    split: str
    scale: str
    points: list[Point]
    chosen: int | None  # index of the point that the validation rows chose
    curve: CurvePoints | None  # of the chosen setting, run alone
    sizes: SizePoints | None
    without: list[float] | None  # test AUC without each group of test rows
    state_bytes: int
    peak_bytes: int | None
    n_train: int
    n_test: int
    n_features: int
    data: str  # exact, rebuilt, subset, generated or own: how close the rows are to the paper's
    label: str  # the method's name in print
    error: str | None  # why there is no number
    version: str


def trial_rows(rows: Iterable[Row]) -> list[TrialRow]:
    """Return rows of a results file under their type."""
    return [cast(TrialRow, row) for row in rows]


_KINDS: dict[str, tuple[tuple[type, ...], str]] = {  # of the fields that tables and figures read
    "kind": ((str,), "a string"),
    "dataset": ((str,), "a string"),
    "source": ((str,), "a string"),
    "ratio": ((int, float, type(None)), "a number or null"),
    "method": ((str,), "a string"),
    "mode": ((str,), "a string"),
    "grid": ((str,), "a string"),
    "trial": ((int,), "an integer"),
    "points": ((list,), "a list"),
    "chosen": ((int, type(None)), "an integer or null"),
    "curve": ((dict, type(None)), "an object or null"),
    "n_train": ((int,), "an integer"),
    "n_features": ((int,), "an integer"),
    "data": ((str,), "a string"),
    "error": ((str, type(None)), "a string or null"),
}
_POINT = {"params", "valid_auc", "test_auc", "nonzeros", "seconds"}


def why_no_trial(row: Row, known: Mapping[str, Collection[str]]) -> str:
    """Return in words why a row is not one of a trial; empty if it is.

    Parameters
    ----------
    row : dict
        A row of a results file.
    known : mapping of str to collection of str
        The values that some fields may have.
    """
    for name, (kinds, words) in _KINDS.items():
        if name not in row:
            return f"it has no field {name!r}"
        if not isinstance(row[name], kinds):
            return f"{name} must be {words}, got {json.dumps(row[name])[:40]}"
        if row[name] not in known.get(name, (row[name],)):
            return f"{name} must be one of {', '.join(known[name])}, got {json.dumps(row[name])[:40]}"
    points, chosen, curve = row["points"], row["chosen"], row["curve"]
    if chosen is not None and not 0 <= chosen < len(points):
        return f"chosen must be the index of one of {len(points)} points, got {chosen}"
    if any(not isinstance(point, dict) or not point.keys() >= _POINT for point in points):
        return f"each of its points must have {', '.join(sorted(_POINT))}"
    columns = [] if curve is None else [curve.get(name) for name in CurvePoints.__annotations__]
    if any(not isinstance(column, list) or len(column) != len(columns[0]) for column in columns):
        return f"its curve must have {', '.join(CurvePoints.__annotations__)}, lists of the same length"
    return ""


def chosen_point(row: TrialRow) -> Point:
    """Return the point that the validation rows chose."""
    at = row["chosen"]
    assert at is not None
    return row["points"][at]
