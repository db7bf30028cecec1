"""What `choose_threshold` promises: the threshold that trying all of them finds, and intervals that cover."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rarestream.errors import DataError
from rarestream.metrics import Decision, beta, choose_threshold, recall_at_fpr

SOME = {
    "fpr": [0.05, 0.25, 1 / 3, 0.5],
    "share": [0.1, 0.25, 0.5, 2 / 3],
    "precision": [0.2, 0.5, 2 / 3, 1.0],
    "recall": [0.1, 0.5, 2 / 3, 1.0],
    "costs": [(1, 1), (1, 7), (5, 2)],
}


@st.composite
def cases(draw):
    """Labels, scores with many ties, whole importances, and a rule."""
    n = draw(st.integers(2, 25))
    labels = draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n).filter(lambda y: len(set(y)) == 2))
    scores = draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n))
    importances = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    rule = draw(st.sampled_from(sorted(SOME)))
    return labels, scores, importances, rule, draw(st.sampled_from(SOME[rule]))


def counted(labels, scores, importances, threshold):
    """Weights of true and false positives at a threshold, as fractions."""
    called = [(y, h) for y, s, h in zip(labels, scores, importances, strict=True) if s >= threshold]
    return Fraction(sum(h for y, h in called if y > 0)), Fraction(sum(h for y, h in called if y < 0))


def tried(labels, scores, importances, rule, target):
    """The threshold by the definition, trying all scores; None if none follows the rule."""
    positives, negatives = counted(labels, scores, importances, -math.inf)
    total = positives + negatives
    follow = []
    for threshold in sorted(set(scores)):
        true, false = counted(labels, scores, importances, threshold)
        cost = None
        if rule == "costs":
            cost = target[0] * false + target[1] * (positives - true)
            follows = cost < target[1] * positives
        else:
            rate = {
                "fpr": false / negatives,
                "share": (true + false) / total,
                "precision": true / (true + false),
                "recall": true / positives,
            }[rule]
            # 1/3 as a float is below the fraction: rates are compared as floats, which are rounded alike
            follows = float(rate) >= target if rule in ("precision", "recall") else float(rate) <= target
        if follows:
            follow.append((cost, threshold))
    if not follow:
        return None
    if rule == "costs":
        least = min(cost for cost, _ in follow)
        return max(threshold for cost, threshold in follow if cost == least)
    thresholds = [threshold for _, threshold in follow]
    return max(thresholds) if rule == "recall" else min(thresholds)


@given(cases())
def test_the_threshold_is_that_which_trying_all_finds(case):
    labels, scores, importances, rule, target = case
    expected = tried(labels, scores, importances, rule, target)
    ones = [1] * len(labels)
    try:
        found = choose_threshold(labels, scores, importances, **{rule: target})
    except DataError as error:
        counted_rows = [h for y, h in zip(labels, importances, strict=True) if rule == "share" or y < 0]
        effective = sum(counted_rows) ** 2 / sum(h * h for h in counted_rows)  # Kish
        if "needs at least" in str(error):
            assert rule in ("fpr", "share") and effective * target < 1
        else:
            assert expected is None
        return
    assert found.threshold == expected
    true, false = counted(labels, scores, importances, expected)
    positives, negatives = counted(labels, scores, importances, -math.inf)
    assert found.fpr == float(false / negatives)
    assert found.recall == float(true / positives)
    assert found.precision == float(true / (true + false))
    assert found.share == float((true + false) / (positives + negatives))
    for name in ("fpr", "recall", "precision", "share"):
        estimate = getattr(found, name)
        assert 0 <= estimate.low <= estimate <= estimate.high <= 1
    assert (found.rows, found.positives) == (len(ones), labels.count(1))


@given(cases())
def test_rows_of_importance_h_count_as_h_rows(case):
    labels, scores, importances, rule, target = case
    repeated = [np.repeat(part, importances) for part in (labels, scores)]
    try:
        found = choose_threshold(labels, scores, importances, **{rule: target})
    except DataError:
        return
    whole = choose_threshold(*repeated, **{rule: target})
    assert found.threshold == whole.threshold
    for name in ("fpr", "recall", "precision", "share"):
        assert float(getattr(found, name)) == float(getattr(whole, name))
    at = [h for h, score in zip(importances, scores, strict=True) if score == found.threshold]
    # Copies are no new evidence. A row alone at the threshold counts half, its copies whole: the middle of the interval moves.
    if rule in ("fpr", "share", "recall") and (len(at) > 1 or at == [1]):
        assert found.recall.high - found.recall.low >= whole.recall.high - whole.recall.low - 1e-12


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_the_scale_of_scores_do_not_matter(case, random):
    labels, scores, importances, rule, target = case
    rows = list(zip(labels, [2.0**score for score in scores], importances, strict=True))
    random.shuffle(rows)
    try:
        found = choose_threshold(labels, scores, importances, **{rule: target})
    except DataError:
        return
    other = choose_threshold(*zip(*rows, strict=True), **{rule: target})
    for name in ("fpr", "recall", "precision", "share"):
        assert float(getattr(found, name)) == pytest.approx(float(getattr(other, name)), abs=1e-12)
        assert getattr(found, name).low == pytest.approx(getattr(other, name).low, abs=1e-9)
    assert math.log2(other.threshold) == found.threshold


def normal(rng, n_pos, n_neg, shift=1.5):
    labels = np.repeat([1, 0], [n_pos, n_neg])
    return labels, rng.normal(size=n_pos + n_neg) + shift * labels


def test_rows_of_importance_zero_do_not_count():
    labels, scores = normal(np.random.default_rng(0), 30, 300)
    importances = np.r_[np.ones(330), np.zeros(50)]
    found = choose_threshold(np.r_[labels, np.ones(50)], np.r_[scores, np.full(50, 9.0)], importances, fpr=0.1)
    assert found == choose_threshold(labels, scores, fpr=0.1)
    assert (found.rows, found.positives) == (330, 30)


def test_equal_importances_change_nothing():
    labels, scores = normal(np.random.default_rng(1), 30, 300)
    plain = choose_threshold(labels, scores, fpr=0.1)
    scaled = choose_threshold(labels, scores, np.full(330, 0.25), fpr=0.1)
    assert scaled.threshold == plain.threshold
    for name in ("fpr", "recall", "precision", "share"):
        one, other = getattr(plain, name), getattr(scaled, name)
        assert (other, other.low, other.high) == pytest.approx((one, one.low, one.high), rel=1e-9)


def test_it_agrees_with_recall_at_fpr():
    labels, scores = normal(np.random.default_rng(2), 200, 5000)
    scores = scores.round(2)
    for fpr in (0.001, 0.01, 0.1):
        found = choose_threshold(labels, scores, fpr=fpr)
        assert found.recall == recall_at_fpr(labels, scores, [fpr])[0]
        assert found.fpr <= fpr


def test_the_rate_under_an_order_statistic_is_its_beta_distribution():
    labels, scores = np.array([1] * 3 + [0] * 100), np.r_[-10.0, -11.0, 200.0, np.arange(100.0)]
    found = choose_threshold(labels, scores, fpr=0.05)
    assert found.threshold == 95.0
    assert (found.fpr.low, found.fpr.high) == pytest.approx(stats.beta.ppf([0.025, 0.975], 5, 96), rel=1e-9)
    assert (found.recall.low, found.recall.high) == pytest.approx(stats.beta.ppf([0.025, 0.975], 1.5, 2.5), rel=1e-9)
    found = choose_threshold(1 - labels, -scores, recall=0.95)
    assert (found.recall.low, found.recall.high) == pytest.approx(stats.beta.ppf([0.025, 0.975], 95, 6), rel=1e-9)


def test_a_tie_at_the_threshold_counts_whole():
    labels, scores = np.array([0] * 100 + [1]), np.r_[np.arange(95.0), np.full(5, 95.0), 1.0]
    found = choose_threshold(labels, scores, fpr=0.05)
    ends = stats.beta.ppf(0.025, 5, 96), stats.beta.ppf(0.975, 6, 95)  # Clopper and Pearson's
    assert (found.fpr.low, found.fpr.high) == pytest.approx(ends, rel=1e-9)


@pytest.mark.parametrize("a, b", [(0.5, 0.5), (0.5, 3e6), (1, 1e7), (49.5, 1.5), (1e6, 0.5), (500.5, 1e5), (3, 50)])
def test_quantiles_of_the_beta_distribution_are_scipys(a, b):
    for p in (0.0005, 0.025, 0.5, 0.975, 0.9995):
        assert beta.quantile(p, a, b) == pytest.approx(stats.beta.ppf(p, a, b), rel=1e-6)


@pytest.mark.parametrize(
    "rule",
    [{"fpr": 0.02}, {"recall": 0.8}, {"share": 0.05}, {"precision": 0.4}, {"costs": (1, 20)}],
    ids=lambda rule: next(iter(rule)),
)
def test_intervals_cover_the_true_rates_of_the_threshold(rule):
    rng = np.random.default_rng(3)
    repeats, rows, share_pos = 400, 2000, 0.05
    covered = dict.fromkeys(("fpr", "recall", "precision", "share"), 0)
    for _ in range(repeats):
        n_pos = rng.binomial(rows, share_pos)
        found = choose_threshold(*normal(rng, n_pos, rows - n_pos), **rule)
        fpr, recall = stats.norm.sf(found.threshold), stats.norm.sf(found.threshold - 1.5)
        share = share_pos * recall + (1 - share_pos) * fpr
        true = {"fpr": fpr, "recall": recall, "precision": share_pos * recall / share, "share": share}
        for name, value in true.items():
            covered[name] += getattr(found, name).low <= value <= getattr(found, name).high
    assert all(0.92 <= number / repeats <= 0.98 for number in covered.values()), covered


def test_alerts_a_day_follow_from_rows_a_day_or_days():
    labels, scores = normal(np.random.default_rng(4), 100, 2900)
    found = choose_threshold(labels, scores, alerts_per_day=5, days=30)
    assert found.rows_per_day == 100
    assert found == replace(choose_threshold(labels, scores, alerts_per_day=5, rows_per_day=100), rows_per_day=100.0)
    assert found.threshold == choose_threshold(labels, scores, share=0.05).threshold
    assert found.alerts_per_day == pytest.approx(5)
    assert found.alerts_per_day.low == found.share.low * 100
    assert choose_threshold(labels, scores, fpr=0.1).alerts_per_day is None


def test_costs_are_per_row_and_may_be_asked_of_any_rule():
    labels, scores = normal(np.random.default_rng(5), 100, 1900)
    found = choose_threshold(labels, scores, fpr=0.1, costs=(2, 30))
    wrong = found.fpr * 1900 * 2 + (1 - found.recall) * 100 * 30
    assert found.cost == pytest.approx(wrong / 2000)
    assert found.cost.low < found.cost < found.cost.high
    assert found.rule == "fpr"
    best = choose_threshold(labels, scores, costs=(2, 30))
    assert best.cost <= found.cost
    assert best.target is None


@pytest.mark.parametrize(
    "rule, said",
    [
        ({"fpr": 0.001}, "needs at least 1,000 negatives, got 100: .* is 0.01 of the negatives, at the threshold 99."),
        ({"share": 0.001}, "needs at least 1,000 rows, got 104"),
        ({"alerts_per_day": 1, "days": 0.5}, "at most 1 alerts a day needs at least 208 rows, got 104"),
        ({"alerts_per_day": 200, "days": 1}, "no fewer than the 104 rows a day"),
        (
            {"precision": 0.99},
            r"no threshold has a precision of 0.99; the best is 0.5, at the threshold 98.5, with a r",
        ),
        ({"costs": (1, 0.5)}, "no threshold is better than to call no row positive, which costs 0.01923 per row"),
    ],
)
def test_a_rule_that_no_threshold_follows_names_the_best(rule, said):
    labels, scores = np.array([1] * 4 + [0] * 100), np.r_[98.5, 50.5, 3.5, 2.5, np.arange(100.0)]
    with pytest.raises(DataError, match=said):
        choose_threshold(labels, scores, **rule)


def test_a_tie_at_the_top_that_is_too_large_is_an_error():
    labels, scores = [1, 1] + [0] * 98, [5.0] * 20 + [1.0] * 80
    for rule in ({"fpr": 0.05}, {"share": 0.05}, {"alerts_per_day": 5, "rows_per_day": 100}):
        with pytest.raises(DataError, match="no threshold has .*20 rows share the highest score, 5, so at least"):
            choose_threshold(labels, scores, **rule)


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({}, "pass exactly one of fpr, precision, recall, share, alerts_per_day and costs; got none"),
        ({"fpr": 0.1, "recall": 0.5}, "got fpr and recall"),
        ({"fpr": 0.0}, "fpr must be between 0 and 1"),
        ({"fpr": math.nan}, "fpr must be"),
        ({"share": 1.0}, "share must be between 0 and 1"),
        ({"recall": 1.5}, "recall must be above 0 and at most 1"),
        ({"alerts_per_day": 3}, "alerts_per_day needs rows_per_day"),
        ({"alerts_per_day": -3, "days": 1}, "alerts_per_day must be a number above 0"),
        ({"alerts_per_day": 3, "days": 1, "rows_per_day": 3}, "rows_per_day or days, not both"),
        ({"fpr": 0.1, "days": 0}, "days must be a number above 0"),
        ({"costs": (1, 2, 3)}, "costs must be two numbers"),
        ({"costs": (1, -1)}, r"costs must be two numbers above 0, .* got \(1, -1\)"),
        ({"fpr": 0.1, "level": 95}, "level must be"),
    ],
)
def test_arguments_that_mean_nothing_are_errors(wrong, said):
    with pytest.raises(DataError, match=said):
        choose_threshold([1, 0], [1.0, 0.0], **wrong)


def test_rows_that_mean_nothing_are_errors():
    with pytest.raises(DataError, match="rows of both classes"):
        choose_threshold([1, 1], [1.0, 0.0], recall=0.5)
    with pytest.raises(DataError, match="row 1 has the score nan"):
        choose_threshold([1, 0], [1.0, math.nan], recall=0.5)
    with pytest.raises(DataError, match="row 0 has the score inf; thresholds need finite scores"):
        choose_threshold([1, 0], [math.inf, 1.0], recall=0.5)
    with pytest.raises(DataError, match="sum of the importances is not finite"):
        choose_threshold([1, 0, 1], [3.0, 1.0, 2.0], [1e308, 1e308, 1e308], recall=0.5)


def a_decision() -> Decision:
    labels, scores = normal(np.random.default_rng(6), 100, 1900)
    return replace(choose_threshold(labels, scores, alerts_per_day=5, days=30, costs=(1, 9)), after_rows=7)


def test_a_decision_survives_its_record():
    for decision in (a_decision(), choose_threshold([1, 0, 0], [3, 2, 1], recall=1)):
        back = Decision.from_record(json.loads(json.dumps(decision.record(), allow_nan=False)))
        assert back == decision
        assert back.record() == decision.record()
        assert pickle.loads(pickle.dumps(decision)) == decision


@pytest.mark.parametrize(
    "changed",
    [
        {"threshold": math.inf},
        {"threshold": "1"},
        {"rule": "luck"},
        {"rule": ["fpr"]},
        {"target": None},
        {"rows": 100},
        {"positives": 2.0},
        {"positives": True},
        {"fpr": 1.5, "fpr_high": 1.5},
        {"recall": math.nan},
        {"precision_low": 0.99},
        {"share_high": -1},
        {"rows_per_day": "many"},
        {"cost_missed": None},
        {"cost": -1},
        {"level": 2},
        {"after_rows": -1},
    ],
)
def test_an_impossible_record_is_refused(changed):
    with pytest.raises(ValueError, match="decision"):
        Decision.from_record({**a_decision().record(), **changed})


def test_a_decision_says_what_it_is():
    assert a_decision().wording == "at most 5 alerts a day"
    assert str(choose_threshold([1, 0, 0], [3, 2, 1], recall=1)) == "score >= 3 (recall of at least 1)"
    costly = choose_threshold([1, 0, 0], [3, 2, 1], costs=(1, 5))
    assert costly.wording == "costs of 1 per false positive and 5 per missed one"


def test_one_row_is_enough_for_its_share():
    for n in range(2, 400):
        found = choose_threshold([1] + [0] * (n - 1), np.arange(float(n)), share=1 / n)
        assert found.threshold == n - 1
        found = choose_threshold([1] + [0] * n, np.arange(n + 1.0), fpr=1 / n)
        assert found.threshold == n
