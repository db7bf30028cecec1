"""rarestream train: a stream to a model file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from rarestream.cli import failures, following, look, options, outputs, running, watching
from rarestream.cli.durations import seconds
from rarestream.cli.parser import Argument, Option, UsageError
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.cli.progress import ProgressBar
    from rarestream.evaluate import Place, TrainingRun
    from rarestream.model import Model
    from rarestream.readers import Stream
    from rarestream.readers.live.stream import LiveStream
    from rarestream.readers.sources import Source

DEFAULT_LEARNER = "auto"
ASIDE = ("max_bad_rows", "threads", "cache", "cache_dir")  # options of reading that may differ when resuming


def _dtypes() -> Sequence[str]:
    from rarestream.engines import DTYPES

    return DTYPES


class Reading(options.ReadingToLearn):
    defaults: ClassVar[Mapping[str, str]] = {"max_bad_rows": "0; with --resume, as before"}


Output = Annotated[
    Path | None,
    Option("--output", "-o", "-f", metavar="MODEL", help="The model file to write.", default="that of --resume"),
]
LearnerName = Annotated[
    str | None, options.learner_option("The learning algorithm.", options.learners, DEFAULT_LEARNER)
]
Settings = Annotated[
    list[str] | None,
    Option("--set", metavar="NAME=VALUE", help="A setting of the learner, such as l1=0.1; may be repeated."),
]
Budget = Annotated[
    int | None,
    Option(
        "--budget",
        metavar="N",
        help="Maximum number of non-zero weights at any time. auto then races settings that are good at that size.",
        min=1,
    ),
]
Dtype = Annotated[
    str | None,
    Option(
        "--dtype",
        metavar="NAME",
        help="Precision of the model state: float32 or float64.",
        choices=_dtypes,
        default="float32",
    ),
]
Resume = Annotated[
    Path | None,
    Option(
        "--resume", "-i", metavar="MODEL", help="Continue with this model; on the same DATA, from where it stopped."
    ),
]
Passes = Annotated[
    int | None, Option("--passes", metavar="N", help="Total number of passes over DATA.", min=1, default="1")
]
ScoringOnly = Annotated[bool, Option("--scoring-only", help="Save weights only: a small file that cannot be resumed.")]
Classes = Annotated[
    str | None,
    Option(
        "--classes",
        metavar="all",
        help="Learn every label as a class against all others, in one pass.",
        choices=lambda: ("all",),
    ),
]
Settle = Annotated[bool, Option("--settle", help="End the race of auto: one learner, in a smaller file.")]
NoCalibrate = Annotated[
    bool, Option("--no-calibrate", help="Do not learn to turn scores into probabilities (predict --probability).")
]
SaveEvery = Annotated[
    str | None,
    Option(
        "--save-every",
        metavar="ROWS|TIME",
        help="Also save the model after so many rows each, such as 10000, or so long, such as 30s or 5m.",
        default=f"with --follow, {following.SAVE_EVERY}",
    ),
]
ShowConfig = Annotated[
    bool,
    Option("--show-config", help="Print how the columns of a table are read, as TOML for --config."),
]


Dashboard = Annotated[
    str | None,
    Option(
        "--dashboard",
        metavar="HOST:PORT",
        help="Show the run on a page in the browser while it learns; without a value at 127.0.0.1:8090.",
        implied="127.0.0.1:8090",
    ),
]


Data = Annotated[list[str] | None, Argument("DATA", help=options.DATA_HELP)]


def train(
    data: Data = None,
    output: Output = None,
    overwrite: outputs.Overwrite = False,
    learner: LearnerName = None,
    set: Settings = None,
    budget: Budget = None,
    scale: options.Scale = None,
    dtype: Dtype = None,
    resume: Resume = None,
    passes: Passes = None,
    max_rows: options.MaxRows = None,
    scoring_only: ScoringOnly = False,
    settle: Settle = False,
    classes: Classes = None,
    no_calibrate: NoCalibrate = False,
    negatives_kept: options.NegativesKept = None,
    save_every: SaveEvery = None,
    follow: following.Follow = False,
    heartbeat: following.Beat = None,
    dead_letters: following.DeadLetters = None,
    stop_after: following.Idle = None,
    lost: following.Lost = False,
    show_config: ShowConfig = False,
    progress: running.Pace = None,
    dashboard: Dashboard = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Learn a stream of labelled rows and save the model.

    Every row is scored before it is learned, so the AUC shown is that of rows the model had not seen.
    Ctrl-C saves what was learned.
    """
    data = list(data or ())
    marks = running.marks(progress)
    every = following.save_every(save_every, follow)
    if dashboard is not None:
        watching.check(dashboard, data)
    settings = [*(set or []), *([] if budget is None else [f"budget={budget}"])]
    options.check_share(negatives_kept)
    if follow:
        kept = {name: getattr(reading, name, None) for name in ("cache", "cache_dir")}
        following.refuse(passes=passes, classes=classes, shuffle=getattr(reading, "shuffle", None) is not None, **kept)
        if scoring_only:
            raise UsageError("cannot be combined with --follow: the position is saved with a model that can continue.")
        resume = resume or following.resumed(output, data, overwrite)
    else:
        following.refuse_without(heartbeat=heartbeat, dead_letters=dead_letters, stop_after=stop_after, lost=lost)
        following.refuse_live(data)
        if not data:
            raise UsageError("Missing argument 'DATA'.")
    if classes or (resume and _is_of_many_classes(resume)):
        from rarestream.cli import many_classes

        many_classes.refuse(settle=settle, progress=progress, show_config=show_config, negatives_kept=negatives_kept)
        many_classes.refuse(dashboard=dashboard)
        if resume is None:
            many = many_classes.new(learner, settings, scale, dtype, not no_calibrate)
        else:
            many = many_classes.resumed(
                resume,
                learner=learner,
                set=set,
                budget=budget,
                scale=scale,
                dtype=dtype,
                no_calibrate=no_calibrate,
            )
        many_classes.train(
            data, output, overwrite, many, resume, passes, max_rows, scoring_only, every, json, quiet, reading
        )
        return
    model = _resumed(resume, learner, settings, scale, dtype) if resume else _new(learner, settings, scale, dtype)
    if no_calibrate and resume and model.calibrate:
        raise UsageError(f"{plain(resume)} was trained with a calibration. Drop --no-calibrate.", "--no-calibrate")
    if no_calibrate:
        model.calibrate, model.calibration = False, None
    if negatives_kept is not None:
        model.negatives_kept = negatives_kept
    if follow:
        data = [following.source_of(data, model.source)]
    target, replaced = running.target(output, resume, data, overwrite, live=follow)

    from rarestream.cli.columns import ColumnsShown
    from rarestream.evaluate import TrainingRun

    stream: Stream
    if follow:
        place, stream = _followed(data[0], model, reading, dead_letters, stop_after, lost)
    else:
        place, stream = _opened(data, model, reading)
        options.check_passes(passes or place.passes, stream.size)
    server = None if dashboard is None else watching.server(dashboard)
    before = model.source
    run = TrainingRun(model, stream, place=place, passes=passes, max_rows=max_rows, marks=marks)
    show = running.progress_bar(run, progress, json, quiet)
    columns = ColumnsShown(stream, json=json, quiet=quiet, config=show_config)
    if place.known and not quiet:
        show.note(_where(place))
    kind = "scoring" if scoring_only else "resumable"
    saving = running.saving(run, show, target, every, kind=kind, json=json, replaced=None if quiet else replaced)
    beat = following.Heartbeat(run, cast(Any, stream), saving, heartbeat, json) if follow else None
    watched = None if server is None else watching.start(run, server, show, target, json=json, quiet=quiet)
    with running.stopped_by_signals(run):
        running.learn(run, show, columns, saving, quiet, beat, watched)
        if settle:
            model.finish_race()
        news = settle or target != resume or model.source != before
        if run.rows or (resume and news and not run.interrupted):
            saving.save()
    if watched is not None:
        watched.end("interrupted" if run.interrupted else "ended")
    running.note_cache(run, show, quiet)
    running.warn(run, show)
    if json:
        from rarestream.cli.progress import counts, emit, names

        emit(
            {
                "event": "done",
                **counts(run),
                "rows_this_run": run.rows,
                "refused": run.refused,
                "unlabelled": run.unlabelled,
                "interrupted": run.interrupted,
                **names(run),
                "seconds": round(show.seconds, 3),
                "model": str(target),
            }
        )
    if not quiet:
        if run.unlabelled:
            show.note(options.unlabelled(run.unlabelled))
        _summary(run, model, show, target, scoring_only)
        if run.rows == max_rows and not run.place.complete and not run.interrupted and not scoring_only:
            show.note(f"Stopped by --max-rows. {_to_continue(data, target)}")
    if server is not None:
        watching.end(server, run, show, stay=not follow and not quiet)
    if follow:
        if not quiet:
            following.end(run, show, target, _to_continue(data, target, "--follow"))
        return
    if run.interrupted:
        if not run.rows:
            failures.exit_with("interrupted before a row was learned; nothing was saved.", failures.INTERRUPTED)
        way_on = "A scoring-only model cannot be resumed." if scoring_only else _to_continue(data, target)
        failures.exit_with(f"interrupted; what was learned is in {plain(target)}. {way_on}", failures.INTERRUPTED)


def _is_of_many_classes(path: Path) -> bool:
    from rarestream.cli.many_classes import is_file_of

    return is_file_of(path)


def _to_continue(data: list[str], target: Path, *flags: str) -> str:
    return "To continue:\n  " + look.quoted(["rarestream", "train", *data, *flags, "--resume", target])


def _opened(data: list[str], model: Model, reading: Reading) -> tuple[Place, Stream]:
    """The data, and where a model that continues starts in them."""
    from rarestream.evaluate import place_in
    from rarestream.readers.sources import expand

    following.refuse_followed(model.source, data)
    sources = expand(data)
    place = place_in(model.source, sources)
    return place, reading.open(data, _read_settings(place, model, sources, reading))


def _followed(
    name: str, model: Model, reading: Reading, dead_letters: Path | None, stop_after: str | None, lost: bool
) -> tuple[Place, LiveStream]:
    """The live source, and where a model that continues starts in it."""
    from rarestream.evaluate import place_of
    from rarestream.readers.live.opening import key_of, open_live
    from rarestream.readers.sources import Source

    place = place_of(model.source, key_of(name), name)
    settings = _read_settings(place, model, [Source(name, name, None)], reading)
    with reading.reported():
        stream = open_live(
            name,
            position=dict(place.position),
            dead_letters=dead_letters,
            idle=None if stop_after is None else seconds(stop_after, "--stop-after"),
            lost=lost,
            **{**settings, "finished": True},
        )
    return place, stream


def _new(name: str | None, settings: list[str], scale: str | None, dtype: str | None) -> Model:
    from rarestream.model import Model

    made = _learner(name or DEFAULT_LEARNER, settings)
    return Model(made, scale=scale or "unit", dtype=dtype or "float32")


def _resumed(path: Path, name: str | None, settings: list[str], scale: str | None, dtype: str | None) -> Model:
    """The model of a file. Its settings are part of it: those given again must agree."""
    from rarestream.model import Model

    model = Model.load(path)
    if model.kind == "scoring":
        failures.exit_with(
            f"{plain(path)}: cannot be resumed: it was written for scoring only, by --scoring-only or prune.",
            failures.FAILED,
        )
    given: dict[str, tuple[Any, Any]] = {}  # by option: the value given, the model's
    if name is not None:
        named = model.learner.name if model.chosen_by is None else model.chosen_by.name
        given["--learner"] = (_learner(name, []).name, name if name in (named, model.learner.name) else named)
    for text in settings:
        word, _ = options.parse_setting(model.learner.name, text)
        mine = _learner(model.learner.name, [text]).settings[word]
        option = "--budget" if word == "budget" else f"--set {word}"
        given[option] = (mine, model.learner.settings[word])
    given["--scale"] = (scale or model.scale, model.scale)
    given["--dtype"] = (dtype or model.dtype, model.dtype)
    for option, (value, kept) in given.items():
        if value != kept:
            raise UsageError(
                f"{plain(path)} was trained with {kept}, not {value}, and cannot be changed. Drop {option}, or train a "
                "new model.",
                option,
            )
    return model


def _learner(name: str, settings: list[str]) -> Any:
    from rarestream.learners import make_learner

    try:
        return make_learner(name, **dict(options.parse_setting(name, text) for text in settings))
    except ValueError as error:
        raise UsageError(str(error), "--set") from None


def _read_settings(place: Place, model: Model, data: Sequence[Source], reading: Reading) -> dict[str, Any]:
    """The arguments of `read`: as the model remembers for data it knows, else as given, with its base and labels."""
    from rarestream.readers.options import as_json

    given = reading.settings()
    aside = {word: given.pop(word) for word in ASIDE if word in given}
    finished = _finished(place, given.pop("finished"))
    found = dict(place.settings) if place.known else _unknown_data(model, data, given)
    if place.known:
        for word, value in given.items():
            kept = place.settings.get(word)
            if as_json(value) != kept:
                option = "--" + word.replace("_", "-")
                before = f"without {option}" if kept is None else f"with {word}={kept}"
                raise UsageError(
                    f"the model learned these data {before} and must continue so, got {value}. Drop {option}.",
                    option,
                )
    return found | aside | {"finished": finished, "features": model.features}


def _unknown_data(model: Model, data: Sequence[Source], given: dict[str, Any]) -> dict[str, Any]:
    """How to read data that the model has not seen. What it learned as positive stays positive."""
    from rarestream.evaluate import reading_settings
    from rarestream.readers.options import shown_label

    learned = reading_settings(model.source, data, given.get("format"))
    classes = learned.get("classes")
    positive = learned.get("positive", None if classes is None else classes[1])
    if positive is not None and given.get("positive", positive) != positive:
        raise UsageError(
            f"the model has learned {shown_label(positive)} as the positive label, got "
            f"{shown_label(given['positive'])}. Drop --positive, and change the labels of these data so that "
            f"{shown_label(positive)} is positive, or train a new model.",
            "--positive",
        )
    return {**learned, **given}


def _finished(place: Place, given: bool) -> bool:
    """Whether a last line without line end is a row. A shuffled order is only valid for the rows it was drawn for."""
    if not place.known or place.settings.get("shuffle") is None:
        return given
    kept = bool(place.settings["finished"])
    if given and not kept:
        raise UsageError(
            "these data were learned in shuffled order, without their last line, which had no line end. "
            "Save that line to a separate file and train on that.",
            "--finished",
        )
    return kept


def _where(place: Place) -> str:
    if place.position:
        return f"Continuing after row {look.count(place.rows)}."
    if place.resized:
        return f"The data have changed in size: continuing after row {look.count(place.rows)} of pass {place.number}."
    if place.complete:
        return f"The model has already learned these data {'once' if place.number == 1 else f'{place.number} times'}."
    return f"Continuing after row {look.count(place.rows)} of pass {place.number}."


def _raced(model: Model) -> str:
    """Why the file of a model that races is large, and how to make it small."""
    settings, number = model.learner.settings, len(model.candidates)
    end = "to the end" if settings["keep"] > 1 else f"until row {look.count(settings['rows'])} at the latest"
    race = "1 setting, which races" if number == 1 else f"{number} settings, which race"
    return f" The file has {race} {end}; to keep only one, pass --settle."


def _summary(run: TrainingRun, model: Model, show: ProgressBar, target: Path, scoring_only: bool) -> None:
    if not run.rows:
        if run.stream.unfinished is not None:
            show.note("Nothing new to learn.")
        elif run.place.complete:
            more = run.place.number + 1
            show.note(f"Nothing new to learn. For another pass over the same rows, pass --passes {more}.")
        return
    ink = look.stderr()
    auc = model.progress.auc
    doubt = ""
    if show.looks_sorted:
        doubt = ", not meaningful on rows sorted by label"
    elif run.place.number > 1:
        doubt = ", first pass only"
    if auc == auc:
        show.note(f"progressive AUC {ink(f'{float(auc):.4f}', 'bold', 'cyan')} [{auc.low:.4f}, {auc.high:.4f}]{doubt}")
    show.note(
        f"{look.counted(run.rows, 'row')}, {look.counted(run.nonzeros, 'non-zero')} in {look.duration(show.seconds)}: "
        f"{look.short(run.rows / max(show.seconds, 1e-9))} rows/s"
    )
    if model.leader is not model.learner:
        show.note(f"auto: {ink(look.described(model.leader), 'bold')} leads.{'' if scoring_only else _raced(model)}")
    elif model.chosen_by is not None and model.chosen_by.name == "auto":
        show.note(
            f"auto: chose {ink(look.described(model.learner), 'bold')} after {look.count(model.chosen_by.rows)} rows"
        )
    nonzeros = model.nonzeros
    show.note(
        f"{ink(plain(target), 'bold')}: {model.leader.name}, {look.counted(nonzeros, 'weight')} of "
        f"{look.all_features(model)}, {look.size(target.stat().st_size)}"
        f"{'' if scoring_only else ', resumable'}"
    )
    if not scoring_only:
        show.note(look.scoring_size(model, nonzeros, "--scoring-only or rarestream prune"))
