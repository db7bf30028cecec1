"""Rows that come one at a time: the bits of a block, however they are given, and every check of a block."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import (
    Block,
    DataError,
    Hashed,
    Model,
    ModelBusyError,
    ModelFileError,
    SortedRowsWarning,
    StreamingAuc,
    learner_names,
)
from rarestream._native import isa, set_isa
from rarestream.engines import SCALES
from tests.strategies import blocks, examples, random_block

QUICK = ["dual-auc", "dual-logistic", "ftrl-auc", "ftrl-proximal", "adagrad", "spam", "oam"]

FORMS = {
    "lists": lambda at, x: (at.tolist(), x.astype(float).tolist()),
    "tuples": lambda at, x: (tuple(at.tolist()), tuple(x.astype(float).tolist())),
    "arrays": lambda at, x: (at, x),
    "wide arrays": lambda at, x: (at.astype(np.int64), x.astype(np.float64)),
    "a list and an array": lambda at, x: (at.tolist(), x),
    "unusual arrays": lambda at, x: (at.astype(np.uint16), x.astype(np.float64)[::-1][::-1]),
    "reversed": lambda at, x: (at.tolist()[::-1], x.astype(float).tolist()[::-1]),
}


def rows_of(block: Block):
    for i in range(len(block)):
        at = slice(int(block.indptr[i]), int(block.indptr[i + 1]))
        yield block.indices[at], block.values[at], int(block.labels[i])


def counted(model: Model) -> int:
    """How many rows its progressive AUC is of."""
    return sum(model.progress._sketch.totals(positive)[0] for positive in (True, False))


def same(one: Model, other: Model) -> bool:
    return one.to_bytes() == other.to_bytes()


@given(
    block=blocks(max_rows=30, importances=True),
    learner=st.sampled_from(QUICK),
    form=st.sampled_from(sorted(FORMS)),
    scale=st.sampled_from(SCALES),
    dtype=st.sampled_from(["float32", "float64"]),
    weighted=st.booleans(),
)
@settings(max_examples=examples(80))
def test_rows_alone_are_learned_and_scored_as_those_of_a_block(block, learner, form, scale, dtype, weighted):
    whole, singly = (Model(learner, scale=scale, dtype=dtype) for _ in range(2))
    if not weighted:
        block = Block(block.indptr, block.indices, block.values, block.width, block.labels, own=block.own)
    scores = whole.learn(block)
    found = []
    for i, (at, x, label) in enumerate(rows_of(block)):
        given_row = FORMS[form](at, x)
        before = singly.score_one(*given_row)
        importance = float(block.importances[i]) if weighted else None
        found.append(singly.learn_one(*given_row, label, importance))
        assert found[-1] == before
    assert np.array_equal(scores, found)
    assert same(whole, singly)
    assert [singly.score_one(at, x) for at, x, _ in rows_of(block)] == whole.score(block).tolist()


def test_every_learner_and_every_machine_learns_rows_alone_as_in_a_block():
    block = random_block(40, 30, 6, seed=5)
    chosen = isa()
    try:
        for path in sorted({"portable", chosen}):
            set_isa(path)
            for name in learner_names():
                whole, singly = Model(name), Model(name)
                scores = whole.learn(block)
                assert [singly.learn_one(at, x, label) for at, x, label in rows_of(block)] == scores.tolist()
                assert same(whole, singly)
    finally:
        set_isa(chosen)


def test_blocks_and_rows_alone_can_alternate_and_features_can_be_new():
    block = random_block(200, 400, 8, seed=6)
    whole, mixed = Model("dual-auc"), Model("dual-auc")
    whole.learn(block)
    rows = list(rows_of(block))
    for start in range(0, 200, 20):
        mixed.learn(block[start : start + 7])
        for at, x, label in rows[start + 7 : start + 20]:
            mixed.learn_one(at.tolist(), x.tolist(), label)
    assert same(whole, mixed)
    assert mixed.n_features == block.width


def test_duplicates_are_added_and_whole_numbers_are_values():
    one, other = Model("dual-auc"), Model("dual-auc")
    for model, row in ((one, ([3, 1, 3], [1, 2, 0.5])), (other, ([1, 3], [2.0, 1.5]))):
        for label in (1, 0, True, False, np.int64(1), np.int8(-1), 1.0):
            model.learn_one(*row, label)
    assert same(one, other)


WRONG = {
    "a negative index": ([-1], [1.0], 1, None),
    "an index beyond 2^31 - 2": ([2**31 - 1], [1.0], 1, None),
    "an index beyond 2^63": ([2**63], [1.0], 1, None),
    "an index that is no whole number": ([1.5], [1.0], 1, None),
    "a value that is NaN": ([1], [float("nan")], 1, None),
    "a value beyond float32": ([1], [1e39], 1, None),
    "values that sum beyond float32": ([1, 1], [3e38, 3e38], 1, None),
    "text": ([1], ["a"], 1, None),
    "more values than indices": ([1], [1.0, 2.0], 1, None),
    "a label of two": ([1], [1.0], 2, None),
    "no label": ([1], [1.0], None, None),
    "a label that is text": ([1], [1.0], "1", None),
    "a negative importance": ([1], [1.0], 1, -1.0),
    "an importance that is NaN": ([1], [1.0], 1, float("nan")),
    "a matrix": ([[1]], [[1.0]], 1, None),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_a_block_refuses_is_refused_of_a_row_alone_and_leaves_no_trace(what):
    model = Model("dual-auc")
    for _ in range(2):  # before and after there is a quick way
        with pytest.raises((DataError, TypeError, ValueError, OverflowError)):
            model.learn_one(*WRONG[what])
        before = model.to_bytes()
        model.learn_one([0, 2], [1.0, 2.0], 1)
        assert model.to_bytes() != before
    if WRONG[what][2:] == (1, None):
        with pytest.raises((DataError, TypeError, ValueError, OverflowError)):
            model.score_one(*WRONG[what][:2])
    assert model.rows == 2


def test_a_row_whose_step_overflows_is_refused_by_name():
    model = Model("dual-auc", scale="none")
    model.learn_one([0], [1.0], 1)
    model.learn_one([0], [1.0], -1)
    before = model.to_bytes()
    with pytest.raises(DataError, match=r"Model.learn: row 0 .*has values so large"):
        model.learn_one([0], [1e38], 1)
    assert model.to_bytes() == before
    model.learn_one([0], [1.0], 1)
    assert model.rows == 3


def test_an_empty_row_is_a_row():
    one, other = Model("dual-logistic"), Model("dual-logistic")
    one.learn(Block.of(np.zeros((3, 2)), [1, 0, 1]))
    for label in (1, 0, 1):
        other.learn_one([], [], label)
    assert np.array_equal(one.coef[:0], other.coef[:0])
    assert (one.rows, one.positives, one.threshold) == (other.rows, other.positives, other.threshold)


def test_a_scoring_only_model_scores_rows_alone_and_learns_none():
    block = random_block(60, 50, 6, seed=7)
    model = Model("dual-auc")
    model.learn(block)
    frozen = Model.from_bytes(model.to_bytes(kind="scoring"))
    for _ in range(2):
        assert [frozen.score_one(at, x) for at, x, _ in rows_of(block)] == frozen.score(block).tolist()
        assert frozen.score_one([0, 10**6], [1.0, 3.0]) == frozen.score(Block.of(([0, 2], [0, 10**6], [1.0, 3.0])))[0]
        with pytest.raises(ModelFileError, match="saved for scoring only"):
            frozen.learn_one([0], [1.0], 1)


def test_a_row_with_unseen_features_is_scored_as_in_a_block():
    model = Model("dual-auc")
    for label in (1, -1):
        model.learn_one([0, 5], [1.0, float(label)], label)
    for _ in range(2):
        assert model.score_one([5, 900], [1.0, 2.0]) == model.score(Block.of(([0, 2], [5, 900], [1.0, 2.0])))[0]


def test_a_race_and_its_winner_learn_rows_alone():
    block = random_block(700, 60, 6, seed=8)
    whole, singly = Model("auto"), Model("auto")
    whole.learn(block[:600])
    for at, x, label in list(rows_of(block))[:600]:
        singly.learn_one(at, x, label)
    for model in (whole, singly):
        model.finish_race()
    whole.learn(block[600:])
    for at, x, label in list(rows_of(block))[600:]:
        singly.learn_one(at, x, label)
    assert same(whole, singly)


def test_another_progress_counts_from_then_on():
    model = Model("dual-auc")
    for label in (1, -1, 1):
        model.learn_one([0], [1.0], label)
    model.progress = StreamingAuc()
    for label in (1, -1):
        model.learn_one([0], [1.0], label)
    assert counted(model) == 2


def test_rows_sorted_by_label_are_reported_once():
    model = Model("dual-auc")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(400):
            model.learn_one([0], [1.0], int(i < 200))
    assert [w.category for w in caught] == [SortedRowsWarning]
    assert caught[0].filename == __file__


# -- named rows

NAMED = [
    {"site": "a.com", "price": 3.5, "tags": ["x", "y"], "seen": True},
    {"site": "b.com", "price": None, "user": {"age": 7, "country": "DE"}},
    {"count": 3, "site": "a.com", "words": "été 日本"},
    {},
]


@pytest.mark.parametrize("names", [True, False])
def test_named_rows_alone_are_learned_as_those_of_a_block(names):
    space = Hashed(bits=10, names=names)
    rows = [NAMED[i % 4] for i in range(40)]
    labels = [int(i % 3 == 0) for i in range(40)]
    whole = Model("dual-logistic", features=Hashed(bits=10, names=names))
    scores = whole.learn(Block.of_dicts(rows, labels, features=space))
    singly = Model("dual-logistic", features=Hashed(bits=10, names=names))
    found = []
    for row, label in zip(rows, labels, strict=True):
        before = singly.score_one(row)
        found.append(singly.learn_one(row, label))
        assert found[-1] == before
    assert found == scores.tolist()
    assert np.array_equal(whole.coef, singly.coef)
    slots = np.flatnonzero(whole.coef)
    assert whole.feature_names(slots) == singly.feature_names(slots)


def test_a_named_row_that_cannot_be_encoded_is_refused_and_leaves_no_trace():
    model = Model("dual-auc", features=Hashed(bits=10))
    for label in (1, 0, 1):
        model.learn_one(NAMED[0], label)
    before = model.to_bytes()
    for row, message in (({"a": object()}, "object"), ({1: 2.0}, "int"), ({"a": float("inf")}, "inf")):
        for call in (lambda row=row: model.learn_one(row, 1), lambda row=row: model.score_one(row)):
            with pytest.raises(DataError, match=message):
                call()
    with pytest.raises(DataError, match="the rows have column numbers|column numbers"):
        model.learn_one([1], [1.0], 1)
    assert model.to_bytes() == before


def test_other_mappings_are_named_rows_too():
    from types import MappingProxyType

    one, other = (Model("dual-auc", features=Hashed(bits=10)) for _ in range(2))
    for label in (1, 0, 1):
        one.learn_one(NAMED[0], label)
        other.learn_one(MappingProxyType(NAMED[0]), label)
    assert same(one, other)


# -- threads


def test_while_a_thread_learns_no_other_one_learns_or_scores():
    model = Model("dual-auc")
    model.learn_one([0, 1], [1.0, 2.0], 1)
    model.score_one([0], [1.0])
    assert model._gate.begin_learning()
    try:
        with pytest.raises(ModelBusyError):
            model.learn_one([0], [1.0], 1)
        with pytest.raises(ModelBusyError):
            model.score_one([0], [1.0])
    finally:
        model._gate.end_learning()
    assert model._gate.begin_scoring()
    try:
        assert isinstance(model.score_one([0], [1.0]), float)
        with pytest.raises(ModelBusyError):
            model.learn_one([0], [1.0], 1)
    finally:
        model._gate.end_scoring()
    model.learn_one([0], [1.0], 1)
    assert model.rows == 2


def test_no_row_is_lost_where_threads_take_turns():
    model, learned = Model("dual-auc"), []
    model.learn_one([0], [1.0], 1)

    def learn(number: int) -> None:
        count = 0
        for i in range(300):
            try:
                model.learn_one([number, 10 + i % 7], [1.0, 0.5], i % 2)
                count += 1
            except ModelBusyError:
                pass
        learned.append(count)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=learn, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert model.rows == 1 + sum(learned)
    assert counted(model) == model.rows
    assert model.order.positives + model.order.negatives == model.rows
