"""The page of an evaluation: its numbers, curves and bins, and what was evaluated, in one file without network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rarestream.evaluate import Evaluation
from rarestream.study.page import (
    Chapter,
    PlotKind,
    bokeh_script,
    chips,
    document,
    environment,
    plot,
    plot_line,
    rerun_html,
    table_html,
    word_table,
)
from rarestream.study.results import Floats
from rarestream.study.tables import Cell, Line, Section, Table

MODEL, CHANCE, POSITIVES, NEGATIVES = "model", "random or ideal", "positives", "negatives"  # lines of plots
HUES = {MODEL: "#7b5cd6", CHANCE: "#8a8a8a", POSITIVES: "#d55e00", NEGATIVES: "#0072b2"}
GROUPS = 50  # of the table of groups, those with the most rows

ROC = PlotKind("ROC", "false-positive rate", "recall")
PRECISION = PlotKind("Precision and recall", "recall", "precision")
LIFT = PlotKind("Lift", "share of rows, highest scores first", "times more positives", x_scale="log")
RELIABILITY = PlotKind("Reliability", "mean probability", "share of positives")
SCORES = PlotKind("Scores", "score", "share of the class")


def report(
    found: Evaluation,
    *,
    title: str,
    facts: Mapping[str, str] | None = None,
    rerun: Sequence[str] = (),
) -> str:
    """Return the page of an evaluation, in HTML.

    Parameters
    ----------
    found : Evaluation
        What `evaluate(..., curves=True)` returned. Without curves the page has its numbers only.
    title : str
        Heading.
    facts : mapping of str to str, optional
        What was evaluated: facts of the data and the model, by name.
    rerun : sequence of str
        Commands that make the page again.

    Returns
    -------
    str
        HTML that needs no network.

    Raises
    ------
    MissingExtraError
        If bokeh is not installed.
    """
    bokeh_script()
    drawn = _drawn(found)
    kinds = [kind for kind, _ in drawn]
    plots = {f"plot-{at}": plot(at, kind, lines) for at, (kind, lines) in enumerate(drawn)}
    panels = "".join(f'<div class=plot id="{place}"></div>' for place in plots)
    chapters = [Chapter("numbers", "Numbers", _numbers(found))]
    if plots:
        shown = {line["method"] for _, lines in drawn for line in lines}
        switches = chips("line", {name: hue for name, hue in HUES.items() if name in shown})
        chapters.append(Chapter("curves", "Curves", f"{switches}<div class=panels>{panels}</div>"))
    if found.reliability is not None:
        chapters.append(Chapter("bins", "Calibration", table_html(_bins(found.reliability))))
    if found.group_auc is not None:
        chapters.append(Chapter("groups", "Groups", table_html(_groups(found.group_auc))))
    if facts:
        chapters.append(Chapter("facts", "Data and model", word_table(("what", "is"), list(facts.items()))))
    chapters.append(Chapter("again", "How to rerun it", rerun_html(environment(), rerun)))
    share = f"{100 * found.positives / found.rows:#.3g}".rstrip(".")
    lead = f"{found.rows:,} rows, {found.positives:,} positive ({share} %)."
    return document(title, lead, chapters, kinds, plots)


# -- tables


def _numbers(found: Evaluation) -> str:
    auc, groups = found.auc, found.group_auc
    rows: list[tuple[str, float | None, str]] = [
        ("AUC", float(auc), f"{100 * auc.level:g} % interval {auc.low:.4f} to {auc.high:.4f}{_within(auc.bound)}")
    ]
    rows += [
        (
            f"partial AUC, up to {100 * rate:g} % FPR",
            value,
            f"a random ranking has {rate / 2:g}, a perfect one 1{_within(found.partial_bound.get(rate))}",
        )
        for rate, value in found.partial_auc.items()
    ]
    if groups is not None:
        out = f"mean of {groups.groups:,} groups by rows; {groups.left_out:,} groups of one class are left out"
        rows.append(("group AUC", groups.value, out))
    base = found.positives / found.rows
    within = _within(found.average_precision_bound)
    rows.append(
        ("average precision", found.average_precision, f"a random ranking has {base:.3g}, a perfect one 1{within}")
    )
    rows += [
        (
            f"recall at {100 * rate:g} % FPR",
            value,
            f"share of positives whose score {100 * rate:g} % of others reach{_within(found.recall_bound.get(rate))}",
        )
        for rate, value in found.recall_at_fpr.items()
    ]
    rows += [
        ("log loss", found.log_loss, "0 is best"),
        ("normalised entropy", found.normalised_entropy, "below 1: better than the share of positives alone"),
        ("Brier score", found.brier_score, "0 is best"),
        (
            "calibration error",
            found.calibration_error,
            "mean distance of probability and share of positives; 0 is best",
        ),
    ]
    known = [(name, f"{value:.4f}", note) for name, value, note in rows if value is not None]
    return word_table(("measure", "value", "what to know of it"), known)


def _within(bound: float | None) -> str:
    return f"; within {bound:.1g} of the exact value" if bound else ""


def _bins(bins: Any) -> Table:
    how = "of about equally many rows" if bins.by == "rows" else "of equal width"
    note = (
        f"{len(bins)} bins {how}. A calibrated model has the mean probability near the share of positives, within its "
        f"{100 * bins.level:g} % interval in most bins."
    )
    columns = ("rows", "mean probability", "share of positives", "interval from", "to", "difference")
    lines = tuple(
        Line(
            f"{row['low']:.3g} to {row['high']:.3g}",
            (
                Cell(row["rows"], form=",.0f"),
                Cell(row["probability"]),
                Cell(row["share"]),
                Cell(row["share_low"]),
                Cell(row["share_high"]),
                Cell(row["probability"] - row["share"], form="+.4f"),
            ),
        )
        for row in bins.records()
    )
    return Table("Bins of the probabilities", note, "bin", columns, (Section("probability", ".4f", lines),))


def _groups(groups: Any) -> Table:
    table = groups.table
    most = np.argsort(-table.rows, kind="stable")[:GROUPS]
    lines = tuple(
        Line(
            str(table.group[at]),
            (
                Cell(float(table.auc[at])),
                Cell(float(table.rows[at]), form=",.0f"),
                Cell(float(table.positives[at]), form=",.0f"),
            ),
        )
        for at in most
    )
    which = "All groups" if len(most) == groups.groups else f"The {len(most)} groups with the most rows"
    note = f"{which} of {groups.groups:,} with both classes. {groups.rows_left_out:,} rows are in none of them."
    return Table(
        "AUC of the groups", note, "group", ("AUC in it", "rows", "positives"), (Section("group", ".4f", lines),)
    )


# -- plots


def _drawn(found: Evaluation) -> list[tuple[PlotKind, list[dict[str, Any]]]]:
    """Return the plots: their kinds and lines."""
    curves, bins = found.curves, found.reliability
    plots: list[tuple[PlotKind, list[dict[str, Any]]]] = []
    if curves is not None:
        roc, precision, lift = curves.roc, curves.precision_recall, curves.lift
        base = _few(precision.precision[-1:])[0]
        plots += [
            (ROC, [_chance([0, 1], [0, 1]), _line(MODEL, roc.fpr, roc.recall)]),
            (PRECISION, [_chance([0, 1], [base, base]), _line(MODEL, precision.recall, precision.precision)]),
            (LIFT, [_chance([_few(lift.share[:1])[0], 1], [1, 1]), _line(MODEL, lift.share, lift.lift)]),
        ]
    if bins is not None:
        end = float(max(bins.probability.max(), bins.share_high.max()))
        whiskers: tuple[list[float | None], list[float | None]] = ([], [])
        for at, low, high in zip(*map(_few, (bins.probability, bins.share_low, bins.share_high)), strict=True):
            whiskers[0].extend((at, at, None))
            whiskers[1].extend((low, high, None))
        level = f"{100 * bins.level:g} % interval"
        lines = [
            _chance([0, end], [0, end]),
            plot_line(MODEL, HUES[MODEL], *whiskers, name=level),
            plot_line(MODEL, HUES[MODEL], _few(bins.probability), _few(bins.share), points=True),
        ]
        plots.append((RELIABILITY, lines))
    if curves is not None:
        shares = curves.histogram
        edges = np.repeat(shares.edges, 2)
        stairs = [
            _line(name, edges, np.concatenate([[0.0], np.repeat(part, 2), [0.0]]))
            for name, part in ((NEGATIVES, shares.negatives), (POSITIVES, shares.positives))
        ]
        plots.append((SCORES, stairs))
    return plots


def _chance(x: Sequence[float], y: Sequence[float]) -> dict[str, Any]:
    return plot_line(CHANCE, HUES[CHANCE], x, y, dashed=True)


def _line(name: str, x: Floats, y: Floats) -> dict[str, Any]:
    return plot_line(name, HUES[name], _few(x), _few(y))


def _few(values: Floats) -> list[float]:
    """Return numbers of few digits: a screen shows no more, and the page stays small."""
    return [float(f"{value:.5g}") for value in values.tolist()]
