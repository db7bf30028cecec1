"""Tuning: every setting is tried, the best on the validation rows is chosen, and is run again alone.

The run alone gives the curve and the time; only learning is timed, on one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.metrics import auc
from rarestream.study.rows import CurvePoints, Point, TrialRow
from rarestream.study.splits import checkpoints

Params = Mapping[str, Any]
Failures = tuple[type[Exception], ...]
Fitted = TypeVar("Fitted")

clock = time.thread_time  # of this thread alone: others may be at work


def run_best(
    settings: Sequence[Params],
    points: list[Point],
    run_alone: Callable[[Params, Point], TrialRow],
    failures: Failures,
) -> TrialRow:
    """Run the best of the settings again, alone, and return the fields of the trial's row.

    Parameters
    ----------
    settings : sequence of Params
        The settings that were tried.
    points : list of Point
        The point of each.
    run_alone : callable
        Given the chosen setting and its point, returns the fields of the row that are about it, such as `curve`. It may
        complete the point.
    failures : tuple of exception classes
        Errors of `run_alone` that are a result, not a bug.

    Returns
    -------
    TrialRow
        The points, the number of the chosen one, its fields, and the error if there is one.
    """
    row: TrialRow = {"points": points, "chosen": None, "curve": None, "error": None}
    chosen = best(points)
    if chosen is None:
        return {**row, "error": points[0].get("error")}
    tried = points[chosen]["valid_auc"] is not None
    try:
        return {**row, **run_alone(settings[chosen], points[chosen]), "chosen": chosen}
    except failures as error:
        return {**row, "error": f"{'the chosen setting failed when run alone: ' if tried else ''}{reason(error)}"}


def best(points: Sequence[Point]) -> int | None:
    """Return the index of the first point with the largest validation AUC; None if every setting failed."""
    succeeded = [number for number, tried in enumerate(points) if tried.get("error") is None]
    return max(succeeded, key=lambda number: points[number]["valid_auc"] or 0.0, default=None)


class Judged(NamedTuple):
    """The AUCs and the size of a fitted model."""

    valid_auc: float
    test_auc: float
    nonzeros: int


def try_setting(
    params: Params, fit: Callable[[], Fitted], judge: Callable[[Fitted], Judged], failures: Failures
) -> Point:
    """Fit a setting, timed, and judge it; a failure is noted in its point."""
    start = clock()
    try:
        fitted = fit()
        seconds = clock() - start
        return tried_point(params, judge(fitted), seconds)
    except failures as error:
        return failed_point(params, error)


def points_of_pass(
    settings: Sequence[Params], judge: Callable[[int], Judged], seconds: float, failures: Failures
) -> list[Point]:
    """Return the points of settings that were fitted in one pass, each with an equal share of its time.

    Parameters
    ----------
    settings : sequence of Params
        The settings.
    judge : callable
        Given the number of a setting, judges its fit, or raises the reason why there is none.
    seconds : float
        Time of the pass.
    failures : tuple of exception classes
        Errors of `judge` that are a result, not a bug.

    Returns
    -------
    list of Point
        One per setting.
    """
    points = []
    for number, params in enumerate(settings):
        try:
            points.append(tried_point(params, judge(number), seconds / len(settings)))
        except failures as error:
            points.append(failed_point(params, error))
    return points


def point(params: Params) -> Point:
    """Return the point of a setting that has not been tried."""
    return {
        "params": dict(params),
        "valid_auc": None,
        "test_auc": None,
        "nonzeros": None,
        "seconds": None,
        "error": None,
    }


def tried_point(params: Params, judged: Judged, seconds: float) -> Point:
    """Return the point of a setting that was tried."""
    return {
        "params": dict(params),
        "valid_auc": judged.valid_auc,
        "test_auc": judged.test_auc,
        "nonzeros": judged.nonzeros,
        "seconds": round(seconds, 9),
        "error": None,
    }


def failed_point(params: Params, error: Exception) -> Point:
    """Return the point of a setting that failed."""
    return {**point(params), "error": reason(error)}


def reason(error: Exception) -> str:
    """Return the message of an error; that of a MemoryError is empty."""
    return str(error) or "out of memory"


class CurveClock:
    """Collects test AUC against rows and seconds; the clock is stopped while the AUC is computed."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._seconds: list[float] = []
        self._aucs: list[float] = []
        self._spent = 0.0
        self._start = clock()

    def learned(self, rows: int) -> None:
        """Stop the clock after so many rows."""
        self._spent += clock() - self._start
        self._rows.append(rows)
        self._seconds.append(self._spent)

    def tested(self, auc: float) -> None:
        """Note the AUC after these rows, and start the clock."""
        self._aucs.append(auc)
        self._start = clock()

    def points(self, seconds: float | None = None) -> CurvePoints:
        """Return the curve.

        `seconds`, if given, is the time of a run in large blocks. Learning in small ones takes longer, so the times are
        scaled to end with it.
        """
        factor = 1.0 if seconds is None or not self._spent else seconds / self._spent
        times = [round(factor * spent, 9) for spent in self._seconds]
        return {"rows": self._rows, "seconds": times, "test_auc": self._aucs}


def learning_curve(
    train: Block, learn: Callable[[Block], object], test_auc: Callable[[], float], end: float | None = None
) -> CurveClock:
    """Learn the rows in pieces, and test after each checkpoint; `end` is the AUC after the last row, if it is known."""
    curve = CurveClock()
    for start, stop in pairwise([0, *checkpoints(len(train))]):
        learn(train[start:stop])
        curve.learned(stop)
        curve.tested(end if end is not None and stop == len(train) else test_auc())
    return curve


def pieces(block: Block, size: int) -> Iterator[Block]:
    """Yield the rows in blocks of at most `size`."""
    return (block[first : first + size] for first in range(0, len(block), size))


def block_auc(rows: Block, scores: NDArray[Any]) -> float:
    """Return the AUC of scores of labelled rows."""
    assert rows.labels is not None
    return float(auc(rows.labels, np.ascontiguousarray(scores), rows.importances))
