"""The fields of a trial's row: which trial it is, every setting that was tried, and what the chosen one did."""

from __future__ import annotations

from collections.abc import Iterable
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


def chosen_point(row: TrialRow) -> Point:
    """Return the point that the validation rows chose."""
    at = row["chosen"]
    assert at is not None
    return row["points"][at]
