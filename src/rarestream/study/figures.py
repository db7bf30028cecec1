"""What plots share: the axes, the colour and the look of each method, and the line of a method in a plot."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rarestream.study.results import Floats, Result

ROWS, SECONDS, RATIO, AUC = "rows seen", "seconds", "sparse ratio", "test AUC"  # axes

# Okabe and Ito's hues and similar ones, which the colour-blind can tell apart; one per method. All are darkened or
# lightened to a contrast of at least 3:1 on white and on the dark page, so in grey they look alike: LOOKS differ there.
COLOURS = {
    "ftrl_auc": "#d55e00",
    "spam_l1": "#0072b2",
    "spam_l2": "#2b86c8",
    "spam_l1l2": "#6a73d9",
    "solam": "#00906a",
    "spauc": "#b5609a",
    "fsauc": "#94780a",
    "rda_l1": "#008b8b",
    "adagrad": "#3f7ad6",
    "ftrl_proximal": "#c4508a",
    "ftrl_auc_non_lazy": "#2f8a3d",
    "auto": "#767676",
    "race": "#8465dd",
    "dual_auc": "#b0683a",
    "dual_logistic": "#3f9468",
    "balanced_logistic": "#a6761d",
}
SPARE = ("#b04a80", "#35897b", "#80802a", "#4a8db0", "#c4566b", "#6f5fbf", "#a87a10", "#548a18", "#d5308a")


class Look(NamedTuple):
    """How a line is told apart without its colour."""

    dashes: tuple[float, ...]  # lengths of dashes and gaps, in widths of the line; none: solid
    marker: str  # of matplotlib
    width: float = 1.6


_DASHED, _DOTTED, _DASH_DOT = (4.0, 1.6), (1.0, 1.4), (5.0, 1.4, 1.0, 1.4)
LOOKS = {  # methods of one plot have different ones
    "ftrl_auc": Look((), "o", 2.0),
    "spam_l1": Look(_DASHED, "s"),
    "spam_l2": Look(_DASHED, "s"),
    "spam_l1l2": Look(_DOTTED, "^"),
    "solam": Look(_DOTTED, "^"),
    "spauc": Look(_DASH_DOT, "D"),
    "fsauc": Look((8.0, 2.0), "v"),
    "rda_l1": Look(_DOTTED, "^"),
    "adagrad": Look(_DASHED, "s"),
    "ftrl_proximal": Look(_DASH_DOT, "D"),
    "ftrl_auc_non_lazy": Look(_DASHED, "s"),
    "auto": Look((), "X", 2.8),
}


class PlotLine(NamedTuple):
    """A line of a plot."""

    x: Floats
    y: Floats
    spread: Floats | None = None


def colours(methods: Iterable[str]) -> dict[str, str]:
    """Return the colour of each method; methods that are not in COLOURS share the spare ones."""
    spare = itertools.cycle(SPARE)
    return {method: COLOURS.get(method) or next(spare) for method in methods}


def line_of(result: Result | None, x: str, y: str) -> PlotLine | None:
    """Return the line of a method: its mean curve, or one point per lambda; None if it has none."""
    if result is None:
        return None
    if y == RATIO:
        points = [(point.auc, point.sparse_ratio) for point in result.sparsity() if point.sparse_ratio > 0]
        return PlotLine(*(np.array(column) for column in zip(*points, strict=True))) if points else None
    curve = result.curve()
    if curve is None:
        return None
    # The first point, after one row, is chance; on a logarithmic axis it would take half of the width.
    return PlotLine((curve.seconds if x == SECONDS else curve.rows)[1:], curve.test_auc[1:], curve.spread[1:])
