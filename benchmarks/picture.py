"""The picture of the README: how quickly learners get good on one stream of rare events, and how good in the end.

    python benchmarks/picture.py [--rows 160000] [--seed 0] [--out docs/learning.svg] [--json FILE]

The stream is that of `rarestream demo`: 24 fields, 2 % positives. Every row is scored before it is learned.
Of Vowpal Wabbit and scikit-learn's SGD it shows the best of 24 settings, selected with hindsight on the rows that the
bars are of: nobody can do that beforehand. `auto` and River come as they are. "possible" is the AUC of the log odds
that the labels were drawn from: no learner can be better. quality.py compares on many data sets.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import contenders
from contenders import Problem, Tried
from rarestream import auc
from rarestream.evaluate.synthetic import Planted

SHOWN = {  # name: its title
    "possible": "possible",
    "auto": "rarestream, auto",
    "vw": "Vowpal Wabbit, best of 24",
    "sgd": "scikit-learn SGD, best of 24",
    "river": "River FTRL",
}
CURVES, STEP, WINDOW = ("auto", "vw", "sgd", "river"), 8_000, 40_000  # rows between two points, and of a point
STYLE = """
    text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2933; }
    .title { font-size: 14px; font-weight: 600; }
    .small { font-size: 11px; fill: #52606d; }
    .end { text-anchor: end; } .middle { text-anchor: middle; }
    .grid { stroke: #d5dbe1; stroke-width: 1; }
    .curve { fill: none; stroke-width: 2; stroke: #7b8794; }
    .auto { stroke: #0b69a3; stroke-width: 3.5; } .vw { stroke-dasharray: 7 3; } .sgd { stroke-dasharray: 2 3; }
    .limit { stroke: #1f2933; stroke-width: 1.5; stroke-dasharray: 1 3; }
    .bar { fill: #9aa5b1; } .own { fill: #0b69a3; } .back { fill: #ffffff; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e4e7eb; } .small { fill: #a9b4c0; } .grid { stroke: #37424f; }
      .curve { stroke: #9aa5b1; } .auto { stroke: #5ab2ec; } .limit { stroke: #e4e7eb; }
      .bar { fill: #66727f; } .own { fill: #5ab2ec; } .back { fill: #14181e; }
    }
"""


class Results(NamedTuple):
    """What the picture shows."""

    rows: int
    at: list[int]
    curves: dict[str, list[float]]  # the AUC of the WINDOW rows before each of `at`
    last: int  # rows that the final AUCs are of
    aucs: dict[str, float]


def main() -> None:
    options = arguments()
    if options.json is not None and options.json.exists():
        found = json.loads(options.json.read_text("utf-8"))
        results = Results(**found)
    else:
        results = measured(options.rows, options.seed)
        if options.json is not None:
            options.json.write_text(json.dumps(results._asdict()), "utf-8")
    for name, value in sorted(results.aucs.items(), key=lambda pair: -pair[1]):
        print(f"{SHOWN[name]:30} AUC {value:.4f} on the last {results.last:,} of {results.rows:,} rows")
    options.out.write_text(picture(results), "utf-8")
    print(options.out)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=160_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/learning.svg"))
    parser.add_argument("--json", type=Path, help="results: used if the file is there, else written")
    return parser.parse_args()


# -- results


def measured(rows: int, seed: int) -> Results:
    """Learn the stream with every contestant."""
    parts = list(Planted.plant(seed).rows(rows))
    problem = Problem([part.block for part in parts], 1, 0, rows - 1, progressive=True)  # all but the first row count
    last = rows // 2
    scores: dict[str, NDArray[np.float64]] = {"possible": np.concatenate([part.log_odds for part in parts])[1:]}
    scores["auto"] = contenders.learner(problem, "auto")[0].scores
    with tempfile.TemporaryDirectory() as folder:
        vw = contenders.VowpalWabbit(problem, Path(folder))
        scores["vw"] = best([*vw.default(), *vw.tuned()], problem, last)
        vw.close()
    scores["sgd"] = best(contenders.sgd(problem), problem, last)
    river = contenders.river(problem)
    if river is not None:
        scores["river"] = river[0].scores
    at = list(range(WINDOW // 4, rows + 1, STEP))
    labels = problem.labels
    curves = {
        name: [auc(labels[max(0, end - WINDOW) : end], one[max(0, end - WINDOW) : end]) for end in at]
        for name, one in scores.items()
    }
    return Results(rows, at, curves, last, {name: auc(labels[-last:], one[-last:]) for name, one in scores.items()})


def best(tried: Sequence[Tried], problem: Problem, last: int) -> NDArray[np.float64]:
    """The scores of the setting with the highest AUC on the last rows."""
    return max((one.scores for one in tried), key=lambda scores: auc(problem.labels[-last:], scores[-last:]))


# -- the picture

LEFT, WIDTH, RIGHT, GAP = 52, 400, 290, 224  # pixels: labels, curves, bars, and the names of the bars between
TOP, HEIGHT, BOTTOM = 48, 210, 46


def picture(results: Results) -> str:
    """The SVG text: curves on the left, bars on the right."""
    total, height = LEFT + WIDTH + GAP + RIGHT + 20, TOP + HEIGHT + BOTTOM
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" width="{total}" role="img">',
            f"<title>{escape(spoken(results.aucs))}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="back" width="{total}" height="{height}" rx="6"/>',
            *curves(results),
            *bars(results.aucs, results.last),
            "</svg>",
            "",
        ]
    )


def spoken(aucs: Mapping[str, float]) -> str:
    ranked = sorted(aucs.items(), key=lambda pair: -pair[1])
    return "AUC in one pass: " + ", ".join(f"{SHOWN[name]} {value:.3f}" for name, value in ranked)


def curves(results: Results) -> list[str]:
    shown = {name: results.curves[name] for name in (*CURVES, "possible") if name in results.curves}
    low = np.floor(min(min(one) for one in shown.values()) * 20) / 20
    high = np.ceil(max(max(one) for one in shown.values()) * 50) / 50
    x = np.array(results.at) / results.rows * WIDTH + LEFT

    def y(value: Any) -> Any:
        return TOP + HEIGHT * (high - value) / (high - low)

    lines = [text(LEFT, 26, "AUC along the stream, in one pass", "title")]
    for tick in np.arange(low, high + 1e-9, 0.05):
        at = y(tick)
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{at:.1f}" y2="{at:.1f}"/>')
        lines.append(text(LEFT - 6, at + 4, f"{tick:.2f}", "small end"))
    for rows in range(0, results.rows + 1, 40_000):
        lines.append(text(LEFT + rows / results.rows * WIDTH, TOP + HEIGHT + 17, f"{rows:,}", "small middle"))
    lines.append(text(LEFT + WIDTH / 2, TOP + HEIGHT + 36, f"rows; each point: the last {WINDOW:,}", "small middle"))
    for name, values in shown.items():
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y(np.array(values)), strict=True))
        kind = "curve limit" if name == "possible" else f"curve {name}"
        lines.append(f'<polyline class="{kind}" points="{points}"/>')
    return lines


def bars(aucs: Mapping[str, float], last: int) -> list[str]:
    ranked = sorted(aucs.items(), key=lambda pair: -pair[1])
    first, space = LEFT + WIDTH + GAP, HEIGHT / len(ranked)
    low, high = np.floor(min(aucs.values()) * 20) / 20 - 0.05, max(aucs.values())
    lines = [text(first - GAP + 24, 26, f"AUC of the last {last:,} rows", "title")]
    for number, (name, value) in enumerate(ranked):
        middle = TOP + space * (number + 0.5)
        width = (value - low) / (high - low) * (RIGHT - 60)
        kind = {"auto": "own"}.get(name, "bar")
        lines.append(text(first - 8, middle + 4, SHOWN[name], "end"))
        lines.append(f'<rect class="{kind}" x="{first}" y="{middle - 11:.1f}" width="{width:.1f}" height="22" rx="2"/>')
        lines.append(text(first + width + 6, middle + 4, f"{value:.4f}", ""))
        line = {"possible": "curve limit"}.get(name, f"curve {name}")
        key = TOP + space * (number + 0.5) + 14
        if name in (*CURVES, "possible"):
            lines.append(f'<line class="{line}" x1="{first - 60}" x2="{first - 8}" y1="{key:.1f}" y2="{key:.1f}"/>')
    lines.append(text(first, TOP + HEIGHT + 17, f"bars begin at {low:.2f}", "small"))
    return lines


def text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


if __name__ == "__main__":
    main()
