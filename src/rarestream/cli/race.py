"""rarestream race: many settings in one pass, the best of them to a model file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarestream.cli import failures, look, options, outputs, running
from rarestream.cli.train import Pace, Scale, Shuffle
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.race import Entrant, Race, Racing

Output = Annotated[Path, typer.Option("--output", "-o", "-f", help="The model file to write.", metavar="MODEL")]
LearnerName = Annotated[
    str | None,
    typer.Option("--learner", "-l", help="Race settings of this learner, given by --set.", metavar="NAME"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Values of a setting, as l1=0,0.001,0.1; repeat for a grid.", metavar="NAME=VALUES"),
]
Rivals = Annotated[bool, typer.Option("--rivals", help="Race FTRL-AUC and FTRL-Proximal too.")]
Holdout = Annotated[
    float,
    typer.Option(
        help="Judge settings on this share of the rows, which is not learned.", min=0, max=0.5, metavar="SHARE"
    ),
]
KeepAll = Annotated[bool, typer.Option("--keep-all", help="Let settings that are clearly beaten run to the end too.")]
Passes = Annotated[
    int, typer.Option(help="Passes over DATA; without --holdout only the winner makes those after the first.", min=1)
]
MaxRows = Annotated[int | None, typer.Option(help="Stop after so many rows.", min=1, metavar="N")]
Memory = Annotated[
    str | None,
    typer.Option(help="What all settings may take, as 4G or 500M; half of the machine's unless told.", metavar="SIZE"),
]
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def race(
    data: options.Data,
    output: Output,
    learner: LearnerName = None,
    set: Settings = None,
    rivals: Rivals = False,
    holdout: Holdout = 0.0,
    passes: Passes = 1,
    keep_all: KeepAll = False,
    scale: Scale = None,
    shuffle: Shuffle = None,
    max_rows: MaxRows = None,
    memory: Memory = None,
    overwrite: outputs.Overwrite = False,
    zero_based: options.ZeroBased = None,
    positive: options.Positive = None,
    max_bad_rows: options.MaxBadRows = 0,
    finished: options.Finished = False,
    format: options.Format = None,
    threads: options.Threads = None,
    progress: Pace = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn a stream with many settings at once, and save the best of them, trained.

    Rows are scored by every setting before it learns them, and the settings are compared by the AUC of these scores.
    Without --learner, the settings are 24 of the dual-averaging learners that between them suit most streams.
    """
    target, replaced = running.target(output, None, data, overwrite)
    marks = running.marks(progress)

    from rarestream.cli.progress import Progress
    from rarestream.errors import DataError
    from rarestream.evaluate import Run
    from rarestream.model import SCALES
    from rarestream.race import Racing
    from rarestream.readers import read

    options.among("--scale", scale, SCALES)
    field = _settings(learner, set, rivals)
    racing = Racing(field, scale=scale or "unit", holdout=holdout, retire=not keep_all, memory=_bytes(memory))
    chosen = options.given(zero_based=zero_based, positive=positive, format=format, shuffle=shuffle)
    stream = read(data, **chosen, max_bad_rows=max_bad_rows, threads=threads, finished=finished)
    if passes > 1 and stream.size is None:
        raise typer.BadParameter("a pipe can be read once only; save it to a file first.", param_hint="'--passes'")
    run = Run(racing, stream, passes=passes, max_rows=max_rows, marks=marks)
    terminal = sys.stderr.isatty()
    show = Progress(
        run,
        table=not quiet and (terminal or progress is not None) and not json,
        live=not quiet and terminal,
        lines=json,
    )
    if not quiet:
        for line in _plan(racing):
            show.note(line)
    with running.stopped_by_signals(run):
        running.learn(run, show, lambda: None, None)
        if run.interrupted and not run.rows:
            failures.say("interrupted before a row was learned; nothing was saved.", failures.INTERRUPTED)
        try:
            found = racing.finish()
        except DataError as error:
            if not run.interrupted:
                raise
            failures.say(f"interrupted; nothing was saved. {error}", failures.INTERRUPTED)
        found.model.save(target)
    if replaced and not quiet:
        show.note(replaced)
    running.warn(run, show)
    if json:
        _emit(found, run.refused, run.interrupted, show.seconds, target)
    if not quiet:
        _tell(found, racing, show.note, target)
    if run.interrupted:
        failures.say(f"interrupted; the settings in the lead so far are in {plain(target)}.", failures.INTERRUPTED)


def _settings(name: str | None, texts: list[str] | None, with_rivals: bool) -> Any:
    """What races, as a user said it."""
    from rarestream.learners import learner_names
    from rarestream.learners.lanes import auto_learners
    from rarestream.race import grid
    from rarestream.race import rivals as ftrl

    if name is None:
        if texts:
            raise typer.BadParameter("settings are those of a learner; name it with --learner.", param_hint="'--set'")
        return [*auto_learners(), *ftrl()] if with_rivals else "auto"
    options.among("--learner", name, [one for one in learner_names() if one != "auto"])
    values: dict[str, list[Any]] = {}
    for text in texts or []:
        word, equals, listed = text.partition("=")
        for value in listed.split(",") if equals else [""]:
            key, parsed = options.setting(name, f"{word}={value}" if equals else text)
            values.setdefault(key, []).append(parsed)
    try:
        found = grid(name, **values)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--set'") from None
    return [*found, *ftrl()] if with_rivals else found


def _bytes(text: str | None) -> int | None:
    if text is None:
        return None
    number, unit = (text[:-1], text[-1].upper()) if text and text[-1].upper() in UNITS else (text, "")
    try:
        size = float(number) * UNITS.get(unit, 1)
    except ValueError:
        size = 0
    if not 1 <= size < 1 << 60:
        raise typer.BadParameter(f"{text!r} is no size; sizes are like 500M or 4G.", param_hint="'--memory'")
    return int(size)


def _plan(racing: Racing) -> list[str]:
    """What is about to happen, and what it may take."""
    lines = [
        f"{len(racing.learners)} settings, {racing.bytes} bytes a feature: up to {look.short(racing.most_features)} "
        f"features fit in the {look.size(racing.memory)} allowed (--memory)"
    ]
    alone = sorted({one.name for one in racing.without_lanes})
    if alone:
        lines.append(f"{', '.join(alone)}: no lanes for these settings; each learns alone, in the same pass but slower")
    return lines


def _tell(found: Race, racing: Racing, note: Any, target: Path) -> None:
    ink = look.stderr()
    heading = ("", "learner", "settings", "AUC", "behind", "+-", "retired after")
    rows = [
        (
            "*" if one is found.winner else "",
            one.learner.name,
            look.settings(one.learner),
            "-" if one.auc != one.auc else f"{one.auc:.4f}",
            "" if one is found.winner or one.behind != one.behind else f"{one.behind:.4f}",
            "" if one is found.winner or one.error != one.error else f"{one.error:.4f}",
            "" if one.retired_after is None else f"{one.retired_after:,} rows",
        )
        for one in found.entrants
    ]
    for number, line in enumerate(look.table(rows, heading, left=(1, 2))):
        note(ink(line, "bold") if number < 2 else line)
    what = "an even sample of " if found.thinned else ""
    note(f"AUC of {what}{look.count(found.judged)} rows, each scored before it was learned; +- is a standard error.")
    model = found.model
    winner = f"{model.learner.name}, {look.settings(model.learner)}"
    if not found.enough:
        note(
            "warning: fewer than 30 rows of a class: too few to compare settings, so "
            + ("the default stays." if racing.learners[0] == model.learner else "the leader may be one by chance.")
        )
    elif found.close:
        note(
            f"No clear winner: {len(found.close)} of the other settings are within two standard errors of it. "
            "More rows would tell."
        )
    note(f"winner: {ink(winner, 'bold')}; progressive AUC {ink(str(model.progress.auc), 'bold', 'cyan')}")
    nonzeros = model.nonzeros
    note(
        f"{ink(plain(target), 'bold')}: {look.count(nonzeros)} weights of {look.count(model.n_features)} "
        f"columns, {look.size(target.stat().st_size)}"
    )
    note(look.scoring_size(model, nonzeros))


def _emit(found: Race, refused: int, interrupted: bool, seconds: float, target: Path) -> None:
    from rarestream.cli.progress import emit, number

    def told(one: Entrant) -> dict[str, Any]:
        return {
            "learner": one.learner.name,
            "settings": one.learner.settings,
            "auc": number(one.auc),
            "behind": number(one.behind),
            "error": number(one.error),
            "progressive_auc": number(one.progressive_auc),
            "retired_after": one.retired_after,
        }

    model, auc = found.model, found.model.progress.auc
    emit(
        {
            "event": "done",
            "winner": {
                "learner": model.learner.name,
                "settings": model.learner.settings,
                "progressive_auc": number(auc),
                "auc_low": number(auc.low),
                "auc_high": number(auc.high),
            },
            "clear": found.enough and not found.close,
            "enough": found.enough,
            "settings": [told(one) for one in found.entrants],
            "rows": model.rows,
            "positives": model.positives,
            "judged": found.judged,
            "nonzeros": model.nonzeros,
            "n_features": model.n_features,
            "refused": refused,
            "interrupted": interrupted,
            "seconds": round(seconds, 3),
            "model": str(target),
        }
    )
