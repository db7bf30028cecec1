"""What the measures beside AUC promise: the textbook's and scikit-learn's numbers, and what must not change them."""

from __future__ import annotations

import math

import measures_textbook as textbook
import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from test_auc_exact import scored

from rarestream import metrics
from rarestream.errors import DataError
from rarestream.metrics import (
    auc,
    brier_score,
    calibration_error,
    group_auc,
    lift_curve,
    log_loss,
    normalised_entropy,
    pairwise_auc,
    partial_auc,
    precision_recall_curve,
    reliability,
    roc_curve,
    score_histogram,
)

plain_score = st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5]), st.floats(-1e6, 1e6))
probability = st.one_of(st.sampled_from([0.0, 1.0, 0.5, 1 / 15, 0.2]), st.floats(0, 1))
rates = st.one_of(st.sampled_from([0.001, 0.01, 0.1, 0.5, 1.0]), st.floats(1e-3, 1))


def repeated(labels, scores, *more, seed=0):
    """The rows with importances 0 to 3, and each as often as that."""
    times = np.random.default_rng(seed).integers(0, 4, len(labels))
    times[:2] = 1
    return times, [np.repeat(part, times) for part in (labels, scores, *more)]


# -- partial AUC


@given(scored(scores=plain_score, importances=True), rates, st.booleans())
def test_the_standardised_partial_auc_is_scikit_learns(rows, max_fpr, weighted):
    labels, scores, importances = rows
    weights = importances if weighted else None
    expected = sklearn.metrics.roc_auc_score(labels, scores, max_fpr=max_fpr, sample_weight=weights)
    found = partial_auc(labels, scores, max_fpr, importances=weights, standardized=True)
    assert found == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25)
@given(scored(scores=plain_score, importances=True), rates, st.sampled_from([0.0, 0.3, 0.8]))
def test_the_partial_auc_is_the_area_of_the_textbooks_curve(rows, max_fpr, min_recall):
    expected = textbook.partial_area(textbook.roc_points(*rows), max_fpr, min_recall)
    labels, scores, importances = rows
    assert partial_auc(labels, scores, max_fpr, min_recall, importances) == pytest.approx(expected, abs=2e-3)


def test_a_partial_auc_worked_by_hand():
    # The curve is (0, 0), (0, 1/2), (1/2, 1/2), (1, 1): the last two rows tie.
    labels, scores = [1, -1, 1, -1], [3.0, 2.0, 1.0, 1.0]
    assert partial_auc(labels, scores, 0.5) == 0.5
    assert partial_auc(labels, scores, 0.75) == pytest.approx((0.25 + 0.25 * 0.625) / 0.75)
    assert partial_auc(labels, scores, 1.0, 0.5) == pytest.approx(0.5 * 0.5 * 0.5 / 0.5)
    assert partial_auc(labels, scores, 1.0, 0.75) == pytest.approx(0.5 * 0.25 * 0.25 / 0.25)
    assert partial_auc(labels, scores, 0.5, 0.75) == 0.0


@given(scored(scores=plain_score, importances=True))
def test_the_whole_of_it_is_the_auc(rows):
    labels, scores, importances = rows
    whole = auc(labels, scores, importances)
    assert partial_auc(labels, scores, 1, importances=importances) == pytest.approx(whole, abs=1e-12)
    assert partial_auc(labels, scores, 1, 0, importances, standardized=False) == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"max_fpr": 0}, "max_fpr must be above 0 and at most 1, got 0"),
        ({"max_fpr": 1.5}, "max_fpr must be above 0"),
        ({"max_fpr": math.nan}, "max_fpr must be above 0"),
        ({"max_fpr": 0.1, "min_recall": 1}, "min_recall must be at least 0 and below 1, got 1"),
        ({"max_fpr": 0.1, "min_recall": 0.5, "standardized": True}, "standardized is for the one-way area"),
    ],
)
def test_limits_of_a_partial_auc_are_checked(more, said):
    with pytest.raises(DataError, match=said):
        partial_auc([1, 0], [1.0, 2.0], **more)


# -- groups


@given(scored(scores=plain_score, importances=True), st.integers(1, 5), st.sampled_from(["rows", "positives", "equal"]))
def test_group_auc_is_the_mean_over_the_textbooks_groups(rows, groups, weight):
    labels, scores, importances = rows
    belongs = np.random.default_rng(len(labels)).integers(0, groups, len(labels))
    belongs[:2] = 0
    value, used, left_out, rows_left_out = textbook.group_auc(labels, scores, belongs, importances, weight)
    for names in (belongs, belongs.astype(str), np.array([f"user {b}" for b in belongs], object)):
        found = group_auc(labels, scores, names, importances, weight)
        assert found.value == pytest.approx(value, abs=1e-12)
        assert (found.groups, found.left_out, found.rows_left_out) == (used, left_out, rows_left_out)
        assert float(found) == found.value
        assert len(found.table.group) == used


@given(scored(scores=plain_score))
def test_a_row_of_importance_two_is_two_rows_of_its_group(rows):
    labels, scores = rows
    belongs = np.arange(len(labels)) // 4
    times, again = repeated(labels, scores, belongs)
    found, expected = group_auc(labels, scores, belongs, times), group_auc(*again)
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.table.rows.tolist() == expected.table.rows.tolist()
    assert found.table.positives.tolist() == expected.table.positives.tolist()


def test_the_table_of_the_groups_has_the_auc_of_each():
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(0, 2, 5000), rng.normal(size=5000).round(2)
    belongs = rng.integers(0, 300, 5000)
    table = group_auc(labels, scores, belongs).table
    for group, found, rows, positives in zip(*(part.tolist() for part in table), strict=True):
        mine = belongs == group
        assert found == pytest.approx(auc(labels[mine], scores[mine]), abs=1e-14)
        assert (rows, positives) == (mine.sum(), labels[mine].sum())


def test_groups_of_very_different_importance_do_not_disturb_each_other():
    rng = np.random.default_rng(2)
    labels, scores = np.tile([0, 1], 500), rng.normal(size=1000)
    belongs = np.repeat(np.arange(10), 100)
    importances = rng.random(1000) * 10.0 ** (30 * (belongs - 5))
    table = group_auc(labels, scores, belongs, importances).table
    for group, found in zip(table.group, table.auc, strict=True):
        mine = belongs == group
        assert found == pytest.approx(auc(labels[mine], scores[mine], importances[mine]), abs=1e-12)


@pytest.mark.parametrize(
    ("groups", "more", "said"),
    [
        ([1, 2], {}, r"2 groups has rows of both classes"),
        ([1, 1, 1], {}, r"2 rows need groups of shape \(2,\), got \(3,\)"),
        ([1.0, math.nan], {}, "row 1 has the group nan"),
        (np.array(["a", 1], object), {}, "all numbers or all text"),
        ([1, 1], {"weight": "clicks"}, "weight must be one of 'rows', 'positives', 'equal', got 'clicks'"),
    ],
)
def test_groups_are_checked(groups, more, said):
    with pytest.raises(DataError, match=said):
        group_auc([1, 0], [1.0, 2.0], groups, **more)


# -- several classes


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_the_auc_of_several_classes_is_scikit_learns(seed, classes):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(0, classes, 30)])
    scores = rng.integers(1, 6, (len(labels), classes)).astype(float)
    shares = scores / scores.sum(axis=1, keepdims=True)
    found = pairwise_auc(labels, shares)
    if classes > 2:
        for how, value in (("ovo", found.value), ("ovr", found.one_vs_rest)):
            assert value == pytest.approx(sklearn.metrics.roc_auc_score(labels, shares, multi_class=how), abs=1e-12)
    for i in range(classes):
        assert found.per_class[i] == auc(labels == i, shares[:, i])
        for j in range(classes):
            two = (labels == i) | (labels == j)
            assert math.isnan(found.matrix[i, i])
            if i != j:
                assert found.matrix[i, j] == auc(labels[two] == i, shares[two, i])
    named = pairwise_auc(np.array(list("abcde"))[labels], shares, list("abcde")[:classes])
    assert (named.value, named.one_vs_rest) == (found.value, found.one_vs_rest)


def test_importances_of_several_classes_are_repeated_rows():
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 3, 100), rng.normal(size=(100, 3)).round(1)
    times = rng.integers(0, 3, 100)
    expected = pairwise_auc(np.repeat(labels, times), np.repeat(scores, times, axis=0))
    found = pairwise_auc(labels, scores, importances=times)
    assert found.value == pytest.approx(expected.value, abs=1e-13)
    assert found.one_vs_rest == pytest.approx(expected.one_vs_rest, abs=1e-13)


def test_classes_without_rows_are_left_out_of_the_means():
    labels, scores = ["a", "b", "a", "b"], np.array([[4, 1, 0], [2, 1, 0], [3, 0, 9], [1, 2, 5]])
    found = pairwise_auc(labels, scores, ["a", "b", "c"])
    assert found.left_out == ["c"]
    assert found.value == pytest.approx((1 + 0.875) / 2)
    assert np.isnan(found.matrix[2]).all()
    assert "2 classes" in repr(found)


@pytest.mark.parametrize(
    ("labels", "scores", "more", "said"),
    [
        ([0, 1], [[1, 2, 3], [1, 2, 3]], {}, "3 columns of scores need as many different classes, got 2 of the labels"),
        ([0, 1], [[1, 2], [1, 2]], {"classes": [1, 1]}, "2 columns of scores need as many different classes"),
        ([0, 7], [[1, 2], [1, 2]], {"classes": [0, 1]}, "row 1 has the label 7, which is not one of the classes"),
        ([0, 1], [[1, 2], [math.nan, 2]], {}, "row 1 has the score nan for the class 0"),
        ([0, 0], [[1, 2], [1, 2]], {"classes": [0, 1]}, "rows of at least two classes, got 1"),
        ([0, 1], [1, 2], {}, r"scores \(rows, classes\), got \(2,\) and \(2,\)"),
        ([0, 1], [[1, 2], [1, 2]], {"importances": [1, -1]}, "row 1 has the importance -1.0"),
        ([0, 1], [[1, 2], [1, 2]], {"importances": [1]}, r"importances of shape \(2,\), got \(1,\)"),
    ],
)
def test_rows_of_several_classes_are_checked(labels, scores, more, said):
    with pytest.raises(DataError, match=said):
        pairwise_auc(labels, scores, **more)


# -- probabilities


@given(scored(scores=probability, importances=True))
def test_losses_are_the_textbooks_and_scikit_learns(rows):
    labels, given_, importances = rows
    log, square = textbook.losses(*rows)
    assert log_loss(*rows) == pytest.approx(log, abs=1e-12)
    assert brier_score(*rows) == pytest.approx(square, abs=1e-12)
    assert log_loss(*rows) == pytest.approx(
        sklearn.metrics.log_loss(labels, given_, sample_weight=importances, labels=[-1, 1]), abs=1e-9
    )
    base = importances[labels > 0].sum() / importances.sum()
    entropy = -(base * math.log(base) + (1 - base) * math.log(1 - base))
    assert normalised_entropy(*rows) == pytest.approx(log / entropy, rel=1e-9)


@given(scored(scores=probability, importances=True), st.integers(1, 20), st.sampled_from(["rows", "width"]))
def test_the_calibration_error_is_the_textbooks(rows, bins, by):
    labels, given_, importances = rows
    whole = np.round(importances)  # sums of others may fall on either side of the edge of a bin
    whole[:2] = 1
    expected = textbook.calibration_error(labels, given_, whole, bins, by)
    assert calibration_error(labels, given_, whole, bins=bins, by=by) == pytest.approx(expected, abs=1e-12)


def test_the_bins_of_a_reliability_curve():
    rng = np.random.default_rng(0)
    p = rng.random(10_000) ** 4
    labels = rng.random(10_000) < p
    found = reliability(labels, p)
    assert len(found) == 15
    assert found.rows.tolist() == found.weight.tolist()
    assert set(found.rows.tolist()) <= {666, 667}
    assert (found.low[1:] > found.high[:-1]).all()
    for row in found.records():
        mine = (p >= row["low"]) & (p <= row["high"])
        assert row["rows"] == mine.sum()
        assert row["probability"] == pytest.approx(p[mine].mean())
        assert row["share"] == pytest.approx(labels[mine].mean())
        assert row["share_low"] <= row["share"] <= row["share_high"]
    inside = (found.share_low <= found.probability) & (found.probability <= found.share_high)
    assert inside.sum() >= 12  # of 15 intervals of 95 %
    assert found.error == calibration_error(labels, p) <= found.largest_error
    wide = reliability(labels, p, by="width", bins=10)
    assert wide.low.tolist() == pytest.approx(np.arange(10) / 10)
    true, mean = sklearn.calibration.calibration_curve(labels, p, n_bins=10)
    assert wide.share == pytest.approx(true)
    assert wide.probability == pytest.approx(mean)


def test_the_interval_of_a_bin_is_wilsons():
    found = reliability([1, 1, 0, 0, 0, 0, 0, 0, 0, 0], np.full(10, 0.2))
    assert (found.rows.tolist(), found.error) == ([10], 0)
    assert (found.share_low[0], found.share_high[0]) == pytest.approx((0.0567, 0.5098), abs=1e-4)  # Wilson's of 2 in 10


@pytest.mark.parametrize("metric", [log_loss, brier_score, calibration_error, normalised_entropy, reliability])
@pytest.mark.parametrize(
    ("labels", "given_", "said"),
    [
        ([1, 0], [0.5, 1.5], r"row 1 has the probability 1.5; probabilities lie between 0 and 1"),
        ([1, 0], [-0.1, 0.5], r"row 0 has the probability -0.1"),
        ([1, 0], [0.1, math.nan], r"row 1 has the probability nan"),
        ([1, 0], [0.1, math.inf], r"row 1 has the probability inf"),
        ([1, 3], [0.1, 0.2], r"row 1 has the label 3"),
        ([1, 0], [0.1], r"2 labels but 1 scores"),
        ([], [], r"there are no rows"),
    ],
)
def test_what_is_no_probability_is_refused(metric, labels, given_, said):
    with pytest.raises(DataError, match=said):
        metric(labels, given_)


def test_importances_of_any_scale_weigh_alike_and_zeros_do_not_count():
    rng = np.random.default_rng(0)
    labels, p, h = rng.integers(0, 2, 500), rng.random(500), rng.integers(0, 3, 500).astype(float)
    for metric in (log_loss, brier_score, calibration_error, normalised_entropy):
        assert metric(labels, p, h * 2.0**1000) == pytest.approx(metric(labels, p, h), rel=1e-12)
        assert metric(labels, p, h * 2.0**-1000) == pytest.approx(metric(labels, p, h), rel=1e-12)
    with pytest.raises(DataError, match="no rows"):
        log_loss([1, 0], [0.5, 0.5], [0, 0])


def test_one_class_has_losses_but_no_normalised_entropy():
    assert log_loss([1, 1], [0.5, 1.0]) == pytest.approx(math.log(2) / 2)
    assert brier_score([0], [0.25]) == 0.0625
    with pytest.raises(DataError, match="needs rows of both classes, got 2 positive and 0 negative"):
        normalised_entropy([1, 1], [0.5, 0.5])


@pytest.mark.parametrize(
    ("more", "said"), [({"bins": 0}, "bins must be"), ({"bins": 2.5}, "bins must be"), ({"by": "x"}, "by must be")]
)
def test_the_bins_are_checked(more, said):
    with pytest.raises(DataError, match=said):
        reliability([1, 0], [0.5, 0.5], **more)


# -- what must not change any of them

MEASURES = {
    "partial_auc": lambda y, p, h=None: partial_auc(y, p, 0.3, importances=h),
    "two-way": lambda y, p, h=None: partial_auc(y, p, 0.7, 0.2, importances=h),
    "log_loss": log_loss,
    "brier_score": brier_score,
    "normalised_entropy": normalised_entropy,
    "calibration_error": calibration_error,
    "by width": lambda y, p, h=None: calibration_error(y, p, h, by="width"),
    "roc area": lambda y, p, h=None: float(np.trapezoid(*roc_curve(y, p, h)[1::-1])),
}


@pytest.mark.parametrize("name", MEASURES)
@given(rows=scored(scores=probability))
def test_neither_the_order_of_rows_nor_how_they_are_repeated_matters(name, rows):
    measure = MEASURES[name]
    labels, given_ = rows
    order = np.random.default_rng(len(labels)).permutation(len(labels))
    assert measure(labels[order], given_[order]) == pytest.approx(measure(labels, given_), abs=1e-12)
    times, again = repeated(labels, given_)
    assert measure(labels, given_, times) == pytest.approx(measure(*again), abs=1e-12)


@given(scored(), st.sampled_from([0.01, 0.3, 1.0]))
def test_only_the_order_of_scores_matters(rows, max_fpr):
    labels, scores = rows
    ranks = np.unique(scores, return_inverse=True)[1].astype(float)
    belongs = np.arange(len(labels)) // 5
    assert partial_auc(labels, scores, max_fpr) == partial_auc(labels, np.exp(ranks / 8), max_fpr)
    assert group_auc(labels, scores, belongs).value == group_auc(labels, np.cbrt(ranks), belongs).value


# -- curves


@given(scored(scores=plain_score, importances=True), st.booleans())
def test_the_points_of_the_curves_are_scikit_learns(rows, weighted):
    labels, scores, importances = rows
    weights = importances if weighted else None
    fpr, recall, _ = sklearn.metrics.roc_curve(labels, scores, sample_weight=weights, drop_intermediate=False)
    exact = {(round(x, 9), round(y, 9)) for x, y in zip(fpr, recall, strict=True)}
    found = roc_curve(labels, scores, weights)
    assert {(round(x, 9), round(y, 9)) for x, y in zip(found.fpr, found.recall, strict=True)} <= exact
    assert np.trapezoid(found.recall, found.fpr) == pytest.approx(auc(labels, scores, weights), abs=1e-9)
    precision, recall, _ = sklearn.metrics.precision_recall_curve(labels, scores, sample_weight=weights)
    exact = {(round(x, 9), round(y, 9)) for x, y in zip(recall, precision, strict=True)}
    points = precision_recall_curve(labels, scores, weights)
    assert {(round(x, 9), round(y, 9)) for x, y in zip(points.recall, points.precision, strict=True)} <= exact
    weights = np.ones(len(labels)) if weights is None else weights
    base = weights[labels > 0].sum() / weights.sum()
    for share, lift, threshold in zip(*lift_curve(labels, scores, weights), strict=True):
        above = scores >= threshold
        assert share == pytest.approx(weights[above].sum() / weights.sum())
        assert lift == pytest.approx(weights[above & (labels > 0)].sum() / weights[above].sum() / base)


def distance(x, y, line_x, line_y):
    """The distance of each point from the nearest of the lines between others."""
    along = np.diff(line_x), np.diff(line_y)
    from_x, from_y = x[:, None] - line_x[:-1], y[:, None] - line_y[:-1]
    at = np.clip((from_x * along[0] + from_y * along[1]) / (along[0] ** 2 + along[1] ** 2), 0, 1)
    return np.hypot(from_x - at * along[0], from_y - at * along[1]).min(axis=1)


@pytest.mark.parametrize("curve", [roc_curve, precision_recall_curve, lift_curve])
def test_a_thinned_curve_is_close_to_all_of_it(curve):
    rng = np.random.default_rng(0)
    labels = rng.random(20_000) < 0.05
    scores = rng.normal(size=20_000) + 1.5 * labels
    x, y, threshold = curve(labels, scores)
    assert len(x) == 400
    assert (np.diff(threshold) < 0).all()
    whole_x, whole_y, _ = curve(labels, scores, points=5000)
    if curve is lift_curve:  # its axis is drawn in a logarithmic scale
        whole_x, x_drawn = np.log(whole_x), np.log(x)
    else:
        x_drawn = x
    wide, high = np.ptp(x_drawn), np.ptp(y)
    assert distance(whole_x / wide, whole_y / high, x_drawn / wide, y / high).max() < 0.003
    assert set(zip(x_drawn.tolist(), y.tolist(), strict=True)) <= set(
        zip(whole_x.tolist(), whole_y.tolist(), strict=True)
    )


def test_the_corner_of_a_curve_stays():
    labels, scores = np.repeat([1, 0], 1000), -np.arange(2000.0)
    assert [part.tolist() for part in roc_curve(labels, scores)[:2]] == [[0, 0, 1], [0, 1, 1]]


def test_a_histogram_has_each_class_once():
    labels, scores = [1, 0, 0, 1, 0, 1], [0.0, 1.0, 9.99, 10.0, -math.inf, math.inf]
    found = score_histogram(labels, scores, bins=10)
    assert found.edges.tolist() == pytest.approx(np.arange(11.0))
    assert (found.positives * 3).tolist() == pytest.approx([1, 0, 0, 0, 0, 0, 0, 0, 0, 2])
    assert (found.negatives * 3).tolist() == pytest.approx([1, 1, 0, 0, 0, 0, 0, 0, 0, 1])
    for scores in ([5.0, 5.0], [math.inf, -math.inf], [1.7e308, -1.7e308]):
        assert score_histogram([1, 0], scores).positives.sum() == 1


@pytest.mark.parametrize("points", [1, 0, 2.5, True])
def test_the_number_of_points_is_checked(points):
    with pytest.raises(DataError, match="points must be a whole number >= 2"):
        roc_curve([1, 0], [1.0, 2.0], points=points)


@pytest.mark.parametrize("curve", [roc_curve, precision_recall_curve, lift_curve, score_histogram])
def test_curves_need_both_classes(curve):
    with pytest.raises(DataError, match="needs rows of both classes"):
        curve([1, 1], [1.0, 2.0])


def test_the_public_measures_are_all_there():
    assert metrics.__all__ == sorted(metrics.__all__)
    assert all(hasattr(metrics, name) for name in metrics.__all__)
    assert set(metrics.__all__) <= set(dir(metrics))
    with pytest.raises(AttributeError, match="no attribute 'gini'"):
        metrics.gini  # noqa: B018
