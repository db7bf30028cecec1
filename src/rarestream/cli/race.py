"""rarestream race: many settings in one pass, the best of them to a model file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rarestream.cli import failures, look, options, outputs, running
from rarestream.cli.parser import Option, UsageError
from rarestream.cli.sizes import size_in_bytes
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.evaluate import TrainingRun
    from rarestream.race import Entrant, RaceResult, Racing


def _learners() -> Sequence[str]:
    return [name for name in options.learners() if name != "auto"]


Output = Annotated[Path, Option("--output", "-o", "-f", metavar="MODEL", help="The model file to write.")]
LearnerName = Annotated[
    str | None,
    options.learner_option("Race settings of this learner, given by --set.", _learners, "the 24 settings of auto"),
]
Settings = Annotated[
    list[str] | None,
    Option(
        "--set", metavar="NAME=VALUES", help="Comma-separated values of a setting, such as l1=0,0.1; repeat for a grid."
    ),
]
Rivals = Annotated[bool, Option("--rivals", help="Also race FTRL-AUC and FTRL-Proximal.")]
Holdout = Annotated[
    float,
    Option(
        "--holdout",
        metavar="SHARE",
        help="Share of the rows that is not learned, to compare the settings on.",
        min=0,
        max=0.5,
    ),
]
KeepAll = Annotated[bool, Option("--keep-all", help="Do not stop clearly worse settings early.")]
Passes = Annotated[
    int,
    Option(
        "--passes",
        metavar="N",
        help="Total number of passes over DATA; without --holdout only the winner makes those after the first.",
        min=1,
    ),
]
Memory = Annotated[
    str | None,
    Option(
        "--memory",
        metavar="SIZE",
        help="Maximum memory for all settings together, such as 4G or 500M.",
        default="half of the machine's",
    ),
]


def race(
    data: options.Data,
    output: Output,
    overwrite: outputs.Overwrite = False,
    learner: LearnerName = None,
    set: Settings = None,
    rivals: Rivals = False,
    holdout: Holdout = 0.0,
    passes: Passes = 1,
    keep_all: KeepAll = False,
    scale: options.Scale = None,
    max_rows: options.MaxRows = None,
    memory: Memory = None,
    progress: running.Pace = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    *,
    reading: options.ReadingToLearn,
) -> None:
    """Learn a stream with many settings at once, and save the best model.

    Every setting scores a row before it learns it, and the settings are compared by the AUC of these scores.
    Without --learner these are the 24 settings of auto, which together suit most streams.
    """
    target, replaced = running.target(output, None, data, overwrite)
    marks = running.marks(progress)

    from rarestream.cli.columns import ColumnsShown
    from rarestream.errors import DataError
    from rarestream.evaluate import TrainingRun
    from rarestream.race import Racing

    field = _settings(learner, set, rivals)
    most = None if memory is None else size_in_bytes(memory, "--memory")
    racing = Racing(field, scale=scale or "unit", holdout=holdout, retire=not keep_all, memory=most)
    stream = reading.open(data, reading.settings())
    options.check_passes(passes, stream.size)
    run = TrainingRun(racing, stream, passes=passes, max_rows=max_rows, marks=marks)
    show = running.progress_bar(run, progress, json, quiet)
    columns = ColumnsShown(stream, json=json, quiet=quiet)
    if not quiet:
        for line in _plan(racing):
            show.note(line)
    with running.stopped_by_signals(run):
        running.learn(run, show, columns, None, quiet)
        if run.interrupted and not run.rows:
            failures.exit_with("interrupted before a row was learned; nothing was saved.", failures.INTERRUPTED)
        try:
            result = racing.finish()
        except DataError as error:
            if not run.interrupted:
                raise
            failures.exit_with(f"interrupted; nothing was saved. {error}", failures.INTERRUPTED)
        result.model.save(target)
    if replaced and not quiet:
        show.note(replaced)
    running.note_cache(run, show, quiet)
    running.warn(run, show)
    if json:
        _emit(result, run, show.seconds, target)
    if not quiet:
        if run.unlabelled:
            show.note(options.unlabelled(run.unlabelled))
        _print_summary(result, racing, show.note, target)
    if run.interrupted:
        failures.exit_with(f"interrupted; the leading settings so far are in {plain(target)}.", failures.INTERRUPTED)


def _settings(name: str | None, texts: list[str] | None, with_rivals: bool) -> Any:
    """The settings to race."""
    from rarestream.learners.auto import Auto
    from rarestream.race import grid
    from rarestream.race import rivals as ftrl

    if name is None:
        if texts:
            raise UsageError("needs the learner that the setting belongs to; name it with --learner.", "--set")
        return [*Auto.candidates(), *ftrl()] if with_rivals else "auto"
    values: dict[str, list[Any]] = {}
    for text in texts or []:
        word, equals, listed = text.partition("=")
        for value in listed.split(",") if equals else [""]:
            key, parsed = options.parse_setting(name, f"{word}={value}" if equals else text)
            values.setdefault(key, []).append(parsed)
    try:
        result = grid(name, **values)
    except ValueError as error:
        raise UsageError(str(error), "--set") from None
    return [*result, *ftrl()] if with_rivals else result


def _plan(racing: Racing) -> list[str]:
    """The number of settings, and the memory they may take."""
    lines = [
        f"{len(racing.learners)} settings, {racing.bytes} bytes per feature: up to {look.short(racing.most_features)} "
        f"features fit in the {look.size(racing.memory)} allowed (--memory)"
    ]
    alone = sorted({learner.name for learner in racing.without_lanes})
    if alone:
        lines.append(f"{', '.join(alone)}: these settings cannot share a pass; each learns separately, which is slower")
    return lines


def _print_summary(result: RaceResult, racing: Racing, note: Any, target: Path) -> None:
    ink = look.stderr()
    heading = ("", "AUC", "behind", "+-", "retired", "learner", "settings")
    rows = [
        (
            "*" if entrant is result.winner else "",
            "-" if entrant.auc != entrant.auc else f"{entrant.auc:.4f}",
            "" if entrant is result.winner or entrant.behind != entrant.behind else f"{entrant.behind:.4f}",
            "" if entrant is result.winner or entrant.error != entrant.error else f"{entrant.error:.4f}",
            "" if entrant.retired_after is None else f"{entrant.retired_after:,}",
            entrant.learner.name,
            look.settings(entrant.learner),
        )
        for entrant in result.entrants
    ]
    columns = look.width() if ink.terminal else None
    for number, line in enumerate(look.table(rows, heading, left=(5, 6), columns=columns)):
        note(ink(line, "bold") if number < 2 else line)
    what = "an even sample of " if result.thinned else ""
    retired = "; retired: after so many rows" if any(entrant.retired_after for entrant in result.entrants) else ""
    note(
        f"AUC of {what}{look.count(result.judged)} rows, each scored before it was learned; "
        f"+- is a standard error{retired}."
    )
    model = result.model
    winner = look.described(model.learner)
    if not result.enough:
        note(
            "warning: fewer than 30 rows of a class: too few to compare settings, so "
            + ("the default is kept." if racing.learners[0] == model.learner else "the leader may lead by chance.")
        )
    elif result.close:
        close = "1 other setting is" if len(result.close) == 1 else f"{len(result.close)} other settings are"
        note(f"No clear winner: {close} within two standard errors of it. More rows would help to decide.")
    note(f"winner: {ink(winner, 'bold')}; progressive AUC {ink(str(model.progress.auc), 'bold', 'cyan')}")
    nonzeros = model.nonzeros
    note(
        f"{ink(plain(target), 'bold')}: {look.counted(nonzeros, 'weight')} of "
        f"{look.all_features(model)}, {look.size(target.stat().st_size)}, resumable"
    )
    note(look.scoring_size(model, nonzeros))


def _emit(result: RaceResult, run: TrainingRun, seconds: float, target: Path) -> None:
    from rarestream.cli.progress import emit, names, number

    def record(entrant: Entrant) -> dict[str, Any]:
        return {
            "learner": entrant.learner.name,
            "settings": entrant.learner.settings,
            "auc": number(entrant.auc),
            "behind": number(entrant.behind),
            "error": number(entrant.error),
            "progressive_auc": number(entrant.progressive_auc),
            "retired_after": entrant.retired_after,
        }

    model, auc = result.model, result.model.progress.auc
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
            "clear": result.enough and not result.close,
            "enough": result.enough,
            "settings": [record(entrant) for entrant in result.entrants],
            "rows": model.rows,
            "positives": model.positives,
            "judged": result.judged,
            "nonzeros": model.nonzeros,
            "n_features": model.n_features,
            "refused": run.refused,
            "unlabelled": run.unlabelled,
            "interrupted": run.interrupted,
            **names(run),
            "seconds": round(seconds, 3),
            "model": str(target),
        }
    )
