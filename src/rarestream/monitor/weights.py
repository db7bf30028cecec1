"""The largest weights of a model and how they move, read a part at a time so that no reading takes long."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.model import Model

PART = 1 << 16  # features whose weights are read at once: tens of microseconds
PARTS = 4  # of one call of `look`: about half a millisecond
FOLLOWED = 60  # largest weights that are kept, so that one that becomes large has a past
REST = 100  # times as long as reading took, before more is read: at most 1 % of the time
TRAIL = 40  # weights of the past that are kept of each
POINTS = 240  # of the number of non-zeros


class Weight(NamedTuple):
    """One of the largest weights."""

    name: str
    weight: float
    change: float | None  # since `since` seconds ago, or since it was first among the followed ones; None: just now
    trail: list[float | None]  # its past, oldest first


class LargestWeights:
    """Follows the number of non-zero weights of a model, and its largest ones.

    A model may have millions of weights, and learns while it is watched. So each call of `look` reads some of them;
    when all have been read, the result is replaced. It depends on when that was, and is no part of any saved state.
    """

    def __init__(self, shown: int = 15) -> None:
        self.shown = shown
        self._of: object = None
        self._forget()

    def _forget(self) -> None:
        self.nonzeros: int | None = None  # of the last time that all weights were read
        self.history: list[tuple[int, int]] = []  # rows, non-zeros
        self.top: list[Weight] = []
        self.since: float | None = None  # seconds that `change` is about
        self._looks: deque[tuple[float, dict[int, float]]] = deque(maxlen=TRAIL)
        self._read_at = -1  # model.rows, when all weights had been read the last time
        self._rest_until = 0.0
        self._restart()

    def _restart(self) -> None:
        self._at = self._count = 0
        self._features: NDArray[np.int64] = np.zeros(0, np.int64)
        self._weights: NDArray[np.float64] = np.zeros(0)

    def look(self, model: Model, parts: int = PARTS) -> bool:
        """Read some parts of the weights of a model; return whether that was the last of them."""
        if model is not self._of:  # another one answers now
            self._forget()
            self._of = model
        began = time.monotonic()
        if began < self._rest_until or not model.n_features or (not self._at and model.rows == self._read_at):
            return False
        if len(model.candidates) > 1:  # in a race the weights of all features are made for the first of them
            parts = model.n_features // PART + 1
        done = False
        while parts and not done:
            self._add(model.weights_between(self._at, self._at + PART))
            self._at += PART
            parts -= 1
            done = self._at >= model.n_features
        if done:
            self._finish(model)
        now = time.monotonic()
        self._rest_until = now + REST * (now - began)
        return done

    def read(self, model: Model) -> bool:
        """Return whether all weights of a model were read since it learned its last row."""
        return model is self._of and not self._at and model.rows == self._read_at

    def finish(self, model: Model) -> None:
        """Read all weights now, however long it takes: those of a model that has learned its last row."""
        self._restart()
        self._rest_until = 0.0
        self.look(model, model.n_features // PART + 1)

    def _add(self, part: NDArray[Any]) -> None:
        self._count += int(np.count_nonzero(part))
        sizes = np.abs(part)
        least = np.abs(self._weights).min() if len(self._weights) >= FOLLOWED else 0.0
        found = np.flatnonzero(sizes > least)
        if len(found) > FOLLOWED:
            found = found[np.argpartition(sizes[found], len(found) - FOLLOWED)[-FOLLOWED:]]
        if not len(found):
            return
        features = np.concatenate([self._features, found + self._at])
        weights = np.concatenate([self._weights, part[found].astype(np.float64)])
        order = np.lexsort((features, -np.abs(weights)))[:FOLLOWED]
        self._features, self._weights = features[order], weights[order]

    def _finish(self, model: Model) -> None:
        now = time.monotonic()
        self.nonzeros, self._read_at = self._count, model.rows
        if model.rows and (not self.history or self.history[-1][0] != model.rows):
            self.history.append((model.rows, self._count))
        if len(self.history) > POINTS:
            self.history = self.history[: POINTS // 2 : 2] + self.history[POINTS // 2 :]
        present = dict(zip(self._features.tolist(), self._weights.tolist(), strict=True))
        shown = list(present)[: self.shown]
        self.since = now - self._looks[0][0] if self._looks else None
        before: dict[int, float] = {}
        for _, look in self._looks:
            for feature in shown:
                if feature in look:
                    before.setdefault(feature, look[feature])
        self._looks.append((now, present))
        names = model.feature_names(np.array(shown, np.int32))
        self.top = [
            Weight(
                name,
                present[feature],
                present[feature] - before[feature] if feature in before else None,
                [look.get(feature) for _, look in self._looks],
            )
            for feature, name in zip(shown, names, strict=True)
        ]
        self._restart()
