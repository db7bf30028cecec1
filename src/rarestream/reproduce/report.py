"""The report of the paper's experiments: what was found, its tables and figures, as Markdown and as an HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rarestream.reproduce import errata, story, tables
from rarestream.reproduce.figures import published_line, published_lines
from rarestream.reproduce.methods import METHODS, results_of
from rarestream.reproduce.tables import Published
from rarestream.study import page
from rarestream.study.figures import AUC, ROWS, SECONDS, PlotLine
from rarestream.study.page import Chapter, PlotKind
from rarestream.study.results import extent
from rarestream.study.rows import CORRECTED, MISSING, PUBLISHED, TrialRow
from rarestream.study.tables import Table
from rarestream.study.tables import markdown as table_markdown
from rarestream.study.text import piped

PAPER = "Online AUC Optimization for Sparse High-Dimensional Datasets (Zhou, Ying, Skiena, ICDM 2020)"
TITLE = "Reproduction results"
RERUN = (
    "rarestream reproduce all --data-dir DIR",
    "rarestream reproduce all --data-dir DIR --as-published",
    "rarestream reproduce report --data-dir DIR",
)
PLOTS = (*page.PLOTS, PlotKind("Lazy and exact class means", ROWS, AUC, fixed=True))
SAME_LINES = {  # the figures of the paper that have the lines of a plot, by ratio and x
    (None, ROWS): (8,),
    (None, SECONDS): (3,),
    (None, AUC): (4,),
    (0.1, ROWS): (5,),
    (0.1, AUC): (6,),
    (0.05, ROWS): (10,),
}


def all_tables(rows: Sequence[TrialRow], published: Published, found: Mapping[str, Any] | None = None) -> list[Table]:
    """Return the tables that there are rows for; `found` are the data sets, for Table I."""
    modes = [mode for mode in (CORRECTED, PUBLISHED) if any(row.get("mode") == mode for row in rows)]
    missing = {row["dataset"] for row in rows if row.get("kind") == MISSING}
    out = [tables.table1(found, published, missing)] if found else []
    for mode in modes or [CORRECTED]:
        out += [tables.table2(rows, published, mode), tables.table3(rows, published, mode)]
    return [*out, tables.at_published_size(rows, published), tables.paired(rows)]


def markdown(
    rows: Sequence[TrialRow],
    published: Published,
    environment: Mapping[str, str] | None = None,
    found: Mapping[str, Any] | None = None,
    pictures: Sequence[str] = (),
) -> str:
    """Return the report as Markdown; every number in it is computed from the rows."""
    out = [
        f"# {TITLE}",
        "",
        f"{PAPER}, its experiments as `rarestream reproduce` runs them. *Corrected* is this library's learners, which "
        "do what the papers say, with exact AUC; *as published* is the arithmetic of the authors' program, with the "
        "authors' bugs and its own AUC. This page is generated from rows of results, and says so where there are none. "
        + extent(rows),
    ]
    if short := story.summary(rows, published):
        out += ["", "## Summary", "", *(f"- {line}" for line in short)]
    for title, lines in story.findings(rows, published):
        bullets = ("\n  - ".join([f"- {line}", *([details] if details else [])]) for line, details in lines)
        out += ["", f"## {title}", "", *bullets]
    out += ["", "## Tables", ""]
    out += [
        "A cell reads: ours ± standard error (published, difference); a note on the rows, if they are not the paper's.",
        "",
    ]
    out += [table_markdown(table) for table in all_tables(rows, published, found)]
    if pictures:
        out += ["## Figures", "", "Dashed lines are the published ones.", ""]
        out += [f"![{picture.rsplit('/')[-1].removesuffix('.png')}]({picture})\n" for picture in pictures]
    out += ["## Errata of the published program", "", f"Tests are in `{errata.TESTS}`.", ""]
    out += [piped(["", "where", "what it does", "effect", "test"]), "|---|---|---|---|---|"]
    out += [piped([*erratum[:-1], f"`{erratum.test}`"]) for erratum in errata.ERRATA]
    notes = [f"- {method.label}: {method.note}." for method in METHODS.values() if method.note]
    out += ["", "## Where a corrected grid differs from the paper's", "", *notes]
    if environment:
        out += ["", "## Environment", "", *(f"- {name}: {value}" for name, value in environment.items())]
    return "\n".join([*out, "", "## How to reproduce", "", "```", *RERUN, "```"]) + "\n"


def html(
    rows: Sequence[TrialRow],
    published: Published,
    environment: Mapping[str, str] | None = None,
    found: Mapping[str, Any] | None = None,
) -> str:
    """Return the report as a page with plots."""
    columns = ("bug", "where", "what the program does", "effect", "test")
    listed = f"<p>Tests are in <code>{errata.TESTS}</code>.</p>" + page.word_table(columns, errata.ERRATA)

    def lines(name: str, ratio: float | None, kind: PlotKind) -> Mapping[str, PlotLine]:
        return _published_lines(published, name, ratio, kind)

    return page.html(
        results_of(rows),
        all_tables(rows, published, found),
        title=f"{TITLE}: the FTRL-AUC paper",
        lead=f"{PAPER}. {extent(rows)}",
        rerun=RERUN,
        environment=environment,
        plots=PLOTS,
        published=lines,
        first=[Chapter("findings", "Findings", _findings(rows, published))],
        after_plots=[Chapter("errata", "Errata of the published program", listed)],
    )


def _findings(rows: Sequence[TrialRow], published: Published) -> str:
    short = "".join(f"<li>{escape(line)}</li>" for line in story.summary(rows, published))
    out = [f"<h3>Summary</h3><ul>{short}</ul>"] if short else []
    for title, lines in story.findings(rows, published):
        items = (f"<li>{escape(line)}{page.small([details] if details else [])}</li>" for line, details in lines)
        out.append(f"<h3>{escape(title)}</h3><ul>{''.join(items)}</ul>")
    return "".join(out)


def _published_lines(published: Published, name: str, ratio: float | None, kind: PlotKind) -> Mapping[str, PlotLine]:
    """Return the published lines of a plot, by method."""
    numbers = (2, 9) if kind.fixed else SAME_LINES.get((ratio, kind.x), ())
    found = (published_lines(number, published).get(name, {}) for number in numbers)
    return {method: published_line(line, kind.x, kind.y) for lines in found for method, line in lines.items()}
