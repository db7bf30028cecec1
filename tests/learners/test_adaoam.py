"""AdaOAM: rows worked by hand, its gradient against that of the pairs, its sketch, and its files."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rarestream import AdaOam, DataError, Model, ModelFileError, modelfile
from tests.strategies import block_of, random_block


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_three_rows_by_hand(rank):
    """One row of a class has no covariance, in full or in a sketch."""
    model = Model(AdaOam(learning_rate=1.0, epsilon=1.0, rank=rank), dtype="float64", scale="none")
    model.learn_one([0], [1.0], 1)
    assert not model.coef.any()
    # x = (0, 1), a negative; m = (1, 0), s = <w, m> = 0: g = (0 - 0 + 1) (x - m) = (-1, 1), v = (1, 1), w = -g / 2.
    model.learn_one([1], [1.0], -1)
    assert model.coef.tolist() == [0.5, -0.5]
    # x = (1, 1), a positive; m = (0, 1), s = 0, <w, m> = -1/2: g = (0 + 1/2 - 1) (1, 0), v = (5/4, 1).
    model.learn_one([0, 1], [1.0, 1.0], 1)
    assert np.allclose(model.coef, [0.5 + 0.5 / (1 + math.sqrt(1.25)), -0.5], rtol=0, atol=1e-15)


def test_its_mean_gradient_is_that_of_the_square_loss_of_all_pairs():
    """Over the rows of either class, at any weights, with the rows themselves as what came before."""
    d, l2, eta, epsilon = 8, 0.3, 1e6, 1e8  # so large an epsilon that w moves by -eta / epsilon g
    block = random_block(60, d, 4)
    model = Model(AdaOam(learning_rate=eta, l2=l2, epsilon=epsilon, rank=0), dtype="float64", n_features=d)
    model.learn(block)
    w = np.random.default_rng(4).normal(size=d)
    model._engine.state.table[: len(w), 0] = w
    model._engine.state.table[:, 1] = 0
    start = model.to_bytes()

    X = np.array([row / np.linalg.norm(row) for row in block.to_csr(d).toarray()])
    apart = X[block.labels > 0][:, None] - X[block.labels < 0][None]
    gradient = l2 * w - ((1 - apart @ w)[:, :, None] * apart).mean(axis=(0, 1))

    found = {1: [], -1: []}
    for i, label in enumerate(block.labels):
        again = Model.from_bytes(start)
        again.learn(block[i : i + 1])
        found[int(label)].append((w - again.coef) * epsilon / eta)
    for rows in found.values():
        assert np.allclose(np.mean(rows, axis=0), gradient, rtol=0, atol=1e-6)


def test_the_sketch_is_right_on_average():
    d, seeds = 6, 1500
    block = random_block(30, d, 3)
    X = block.to_csr(d).toarray()[block.labels > 0]
    found = np.zeros((d, d))
    for seed in range(seeds):
        model = Model(AdaOam(rank=2, seed=seed), dtype="float64", scale="none", n_features=d)
        model.learn(block)
        n, table = model.positives, model._engine.state.table[: model.n_features]
        mean, Z = table[:, 3] / n, table[:, 6:8]
        Z = Z - np.outer(mean, model._engine.state.extra["drawn"][2:])
        found += Z @ Z.T / n / seeds
    covariance = np.cov(X.T, bias=True)
    assert abs(found - covariance).max() < 0.05 * abs(covariance).max()


def test_a_sketch_of_many_columns_learns_as_the_covariances_in_full():
    block = random_block(400, 15, 4)
    exact, sketched = (Model(AdaOam(rank=rank), dtype="float64").learn(block) for rank in (0, 4000))
    assert np.corrcoef(exact, sketched)[0, 1] > 0.999


def test_covariances_in_full_are_for_a_few_thousand_features():
    model = Model(AdaOam(rank=0))
    model.learn(block_of([{0: 1.0}, {4999: 1.0}], [1, -1]))
    before = model.to_bytes()
    with pytest.raises(DataError, match=r"AdaOam: rank=0 .* at most 5,000 features, got feature index 5000.*rank="):
        model.learn(block_of([{5000: 1.0}], [1]))
    assert model.to_bytes() == before
    assert model.score(block_of([{70000: 1.0}])) == 0


@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("settings", [{"learning_rate": 1e160}, {"l2": 1e160}])
def test_steps_without_bound_are_refused(rank, dtype, settings):
    model = Model(AdaOam(rank=rank, **settings), dtype=dtype)
    with pytest.raises(DataError, match="row 0 of the block"):
        model.learn(block_of([{0: 1.0}, {}], [1, -1]))


@pytest.mark.parametrize("rank", [0, 4])
def test_weights_grow_no_faster_than_their_steps(rank):
    """A step is no longer than the rate, however large the gradient: so no setting makes weights explode."""
    block = random_block(500, 15, 4)
    model = Model(AdaOam(rank=rank, learning_rate=1e6, epsilon=1e-300))
    model.learn(block)
    assert abs(model.coef).max() <= 1e6 * 500
    model = Model(AdaOam(rank=rank, learning_rate=1e16))
    with pytest.raises(DataError, match="its steps are too long"):
        model.learn(block)
    assert np.isfinite(model.coef).all()


def changed(name, change):
    def do(header, arrays):
        arrays[name] = change(arrays[name].copy())

    return do


def put(at, value):
    def change(array):
        array[at] = value
        return array

    return change


HOSTILE = {
    "draws of another rank": (3, changed("more.drawn", lambda drawn: drawn[1:]), r"'drawn' is float64\[5\]"),
    "draws of another kind": (3, changed("more.drawn", lambda drawn: drawn.astype(np.float32)), "'drawn' is float32"),
    "draws that are not finite": (3, changed("more.drawn", put(0, np.nan)), "NaN or infinity"),
    "no draws": (3, lambda header, arrays: arrays.pop("more.drawn"), "'drawn' is missing"),
    "negative squares": (3, changed("v", put(0, -1.0)), "squares are negative"),
    "a negative length": (3, changed("tally", put(7, -1.0)), "squares are negative"),
    "pairs of more features": (0, changed("more.pairs", lambda pairs: np.pad(pairs, 9)[:2]), "'pairs' is"),
    "pairs that are no square": (0, changed("more.pairs", lambda pairs: pairs[:, 1:]), "'pairs' is"),
    "pairs that are not finite": (0, changed("more.pairs", put((0, 1, 1), np.inf)), "NaN or infinity"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused(what):
    rank, do, said = HOSTILE[what]
    model = Model(AdaOam(rank=rank))
    model.learn(random_block(60, 15, 4))
    header, arrays = modelfile.from_bytes(model.to_bytes())
    do(header, arrays)
    with pytest.raises(ModelFileError, match=said):
        Model.from_bytes(modelfile.to_bytes(header, arrays))
