"""What is shown of an experiment: its tables and figures, as files of a folder, each whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rarestream.reproduce import figures, report, tables
from rarestream.reproduce.experiments import EXPERIMENTS
from rarestream.reproduce.paper import numbers
from rarestream.reproduce.results import MISSING
from rarestream.reproduce.tables import Table
from rarestream.system import write_whole
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


def written(names: Sequence[str], story: bool) -> list[str]:
    """The files that some experiments write to a folder."""
    numbered = [
        *(f"table{number}.{suffix}" for name in names for number in EXPERIMENTS[name].tables for suffix in FORMS),
        *(f"figure{number}.{suffix}" for name in names for number in EXPERIMENTS[name].figures for suffix in PICTURES),
    ]
    return [*dict.fromkeys(numbered), *(["report.md", "report.html"] if story else [])]


def write_tables(folder: Path, found: Mapping[str, Table]) -> list[Path]:
    """Each as CSV, Markdown and LaTeX."""
    written = []
    for name, table in found.items():
        for suffix, form in FORMS.items():
            path = folder / f"{name}.{suffix}"
            write_whole(path, form(table).encode())
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
            drawn = io.BytesIO()
            page.savefig(drawn, format=suffix, dpi=dpi)
            write_whole(path, drawn.getvalue())
            written.append(path)
    return written


def write_story(
    path: Path, rows: Sequence[Row], shapes: Mapping[str, Mapping[str, Any]], pictures: Sequence[Path] = ()
) -> list[Path]:
    """What was found, in words and tables: Markdown, which shows pictures that stand beside it or below."""
    shown = [picture.relative_to(path.parent).as_posix() for picture in pictures if picture.suffix == ".png"]
    write_whole(path, report.markdown(rows, numbers(), report.environment(), shapes, shown).encode())
    return [path]


def write_page(folder: Path, rows: Sequence[Row], shapes: Mapping[str, Mapping[str, Any]]) -> list[Path]:
    """The same with plots, as a page that needs no network."""
    path = folder / "report.html"
    write_whole(path, report.html(rows, numbers(), report.environment(), shapes).encode())
    return [path]
