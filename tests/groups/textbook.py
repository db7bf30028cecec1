"""A round of groups once more, dense, slow and plain, in double precision: written only to be read, and to be agreed with.

The steps of a row are those of tests/learners/textbook.py.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import numpy as np

from rarestream import Block
from tests.learners.textbook import TWINS, Rows, Sums


def round_of_groups(learner, start: Sums, groups: Sequence[Block], scale: str, strength: float = 1.0) -> Sums:
    """What several groups make of a state, each from the same start, merged."""
    total, parts = sum(len(block) for block in groups), []
    for block in groups:
        part = copy.deepcopy(start)
        repeats = max(1.0, strength * total / len(block))
        parts.append((len(block) / total, learned(learner, part, block, scale, repeats)))
    return merged(start, parts)


def learned(learner, state: Sums, block: Block, scale: str, repeats: float = 1.0) -> Sums:
    """The state after some rows."""
    rows = Rows(block, len(state.z), scale)
    rows.largest = state.largest
    TWINS[type(learner)].run(learner, rows, state, repeats)
    state.largest = rows.largest
    return state


def weights(learner, state: Sums) -> np.ndarray:
    """The weights of scaled rows."""
    nothing = Block.of(([0], [], []), [])
    return TWINS[type(learner)].run(learner, Rows(nothing, len(state.z), "none"), copy.deepcopy(state))[1]


def merged(base: Sums, parts: Sequence[tuple[float, Sums]]) -> Sums:
    """One state of those of all groups, each with its share of the rows."""
    new = copy.deepcopy(base)
    for j in range(len(base.z)):
        new.largest[j] = max([base.largest[j], *(part.largest[j] for _, part in parts)])

        def unit(state: Sums, j: int = j) -> float:  # z is in units of the largest value, and so is the root of v
            return state.largest[j] / new.largest[j] if new.largest[j] > 0 else 1.0

        z0, v0 = base.z[j] * unit(base), base.v[j] * unit(base) ** 2
        new.z[j] = z0 + sum(share * (part.z[j] * unit(part) - z0) for share, part in parts)
        new.v[j] = v0 + sum(share * (part.v[j] * unit(part) ** 2 - v0) for share, part in parts)
        for y in (1, -1):
            new.having[y][j] = base.having[y][j] + sum(part.having[y][j] - base.having[y][j] for _, part in parts)
    for y in (1, -1):
        n, s = base.means.n[y], base.means.n[y] * base.means.mean[y]
        new.means.n[y] = n + sum(part.means.n[y] - n for _, part in parts)
        scores = s + sum(part.means.n[y] * part.means.mean[y] - s for _, part in parts)
        new.means.mean[y] = scores / new.means.n[y] if new.means.n[y] else 0.0
    new.bias.w = base.bias.w + sum(share * (part.bias.w - base.bias.w) for share, part in parts)
    new.bias.v = base.bias.v + sum(part.bias.v - base.bias.v for _, part in parts)
    return new


def tally(state: Sums) -> list[float]:
    """The numbers of TALLY."""
    means, bias = state.means, state.bias
    return [means.n[1], means.n[-1], means.mean[1], means.mean[-1], bias.w, math.sqrt(bias.v)]
