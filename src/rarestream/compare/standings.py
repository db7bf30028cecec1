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
    """How a method did. Numbers are means over the trials; nan: unknown."""

    method: str
    label: str
    auc: float
    error: float
    behind: float  # the best; 0 for the best itself
    behind_error: float
    nonzeros: float
    microseconds: float  # to learn a row
    state_bytes: float
    trials: int  # that succeeded
    note: str  # how it differs from the others
    why: str  # why there is no number, or not of every trial

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
    rows
        Of one data set.
    left_out
        Methods that were not run, and why.

    Returns
    -------
    list of Standing
        The largest AUC first; then the methods that failed, then those that were left out.
    """
    by_method: dict[str, list[TrialRow]] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
    found = [Result.of(own) for own in by_method.values()]
    most = max((len(one.trials) for one in found), default=0)
    complete = [one for one in found if one.trials and len(one.trials) == most]  # the best has every trial
    best = max(complete, key=_auc, default=None)
    table = [_standing(one, best) for one in found]
    table.sort(key=lambda one: (math.isnan(one.auc), -one.auc if not math.isnan(one.auc) else 0.0))
    return table + [_left_out(name, why) for name, why in (left_out or {}).items()]


def _standing(one: Result, best: Result | None) -> Standing:
    method = next((method for method in METHODS.values() if method.word == one.method), None)
    behind, behind_error = math.nan, math.nan
    if best is one:
        behind, behind_error = 0.0, 0.0
    elif best is not None and one.trials:
        behind, behind_error = _mean(auc_differences(best, one)), _error(one, best)
    name = method.name if method else one.method
    failed = f"failed in {len(one.failures)} of {len(one.failures) + len(one.trials)} trials: " if one.failures else ""
    return Standing(
        name,
        one.label or name,
        _auc(one),
        _error(one),
        behind,
        behind_error,
        _mean([chosen_point(row)["nonzeros"] or 0 for row in one.trials]),
        _mean([1e6 * results.seconds(row) / row["n_train"] for row in one.trials]),
        _mean([row["state_bytes"] for row in one.trials]),
        len(one.trials),
        method.note if method else "",
        failed + one.failures[0] if failed else "",
    )


def _auc(one: Result) -> float:
    return _mean([results.auc(row) for row in one.trials])


def _error(one: Result, best: Result | None = None) -> float:
    """Return the standard error of the mean AUC; given the best, of the mean difference from it."""
    found = results.mean([results.auc(row) for row in one.trials] if best is None else auc_differences(best, one))
    if found is None:
        return math.nan
    if found.error is not None:
        return found.error
    # A single trial: the AUCs without each group of its test rows tell.
    own = {row["trial"]: row.get("without") for row in one.trials}
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

COLUMNS = ("method", "AUC", "+-", "behind", "+-", "tie", "non-zeros", "us per row", "state", "")


def cells(table: Sequence[Standing]) -> list[tuple[str, ...]]:
    """Return the methods that have an AUC as text, in the order of COLUMNS."""
    return [
        (
            one.method,
            f"{one.auc:.4f}",
            _text(one.error),
            "" if at == 0 else f"{one.behind:.4f}",
            "" if at == 0 else _text(one.behind_error),
            "yes" if at and one.close else "",
            f"{one.nonzeros:,.0f}",
            f"{one.microseconds:.2f}",
            _bytes(one.state_bytes),
            one.note,
        )
        for at, one in enumerate(one for one in table if one.trials)
    ]


def remarks(table: Sequence[Standing]) -> list[str]:
    """Return a line for each method that failed or was left out."""
    return [f"{one.method}: {one.why}" for one in table if one.why]


def markdown(table: Sequence[Standing]) -> str:
    """Print standings as a Markdown table.

    Parameters
    ----------
    table
        From `standings`.

    Returns
    -------
    str
        The table, and a list of the methods that failed or were left out.
    """
    heading = tuple({"+-": "±", "us per row": "µs per row"}.get(word, word) for word in COLUMNS)
    lines = [heading, tuple("---" if at in (0, len(heading) - 1) else "---:" for at in range(len(heading)))]
    rows = [f"{piped(line)}\n" for line in [*lines, *cells(table)]]
    return "".join([*rows, "\n", *(f"- {remark}\n" for remark in remarks(table))])


def csv(table: Sequence[Standing]) -> str:
    """Print standings as CSV, every number in full.

    Parameters
    ----------
    table
        From `standings`.

    Returns
    -------
    str
        One line per method, and a heading.
    """
    words = list(Standing.__dataclass_fields__)
    text = io.StringIO()
    out = writer(text, lineterminator="\n")
    out.writerow([*words, "close"])
    for one in table:
        values: list[Any] = [*(getattr(one, word) for word in words), one.close]
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
