"""Held-out evaluation agrees with the metrics, in any number of batches, and says so when it cannot be exact."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rarestream import Block, Model, auc, read
from rarestream.errors import DataError
from rarestream.evaluate import Evaluator, evaluate, evaluate_scores, train
from rarestream.metrics import auc_interval, average_precision, recall_at_fpr


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
    assert found.average_precision is None
    assert found.recall_at_fpr is None
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
    ]
    assert list(record["recall_at_fpr"]) == ["0.001", "0.01", "0.05", "0.1"]


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
