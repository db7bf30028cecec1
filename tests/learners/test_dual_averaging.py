"""Dual averaging under a budget: never more weights than that, and those that are worth most."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import DualAveraging, Model
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
