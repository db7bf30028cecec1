"""The paper's tables as functions of rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from rarestream.reproduce.datasets import NAMES as SETS
from rarestream.reproduce.methods import OURS, TABLE2, TABLE3, results_of
from rarestream.study import results
from rarestream.study.results import Result, Results, ratio_name
from rarestream.study.rows import CORRECTED, NONE, PUBLISHED, TrialRow, chosen_point
from rarestream.study.tables import Cell, Line, Section, Table

RATIOS = (0.1, 0.05)
REFERENCE = "ftrl_auc"
CUTS = {"pruned_test_auc": "pruned", "budget_test_auc": "on a budget"}  # to the published size
MODE_NAMES = {CORRECTED: "corrected", PUBLISHED: "as published"}
Published = Mapping[str, Any] | None


def table1(
    found: Mapping[str, Mapping[str, Any]], published: Published, missing: Collection[str] | None = None
) -> Table:
    """Return Table I: the data sets that were found, as `DataSet.shape` describes them, beside those of the paper.

    `missing` are those that were looked for and not found; by default all that are not in `found`.
    """
    paper = published["table1"] if published else {}
    fields = {"n": "n", "n_pos": "n+", "n_neg": "n-", "d": "d", "k": "k"}
    lines = []
    for name in [*paper, *(name for name in found if name not in paper)]:
        shape = found.get(name)
        absent = "no data" if missing is None or name in missing else "left out"
        cells = [
            Cell(
                ours=None if shape is None else round(float(shape[field])),
                published=paper.get(name, {}).get(field),
                note=absent if shape is None else "",
            )
            for field in fields
        ]
        what = Cell(note=absent if shape is None else ": ".join(filter(None, (shape["data"], shape.get("note")))))
        lines.append(Line(name, (*cells, what)))
    note = "n rows, n+ of them positive and n- negative, d features, k non-zeros per row."
    section = Section("Rows and features", ",.0f", tuple(lines))
    return Table("Table I: data sets", note, "set", (*fields.values(), "the rows"), (section,))


def table2(rows: Iterable[TrialRow], published: Published, mode: str | None = None) -> Table:
    """Return Table II: run time, sparse ratio and AUC of the AUC methods and of ours, on all rows."""
    found = results_of(rows, mode)
    methods = (*TABLE2, *(method for method in (*TABLE3, *OURS) if _any(found, method, None) and method not in TABLE2))
    parts: list[tuple[str, str, str, Callable[[TrialRow], float]]] = [
        ("Run time, seconds", "seconds", ".3g", results.seconds),
        ("Sparse ratio", "sparse_ratio", ".4f", results.sparse_ratio),
        ("AUC", "auc", ".5f", results.auc),
    ]
    paper = published["table2"] if published else {}
    sections = [
        Section(name, form, tuple(_line(found, method, None, paper.get(key, {}), value) for method in methods))
        for name, key, form, value in parts
    ]
    return Table(f"Table II: AUC methods, {MODE_NAMES[found.mode]}", _note(found), "method", SETS, tuple(sections))


def table3(rows: Iterable[TrialRow], published: Published, mode: str | None = None) -> Table:
    """Return Table III: AUC of FTRL-AUC and the logistic methods at positive:negative ratios 0.1 and 0.05."""
    found = results_of(rows, mode)
    paper = published["table3"] if published else {}
    sections = []
    for ratio in RATIOS:
        methods = (*TABLE3, *(method for method in OURS if _any(found, method, ratio)))
        lines = (_line(found, method, ratio, paper.get(str(ratio), {}), results.auc) for method in methods)
        sections.append(Section(f"AUC, {ratio_name(ratio)}", ".4f", tuple(lines)))
    return Table(f"Table III: imbalanced sets, {MODE_NAMES[found.mode]}", _note(found), "method", SETS, tuple(sections))


def at_published_size(rows: Iterable[TrialRow], published: Published) -> Table:
    """Return the AUC of ours with as many weights as the paper's FTRL-AUC: pruned, or learned on that budget."""
    found = results_of(rows, CORRECTED)
    paper = published["table2"]["auc"] if published else {}
    lines = []
    for method, (key, words) in itertools.product(OURS, CUTS.items()):
        cells = []
        for name in SETS:
            result = found.get(name, method)
            aucs = [value for row in result.trials if (value := _at_size(row).get(key)) is not None] if result else []
            average = results.mean(aucs)
            theirs = paper.get(name, {}).get(REFERENCE, [None])[0]
            if result is None or average is None:
                cells.append(Cell(published=theirs, note=found.why_not(name)))
            else:
                cells.append(Cell(*average, theirs, _data(result), found.fewer(result)))
        if any(cell.ours is not None for cell in cells):
            lines.append(Line(f"{found.label(method)}, {words}", tuple(cells)))
    note = "Beside the AUC of the paper's FTRL-AUC, which has that many weights. ± is the standard error of the mean."
    section = Section("AUC at the published size", ".5f", tuple(lines))
    return Table("As small as the paper's FTRL-AUC", note, "method", SETS, (section,))


def _at_size(row: TrialRow) -> Mapping[str, float]:
    found: Mapping[str, float] = chosen_point(row).get("at_published_size", {})
    return found


def paired(rows: Iterable[TrialRow], reference: str = REFERENCE, mode: str | None = None) -> Table:
    """Return AUC minus that of a reference method in the same trials: what the trials share cancels."""
    found = results_of(rows, mode)
    others = [method for method in found.ranked() if method != reference]
    sections = []
    for ratio in found.ratios:
        sets = [name for name in found.datasets if (first := found.get(name, reference, ratio)) and first.trials]
        lines = tuple(
            Line(found.label(method), tuple(_gap(found, name, method, reference, ratio) for name in found.datasets))
            for method in others
            if any((result := found.get(name, method, ratio)) and result.trials for name in sets)
        )
        if lines:
            sections.append(Section(ratio_name(ratio), "+.4f", lines))
    note = "Means over the trials that both have ± standard errors, and in how many of them it is higher."
    title = f"AUC minus that of {found.label(reference)}, trial by trial"
    return Table(title, note, "method", tuple(found.datasets), tuple(sections))


def _gap(found: Results, name: str, method: str, reference: str, ratio: float | None) -> Cell:
    one, other = found.get(name, method, ratio), found.get(name, reference, ratio)
    if one is None or other is None:
        return Cell(note=found.why_not(name))
    gaps = results.auc_differences(one, other)
    average = results.mean(gaps)
    if average is None:
        return Cell(note=other.why_not if one.trials else one.why_not)
    better = f"{sum(gap > 0 for gap in gaps)} of {len(gaps)}"
    return Cell(average.value, average.error, average.trials, note=better, signed=True)


def _any(found: Results, method: str, ratio: float | None) -> bool:
    return any(found.get(name, method, ratio) for name in SETS)


def _line(
    found: Results,
    method: str,
    ratio: float | None,
    paper: Mapping[str, Mapping[str, Sequence[float]]],
    value: Callable[[TrialRow], float],
) -> Line:
    """Return the line of a method: the mean of a number on each data set, beside the published one."""
    cells = []
    for name in SETS:
        published = paper.get(name, {}).get(method, [None])[0]
        result = found.get(name, method, ratio)
        average = result.mean(value) if result else None
        if result is None or average is None:
            cells.append(Cell(published=published, note=result.why_not if result else found.why_not(name)))
            continue
        notes = [found.fewer(result)]
        if result.failures:
            notes.append(f"{len(result.failures)} of {len(result.failures) + average.trials} trials failed")
        cells.append(Cell(*average, published, _data(result), ", ".join(filter(None, notes))))
    return Line(found.label(method), tuple(cells))


def _data(result: Result) -> str:
    return "" if result.data in ("exact", "own") else result.data


def _note(found: Results) -> str:
    kinds = {CORRECTED: "this library's learners", PUBLISHED: "the authors' arithmetic, with the authors' bugs"}
    return f"Ours: {kinds[found.mode]}. {_amount(found)}"


def _amount(found: Results) -> str:
    trials = sorted({len(one.trials) for one in found.all() if one.trials}) or [0]
    counts = " to ".join(map(str, dict.fromkeys((trials[0], trials[-1]))))
    grids = ", ".join(sorted({one.grid for one in found.all()} - {NONE}))
    searched = f", settings searched: {grids}" if grids else ""
    return f"{counts} trials per cell{searched}. ± is the standard error of the mean."
