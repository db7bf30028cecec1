"""The pictures of docs/datasets.md: what the parameters of `make_rare_stream` do.

    python benchmarks/datasets_pictures.py [--out docs/datasets]

Written: share.svg, drift.svg, noise.svg, delays.svg. Needs matplotlib; takes about a minute. The same rows give the
same files.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from rarestream import DualAveraging, Model, auc
from rarestream.datasets import RareStream, make_rare_stream

STYLE = {
    "svg.hashsalt": "rarestream",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["system-ui", "Segoe UI", "DejaVu Sans", "sans-serif"],
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e7eb",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
}
DARK, MIDDLE, LIGHT = "#1f2933", "#6b7885", "#c5cdd6"  # different in grey, too


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/datasets"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        for name, figure in (("share", share()), ("drift", drift()), ("noise", noise()), ("delays", delays())):
            figure.savefig(out / f"{name}.svg", metadata={"Date": None})
            print(out / f"{name}.svg")


def share(rows: int = 200_000, piece: int = 4000) -> Figure:
    """Share of positives over time, with and without drift, and what chance alone would do to it."""
    figure, (axes,) = panels(1)
    expected = 0.02
    spread = 1.96 * (expected * (1 - expected) / piece) ** 0.5
    axes.axhspan(100 * (expected - spread), 100 * (expected + spread), color=LIGHT, alpha=0.6, lw=0)
    axes.axhline(100 * expected, color=MIDDLE, lw=1)
    for drift, style in ((0, {"color": DARK, "marker": "o"}), (50_000, {"color": MIDDLE, "marker": "x"})):
        stream = make_rare_stream(rows, positives=expected, drift=drift)
        labels = np.concatenate([block.labels for block in stream]) > 0
        shares = labels[: rows // piece * piece].reshape(-1, piece).mean(axis=1)
        at = (np.arange(len(shares)) + 0.5) * piece
        axes.plot(at, 100 * shares, ls="", ms=5, label=f"drift={drift:,}", **style)
    axes.set(xlim=(0, rows), ylim=(0, 4), xlabel="row, in thousands", ylabel="positives, % of 4,000 rows")
    axes.xaxis.set_major_formatter(lambda row, _: f"{row / 1000:.0f}")
    axes.set_title("positives=0.02; in the band 95 % of the points if only chance moves them")
    axes.legend(loc="lower right", ncol=2)
    return figure


def drift(rows: int = 400_000, turn: int = 100_000) -> Figure:
    """AUC of learners and the best possible one, in windows, without and with drift."""
    figure, both = panels(2, sharey=True)
    learners = {
        'DualAveraging(loss="auc")': (DualAveraging(loss="auc"), {"color": DARK, "ls": "-"}),
        "... half_life=16,384": (DualAveraging(loss="auc", half_life=16_384), {"color": DARK, "ls": "--"}),
    }
    for axes, turned in zip(both, (0, turn), strict=True):
        stream = make_rare_stream(rows, drift=turned)
        at, best = windows(stream, true_scores(stream))
        axes.plot(at, best, color=MIDDLE, lw=2.5, alpha=0.8, label="best possible")
        for name, (learner, style) in learners.items():
            model = Model(learner)
            at, found = windows(stream, (model.learn(block) for block in stream))
            axes.plot(at, found, lw=1.4, label=name, **style)
        axes.set(xlim=(0, rows), ylim=(0.5, 1), xlabel="row, in thousands")
        axes.set_title(f"drift={turned:,}")
        axes.xaxis.set_major_formatter(lambda row, _: f"{row / 1000:.0f}")
    both[0].set_ylabel("AUC of the last 16,384 rows")
    both[0].legend(loc="lower right")
    return figure


def noise(rows: int = 100_000) -> Figure:
    """The best possible AUC, and that of a learner, against the share of labels that say nothing."""
    figure, (axes,) = panels(1)
    levels = np.linspace(0, 1, 11)
    best, found = [], []
    for level in levels:
        stream = make_rare_stream(rows, positives=0.05, noise=float(level))
        model = Model(DualAveraging(loss="auc"))
        for block in stream:
            model.learn(block)
        held_out = stream.held_out(rows)
        blocks = list(held_out)
        labels = np.concatenate([block.labels for block in blocks])
        best.append(float(held_out.best_auc()))
        found.append(auc(labels, np.concatenate([model.score(block) for block in blocks])))
    axes.plot(levels, best, color=MIDDLE, marker="o", lw=2.5, label="best possible")
    label = f'DualAveraging(loss="auc"), {rows:,} rows learned'
    axes.plot(levels, found, color=DARK, marker="s", ls="--", lw=1.4, label=label)
    axes.set(
        xlim=(-0.02, 1.02), ylim=(0.45, 1), xlabel="noise: share of labels that say nothing", ylabel="AUC of other rows"
    )
    axes.set_title("positives=0.05")
    axes.legend(loc="upper right")
    return figure


def delays(rows: int = 100_000, mean: float = 3600.0) -> Figure:
    """How long labels take, and what share of them has come after some time."""
    figure, (left, right) = panels(2)
    hours = np.concatenate(list(make_rare_stream(rows, label_delay=mean).delays())) / 3600
    left.hist(hours, bins=np.arange(0, 8.01, 0.25), color=MIDDLE, edgecolor="white", lw=0.5)
    left.axvline(mean / 3600, color=DARK, ls="--", lw=1.4)
    left.annotate("mean", (mean / 3600, left.get_ylim()[1]), xytext=(4, -10), textcoords="offset points")
    left.set(xlim=(0, 8), xlabel="hours until the label comes", ylabel="events, of 100,000")
    left.set_title("label_delay=3600")
    left.yaxis.set_major_formatter("{x:,.0f}")
    shares = np.linspace(0, 1, 400)
    right.plot(np.quantile(hours, shares), 100 * shares, color=DARK)
    for window in (1, 2, 4):
        come = 100 * float((hours <= window).mean())
        right.plot([window, window, 0], [0, come, come], color=MIDDLE, ls=":", lw=1.2)
        right.annotate(f"{come:.0f} %", (window, come), xytext=(5, -12), textcoords="offset points")
    right.set(xlim=(0, 8), ylim=(0, 102), xlabel="hours since the event", ylabel="labels that have come, %")
    return figure


def windows(stream: RareStream, scores: Iterator[Any], blocks: int = 2) -> tuple[list[int], list[float]]:
    """The AUC of every few blocks: the row that each piece ends with, and its AUC."""
    at, found, rows = [], [], 0
    labels: list[Any] = []
    kept: list[Any] = []
    for block, some in zip(stream, scores, strict=True):
        labels.append(block.labels)
        kept.append(some)
        rows += len(block)
        if len(kept) == blocks:
            at.append(rows)
            found.append(auc(np.concatenate(labels), np.concatenate(kept)))
            labels, kept = [], []
    return at, found


def true_scores(stream: RareStream) -> Iterator[Any]:
    """The log odds of the rows of each block, by the truth at that time."""
    row = 0
    for values in _batches(stream):
        truth = stream.truth(row)
        yield np.array([sum(truth.get(item, 0.0) for item in one.items()) for one in values])
        row += len(values)


def _batches(stream: RareStream) -> Iterator[list[dict[str, str]]]:
    rows = stream.dicts()
    for block in stream:
        yield [next(rows)[0] for _ in range(len(block))]


def panels(count: int, **options: Any) -> tuple[Figure, list[Any]]:
    figure = Figure(figsize=(8.2, 3.4), layout="constrained")
    return figure, list(np.ravel(figure.subplots(1, count, **options)))


if __name__ == "__main__":
    main()
