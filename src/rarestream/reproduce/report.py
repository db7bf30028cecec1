"""The report of the paper's experiments: what was found, its tables and figures, as Markdown and as an HTML page."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from rarestream.reproduce import errata, story, tables
from rarestream.reproduce.figures import published_line, published_lines
from rarestream.reproduce.methods import results_of
from rarestream.reproduce.story import Part, Passage
from rarestream.reproduce.tables import Published
from rarestream.study import page
from rarestream.study.figures import AUC, ROWS, SECONDS, PlotLine
from rarestream.study.page import Chapter, PlotKind
from rarestream.study.results import extent
from rarestream.study.rows import CORRECTED, MISSING, PUBLISHED, TrialRow
from rarestream.study.tables import Table
from rarestream.study.tables import markdown as table_markdown

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


class Picture(NamedTuple):
    """A figure of the report."""

    path: str  # relative to the report
    title: str
    caption: str


def markdown(
    rows: Sequence[TrialRow],
    published: Published,
    environment: Mapping[str, str] | None = None,
    found: Mapping[str, Any] | None = None,
    pictures: Sequence[Picture] = (),
) -> str:
    """Return the report as Markdown; every number in it is computed from the rows."""
    out = [f"# {TITLE}"]
    out += itertools.chain.from_iterable(map(_passage, story.article(rows, published)))
    if pictures:
        out += ["## Figures", *itertools.chain.from_iterable(map(_picture, pictures))]
    out += ["## How it was run", *map(_part, story.runs(rows, found))]
    if environment:
        out.append("With " + ", ".join(f"{name} {value}" for name, value in environment.items()) + ".")
    out.append("\n".join(["```", *RERUN, "```"]))
    out += itertools.chain.from_iterable(map(_passage, story.appendix(rows, published)))
    return "\n\n".join(out) + "\n"


def _passage(passage: Passage) -> Iterator[str]:
    if passage.title:
        yield f"{'#' * passage.level} {passage.title}"
    yield from map(_part, passage.parts)


def _part(part: Part) -> str:
    """Return a paragraph, a list or a table as Markdown."""
    if isinstance(part, Table):
        return table_markdown(part).strip()
    return part if isinstance(part, str) else "\n".join(f"- {line}" for line in part)


def _picture(picture: Picture) -> Iterator[str]:
    """Yield a figure, and what to look at."""
    yield f"![{picture.title}]({picture.path})"
    yield f"**{picture.title}.** {picture.caption}"


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
        lead=f"{story.PAPER.replace('*', '')}. {extent(rows)}",
        rerun=RERUN,
        environment=environment,
        plots=PLOTS,
        published=lines,
        first=[Chapter("findings", "Findings", _findings(rows, published))],
        after_plots=[Chapter("errata", "Errata of the published program", listed)],
    )


def _findings(rows: Sequence[TrialRow], published: Published) -> str:
    """Return the article without its short tables II and III, which the page has in full."""
    out = []
    for title, parts, level in story.article(rows, published):
        if not title.startswith("Table "):
            heading = f"<h{level + 1}>{escape(title)}</h{level + 1}>" if title else ""
            out.append(heading + "".join(map(_part_html, parts)))
    return "".join(out)


def _part_html(part: Part) -> str:
    if isinstance(part, Table):
        (section,) = part.sections
        lines = ((line.name, *(cell.note for cell in line.cells)) for line in section.lines)
        return page.word_table((part.corner, *part.columns), lines)
    if isinstance(part, str):
        return f"<p>{_inline(part)}</p>"
    return f"<ul>{''.join(f'<li>{_inline(line)}</li>' for line in part)}</ul>"


def _inline(text: str) -> str:
    """Return a line of Markdown as HTML: bold, italics and code; of a link, its words."""
    safe = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", escape(text, quote=False))
    for mark, element in ((r"\*\*", "b"), (r"\*", "i"), ("`", "code")):
        safe = re.sub(f"{mark}(.+?){mark}", rf"<{element}>\1</{element}>", safe)
    return safe


def _published_lines(published: Published, name: str, ratio: float | None, kind: PlotKind) -> Mapping[str, PlotLine]:
    """Return the published lines of a plot, by method."""
    numbers = (2, 9) if kind.fixed else SAME_LINES.get((ratio, kind.x), ())
    found = (published_lines(number, published).get(name, {}) for number in numbers)
    return {method: published_line(line, kind.x, kind.y) for lines in found for method, line in lines.items()}
