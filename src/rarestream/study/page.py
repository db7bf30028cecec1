"""Pages: tables that sort and plots that zoom, in one HTML file that needs no network; and the page of a study.

The plots are Bokeh's, whose script is taken from the installed package when a page is made. page.js and page.css are
ours; the page has a light and a dark look.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import numpy as np

from rarestream._version import __version__
from rarestream.errors import MissingExtraError
from rarestream.study.figures import AUC, RATIO, ROWS, SECONDS, PlotLine, colours, line_of
from rarestream.study.results import Floats, Results, ratio_name
from rarestream.study.tables import Cell, Section, Table, number
from rarestream.system import cores

Scale = Literal["linear", "log"]


class PlotKind(NamedTuple):
    """A kind of plot."""

    title: str
    x: str
    y: str
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    fixed: bool = False  # of trials at one fixed setting


PLOTS = (  # of each data set
    PlotKind("AUC against rows", ROWS, AUC),
    PlotKind("AUC against seconds", SECONDS, AUC, x_scale="log"),
    PlotKind("Sparse ratio against AUC", AUC, RATIO, y_scale="log"),
)
FORMS = {ROWS: "{0,0}", SECONDS: "{0.0000}", AUC: "{0.0000}", RATIO: "{0.000000}"}
FORM = "{0.0000}"  # of axes that are not in FORMS
POINTS = 40  # of a curve, at most

PublishedLines = Callable[[str, float | None, PlotKind], Mapping[str, PlotLine]]  # of a plot, by method


class Chapter(NamedTuple):
    """A part of the page with a heading and a link to it."""

    name: str  # of the link
    heading: str
    html: str


def environment() -> dict[str, str]:
    """Return the versions and the machine that a report names."""
    versions = {"rarestream": __version__, "Python": platform.python_version(), "system": platform.platform()}
    for package in ("numpy", "scipy", "scikit-learn"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {**versions, "processors": str(cores())}


def html(
    results: Results,
    tables: Sequence[Table],
    *,
    title: str,
    lead: str,
    rerun: Sequence[str],
    environment: Mapping[str, str] | None = None,
    plots: Sequence[PlotKind] = PLOTS,
    published: PublishedLines | None = None,
    first: Sequence[Chapter] = (),
    after_plots: Sequence[Chapter] = (),
) -> str:
    """Return the page: the caller's first chapters, tables, plots, more chapters, chosen settings, how to rerun.

    Parameters
    ----------
    results : Results
        The rows to plot.
    tables : sequence of Table
        The tables to show.
    title, lead : str
        Heading, and the sentence below it.
    rerun : sequence of str
        Commands that make the page again.
    environment : mapping of str to str, optional
        Versions and machine, as `environment()` returns them.
    plots : sequence of PlotKind
        Kinds of plots, for each data set.
    published : callable, optional
        Given a data set, a ratio and a kind of plot, returns the published lines by method.
    first, after_plots : sequence of Chapter
        Chapters of the caller.

    Returns
    -------
    str
        HTML; MissingExtraError if bokeh is not installed.
    """
    bokeh_script()  # or MissingExtraError, before any work
    panels, drawn = _panels(results, plots, published)
    chapters = (
        *first,
        Chapter("tables", "Tables", "".join(map(table_html, tables))),
        Chapter("curves", "Curves", _switches(results, published is not None) + panels),
        *after_plots,
        Chapter("settings", "Chosen settings", _settings(results)),
        Chapter("again", "How to rerun it", rerun_html(environment, rerun)),
    )
    return document(title, lead, chapters, plots, drawn)


def document(
    title: str,
    lead: str,
    chapters: Sequence[Chapter],
    kinds: Sequence[PlotKind],
    plots: Mapping[str, Mapping[str, Any]],
) -> str:
    """Return a page of chapters.

    Parameters
    ----------
    title, lead : str
        Heading, and the sentence below it.
    chapters : sequence of Chapter
        They have an element of the class `plot` for each plot.
    kinds : sequence of PlotKind
        Kinds of plots.
    plots : mapping
        By the id of an element: `plot` of its kind and lines.

    Returns
    -------
    str
        HTML; MissingExtraError if bokeh is not installed.
    """
    script = bokeh_script()
    drawing = json.dumps({"kinds": [_frame(kind) for kind in kinds], "plots": plots}, separators=(",", ":"))
    links = " ".join(f'<a href="#{chapter.name}">{escape(chapter.heading)}</a>' for chapter in chapters)
    body = "".join(
        f'<section><h2 id="{chapter.name}">{escape(chapter.heading)}</h2>{chapter.html}</section>'
        for chapter in chapters
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{_file('page.css')}</style></head><body>"
        f'<header><h1>{escape(title)}</h1><button id="theme" type="button">Dark</button></header>'
        f'<main><p class="soft">{escape(lead)}</p><nav>{links}</nav>{body}'
        f"<footer>Made by rarestream {__version__}. This page needs no network.</footer></main>"
        f'<script type="application/json" id="plots">{_script_safe(drawing)}</script>'
        f"<script>{script}</script><script>{_file('page.js')}</script></body></html>\n"
    )


def _file(name: str) -> str:
    return files("rarestream.study").joinpath(name).read_text("utf-8")


def _script_safe(text: str) -> str:
    """Return JSON that cannot end the script element that holds it."""
    return text.replace("<", "\\u003c")


def bokeh_script() -> str:
    """Return the core of BokehJS from the installed package; MissingExtraError if it is not installed."""
    try:
        from bokeh.resources import Resources
    except ImportError:
        raise MissingExtraError('The report needs the package bokeh: pip install "rarestream[report]"') from None
    return "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)


# -- tables


def table_html(table: Table) -> str:
    """Return a table with its title and note."""
    out = [f"<h3>{escape(table.title)}</h3><p class=soft>{escape(table.note)}</p>"]
    for section in table.sections:
        heading = "".join(map(_heading, (section.name, *table.columns)))
        best = _best(section, table.columns)
        lines = [
            f"<tr><th scope=row>{escape(line.name)}</th>"
            + "".join(_cell(cell, section.form, cell is top) for cell, top in zip(line.cells, best, strict=True))
            + "</tr>"
            for line in section.lines
        ]
        out.append(_framed(heading, lines))
    return "".join(out)


def _best(section: Section, columns: Sequence[str]) -> list[Cell | None]:
    """Return the cell of each column to emphasise: the largest AUC."""
    best: list[Cell | None] = []
    for place, name in enumerate(columns):
        known = [line.cells[place] for line in section.lines if line.cells[place].ours is not None]
        of_auc = section.name.startswith("AUC") or name == "AUC"
        best.append(max(known, key=lambda cell: cell.ours or 0.0) if known and of_auc else None)
    return best


def _cell(cell: Cell, form: str, best: bool) -> str:
    form = cell.form or form
    below = [] if cell.error is None else [f"± {cell.error:.2g}"]
    if cell.published is not None:
        paper = f"paper {number(cell.published, form)}"
        below.append(paper if cell.difference is None else f"{paper}, {number(cell.difference, '+' + form)}")
    if cell.ours is None:
        wordy = " class=words" if len(cell.note) > 16 else ""
        return f"<td{wordy}>{escape(cell.note)}{small(below)}</td>"
    text = f"<span{' class=best' if best else ''}>{number(cell.ours, form)}</span>"
    return f'<td data-value="{cell.ours!r}">{text}{small([*below, *([cell.remark] if cell.remark else [])])}</td>'


def small(texts: Iterable[str]) -> str:
    """Return texts in small print, each on a line of its own."""
    return "".join(f"<small>{escape(text)}</small>" for text in texts)


def word_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of words."""
    heading = "".join(_heading(name, " class=words") for name in columns)
    lines = ("<tr>" + "".join(f"<td class=words>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return _framed(heading, lines)


def _heading(name: str, kind: str = "") -> str:
    return f"<th scope=col{kind}><button type=button>{escape(name)}</button></th>"


def _framed(heading: str, lines: Iterable[str]) -> str:
    return f"<div class=wide><table><thead><tr>{heading}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"


def _settings(results: Results) -> str:
    return word_table(("data set", "method", "settings chosen most often", "in trials"), results.chosen_settings())


def rerun_html(environment: Mapping[str, str] | None, commands: Sequence[str]) -> str:
    """Return commands, and the versions and the machine that they ran on."""
    versions = [(name, str(value)) for name, value in (environment or {}).items()]
    listed = word_table(("what", "version or kind"), versions) if versions else ""
    return f"<pre>{escape(chr(10).join(commands))}</pre>{listed}"


# -- plots


def _switches(results: Results, published: bool) -> str:
    """Return one switch per method; they act on all plots."""
    hues = {results.label(method): hue for method, hue in colours(results.methods).items()}
    dashes = " Dashed lines are the published ones." if published else ""
    return chips("method", hues, dashes)


def chips(what: str, hues: Mapping[str, str], more: str = "") -> str:
    """Return one switch for each name and its colour, and how to use them and the plots."""
    switches = "".join(
        f'<button type=button aria-pressed=true data-method="{escape(name)}" style="--dot: {hue}">'
        f"{escape(name)}</button>"
        for name, hue in hues.items()
    )
    help_ = (
        f"Click a {what} to hide or show it everywhere. Point at a line for its values, drag to move, "
        f"select wheel or box zoom from the tools of a plot.{more}"
    )
    return f'<p class=soft>{help_}</p><div class=chips role=group aria-label="{what.title()}s">{switches}</div>'


def _panels(
    results: Results, kinds: Sequence[PlotKind], published: PublishedLines | None
) -> tuple[str, dict[str, Any]]:
    """Return the places of the plots on the page, and their lines."""
    out: list[str] = []
    plots: dict[str, Any] = {}
    for name in results.datasets:
        for ratio in results.ratios:
            panels = []
            for at, kind in enumerate(kinds):
                theirs = published(name, ratio, kind) if published else {}
                lines = list(_lines(results, name, ratio, kind, theirs))
                if any(not line["dashed"] for line in lines):
                    place = f"plot-{len(plots)}"
                    plots[place] = plot(at, kind, lines)
                    panels.append(f'<div class=plot id="{place}"></div>')
            if panels:
                heading = name if ratio is None else f"{name}, {ratio_name(ratio)}"
                out.append(f"<h3>{escape(heading)}</h3><div class=panels>{''.join(panels)}</div>")
    return "".join(out) or "<p>No curves in these rows.</p>", plots


def _lines(
    results: Results, name: str, ratio: float | None, kind: PlotKind, published: Mapping[str, PlotLine]
) -> Iterator[dict[str, Any]]:
    find = results.fixed if kind.fixed else results.get
    for method, hue in colours(results.methods).items():
        label = results.label(method)
        both = ((True, published.get(method)), (False, line_of(find(name, method, ratio), kind.x, kind.y)))
        for theirs, line in both:
            if line is not None:
                name = f"{label}, published" if theirs else label
                x, y = _digits(line.x), _digits(line.y)
                yield plot_line(label, hue, x, y, name=name, dashed=theirs, points=kind.y == RATIO and not theirs)


def plot(number: int, kind: PlotKind, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a plot as page.js takes it: the number of its kind, its lines, and the ends of its axes."""
    return {"kind": number, "lines": lines, "spans": [_span(lines, "x", kind.x_scale), _span(lines, "y", kind.y_scale)]}


def plot_line(
    method: str,
    colour: str,
    x: Sequence[float | None],
    y: Sequence[float | None],
    *,
    name: str = "",
    dashed: bool = False,
    points: bool = False,
) -> dict[str, Any]:
    """Return a line as page.js takes it. `method` is the switch that hides it, None a gap; `points` are marked."""
    return {
        "method": method,
        "name": name or method,
        "colour": colour,
        "dashed": dashed,
        "points": points,
        "x": list(x),
        "y": list(y),
    }


def _frame(kind: PlotKind) -> Any:
    """Return a plot without lines and ends of axes, which page.js sets: plots of a kind share it, for a small page."""
    from bokeh.core.validation import silence
    from bokeh.core.validation.warnings import MISSING_RENDERERS
    from bokeh.embed import json_item
    from bokeh.models import HoverTool, NoOverlap, Range1d
    from bokeh.plotting import figure

    tips = [
        ("", "$name"),
        *((name, f"@{axis}{FORMS.get(name, FORM)}") for axis, name in (("x", kind.x), ("y", kind.y))),
    ]
    plot = figure(
        title=kind.title,
        height=300,
        sizing_mode="stretch_width",
        x_axis_label=kind.x,
        y_axis_label=kind.y,
        x_axis_type=kind.x_scale,
        y_axis_type=kind.y_scale,
        x_range=Range1d(),
        y_range=Range1d(),
        tools=["pan", "wheel_zoom", "box_zoom", "reset", "save", HoverTool(tooltips=tips, visible=False)],
        active_scroll=None,
    )
    plot.axis.major_label_policy = NoOverlap()
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    silence(MISSING_RENDERERS)
    try:
        return json_item(plot)
    finally:
        silence(MISSING_RENDERERS, False)


def _span(lines: Sequence[Mapping[str, Any]], axis: str, scale: str) -> list[float]:
    """Return the ends of an axis, with a small margin."""
    values = np.array([value for line in lines for value in line[axis] if value is not None])
    low, high = float(values.min()), float(values.max())
    if scale == "log":
        return [low / 1.3, high * 1.3]
    margin = 0.03 * (high - low or 1.0)
    return [low - margin, high + margin]


def _digits(values: Floats) -> list[float]:
    """Return few points of few digits: a screen shows no more, and the page stays small."""
    kept = values[np.unique(np.linspace(0, len(values) - 1, POINTS).round().astype(int))] if len(values) else values
    return [float(f"{value:.4g}") for value in kept]
