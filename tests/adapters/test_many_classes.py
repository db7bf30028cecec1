"""The classifiers with more than two classes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from rarestream import Block, OneVsRest
from rarestream.sklearn import (
    AdaGradClassifier,
    AutoClassifier,
    DualAveragingClassifier,
    FtrlProximalClassifier,
    RaceSearchCV,
)

NAMES = np.array(["art", "law", "sport", "war"])


def rows_of(n: int, seed: int = 0):
    """Rows of four classes, each with some features of its own, as a CSR matrix; and their classes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, n)
    own = 8 * codes[:, None] + rng.integers(0, 8, (n, 3))
    columns = np.hstack([own, 32 + rng.integers(0, 30, (n, 5))])
    X = sparse.csr_array((np.ones(columns.size), columns.ravel(), np.arange(n + 1) * 8), shape=(n, 64))
    X.sum_duplicates()
    return X, codes


@pytest.mark.parametrize(
    "classifier",
    [
        DualAveragingClassifier(),
        DualAveragingClassifier(loss="logistic", rate_power=0.0),
        FtrlProximalClassifier(scale="max", dtype="float64"),
        AdaGradClassifier(),
        AutoClassifier(),
        DualAveragingClassifier(class_weight="balanced"),
        DualAveragingClassifier(class_weight={"art": 2.0}),
        DualAveragingClassifier(max_passes=3, shuffle=True, random_state=1, early_stopping=True),
    ],
    ids=["auc", "default", "float64", "adagrad", "auto", "balanced", "weights", "stopping"],
)
def test_it_learns_four_classes(classifier):
    X, codes = rows_of(800)
    test, truth = rows_of(300, 1)
    clf = clone(classifier).fit(X, NAMES[codes])
    assert clf.classes_.tolist() == NAMES.tolist()
    assert isinstance(clf.model_, OneVsRest)
    assert clf.score(test, NAMES[truth]) > 0.9
    odds = clf.decision_function(test)
    assert odds.shape == (300, 4)
    assert (clf.predict(test) == NAMES[odds.argmax(axis=1)]).all()
    chances = clf.predict_proba(test)
    assert np.allclose(chances.sum(axis=1), 1)
    assert np.allclose(np.log(chances), clf.predict_log_proba(test))
    assert clf.coef_.shape == (4, 64)
    assert clf.intercept_.shape == (4,)
    assert 0.5 < clf.progress_auc_ < 1
    assert clf.t_ >= 720
    other = pickle.loads(pickle.dumps(clf))
    assert other.decision_function(test).tobytes() == odds.tobytes()


def test_weights_give_the_decision_function():
    X, codes = rows_of(400)
    clf = DualAveragingClassifier(scale="none").fit(X, codes)
    assert np.allclose(clf.decision_function(X), X @ clf.coef_.T + clf.intercept_, atol=1e-4)


def test_it_is_a_one_vs_rest_of_the_same_rows():
    X, codes = rows_of(400)
    clf = DualAveragingClassifier().fit(X, NAMES[codes])
    model = OneVsRest("dual-auc", classes=range(4), n_features=64)
    model.learn(Block.of(X), codes)
    assert clf.model_.to_bytes() == model.to_bytes()


@pytest.mark.parametrize("kind", [sparse.csr_array, lambda X: X.toarray()], ids=["csr", "dense"])
def test_partial_fit_learns_what_fit_does(kind):
    X, codes = rows_of(300)
    whole = DualAveragingClassifier().fit(kind(X), NAMES[codes])
    parts = DualAveragingClassifier()
    for start in range(0, 300, 50):
        few = kind(X[start : start + 50])
        parts.partial_fit(few, NAMES[codes[start : start + 50]], classes=NAMES if start == 0 else None)
    parts.partial_fit(kind(X[:1]), NAMES[codes[:1]])  # a row alone
    whole.partial_fit(kind(X[:1]), NAMES[codes[:1]])
    assert parts.model_.to_bytes() == whole.model_.to_bytes()
    with pytest.raises(ValueError, match="y holds the class 'food'"):
        parts.partial_fit(kind(X[:1]), ["food"])
    with pytest.raises(ValueError, match="differs from the classes of the first call"):
        parts.partial_fit(kind(X), NAMES[codes], classes=["a", "b", "c"])


def test_a_fit_that_is_continued():
    X, codes = rows_of(300)
    clf = DualAveragingClassifier(warm_start=True).fit(X[:200], codes[:200]).fit(X[200:], codes[200:])
    assert clf.model_.rows == 300


@pytest.mark.parametrize(("name", "value"), [("threshold", 0.5), ("pos_label", "art"), ("negatives_kept", 0.5)])
def test_what_is_for_two_classes_is_refused(name, value):
    X, codes = rows_of(50)
    with pytest.raises(ValueError, match=f"{name} is for two classes, but there are 4"):
        DualAveragingClassifier(**{name: value}).fit(X, NAMES[codes])


def test_explain_names_the_way_on():
    X, codes = rows_of(50)
    clf = DualAveragingClassifier().fit(X, codes)
    with pytest.raises(ValueError, match="explain is for two classes"):
        clf.explain(X[:1])
    assert clf.model_.model(2).explain(Block.of(X[:1]))[0].terms


def test_a_search_is_for_two_classes():
    X, codes = rows_of(60)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        RaceSearchCV(DualAveragingClassifier(), {"l1": [0.0, 0.1]}, cv=2).fit(X, codes)
