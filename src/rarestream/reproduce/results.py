"""Rows of results, gathered: the trials of a method on a data set as one thing that tables, figures and reports ask.

A row is one trial, as `results.jsonl` keeps it. Where a trial was run more than once its last row counts; where a grid
was searched in full, its thin search does not. A mean is over the trials that have a number, its error is the standard
error of that mean, and what went wrong is kept, to be said.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.reproduce.methods import CORRECTED, FULL, METHODS, NONE, OURS, PUBLISHED, QUICK

Row = dict[str, Any]
MISSING = "missing"  # the kind of a row, never in a file, that says of a data set that it was looked for in vain
Floats = NDArray[np.float64]


class Mean(NamedTuple):
    value: float
    error: float | None  # None: one trial tells nothing of it
    trials: int


class Curve(NamedTuple):
    rows: Floats
    seconds: Floats
    test_auc: Floats
    spread: Floats  # standard deviation of test_auc over the trials


@dataclass(frozen=True)
class Result:
    """The trials of a method on a data set."""

    dataset: str
    ratio: float | None
    method: str
    grid: str
    trials: tuple[Row, ...]  # with a number, by trial
    failures: tuple[str, ...]

    @property
    def data(self) -> str:
        """exact, rebuilt, subset, ...: how near the rows are to the paper's."""
        return str(self.trials[0]["data"]) if self.trials else ""

    @property
    def why_not(self) -> str:
        """What is said in place of a number."""
        return f"failed: {self.failures[0]}" if self.failures else "no trial"

    def mean(self, of: Callable[[Row], float]) -> Mean | None:
        return mean([of(row) for row in self.trials])

    def curve(self) -> Curve | None:
        """The mean over the trials, at the numbers of rows that all of them have."""
        curves = [row["curve"] for row in self.trials if row.get("curve")]
        if not curves:
            return None
        shared = sorted(set.intersection(*(set(curve["rows"]) for curve in curves)))
        places = [{rows: place for place, rows in enumerate(curve["rows"])} for curve in curves]

        def column(name: str) -> Floats:
            return np.array(
                [[curve[name][at[rows]] for rows in shared] for curve, at in zip(curves, places, strict=True)], float
            )

        aucs = column("test_auc")
        return Curve(np.array(shared, float), column("seconds").mean(axis=0), aucs.mean(axis=0), aucs.std(axis=0))

    def sparsity(self) -> list[tuple[float, float, float]]:
        """(lambda, mean test AUC, mean sparse ratio), the other settings as each trial chose them.

        Trials that cut their model to sizes have (non-zeros, mean test AUC, sparse ratio) instead.
        """
        found: dict[float, list[tuple[float, float]]] = defaultdict(list)
        for row in self.trials:
            for value, auc, nonzeros in _cuts(row) if row.get("sizes") else _per_lambda(row):
                found[value].append((auc, nonzeros / row["n_features"]))
        complete = {value: at for value, at in found.items() if len(at) == len(self.trials)}
        means = {value: np.mean(at, axis=0) for value, at in sorted(complete.items())}
        return [(value, float(auc), float(ratio)) for value, (auc, ratio) in means.items()]


def _cuts(row: Row) -> Iterator[tuple[float, float, float]]:
    for nonzeros, auc in zip(row["sizes"]["nonzeros"], row["sizes"]["test_auc"], strict=True):
        yield nonzeros, auc, nonzeros


def _per_lambda(row: Row) -> Iterator[tuple[float, float, float]]:
    params = chosen(row)["params"]
    name = "lambda" if "lambda" in params else "l1"
    for point in row["points"]:
        same = name in point["params"] and _without(point["params"], name) == _without(params, name)
        if same and point.get("test_auc") is not None:
            yield point["params"][name], point["test_auc"], point["nonzeros"]


def _without(params: dict[str, float], name: str) -> dict[str, float]:
    return {word: value for word, value in params.items() if word != name}


def chosen(row: Row) -> dict[str, Any]:
    """The point of a trial that validation chose."""
    point: dict[str, Any] = row["points"][row["chosen"]]
    return point


def auc(row: Row) -> float:
    return float(chosen(row)["test_auc"])


def sparse_ratio(row: Row) -> float:
    return float(chosen(row)["nonzeros"] / row["n_features"])


def seconds(row: Row) -> float:
    return float(chosen(row)["seconds"])


def mean(values: Sequence[float]) -> Mean | None:
    if not values:
        return None
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    return Mean(float(np.mean(values)), error, len(values))


def gaps(one: Result, other: Result) -> list[float]:
    """AUC of the one less that of the other, in each trial that both have."""
    theirs = {row["trial"]: auc(row) for row in other.trials}
    return [auc(row) - theirs[row["trial"]] for row in one.trials if row["trial"] in theirs]


def main_mode(rows: Iterable[Row]) -> str:
    """The arithmetic that a table is about unless told: ours, where there is any of it."""
    return PUBLISHED if {row["mode"] for row in rows} == {PUBLISHED} else CORRECTED


class Results:
    """The rows of one arithmetic, by data set, ratio and method."""

    def __init__(self, rows: Iterable[Row], mode: str | None = None) -> None:
        every = list(rows)
        rows = [row for row in every if row.get("kind") == "trial"]
        self.mode = mode or main_mode(rows)
        self._missing = {row["dataset"] for row in every if row.get("kind") == MISSING}
        units: dict[tuple[Any, ...], dict[int, Row]] = defaultdict(dict)
        for row in rows:
            if row["mode"] == self.mode:
                units[row["dataset"], row["ratio"], row["method"], row["grid"]][row["trial"]] = row
        self._found = {place: _result(place, list(trials.values())) for place, trials in units.items()}
        self.datasets = list(dict.fromkeys(place[0] for place in units))
        self.ratios = list(dict.fromkeys(place[1] for place in units))
        self.methods = list(dict.fromkeys(place[2] for place in units))
        self._grids = list(dict.fromkeys(place[3] for place in units))
        self._labels = {row["method"]: row["label"] for row in rows if row.get("label")}

    def label(self, method: str) -> str:
        """The name of a method in print."""
        return self._labels.get(method) or (METHODS[method].label if method in METHODS else method.replace("_", "-"))

    def get(self, dataset: str, method: str, ratio: float | None = None) -> Result | None:
        """The trials whose settings were chosen; of a method without settings, its trials."""
        # A method of the paper at fixed settings (grid none) is that of the lazy figures, not its result.
        fixed = method in OURS or method not in METHODS
        others = [grid for grid in self._grids if grid not in (FULL, QUICK, NONE)]
        return self._best(dataset, method, ratio, (FULL, QUICK, *others, *([NONE] if fixed else [])))

    def fixed(self, dataset: str, method: str, ratio: float | None = None) -> Result | None:
        """The trials at the one setting of the lazy figures."""
        return self._best(dataset, method, ratio, (NONE,))

    def _best(self, dataset: str, method: str, ratio: float | None, grids: tuple[str, ...]) -> Result | None:
        found = [self._found[place] for grid in grids if (place := (dataset, ratio, method, grid)) in self._found]
        return next((result for result in found if result.trials), found[0] if found else None)

    def all(self) -> Iterable[Result]:
        return self._found.values()

    def ranked(self) -> list[str]:
        """The methods, that with the largest AUC first: the mean over sets and ratios; those without any last."""

        def height(method: str) -> float:
            each = (self.get(name, method, ratio) for name in self.datasets for ratio in self.ratios)
            means = [average.value for one in each if one and (average := one.mean(auc))]
            return float(np.mean(means)) if means else -math.inf

        return sorted(self.methods, key=height, reverse=True)

    def why_not(self, dataset: str) -> str:
        """What is said of a method that has no rows."""
        return "no data" if dataset in self._missing else "not run"

    def less(self, result: Result) -> str:
        """How much less was done for it than for others of these rows, where it was."""
        most = max(len(one.trials) for one in self.all())
        thin = result.grid == QUICK and any(one.grid == FULL for one in self.all())
        done = len(result.trials) + len(result.failures)
        few = f"{done} trial{'s' * (done > 1)}" if done < most else ""
        return ", ".join(filter(None, ("thin grid" if thin else "", few)))


def _result(place: tuple[Any, ...], rows: list[Row]) -> Result:
    dataset, ratio, method, grid = place
    rows.sort(key=lambda row: int(row["trial"]))
    sound = tuple(row for row in rows if row.get("error") is None and _finite(row))
    failures = tuple(str(row.get("error") or "the AUC is not a number") for row in rows if row not in sound)
    return Result(dataset, ratio, method, grid, sound, failures)


def _finite(row: Row) -> bool:
    if row.get("chosen") is None:
        return False
    value = chosen(row).get("test_auc")
    return value is not None and math.isfinite(value)
