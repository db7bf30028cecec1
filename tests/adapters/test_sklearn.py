"""What the classifiers promise beyond scikit-learn's own checks."""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import rarestream.sklearn
from rarestream import Block, DataError, Model, learner_names, make_learner
from rarestream.adapters.sklearn import StreamClassifier
from rarestream.errors import SortedRowsWarning
from rarestream.sklearn import DualAveragingClassifier, FtrlAucClassifier, FtrlProximalClassifier
from tests import children
from tests.strategies import FEATURES, blocks, random_block

CLASSES = [getattr(rarestream.sklearn, name) for name in rarestream.sklearn.__all__ if name.endswith("Classifier")]
EVERY = pytest.mark.parametrize("cls", CLASSES)
LOSSES = pytest.mark.parametrize(
    "make", [FtrlAucClassifier, FtrlProximalClassifier, lambda **s: DualAveragingClassifier(loss="logistic", **s)]
)
D = 40


def rows(n=400, seed=0):
    block = random_block(n, D, 6, seed)
    return block.to_csr(D), (block.labels > 0).astype(int)


def same(one, other) -> bool:
    return one.model_.to_bytes() == other.model_.to_bytes()


# -- the classes themselves


def test_every_learner_has_its_classifier():
    assert {cls.learner for cls in CLASSES} == {type(make_learner(name)) for name in learner_names()}


@EVERY
def test_takes_the_settings_of_its_learner_and_their_defaults(cls):
    signature = inspect.signature(cls.__init__).parameters
    for field in dataclasses.fields(cls.learner):
        assert signature[field.name].default == field.default
    common = {field.name for field in dataclasses.fields(StreamClassifier)}
    own = {field.name for field in dataclasses.fields(cls.learner)}
    assert set(signature) - {"self"} == own | common


@EVERY
def test_documents_every_parameter(cls):
    for name in inspect.signature(cls).parameters:
        assert f"\n    {name} : " in cls.__doc__


@EVERY
def test_lives_at_its_public_address(cls):
    assert cls.__module__ == "rarestream.sklearn"
    assert cls.__qualname__ == cls.__name__


def test_without_scikit_learn_the_import_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import rarestream; import rarestream.sklearn"
    done = children.run([sys.executable, "-c", code])
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "rarestream.errors.MissingExtraError: rarestream.sklearn: scikit-learn 1.6 or newer is needed. "
        'pip install "rarestream[sklearn]"'
    )


@EVERY
@pytest.mark.parametrize(
    "wrong",
    [
        {"its first number": -1.0},
        {"dtype": "float16"},
        {"scale": "huge"},
        {"max_passes": 0},
        {"max_passes": 1.5},
        {"threshold": "low"},
        {"threshold": float("nan")},
    ],
)
def test_settings_are_checked_in_fit_and_not_before(cls, wrong):
    X, y = rows(20)
    [(name, value)] = wrong.items()
    if name == "its first number":  # no number of a learner may be negative
        name = next(field.name for field in dataclasses.fields(cls.learner) if {"range", "least"} & set(field.metadata))
    for fit in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=name):
            getattr(cls(**{name: value}), fit)(X, y)


# -- the same as the Model


@EVERY
@given(block=blocks(importances=True))
@settings(max_examples=25)
def test_partial_fit_is_the_models_learn(cls, block):
    there = block.importances > 0
    clf = cls(dtype="float64")
    X, y = block.to_csr(FEATURES), block.labels
    clf.partial_fit(X, y, classes=[-1, 1], sample_weight=block.importances)
    model = Model(cls.learner(), dtype="float64", n_features=FEATURES)
    model.learn(block.take(np.flatnonzero(there)))
    assert clf.model_.to_bytes() == model.to_bytes()
    assert np.array_equal(clf.decision_function(X), model.score(block) - model.threshold)


@EVERY
def test_where_batches_are_cut_and_which_way_they_take_does_not_matter(cls):
    X, y = rows()
    whole = cls().fit(X, y)
    singly = cls().partial_fit(X[:2], y[:2], classes=[0, 1])
    for i in range(2, 100):
        singly.partial_fit(X[[i]], y[[i]])
    singly.partial_fit(X[100:150], y[100:150])
    singly.partial_fit(X[150:200].toarray(), list(y[150:200]))
    singly.partial_fit(X[200:].tocoo(), y[200:], classes=[0, 1], sample_weight=np.ones(len(y) - 200))
    singly.model_.finish_race()  # as fit does, which knows that no more rows come
    scores = singly.decision_function(X)
    assert np.array_equal(scores, whole.decision_function(X))
    assert np.array_equal(singly.coef_, whole.coef_)
    assert singly.progress_auc_ == whole.progress_auc_


@LOSSES
def test_the_decision_is_linear_in_scaled_rows(make):
    X, y = rows()
    clf = make(dtype="float64").fit(X, y)
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    unit = X.toarray() / norms[:, None]
    assert clf.coef_.shape == (1, D)
    assert clf.intercept_.shape == (1,)
    np.testing.assert_allclose(clf.decision_function(X), (unit @ clf.coef_.T + clf.intercept_)[:, 0], atol=1e-6)


def test_a_saved_model_scores_as_the_classifier(tmp_path):
    X, y = rows()
    clf = DualAveragingClassifier().fit(X, y)
    clf.model_.save(tmp_path / "m.rare")
    model = Model.load(tmp_path / "m.rare")
    assert np.array_equal(model.coef, clf.coef_[0])


# -- thresholds


@LOSSES
def test_zero_is_the_probability_one_half(make):
    X, y = rows()
    clf = make().fit(X, y)
    assert clf.intercept_[0] == -clf.model_.calibration.middle
    assert clf.threshold_ == 0
    assert np.array_equal(clf.decision_function(X) > 0, clf.model_.probability(Block.of(X)) > 0.5)


@LOSSES
@pytest.mark.parametrize("threshold", [None, -0.2, 0, 0.3])
def test_predict_is_the_decision_above_the_threshold(make, threshold):
    X, y = rows()
    clf = make(threshold=threshold).fit(X, y)
    assert clf.threshold_ == (threshold or 0)
    assert np.array_equal(clf.predict(X), (clf.decision_function(X) > clf.threshold_).astype(int))
    clf.set_params(threshold=1e9)
    assert not clf.predict(X).any()


# -- classes


@EVERY
@pytest.mark.parametrize(
    "pair", [("ham", "spam"), (False, True), (1, 2), (-1.0, 1.0), (10, -3), (np.int8(0), np.int8(1))]
)
def test_any_two_classes_and_the_larger_is_positive(cls, pair):
    X, y = rows()
    named = np.array(pair)[y] if pair != (10, -3) else np.array(sorted(pair))[y]
    plain, clf = cls().fit(X, y), cls().fit(X, named)
    assert clf.classes_.tolist() == sorted(pair)
    assert clf.classes_.dtype == named.dtype
    assert same(plain, clf)
    assert np.array_equal(clf.predict(X), clf.classes_[plain.predict(X)])
    assert clf.predict(X).dtype == named.dtype
    one = cls().partial_fit(X[:50], named[:50])
    for i in range(50, 60):
        one.partial_fit(X[[i]], named[[i]])
    one.model_.finish_race()
    assert same(one, cls().fit(X[:60], y[:60]))


def test_labels_may_be_objects():
    X, y = rows()
    named = np.array(["no", "yes"], dtype=object)[y]
    clf = FtrlAucClassifier().fit(X, named)
    assert same(clf, FtrlAucClassifier().fit(X, y))
    assert set(clf.partial_fit(X[[0]], ["yes"]).predict(X)) == {"no", "yes"}


@EVERY
def test_one_class_is_refused(cls):
    X, y = rows(30)
    for fit in (cls().fit, cls().partial_fit):
        with pytest.raises(ValueError, match="one class"):
            fit(X, np.ones(30))
    with pytest.raises(ValueError, match="classes must be two or more"):
        cls().partial_fit(X, y, classes=[1])


def test_partial_fit_starts_with_one_class_if_told_both():
    X, y = rows()
    clf = FtrlAucClassifier().partial_fit(X[[0]], ["ham"], classes=["spam", "ham"])
    assert clf.classes_.tolist() == ["ham", "spam"]
    clf.partial_fit(X, np.array(["ham", "spam"])[y])
    assert set(clf.predict(X)) == {"ham", "spam"}


def test_partial_fit_refuses_strange_classes_and_learns_nothing():
    X, y = rows()
    clf = FtrlAucClassifier().fit(X, y)
    before = clf.model_.to_bytes()
    for strange in ([2], np.array([2]), ["1"], [None]):
        with pytest.raises(ValueError, match="class|Unknown label|NaN|None"):
            clf.partial_fit(X[[0]], strange)
    with pytest.raises(ValueError, match="holds the class 3"):
        clf.partial_fit(X[:3], np.array([0, 1, 3]))
    with pytest.raises(ValueError, match="differs from the classes of the first call"):
        clf.partial_fit(X, y, classes=[0, 7])
    assert clf.model_.to_bytes() == before


# -- weights


@EVERY
def test_a_row_of_weight_zero_is_absent(cls):
    X, y = rows()
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    there = weights > 0
    for extra in ({}, {"shuffle": True, "random_state": 3, "max_passes": 2}):
        assert same(cls(**extra).fit(X, y, weights), cls(**extra).fit(X[there], y[there], sample_weight=weights[there]))
    with pytest.raises(ValueError, match="class"):
        cls().fit(X, y, sample_weight=y)
    clf = cls().fit(X, y)
    before = clf.model_.to_bytes()
    clf.partial_fit(X, y, sample_weight=np.zeros(len(y)))
    assert clf.model_.to_bytes() == before


def test_weights_must_be_finite_and_not_negative():
    X, y = rows(20)
    for wrong in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="importance"):
            FtrlAucClassifier().fit(X, y, sample_weight=np.full(20, wrong))


# -- passes


@EVERY
def test_passes_are_partial_fits_in_a_row_and_the_progress_is_of_the_first(cls):
    X, y = rows()
    once, thrice = cls().fit(X, y), cls(max_passes=3).fit(X, y)
    once.model_.finish_race()
    parts = cls()
    for _ in range(3):
        parts.partial_fit(X, y)
        parts.model_.finish_race()  # fit knows which rows come again, partial_fit does not
    assert np.array_equal(thrice.coef_, parts.coef_)
    assert (thrice.n_iter_, thrice.t_) == (3, 3 * len(y))
    assert thrice.progress_auc_ == once.progress_auc_


@EVERY
def test_shuffling_is_off_by_default_and_reproducible(cls):
    X, y = rows()
    assert same(cls().fit(X, y), cls(random_state=7).fit(X, y))
    one, two, other = (cls(shuffle=True, random_state=seed).fit(X, y) for seed in (7, 7, 8))
    assert same(one, two)
    assert not same(one, other)


# -- containers


@EVERY
def test_every_container_gives_the_same_model(cls):
    X, y = rows()
    expected = cls().fit(X, y)
    wide = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    assert wide.indices.dtype == np.int64
    dense = X.toarray()
    frame = pd.DataFrame(dense, columns=[f"f{j}" for j in range(D)])
    for given_rows in (sp.csr_matrix(X), X.tocsc(), X.tocoo(), wide, dense, np.asfortranarray(dense), dense.tolist()):
        clf = cls().fit(given_rows, y)
        assert same(clf, expected)
        assert np.array_equal(clf.predict(given_rows), expected.predict(X))
    for table in (frame, pl.DataFrame(frame)):
        clf = cls().fit(table, y)
        assert same(clf, expected)
        assert clf.feature_names_in_.tolist() == list(frame.columns)
        assert np.array_equal(clf.decision_function(table), expected.decision_function(X))
        clf.partial_fit(table, y)
    after = expected.partial_fit(X, y)
    assert same(cls().fit(X, y).partial_fit(sp.csr_matrix(X), y), after)
    assert same(cls().fit(X, y).partial_fit(wide, y), after)


def test_names_of_columns_are_still_compared_on_the_short_way():
    X, y = rows()
    frame = pd.DataFrame(X.toarray(), columns=[f"f{j}" for j in range(D)])
    clf = FtrlAucClassifier().fit(frame, y)
    with pytest.warns(UserWarning, match="feature names"):
        clf.decision_function(X)
    with pytest.raises(ValueError, match="feature names"):
        clf.partial_fit(frame[frame.columns[::-1]], y)


# -- the short way


def one_row(indices, values, shape=(1, D), dtype=np.float64, index=np.int32):
    made = sp.csr_array(shape, dtype=dtype)
    made.indices, made.data = np.array(indices, index), np.array(values, dtype)
    made.indptr = np.array([0, len(indices)], index)
    return made


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_one_row_of_any_type_is_learned_as_any_other(index, dtype):
    X, y = rows()
    short, long = (FtrlAucClassifier().fit(X, y) for _ in range(2))
    row = one_row([3, 1, 7], [1, 1, 0], dtype=dtype, index=index)
    short.partial_fit(row, [1])
    long.partial_fit(row, [1], classes=[0, 1])
    assert same(short, long)
    assert short.decision_function(row) == long.decision_function(row.toarray().astype(float))


@pytest.mark.parametrize(
    "row",
    [
        one_row([1, 2], [1.0, np.nan]),
        one_row([1, 2], [np.inf, 1.0]),
        one_row([1, 2], [1e300, 1.0]),
        one_row([1, D], [1.0, 1.0]),
        one_row([-1, 2], [1.0, 1.0]),
        one_row([1, 2], [1.0, 1.0j], dtype=np.complex128),
        one_row([1], [1.0], shape=(1, D + 1)),
        one_row([1], [1.0], shape=(1, D - 1)),
    ],
)
def test_the_short_way_refuses_what_is_wrong_and_learns_nothing(row):
    X, y = rows()
    clf = FtrlAucClassifier().fit(X, y)
    before = clf.model_.to_bytes()
    with pytest.raises(ValueError, match="Block|columns|features|omplex"):
        clf.partial_fit(row, [1])
    with pytest.raises(ValueError, match="Block|columns|features|omplex"):
        clf.decision_function(row)
    assert clf.model_.to_bytes() == before


def test_broken_row_pointers_are_refused():
    X, y = rows()
    clf = FtrlAucClassifier().fit(X, y)
    row = one_row([1, 2], [1.0, 1.0])
    row.indptr = np.array([0, 5], np.int32)
    with pytest.raises(DataError, match="indptr"):
        clf.partial_fit(row, [1])


def test_the_number_of_labels_is_still_checked_on_the_short_way():
    X, y = rows()
    clf = FtrlAucClassifier().fit(X, y)
    for X_few, y_few in ((X[[0]], [1, 0]), (X[[0]], []), (X[:3], y[:2]), (X[:3], [1])):
        with pytest.raises(ValueError, match="inconsistent|0 sample|samples"):
            clf.partial_fit(X_few, y_few)


def test_learning_one_row_computes_no_coefficients():
    """O(k) a row, without a clock: nothing of length d is made until it is asked for."""
    import tracemalloc

    d = 1_000_000
    clf = FtrlAucClassifier().partial_fit(sp.csr_array((2, d)), [0, 1])
    row = sp.csr_array(([1.0, 2.0], ([0, 0], [5, d - 1])), shape=(1, d))
    clf.partial_fit(row, [1]), clf.decision_function(row), clf.predict(row)
    tracemalloc.start()
    for _ in range(10):
        clf.partial_fit(row, [1])
        clf.decision_function(row)
        clf.predict(row)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


# -- life in scikit-learn


@EVERY
def test_pickle_and_clone(cls):
    X, y = rows()
    clf = cls(dtype="float64", scale="max").fit(X[:200], y[:200])
    again = pickle.loads(pickle.dumps(clf))
    assert same(again, clf)
    clf.partial_fit(X[200:], y[200:])
    again.partial_fit(X[200:], y[200:])
    assert same(again, clf)
    fresh = clone(clf)
    assert fresh.get_params() == clf.get_params()
    assert not hasattr(fresh, "model_")


def test_unfitted_has_no_fitted_attributes():
    clf = FtrlAucClassifier()
    for name in ("coef_", "intercept_", "progress_auc_", "t_", "threshold_", "classes_", "model_"):
        assert not hasattr(clf, name)
    assert hasattr(clf, "predict_proba") and not hasattr(FtrlAucClassifier(calibrate=False), "predict_proba")


def test_coefficients_come_sparse_on_request_and_learning_goes_on():
    X, y = rows()
    clf = FtrlAucClassifier(l1=2.0).fit(X, y).sparsify()
    assert sp.issparse(clf.coef_)
    assert 0 < clf.coef_.nnz < D
    clf.partial_fit(X, y)
    assert np.array_equal(clf.coef_.toarray(), clf.densify().coef_)


def test_grid_search_by_auc():
    X, y = rows(600)
    search = GridSearchCV(DualAveragingClassifier(), {"learning_rate": [0.05, 0.25], "loss": ["auc", "logistic"]}, cv=3,
                          scoring="roc_auc", error_score="raise")  # fmt: skip
    search.fit(X, y)
    assert search.best_score_ > 0.7


def test_calibration_gives_probabilities():
    X, y = rows(600)
    clf = CalibratedClassifierCV(FtrlAucClassifier(), cv=3).fit(X, y)
    assert roc_auc_score(y, clf.predict_proba(X)[:, 1]) > 0.8


def test_weights_are_routed():
    X, y = rows(300)
    weights = np.random.default_rng(0).random(300)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = FtrlAucClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(clf, {"learning_rate": [0.5]}, cv=2).fit(X, y, sample_weight=weights)
        assert same(search.best_estimator_, FtrlAucClassifier(learning_rate=0.5).fit(X, y, sample_weight=weights))


@EVERY
def test_pipelines_of_hashed_text_and_dicts(cls):
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(200)])
    y = rng.random(500) < 0.2
    texts = [" ".join(rng.choice(words[:120] if spam else words[60:], 12)) for spam in y]
    pipeline = make_pipeline(HashingVectorizer(n_features=2**18), cls()).fit(texts, y)
    assert roc_auc_score(y, pipeline.decision_function(texts)) > 0.95
    dicts = [dict.fromkeys(text.split(), 1.0) for text in texts]
    pipeline = make_pipeline(FeatureHasher(n_features=2**18), cls()).fit(dicts, y)
    assert roc_auc_score(y, pipeline.decision_function(dicts)) > 0.95
    assert pipeline[-1].progress_auc_ > 0.8


DISGUISED = {
    "masked": np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[True, False], [False, False]]),
    "text": np.array([["1", "2"], ["3", "4"]]),
    "objects": np.array([["1", 2], [3, 4]], object),
    "times": np.array([[1, 2], [3, 4]], "datetime64[D]"),
}
FRAMES = {  # when they are the first rows, they are hashed: test_frames.py
    "pandas times": pd.DataFrame({"a": [1.0, 2.0], "b": pd.to_datetime(["2020-01-01", "2021-01-01"])}),
    "pandas text": pd.DataFrame({"a": [1.0, 2.0], "b": pd.array(["1", "2"], "string")}),
    "polars text": pl.DataFrame({"a": [1.0, 2.0], "b": ["1", "2"]}),
    "polars times": pl.DataFrame({"a": [1.0, 2.0], "b": [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]}),
}


@pytest.mark.parametrize("X", FRAMES.values(), ids=FRAMES)
def test_rows_of_numbers_are_followed_by_numbers(X):
    fitted = FtrlAucClassifier().fit(np.array([[1.0, 2.0], [3.0, 4.0]]), [0, 1])
    for call in (
        lambda: fitted.partial_fit(X, [0, 1]),
        lambda: fitted.decision_function(X),
        lambda: fitted.predict(X),
        lambda: fitted.explain(X),
    ):
        with pytest.raises(DataError, match="must be numbers"):
            call()


@pytest.mark.parametrize("X", DISGUISED.values(), ids=DISGUISED)
def test_what_numpy_would_turn_into_numbers_without_a_word_is_refused(X):
    sound = np.array([[1.0, 2.0], [3.0, 4.0]])
    fitted = FtrlAucClassifier().fit(sound, [0, 1])
    for call in (
        lambda: FtrlAucClassifier().fit(X, [0, 1]),
        lambda: FtrlAucClassifier().partial_fit(X, [0, 1]),
        lambda: fitted.decision_function(X),
        lambda: fitted.predict(X),
    ):
        with pytest.raises((DataError, ValueError), match="must be numbers|could not convert"):
            call()
    with pytest.raises(DataError, match="sample_weight must be numbers"):
        FtrlAucClassifier().fit(sound, [0, 1], sample_weight=np.array(["1", "2"]))
    with pytest.raises(DataError, match="y is a masked array"):
        FtrlAucClassifier().fit(sound, np.ma.array([0, 1], mask=[True, False]))


def test_rows_sorted_by_label_are_warned_of():
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.repeat([0, 1], 200)
    with pytest.warns(SortedRowsWarning, match="look sorted by label"):
        FtrlAucClassifier().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FtrlAucClassifier(shuffle=True, random_state=0).fit(X, y)
