"""What WindowedAuc promises: the exact AUC of the last rows, however they arrived."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream.errors import DataError
from rarestream.metrics import WindowedAuc, auc, auc_interval


@given(st.integers(2, 60), st.lists(st.integers(0, 40), min_size=1, max_size=8), st.booleans())
def test_it_is_the_auc_of_the_last_rows_wherever_blocks_are_cut(window, sizes, weighted):
    rng = np.random.default_rng(sum(sizes))
    n = sum(sizes)
    labels, scores = rng.choice([-1, 1], n), rng.normal(size=n).round(1)
    importances = rng.random(n) + 0.1 if weighted else None
    windowed = WindowedAuc(window)
    for piece in np.split(np.arange(n), np.cumsum(sizes)[:-1]):
        windowed.add(labels[piece], scores[piece], None if importances is None else importances[piece])
    last = slice(max(0, n - window), n)
    assert len(windowed) == min(n, window)
    if len(set(labels[last])) < 2:
        assert math.isnan(windowed.auc)
        return
    expected = auc_interval(labels[last], scores[last], None if importances is None else importances[last])
    assert (windowed.auc, windowed.auc.low, windowed.auc.high) == (expected, expected.low, expected.high)
    assert windowed.auc.bound == 0
    for restored in (WindowedAuc.from_state(windowed.state()), pickle.loads(pickle.dumps(windowed))):
        assert restored.auc == windowed.auc
        windowed_again, more = pickle.loads(pickle.dumps(windowed)), ([1, -1, 1], [0.3, 0.2, 0.1])
        restored.add(*more)
        windowed_again.add(*more)
        for name, array in windowed_again.state().items():
            assert np.array_equal(restored.state()[name], array)


def test_rows_of_importance_zero_take_no_place():
    windowed = WindowedAuc(3)
    windowed.add([1, -1, -1], [3.0, 1.0, 2.0])
    windowed.add([1, 1], [0.0, 0.0], [0.0, 0.0])
    assert windowed.auc == 1
    assert len(windowed) == 3


def test_labels_zero_and_one_mean_minus_and_plus_one():
    windowed = WindowedAuc(10)
    windowed.add([0, 1], [1.0, 2.0])
    windowed.add([-1, 1], [1.5, 1.0])
    assert windowed.auc == auc([0, 1, 0, 1], [1.0, 2.0, 1.5, 1.0])


def test_refused_rows_change_nothing():
    windowed = WindowedAuc(10)
    windowed.add([0, 1], [1.0, 2.0])
    with pytest.raises(DataError, match=r"WindowedAuc\.add: row 1 has the score nan"):
        windowed.add([0, 1], [1.0, math.nan])
    assert len(windowed) == 2


@pytest.mark.parametrize("window", [-1, 0, 1])
def test_a_window_has_at_least_two_rows(window):
    with pytest.raises(DataError, match="window must be at least 2"):
        WindowedAuc(window)


@pytest.mark.parametrize(
    "change",
    [
        {"window": np.array([1])},
        {"window": np.array([2.5])},
        {"window": np.array([10, 10])},
        {"labels": np.array([1, 3, 1], np.int8)},
        {"labels": np.array([1], np.int8)},
        {"scores": np.array([1.0, math.nan, 2.0])},
        {"importances": np.array([1.0, -1.0, 2.0])},
    ],
)
def test_a_state_that_was_never_written_is_refused(change):
    windowed = WindowedAuc(5)
    windowed.add([0, 1, 1], [1.0, 2.0, 3.0])
    with pytest.raises(DataError):
        WindowedAuc.from_state({**windowed.state(), **change})
    with pytest.raises(DataError, match="needs labels"):
        WindowedAuc.from_state({k: v for k, v in windowed.state().items() if k != "labels"})
