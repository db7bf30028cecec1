"""The published arithmetic against the authors' own program, on the synthetic streams."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from rarestream import auc
from rarestream.reproduce import METHODS, Rows, published_auc, runs

GOLDEN = Path(__file__).parent.parent / "golden"
DATA = {name: np.load(GOLDEN / f"{name}.npz") for name in ("tiny", "medium")}
ARRAYS = {name: np.load(GOLDEN / f"published_{name}.npz") for name in DATA}
TOLD = {name: json.loads((GOLDEN / f"published_{name}.json").read_text()) for name in DATA}
RUNS = [(name, run) for name in DATA for run in TOLD[name]["runs"]]


def part(name: str, which: str) -> Rows:
    data = DATA[name]
    shape = (len(data["y"]), int(data["n_features"]))
    X = csr_array((data["data"].astype(np.float64), data["indices"], data["indptr"]), shape=shape)
    return Rows(X, data["y"]).take(data[which])


@pytest.mark.parametrize(("name", "told"), RUNS, ids=[f"{name}-{told['id']}" for name, told in RUNS])
def test_agrees_with_the_authors_program(name, told):
    train, valid, test = (part(name, which) for which in ("train_idx", "valid_idx", "test_idx"))
    close = 1e-6 if told["method"] == "adagrad" else 1e-9  # its stale gradients amplify any rounding
    found = list(runs(told["method"], train, told["params"], TOLD[name]["checkpoints"]))
    assert [run.nonzeros for run in found] == told["ckpt_nnz"]
    assert np.allclose([abs(run.weights).sum() for run in found], told["ckpt_w_l1"], rtol=close, atol=0)
    assert np.allclose([np.linalg.norm(run.weights) for run in found], told["ckpt_w_l2"], rtol=close, atol=0)
    aucs = [published_auc(test.labels, test.scores(run.weights)) for run in found]
    assert np.allclose(aucs, told["ckpt_test_auc_reference"], rtol=0, atol=1e-12)

    arrays, id, end, final = ARRAYS[name], told["id"], found[-1], told["final"]
    weights = np.zeros(train.n_features)
    weights[np.cumsum(arrays[f"{id}.w_idx"], dtype=np.int64)] = arrays[f"{id}.w_val"]
    assert abs(end.weights - weights).max() <= close * abs(weights).max()
    assert ((end.weights != 0) == (weights != 0)).all()
    assert end.nonzeros == final["nnz"]
    assert auc(test.labels, test.scores(end.weights)) == pytest.approx(final["test_auc"], abs=1e-12)
    for rows, scores, key in (
        (test, test.scores(end.weights), "test_auc_reference"),
        (valid, valid.scores(end.weights), "valid_auc_reference"),
        (train, end.online_scores, "online_auc_reference"),
    ):
        assert published_auc(rows.labels, scores) == pytest.approx(final[key], abs=1e-12)
    if f"{id}.online_scores" in arrays:
        scores = arrays[f"{id}.online_scores"]
        assert abs(end.online_scores - scores).max() <= close * abs(scores).max()


def test_every_method_has_golden_runs_on_both_streams():
    for name in DATA:
        assert {run["method"] for run in TOLD[name]["runs"]} == set(METHODS)


CASES = json.loads((GOLDEN.parent / "metrics" / "auc_cases.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_authors_auc(case):
    assert published_auc(case["labels"], case["scores"]) == pytest.approx(case["auc_reference"], abs=1e-15)
