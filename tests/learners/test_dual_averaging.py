"""Dual averaging: powers of weights, evidence, and a budget: never more weights than that, those that are worth most."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Block, DualAveraging, Model, ModelFileError, auc, make_learner, modelfile
from rarestream.evaluate import path
from tests.learners.textbook import among_the_most
from tests.strategies import block_of, blocks, examples, random_block


def test_three_rows_by_hand():
    learner = DualAveraging(learning_rate=1.0, beta=1.0, rate_power=2.0, budget=1)
    model = Model(learner, dtype="float64", scale="none")
    rows = block_of([{0: 1.0}, {0: 1.0, 1: 2.0}, {0: 2.0}], [1, -1, -1])
    assert model.learn(rows[:2]).tolist() == [0.0, 0.0]
    # c = 2 (1/2) max(0 - 0 + 1, 0) = 1: z = (1, 2), sqrt(v) = (1, 2), |z w| = (1/2, 4/3)
    assert model.coef.tolist() == [0.0, -2 / 3]
    assert model.learn(rows[2:]).tolist() == [0.0]  # of the other feature, whose weight is zero
    # c = 2 (1/3) max(0 - 0 + 1, 0) = 2/3: z = (7/3, 2), sqrt(v) = (5/3, 2), |z w| = (49/24, 4/3)
    np.testing.assert_allclose(model.coef, [-7 / 8, 0.0], rtol=1e-15)
    assert model.score_one([0, 1], [1.0, 1.0]) == pytest.approx(-7 / 8)


LOSS = pytest.mark.parametrize("loss", ["auc", "logistic"])


def worth(model: Model) -> np.ndarray:
    z, n = model._engine.state.table[: model.n_features].T.astype(float)
    return model.learner.learning_rate * z**2 / (model.learner.beta + n)


@LOSS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", ["unit", "max", "none"])
@given(block=blocks(features=40, importances=True), budget=st.integers(1, 20))
@settings(max_examples=examples(30), deadline=None)
def test_after_every_row_no_more_weights_live_than_the_budget_says(loss, dtype, scale, block, budget):
    model = Model(DualAveraging(loss=loss, budget=budget), dtype=dtype, scale=scale)
    for i in range(len(block)):
        model.learn(block[i : i + 1])
        assert model.nonzeros <= budget
        assert np.count_nonzero(model.coef) == model.nonzeros
    assert Model.from_bytes(model.to_bytes("scoring")).nonzeros == model.nonzeros
    living, all_worth = model.weights().weight != 0, worth(model)
    if living.any() and not living.all():
        assert all_worth[living].min() >= all_worth[~living].max()


@LOSS
def test_the_budget_is_used_but_for_a_rung(loss):
    model = Model(DualAveraging(loss=loss, budget=50), dtype="float64")
    model.learn(random_block(2000, 500, 20))
    assert np.array_equal(model.weights().weight != 0, among_the_most(worth(model), 50))
    assert 45 <= model.nonzeros <= 50


@LOSS
@pytest.mark.parametrize("scale", ["unit", "max"])
def test_a_budget_that_is_never_reached_changes_nothing(loss, scale):
    block = random_block(500, 60, 8)
    free, held = (Model(DualAveraging(loss=loss, budget=b), dtype="float64", scale=scale) for b in (0, 60))
    np.testing.assert_allclose(held.learn(block), free.learn(block), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(held.coef, free.coef, rtol=1e-9)
    assert held.nonzeros == free.nonzeros


def test_features_that_tie_live_or_die_together():
    model = Model(DualAveraging(budget=2))
    model.learn(block_of([{0: 1.0, 1: 1.0, 2: 1.0}, {3: 1.0}], [1, -1]))  # 3 alone has learned anything
    assert np.flatnonzero(model.coef).tolist() == [3]
    model.learn(block_of([{0: 1.0, 1: 1.0, 2: -1.0}] * 3, [1] * 3))  # three equals, room for two
    assert np.flatnonzero(model.coef).tolist() == [3]


def test_sums_go_on_while_a_weight_is_zero():
    """So a feature can come back: z and n do not know of the budget, as long as no score does."""
    rows = block_of([{0: 1.0}, {1: 1.0}, {2: 1.0}, {3: 1.0}] * 5, [1, -1, 1, -1] * 5)
    free, held = Model(DualAveraging(loss="logistic")), Model(DualAveraging(loss="logistic", budget=1))
    free.learn(rows[:4])
    held.learn(rows[:4])
    assert np.array_equal(free._engine.state.table[:4], held._engine.state.table[:4])


def test_files_keep_nothing_but_what_all_keep():
    block = random_block(200, 60, 8)
    free, held = Model(DualAveraging()), Model(DualAveraging(budget=10))
    free.learn(block)
    held.learn(block)
    assert abs(len(held.to_bytes()) - len(free.to_bytes())) < 1000
    assert len(held.to_bytes("scoring")) < len(free.to_bytes("scoring"))


@pytest.mark.parametrize("budget", [-1, 1.5, "many", 2**31])
def test_a_budget_is_a_whole_number(budget):
    with pytest.raises(ValueError, match=r"DualAveraging: budget must be a"):
        DualAveraging(budget=budget)


def test_a_budget_beside_l1_is_refused():
    with pytest.raises(ValueError, match=r"budget and l1 cannot be combined.* got budget=10 and l1=0\.1"):
        DualAveraging(budget=10, l1=0.1)


def test_a_power_and_a_proximal_share_by_hand():
    learner = DualAveraging(learning_rate=2.0, beta=1.0, rate_power=2.0, power=1.0, proximal=0.5)
    model = Model(learner, dtype="float64", scale="none")
    rows = block_of([{1: 1.0}, {0: 3.0}, {0: 1.0}], [1, -1, -1])
    model.learn(rows[:2])
    # c = 2 (1/2) max(0 - 0 + 1, 0) = 1: z = 3, sqrt(v) = 3, g = 3 / (1 + 3), w = -2 g |g|
    assert model.coef.tolist() == [-2 * 0.75**2, 0.0]
    assert model.learn(rows[2:]).tolist() == [-2 * 0.75**2]
    # the score is beyond the margin of the positive's mean 0: the slope is 0
    assert model.coef.tolist() == [-2 * 0.75**2, 0.0]
    model.learn(block_of([{0: 1.0}], [1]))
    # p = 2/4, b = (0 - 2 0.75^2) / 2, c = 2 (1/2) min(s - b - 1, 0)
    s = -2 * 0.75**2
    c = s - s / 2 - 1
    n = np.sqrt(9 + c * c)
    g = (3 + c + 0.5 * (n - 3) * 0.75) / (1 + n)
    np.testing.assert_allclose(model.coef, [-2 * g * abs(g), 0.0], rtol=1e-15)


@pytest.mark.parametrize("loss", ["auc", "logistic"])
def test_ftrl_proximal_is_the_whole_proximal_share(loss):
    """With r = 2 and the logistic loss it is FTRL-Proximal, but for the last bits."""
    block = random_block(300, 60, 8)
    full = Model(DualAveraging(loss=loss, proximal=1.0, rate_power=2.0, beta=1.0, learning_rate=0.5), dtype="float64")
    twin = make_learner("ftrl-proximal" if loss == "logistic" else "ftrl-auc", beta=1.0, learning_rate=0.5, l1=0.0)
    other = Model(twin, dtype="float64")
    found, expected = full.learn(block), other.learn(block)
    if loss == "logistic":
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    else:  # FTRL-AUC has the square in place of the hinge: the same as long as no row is beyond the margin
        np.testing.assert_allclose(found[:10], expected[:10], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", ["unit", "max"])
@pytest.mark.parametrize("setting", [{"power": 1.0}, {"evidence": 0.5}])
def test_smaller_models_of_a_power_or_evidence_keep_what_was_seen_more(scale, setting):
    model = Model(DualAveraging(loss="logistic", **setting), scale=scale)
    block = random_block(600, 80, 6)
    model.learn(block)
    n = model._engine.state.table[: model.n_features, 1].astype(float)
    keys = np.abs(model.weights().weight) * np.sqrt(n)
    np.testing.assert_array_equal(np.abs(model.rank_keys()), keys)
    small = model.prune(nonzeros=20)
    assert set(np.flatnonzero(small.weights().weight)) == set(np.argsort(-keys, kind="stable")[:20])
    found = path(model, block, sizes=[20])
    assert found[20] == pytest.approx(auc(block.labels, small.score(block)), abs=0)
    room = len(small.to_bytes("scoring"))
    assert model.prune(bytes=room).nonzeros == 20
    plain = Model(DualAveraging(loss="logistic"), scale=scale)
    plain.learn(block)
    assert np.array_equal(plain.rank_keys(), plain.weights().weight)


@pytest.mark.parametrize(("name", "value"), [("power", 1.5), ("power", -0.1), ("proximal", 2), ("proximal", "much")])
def test_shares_are_between_0_and_1(name, value):
    with pytest.raises(ValueError, match=f"DualAveraging: {name} must be"):
        DualAveraging(**{name: value})


# -- evidence


def test_evidence_is_that_of_the_counts_before_a_row():
    learner = DualAveraging(loss="logistic", evidence=1.0)
    model = Model(learner, dtype="float64", scale="none")
    rows = block_of([{0: 1.0}, {0: 1.0, 1: 2.0}, {1: 1.0}, {}], [1, 1, -1, -1])
    model.learn(rows)
    table = model._engine.state.table
    assert table[:2, 2].tolist() == [2, 1]  # of the two positives
    assert table[:2, 3].tolist() == [0, 1]
    a, b = np.array([3, 2]) / 3, np.array([1, 2]) / 3  # N+ + 1 = N- + 1 = 3
    expected = -1.3 * table[:2, 0] / (0.03 + table[:2, 1]) * abs(a - b) / np.sqrt(a * b)
    assert np.allclose(model.weights().weight, expected, rtol=1e-12)
    assert model.weights().weight[1] == 0  # both classes have it alike


def test_entries_of_value_zero_are_not_counted():
    with_zeros, without = (Model(DualAveraging(loss="logistic", evidence=0.5)) for _ in range(2))
    with_zeros.learn(Block.of((np.array([0, 2, 4]), np.array([0, 1, 0, 1]), np.array([1.0, 0.0, 1.0, 0.0])), [1, -1]))
    without.learn(block_of([{0: 1.0}, {0: 1.0}], [1, -1]))
    assert np.array_equal(with_zeros._engine.state.table[0], without._engine.state.table[0])
    assert not with_zeros._engine.state.table[1].any()


def test_counts_in_float32_go_on_growing_beyond_what_it_can_count():
    """2^24 + 1 is no float32: such sums are rounded at random, and are right on average."""
    model = Model(DualAveraging(loss="logistic", evidence=0.5))
    model.learn(block_of([{0: 1.0}, {0: 1.0}], [1, -1]))
    model._engine.state.table[0, 3] = model._engine.state.tally[1] = 2.0**24
    rows = 20_000
    model.learn(block_of([{0: 1.0}] * rows, [-1] * rows))
    assert model._engine.state.table[0, 3] - 2**24 == pytest.approx(rows, rel=0.05)
    weighted = Model(DualAveraging(loss="logistic", evidence=0.5))
    block = block_of([{0: 1.0}] * rows, [-1] * rows)
    weighted.learn(dataclasses.replace(block, importances=np.full(rows, 0.3)))
    assert weighted._engine.state.table[0, 3] == pytest.approx(0.3 * rows, rel=0.001)


@pytest.mark.parametrize("other", [{"l1": 0.1}, {"evidence": 0.5}, {"half_life": 1000.0}])
def test_a_budget_goes_with_neither_l1_nor_evidence_nor_a_half_life(other):
    (name,) = other
    with pytest.raises(ValueError, match=f"budget and {name} cannot be combined; leave one of them 0"):
        DualAveraging(budget=5, **other)


def test_a_file_with_negative_counts_is_refused():
    model = Model(DualAveraging(loss="logistic", evidence=0.5))
    model.learn(random_block(50, 20, 4))
    header, arrays = modelfile.from_bytes(model.to_bytes())
    arrays = {name: array.copy() for name, array in arrays.items()}
    arrays["negatives"][0] = -1
    with pytest.raises(ModelFileError, match="'negatives' has negative entries"):
        Model.from_bytes(modelfile.to_bytes(header, arrays), "evil.rare")
