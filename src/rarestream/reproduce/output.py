"""What is shown of an experiment: its tables and figures, as files of a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rarestream.reproduce import figures, report, tables
from rarestream.reproduce.experiments import EXPERIMENTS
from rarestream.reproduce.paper import numbers
from rarestream.reproduce.results import MISSING
from rarestream.reproduce.tables import Table
from rarestream.trials import Row

FORMS = {"csv": tables.csv, "md": tables.markdown, "tex": tables.latex}
PICTURES = ("png", "svg")


def tables_of(names: Sequence[str], rows: Sequence[Row], shapes: Mapping[str, Mapping[str, Any]]) -> dict[str, Table]:
    """The tables of some experiments, by name. `shapes`: of the data sets that are there."""
    found = {}
    for number in sorted({number for name in names for number in EXPERIMENTS[name].tables}):
        if number == 1:
            missing = {row["dataset"] for row in rows if row["kind"] == MISSING}
            found["table1"] = tables.table1(shapes, numbers(), missing)
        elif number == 2:
            found["table2"] = tables.table2(rows, numbers())
        else:
            found["table3"] = tables.table3(rows, numbers())
    return found


def write_tables(folder: Path, found: Mapping[str, Table]) -> list[Path]:
    """Each as CSV, Markdown and LaTeX."""
    written = []
    for name, table in found.items():
        for suffix, form in FORMS.items():
            path = folder / f"{name}.{suffix}"
            path.write_text(form(table), "utf-8")
            written.append(path)
    return written


def write_figures(
    folder: Path, names: Sequence[str], rows: Sequence[Row], suffixes: Sequence[str] = PICTURES, dpi: int = 200
) -> list[Path]:
    """Each as PNG and SVG. Those without any row of ours still show what was published."""
    written = []
    for number in sorted({number for name in names for number in EXPERIMENTS[name].figures}):
        page = figures.figure(number, rows, numbers())
        for suffix in suffixes:
            path = folder / f"figure{number}.{suffix}"
            page.savefig(path, dpi=dpi)
            written.append(path)
    return written


def write_story(
    path: Path, rows: Sequence[Row], shapes: Mapping[str, Mapping[str, Any]], pictures: Sequence[Path] = ()
) -> list[Path]:
    """What was found, in words and tables: Markdown, which shows pictures that stand beside it or below."""
    shown = [picture.relative_to(path.parent).as_posix() for picture in pictures if picture.suffix == ".png"]
    path.write_text(report.markdown(rows, numbers(), report.environment(), shapes, shown), "utf-8")
    return [path]


def write_page(folder: Path, rows: Sequence[Row], shapes: Mapping[str, Mapping[str, Any]]) -> list[Path]:
    """The same with plots, as a page that needs no network."""
    path = folder / "report.html"
    path.write_text(report.html(rows, numbers(), report.environment(), shapes), "utf-8")
    return [path]
