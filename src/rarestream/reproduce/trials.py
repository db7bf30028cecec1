"""A trial of a method: every setting of its grid learns the training rows, the best on the validation rows is kept.

A unit of work names the data set, the ratio its positives were cut to, the method, whose arithmetic, the grid and the
trial. Its row holds every setting that was tried and what came of it, in the paper's order, and the curve of the one
chosen, which is run again to be timed: of all that takes time, only learning counts. A setting that diverged has no
AUC and says why; so does a row none of whose settings has one.

Arithmetic "published" is that of the authors' code, with its AUC; "corrected" is that of our learners in float32, with
the exact AUC. FTRL settings run in lanes there, so the seconds of one that was not chosen are its share of a heat.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rarestream._version import __version__
from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.learners import Learner
from rarestream.learners.dual_averaging import DualAveraging
from rarestream.learners.lanes import LaneKernel, Lanes, lane_of
from rarestream.metrics import auc
from rarestream.model import SCALES, Model
from rarestream.race import Racing
from rarestream.reproduce import protocol, published
from rarestream.reproduce.datasets import DataSet, Source, load
from rarestream.reproduce.methods import METHODS, OURS, PUBLISHED, TUNED_AFTER, Params
from rarestream.reproduce.paper import numbers
from rarestream.reproduce.rows import Rows
from rarestream.trials import Row, Unit

Choices = Mapping[tuple[Any, ...], Params]  # by method, data set, ratio and trial

HEAT = 32  # lanes of a kernel
PIECE = 1 << 16  # rows whose scores in lanes are kept at once
SCALE = "none"  # rows come as the paper scaled them
PROBE, FIRST_PROBE = 0.2, 16  # seconds that a method is timed for, rows after which it begins to be


@dataclass(frozen=True, eq=False)
class Parts:
    """The rows of a trial."""

    train: Rows
    valid: Rows
    test: Rows
    balanced: bool = False  # whether both classes of the blocks to learn weigh alike

    @cached_property
    def blocks(self) -> tuple[Block, Block, Block]:
        """The same in single precision."""
        train, valid, test = (Block.of(rows.X, rows.labels) for rows in (self.train, self.valid, self.test))
        return train.balanced() if self.balanced else train, valid, test


@lru_cache(maxsize=1)
def _loaded(source: Source) -> DataSet:
    return load(source)


@lru_cache(maxsize=1)
def trial_of(source: Source, ratio: float | None, trial: int) -> tuple[DataSet, Parts]:
    """A data set, and the rows of one of its trials. The last is kept: units come in the order of their rows."""
    data = _loaded(source)
    rows, splits = data.rows, protocol.splits(len(data.rows))
    if ratio is not None:
        kept, splits = protocol.imbalanced(rows.labels, ratio)
        rows = rows.take(kept)
    train, valid, test = (rows.take(part) for part in splits[trial])
    return data, Parts(train, valid, test)


@dataclass(frozen=True)
class Work:
    """What a process does with a unit."""

    sources: Mapping[str, Source]
    choices: Choices = dataclasses.field(default_factory=dict)  # for those that are tuned after others

    def __call__(self, unit: Unit) -> Row:
        data, parts = trial_of(self.sources[unit["dataset"]], unit["ratio"], unit["trial"])
        came: Row = {"points": [], "chosen": None, "curve": None, "error": _one_class(parts)}
        if came["error"] is None:
            came |= _untuned(unit, parts) if unit["method"] in OURS else self._tuned(unit, parts)
        found = {"n_train": len(parts.train), "n_features": parts.train.n_features, "data": data.data}
        return {**came, **found, "version": __version__}

    def _tuned(self, unit: Unit, parts: Parts) -> Row:
        """The settings of a method of the paper, and the curve of the best."""
        settings = self._settings(unit)
        if not settings:
            return {"error": f"no setting of {TUNED_AFTER[unit['method']]} came through, and it takes that one's"}
        arithmetic = arithmetic_of(unit, parts)
        points = arithmetic.tried(settings)
        sound = [number for number, point in enumerate(points) if "error" not in point]
        if not sound:
            return {"points": points, "error": points[0]["error"]}
        chosen = max(sound, key=lambda number: float(points[number]["valid_auc"]))  # the first of the best
        try:
            curve = arithmetic.curve(settings[chosen])
        except DataError as error:
            return {"points": points, "error": f"the setting chosen did not come through again: {error}"}
        points[chosen]["seconds"] = curve["seconds"][-1]
        return {"points": points, "chosen": chosen, "curve": curve}

    def _settings(self, unit: Unit) -> list[Params]:
        """Those to try, in their order."""
        points = METHODS[unit["method"]].points(unit["mode"], unit["grid"])
        if unit["method"] not in TUNED_AFTER:
            return list(points)
        chosen = self.choices.get((TUNED_AFTER[unit["method"]], *_place(unit)))
        return [] if chosen is None else [{**chosen, **point} for point in points]


def choices(rows: Sequence[Row]) -> Choices:
    """What each method chose."""
    return {
        (row["method"], *_place(row)): row["points"][row["chosen"]]["params"]
        for row in rows
        if row["chosen"] is not None
    }


def _place(unit: Unit) -> tuple[Any, ...]:
    return unit["dataset"], unit["ratio"], unit["trial"]


def _one_class(parts: Parts) -> str | None:
    for name, rows in (("training", parts.train), ("validation", parts.valid), ("test", parts.test)):
        positives = int(np.count_nonzero(rows.labels > 0))
        if not 0 < positives < len(rows):
            return f"the {name} rows are of one class: {positives:,} of {len(rows):,} are positive"
    return None


# -- the two arithmetics


class Arithmetic(Protocol):
    def tried(self, settings: Sequence[Params]) -> list[Row]:
        """What came of each setting."""

    def curve(self, setting: Params) -> Row:
        """Test AUC and seconds of learning after growing numbers of rows."""

    def pace(self, settings: Sequence[Params]) -> float:
        """About how many seconds it takes to learn a row with each of the settings."""


def arithmetic_of(unit: Unit, parts: Parts) -> Arithmetic:
    kind = Published if unit["mode"] == PUBLISHED else Corrected
    return kind(unit["method"], parts)


@dataclass(frozen=True)
class Published:
    """The authors' code."""

    method: str
    parts: Parts

    def tried(self, settings: Sequence[Params]) -> list[Row]:
        return [self._point(setting) for setting in settings]

    def _point(self, setting: Params) -> Row:
        start = time.process_time()
        try:
            run = published.run(self.method, self.parts.train, setting)
            seconds = time.process_time() - start
            aucs = [self._auc(run, rows) for rows in (self.parts.valid, self.parts.test)]
        except DataError as error:
            return _failed(setting, error)
        return _point(setting, aucs, run.nonzeros, seconds)

    def curve(self, setting: Params) -> Row:
        rows = protocol.checkpoints(len(self.parts.train))
        curve = _Curve()
        for run in published.runs(self.method, self.parts.train, setting, rows):
            curve.stop(run.rows)
            curve.add(self._auc(run, self.parts.test))
        return curve.found

    def pace(self, settings: Sequence[Params]) -> float:
        looks = _looks(len(self.parts.train))
        runs = published.runs(self.method, self.parts.train, settings[len(settings) // 2], looks)
        return len(settings) * _timed(run.rows for run in runs)

    @staticmethod
    def _auc(run: published.Run, rows: Rows) -> float:
        return published.published_auc(rows.labels, rows.scores(run.weights))


@dataclass(frozen=True)
class Corrected:
    """Our learners."""

    method: str
    parts: Parts

    def tried(self, settings: Sequence[Params]) -> list[Row]:
        learners = [self._learner(setting) for setting in settings]
        if len(learners) == 1 or lane_of(learners[0]) is None:
            return [self._point(*one) for one in zip(settings, learners, strict=True)]
        points: list[Row] = []
        for first in range(0, len(learners), HEAT):
            points += self._heat(settings[first : first + HEAT], learners[first : first + HEAT])
        return points

    def curve(self, setting: Params) -> Row:
        return learned(self._learner(setting), self.parts)[1]

    def pace(self, settings: Sequence[Params]) -> float:
        learners = [self._learner(setting) for setting in settings]
        if lane_of(learners[0]) is None:
            model = _model(learners[len(learners) // 2], self.parts)
            return len(learners) * _timed(self._pieces(model.learn))
        lanes = Lanes(learners[:HEAT])
        kernel, state = LaneKernel(lanes), lanes.start(self.parts.train.n_features, largest=False)
        share = len(learners) / len(lanes.learners)
        return share * _timed(self._pieces(lambda piece: kernel.learn(state, piece, SCALES.index(SCALE))))

    def _pieces(self, learn: Callable[[Block], object]) -> Iterator[int]:
        """Learns more and more of the training rows; how many so far."""
        rows = 0
        for stop in _looks(len(self.parts.train)):
            learn(self.parts.blocks[0][rows:stop])
            yield (rows := stop)

    def _learner(self, setting: Params) -> Learner:
        return METHODS[self.method].learner(setting, len(self.parts.train))

    def _point(self, setting: Params, learner: Learner) -> Row:
        train, valid, test = self.parts.blocks
        start = time.process_time()
        try:
            model = _model(learner, self.parts)
            model.learn(train)
            seconds = time.process_time() - start
            aucs = [_auc(rows, model.score(rows)) for rows in (valid, test)]
        except DataError as error:
            return _failed(setting, error)
        return _point(setting, aucs, model.nonzeros, seconds)

    def _heat(self, settings: Sequence[Params], learners: Sequence[Learner]) -> list[Row]:
        train, valid, test = self.parts.blocks
        start = time.process_time()
        lanes = Lanes(learners)
        kernel, state = LaneKernel(lanes), lanes.start(self.parts.train.n_features, largest=False)
        for first in range(0, len(train), PIECE):
            piece = train[first : first + PIECE]
            count, _ = kernel.learn(state, piece, SCALES.index(SCALE))
            if count < len(piece):
                error = DataError(f"row {first + count} of the training rows is too large to learn in float32")
                return [_failed(setting, error) for setting in settings]
        seconds = (time.process_time() - start) / len(learners)
        scores = [kernel.score(state, rows, SCALES.index(SCALE)) for rows in (valid, test)]
        points = []
        for lane, (setting, learner) in enumerate(zip(settings, learners, strict=True)):
            try:
                aucs = [_auc(rows, found[:, lane]) for rows, found in zip((valid, test), scores, strict=True)]
            except DataError as error:
                points.append(_failed(setting, error))
                continue
            model = Model.from_state(
                learner, lanes.state(lane, state), scale=SCALE, n_features=self.parts.train.n_features
            )
            points.append(_point(setting, aucs, model.nonzeros, seconds))
        return points


# -- our own


def _untuned(unit: Unit, parts: Parts) -> Row:
    """A learner of ours as it is, nothing tuned, and cut to the size that the paper's FTRL-AUC had on the data."""
    method = METHODS[unit["method"]]
    if method.balanced:
        parts = dataclasses.replace(parts, balanced=True)
    train, valid, test = parts.blocks
    learner = method.learner({}, len(train))
    try:
        if unit["method"] == "race":
            start = time.process_time()
            racing = Racing("auto", scale=SCALE, threads=1)
            racing.learn(train)
            model = racing.finish().model
            seconds = time.process_time() - start
            # For its curve the winner runs again alone; the time is that of the whole race.
            _, curve = learned(model.learner, parts)
            share = seconds / max(curve["seconds"][-1], 1e-9)
            curve["seconds"] = [round(share * one, 6) for one in curve["seconds"]]
        else:
            model, curve = learned(learner, parts)
        settings = {"learner": model.leader.name, **model.leader.settings}
        aucs = [_auc(rows, model.score(rows)) for rows in (valid, test)]
        point = _point(settings, aucs, model.nonzeros, curve["seconds"][-1])
        ratios = numbers()["table2"]["sparse_ratio"].get(unit["dataset"])
        if ratios and unit["ratio"] is None:
            size = max(1, round(ratios["ftrl_auc"][0] * parts.train.n_features))
            point["at_published_size"] = _cut(model, size, parts)
    except DataError as error:
        return {"error": str(error)}
    return {"points": [point], "chosen": 0, "curve": curve}


def _cut(model: Model, size: int, parts: Parts) -> Row:
    """The AUC with so many weights: the largest kept, and with that budget while learning."""
    train, _, test = parts.blocks
    found = {"nonzeros": size, "pruned_test_auc": _auc(test, model.prune(nonzeros=size).score(test))}
    if isinstance(model.leader, DualAveraging):
        held = _model(dataclasses.replace(model.leader, budget=size), parts)
        held.learn(train)
        found["budget_test_auc"] = _auc(test, held.score(test))
    return found


def learned(learner: Learner, parts: Parts) -> tuple[Model, Row]:
    """A learner after the training rows, and its curve."""
    train, _, test = parts.blocks
    curve = _Curve()
    model = _model(learner, parts)
    rows = 0
    for stop in protocol.checkpoints(len(train)):
        model.learn(train[rows:stop])
        rows = stop
        curve.stop(rows)
        curve.add(_auc(test, model.score(test)))
    return model, curve.found


class _Curve:
    """Test AUC against rows and seconds; the clock stands while it is evaluated."""

    def __init__(self) -> None:
        self.found: Row = {"rows": [], "seconds": [], "test_auc": []}
        self._spent = 0.0
        self._start = time.process_time()

    def stop(self, rows: int) -> None:
        self._spent += time.process_time() - self._start
        self.found["rows"].append(rows)
        self.found["seconds"].append(round(self._spent, 6))

    def add(self, auc: float) -> None:
        self.found["test_auc"].append(auc)
        self._start = time.process_time()


def _model(learner: Learner, parts: Parts) -> Model:
    return Model(learner, scale=SCALE, n_features=parts.train.n_features)


def _auc(rows: Block, scores: NDArray[Any]) -> float:
    assert rows.labels is not None
    return float(auc(rows.labels, np.ascontiguousarray(scores)))


def _point(setting: Mapping[str, Any], aucs: Sequence[float], nonzeros: int, seconds: float) -> Row:
    valid, test = aucs
    came = {"valid_auc": valid, "test_auc": test, "nonzeros": nonzeros, "seconds": round(seconds, 6)}
    return {"params": dict(setting), **came}


def _failed(setting: Params, error: DataError) -> Row:
    nothing = {"valid_auc": None, "test_auc": None, "nonzeros": None, "seconds": None}
    return {"params": dict(setting), **nothing, "error": str(error)}


def _timed(learned: Iterable[int]) -> float:
    """Seconds a row, of something that says how many rows it has learned. What goes before the first is not counted."""
    first, start, pace = 0, 0.0, 0.0
    for rows in learned:
        now = time.process_time()
        if not first:
            first, start = rows, now
            continue
        pace = (now - start) / (rows - first)
        if now - start > PROBE:
            break
    return pace


def _looks(rows: int) -> list[int]:
    """After how many rows to look at the clock."""
    looks, stop = [], FIRST_PROBE
    while stop < rows:
        looks.append(stop)
        stop *= 2
    return [*looks, rows]


# -- how long it will take


class Estimate:
    """About how many seconds units take: each method is timed on the first rows of the data."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources
        self._known: dict[tuple[Any, ...], float] = {}

    def __call__(self, unit: Unit) -> float:
        key = tuple(unit[word] for word in ("dataset", "ratio", "method", "mode", "grid"))
        if key not in self._known:
            self._known[key] = self._seconds(unit)
        return self._known[key]

    def _seconds(self, unit: Unit) -> float:
        _, parts = trial_of(self._sources[unit["dataset"]], unit["ratio"], 0)
        rows = len(parts.train) + len(parts.valid) + len(parts.test)
        settings = list(METHODS[unit["method"]].points(unit["mode"], unit["grid"]))
        if unit["method"] in TUNED_AFTER:
            first = METHODS[TUNED_AFTER[unit["method"]]].points(unit["mode"], unit["grid"])[0]
            settings = [{**first, **setting} for setting in settings]
        try:
            pace = arithmetic_of(unit, parts).pace(settings)
        except DataError:  # it says so itself when its turn comes
            return 0.0
        return pace * (1 + 1 / len(settings)) * rows
