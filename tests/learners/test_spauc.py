"""SPAUC: rows worked by hand, its two ways to the same weights, and what it keeps of long streams."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream import Block, Model, Spauc
from tests.strategies import random_block


def test_three_rows_by_hand():
    model = Model(Spauc(mu=1.0, l1=0.25), dtype="float64", scale="none")
    # Row 1, a positive: p = 1, so the gradient is 0.
    assert model.learn_one([0], [1.0], 1) == 0
    # Row 2, a negative: p = 1/2, eta = 2/2; m+ = (1, 0), m- = (1, 2); s = a = b = 0, so c = 0 and v = 1/2.
    assert model.learn_one([0, 1], [1.0, 2.0], -1) == 0
    # g = -(m+ - m-) / 2 = (0, 1); w = soft(-g, 1/4).
    assert np.allclose(model.coef, [0, -3 / 4], rtol=0, atol=1e-15)
    # Row 3, a positive: p = 2/3, eta = 2/3; m+ = (1/2, 1/2); s = -3/4, a = -3/8, b = -3/2.
    assert model.learn_one([1], [1.0], 1) == -3 / 4
    # c = 2/3 (s - a) = -1/4; v = 4/9 (1 + b - a) = -1/18;
    # g = c (x - m+) - v (m+ - m-) = (1/8 - 1/36, -1/8 - 1/12); the first weight falls to soft(-7/108, 1/6) = 0.
    assert np.allclose(model.coef, [0, -3 / 4 + 2 / 3 * 5 / 24 + 1 / 6], rtol=0, atol=1e-15)
    assert model.nonzeros == 1


def test_the_mean_step_is_the_gradient_of_the_loss_over_all_pairs():
    """Rows of tiny importance move the weights, and nothing that the step depends on."""
    block, h = random_block(60, 8, 4), 1e-6
    model = Model(Spauc(mu=0.1), dtype="float64", scale="none", n_features=8)
    model.learn(block)
    w, rows, step = model.coef, dense(block, 8), h * 2 / (0.1 * 59 + 1)
    steps = []
    for i in range(len(block)):
        at = slice(block.indptr[i], block.indptr[i + 1])
        copy = Model.from_bytes(model.to_bytes())
        copy.learn_one(block.indices[at], block.values[at], int(block.labels[i]), h)
        steps.append((w - copy.coef) / step)
    pairs = (rows[block.labels > 0][:, None] - rows[block.labels < 0]).reshape(-1, 8)
    loss = 2 * ((pairs @ w - 1)[:, None] * pairs).mean(axis=0)
    p = np.mean(block.labels > 0)
    assert np.allclose(np.mean(steps, axis=0), p * (1 - p) * loss, atol=1e-5)


def test_a_span_and_a_pass_over_all_weights_agree_on_a_long_stream():
    """Long enough for u and M alpha to be written back into w."""
    rng, n = np.random.default_rng(1), 200_000
    labels = np.where(rng.random(n) < 0.5, 1, -1)
    values = np.stack([np.full(n, 0.6), rng.choice([0.25, -0.25], n) + 0.05 * labels], axis=1)
    block = Block.of((2 * np.arange(n + 1), np.tile([0, 1], n), values.ravel()), labels)
    span, passes = (
        Model(Spauc(mu=1e-12, l1=l1), dtype="float64", scale="none") for l1 in (0.0, np.finfo(float).smallest_normal)
    )
    assert abs(span.learn(block) - passes.learn(block)).max() < 1e-6
    sigma = dict(zip(span.learner.layout.numbers, span._engine.state.tally[6:], strict=True))["sigma"]
    assert sigma == 1  # 0 until it was


@pytest.mark.parametrize(("dtype", "precise"), [("float32", 1e-9), ("float64", 1e-12)])
@pytest.mark.parametrize("scale", ["unit", "max"])
def test_the_products_it_keeps_are_those_of_the_table(dtype, precise, scale):
    model = Model(Spauc(), dtype=dtype, scale=scale)
    model.learn(random_block(2000, 30, 6))
    table = model._engine.state.table[: model.n_features].astype(np.float64)
    u, sums = table[:, 0] + table[:, 1], table[:, 2:]
    numbers = dict(zip(model.learner.layout.numbers, model._engine.state.tally[6:], strict=True))
    assert np.allclose([numbers["u_neg"], numbers["u_pos"]], sums.T @ u, rtol=precise)
    gram = [[numbers["neg_neg"], numbers["neg_pos"]], [numbers["pos_neg"], numbers["pos_pos"]]]
    assert np.allclose(gram, sums.T @ sums, rtol=precise)


@pytest.mark.parametrize("l1", [0.0, 1e-3])
def test_sums_of_many_equal_values_do_not_stall_in_float32(l1):
    """Rounded to the nearest, 0.1 added to 100,000 adds 0.1016 or 0.0938."""
    n = 2_000_000
    block = Block.of((np.arange(n + 1), np.zeros(n, np.int64), np.full(n, 0.1)), np.ones(n))
    model = Model(Spauc(l1=l1), scale="none")
    model.learn(block)
    total = model._engine.state.table[0, list(model.learner.layout.columns).index("sum_pos")]
    assert abs(total / (0.1 * n) - 1) < 1e-3


def test_float32_follows_float64_when_u_and_its_opposite_grow():
    """Short steps leave weights small beside what u and the class sums add up to."""
    block = random_block(20_000, 12, 6)
    single, double = (Model(Spauc(mu=1.0), dtype=dtype) for dtype in ("float32", "float64"))
    assert np.allclose(single.learn(block), double.learn(block), atol=1e-5)
    u = abs(double._engine.state.table[: double.n_features, 0]).max()
    assert u > 100 * abs(double.coef).max()


def test_l1_zeroes_weights():
    block = random_block(500, 60, 8)
    found = []
    for l1 in (0.0, 0.01, 0.05):
        model = Model(Spauc(l1=l1))
        model.learn(block)
        found.append(model.nonzeros)
    assert found[0] > found[1] > found[2] > 0


def dense(block: Block, d: int) -> np.ndarray:
    rows = np.zeros((len(block), d))
    for i in range(len(block)):
        at = slice(block.indptr[i], block.indptr[i + 1])
        rows[i, block.indices[at]] = block.values[at]
    return rows
