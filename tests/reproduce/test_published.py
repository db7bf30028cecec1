"""What `run` refuses, and that looking at a run does not change it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from rarestream import Block, DataError, _native
from rarestream.reproduce import METHODS, Rows, published_auc, run, runs

FTRL = {"l1": 0.1, "l2": 0.0, "beta": 1.0, "gamma": 0.5}


def stream(n: int = 60, d: int = 30) -> Rows:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, d)) * (generator.random((n, d)) < 0.2)
    return Rows(csr_array(X), np.where(generator.random(n) < 0.3, 1, -1).astype(np.int8))


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("ftrl", FTRL, "no published method is called 'ftrl'; there are ftrl_auc, ftrl_auc_non_lazy, ftrl_proximal"),
        ("ftrl_auc", {"l1": 0.1}, "ftrl_auc: needs l1, l2, beta, gamma; l2, beta, gamma was not given."),
        ("ftrl_auc", {**FTRL, "lambda": 1.0}, "ftrl_auc: no setting is called 'lambda'; there are l1, l2, beta, gamma"),
        ("ftrl_auc", {**FTRL, "l1": -1.0}, "ftrl_auc: l1 must be >= 0 and finite, got -1.0."),
        ("ftrl_auc", {**FTRL, "gamma": 0.0}, "ftrl_auc: gamma must be > 0 and finite, got 0.0."),
        ("solam", {"xi": 1.0, "r": float("nan")}, "solam: r must be > 0 and finite, got nan."),
    ],
)
def test_wrong_settings_are_named(method, params, said):
    with pytest.raises(ValueError, match=r"^.*$") as error:
        run(method, stream(), params)
    assert str(error.value).startswith(said)


def test_fsauc_needs_rows_enough_for_a_stage():
    params = {"r": 1.0, "g": 0.1}
    assert run("fsauc", stream(44), params).nonzeros > 0
    with pytest.raises(DataError, match="fsauc: needs at least 44 rows, got 43"):
        run("fsauc", stream(43), params)
    with pytest.raises(DataError, match="ftrl_auc: needs at least 1 rows, got 0"):
        run("ftrl_auc", stream().take(np.zeros(0, int)), FTRL)


@pytest.mark.parametrize("points", [[0], [5, 5], [7, 3], [61]])
def test_checkpoints_ascend_within_the_rows(points):
    with pytest.raises(ValueError, match="checkpoints must ascend from 1 to 60 rows"):
        list(runs("ftrl_auc", stream(), FTRL, points))


@pytest.mark.parametrize("method", METHODS)
def test_stopping_to_look_changes_nothing(method):
    rows, params = stream(), dict.fromkeys(METHODS[method], 0.01)
    end = run(method, rows, params)
    looked = list(runs(method, rows, params, [1, 17, 44, 60]))
    assert [one.rows for one in looked] == [1, 17, 44, 60]
    assert (looked[-1].weights == end.weights).all()
    assert (looked[-1].online_scores == end.online_scores).all()
    assert len(looked[1].online_scores) == 17
    if method != "fsauc":  # whose stages go by the length of the stream
        assert (looked[1].weights == run(method, rows.take(np.arange(17)), params).weights).all()


def test_scores_that_cannot_be_ranked_are_refused():
    with pytest.raises(DataError, match="both classes"):
        published_auc([1, 1], [0.0, 1.0])
    with pytest.raises(DataError, match="nan"):
        published_auc([1, -1], [0.0, float("nan")])


def test_the_core_refuses_arrays_that_do_not_belong_together():
    rows = stream()
    indptr, indices = rows.X.indptr.astype(np.int64), rows.X.indices.astype(np.int32)
    scores = np.zeros(60)
    wrong = [
        (indptr[:-1], indices, rows.X.data, rows.labels, scores),
        (indptr, indices[:-1], rows.X.data, rows.labels, scores),
        (indptr, indices, rows.X.data, rows.labels, scores[:-1]),
        (indptr[::-1].copy(), indices, rows.X.data, rows.labels, scores),
        (indptr + 1, indices, rows.X.data, rows.labels, scores),
        (indptr, indices + 1, rows.X.data, rows.labels, scores),
        (indptr, indices - 1, rows.X.data, rows.labels, scores),
    ]
    method = _native.PublishedMethod("ftrl_auc", [0.1, 0.0, 1.0, 0.5], rows.n_features, 60)
    for arrays in wrong:
        with pytest.raises(ValueError, match="published"):
            method.learn(*arrays)
    right = (indptr, indices, rows.X.data, rows.labels, scores)
    method.learn(*right)
    with pytest.raises(ValueError, match="more rows than were told"):
        method.learn(*right)
    for name, settings, features, n in (
        ("ftrl", [0.1], 3, 60),
        ("ftrl_auc", [0.1], 3, 60),
        ("fsauc", [1.0, 1.0], 3, 43),
        ("solam", [1.0, 1.0], 0, 60),
        ("solam", [1.0, 1.0], 3, 0),
    ):
        with pytest.raises(ValueError, match="published"):
            _native.PublishedMethod(name, settings, features, n)


def test_rows_in_double_precision_have_norm_one():
    block = Block.of(np.array([[3.0, 0, 4], [0, 0, 0], [1, 1, 1]]), [1, -1, 1])
    rows = Rows.of(block, n_features=5).unit()
    assert rows.n_features == 5
    assert rows.X.toarray().tolist() == [[3 / 5, 0, 4 / 5, 0, 0], [0] * 5, [1 / np.sqrt(3)] * 3 + [0, 0]]
    assert rows.scores(np.array([1.0, 2, 3, 4, 5])).tolist() == pytest.approx([3, 0, 6 / np.sqrt(3)])
    assert rows.take(np.array([2, 0])).labels.tolist() == [1, 1]
