"""Probabilities, classes and passes of the scikit-learn classifiers, beside what scikit-learn itself does with them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import TunedThresholdClassifierCV, cross_val_score

from rarestream import Block, DataError
from rarestream.errors import FewRowsWarning
from rarestream.sklearn import AutoClassifier, DualAveragingClassifier, FtrlAucClassifier, FtrlProximalClassifier
from tests.strategies import random_block


def rows(n=3000, share=0.1, seed=0):
    block = random_block(n, 80, 8, seed=seed, share=share)
    X = sp.csr_array((block.values, block.indices, block.indptr), shape=(n, 80))
    return X, (block.labels > 0).astype(int)


X, y = rows()
LEARNERS = pytest.mark.parametrize(
    "clf", [AutoClassifier(), DualAveragingClassifier(), FtrlProximalClassifier(), FtrlAucClassifier(scale="max")]
)


@LEARNERS
def test_probabilities_go_with_classes_decisions_and_the_model(clf):
    clf = clone(clf).fit(X, y)
    p = clf.predict_proba(X)
    assert p.shape == (len(y), 2) and p.sum(axis=1) == pytest.approx(np.ones(len(y)))
    assert np.array_equal(p[:, 1], clf.model_.probability(Block.of(X)))
    assert np.array_equal(p.argmax(axis=1), clf.predict(X))
    assert np.array_equal(np.log(p), clf.predict_log_proba(X))
    assert p[:, 1].mean() == pytest.approx(y.mean(), rel=0.3)
    one = clf.predict_proba(X[:1])
    assert np.array_equal(one, p[:1]) and np.array_equal(clf.predict_proba(X[:1]), one)


def test_as_many_are_called_positive_as_a_probability_above_one_half_says():
    clf = AutoClassifier().fit(X, y)
    assert clf.predict(X).mean() < 1.5 * y.mean()


def test_without_a_calibration_there_are_no_probabilities():
    clf = DualAveragingClassifier(calibrate=False).fit(X, y)
    assert not hasattr(clf, "predict_proba") and not hasattr(clf, "predict_log_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        clf.predict_proba(X)
    assert clf.model_.calibration is None


def test_sampled_negatives():
    clf = DualAveragingClassifier(negatives_kept=0.1).fit(X, y)
    plain = DualAveragingClassifier().fit(X, y)
    odds = [p[:, 1] / p[:, 0] for p in (clf.predict_proba(X), plain.predict_proba(X))]
    assert odds[0] == pytest.approx(odds[1] / 10)


def test_few_rows_are_said():
    few = np.concatenate([np.flatnonzero(y == 1)[:3], np.flatnonzero(y == 0)[:30]])
    clf = DualAveragingClassifier().fit(X[few], y[few])
    with pytest.warns(FewRowsWarning, match="3 positive and 30 negative rows"):
        clf.predict_proba(X)


def test_scikit_learn_uses_the_probabilities():
    scores = cross_val_score(DualAveragingClassifier(), X, y, scoring="neg_log_loss", cv=3)
    base = log_loss(y, np.full(len(y), y.mean()))
    assert (-scores < base).all()
    voting = VotingClassifier([("a", AutoClassifier()), ("b", FtrlProximalClassifier())], voting="soft").fit(X, y)
    assert roc_auc_score(y, voting.predict_proba(X)[:, 1]) > 0.9
    tuned = TunedThresholdClassifierCV(DualAveragingClassifier(), scoring="balanced_accuracy", cv=3).fit(X, y)
    assert y.mean() / 2 < tuned.predict(X).mean() < 0.5
    wrapped = CalibratedClassifierCV(DualAveragingClassifier(), cv=3).fit(X, y)
    own = log_loss(y, DualAveragingClassifier().fit(X, y).predict_proba(X))
    assert own < log_loss(y, wrapped.predict_proba(X)) + 0.02


# -- the positive class


@LEARNERS
def test_the_smaller_class_can_be_the_positive_one(clf):
    named = np.array(["spam", "work"])[1 - y]  # spam sorts first
    plain = clone(clf).fit(X, named)
    told = clone(clf).set_params(pos_label="spam").fit(X, named)
    assert told.classes_.tolist() == ["spam", "work"] and told.model_.positives == y.sum()
    assert plain.model_.positives == len(y) - y.sum()
    assert told.decision_function(X) == pytest.approx(plain.decision_function(X), abs=1e-3)
    assert told.predict_proba(X) == pytest.approx(plain.predict_proba(X), abs=1e-3)
    assert told.coef_ == pytest.approx(plain.coef_, abs=1e-4)
    assert roc_auc_score(named, told.decision_function(X)) > 0.8
    by_one = clone(told)
    for start in range(0, 300, 100):
        by_one.partial_fit(X[start : start + 100], named[start : start + 100], classes=["spam", "work"])
    by_one.partial_fit(X[300:301], named[300:301])
    whole = clone(told).partial_fit(X[:301], named[:301])
    assert by_one.model_.to_bytes() == whole.model_.to_bytes()


def test_a_positive_class_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"pos_label is 7, but the classes are \[0, 1\]"):
        DualAveragingClassifier(pos_label=7).fit(X, y)


# -- thresholds


@pytest.mark.parametrize("pos_label", [1, 0])
def test_a_threshold_by_a_rule(pos_label):
    clf = DualAveragingClassifier(pos_label=pos_label).fit(X[:2000], y[:2000])
    before = clf.predict(X[2000:])
    decision = clf.threshold_for(X[2000:], y[2000:], share=0.2, save=False)
    assert np.array_equal(clf.predict(X[2000:]), before)
    assert clf.threshold_for(X[2000:], y[2000:], share=0.2) == decision == clf.model_.decision
    called = clf.predict(X[2000:]) == pos_label
    assert 0.19 < called.mean() <= 0.2
    assert np.array_equal(called, clf.model_.label(Block.of(X[2000:])) > 0)
    above = clf.decision_function(X[2000:]) > clf.threshold_
    assert np.count_nonzero(above != (clf.predict(X[2000:]) == 1)) <= 1  # the row at the threshold itself
    clf.set_params(threshold=1e9)
    assert not clf.predict(X).any()
    with pytest.raises(DataError, match="exactly one"):
        clf.threshold_for(X, y)


# -- weights of classes


def test_weights_of_classes_are_importances():
    weights = np.where(y == 1, 5.0, 0.5)
    by_rows = DualAveragingClassifier().fit(X, y, sample_weight=weights)
    by_class = DualAveragingClassifier(class_weight={0: 0.5, 1: 5.0}).fit(X, y)
    assert by_rows.model_.to_bytes() == by_class.model_.to_bytes()
    both = DualAveragingClassifier(class_weight={1: 10.0}).fit(X, y, sample_weight=np.full(len(y), 0.5))
    assert both.model_.to_bytes() == by_class.model_.to_bytes()
    swapped = DualAveragingClassifier(class_weight={0: 0.5, 1: 5.0}, pos_label=0).fit(X, y)
    assert swapped.predict_proba(X) == pytest.approx(by_class.predict_proba(X), abs=1e-3)


def test_balanced_weights():
    balanced = DualAveragingClassifier(class_weight="balanced").fit(X, y)
    weights = len(y) / (2 * np.bincount(y))
    assert balanced.model_.to_bytes() == DualAveragingClassifier().fit(X, y, weights[y]).model_.to_bytes()
    assert balanced.predict(X).mean() > 2 * DualAveragingClassifier().fit(X, y).predict(X).mean()


@pytest.mark.parametrize("size", [1, 7, 300])
def test_balanced_weights_of_parts_follow_the_rows_so_far(size):
    seen = np.arange(1, 301) / (2 * np.where(y == 1, np.cumsum(y), np.cumsum(1 - y))[:300])
    clf = DualAveragingClassifier(class_weight="balanced")
    for start in range(0, 300, size):
        part = slice(start, min(start + size, 300))
        clf.partial_fit(X[part], y[part], classes=[0, 1])
        clf = pickle.loads(pickle.dumps(clf))
    assert (
        clf.model_.to_bytes() == DualAveragingClassifier().partial_fit(X[:300], y[:300], None, seen).model_.to_bytes()
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("even", "None, a dict or 'balanced', got 'even'"),
        ({2: 1.0}, r"class_weight has the class 2; the classes are \[0, 1\]"),
        ({1: -1}, "class_weight of 1 must be above 0, got -1"),
    ],
)
def test_wrong_weights_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        DualAveragingClassifier(class_weight=given).fit(X, y)


# -- passes


def test_a_warm_start_continues():
    warm = DualAveragingClassifier(warm_start=True).fit(X[:1500], y[:1500])
    first = warm.model_
    warm.fit(X[1500:], y[1500:])
    parts = DualAveragingClassifier().partial_fit(X[:1500], y[:1500]).partial_fit(X[1500:], y[1500:])
    assert warm.model_ is first and warm.model_.to_bytes() == parts.model_.to_bytes()
    with pytest.raises(ValueError, match="features"):
        warm.fit(X[:, :40], y)
    with pytest.raises(ValueError, match="the classes are"):
        warm.fit(X, y + 1)


def test_early_stopping_keeps_the_best_pass(capsys):
    clf = FtrlAucClassifier(max_passes=30, early_stopping=True, random_state=0, verbose=1, n_iter_no_change=2)
    clf.fit(X, y)
    aucs = clf.validation_aucs_
    assert len(aucs) == clf.n_iter_ < 30 and np.argmax(aucs) == len(aucs) - 3
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == clf.n_iter_ and printed[0].startswith(
        "[FtrlAucClassifier] pass 1: 2,700 rows, progressive AUC"
    )
    assert f"AUC of rows held out {aucs[-1]:.4f}" in printed[-1]
    assert clf.model_.rows == 2700 * (np.argmax(aucs) + 1)
    again = clone(clf).set_params(verbose=0).fit(X, y)
    assert again.model_.to_bytes() == clf.model_.to_bytes() and not capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"validation_fraction": 1.0}, "validation_fraction must be between 0 and 1"),
        ({"n_iter_no_change": 0}, "n_iter"),
    ],
)
def test_wrong_settings_of_early_stopping_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        DualAveragingClassifier(early_stopping=True, **settings).fit(X, y)
    one = np.concatenate([np.flatnonzero(y == 1)[:1], np.flatnonzero(y == 0)])
    with pytest.raises(ValueError, match="one has a single row"):
        DualAveragingClassifier(early_stopping=True).fit(X[one], y[one])


# -- callbacks of scikit-learn


def test_callbacks_see_every_part_of_a_fit():
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    seen = []

    class Watch:
        def setup(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
            seen.append((context.task_name, roc_auc_score(y, fitted_estimator.decision_function(X))))
            return self.stop and len(seen) >= 5

        def teardown(self, estimator, context):
            seen.append("torn down")

    Watch.stop = False
    assert isinstance(Watch(), callback.FitCallback)
    clf = DualAveragingClassifier(max_passes=2).set_callbacks(Watch()).fit(X, y)
    assert [one[0] for one in seen[:-1]] == (["rows"] * 20 + ["pass"]) * 2 + ["fit"] and seen[-1] == "torn down"
    assert seen[20][1] > seen[0][1]
    assert clf.model_.to_bytes() == DualAveragingClassifier(max_passes=2).fit(X, y).model_.to_bytes()
    seen.clear()
    Watch.stop = True
    clf = DualAveragingClassifier(max_passes=2).set_callbacks(Watch()).fit(X, y)
    assert clf.model_.rows == 5 * 150 and clf.n_iter_ == 1
