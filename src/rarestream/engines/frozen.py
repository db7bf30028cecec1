"""Frozen: the weights of a scoring-only model, without a state to learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import Block
from rarestream.engines.arrays import Arrays, load_largest, load_tally, load_weights
from rarestream.engines.base import Engine, GroupEngine, Learned, Weights
from rarestream.errors import ModelFileError, advice
from rarestream.learners import Learner
from rarestream.learners.state import SPARE, TALLY, zeros


class Frozen(Engine):
    """The weights of a model that was saved for scoring only.

    Parameters
    ----------
    learner : Learner
        The learner that made the weights.
    scale : str
        How rows are scaled.
    dtype : str
        That of the weights.
    n_features : int
        The number of features; the weights are zeros until `load` brings others.
    """

    resumable = False

    def __init__(self, learner: Learner, scale: str, dtype: str, n_features: int) -> None:
        super().__init__(learner, scale)
        self._dtype = dtype
        largest = zeros((n_features + SPARE,), np.float32) if scale == "max" else None
        self._weights = Weights(zeros((n_features + SPARE,), dtype), np.zeros(len(TALLY)), largest)

    @property
    def tally(self) -> NDArray[np.float64]:
        return self._weights.tally

    @property
    def largest(self) -> NDArray[np.float32] | None:
        return self._weights.largest

    @property
    def slots(self) -> int:
        return self._weights.slots

    @property
    def weight_dtype(self) -> np.dtype[Any]:
        return self._weights.weight.dtype

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._weights if array is not None)

    def learn(self, block: Block, scores: NDArray[np.float64]) -> Learned:
        raise self._refused("Model.learn")

    def in_groups(self) -> GroupEngine:
        raise self._refused("train_group")

    def with_half_life(self, half_life: float) -> Engine:
        raise self._refused("Model.with_half_life")

    def _refused(self, where: str) -> ModelFileError:
        other = advice("Load one saved with kind='resumable'", "Use one trained without --scoring-only")
        return ModelFileError(f"{where}: this model was saved for scoring only. {other} to continue.")

    def score(self, block: Block, scores: NDArray[np.float64]) -> int:
        weight, _, largest = self._weights
        return _native.score_weights(weight, largest, block.within(self._weights.slots), self.scale_code, scores)

    def one_row(
        self,
        gate: _native.Gate,
        progress: _native.StreamingSketch,
        calibration: NDArray[np.float64] | None,
        n_features: int,
    ) -> _native.OneRow | None:
        weight, _, largest = self._weights
        limit = min(n_features, self._weights.slots - SPARE)
        return _native.OneRow(weight, largest, self.scale_code, gate, progress, calibration, limit)

    def weights(self, start: int, stop: int) -> NDArray[Any]:
        return self._weights.weight[start:stop]

    def reserve(self, n_features: int, exactly: bool = False) -> None:
        """Features without a weight need no room."""

    def dump(self, n_features: int) -> dict[str, NDArray[Any]]:
        raise ModelFileError(
            "Model.save: a scoring-only model has no state to save; "
            + advice("pass kind='scoring'.", "use --scoring-only.")
        )

    def load(self, arrays: Arrays, n_features: int) -> None:
        tally, largest = load_tally(arrays), self._weights.largest
        self._weights = Weights(load_weights(arrays, self._dtype, n_features), tally.copy(), largest)
        load_largest(arrays, largest, n_features)
