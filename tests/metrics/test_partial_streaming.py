"""What StreamingAuc promises of a part of the curve: limits that certainly hold the exact value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_auc_streaming import STREAMS, sketch_of, stream

from rarestream.errors import DataError
from rarestream.metrics import StreamingAuc, auc, average_precision, partial_auc, recall_at_fpr

LIMITS = [(0.001, None), (0.01, None), (0.1, None), (0.3, 0.5), (1.0, None)]
RATES = [0.0, 0.001, 0.1, 1.0]


def check(sketch, labels, scores, importances=None):
    for max_fpr, min_recall in LIMITS:
        found = sketch.partial(max_fpr, min_recall)
        exact = partial_auc(labels, scores, max_fpr, min_recall, importances)
        assert found.low - 1e-12 <= exact <= found.high + 1e-12
        assert found.low <= found.value <= found.high
        assert found.bound == max(found.high - found.value, found.value - found.low)
    found = sketch.average_precision()
    assert found.low - 1e-12 <= average_precision(labels, scores, importances) <= found.high + 1e-12
    assert found.low <= found.value <= found.high
    for rate, exact in zip(RATES, recall_at_fpr(labels, scores, RATES, importances), strict=True):
        found = sketch.recall_at_fpr(rate)
        assert found.low - 1e-12 <= exact <= found.high + 1e-12
        assert found.low <= found.value <= found.high


@pytest.mark.parametrize("name", STREAMS)
def test_the_limits_hold_on_streams_meant_to_break_them(name):
    labels, scores = stream(name)
    sketch = sketch_of(labels, scores)
    check(sketch, labels, scores)
    assert sketch.partial(1.0).value == pytest.approx(float(sketch.auc), abs=1e-12)


@pytest.mark.parametrize("name", ["normal", "negatives in the gaps", "three values"])
def test_the_limits_hold_with_importances_and_after_a_merge(name):
    labels, scores = stream(name)
    importances = np.random.default_rng(5).lognormal(0, 2, len(labels))
    sketch = sketch_of(labels[:200_000], scores[:200_000], importances[:200_000])
    sketch.merge(sketch_of(labels[200_000:], scores[200_000:], importances[200_000:]))
    check(sketch, labels, scores, importances)


def test_the_limits_are_narrow_enough_to_be_useful():
    labels, scores = stream("normal")
    sketch = sketch_of(labels, scores)
    assert sketch.partial(0.1).bound < 0.001
    assert sketch.partial(0.01).bound < 0.005
    assert sketch.average_precision().bound < 0.002


def test_with_few_rows_it_is_exact():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(20_000) < 0.1, 1, -1)
    scores = (rng.normal(size=20_000) + (labels > 0)).round(2)
    sketch = sketch_of(labels, scores)
    for max_fpr, min_recall in LIMITS:
        found = sketch.partial(max_fpr, min_recall)
        assert found.bound == 0
        assert found.value == partial_auc(labels, scores, max_fpr, min_recall)
    assert sketch.partial(1).value == pytest.approx(auc(labels, scores))
    found = sketch.average_precision()
    assert found.value == pytest.approx(average_precision(labels, scores), abs=1e-14)
    assert found.bound < 1e-12
    for rate, exact in zip(RATES, recall_at_fpr(labels, scores, RATES), strict=True):
        assert sketch.recall_at_fpr(rate) == (exact, exact, exact)


def test_while_a_class_is_missing_nothing_is_known():
    sketch = StreamingAuc()
    sketch.add([1, 1], [0.5, 0.7])
    for found in (sketch.partial(0.1), sketch.recall_at_fpr(0.1), sketch.average_precision()):
        assert math.isnan(found.value)
        assert (found.low, found.high) == (0, 1)


def test_limits_are_checked():
    with pytest.raises(DataError, match=r"StreamingAuc.partial: max_fpr must be above 0"):
        StreamingAuc().partial(0)
    with pytest.raises(DataError, match=r"StreamingAuc.recall_at_fpr: fpr must be between 0 and 1, got 2"):
        StreamingAuc().recall_at_fpr(2)
