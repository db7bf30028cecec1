"""What plots share: the axes, the colour of each method, and the line of a method in a plot."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rarestream.study.results import Floats, Result

ROWS, SECONDS, RATIO, AUC = "rows seen", "seconds", "sparse ratio", "test AUC"  # axes

# Okabe and Ito's colours and similar ones, which the colour-blind can tell apart, also in grey; one per method.
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
