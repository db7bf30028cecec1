"""The bars of a run of bench.py as small pictures, and the page that shows them.

    python benchmarks/plots.py benchmarks/results/DATE.json --out docs/speed

Every row of a picture is a promise: how far what was measured is beyond what is required. At the line it is exactly as
fast as required, right of it faster; the tick is the goal. Written: an SVG file for each group of promises, the
numbers as a table, and results.json, which they were made of. docs/speed.md shows them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

GROUPS = {  # file: its title, and how the names of its bars begin
    "learning": ("Learning rows in memory", ("learn vs", "a pass of", "16 settings", "auto on", "20 classes")),
    "calls": ("What users call", ("fit on", "learn_one", "one row", "Model.learn_one", "DualAveragingClassifier")),
    "text": (
        "Files to a saved model",
        ("text to saved", "VW text", "CSV", "cells hashed", "Parquet", "train "),
    ),
    "metrics": ("AUC", ("exact AUC", "StreamingAuc", "path of")),
    "resources": ("Starting up, size, memory", ()),  # and whatever begins otherwise
}
KEPT = ("date", "machine", "versions", "commit", "full", "rounds")  # of a run, beside its bars

LABELS, SCALE, NUMBERS = 430, 260, 190  # pixels for the names, the bars, the numbers
ROW, TOP, BOTTOM = 24, 44, 30
MOST = 3.0  # times what is required: longer bars are cut
STYLE = """
    text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2933; }
    .title { font-size: 15px; font-weight: 600; }
    .small { font-size: 11px; fill: #52606d; }
    .end { text-anchor: end; }
    .middle { text-anchor: middle; }
    .aim { fill: #2f855a; } .must { fill: #3182ce; } .below { fill: #c53030; }
    .track { fill: #e4e7eb; }
    .line { stroke: #1f2933; stroke-width: 1.5; }
    .tick { stroke: #52606d; stroke-width: 2; }
    .back { fill: #ffffff; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e4e7eb; } .small { fill: #a9b4c0; }
      .aim { fill: #48bb78; } .must { fill: #63b3ed; } .below { fill: #fc8181; }
      .track { fill: #2d3640; } .line { stroke: #e4e7eb; } .tick { stroke: #a9b4c0; }
      .back { fill: #14181e; }
    }
"""


class Bar(NamedTuple):
    """A promise and what was measured."""

    what: str
    must: float
    aim: float
    measured: float
    unit: str
    more_is_better: bool
    verdict: str

    def beyond(self, value: float) -> float:
        """How many times what is required a value is; above 1 it is better."""
        if self.more_is_better:
            return value / self.must
        return self.must / value if value > 0 else MOST


def main() -> None:
    options = arguments()
    run = json.loads(options.results.read_text("utf-8"))
    options.out.mkdir(parents=True, exist_ok=True)
    for name, text in files(run).items():
        (options.out / name).write_text(text, "utf-8")
        print(options.out / name)


def files(run: Mapping[str, Any]) -> dict[str, str]:
    """The texts of the files by name: a picture for each group that has a bar, and what they were drawn from."""
    bars = measured_bars(run["bars"])
    pictures = {f"{name}.svg": picture(GROUPS[name][0], some) for name, some in grouped(bars).items()}
    kept = {key: run[key] for key in KEPT if key in run} | {"bars": run["bars"]}
    return {**pictures, "about.inc": about(run, bars), "results.json": json.dumps(kept, indent=1) + "\n"}


def about(run: Mapping[str, Any], bars: Sequence[Bar]) -> str:
    """Where and when it was measured, and the numbers of the pictures as a table, in Markdown."""
    if not bars:
        return "Nothing has been measured yet.\n"
    machine = run.get("machine", {})
    cores = f"{machine['cores']} cores, " if "cores" in machine else ""
    model = f"{machine['model name']}, " if "model name" in machine else ""
    versions = ", ".join(f"{name} {version}" for name, version in run.get("versions", {}).items())
    kept = sum(bar.verdict != "BELOW" for bar in bars)
    rows = [f"| {bar.what.replace('|', '&#124;')} | {_number(bar)} | {_required(bar)} |" for bar in bars]
    return "\n".join(
        [
            f"Measured on {run.get('date', '?')[:10]} on {model}{cores}commit {run.get('commit', '?')[:12]};",
            f"{versions}.",
            f"{kept} of {len(bars)} promises were kept in that run.",
            "",
            "| promise | measured | required |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def measured_bars(found: Iterable[Mapping[str, Any]]) -> list[Bar]:
    """The promises that were measured in a run."""
    return [Bar(**{word: bar[word] for word in Bar._fields}) for bar in found if bar["measured"] is not None]


def grouped(bars: Sequence[Bar]) -> dict[str, list[Bar]]:
    """The bars of each group, in their order."""
    found: dict[str, list[Bar]] = {name: [] for name in GROUPS}
    for bar in bars:
        names = [name for name, (_, begins) in GROUPS.items() if begins and bar.what.startswith(begins)]
        found[names[0] if names else "resources"].append(bar)
    return found


def picture(title: str, bars: Sequence[Bar]) -> str:
    """A picture with a row for each bar."""
    width, height = LABELS + SCALE + NUMBERS, TOP + ROW * max(1, len(bars)) + BOTTOM
    zero = LABELS + 10
    required = _x(1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title, quote=True)}">',
        f"  <style>{STYLE}  </style>",
        f'  <rect class="back" width="{width}" height="{height}" rx="6"/>',
        f'  <text class="title" x="12" y="22">{escape(title)}</text>',
        f'  <text class="small middle" x="{required:g}" y="{TOP - 8}">required</text>',
    ]
    if not bars:
        lines.append(f'  <text class="small" x="{zero}" y="{TOP + 16}">not measured in this run</text>')
    for number, bar in enumerate(bars):
        top = TOP + ROW * number
        value, aim = bar.beyond(bar.measured), bar.beyond(bar.aim)
        length = _x(value) - zero
        lines += [
            f'  <text class="end" x="{LABELS}" y="{top + 16}">{escape(_short(bar.what))}</text>',
            f'  <rect class="track" x="{zero}" y="{top + 5}" width="{SCALE - 10}" height="14" rx="2"/>',
            f'  <rect class="{bar.verdict.lower()}" x="{zero}" y="{top + 5}" width="{length:.1f}" height="14" rx="2">'
            f"<title>{escape(_said(bar))}</title></rect>",
        ]
        if aim != 1:
            lines.append(_vertical("tick", _x(aim), top + 3, top + 21))
        cut = " ▸" if value > MOST else ""
        lines.append(
            f'  <text x="{LABELS + SCALE + 8}" y="{top + 16}">{escape(_number(bar))}{cut}'
            f'<tspan class="small" dx="8">{escape(_required(bar))}</tspan></text>'
        )
    end = TOP + ROW * max(1, len(bars))
    lines.append(_vertical("line", required, TOP - 4, end + 2))
    lines.append(
        f'  <text class="small" x="{zero}" y="{end + 18}">further right is better; tick: the goal; ▸ beyond '
        f"{MOST:g} times what is required</text>"
    )
    return "\n".join([*lines, "</svg>"]) + "\n"


def _x(times: float) -> float:
    """Where so many times what is required is."""
    return LABELS + 10 + (SCALE - 10) * min(times, MOST) / MOST


def _vertical(kind: str, x: float, y: float, y2: float) -> str:
    return f'  <line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{y:g}" y2="{y2:g}"/>'


def _short(what: str) -> str:
    return what if len(what) <= 60 else f"{what[:59]}…"


def _number(bar: Bar) -> str:
    unit = "x" if bar.unit.startswith("x ") else f" {bar.unit}"
    return f"{_digits(bar.measured)}{unit}"


def _required(bar: Bar) -> str:
    sign = "≥" if bar.more_is_better else "≤"
    return f"{sign} {_digits(bar.must)}" + (f", goal {_digits(bar.aim)}" if bar.aim != bar.must else "")


def _digits(number: float) -> str:
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _said(bar: Bar) -> str:
    return f"{bar.what}: {_digits(bar.measured)} {bar.unit}, required {_required(bar)}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="what a run of bench.py wrote")
    parser.add_argument("--out", type=Path, default=Path("docs/speed"), help="the folder to write to: %(default)s")
    return parser.parse_args()


if __name__ == "__main__":
    main()
