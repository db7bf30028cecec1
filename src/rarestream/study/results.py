"""Rows aggregated: the trials of a method on a data set as one object that tables, figures and pages ask.

Where a trial was run more than once, its last row counts; where a grid was searched in full, its quick search does
not. A mean is over the trials that have a number, its error is the standard error of that mean, and failures are kept
to be reported.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.study.rows import CORRECTED, FULL, MISSING, NONE, PUBLISHED, QUICK, TRIAL, TrialRow, chosen_point

Floats = NDArray[np.float64]


class Mean(NamedTuple):
    """A mean over trials."""

    value: float
    error: float | None  # standard error; None if there is only one trial
    trials: int


class Curve(NamedTuple):
    """A mean curve over trials."""

    rows: Floats
    seconds: Floats
    test_auc: Floats
    spread: Floats  # standard deviation of test_auc over the trials


class SparsePoint(NamedTuple):
    """Mean AUC and mean sparse ratio at a strength of the l1 penalty, or at a size."""

    strength: float  # lambda; of models that were pruned, the number of non-zeros
    auc: float
    sparse_ratio: float


@dataclass(frozen=True)
class Result:
    """The trials of a method on a data set."""

    dataset: str
    ratio: float | None
    method: str
    label: str  # the method's name in print, if its rows have one
    grid: str
    trials: tuple[TrialRow, ...]  # those that have a number, by trial
    failures: tuple[str, ...]

    @classmethod
    def of(cls, rows: Iterable[TrialRow]) -> Result:
        """Aggregate the rows of one method on one data set; the last row of a trial counts."""
        latest = {row["trial"]: row for row in rows}
        ordered = [latest[trial] for trial in sorted(latest)]
        first = ordered[0]
        sound = tuple(row for row in ordered if row.get("error") is None and _has_auc(row))
        failures = tuple(str(row.get("error") or "the AUC is not a number") for row in ordered if row not in sound)
        place = first.get("dataset", ""), first.get("ratio")
        return cls(*place, first["method"], first.get("label", ""), first.get("grid", NONE), sound, failures)

    @property
    def data(self) -> str:
        """How close the rows are to the paper's: exact, rebuilt, subset, generated or own."""
        return str(self.trials[0]["data"]) if self.trials else ""

    @property
    def why_not(self) -> str:
        """What to print in place of a number."""
        return f"failed: {self.failures[0]}" if self.failures else "no trial"

    def mean(self, of: Callable[[TrialRow], float]) -> Mean | None:
        """Return the mean of a number over the trials; None without trials."""
        return mean([of(row) for row in self.trials])

    def curve(self) -> Curve | None:
        """Return the mean curve, at the numbers of rows that the curves of all trials have."""
        curves = [curve for row in self.trials if (curve := row.get("curve"))]
        if not curves:
            return None
        shared = sorted(set.intersection(*(set(curve["rows"]) for curve in curves)))
        places = [[curve["rows"].index(rows) for rows in shared] for curve in curves]

        def column(values: Iterable[Sequence[float]]) -> Floats:
            return np.array([[each[at] for at in place] for each, place in zip(values, places, strict=True)], float)

        seconds, aucs = column(curve["seconds"] for curve in curves), column(curve["test_auc"] for curve in curves)
        return Curve(np.array(shared, float), seconds.mean(axis=0), aucs.mean(axis=0), aucs.std(axis=0))

    def sparsity(self) -> list[SparsePoint]:
        """Return AUC and sparse ratio for each lambda, the other settings as each trial chose them.

        Trials that pruned their model have a point for each size instead.
        """
        by_strength: dict[float, list[tuple[float, float]]] = defaultdict(list)
        for row in self.trials:
            for strength, auc, nonzeros in _sizes(row) if row.get("sizes") else _lambdas(row):
                by_strength[strength].append((auc, nonzeros / row["n_features"]))
        complete = {strength: pairs for strength, pairs in by_strength.items() if len(pairs) == len(self.trials)}
        means = {strength: np.mean(pairs, axis=0) for strength, pairs in sorted(complete.items())}
        return [SparsePoint(strength, float(auc), float(ratio)) for strength, (auc, ratio) in means.items()]


def _has_auc(row: TrialRow) -> bool:
    if row.get("chosen") is None:
        return False
    value = chosen_point(row).get("test_auc")
    return value is not None and math.isfinite(value)


def _sizes(row: TrialRow) -> Iterator[tuple[float, float, float]]:
    sizes = row["sizes"]
    assert sizes is not None
    for nonzeros, auc in zip(sizes["nonzeros"], sizes["test_auc"], strict=True):
        yield nonzeros, auc, nonzeros


def _lambdas(row: TrialRow) -> Iterator[tuple[float, float, float]]:
    params = chosen_point(row)["params"]
    name = "lambda" if "lambda" in params else "l1"
    others = {**params, name: None}
    for point in row["points"]:
        same = name in point["params"] and {**point["params"], name: None} == others
        if same and point["test_auc"] is not None and point["nonzeros"] is not None:
            yield point["params"][name], point["test_auc"], point["nonzeros"]


# -- numbers of a trial


def auc(row: TrialRow) -> float:
    """Return the test AUC of the chosen setting."""
    return _number(chosen_point(row)["test_auc"])


def sparse_ratio(row: TrialRow) -> float:
    """Return the share of weights that are not zero."""
    return _number(chosen_point(row)["nonzeros"]) / row["n_features"]


def seconds(row: TrialRow) -> float:
    """Return the time that the chosen setting took to learn."""
    return _number(chosen_point(row)["seconds"])


def _number(value: float | None) -> float:
    assert value is not None
    return float(value)


def mean(values: Sequence[float]) -> Mean | None:
    """Return the mean with its standard error; None of no values."""
    if not values:
        return None
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    return Mean(float(np.mean(values)), error, len(values))


def auc_differences(one: Result, other: Result) -> list[float]:
    """Return the AUC of one method minus that of another, for each trial that both have."""
    others = {row["trial"]: auc(row) for row in other.trials}
    return [auc(row) - others[row["trial"]] for row in one.trials if row["trial"] in others]


# -- all rows


class Results:
    """The rows of one mode, by data set, ratio and method.

    Parameters
    ----------
    rows : iterable of TrialRow
        Rows of trials; rows of kind "missing" name data sets that were not found.
    mode : str, optional
        By default "corrected", unless all rows are "published".
    labels : mapping of str to str, optional
        Names of methods in print, for rows that do not have them.
    tuned : collection of str
        Methods that are tuned, so that their trials at one fixed setting (grid "none") are not their result.
    """

    def __init__(
        self,
        rows: Iterable[TrialRow],
        mode: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        tuned: Collection[str] = (),
    ) -> None:
        every = list(rows)
        trials = [row for row in every if row.get("kind") == TRIAL]
        self.mode = mode or (PUBLISHED if {row["mode"] for row in trials} == {PUBLISHED} else CORRECTED)
        self._missing = {row["dataset"] for row in every if row.get("kind") == MISSING}
        groups: dict[tuple[str, float | None, str, str], list[TrialRow]] = defaultdict(list)
        for row in trials:
            if row["mode"] == self.mode:
                groups[row["dataset"], row["ratio"], row["method"], row["grid"]].append(row)
        self._results = {place: Result.of(group) for place, group in groups.items()}
        self.datasets = list(dict.fromkeys(place[0] for place in groups))
        self.ratios = list(dict.fromkeys(place[1] for place in groups))
        self.methods = list(dict.fromkeys(place[2] for place in groups))
        self._grids = list(dict.fromkeys(place[3] for place in groups))
        self._labels = {**(labels or {}), **{row["method"]: row["label"] for row in trials if row.get("label")}}
        self._tuned = tuned

    def label(self, method: str) -> str:
        """Return the name of a method in print."""
        return self._labels.get(method, method.replace("_", "-"))

    def get(self, dataset: str, method: str, ratio: float | None = None) -> Result | None:
        """Return the trials of a method, tuned if it is tuned; None if it was not run."""
        others = [grid for grid in self._grids if grid not in (FULL, QUICK, NONE)]
        untuned = [] if method in self._tuned else [NONE]
        return self._best(dataset, method, ratio, (FULL, QUICK, *others, *untuned))

    def fixed(self, dataset: str, method: str, ratio: float | None = None) -> Result | None:
        """Return the trials of a tuned method at one fixed setting; None if there are none."""
        return self._best(dataset, method, ratio, (NONE,)) if method in self._tuned else None

    def _best(self, dataset: str, method: str, ratio: float | None, grids: tuple[str, ...]) -> Result | None:
        places = [(dataset, ratio, method, grid) for grid in grids]
        results = [self._results[place] for place in places if place in self._results]
        return next((result for result in results if result.trials), results[0] if results else None)

    def all(self) -> Collection[Result]:
        """Return every method on every data set, for each grid."""
        return self._results.values()

    def ranked(self) -> list[str]:
        """Return the methods by their mean AUC over data sets and ratios, the largest first; those without one last."""

        def height(method: str) -> float:
            results = (self.get(name, method, ratio) for name in self.datasets for ratio in self.ratios)
            means = [average.value for result in results if result and (average := result.mean(auc))]
            return float(np.mean(means)) if means else -math.inf

        return sorted(self.methods, key=height, reverse=True)

    def why_not(self, dataset: str) -> str:
        """Return what to print for a method that has no rows."""
        return "no data" if dataset in self._missing else "not run"

    def fewer(self, result: Result) -> str:
        """Return in words how far a result has fewer trials or settings than others of these rows."""
        most = max(len(other.trials) for other in self.all())
        quick = result.grid == QUICK and any(other.grid == FULL for other in self.all())
        count = len(result.trials) + len(result.failures)
        few = f"{count} trial{'s' * (count > 1)}" if count < most else ""
        return ", ".join(filter(None, ("thin grid" if quick else "", few)))

    def chosen_settings(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield (data set, method, settings, number of trials), the settings that most trials chose."""
        for result in self.all():
            counts: dict[str, int] = defaultdict(int)
            for row in result.trials:
                params = chosen_point(row)["params"].items()
                counts[" ".join(f"{name}={_short(value)}" for name, value in params) or "default"] += 1
            if counts:
                words, count = max(counts.items(), key=lambda item: item[1])
                place = place_name(result.dataset, result.ratio)
                yield place, self.label(result.method), words, f"{count} of {len(result.trials)}"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def ratio_name(ratio: float | None) -> str:
    """Return which rows of a data set are meant."""
    return "all rows" if ratio is None else f"positive:negative ratio {ratio:g}"


def place_name(dataset: str, ratio: float | None) -> str:
    """Return a data set and which of its rows, in short."""
    return dataset if ratio is None else f"{dataset} at {ratio:g}"


def extent(rows: Iterable[TrialRow]) -> str:
    """Return in a sentence how many trials there are, on what data, with which grids."""
    trials = [row for row in rows if row.get("kind") == TRIAL]
    sets = ", ".join(dict.fromkeys(row["dataset"] for row in trials)) or "no data set"
    grids = ", ".join(sorted({row["grid"] for row in trials} - {NONE}))
    count = "is 1 trial" if len(trials) == 1 else f"are {len(trials)} trials"
    return f"There {count} on {sets}{f', grids searched: {grids}' if grids else ''}."
