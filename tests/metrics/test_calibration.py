"""Calibration: the twin written as a loop, what it promises, and what it refuses."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics import Calibration
from rarestream.metrics.calibration import NUMBERS, PLACE


def drawn(rows: int, slope: float = 2.0, intercept: float = -3.0, seed: int = 0):
    draw = np.random.default_rng(seed)
    scores = draw.normal(size=rows)
    return draw.random(rows) < 1 / (1 + np.exp(-(slope * scores + intercept))), scores


class Twin:
    """The same, a row at a time, in plain Python."""

    def __init__(self) -> None:
        self.slope = self.intercept = self.unit = self.all = 0.0
        self.weight = self.squares = self.a = self.b = self.d = 0.0
        self.g = self.g0 = 0.0
        self.counts, self.unused, self.waiting = [0, 0], 0, []

    def add(self, labels, scores, importances=None):
        for i, (label, score) in enumerate(zip(labels, scores, strict=True)):
            h = 1.0 if importances is None else importances[i]
            if not h:
                continue
            positive = int(label > 0)
            self.counts[positive] += 1
            own, other = self.counts[positive], self.counts[1 - positive]
            if own + other > 8192 and own > other:
                if own % 8:
                    continue
                h *= 8
            self.waiting.append((positive, min(max(score, -1e60), 1e60), h))
            if len(self.waiting) == 8 or own + other <= 256:
                self.use()

    def use(self):
        more = sum(h for *_, h in self.waiting)
        fade = ((self.all + 30) / (self.all + 30 + more)) ** 2
        self.all += more
        self.weight = self.weight * fade + more
        self.squares = self.squares * fade + sum(h * s * s for _, s, h in self.waiting)
        if self.all <= 2048:
            self.unit = self.rms()
        self.a, self.b, self.d = self.a * fade, self.b * fade, self.d * fade
        for positive, score, h in self.waiting:
            x = min(max(score * self.unit, -30), 30)
            odds = self.slope * x + self.intercept
            p = 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0
            error = p - positive
            curve = p * (1 - p)
            if abs(error) > 0.5:
                curve = max(curve, abs(p - 0.5) / abs(odds))
            self.a += h * curve * x * x
            self.b += h * curve * x
            self.d += h * curve
            self.g += h * error * x
            self.g0 += h * error
        self.waiting = []
        self.unused += 1
        if self.all <= 2048 or self.unused == 8:
            a, b, d = self.a + 0.1, self.b, self.d + 0.1
            det = a * d - b * b
            self.slope -= (d * self.g - b * self.g0) / det
            self.intercept -= (a * self.g0 - b * self.g) / det
            self.g, self.g0, self.unused = 0.0, 0.0, 0
            self.unit = self.rms()

    def rms(self):
        return 1 / math.sqrt(self.squares / self.weight) if self.squares > 0 else 0.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [1, 9, 257, 3000, 70_000])
def test_it_is_the_textbook_one(rows, weighted):
    labels, scores = drawn(rows)
    scores *= np.linspace(1e-4, 3, rows)  # they grow, as those of a model do
    importances = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 4.0], rows) if weighted else None
    found, twin = Calibration(), Twin()
    found.add(labels, scores, importances)
    twin.add(labels, scores, importances)
    numbers = [found.numbers[PLACE[name]] for name in ("slope", "intercept", "unit", "all", "slope_slope", "one_one")]
    assert numbers == pytest.approx([twin.slope, twin.intercept, twin.unit, twin.all, twin.a, twin.d], rel=1e-9)
    assert (found.positives, found.rows) == (twin.counts[1], sum(twin.counts))


def test_it_finds_the_odds_that_scores_have():
    labels, scores = drawn(200_000)
    known = Calibration()
    known.add(labels, scores * 1e-3)
    assert known.slope == pytest.approx(2000, rel=0.03) and known.intercept == pytest.approx(-3, rel=0.03)
    assert known.middle == pytest.approx(1.5e-3, rel=0.02)
    p = known.probability(scores * 1e-3)
    assert p.mean() == pytest.approx(labels.mean(), rel=0.03)


def test_intervals_cover_the_true_probability():
    inside = []
    for seed in range(150):
        labels, scores = drawn(1500, seed=seed)
        known = Calibration()
        known.add(labels, scores)
        at = np.array([-1.0, 0.0, 1.5, 2.5])
        low, high = known.interval(at)
        truth = 1 / (1 + np.exp(-(2 * at - 3)))
        inside.append((low <= truth) & (truth <= high))
    assert 0.9 < np.mean(inside) < 0.99


def test_few_rows_give_wide_intervals():
    new = Calibration()
    assert new.probability([0.0, 5.0]).tolist()[0] == 0.5
    low, high = new.interval([0.0])
    assert low[0] < 0.02 and high[0] > 0.98
    new.add([0] * 30, [0.0] * 30)
    assert not new.enough
    low, high = new.interval([0.0])
    assert new.probability([0.0])[0] < 0.1 and low[0] < 0.005 and high[0] > 0.12


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.floats(allow_nan=False),
            st.sampled_from([0.0, 1e-100, 1.0, 3.0, 1e12]),
        ),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 20),
)
@settings(max_examples=200, deadline=None)
def test_no_rows_give_anything_but_probabilities_and_no_cut_changes_a_bit(rows, size):
    labels, scores, importances = (np.array(column) for column in zip(*rows, strict=True))
    whole, parts = Calibration(), Calibration()
    whole.add(labels, scores, importances)
    for start in range(0, len(labels), size):
        stop = start + size
        parts.add(labels[start:stop], scores[start:stop], importances[start:stop])
        parts = Calibration.from_state(parts.state())
    assert whole.numbers.tobytes() == parts.numbers.tobytes()
    at = np.sort(np.array([-np.inf, -1e300, -1.0, 0.0, 1e-30, 1.0, 1e300, np.inf, *scores]))
    p = whole.probability(at)
    assert ((p > 0) & (p < 1)).all() and (np.diff(p) >= 0).all()
    assert whole.slope > 0
    low, high = whole.interval(at)
    assert (low <= p).all() and (p <= high).all()


def test_swapping_the_classes_turns_probabilities_around():
    labels, scores = drawn(5000)
    one, other = Calibration(), Calibration()
    one.add(labels, scores)
    other.add(~labels, -scores)
    assert one.probability(scores) == pytest.approx(1 - other.probability(-scores), abs=1e-9)


def test_scores_that_rank_backwards_get_the_base_rate():
    labels, scores = drawn(5000)
    known = Calibration()
    known.add(labels, -scores)
    p = known.probability(-scores)
    assert known.slope > 0 and np.ptp(p) < 0.01
    assert p.mean() == pytest.approx(labels.mean(), abs=0.02)


def test_sampled_negatives_are_corrected():
    labels, scores = drawn(300_000)
    kept = labels | (np.random.default_rng(3).random(len(labels)) < 0.1)
    known = Calibration()
    known.add(labels[kept], scores[kept])
    assert known.probability(scores).mean() > 2 * labels.mean()
    assert known.probability(scores, 0.1).mean() == pytest.approx(labels.mean(), rel=0.05)


@pytest.mark.parametrize("share", [0, -1, 1.5, math.nan])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(DataError, match="negatives_kept: must be above 0 and at most 1"):
        Calibration().probability([0.0], share)


def test_invalid_rows_change_nothing():
    known = Calibration()
    known.add([0, 1], [0.0, 1.0])
    before = known.state()
    for labels, scores, importances in (
        ([0, 2], [0, 1], None),
        ([0, 1], [0, math.nan], None),
        ([0, 1], [0, 1], [1, -1]),
        ([0, 1], [0], None),
    ):
        with pytest.raises(DataError, match="Calibration.add"):
            known.add(labels, scores, importances)
    assert known.state().tobytes() == before.tobytes()


def test_damaged_numbers_are_refused():
    known = Calibration()
    known.add(*drawn(500))
    state = known.state()
    damage = {"waiting": 8, "positives": 1.5, "negatives": -1, "weight": -1, "slope": math.nan, "slope_one": 1e9}
    for name, value in damage.items():
        wrong = state.copy()
        wrong[PLACE[name]] = value
        with pytest.raises(DataError, match="Calibration.from_state"):
            Calibration.from_state(wrong)
    with pytest.raises(DataError, match="it has 3 numbers"):
        Calibration.from_state([1, 2, 3])
    assert len(NUMBERS) == _native.CALIBRATION_NUMBERS


def test_it_is_pickled_and_shown():
    known = Calibration()
    known.add(*drawn(500))
    again = pickle.loads(pickle.dumps(known))
    assert again.state().tobytes() == known.state().tobytes() == known.copy().state().tobytes()
    assert repr(again).startswith("Calibration(slope=") and "rows=500" in repr(again)


def test_every_machine_gives_the_same_bits():
    program = (
        "import numpy as np; from rarestream.metrics import Calibration; draw = np.random.default_rng(0);"
        "s = draw.normal(size=5000); c = Calibration(); c.add(draw.random(5000) < 1 / (1 + np.exp(-s)), s);"
        "print(c.state().tobytes().hex())"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, **extra}, capture_output=True, text=True, check=True
        ).stdout
        for extra in ({}, {"RARESTREAM_ISA": "portable"})
    ]
    assert printed[0] == printed[1]
