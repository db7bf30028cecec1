"""The paper's tables as functions of rows, and four ways to print one.

A cell has our mean with its standard error, the published number and the difference; or, where there is no number,
the reason. It never is blank.
"""

from __future__ import annotations

import csv as comma
import io
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rarestream.reproduce import results
from rarestream.reproduce.datasets import NAMES as SETS
from rarestream.reproduce.methods import CORRECTED, NONE, OURS, PUBLISHED, TABLE2, TABLE3
from rarestream.reproduce.results import Result, Results, Row

RATIOS = (0.1, 0.05)
REFERENCE = "ftrl_auc"
CUTS = {"pruned_test_auc": "pruned", "budget_test_auc": "on a budget"}  # to the published size
WORDS = {CORRECTED: "corrected", PUBLISHED: "as published"}
Published = Mapping[str, Any] | None


@dataclass(frozen=True)
class Cell:
    ours: float | None = None
    error: float | None = None  # standard error of ours
    trials: int = 0
    published: float | None = None
    data: str = ""  # how near the rows are to the paper's, if they are not these
    note: str = ""  # why there is no number, or what to know of it
    signed: bool = False  # ours is itself a difference
    form: str = ""  # how it is printed, if not as the others of its section

    @property
    def difference(self) -> float | None:
        return None if self.ours is None or self.published is None else self.ours - self.published

    @property
    def remark(self) -> str:
        return ", ".join(filter(None, (self.data, self.note)))


@dataclass(frozen=True)
class Line:
    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Section:
    name: str
    form: str  # how its numbers are printed, a format specification
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Table:
    title: str
    note: str
    corner: str  # what the lines are
    columns: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def compared(self) -> bool:
        """Whether the paper has numbers for it."""
        return any(cell.published is not None for _, _, cell in self.cells())

    def cells(self) -> Iterable[tuple[Section, tuple[str, str], Cell]]:
        """Each with its section and the names of its line and column."""
        for section in self.sections:
            for line in section.lines:
                for column, cell in zip(self.columns, line.cells, strict=True):
                    yield section, (line.name, column), cell


def table1(
    found: Mapping[str, Mapping[str, Any]], published: Published, missing: Collection[str] | None = None
) -> Table:
    """The data sets: those found, as `DataSet.shape` has them, beside those of the paper.

    missing  those looked for in vain; None: all that were not found
    """
    said = published["table1"] if published else {}
    fields = {"n": "n", "n_pos": "n+", "n_neg": "n-", "d": "d", "k": "k"}
    lines = []
    for name in [*said, *(name for name in found if name not in said)]:
        shape = found.get(name)
        absent = "no data" if missing is None or name in missing else "left out"
        cells = [
            Cell(
                ours=None if shape is None else round(float(shape[field])),
                published=said.get(name, {}).get(field),
                note=absent if shape is None else "",
            )
            for field in fields
        ]
        what = Cell(note=absent if shape is None else ": ".join(filter(None, (shape["data"], shape.get("note")))))
        lines.append(Line(name, (*cells, what)))
    note = "n rows, n+ of them positive and n- negative, d features, k non-zeros a row."
    section = Section("Rows and features", ",.0f", tuple(lines))
    return Table("Table I: data sets", note, "set", (*fields.values(), "the rows"), (section,))


def table2(rows: Iterable[Row], published: Published, mode: str | None = None) -> Table:
    """Run time, sparse ratio and AUC of the AUC methods on all rows of each set, and of ours that need no tuning."""
    found = Results(rows, mode)
    methods = (*TABLE2, *(method for method in (*TABLE3, *OURS) if _any(found, method, None) and method not in TABLE2))
    parts: list[tuple[str, str, str, Callable[[Row], float]]] = [
        ("Run time, seconds", "seconds", ".3g", results.seconds),
        ("Sparse ratio", "sparse_ratio", ".4f", results.sparse_ratio),
        ("AUC", "auc", ".5f", results.auc),
    ]
    said = published["table2"] if published else {}
    sections = [
        Section(name, form, _lines(found, methods, SETS, None, said.get(key, {}), value))
        for name, key, form, value in parts
    ]
    return Table(f"Table II: AUC methods, {WORDS[found.mode]}", _note(found), "method", SETS, tuple(sections))


def table3(rows: Iterable[Row], published: Published, mode: str | None = None) -> Table:
    """AUC of FTRL-AUC and the logistic methods with positives cut down to 0.1 and 0.05 of the negatives."""
    found = Results(rows, mode)
    said = published["table3"] if published else {}
    sections = []
    for ratio in RATIOS:
        methods = (*TABLE3, *(method for method in OURS if _any(found, method, ratio)))
        lines = _lines(found, methods, SETS, ratio, said.get(str(ratio), {}), results.auc)
        sections.append(Section(f"AUC, {ratio:g} positives a negative", ".4f", lines))
    return Table(f"Table III: imbalanced sets, {WORDS[found.mode]}", _note(found), "method", SETS, tuple(sections))


def at_published_size(rows: Iterable[Row], published: Published) -> Table:
    """AUC of ours with as many weights as the paper's FTRL-AUC had: the largest kept, or that budget while learning."""
    found = Results(rows, CORRECTED)
    said = published["table2"]["auc"] if published else {}
    lines = []
    for method, (key, words) in itertools.product(OURS, CUTS.items()):
        cells = []
        for name in SETS:
            result = found.get(name, method)
            aucs = [value for row in result.trials if (value := _at_size(row).get(key)) is not None] if result else []
            average = results.mean(aucs)
            theirs = said.get(name, {}).get(REFERENCE, [None])[0]
            if result is None or average is None:
                cells.append(Cell(published=theirs, note=found.why_not(name)))
            else:
                cells.append(Cell(*average, theirs, _data(result), found.less(result)))
        if any(cell.ours is not None for cell in cells):
            lines.append(Line(f"{found.label(method)}, {words}", tuple(cells)))
    note = "Beside the AUC of the paper's FTRL-AUC, which has that many weights. ± is the standard error of the mean."
    section = Section("AUC at the published size", ".5f", tuple(lines))
    return Table("As small as the paper's FTRL-AUC", note, "method", SETS, (section,))


def _at_size(row: Row) -> Mapping[str, float]:
    found: Mapping[str, float] = results.chosen(row).get("at_published_size", {})
    return found


def paired(rows: Iterable[Row], reference: str = REFERENCE, mode: str | None = None) -> Table:
    """AUC less that of a reference method in the same trials: what the trials share cancels."""
    found = Results(rows, mode)
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
            sections.append(Section(_rows_of(ratio), "+.4f", lines))
    note = "Means over the trials that both have ± standard errors, and in how many of them it is above."
    title = f"AUC less that of {found.label(reference)}, trial by trial"
    return Table(title, note, "method", tuple(found.datasets), tuple(sections))


def _gap(found: Results, name: str, method: str, reference: str, ratio: float | None) -> Cell:
    one, other = found.get(name, method, ratio), found.get(name, reference, ratio)
    if one is None or other is None:
        return Cell(note=found.why_not(name))
    gaps = results.gaps(one, other)
    average = results.mean(gaps)
    if average is None:
        return Cell(note=other.why_not if one.trials else one.why_not)
    better = f"{sum(gap > 0 for gap in gaps)} of {len(gaps)}"
    return Cell(average.value, average.error, average.trials, note=better, signed=True)


def _rows_of(ratio: float | None) -> str:
    return "all rows" if ratio is None else f"{ratio:g} positives a negative"


def _any(found: Results, method: str, ratio: float | None) -> bool:
    return any(found.get(name, method, ratio) for name in SETS)


def _lines(
    found: Results,
    methods: Sequence[str],
    sets: Sequence[str],
    ratio: float | None,
    said: Mapping[str, Mapping[str, Sequence[float]]],
    value: Callable[[Row], float],
) -> tuple[Line, ...]:
    return tuple(
        Line(
            found.label(method),
            tuple(
                _cell(found, found.get(name, method, ratio), value, said.get(name, {}).get(method), name)
                for name in sets
            ),
        )
        for method in methods
    )


def _cell(
    found: Results, result: Result | None, value: Callable[[Row], float], said: Sequence[float] | None, name: str
) -> Cell:
    published = None if said is None else said[0]
    average = result.mean(value) if result else None
    if result is None or average is None:
        return Cell(published=published, note=result.why_not if result else found.why_not(name))
    notes = [found.less(result)]
    if result.failures:
        notes.append(f"{len(result.failures)} of {len(result.failures) + average.trials} trials failed")
    return Cell(*average, published, _data(result), ", ".join(filter(None, notes)))


def _data(result: Result) -> str:
    return "" if result.data in ("exact", "own") else result.data


def _note(found: Results) -> str:
    kinds = {CORRECTED: "this library's learners", PUBLISHED: "the authors' arithmetic, slips included"}
    return f"Ours: {kinds[found.mode]}. {_amount(found)}"


def _amount(found: Results) -> str:
    trials = sorted({len(one.trials) for one in found.all() if one.trials}) or [0]
    counts = " to ".join(map(str, dict.fromkeys((trials[0], trials[-1]))))
    grids = ", ".join(sorted({one.grid for one in found.all()} - {NONE}))
    searched = f", settings searched: {grids}" if grids else ""
    return f"{counts} trials a cell{searched}. ± is the standard error of the mean."


def number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _error(cell: Cell, form: str) -> str:
    return "" if cell.error is None else f" ± {format(cell.error, '.1g' if 'g' in form else form.lstrip('+'))}"


def _signed(form: str) -> str:
    return "+" + form.lstrip("+")


def terminal(table: Table) -> str:
    """Plain text. A line of the table is up to three: ours, published, difference; notes stand below."""
    out = [table.title]
    marks: dict[str, str] = {}
    for section in table.sections:
        grid = [[section.name, *([""] if table.compared else []), *table.columns]]
        for line in section.lines:
            kinds: list[tuple[str, list[str]]] = [("ours", [_ours(cell, section.form, marks) for cell in line.cells])]
            if any(cell.published is not None for cell in line.cells):
                kinds.append(("published", [number(cell.published, section.form) for cell in line.cells]))
            if any(cell.difference is not None for cell in line.cells):
                kinds.append(("difference", [number(cell.difference, _signed(section.form)) for cell in line.cells]))
            for place, (kind, texts) in enumerate(kinds):
                grid.append(["" if place else line.name, *([kind] if table.compared else []), *texts])
        out += ["", *_aligned(grid, left=2 if table.compared else 1)]
    out += ["", table.note]
    out += [f"{mark} {note}" for note, mark in marks.items()]
    return "\n".join(out) + "\n"


def _ours(cell: Cell, form: str, marks: dict[str, str]) -> str:
    """Our number and the mark of a note; or the reason that there is none, if it is short, else its mark."""
    form = cell.form or form
    if cell.ours is None:
        return cell.note if len(cell.note) <= 16 else "see " + _mark(cell.note, marks)
    text = number(cell.ours, form) + _error(cell, form)
    if not cell.remark:
        return text
    return f"{text} ({cell.remark})" if cell.signed else f"{text} {_mark(cell.remark, marks)}"


def _mark(note: str, marks: dict[str, str]) -> str:
    return marks.setdefault(note, f"[{len(marks) + 1}]")


def _aligned(grid: Sequence[Sequence[str]], left: int) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    return [
        "  ".join(
            text.ljust(wide) if place < left else text.rjust(wide)
            for place, (text, wide) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in grid
    ]


def csv(table: Table) -> str:
    """A line a cell, all digits."""
    out = io.StringIO()
    writer = comma.writer(out, lineterminator="\n")
    heading = ["section", table.corner, "column", "ours", "standard_error", "trials", "published", "difference", "note"]
    writer.writerow(heading)
    for section, names, cell in table.cells():
        values = [cell.ours, cell.error, cell.trials or None, cell.published, cell.difference]
        writer.writerow([section.name, *names, *("" if one is None else repr(one) for one in values), cell.remark])
    return out.getvalue()


def markdown(table: Table) -> str:
    """A table a section; a cell reads: ours ± error (published, difference)."""
    out = [f"**{table.title}.** {table.note}"]
    for section in table.sections:
        heading = [section.name, *table.columns]
        out += ["", _piped(heading), "|" + "---|" * len(heading)]
        for line in section.lines:
            out.append(_piped([line.name, *(_inline(cell, section.form) for cell in line.cells)]))
    return "\n".join(out) + "\n"


def _inline(cell: Cell, form: str) -> str:
    form = cell.form or form
    said = [] if cell.published is None else [number(cell.published, form)]
    if cell.ours is None:
        return cell.note + (f" ({said[0]})" if said else "")
    if cell.difference is not None:
        said.append(number(cell.difference, _signed(form)))
    text = number(cell.ours, form) + _error(cell, form) + (f" ({', '.join(said)})" if said else "")
    return f"{text}; {cell.remark}" if cell.remark else text


def _piped(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def latex(table: Table) -> str:
    """A tabular with a rule between sections, for booktabs."""
    wide = len(table.columns) + 1
    out = [
        r"\begin{table*}",
        rf"\caption{{{_tex(table.title)}. {_tex(table.note)}}}",
        r"\centering\small",
        rf"\begin{{tabular}}{{l{'r' * (wide - 1)}}}",
        r"\toprule",
        " & ".join(["", *map(_tex, table.columns)]) + r" \\",
    ]
    for section in table.sections:
        out += [r"\midrule", rf"\multicolumn{{{wide}}}{{l}}{{\emph{{{_tex(section.name)}}}}} \\"]
        for line in section.lines:
            out.append(
                " & ".join([_tex(line.name), *(_tex(_inline(cell, section.form)) for cell in line.cells)]) + r" \\"
            )
    return "\n".join([*out, r"\bottomrule", r"\end{tabular}", r"\end{table*}"]) + "\n"


TEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def _tex(text: str) -> str:
    return "".join(TEX.get(letter, "\\" + letter if letter in "&%$#_{}" else letter) for letter in text)
