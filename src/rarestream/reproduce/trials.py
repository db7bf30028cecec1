"""One trial of a method: every setting of its grid learns the training rows; the best on the validation rows is chosen.

A unit of work names the data set, the ratio its positives were cut to, the method, the mode, the grid and the trial.
Its row holds every setting that was tried, in the paper's order, and the curve of the chosen one, which is run again
alone to be timed. A setting that diverged has an error in place of an AUC; so has a row if all its settings have.

Mode "published" is the arithmetic of the authors' code, with its AUC; "corrected" is our learners in float32, with the
exact AUC. FTRL settings run in lanes there, so the seconds of one that was not chosen are its share of a pass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Protocol

import numpy as np

from rarestream._version import __version__
from rarestream.blocks import Block
from rarestream.engines.lanes import LaneGroup
from rarestream.errors import DataError
from rarestream.learners import Learner
from rarestream.learners.auto import Auto
from rarestream.learners.dual_averaging import DualAveraging
from rarestream.model import Model
from rarestream.race import Racing
from rarestream.race.fitting import fit_many
from rarestream.reproduce import protocol, published
from rarestream.reproduce.datasets import DataSet, Source, load
from rarestream.reproduce.methods import METHODS, OURS, TUNED_AFTER, Params
from rarestream.reproduce.paper import numbers
from rarestream.reproduce.rows import Rows
from rarestream.study.rows import PUBLISHED, CurvePoints, Point, TrialRow, chosen_point
from rarestream.study.splits import PART_NAMES, TrialBlocks, checkpoints
from rarestream.study.store import Unit
from rarestream.study.tuning import (
    CurveClock,
    Judged,
    block_auc,
    clock,
    learning_curve,
    pieces,
    point,
    points_of_pass,
    run_best,
    tried_point,
    try_setting,
)

Choices = Mapping[tuple[Any, ...], Params]  # by method, data set, ratio and trial

LANES = 32  # settings of one pass
PIECE = 1 << 16  # rows that settings learn in one call: their scores in all lanes are in memory at once
SCALE = "none"  # rows come as the paper scaled them
FAILURES = (DataError,)
PROBE, FIRST_PROBE = 0.2, 16  # seconds that a method is timed for, rows after which the timing begins


@dataclass(frozen=True, eq=False)
class TrialData:
    """The rows of a trial."""

    train: Rows
    valid: Rows
    test: Rows
    balanced: bool = False  # whether importances give both classes of the blocks to learn the same total

    @cached_property
    def blocks(self) -> TrialBlocks:
        """The same in single precision."""
        train, valid, test = (Block.of(rows.X, rows.labels) for rows in (self.train, self.valid, self.test))
        return TrialBlocks(train.balanced() if self.balanced else train, valid, test)


@lru_cache(maxsize=1)
def _loaded(source: Source) -> DataSet:
    return load(source)


@lru_cache(maxsize=1)
def trial_of(source: Source, ratio: float | None, trial: int) -> tuple[DataSet, TrialData]:
    """Return a data set and the rows of one of its trials; the last is cached, as units come in the order of trials."""
    data = _loaded(source)
    rows, splits = protocol.trials(data.rows, ratio)
    train, valid, test = (rows.take(part) for part in splits[trial])
    return data, TrialData(train, valid, test)


@dataclass(frozen=True)
class Work:
    """Runs a unit, in any process."""

    sources: Mapping[str, Source]
    choices: Choices = dataclasses.field(default_factory=dict)  # for methods that are tuned after others

    def __call__(self, unit: Unit) -> TrialRow:
        data, rows = trial_of(self.sources[unit["dataset"]], unit["ratio"], unit["trial"])
        settings = self._settings(unit)
        row: TrialRow = {"points": [], "chosen": None, "curve": None, "error": _one_class(rows)}
        if row["error"] is None and not settings:
            row["error"] = f"it takes the settings of {TUNED_AFTER[unit['method']]}, none of which succeeded"
        if row["error"] is None:
            arithmetic = arithmetic_of(unit, rows)
            row = run_best(settings, arithmetic.try_settings(settings), arithmetic.run_alone, FAILURES)
        return {
            **row,
            "n_train": len(rows.train),
            "n_features": rows.train.n_features,
            "data": data.data,
            "version": __version__,
        }

    def _settings(self, unit: Unit) -> list[Params]:
        """Return the settings to try, in their order."""
        points = METHODS[unit["method"]].points(unit["mode"], unit["grid"])
        if unit["method"] not in TUNED_AFTER:
            return list(points)
        chosen = self.choices.get((TUNED_AFTER[unit["method"]], *_place(unit)))
        return [] if chosen is None else [{**chosen, **point} for point in points]


def choices(rows: Iterable[TrialRow]) -> Choices:
    """Return the setting that each method chose in each trial."""
    return {(row["method"], *_place(row)): chosen_point(row)["params"] for row in rows if row["chosen"] is not None}


def _place(unit: Mapping[str, Any]) -> tuple[Any, ...]:
    return unit["dataset"], unit["ratio"], unit["trial"]


def _one_class(data: TrialData) -> str | None:
    for name, words in PART_NAMES.items():
        rows: Rows = getattr(data, name)
        positives = int(np.count_nonzero(rows.labels > 0))
        if not 0 < positives < len(rows):
            return f"the {words} rows are of one class: {positives:,} of {len(rows):,} are positive"
    return None


# -- how a trial learns: with the authors' code, with our learners, or untuned


class Arithmetic(Protocol):
    """How a method learns the rows of a trial."""

    def try_settings(self, settings: Sequence[Params]) -> list[Point]:
        """Return the point of each setting."""

    def run_alone(self, setting: Params, point: Point) -> TrialRow:
        """Return the curve of a setting; its point gets the seconds of that run."""

    def pace(self, settings: Sequence[Params]) -> float:
        """Return about how many seconds a row takes with all of the settings."""


def arithmetic_of(unit: Unit, rows: TrialData) -> Arithmetic:
    """Return how the unit's method learns."""
    if unit["method"] in OURS:
        return Untuned(unit, rows)
    return (Published if unit["mode"] == PUBLISHED else Corrected)(unit["method"], rows)


def _curve_and_seconds(curve: CurvePoints, point: Point) -> TrialRow:
    point["seconds"] = curve["seconds"][-1]
    return {"curve": curve}


@dataclass(frozen=True)
class Published:
    """The authors' code."""

    method: str
    rows: TrialData

    def try_settings(self, settings: Sequence[Params]) -> list[Point]:
        return [try_setting(setting, partial(self._fit, setting), self._judged, FAILURES) for setting in settings]

    def run_alone(self, setting: Params, point: Point) -> TrialRow:
        curve = CurveClock()
        for run in published.runs(self.method, self.rows.train, setting, checkpoints(len(self.rows.train))):
            curve.learned(run.rows)
            curve.tested(self._auc(run, self.rows.test))
        return _curve_and_seconds(curve.points(), point)

    def pace(self, settings: Sequence[Params]) -> float:
        looks = _looks(len(self.rows.train))
        runs = published.runs(self.method, self.rows.train, settings[len(settings) // 2], looks)
        return len(settings) * _timed(run.rows for run in runs)

    def _fit(self, setting: Params) -> published.Run:
        return published.run(self.method, self.rows.train, setting)

    def _judged(self, run: published.Run) -> Judged:
        return Judged(self._auc(run, self.rows.valid), self._auc(run, self.rows.test), run.nonzeros)

    @staticmethod
    def _auc(run: published.Run, rows: Rows) -> float:
        return published.published_auc(rows.labels, rows.scores(run.weights))


@dataclass(frozen=True)
class Corrected:
    """Our learners."""

    method: str
    rows: TrialData

    def try_settings(self, settings: Sequence[Params]) -> list[Point]:
        learners = [self._learner(setting) for setting in settings]
        if len(learners) == 1 or learners[0].lane() is None:
            judge = partial(_judged, self.rows)
            return [try_setting(setting, partial(self._fit, setting), judge, FAILURES) for setting in settings]
        points: list[Point] = []
        for first in range(0, len(learners), LANES):
            points += self._try_in_lanes(settings[first : first + LANES], learners[first : first + LANES])
        return points

    def run_alone(self, setting: Params, point: Point) -> TrialRow:
        _, curve = learn_with_curve(self._learner(setting), self.rows)
        return _curve_and_seconds(curve.points(), point)

    def pace(self, settings: Sequence[Params]) -> float:
        learners = [self._learner(setting) for setting in settings]
        if learners[0].lane() is None:
            model = _model(learners[len(learners) // 2], self.rows)
            return len(learners) * _timed(self._learn_more(model.learn))
        group = LaneGroup.start(learners[:LANES], SCALE, slots=self.rows.train.n_features)
        return len(learners) / len(group.numbers) * _timed(self._learn_more(group.learn))

    def _learn_more(self, learn: Callable[[Block], object]) -> Iterator[int]:
        """Learn more and more of the training rows, and yield how many so far."""
        rows = 0
        for stop in _looks(len(self.rows.train)):
            learn(self.rows.blocks.train[rows:stop])
            yield (rows := stop)

    def _learner(self, setting: Params) -> Learner:
        return METHODS[self.method].learner(setting, len(self.rows.train))

    def _fit(self, setting: Params) -> Model:
        model = _model(self._learner(setting), self.rows)
        model.learn(self.rows.blocks.train)
        return model

    def _try_in_lanes(self, settings: Sequence[Params], learners: Sequence[Learner]) -> list[Point]:
        """Try settings side by side in one pass over the training rows."""
        train, valid, test = self.rows.blocks
        width = self.rows.train.n_features
        fits, seconds = fit_many(learners, lambda _: pieces(train, PIECE), scale=SCALE, n_features=width)
        scores = [fits.score(rows) for rows in (valid, test)]

        def judge(number: int) -> Judged:
            model = fits.model(number, width)  # raises the reason if there is none
            valid_auc, test_auc = block_auc(valid, scores[0][:, number]), block_auc(test, scores[1][:, number])
            return Judged(valid_auc, test_auc, model.nonzeros)

        return points_of_pass(settings, judge, seconds, FAILURES)


# -- our own


@dataclass(frozen=True)
class Untuned:
    """A learner of ours with its default settings, also at the size that the paper's FTRL-AUC had on the data."""

    unit: Unit
    rows: TrialData

    def try_settings(self, settings: Sequence[Params]) -> list[Point]:
        """Return the point of the one setting, untried: there is nothing to choose."""
        return [point(setting) for setting in settings]

    def pace(self, settings: Sequence[Params]) -> float:
        return Corrected(self.unit["method"], self.rows).pace(settings)

    def run_alone(self, setting: Params, point: Point) -> TrialRow:
        """Return the curve; the point gets all numbers."""
        method = METHODS[self.unit["method"]]
        rows = dataclasses.replace(self.rows, balanced=True) if method.balanced else self.rows
        learner = method.learner(setting, len(rows.train))
        model, curve = self._learned(learner, rows)
        settings = {"learner": model.leader.name, **model.leader.settings}
        point.update(tried_point(settings, _judged(rows, model), curve["seconds"][-1]))
        ratios = numbers()["table2"]["sparse_ratio"].get(self.unit["dataset"])
        if ratios and self.unit["ratio"] is None:
            size = max(1, round(ratios["ftrl_auc"][0] * rows.train.n_features))
            limited = _with_budget(model.learner if self.unit["method"] == "race" else learner, model, size)
            point["at_published_size"] = _at_size(model, size, limited, rows)
        return {"curve": curve}

    def _learned(self, learner: Learner, rows: TrialData) -> tuple[Model, CurvePoints]:
        if self.unit["method"] != "race":
            model, curve = learn_with_curve(learner, rows)
            return model, curve.points()
        start = clock()
        racing = Racing("auto", scale=SCALE, threads=1)
        racing.learn(rows.blocks.train)
        model = racing.finish().model
        seconds = clock() - start
        # For its curve the winner runs again alone; the time is that of the whole race.
        _, curve = learn_with_curve(model.learner, rows)
        return model, curve.points(seconds)


def _with_budget(learner: Learner, model: Model, size: int) -> Learner | None:
    """Return a learner as it is used for at most so many weights; None if it has no budget."""
    if isinstance(learner, Auto):  # which then races other settings
        return dataclasses.replace(learner, budget=size)
    if isinstance(model.leader, DualAveraging):
        return dataclasses.replace(model.leader, budget=size, evidence=0.0, half_life=0.0)  # no budget goes with these
    return None


def _at_size(model: Model, size: int, limited: Learner | None, rows: TrialData) -> dict[str, float]:
    """Return the AUC with so many weights: pruned to the largest, and learned on that budget."""
    train, _, test = rows.blocks
    aucs = {"nonzeros": size, "pruned_test_auc": block_auc(test, model.prune(nonzeros=size).score(test))}
    if limited is not None:
        budgeted = _model(limited, rows)
        budgeted.learn(train)
        budgeted.finish_race()
        aucs["budget_test_auc"] = block_auc(test, budgeted.score(test))
    return aucs


def learn_with_curve(learner: Learner, rows: TrialData) -> tuple[Model, CurveClock]:
    """Return a model that has learned the training rows, and its curve."""
    train, _, test = rows.blocks
    model = _model(learner, rows)
    return model, learning_curve(train, model.learn, lambda: block_auc(test, model.score(test)))


def _model(learner: Learner, rows: TrialData) -> Model:
    return Model(learner, scale=SCALE, n_features=rows.train.n_features)


def _judged(rows: TrialData, model: Model) -> Judged:
    _, valid, test = rows.blocks
    return Judged(block_auc(valid, model.score(valid)), block_auc(test, model.score(test)), model.nonzeros)


def _timed(learned: Iterable[int]) -> float:
    """Return seconds per row of something that yields how many rows it has learned; the first is not counted."""
    first, start, pace = 0, 0.0, 0.0
    for rows in learned:
        now = clock()
        if not first:
            first, start = rows, now
            continue
        pace = (now - start) / (rows - first)
        if now - start > PROBE:
            break
    return pace


def _looks(rows: int) -> list[int]:
    """Return after how many rows to look at the clock."""
    looks, stop = [], FIRST_PROBE
    while stop < rows:
        looks.append(stop)
        stop *= 2
    return [*looks, rows]


# -- the remaining time


class Estimate:
    """Estimates how many seconds a unit takes: each method is timed on the first rows of the data."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources
        self._known: dict[tuple[Any, ...], float] = {}

    def __call__(self, unit: Unit) -> float:
        key = tuple(unit[word] for word in ("dataset", "ratio", "method", "mode", "grid"))
        if key not in self._known:
            self._known[key] = self._seconds(unit)
        return self._known[key]

    def _seconds(self, unit: Unit) -> float:
        _, data = trial_of(self._sources[unit["dataset"]], unit["ratio"], 0)
        rows = len(data.train) + len(data.valid) + len(data.test)
        settings = list(METHODS[unit["method"]].points(unit["mode"], unit["grid"]))
        if unit["method"] in TUNED_AFTER:
            first = METHODS[TUNED_AFTER[unit["method"]]].points(unit["mode"], unit["grid"])[0]
            settings = [{**first, **setting} for setting in settings]
        try:
            pace = arithmetic_of(unit, data).pace(settings)
        except DataError:  # the trial will give the reason
            return 0.0
        return pace * (1 + 1 / len(settings)) * rows
