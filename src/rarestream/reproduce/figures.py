"""The paper's figures as functions of rows: its panels, our lines solid, the published ones dashed.

    1        a toy classifier and its ROC curve
    2, 9     FTRL-AUC with lazy and with exact class means: test AUC against rows
    3, 8     the AUC methods: test AUC against seconds, against rows
    4        sparse ratio against test AUC, one point per lambda
    5, 10    FTRL-AUC and the logistic methods on imbalanced sets: test AUC against rows
    6, 11    the same methods: sparse ratio against test AUC
    7        avazu: FTRL-AUC and FTRL-Proximal

A panel without rows says why, and still shows the published lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rarestream.errors import MissingExtraError
from rarestream.metrics import auc
from rarestream.reproduce.datasets import NAMES as SETS
from rarestream.reproduce.datasets import OTHER_ROWS
from rarestream.reproduce.methods import LEARNED_LAZILY, TABLE2, TABLE3, results_of
from rarestream.reproduce.tables import Published
from rarestream.study.figures import AUC, COLOURS, RATIO, ROWS, SECONDS, PlotLine, line_of
from rarestream.study.results import Results
from rarestream.study.rows import CORRECTED, TrialRow

MARKERS = "osD^vPX*"
SPARSE = ("ftrl_auc", "spam_l1", "spam_l1l2", "spauc")
OURS = "auto"  # joins the paper's methods where curves are shown


@dataclass(frozen=True)
class Plan:
    """What a figure shows."""

    title: str
    sets: tuple[str, ...]
    methods: tuple[str, ...]
    x: str
    y: str
    ratio: float | None = None
    logarithmic: tuple[str, ...] = ()  # axes
    band: bool = False  # one standard deviation to either side
    note: str = ""


PLANS = {
    2: Plan("Lazy and exact class means", ("imdb", "real-sim", "farm-ads"), LEARNED_LAZILY, ROWS, AUC, band=True),
    3: Plan("Convergence in run time", SETS, (*TABLE2, OURS), SECONDS, AUC, logarithmic=("x",)),
    4: Plan("Sparse ratio and AUC, one point per lambda", SETS, SPARSE, AUC, RATIO, logarithmic=("y",)),
    5: Plan("Convergence, positive:negative ratio 0.1", SETS, (*TABLE3, OURS), ROWS, AUC, ratio=0.1),
    6: Plan(
        "Sparse ratio and AUC, positive:negative ratio 0.1", SETS, TABLE3, AUC, RATIO, ratio=0.1, logarithmic=("y",)
    ),
    7: Plan("avazu", ("avazu",), ("ftrl_auc", "ftrl_proximal", OURS), ROWS, AUC, logarithmic=("x",), band=True),
    8: Plan("Convergence in rows", SETS, (*TABLE2, OURS), ROWS, AUC),
    9: Plan("Lazy and exact class means", ("news20b", "rcv1b", "reviews"), LEARNED_LAZILY, ROWS, AUC, band=True),
    10: Plan("Convergence, positive:negative ratio 0.05", SETS, (*TABLE3, OURS), ROWS, AUC, ratio=0.05),
    11: Plan(
        "Sparse ratio and AUC, positive:negative ratio 0.05",
        SETS,
        TABLE3,
        AUC,
        RATIO,
        ratio=0.05,
        logarithmic=("y",),
        note="No published points: those of the authors' figure 11 are those of figure 6 (B12).",
    ),
}
NUMBERS = (1, *PLANS)
# The points that the authors kept for figure 11 are those of ratio 0.1, as rerunning farm-ads shows (B12).
POINTS = {6: "figure11", 11: ""}
COLUMN = {ROWS: "rows", SECONDS: "seconds", AUC: "test_auc", RATIO: "sparse_ratio"}  # in published.json


def figure(number: int, rows: Iterable[TrialRow], published: Published, mode: str | None = None) -> Any:
    """Return a figure of the paper as a matplotlib Figure."""
    if number not in NUMBERS:
        raise ValueError(f"figure {number}: the paper has figures 1 to 11.")
    if number == 1:
        return _toy()
    plan = PLANS[number]
    found = results_of(rows, mode)
    paper = published_lines(number, published)
    wide = 3 if len(plan.sets) > 1 else 1
    high = -(-len(plan.sets) // wide)
    page, panels = _page(wide, high)
    for panel, name in zip(panels, plan.sets, strict=True):
        _panel(panel, plan, found, name, paper.get(name, {}))
    for place, panel in enumerate(panels):
        if place % wide == 0:
            panel.set_ylabel(plan.y)
        if place >= len(panels) - wide:
            panel.set_xlabel(plan.x)
    _legend(page, plan, found, bool(paper))
    page.suptitle("\n".join(filter(None, (f"Figure {number}: {plan.title}", plan.note))), fontsize=9)
    return page


def published_lines(number: int, published: Published) -> Mapping[str, Any]:
    """Return the published lines of a figure, by data set and method, as published.json has them."""
    return published.get(POINTS.get(number, f"figure{number}"), {}) if published else {}


def published_line(columns: Mapping[str, Sequence[float]], x: str, y: str) -> PlotLine:
    """Return a published line, but for points that a logarithmic axis cannot show."""
    xs, ys = (np.array(columns[COLUMN[axis]], float) for axis in (x, y))
    kept = (xs > 0) & (ys > 0)
    return PlotLine(xs[kept], ys[kept])


def _panel(
    panel: Any, plan: Plan, found: Results, name: str, paper: Mapping[str, Mapping[str, Sequence[float]]]
) -> None:
    from matplotlib.ticker import EngFormatter

    lazy = plan.methods == LEARNED_LAZILY
    drawn, reason, data = 0, found.why_not(name), ""
    for place, method in enumerate(plan.methods):
        if published := paper.get(method):
            theirs = published_line(published, plan.x, plan.y)
            panel.plot(theirs.x, theirs.y, color=_dark(method), linestyle=(0, (4, 2)), linewidth=0.9, zorder=3)
        result = found.fixed(name, method) if lazy else found.get(name, method, plan.ratio)
        line = line_of(result, plan.x, plan.y)
        if result is not None:
            reason, data = result.why_not if line is None and not drawn else reason, data or result.data
        if line is None:
            continue
        drawn += 1
        marker = MARKERS[place % len(MARKERS)] if plan.y == RATIO else None
        panel.plot(line.x, line.y, color=COLOURS[method], linewidth=1.4, marker=marker, markersize=3.5)
        if plan.band and line.spread is not None:
            low, high = line.y - line.spread, line.y + line.spread
            panel.fill_between(line.x, low, high, color=COLOURS[method], alpha=0.15, linewidth=0)
    panel.set_title(name + (f" ({data})" if data not in ("", "exact", "own") else ""), fontsize=9)
    for axis in plan.logarithmic:
        getattr(panel, f"set_{axis}scale")("log")
    if plan.x == ROWS and not plan.logarithmic:
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))  # 10k, not 10000: panels are narrow
    if plan.x == AUC:
        panel.set(xlim=(0.5, 1.0), ylim=(1e-6, 1.5))
    panel.grid(alpha=0.25, linewidth=0.5)
    if paper and data in OTHER_ROWS:
        words = {"transform": panel.transAxes, "ha": "right", "fontsize": 7, "style": "italic"}
        panel.text(0.98, 0.02, "published: other rows", **words)
    if not drawn:
        what = reason if len(reason) < 40 else reason[:38] + "..."
        panel.text(0.5, 0.08, f"ours: {what}", transform=panel.transAxes, ha="center", fontsize=8, style="italic")


def _dark(method: str) -> tuple[float, ...]:
    """Return a darker shade of the method's colour, which shows on top of an identical line."""
    from matplotlib.colors import to_rgb

    return tuple(0.6 * part for part in to_rgb(COLOURS[method]))


def _legend(page: Any, plan: Plan, found: Results, published: bool) -> None:
    from matplotlib.lines import Line2D

    ours = "ours" if found.mode == CORRECTED else "ours, with the authors' bugs"
    handles = [Line2D([], [], color=COLOURS[method], linewidth=1.6) for method in plan.methods]
    names = [found.label(method) for method in plan.methods]
    handles.append(Line2D([], [], color="black", linewidth=1.4))
    names.append(ours)
    if published:
        handles.append(Line2D([], [], color="black", linewidth=0.9, linestyle=(0, (4, 2))))
        names.append("published")
    page.legend(handles, names, loc="outside lower center", ncols=min(len(names), 5), fontsize=8, frameon=False)


def _page(wide: int, high: int) -> tuple[Any, list[Any]]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError('Figures need the package matplotlib: pip install "rarestream[plot]"') from None
    size = (8.4, 2.3 * high + 0.9) if wide > 1 else (6.0, 4.0)
    page = Figure(figsize=size, dpi=150, layout="constrained")
    panels = page.subplots(high, wide, squeeze=False)
    for panel in panels.flat:
        panel.tick_params(labelsize=7)
    return page, list(panels.flat)


def toy() -> tuple[Any, Any]:
    """Return the points of figure 1 and their labels.

    They are ours: the paper's had 15 positive labels for 14 positive points (B11), so its AUC is of a mislabelled set.
    """
    generator = np.random.default_rng(3)
    labels = np.repeat(np.array([1, -1], np.int8), 14)
    return generator.normal([(-0.45, 0.45)] * 14 + [(0.45, -0.45)] * 14, 0.7), labels


def _toy() -> Any:
    """Draw a line as classifier, and the ROC curve of its scores."""
    points, labels = toy()
    scores = points @ (-1.0, 1.0)
    page, (plane, curve) = _page(2, 1)
    reach = float(np.abs(points).max()) * 1.1
    plane.fill_between([-reach, reach], [-reach, reach], reach, color=COLOURS["ftrl_auc"], alpha=0.12, linewidth=0)
    plane.fill_between([-reach, reach], -reach, [-reach, reach], color=COLOURS["spam_l1"], alpha=0.12, linewidth=0)
    plane.plot([-reach, reach], [-reach, reach], color="black", linewidth=1)
    for sign, method, marker in ((1, "ftrl_auc", "o"), (-1, "spam_l1", "s")):
        mine = labels == sign
        plane.plot(*points[mine].T, marker, color=COLOURS[method], markersize=4, label=f"y = {sign:+d}")
    plane.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="x1", ylabel="x2")
    plane.set_title("w = (-1, 1)", fontsize=9)
    plane.legend(fontsize=7)
    ranked = labels[np.argsort(-scores)] > 0
    tpr = np.concatenate([[0], np.cumsum(ranked) / ranked.sum()])
    fpr = np.concatenate([[0], np.cumsum(~ranked) / (~ranked).sum()])
    curve.fill_between(fpr, tpr, color=COLOURS["ftrl_auc"], alpha=0.12, linewidth=0, step="post")
    curve.step(fpr, tpr, where="post", color=COLOURS["ftrl_auc"])
    curve.plot([0, 1], [0, 1], color="grey", linewidth=0.7)
    curve.set(xlabel="false positive rate", ylabel="true positive rate")
    curve.set_title(f"AUC = {auc(labels, scores):.3f}", fontsize=9)
    page.suptitle("Figure 1: a classifier and its ROC curve", fontsize=10)
    page.supxlabel("Points of our own: the paper's had 15 positive labels for 14 positive points (B11).", fontsize=7)
    return page
