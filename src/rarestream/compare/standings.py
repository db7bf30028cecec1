"""Standings: the rows of a comparison as a table, the best first.

    auc       the mean over the trials of the AUC on the test rows, and its standard error
    behind    how much less than the best method's, as the mean of the differences trial by trial, and the standard
              error of that mean: trials share their rows, so it is far smaller than that of either AUC

Trials are permutations of the same rows: they say what another order and another split would give, not what other data
would. With a single trial, errors are the jackknife's over runs of its test rows, instead.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from csv import writer
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.compare.methods import METHODS
from rarestream.trials import Row

TIE = 2.0  # standard errors


@dataclass(frozen=True)
class Standing:
    """How a method did. Numbers are means over the trials; nan: nobody knows."""

    method: str
    label: str
    auc: float
    error: float
    behind: float  # the best; 0 for the best itself
    behind_error: float
    nonzeros: float
    microseconds: float  # to learn a row
    state_bytes: float
    trials: int  # that it came through
    note: str  # how it is not like the others
    why: str  # there is no number, or not of every trial

    @property
    def close(self) -> bool:
        """Whether it cannot be told from the best: less than two standard errors behind."""
        return self.behind <= TIE * self.behind_error


def standings(rows: Sequence[Row], left_out: Mapping[str, str] | None = None) -> list[Standing]:
    """The methods of some rows of one data set, the best first; then those that failed, then those left out."""
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
    results = {method: _Result(own) for method, own in by_method.items()}
    through = {method: found for method, found in results.items() if found.aucs}
    most = max((len(found.aucs) for found in through.values()), default=0)
    whole = [found for found in through.values() if len(found.aucs) == most]  # the best came through every trial
    best = max(whole, key=lambda found: found.auc, default=None)
    table = [found.standing(best) for found in results.values()]
    table.sort(key=lambda one: (math.isnan(one.auc), -one.auc if not math.isnan(one.auc) else 0.0))
    return table + [_left_out(name, why) for name, why in (left_out or {}).items()]


class _Result:
    """The rows of a method."""

    def __init__(self, rows: Sequence[Row]) -> None:
        word = str(rows[0]["method"])
        method = next((one for one in METHODS.values() if one.word == word), None)
        self.method, self.note = (method.name, method.note) if method else (word, "")
        self.failures = [row["error"] for row in rows if row["error"] is not None]
        self.through = {row["trial"]: row for row in rows if row["error"] is None}
        self.points = {trial: row["points"][row["chosen"]] for trial, row in self.through.items()}
        self.aucs = {trial: float(point["test_auc"]) for trial, point in self.points.items()}
        self.label = str(rows[0].get("label", self.method))

    @property
    def auc(self) -> float:
        return _mean(list(self.aucs.values()))

    def standing(self, best: _Result | None) -> Standing:
        behind, behind_error = math.nan, math.nan
        if best is not None and self.aucs:
            behind, behind_error = self._behind(best)
        return Standing(
            self.method,
            self.label,
            self.auc,
            self._error({}),
            behind,
            behind_error,
            _mean([point["nonzeros"] for point in self.points.values()]),
            _mean([1e6 * self.points[trial]["seconds"] / row["n_train"] for trial, row in self.through.items()]),
            _mean([row["state_bytes"] for row in self.through.values()]),
            len(self.aucs),
            self.note,
            self._why(),
        )

    def _behind(self, best: _Result) -> tuple[float, float]:
        if best is self:
            return 0.0, 0.0
        shared = [trial for trial in self.aucs if trial in best.aucs]
        return _mean([best.aucs[trial] - self.aucs[trial] for trial in shared]), self._error(best.through)

    def _error(self, others: Mapping[int, Row]) -> float:
        """Of the mean AUC; given the rows of another, of the mean difference from it."""
        shared = [trial for trial in self.aucs if not others or trial in others]
        if len(shared) > 1:
            less = {trial: row["points"][row["chosen"]]["test_auc"] for trial, row in others.items()}
            values = np.array([self.aucs[trial] - less.get(trial, 0.0) for trial in shared])
            return float(values.std(ddof=1) / math.sqrt(len(values)))
        if not shared:
            return math.nan
        own, other = self.through[shared[0]].get("without"), others.get(shared[0], {}).get("without")
        if own is None or (others and other is None):
            return math.nan
        return _jackknife(np.array(own) - (np.array(other) if others else 0.0))

    def _why(self) -> str:
        if not self.failures:
            return ""
        return f"failed in {len(self.failures)} of {len(self.failures) + len(self.aucs)} trials: {self.failures[0]}"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _jackknife(values: NDArray[np.float64]) -> float:
    """The standard error of an estimate, from its values without each of some groups."""
    return float(np.sqrt((len(values) - 1) * values.var()))


def _left_out(name: str, why: str) -> Standing:
    method, nan = METHODS[name], math.nan
    return Standing(method.name, method.label, nan, nan, nan, nan, nan, nan, nan, 0, "", f"left out: {why}")


# -- as text

COLUMNS = ("method", "AUC", "+-", "behind", "+-", "tie", "non-zeros", "us a row", "state", "")


def cells(table: Sequence[Standing]) -> list[tuple[str, ...]]:
    """The methods that came to an AUC as people read them, in the order of COLUMNS."""
    return [
        (
            one.method,
            f"{one.auc:.4f}",
            _told(one.error, ".4f"),
            "" if at == 0 else f"{one.behind:.4f}",
            "" if at == 0 else _told(one.behind_error, ".4f"),
            "yes" if at and one.close else "",
            f"{one.nonzeros:,.0f}",
            f"{one.microseconds:.2f}",
            _bytes(one.state_bytes),
            one.note,
        )
        for at, one in enumerate(one for one in table if one.trials)
    ]


def remarks(table: Sequence[Standing]) -> list[str]:
    """What is to be said of methods that failed or were left out."""
    return [f"{one.method}: {one.why}" for one in table if one.why]


def markdown(table: Sequence[Standing]) -> str:
    heading = tuple({"+-": "±", "us a row": "µs a row"}.get(word, word) for word in COLUMNS)
    lines = [heading, tuple("---" if at in (0, len(heading) - 1) else "---:" for at in range(len(heading)))]
    rows = [f"| {' | '.join(line)} |\n" for line in [*lines, *cells(table)]]
    return "".join([*rows, "\n", *(f"- {remark}\n" for remark in remarks(table))])


def csv(table: Sequence[Standing]) -> str:
    """Every number in full."""
    words = list(Standing.__dataclass_fields__)
    text = io.StringIO()
    out = writer(text, lineterminator="\n")
    out.writerow([*words, "close"])
    for one in table:
        values: list[Any] = [*(getattr(one, word) for word in words), one.close]
        out.writerow(["" if isinstance(value, float) and math.isnan(value) else value for value in values])
    return text.getvalue()


def _told(value: float, how: str) -> str:
    return "" if math.isnan(value) else format(value, how)


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB"):
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} GB"
