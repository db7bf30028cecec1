"""The FTRL pair against numbers made by independent programs, on synthetic streams."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rarestream import Block, FtrlAuc, FtrlProximal, Model, auc

GOLDEN = Path(__file__).parent.parent / "golden"
SETS = {name: np.load(GOLDEN / f"{name}.npz") for name in ("tiny", "medium")}
RUNS = [(name, run) for name in SETS for run in json.loads((GOLDEN / f"{name}.json").read_text())]


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
    for key, ours in (("z", model._state.pairs[:, 0]), ("v", model._state.pairs[:, 1] ** 2)):
        if f"{run['id']}.{key}" in data:
            theirs = data[f"{run['id']}.{key}"]
            assert abs(ours[: len(theirs)] - theirs).max() <= 1e-9 * abs(theirs).max()
    if f"{run['id']}.online_scores" in data:
        assert abs(scores - data[f"{run['id']}.online_scores"]).max() <= 1e-9
