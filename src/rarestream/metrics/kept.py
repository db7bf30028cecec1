"""Scores as they come: all are kept while there is room, then they go into a streaming AUC of fixed memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.metrics.streaming import StreamingAuc

Batch = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]  # labels, scores, importances


class KeptScores:
    """Labels and scores, a batch at a time, of which up to `room` rows are kept."""

    def __init__(self, room: int) -> None:
        self.streamed: StreamingAuc | None = None  # where all rows went when there was no more room
        self._room = room
        self._batches: list[Batch] = []

    def add(self, labels: NDArray[Any], scores: NDArray[Any], importances: NDArray[Any] | None) -> None:
        self._batches.append((labels, scores, importances))
        self._room -= len(scores)
        if self._room < 0:
            if self.streamed is None:
                self.streamed = StreamingAuc()
            for batch in self._batches:
                self.streamed.add(*batch)
            self._batches.clear()

    def joined(self) -> Batch:
        """All rows as one batch; for scores that are all kept."""
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
