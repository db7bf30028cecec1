"""One trial of a method in a comparison: tune it, let the chosen setting learn alone, test it.

Every setting learns the training rows once, in their order; the one with the largest AUC on the validation rows is
chosen, the first of equals. FTRL and dual averaging learn all their settings in lanes, in one pass. The chosen setting
then learns the same rows again, alone and from the start: that run gives the numbers of the test, the time and the
memory; and once more in small pieces, for the curve. Time is that of learning only, on one core.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.compare.data import load_block, scaled, trial_blocks
from rarestream.compare.methods import METHODS, Method, Size
from rarestream.compare.scorers import Scorer
from rarestream.evaluate import path
from rarestream.learners import Learner
from rarestream.metrics import auc
from rarestream.pruning import FIRST, spread
from rarestream.race.fitting import fit_many
from rarestream.study.rows import CurvePoints, Point, TrialRow
from rarestream.study.splits import TrialBlocks
from rarestream.study.store import Unit
from rarestream.study.tuning import (
    Judged,
    Params,
    block_auc,
    clock,
    learning_curve,
    pieces,
    point,
    points_of_pass,
    run_best,
    try_setting,
)

BLOCK = 8192  # rows learned at once
SIZES = 20  # of the curve of AUC against size: the same in all trials, and the full one
GROUPS = 20  # of test rows, for the error of a single trial
FAILURES = (ValueError, MemoryError)  # steps too long for these rows, here or in scikit-learn; a state too large


@dataclass(frozen=True)
class Work:
    """Runs a unit, in any process; the rows are in a folder, so that processes share them."""

    folder: str
    settings: int
    scale: str
    seed: int | None  # of the permutations; None: the rows keep their order

    def __call__(self, unit: Unit) -> TrialRow:
        rows = _trial_blocks(self.folder, unit["trial"], self.seed)
        method = next(method for method in METHODS.values() if method.word == unit["method"])
        return run_trial(method, rows, self.settings, self.scale)


@lru_cache(maxsize=1)  # units come trial by trial
def _trial_blocks(folder: str, trial: int, seed: int | None) -> TrialBlocks:
    return trial_blocks(load_block(folder), trial, seed)


def run_trial(method: Method, rows: TrialBlocks, count: int, scale: str) -> TrialRow:
    """Tune a method over `count` settings, test the chosen one, and return the fields of the trial's row."""
    if method.outside is not None:
        rows = scaled(rows, scale)
    if method.balanced:
        rows = rows._replace(train=rows.train.balanced())
    trial = Trial(method, rows, scale)
    row: TrialRow = {
        "label": method.label,
        "sizes": None,
        "n_train": len(rows.train),
        "n_test": len(rows.test),
        "n_features": trial.size.features,
        "data": "own",
    }
    settings = method.settings(count, trial.size)
    return {**row, **run_best(settings, trial.try_settings(settings), trial.run_alone, FAILURES)}


@dataclass(frozen=True)
class Trial:
    """A method and the rows of a trial."""

    method: Method
    rows: TrialBlocks
    scale: str

    @property
    def size(self) -> Size:
        """The size of the training rows."""
        return Size.of(self.rows.train)

    def try_settings(self, settings: Sequence[Params]) -> list[Point]:
        """Return the point of each setting. A single one is not tried: there is nothing to choose."""
        if len(settings) == 1:
            return [point(settings[0])]
        learners = [learner for params in settings if (learner := self.method.make_learner(params)) is not None]
        if len(learners) == len(settings) and all(learner.lane() is not None for learner in learners):
            return self._try_in_lanes(settings, learners)
        return [try_setting(params, partial(self._fit, params), self._judged, FAILURES) for params in settings]

    def _try_in_lanes(self, settings: Sequence[Params], learners: Sequence[Learner]) -> list[Point]:
        """Try settings side by side in one pass over the training rows."""
        train = self.rows.train
        fits, seconds = fit_many(learners, lambda _: pieces(train, BLOCK), scale=self.scale, n_features=train.width)

        def judge(number: int) -> Judged:
            return self._judged(fits.model(number, train.width))

        return points_of_pass(settings, judge, seconds, FAILURES)

    def _fit(self, params: Params) -> Scorer:
        scorer = self._scorer(params)
        self._learn(scorer)
        return scorer

    def _scorer(self, params: Params) -> Scorer:
        return self.method.scorer(params, self.scale, self.size)

    def _learn(self, scorer: Scorer) -> float:
        """Learn the training rows, and return the seconds that took."""
        start = clock()
        for block in [self.rows.train] if scorer.whole else pieces(self.rows.train, BLOCK):
            scorer.learn(block)
        return clock() - start

    def _judged(self, scorer: Any) -> Judged:
        _, valid, test = self.rows
        return Judged(block_auc(valid, scorer.score(valid)), block_auc(test, scorer.score(test)), scorer.nonzeros)

    def run_alone(self, params: Params, point: Point) -> TrialRow:
        """Return the fields of the row about the chosen setting; its point gets the numbers of this run."""
        _reset_peak()
        scorer = self._scorer(params)
        seconds = self._learn(scorer)
        state_bytes, peak = scorer.state_bytes, _peak()
        scorer.finish()
        _, valid, test = self.rows
        scores, model = scorer.score(test), scorer.model
        test_auc = block_auc(test, scores)
        point["test_auc"], point["nonzeros"], point["seconds"] = test_auc, scorer.nonzeros, seconds
        if model is not None and not self.method.tuned:
            point["params"] = {"learner": model.leader.name, **model.leader.settings}
        if point["valid_auc"] is None:
            point["valid_auc"] = block_auc(valid, scorer.score(valid))
        sizes = None if model is None else path(model, test, spread(FIRST, self.size.features, SIZES))
        return {
            "curve": self._curve(self._scorer(params), seconds, test_auc),
            "sizes": None if sizes is None else {"nonzeros": list(sizes.sizes), "test_auc": list(sizes.aucs)},
            "without": _without(test, scores),
            "state_bytes": state_bytes,
            "peak_bytes": peak,
        }

    def _curve(self, scorer: Scorer, seconds: float, end: float) -> CurvePoints:
        """Return the test AUC at the checkpoints; a method that learns all rows at once has only the last."""
        train, _, test = self.rows
        if scorer.whole:
            return {"rows": [len(train)], "seconds": [seconds], "test_auc": [end]}
        return learning_curve(train, scorer.learn, lambda: block_auc(test, scorer.score(test)), end).points(seconds)


def _without(rows: Block, scores: NDArray[np.float64]) -> list[float] | None:
    """Return the AUC without each of some groups of test rows, for the jackknife's error of a single trial.

    Groups of neighbours, because rows in order of time are not independent of one another. None if a class is so rare
    that all its rows are in one group.
    """
    assert rows.labels is not None
    aucs = []
    for group in np.array_split(np.arange(len(rows)), GROUPS):
        left = np.delete(np.arange(len(rows)), group)
        labels = rows.labels[left]
        if not ((labels > 0).any() and (labels <= 0).any()):
            return None
        aucs.append(auc(labels, scores[left], None if rows.importances is None else rows.importances[left]))
    return aucs


# -- memory of this process, rows included, as Linux reports it

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _reset_peak() -> None:
    """Reset the peak, where the system allows it."""
    with contextlib.suppress(OSError):
        CLEAR.write_text("5")


def _peak() -> int | None:
    """Return the peak in bytes; None where the system does not report it."""
    try:
        lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError):
        return None
