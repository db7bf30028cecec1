"""The paper's figures as functions of rows: its panels, ours as solid lines, the published as dashed ones.

    1        a toy classifier and its ROC curve
    2, 9     FTRL-AUC with lazy and with exact class means: test AUC against rows
    3, 8     the AUC methods: test AUC against seconds, against rows
    4        sparse ratio against test AUC, a point a lambda
    5, 10    FTRL-AUC and the logistic methods on imbalanced sets: test AUC against rows
    6, 11    the same methods: sparse ratio against test AUC
    7        avazu: FTRL-AUC and FTRL-Proximal

A panel without rows says why, and still has the published curves.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rarestream.errors import MissingExtraError
from rarestream.metrics import auc
from rarestream.reproduce.datasets import NAMES as SETS
from rarestream.reproduce.datasets import OTHER_ROWS
from rarestream.reproduce.methods import CORRECTED, TABLE2, TABLE3
from rarestream.reproduce.results import Floats, Result, Results, Row
from rarestream.reproduce.tables import Published

# Okabe and Ito's colours and their like, told apart by the colour-blind and in grey; one a method, everywhere.
COLOURS = {
    "ftrl_auc": "#d55e00",
    "spam_l1": "#0072b2",
    "spam_l2": "#56b4e9",
    "spam_l1l2": "#5566cc",
    "solam": "#009e73",
    "spauc": "#cc79a7",
    "fsauc": "#b58900",
    "rda_l1": "#008b8b",
    "adagrad": "#e69f00",
    "ftrl_proximal": "#aa4477",
    "ftrl_auc_non_lazy": "#228833",
    "auto": "#8a8a8a",
    "race": "#7b5cd6",
    "dual_auc": "#b0683a",
    "dual_logistic": "#3f9468",
    "balanced_logistic": "#a6761d",
}
SPARE = ("#882255", "#44aa99", "#999933", "#88ccee", "#cc6677", "#6f5fbf", "#ddaa33", "#66a61e", "#e7298a")
MARKERS = "osD^vPX*"
SPARSE = ("ftrl_auc", "spam_l1", "spam_l1l2", "spauc")
LAZY = ("ftrl_auc", "ftrl_auc_non_lazy")
OURS = "auto"  # joins the paper's methods where curves are shown
ROWS, SECONDS, RATIO, AUC = "rows seen", "seconds", "sparse ratio", "test AUC"


class Line(NamedTuple):
    x: Floats
    y: Floats
    spread: Floats | None = None


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
    band: bool = False  # a deviation to either side
    note: str = ""


PLANS = {
    2: Plan("Lazy and exact class means", ("imdb", "real-sim", "farm-ads"), LAZY, ROWS, AUC, band=True),
    3: Plan("Convergence in run time", SETS, (*TABLE2, OURS), SECONDS, AUC, logarithmic=("x",)),
    4: Plan("Sparse ratio and AUC, a point a lambda", SETS, SPARSE, AUC, RATIO, logarithmic=("y",)),
    5: Plan("Convergence, 0.1 positives a negative", SETS, (*TABLE3, OURS), ROWS, AUC, ratio=0.1),
    6: Plan("Sparse ratio and AUC, 0.1 positives a negative", SETS, TABLE3, AUC, RATIO, ratio=0.1, logarithmic=("y",)),
    7: Plan("avazu", ("avazu",), ("ftrl_auc", "ftrl_proximal", OURS), ROWS, AUC, logarithmic=("x",), band=True),
    8: Plan("Convergence in rows", SETS, (*TABLE2, OURS), ROWS, AUC),
    9: Plan("Lazy and exact class means", ("news20b", "rcv1b", "reviews"), LAZY, ROWS, AUC, band=True),
    10: Plan("Convergence, 0.05 positives a negative", SETS, (*TABLE3, OURS), ROWS, AUC, ratio=0.05),
    11: Plan(
        "Sparse ratio and AUC, 0.05 positives a negative",
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
# The points that the authors kept for figure 11 are of 0.1 positives a negative, as running farm-ads again shows (B12).
POINTS = {6: "figure11", 11: ""}
COLUMN = {ROWS: "rows", SECONDS: "seconds", AUC: "test_auc", RATIO: "sparse_ratio"}  # in published.json


def colours(methods: Iterable[str]) -> dict[str, str]:
    """The colour of each method; those that the paper does not have share out the spare ones."""
    spare = itertools.cycle(SPARE)
    return {method: COLOURS.get(method) or next(spare) for method in methods}


def figure(number: int, rows: Iterable[Row], published: Published, mode: str | None = None) -> Any:
    """A matplotlib Figure."""
    if number not in NUMBERS:
        raise ValueError(f"figure {number}: the paper has figures 1 to 11.")
    if number == 1:
        return _toy()
    plan = PLANS[number]
    found = Results(rows, mode)
    said = lines_said(number, published)
    wide = 3 if len(plan.sets) > 1 else 1
    high = -(-len(plan.sets) // wide)
    page, panels = _page(wide, high)
    for panel, name in zip(panels, plan.sets, strict=True):
        _panel(panel, plan, found, name, said.get(name, {}))
    for place, panel in enumerate(panels):
        if place % wide == 0:
            panel.set_ylabel(plan.y)
        if place >= len(panels) - wide:
            panel.set_xlabel(plan.x)
    _legend(page, plan, found, bool(said))
    page.suptitle("\n".join(filter(None, (f"Figure {number}: {plan.title}", plan.note))), fontsize=9)
    return page


def lines_said(number: int, published: Published) -> Mapping[str, Any]:
    """The published lines of a figure, by set and method."""
    return published.get(POINTS.get(number, f"figure{number}"), {}) if published else {}


def line_of(result: Result | None, x: str, y: str) -> Line | None:
    """What a panel draws of a method: its mean curve, or a point a lambda."""
    if result is None:
        return None
    if y == RATIO:
        points = [(at, ratio) for _, at, ratio in result.sparsity() if ratio > 0]
        return Line(*(np.array(column) for column in zip(*points, strict=True))) if points else None
    curve = result.curve()
    if curve is None:
        return None
    # The first point, after one row, is chance; on a logarithmic axis it would take half of it.
    return Line((curve.seconds if x == SECONDS else curve.rows)[1:], curve.test_auc[1:], curve.spread[1:])


def _panel(
    panel: Any, plan: Plan, found: Results, name: str, said: Mapping[str, Mapping[str, Sequence[float]]]
) -> None:
    from matplotlib.ticker import EngFormatter

    lazy = plan.methods == LAZY
    drawn, reason, data = 0, found.why_not(name), ""
    for place, method in enumerate(plan.methods):
        published = said.get(method)
        if published:
            x, y = np.array(published[COLUMN[plan.x]]), np.array(published[COLUMN[plan.y]])
            kept = (y > 0) & (x > 0)
            panel.plot(x[kept], y[kept], color=_dark(method), linestyle=(0, (4, 2)), linewidth=0.9, zorder=3)
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
    if said and data in OTHER_ROWS:
        words = {"transform": panel.transAxes, "ha": "right", "fontsize": 7, "style": "italic"}
        panel.text(0.98, 0.02, "published: of other rows", **words)
    if not drawn:
        what = reason if len(reason) < 40 else reason[:38] + "..."
        panel.text(0.5, 0.08, f"ours: {what}", transform=panel.transAxes, ha="center", fontsize=8, style="italic")


def _dark(method: str) -> tuple[float, ...]:
    """A darker shade of the method's colour: to be seen on top of a line that is the same."""
    from matplotlib.colors import to_rgb

    return tuple(0.6 * part for part in to_rgb(COLOURS[method]))


def _legend(page: Any, plan: Plan, found: Results, published: bool) -> None:
    from matplotlib.lines import Line2D

    ours = "ours" if found.mode == CORRECTED else "ours, the authors' arithmetic"
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
    """The points of figure 1 and their labels. They are ours: the paper's had 15 positive labels for 14 positive points
    (B11), so that its AUC is of a mislabelled set."""
    generator = np.random.default_rng(3)
    labels = np.repeat(np.array([1, -1], np.int8), 14)
    return generator.normal([(-0.45, 0.45)] * 14 + [(0.45, -0.45)] * 14, 0.7), labels


def _toy() -> Any:
    """A line as classifier, and the ROC curve of the scores it gives."""
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
