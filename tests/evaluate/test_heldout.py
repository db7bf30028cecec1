"""Held-out evaluation agrees with the metrics, in any number of batches, and says so when it cannot be exact."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rarestream import Block, Model, auc, read
from rarestream.errors import DataError
from rarestream.evaluate import Evaluator, evaluate, evaluate_scores, train
from rarestream.metrics import (
    auc_interval,
    average_precision,
    brier_score,
    group_auc,
    log_loss,
    normalised_entropy,
    partial_auc,
    recall_at_fpr,
    reliability,
)


@pytest.fixture
def scored():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(5000) < 0.1, 1, -1)
    return labels, np.round(rng.normal(size=5000) + 0.8 * (labels > 0), 2)


def test_it_agrees_with_the_metrics(events):
    model = Model("dual-auc")
    train(model, read(events))
    blocks = list(read(events))
    labels = np.concatenate([block.labels for block in blocks])
    scores = np.concatenate([model.score(block) for block in blocks])
    found = evaluate(model, read(events, rows=777))
    assert float(found.auc) == auc(labels, scores)
    assert found.average_precision == average_precision(labels, scores)
    assert list(found.recall_at_fpr.values()) == list(recall_at_fpr(labels, scores, [0.001, 0.01, 0.05, 0.1]))
    assert (found.rows, found.positives) == (20_000, int((labels > 0).sum()))
    assert found.partial_auc == {rate: partial_auc(labels, scores, rate) for rate in (0.01, 0.1)}
    assert set(found.partial_bound.values()) == set(found.recall_bound.values()) == {0.0}
    assert found.group_auc is found.curves is None


def test_batches_with_and_without_importances_go_together(scored):
    labels, scores = scored
    weights = np.ones(5000)
    weights[3000:] = 2.5
    evaluator = Evaluator()
    evaluator.add(labels[:3000], scores[:3000])
    evaluator.add(labels[3000:], scores[3000:], weights[3000:])
    assert evaluator.result().auc == auc_interval(labels, scores, weights)


def test_beyond_what_is_kept_the_auc_is_streamed_within_its_bound(scored):
    labels, scores = scored
    evaluator = Evaluator(kept=1000)
    for at in range(0, 5000, 600):
        evaluator.add(labels[at : at + 600], scores[at : at + 600])
    found = evaluator.result()
    assert abs(found.auc - auc(labels, scores)) <= found.auc.bound + 1e-12
    assert abs(found.average_precision - average_precision(labels, scores)) <= found.average_precision_bound + 1e-12
    for rate, recall in found.recall_at_fpr.items():
        assert abs(recall - recall_at_fpr(labels, scores, rate)) <= found.recall_bound[rate] + 1e-12
    for rate, part in found.partial_auc.items():
        assert abs(part - partial_auc(labels, scores, rate)) <= found.partial_bound[rate] + 1e-12
    assert found.rows == 5000


def test_the_record_is_json_with_the_promised_keys(scored):
    evaluator = Evaluator()
    evaluator.add(*scored)
    record = json.loads(json.dumps(evaluator.result().record(), allow_nan=False))
    assert list(record) == [
        "rows",
        "positives",
        "auc",
        "auc_low",
        "auc_high",
        "auc_bound",
        "average_precision",
        "recall_at_fpr",
        "average_precision_bound",
        "recall_at_fpr_bound",
        "partial_auc",
        "partial_auc_bound",
        "log_loss",
        "brier_score",
        "normalised_entropy",
        "calibration_error",
        "calibration_bins",
        "group_auc",
        "groups",
        "groups_left_out",
        "group_rows_left_out",
    ]
    assert list(record["partial_auc"]) == ["0.01", "0.1"]
    assert list(record["recall_at_fpr"]) == ["0.001", "0.01", "0.05", "0.1"]


def test_the_probabilities_of_a_calibrated_model_are_measured(events):
    model, plain = Model("dual-auc"), Model("dual-auc", calibrate=False)
    for one in (model, plain):
        train(one, read(events))
    found = evaluate(model, read(events))
    blocks = list(read(events))
    labels = np.concatenate([block.labels for block in blocks])
    rows = labels, np.concatenate([model.probability(block) for block in blocks])
    assert found.log_loss == log_loss(*rows)
    assert found.brier_score == brier_score(*rows)
    assert found.normalised_entropy == normalised_entropy(*rows) < 1
    assert found.calibration_error == reliability(*rows).error
    assert evaluate(plain, read(events)).log_loss is None


def logistic(scores):
    return 1 / (1 + np.exp(2 - np.asarray(scores)))


@pytest.mark.parametrize("kept", [10**6, 1000])
def test_probabilities_are_measured_however_the_rows_come(scored, kept):
    labels, scores = scored
    weights = np.where(np.arange(5000) % 3, 1.0, 2.5)
    evaluator = Evaluator(kept=kept, probability=logistic)
    for at in range(0, 5000, 600):
        evaluator.add(*(part[at : at + 600] for part in (labels, scores, weights)))
    found, rows = evaluator.result(), (labels, logistic(scores), weights)
    assert found.log_loss == pytest.approx(log_loss(*rows), rel=1e-12)
    assert found.brier_score == pytest.approx(brier_score(*rows), rel=1e-12)
    assert found.normalised_entropy == pytest.approx(normalised_entropy(*rows), rel=1e-12)
    if kept == 1000:
        assert found.calibration_error is found.reliability is None
        return
    assert found.calibration_error == found.reliability.error == reliability(*rows).error
    record = json.loads(json.dumps(found.record(), allow_nan=False))
    assert len(record["calibration_bins"]) == 15
    assert list(record["calibration_bins"][0]) == [
        "low",
        "high",
        "rows",
        "weight",
        "probability",
        "share",
        "share_low",
        "share_high",
    ]


@pytest.mark.parametrize("kind", [np.int64, "U"])
def test_groups_may_come_in_any_batches_and_rows_may_have_none(scored, kind):
    labels, scores = scored
    users = np.random.default_rng(1).integers(0, 200, 5000)
    tags = users.astype(kind)
    tags[4000:4500] = -1 if kind == np.int64 else ""
    evaluator = Evaluator(groups=True)
    for at in range(0, 4500, 600):
        rows = slice(at, min(at + 600, 4500))
        evaluator.add(labels[rows], scores[rows], groups=tags[rows])
    evaluator.add(labels[4500:], scores[4500:])
    found, expected = evaluator.result().group_auc, group_auc(labels[:4000], scores[:4000], users[:4000])
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert (found.groups, found.left_out) == (expected.groups, expected.left_out)
    assert found.rows_left_out == expected.rows_left_out + 1000
    assert sorted(int(group) for group in found.table.group) == expected.table.group.tolist()
    by_name = dict(zip(map(int, found.table.group), found.table.auc, strict=True))
    assert [by_name[group] for group in expected.table.group.tolist()] == pytest.approx(expected.table.auc.tolist())


def test_groups_are_left_out_if_there_are_too_many_rows_and_refused_if_no_row_has_one(scored):
    labels, scores = scored
    evaluator = Evaluator(kept=1000, groups=True)
    evaluator.add(labels, scores, groups=np.zeros(5000, int))
    assert evaluator.result().group_auc is None
    evaluator = Evaluator(groups=True)
    evaluator.add(labels, scores)
    with pytest.raises(DataError, match="no row has a group. Check the name of the column"):
        evaluator.result()


def test_the_qid_of_svmlight_is_a_group(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{rng.choice([-1, 1])} qid:{n // 9} {rng.integers(1, 9)}:1\n" for n in range(900)))
    model = Model("dual-auc")
    train(model, read(str(path)))
    blocks = list(read(str(path)))
    labels, tags = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("labels", "tags"))
    scores = np.concatenate([model.score(block) for block in blocks])
    found = evaluate(model, read(str(path), rows=70), groups=True).group_auc
    assert found.value == pytest.approx(group_auc(labels, scores, tags).value, abs=1e-12)


@pytest.mark.parametrize(("label", "word"), [(1, "positive"), (-1, "negative")])
def test_one_class_alone_is_refused(label, word):
    evaluator = Evaluator("some.svm")
    evaluator.add(np.full(3, label), np.arange(3.0))
    with pytest.raises(DataError, match=f"some.svm: all 3 rows are {word}"):
        evaluator.result()


def test_rows_without_labels_are_refused():
    with pytest.raises(DataError, match="no labels"):
        evaluate(Model("dual-auc"), [Block.of(np.ones((2, 2)))])


@pytest.mark.parametrize("apart", [" ", "\t", ",", ", "])
def test_a_file_of_scores_may_set_them_apart_in_several_ways(tmp_path, scored, apart):
    labels, scores = scored
    path = tmp_path / "scores.txt"
    lines = [f"{label}{apart}{score!r}" for label, score in zip(labels.tolist(), scores.tolist(), strict=True)]
    path.write_text("label score\n# a comment\n\n" + "\n".join(lines))
    assert evaluate_scores(str(path)).auc == auc_interval(labels, scores)


def test_a_file_of_scores_may_be_of_probabilities(tmp_path):
    path = tmp_path / "scores.txt"
    path.write_text("1 0.5\n0 0.25\n1 1\n")
    assert evaluate_scores(str(path), probabilities=True).log_loss == pytest.approx(log_loss([1, 0, 1], [0.5, 0.25, 1]))
    path.write_text("1 0.5\n# x\n0 1.25\n")
    with pytest.raises(DataError, match=r"scores.txt:3: 1.25 is no probability.*drop probabilities=True"):
        evaluate_scores(str(path), probabilities=True)


def test_a_file_of_scores_may_have_any_labels_if_the_positive_one_is_named(tmp_path):
    path = tmp_path / "scores.txt"
    path.write_text("3 0.5\n7 0.9\n2 0.1\n")
    assert float(evaluate_scores(str(path), positive=7).auc) == 1
    with pytest.raises(DataError, match=r"scores.txt:3: a third label, 2, after 3 and 7; .*positive=VALUE"):
        evaluate_scores(str(path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 0.5\n0\n", r"scores.txt:2: a line must be two numbers, a label and a score"),
        ("1 0.5 0.7\n", r"scores.txt:1: a line must be two numbers, a label and a score"),
        ("1 0.5\n0 x\n", r"scores.txt:2: .* got '0 x'"),
        ("1 0.5\n0 0.1\n# x\n-1 0.7\n", r"scores.txt:4: a third label, -1, after 0 and 1; .* positive=VALUE"),
        ("-1 0.5\n" * 200_000 + "1 0.5\n0 0.7\n", r"scores.txt:200002: a third label, 0, after -1 and 1"),
        ("1 nan\n0 1\n", r"scores.txt:1: nan has no rank"),
        ("1 0.5\n1 0.7\n", r"all 2 rows are positive"),
        ("\n# nothing\n", r"there are no rows"),
    ],
)
def test_what_is_wrong_with_a_file_of_scores_is_said_with_its_place(tmp_path, text, said):
    path = tmp_path / "scores.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        evaluate_scores(str(path))
