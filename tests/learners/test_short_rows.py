"""Rows of up to sixteen entries are learned in a way of their own, where several follow each other and more entries come
after them. A block of one row never is, so rows one at a time must give the same bits as all at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Block, Model, make_learner
from rarestream._native import isa, set_isa
from tests.strategies import examples

FEATURES = 60
LEARNERS = [
    make_learner("dual-auc"),
    make_learner("dual-auc", l1=0.05, rate_power=1.3),
    make_learner("dual-auc", power=1.0, proximal=0.5),
    make_learner("dual-auc", evidence=0.5),
    make_learner("dual-auc", half_life=100),
    make_learner("dual-logistic"),
    make_learner("ftrl-auc", l1=0.05),
    make_learner("ftrl-proximal"),
    make_learner("adagrad", l1=1e-3),
]


@st.composite
def lengths(draw) -> list[int]:
    """Of rows: mostly around one and two groups of eight, in runs of short and of long ones."""
    some = st.sampled_from([0, 1, 2, 7, 8, 9, 15, 16]), st.sampled_from([0, 1, 16, 17, 18, 24, 25, 31, 32, 33, 40])
    runs = draw(st.lists(st.sampled_from([0, 0, 1]), min_size=1, max_size=4))
    return [k for kind in runs for k in draw(st.lists(some[kind], min_size=1, max_size=30))]


def rows_of(sizes: list[int], seed: int, weighted: bool, scale: str) -> Block:
    """Such rows; some have only zeros, some are so small or so large that float32 cannot hold their squares."""
    rng = np.random.default_rng(seed)
    indices = [np.sort(rng.choice(FEATURES, k, replace=False)) for k in sizes]
    sizes_of_values = rng.choice([1.0, 1.0, 1.0, 0.0, 1e-20, 1e-3] + [1e15] * (scale != "none"), len(sizes))
    values = rng.choice([1.0, 1.0, -1.0, 0.5, 0.0], sum(sizes)) * np.repeat(sizes_of_values, sizes)
    labels = np.where(rng.random(len(sizes)) < 0.4, 1, -1)
    importances = rng.choice([0.0, 0.5, 1.0, 3.0], len(sizes)) if weighted else None
    rows = (np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(indices), values)
    return Block.of(rows, labels, importances)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize("scale", ["unit", "max", "none"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(sizes=lengths(), seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
@settings(max_examples=examples(15), deadline=None)
def test_rows_of_any_length_give_the_same_bits_at_once_and_one_at_a_time(learner, scale, dtype, sizes, seed, weighted):
    block, chosen, found = rows_of(sizes, seed, weighted, scale), isa(), []
    try:
        for path in {"portable", chosen}:
            set_isa(path)
            whole, single = (Model(learner, dtype=dtype, scale=scale) for _ in range(2))
            found.append((whole.learn(block).tobytes(), whole.to_bytes()))
            scores = [single.learn(block[i : i + 1]) for i in range(len(sizes))]
            found.append((np.concatenate(scores).tobytes(), single.to_bytes()))
    finally:
        set_isa(chosen)
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_that_are_mostly_zero_change_nothing(dtype):
    """Rows beyond the margin: learned as if they were absent but for the class means."""
    rng = np.random.default_rng(4)
    labels = np.where(rng.random(2000) < 0.5, 1, -1)
    indices = np.stack([np.where(labels > 0, 0, 1), 2 + rng.integers(0, 5, 2000)], axis=1)
    block = Block.of((np.arange(0, 4001, 2), indices.ravel(), np.ones(4000)), labels)
    whole, single = (Model(make_learner("dual-auc", learning_rate=20), dtype=dtype) for _ in range(2))
    scores = whole.learn(block)
    below, above = whole.class_means
    assert ((scores < above - 1) | (scores > below + 1)).mean() > 0.5
    assert np.array_equal(scores, np.concatenate([single.learn(block[i : i + 1]) for i in range(2000)]))
    assert whole.to_bytes() == single.to_bytes()
