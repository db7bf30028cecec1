"""Evaluation on rows that were not learned: AUC with its interval, average precision, recall at low FPR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.evaluate.resume import remembered
from rarestream.metrics import Estimate, auc_interval, average_precision, recall_at_fpr
from rarestream.metrics.kept import KeptScores
from rarestream.metrics.rows import both_classes
from rarestream.model import Model
from rarestream.readers.fingerprints import starts_alike
from rarestream.readers.sources import Source

FPRS = (0.001, 0.01, 0.05, 0.1)
KEPT = 10_000_000  # scores kept in memory, 90 MB; beyond that the AUC is streamed in fixed memory


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
    average_precision : float or None
        Average precision. None beyond 10 million rows, because it needs all scores in memory.
    recall_at_fpr : dict or None
        Recall at false-positive rates of 0.001, 0.01, 0.05 and 0.1. None beyond 10 million rows.
    """

    rows: int
    positives: int
    auc: Estimate
    average_precision: float | None
    recall_at_fpr: dict[float, float] | None

    def record(self) -> dict[str, Any]:
        """Return the result as a dict, under the names that `rarestream evaluate --json` prints."""
        recall = self.recall_at_fpr
        return {
            "rows": self.rows,
            "positives": self.positives,
            "auc": float(self.auc),
            "auc_low": self.auc.low,
            "auc_high": self.auc.high,
            "auc_bound": self.auc.bound,
            "average_precision": self.average_precision,
            "recall_at_fpr": None if recall is None else {f"{fpr:g}": share for fpr, share in recall.items()},
        }


class Evaluator:
    """Collects labels and scores, a batch at a time, for an Evaluation.

    Parameters
    ----------
    where : str
        What error messages start with.
    kept : int
        Maximum number of scores to keep in memory; beyond that the AUC is streamed.
    """

    def __init__(self, where: str = "evaluate", kept: int = KEPT) -> None:
        self._where = where
        self._kept = KeptScores(kept)
        self._rows = self._positives = 0

    def add(self, labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None) -> None:
        """Add a batch of labels (-1 and +1), scores and, optionally, importances."""
        signs = np.asarray(labels)
        self._rows += len(signs)
        self._positives += int(np.count_nonzero(signs > 0))
        self._kept.add(signs, np.asarray(scores), None if importances is None else np.asarray(importances))

    def result(self) -> Evaluation:
        """Return the evaluation of all batches. Raises DataError if a class is missing."""
        both_classes(self._where, self._rows, self._positives)
        if self._kept.streamed is not None:
            return Evaluation(self._rows, self._positives, self._kept.streamed.auc, None, None)
        labels, scores, importances = self._kept.joined()
        recall = recall_at_fpr(labels, scores, FPRS, importances)
        return Evaluation(
            self._rows,
            self._positives,
            auc_interval(labels, scores, importances),
            average_precision(labels, scores, importances),
            {fpr: float(share) for fpr, share in zip(FPRS, recall, strict=True)},
        )


def evaluate(model: Model, blocks: Iterable[Block]) -> Evaluation:
    """Score labelled rows and measure how well the scores rank them. The model is not changed.

    Parameters
    ----------
    model : Model
        The model to evaluate.
    blocks : iterable of Block
        Rows with labels, such as `read(...)`.

    Returns
    -------
    Evaluation
        AUC with its interval, average precision and recall.

    Raises
    ------
    DataError
        If rows have no labels, or a class is missing.
    """
    evaluator = Evaluator()
    for block in blocks:
        if block.labels is None:
            raise DataError("evaluate: the rows have no labels to compare with.")
        evaluator.add(block.labels, model.score(block), block.importances)
    return evaluator.result()


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
