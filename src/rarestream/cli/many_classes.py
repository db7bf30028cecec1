"""What train, evaluate and predict do with many classes: a model file that has one model for each."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rarestream import modelfile
from rarestream.cli import failures, look, options, running
from rarestream.cli.parser import UsageError
from rarestream.cli.progress import ProgressBar, emit, names, number
from rarestream.errors import plain
from rarestream.evaluate import Place, Step, TrainingRun, place_in
from rarestream.evaluate.progress import REDRAWN
from rarestream.metrics import SortedCheck, StreamingAuc
from rarestream.one_vs_rest import OneVsRest
from rarestream.readers.sources import expand

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from rarestream.blocks import Block
    from rarestream.cli.train import Reading
    from rarestream.model import Model

MOST_LINES = 20  # of classes in a report


def train(
    data: list[str],
    output: Path | None,
    overwrite: bool,
    model: OneVsRest,
    resume: Path | None,
    passes: int | None,
    max_rows: int | None,
    scoring_only: bool,
    save_every: float | None,
    json: bool,
    quiet: bool,
    reading: Reading,
) -> None:
    """Learn rows of many classes and save the model."""
    from rarestream.cli.columns import ColumnsShown

    target, replaced = running.target(output, resume, data, overwrite)
    place = place_in(model.source, expand(data)) if resume else Place()
    given = reading.settings()
    remembered = reading.settings_for(cast(Any, model), data) if resume else {}
    learned = dict(place.settings) if place.known else {}
    settings = {**remembered, **given, **learned, "classes": "all", "features": model.features}
    stream = reading.open(data, settings)
    options.check_passes(passes or place.passes, stream.size)
    run = TrainingRun(cast(Any, model), stream, place=place, passes=passes, max_rows=max_rows)
    show = _Bar(run, model, live=not quiet and not json and sys.stderr.isatty())
    kind = "scoring" if scoring_only else "resumable"
    said = None if quiet else replaced
    saving = running.saving(run, show, target, save_every, kind=kind, json=json, replaced=said)
    with running.stopped_by_signals(run):
        running.learn(run, show, ColumnsShown(stream, json=json, quiet=quiet), saving, quiet)
        if run.rows or (resume and target != resume and not run.interrupted):
            saving.save()
    running.note_cache(run, show, quiet)
    running.warn_of_rows(run, show)
    if json:
        found = {
            "event": "done",
            "rows": model.rows,
            **_of_classes(model.progress),
            "n_features": model.n_features,
            "pass": run.place.number,
            "rows_this_run": run.rows,
            "refused": run.refused,
            "unlabelled": run.unlabelled,
            "interrupted": run.interrupted,
            **names(run),
            "seconds": round(show.seconds, 3),
            "model": str(target),
        }
        emit(found)
    elif not quiet:
        _summary(run, model, show, target, scoring_only)
    if run.interrupted:
        if not run.rows:
            failures.exit_with("interrupted before a row was learned; nothing was saved.", failures.INTERRUPTED)
        again = look.quoted(["rarestream", "train", *data, "--resume", target])
        way_on = "A scoring-only model cannot be resumed." if scoring_only else f"To continue:\n  {again}"
        failures.exit_with(f"interrupted; what was learned is in {plain(target)}. {way_on}", failures.INTERRUPTED)


class _Bar(ProgressBar):
    """A live line: rows and macro AUC."""

    def __init__(self, run: TrainingRun, model: OneVsRest, *, live: bool) -> None:
        self._model = model
        cast(Any, run.model).order = SortedCheck()  # each class has its own
        super().__init__(run, table=False, live=live, lines=False)

    def step(self, step: Step) -> None:
        now = time.monotonic()
        if not self._live_line.shown or now - self._drawn < REDRAWN:
            return
        self._drawn = now
        rows, _ = self.pace
        parts = [
            f"{look.short(self._model.rows)} rows, {look.short(rows)}/s",
            f"{len(self._model.classes)} classes",
            f"macro AUC {self._model.macro_auc:.4f}",
        ]
        self._live_line.draw(f"  {self._ink(' · '.join(parts), 'dim')}")


def _summary(run: TrainingRun, model: OneVsRest, show: ProgressBar, target: Path, scoring_only: bool) -> None:
    if run.unlabelled:
        show.note(options.unlabelled(run.unlabelled))
    if not run.rows:
        show.note("Nothing new to learn.")
        return
    ink = look.stderr()
    show.note(
        f"progressive macro AUC {ink(f'{model.macro_auc:.4f}', 'bold', 'cyan')} of "
        f"{look.counted(len(model.classes), 'class') if len(model.classes) == 1 else f'{len(model.classes):,} classes'}"
    )
    show.note(
        f"{look.counted(run.rows, 'row')}, {look.counted(run.nonzeros, 'non-zero')} in {look.duration(show.seconds)}: "
        f"{look.short(run.rows / max(show.seconds, 1e-9))} rows/s"
    )
    show.note(
        f"{ink(plain(target), 'bold')}: {model.learner.name}, {look.counted(model.nonzeros, 'weight')}, "
        f"{look.size(target.stat().st_size)}{'' if scoring_only else ', resumable'}"
    )


def new(name: str | None, settings: Sequence[str], scale: str | None, dtype: str | None, calibrate: bool) -> OneVsRest:
    """A model of all classes that come."""
    from rarestream.one_vs_rest import DEFAULT

    learner: Any = name
    if settings:
        chosen = name or DEFAULT.name
        words = dict(options.parse_setting(chosen, text) for text in settings)
        from rarestream.learners import make_learner

        try:
            learner = make_learner(chosen, **({} if name else {"rate_power": DEFAULT.rate_power}) | words)
        except ValueError as error:
            raise UsageError(str(error), "--set") from None
    return OneVsRest(learner, scale=scale or "unit", dtype=dtype or "float32", calibrate=calibrate)


def resumed(path: Path, **given: object) -> OneVsRest:
    """The model of a file, which has its settings."""
    for option, value in given.items():
        if value:
            word = option.replace("_", "-")
            raise UsageError(f"{plain(path)} has its settings, which cannot be changed. Drop --{word}.", f"--{word}")
    model = OneVsRest.load(path)
    if model.kind == "scoring":
        failures.exit_with(f"{plain(path)}: cannot be resumed: it was written for scoring only.", failures.FAILED)
    return model


def refuse(**given: object) -> None:
    """Refuse options of train that make no sense for many classes."""
    for option, value in given.items():
        if value:
            word = option.replace("_", "-")
            raise UsageError("cannot be combined with many classes.", f"--{word}")


def is_file_of(path: Path | None) -> bool:
    """Whether a file has a model for each of several classes."""
    header = None if path is None else modelfile.peek(path)
    return header is not None and "models" in header


def model_of(path: Path, name: str) -> Model:
    """The model of one class."""
    model = OneVsRest.load(path)
    found = {str(label): label for label in model.classes}
    if name not in found:
        some = ", ".join(plain(label) for label in list(found)[:MOST_LINES])
        more = f" and {len(found) - MOST_LINES} more" if len(found) > MOST_LINES else ""
        raise UsageError(f"{plain(path)} has no class {plain(name)!r}; it has {some}{more}.", "--class")
    return model.model(found[name])


def inspect(path: Path, json: bool) -> None:
    """Show what a file of many classes holds."""
    model, size = OneVsRest.load(path), path.stat().st_size
    aucs = model.progress
    facts = {
        "model": str(path),
        "bytes": size,
        "kind": model.kind,
        "learner": {"name": model.learner.name, "settings": model.learner.settings},
        "scale": model.scale,
        "dtype": model.dtype,
        "rows": model.rows,
        "n_features": model.n_features,
        "nonzeros": model.nonzeros,
        "one_pass": model.one_pass,
        "source": model.source,
        **_of_classes(aucs),
    }
    if json:
        look.print_json(facts)
        return
    ink = look.stdout()
    ink.line(f"{ink(plain(path), 'bold')}  {look.size(size)}, {model.kind}, many classes")
    macro = facts["macro_auc"]
    lines = [
        ("learner", f"{model.learner.name}  {ink(look.assignments(model.learner.settings, '  '), 'dim')}"),
        ("scale", f"{model.scale}, state in {model.dtype}"),
        ("learned", f"{look.counted(model.rows, 'row')} of {len(model.classes)} classes"),
        ("weights", f"{look.count(model.nonzeros)} non-zero, of all classes"),
        ("AUC", f"{'-' if macro is None else f'{macro:.4f}'} progressive, mean over classes"),
    ]
    for word, text in lines:
        for at, part in enumerate(look.wrap(text, look.width() - 14)):
            ink.line(f"  {'' if at else word:<12}{part}")
    ink.line("")
    _show_classes(aucs)
    ink.line("To see the weights of a class: --class LABEL")


# -- evaluate


def evaluate(path: Path, data: list[str], json: bool, reading: options.ReadingLabelled) -> None:
    """Measure how well each class is ranked, and how many rows are predicted right."""
    model = OneVsRest.load(path)
    options.check_paths(data)
    stream = reading.open(data, {**reading.settings_for(cast(Any, model), data), "classes": "all"})
    learned = options.warn_if_learned(cast(Any, model), data)
    aucs = {label: StreamingAuc() for label in model.classes}
    rows, right, unknown = 0, 0, 0
    labels = model.label_array()
    code_of = {label: code for code, label in enumerate(model.classes)}
    between: _Between | None = _Between(len(labels))
    for block in stream:
        assert block.classes is not None
        found = block.classes.tolist()
        scores = model.score(block)
        for column, (label, one) in enumerate(aucs.items()):
            truth = np.fromiter((other == label for other in found), bool, len(found))
            one.add(truth, scores[:, column], block.importances)
        predicted = labels[(model.slope * scores + model.intercept).argmax(axis=1)].tolist()
        right += sum(one == other for one, other in zip(predicted, found, strict=True))
        unknown += sum(other not in aucs for other in found)
        rows += len(block)
        if between is not None:
            between.add(np.array([code_of.get(other, -1) for other in found]), scores, block.importances)
            between = None if between.full else between
    options.print_notes(stream)
    options.warn_of_refused(stream.refused, stream.refusals)
    if unknown:
        look.warn(f"{look.counted(unknown, 'row')} of classes that the model does not know; they count as wrong.")
    result = {
        "rows": rows,
        **_of_classes(aucs),
        "pairwise_auc": None if between is None else between.auc(),
        "accuracy": right / rows,
        "unknown": unknown,
        "learned": learned,
    }
    if json:
        look.print_json(result)
        return
    ink = look.stdout()
    macro = result["macro_auc"]
    ink.line(f"macro AUC    {ink('-' if macro is None else f'{macro:.4f}', 'bold', 'cyan')}  mean over classes")
    if result["pairwise_auc"] is not None:
        ink.line(f"pairwise AUC {result['pairwise_auc']:.4f}  mean over pairs of classes (Hand and Till)")
    ink.line(f"accuracy     {result['accuracy']:.4f}  rows whose class was predicted")
    _show_classes(aucs)
    ink.line(look.counted(rows, "row"))


def _show_classes(aucs: dict[Any, StreamingAuc]) -> None:
    """A line for each class, the worst first."""
    ink = look.stdout()
    known = sorted(aucs.items(), key=lambda item: (math.isnan(item[1].auc), float(item[1].auc)))
    width = max((len(plain(label)) for label in aucs), default=0)
    for label, one in known[:MOST_LINES]:
        auc = "-" if math.isnan(one.auc) else f"{float(one.auc):.4f}  [{one.auc.low:.4f}, {one.auc.high:.4f}]"
        ink.line(f"  {look.cut(plain(label), 30):<{min(width, 30)}}  {look.counted(one.n_pos, 'row'):>12}  {auc}")
    if len(known) > MOST_LINES:
        ink.line(f"  ... {len(known) - MOST_LINES} more, which are ranked better")


class _Between:
    """Scores of rows under each class, for the AUC between classes, as long as they fit in memory."""

    MOST = 20_000_000  # scores

    def __init__(self, classes: int) -> None:
        self._classes, self._rows = classes, 0
        self._parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []

    @property
    def full(self) -> bool:
        return self._rows * self._classes > self.MOST

    def add(self, codes: NDArray[Any], scores: NDArray[Any], importances: NDArray[np.float64] | None) -> None:
        known = codes >= 0
        weights = np.ones(len(codes)) if importances is None else importances
        self._parts.append((codes[known], scores[known], weights[known]))
        self._rows += len(codes)

    def auc(self) -> float | None:
        """Hand and Till's M; None if fewer than two classes have rows."""
        from rarestream.metrics import pairwise_auc

        codes, scores, weights = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        if len(np.unique(codes[weights > 0])) < 2:
            return None
        return float(pairwise_auc(codes, scores, np.arange(self._classes), weights))


def _of_classes(aucs: Any) -> dict[str, Any]:
    """The macro AUC, and the rows and AUC of each class, as JSON."""
    found = {label: float(one.auc) for label, one in aucs.items()}
    known = [auc for auc in found.values() if not math.isnan(auc)]
    return {
        "macro_auc": sum(known) / len(known) if known else None,
        "classes": [{"class": label, "rows": aucs[label].n_pos, "auc": number(auc)} for label, auc in found.items()],
    }


# -- predict


def answers(model: OneVsRest, probability: bool, json: bool) -> Callable[[Block], dict[str, list[str]]]:
    """What is written of rows: their class, and its probability if that is wanted."""
    from json import dumps

    shown = [dumps(label) if json else plain(label) for label in model.classes]

    def of(block: Block) -> dict[str, list[str]]:
        found = model.probability(block)
        best = found.argmax(axis=1)
        columns = {"class": [shown[code] for code in best.tolist()]}
        if probability:
            columns["probability"] = list(map(repr, found[np.arange(len(best)), best].tolist()))
        return columns

    return of
