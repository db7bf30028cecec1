"""Keeps scores in memory up to a limit; beyond it, they go into a streaming AUC of fixed memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.metrics.streaming import StreamingAuc

Batch = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]  # labels, scores, importances


class KeptScores:
    """Labels and scores, added a batch at a time.

    Parameters
    ----------
    limit : int or None
        Maximum number of rows to keep in memory; None: all.
    leaving : callable, optional
        Called with the labels, scores and importances of each batch that is no longer kept.
    """

    def __init__(self, limit: int | None, leaving: Callable[..., None] | None = None) -> None:
        self.streamed: StreamingAuc | None = None  # holds all rows once there are more than the limit
        self._free = math.inf if limit is None else limit
        self._leaving = leaving
        self._batches: list[Batch] = []

    def add(self, labels: NDArray[Any], scores: NDArray[Any], importances: NDArray[Any] | None) -> None:
        """Add a batch of rows."""
        self._batches.append((labels, scores, importances))
        self._free -= len(scores)
        if self._free < 0:
            if self.streamed is None:
                self.streamed = StreamingAuc()
            for batch in self._batches:
                self.streamed.add(*batch)
                if self._leaving is not None:
                    self._leaving(*batch)
            self._batches.clear()

    def joined(self) -> Batch:
        """Return all rows as one batch. Only if `streamed` is None."""
        if not self._batches:
            return np.zeros(0, np.int8), np.zeros(0), None
        labels, scores, importances = zip(*self._batches, strict=True)
        self._batches.clear()  # before the joined copy is made, so that rows are in memory once only
        weights = None
        if any(part is not None for part in importances):
            weights = np.concatenate(
                [np.ones(len(mine)) if part is None else part for mine, part in zip(labels, importances, strict=True)]
            )
        whole = (np.concatenate(labels), np.concatenate(scores), weights)
        self._batches.append(whole)
        return whole
