"""Tables, four ways to print one (plain text, CSV, Markdown and LaTeX), and a way to make one narrower.

A cell has our mean with its standard error, the published number and the difference; or, where there is no number,
the reason. It is never blank.
"""

from __future__ import annotations

import csv as comma
import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rarestream.study.text import align, piped


@dataclass(frozen=True)
class Cell:
    """A number, what it is compared with, and what to know of it."""

    ours: float | None = None
    error: float | None = None  # standard error of ours
    trials: int = 0
    published: float | None = None
    data: str = ""  # how close the rows are to the paper's, if they are others
    note: str = ""  # why there is no number, or what to know of it
    signed: bool = False  # ours is itself a difference
    form: str = ""  # how it is printed, if not as the others of its section

    @property
    def difference(self) -> float | None:
        """Ours minus published."""
        return None if self.ours is None or self.published is None else self.ours - self.published

    @property
    def remark(self) -> str:
        """What is printed beside the number."""
        return ", ".join(filter(None, (self.data, self.note)))


@dataclass(frozen=True)
class Line:
    """A row of a table."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Section:
    """Lines whose numbers are of one kind."""

    name: str
    form: str  # how its numbers are printed, a format specification
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Table:
    """A table with its title and a note."""

    title: str
    note: str
    corner: str  # what the lines are
    columns: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def compared(self) -> bool:
        """Whether any cell has a published number."""
        return any(cell.published is not None for _, _, cell in self.cells())

    def cells(self) -> Iterable[tuple[Section, tuple[str, str], Cell]]:
        """Yield each cell with its section and the names of its line and column."""
        for section in self.sections:
            for line in section.lines:
                for column, cell in zip(self.columns, line.cells, strict=True):
                    yield section, (line.name, column), cell


def number(value: float | None, form: str) -> str:
    """Format a number; a dash stands for none."""
    return "-" if value is None else format(value, form)


def _error(cell: Cell, form: str) -> str:
    return "" if cell.error is None else f" ± {format(cell.error, '.1g' if 'g' in form else form.lstrip('+'))}"


def _signed(form: str) -> str:
    return "+" + form.lstrip("+")


def terminal(table: Table) -> str:
    """Print as plain text: up to three lines per method (ours, published, difference), notes below."""
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
        out += ["", *align(grid, left=range(2 if table.compared else 1))]
    out += ["", table.note]
    out += [f"{mark} {note}" for note, mark in marks.items()]
    return "\n".join(out) + "\n"


def _ours(cell: Cell, form: str, marks: dict[str, str]) -> str:
    """Return our number and the mark of its note; or why there is none, or the mark of that if it is long."""
    form = cell.form or form
    if cell.ours is None:
        return cell.note if len(cell.note) <= 16 else "see " + _mark(cell.note, marks)
    text = number(cell.ours, form) + _error(cell, form)
    if not cell.remark:
        return text
    return f"{text} ({cell.remark})" if cell.signed else f"{text} {_mark(cell.remark, marks)}"


def _mark(note: str, marks: dict[str, str]) -> str:
    return marks.setdefault(note, f"[{len(marks) + 1}]")


def csv(table: Table) -> str:
    """Print as CSV: one line per cell, all digits."""
    out = io.StringIO()
    writer = comma.writer(out, lineterminator="\n")
    heading = ["section", table.corner, "column", "ours", "standard_error", "trials", "published", "difference", "note"]
    writer.writerow(heading)
    for section, names, cell in table.cells():
        values = [cell.ours, cell.error, cell.trials or None, cell.published, cell.difference]
        writer.writerow(
            [section.name, *names, *("" if value is None else repr(value) for value in values), cell.remark]
        )
    return out.getvalue()


def markdown(table: Table) -> str:
    """Print as Markdown: one table per section; a cell reads: ours ± error (published, difference)."""
    out = [f"**{table.title}.** {table.note}"] if table.title else []
    for section in table.sections:
        heading = [section.name, *table.columns]
        out += ["", piped(heading), "|" + "---|" * len(heading)]
        for line in section.lines:
            out.append(piped([line.name, *(_inline(cell, section.form) for cell in line.cells)]))
    return "\n".join(out) + "\n"


def _inline(cell: Cell, form: str) -> str:
    form = cell.form or form
    paper = [] if cell.published is None else [number(cell.published, form)]
    if cell.ours is None:
        return cell.note + (f" ({paper[0]})" if paper else "")
    if cell.difference is not None:
        paper.append(number(cell.difference, _signed(form)))
    text = number(cell.ours, form) + _error(cell, form) + (f" ({', '.join(paper)})" if paper else "")
    return f"{text}; {cell.remark}" if cell.remark else text


def short(table: Table, sections: Sequence[str], lines: Collection[str] | None = None, errors: bool = True) -> Table:
    """Return a narrower table: one number per cell, without columns and lines that have none.

    What is to be known of single cells is said below, by a mark.

    Parameters
    ----------
    table : Table
        The table.
    sections : sequence of str
        The names of its sections to keep.
    lines : collection of str, optional
        The names of its lines to keep. By default all.
    errors : bool
        Whether numbers have their standard errors.

    Returns
    -------
    Table
        It has no title; its note says what the marks mean.
    """
    kept = [
        Section(part.name, part.form, tuple(line for line in part.lines if lines is None or line.name in lines))
        for part in table.sections
        if part.name in sections
    ]
    shown = {column for part in kept for line in part.lines for column, cell in _with_number(table, line)}
    marks: dict[str, str] = {}
    narrow = []
    for part in kept:
        rows = []
        for line in part.lines:
            if any(True for _ in _with_number(table, line)):
                cells = zip(table.columns, line.cells, strict=True)
                rows.append(
                    Line(line.name, tuple(_short(cell, part.form, marks, errors) for at, cell in cells if at in shown))
                )
        narrow.append(Section(part.name, part.form, tuple(rows)))
    note = "; ".join(f"{mark} {words}" for words, mark in marks.items())
    columns = tuple(column for column in table.columns if column in shown)
    return Table("", note and f"{note}.", table.corner, columns, tuple(part for part in narrow if part.lines))


def _with_number(table: Table, line: Line) -> Iterator[tuple[str, Cell]]:
    for column, cell in zip(table.columns, line.cells, strict=True):
        if cell.ours is not None:
            yield column, cell


def _short(cell: Cell, form: str, marks: dict[str, str], errors: bool) -> Cell:
    """Return a cell of words: our number, and the mark of its note."""
    form = cell.form or form
    if cell.ours is None:
        return Cell(note=cell.note if len(cell.note) <= 16 else f"none{_superscript(cell.note, marks)}")
    error = _error(cell, form).replace("± ", "±\u00a0") if errors else ""  # a line never ends within it
    text = number(cell.ours, form) + error
    return Cell(note=text + (_superscript(cell.note, marks) if cell.note else ""))


def _superscript(note: str, marks: dict[str, str]) -> str:
    return marks.setdefault(note, str(len(marks) + 1).translate(SUPERSCRIPTS))


def latex(table: Table) -> str:
    """Print as a LaTeX table for booktabs, with a rule between sections."""
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


SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
TEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def _tex(text: str) -> str:
    return "".join(TEX.get(letter, "\\" + letter if letter in "&%$#_{}" else letter) for letter in text)
