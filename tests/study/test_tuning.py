"""Tuning: the first of the best is chosen and run alone, failures are results, and a curve is timed while it learns."""

from __future__ import annotations

import pytest

from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.study import tuning
from rarestream.study.tuning import CurveClock, Judged, best, failed_point, learning_curve, point, run_best, try_setting

SETTINGS = [{"l1": value} for value in (0.1, 1.0, 10.0)]


def tried(*aucs):
    return [tuning.tried_point(setting, Judged(auc, 0.5, 1), 0.1) for setting, auc in zip(SETTINGS, aucs, strict=False)]


def alone(setting, point):
    return {"curve": {"rows": [1], "seconds": [1.0], "test_auc": [setting["l1"]]}}


def refused(setting, point):
    raise DataError("too large.")


def test_the_first_of_the_best_is_chosen_and_run_alone():
    row = run_best(SETTINGS, tried(0.7, 0.9, 0.9), alone, (DataError,))
    assert (row["chosen"], row["error"]) == (1, None)
    assert row["curve"]["test_auc"] == [1.0] and len(row["points"]) == 3


def test_a_setting_that_failed_is_not_chosen_and_if_all_did_the_row_says_why():
    failed = [
        failed_point(setting, error)
        for setting, error in zip(SETTINGS, (DataError("one."), MemoryError()), strict=False)
    ]
    assert best([failed[0], *tried(0.1)]) == 1
    assert best(failed) is None
    row = run_best(SETTINGS[:2], failed, alone, (DataError,))
    assert (row["chosen"], row["curve"], row["error"]) == (None, None, "one.")
    assert failed[1]["error"] == "out of memory"


def test_a_single_setting_that_was_not_tried_is_chosen():
    assert run_best(SETTINGS[:1], [point(SETTINGS[0])], alone, (DataError,))["chosen"] == 0
    assert run_best(SETTINGS[:1], [point(SETTINGS[0])], refused, (DataError,))["error"] == "too large."


def test_a_failure_alone_is_a_result_and_any_other_error_is_not():
    row = run_best(SETTINGS, tried(0.7, 0.8, 0.9), refused, (DataError,))
    assert (row["chosen"], row["error"]) == (None, "the chosen setting failed when run alone: too large.")
    with pytest.raises(DataError):
        run_best(SETTINGS, tried(0.7, 0.8, 0.9), refused, (MemoryError,))


def test_only_the_fit_is_timed(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(tuning, "clock", lambda: now[0])

    def take(seconds, result):
        now[0] += seconds
        return result

    found = try_setting({}, lambda: take(2, "model"), lambda model: take(5, Judged(0.6, 0.7, 3)), (DataError,))
    assert (found["seconds"], found["valid_auc"], found["test_auc"], found["nonzeros"]) == (2, 0.6, 0.7, 3)

    train = Block.of([[1.0]] * 60, [1, -1] * 30)
    curve = learning_curve(train, lambda rows: take(len(rows), None), lambda: take(100, 0.8), end=0.9)
    assert curve.points() == {"rows": [1, 51, 60], "seconds": [1, 51, 60], "test_auc": [0.8, 0.8, 0.9]}
    assert curve.points(seconds=6.0)["seconds"] == pytest.approx([0.1, 5.1, 6.0])


def test_a_curve_that_took_no_time_is_not_stretched(monkeypatch):
    monkeypatch.setattr(tuning, "clock", lambda: 0.0)
    curve = CurveClock()
    curve.learned(1)
    curve.tested(0.5)
    assert curve.points(seconds=3.0)["seconds"] == [0.0]
