"""OneVsRest: many classes, in lanes or in a Model each; classes that come late; files."""

from __future__ import annotations

import dataclasses
import itertools
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import (
    Block,
    DataError,
    DualAveraging,
    FtrlProximal,
    Hashed,
    Model,
    ModelBusyError,
    ModelFileError,
    OneVsRest,
    RowError,
    SortedRowsWarning,
    auc,
    modelfile,
)
from rarestream.blocks import signs
from tests.strategies import block_of, examples, hashed_block, random_block

WAYS = pytest.mark.parametrize(
    "settings",
    [
        {},
        {"learner": "dual-logistic"},
        {"learner": "dual-auc", "scale": "max"},
        {"learner": FtrlProximal(l1=0.1), "threads": 2},
        {"learner": DualAveraging(evidence=0.5)},
        {"learner": "dual-logistic", "dtype": "float64"},
        {"learner": "oam"},
    ],
    ids=["default", "lanes", "lanes-max", "threads", "evidence", "float64", "oam"],
)
TOPICS = np.array(["politics", "sport", "science", "art", "food"])


def rows_of(n: int, seed: int = 0, classes: int = 5) -> tuple[Block, np.ndarray]:
    """Rows of several classes, each with some features of its own."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    own = rng.random((n, 6)) < 0.5
    indices = np.where(own, 8 * labels[:, None] + rng.integers(0, 8, (n, 6)), 40 + rng.integers(0, 20, (n, 6)))
    starts = np.arange(n + 1) * 6
    return Block.of((starts, indices.ravel(), rng.choice([1.0, 2.0], n * 6))), labels


@WAYS
def test_every_class_is_a_model_of_its_labels(settings):
    block, codes = rows_of(600)
    labels = TOPICS[codes]
    model = OneVsRest(**settings)
    scores = model.learn(block, labels)
    assert model.classes == tuple(dict.fromkeys(labels.tolist()))
    assert model.rows == 600
    fresh = {key: value for key, value in settings.items() if key != "threads"}
    for column, topic in enumerate(model.classes):
        alone = Model(**{"learner": model.learner, **fresh})
        expected = alone.learn(dataclasses.replace(block, labels=signs(labels == topic)))
        assert np.allclose(scores[:, column], expected, rtol=1e-4, atol=1e-4)
        mine = model.model(topic)
        assert (mine.rows, mine.positives, mine.n_features) == (alone.rows, alone.positives, alone.n_features)
        assert mine.learner == alone.learner
        assert np.allclose(mine.coef, alone.coef, rtol=1e-3, atol=1e-4)
        assert np.allclose(model.coef[column], alone.coef, rtol=1e-3, atol=1e-4)
        known = alone.calibration
        assert known is not None
        assert model.intercept[column] == pytest.approx(known.intercept, abs=1e-3)
        assert model.slope[column] == pytest.approx(known.slope, rel=1e-3)
        assert model.calibration[topic].rows == mine.calibration.rows == 600
        assert float(model.progress[topic].auc) == pytest.approx(float(alone.progress.auc), abs=1e-3)
        assert mine.progress.auc == model.progress[topic].auc
        assert np.allclose(model.score(block)[:, column], mine.score(block), rtol=1e-5, atol=1e-5)


@WAYS
def test_a_model_that_is_saved_continues_with_the_same_bits(settings, tmp_path):
    block, codes = rows_of(500)
    labels = TOPICS[codes]
    model = OneVsRest(**settings)
    model.learn(block[:300], labels[:300])
    model.source = {"name": "somewhere"}
    path = tmp_path / "topics.rare"
    model.save(path)
    other = OneVsRest.load(path)
    assert other.to_bytes() == path.read_bytes()
    assert other.source == model.source
    assert other.learn(block[300:], labels[300:]).tobytes() == model.learn(block[300:], labels[300:]).tobytes()
    assert other.to_bytes() == model.to_bytes()
    assert pickle.loads(pickle.dumps(model)).to_bytes() == model.to_bytes()
    assert repr(other) == repr(model)
    frozen = OneVsRest.from_bytes(model.to_bytes("scoring"))
    assert frozen.kind == "scoring"
    assert np.allclose(frozen.score(block), model.score(block), rtol=1e-5, atol=1e-5)
    assert frozen.predict(block).tolist() == model.predict(block).tolist()
    with pytest.raises(ModelFileError, match="scoring only"):
        frozen.learn(block, labels)


@WAYS
def test_a_class_that_comes_late_learns_as_if_it_had_been_named(settings):
    block, codes = rows_of(500, seed=2)
    block, codes = block.take(order := np.argsort(codes == 3, kind="stable")), codes[order]
    labels = TOPICS[codes]
    warnings.simplefilter("ignore", SortedRowsWarning)
    late = OneVsRest(**settings)
    pieces = [late.learn(block[a:b], labels[a:b]) for a, b in ((0, 200), (200, 450), (450, 500))]
    assert late.classes[-1] == "art"
    assert [piece.shape[1] for piece in pieces] == [4, 5, 5] or [piece.shape[1] for piece in pieces] == [4, 4, 5]
    named = OneVsRest(**settings, classes=list(late.classes))
    scores = named.learn(block, labels)
    assert named.learn(block, labels).tobytes() == late.learn(block, labels).tobytes()
    assert pieces[-1].tobytes() == scores[450:].tobytes()
    assert late.coef.tobytes() == named.coef.tobytes()
    for topic in late.classes:
        assert late.model(topic).to_bytes() == named.model(topic).to_bytes()


@given(cuts=st.lists(st.integers(0, 120), max_size=4), data=st.data())
@settings(max_examples=examples(20))
def test_where_blocks_are_cut_does_not_matter(cuts, data):
    block, codes = rows_of(120, seed=data.draw(st.integers(0, 50)))
    learner = data.draw(st.sampled_from([None, "dual-logistic", "dual-auc", "ftrl-auc"]))
    whole = OneVsRest(learner)
    scores = whole.learn(block, codes)
    parts = OneVsRest(learner)
    edges = [0, *sorted(cuts), 120]
    for a, b in itertools.pairwise(edges):
        found = parts.learn(block[a:b], codes[a:b])
        assert found.tobytes() == np.ascontiguousarray(scores[a:b, : found.shape[1]]).tobytes()
    assert parts.to_bytes() == whole.to_bytes()


def test_it_learns_what_there_is_to_learn():
    block, codes = rows_of(3000)
    test, truth = rows_of(1000, seed=1)
    for learner in (None, "dual-logistic", "dual-auc"):
        model = OneVsRest(learner, classes=range(5))
        model.learn(block, codes)
        assert (model.predict(test) == truth).mean() > 0.85
        assert min(auc(truth == c, model.score(test)[:, c]) for c in range(5)) > 0.95
        assert model.macro_auc > 0.95
        chances = model.probability(test)
        assert np.allclose(chances.sum(axis=1), 1)
        assert (chances.argmax(axis=1) == model.log_odds(test).argmax(axis=1)).all()


def test_without_a_calibration_scores_are_log_odds_but_for_an_intercept():
    block, codes = rows_of(300)
    model = OneVsRest(calibrate=False, classes=range(5))
    model.learn(block, codes)
    assert set(model.calibration.values()) == {None}
    assert np.allclose(model.log_odds(block), model.score(block) + model.intercept)
    assert model.intercept[2] == pytest.approx(-model.model(2).threshold)
    other = OneVsRest.from_bytes(model.to_bytes())
    other.learn(block, codes)
    assert set(other.calibration.values()) == {None}


def test_probabilities_of_hopeless_rows_sum_to_one():
    model = OneVsRest("dual-logistic", scale="none")
    model.learn(block_of([{0: 1.0}, {0: -1.0}] * 50), ["a", "b"] * 50)
    chances = model.probability(block_of([{0: 1e6}, {0: -1e6}, {}]))
    assert np.allclose(chances.sum(axis=1), 1)
    assert np.isfinite(chances).all()


def test_classes_may_be_text_or_numbers_and_may_stand_in_the_block():
    block, codes = rows_of(50)
    for labels, kind in ((TOPICS[codes], "U"), (codes, "i"), (codes + 0.5, "f"), (codes > 2, "b")):
        model = OneVsRest()
        model.learn(Block.of(block.to_csr(), classes=labels))
        assert model.predict(block).dtype.kind == kind
        assert set(model.predict(block).tolist()) <= set(labels.tolist())
        assert OneVsRest.from_bytes(model.to_bytes()).classes == model.classes
    mixed = OneVsRest()
    mixed.learn(block, ["a" if code else 7 for code in codes])
    assert set(mixed.classes) == {"a", 7}
    assert mixed.predict(block).dtype == object


def test_a_row_of_an_unknown_class_is_refused_and_nothing_is_learned():
    block, codes = rows_of(20)
    model = OneVsRest(classes=[0, 1])
    with pytest.raises(DataError, match=r"row \d+ has the class [234], but the model has the classes 0, 1"):
        model.learn(block, codes)
    assert model.rows == 0
    assert not model.coef.any()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([None] * 20, "row 0 has no class"),
        ([1.0] * 19 + [np.nan], "row 19 has no class: nan"),
        ([float("inf")] * 20, "classes are text or finite numbers"),
        ([1, 2], r"need classes of shape \(20,\)"),
        (None, "the rows have no classes"),
    ],
)
def test_rows_without_a_class_are_refused(labels, message):
    block, _ = rows_of(20)
    with pytest.raises(DataError, match=message):
        OneVsRest().learn(block, labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"classes": "some"}, "classes must be 'all' or a sequence"),
        ({"classes": []}, "there are no classes"),
        ({"classes": ["a", "b", "a"]}, "'a' is named twice"),
        ({"classes": [None]}, "one of the classes has no class"),
        ({"threads": 0}, "threads must be"),
        ({"scale": "most"}, "scale must be one of"),
    ],
)
def test_arguments_that_make_no_model_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        OneVsRest(**arguments)


def test_more_features_than_slots_are_refused():
    with pytest.raises(ValueError, match="n_features is 2000"):
        OneVsRest(features=Hashed(10), n_features=2000)


def test_arguments_of_the_wrong_type_are_refused():
    with pytest.raises(TypeError, match="learner must be"):
        OneVsRest(3)
    with pytest.raises(TypeError, match="features must be"):
        OneVsRest(features="hashed")
    with pytest.raises(TypeError, match="takes a Block"):
        OneVsRest().learn(np.zeros((2, 2)), [1, 2])


def test_a_model_without_classes_predicts_nothing():
    block, _ = rows_of(3)
    model = OneVsRest()
    assert model.score(block).shape == (3, 0)
    for act in (model.predict, model.probability, lambda _: model.to_bytes("scoring")):
        with pytest.raises((DataError, ModelFileError), match="knows no class yet"):
            act(block)
    with pytest.raises(KeyError, match="no class 'x'"):
        model.model("x")
    assert np.isnan(model.macro_auc)


@pytest.mark.parametrize("learner", ["dual-logistic", "oam"])
def test_hashed_features_keep_their_names(learner):
    block = hashed_block(200, 10)
    labels = np.where(block.labels > 0, "yes", "no")
    model = OneVsRest(learner)
    model.learn(block, labels)
    other = OneVsRest.from_bytes(model.to_bytes())
    assert isinstance(other.features, Hashed)
    assert other.n_features == 1024
    assert other.model("yes").feature_names(block.indices[:3]) == model.model("yes").feature_names(block.indices[:3])
    assert other.model("yes").feature_names(block.indices[:1])[0].startswith("site")
    again = hashed_block(100, 10, seed=3)
    assert other.learn(again, ["yes"] * 100).tobytes() == model.learn(again, ["yes"] * 100).tobytes()
    with pytest.raises(DataError, match="the rows have"):
        model.learn(random_block(5, 5, 2), ["yes"] * 5)
    with pytest.raises(DataError, match="the rows have"):
        model.score(random_block(5, 5, 2))


def test_importances_count_and_zero_skips_a_row():
    block, codes = rows_of(200)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.0], 200)
    weighted = dataclasses.replace(block, importances=weights)
    model = OneVsRest(classes=range(5))
    model.learn(weighted, codes)
    kept = OneVsRest(classes=range(5))
    kept.learn(weighted.take(np.flatnonzero(weights)), codes[weights > 0])
    assert np.array_equal(model.coef, kept.coef)


def test_learning_again_does_not_count_in_progress():
    block, codes = rows_of(100)
    model = OneVsRest()
    model.learn(block, codes)
    before = model.macro_auc
    model.learn(block, codes, again=True)
    assert model.macro_auc == before
    assert model.rows == 200


@pytest.mark.parametrize("learner", ["dual-logistic", "oam"])
def test_rows_sorted_by_class_are_noticed_once(learner):
    block, codes = rows_of(600)
    order = np.argsort(codes, kind="stable")
    model = OneVsRest(learner)
    with pytest.warns(SortedRowsWarning, match="class 0: The rows look sorted") as caught:
        model.learn(block.take(order), codes[order])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn(block.take(order), codes[order])
        OneVsRest(learner).learn(block, codes)


@pytest.mark.parametrize("learner", ["dual-auc", DualAveraging(evidence=0.5)])
def test_a_row_too_large_to_learn_is_refused(learner):
    block = block_of([{0: 1.0}, {1: 2.0}, {0: 1e30}, {1: 1.0}])
    model = OneVsRest(learner, scale="none")
    with pytest.raises(RowError, match="row 2 of the block has values so large") as refused:
        model.learn(block, ["a", "b", "c", "a"])
    assert refused.value.row == 2
    assert model.rows == 2
    if model.one_pass:
        expected = OneVsRest(learner, scale="none")
        expected.learn(block[:2], ["a", "b"])
        assert np.array_equal(model.coef[:2], expected.coef)
        model.learn(block[3:], ["a"])
    else:
        with pytest.raises(DataError, match="out of step"):
            model.learn(block[3:], ["a"])
        with pytest.raises(ModelFileError, match="out of step"):
            model.to_bytes()


def test_scores_that_are_not_finite_are_refused():
    model = OneVsRest(scale="none", learner=DualAveraging(learning_rate=1e6))
    model.learn(block_of([{0: 1e3}, {0: -1e3}] * 5), [1, 2] * 5)
    with pytest.raises(RowError, match="row 1 of the block has values so large that a score is not finite"):
        model.score(block_of([{0: 1.0}, {0: 3e38, 1: 3e38}]))


def test_a_model_that_is_in_use_is_busy():
    block, codes = rows_of(10)
    model = OneVsRest()
    model.learn(block, codes)
    assert model._gate.begin_learning()
    try:
        with pytest.raises(ModelBusyError):
            model.score(block)
        with pytest.raises(ModelBusyError):
            model.learn(block, codes)
    finally:
        model._gate.end_learning()


def test_a_file_of_one_kind_is_not_loaded_as_the_other(tmp_path):
    block, codes = rows_of(50)
    many, two = OneVsRest(), Model("dual-logistic")
    many.learn(block, codes)
    two.learn(dataclasses.replace(block, labels=signs(codes == 0)))
    with pytest.raises(ModelFileError, match=r"Load it with OneVsRest\.load"):
        Model.from_bytes(many.to_bytes())
    with pytest.raises(ModelFileError, match=r"Load it with Model\.load"):
        OneVsRest.from_bytes(two.to_bytes())


@pytest.mark.parametrize(
    "change",
    [
        {"classes": ["a"]},
        {"classes": ["a", "b", "c", "d", "a"]},
        {"spare": 1},
        {"models": []},
        {"models": [3] * 6},
        {"rows": 7},
        {"learner": {"name": "none", "settings": {}}},
        {"dtype": "float16"},
        {"features": {"space": "columns", "count": 10}},
        {"source": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_file_that_makes_no_sense_is_refused(change):
    block, codes = rows_of(50)
    model = OneVsRest()
    model.learn(block, codes)
    header, arrays = model._file_parts("resumable")
    with pytest.raises(ModelFileError, match="topics: not a model this version can read"):
        OneVsRest.from_bytes(modelfile.to_bytes({**header, **change}, arrays), "topics")


@pytest.mark.parametrize("name", ["0.tally", "1.z", "3.n", "index"])
@pytest.mark.parametrize("harm", ["missing", "short", "other"])
def test_a_file_with_damaged_arrays_is_refused(name, harm):
    block, codes = rows_of(50)
    model = OneVsRest()
    model.learn(block, codes)
    header, arrays = model._file_parts("resumable")
    array = arrays.pop(name)
    if harm != "missing":
        arrays[name] = array[:-1] if harm == "short" else array[::-1] * 2
    if name in ("0.tally", "1.z") and harm == "other":
        return  # numbers like any other
    with pytest.raises(ModelFileError, match="topics: not a model"):
        OneVsRest.from_bytes(modelfile.to_bytes(header, arrays), "topics")


def test_what_it_says_of_itself():
    block, codes = rows_of(50)
    model = OneVsRest()
    assert model.one_pass
    model.learn(block, codes)
    assert "5 classes, 50 rows" in repr(model)
    assert model.nonzeros == np.count_nonzero(model.coef) > 0
    assert model.state_bytes > 0
    assert (model.dtype, model.scale, model.kind) == ("float32", "unit", "resumable")
    assert model.learner == DualAveraging(loss="logistic", rate_power=0.0)
