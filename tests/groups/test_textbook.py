"""Groups that are learned and merged agree with the textbook form, number by number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Block, FtrlAuc, Model
from tests.groups.samples import IDS, LEARNERS, learn_round, shares, weighted
from tests.groups.textbook import learned, round_of_groups, tally, weights
from tests.learners.textbook import Sums
from tests.strategies import FEATURES, blocks, examples, random_block

EVERY = pytest.mark.parametrize("learner", LEARNERS, ids=IDS)
NEAR = {"rtol": 1e-9, "atol": 1e-9}


def assert_agree(model: Model, state: Sums) -> None:
    d, found = len(state.z), model._engine.state
    columns = found.table[:d].T
    expected = [state.z, np.sqrt(state.v), state.having[1], state.having[-1]][: len(columns)]
    for column, name, one in zip(columns, model.learner.layout.columns, expected, strict=True):
        np.testing.assert_allclose(column, one, **NEAR, err_msg=name)
    np.testing.assert_allclose(found.tally, tally(state), **NEAR)
    np.testing.assert_allclose(model.weights().weight[:d], weights(model.learner, state), **NEAR)
    if model.scale == "max":
        assert np.array_equal(found.largest[:d], state.largest)


@EVERY
@pytest.mark.parametrize("scale, importances", [("unit", False), ("none", True), ("max", True)])
def test_rounds_of_groups_agree_with_the_textbook(learner, scale, importances):
    rows = random_block(180, FEATURES, 4, seed=5)
    rows = weighted(rows) if importances else rows
    model, state = Model(learner, dtype="float64", scale=scale, n_features=FEATURES), Sums(learner, FEATURES)
    for number, sizes in enumerate([(1, 1, 1), (5, 1, 2, 2), (1, 3)]):
        groups = shares(rows[60 * number : 60 * (number + 1)], sizes)
        model, state = learn_round(model, groups), round_of_groups(learner, state, groups, scale)
        assert_agree(model, state)
    assert model.rows == 180


@EVERY
@given(first=blocks(importances=True), groups=st.lists(blocks(importances=True), min_size=2, max_size=4))
@settings(max_examples=examples(4))
def test_a_round_from_any_state_agrees_with_the_textbook(learner, first, groups):
    model, state = Model(learner, dtype="float64", scale="max", n_features=FEATURES), Sums(learner, FEATURES)
    model.learn(first)
    state = learned(learner, state, first, "max")
    assert_agree(learn_round(model, groups), round_of_groups(learner, state, groups, "max"))


@pytest.mark.parametrize("strength", [0.5, 0.25, 0.01])
def test_less_strength_makes_steps_shorter_but_never_below_those_of_the_rows(strength):
    learner, rows = FtrlAuc(), random_block(200, FEATURES, 4)
    groups = shares(rows, (3, 1))
    model = learn_round(Model(learner, dtype="float64"), groups, strength)
    assert_agree(model, round_of_groups(learner, Sums(learner, FEATURES), groups, "unit", strength))


def test_the_merged_sums_of_squares_are_those_of_all_rows():
    """With rate_power 0 v grows by x^2 whatever the weights are: then the merged n is that of learning in sequence."""
    rows = random_block(300, FEATURES, 4)
    for learner in (one for one in LEARNERS if getattr(one, "rate_power", None) == 0.0 and one.loss == "logistic"):
        alone = Model(learner, dtype="float64")
        alone.learn(rows)
        model = learn_round(Model(learner, dtype="float64"), shares(rows, (2, 1, 4)))
        np.testing.assert_allclose(*(one._engine.state.table[:FEATURES, 1] for one in (model, alone)), **NEAR)


def test_a_group_of_one_row_and_one_of_all_others():
    rows = random_block(100, FEATURES, 4)
    for learner in LEARNERS:
        groups: list[Block] = [rows[:1], rows[1:]]
        state = round_of_groups(learner, Sums(learner, FEATURES), groups, "unit")
        assert_agree(learn_round(Model(learner, dtype="float64", n_features=FEATURES), groups), state)
