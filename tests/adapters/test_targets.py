"""Targets: what plainly has two classes is learned as scikit-learn would call it; anything else it is asked about."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.utils.multiclass import type_of_target

from rarestream import DataError
from rarestream.adapters.sklearn import labels_of, plainly_binary
from rarestream.sklearn import DualAveragingClassifier

PLAIN = {
    "bool": [False, True],
    "int8": np.array([-1, 1], np.int8),
    "uint8": np.array([0, 255], np.uint8),
    "int64": [-(2**63), 2**63 - 1],
    "uint64": np.array([1, 2**64 - 1], np.uint64),
    "big-endian": np.array([3, 4], ">i4"),
    "float32": np.array([-1, 1], np.float32),
    "float64": [0.0, 2.0],
    "float16": np.array([0, 1], np.float16),
    "text": ["ham", "spam"],
    "text of one letter": ["é", "a"],
    "objects that are text": np.array(["no", "yes"], object),
}
ODD = {
    "one class": [1, 1, 1],
    "one class of text": ["a", "a", "a"],
    "fractions": [0.5, 1.5, 0.5],
    "one fraction": [0.0, 1.5, 0.0],
    "too large for int64": [0.0, 1e300, 0.0],
    "NaN": [0.0, 1.0, np.nan],
    "NaN first": [np.nan, 1.0, 0.0],
    "infinite": [0.0, np.inf, 0.0],
    "complex": [0j, 1j, 0j],
    "bytes": np.array([b"a", b"b", b"a"]),
    "objects that are numbers": np.array([0, 1, 0], object),
    "objects of two kinds": np.array(["a", 1, "a"], object),
    "objects with None": np.array(["a", None, "b"], object),
    "lists": [[0, 1], [1, 0], [0, 1]],
    "none": None,
    "too few": [0, 1],
}


def rows(n):
    return sparse.random_array((n, 6), density=0.5, format="csr", rng=np.random.default_rng(n), dtype=np.float32)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("order", [[0, 1, 0, 0, 1], [1, 0, 0, 1, 1], [1, 1, 1, 1, 0], [0, 1]])
def test_two_classes_are_those_of_numpy(name, order):
    y = np.asarray(PLAIN[name])[order]
    classes, labels = plainly_binary(y)
    expected = np.unique(y)
    assert classes.dtype == expected.dtype
    assert np.array_equal(classes, expected)
    assert labels.dtype == np.int8
    assert np.array_equal(labels, np.where(y == expected[1], 1, -1))
    assert np.array_equal(labels_of(y, expected), labels)
    assert type_of_target(y) == "binary"
    X = rows(len(y))
    clf = DualAveragingClassifier().fit(X, y)
    assert clf.classes_.dtype == expected.dtype
    for same in (
        y.tolist(),
        pd.Series(y.astype(y.dtype.newbyteorder("="))),
        np.repeat(y, 2)[::2],
        y[:, np.newaxis][:, 0],
    ):
        if name in ("int8", "uint8", "uint64", "float32", "float16") and isinstance(same, list):
            continue  # NumPy gives a list another type
        other = DualAveragingClassifier().fit(X, same)
        assert other.model_.to_bytes() == clf.model_.to_bytes()
        assert other.classes_.tolist() == clf.classes_.tolist()
    assert set(clf.predict(X).tolist()) <= set(expected.tolist())


@given(
    st.one_of(
        *(
            st.lists(st.sampled_from(entries), min_size=1, max_size=8)
            for entries in (
                [0, 1],
                [0, 1, 2],
                [0.0, 1.0, -0.0],
                [0.0, 0.5],
                [1.0, np.nan],
                [np.inf, 0.0, 1.0],
                ["a", "b", "ab", ""],
                [True, False],
                [2.0**53, 2.0**53 + 2, 1.0],
            )
        )
    ),
    st.booleans(),
)
def test_what_is_plainly_binary_is_so_for_scikit_learn(entries, objects):
    y = np.array(entries, object if objects else None)
    found = plainly_binary(y)
    if found is None:
        return
    assert type_of_target(y) == "binary"
    expected = np.unique(y)
    assert found[0].dtype == expected.dtype
    assert found[0].tolist() == expected.tolist()
    assert np.array_equal(found[1], np.where(y == expected[1], 1, -1))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("kind", ["csr", "dense", "csc"])
def test_odd_targets_are_refused_in_the_words_of_before(name, kind):
    X = {"csr": rows(3), "dense": rows(3).toarray(), "csc": rows(3).tocsc()}[kind]
    y = ODD[name]
    said = {
        "one class": r"DualAveragingClassifier: two classes are needed to learn, y holds one class: \[1\]",
        "one class of text": r"y holds one class: \['a'\]",
        "bytes": "Support for labels represented as bytes is not supported",
        "objects that are numbers": "Unknown label type",
        "lists": "y should be a 1d array",
        "none": "requires y to be passed, but the target y is None",
        "too few": r"inconsistent numbers of samples: \[3, 2\]",
        "NaN": "Input y contains NaN",
        "NaN first": "Input y contains NaN",
        "infinite": "Input y contains infinity",
        "complex": "Complex data not supported",
        "fractions": "Unknown label type: continuous",
    }
    for fit in (DualAveragingClassifier().fit, DualAveragingClassifier().partial_fit):
        with pytest.raises((ValueError, TypeError), match=said.get(name)):
            fit(X, y)


def test_masked_targets_are_refused_and_unmasked_ones_learned():
    X, y = rows(4), np.array([0, 1, 0, 1])
    with pytest.raises(DataError, match="y is a masked array with masked entries"):
        DualAveragingClassifier().fit(X, np.ma.array(y, mask=[0, 1, 0, 0]))
    clf = DualAveragingClassifier().fit(X, np.ma.array(y))
    assert clf.model_.to_bytes() == DualAveragingClassifier().fit(X, y).model_.to_bytes()


def test_a_column_of_targets_warns_as_scikit_learn_does():
    with pytest.warns(UserWarning, match="column-vector"):
        DualAveragingClassifier().fit(rows(4), np.array([[0], [1], [0], [1]]))


# -- rows


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint16", "bool", "float16", "longdouble"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_rows_learn_what_sparse_ones_do(dtype, order):
    random = np.random.default_rng(1)
    X = np.asarray(random.integers(-3, 4, (60, 9)) * (random.random((60, 9)) < 0.5), dtype, order=order)
    y = (X[:, 0].astype(float) + random.normal(size=60) > 0).astype(int)
    known = sparse.csr_array(X.astype(np.float64))
    one, other = DualAveragingClassifier().fit(X, y), DualAveragingClassifier().fit(known, y)
    assert one.model_.to_bytes() == other.model_.to_bytes()
    assert np.array_equal(one.decision_function(X), other.decision_function(known))
    assert np.array_equal(one.decision_function(X[:1]), other.decision_function(known[:1]))
    one.partial_fit(X, y)
    other.partial_fit(known, y)
    assert one.model_.to_bytes() == other.model_.to_bytes()
    assert one.n_features_in_ == 9


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_array, pd.DataFrame, np.ndarray.tolist])
def test_rows_that_are_not_finite_are_named(kind, bad):
    X, y = np.eye(5), np.array([0, 1, 0, 1, 0])
    clf = DualAveragingClassifier().fit(kind(X), y)
    before = clf.model_.to_bytes()
    X[3, 2] = bad
    rule = f"row 3, feature 2 has the value {bad}; values must be finite .* NaN and infinity"
    for use in (DualAveragingClassifier().fit, DualAveragingClassifier().partial_fit, clf.partial_fit):
        with pytest.raises(DataError, match=rule):
            use(kind(X), y)
    with pytest.raises(DataError, match=rule):
        clf.decision_function(kind(X))
    assert clf.model_.to_bytes() == before


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_names_and_width_are_those_of_the_last_fit(make):
    frame = pd.DataFrame(np.eye(4), columns=list("abcd"))
    clf = DualAveragingClassifier().fit(frame, [0, 1, 0, 1])
    assert clf.feature_names_in_.tolist() == list("abcd")
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clf.decision_function(make(np.eye(4)))
    clf.fit(make(np.eye(3)), [0, 1, 0])
    assert clf.n_features_in_ == 3
    assert not hasattr(clf, "feature_names_in_")
    with pytest.raises(
        ValueError, match="X has 4 features, but DualAveragingClassifier is expecting 3 features as input"
    ):
        clf.decision_function(make(np.eye(4)))
    for empty in (np.zeros((0, 3)), np.zeros((3, 0))):
        with pytest.raises(ValueError, match="minimum of 1 is required") as mine:
            clf.fit(make(empty), np.zeros(len(empty), int))
        with pytest.raises(ValueError, match="minimum of 1 is required") as theirs:
            SGDClassifier().fit(make(empty), np.zeros(len(empty), int))
        assert str(mine.value).split(" is required")[0] == str(theirs.value).split(" is required")[0]
