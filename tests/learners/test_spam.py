"""SPAM: rows worked by hand, the gradient's mean, and weights that die together without being visited."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rarestream import DataError, Model, ModelFileError, Spam, modelfile
from rarestream.learners.spam import SCALED
from tests.learners.textbook import spam_gradient, textbook
from tests.strategies import random_block

FORMS = ["sparse", "full"]


def numbers(model: Model) -> dict[str, float]:
    return dict(zip(SCALED.numbers, model._engine.state.tally[6:], strict=True))


def test_three_rows_by_hand():
    model = Model(Spam(learning_rate=1.0, penalty="elasticnet", l1=0.1, l2=math.sqrt(2)), dtype="float64", scale="none")
    # Row 1, a positive: p = 1, so its slope 2 (1 - p) (...) is 0 and nothing moves.
    assert model.learn_one([0], [1.0], 1) == 0
    # Row 2, a negative: p = 1/2, s = a = 0, slope 2 p (s - a + 1) = 1; eta = 1 / sqrt 2, so w - eta g = -(1, 2) / sqrt 2.
    # The threshold is 0.1 / sqrt 2, the divisor 1 + eta l2 = 2.
    assert model.learn_one([0, 1], [1.0, 2.0], -1) == 0
    w = -np.array([0.9, 1.9]) / math.sqrt(2) / 2
    assert np.allclose(model.coef, w, rtol=0, atol=1e-15)
    # Row 3, a positive: p = 2/3, b = <w, (1, 2)>, slope 2/3 (s - b - 1) on feature 0; feature 1 only shrinks.
    assert np.isclose(model.learn_one([0], [1.0], 1), w[0], rtol=0, atol=1e-15)
    eta, b = 1 / math.sqrt(3), w @ [1, 2]
    w[0] -= eta * 2 / 3 * (w[0] - b - 1)
    w = np.sign(w) * (abs(w) - 0.1 * eta) / (1 + eta * math.sqrt(2))
    assert np.allclose(model.coef, w, rtol=0, atol=1e-15)


@pytest.mark.parametrize("form", FORMS)
def test_the_mean_gradient_is_that_of_the_loss_over_all_pairs(form):
    generator = np.random.default_rng(1)
    X, y, w = generator.normal(size=(40, 5)), generator.choice([-1, 1], 40), generator.normal(size=5)
    pos, neg, p = X[y == 1], X[y == -1], (y == 1).mean()
    mean = np.mean(
        [spam_gradient(form, x, c, w, p, pos.mean(0), neg.mean(0), w @ x) for x, c in zip(X, y, strict=True)], 0
    )
    apart = (pos[:, None] - neg[None]).reshape(-1, 5)
    assert np.allclose(mean, p * (1 - p) * 2 * ((apart @ w - 1)[:, None] * apart).mean(0), rtol=0, atol=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_the_penalty_says_which_strength_counts(form):
    block = random_block(200, 20, 4)
    for penalty, unused in (("l1", "l2"), ("l2", "l1")):
        with_it, without = (
            Model(Spam(penalty=penalty, gradient=form, **{"l1": 0.01, "l2": 0.01, unused: strength}))
            for strength in (5.0, 0.0)
        )
        assert np.array_equal(with_it.learn(block), without.learn(block))
        assert np.array_equal(with_it.coef, without.coef)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
@pytest.mark.parametrize("strength", [1e-3, 0.05, 20.0])
def test_long_streams_agree_with_the_textbook(form, penalty, strength):
    """Long enough for sigma to fall by 1e-12 and for T to be set back, again and again."""
    block = random_block(1500, 50, 6)
    learner = Spam(penalty=penalty, gradient=form, l1=strength / 10, l2=strength)
    model = Model(learner, dtype="float64", n_features=50)
    scores = model.learn(block)
    expected, weights, _, _ = textbook(learner, block, 50)
    assert abs(scores - expected).max() <= 1e-9
    assert abs(model.coef - weights).max() <= 1e-9 * (abs(weights).max() + 1e-9)
    assert model.nonzeros == np.count_nonzero(weights)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", ["unit", "max"])
@pytest.mark.parametrize("learner", [Spam(penalty="l1", l1=3e-3), Spam(penalty="elasticnet", l1=0.02, l2=0.5), Spam()])
def test_what_is_kept_of_all_weights_is_what_they_are(learner, dtype, scale):
    model, block = Model(learner, dtype=dtype, scale=scale, n_features=80), random_block(1000, 80, 5)
    died = born = 0
    before = np.zeros(80, bool)
    for start in range(0, 1000, 20):
        model.learn(block[start : start + 20])
        kept, table = numbers(model), model._engine.state.table[: model.n_features].astype(np.float64)
        u = np.sign(table[:, 0]) * np.maximum(abs(table[:, 0]) - kept["level"], 0)
        for name, column in (("neg", 1), ("pos", 2)):
            total = table[:, column]
            assert np.isclose(kept[f"u_{name}"], u @ total, rtol=0, atol=1e-12 * (1 + abs(u) @ abs(total)))
            if learner.penalty != "l2":
                assert np.isclose(kept[f"q_{name}"], np.sign(u) @ total, rtol=0, atol=1e-9)
        if learner.penalty != "l2":
            heap = model._engine.state.extra["heap"][: int(kept["living"])]
            assert np.array_equal(np.sort(heap), np.flatnonzero(u))
            assert not (table[u == 0, 0] != 0).any()
            died, born = died + (before & (u == 0)).sum(), born + (~before & (u != 0)).sum()
        before = u != 0
    assert learner.penalty == "l2" or (died > 20 and born > 20)


@pytest.mark.parametrize("learner", [Spam(penalty="l1", l1=0.01), Spam(gradient="full", penalty="l1", l1=0.01)])
def test_room_to_spare_and_growing_change_nothing(learner):
    block = random_block(300, 60, 5)
    grown, roomy = Model(learner), Model(learner, n_features=3000)
    for i in range(0, 300, 10):
        assert np.array_equal(grown.learn(block[i : i + 10]), roomy.learn(block[i : i + 10]))
    assert np.array_equal(grown.coef, roomy.coef[: grown.n_features])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strengths", [(1e300, 0.0), (0.0, 1e308), (1e300, 1e308)])
def test_penalties_without_measure_leave_nothing(form, dtype, strengths):
    learner = Spam(penalty="elasticnet", gradient=form, l1=strengths[0], l2=strengths[1])
    model = Model(learner, dtype=dtype)
    assert np.isfinite(model.learn(random_block(100, 20, 4))).all()
    assert float(abs(model.coef).max()) < 1e-100
    assert np.isfinite(model._engine.state.tally).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
def test_steps_that_are_too_long_end_in_an_error(form, penalty, dtype):
    model = Model(Spam(learning_rate=1e4, penalty=penalty, gradient=form), dtype=dtype)
    block = random_block(2000, 20, 4)
    with pytest.raises(DataError, match="smaller learning rate"):
        model.learn(block)
    assert np.isfinite(model.coef).all()
    assert np.isfinite(model._engine.state.tally).all()


def damaged(model: Model, **changes) -> Model:
    header, arrays = modelfile.from_bytes(model.to_bytes(), "it")
    return Model.from_bytes(modelfile.to_bytes(header, {**arrays, **{f"more.{k}": v for k, v in changes.items()}}))


def test_a_heap_that_does_not_belong_to_the_weights_is_refused():
    model = Model(Spam(penalty="l1", l1=0.003))
    model.learn(random_block(200, 40, 5))
    heap = model._engine.state.extra["heap"][: model.nonzeros].copy()
    assert damaged(model, heap=heap).to_bytes() == model.to_bytes()
    for wrong, told in [
        (heap[:-1], "once"),
        (np.append(heap[:-1], heap[0]), "once"),
        (np.append(heap[:-1], np.int32(-1)), "once"),
        (heap.astype(np.int64), "once"),
        (heap.reshape(1, -1), "once"),
        (heap[::-1].copy(), "out of order"),
    ]:
        with pytest.raises(ModelFileError, match=told):
            damaged(model, heap=wrong)
