"""The sums of x x' of each class in full, for learners of a few thousand features: native/second_moments.hpp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError, advice
from rarestream.learners.state import State

MAX_FEATURES = 5000  # two matrices of all pairs: 200 MB in float32
LANES = 8


def no_pairs(dtype: DTypeLike) -> dict[str, NDArray[Any]]:
    """Return the extra arrays before the first row. They grow with the rows, not with the reserved coordinates."""
    return {"pairs": np.zeros((2, 0, 0), dtype)}


def reserve_pairs(state: State, block: Block, who: str) -> State:
    """Return the state with room for the pairs of these rows."""
    room = state.extra["pairs"].shape[1]
    if block.width <= room:
        return state
    if block.width > MAX_FEATURES:
        raise DataError(
            f"{who}: rank=0 stores all pairs of at most {MAX_FEATURES:,} features, got feature index "
            f"{block.width - 1}. Use a covariance sketch, such as " + advice("rank=50.", "--set rank=50.")
        )
    return _placed(state, state.extra["pairs"], min(MAX_FEATURES, max(block.width, room * 3 // 2)))


def dump_pairs(state: State) -> dict[str, NDArray[Any]]:
    """Return the pairs as a file keeps them: those of the features seen."""
    pairs = state.extra["pairs"]
    seen = np.flatnonzero(pairs.diagonal(axis1=1, axis2=2).any(axis=0))
    size = seen[-1] + 1 if len(seen) else 0
    return {"pairs": np.ascontiguousarray(pairs[:, :size, :size])}


def load_pairs(state: State, saved: Mapping[str, NDArray[Any]]) -> State:
    """Return the state with the pairs of a file; ValueError or KeyError if they break a rule."""
    pairs, size = saved["pairs"], min(MAX_FEATURES, state.features)
    if pairs.dtype != state.table.dtype or pairs.ndim != 3 or pairs.shape[0] != 2:
        raise ValueError(f"array 'pairs' is {pairs.dtype}{list(pairs.shape)}")
    if pairs.shape[1] != pairs.shape[2] or pairs.shape[1] > size:
        raise ValueError(f"array 'pairs' is {list(pairs.shape)} for {size} features")
    return _placed(state, pairs, pairs.shape[1])


def _placed(state: State, pairs: NDArray[Any], room: int) -> State:
    """Return the state with these pairs in a square of that size or a little larger."""
    room = -(-room // LANES) * LANES
    wider = np.zeros((2, room, room), pairs.dtype)
    wider[:, : pairs.shape[1], : pairs.shape[2]] = pairs
    return state._replace(extra={**state.extra, "pairs": wider})
