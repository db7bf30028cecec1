"""A River classifier learns what a Model learns, and behaves as River expects."""

from __future__ import annotations

import copy
import math
import pickle
import random
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rarestream import Block, DataError, Hashed, Model, auc, learner_names
from rarestream.features import TablePlan
from rarestream.learners import learner_classes
from tests import children

pytest.importorskip("river")

from river import (
    anomaly,
    checks,
    compose,
    datasets,
    evaluate,
    feature_extraction,
    metrics,
    multiclass,
    preprocessing,
    stream,
    utils,
)

import rarestream.river as ours
from rarestream.adapters.river import StreamClassifier, TwoLabels, classifiers

CLASSES = [cls.__name__ for cls in learner_classes()]


def rows(count: int = 300, seed: int = 0) -> list[tuple[dict, bool]]:
    """Rows with values of every kind, and a signal."""
    generator = random.Random(seed)
    found = []
    for _ in range(count):
        site, price = generator.randrange(8), generator.lognormvariate(0, 1)
        row = {"site": f"s{site}.com", "price": price, "age": generator.randrange(18, 80), "new": site % 2 == 0}
        if generator.random() < 0.3:
            row["tags"] = ["a", "b"][: generator.randrange(3)]
        if generator.random() < 0.2:
            row["price"] = None
        found.append((row, generator.random() < (0.7 if site < 2 else 0.1)))
    return found


# -- River's own checks


@pytest.mark.filterwarnings("ignore::rarestream.SortedRowsWarning")
@pytest.mark.parametrize("name", CLASSES)
def test_every_classifier_passes_the_checks_of_river(name):
    model = getattr(ours, name)(bits=12)
    assert not model._unit_test_skips()
    checks.check_estimator(model)


def test_the_classes_are_those_of_the_learners():
    assert list(classifiers()) == CLASSES
    assert ours.__all__ == sorted([*CLASSES, "RollingAuc", "StreamingAuc"])
    assert all(issubclass(getattr(ours, name), StreamClassifier) for name in CLASSES)


# -- the same as a Model


@pytest.mark.parametrize("name", sorted(set(learner_names()) & {"dual-auc", "ftrl-proximal", "spam", "auto"}))
def test_dicts_get_the_weights_that_a_model_gives_them(name):
    model = Model(name, features=Hashed(bits=14))
    classifier = getattr(ours, type(model.learner).__name__)(bits=14, **model.learner.settings)
    for row, label in rows():
        assert classifier.score_one(row) == (model.score_one(row) if model.rows else 0)
        classifier.learn_one(row, label)
        model.learn_one(row, int(label))
    assert classifier.model.to_bytes() == model.to_bytes()


def test_weights_of_rows_are_importances():
    model, classifier = Model("dual-auc", features=Hashed(bits=14)), ours.DualAveraging(bits=14)
    for number, (row, label) in enumerate(rows()):
        weight = (1.0, 2.5, 0.5, 3, np.float64(4), 0)[number % 6]
        classifier.learn_one(row, label, w=weight)
        model.learn_one(row, int(label), float(weight))
    assert classifier.model.to_bytes() == model.to_bytes()


def test_a_usual_row_is_one_call_of_the_core(monkeypatch):
    classifier = ours.FtrlProximal(bits=12)
    learned = rows()
    for row, label in learned[:20]:
        classifier.learn_one(row, label)
    monkeypatch.setattr(Block, "__init__", None)  # making any would fail
    for row, label in learned[20:]:
        classifier.learn_one(row, label)
        classifier.learn_one(row, np.bool_(label), 2.0)
        classifier.score_one(row)
    assert classifier.model.rows == 20 + 2 * 280


def test_raw_numbers_are_the_values_of_features():
    classifier = ours.DualAveraging(numbers="raw", bits=12)
    classifier.learn_one({"a": 1.5, "b": -2.5}, True)
    classifier.learn_one({"a": -1.5, "b": 2.5}, False)
    assert {(term.name, term.value) for term in classifier.explain_one({"a": 0.5, "b": 3.25}).terms} == {
        ("a", 0.5),
        ("b", 3.25),
    }
    space = Hashed(bits=12)
    space.plan = TablePlan(numbers="raw", open=True)
    model = Model("dual-auc", features=space)
    model.learn_one({"a": 1.5, "b": -2.5}, 1)
    model.learn_one({"a": -1.5, "b": 2.5}, 0)
    assert classifier.model.to_bytes() == model.to_bytes()


# -- rows


def test_keys_that_are_not_text_count_as_their_text():
    named, numbered = ours.DualAveraging(bits=12), ours.DualAveraging(bits=12)
    for row, label in stream.iter_array(np.random.default_rng(0).normal(size=(50, 3)), [0, 1] * 25):
        assert all(type(key) is int for key in row)
        numbered.learn_one(row, label)
        named.learn_one({str(key): value for key, value in row.items()}, label)
    assert numbered.score_one({0: 1.5, 1: 2.5}) == named.score_one({"0": 1.5, "1": 2.5}) != 0
    assert numbered.model.to_bytes() == named.model.to_bytes()
    with pytest.raises(DataError, match="two keys of a row have the same text"):
        numbered.learn_one({0: 1.0, "0": 2.0}, 1)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"a": float("inf")}, "inf"),
        ({"a": 1j}, "complex"),
        ({"a": b"x"}, "bytes"),
        ({"a": [[1]]}, "a"),
        ([1, 2], "a row must be a dict of names and values, got list"),
    ],
)
def test_a_value_that_cannot_be_a_feature_is_refused_and_nothing_learned(row, says):
    classifier = ours.DualAveraging(bits=12)
    for good, label in rows(20):
        classifier.learn_one(good, label)
    before = pickle.dumps(classifier)
    for act in (lambda: classifier.learn_one(row, True), lambda: classifier.score_one(row)):
        with pytest.raises(DataError, match=says):
            act()
    assert pickle.dumps(classifier) == before


@pytest.mark.parametrize("weight", [-1.0, math.nan, 1e200, "2"])
def test_a_weight_out_of_range_is_refused(weight):
    classifier = ours.DualAveraging(bits=12)
    with pytest.raises(DataError):
        classifier.learn_one({"a": 1.0}, True, w=weight)
    assert classifier.model.rows == 0


# -- labels


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([False, True], (False, True)),
        ([1, 0], (0, 1)),
        ([1.0, 0.0], (0.0, 1.0)),
        ([1, -1], (-1, 1)),
        ([-1, 1], (-1, 1)),
        (["ham", "spam"], ("ham", "spam")),
        (["spam", "ham"], ("spam", "ham")),
        (["yes", "no"], ("no", "yes")),
        (["TRUE", "FALSE"], ("FALSE", "TRUE")),
        ([2, 3], (2, 3)),
        ([("a", 1), ("b", 2)], (("a", 1), ("b", 2))),
    ],
)
def test_which_label_is_positive(labels, expected):
    classifier = ours.DualAveraging(bits=12)
    assert classifier.labels == (False, True)
    for label in labels:
        classifier.learn_one({"a": 1.0}, label)
    assert classifier.labels == expected
    assert [type(label) for label in classifier.labels] == [type(label) for label in expected]
    assert (classifier.model.rows, classifier.model.positives) == (2, 1)
    found = classifier.predict_proba_one({"a": 1.0})
    assert tuple(found) == expected
    assert classifier.predict_one({"a": 1.0}) in expected


def test_positive_names_the_label_that_counts():
    classifier = ours.DualAveraging(bits=12, positive="bad")
    classifier.learn_one({"a": 1.0}, "bad")
    assert classifier.predict_one({"a": 1.0}) == "bad"
    classifier.learn_one({"b": 1.0}, "good")
    assert classifier.labels == ("good", "bad")
    assert classifier.score_one({"a": 1.0}) > classifier.score_one({"b": 1.0})
    with pytest.raises(DataError, match="the label 'worse', after 'bad' and 'good'"):
        classifier.learn_one({"a": 1.0}, "worse")


@pytest.mark.parametrize("labels", [[1, 2], [2, 1], [0, 1, 2], ["a", "b", "c"], [0, -1], [True, "yes"], ["a", 1]])
def test_labels_that_are_not_clear_are_refused(labels):
    classifier = ours.DualAveraging(bits=12)
    for label in labels[:-1]:
        classifier.learn_one({"a": 1.0}, label)
    before = pickle.dumps(classifier)
    with pytest.raises(DataError, match="pass positive="):
        classifier.learn_one({"a": 1.0}, labels[-1])
    with pytest.raises(DataError, match="pass positive="):
        classifier.learn_many(pd.DataFrame({"a": [1.0]}), [labels[-1]])
    assert pickle.dumps(classifier) == before


@pytest.mark.parametrize("label", [None, float("nan"), [1], np.array([1])])
def test_a_row_without_a_label_is_refused(label):
    labels = TwoLabels("it")
    with pytest.raises(DataError, match=r"^it: (the|a) label"):
        labels.sign(label)


# -- probabilities


def test_probabilities_before_learning_and_with_one_label():
    classifier = ours.DualAveraging(bits=12)
    assert classifier.predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    assert classifier.predict_one({"a": 1.0}) is False
    assert classifier.score_one({"a": 1.0}) == 0
    classifier.learn_one({"a": 1.0}, "ham")
    assert classifier.predict_proba_one({"a": 1.0}) == {"ham": 1.0}
    assert classifier.predict_many(pd.DataFrame({"a": [1.0]})).tolist() == ["ham"]


def test_probabilities_are_those_of_the_model_and_rank_as_scores_do():
    classifier = ours.DualAveraging(bits=14)
    learned = rows(2000)
    for row, label in learned:
        classifier.learn_one(row, label)
    found = np.array([classifier.predict_proba_one(row)[True] for row, _ in learned])
    block = Block.of_dicts([row for row, _ in learned], features=classifier.model.features)
    np.testing.assert_allclose(found, classifier.model.probability(block), rtol=1e-9)
    scores = np.array([classifier.score_one(row) for row, _ in learned])
    assert (np.diff(found[np.argsort(scores)]) >= 0).all()
    assert abs(found.mean() - np.mean([label for _, label in learned])) < 0.05


# -- frames


def frames() -> tuple[list[dict], list[bool], dict]:
    learned = rows()
    plain = [{key: value for key, value in row.items() if key != "tags"} for row, _ in learned]
    table = {key: [row[key] for row in plain] for key in plain[0]}
    return plain, [label for _, label in learned], table


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_many_rows_are_learned_as_one_by_one(make):
    plain, labels, table = frames()
    one, many = ours.DualAveraging(bits=14), ours.DualAveraging(bits=14)
    for row, label in zip(plain, labels, strict=True):
        one.learn_one(row, label, 2.0)
    X = make(table)
    many.learn_many(X[:100], np.array(labels[:100]), w=2.0)
    many.learn_many(X[100:], make({"y": labels[100:]})["y"], w=[2.0] * 200)
    assert many.model.coef.tobytes() == one.model.coef.tobytes()
    assert many.model.nonzeros > 20
    assert many.explain_one(plain[0]).terms == one.explain_one(plain[0]).terms
    scores = many.score_many(X)
    assert type(scores) is type(X["site"])
    assert [float(str(score)) for score in scores] == [one.score_one(row) for row in plain]
    found = many.predict_proba_many(X)
    assert type(found) is type(X)
    columns = found.columns if hasattr(found, "iloc") else [str(label) for label in (False, True)]
    assert list(map(str, columns)) == ["False", "True"]
    expected = [one.predict_proba_one(row)[True] for row in plain]
    np.testing.assert_allclose(np.asarray(found[columns[1]]), expected, rtol=1e-9)
    assert np.asarray(many.predict_many(X)).tolist() == [one.predict_one(row) for row in plain]


COLUMN = st.one_of(
    st.tuples(st.just(pl.Float64), st.lists(st.none() | st.floats(-1e9, 1e9), min_size=6, max_size=6)),
    st.tuples(st.just(pl.Int64), st.lists(st.none() | st.integers(-(10**12), 10**12), min_size=6, max_size=6)),
    st.tuples(st.just(pl.Boolean), st.lists(st.none() | st.booleans(), min_size=6, max_size=6)),
    st.tuples(st.just(pl.String), st.lists(st.none() | st.text(max_size=5), min_size=6, max_size=6)),
)


@pytest.mark.parametrize("small", [0, 200], ids=["read as a whole", "as dicts"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns=st.lists(COLUMN, min_size=1, max_size=4), numbers=st.sampled_from(["soft", "raw"]))
def test_any_frame_has_the_features_of_its_rows(small, monkeypatch, columns, numbers):
    monkeypatch.setattr("rarestream.adapters.river.SMALL", small)
    schema = {f"c{number}": kind for number, (kind, _) in enumerate(columns)}
    X = pl.DataFrame({name: values for name, (_, values) in zip(schema, columns, strict=True)}, schema=schema)
    labels = [True, False, False, True, False, True]
    one, many = (ours.DualAveraging(bits=10, numbers=numbers) for _ in range(2))
    many.learn_many(X, labels)
    for row, label in zip(X.to_dicts(), labels, strict=True):
        one.learn_one(row, label)
    assert many.model.coef.tobytes() == one.model.coef.tobytes()
    assert many.score_many(X).to_list() == [one.score_one(row) for row in X.to_dicts()]


def test_frames_of_pandas_keep_their_index_and_names():
    _, labels, table = frames()
    X = pd.DataFrame(table, index=range(1000, 1300))
    classifier = ours.DualAveraging(bits=12)
    classifier.learn_many(X, pd.Series(labels, index=X.index, name="clicked"))
    assert classifier.predict_many(X).index.tolist() == classifier.predict_proba_many(X).index.tolist() == list(X.index)
    assert classifier.predict_many(X).name == "clicked"
    assert len(classifier.predict_many(X[:0])) == len(classifier.predict_proba_many(X[:0])) == 0
    classifier.learn_many(X[:0], [])
    assert classifier.model.rows == 300
    numbered = ours.DualAveraging(bits=12)
    numbered.learn_many(pd.DataFrame({0: [1.5, 2.5], 1: [0.5, 0.25]}), [0, 1])
    assert {term.name.split()[0] for term in numbered.explain_one({0: 1.5, 1: 0.5}).terms} == {"0", "1"}


def test_frames_that_do_not_fit_are_refused():
    classifier = ours.DualAveraging(bits=12)
    X = pd.DataFrame({"a": [1.0, 2.0]})
    with pytest.raises(DataError, match="X has 2 rows, but y has 1 labels"):
        classifier.learn_many(X, [True])
    with pytest.raises(DataError, match="X must be a frame with named columns, got list"):
        classifier.learn_many([{"a": 1.0}], [True])
    with pytest.raises(DataError, match="importance"):
        classifier.learn_many(X, [True, False], w=[1.0, -1.0])
    for count in (2, 300):
        with pytest.raises(DataError, match=r"^DualAveraging: row .*inf"):
            classifier.learn_many(pd.DataFrame({"a": [1.0] * (count - 1) + [math.inf]}), [True] * count)
    assert classifier.model.rows == 0


def test_what_a_sparse_frame_does_not_store_is_missing():
    texts = ["a rare prize", "a word", "another word", "prize prize"] * 5
    labels = [True, False, False, True] * 5
    one = feature_extraction.BagOfWords() | ours.DualAveraging(bits=12)
    many = feature_extraction.BagOfWords() | ours.DualAveraging(bits=12)
    for text, label in zip(texts, labels, strict=True):
        one.learn_one(text, label)
    many.learn_many(pd.Series(texts), pd.Series(labels))
    assert many["DualAveraging"].model.coef.tobytes() == one["DualAveraging"].model.coef.tobytes()
    assert many["DualAveraging"].model.nonzeros < 30


# -- what River does with models


def test_a_pipeline_learns_and_is_evaluated():
    model = preprocessing.StandardScaler() | ours.FtrlProximal(bits=14)
    by_hand, labels, chances = model.clone(), [], []
    for x, y in datasets.Phishing():
        chances.append(by_hand.predict_proba_one(x)[True])
        labels.append(y)
        by_hand.learn_one(x, y)
    streaming, rolling = ours.StreamingAuc(), ours.RollingAuc(window_size=500)
    found = evaluate.progressive_val_score(datasets.Phishing(), model, streaming + rolling + metrics.Accuracy())
    assert streaming.get() == pytest.approx(auc(labels, chances), abs=1e-12)
    assert rolling.get() == pytest.approx(auc(labels[-500:], chances[-500:]), abs=1e-12)
    assert streaming.get() > 0.9
    assert str(found).splitlines()[0] == f"StreamingAuc: {streaming.get():.2%}".rstrip("0")
    assert streaming.interval[0] < streaming.get() < streaming.interval[1]
    assert streaming.bound == 0
    weighted = ((x, y, {"w": 2.0}) for x, y in datasets.Phishing().take(100))
    evaluate.progressive_val_score(weighted, model, ours.StreamingAuc())
    assert model["FtrlProximal"].model.rows == 1350


def test_unions_selections_and_debugging():
    model = (compose.SelectType(str) + compose.SelectType(float)) | ours.DualAveraging(bits=12)
    for row, label in rows(50):
        model.learn_one({"site": row["site"], "price": row["price"] or 0.5}, label)
    said = model.debug_one({"site": "s1.com", "price": 2.0})
    assert "site = s1.com" in said and "Contribution" in said
    assert "Score" in ours.DualAveraging().debug_one({"a": 1.0})


@pytest.mark.filterwarnings("ignore::rarestream.SortedRowsWarning")
def test_several_classes_are_learned_one_against_the_rest():
    model = multiclass.OneVsRestClassifier(ours.FtrlProximal(bits=12))
    found = evaluate.progressive_val_score(datasets.ImageSegments().take(700), model, metrics.Accuracy())
    assert len(model.classifiers) == 7
    assert found.get() > 0.6


def test_settings_can_be_read_changed_and_shown():
    classifier = ours.FtrlAuc(learning_rate=0.25, bits=10, scale="max", positive="spam")
    assert classifier._get_params()["learning_rate"] == 0.25
    assert "learning_rate=0.25" in repr(classifier) and "positive=" in repr(classifier)
    clone = classifier.clone({"l1": 0.5})
    assert (clone.learning_rate, clone.l1, clone.bits, clone.scale, clone.positive) == (0.25, 0.5, 10, "max", "spam")
    models = utils.expand_param_grid(classifier, {"l1": [0.0, 1.0]})
    assert [model.l1 for model in models] == [0.0, 1.0]
    for wrong in ({"learning_rate": -1}, {"bits": 31}, {"scale": "big"}, {"dtype": "int8"}, {"numbers": "hard"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            ours.FtrlAuc(**wrong)


def test_a_copy_continues_as_the_original_does():
    learned = rows(400)
    for name in ("DualAveraging", "Auto"):
        classifier = getattr(ours, name)(bits=12)
        for row, label in learned[:200]:
            classifier.learn_one(row, label)
        copies = [
            pickle.loads(pickle.dumps(classifier)),
            copy.deepcopy(classifier),
            classifier.clone(include_attributes=True),
        ]
        for model in (classifier, *copies):
            for row, label in learned[200:]:
                model.learn_one(row, label)
        assert len({model.model.to_bytes() for model in (classifier, *copies)}) == 1


# -- metrics


def scored(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = generator.random(count) < 0.1
    return labels, np.round(generator.normal(size=count) + labels, 1), generator.choice([1.0, 2.0], count)


@pytest.mark.parametrize("count", [10, 1024, 5000])
def test_metrics_are_exact(count):
    labels, scores, weights = scored(count)
    labels[:2] = [True, False]
    streaming, rolling = ours.StreamingAuc(), ours.RollingAuc(window_size=700)
    for label, score, weight in zip(labels, scores, weights, strict=True):
        streaming.update(label, {True: score, False: -score}, weight)
        rolling.update(label, score, w=weight)
    assert streaming.get() == pytest.approx(auc(labels, scores, weights), abs=1e-12)
    assert rolling.get() == pytest.approx(auc(labels[-700:], scores[-700:], weights[-700:]), abs=1e-12)
    assert pickle.loads(pickle.dumps(streaming)).get() == streaming.get()
    assert math.isnan(rolling.clone().get()) and rolling.clone().window_size == 700


def test_a_window_can_lose_rows_and_a_stream_cannot():
    labels, scores, _ = scored(200)
    metric = ours.RollingAuc(window_size=500, pos_val="yes")
    names = np.where(labels, "yes", "no")
    for label, score in zip(names, scores, strict=True):
        metric.update(label, {"yes": score})
    for label, score in zip(names[:50], scores[:50], strict=True):
        metric.revert(label, {"yes": score})
    assert metric.get() == pytest.approx(auc(labels[50:], scores[50:]), abs=1e-12)
    metric.revert("yes", 1e9)
    assert metric.get() == pytest.approx(auc(labels[50:], scores[50:]), abs=1e-12)
    with pytest.raises(NotImplementedError, match="use RollingAuc"):
        ours.StreamingAuc().revert(True, 0.5)


@pytest.mark.parametrize("make", [ours.StreamingAuc, ours.RollingAuc])
def test_metrics_refuse_what_cannot_be_ranked(make):
    metric = make()
    for wrong in ((True, math.nan), (True, 0.5, -1.0), ("yes", {"no": 0.25, "yes": 0.75})):
        with pytest.raises(DataError):
            metric.update(*wrong)
    metric.update(True, 0.5)
    assert math.isnan(metric.get())
    assert metric.interval == (0, 1)
    metric.update(False, 0.25)
    assert metric.get() == 1
    assert metric.bigger_is_better and metric.works_with_weights and not metric.requires_labels
    assert metric.works_with(anomaly.HalfSpaceTrees()) and metric.works_with(ours.Auto())


def test_without_river_the_message_says_what_to_install():
    code = (
        "import sys; sys.modules['river'] = None\ntry:\n    import rarestream.river\nexcept ImportError as e: print(e)"
    )
    done = children.run([sys.executable, "-c", code])
    assert done.stdout == 'rarestream.river: River 0.22 or newer is needed. pip install "rarestream[river]"\n'
