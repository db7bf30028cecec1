"""The pictures of the pages in docs/learners: how each learner behaves along one generated stream.

    python docs/learners/pictures.py [PAGE ...] [--out docs/learners]

Writes PAGE.svg for each page, or for the pages named: the progressive AUC and the number of non-zero weights, with
dual-logistic in grey; and prints where the lines end. Takes about half a minute. The same version of the package
writes the same files, byte for byte.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from rarestream import Block, Model, make_learner
from rarestream.datasets import RareStream, make_rare_stream

ROWS = 20_000
SLOW = {"adaoam": 5_000}  # O(d) per row: fewer rows
STEP = 500  # rows between two points of a line
FIRST = 1_500  # before, the AUC is mostly chance
WIDTH, HEIGHT, TOP, PANEL_WIDTH, PANEL_HEIGHT = 720, 270, 40, 270, 150
LEFTS = (56, 420)  # of the two panels
# A white ground, so that the picture is the same on light and dark pages; lines differ in grey, too.
INK, SECOND, GREY, GRID = "#102a43", "#b44d12", "#9aa5b1", "#e4e7eb"

Settings = dict[str, object]


class Line(NamedTuple):
    """One learner along the stream."""

    title: str
    rows: list[int]
    aucs: list[float]
    nonzeros: list[int]


class Style(NamedTuple):
    """How a line is drawn."""

    colour: str
    width: float
    dashes: str = "none"


GREY_LINE = Style(GREY, 3.5)
LINES = (Style(INK, 1.8), Style(SECOND, 1.8, "6 3"))
BEST = Style("#616e7c", 1.0, "1.5 3")

PAGES: dict[str, list[tuple[str, Settings]]] = {  # of each page the learners drawn, with their settings
    "adagrad": [("adagrad", {}), ("adagrad", {"l1": 1e-5})],
    "adaoam": [("adaoam", {})],
    "auto": [("auto", {})],
    "dual-averaging": [("dual-auc", {}), ("dual-logistic", {"budget": 1000})],
    "fsauc": [("fsauc", {})],
    "ftrl-auc": [("ftrl-auc", {}), ("ftrl-auc", {"l1": 0.05})],
    "ftrl-proximal": [("ftrl-proximal", {}), ("ftrl-proximal", {"l1": 0.3})],
    "oam": [("oam", {})],
    "opauc": [("opauc", {})],
    "rda": [("rda", {}), ("rda", {"l1": 1e-5})],
    "solam": [("solam", {})],
    "spam": [("spam", {}), ("spam", {"penalty": "l1", "l1": 1e-4})],
    "spauc": [("spauc", {}), ("spauc", {"l1": 1e-4})],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="only these pages; default: all")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    given = parser.parse_args()
    for page in given.pages or PAGES:
        lines, svg = picture(page)
        (given.out / f"{page}.svg").write_text(svg, "utf-8")
        for line in lines:
            print(
                f"{page}: {line.title}, {line.rows[-1]:,} rows: AUC {line.aucs[-1]:.4f}, {line.nonzeros[-1]:,} weights"
            )


def picture(page: str) -> tuple[list[Line], str]:
    """Return the lines of a page, dual-logistic last, and its picture as SVG."""
    stream = make_rare_stream(ROWS, positives=0.05, seed=1)
    count = SLOW.get(page, ROWS)
    grey = followed("dual-logistic", {}, stream, count)
    lines = [followed(name, settings, stream, count) for name, settings in PAGES[page]]
    return [*lines, grey], drawn(lines, grey, count, float(stream.best_auc()))


def followed(name: str, settings: Settings, stream: RareStream, count: int) -> Line:
    """Learn the first rows of the stream; note the AUC and the number of weights on the way."""
    model = Model(make_learner(name, **settings))
    words = [f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in settings.items()]
    line = Line(" ".join([name, *words]), [], [], [])
    for block in pieces(stream, count):
        model.learn(block)
        if model.rows % STEP == 0 and model.rows >= FIRST:
            line.rows.append(model.rows)
            line.aucs.append(float(model.progress.auc))
            line.nonzeros.append(model.nonzeros)
    return line


def pieces(stream: RareStream, count: int) -> Iterator[Block]:
    """Cut the first rows of a stream where a point of a line is due."""
    done = 0
    for block in stream:
        begin = 0
        while begin < len(block) and done < count:
            end = min(len(block), begin + STEP - done % STEP, begin + count - done)
            yield block[begin:end]
            done += end - begin
            begin = end


def drawn(lines: list[Line], grey: Line, count: int, best: float) -> str:
    """Return two panels and a legend."""
    styles = [(grey, GREY_LINE), *zip(lines, LINES, strict=False)]
    low, high = 0.55, 0.95  # on every page
    most = max(number for line, _ in styles for number in line.nonzeros)
    top = next(number for number in (10_000, 20_000, 40_000, 80_000, 160_000, 320_000) if number >= most)
    across = [0, count // 2, count]

    parts = panel(
        LEFTS[0], "progressive AUC, by rows learned", across, [0.6, 0.7, 0.8, 0.9], "{:.1f}".format, low, high
    )
    parts += panel(LEFTS[1], "non-zero weights, by rows learned", across, [0, top // 2, top], "{:,}".format, 0, top)
    place = scale(LEFTS[0], count, low, high)
    parts.append(polyline([place(0, best), place(count, best)], BEST))
    for line, style in styles:
        parts.append(polyline(list(map(scale(LEFTS[0], count, low, high), line.rows, line.aucs)), style))
        parts.append(polyline(list(map(scale(LEFTS[1], count, 0, top), line.rows, line.nonzeros)), style))
    left = float(LEFTS[0])
    for words, style in [
        *((line.title, style) for line, style in styles[1:] + styles[:1]),
        ("best possible AUC", BEST),
    ]:
        parts.append(polyline([(left, HEIGHT - 16), (left + 26, HEIGHT - 16)], style))
        parts.append(text(left + 32, HEIGHT - 12, words))
        left += 52 + 6.4 * len(words)
    about = f"Progressive AUC and non-zero weights of {', '.join(line.title for line, _ in styles)} over {count:,} rows"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{about}" font-family="system-ui, Segoe UI, DejaVu Sans, sans-serif" font-size="12" '
        f'fill="#323f4b">'
    )
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#ffffff"/>'
    return "\n".join([head, f"<title>{about}</title>", ground, *parts, "</svg>", ""])


def panel(
    left: float, title: str, across: list[int], up: list[float], write: Callable[[float], str], low: float, high: float
) -> list[str]:
    """Return the title, the grid and the numbers of a panel."""
    count = across[-1]
    place = scale(left, count, low, high)
    parts = [text(left, TOP - 16, title, weight="600")]
    for number in up:
        parts.append(polyline([place(0, number), place(count, number)], Style(GRID, 1)))
        parts.append(text(left - 6, place(0, number)[1] + 4, write(number), anchor="end"))
    for row in across:
        parts.append(text(place(row, low)[0], TOP + PANEL_HEIGHT + 18, f"{row:,}", anchor="middle"))
    return parts


def scale(left: float, count: int, low: float, high: float) -> Callable[[float, float], tuple[float, float]]:
    """Return the function that places a row number and a value in a panel."""
    return lambda row, value: (
        left + PANEL_WIDTH * row / count,
        TOP + PANEL_HEIGHT * (high - value) / (high - low),
    )


def polyline(points: list[tuple[float, float]], style: Style) -> str:
    """Return a line through points."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline points="{path}" fill="none" stroke="{style.colour}" stroke-width="{style.width}" '
        f'stroke-dasharray="{style.dashes}" stroke-linejoin="round"/>'
    )


def text(x: float, y: float, words: str, anchor: str = "start", weight: str = "400") -> str:
    """Return words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>'


if __name__ == "__main__":
    main()
