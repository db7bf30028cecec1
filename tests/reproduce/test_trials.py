"""Trials: what a row says is what the method does, in either arithmetic; what goes wrong is said."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from rarestream import Auto, DualAveraging, Model, auc
from rarestream.reproduce import methods, protocol, published
from rarestream.reproduce.datasets import sources, stream
from rarestream.reproduce.methods import CORRECTED, FULL, METHODS, NONE, PUBLISHED, QUICK
from rarestream.reproduce.trials import Corrected, Estimate, Work, choices, trial_of
from rarestream.study.splits import checkpoints
from tests.reproduce.conftest import write


def unit(method, mode=CORRECTED, grid=QUICK, dataset="farm-ads", ratio=None, trial=0):
    return {"dataset": dataset, "ratio": ratio, "method": method, "mode": mode, "grid": grid, "trial": trial}


@pytest.fixture(scope="module")
def found(small):
    return sources(small, ["farm-ads", "imdb"])


@pytest.fixture(scope="module")
def parts(found):
    return trial_of(found["farm-ads"], None, 0)[1]


def regrid(monkeypatch, method, mode, *points):
    grids = {**METHODS[method].grids, (mode, QUICK): tuple(points)}
    monkeypatch.setitem(methods.METHODS, method, replace(METHODS[method], grids=grids))


@pytest.mark.parametrize("method", ["ftrl_auc", "spam_l2", "solam", "spauc", "fsauc", "rda_l1", "adagrad"])
def test_published_points_are_runs_of_the_published_code(found, parts, method):
    row = Work(found)(unit(method, PUBLISHED))
    point = row["points"][row["chosen"]]
    run = published.run(method, parts.train, point["params"])
    assert point["nonzeros"] == run.nonzeros
    assert point["test_auc"] == published.published_auc(parts.test.labels, parts.test.scores(run.weights))
    assert row["curve"]["test_auc"][-1] == point["test_auc"]
    assert row["curve"]["rows"] == checkpoints(len(parts.train))


@pytest.mark.parametrize("method", ["ftrl_auc", "spam_l1", "spam_l2", "solam", "spauc", "fsauc", "rda_l1", "adagrad"])
def test_corrected_points_are_models_of_our_learners(found, parts, method):
    row = Work(found)(unit(method))
    assert len(row["points"]) == len(METHODS[method].points(CORRECTED, QUICK))
    point = row["points"][row["chosen"]]
    train, _, test = parts.blocks
    model = Model(METHODS[method].learner(point["params"], len(train)), scale="none", n_features=60)
    model.learn(train)
    assert point["test_auc"] == pytest.approx(auc(test.labels, model.score(test)), abs=1e-3)
    assert point["test_auc"] > 0.9
    assert row["curve"]["test_auc"][-1] == pytest.approx(point["test_auc"], abs=1e-3)
    assert (row["n_train"], row["n_features"], row["data"]) == (160, 60, "own")


def test_in_lanes_or_alone_is_the_same(parts):
    points = METHODS["ftrl_proximal"].points(CORRECTED, FULL)[::5]
    method = Corrected("ftrl_proximal", parts)
    together = method.try_settings(points)
    alone = [method.try_settings([point])[0] for point in points]
    for one, other in zip(together, alone, strict=True):
        assert one["params"] == other["params"]
        assert one["valid_auc"] == pytest.approx(other["valid_auc"], abs=6e-3)  # two pairs of rows
        assert abs(one["nonzeros"] - other["nonzeros"]) <= 1


def test_the_first_of_the_best_is_chosen(found, monkeypatch):
    best = {"gamma": 1.0, "l1": 0.1, "l2": 0.0, "beta": 1.0}
    nothing = {**best, "l1": 5000.0}
    for mode in (CORRECTED, PUBLISHED):
        regrid(monkeypatch, "ftrl_auc", mode, nothing, best, best)
        assert Work(found)(unit("ftrl_auc", mode))["chosen"] == 1


def test_a_setting_that_diverges_says_so_and_is_not_chosen(found, monkeypatch):
    sound, wild = {"xi": 1.0, "l1": 0.0, "l2": 1e-4}, {"xi": 1e37, "l1": 0.0, "l2": 0.0}
    regrid(monkeypatch, "spam_l2", CORRECTED, wild, sound)
    row = Work(found)(unit("spam_l2"))
    assert row["chosen"] == 1
    assert row["points"][0]["valid_auc"] is None
    assert "float32" in row["points"][0]["error"]
    assert row["error"] is None
    regrid(monkeypatch, "spam_l2", CORRECTED, wild)
    row = Work(found)(unit("spam_l2"))
    assert (row["chosen"], row["curve"]) == (None, None)
    assert "float32" in row["error"]
    json.dumps(row, allow_nan=False)


def test_the_elastic_net_takes_what_spam_l2_chose(found):
    first = unit("spam_l2")
    row = {**first, **Work(found)(first)}
    known = choices([row])
    after = Work(found, known)(unit("spam_l1l2"))
    chosen = row["points"][row["chosen"]]["params"]
    assert [(point["params"]["xi"], point["params"]["l2"]) for point in after["points"]] == [
        (chosen["xi"], chosen["l2"])
    ] * len(after["points"])
    assert "spam_l2" in Work(found)(unit("spam_l1l2"))["error"]


def test_a_part_with_one_class_is_said(tmp_path):
    write(tmp_path / "farm-ads.svm", 60, 1)
    row = Work(sources(tmp_path, ["farm-ads"]))(unit("ftrl_auc"))
    assert row["error"].endswith("are positive")
    assert "one class" in row["error"]
    assert row["chosen"] is None


@pytest.mark.parametrize("method", methods.OURS)
def test_ours_say_what_they_learned_with_and_are_cut_to_the_published_size(found, parts, method):
    row = Work(found)(unit(method, grid=NONE))
    (point,) = row["points"]
    assert point["params"]["learner"] in {learner.name for learner in Auto.candidates()}
    assert point["test_auc"] > 0.9
    assert row["curve"]["rows"][-1] == len(parts.train)
    assert point["seconds"] == row["curve"]["seconds"][-1]
    assert point["at_published_size"]["nonzeros"] == 1  # 0.013 of 60
    has_budget = method == "auto" or point["params"]["learner"].startswith("dual-")
    assert ("budget_test_auc" in point["at_published_size"]) == has_budget
    train, _, test = parts.blocks
    model = Model(DualAveraging(loss="auc"), scale="none")
    model.learn(train)
    if method == "dual_auc":
        assert point["test_auc"] == auc(test.labels, model.score(test))
        assert point["at_published_size"]["pruned_test_auc"] == auc(test.labels, model.prune(nonzeros=1).score(test))
    imbalanced = Work(found)(unit(method, grid=NONE, ratio=0.1))
    assert "at_published_size" not in imbalanced["points"][0]


def test_balanced_logistic_learns_classes_that_weigh_alike(found):
    row = Work(found)(unit("balanced_logistic", grid=NONE, ratio=0.1))
    _, parts = trial_of(found["farm-ads"], 0.1, 0)
    train, _, test = parts.blocks
    model = Model(DualAveraging(loss="logistic"), scale="none")
    model.learn(train.balanced())
    assert row["points"][0]["test_auc"] == auc(test.labels, model.score(test))


def test_lazy_and_exact_means_have_the_one_setting_of_the_figures(found):
    for mode in (CORRECTED, PUBLISHED):
        lazy, exact = (Work(found)(unit(name, mode, NONE)) for name in ("ftrl_auc", "ftrl_auc_non_lazy"))
        assert lazy["points"][0]["params"] == exact["points"][0]["params"] == methods.LAZY
        assert lazy["curve"]["test_auc"] != exact["curve"]["test_auc"]


def test_imbalanced_trials_are_the_papers(found):
    _, parts = trial_of(found["farm-ads"], 0.1, 3)
    rows = trial_of(found["farm-ads"], None, 0)[0].rows
    kept, splits = protocol.imbalanced(rows.labels, 0.1)
    assert np.array_equal(parts.train.labels, rows.labels[kept][splits[3].train])
    assert np.array_equal(parts.test.X.toarray(), rows.X[kept][splits[3].test].toarray())


@pytest.mark.parametrize("mode", [CORRECTED, PUBLISHED])
def test_an_estimate_is_made_for_every_method(found, mode):
    estimate = Estimate(found)
    names = [*methods.TABLE2, *methods.TABLE3] + ([*methods.OURS] if mode == CORRECTED else [])
    for name in names:
        assert estimate(unit(name, mode, NONE if name in methods.OURS else FULL)) >= 0


def test_in_place_of_avazu_a_stream_of_its_share_of_positives():
    data, parts = trial_of(stream(6000), None, 0)
    assert data.data == "generated"
    assert len(parts.train) == 4000
    assert np.mean(data.rows.labels > 0) == pytest.approx(0.119, abs=0.02)
    assert data.rows.X.power(2).sum(axis=1) == pytest.approx(1.0)
