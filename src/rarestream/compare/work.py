"""One unit of a comparison: a method in a trial. It learns, is tuned, learns alone, and is tested.

Every setting learns the training rows once, in their order; the one with the largest AUC on the validation rows is
chosen, the first of equals. FTRL and dual averaging learn all their settings in lanes, in one pass. The chosen setting
then learns the same rows again, alone and from nothing: that run gives the numbers of the test, the time and the
memory; and once more in small pieces, for the curve. Time is that of learning only, on one core.
"""

from __future__ import annotations

import contextlib
import functools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.compare.methods import METHODS, Method, Params, Size
from rarestream.compare.scorers import Scorer
from rarestream.errors import DataError
from rarestream.evaluate import path
from rarestream.learners.lanes import lane_of
from rarestream.metrics import auc
from rarestream.pruning import FIRST, spread
from rarestream.race.runners import LaneRunner
from rarestream.reproduce.protocol import Split, checkpoints
from rarestream.trials import Unit

BLOCK = 8192  # rows learned at once
SIZES = 20  # of the curve of AUC against size: the same in all trials, and the full one
GROUPS = 20  # of test rows, for the error of a single trial
FAILURES = (ValueError, MemoryError)  # steps too long for these rows, as ours and others say it; a state too large
ARRAYS = ("indptr", "indices", "values", "labels", "importances")


class Parts(NamedTuple):
    """The rows of a trial."""

    train: Block
    valid: Block
    test: Block

    @property
    def size(self) -> Size:
        return Size(len(self.train), self.train.width, self.train.nonzeros)


@dataclass(frozen=True)
class Work:
    """Does units. The rows stand in a folder, one file an array, so that processes share them."""

    folder: str
    settings: int
    scale: str
    seed: int | None  # of the permutations; None: the rows keep their order

    def __call__(self, unit: Unit) -> dict[str, Any]:
        parts = _parts(self.folder, unit["trial"], self.seed)
        method = next(method for method in METHODS.values() if method.word == unit["method"])
        return done(method, parts, self.settings, self.scale)


def put(block: Block, folder: str) -> None:
    """The rows where processes find them."""
    for name in ARRAYS:
        if getattr(block, name) is not None:
            np.save(Path(folder) / name, getattr(block, name))


def got(folder: str) -> Block:
    """The rows, read from the disk as they are needed."""
    arrays = {
        name: np.load(place, mmap_mode="r") for name in ARRAYS if (place := Path(folder) / f"{name}.npy").exists()
    }
    return Block(**arrays, width=int(arrays["indices"].max(initial=-1)) + 1)


@functools.lru_cache(maxsize=1)  # units come trial by trial
def _parts(folder: str, trial: int, seed: int | None) -> Parts:
    block = got(folder)
    return Parts(*(block.take(rows) for rows in split(len(block), trial, seed)))


def split(n: int, trial: int, seed: int | None) -> Split:
    """The rows of a trial: 4/6 to learn, 1/6 to choose settings by, 1/6 to test, of a permutation; None: in order."""
    order = np.arange(n)
    if seed is not None:
        order = np.random.default_rng([seed, trial]).permutation(n)
    return Split(*np.split(order, [n * 4 // 6, n * 5 // 6]))


def done(method: Method, parts: Parts, count: int, scale: str) -> dict[str, Any]:
    """What a row of results says of a method in a trial."""
    if method.outside is not None:
        parts = scaled(parts, scale)
    if method.balanced:
        parts = parts._replace(train=parts.train.balanced())
    size = parts.size
    settings = method.settings(count, size)
    row: dict[str, Any] = {
        "label": method.label,
        "points": [],
        "chosen": None,
        "curve": None,
        "sizes": None,
        "n_train": size.rows,
        "n_test": len(parts.test),
        "n_features": size.features,
        "data": "own",
        "error": None,
    }
    row["points"] = points = _points(method, settings, parts, scale) if len(settings) > 1 else [_point(settings[0])]
    known = [one["valid_auc"] for one in points if one["valid_auc"] is not None]
    if len(settings) > 1 and not known:
        return {**row, "error": points[0]["error"]}
    chosen = next(at for at, one in enumerate(points) if not known or one["valid_auc"] == max(known))
    try:
        return {**row, **_alone(method, settings[chosen], points[chosen], parts, scale), "chosen": chosen}
    except FAILURES as error:
        return {**row, "error": str(error) or "out of memory"}


def _point(params: Params, **found: Any) -> dict[str, Any]:
    empty = {"valid_auc": None, "test_auc": None, "nonzeros": None, "seconds": None, "error": None}
    return {"params": params, **empty, **found}


def _points(method: Method, settings: list[Params], parts: Parts, scale: str) -> list[dict[str, Any]]:
    """How every setting did."""
    learners = [learner for params in settings if (learner := method.made(params)) is not None]
    if len(learners) == len(settings) and all(lane_of(learner) is not None for learner in learners):
        runner = LaneRunner.new(range(len(learners)), learners, scale)
        runner.room(parts.train.width, parts.train.width)
        start = time.thread_time()
        try:
            for block in _blocks(parts.train):
                runner.learn(block)
        except DataError:
            pass  # a row too large for one of them stops all: each is tried alone, below
        else:
            seconds = (time.thread_time() - start) / len(settings)
            models = (runner.model(number, parts.train.width) for number in range(len(settings)))
            return [_judged(params, model, parts, seconds) for params, model in zip(settings, models, strict=True)]
    return [_tried(method, params, parts, scale) for params in settings]


def _tried(method: Method, params: Params, parts: Parts, scale: str) -> dict[str, Any]:
    try:
        scorer = method.scorer(params, scale, parts.size)
        return _judged(params, scorer, parts, _learned(scorer, parts.train))
    except FAILURES as error:
        return _point(params, error=str(error) or "out of memory")


def _judged(params: Params, scorer: Any, parts: Parts, seconds: float) -> dict[str, Any]:
    return _point(
        params,
        valid_auc=_auc(parts.valid, scorer.score(parts.valid)),
        test_auc=_auc(parts.test, scorer.score(parts.test)),
        nonzeros=scorer.nonzeros,
        seconds=seconds,
    )


def _alone(method: Method, params: Params, point: dict[str, Any], parts: Parts, scale: str) -> dict[str, Any]:
    """The runs of the chosen setting; its point gets the numbers of them, all but those of the validation rows."""
    _reset_peak()
    scorer = method.scorer(params, scale, parts.size)
    seconds = _learned(scorer, parts.train)
    state_bytes, peak = scorer.state_bytes, _peak()
    scorer.finish()
    scores, model = scorer.score(parts.test), scorer.model
    found = _auc(parts.test, scores)
    point.update(test_auc=found, nonzeros=scorer.nonzeros, seconds=seconds)
    if model is not None and not method.tuned:
        point["params"] = {"learner": model.leader.name, **model.leader.settings}
    if point["valid_auc"] is None:  # there was nothing to choose
        point["valid_auc"] = _auc(parts.valid, scorer.score(parts.valid))
    cut = None if model is None else path(model, parts.test, spread(FIRST, parts.size.features, SIZES))
    return {
        "curve": _curve(method.scorer(params, scale, parts.size), parts, seconds, found),
        "sizes": None if cut is None else {"nonzeros": list(cut.sizes), "test_auc": list(cut.aucs)},
        "without": _without(parts.test, scores),
        "state_bytes": state_bytes,
        "peak_bytes": peak,
    }


def _learned(scorer: Scorer, rows: Block) -> float:
    """Has it learn the rows; the seconds that took."""
    start = time.thread_time()  # of a core: others may be at work on it
    for block in [rows] if scorer.whole else _blocks(rows):
        scorer.learn(block)
    return time.thread_time() - start


def _curve(scorer: Scorer, parts: Parts, seconds: float, end: float) -> dict[str, Any]:
    """The AUC on the test rows at the paper's checkpoints.

    Learning in small pieces takes longer, for some by far; so the seconds are stretched to end with those of a run in
    large ones.
    """
    n = parts.size.rows
    marks = [mark for mark in checkpoints(n) if mark < n and not scorer.whole]
    times, aucs = [], []
    for begin, mark in zip([0, *marks], [*marks, n], strict=False):
        times.append(_learned(scorer, parts.train[begin:mark]) if marks else seconds)
        if mark < n:
            aucs.append(_auc(parts.test, scorer.score(parts.test)))
    spent = np.cumsum(times)
    stretched = spent * (seconds / spent[-1]) if spent[-1] else spent
    return {"rows": [*marks, n], "seconds": stretched.tolist(), "test_auc": [*aucs, end]}


def _blocks(rows: Block) -> list[Block]:
    return [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]


def _auc(rows: Block, scores: NDArray[np.float64]) -> float:
    assert rows.labels is not None
    return auc(rows.labels, scores, rows.importances)


def _without(rows: Block, scores: NDArray[np.float64]) -> list[float] | None:
    """The AUC without each of some runs of the test rows: the jackknife's error of a single trial, paired too.

    Runs of neighbours, because rows in order of time are not independent of one another. None if a class is so rare
    that all its rows stand in one run.
    """
    assert rows.labels is not None
    found = []
    for gone in np.array_split(np.arange(len(rows)), GROUPS):
        left = np.delete(np.arange(len(rows)), gone)
        labels = rows.labels[left]
        if not ((labels > 0).any() and (labels <= 0).any()):
            return None
        found.append(auc(labels, scores[left], None if rows.importances is None else rows.importances[left]))
    return found


def scaled(parts: Parts, scale: str) -> Parts:
    """The rows as a Model of that scale sees them, for those who do not scale; "max" by the rows that are learned."""
    if scale == "none":
        return parts
    largest = None
    if scale == "max":
        largest = np.zeros(parts.train.width, np.float32)
        np.maximum.at(largest, parts.train.indices, np.abs(parts.train.values))
        largest[largest == 0] = np.inf  # columns that no training row has
    return Parts(*(_unit(block, largest) for block in parts))


def _unit(block: Block, largest: NDArray[np.float32] | None) -> Block:
    values = block.values if largest is None else block.values / largest[block.indices]
    row_of = np.repeat(np.arange(len(block)), np.diff(block.indptr))
    norms = np.sqrt(np.bincount(row_of, np.square(values, dtype=np.float64), len(block)))
    norms[norms == 0] = 1
    return Block(
        block.indptr,
        block.indices,
        (values / norms[row_of]).astype(np.float32),
        block.width,
        block.labels,
        block.importances,
    )


# -- memory of this process, rows included, as Linux tells it

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _reset_peak() -> None:
    """Has the peak begin anew, where that can be had."""
    with contextlib.suppress(OSError):
        CLEAR.write_text("5")


def _peak() -> int | None:
    """Bytes; None where nobody can tell."""
    try:
        lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError):
        return None
