"""How well scores rank rows that were not learned: AUC with its interval, average precision, recall at low FPR."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.metrics import Estimate, StreamingAuc, auc_interval, average_precision, recall_at_fpr
from rarestream.model import Model

FPRS = (0.001, 0.01, 0.05, 0.1)
KEPT = 10_000_000  # rows whose scores are kept, 90 MB; beyond that the AUC is streamed in fixed memory


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What `evaluate` found. Average precision and recall need every score, and are None beyond `KEPT` rows."""

    rows: int
    positives: int
    auc: Estimate
    average_precision: float | None
    recall_at_fpr: dict[float, float] | None

    def record(self) -> dict[str, Any]:
        """The findings under the names that `--json` prints."""
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
    """Takes labels and scores, a batch at a time, and says how well they agree."""

    def __init__(self, where: str = "evaluate", kept: int = KEPT) -> None:
        self._where = where
        self._room = kept
        self._batches: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]] | None = []
        self._streamed = StreamingAuc()
        self._rows = self._positives = 0

    def add(self, labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None) -> None:
        signs = np.asarray(labels)
        self._rows += len(signs)
        self._positives += int(np.count_nonzero(signs > 0))
        batch = (signs, np.asarray(scores), None if importances is None else np.asarray(importances))
        if self._batches is None:
            self._streamed.add(*batch)
            return
        self._batches.append(batch)
        if self._rows > self._room:
            batches, self._batches = self._batches, None
            for batch in batches:
                self._streamed.add(*batch)

    def result(self) -> Evaluation:
        if not 0 < self._positives < self._rows:
            one = "positive" if self._positives else "negative"
            what = f"all {self._rows:,} rows are {one}" if self._rows else "there are no rows"
            raise DataError(
                f"{self._where}: {what}; AUC compares positives with negatives. Evaluate on rows of both, and check "
                "which label counts as positive (--positive VALUE)."
            )
        if self._batches is None:
            return Evaluation(self._rows, self._positives, self._streamed.auc, None, None)
        labels, scores, importances = self._joined()
        recall = recall_at_fpr(labels, scores, FPRS, importances)
        return Evaluation(
            self._rows,
            self._positives,
            auc_interval(labels, scores, importances),
            average_precision(labels, scores, importances),
            {fpr: float(share) for fpr, share in zip(FPRS, recall, strict=True)},
        )

    def _joined(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
        assert self._batches
        labels, scores, importances = zip(*self._batches, strict=True)
        self._batches.clear()  # kept once only
        weights = None
        if any(part is not None for part in importances):
            weights = np.concatenate(
                [np.ones(len(mine)) if part is None else part for mine, part in zip(labels, importances, strict=True)]
            )
        whole = (np.concatenate(labels), np.concatenate(scores), weights)
        self._batches.append(whole)
        return whole


def evaluate(model: Model, blocks: Iterable[Block]) -> Evaluation:
    """Scores labelled rows and says how well the scores rank them. Changes nothing in the model."""
    evaluator = Evaluator()
    for block in blocks:
        if block.labels is None:
            raise DataError("evaluate: the rows have no labels to compare with.")
        evaluator.add(block.labels, model.score(block), block.importances)
    return evaluator.result()
