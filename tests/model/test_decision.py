"""Decisions of a model: chosen on its scores, kept with it, used for labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rarestream import Block, DataError, Model, ModelFileError, modelfile
from rarestream.metrics import choose_threshold
from tests.strategies import block_of, random_block


@pytest.fixture
def model() -> Model:
    model = Model("dual-logistic")
    model.learn(random_block(400, 30, 4, seed=1))
    return model


@pytest.fixture
def rows() -> Block:
    return random_block(300, 30, 4, seed=2)


def test_it_is_that_of_the_scores(model, rows):
    found = model.threshold_for(rows, fpr=0.1)
    assert found == replace(choose_threshold(rows.labels, model.score(rows), fpr=0.1), after_rows=400)
    assert model.threshold_for([rows[:100], rows[100:]], fpr=0.1) == found
    assert model.decision is None
    scores, labels = model.score(rows), rows.labels
    assert np.mean(scores[labels < 0] >= found.threshold) == found.fpr <= 0.1


def test_importances_of_rows_count(model, rows):
    importances = np.random.default_rng(0).integers(0, 3, len(rows)).astype(float)
    weighed = replace(rows, importances=importances)
    found = model.threshold_for(weighed, share=0.2)
    assert found == replace(choose_threshold(rows.labels, model.score(rows), importances, share=0.2), after_rows=400)


def test_labels_follow_the_decision_and_without_one_the_threshold(model, rows):
    scores = model.score(rows)
    assert np.array_equal(model.label(rows), np.where(scores >= model.label_threshold, 1, -1))
    found = model.threshold_for(rows, recall=0.9, save=True)
    assert model.decision is found
    assert model.label_threshold == found.threshold
    labels = model.label(rows)
    assert labels.dtype == np.int8
    assert np.array_equal(labels, np.where(scores >= found.threshold, 1, -1))
    assert np.mean(labels == 1) == found.share
    assert np.mean(labels[rows.labels > 0] == 1) == found.recall >= 0.9


def test_without_a_decision_positive_is_a_probability_of_one_half(model, rows):
    likely = model.probability(rows) >= 0.5
    assert 0 < np.count_nonzero(likely) < len(rows)
    assert np.array_equal(model.label(rows), np.where(likely, 1, -1))
    model.negatives_kept = 0.25
    rarer = model.probability(rows) >= 0.5
    assert np.count_nonzero(rarer) < np.count_nonzero(likely)
    assert np.array_equal(model.label(rows), np.where(rarer, 1, -1))
    plain = Model("dual-logistic", calibrate=False)
    plain.learn(random_block(400, 30, 4, seed=1))
    assert plain.label_threshold == -plain.intercept  # zero log odds
    assert np.array_equal(plain.label(rows), np.where(plain.score(rows) >= -plain.intercept, 1, -1))


@pytest.mark.parametrize("kind", ["resumable", "scoring"])
def test_files_keep_it(model, rows, kind):
    model.threshold_for(rows, alerts_per_day=3, days=10, costs=(1, 20), save=True)
    loaded = Model.from_bytes(model.to_bytes(kind))
    assert loaded.decision == model.decision
    assert loaded.to_bytes(kind) == model.to_bytes(kind)
    assert np.array_equal(loaded.label(rows), model.label(rows))


def test_files_without_one_have_none(model):
    header, _ = modelfile.from_bytes(model.to_bytes())
    assert "decision" not in header
    assert Model.from_bytes(model.to_bytes()).decision is None


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        "fpr 0.01",
        {},
        {"threshold": "high"},
        {"threshold": True},
        {"rule": "none"},
        {"fpr": 2},
        {"positives": -1},
        {"after_rows": 401},
        {"rows": None},
    ],
    ids=str,
)
def test_a_file_with_an_invalid_one_is_refused(model, rows, wrong):
    model.threshold_for(rows, fpr=0.1, save=True)
    header, arrays = modelfile.from_bytes(model.to_bytes())
    header["decision"] = {**header["decision"], **wrong} if isinstance(wrong, dict) and wrong else wrong
    with pytest.raises(ModelFileError, match="not a model this version can read"):
        Model.from_bytes(modelfile.to_bytes(header, arrays))


def test_learning_keeps_it_and_it_says_when_it_was_made(model, rows):
    found = model.threshold_for(rows, fpr=0.1, save=True)
    model.learn(rows)
    assert model.decision is found
    assert (found.after_rows, model.rows) == (400, 700)


def test_a_pruned_model_has_none(model, rows):
    model.threshold_for(rows, fpr=0.1, save=True)
    assert model.prune(nonzeros=5).decision is None
    assert model.prune(nonzeros=10**6).decision is None
    assert model.prune(nonzeros=5, refit=rows).decision is None
    assert model.decision is not None


def test_what_cannot_be_decided_on_is_an_error(model, rows):
    with pytest.raises(DataError, match=r"Model.threshold_for: the rows have no labels"):
        model.threshold_for(replace(rows, labels=None), fpr=0.1)
    with pytest.raises(DataError, match=r"Model.threshold_for: pass exactly one"):
        model.threshold_for(rows)
    with pytest.raises(DataError, match=r"Model.threshold_for: needs rows of both classes, got 0 positive and 0 neg"):
        model.threshold_for([], fpr=0.1)
    with pytest.raises(DataError, match="both classes"):
        model.threshold_for(block_of([{0: 1.0}], [1]), fpr=0.1)
    with pytest.raises(TypeError, match=r"Model.threshold_for: takes a Block, got ndarray"):
        model.threshold_for([np.eye(3)], fpr=0.1)
    assert model.decision is None
