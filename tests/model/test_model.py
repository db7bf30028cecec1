"""Model: what it promises beyond its learner."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

from rarestream import DataError, DualAveraging, FtrlAuc, Model, ModelBusyError, make_learner
from rarestream._native import Gate
from tests.strategies import block_of, random_block


def test_the_public_loop():
    model = Model(DualAveraging(loss="auc"))
    stream = random_block(500, 30, 5)
    for start in range(0, 500, 100):
        assert len(model.learn(stream[start : start + 100])) == 100
    assert (model.rows, model.positives) == (500, int((stream.labels > 0).sum()))
    assert model.coef.shape == (model.n_features,)
    assert model.coef.dtype == np.float32
    assert 0.5 < model.progress.auc.low < model.progress.auc < model.progress.auc.high <= 1


def test_a_learner_may_be_given_by_name():
    assert Model("dual-logistic").learner == DualAveraging(loss="logistic")


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Model("dual-auk"), "no learner is called 'dual-auk'; did you mean 'dual-auc'. There are"),
        (lambda: Model("dual_auc"), "no learner is called 'dual_auc'; did you mean 'dual-auc'. There are .*dual-auc"),
        (lambda: Model("FTRL-AUC"), "no learner is called 'FTRL-AUC'; did you mean 'ftrl-auc'"),
        (lambda: Model("zzz"), "no learner is called 'zzz'; there are adagrad"),
        (
            lambda: make_learner("spam", learning_rat=1),
            "no setting is called 'learning_rat'; did you mean 'learning_rate'",
        ),
        (lambda: Model(3), "learner must be a learner such as"),
        (lambda: Model(FtrlAuc(), dtype="float16"), "dtype must be one of float32, float64, got 'float16'"),
        (lambda: Model(FtrlAuc(), scale="big"), "scale must be one of none, unit, max, got 'big'"),
        (lambda: Model(FtrlAuc(), n_features=-1), "n_features must be a whole number between 0"),
        (lambda: FtrlAuc(l1=-0.1), r"^FtrlAuc: l1 must be >= 0, got -0\.1\.$"),
        (lambda: FtrlAuc(learning_rate=0), r"^FtrlAuc: learning_rate must be > 0, got 0\.$"),
        (lambda: FtrlAuc(beta=float("nan")), "FtrlAuc: beta must be > 0, got nan"),
        (lambda: FtrlAuc(l2="much"), "FtrlAuc: l2 must be a number, got 'much'"),
        (lambda: DualAveraging(loss="hinge"), "loss must be one of 'auc', 'logistic', got 'hinge'"),
    ],
)
def test_a_bad_setting_is_refused_when_the_learner_or_model_is_made(make, rule):
    with pytest.raises((ValueError, TypeError), match=rule):
        make()


def test_learners_are_frozen_values():
    learner = FtrlAuc(l1=0.5)
    with pytest.raises(AttributeError):
        learner.l1 = 1.0
    assert learner == FtrlAuc(l1=0.5)
    assert hash(learner) == hash(FtrlAuc(l1=0.5))


def test_coef_cannot_be_written():
    model = Model(FtrlAuc())
    model.learn(random_block(20, 5, 2))
    with pytest.raises(ValueError, match="read-only"):
        model.coef[0] = 1


def test_unlabelled_rows_are_scored_and_not_learned():
    model = Model(FtrlAuc())
    with pytest.raises(DataError, match=r"has no labels\. Use score"):
        model.learn(block_of([{0: 1.0}]))
    assert model.score(block_of([{0: 1.0}])).tolist() == [0.0]
    assert model.rows == 0


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (([0], [np.nan], 1), "values must be finite"),
        (([-1], [1.0], 1), "feature index -1"),
        (([0], [1.0], 2), "labels are -1 and"),
        (([0], [1.0], 1, -1.0), "the row has the importance -1.0; importances lie between 1e-100 and 1e\\+12"),
        (([0, 1], [1.0], 1), "2 indices but 1 values"),
    ],
)
def test_a_bad_row_is_refused_and_nothing_learned(row, rule):
    model = Model(FtrlAuc())
    model.learn(random_block(20, 5, 2))
    before = model.to_bytes()
    with pytest.raises(DataError, match=rule):
        model.learn_one(*row)
    assert model.to_bytes() == before


def test_pickles_and_copies_go_on_as_the_model_would():
    block = random_block(100, 20, 4)
    model = Model(DualAveraging())
    model.learn(block[:50])
    twins = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    model.learn(block[50:])
    for twin in twins:
        twin.learn(block[50:])
        assert twin.to_bytes() == model.to_bytes()


def test_the_threshold_lies_between_the_classes():
    block = random_block(1000, 20, 4)
    for learner in (DualAveraging(), DualAveraging(loss="logistic")):
        model = Model(learner)
        model.learn(block)
        negative, positive = model.class_means
        assert negative < model.threshold < positive + 2


def test_many_threads_may_score_at_once():
    block = random_block(3000, 50, 8)
    model = Model(FtrlAuc())
    model.learn(block)
    expected, found = model.score(block), []
    threads = [threading.Thread(target=lambda: found.append(model.score(block))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert all(np.array_equal(scores, expected) for scores in found)


def test_learning_beside_learning_or_scoring_is_an_error_and_no_race():
    block = random_block(20, 5, 2)
    model = Model(FtrlAuc())
    model.learn(block)
    before = model.to_bytes()
    assert model._gate.begin_scoring()  # another thread is in the middle of score()
    with pytest.raises(ModelBusyError, match="another thread"):
        model.learn(block)
    model.score(block)
    model._gate.end_scoring()
    assert model._gate.begin_learning()  # another thread is in the middle of learn()
    for call in (model.learn, model.score):
        with pytest.raises(ModelBusyError, match="another thread"):
            call(block)
    model._gate.end_learning()
    assert model.to_bytes() == before
    model.learn(block)


def test_threads_that_learn_and_score_together_corrupt_nothing():
    block = random_block(4000, 40, 10)
    model, refused = Model(FtrlAuc()), []

    def work(call):
        for _ in range(10):
            try:
                call(block)
            except ModelBusyError as error:
                refused.append(error)

    threads = [threading.Thread(target=work, args=(call,)) for call in (model.learn, model.score) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.rows % len(block) == 0
    twin = Model(FtrlAuc())
    for _ in range(model.rows // len(block)):
        twin.learn(block)
    assert twin.to_bytes() == model.to_bytes()


def test_the_gate_lets_in_scorers_or_one_learner():
    gate = Gate()
    assert gate.begin_scoring() and gate.begin_scoring()
    assert not gate.begin_learning()
    gate.end_scoring()
    gate.end_scoring()
    assert gate.begin_learning()
    assert not gate.begin_learning() and not gate.begin_scoring()


def test_rows_learned_again_are_left_out_of_the_progressive_auc():
    block = random_block(200, 10, 4)
    model = Model(DualAveraging())
    model.learn(block)
    first = model.progress.auc
    weights = model.coef.copy()
    model.learn(block, again=True)
    assert model.progress.auc == first
    assert model.rows == 400
    assert not np.array_equal(model.coef, weights)


def test_the_bytes_of_a_state_are_those_of_its_arrays():
    pair = Model(DualAveraging(), n_features=100)
    assert pair.state_bytes == 101 * 8 + 6 * 8  # z and n in float32, with one to spare, and the tally
    assert Model(DualAveraging(), n_features=100, scale="max").state_bytes == pair.state_bytes + 101 * 4
    assert Model(DualAveraging(), n_features=100, dtype="float64").state_bytes == 101 * 16 + 6 * 8
    pair.learn(random_block(50, 100, 5, seed=1))
    assert Model.from_bytes(pair.to_bytes("scoring")).state_bytes == 101 * 4 + 6 * 8
    assert Model("oam", n_features=100).state_bytes > 100 * 8  # kept rows count too
