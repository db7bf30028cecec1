"""rarestream evaluate: how well a model, or a file of scores, ranks labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rarestream.cli import look, options
from rarestream.cli.parser import Argument, Option, UsageError

if TYPE_CHECKING:
    from rarestream.evaluate import Evaluation

ModelPath = Annotated[Path | None, Argument("MODEL", help="A model file, as written by train.")]
SomeData = Annotated[list[str] | None, Argument("DATA", help=options.DATA_HELP)]
Scores = Annotated[
    str | None,
    Option("--scores", metavar="FILE", help="Instead of MODEL and DATA: a file with a label and a score per line."),
]


def evaluate(
    model: ModelPath = None,
    data: SomeData = None,
    scores: Scores = None,
    json: options.Json = False,
    *,
    reading: options.ReadingLabelled,
) -> None:
    """Measure how well a model ranks labelled rows.

    Shows AUC with its 95 % interval, average precision, and recall at low false-positive rates. Use rows that were
    not learned. With --scores FILE, scores from any source are evaluated.
    """
    from rarestream.evaluate import evaluate as held_out
    from rarestream.evaluate import evaluate_scores
    from rarestream.model import Model

    learned: bool | None = None  # unknown for scores from a file
    if scores is not None:
        if model is not None or data:
            raise UsageError("cannot be combined with MODEL and DATA.", "--scores")
        options.check_paths([scores])
        result = evaluate_scores(scores, reading.settings().get("positive"))
    else:
        if model is None or not data:
            raise UsageError("Missing arguments: MODEL and DATA, or --scores FILE.")
        from rarestream.cli import many_classes

        if many_classes.is_file_of(model):
            many_classes.evaluate(model, data, json, reading)
            return
        loaded = Model.load(model)
        options.check_paths(data)
        stream = reading.open(data, reading.settings_for(loaded, data))
        learned = options.warn_if_learned(loaded, data)
        result = held_out(loaded, stream)
        options.print_notes(stream)
        options.warn_of_refused(stream.refused, stream.refusals)
    if json:
        look.print_json({**result.record(), "learned": learned})
    else:
        _show(result)


def _show(result: Evaluation) -> None:
    ink = look.stdout()
    auc, base = result.auc, result.positives / result.rows
    _line("AUC", f"{float(auc):.4f}", f"95 % interval {auc.low:.4f} to {auc.high:.4f}")
    if auc.bound:
        _line("", "", f"streaming estimate: within {auc.bound:.1g} of the exact value")
    if result.average_precision is not None:
        _line("average precision", f"{result.average_precision:.4f}", f"a random ranking has {base:.4f}")
    if result.recall_at_fpr is None:
        ink.line("Average precision and recall are not shown: there are too many rows to keep every score.")
    else:
        for fpr, recall in result.recall_at_fpr.items():
            bar = ink(look.bar(recall, 1.0, 30), "cyan")
            ink.line(f"{f'recall at {100 * fpr:g} % FPR':<20}{f'{100 * recall:.1f} %':>8}  {bar}")
    counted = f"{look.counted(result.rows, 'row')}, {look.count(result.positives)} positive"
    ink.line(f"{counted} ({look.share(result.positives, result.rows)})")


def _line(word: str, value: str, aside: str) -> None:
    ink = look.stdout()
    ink.line(f"{word:<20}{' ' * (8 - len(value))}{ink(value, 'bold', 'cyan')}  {ink(aside, 'dim')}")
