"""rarestream evaluate: how well a model, or a file of scores, ranks labelled rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rarestream.cli import look, options, outputs
from rarestream.cli.parser import Argument, Option, UsageError
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.blocks import Block
    from rarestream.evaluate import Evaluation
    from rarestream.model import Model
    from rarestream.readers import Stream

WORDS = 24  # columns of the names of the measures

ModelPath = Annotated[Path | None, Argument("MODEL", help="A model file, as written by train.")]
SomeData = Annotated[list[str] | None, Argument("DATA", help=options.DATA_HELP)]
Scores = Annotated[
    str | None,
    Option("--scores", metavar="FILE", help="Instead of MODEL and DATA: a file with a label and a score per line."),
]
Probabilities = Annotated[
    bool, Option("--probabilities", help="The scores of --scores are probabilities: measure their calibration too.")
]
Group = Annotated[
    str | None,
    Option(
        "--group",
        metavar="COLUMN",
        help="Show the AUC within groups of rows too, such as those of a user: those with the same value in this "
        "column, or with the same qid (svmlight), or tag (vw).",
    ),
]
Plot = Annotated[
    Path | None,
    Option("--plot", metavar="FILE", help="Plot the curves, as a .png or an .svg."),
]
Report = Annotated[
    Path | None,
    Option("--report", metavar="FILE", help="Write a page with the numbers and the curves, as an .html."),
]


def evaluate(
    model: ModelPath = None,
    data: SomeData = None,
    scores: Scores = None,
    probabilities: Probabilities = False,
    group: Group = None,
    plot: Plot = None,
    report: Report = None,
    overwrite: outputs.OverwriteAny = False,
    json: options.Json = False,
    *,
    reading: options.ReadingAgain,
) -> None:
    """Measure how well a model ranks labelled rows.

    Shows AUC with its 95 % interval, partial AUC, average precision, and recall at low false-positive rates; for a
    calibrated model also how good its probabilities are. Use rows that were not learned. With --scores FILE, scores
    from any source are evaluated.
    """
    from rarestream.evaluate import evaluate as held_out
    from rarestream.evaluate import evaluate_scores
    from rarestream.model import Model
    from rarestream.system import write_whole

    learned: bool | None = None  # unknown for scores from a file
    loaded: Model | None = None
    curves = plot is not None or report is not None
    if scores is not None:
        if model is not None or data:
            raise UsageError("cannot be combined with MODEL and DATA.", "--scores")
        if group is not None:
            raise UsageError("cannot be combined with --scores: a line has a label and a score only.", "--group")
        options.check_paths([scores])
        _check_outputs(plot, report, outputs.files_of([scores]), overwrite)
        positive = reading.settings().get("positive")
        result = evaluate_scores(scores, positive, probabilities=probabilities, curves=curves)
    else:
        if model is None or not data:
            raise UsageError("Missing arguments: MODEL and DATA, or --scores FILE.")
        if probabilities:
            raise UsageError("is for --scores FILE; a model knows whether it is calibrated.", "--probabilities")
        from rarestream.cli import many_classes

        if many_classes.is_file_of(model):
            many_classes.refuse(plot=plot, report=report, group=group)
            many_classes.evaluate(model, data, json, reading)
            return
        loaded = Model.load(model)
        options.check_paths(data)
        _check_outputs(plot, report, [model, *outputs.files_of(data)], overwrite)
        stream, blocks = _open(loaded, data, group, reading)
        learned = options.warn_if_learned(loaded, data)
        result = held_out(loaded, blocks, groups=group is not None, curves=curves)
        options.print_notes(stream)
        options.warn_of_refused(stream.refused, stream.refusals)
    if curves and result.curves is None:
        look.warn("no curves were drawn: there are too many rows to keep every score.")
        plot = None
    if plot is not None:
        from rarestream.evaluate import figure, figure_bytes

        write_whole(plot, figure_bytes(figure(result), plot.suffix))
    if report is not None:
        from rarestream.study.evaluated import report as page

        name = plain(scores if model is None else model)
        facts = _facts(loaded, model, [scores] if scores is not None else data or [], group, learned)
        command = look.quoted(["rarestream", *sys.argv[1:]])
        write_whole(report, page(result, title=f"{name}: evaluation", facts=facts, rerun=[command]).encode())
    if json:
        look.print_json({**result.record(), "learned": learned})
        return
    _show(result, asked_groups=group is not None)
    for target in (plot, report):
        if target is not None:
            look.stdout().line(f"{look.stdout()(plain(target), 'bold')} written, {look.size(target.stat().st_size)}")


def _check_outputs(plot: Path | None, report: Path | None, reads: Sequence[Path], overwrite: bool) -> None:
    """Check the files to write, and that what draws them is installed, before any work."""
    if plot is not None:
        if plot.suffix.lower() not in (".png", ".svg"):
            raise UsageError(f"the file must end with .png or .svg, got {plain(plot)}.", "--plot")
        outputs.for_file(plot, reads, overwrite, "--plot")
        from rarestream.evaluate import can_draw

        can_draw()
    if report is not None:
        if report.suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"the file must end with .html, got {plain(report)}.", "--report")
        if plot is not None and os.path.realpath(plot) == os.path.realpath(report):
            raise UsageError(f"{plain(report)} is also the file of --plot.", "--report")
        outputs.for_file(report, reads, overwrite, "--report")
        from rarestream.study.page import bokeh_script

        bokeh_script()


def _open(
    model: Model, data: list[str], group: str | None, reading: options.ReadingAgain
) -> tuple[Stream, Iterable[Block]]:
    """The data, and their rows, with the column of --group as their tags."""
    from rarestream.evaluate import read_groups
    from rarestream.readers.options import OptionError

    settings = reading.settings_for(model, data)
    if group is None:
        stream = reading.open(data, settings)
        return stream, stream
    with reading.reported():
        try:
            return read_groups(data, group, settings)
        except OptionError as error:
            if error.option == "tag":
                raise UsageError(error.reason, "--group") from None
            raise


def _facts(
    model: Model | None, path: Path | None, data: Sequence[str], group: str | None, learned: bool | None
) -> dict[str, str]:
    """What the report says of the data and the model."""
    facts = {"data": ", ".join(map(plain, data))}
    if group is not None:
        facts["groups"] = f"rows with the same {plain(group)}"
    if learned is not None:
        facts["learned"] = "yes: the model has learned rows of these files, so the AUC is too high" if learned else "no"
    if model is None or path is None:
        return facts
    facts |= {
        "model": f"{plain(path)}, {look.size(path.stat().st_size)}",
        "learner": look.described(model.leader),
        "rows learned": f"{look.count(model.rows)}, {look.count(model.positives)} positive",
        "weights": f"{look.count(model.nonzeros)} not zero, of {look.all_features(model)}",
        "scale of rows": model.scale,
        "probabilities": "not calibrated" if model.calibration is None else "calibrated while it learned",
    }
    return facts


def _show(result: Evaluation, asked_groups: bool) -> None:
    ink = look.stdout()
    auc, base = result.auc, result.positives / result.rows
    _line("AUC", f"{float(auc):.4f}", f"95 % interval {auc.low:.4f} to {auc.high:.4f}")
    if auc.bound:
        _line("", "", f"streaming estimate: within {auc.bound:.1g} of the exact value")
    for rate, value in result.partial_auc.items():
        bound = result.partial_bound.get(rate)
        aside = f"within {bound:.1g} of the exact value" if bound else f"a random ranking has {rate / 2:.4f}"
        _line(f"partial AUC, {100 * rate:g} % FPR", f"{value:.4f}", aside)
    if result.group_auc is not None:
        groups = result.group_auc
        _line("group AUC", f"{groups.value:.4f}", f"mean of {look.counted(groups.groups, 'group')}, by their rows")
        if groups.rows_left_out:
            left = look.counted(groups.rows_left_out, "row")
            _line("", "", f"without {look.counted(groups.left_out, 'group')} of one class, {left} in all")
    within = result.average_precision_bound
    aside = f"within {within:.1g} of the exact value" if within else f"a random ranking has {base:.4f}"
    _line("average precision", f"{result.average_precision:.4f}", aside)
    for fpr, recall in result.recall_at_fpr.items():
        bar = ink(look.bar(recall, 1.0, 30), "cyan")
        ink.line(f"{f'recall at {100 * fpr:g} % FPR':<{WORDS}}{f'{100 * recall:.1f} %':>8}  {bar}")
    _show_probabilities(result)
    counted = f"{look.counted(result.rows, 'row')}, {look.count(result.positives)} positive"
    ink.line(f"{counted} ({look.share(result.positives, result.rows)})")
    missing = ["the calibration error"] if result.log_loss is not None and result.reliability is None else []
    missing += ["the group AUC"] if asked_groups and result.group_auc is None else []
    if missing:
        ink.message(f"Without {' and '.join(missing)}: there are too many rows to keep every score.")


def _show_probabilities(result: Evaluation) -> None:
    if result.log_loss is None:
        return
    _line("log loss", f"{result.log_loss:.4f}", f"{result.normalised_entropy:.4f} of that of the share of positives")
    _line("Brier score", f"{result.brier_score:.4f}", "")
    bins: Any = result.reliability
    if bins is None:
        return
    worst = abs(bins.probability - bins.share).argmax()
    aside = (
        f"{look.counted(len(bins), 'bin')}; the worst {100 * bins.probability[worst]:.3g} % "
        f"for {100 * bins.share[worst]:.3g} % positive"
    )
    _line("calibration error", f"{result.calibration_error:.4f}", aside)


def _line(word: str, value: str, aside: str) -> None:
    ink = look.stdout()
    line = f"{word:<{WORDS}}{' ' * (8 - len(value))}{ink(value, 'bold', 'cyan')}"
    ink.line(f"{line}  {ink(aside, 'dim')}" if aside else line)
