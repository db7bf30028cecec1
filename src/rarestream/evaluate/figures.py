"""Figures: the curves of an evaluation, or AUC against model size. They need matplotlib."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from rarestream.errors import DataError
from rarestream.evaluate.drawing import can_draw
from rarestream.evaluate.heldout import Evaluation
from rarestream.evaluate.sizes import size_figure
from rarestream.pruning import Path

POSITIVE, NEGATIVE, CHANCE = "#d55e00", "#0072b2", "0.6"  # colours of Okabe and Ito, and a grey


def figure(found: Path | Evaluation, chosen: int | None = None) -> Any:
    """Plot an evaluation, or AUC against model size.

    Parameters
    ----------
    found : Path or Evaluation
        What `path` returned; or what `evaluate(..., curves=True)` did: its ROC, precision-recall and lift curves, the
        histograms of its scores and, for a calibrated model, its reliability.
    chosen : int, optional
        A size of the path to mark.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    DataError
        If the evaluation has no curves.
    """
    if isinstance(found, Path):
        return size_figure(found, chosen)
    figure_class = can_draw()
    if found.curves is None:
        raise DataError(
            "figure: the evaluation has no curves. Pass curves=True to evaluate, and at most 10 million rows."
        )
    drawn = figure_class(figsize=(13, 7.6), layout="constrained")
    panels = drawn.subplots(2, 3).flat
    for panel, draw in zip(panels, (_roc, _precision_recall, _lift, _reliability, _histogram, _table), strict=True):
        draw(panel, found)
    return drawn


def figure_bytes(drawn: Any, suffix: str) -> bytes:
    """Return a figure as the bytes of a file whose name ends with .png or .svg."""
    out = BytesIO()
    drawn.savefig(out, format=suffix[1:].lower(), dpi=150)
    return out.getvalue()


def _frame(panel: Any, title: str, x: str, y: str) -> None:
    panel.set(title=title, xlabel=x, ylabel=y)
    panel.grid(alpha=0.3)


def _roc(panel: Any, found: Evaluation) -> None:
    assert found.curves is not None
    curve = found.curves.roc
    panel.plot([0, 1], [0, 1], color=CHANCE, linestyle="--", label="random ranking")
    panel.plot(curve.fpr, curve.recall, color=NEGATIVE, label=f"AUC {float(found.auc):.4f}")
    _frame(panel, "ROC", "false-positive rate", "recall")
    panel.legend(loc="lower right")


def _precision_recall(panel: Any, found: Evaluation) -> None:
    assert found.curves is not None
    curve = found.curves.precision_recall
    base = float(curve.precision[-1])  # of all rows
    panel.axhline(base, color=CHANCE, linestyle="--", label=f"random ranking: {base:.3g}")
    panel.plot(curve.recall, curve.precision, color=NEGATIVE, label=f"average precision {found.average_precision:.4f}")
    _frame(panel, "Precision and recall", "recall", "precision")
    panel.set_ylim(bottom=0)
    panel.legend(loc="upper right")


def _lift(panel: Any, found: Evaluation) -> None:
    assert found.curves is not None
    curve = found.curves.lift
    panel.axhline(1, color=CHANCE, linestyle="--", label="random ranking")
    panel.plot(curve.share, curve.lift, color=NEGATIVE)
    panel.set_xscale("log")
    _frame(panel, "Lift", "share of rows, highest scores first", "times more positives")
    panel.set_ylim(bottom=0)
    panel.legend(loc="upper right")


def _reliability(panel: Any, found: Evaluation) -> None:
    bins = found.reliability
    if bins is None:
        _frame(panel, "Reliability", "mean probability", "share of positives")
        panel.text(0.5, 0.5, "no probabilities:\nnot calibrated", ha="center", va="center", transform=panel.transAxes)
        panel.set(xticks=[], yticks=[])
        return
    largest = 1.05 * max(float(bins.probability.max()), float(bins.share_high.max()))
    panel.plot([0, largest], [0, largest], color=CHANCE, linestyle="--", label="calibrated")
    reach = [bins.share - bins.share_low, bins.share_high - bins.share]
    panel.errorbar(
        bins.probability,
        bins.share,
        reach,
        color=POSITIVE,
        marker="o",
        markersize=4,
        linewidth=1,
        label=f"calibration error {bins.error:.4f}",
    )
    _frame(panel, "Reliability", "mean probability", f"share of positives, {100 * bins.level:g} % interval")
    panel.legend(loc="upper left")


def _histogram(panel: Any, found: Evaluation) -> None:
    assert found.curves is not None
    shares = found.curves.histogram
    for part, name, colour in ((shares.negatives, "negatives", NEGATIVE), (shares.positives, "positives", POSITIVE)):
        panel.stairs(part, shares.edges, fill=True, color=colour, alpha=0.45, label=name)
    _frame(panel, "Scores", "score", "share of the class")
    panel.legend(loc="best")


def _table(panel: Any, found: Evaluation) -> None:
    panel.axis("off")
    lines = [f"{name:<24}{value:>10}" for name, value in figures(found)]
    panel.text(0, 1, "\n".join(lines), family="monospace", va="top", transform=panel.transAxes)


def figures(found: Evaluation) -> list[tuple[str, str]]:
    """Return the numbers of an evaluation with their names, for a table."""
    groups = found.group_auc
    numbers: list[tuple[str, float | None]] = [
        ("AUC", float(found.auc)),
        ("  95 % interval, low", found.auc.low),
        ("  95 % interval, high", found.auc.high),
        *((f"partial AUC, FPR {100 * rate:g} %", value) for rate, value in found.partial_auc.items()),
        ("group AUC", None if groups is None else groups.value),
        ("average precision", found.average_precision),
        *((f"recall at {100 * rate:g} % FPR", value) for rate, value in found.recall_at_fpr.items()),
        ("log loss", found.log_loss),
        ("normalised entropy", found.normalised_entropy),
        ("Brier score", found.brier_score),
        ("calibration error", found.calibration_error),
    ]
    counts = [("rows", f"{found.rows:,}"), ("positives", f"{found.positives:,}")]
    return [*((name, f"{value:.4f}") for name, value in numbers if value is not None), *counts]
