"""Standings: the rows of a comparison as a table, the best method first.

    auc       the mean over the trials of the AUC on the test rows, and its standard error
    behind    the AUC of the best method minus this one, as the mean of the differences trial by trial, and the
              standard error of that mean: trials share their rows, so it is far smaller than that of either AUC

Trials are permutations of the same rows: they show what another order and another split would give, not what other
data would. With a single trial, errors are the jackknife's over groups of its test rows.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from csv import writer
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.compare.methods import METHODS
from rarestream.study import results
from rarestream.study.results import Result, auc_differences
from rarestream.study.rows import TrialRow, chosen_point
from rarestream.study.text import piped

TIE = 2.0  # standard errors


@dataclass(frozen=True)
class Standing:
    """The result of a method. Numbers are means over the trials; nan: unknown.

    Attributes
    ----------
    method, label : str
        Name of the method, and its name in print.
    auc, error : float
        Test AUC and its standard error.
    behind, behind_error : float
        Test AUC of the best method minus this one, 0 for the best itself, and its standard error.
    nonzeros : float
        Number of weights that are not zero.
    microseconds : float
        Time to learn a row.
    state_bytes : float
        Memory of the state.
    trials : int
        Number of trials that succeeded.
    note : str
        How the method differs from the others.
    why : str
        Why there is no number, or not for every trial.
    """

    method: str
    label: str
    auc: float
    error: float
    behind: float
    behind_error: float
    nonzeros: float
    microseconds: float
    state_bytes: float
    trials: int
    note: str
    why: str

    @property
    def close(self) -> bool:
        """Whether it ties with the best: at most two standard errors behind."""
        return self.behind <= TIE * self.behind_error

    def record(self) -> dict[str, Any]:
        """Return the standing as JSON values; None for an unknown number."""
        known = {word: None if _unknown(value) else value for word, value in asdict(self).items()}
        return {"kind": "standing", **known, "close": self.close}


def standings(rows: Sequence[TrialRow], left_out: Mapping[str, str] | None = None) -> list[Standing]:
    """Rank the methods of a comparison.

    Parameters
    ----------
    rows : sequence of TrialRow
        The rows of a Comparison.
    left_out : mapping of str to str, optional
        Methods that were not run, and why.

    Returns
    -------
    list of Standing
        The largest AUC first; then the methods that failed, then those that were left out.
    """
    by_method: dict[str, list[TrialRow]] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
    each = [Result.of(own) for own in by_method.values()]
    most = max((len(result.trials) for result in each), default=0)
    complete = [result for result in each if result.trials and len(result.trials) == most]  # the best has every trial
    best = max(complete, key=_auc, default=None)
    table = [_standing(result, best) for result in each]
    table.sort(key=lambda standing: math.inf if math.isnan(standing.auc) else -standing.auc)
    return table + [_left_out(name, why) for name, why in (left_out or {}).items()]


def _standing(result: Result, best: Result | None) -> Standing:
    method = next((method for method in METHODS.values() if method.word == result.method), None)
    behind, behind_error = math.nan, math.nan
    if best is result:
        behind, behind_error = 0.0, 0.0
    elif best is not None and result.trials:
        behind, behind_error = _mean(auc_differences(best, result)), _error(result, best)
    name = method.name if method else result.method
    failed = (
        f"failed in {len(result.failures)} of {len(result.failures) + len(result.trials)} trials: "
        if result.failures
        else ""
    )
    return Standing(
        name,
        result.label or name,
        _auc(result),
        _error(result),
        behind,
        behind_error,
        _mean([chosen_point(row)["nonzeros"] or 0 for row in result.trials]),
        _mean([1e6 * results.seconds(row) / row["n_train"] for row in result.trials]),
        _mean([row["state_bytes"] for row in result.trials]),
        len(result.trials),
        method.note if method else "",
        failed + result.failures[0] if failed else "",
    )


def _auc(result: Result) -> float:
    return _mean([results.auc(row) for row in result.trials])


def _error(result: Result, best: Result | None = None) -> float:
    """Return the standard error of the mean AUC; given the best, of the mean difference from it."""
    mean = results.mean([results.auc(row) for row in result.trials] if best is None else auc_differences(best, result))
    if mean is None:
        return math.nan
    if mean.error is not None:
        return mean.error
    # A single trial: the jackknife over groups of its test rows.
    own = {row["trial"]: row.get("without") for row in result.trials}
    others = own if best is None else {row["trial"]: row.get("without") for row in best.trials}
    trial = next(trial for trial in own if trial in others)
    mine, theirs = own[trial], others[trial]
    if mine is None or theirs is None:
        return math.nan
    return _jackknife(np.array(mine) - (0.0 if best is None else np.array(theirs)))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _jackknife(values: NDArray[np.float64]) -> float:
    """Return the standard error of an estimate, from its values without each of some groups."""
    return float(np.sqrt((len(values) - 1) * values.var()))


def _left_out(name: str, why: str) -> Standing:
    method, nan = METHODS[name], math.nan
    return Standing(method.name, method.label, nan, nan, nan, nan, nan, nan, nan, 0, "", f"left out: {why}")


# -- as text

COLUMNS = ("method", "AUC", "+-", "behind", "+-", "tie", "weights", "us/row", "state", "")


def cells(table: Sequence[Standing]) -> list[tuple[str, ...]]:
    """Return the methods that have an AUC as text, in the order of COLUMNS."""
    return [
        (
            standing.method,
            f"{standing.auc:.4f}",
            _text(standing.error),
            "" if place == 0 else f"{standing.behind:.4f}",
            "" if place == 0 else _text(standing.behind_error),
            "yes" if place and standing.close else "",
            f"{standing.nonzeros:,.0f}",
            f"{standing.microseconds:.2f}",
            _bytes(standing.state_bytes),
            standing.note,
        )
        for place, standing in enumerate(standing for standing in table if standing.trials)
    ]


def remarks(table: Sequence[Standing]) -> list[str]:
    """Return a line for each method that failed or was left out."""
    return [f"{standing.method}: {standing.why}" for standing in table if standing.why]


def markdown(table: Sequence[Standing]) -> str:
    """Return standings as a Markdown table.

    Parameters
    ----------
    table : sequence of Standing
        What `standings` returned.

    Returns
    -------
    str
        The table, and a list of the methods that failed or were left out.
    """
    heading = tuple({"+-": "±", "us/row": "µs/row"}.get(word, word) for word in COLUMNS)
    lines = [heading, tuple("---" if column in (0, len(heading) - 1) else "---:" for column in range(len(heading)))]
    rows = [f"{piped(line)}\n" for line in [*lines, *cells(table)]]
    return "".join([*rows, "\n", *(f"- {remark}\n" for remark in remarks(table))])


def csv(table: Sequence[Standing]) -> str:
    """Return standings as CSV.

    Parameters
    ----------
    table
        As for `markdown`.

    Returns
    -------
    str
        A heading, and one line per method; numbers have all digits.
    """
    words = list(Standing.__dataclass_fields__)
    text = io.StringIO()
    out = writer(text, lineterminator="\n")
    out.writerow([*words, "close"])
    for standing in table:
        values: list[Any] = [*(getattr(standing, word) for word in words), standing.close]
        out.writerow(["" if _unknown(value) else value for value in values])
    return text.getvalue()


def _unknown(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _text(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4f}"


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB"):
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} GB"
