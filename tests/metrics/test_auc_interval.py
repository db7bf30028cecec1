"""What intervals promise: DeLong's variance, ends within [0, 1], and the coverage they claim."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from auc_textbook import delong_variance, delong_variance_of_difference
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from test_auc_exact import any_score, scored

from rarestream.errors import DataError
from rarestream.metrics import Estimate, auc, auc_difference, auc_interval, student
from rarestream.metrics.estimate import Difference


def binormal(rng, n_pos, n_neg, truth):
    """Scores whose AUC would be `truth` if there were infinitely many."""
    shift = math.sqrt(2) * stats.norm.ppf(truth)
    labels = np.repeat([1, 0], [n_pos, n_neg])
    return labels, rng.normal(size=n_pos + n_neg) + shift * labels


@given(scored())
def test_an_interval_lies_within_zero_and_one_around_the_exact_auc(rows):
    found = auc_interval(*rows)
    assert float(found) == auc(*rows)
    assert 0 <= found.low <= found <= found.high <= 1
    assert found.bound == 0


def test_the_variance_is_delongs():
    rng = np.random.default_rng(0)
    labels, scores = binormal(rng, 300, 500, 0.75)
    scores = scores.round(1)
    found = auc_interval(labels, scores)
    # Far from the ends and with many rows, Wilson's interval is the plain one, to second order.
    half = 1.96 * math.sqrt(delong_variance(labels, scores))
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.02)


def test_the_paired_difference_is_delongs():
    rng = np.random.default_rng(1)
    labels, a = binormal(rng, 60, 200, 0.8)
    b = (a + 0.5 * rng.normal(size=len(a))).round(1)
    found = auc_difference(labels, a, b)
    variance, freedom = delong_variance_of_difference(labels, a, b)
    error = math.sqrt(variance)
    assert float(found) == pytest.approx(auc(labels, a) - auc(labels, b), abs=1e-15)
    assert found.p_value == pytest.approx(2 * stats.t.sf(found / error, freedom), rel=1e-6)
    assert found.high - found == pytest.approx(stats.t.ppf(0.975, freedom) * error, rel=1e-9)
    opposite = auc_difference(labels, b, a)
    assert (opposite, opposite.low, opposite.high) == (-found, -found.high, -found.low)


@given(scored(), st.data())
def test_a_difference_stays_in_range_and_its_p_value_agrees_with_its_interval(rows, data):
    labels, a = rows
    b = np.array(data.draw(st.lists(any_score, min_size=len(a), max_size=len(a))))
    found = auc_difference(labels, a, b)
    assert -1 <= found.low <= found <= found.high <= 1
    if not math.isnan(found.p_value):
        assert 0 <= found.p_value <= 1
        assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0) or abs(found.p_value - 0.05) < 1e-6


def test_a_scorer_does_not_differ_from_itself():
    labels, scores = binormal(np.random.default_rng(2), 20, 50, 0.7)
    found = auc_difference(labels, scores, np.exp(scores))
    assert (found, found.low, found.high, found.p_value) == (0, 0, 0, 1)


@pytest.mark.parametrize(
    ("n_pos", "n_neg", "truth", "at_least"),
    [
        (500, 5000, 0.8, 0.93),
        (50, 1000, 0.7, 0.92),
        (10, 1000, 0.75, 0.91),
        (5, 500, 0.6, 0.91),
        (10, 10, 0.95, 0.93),
    ],
)
def test_intervals_cover_the_truth_about_as_often_as_they_say(n_pos, n_neg, truth, at_least):
    rng = np.random.default_rng(n_pos)
    covered = 0
    for _ in range(400):
        found = auc_interval(*binormal(rng, n_pos, n_neg, truth))
        covered += found.low <= truth <= found.high
    assert at_least <= covered / 400 <= 0.995


@pytest.mark.parametrize(("positives", "lowest"), [(1, 0.2), (3, 0.4), (30, 0.85), (1000, 0.995)])
def test_a_perfect_ranking_of_few_positives_is_not_taken_for_certain(positives, lowest):
    found = auc_interval([1] * positives + [0] * 2000, [1.0] * positives + [0.0] * 2000)
    assert found == found.high == 1
    assert lowest < found.low < 1


def test_a_higher_level_gives_a_wider_interval():
    labels, scores = binormal(np.random.default_rng(3), 40, 80, 0.8)
    widths = [found.high - found.low for found in (auc_interval(labels, scores, level=p) for p in (0.5, 0.9, 0.99))]
    assert widths == sorted(widths)
    for level in (0, 1, -1, 95):
        with pytest.raises(DataError, match="level must be between 0 and 1"):
            auc_interval(labels, scores, level=level)


def test_importances_widen_an_interval_and_their_scale_does_not_matter():
    rng = np.random.default_rng(4)
    labels, scores = binormal(rng, 100, 300, 0.8)
    equal, unequal = np.ones(400), np.exp(2 * rng.normal(size=400))
    plain, same = auc_interval(labels, scores), auc_interval(labels, scores, equal * 7)
    assert same.low == pytest.approx(plain.low, rel=1e-12)
    uneven = auc_interval(labels, scores, unequal)
    assert uneven.high - uneven.low > plain.high - plain.low
    assert auc_interval(labels, scores, unequal * 1e-200).low == pytest.approx(uneven.low)


def test_an_estimate_is_a_float_that_prints_and_keeps_its_interval():
    found = Estimate(0.91234, low=0.9, high=0.925, bound=1e-4)
    assert isinstance(found, float)
    assert found + 0 == 0.91234
    assert str(found) == f"{found}" == "0.9123 [0.9000, 0.9250]"
    assert f"{found:.2f}" == "0.91"
    assert repr(found) == "Estimate(0.91234, low=0.9, high=0.925, bound=0.0001)"
    assert json.dumps(found) == "0.91234"
    copy = pickle.loads(pickle.dumps(found))
    assert (copy, copy.low, copy.high, copy.bound, copy.level) == (0.91234, 0.9, 0.925, 1e-4, 0.95)
    difference = pickle.loads(pickle.dumps(Difference(0.1, 0.0, 0.2, p_value=0.04)))
    assert (difference, difference.p_value) == (0.1, 0.04)


@pytest.mark.parametrize("freedom", [1, 1.7, 3, 10, 250, 1e5, 1e7, 1e12])
def test_students_distribution_is_scipys(freedom):
    for p in (0.5, 0.6, 0.9, 0.975, 0.9995):
        assert student.quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-7, abs=1e-9)
    for t in (-40.0, -2.0, -0.1, 0.0, 0.3, 5.0):
        assert student.cdf(t, freedom) == pytest.approx(stats.t.cdf(t, freedom), rel=1e-6, abs=1e-14)
