"""What DriftDetector promises: alarms when the AUC falls, false ones as rarely as stated, wherever blocks are cut."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from rarestream import Model
from rarestream.errors import DataError
from rarestream.evaluate.synthetic import Planted
from rarestream.metrics import DriftDetector


def rows_of(auc, n, share=0.2, seed=0):
    """Labels, and normal scores with this AUC, which may be one per row."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < share
    shift = ndtri(auc) * math.sqrt(2)
    return np.where(positive, 1, -1).astype(np.int8), rng.standard_normal(n) + positive * shift


def same_state(one, other):
    return all(np.array_equal(array, other.state()[name]) for name, array in one.state().items())


class Textbook:
    """The equations of rarestream/metrics/drift.py, all placements kept, summed anew for each group."""

    def __init__(self, limit, tolerance=0.0, window=1000):
        self.limit, self.tolerance, self.window = limit, tolerance, window
        self.alarms, self.run, self.side, self.row = [], [], 0, 0
        self.restart()

    def restart(self):
        self.placed, self.reference, self.capital, self.gain = [], 0.0, [0.0] * 8, [0.0] * 8

    @property
    def statistic(self):
        return min(sum(self.capital), self.limit * self.gain[int(np.argmax(self.capital))] / 8)

    def bound(self, placed, extra):
        n = len(placed)
        v = sum((x - (0.5 + sum(placed[:i])) / (i + 1)) ** 2 for i, x in enumerate(placed))
        gaps = [n]
        for j in range(24):
            g = 0.8 / 2**j
            gaps.append((extra + math.log((j + 2) * (j + 3)) + (-math.log(1 - g) - g) * v) / g)
        return (sum(placed) - min(gaps)) / n

    def count(self, label, score):
        self.row += 1
        if self.side in (0, label):
            self.side = label
            self.run = [*self.run, score][-self.window :]
            return
        won = sum((score > other) + 0.5 * (score == other) for other in self.run) / len(self.run)
        x = won if label > 0 else 1 - won
        self.run, self.side = [], 0
        m = max(0.0, self.reference - self.tolerance)
        for k in range(8):
            factor = 1 + 0.64 / 2**k * (m - x) / (1 - m)
            self.capital[k] = (self.capital[k] + 1 / 8) * factor
            self.gain[k] = max(self.gain[k], 1.0) * factor
        if self.statistic >= self.limit:
            self.alarms.append(self.row)
            self.restart()
            return
        self.placed.append(x)
        first, stretch = 0, 0
        while first + 64 * 2**stretch < len(self.placed):
            first, stretch = first + 64 * 2**stretch, stretch + 1
        latest = self.bound(self.placed[first:], math.log((stretch + 1) * (stretch + 2)))
        self.reference = max(self.reference, self.bound(self.placed, 0.0), latest)


@pytest.mark.parametrize(("tolerance", "window"), [(0.0, 1000), (0.05, 2)])
def test_agrees_with_the_textbook(tolerance, window):
    before, after = rows_of(0.9, 1200, 0.3, 1), rows_of(0.5, 600, 0.6, 2)
    labels, scores = (np.concatenate(both) for both in zip(before, after, strict=True))
    scores = scores.round(1)
    plain, detector = Textbook(50, tolerance, window), DriftDetector(50, tolerance=tolerance, window=window)
    for label, score in zip(labels.tolist(), scores.tolist(), strict=True):
        plain.count(label, score)
    assert detector.count(labels, scores)
    assert [alarm.row for alarm in detector.alarms] == plain.alarms
    assert detector.reference == pytest.approx(plain.reference, abs=1e-12)
    assert detector.statistic == pytest.approx(math.log1p(plain.statistic), rel=1e-9)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 90), min_size=1, max_size=8), st.integers(1, 40), st.sampled_from([0.05, 0.3, 0.7]))
def test_where_blocks_are_cut_does_not_matter_nor_does_saving(sizes, window, share):
    n = sum(sizes)
    labels, scores = (
        rows_of(np.where(np.arange(n) < n // 2, 0.95, 0.2), n, share, n) if n else (np.zeros(0), np.zeros(0))
    )
    importances = (np.arange(n) % 7 > 0).astype(float)
    whole, cut, one = (DriftDetector(10, window=window) for _ in range(3))
    raised = whole.count(labels, scores, importances)
    pieces = np.split(np.arange(n), np.cumsum(sizes)[:-1])
    each = []
    for piece in pieces:
        each.append(cut.count(labels[piece], scores[piece], importances[piece]))
        cut = DriftDetector.from_state(cut.state())
    for i in range(n):
        one.count(labels[i : i + 1], scores[i : i + 1], importances[i : i + 1])
    assert raised == any(each) == bool(whole.alarms)
    assert same_state(whole, cut)
    assert same_state(whole, one)
    assert same_state(whole, pickle.loads(pickle.dumps(whole)))
    assert whole.alarms == cut.alarms
    assert whole.rows == n


@given(st.integers(0, 1000))
def test_swapping_the_classes_and_negating_the_scores_changes_nothing(seed):
    labels, scores = rows_of(0.7, 500, 0.3, seed)
    one, other = DriftDetector(20), DriftDetector(20)
    one.count(labels, scores.round(1))
    other.count(-labels, -scores.round(1))
    assert (one.alarms, one.statistic, one.reference) == (other.alarms, other.statistic, other.reference)


def test_only_the_order_of_scores_matters():
    labels, scores = rows_of(np.repeat([0.9, 0.6], 2000), 4000)
    one, other = DriftDetector(1000), DriftDetector(1000)
    one.count(labels, scores)
    other.count(labels, np.exp(scores / 3))
    assert one.alarms
    assert one.alarms == other.alarms
    assert np.array_equal(one.state()["numbers"], other.state()["numbers"])


@pytest.mark.parametrize("scores", [lambda labels: labels * 1.0, lambda labels: labels * 0.0])
def test_a_perfect_ranking_and_equal_scores_raise_no_alarm(scores):
    labels, _ = rows_of(0.8, 100_000)
    detector = DriftDetector(10)
    assert not detector.count(labels, scores(labels))
    assert detector.alarm is None
    assert detector.reference <= (1 if scores(labels).any() else 0.5)


@pytest.mark.parametrize("labels", [1, -1])
def test_rows_of_one_class_raise_no_alarm_and_need_no_memory(labels):
    detector = DriftDetector(10, window=50)
    assert not detector.count(np.full(5000, labels), np.arange(5000.0))
    assert detector.state()["scores"].size == 50


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_an_auc_that_rises_raises_no_alarm(share):
    n = int(20_000 / share)
    for seed in range(3):
        detector = DriftDetector(10_000)
        assert not detector.count(*rows_of(np.linspace(0.55, 0.95, n), n, share, seed))
        assert detector.reference > 0.8  # it follows


@pytest.mark.parametrize(("auc", "share"), [(0.6, 0.3), (0.8, 0.05), (0.8, 0.9), (0.95, 0.3), (0.99, 0.05)])
def test_false_alarms_are_as_rare_as_stated(auc, share):
    stated, multiple = 1000, 100
    n = int(stated * multiple / min(share, 1 - share))
    detector = DriftDetector(stated)
    detector.count(*rows_of(auc, n, share, 3))
    # About 20 are found; benchmarks/drift_alarms.py simulates longer streams, and more of them.
    assert 5 <= detector.alarm_count <= 60


@pytest.mark.parametrize(("auc", "drop", "most"), [(0.8, 0.1, 500), (0.8, 0.2, 150), (0.99, 0.05, 250)])
def test_a_fall_is_found(auc, drop, most):
    delays, begins, befores, afters = [], [], [], []
    before, after = 40_000, 20_000
    for seed in range(9):
        aucs = np.repeat([auc, auc - drop], [before, after])
        labels, scores = rows_of(aucs, len(aucs), 0.1, seed)
        detector = DriftDetector()
        assert detector.count(labels, scores)
        alarm = detector.alarm
        assert alarm is not None
        delays.append(np.count_nonzero(labels[before : alarm.row] > 0))
        begins.append(abs(alarm.begin - before) / 10)  # in positives
        befores.append(alarm.before)
        afters.append(alarm.after)
        assert alarm.after.high < alarm.before.low
        assert alarm.begin <= alarm.row
    assert np.median(delays) < most
    assert np.median(begins) < most / 2
    assert np.mean(befores) == pytest.approx(auc, abs=0.01)
    assert np.mean(afters) == pytest.approx(auc - drop, abs=0.05)


def test_a_second_fall_is_another_alarm_and_a_recovery_is_none():
    aucs = np.repeat([0.9, 0.75, 0.9, 0.8], 40_000)
    detector = DriftDetector()
    detector.count(*rows_of(aucs, len(aucs), 0.1, 4))
    assert [alarm.row // 40_000 for alarm in detector.alarms] == [1, 3]
    assert detector.alarm == detector.alarms[-1]


def test_a_fall_within_the_tolerance_raises_no_alarm():
    aucs = np.repeat([0.85, 0.8], 100_000)
    rows = rows_of(aucs, len(aucs), 0.2, 5)
    assert DriftDetector().count(*rows)
    assert not DriftDetector(tolerance=0.06).count(*rows)


def test_the_scores_of_a_model_that_learns_raise_no_alarm_until_the_stream_changes():
    model, detector = Model("dual-logistic"), DriftDetector()
    for part in Planted.plant(0, positives=0.2).rows(60_000):
        assert not detector.count(part.block.labels, model.learn(part.block))
    changed = [
        detector.count(p.block.labels, model.learn(p.block)) for p in Planted.plant(9, positives=0.2).rows(20_000)
    ]
    assert any(changed)
    assert 60_000 < detector.alarms[0].row < 65_000


def test_the_statistic_is_at_its_limit_when_an_alarm_is_raised():
    labels, scores = rows_of(np.repeat([0.95, 0.5], 3000), 6000)
    detector, latest = DriftDetector(1000), 0.0
    for i in range(len(labels)):
        if detector.count(labels[i : i + 1], scores[i : i + 1]):
            break
        assert detector.statistic < detector.limit
        latest = detector.statistic
    assert latest > detector.limit - 1
    assert detector.statistic == 0
    assert detector.alarm is not None
    assert detector.alarm.row == detector.rows


def test_a_hundred_alarms_are_kept():
    aucs = np.tile(np.repeat([0.99, 0.05], 200), 200)
    detector = DriftDetector(10)
    detector.count(*rows_of(aucs, len(aucs), 0.5, 6))
    assert detector.alarm_count > len(detector.alarms) == 100
    assert same_state(detector, DriftDetector.from_state(detector.state()))


def test_rows_of_importance_zero_are_skipped_and_all_others_count_alike():
    labels, scores = rows_of(np.repeat([0.9, 0.5], 1500), 3000)
    importances = np.tile([0.0, 1.0, 2.5], 1000)
    weighted, plain = DriftDetector(100), DriftDetector(100)
    weighted.count(labels, scores, importances)
    plain.count(labels[importances > 0], scores[importances > 0])
    assert (weighted.statistic, weighted.alarm_count) == (plain.statistic, plain.alarm_count)
    assert weighted.rows == 3000


def test_labels_zero_and_one_booleans_and_lists_are_labels():
    labels, scores = rows_of(0.7, 300)
    detectors = [DriftDetector() for _ in range(3)]
    for detector, y in zip(detectors, (labels, (labels > 0).tolist(), (labels > 0).astype(int)), strict=True):
        detector.count(y, scores.tolist())
    assert same_state(detectors[0], detectors[1])
    assert same_state(detectors[0], detectors[2])


def test_refused_rows_change_nothing():
    detector = DriftDetector()
    detector.count([0, 1, 0], [1.0, 2.0, 0.0])
    before = detector.state()
    for labels, scores, importances, message in (
        ([0, 1], [1.0, math.nan], None, r"DriftDetector\.count: row 1 has the score nan"),
        (np.array([0, 1], np.int8), np.array([1.0, math.nan]), None, "row 1 has the score nan"),
        ([0, 2], [1.0, 1.0], None, "label"),
        ([0, 1], [1.0], None, "2 labels but 1 scores"),
        (np.array([0, 1], np.int8), np.array([1.0]), None, "2 labels but 1 scores"),
        ([0, 1], [1.0, 2.0], [1.0, -1.0], "row 1 has the importance -1"),
        (np.array([0, 1], np.int8), np.array([1.0, 2.0]), np.array([1.0]), "1 importances"),
    ):
        with pytest.raises(DataError, match=message):
            detector.count(labels, scores, importances)
    assert all(np.array_equal(array, detector.state()[name]) for name, array in before.items())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"positives_between_false_alarms": 1}, "between 10 and 1e15"),
        ({"positives_between_false_alarms": math.nan}, "between 10 and 1e15"),
        ({"tolerance": -0.1}, "tolerance must be >= 0"),
        ({"tolerance": 1}, "below 1"),
        ({"window": 0}, "at least 1"),
        ({"window": 2.5}, "whole number"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        DriftDetector(**arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"settings": np.array([1e5, 0.0])},
        {"settings": np.array([1e5, 0.0, 1.0])},  # a window smaller than its scores
        {"settings": np.array([1e5, 0.0, math.nan])},
        {"settings": np.array([1, 0, 1000])},
        {"numbers": np.zeros(5)},
        {"numbers": "at"},
        {"numbers": "side"},
        {"numbers": "nan"},
        {"scores": np.zeros(0)},
        {"scores": np.array([1.0, math.nan])},
        {"scores": np.zeros(2, np.float32)},
        {"alarms": np.zeros((1, 3))},
        {"alarms": np.zeros((101, 8))},
        {"alarms": np.full((1, 8), math.inf)},
    ],
)
def test_a_state_that_was_never_written_is_refused(change):
    detector = DriftDetector()
    detector.count([1, 0, 0, 0], [1.0, 2.0, 3.0, 4.0])
    state = detector.state()
    if isinstance(change.get("numbers"), str):
        at, value = {"side": (3, 0.5), "at": (5, 7.0), "nan": (9, math.nan)}[change["numbers"]]
        change = {"numbers": state["numbers"].copy()}
        change["numbers"][at] = value
    with pytest.raises(DataError):
        DriftDetector.from_state({**state, **change})
    with pytest.raises(DataError, match="needs scores"):
        DriftDetector.from_state({k: v for k, v in state.items() if k != "scores"})


def test_its_text_says_where_it_is():
    assert repr(DriftDetector(500)) == (
        "DriftDetector(positives_between_false_alarms=500, tolerance=0, window=1000, rows=0, alarms=0, "
        "statistic=0.00 of 6.22)"
    )
