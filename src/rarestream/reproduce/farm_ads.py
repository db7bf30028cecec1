"""The farm-ads experiments of the paper, rerun as published: the same rows, settings and arithmetic.

Of the authors' result files, six on farm-ads survive: FTRL-AUC and FTRL-Proximal, on all rows and at positive:negative
ratios 0.1 and 0.05. farm_ads.json holds their numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from rarestream.reproduce import protocol
from rarestream.reproduce.published import Run, published_auc, runs
from rarestream.reproduce.rows import Rows
from rarestream.study.splits import checkpoints

TOLERANCE = 1e-5  # of an AUC


class Numbers(NamedTuple):
    """The numbers of a trial."""

    nonzeros: int
    valid_auc: float
    test_auc: float


@dataclass(frozen=True)
class Trial:
    """A trial, rerun."""

    params: dict[str, float]
    published: Numbers
    ours: Numbers

    @property
    def valid_difference(self) -> float:
        """Ours minus published, of the validation AUC."""
        return self.ours.valid_auc - self.published.valid_auc

    @property
    def test_difference(self) -> float:
        """Ours minus published, of the test AUC."""
        return self.ours.test_auc - self.published.test_auc

    @property
    def matches(self) -> bool:
        """Whether the non-zeros are the same, and the AUCs to 1e-5."""
        largest = max(abs(self.valid_difference), abs(self.test_difference))
        return self.ours.nonzeros == self.published.nonzeros and largest <= TOLERANCE


@dataclass(frozen=True)
class Experiment:
    """Ten trials of a method, rerun."""

    method: str
    imbalance: float | None  # positive:negative ratio; None: all rows
    trials: list[Trial]
    curve_difference: float  # the largest, of the mean test AUC at any checkpoint

    @property
    def matched(self) -> int:
        """How many trials match."""
        return sum(trial.matches for trial in self.trials)

    @property
    def matches(self) -> bool:
        """Whether all trials and the mean curve match."""
        return self.matched == len(self.trials) and self.curve_difference <= TOLERANCE


def experiments(rows: Rows) -> list[Experiment]:
    """Rerun each experiment on the rows of farm-ads, and return it beside what was published of it.

    Parameters
    ----------
    rows : Rows
        The rows of farm-ads, in the order of the file.

    Returns
    -------
    list of Experiment
        FTRL-AUC on all rows first.

    Raises
    ------
    DataSetError
        If the rows are not those of farm-ads.
    """
    published: dict[str, Any] = json.loads(files("rarestream.reproduce").joinpath("farm_ads.json").read_text("utf-8"))
    expected = tuple(published[name] for name in ("rows", "positives", "n_features"))
    found = (len(rows), int(np.count_nonzero(rows.labels > 0)), rows.n_features)
    if found != expected:
        shapes = ["{:,} rows, {:,} of them positive, with {:,} features".format(*shape) for shape in (found, expected)]
        raise protocol.DataSetError(
            f"farm-ads: does not match the paper's data: {shapes[0]}; the paper's has {shapes[1]}."
        )
    return [_rerun(rows, experiment) for experiment in published["experiments"]]


def _rerun(rows: Rows, published: dict[str, Any]) -> Experiment:
    rows, splits = protocol.trials(rows, published["imbalance"])
    trials, curves = [], []
    for paper, split in zip(published["trials"], splits, strict=True):
        train, valid, test = (rows.take(part) for part in split)
        curve = []
        for run in runs(published["method"], train, paper["params"], checkpoints(len(train))):
            curve.append(_auc(run, test))
        ours = Numbers(run.nonzeros, _auc(run, valid), curve[-1])
        trials.append(Trial(paper["params"], Numbers(paper["nonzeros"], paper["valid_auc"], paper["test_auc"]), ours))
        curves.append(curve)
    gaps = np.abs(np.mean(curves, axis=0) - published["curve"])
    return Experiment(published["method"], published["imbalance"], trials, float(gaps.max()))


def _auc(run: Run, rows: Rows) -> float:
    return published_auc(rows.labels, rows.scores(run.weights))


def records(done: Sequence[Experiment]) -> Iterator[dict[str, Any]]:
    """Yield a JSON object per trial, and one for all of them."""
    for experiment in done:
        for number, trial in enumerate(experiment.trials):
            yield {
                "event": "trial",
                "method": experiment.method,
                "imbalance": experiment.imbalance,
                "trial": number,
                "params": trial.params,
                "published": trial.published._asdict(),
                "ours": trial.ours._asdict(),
                "matches": trial.matches,
            }
    yield {
        "event": "done",
        "trials": sum(len(experiment.trials) for experiment in done),
        "matched": sum(experiment.matched for experiment in done),
        "curve_difference": max(experiment.curve_difference for experiment in done),
        "matches": all(experiment.matches for experiment in done),
    }
