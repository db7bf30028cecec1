"""Frames with named columns: FeatureSpace, and the classifiers that hash them."""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import pickle
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import rarestream.sklearn
from rarestream import Block, DataError, Hashed, Model, read
from rarestream.blocks import concatenate
from rarestream.readers.options import FormatOptions
from rarestream.readers.tables import TableOptions
from rarestream.sklearn import (
    AutoClassifier,
    DualAveragingClassifier,
    FeatureSpace,
    FtrlAucClassifier,
    FtrlProximalClassifier,
    RaceSearchCV,
)

CLASSES = [getattr(rarestream.sklearn, name) for name in rarestream.sklearn.__all__ if name.endswith("Classifier")]
BITS = 16
OPTIONS = {"bits": BITS, "text": ["message"], "crosses": ["site*device"], "ngrams": "words:1-2"}


def table(n=300, seed=0) -> tuple[pl.DataFrame, np.ndarray]:
    """Rows of all kinds of columns, some cells missing; the site tells the label."""
    rng = np.random.default_rng(seed)
    sites = rng.choice(["a.com", "b.com", "ümlaut.de"], n).tolist()
    labels = np.array([rng.random() < (0.5 if site == "b.com" else 0.05) for site in sites]).astype(int)
    labels[:2] = 0, 1
    start = datetime.datetime(2026, 1, 31, 13, 5)
    frame = pl.DataFrame(
        {
            "site": [None if number % 11 == 3 else site for number, site in enumerate(sites)],
            "device": pl.Series(rng.choice(["phone", "desk"], n), dtype=pl.Categorical),
            "price": [None if number % 7 == 2 else float(price) for number, price in enumerate(rng.gamma(2, 3, n))],
            "zone": rng.integers(0, 20, n),
            "returning": rng.random(n) < 0.5,
            "at": [start + datetime.timedelta(minutes=int(m)) for m in rng.integers(0, 10**5, n)],
            "message": [" ".join(rng.choice(["red", "green", "blue"], 3)) for _ in range(n)],
            "tags": [rng.choice(["x", "y", "z"], k).tolist() for k in rng.integers(0, 3, n)],
        }
    )
    return frame, labels


def as_frames(frame: pl.DataFrame) -> dict[str, object]:
    arrow = frame.to_arrow()
    return {
        "polars": frame,
        "pandas": frame.to_pandas(),
        "pyarrow": arrow,
        "record batch": arrow.combine_chunks().to_batches()[0],
        "dicts": frame.to_dicts(),
    }


KINDS = list(as_frames(table(3)[0]))
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def rows_of(frame: pl.DataFrame, **options) -> Block:
    return concatenate(read(frame, labels="optional", **options))


def assert_same_rows(matrix, block: Block) -> None:
    assert np.array_equal(matrix.indptr, block.indptr)
    assert np.array_equal(matrix.indices, block.indices)
    assert matrix.data.tobytes() == block.values.tobytes()


# -- the transformer


@EVERY_KIND
@pytest.mark.parametrize("options", [{"bits": BITS}, OPTIONS, {"bits": BITS, "numbers": "raw", "ignore": ["zone"]}])
def test_a_frame_has_the_features_that_read_gives_it(kind, options):
    frame, _ = table()
    X = as_frames(frame)[kind]
    space = FeatureSpace(**options)
    fitted = space.fit_transform(X)
    expected = rows_of(frame, **options)
    assert_same_rows(fitted, expected)
    assert_same_rows(space.transform(X), expected)
    assert_same_rows(clone(space).fit(X).transform(X), expected)
    assert fitted.shape == (300, 1 << BITS)
    assert fitted.dtype == np.float32
    assert fitted.has_sorted_indices
    assert space.plan_.columns == expected.space.plan.columns
    assert space.feature_names(expected.indices) == expected.space.shown(expected.indices)


def test_the_parameters_are_the_options_of_reading_tables():
    roles = {"label", "importance", "tag"}
    common = {field.name for field in dataclasses.fields(FormatOptions)}
    defaults = {field.name: field.default for field in dataclasses.fields(TableOptions)}
    parameters = inspect.signature(FeatureSpace).parameters
    assert set(parameters) == set(defaults) - roles - common
    for name, parameter in parameters.items():
        assert parameter.default == (22 if name == "bits" else defaults[name])
        assert f"\n    {name} : " in FeatureSpace.__doc__


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"bits": 0}, "FeatureSpace: bits must be between 1 and 30, got 0"),
        ({"bits": None}, "FeatureSpace: bits must be between 1 and 30, got None"),
        ({"numbers": "hard"}, "FeatureSpace: numbers must be 'soft' or 'raw', got 'hard'"),
        ({"ngrams": "words"}, "FeatureSpace: ngrams must be such as words:1"),
        (
            {"text": ["mesage"]},
            "FeatureSpace: text names the column 'mesage', which is not there. Did you mean 'message'",
        ),
    ],
)
def test_parameters_are_checked_in_fit_and_not_before(wrong, message):
    frame, labels = table(20)
    space = FeatureSpace(**wrong)
    with pytest.raises(ValueError, match=message):
        space.fit(frame)
    with pytest.raises(ValueError, match=message.partition(":")[2]):
        AutoClassifier(features=space).fit(frame, labels)


def test_the_matrix_can_be_written_to():
    matrix = FeatureSpace(bits=BITS).fit_transform(table(50)[0])
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part[:] = part.copy()
    assert isinstance(matrix, sp.csr_matrix)
    assert matrix.indptr.dtype == matrix.indices.dtype == np.int32


@pytest.mark.skipif("sparse_interface" not in sklearn.get_config(), reason="scikit-learn 1.9")
def test_a_sparse_array_where_scikit_learn_wants_one():
    with sklearn.config_context(sparse_interface="sparray"):
        assert isinstance(FeatureSpace(bits=BITS).fit_transform(table(50)[0]), sp.csr_array)


def test_all_features_have_names():
    frame, _ = table()
    space = FeatureSpace(bits=12).fit(frame)
    names = space.get_feature_names_out()
    assert names.shape == (1 << 12,)
    assert names.tolist() == space.feature_names(np.arange(1 << 12))
    assert {"site = a.com", "device = phone", "zone = 7", "returning = true", "at hour = 13", "tags = x"} <= set(names)
    assert names[Hashed(bits=12).slot("site", "a.com")] == "site = a.com"
    unseen = next(slot for slot, name in enumerate(names) if name.startswith("slot "))
    assert names[unseen] == f"slot {unseen}"
    assert np.array_equal(space.get_feature_names_out(frame.columns), names)
    with pytest.raises(ValueError, match="input_features"):
        space.get_feature_names_out(["a", "b"])
    without = FeatureSpace(bits=4, names=False).fit(frame)
    assert without.get_feature_names_out().tolist() == [f"slot {slot}" for slot in range(16)]


def test_partial_fit_learns_names_and_keeps_the_plan():
    one, two = pl.DataFrame({"a": ["x", "y"], "b": [1.5, 2.0]}), pl.DataFrame({"a": ["z", "7"], "b": [1.0, 2.0]})
    space = FeatureSpace(bits=BITS).partial_fit(one)
    plan = space.plan_
    space.transform(two)
    slot = space.feature_space_.slot("a", "z")
    assert space.feature_names([slot]) == [f"slot {slot}"]  # transforming changes nothing
    assert space.partial_fit(two) is space
    assert space.feature_names([slot]) == ["a = z"]
    assert space.plan_ is plan
    assert space.fit(two).plan_ is not plan


def test_a_transformer_that_is_not_fitted_says_so():
    frame, _ = table(10)
    for call in (
        lambda space: space.transform(frame),
        lambda space: space.get_feature_names_out(),
        lambda space: space.feature_names([1]),
    ):
        with pytest.raises(NotFittedError):
            call(FeatureSpace())


def test_it_can_be_cloned_and_pickled():
    frame, _ = table()
    space = FeatureSpace(**OPTIONS).fit(frame)
    again = pickle.loads(pickle.dumps(space))
    assert_same_rows(again.transform(frame), rows_of(frame, **OPTIONS))
    assert np.array_equal(again.get_feature_names_out(), space.get_feature_names_out())
    assert clone(space).get_params() == space.get_params()
    assert not hasattr(clone(space), "feature_space_")


def test_output_for_pandas_is_refused_as_it_is_sparse():
    frame, _ = table(20)
    space = FeatureSpace(bits=8).fit(frame)
    assert sp.issparse(space.set_output(transform="default").transform(frame))
    space.set_output(transform="pandas")
    for call in (space.transform, space.fit_transform):
        with pytest.raises(ValueError, match="pandas output does not support sparse data"):
            call(frame)


def test_columns_are_found_by_name():
    frame, _ = table(50)
    space = FeatureSpace(bits=BITS)
    matrix = space.fit_transform(frame)
    assert space.feature_names_in_.tolist() == frame.columns
    assert space.n_features_in_ == len(frame.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (space.transform(frame[frame.columns[::-1]]) != matrix).nnz == 0
    with pytest.warns(UserWarning, match="FeatureSpace: the new column 'extra' is ignored"):
        assert (space.transform(frame.with_columns(extra=1)) != matrix).nnz == 0
    with pytest.raises(DataError, match="FeatureSpace: the columns 'site', 'zone' are missing"):
        space.transform(frame.drop("site", "zone"))
    assert (FeatureSpace(bits=BITS, ignore=["zone"]).fit(frame).transform(frame.drop("zone")) != matrix).nnz > 0


def test_cells_that_change_their_kind_are_named():
    space = FeatureSpace(bits=BITS).fit(pl.DataFrame({"price": [1.5, 2.0]}))
    with pytest.raises(
        DataError, match=r"FeatureSpace: row 1: column 'price' has numbers in the first rows, got 'free'"
    ):
        space.transform(pl.DataFrame({"price": ["2", "free"]}))
    with pytest.raises(DataError, match="column 'price' must have finite numbers"):
        space.transform(pl.DataFrame({"price": [np.inf]}))
    with pytest.raises(DataError, match="FeatureSpace: no rows"):
        space.transform(pl.DataFrame({"price": [1.0]})[:0])


def test_missing_cells_are_absent():
    frame = pd.DataFrame(
        {"a": ["x", None, pd.NA], "b": [1.5, np.nan, None], "c": pd.to_datetime(["2026-01-31", None, None])}
    )
    matrix = FeatureSpace(bits=BITS).fit_transform(frame)
    assert matrix[0].nnz > 3
    assert matrix[1:].nnz == 0


def test_the_index_of_a_frame_is_no_column():
    frame = table(20)[0].to_pandas()
    expected = FeatureSpace(bits=BITS).fit_transform(frame)
    for index in (np.arange(20) * 7, pd.Index(list("abcdefghijklmnopqrst"), name="key")):
        moved = FeatureSpace(bits=BITS)
        assert (moved.fit_transform(frame.set_index(index)) != expected).nnz == 0
        assert moved.n_features_in_ == 8


def test_arrays_have_columns_with_numbers():
    values = np.array([["a", 1.5, None], ["b", 2, "x"]], object)
    space = FeatureSpace(bits=BITS)
    matrix = space.fit_transform(values)
    names = [{"x0": "a", "x1": 1.5}, {"x0": "b", "x1": 2, "x2": "x"}]
    assert_same_rows(matrix, concatenate(read(names, labels="optional", bits=BITS)))
    assert space.n_features_in_ == 3
    assert not hasattr(space, "feature_names_in_")
    assert (space.transform(values.tolist()) != matrix).nnz == 0
    with pytest.raises(ValueError, match="X has 2 features, but FeatureSpace is expecting 3 features as input"):
        space.transform(values[:, :2])
    days = np.array([["2026-01-31T13:05"]], "datetime64[ns]")
    assert "x0 hour = 13" in FeatureSpace(bits=BITS).fit(days).get_feature_names_out()


def test_an_array_after_a_frame_has_its_columns():
    frame, _ = table(20)
    space = FeatureSpace(bits=BITS).fit(frame)
    values = frame.to_pandas().to_numpy(object)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert (space.transform(values) != space.transform(frame)).nnz == 0


@pytest.mark.parametrize("wrong", [sp.csr_matrix(np.eye(2)), "text", {"a": [1]}], ids=["sparse", "text", "dict"])
def test_what_has_no_columns_is_refused(wrong):
    with pytest.raises(TypeError, match="FeatureSpace: "):
        FeatureSpace().fit(wrong)


def test_tags_tell_what_it_takes():
    tags = get_tags(FeatureSpace()).input_tags
    assert tags.categorical and tags.string and tags.allow_nan and tags.dict
    assert not tags.sparse
    assert not get_tags(FeatureSpace()).target_tags.required
    assert get_tags(AutoClassifier()).input_tags.sparse
    assert not get_tags(AutoClassifier(features=FeatureSpace())).input_tags.sparse


# -- the transformer with other parts of scikit-learn


def test_in_a_pipeline_with_a_search():
    frame, labels = table()
    pipeline = make_pipeline(FeatureSpace(), LogisticRegression(max_iter=1000))
    grid = {"featurespace__bits": [8, 12], "featurespace__numbers": ["soft", "raw"]}
    for X in (frame, frame.to_pandas()):
        search = GridSearchCV(pipeline, grid, scoring="roc_auc", cv=3, error_score="raise").fit(X, labels)
        assert search.best_score_ > 0.6


def test_in_a_column_transformer():
    frame = table(50)[0].to_pandas()
    both = ColumnTransformer(
        [
            ("words", FeatureSpace(bits=8, text=["message"]), ["message"]),
            ("rest", FeatureSpace(bits=8), ["site", "price"]),
        ]
    )
    matrix = both.fit_transform(frame)
    assert matrix.shape == (50, 2 << 8)
    assert "words__message = red" in both.get_feature_names_out()
    expected = rows_of(pl.from_pandas(frame[["site", "price"]]), bits=8).to_csr(1 << 8)
    assert (sp.csr_matrix(matrix)[:, 1 << 8 :] != expected).nnz == 0


# -- classifiers


def learned(cls, frame: pl.DataFrame, labels: np.ndarray, options: dict[str, object] | None = None) -> Model:
    """The rows through `read` and a Model."""
    model = Model(cls.learner())
    for block in read(frame.with_columns(label=labels), label="label", **(options or {})):
        model.learn(block)
    model.finish_race()
    return model


@pytest.mark.parametrize("cls", CLASSES)
def test_fit_is_the_models_learn(cls):
    frame, labels = table()
    model = learned(cls, frame, labels, OPTIONS)
    clf = cls(features=FeatureSpace(**OPTIONS)).fit(frame, labels)
    assert clf.coef_.shape == (1, 1 << BITS)
    assert clf.coef_[0].tobytes() == model.coef.tobytes()
    scores = model.score(rows_of(frame, features=model.features))
    assert np.array_equal(clf.decision_function(frame), scores - model.threshold)


@EVERY_KIND
def test_frames_are_hashed_without_being_asked(kind):
    frame, labels = table()
    model = learned(AutoClassifier, frame, labels)
    X = as_frames(frame)[kind]
    clf = AutoClassifier().fit(X, labels)
    assert clf.coef_.shape == (1, 1 << 22)
    assert clf.coef_[0].tobytes() == model.coef.tobytes()
    assert clf.feature_space_ is clf.model_.features
    assert clf.feature_names_in_.tolist() == frame.columns
    assert clf.n_features_in_ == 8
    assert clf.score(X, labels) > 0.7
    assert set(clf.predict(X)) <= {0, 1}


@EVERY_KIND
def test_partial_fit_on_frames_is_the_models_learn(kind):
    frame, labels = table()
    one, two = as_frames(frame[:100])[kind], as_frames(frame[100:])[kind]
    clf = DualAveragingClassifier(features=FeatureSpace(**OPTIONS))
    clf.partial_fit(one, labels[:100], classes=[0, 1]).partial_fit(two, labels[100:])
    space = Hashed(BITS)
    options = {name: value for name, value in OPTIONS.items() if name != "bits"}
    model = Model(DualAveragingClassifier.learner())
    for part, some in ((frame[:100], options), (frame[100:], {})):
        at = 0 if some else 100
        labelled = part.with_columns(label=labels[at : at + len(part)])
        for block in read(labelled, label="label", features=space, **some):
            model.learn(block)
    assert clf.coef_[0].tobytes() == model.coef.tobytes()
    assert clf.progress_auc_ == model.progress.auc
    assert clf.t_ == 300


def test_a_result_of_duckdb_is_a_frame():
    frame, labels = table()
    frame = frame.with_columns(pl.col("device").cast(pl.String))
    relation = duckdb.sql("select * from frame")
    expected = FtrlAucClassifier().fit(frame, labels)
    clf = FtrlAucClassifier().fit(relation, labels)
    assert clf.coef_.tobytes() == expected.coef_.tobytes()
    assert np.array_equal(clf.decision_function(relation), expected.decision_function(frame))


def test_frames_of_numbers_are_matrices_as_before():
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=(200, 3)), 3)
    labels = (values[:, 0] > 1).astype(int)
    expected = FtrlAucClassifier().fit(values, labels)
    plain = pd.DataFrame(values, columns=list("abc"))
    frames = {
        "pandas": plain,
        "polars": pl.DataFrame(values, schema=list("abc")),
        "pyarrow": pa.table({name: values[:, at] for at, name in enumerate("abc")}),
        "objects": plain.astype(object),
        "nullable": plain.astype("Float64"),
        "sparse": plain.astype(pd.SparseDtype("float", 0.0)),
    }
    for name, frame in frames.items():
        clf = FtrlAucClassifier().fit(frame, labels)
        assert clf.coef_.shape == (1, 3), name
        assert clf.coef_.tobytes() == expected.coef_.tobytes(), name
        assert not hasattr(clf, "feature_space_")
    dummies = pd.get_dummies(pd.Series(rng.choice(list("uvw"), 200)))
    assert FtrlAucClassifier().fit(dummies, labels).coef_.shape == (1, 3)  # booleans
    hashed = FtrlAucClassifier(features=FeatureSpace(bits=BITS)).fit(plain, labels)
    assert hashed.coef_.shape == (1, 1 << BITS)


def test_a_column_of_objects_counts_by_its_values():
    labels = [0, 1, 0, 1]
    for column, hashed in (([1, 2.5, 3, 4], False), ([1, "b", 3, 4], True), ([["x"], ["y"], [], ["x"]], True)):
        clf = FtrlAucClassifier()
        frame = pd.DataFrame({"a": pd.Series(column, dtype=object), "b": [1.0, 2.0, 3.0, 4.0]})
        if any(isinstance(value, str) for value in column):
            frame["a"] = frame["a"].astype(str)  # Arrow has no columns of both
        clf.fit(frame, labels)
        assert hasattr(clf, "feature_space_") == hashed


def test_rows_of_weight_zero_are_absent():
    frame, labels = table()
    weights = np.random.default_rng(1).integers(0, 3, len(labels)).astype(float)
    there = weights > 0
    for fit in ("fit", "partial_fit"):
        for X, some in ((frame, frame.filter(there)), (frame.to_dicts(), frame.filter(there).to_dicts())):
            one = getattr(FtrlProximalClassifier(), fit)(X, labels, sample_weight=weights)
            other = getattr(FtrlProximalClassifier(), fit)(some, labels[there], sample_weight=weights[there])
            assert one.coef_.tobytes() == other.coef_.tobytes()
    with pytest.raises(DataError, match="importance"):
        FtrlProximalClassifier().fit(frame, labels, sample_weight=-weights)


def test_a_fitted_classifier_can_be_pickled_and_learn_on():
    frame, labels = table()
    clf = AutoClassifier(features=FeatureSpace(**OPTIONS)).fit(frame, labels)
    again = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(again.decision_function(frame), clf.decision_function(frame))
    assert again.explain(frame[:3]) == clf.explain(frame[:3])
    more, their_labels = table(seed=1)
    for one in (clf, again):
        one.partial_fit(more, their_labels)
    assert again.coef_.tobytes() == clf.coef_.tobytes()


def test_fitting_again_starts_afresh():
    frame, labels = table()
    values = np.random.default_rng(0).normal(size=(300, 2))
    clf = FtrlAucClassifier(features=None).fit(frame, labels)
    assert clf.fit(values, labels).coef_.shape == (1, 2)
    assert not hasattr(clf, "feature_names_in_")
    assert not hasattr(clf, "feature_space_")
    clf.partial_fit(sp.csr_matrix(values), labels)
    assert clf.fit(frame, labels).coef_.tobytes() == FtrlAucClassifier().fit(frame, labels).coef_.tobytes()


def test_the_columns_of_a_fitted_classifier_are_checked():
    frame, labels = table()
    clf = FtrlAucClassifier(features=FeatureSpace(bits=BITS)).fit(frame, labels)
    scores = clf.decision_function(frame)
    assert np.array_equal(clf.decision_function(frame[frame.columns[::-1]]), scores)
    with pytest.warns(UserWarning, match="FtrlAucClassifier: the new column 'extra' is ignored"):
        assert np.array_equal(clf.decision_function(frame.with_columns(extra=1)), scores)
    for call in (clf.decision_function, clf.predict, clf.explain, lambda X: clf.partial_fit(X, labels)):
        with pytest.raises(DataError, match="FtrlAucClassifier: the column 'site' is missing"):
            call(frame.drop("site"))
        with pytest.raises(TypeError, match="FtrlAucClassifier: sparse data has no names"):
            call(sp.csr_matrix(np.ones((len(labels), 8))))


def test_labels_are_checked_as_for_matrices():
    frame, labels = table(20)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        FtrlAucClassifier().fit(frame, labels[:10])
    with pytest.raises(ValueError, match="y to be passed"):
        FtrlAucClassifier().fit(frame, None)
    with pytest.raises(ValueError, match="two classes are needed"):
        FtrlAucClassifier().fit(frame, np.zeros(20))
    with pytest.raises(DataError, match="y is a masked array"):
        FtrlAucClassifier().fit(frame, np.ma.array(labels, mask=labels > 0))
    words = np.where(labels > 0, "spam", "ham")
    assert set(FtrlAucClassifier().fit(frame, words).predict(frame)) <= {"spam", "ham"}


def test_features_must_be_a_feature_space():
    frame, labels = table(20)
    for fit in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="features must be None or a FeatureSpace, got 22"):
            getattr(AutoClassifier(features=22), fit)(frame, labels)


def test_its_feature_space_is_not_changed():
    frame, labels = table(20)
    space = FeatureSpace(bits=BITS)
    AutoClassifier(features=space).fit(frame, labels)
    assert vars(space).keys() == vars(FeatureSpace(bits=BITS)).keys()


@pytest.mark.parametrize("cls", [DualAveragingClassifier, FtrlProximalClassifier])
def test_searches_find_the_same(cls):
    frame, labels = table()
    grid = {"learning_rate": [0.1, 1.0], "features__bits": [10, 12]}
    clf = cls(features=FeatureSpace(text=["message"]))
    race = RaceSearchCV(clf, grid, cv=3).fit(frame, labels)
    search = GridSearchCV(clf, grid, cv=3, scoring="roc_auc").fit(frame, labels)
    assert race.best_params_ == search.best_params_
    np.testing.assert_allclose(
        race.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=0, atol=1e-4
    )
    assert race.best_estimator_.coef_.tobytes() == search.best_estimator_.coef_.tobytes()
    by_accuracy = RaceSearchCV(cls(), {"l1": [0.0, 0.1]}, cv=2, scoring="accuracy").fit(frame.to_pandas(), labels)
    assert by_accuracy.best_estimator_.coef_.shape == (1, 1 << 22)


def test_a_search_survives_features_that_are_not_allowed():
    frame, labels = table()
    clf = DualAveragingClassifier(features=FeatureSpace())
    with pytest.warns(FitFailedWarning, match="3 of 6 fits failed"), pytest.warns(UserWarning, match="non-finite"):
        search = RaceSearchCV(clf, {"features__bits": [0, 10]}, cv=3).fit(frame, labels)
    assert search.best_params_ == {"features__bits": 10}


# -- explaining


@EVERY_KIND
def test_terms_have_the_names_of_columns_and_sum_to_the_score(kind):
    frame, labels = table()
    clf = AutoClassifier(features=FeatureSpace(**OPTIONS)).fit(frame, labels)
    X = as_frames(frame[:20])[kind]
    found = clf.explain(X)
    assert found == clf.model_.explain(rows_of(frame[:20], features=clf.feature_space_))
    scores = clf.decision_function(X) + clf.model_.threshold
    for explanation, score in zip(found, scores, strict=True):
        assert explanation.score == pytest.approx(score)
        assert sum(term.contribution for term in explanation.terms) == pytest.approx(score, abs=1e-6)
    names = {term.name for term in found[0].terms}
    assert f"site = {frame['site'][0]}" in names
    assert f"site*device = {frame['site'][0]}, {frame['device'][0]}" in names
    assert not any(name.startswith("slot") for name in names)


def test_unseen_values_have_names_too():
    frame, labels = table()
    clf = FtrlAucClassifier().fit(frame, labels)
    known = len(clf.feature_space_.names)
    row = frame[:1].with_columns(site=pl.lit("new.org"))
    term = next(term for term in clf.explain(row)[0].terms if term.name == "site = new.org")
    assert (term.value, term.weight, term.contribution) == (1.0, 0.0, 0.0)
    clf.decision_function(row)
    assert len(clf.feature_space_.names) == known  # scoring and explaining change nothing


@pytest.mark.parametrize("scale", ["unit", "max", "none"])
def test_terms_of_matrices_have_the_names_or_numbers_of_columns(scale):
    values = np.random.default_rng(0).normal(size=(100, 3))
    labels = (values[:, 0] > 1).astype(int)
    for X, names in (
        (values, "012"),
        (sp.csr_array(values), "012"),
        (pd.DataFrame(values, columns=list("abc")), "abc"),
    ):
        clf = FtrlProximalClassifier(scale=scale).fit(X, labels)
        found = clf.explain(X[:5])
        np.testing.assert_allclose([score for score, _ in found], clf.decision_function(X[:5]) + clf.model_.threshold)
        for row, (score, terms) in enumerate(found):
            assert sorted(term.name for term in terms) == list(names)
            assert sum(term.contribution for term in terms) == pytest.approx(score, abs=1e-6)
            for term in terms:
                assert term.value == np.float32(values[row, names.index(term.name)])


def test_explaining_needs_a_fitted_classifier():
    with pytest.raises(NotFittedError):
        AutoClassifier().explain(table(5)[0])
