"""The pictures and tables of docs/scaling.md, from runs of groups.py and scaling.py.

    python benchmarks/scaling_page.py --groups benchmarks/results/groups-*.json --scaling FILE
        --out docs/scaling

Written: the AUC that groups lose as pictures (groups.svg, rounds.svg) and tables, the cost model, and the results that
they were made of.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import groups as groups_benchmark
import scaling
from groups import Result, auc_table, bar_table, mean
from plots import STYLE
from rarestream.groups import auto_rounds

WIDTH, HEIGHT = 250, 190  # pixels of a panel's plot
LEFT, TOP, GAP, BOTTOM = 64, 66, 50, 62
COLOURS = ("#3182ce", "#dd6b20", "#2f855a", "#805ad5", "#b83280", "#718096")
LINES = (
    STYLE
    + """    .grid { stroke: #e4e7eb; } .zero { stroke: #52606d; }
    .series { fill: none; stroke-width: 2; }
    @media (prefers-color-scheme: dark) { .grid { stroke: #2d3640; } .zero { stroke: #a9b4c0; } }
"""
)

Series = dict[str, list[tuple[int, float]]]


class Panel(NamedTuple):
    title: str
    series: Series  # AUC lost, by set


def by_groups(results: Sequence[Result]) -> list[Panel]:
    """The AUC lost against groups with the default rounds, a panel for each learner."""
    panels = []
    for word in dict.fromkeys(one["learner"] for one in results):
        series = {
            one["set"]: _losses(one, lambda g, r: g if r == auto_rounds(g) else None)
            for one in results
            if one["learner"] == word
        }
        panels.append(Panel(word, series))
    return panels


def by_rounds(results: Sequence[Result], numbers: Sequence[int] = (16, 64)) -> list[Panel]:
    """The AUC lost against rounds, a panel for each learner and number of groups of which several were measured."""
    panels = []
    for word in dict.fromkeys(one["learner"] for one in results):
        for number in numbers:
            mine = [one for one in results if one["learner"] == word]
            series = {one["set"]: _losses(one, lambda g, r, n=number: r if g == n else None) for one in mine}
            several = {name: points for name, points in series.items() if len(points) > 1}
            if several:
                panels.append(Panel(f"{word}, {number} groups", several))
    return panels


def _losses(one: Result, x: Any) -> list[tuple[int, float]]:
    points = {}
    for cell in one["cells"]:
        at, added = x(cell["groups"], cell["rounds"]), mean(cell["added"])
        if at is not None and added is not None:
            points[at] = -added
    return sorted(points.items())


def chart(title: str, panels: Sequence[Panel], across: str, columns: int = 2) -> str:
    """A picture of several panels with the same axes: a line for each set."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    points = [point for panel in panels for line in panel.series.values() for point in line]
    ticks = sorted({x for x, _ in points})
    step = 0.001
    low = step * math.floor(min(0.0, min(y for _, y in points)) / step)
    high = step * math.ceil(max(step, max(y for _, y in points)) / step)
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    width, height = LEFT + columns * (WIDTH + GAP), TOP + rows * (HEIGHT + BOTTOM) + 18
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title, quote=True)}">',
        f"  <style>{LINES}  </style>",
        f'  <rect class="back" width="{width}" height="{height}" rx="6"/>',
        f'  <text class="title" x="12" y="22">{escape(title)}</text>',
    ]
    at = 12
    for number, name in enumerate(names):
        lines.append(f'  <line x1="{at}" x2="{at + 18}" y1="40" y2="40" stroke="{COLOURS[number]}" stroke-width="3"/>')
        lines.append(f'  <text class="small" x="{at + 23}" y="44">{escape(name)}</text>')
        at += 45 + 7 * len(name)
    for number, panel in enumerate(panels):
        x0, y0 = LEFT + (number % columns) * (WIDTH + GAP), TOP + 10 + (number // columns) * (HEIGHT + BOTTOM)

        def place(x: float, y: float, x0: int = x0, y0: int = y0) -> tuple[float, float]:
            share = math.log(x / ticks[0]) / math.log(ticks[-1] / ticks[0])
            return x0 + 10 + (WIDTH - 20) * share, y0 + HEIGHT * (high - y) / (high - low)

        lines.append(f'  <text x="{x0}" y="{y0 - 8}">{escape(panel.title)}</text>')
        for tick in range(round(low / step), round(high / step) + 1):
            y = place(ticks[0], tick * step)[1]
            kind = "grid" if tick else "zero"
            lines.append(f'  <line class="{kind}" x1="{x0}" x2="{x0 + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
            lines.append(f'  <text class="small end" x="{x0 - 6}" y="{y + 4:.1f}">{_digits(tick * step)}</text>')
        for tick in ticks:
            lines.append(
                f'  <text class="small middle" x="{place(tick, 0)[0]:.1f}" y="{y0 + HEIGHT + 16}">{tick}</text>'
            )
        lines.append(f'  <text class="small middle" x="{x0 + WIDTH / 2:g}" y="{y0 + HEIGHT + 33}">{across}</text>')
        for name, line in panel.series.items():
            colour = COLOURS[names.index(name)]
            places = [place(*point) for point in line]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            lines.append(f'  <polyline class="series" points="{path}" stroke="{colour}"/>')
            for (x, y), (at_x, loss) in zip(places, line, strict=True):
                said = escape(f"{panel.title}, {name}, {at_x} {across}: {loss:+.4f}")
                lines.append(
                    f'  <circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"><title>{said}</title></circle>'
                )
    lines.append(f'  <text class="small" x="12" y="{height - 10}">lower is better; below 0, groups were better</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def _digits(number: float) -> str:
    return "0" if number == 0 else f"{number:.3f}".replace("0.", ".", 1)


def measured_on(run: Mapping[str, Any]) -> str:
    """Where and when something was measured."""
    about = run["machine"]
    return f"Measured on {run['date'][:10]} on {about.get('model name', 'a machine')}, {about['cores']} cores.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=Path, nargs="+", required=True, help="what runs of groups.py wrote")
    parser.add_argument("--scaling", type=Path, help="what a run of scaling.py wrote")
    parser.add_argument("--out", type=Path, default=Path("docs/scaling"), help="the folder to write to: %(default)s")
    options = parser.parse_args()
    results = groups_benchmark.load(options.groups)
    first = json.loads(options.groups[0].read_text("utf-8"))
    about = {key: first[key] for key in ("date", "machine", "versions")}
    files = {
        "groups.svg": chart(
            "AUC lost against learning in sequence, with the default rounds", by_groups(results), "groups"
        ),
        "rounds.svg": chart("AUC lost against learning in sequence, by rounds", by_rounds(results), "rounds"),
        "auc.inc": auc_table(results) + "\n",
        "bars.inc": bar_table([one for one in results if len(one["sequence"]) > 1]) + "\n",
        "groups.json": json.dumps({**about, "groups": results}, indent=1) + "\n",
    }
    if options.scaling is not None:
        run = json.loads(options.scaling.read_text("utf-8"))
        texts = scaling.sections(run["scaling"], scaling.Assumed())
        files |= {f"{name}.inc": text + "\n" for name, text in texts.items()}
        files |= {"about.inc": measured_on(run), "scaling.json": json.dumps(run, indent=1) + "\n"}
    options.out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (options.out / name).write_text(text, "utf-8")
        print(options.out / name)


if __name__ == "__main__":
    main()
