"""rarestream evaluate: how well a model, or a file of scores, ranks labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rarestream.cli import look, options

if TYPE_CHECKING:
    from rarestream.evaluate import Evaluation

ModelPath = Annotated[
    Path | None, typer.Argument(help="A model file, as `train` writes it.", metavar="MODEL", show_default=False)
]
SomeData = Annotated[list[str] | None, typer.Argument(help=options.DATA_HELP, metavar="DATA", show_default=False)]
Scores = Annotated[
    str | None,
    typer.Option(help="In place of a model and data: a file with a label and a score a line.", metavar="FILE"),
]


def evaluate(
    model: ModelPath = None,
    data: SomeData = None,
    scores: Scores = None,
    zero_based: options.ZeroBased = None,
    positive: options.Positive = None,
    max_bad_rows: options.MaxBadRows = 0,
    format: options.Format = None,
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """Say how well a model ranks labelled rows.

    AUC with its 95 % interval, average precision, and recall at low false-positive rates. Evaluate on rows that
    were not learned. With --scores FILE it is scores from anywhere that are judged.
    """
    from rarestream.evaluate import evaluate as held_out
    from rarestream.evaluate import evaluate_scores
    from rarestream.model import Model
    from rarestream.readers import read

    learned: bool | None = None  # of scores from anywhere, nobody knows
    if scores is not None:
        if model is not None or data:
            raise typer.BadParameter("takes no MODEL and no DATA beside it.", param_hint="'--scores'")
        options.check_paths([scores])
        found = evaluate_scores(scores, positive)
    else:
        if model is None or not data:
            raise typer.BadParameter("a MODEL and DATA are needed, or --scores FILE.", param_hint="'MODEL DATA...'")
        loaded = Model.load(model)
        options.check_paths(data)
        chosen = options.given(zero_based=zero_based, positive=positive, format=format)
        how = {**options.as_learned(loaded.source), **chosen}
        stream = read(data, **how, max_bad_rows=max_bad_rows, threads=threads)
        learned = options.warn_if_learned(loaded, data)
        found = held_out(loaded, stream)
        options.tell_refused(stream.refused, stream.refusals)
    if json:
        import json as notation

        print(notation.dumps({**found.record(), "learned": learned}, allow_nan=False))
    else:
        _show(found)


def _show(found: Evaluation) -> None:
    ink = look.stdout()
    auc, base = found.auc, found.positives / found.rows
    _line("AUC", f"{float(auc):.4f}", f"95 % interval {auc.low:.4f} to {auc.high:.4f}")
    if auc.bound:
        _line("", "", f"streamed: within {auc.bound:.1g} of the exact value")
    if found.average_precision is not None:
        _line("average precision", f"{found.average_precision:.4f}", f"chance gives {base:.4f}")
    if found.recall_at_fpr is None:
        ink.line("Average precision and recall need every score at once: there are too many rows for them.")
    else:
        for fpr, recall in found.recall_at_fpr.items():
            bar = ink(look.bar(recall, 1.0, 30), "cyan")
            ink.line(f"{f'recall at {100 * fpr:g} % FPR':<20}{f'{100 * recall:.1f} %':>8}  {bar}")
    counted = f"{look.count(found.rows)} rows, {look.count(found.positives)} positive"
    ink.line(f"{counted} ({look.share(found.positives, found.rows)})")


def _line(word: str, value: str, aside: str) -> None:
    ink = look.stdout()
    ink.line(f"{word:<20}{' ' * (8 - len(value))}{ink(value, 'bold', 'cyan')}  {ink(aside, 'dim')}")
