"""Generated streams on which learning is measured: determined by their seed, with a planted signal.

    demo    the stream of `rarestream demo`: 24 fields, 300 columns with a weight, 2 % positives
    avazu   15 hashed fields with the cardinalities of a public click log (shapes.py), 17 % positives
    ctr     a weak signal: 4 % positives, small weights on some 100,000 columns, most of them rare
    drift   the demo's, but its weights turn over four times while it is learned

Each has so many rows to learn, then rows to select settings on, then rows to test on, of one distribution unless it
drifts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import shapes
from rarestream import Block, auc
from rarestream.evaluate.synthetic import Planted

VALIDATION, TEST = 100_000, 200_000  # rows
BLOCK = 8192
AVAZU = replace(shapes.SHAPES["avazu"], d=2**20, positives=0.17)


@dataclass(frozen=True)
class Recipe:
    name: str
    rows: int  # to learn before the first one that counts
    family: str


@dataclass(frozen=True, eq=False)
class Stream:
    """The rows of a stream in memory, in their order."""

    blocks: list[Block]
    learned: int  # rows before the first that counts
    validation: int
    test: int
    best: float | None  # AUC of the true log odds on the test rows, where they are known: no learner can be better


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("demo-300k", 300_000, "demo"),
        Recipe("demo-2M", 2_000_000, "demo"),
        Recipe("avazu-500k", 500_000, "avazu"),
        Recipe("avazu-2M", 2_000_000, "avazu"),
        Recipe("ctr-5M", 5_000_000, "ctr"),
        Recipe("drift-2M", 2_000_000, "drift"),
    )
}


def make(name: str, scale: float = 1.0, seed: int = 0) -> Stream:
    """Return a stream; with a smaller `scale` all its parts are shorter, and its weights drift faster."""
    recipe = RECIPES[name]
    learned, validation, test = (max(1, int(scale * rows)) for rows in (recipe.rows, VALIDATION, TEST))
    rows = learned + validation + test
    if recipe.family == "avazu":
        return Stream(cut(shapes.rows(AVAZU, rows, shapes.SEED + seed)), learned, validation, test, None)
    parts = list(planted(recipe.family, learned, seed).rows(rows))
    blocks = [part.block for part in parts]
    log_odds = np.concatenate([part.log_odds for part in parts])[-test:]
    return Stream(blocks, learned, validation, test, auc(labels(blocks)[-test:], log_odds))


def labels(blocks: list[Block]) -> NDArray[np.int8]:
    return np.concatenate([block.labels for block in blocks if block.labels is not None])


def planted(family: str, rows: int, seed: int) -> Planted:
    """The law of a stream of planted weights."""
    if family == "ctr":
        return Planted.plant(seed, positives=0.04, planted=120_000, strength=0.22, rarest=3e-6)
    return Planted.plant(seed, drift=max(1, rows // 4) if family == "drift" else 0)


def cut(block: Block) -> list[Block]:
    """Its rows in blocks."""
    return [block[start : start + BLOCK] for start in range(0, len(block), BLOCK)]
