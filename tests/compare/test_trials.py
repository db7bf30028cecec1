"""A unit of a comparison: the same rows for all, chosen on validation rows, tested on others."""

import dataclasses

import numpy as np
import pytest

from rarestream import Model, auc, make_learner
from rarestream.blocks import Block
from rarestream.compare import METHODS
from rarestream.compare.data import load_block, save_block, scaled, split, trial_blocks
from rarestream.compare.methods import Size, spread
from rarestream.compare.trials import run_trial
from rarestream.learners import learner_names
from rarestream.study.splits import TrialBlocks

TRIAL = 1


@pytest.fixture(scope="module")
def parts(block):
    return trial_blocks(block, TRIAL, 17)


def test_every_learner_of_the_registry_is_compared():
    assert {method.learner for method in METHODS.values()} - {""} == set(learner_names())


def test_every_method_has_as_many_settings_and_the_default_among_them():
    size = Size(1000, 50, 5000)
    for method in METHODS.values():
        for count in (1, 2, 8, 13):
            found = method.settings(count, size)
            assert len(found) == (count if method.tuned else 1)
            if method.tuned:
                values = [params[method.tuned] for params in found]
                assert values == sorted(set(values)) and method.default in values
                assert method.low * 0.999 <= values[0] and values[-1] <= method.high * 1.001


def test_settings_are_spread_at_equal_factors():
    assert spread(0.1, 1.0, 10.0, 3) == [0.1, 1.0, 10.0]
    values = spread(0.025, 0.25, 2.5, 8)
    assert values[0] == 0.025 and values[-1] == 2.5 and 0.25 in values


def test_a_split_has_every_row_once_and_depends_on_seed_and_trial_only():
    first = split(601, 0, 17)
    assert [len(part) for part in first] == [400, 100, 101]
    assert sorted(np.concatenate(first)) == list(range(601))
    assert all((a == b).all() for a, b in zip(first, split(601, 0, 17), strict=True))
    assert not np.array_equal(first.train, split(601, 1, 17).train)
    assert not np.array_equal(first.train, split(601, 0, 18).train)


def test_in_order_the_first_rows_are_learned_and_the_last_tested():
    train, valid, test = split(12, 0, None)
    assert [*train] == [*range(8)] and [*valid] == [8, 9] and [*test] == [10, 11]


def test_rows_come_to_outsiders_as_a_model_scales_them(parts):
    rows = parts.train[:50]
    for scale in ("unit", "max", "none"):
        model = Model("dual-logistic", scale=scale)
        model.learn(parts.train)
        weights = model.weights().weight
        theirs = scaled(TrialBlocks(parts.train, rows, rows), scale).test.to_csr(len(weights)) @ weights
        assert theirs == pytest.approx(model.score(rows), rel=1e-4, abs=1e-6)


def test_a_column_that_no_training_row_has_counts_for_nothing_with_max():
    train = Block.of(np.array([[2.0, 0.0], [-4.0, 0.0]]), [1, -1])
    test = Block.of(np.array([[2.0, 3.0]]), [1])
    found = scaled(TrialBlocks(dataclasses.replace(train, width=2), test, test), "max").test
    assert found.values.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("auto", "race")])
def test_the_setting_with_the_largest_validation_auc_is_chosen_and_learned_alone(name, parts):
    method = METHODS[name]
    if method.outside is not None:
        pytest.importorskip("sklearn")
    row = run_trial(method, parts, 3, "unit")
    assert row["error"] is None
    valid = [point["valid_auc"] for point in row["points"]]
    assert len(valid) == 3 and row["chosen"] == valid.index(max(valid))
    best = row["points"][row["chosen"]]
    assert row["curve"]["test_auc"][-1] == best["test_auc"] and row["curve"]["rows"][-1] == len(parts.train)
    assert row["curve"]["seconds"][-1] == pytest.approx(best["seconds"])
    assert best["nonzeros"] > 0 and row["state_bytes"] > 0 and len(row["without"]) == 20
    if method.learner:
        model = Model(make_learner(method.learner, **best["params"]))
        model.learn(parts.train.balanced() if method.balanced else parts.train)
        assert best["test_auc"] == auc(parts.test.labels, model.score(parts.test))
        assert best["nonzeros"] == model.nonzeros
        assert row["sizes"]["test_auc"][-1] == best["test_auc"] and row["sizes"]["nonzeros"][-1] == model.nonzeros
    elif name != "batch-logistic":
        assert len(row["curve"]["rows"]) > 5


@pytest.mark.parametrize("name", ["dual-auc", "dual-logistic", "ftrl-auc", "ftrl-proximal", "balanced-logistic"])
def test_settings_in_lanes_do_as_each_would_alone(name, parts):
    method = METHODS[name]
    together = run_trial(method, parts, 3, "unit")["points"]
    for point in together:
        model = Model(make_learner(method.learner, **point["params"]))
        model.learn(parts.train.balanced() if method.balanced else parts.train)
        assert point["test_auc"] == pytest.approx(auc(parts.test.labels, model.score(parts.test)), abs=1e-3)


@pytest.mark.parametrize("name", ["auto", "race"])
def test_what_is_not_tuned_says_what_it_chose(name, parts):
    row = run_trial(METHODS[name], parts, 8, "unit")
    [point] = row["points"]
    assert row["chosen"] == 0 and row["error"] is None
    learner = make_learner(point["params"].pop("learner"), **point["params"])
    model = Model(name if name == "auto" else learner)
    model.learn(parts.train)
    model.finish_race()
    assert model.learner == learner
    assert point["test_auc"] == pytest.approx(auc(parts.test.labels, model.score(parts.test)), abs=1e-3)
    assert point["valid_auc"] is not None and row["sizes"] is not None


def test_a_setting_that_fails_is_told_and_the_others_go_on(parts):
    loud = dataclasses.replace(parts.train, values=parts.train.values * np.float32(1e18))
    row = run_trial(METHODS["spam"], parts._replace(train=loud), 3, "none")
    assert row["chosen"] is None and "float32" in row["error"]
    assert all(point["valid_auc"] is None and point["error"] for point in row["points"])


def test_steps_too_long_for_an_outsider_are_told(parts):
    pytest.importorskip("sklearn")
    loud = dataclasses.replace(parts.train, values=parts.train.values * np.float32(1e30))
    row = run_trial(METHODS["sgd"], parts._replace(train=loud), 2, "none")
    assert all(point["error"] for point in row["points"]) and "overflow" in row["error"]


def test_a_row_too_large_for_one_lane_leaves_the_others_to_learn_alone(parts):
    loud = dataclasses.replace(parts.train, values=parts.train.values * np.float32(1e18))
    row = run_trial(METHODS["ftrl-auc"], parts._replace(train=loud), 3, "none")
    assert [point["error"] is None for point in row["points"]] == [
        point["valid_auc"] is not None for point in row["points"]
    ]
    assert any(point["error"] for point in row["points"])


def test_a_single_setting_is_the_default(parts):
    row = run_trial(METHODS["rda"], parts, 1, "unit")
    [point] = row["points"]
    assert point["params"] == {"gamma": METHODS["rda"].default} and point["valid_auc"] > 0.5 and row["chosen"] == 0


def test_rows_in_a_folder_are_the_same_rows(block, tmp_path):
    weighed = dataclasses.replace(block, importances=np.linspace(0, 1, len(block)))
    save_block(weighed, str(tmp_path))
    again = load_block(str(tmp_path))
    assert again.width == block.width
    for name in ("indptr", "indices", "values", "labels", "importances"):
        assert (getattr(again, name) == getattr(weighed, name)).all()
