"""The files of an experiment: its tables, figures and report in a folder, each written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rarestream.errors import MissingExtraError
from rarestream.reproduce import figures, report, tables
from rarestream.reproduce.experiments import EXPERIMENTS, FinishedRows, FoundData
from rarestream.reproduce.paper import numbers
from rarestream.study.page import environment
from rarestream.study.rows import TrialRow
from rarestream.study.tables import Table, csv, latex, markdown
from rarestream.system import write_whole

TABLES = {2: tables.table2, 3: tables.table3}
FORMS = {"csv": csv, "md": markdown, "tex": latex}
PICTURES = ("png", "svg")

Shapes = Mapping[str, Mapping[str, Any]]  # of the data sets that were found: their lines of Table I


class Written(NamedTuple):
    """What was written."""

    tables: list[Table]
    paths: list[Path]
    warnings: list[str]  # of files that need a package that is not installed


def file_names(names: Sequence[str], report: bool) -> list[str]:
    """Return the files that some experiments write to a folder."""
    numbered = [
        *(f"table{number}.{suffix}" for name in names for number in EXPERIMENTS[name].tables for suffix in FORMS),
        *(f"figure{number}.{suffix}" for name in names for number in EXPERIMENTS[name].figures for suffix in PICTURES),
    ]
    return [*dict.fromkeys(numbered), *(["report.md", "report.html"] if report else [])]


def write(
    names: Sequence[str], data: FoundData, rows: FinishedRows, folder: Path, *, report: bool, story: Path | None = None
) -> Written:
    """Write the tables and figures of some experiments to a folder.

    Parameters
    ----------
    names : sequence of str
        Names of experiments, the keys of `EXPERIMENTS`.
    data : FoundData
        What `find_data` returned.
    rows : FinishedRows
        What `run_experiments` or `finished_experiments` returned.
    folder : Path
        An existing folder.
    report : bool
        Whether to write a report of all rows too.
    story : Path, optional
        A Markdown file to write the report to as well, its figures to a folder of the same name beside it.

    Returns
    -------
    Written
        The tables, the files, and why some files were not written.
    """
    warnings: list[str] = []

    def unless_missing(step: Callable[[], list[Path]]) -> list[Path]:
        try:
            return step()
        except MissingExtraError as error:
            warnings.append(str(error))
            return []

    shown, every = rows.asked + data.missing_rows(), rows.every + data.missing_rows()
    shapes = data.shapes() if "table1" in names else {}
    found: list[Table] = []
    paths: list[Path] = []
    for number in sorted({number for name in names for number in EXPERIMENTS[name].tables}):
        if number == 1:
            found.append(tables.table1(shapes, numbers(), data.missing))
        else:
            found.append(TABLES[number](shown, numbers()))
        paths += write_table(folder / f"table{number}", found[-1])
    drawn = sorted({number for name in names for number in EXPERIMENTS[name].figures})
    pictures = unless_missing(lambda: write_figures(folder, drawn, shown))
    paths += pictures
    if report and rows.every:
        paths += write_markdown(folder / "report.md", every, shapes, captioned(pictures, folder, shown))
        paths += unless_missing(lambda: write_page(folder, every, shapes))
    if story is not None:
        beside = story.with_suffix("")
        beside.mkdir(parents=True, exist_ok=True)
        told = [number for number in drawn if figures.has_lines(number, shown)]
        pictures = unless_missing(lambda: write_figures(beside, told, shown, ["svg"]))
        paths += pictures + write_markdown(story, every, shapes, captioned(pictures, story.parent, shown))
    return Written(found, paths, warnings)


def write_table(path: Path, table: Table) -> list[Path]:
    """Write a table as CSV, Markdown and LaTeX."""
    written = []
    for suffix, form in FORMS.items():
        written.append(path.with_suffix(f".{suffix}"))
        write_whole(written[-1], form(table).encode())
    return written


def write_figures(
    folder: Path, drawn: Iterable[int], rows: Sequence[TrialRow], suffixes: Sequence[str] = PICTURES
) -> list[Path]:
    """Write figures by their numbers, as PNG and SVG; without rows of ours one still shows the published lines."""
    written = []
    for number in drawn:
        figure = figures.figure(number, rows, numbers())
        for suffix in suffixes:
            path = folder / f"figure{number}.{suffix}"
            write_whole(path, figures.drawn(figure, suffix))
            written.append(path)
    return written


def captioned(paths: Sequence[Path], folder: Path, rows: Sequence[TrialRow]) -> list[report.Picture]:
    """Return the figures that a report in the folder shows: those with lines of ours."""
    found = []
    for path in paths:
        number = int(path.stem.removeprefix("figure"))
        if path.suffix == ".svg" and figures.has_lines(number, rows):
            title = f"Figure {number}: {figures.PLANS[number].title}"
            found.append(report.Picture(path.relative_to(folder).as_posix(), title, figures.caption(number, rows)))
    return found


def write_markdown(
    path: Path, rows: Sequence[TrialRow], shapes: Shapes, pictures: Sequence[report.Picture] = ()
) -> list[Path]:
    """Write the report as Markdown."""
    write_whole(path, report.markdown(rows, numbers(), environment(), shapes, pictures).encode())
    return [path]


def write_page(folder: Path, rows: Sequence[TrialRow], shapes: Shapes) -> list[Path]:
    """Write the report as a page with plots."""
    path = folder / "report.html"
    write_whole(path, report.html(rows, numbers(), environment(), shapes).encode())
    return [path]
