"""rarestream train: a stream to a model file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarestream.cli import failures, look, options, outputs, running
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.cli.progress import Progress
    from rarestream.evaluate import Place, Run
    from rarestream.model import Model

DEFAULT_LEARNER, DEFAULT_WITH_BUDGET = "auto", "dual-logistic"

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", "-f", help="The model file to write; by default that of --resume.", metavar="MODEL"),
]
LearnerName = Annotated[
    str | None, typer.Option("--learner", "-l", help=f"What learns; {DEFAULT_LEARNER} unless told.", metavar="NAME")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the learner, as l1=0.1; repeat.", metavar="NAME=VALUE")
]
Budget = Annotated[
    int | None,
    typer.Option(
        help=f"Weights that may be other than zero, at any time; the learner is {DEFAULT_WITH_BUDGET} unless told.",
        min=1,
        metavar="N",
    ),
]
Scale = Annotated[
    str | None, typer.Option(help="How rows are scaled: unit (the default), max or none.", metavar="NAME")
]
Dtype = Annotated[str | None, typer.Option(help="Of the state: float32 (the default) or float64.", metavar="NAME")]
Shuffle = Annotated[int | None, typer.Option(help="Learn rows in an order drawn with this seed.", metavar="SEED")]
Resume = Annotated[
    Path | None,
    typer.Option("--resume", "-i", help="Go on with this model; on the same DATA, where it stopped.", metavar="MODEL"),
]
Passes = Annotated[int | None, typer.Option(help="Passes over DATA, in all.", min=1, metavar="N")]
MaxBadRows = Annotated[
    int | None,
    typer.Option(
        help="Rows that break a rule to skip and count before giving up; 0, or as before with --resume.",
        min=0,
        metavar="N",
        show_default=False,
    ),
]
MaxRows = Annotated[int | None, typer.Option(help="Stop after so many rows.", min=1, metavar="N")]
ScoringOnly = Annotated[bool, typer.Option("--scoring-only", help="Save weights only: small, cannot be resumed.")]
Settle = Annotated[
    bool, typer.Option("--settle", help="End a race of settings: keep those in the lead, in a smaller file.")
]
SaveEvery = Annotated[int | None, typer.Option(help="Save every so many rows too.", min=1, metavar="ROWS")]
Pace = Annotated[
    str | None,
    typer.Option("--progress", "-P", help="Table lines every N rows, or at a factor such as 2.0.", metavar="N"),
]


def train(
    data: options.Data,
    output: Output = None,
    learner: LearnerName = None,
    set: Settings = None,
    budget: Budget = None,
    scale: Scale = None,
    dtype: Dtype = None,
    shuffle: Shuffle = None,
    resume: Resume = None,
    passes: Passes = None,
    max_rows: MaxRows = None,
    zero_based: options.ZeroBased = None,
    positive: options.Positive = None,
    max_bad_rows: MaxBadRows = None,
    finished: options.Finished = False,
    format: options.Format = None,
    threads: options.Threads = None,
    scoring_only: ScoringOnly = False,
    settle: Settle = False,
    save_every: SaveEvery = None,
    overwrite: outputs.Overwrite = False,
    progress: Pace = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn a stream of labelled rows, and save the model.

    Every row is scored before it is learned, so the AUC shown is that of rows the model had not seen.
    Ctrl-C saves what was learned.
    """
    marks = running.marks(progress)
    settings = [*(set or []), *([] if budget is None else [f"budget={budget}"])]
    model = _resumed(resume, learner, settings, scale, dtype) if resume else _new(learner, settings, scale, dtype)
    target, replaced = running.target(output, resume, data, overwrite)

    from rarestream.cli.progress import Progress, counts, emit
    from rarestream.evaluate import Place, Run, place_in
    from rarestream.readers import read
    from rarestream.readers.sources import expand

    place = place_in(model.source, expand(data)) if resume else Place()
    chosen = options.given(zero_based=zero_based, positive=positive, format=format, shuffle=shuffle)
    how = _how(place, model, chosen)
    how |= options.given(max_bad_rows=max_bad_rows)
    how["finished"] = _finished(place, finished)
    before = model.source
    stream = read(data, **how, threads=threads)
    if (passes or place.passes) > 1 and stream.size is None:
        raise typer.BadParameter("a pipe can be read once only; save it to a file first.", param_hint="'--passes'")
    run = Run(model, stream, place=place, passes=passes, max_rows=max_rows, marks=marks)
    terminal = sys.stderr.isatty()
    show = Progress(
        run,
        table=not quiet and (terminal or progress is not None) and not json,
        live=not quiet and terminal,
        lines=json,
    )
    if place.known and not quiet:
        show.note(_where(place))
    kind, saved = "scoring" if scoring_only else "resumable", False

    def save() -> None:
        nonlocal saved
        model.save(target, kind)
        if replaced and not saved and not quiet:
            show.note(replaced)
        saved = True

    with running.stopped_by_signals(run):
        running.learn(run, show, save, save_every)
        if settle:
            model.settle()
        news = settle or target != resume or model.source != before
        if run.rows or (resume and news and not run.interrupted):
            save()
    running.warn(run, show)
    if json:
        emit(
            {
                "event": "done",
                **counts(run),
                "rows_this_run": run.rows,
                "refused": run.refused,
                "interrupted": run.interrupted,
                "seconds": round(show.seconds, 3),
                "model": str(target),
            }
        )
    again = look.quoted(["rarestream", "train", *data, "--resume", target])
    if not quiet:
        _summary(run, model, show, target, scoring_only)
        if run.rows == max_rows and not run.place.complete and not run.interrupted and not scoring_only:
            show.note(f"Stopped by --max-rows. Go on with: {again}")
    if run.interrupted:
        if not run.rows:
            failures.say("interrupted before a row was learned; nothing was saved.", failures.INTERRUPTED)
        way_on = "A scoring-only model cannot go on." if scoring_only else f"Go on with: {again}"
        failures.say(f"interrupted; what was learned is in {plain(target)}. {way_on}", failures.INTERRUPTED)


def _new(name: str | None, settings: list[str], scale: str | None, dtype: str | None) -> Model:
    from rarestream.model import DTYPES, SCALES, Model

    budget = any(text.startswith("budget=") for text in settings)
    made = _learner(name or (DEFAULT_WITH_BUDGET if budget else DEFAULT_LEARNER), settings)
    options.among("--scale", scale, SCALES)
    options.among("--dtype", dtype, DTYPES)
    return Model(made, scale=scale or "unit", dtype=dtype or "float32")


def _resumed(path: Path, name: str | None, settings: list[str], scale: str | None, dtype: str | None) -> Model:
    """The model of a file. Its settings are part of it: what a user says again must agree."""
    from rarestream.model import Model

    model = Model.load(path)
    if model.kind == "scoring":
        failures.say(
            f"{plain(path)}: was made for scoring only, by --scoring-only or prune, and cannot be resumed.",
            failures.FAILED,
        )
    told: dict[str, tuple[Any, Any]] = {}
    if name is not None:
        named = model.learner.name if model.chosen_by is None else model.chosen_by.name
        told["--learner"] = (_learner(name, []).name, name if name in (named, model.learner.name) else named)
    for text in settings:
        word, _ = options.setting(model.learner.name, text)
        mine = _learner(model.learner.name, [text]).settings[word]
        told[f"--set {word}"] = (mine, model.learner.settings[word])
    told["--scale"] = (scale or model.scale, model.scale)
    told["--dtype"] = (dtype or model.dtype, model.dtype)
    for option, (said, kept) in told.items():
        if said != kept:
            raise typer.BadParameter(
                f"{plain(path)} has {kept}, not {said}. Settings live in the model: leave {option} away when resuming, "
                "or train a new model.",
                param_hint=f"'{option}'",
            )
    return model


def _learner(name: str, settings: list[str]) -> Any:
    from rarestream.learners import learner_names, make_learner

    options.among("--learner", name, learner_names())
    try:
        return make_learner(name, **dict(options.setting(name, text) for text in settings))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--set'") from None


def _how(place: Place, model: Model, chosen: dict[str, Any]) -> dict[str, Any]:
    """How to read: as the model remembers for data it knows; else as told, with its base and positive label."""
    if place.known:
        for word, value in chosen.items():
            kept = place.settings.get(word)
            if value != kept:
                option = "--" + word.replace("_", "-")
                raise typer.BadParameter(
                    f"the model learned these data with {word}={kept}, not {value}, and goes on in that way. "
                    f"Leave {option} away.",
                    param_hint=f"'{option}'",
                )
        return dict(place.settings)
    learned = options.as_learned(model.source)
    classes = learned.get("classes")
    positive = learned.get("positive", None if classes is None else classes[1])
    if positive is not None and chosen.get("positive", positive) != positive:
        raise typer.BadParameter(
            f"the model has learned {positive:g} as the positive label, not {chosen['positive']:g}. Leave --positive "
            f"away, and change the labels of these data so that {positive:g} is positive, or train a new model.",
            param_hint="'--positive'",
        )
    return {**learned, **chosen}


def _finished(place: Place, told: bool) -> bool:
    """Whether a last line without line end is a row. A shuffled order holds only with the rows it was drawn for."""
    if not place.known or place.settings.get("shuffle") is None:
        return told
    kept = bool(place.settings["finished"])
    if told and not kept:
        raise typer.BadParameter(
            "these data were learned in shuffled order, without their last line, which had no line end. "
            "Put that line in a file of its own and train on that.",
            param_hint="'--finished'",
        )
    return kept


def _where(place: Place) -> str:
    if place.resized:
        return f"The data have changed in size: going on after row {look.count(place.rows)} of pass {place.number}."
    if place.complete:
        return f"The model has learned these data {'once' if place.number == 1 else f'{place.number} times'} already."
    return f"Going on after row {look.count(place.rows)} of pass {place.number}."


def _summary(run: Run, model: Model, show: Progress, target: Path, scoring_only: bool) -> None:
    if not run.rows:
        if run.stream.unfinished is not None:
            show.note("Nothing new to learn.")
        elif run.place.complete:
            more = run.place.number + 1
            show.note(f"Nothing new to learn. For another pass over the same rows: --passes {more}.")
        return
    ink = look.stderr()
    auc = model.progress.auc
    doubt = ""
    if show.looks_sorted:
        doubt = ", which means little on rows sorted by label"
    elif run.place.number > 1:
        doubt = ", first pass only"
    if auc == auc:
        show.note(f"progressive AUC {ink(f'{float(auc):.4f}', 'bold', 'cyan')} [{auc.low:.4f}, {auc.high:.4f}]{doubt}")
    show.note(
        f"{look.count(run.rows)} rows, {look.count(run.nonzeros)} non-zeros in {look.duration(show.seconds)}: "
        f"{look.short(run.rows / max(show.seconds, 1e-9))} rows/s"
    )
    if model.leader is not model.learner:
        rows = model.learner.settings["rows"]
        show.note(
            f"auto: {ink(f'{model.leader.name}, {look.settings(model.leader)}', 'bold')} leads. The file keeps all "
            f"settings, which race on until row {look.count(rows)}; --settle keeps this one"
        )
    elif model.chosen_by is not None and model.chosen_by.name == "auto":
        show.note(
            f"auto: chose {ink(f'{model.learner.name}, {look.settings(model.learner)}', 'bold')} after "
            f"{look.count(model.chosen_by.rows)} rows"
        )
    nonzeros = model.nonzeros
    show.note(
        f"{ink(plain(target), 'bold')}: {model.leader.name}, {look.count(nonzeros)} weights of "
        f"{look.count(model.n_features)} columns, {look.size(target.stat().st_size)}"
    )
    if not scoring_only:
        show.note(look.scoring_size(model, nonzeros, "--scoring-only, or rarestream prune"))
