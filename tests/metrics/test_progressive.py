"""ProgressiveScores: rows that wait are counted when somebody asks, as if they had never waited."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream.metrics import Calibration, StreamingAuc
from rarestream.metrics.progressive import MOST_PARTS, MOST_ROWS, ProgressiveScores
from rarestream.metrics.rows import ScoredRows


def some_rows(count: int, seed: int = 0, importances: bool = False) -> ScoredRows:
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(count) < 0.3, 1, -1).astype(np.int8)
    scores = labels + rng.normal(size=count)
    return ScoredRows(labels, scores, rng.random(count) * 3 if importances else None)


def started(calibrate: bool = True) -> ProgressiveScores:
    return ProgressiveScores(StreamingAuc(), Calibration() if calibrate else None)


def same(one: ProgressiveScores, other: ProgressiveScores) -> bool:
    states = [scores.auc.state() for scores in (one, other)]
    calibrations = [None if scores.calibration is None else scores.calibration.numbers for scores in (one, other)]
    return (
        states[0].keys() == states[1].keys()
        and all(np.array_equal(states[0][name], states[1][name]) for name in states[0])
        and (calibrations[0] is None) == (calibrations[1] is None)
        and (calibrations[0] is None or np.array_equal(*calibrations))
    )


@given(
    st.lists(
        st.tuples(st.sampled_from(["count", "restart", "read"]), st.booleans(), st.integers(0, 50), st.booleans()),
        max_size=12,
    ),
    st.booleans(),
)
def test_rows_that_waited_count_as_others(acts, calibrate):
    waiting, expected = started(calibrate), started(calibrate)
    for number, (act, wait, count, importances) in enumerate(acts):
        rows = some_rows(count, number, importances)
        if act == "read":
            assert same(waiting, expected)
        elif act == "count":
            waiting.count(rows, wait)
            expected.count(rows)
        else:
            waiting.restart(rows, wait)
            expected.restart(rows)
    assert same(waiting, expected)


def test_rows_that_wait_are_copied():
    waiting, expected = started(), started()
    rows = some_rows(40, importances=True)
    expected.count(rows)
    waiting.count(rows, wait=True)
    assert rows.importances is not None
    rows.labels[:], rows.scores[:], rows.importances[:] = 1, 0, 0
    assert same(waiting, expected)


@pytest.mark.parametrize(("parts", "rows"), [(MOST_PARTS + 1, 1), (3, MOST_ROWS // 2)])
def test_not_many_wait(parts, rows):
    waiting = started()
    for number in range(parts):
        waiting.count(some_rows(rows, number), wait=True)
    assert waiting._waiting == []
    assert waiting._calibration is not None
    assert waiting._calibration.rows == parts * rows


def test_a_restart_gives_a_new_auc_so_that_the_change_can_be_seen():
    scores = started()
    before = scores.auc
    scores.restart(some_rows(5), wait=True)
    assert scores.auc is not before
    assert scores.auc is scores.auc


def test_another_thread_may_ask_while_rows_are_counted():
    waiting, expected, stop = started(), started(), threading.Event()

    def ask() -> None:
        while not stop.is_set():
            waiting.auc.auc  # noqa: B018

    asking = threading.Thread(target=ask)
    asking.start()
    for number in range(300):
        waiting.count(some_rows(20, number), wait=number % 7 != 0)
        expected.count(some_rows(20, number))
    stop.set()
    asking.join()
    assert same(waiting, expected)
