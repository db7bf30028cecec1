"""What rows are compared with: the published tables and curves, and each other, trial by trial."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from rarestream.reproduce import figures
from rarestream.reproduce.datasets import EXACT, OTHER_ROWS
from rarestream.reproduce.datasets import NAMES as SETS
from rarestream.reproduce.methods import LABELS, TABLE2, TABLE3
from rarestream.reproduce.protocol import TRIALS
from rarestream.reproduce.tables import RATIOS, Published
from rarestream.study import results
from rarestream.study.figures import SECONDS
from rarestream.study.results import Mean, Result, Results
from rarestream.study.tables import Cell, Section

APART = 0.0005  # of an AUC: more than rounding


# -- with published numbers


def is_same(cell: Cell, section: Section) -> bool:
    """Return whether a cell is reproduced to the last printed digit, rounded or truncated."""
    return abs(cell.difference or 0.0) < 10.0 ** -int(section.form[1])


def is_near(cell: Cell) -> bool:
    return abs(cell.difference or 0.0) <= max(2 * (cell.error or 0.0), 1e-4)


def printed_auc(published: Published, name: str, method: str, ratio: float | None) -> float | None:
    if not published:
        return None
    table = published["table2"]["auc"] if ratio is None else published["table3"][str(ratio)]
    value: Sequence[float] | None = table.get(name, {}).get(method)
    return None if value is None else value[0]


def contest(corrected: Results, published: Published, ratios: Sequence[float | None]) -> list[tuple[Mean, float]]:
    """Return the AUC of `auto` and the best published one wherever rows can be compared."""
    found = []
    for ratio, name in itertools.product(ratios, SETS):
        rival, result = best_published(published, name, ratio), corrected.get(name, "auto", ratio)
        mean = result.mean(results.auc) if result else None
        if rival and result and mean and result.data not in OTHER_ROWS:
            found.append((mean, rival[0]))
    return found


def best_published(published: Published, name: str, ratio: float | None) -> tuple[float, str] | None:
    """Return the best published AUC, and its method."""
    if not published:
        return None
    table = published["table2"]["auc"] if ratio is None else published["table3"][str(ratio)]
    return max((float(value[0]), method) for method, value in table[name].items())


def curve_distances(as_published: Results, published: Published) -> dict[int, dict[str, float]]:
    """Return, for each figure, the distance of each line from that of the authors, at the same rows or lambdas."""
    distances = {}
    for number, plan in figures.PLANS.items():
        paper = {} if plan.x == SECONDS else figures.published_lines(number, published)
        found = {}
        for name in plan.sets:
            for method, line in paper.get(name, {}).items():  # also those that the figure leaves out
                result = plan.result(as_published, name, method)
                if result and result.data == EXACT and len(result.trials) >= TRIALS:
                    distance = _distance(result, line)
                    if distance is not None:
                        found[f"{as_published.label(method)} on {name}"] = distance
        if found:
            distances[number] = found
    return distances


def _distance(result: Result, line: Mapping[str, Sequence[float]]) -> float | None:
    """Return the largest difference in mean AUC; None where ours were not measured at the same places."""
    if "rows" in line:
        curve = result.curve()
        ours = dict(zip(curve.rows, curve.test_auc, strict=True)) if curve else {}
        pairs = [(ours[rows], auc) for rows, auc in zip(line["rows"], line["test_auc"], strict=True) if rows in ours]
    else:
        points = result.sparsity()
        same = len(points) == len(line["test_auc"])
        pairs = [(mine.auc, auc) for mine, auc in zip(points, line["test_auc"], strict=True)] if same else []
    return max(abs(mine - theirs) for mine, theirs in pairs) if pairs else None


class Contradiction(NamedTuple):
    """A number of a table that is not the end of the authors' own curve, the mean of the same ten trials."""

    method: str
    name: str
    printed: float
    end: float


CURVES = {None: ("Table II", 8), 0.1: ("Table III at 0.1", 5), 0.05: ("Table III at 0.05", 10)}  # the figure


def contradictions(published: Mapping[str, Any], ratio: float | None) -> list[Contradiction]:
    table = published["table2"]["auc"] if ratio is None else published["table3"][str(ratio)]
    each = (
        Contradiction(LABELS[method], name, table[name][method][0], line["test_auc"][-1])
        for name, lines in published[f"figure{CURVES[ratio][1]}"].items()
        for method, line in lines.items()
    )
    return [one for one in each if abs(one.end - one.printed) > APART]


# -- with each other


Differences = dict[tuple[str, float | None], Mean]


def differences(
    one: Callable[..., Result | None], other: Callable[..., Result | None], ratios: Sequence[float | None]
) -> Differences:
    """Return the mean difference in AUC over shared trials, wherever both have some."""
    found: Differences = {}
    for ratio, name in itertools.product(ratios, SETS):
        mine, theirs = one(dataset=name, ratio=ratio), other(dataset=name, ratio=ratio)
        gap = results.mean(results.auc_differences(mine, theirs)) if mine and theirs else None
        if gap is not None:
            found[name, ratio] = gap
    return found


def fixes(corrected: Results, as_published: Results) -> dict[str, Differences]:
    """Return corrected minus with the bugs, for every method that has both."""
    found = {
        method: differences(
            partial(corrected.get, method=method), partial(as_published.get, method=method), (None, *RATIOS)
        )
        for method in dict.fromkeys((*TABLE2, *TABLE3))
    }
    return {method: gaps for method, gaps in found.items() if gaps}


def verdict(gaps: Iterable[Mean]) -> str:
    """Return in words how many differences are positive, negative, and not significant, as far as there are some."""
    words = ("higher", "lower", "within two standard errors")
    found = [f"{word} in {count}" for word, count in zip(words, counts(gaps), strict=True) if count != "0"]
    return ", ".join(found)


def counts(gaps: Iterable[Mean]) -> list[str]:
    """Return how many differences are positive, negative, and not significant."""
    counts = [0, 0, 0]
    for gap in gaps:
        counts[2 if not is_certain(gap) else 0 if gap.value > 0 else 1] += 1
    return [str(count) for count in counts]


def is_certain(gap: Mean) -> bool:
    return gap.error is not None and abs(gap.value) > 2 * gap.error


def signed(mean: Mean) -> str:
    """Return a difference with its sign and its standard error."""
    error = "" if mean.error is None else f" ±\u00a0{mean.error:.4f}"  # a line never ends within it
    return f"{mean.value:+.4f}{error}"
