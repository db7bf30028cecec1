"""FTRL-AUC: three rows worked by hand from the paper's equations."""

from __future__ import annotations

import math

import numpy as np

from rarestream import FtrlAuc, Model
from tests.strategies import random_block


def test_three_rows_by_hand():
    model = Model(FtrlAuc(learning_rate=1.0, l1=0.5), dtype="float64", scale="none")
    # Row 1, a positive: p = 1, so its slope 2 (1 - p) (...) is 0 and nothing moves.
    assert model.learn_one([0], [1.0], 1) == 0
    # Row 2, a negative: p = 1/2, s = 0, a = 0: slope 2 p (s - a + 1) = 1; g = (1, 2) on features 0 and 1.
    assert model.learn_one([0, 1], [1.0, 2.0], -1) == 0
    # z = g, v = g^2, so w = -(z - 1/2) / (1 + |g|): -1/4 and -1/2.
    assert np.allclose(model.coef, [-0.25, -0.5], rtol=0, atol=1e-15)
    # Row 3, a positive: p = 2/3, s = -1/4, b = 0: slope 2/3 (s - b - 1) = -5/6 = g on feature 0.
    assert model.learn_one([0], [1.0], 1) == -0.25
    g, sigma = -5 / 6, math.sqrt(1 + 25 / 36) - 1
    z = 1 + g - sigma * -0.25
    expected = 0.0 if abs(z) <= 0.5 else -(z - math.copysign(0.5, z)) / (1 + math.sqrt(1 + 25 / 36))
    assert np.allclose(model.coef, [expected, -0.5], rtol=0, atol=1e-15)
    assert np.isclose(model.class_means[1], -0.125)  # the mean of 0 and -1/4


def test_without_l1_it_is_adaptive_gradient_descent():
    """With lambda = 0, w_j -= gamma / (beta + sqrt(v_j)) g_j, v_j including g_j."""
    block = random_block(300, 15, 4)
    model = Model(FtrlAuc(learning_rate=0.7, beta=1.5), dtype="float64", scale="none")
    w, v = np.zeros(15), np.zeros(15)
    n, mean = {1: 0, -1: 0}, {1: 0.0, -1: 0.0}
    for i in range(len(block)):
        at = slice(block.indptr[i], block.indptr[i + 1])
        x = np.zeros(15)
        x[block.indices[at]] = block.values[at]
        y, s = int(block.labels[i]), w @ x
        n[y] += 1
        mean[y] += (s - mean[y]) / n[y]
        g = 2 * n[-y] / (n[1] + n[-1]) * (s - mean[-y] - y) * x
        v += g**2
        w -= 0.7 / (1.5 + np.sqrt(v)) * g
    model.learn(block)
    assert abs(model.coef - w[: model.n_features]).max() < 1e-12


def test_exact_means_are_those_the_rows_would_have_now():
    block = random_block(200, 15, 4)
    model = Model(FtrlAuc(l1=0.1, means="exact"), dtype="float64", scale="none")
    model.learn(block)
    scores = model.score(block)
    _, _, _, _, _, _, dot_neg, dot_pos = model._engine.state.tally
    assert abs(dot_neg - scores[block.labels < 0].sum()) < 1e-12
    assert abs(dot_pos - scores[block.labels > 0].sum()) < 1e-12


def test_the_first_row_that_can_be_learned_has_the_same_slope_under_either_means():
    """Until weights have moved, every score is 0, whenever it is taken."""
    lazy, exact = (Model(FtrlAuc(means=means), dtype="float64") for means in ("lazy", "exact"))
    for model in (lazy, exact):
        model.learn_one([0, 1], [1.0, 2.0], 1)
        model.learn_one([1, 2], [1.0, 1.0], -1)
    assert np.allclose(lazy.coef, exact.coef, rtol=0, atol=1e-15)
    assert lazy.nonzeros == 2
