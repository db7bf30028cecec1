"""Hypothesis streams shared by all tests."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
from hypothesis import strategies as st

from rarestream import Block, Hashed, _native

FEATURES = 12


def examples(count: int) -> int:
    """How many examples a property is tried on: fewer under the sanitizers, which look for other things and are slow."""
    return max(2, count // 15) if "RARESTREAM_NATIVE" in os.environ else count


@st.composite
def blocks(draw, max_rows: int = 30, features: int = FEATURES, importances: bool = False) -> Block:
    """A short labelled stream: empty rows and full ones, signed and repeated values, runs of one class.

    Hypothesis draws a seed, the number of rows and the share of positives; NumPy draws the rest, which is ten times
    faster than drawing every number. A stream with fewer rows is the beginning of the longer one of the same seed, so a
    failure is still reduced to as few rows as show it.
    """
    seed = draw(st.integers(0, 2**32 - 1))
    n = draw(st.integers(1, max_rows))
    share = draw(st.sampled_from([0.5, 0.2, 0.8]))
    rng = np.random.default_rng(seed)
    density = rng.choice([0.0, 0.1, 0.25, 0.5, 1.0], max_rows)
    filled = (rng.random((max_rows, features)) < density[:, np.newaxis])[:n]
    values = rng.choice([1.0, -1.0, 0.5, 2.0, -0.25, 3.0, 0.125], (max_rows, features))[:n]
    labels = np.where(rng.random(max_rows) < share, 1, -1)[:n]
    weights = rng.choice([0.0, 0.5, 1.0, 2.0, 3.0], max_rows)[:n]
    indptr = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
    rows = (indptr, np.nonzero(filled)[1], values[filled])
    return Block.of(rows, labels, weights if importances else None)


def block_of(rows, labels=None, importances=None) -> Block:
    """A Block from a list of dicts {index: value}."""
    indptr = np.cumsum([0] + [len(row) for row in rows])
    indices = np.array([j for row in rows for j in row], np.int64)
    values = np.array([x for row in rows for x in row.values()], np.float64)
    return Block.of((indptr, indices, values), labels, importances)


def same_rows(one: Block, other: Block) -> None:
    """Assert that two blocks have the same bytes."""
    for field in ("indptr", "indices", "values", "labels", "importances"):
        first, second = getattr(one, field), getattr(other, field)
        assert (first is None) == (second is None), field
        assert first is None or first.tobytes() == second.tobytes(), field
    assert one.width == other.width


def random_block(n: int, d: int, k: int, seed: int = 0, share: float = 0.3) -> Block:
    """Zipf-like features with a planted signal: enough to learn from."""
    rng = np.random.default_rng(seed)
    planted = rng.normal(size=d) * (rng.random(d) < 0.5)
    popularity = 1.0 / (np.arange(d) + 3.0)
    rows, margins = [], []
    for _ in range(n):
        size = max(1, int(rng.integers(1, 2 * k)))
        at = rng.choice(d, size=min(size, d), replace=False, p=popularity / popularity.sum())
        x = rng.choice([1.0, 0.5, 2.0, -1.0], size=len(at))
        rows.append(dict(zip(at.tolist(), x.tolist(), strict=True)))
        margins.append(planted[at] @ x / np.linalg.norm(x))
    noisy = np.array(margins) + 0.3 * rng.normal(size=n)
    return block_of(rows, np.where(noisy > np.quantile(noisy, 1 - share), 1, -1))


def hashed_block(n: int, bits: int, k: int = 4, seed: int = 0, words: int = 20, space: Hashed | None = None) -> Block:
    """The rows of `random_block`, with feature j as the name w<j> of the namespace "site"."""
    space = space or Hashed(bits)
    rows = random_block(n, words, k, seed)
    names = _native.NewNames()
    slots = np.zeros(words, np.int64)
    for j in dict.fromkeys(rows.indices.tolist()):
        slots[j] = names.add(b"site", f"w{j}".encode()) % space.slots
    if space.names is not None:
        space.names.add(names)
    return dataclasses.replace(Block.of((rows.indptr, slots[rows.indices], rows.values), rows.labels), space=space)
