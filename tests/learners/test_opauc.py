"""OPAUC: rows worked by hand, gradients of the loss over all pairs, and the sketch."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream import Block, DataError, Model, ModelFileError, Opauc, modelfile
from tests.learners.test_spauc import dense
from tests.learners.textbook import signs, textbook
from tests.strategies import block_of, random_block


def test_three_rows_by_hand():
    model = Model(Opauc(learning_rate=0.5, l2=1.0, rank=0), dtype="float64", scale="none")
    # Row 1, a positive: no negative to compare it with.
    assert model.learn_one([0], [1.0], 1) == 0
    # Row 2, a negative against the positive: m = (1, 0), C = 0, e = -1 - 0.
    assert model.learn_one([1], [2.0], -1) == 0
    # w = eta e (x - m) / (1 + eta lambda) = -1/2 (-1, 2) / (3/2).
    assert np.allclose(model.coef, [1 / 3, -2 / 3], rtol=0, atol=1e-15)
    # Row 3, a positive: m = (0, 2), C = 0, s = 1/3 - 2/3, <w, m> = -4/3, e = 1 - (-1/3 + 4/3) = 0: only the penalty.
    assert np.isclose(model.learn_one([0, 1], [1.0, 1.0], 1), -1 / 3)
    assert np.allclose(model.coef, [2 / 9, -4 / 9], rtol=0, atol=1e-15)
    # Row 4, a negative: m = (1, 1/2), C = [[0, 0], [0, 1/4]] of the rows (1, 0), (1, 1);
    # s = -8/9, <w, m> = 0, e = -1 + 8/9, C w = (0, -1/9).
    model.learn_one([1], [2.0], -1)
    w = (np.array([2 / 9, -4 / 9]) + 0.5 * (-1 / 9 * np.array([-1, 1.5]) + np.array([0, 1 / 9]))) / 1.5
    assert np.allclose(model.coef, w, rtol=0, atol=1e-15)


def test_the_mean_step_of_each_class_is_the_gradient_of_the_loss_over_all_pairs():
    """A row's step depends on the rows of the other class, which its being learned again does not change."""
    block, eta = random_block(60, 8, 4), 0.05
    model = Model(Opauc(learning_rate=eta, rank=0), dtype="float64", scale="none", n_features=8)
    model.learn(block)
    w, rows = model.coef, dense(block, 8)
    steps = []
    for i in range(len(block)):
        at = slice(block.indptr[i], block.indptr[i + 1])
        copy = Model.from_bytes(model.to_bytes())
        copy.learn_one(block.indices[at], block.values[at], int(block.labels[i]))
        steps.append((w - copy.coef) / eta)
    pairs = (rows[block.labels > 0][:, None] - rows[block.labels < 0]).reshape(-1, 8)
    loss = ((pairs @ w - 1)[:, None] * pairs).mean(axis=0)  # of (1 - <w, x+ - x->)^2 / 2
    for label in (1, -1):
        assert np.allclose(np.mean(np.array(steps)[block.labels == label], axis=0), loss, atol=1e-12)


def test_random_signs_have_the_moments_a_sketch_needs():
    drawn = np.array([signs(3, t, 100) for t in range(1, 4001)])
    assert abs(drawn.mean(axis=0)).max() < 5 / np.sqrt(4000)
    assert abs(drawn.T @ drawn / 4000 - np.eye(100)).max() < 5 / np.sqrt(4000)
    assert abs(drawn[1:].T @ drawn[:-1] / 4000).max() < 5 / np.sqrt(4000)


def test_a_wide_sketch_comes_close_to_the_covariances():
    block = random_block(1000, 30, 6)
    full, wide, narrow = (Model(Opauc(rank=rank), dtype="float64") for rank in (0, 400, 4))
    scores = full.learn(block)
    assert abs(wide.learn(block) - scores).mean() < abs(narrow.learn(block) - scores).mean() / 4
    assert abs(wide.progress.auc - full.progress.auc) < 0.01


def test_seeds_draw_other_sketches():
    block = random_block(200, 30, 6)
    one, same, other = (Model(Opauc(rank=4, seed=seed)).learn(block) for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_strong_penalty_is_written_back_before_its_factor_vanishes():
    block = random_block(400, 12, 5)
    learner = Opauc(l2=20.0, rank=5)
    model = Model(learner, dtype="float64")
    scores = model.learn(block)
    expected, weights, _, _ = textbook(learner, block, 12)
    assert abs(scores - expected).max() < 1e-12
    assert np.allclose(model.coef, weights, rtol=1e-9, atol=1e-15)
    assert model._engine.state.extra["span"][0] > 1e-9  # seven to the power of -400, were it kept


def test_a_penalty_beyond_all_measure_leaves_no_weights():
    for rank in (0, 5):
        model = Model(Opauc(l2=1e308, rank=rank))
        assert abs(model.learn(random_block(50, 12, 5))).max() < 1e-100
        assert abs(model.coef).max() < 1e-30


@pytest.mark.parametrize(("dtype", "precise"), [("float32", 1e-4), ("float64", 1e-12)])
@pytest.mark.parametrize("scale", ["unit", "max"])
def test_the_products_it_keeps_are_those_of_the_table(dtype, precise, scale):
    model = Model(Opauc(rank=6), dtype=dtype, scale=scale)
    model.learn(random_block(2000, 30, 6))
    table = model._engine.state.table[: model.n_features].astype(np.float64)
    u, M = table[:, 0] + table[:, 1], table[:, 2:]
    products, gram = model._engine.state.extra["span"][15:29], model._engine.state.extra["span"][29:].reshape(14, 14)
    assert np.allclose(products, M.T @ u, rtol=precise, atol=precise * abs(products).max())
    assert np.allclose(gram, M.T @ M, rtol=precise, atol=precise * abs(gram).max())


def test_covariances_in_full_are_refused_for_many_features():
    model = Model(Opauc(rank=0))
    model.learn(block_of([{0: 1.0}, {4999: 1.0}], [1, -1]))
    before = model.to_bytes()
    with pytest.raises(DataError, match=r"at most 5,000 features, got feature index 5000.*rank=50"):
        model.learn(block_of([{5000: 1.0}], [1]))
    assert model.to_bytes() == before
    assert model.score(block_of([{5000: 1.0}])) == 0


def test_room_for_features_is_no_room_for_their_pairs():
    block = random_block(100, 20, 4)
    plain, roomy = Model(Opauc(rank=0)), Model(Opauc(rank=0), n_features=1_000_000)
    assert np.array_equal(plain.learn(block), roomy.learn(block))
    assert roomy._engine.state.extra["pairs"].size == plain._engine.state.extra["pairs"].size == 2 * 24 * 24


def test_pairs_of_a_file_must_fit():
    model = Model(Opauc(rank=0))
    model.learn(random_block(20, 10, 4))
    header, arrays = modelfile.from_bytes(model.to_bytes(), "m")
    for pairs in (np.zeros((2, 10, 9), np.float32), np.zeros((2, 11, 11), np.float32), np.zeros((2, 10, 10))):
        damaged = modelfile.to_bytes(header, {**arrays, "more.pairs": pairs})
        with pytest.raises(ModelFileError, match="'pairs'"):
            Model.from_bytes(damaged)


def test_steps_too_long_end_in_an_error_and_not_in_infinity():
    block = Block.of((np.arange(3001), np.arange(3000) % 3, np.ones(3000)), np.where(np.arange(3000) % 2, 1, -1))
    for rank in (0, 5):
        model = Model(Opauc(learning_rate=50.0, rank=rank))
        with pytest.raises(DataError, match="its steps are too long"):
            model.learn(block)
        assert np.isfinite(model.coef).all()
        assert np.isfinite(model._engine.state.tally).all()
