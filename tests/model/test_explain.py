"""What each feature adds to a score."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream import Columns, Hashed, Model, _native, learner_names, make_learner
from tests.strategies import block_of, hashed_block, random_block


@pytest.mark.parametrize("learner", learner_names())
@pytest.mark.parametrize("scale", ["unit", "max", "none"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-12)])
def test_contributions_sum_to_the_score(learner, scale, dtype, tolerance):
    model = Model(make_learner(learner), scale=scale, dtype=dtype)
    model.learn(random_block(40, 20, 4))
    model.finish_race()
    rows = random_block(50, 40, 6, seed=5)  # features the model never saw, values larger than any before
    for each in (model, Model.from_bytes(model.to_bytes("scoring"))):
        for explanation, score in zip(each.explain(rows), each.score(rows), strict=True):
            added = [term.contribution for term in explanation.terms]
            assert explanation.score == score
            assert abs(sum(added) - score) <= tolerance * max(1e-30, sum(map(abs, added)))


def test_terms_are_the_features_of_the_row_the_largest_contribution_first():
    model = Model("dual-auc")
    model.learn(random_block(200, 20, 4))
    row = {3: 2.0, 7: -0.5, 12: 1.0, 99: 4.0}
    (explanation,) = model.explain(block_of([row]))
    assert {int(term.name): term.value for term in explanation.terms} == row
    sizes = [abs(term.contribution) for term in explanation.terms]
    assert sizes == sorted(sizes, reverse=True)
    norm = np.linalg.norm(list(row.values()))
    for term in explanation.terms:
        index = int(term.name)
        weight = model.coef[index] if index < model.n_features else 0
        assert term.weight == pytest.approx(weight / norm, rel=1e-12)
        assert term.contribution == term.value * term.weight
    assert model.explain_one(list(row), list(row.values())) == explanation


def test_an_empty_row_and_one_of_zeros_have_nothing_to_explain():
    model = Model("dual-auc", scale="max")
    model.learn(random_block(50, 20, 4))
    empty, zeros = model.explain(block_of([{}, {3: 0.0}]))
    assert empty == (0.0, ())
    assert zeros.score == 0
    assert [term.contribution for term in zeros.terms] == [0.0]
    assert model.explain(block_of([])) == []


def test_explaining_many_rows_and_one_by_one_is_the_same():
    model = Model("dual-auc", n_features=30_000)  # so many that the weights of a row are computed one by one
    model.learn(random_block(200, 200, 4))
    rows = random_block(200, 300, 20, seed=3)
    assert model.explain(rows) == [model.explain(rows[i : i + 1])[0] for i in range(len(rows))]


def test_columns_are_shown_as_their_file_counts_them():
    model = Model("dual-auc", features=Columns(1))
    model.learn(random_block(50, 20, 4))
    assert [term.name for term in model.explain_one([0], [1.0]).terms] == ["1"]


def test_hashed_features_are_shown_by_name():
    block = hashed_block(100, 12)
    model = Model("dual-auc")
    model.learn(block)
    names = {term.name for explanation in model.explain(block) for term in explanation.terms}
    assert names == {f"site = w{j}" for j in range(20)}
    stranger = hashed_block(100, 12, words=30)  # its space knows names that the model has never seen
    names = {term.name for explanation in model.explain(stranger) for term in explanation.terms}
    assert {"site = w3", "site = w27"} <= names
    nameless = hashed_block(100, 12, words=30, space=Hashed(12, names=False))
    names = {term.name for explanation in model.explain(nameless) for term in explanation.terms}
    assert "site = w3" in names
    assert f"slot {_native.feature_hash(b'site', b'w27') % 4096}" in names
