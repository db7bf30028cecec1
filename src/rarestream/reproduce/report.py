"""The report: all of the rows as one page that needs no network, and the same story as Markdown.

The page has tables that sort, plots to zoom into with values under the pointer, and a light and a dark look. The plots
are Bokeh's, whose script is taken from the installed package when a page is made; report.js and report.css are ours.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import numpy as np

from rarestream import __version__
from rarestream.errors import MissingExtraError
from rarestream.reproduce import errata, figures, story, tables
from rarestream.reproduce.methods import CORRECTED, METHODS, PUBLISHED
from rarestream.reproduce.results import MISSING, Floats, Results, Row
from rarestream.reproduce.tables import Cell, Published, Section, Table

PAPER = "Online AUC Optimization for Sparse High-Dimensional Datasets (Zhou, Ying, Skiena, ICDM 2020)"
RERUN = (
    "rarestream reproduce all --data-dir DIR",
    "rarestream reproduce all --data-dir DIR --as-published",
    "rarestream reproduce report --data-dir DIR",
)


Scale = Literal["linear", "log"]


class Kind(NamedTuple):
    """A kind of plot."""

    title: str
    x: str
    y: str
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    lazy: bool = False  # of the lazy figures' trials


SHOWN = (  # of each set
    Kind("AUC against rows", figures.ROWS, figures.AUC),
    Kind("AUC against seconds", figures.SECONDS, figures.AUC, x_scale="log"),
    Kind("Sparse ratio against AUC", figures.AUC, figures.RATIO, y_scale="log"),
    Kind("Lazy and exact class means", figures.ROWS, figures.AUC, lazy=True),
)
FORMS = {figures.ROWS: "{0,0}", figures.SECONDS: "{0.0000}", figures.AUC: "{0.0000}", figures.RATIO: "{0.000000}"}
POINTS = 40  # of a curve, at most
BESIDE = {  # the figure of the paper that has the same lines, by ratio and x
    (None, figures.ROWS): 8,
    (None, figures.SECONDS): 3,
    (None, figures.AUC): 4,
    (0.1, figures.ROWS): 5,
    (0.1, figures.AUC): 6,
    (0.05, figures.ROWS): 10,
}


def environment() -> dict[str, str]:
    """What this runs on, to stand in a report."""
    found = {"rarestream": __version__, "Python": platform.python_version(), "system": platform.platform()}
    for package in ("numpy", "scipy", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return {**found, "processors": str(os.cpu_count())}


def all_tables(rows: Sequence[Row], published: Published, found: Mapping[str, Any] | None = None) -> list[Table]:
    """The tables that there are rows for; `found` are the data sets, for Table I."""
    modes = [mode for mode in (CORRECTED, PUBLISHED) if any(row.get("mode") == mode for row in rows)]
    missing = {row["dataset"] for row in rows if row.get("kind") == MISSING}
    out = [tables.table1(found, published, missing)] if found else []
    for mode in modes or [CORRECTED]:
        out += [tables.table2(rows, published, mode), tables.table3(rows, published, mode)]
    return [*out, tables.at_published_size(rows, published), tables.paired(rows)]


# -- Markdown


def markdown(
    rows: Sequence[Row],
    published: Published,
    environment: Mapping[str, str] | None = None,
    found: Mapping[str, Any] | None = None,
    pictures: Sequence[str] = (),
) -> str:
    """The story, its tables, pictures, the slips, the settings: every number is one of the rows."""
    out = [
        "# The paper, run again",
        "",
        f"{PAPER}, its experiments as `rarestream reproduce` runs them. *Corrected* is this library's learners, which "
        "do what the papers say, with exact AUC; *as published* is the arithmetic of the authors' program, slips "
        "included, with its own AUC. This page is made from rows of results, and says so where there are none. "
        + _amount(rows),
    ]
    if short := story.in_short(rows, published):
        out += ["", "## In short", "", *(f"- {line}" for line in short)]
    for title, lines in story.findings(rows, published):
        out += [
            "",
            f"## {title}",
            "",
            *("\n  - ".join([f"- {line}", *([more] if more else [])]) for line, more in lines),
        ]
    out += ["", "## Tables", ""]
    out += [
        "A cell reads: ours ± standard error (published, difference); a note on the rows, if they are not the paper's.",
        "",
    ]
    for table in all_tables(rows, published, found):
        out += [tables.markdown(table)]
    if pictures:
        out += ["## Figures", "", "Dashed lines are the published ones.", ""]
        out += [f"![{picture.rsplit('/')[-1].removesuffix('.png')}]({picture})\n" for picture in pictures]
    out += ["## The slips of the published program", "", f"Tests are in `{errata.TESTS}`.", ""]
    out += [_row(["", "where", "what it does", "what comes of it", "test"]), "|---|---|---|---|---|"]
    for slip in errata.SLIPS:
        out.append(_row([*slip[:-1], f"`{slip.test}`"]))
    notes = [f"- {method.label}: {method.note}." for method in METHODS.values() if method.note]
    out += ["", "## Where a corrected grid is not the paper's", "", *notes]
    if environment:
        out += ["", "## Where it ran", "", *(f"- {name}: {value}" for name, value in environment.items())]
    return "\n".join([*out, "", "## Run it again", "", "```", *RERUN, "```"]) + "\n"


def _row(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _amount(rows: Sequence[Row]) -> str:
    trials = [row for row in rows if row.get("kind") == "trial"]
    sets = list(dict.fromkeys(row["dataset"] for row in trials))
    grids = sorted({row["grid"] for row in trials} - {"none"})
    searched = f", grids searched: {', '.join(grids)}" if grids else ""
    return f"There are {len(trials)} trials on {', '.join(sets) or 'no data set'}{searched}."


# -- the page


def html(
    rows: Sequence[Row],
    published: Published,
    environment: Mapping[str, str] | None = None,
    found: Mapping[str, Any] | None = None,
    title: str = "The FTRL-AUC paper, run again",
    rerun: Sequence[str] = RERUN,
    own: Sequence[Table] = (),
) -> str:
    """The page. Without published numbers it is of these rows alone, and its tables are the caller's own."""
    script = _bokeh()
    gathered = Results(rows)
    panels, plots = _panels(gathered, published)
    drawing = json.dumps({"kinds": [_frame(kind) for kind in SHOWN], "plots": plots}, separators=(",", ":"))
    shown = all_tables(rows, published, found) if published else own
    parts = [("tables", "Tables", "".join(map(_table, shown)))]
    parts.append(("curves", "Curves", _chips(gathered, published) + panels))
    if published:
        parts.insert(0, ("story", "What came out", _story(rows, published)))
        parts.append(("slips", "Slips of the published program", _slips()))
    parts.append(("settings", "Settings that were chosen", _settings(gathered)))
    parts.append(("again", "Run it again", _again(environment, rerun)))
    links = " ".join(f'<a href="#{name}">{escape(heading)}</a>' for name, heading, _ in parts)
    body = "".join(f'<section><h2 id="{name}">{escape(heading)}</h2>{text}</section>' for name, heading, text in parts)
    lead = f"{escape(PAPER)}. " if published else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{_ours('report.css')}</style></head><body>"
        f'<header><h1>{escape(title)}</h1><button id="theme" type="button">Dark</button></header>'
        f'<main><p class="soft">{lead}{escape(_amount(rows))}</p><nav>{links}</nav>{body}'
        f"<footer>Made by rarestream {__version__}. This page needs no network.</footer></main>"
        f'<script type="application/json" id="plots">{_safe(drawing)}</script>'
        f"<script>{script}</script><script>{_ours('report.js')}</script></body></html>\n"
    )


def _ours(name: str) -> str:
    return files("rarestream.reproduce").joinpath(name).read_text("utf-8")


def _safe(text: str) -> str:
    """JSON that cannot end the script it stands in."""
    return text.replace("<", "\\u003c")


def _bokeh() -> str:
    """The core of BokehJS, as the installed package has it."""
    try:
        from bokeh.resources import Resources
    except ImportError:
        raise MissingExtraError('The report needs the package bokeh: pip install "rarestream[report]"') from None
    return "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)


def _story(rows: Sequence[Row], published: Published) -> str:
    short = "".join(f"<li>{escape(line)}</li>" for line in story.in_short(rows, published))
    out = [f"<h3>In short</h3><ul>{short}</ul>"] if short else []
    for title, lines in story.findings(rows, published):
        items = (f"<li>{escape(line)}{_small([more] if more else [])}</li>" for line, more in lines)
        out.append(f"<h3>{escape(title)}</h3><ul>{''.join(items)}</ul>")
    return "".join(out)


def _table(table: Table) -> str:
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
    """The cell of each column to stand out: the largest AUC."""
    found: list[Cell | None] = []
    for place, name in enumerate(columns):
        known = [line.cells[place] for line in section.lines if line.cells[place].ours is not None]
        of_auc = section.name.startswith("AUC") or name == "AUC"
        found.append(max(known, key=lambda cell: cell.ours or 0.0) if known and of_auc else None)
    return found


def _heading(name: str, kind: str = "") -> str:
    return f"<th scope=col{kind}><button type=button>{escape(name)}</button></th>"


def _headings(*names: str) -> str:
    """Of columns of words."""
    return "".join(_heading(name, " class=words") for name in names)


def _framed(heading: str, lines: Iterable[str]) -> str:
    return f"<div class=wide><table><thead><tr>{heading}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"


def _cell(cell: Cell, form: str, best: bool) -> str:
    form = cell.form or form
    below = [] if cell.error is None else [f"± {cell.error:.2g}"]
    if cell.published is not None:
        said = f"paper {tables.number(cell.published, form)}"
        below.append(said if cell.difference is None else f"{said}, {tables.number(cell.difference, '+' + form)}")
    if cell.ours is None:
        wordy = " class=words" if len(cell.note) > 16 else ""
        return f"<td{wordy}>{escape(cell.note)}{_small(below)}</td>"
    text = f"<span{' class=best' if best else ''}>{tables.number(cell.ours, form)}</span>"
    return f'<td data-value="{cell.ours!r}">{text}{_small([*below, *([cell.remark] if cell.remark else [])])}</td>'


def _small(texts: Iterable[str]) -> str:
    return "".join(f"<small>{escape(text)}</small>" for text in texts)


def _words(texts: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<td class=words>{text}</td>" for text in texts) + "</tr>"


def _slips() -> str:
    heading = _headings("slip", "where", "what the program does", "what comes of it", "test")
    tests = f"<p>Tests are in <code>{errata.TESTS}</code>.</p>"
    return tests + _framed(heading, (_words(map(escape, slip)) for slip in errata.SLIPS))


def _settings(found: Results) -> str:
    heading = _headings("set", "method", "settings chosen most often", "in trials")
    return _framed(heading, (_words(map(escape, line)) for line in story.settings(found)))


def _again(environment: Mapping[str, str] | None, rerun: Sequence[str]) -> str:
    heading = _headings("what", "version or kind")
    lines = [_words((escape(name), escape(str(value)))) for name, value in (environment or {}).items()]
    return f"<pre>{escape(chr(10).join(rerun))}</pre>" + (_framed(heading, lines) if lines else "")


def _chips(found: Results, published: Published) -> str:
    """Switches, one a method: they act on all plots."""
    chips = "".join(
        f'<button type=button aria-pressed=true data-method="{escape(found.label(method))}" style="--dot: {hue}">'
        f"{escape(found.label(method))}</button>"
        for method, hue in figures.colours(found.methods).items()
    )
    dashes = " Dashed lines are the published ones." if published else ""
    help_ = (
        "Click a method to hide or show it everywhere. Point at a line for its values, drag to move, "
        f"take the wheel or the box from the tools of a plot to zoom.{dashes}"
    )
    return f'<p class=soft>{help_}</p><div class=chips role=group aria-label="Methods">{chips}</div>'


def _panels(found: Results, published: Published) -> tuple[str, dict[str, Any]]:
    """The places of the plots on the page, and their lines."""
    out: list[str] = []
    plots: dict[str, Any] = {}
    for name in found.datasets:
        for ratio in found.ratios:
            panels = []
            for kind, shown in enumerate(SHOWN):
                lines = list(_lines(found, name, ratio, shown, _said(published, name, ratio, shown)))
                if any(not line["published"] for line in lines):
                    place_id = f"plot-{len(plots)}"
                    spans = [_span(lines, "x", shown.x_scale), _span(lines, "y", shown.y_scale)]
                    plots[place_id] = {"kind": kind, "lines": lines, "spans": spans}
                    panels.append(f'<div class=plot id="{place_id}"></div>')
            if panels:
                heading = name if ratio is None else f"{name}, {ratio:g} positives a negative"
                out.append(f"<h3>{escape(heading)}</h3><div class=panels>{''.join(panels)}</div>")
    return "".join(out) or "<p>No curves in these rows.</p>", plots


def _said(published: Published, name: str, ratio: float | None, kind: Kind) -> Mapping[str, Any]:
    """The published lines of a plot, by method."""
    beside = BESIDE.get((ratio, kind.x))
    numbers = [2, 9] if kind.lazy else [] if beside is None else [beside]
    found = (figures.lines_said(number, published).get(name, {}) for number in numbers)
    return {method: line for lines in found for method, line in lines.items()}


def _lines(
    found: Results, name: str, ratio: float | None, kind: Kind, said: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for method, hue in figures.colours(found.methods).items():
        look = {"method": found.label(method), "colour": hue}
        if method in said:
            xs, ys = (np.array(said[method][figures.COLUMN[axis]], float) for axis in (kind.x, kind.y))
            kept = (xs > 0) & (ys > 0)
            yield {**look, "published": True, "x": _digits(xs[kept]), "y": _digits(ys[kept])}
        lazily = found.fixed(name, method, ratio) if method in figures.LAZY else None
        line = figures.line_of(lazily if kind.lazy else found.get(name, method, ratio), kind.x, kind.y)
        if line is not None:
            yield {**look, "published": False, "x": _digits(line.x), "y": _digits(line.y)}


def _frame(kind: Kind) -> Any:
    """A plot without lines and ends of axes, which report.js sets. Plots of a kind share it: the page stays small."""
    from bokeh.core.validation import silence
    from bokeh.core.validation.warnings import MISSING_RENDERERS
    from bokeh.embed import json_item
    from bokeh.models import HoverTool, NoOverlap, Range1d
    from bokeh.plotting import figure

    tips = [("", "$name"), (kind.x, f"@x{FORMS[kind.x]}"), (kind.y, f"@y{FORMS[kind.y]}")]
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
    """The ends of an axis, with a little room."""
    values = np.concatenate([line[axis] for line in lines])
    low, high = float(values.min()), float(values.max())
    if scale == "log":
        return [low / 1.3, high * 1.3]
    room = 0.03 * (high - low or 1.0)
    return [low - room, high + room]


def _digits(values: Floats) -> list[float]:
    """Few of them, of few points: a screen shows no more, and the page stays small."""
    kept = values[np.unique(np.linspace(0, len(values) - 1, POINTS).round().astype(int))] if len(values) else values
    return [float(f"{value:.4g}") for value in kept]
