"""A model has a feature space: it takes that of its first rows, and refuses rows of another one."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest

from rarestream import Block, Columns, DataError, Hashed, Model, ModelFileError, _native, learner_names, modelfile
from rarestream.engines.race import MAX_BYTES, Race
from rarestream.features import ColumnPlan, TablePlan
from rarestream.learners.state import SPARE
from rarestream.race.fitting import ManyFits
from tests.strategies import hashed_block, random_block

PLAN = TablePlan((ColumnPlan("site", 1),))


def hashed_model(learner: str = "dual-auc", bits: int = 6, **changes) -> Model:
    model = Model(learner, **changes)
    model.learn(hashed_block(60, bits))
    return model


# -- which rows belong to a model


@pytest.mark.parametrize("learner", learner_names())
def test_a_fresh_model_takes_the_space_of_its_first_rows(learner):
    block = hashed_block(30, 6)
    model = Model(learner)
    assert model.features is None
    model.score(block)
    model.score(random_block(3, 10, 2))
    assert model.features is None
    model.learn(block)
    assert model.features is block.space
    assert model.n_features == 64
    assert model._engine.slots == 64 + SPARE
    columns = Model(learner)
    columns.learn(random_block(30, 20, 4))
    assert columns.features == Columns()


def test_hashed_rows_give_the_weights_that_their_slots_give():
    block = hashed_block(60, 6)
    hashed, columns = Model("dual-auc"), Model("dual-auc", n_features=64)
    assert np.array_equal(hashed.learn(block), columns.learn(dataclasses.replace(block, space=None)))
    assert np.array_equal(hashed.coef, columns.coef)


COLUMNS = random_block(20, 20, 4)


def rows_of(bits: int) -> Block:
    return hashed_block(20, bits) if bits else COLUMNS


@pytest.mark.parametrize(
    ("first", "then", "rule"),
    [
        (6, 0, "the rows have column numbers, but the model has hashed features with 6 bits. Read or make"),
        (
            6,
            7,
            "the rows have hashed features with 7 bits, but the model has hashed features with 6 bits. Hash",
        ),
        (0, 6, "the rows have hashed features with 6 bits, but the model has column numbers. Use rows with"),
    ],
)
@pytest.mark.parametrize("learner", ["dual-auc", "auto"])
def test_rows_of_another_space_are_refused_and_change_nothing(learner, first, then, rule):
    model = Model(learner)
    model.learn(rows_of(first))
    before, n_features = model.to_bytes(), model.n_features
    for call in (model.learn, model.score, model.explain):
        with pytest.raises(DataError, match=rf"^Model\.(learn|score): {rule}"):
            call(rows_of(then))
    with pytest.raises(DataError, match=rule):
        model.learn(rows_of(then), again=True)
    assert (model.to_bytes(), model.n_features) == (before, n_features)


def test_a_space_that_is_given_holds_from_the_start():
    space = Hashed(6)
    model = Model(features=space)
    assert model.features is space
    assert model.n_features == 64
    with pytest.raises(DataError, match="the rows have column numbers, but the model has hashed features with 6 bits"):
        model.learn(COLUMNS)
    with pytest.raises(DataError, match="the rows have hashed features with 6 bits, but the model has column numbers"):
        Model(features=Columns(1)).learn(rows_of(6))
    model.learn(rows_of(6))
    assert model.features is space  # and it has the names of the rows
    assert len(space.names) == len(rows_of(6).space.names)


@pytest.mark.parametrize(
    ("make", "error", "rule"),
    [
        (
            lambda: Model(features="hashed"),
            TypeError,
            r"Model: features must be Columns\(\) or Hashed\(\), got 'hashed'",
        ),
        (lambda: Model(features=Hashed), TypeError, "Model: features must be"),
        (lambda: Model(features=Hashed(4), n_features=17), ValueError, "n_features is 17, but .* 4 bits have 16 slots"),
    ],
)
def test_a_space_that_cannot_be_is_refused(make, error, rule):
    with pytest.raises(error, match=rule):
        make()


def test_a_model_with_more_features_than_slots_refuses_hashed_rows():
    model = Model("dual-auc", n_features=100)
    with pytest.raises(DataError, match="the model has 100 features, but hashed features with 6 bits have 64 slots"):
        model.learn(rows_of(6))
    assert model.features is None
    assert model.n_features == 100


def test_slots_beyond_the_space_are_refused():
    model = hashed_model()
    wrong = dataclasses.replace(random_block(3, 200, 30), space=model.features)
    assert wrong.width > 64
    with pytest.raises(DataError, match="a row has slot .* but hashed features with 6 bits have 64 slots"):
        model.learn(wrong)


def test_indices_are_refused_by_a_hashed_model_and_names_by_a_column_model():
    model = hashed_model()
    with pytest.raises(DataError, match="the rows have column numbers, but the model has hashed"):
        model.learn_one([1, 2], [1.0, 1.0], 1)
    with pytest.raises(DataError, match="the rows have column numbers, but the model has hashed"):
        model.score_one([1, 2], [1.0, 1.0])
    columns = Model("dual-auc")
    columns.learn(COLUMNS)
    for call in (lambda row: columns.learn_one(row, 1), columns.score_one, columns.explain_one):
        with pytest.raises(
            DataError, match="the row has names, but the model has column numbers. Pass indices and values"
        ):
            call({"site": "a.com"})


# -- names


def test_the_names_and_the_plan_of_other_rows_with_the_same_bits_are_taken_over():
    model = Model("dual-auc")
    first, second = hashed_block(20, 12, words=10), hashed_block(20, 12, words=25)
    second.space.plan = PLAN
    model.learn(first)
    model.learn(second)
    space = model.features
    assert space is first.space
    assert len(space.names) == 25
    assert space.plan is PLAN
    second.space.names.add(_names(["late"]))
    model.learn(second)
    assert model.feature_names([space.slot("site", "late")]) == ["site = late"]
    before = len(space.names)
    model.score(hashed_block(20, 12, words=50))
    assert len(space.names) == before  # scoring changes nothing


def test_features_are_named():
    model = hashed_model(bits=12)
    slot = model.features.slot("site", "w3")
    assert model.feature_names([slot, 0]) == ["site = w3", "slot 0"]
    assert model.feature_names(np.array([], int)) == []
    assert Model().feature_names([0, 5]) == ["0", "5"]
    assert Model(features=Columns(1)).feature_names([0, 5]) == ["1", "6"]
    nameless = Model("dual-auc", features=Hashed(12, names=False))
    nameless.learn(hashed_block(10, 12))
    assert nameless.feature_names([slot]) == [f"slot {slot}"]


def _names(words) -> _native.NewNames:
    names = _native.NewNames()
    for word in words:
        names.add(b"site", word.encode())
    return names


# -- files


@pytest.mark.parametrize("learner", learner_names())
@pytest.mark.parametrize("kind", ["resumable", "scoring"])
def test_a_hashed_model_is_saved_and_read_again(learner, kind):
    model = hashed_model(learner, bits=10)
    model.features.plan = PLAN
    data = model.to_bytes(kind)
    assert modelfile.from_bytes(data)[0]["format"] == 2
    again = Model.from_bytes(data)
    assert again.to_bytes(kind) == data
    assert isinstance(again.features, Hashed)
    assert again.features is not model.features
    assert (again.features.bits, again.features.plan, again.n_features) == (10, PLAN, 1024)
    fresh = hashed_block(20, 10, seed=3)
    assert np.array_equal(again.score(fresh), model.score(fresh))
    assert np.array_equal(again.coef, model.coef)
    known = np.flatnonzero(model.coef)
    assert again.feature_names(known) == model.feature_names(known)


@pytest.mark.parametrize("learner", ["dual-auc", "auto", "ftrl-proximal"])
@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize("limit", [64 << 20, 1500])
def test_resuming_gives_the_bytes_of_never_having_stopped(learner, names, limit):
    stream = Hashed(5 if limit > 2000 else 14, names, limit)

    def rows(part: int, space: Hashed) -> Block:
        return hashed_block(40, 0, seed=part, words=20 + 40 * part, space=space)

    whole = Model(learner, features=copy.deepcopy(stream))
    halves = Model(learner, features=copy.deepcopy(stream))
    for part in range(3):
        whole.learn(rows(part, whole.features))
        halves.learn(rows(part, halves.features))
        halves = Model.from_bytes(halves.to_bytes())
    assert halves.to_bytes() == whole.to_bytes()
    if names:
        header = modelfile.from_bytes(whole.to_bytes())[0]["features"]
        assert header["full"] == (limit < 2000)
        if limit > 2000:
            assert header["collisions"] > 0
        else:
            assert halves.features.names.lost > 0


def test_a_model_that_was_copied_takes_names_from_where_it_was():
    block = hashed_block(30, 12)
    model = Model("dual-auc")
    model.learn(block[:10])
    again = copy.deepcopy(model)
    for each in (model, again):
        each.learn(block[10:])
    assert again.to_bytes() == model.to_bytes()
    assert len(block.space.names) == len(again.features.names)


def test_a_scoring_file_has_the_names_of_its_weights_only():
    model = Model("dual-auc", features=Hashed(12))
    model.learn(hashed_block(60, 12, space=model.features))
    model.features.names.add(_names(["never", "seen"]))
    _, arrays = modelfile.from_bytes(model.to_bytes("scoring"))
    assert arrays["names.index"].tolist() == arrays["index"].tolist()
    _, arrays = modelfile.from_bytes(model.to_bytes())
    assert set(arrays["names.index"]) == set(arrays["index"])


def test_a_column_model_is_written_as_before():
    model = Model("dual-auc")
    model.learn(COLUMNS)
    header, arrays = modelfile.from_bytes(model.to_bytes())
    assert header["format"] == 1
    assert header["features"] == {"space": "columns", "count": model.n_features}
    assert not [name for name in arrays if name.startswith("names")]
    from_one = Model("dual-auc", features=Columns(1))
    from_one.learn(COLUMNS)
    assert Model.from_bytes(from_one.to_bytes()).features == Columns(1)
    assert Model.from_bytes(Model().to_bytes()).features is None
    assert Model.from_bytes(model.to_bytes()).features == Columns()


def _features(**changes):
    return lambda h, a: h["features"].update(changes)


HOSTILE = {
    "unknown bits": _features(bits=7),
    "no bits": lambda h, a: h["features"].pop("bits"),
    "bits of text": _features(bits="6"),
    "bits that are true": _features(bits=True),
    "huge bits": _features(bits=10**9, count=2),
    "another count": _features(count=63),
    "names that are no flag": _features(names=1),
    "no names": _features(names=False),
    "negative memory": _features(name_bytes=-1),
    "little memory": _features(name_bytes=10),
    "huge memory": _features(name_bytes=2**70),
    "negative collisions": _features(collisions=-1),
    "fewer collisions": _features(collisions=0),
    "collisions of text": _features(collisions="many"),
    "huge collisions": _features(collisions=2**80),
    "full that is no flag": _features(full=0),
    "a plan of text": _features(plan="plan"),
    "an empty plan": _features(plan={}),
    "format 1": lambda h, a: h.update(format=1),
    "no index": lambda h, a: a.pop("names.index"),
    "no text": lambda h, a: a.pop("names.text"),
    "names of other features": lambda h, a: a.update(index=a["index"] // 2 * 2 + 1),
    "wide ends": lambda h, a: a.update({"names.end": a["names.end"].astype(np.int32)}),
    "text of numbers": lambda h, a: a.update({"names.text": a["names.text"].astype(np.int32)}),
    "a matrix of hashes": lambda h, a: a.update({"names.hash": a["names.hash"][None]}),
    "other hashes": lambda h, a: a.update({"names.hash": a["names.hash"] + np.int32(1)}),
    "ends beyond": lambda h, a: a.update({"names.end": a["names.end"] * 2}),
    "the same name twice": lambda h, a: a.update(
        {name: np.repeat(a[name], 2) for name in ("names.index", "names.hash", "names.end")}
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_of_a_hashed_model_is_refused(what):
    model = Model("dual-auc")
    model.learn(hashed_block(60, 6, words=60))
    header, arrays = modelfile.from_bytes(model.to_bytes())
    Model.from_bytes(modelfile.to_bytes(header, arrays))
    HOSTILE[what](header, arrays := {name: array.copy() for name, array in arrays.items()})
    with pytest.raises(ModelFileError, match="evil.rare: "):
        Model.from_bytes(modelfile.to_bytes(header, arrays), "evil.rare")


# -- pruning


def test_a_pruned_model_keeps_the_names_of_its_weights():
    model = hashed_model(bits=12)
    for small in (model.prune(nonzeros=5), model.prune(bytes=len(model.to_bytes("scoring")) - 400)):
        kept = np.flatnonzero(small.coef)
        assert 0 < len(kept) < model.nonzeros
        assert small.feature_names(kept) == model.feature_names(kept)
        _, arrays = modelfile.from_bytes(small.to_bytes("scoring"))
        assert arrays["names.index"].tolist() == kept.tolist()
        assert Model.from_bytes(small.to_bytes("scoring")).to_bytes("scoring") == small.to_bytes("scoring")


@pytest.mark.parametrize("names", [True, False])
def test_a_model_pruned_to_bytes_is_as_large_as_fits(names):
    model = Model("dual-auc", features=Hashed(12, names))
    model.learn(hashed_block(200, 12, words=60, space=model.features))
    full, least = len(model.to_bytes("scoring")), len(model.prune(nonzeros=0).to_bytes("scoring"))
    for room in range(least, full + 1, 97):
        small = model.prune(bytes=room)
        assert len(small.to_bytes("scoring")) <= room
        if small.nonzeros < model.nonzeros:
            assert len(model.prune(nonzeros=small.nonzeros + 1).to_bytes("scoring")) > room


# -- races


@pytest.mark.parametrize("lanes", [24, 32])
def test_a_race_has_room_for_the_default_number_of_slots(lanes):
    assert MAX_BYTES // (8 * lanes) >= (1 << 22) + SPARE


def test_hashed_rows_are_raced_in_the_space_of_the_default():
    model = Model()
    model.learn(hashed_block(60, 22))
    assert isinstance(model._engine, Race)
    assert model._engine.slots == (1 << 22) + SPARE
    assert model.n_features == 1 << 22
    model.finish_race()
    assert model._engine.slots == (1 << 22) + SPARE


def test_a_fit_beside_others_has_the_space_of_its_rows():
    block = hashed_block(60, 6)
    learners = [Model(name).learner for name in ("dual-auc", "spauc")]
    fits = ManyFits(learners)
    fits.reserve(64)
    fits.learn(block)
    for number in range(2):
        assert fits.model(number, 64).features is block.space
    with pytest.raises(DataError, match="race: rows of hashed features with 6 bits and of column numbers"):
        fits.learn(COLUMNS)
