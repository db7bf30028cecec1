"""Learners and groups of rows that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rarestream import Block, DualAveraging, FtrlAuc, FtrlProximal, Model
from rarestream.groups import Part, merge, train_group

# Every rule to merge, and every branch of a step.
LEARNERS = [
    FtrlAuc(),
    FtrlAuc(l1=0.05, l2=0.3),
    FtrlAuc(l1=0.6, beta=0.2, learning_rate=1.0),
    FtrlProximal(),
    FtrlProximal(l1=0.05, l2=0.3),
    FtrlProximal(l1=0.6, intercept=False),
    *(DualAveraging(loss=loss, **more) for loss in ("auc", "logistic") for more in (
        {},
        {"l1": 0.05},
        {"rate_power": 2.0, "l1": 0.3},
        {"rate_power": 0.0},
        {"rate_power": 1.0, "proximal": 1.0},
        {"power": 0.5, "proximal": 0.5},
        {"power": 1.0},
        {"power": 0.3, "proximal": 0.7, "l1": 0.02},
        {"evidence": 0.5, "proximal": 0.5},
        {"evidence": 1.0, "power": 0.5, "l1": 0.02},
        {"evidence": 0.3, "rate_power": 2.0},
    )),
]  # fmt: skip
IDS = [f"{learner.name}-{number}" for number, learner in enumerate(LEARNERS)]


def parts_of(state: bytes, groups: Sequence[Block], strength: float = 1.0) -> list[Part]:
    """What each group makes of a model, given as bytes."""
    total = sum(len(block) for block in groups)
    return [
        train_group(Model.from_bytes(state), [block], rows=len(block), of=total, strength=strength) for block in groups
    ]


def learn_round(model: Model, groups: Sequence[Block], strength: float = 1.0) -> Model:
    """The model after a round of groups."""
    return merge(model, parts_of(model.to_bytes(), groups, strength))


def weighted(block: Block, seed: int = 0) -> Block:
    """The rows with importances, some of them 0."""
    importances = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0, 3.0], len(block))
    return Block.of((block.indptr, block.indices, block.values), block.labels, importances)


def shares(block: Block, sizes: Sequence[int]) -> list[Block]:
    """Neighbouring rows as groups, of these relative sizes."""
    ends = np.cumsum(sizes) * len(block) // sum(sizes)
    return [block[start:stop] for start, stop in zip([0, *ends[:-1]], ends, strict=True)]
