"""The farm-ads experiments of the paper, run again as published: the same rows, settings and arithmetic.

Of the authors' result files, six on farm-ads survive: FTRL-AUC and FTRL-Proximal, on all rows and on rows with
positives cut down to 0.1 and 0.05 of the negatives. farm_ads.json keeps what they say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from rarestream.reproduce import protocol
from rarestream.reproduce.published import Run, published_auc, runs
from rarestream.reproduce.rows import Rows

TOLERANCE = 1e-5  # of an AUC


class Numbers(NamedTuple):
    nonzeros: int
    valid_auc: float
    test_auc: float


@dataclass(frozen=True)
class Trial:
    params: dict[str, float]
    published: Numbers
    ours: Numbers

    @property
    def valid_difference(self) -> float:
        return self.ours.valid_auc - self.published.valid_auc

    @property
    def test_difference(self) -> float:
        return self.ours.test_auc - self.published.test_auc

    @property
    def matches(self) -> bool:
        largest = max(abs(self.valid_difference), abs(self.test_difference))
        return self.ours.nonzeros == self.published.nonzeros and largest <= TOLERANCE


@dataclass(frozen=True)
class Experiment:
    method: str
    imbalance: float | None  # positives per negative; None: all rows
    trials: list[Trial]
    curve_difference: float  # the largest, of the mean test AUC at any checkpoint

    @property
    def matched(self) -> int:
        return sum(trial.matches for trial in self.trials)

    @property
    def matches(self) -> bool:
        return self.matched == len(self.trials) and self.curve_difference <= TOLERANCE


def experiments(rows: Rows) -> Iterator[Experiment]:
    """Each experiment run again on the rows of farm-ads, beside what was published of it."""
    published: dict[str, Any] = json.loads(files("rarestream.reproduce").joinpath("farm_ads.json").read_text("utf-8"))
    expected = tuple(published[name] for name in ("rows", "positives", "n_features"))
    found = (len(rows), int(np.count_nonzero(rows.labels > 0)), rows.n_features)
    if found != expected:
        said = ["{:,} rows, {:,} of them positive, with {:,} features".format(*shape) for shape in (found, expected)]
        raise protocol.DataSetError(f"farm-ads: does not match the paper's data: {said[0]}; the paper's has {said[1]}.")
    for experiment in published["experiments"]:
        yield _again(rows, experiment)


def _again(rows: Rows, published: dict[str, Any]) -> Experiment:
    splits = protocol.splits(len(rows))
    if published["imbalance"] is not None:
        kept, splits = protocol.imbalanced(rows.labels, published["imbalance"])
        rows = rows.take(kept)
    trials, curves = [], []
    for said, split in zip(published["trials"], splits, strict=True):
        train, valid, test = (rows.take(part) for part in split)
        curve = []
        for run in runs(published["method"], train, said["params"], protocol.checkpoints(len(train))):
            curve.append(_auc(run, test))
        ours = Numbers(run.nonzeros, _auc(run, valid), curve[-1])
        trials.append(Trial(said["params"], Numbers(said["nonzeros"], said["valid_auc"], said["test_auc"]), ours))
        curves.append(curve)
    gaps = np.abs(np.mean(curves, axis=0) - published["curve"])
    return Experiment(published["method"], published["imbalance"], trials, float(gaps.max()))


def _auc(run: Run, rows: Rows) -> float:
    return published_auc(rows.labels, rows.scores(run.weights))
