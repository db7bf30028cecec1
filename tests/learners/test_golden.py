"""Every method of the paper against numbers made by independent programs, on synthetic streams."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rarestream import Block, FtrlAuc, FtrlProximal, Model, auc, make_learner

GOLDEN = Path(__file__).parent.parent / "golden"
SETS = {name: np.load(GOLDEN / f"{name}.npz") for name in ("tiny", "medium")}
RUNS = [(name, run) for name in SETS for run in json.loads((GOLDEN / f"{name}.json").read_text())]
METHODS = [(name, run) for name in SETS for run in json.loads((GOLDEN / f"methods_{name}.json").read_text())]
MODELS = {name: np.load(GOLDEN / f"methods_{name}.npz") for name in SETS}


def rows(data, which: str) -> Block:
    from scipy.sparse import csr_array

    shape = (len(data["y"]), int(data["n_features"]))
    X = csr_array((data["data"], data["indices"], data["indptr"]), shape=shape)
    return Block.of(X[data[which]], data["y"][data[which]])


@pytest.mark.parametrize(("name", "run"), RUNS, ids=[f"{name}-{run['id']}" for name, run in RUNS])
def test_agrees_with_the_golden_run(name, run):
    data, given = SETS[name], run["params"]
    settings = {"learning_rate": given["gamma"], "l1": given["l1"], "l2": given["l2"], "beta": given["beta"]}
    learner = FtrlAuc(**settings) if run["method"] == "ftrl_auc" else FtrlProximal(**settings, intercept=False)
    model = Model(learner, dtype="float64", scale="none", n_features=int(data["n_features"]))
    scores = model.learn(rows(data, "train_idx"))
    final, test = run["final_flushed"], rows(data, "test_idx")
    assert model.nonzeros == final["nnz"]
    assert np.isclose(abs(model.coef).sum(), final["w_l1"], rtol=1e-9)
    assert np.isclose(np.linalg.norm(model.coef), final["w_l2"], rtol=1e-9)
    assert np.isclose(auc(test.labels, model.score(test)), final["test_auc"], rtol=0, atol=1e-12)
    assert np.isclose(auc(rows(data, "train_idx").labels, scores), run["online_auc"], rtol=0, atol=1e-12)
    for key, ours in (("z", model._engine.state.table[:, 0]), ("v", model._engine.state.table[:, 1] ** 2)):
        if f"{run['id']}.{key}" in data:
            theirs = data[f"{run['id']}.{key}"]
            assert abs(ours[: len(theirs)] - theirs).max() <= 1e-9 * abs(theirs).max()
    if f"{run['id']}.online_scores" in data:
        assert abs(scores - data[f"{run['id']}.online_scores"]).max() <= 1e-9


def learner_of(run, data):
    given, method = run["params"], run["method"]
    if method.startswith("spam"):
        penalty = {"spam_l1": "l1", "spam_l2": "l2", "spam_l1l2": "elasticnet"}[method]
        gradient = {"natole_sparse": "sparse", "paper": "full"}[run["variant"]]
        strengths = {"l1": given["l1"], "l2": given["l2"]}
        return "spam", {"learning_rate": given["xi"], "penalty": penalty, "gradient": gradient, **strengths}
    if method == "spauc":
        return "spauc", {"mu": given["mu"], "l1": given["l1"]}
    if method == "solam":
        features = int(data["n_features"])
        return "solam", {"learning_rate": given["xi"], "radius": given["r"], "expected_features": features}
    if method == "fsauc":
        return "fsauc", {"learning_rate": given["g"], "radius": given["r"], "expected_rows": len(data["train_idx"])}
    if method == "rda_l1":
        return "rda", {"gamma": given["gamma"], "l1": given["lambda"], "rho": given["rho"]}
    return "adagrad", {"learning_rate": given["eta"], "l1": given["lambda"], "epsilon": given["epsilon"]}


@pytest.mark.parametrize(("name", "run"), METHODS, ids=[f"{name}-{run['id']}" for name, run in METHODS])
def test_agrees_with_the_golden_method(name, run):
    data, models = SETS[name], MODELS[name]
    learner, settings = learner_of(run, data)
    model = Model(make_learner(learner, **settings), dtype="float64", scale="none", n_features=int(data["n_features"]))
    scores = model.learn(rows(data, "train_idx"))
    weights = np.zeros(int(data["n_features"]))
    weights[models[f"{run['id']}.w_idx"]] = models[f"{run['id']}.w_val"]
    test = rows(data, "test_idx")
    assert model.nonzeros == run["nnz"]
    assert abs(model.coef - weights).max() <= 1e-9 * abs(weights).max()
    assert np.isclose(auc(test.labels, model.score(test)), run["test_auc"], rtol=0, atol=1e-12)
    if learner == "fsauc":  # its authors recorded the scores of the current iterate; ours are those of the mean
        return
    assert np.isclose(auc(rows(data, "train_idx").labels, scores), run["online_auc"], rtol=0, atol=1e-12)
    if "intercept" in run["scalars"]:
        assert np.isclose(model.intercept, run["scalars"]["intercept"], rtol=1e-9)
    if f"{run['id']}.online_scores" in models:
        online = models[f"{run['id']}.online_scores"]
        assert abs(scores - online).max() <= 1e-9 * (1 + abs(online).max())
