"""Splits: which rows a trial learns, tunes on and tests on, and after how many its curve has a point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block

PART_NAMES = {"train": "training", "valid": "validation", "test": "test"}


class Split(NamedTuple):
    """Row numbers of a trial; those of `train` in the order in which they are learned."""

    train: NDArray[np.int64]
    valid: NDArray[np.int64]
    test: NDArray[np.int64]


class TrialBlocks(NamedTuple):
    """The rows of a trial."""

    train: Block
    valid: Block
    test: Block


def cut(order: NDArray[np.int64]) -> Split:
    """Split row numbers into the first 4/6 to learn, 1/6 to tune on and 1/6 to test on."""
    n = len(order)
    return Split(*np.split(order, [n * 4 // 6, n * 5 // 6]))


def checkpoints(n: int) -> list[int]:
    """Return after how many of n rows a curve has a point: ever further apart, as in the FTRL-AUC paper, and at n."""
    points, start, end, step = {n}, 0, 1100, 50
    while start < n:
        first = -(-start // step) * step
        points.update(i + 1 for i in range(first, min(end, n), step))
        start, end, step = end, 10 * end + 100, 10 * step
    return sorted(points)
