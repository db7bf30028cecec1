"""What auc promises: the exact share of pairs, ties half, whatever the scores look like."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from auc_textbook import auc_by_sorting, auc_of_all_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from rarestream.errors import DataError
from rarestream.metrics import auc, auc_interval

GOLDEN = json.loads((Path(__file__).parent / "auc_cases.json").read_text())

# A few distinct values make ties common; the others are what breaks careless code.
any_score = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, 5e-324, -5e-324, 1e308]),
    st.floats(allow_nan=False),
)


@st.composite
def scored(draw, scores=any_score, importances=False):
    """Labels of both classes, scores, and importances where wanted."""
    n = draw(st.integers(2, 40))
    labels = draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n))
    labels[0], labels[1] = 1, -1
    found = draw(st.lists(scores, min_size=n, max_size=n))
    if not importances:
        return np.array(labels, np.int8), np.array(found)
    weights = draw(st.lists(st.one_of(st.just(0.0), st.floats(0.01, 100)), min_size=n, max_size=n))
    weights[0] = weights[1] = 1.0
    return np.array(labels, np.int8), np.array(found), np.array(weights)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_golden_cases(case):
    assert auc(case["labels"], case["scores"]) == pytest.approx(case["auc"], abs=1e-15)


@given(scored())
def test_agrees_with_looking_at_every_pair(rows):
    assert auc(*rows) == float(auc_of_all_pairs(*rows))


@given(scored(importances=True))
def test_agrees_with_weighing_every_pair(rows):
    assert auc(*rows) == pytest.approx(float(auc_of_all_pairs(*rows)), abs=1e-14)


@given(scored())
def test_only_the_order_of_scores_matters(rows):
    labels, scores = rows
    ranks = np.unique(scores, return_inverse=True)[1]
    assert auc(labels, scores) == auc(labels, ranks)
    assert auc(labels, scores) == auc(labels, np.ldexp(ranks.astype(float), -1060))


@given(scored())
def test_turning_labels_or_scores_round_turns_the_auc_round(rows):
    labels, scores = rows
    assert auc(-labels, scores) == pytest.approx(1 - auc(labels, scores), abs=1e-15)
    assert auc(labels, -scores) == pytest.approx(1 - auc(labels, scores), abs=1e-15)


@given(scored(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, random):
    labels, scores = rows
    order = list(range(len(labels)))
    random.shuffle(order)
    assert auc(labels[order], scores[order]) == auc(labels, scores)


@given(scored(), st.data())
def test_an_importance_of_two_is_the_row_twice_and_of_zero_the_row_absent(rows, data):
    labels, scores = rows
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(labels), max_size=len(labels))))
    times[:2] = 1
    assert auc(labels, scores, times) == pytest.approx(auc(np.repeat(labels, times), np.repeat(scores, times)))


@pytest.mark.parametrize("scale", [1e-250, 1e-30, 1e30, 1e250])
def test_the_scale_of_importances_does_not_matter(scale):
    rng = np.random.default_rng(3)
    labels, scores, importances = rng.integers(0, 2, 500), rng.normal(size=500).round(1), rng.random(500)
    assert auc(labels, scores, importances * scale) == pytest.approx(auc(labels, scores, importances), rel=1e-13)


def shapes(rng, labels):
    """Scores that send the counting down each of its ways."""
    n = len(labels)
    normal = rng.normal(size=n) + 0.7 * labels
    yield "normal", normal
    yield "heavy tails", normal / rng.normal(size=n)
    yield "many scales", np.exp(60 * normal)
    yield "clustered", 1e6 + 1e-9 * normal
    yield "few values", normal.round(1)
    yield "thousands of values", normal.round(3)
    yield "hundreds of values", rng.integers(0, 700, n) / 7
    yield "ties at first, then none", np.where(np.arange(n) < n // 2, normal.round(1), normal)
    yield "ties where a sample looks", np.where(np.arange(n) % max(1, n // min(1024, n // 64)) == 0, 0.5, normal)
    yield "both zeros", np.where(rng.random(n) < 0.5, -0.0, np.where(rng.random(n) < 0.5, 0.0, normal.round()))
    yield "two values", (normal > 0).astype(float)
    yield "one value", np.full(n, 0.25)
    yield "one value and outliers", np.where(rng.random(n) < 0.9, 0.0, normal * 1e9)
    yield "a crowd amid others", np.where(rng.random(n) < 0.2, 0.0, normal)
    yield "many crowds amid others", np.where(rng.random(n) < 0.5, normal.round(), normal)
    yield "denormals", np.round(normal * 1e4) * 5e-324
    yield "sorted", np.sort(normal)
    yield "infinite ends", np.where(rng.random(n) < 0.2, np.copysign(np.inf, normal), normal)
    yield "geometric", np.ldexp(1.0, rng.integers(-1000, 1000, n))


@pytest.mark.parametrize("share", [0.5, 0.03, 0.0005])
@pytest.mark.parametrize("rows", [3_000, 120_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_shape_of_scores_is_counted_exactly(rows, share, dtype):
    rng = np.random.default_rng(rows)
    labels = (rng.random(rows) < share).astype(np.int8)
    labels[:2] = 0, 1
    for name, scores in shapes(rng, labels):
        with np.errstate(over="ignore"):
            given_scores = scores.astype(dtype)
        assert auc(labels, given_scores) == auc_by_sorting(labels, given_scores), name
        assert auc(1 - labels, given_scores) == auc_by_sorting(1 - labels, given_scores), name


def test_agrees_with_scikit_learn():
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 2, 50_000)
    scores, importances = (rng.normal(size=50_000) + labels).round(3), rng.random(50_000)
    assert auc(labels, scores) == pytest.approx(roc_auc_score(labels, scores), abs=1e-13)
    expected = roc_auc_score(labels, scores, sample_weight=importances)
    assert auc(labels, scores, importances) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int16, np.int32, np.int64, np.float32, np.float64])
def test_labels_of_any_kind_mean_the_same(kind):
    rng = np.random.default_rng(5)
    labels, scores = rng.integers(0, 2, 200), rng.normal(size=200)
    expected = auc(labels, scores)
    assert auc(labels.astype(kind), scores) == expected
    if np.dtype(kind).kind in "if":
        assert auc((2 * labels - 1).astype(kind), scores) == expected
    assert auc(list(labels), list(scores)) == expected
    assert auc(np.repeat(labels, 2)[::2], np.repeat(scores, 2)[::2]) == expected


@settings(max_examples=20)
@given(scored(scores=st.integers(-5, 5)))
def test_whole_numbers_are_scores_too(rows):
    labels, scores = rows
    assert auc(labels, scores) == auc(labels, scores.astype(float))


@pytest.mark.parametrize(
    ("labels", "scores", "importances", "message"),
    [
        ([], [], None, "got 0 positive and 0 negative"),
        ([1, 1, 1], [1, 2, 3], None, "got 3 positive and 0 negative.*StreamingAuc"),
        ([0, 0], [1, 2], None, "got 0 positive and 2 negative"),
        ([0, 1, 1], [1, 2, 3], [0, 1, 1], "got 2 positive and 0 negative"),
        ([1, -1, 1], [1, math.nan, 2], None, "row 1 has the score nan.*infinite scores are fine"),
        ([1, -1, 7], [1, 2, 3], None, "row 2 has the label 7; labels are"),
        ([1, 0.5], [1, 2], None, "row 1 has the label 0.5; labels are"),
        ([1, 300], [1, 2], None, "row 1 has the label 300"),
        ([1, math.nan], [1, 2], None, "row 1 has the label nan"),
        ([1, 0, -1], [1, 2, 3], None, "labels mix -1, 0 and \\+1"),
        ([1, 0], [1, 2, 3], None, "2 labels but 3 scores"),
        ([1, 0], [1, 2], [1], "1 importances"),
        ([1, 0], [1, 2], [1, -2], "row 1 has the importance -2.0"),
        ([1, 0], [1, 2], [math.inf, 1], "row 0 has the importance inf"),
        ([1, 0], [1, 2], [math.nan, 1], "row 0 has the importance nan"),
        ([[1, 0]], [[1, 2]], None, "one-dimensional"),
        (["yes", "no"], [1, 2], None, "labels must be numbers"),
        ([1, 0], ["high", "low"], None, "scores must be numbers"),
        ([1, 0], [1j, 2], None, "scores must be real numbers"),
    ],
)
def test_rows_that_break_a_rule_are_refused_with_a_way_on(labels, scores, importances, message):
    with pytest.raises(DataError, match=f"auc: .*{message}"):
        auc(labels, scores, importances)


@pytest.mark.parametrize("weights", [(1e300, 1e-300), (1e-300, 1e300), (5e-324, 1e308), (1e-20, 5e-324)])
def test_each_class_may_have_importances_of_any_size(weights):
    labels, scores = [1, 1, 1, -1, -1], [0.5, 2.0, 3.0, 1.0, 0.0]
    importances = np.where(np.array(labels) > 0, *weights)
    for found in (auc(labels, scores, importances), float(auc_interval(labels, scores, importances))):
        assert math.isclose(found, auc(labels, scores), rel_tol=1e-14)
