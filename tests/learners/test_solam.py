"""SOLAM: a few rows worked by hand from the paper's equations, and what is kept up instead of computed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rarestream import Model, ModelFileError, Solam, modelfile
from rarestream.learners import TALLY
from tests.learners.textbook import textbook
from tests.strategies import block_of, random_block


def numbers(model: Model) -> dict[str, float]:
    return dict(zip(Solam().layout.numbers, model._engine.state.tally[len(TALLY) :], strict=True))


def current(model: Model) -> np.ndarray:
    """u of every coordinate in the terms of this epoch."""
    u, _, epoch = model._engine.state.table[: model.n_features].T.astype(np.float64)
    return u * model._engine.state.extra["epochs"][epoch.astype(int), 0]


def iterate(model: Model) -> np.ndarray:
    """The current weights, of which the model is the mean."""
    now, w = numbers(model), np.zeros(model.n_features)
    w[: model.learner.expected_features] = now["kappa"]
    return w + now["sigma"] * current(model)[: model.n_features]


def test_four_rows_by_hand():
    model = Model(Solam(learning_rate=1.0, radius=10.0), dtype="float64", scale="none")
    gamma = [1 / math.sqrt(t) for t in (1, 2, 3)]
    # Row 1, a positive: p = 1, so 2 (1 - p) = 0 and nothing moves.
    assert model.learn_one([0], [1.0], 1) == 0
    # Row 2, a negative: p = 1/2, s = a = b = alpha = 0, so g_w = x; b and alpha stay.
    assert model.learn_one([0, 1], [1.0, 2.0], -1) == 0
    w = -gamma[1] * np.array([1.0, 2.0])
    assert np.allclose(iterate(model), w, rtol=0, atol=1e-15)
    assert not model.coef.any()  # the mean of the iterates that rows 1 and 2 met
    # Row 3, a positive: p = 2/3, s = w_0: g_w = 2/3 (s - 1), g_a = -2/3 s, g_alpha = -2/3 s.
    assert model.learn_one([0], [1.0], 1) == 0
    s = w[0]
    assert np.isclose(numbers(model)["saddle_a"], gamma[2] * 2 / 3 * s)
    assert np.isclose(numbers(model)["alpha"], -gamma[2] * 2 / 3 * s)
    assert np.allclose(iterate(model), [s - gamma[2] * 2 / 3 * (s - 1), w[1]], rtol=0, atol=1e-15)
    mean = gamma[2] * w / sum(gamma)
    assert np.allclose(model.coef, mean, rtol=0, atol=1e-15)
    # Row 4 is scored by the mean.
    assert np.isclose(model.learn_one([0, 1], [1.0, 1.0], 1), mean.sum())


@pytest.mark.parametrize("expected", [0, 5, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_kept_up_is_what_it_stands_for(dtype, expected):
    """Norm and sums follow the stored numbers exactly, through projections and epochs."""
    model = Model(Solam(learning_rate=20.0, radius=0.5, expected_features=expected), dtype=dtype, scale="max")
    model.learn(random_block(1000, 30, 5))
    now, u = numbers(model), current(model)
    assert now["epoch"] > 3
    assert np.isclose(now["uu"], u @ u, rtol=1e-12)
    assert np.isclose(now["u_start"], u[:expected].sum(), rtol=1e-10, atol=1e-12)
    w = np.full(max(expected, model.n_features), 0.0)
    w[: model.n_features] = iterate(model)
    assert np.linalg.norm(w) <= 0.5 * (1 + 1e-12)


def test_the_start_is_spread_over_the_expected_features():
    model = Model(Solam(radius=2.0, expected_features=16))
    assert model.n_features == 16
    assert not model.coef.any()  # the mean of no iterates
    model.learn_one([3], [1.0], 1)  # one class: nothing moves
    assert np.array_equal(model.coef, np.full(16, 0.5, np.float32))
    model.learn(block_of([{20: 1.0}, {3: 1.0}], [-1, 1]))
    assert model.n_features == 21
    assert not model.coef[16:20].any()


def test_more_features_than_can_be_are_refused():
    with pytest.raises(ValueError, match="Solam: expected_features must be a whole number between 0 and 2147483647"):
        Solam(expected_features=2**31)


def test_a_model_for_scoring_knows_the_start_too():
    model = Model(Solam(expected_features=50))
    model.learn(random_block(100, 12, 4))
    rows = block_of([{40: 1.0, 2: 1.0}, {49: 1.0}, {60: 1.0}])
    scoring = Model.from_bytes(model.to_bytes("scoring"))
    assert np.array_equal(model.score(rows), scoring.score(rows))


def test_a_step_far_beyond_the_radius_ends_on_the_sphere():
    """Numbers in the state stay of the size of the radius, however long the step."""
    model = Model(Solam(learning_rate=1e10, radius=1.0), scale="none")
    model.learn(block_of([{0: 1.0}, {1: 1e3}, {0: 2.0, 1: 1.0}, {0: 1.0}], [1, -1, 1, -1]))
    assert np.isclose(np.linalg.norm(iterate(model)), 1)
    assert abs(model._engine.state.table).max() < 1e15
    assert np.isfinite(model._engine.state.table).all()


@pytest.mark.parametrize("scale", ["unit", "max"])
def test_more_epochs_than_there_is_room_for_agree_with_the_textbook(scale):
    learner, block = Solam(learning_rate=300.0, radius=0.01), random_block(700, 30, 5)
    whole, parts = (Model(learner, dtype="float64", scale=scale) for _ in range(2))
    scores, ended = whole.learn(block), []
    for start in range(0, 700, 50):
        parts = Model.from_bytes(parts.to_bytes())
        parts.learn(block[start : start + 50])
        ended.append(numbers(parts)["epoch"])
    assert (np.diff(ended) < 0).any()  # it began again at 0
    assert whole.to_bytes() == parts.to_bytes()
    expected, weights, _, largest = textbook(learner, block, 30, scale)
    if scale == "max":
        weights = weights / largest
    assert abs(scores - expected).max() <= 1e-9 * abs(expected).max()
    assert abs(whole.coef - weights).max() <= 1e-9 * abs(weights).max()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("more.epochs", lambda epochs: epochs[:-1]),
        ("more.epochs", lambda epochs: epochs.astype(np.float32)),
        ("epoch", lambda epoch: epoch + 300),
        ("epoch", lambda epoch: epoch + np.float32(0.5)),
        ("tally", lambda tally: np.append(tally[:-1], 1000.0)),
        ("tally", lambda tally: np.append(tally[:-1], 0.5)),
    ],
    ids=["too few", "wrong type", "none such", "between two", "beyond the last", "half of one"],
)
def test_a_file_whose_epochs_are_wrong_is_refused(name, wrong):
    model = Model(Solam(learning_rate=100.0, radius=0.1))
    model.learn(random_block(50, 12, 4))
    header, arrays = model._file_parts("resumable")
    arrays[name] = wrong(arrays[name])
    with pytest.raises(ModelFileError, match="epoch"):
        Model.from_bytes(modelfile.to_bytes(header, arrays))
