"""Standings: many scorers on the same rows are compared as `auc` and `auc_difference` compare two."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics import auc, auc_difference, paired, student
from rarestream.metrics.estimate import Placements, welch
from rarestream.metrics.paired import Standings


@st.composite
def compared(draw):
    """Labels of both classes, two to five columns of scores with ties, importances or none."""
    n = draw(st.integers(4, 25))
    labels = np.array(
        [1, 1, -1, -1, *draw(st.lists(st.sampled_from([-1, 1]), min_size=n - 4, max_size=n - 4))], np.int8
    )
    score = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6, width=32))
    column = st.lists(score, min_size=n, max_size=n)
    scores = np.array(draw(st.lists(column, min_size=2, max_size=5)), np.float32).T
    importance = st.sampled_from([1.0, 0.5, 2.0, 3.0])
    weights = draw(st.none() | st.lists(importance, min_size=n, max_size=n).map(np.array))
    return labels, scores, weights


def placements(labels, scores, importances):
    """Of each row, by comparing it with every row of the other class."""
    found = np.empty(len(labels))
    for i, label in enumerate(labels):
        others = labels != label
        wins = np.sign(scores[i] - scores[others]) * label / 2 + 0.5
        found[i] = np.average(wins, weights=importances[others])
    return found


def difference(labels, scores_a, scores_b, importances) -> Placements:
    gap = placements(labels, scores_a, importances) - placements(labels, scores_b, importances)
    spreads, rows = [], []
    for mine in (labels > 0, labels < 0):
        h, mean = importances[mine], np.average(gap[mine], weights=importances[mine])
        spreads.append(np.average((gap[mine] - mean) ** 2, weights=h))
        rows.append(h.sum() ** 2 / (h**2).sum())
    return Placements(0.0, *spreads, *rows)


@pytest.mark.parametrize("scorers", [1, 4, 9])
def test_threads_change_no_bit(scorers, monkeypatch):
    rng = np.random.default_rng(scorers)
    labels = np.where(rng.random(5000) < 0.2, 1, -1).astype(np.int8)
    scores = rng.normal(size=(5000, scorers)).astype(np.float32)

    def found() -> tuple[bytes, ...]:
        standings = Standings(labels, scores)
        return standings.aucs.tobytes(), standings.errors(0).tobytes()

    monkeypatch.setattr(paired, "cores", lambda: 3)
    several = found()
    monkeypatch.setattr(paired, "cores", lambda: 1)
    assert found() == several


def test_spreads_of_columns_are_those_of_numpy():
    rng = np.random.default_rng(0)
    for shape in ((1, 2), (7, 3), (3000, 24), (20_000, 8)):
        scores = (rng.normal(size=shape) * 30 + rng.normal(size=shape[1])).astype(np.float32)
        expected = scores.std(axis=0, dtype=np.float64)
        assert np.array_equal(_native.column_spreads(scores), expected)


@given(compared())
def test_aucs_are_exact(rows):
    labels, scores, importances = rows
    found = Standings(labels, scores, importances).aucs
    expected = [auc(labels, column, importances) for column in scores.T]
    assert np.allclose(found, expected, rtol=0, atol=1e-12)


@given(compared(), st.data())
def test_errors_are_those_of_the_paired_difference(rows, data):
    labels, scores, importances = rows
    other = data.draw(st.integers(0, scores.shape[1] - 1))
    standings = Standings(labels, scores, importances)
    errors = standings.errors(other)
    assert errors[other] == 0
    for one, error in enumerate(errors):
        plain = difference(
            labels, scores[:, one], scores[:, other], np.ones(len(labels)) if importances is None else importances
        )
        assert error**2 == pytest.approx(
            sum(spread / (n - 1) for spread, n in zip(plain[1:3], plain[3:], strict=True)), abs=1e-12
        )
        variance, freedom = welch(plain)
        if variance > 1e-9:  # where auc_difference knows how sure it is
            found = auc_difference(labels, scores[:, one], scores[:, other], importances, level=0.2)
            assert (
                found.high - found == pytest.approx(student.quantile(0.6, freedom) * error, abs=1e-9) or found.high == 1
            )


def test_importances_of_any_size_and_of_none_change_nothing():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.array([1, -1], np.int8), [40, 60])
    scores = rng.normal(size=(100, 3)) + labels[:, None]
    plain = Standings(labels, scores)
    for weight in (1.0, 1e-300, 1e300, 1e308):
        weighted = Standings(labels, scores, np.full(100, weight))
        assert np.allclose(weighted.aucs, plain.aucs, rtol=0, atol=1e-12)
        assert np.allclose(weighted.errors(0), plain.errors(0), rtol=1e-9, atol=1e-12)
    some = np.arange(100) % 3 > 0
    absent, gone = Standings(labels, scores, some.astype(float)), Standings(labels[some], scores[some])
    assert np.allclose(absent.aucs, gone.aucs, rtol=0, atol=1e-12)
    assert np.allclose(absent.errors(1), gone.errors(1), rtol=1e-9, atol=1e-12)


def test_one_row_of_a_class_tells_nothing_of_a_difference():
    labels = np.array([1, -1, -1, -1], np.int8)
    scores = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [0.5, 2.0, 1.0], [2.0, 3.0, 3.0]])
    assert Standings(labels, scores).errors(0).tolist() == [0.0, math.inf, 0.0]  # the third ranks as the first


@pytest.mark.parametrize(
    ("labels", "importances"),
    [([1, 1, 1], None), ([-1, -1, -1], None), ([1, -1, -1], [0.0, 1.0, 1.0]), ([], None)],
)
def test_one_class_is_refused(labels, importances):
    weights = None if importances is None else np.array(importances)
    with pytest.raises(DataError, match="Standings: needs rows of both classes"):
        Standings(np.array(labels, np.int8), np.zeros((len(labels), 2)), weights)
