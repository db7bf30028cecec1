"""Evaluation on rows that were not learned: how well scores rank them, and how good the probabilities are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.evaluate.grouping import Groups
from rarestream.evaluate.resume import remembered
from rarestream.metrics import Estimate, StreamingAuc, auc_interval, average_precision, partial_auc, recall_at_fpr
from rarestream.metrics.groups import GroupAuc
from rarestream.metrics.kept import KeptScores
from rarestream.metrics.plots import (
    LiftCurve,
    PrecisionRecallCurve,
    RocCurve,
    ScoreHistogram,
    ranking_curves,
    score_histogram,
)
from rarestream.metrics.probability import (
    Losses,
    Reliability,
    brier_score,
    log_loss,
    normalised_entropy,
    reliability,
)
from rarestream.metrics.rows import as_rows, both_classes
from rarestream.model import Model
from rarestream.readers.fingerprints import starts_alike
from rarestream.readers.sources import Source

FPRS = (0.001, 0.01, 0.05, 0.1)
PARTIAL = (0.01, 0.1)  # false-positive rates up to which partial AUCs are computed
KEPT = 10_000_000  # scores kept in memory, 90 MB; beyond that the AUC is streamed in fixed memory

Probability = Callable[[NDArray[Any]], NDArray[np.float64]]  # of scores


class Curves(NamedTuple):
    """The curves of an evaluation, thinned to some hundred points."""

    roc: RocCurve
    precision_recall: PrecisionRecallCurve
    lift: LiftCurve
    histogram: ScoreHistogram


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`.

    Attributes
    ----------
    rows : int
        Number of rows.
    positives : int
        Number of positive rows.
    auc : Estimate
        AUC with its confidence interval.
    average_precision, average_precision_bound : float
        Average precision, and by how much it may be off: 0 up to 10 million rows, beyond which it is streamed.
    recall_at_fpr, recall_bound : dict
        Recall at false-positive rates of 0.001, 0.01, 0.05 and 0.1, and by how much each may be off.
    partial_auc, partial_bound : dict
        Partial AUC up to false-positive rates of 0.01 and 0.1, as `partial_auc` computes it, and by how much each may
        be off.
    log_loss, brier_score, normalised_entropy : float or None
        Of the probabilities. None if the model is not calibrated.
    calibration_error : float or None
        Expected calibration error, in 15 bins of equally many rows. None also beyond 10 million rows.
    reliability : Reliability or None
        Those bins.
    group_auc : GroupAuc or None
        AUC within groups of rows, if they were asked for. None also beyond 10 million rows.
    curves : Curves or None
        What `figure` draws, if it was asked for. None also beyond 10 million rows.
    """

    rows: int
    positives: int
    auc: Estimate
    average_precision: float
    recall_at_fpr: dict[float, float]
    average_precision_bound: float = 0.0
    recall_bound: dict[float, float] = field(default_factory=dict)
    partial_auc: dict[float, float] = field(default_factory=dict)
    partial_bound: dict[float, float] = field(default_factory=dict)
    log_loss: float | None = None
    brier_score: float | None = None
    normalised_entropy: float | None = None
    calibration_error: float | None = None
    reliability: Reliability | None = field(default=None, compare=False)
    group_auc: GroupAuc | None = field(default=None, compare=False)
    curves: Curves | None = field(default=None, compare=False)

    def record(self) -> dict[str, Any]:
        """Return the result as a dict, under the names that `rarestream evaluate --json` prints."""
        groups = self.group_auc
        return {
            "rows": self.rows,
            "positives": self.positives,
            "auc": float(self.auc),
            "auc_low": self.auc.low,
            "auc_high": self.auc.high,
            "auc_bound": self.auc.bound,
            "average_precision": self.average_precision,
            "recall_at_fpr": _by_rate(self.recall_at_fpr),
            "average_precision_bound": self.average_precision_bound,
            "recall_at_fpr_bound": _by_rate(self.recall_bound),
            "partial_auc": _by_rate(self.partial_auc),
            "partial_auc_bound": _by_rate(self.partial_bound),
            "log_loss": self.log_loss,
            "brier_score": self.brier_score,
            "normalised_entropy": self.normalised_entropy,
            "calibration_error": self.calibration_error,
            "calibration_bins": None if self.reliability is None else self.reliability.records(),
            "group_auc": None if groups is None else groups.value,
            "groups": None if groups is None else groups.groups,
            "groups_left_out": None if groups is None else groups.left_out,
            "group_rows_left_out": None if groups is None else groups.rows_left_out,
        }


def _by_rate(values: Mapping[float, float]) -> dict[str, float]:
    return {f"{rate:g}": value for rate, value in values.items()}


class Evaluator:
    """Collects labels and scores, a batch at a time, for an Evaluation.

    Parameters
    ----------
    where : str
        What error messages start with.
    kept : int
        Maximum number of scores to keep in memory; beyond that the AUC is streamed.
    probability : callable, optional
        Turns an array of scores into probabilities, which are then evaluated too.
    groups : bool, default False
        Whether rows have groups, within which the AUC is computed too.
    curves : bool, default False
        Whether to compute the curves that `figure` draws.
    """

    def __init__(
        self,
        where: str = "evaluate",
        kept: int = KEPT,
        *,
        probability: Probability | None = None,
        groups: bool = False,
        curves: bool = False,
    ) -> None:
        self._where = where
        self._kept = KeptScores(kept, self._count_losses)
        self._probability, self._curves = probability, curves
        self._losses = Losses()  # of the rows that are no longer kept
        self._groups = Groups() if groups else None
        self._rows = self._positives = 0

    def add(
        self,
        labels: ArrayLike,
        scores: ArrayLike,
        importances: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> None:
        """Add a batch of labels (-1 and +1), scores and, optionally, importances and groups."""
        signs = np.asarray(labels)
        self._rows += len(signs)
        self._positives += int(np.count_nonzero(signs > 0))
        if self._groups is not None and self._kept.streamed is None:
            self._groups.add(None if groups is None else np.asarray(groups), len(signs))
        self._kept.add(signs, np.asarray(scores), None if importances is None else np.asarray(importances))

    def result(self) -> Evaluation:
        """Return the evaluation of all batches. Raises DataError if a class is missing, or no row has a group."""
        both_classes(self._where, self._rows, self._positives)
        if self._kept.streamed is not None:
            return self._streamed(self._kept.streamed)
        labels, scores, importances = self._kept.joined()
        recall = recall_at_fpr(labels, scores, FPRS, importances)
        found = Evaluation(
            self._rows,
            self._positives,
            auc_interval(labels, scores, importances),
            average_precision(labels, scores, importances),
            {fpr: float(share) for fpr, share in zip(FPRS, recall, strict=True)},
            recall_bound=dict.fromkeys(FPRS, 0.0),
            partial_auc={rate: partial_auc(labels, scores, rate, importances=importances) for rate in PARTIAL},
            partial_bound=dict.fromkeys(PARTIAL, 0.0),
        )
        if self._probability is not None:
            rows = labels, self._probability(scores), importances
            bins = reliability(*rows)
            found = replace(
                found,
                log_loss=log_loss(*rows),
                brier_score=brier_score(*rows),
                normalised_entropy=normalised_entropy(*rows),
                calibration_error=bins.error,
                reliability=bins,
            )
        if self._groups is not None:
            found = replace(found, group_auc=self._groups.auc(self._where, labels, scores, importances))
        if self._curves:
            ranked = labels, scores, importances
            found = replace(found, curves=Curves(*ranking_curves(*ranked), score_histogram(*ranked)))
        return found

    def _streamed(self, sketch: StreamingAuc) -> Evaluation:
        precision = sketch.average_precision()
        recall = {rate: sketch.recall_at_fpr(rate) for rate in FPRS}
        partial = {rate: sketch.partial(rate) for rate in PARTIAL}
        found = Evaluation(
            self._rows,
            self._positives,
            sketch.auc,
            precision.value,
            {rate: one.value for rate, one in recall.items()},
            precision.bound,
            recall_bound={rate: one.bound for rate, one in recall.items()},
            partial_auc={rate: one.value for rate, one in partial.items()},
            partial_bound={rate: one.bound for rate, one in partial.items()},
        )
        if self._probability is None:
            return found
        sums = self._losses
        return replace(
            found,
            log_loss=sums.log_loss,
            brier_score=sums.brier_score,
            normalised_entropy=sums.normalised_entropy,
        )

    def _count_losses(
        self, labels: NDArray[Any], scores: NDArray[Any], importances: NDArray[np.float64] | None
    ) -> None:
        if self._probability is not None:
            self._losses.add(as_rows(self._where, labels, self._probability(scores), importances))


def evaluate(model: Model, blocks: Iterable[Block], *, groups: bool = False, curves: bool = False) -> Evaluation:
    """Score labelled rows and measure how well the scores rank them. The model is not changed.

    If the model is calibrated, its probabilities are measured too.

    Parameters
    ----------
    model : Model
        The model to evaluate.
    blocks : iterable of Block
        Rows with labels, such as `read(...)`.
    groups : bool, default False
        Whether to compute the AUC within groups of rows, those with equal `tags`: `read(..., tag=COLUMN)` for a table,
        svmlight's qid. Rows without a tag belong to no group.
    curves : bool, default False
        Whether to compute the curves that `figure` draws.

    Returns
    -------
    Evaluation
        AUC with its interval, partial AUC, average precision and recall, and what else was asked for.

    Raises
    ------
    DataError
        If rows have no labels, or a class is missing, or no group has both classes.
    """
    evaluator = Evaluator(probability=_probability(model), groups=groups, curves=curves)
    for block in blocks:
        if block.labels is None:
            raise DataError("evaluate: the rows have no labels to compare with.")
        evaluator.add(block.labels, model.score(block), block.importances, block.tags)
    return evaluator.result()


def _probability(model: Model) -> Probability | None:
    """Return what turns scores of a model into probabilities, as `Model.probability` does; None if nothing does."""
    calibration = model.calibration
    if calibration is None or not calibration.rows:
        return None
    return lambda scores: calibration.probability(scores, model.negatives_kept)


def has_learned(source: Mapping[str, Any], data: Sequence[Source]) -> bool:
    """Return whether a model has learned rows of one of these files.

    A file is recognised by its first text, whatever its name.

    Parameters
    ----------
    source : mapping
        `model.source`.
    data : sequence of Source
        The files.

    Returns
    -------
    bool
    """
    kept = remembered(source)
    files = [] if kept is None else [entry for entry in kept[0] if entry["size"]]
    return any(starts_alike(entry, file) for file in data for entry in files)
