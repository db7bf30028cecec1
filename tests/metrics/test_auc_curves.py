"""What the metrics beside AUC promise: scikit-learn's numbers, ties as one step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_curve
from test_auc_exact import scored

from rarestream.errors import DataError
from rarestream.metrics import average_precision, recall_at_fpr

plain_score = st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5]), st.floats(-1e6, 1e6))


@given(scored(scores=plain_score, importances=True), st.booleans())
def test_average_precision_is_scikit_learns(rows, weighted):
    labels, scores, importances = rows
    weights = importances if weighted else None
    expected = average_precision_score(labels, scores, sample_weight=weights)
    assert average_precision(labels, scores, weights) == pytest.approx(expected, abs=1e-12)


@given(scored(scores=plain_score, importances=True), st.booleans())
def test_recall_at_a_false_positive_rate_is_the_best_scikit_learns_curve_reaches(rows, weighted):
    labels, scores, importances = rows
    weights = importances if weighted else None
    rates = np.array([0.0, 0.013, 0.1, 0.517, 0.99, 1.0])
    fpr, tpr, _ = roc_curve(labels, scores, sample_weight=weights, drop_intermediate=False)
    expected = [tpr[fpr <= rate + 1e-12].max() for rate in rates]
    assert recall_at_fpr(labels, scores, rates, weights) == pytest.approx(expected, abs=1e-12)


def test_float32_scores_are_ranked_as_they_are():
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 1000), rng.normal(size=1000).astype(np.float32)
    assert average_precision(labels, scores) == average_precision(labels, scores.astype(float))


@pytest.mark.parametrize("metric", [average_precision, lambda y, s: recall_at_fpr(y, s, 0.1)])
def test_one_class_has_no_curve(metric):
    with pytest.raises(DataError, match="needs rows of both classes, got 2 positive and 0 negative"):
        metric([1, 1], [1.0, 2.0])


@pytest.mark.parametrize("rate", [-0.1, 1.1, np.nan])
def test_rates_are_shares(rate):
    with pytest.raises(DataError, match="between 0 and 1"):
        recall_at_fpr([1, 0], [1.0, 2.0], [rate])
