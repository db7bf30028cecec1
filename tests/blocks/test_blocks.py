"""Block: the one place where rows are checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rarestream import Block, Columns, DataError, Model, auc, learner_names
from rarestream.blocks import SHARED_FROM, concatenate
from rarestream.errors import RowError
from rarestream.readers.shuffle import shuffled
from rarestream.readers.split import split_blocks
from tests.strategies import block_of, blocks, hashed_block, random_block


def test_every_field_has_one_dtype_whatever_came():
    X = sparse.csr_array(([1, 2], ([0, 1], [3, 0])), shape=(2, 4), dtype=np.int16)
    block = Block.of(X, [True, False], [1, 2], ["a", "b"])
    assert (block.indptr.dtype, block.indices.dtype, block.values.dtype) == (np.int64, np.int32, np.float32)
    assert (block.labels.dtype, block.importances.dtype) == (np.int8, np.float64)
    assert block.labels.tolist() == [1, -1]
    assert block.width == 4


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.sampled_from([1.0, -2.0, 0.5])), max_size=12),
        min_size=1,
        max_size=8,
    )
)
def test_rows_come_out_sorted_with_duplicates_summed(rows):
    indptr = np.cumsum([0] + [len(row) for row in rows])
    pairs = [pair for row in rows for pair in row]
    indices, values = np.array([j for j, _ in pairs], np.int64), np.array([x for _, x in pairs], float)
    given_before = indptr.copy(), indices.copy(), values.copy()
    block = Block.of((indptr, indices, values))
    dense = np.zeros((len(rows), 10))
    for i, row in enumerate(rows):
        for j, x in row:
            dense[i, j] += x
    for i in range(len(rows)):
        at = slice(block.indptr[i], block.indptr[i + 1])
        assert (np.diff(block.indices[at]) > 0).all()
        assert np.array_equal(dense[i, block.indices[at]], block.values[at])
    assert np.array_equal(np.count_nonzero(dense), np.count_nonzero(block.values))
    for before, after in zip(given_before, (indptr, indices, values), strict=True):
        assert np.array_equal(before, after)  # what a user passes in is never changed


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array, np.asarray])
def test_any_matrix_gives_the_same_rows(kind):
    dense = np.array([[0, 1.5, 0], [2, 0, -1], [0, 0, 0]])
    block = Block.of(kind(dense))
    assert np.array_equal(block.to_csr(3).toarray(), dense)


@pytest.mark.parametrize(
    ("X", "rule"),
    [
        (np.array([[np.nan, 1]]), r"row 0, feature 0 has the value nan; values must be finite"),
        (np.array([[1, np.inf]]), r"row 0, feature 1 has the value inf"),
        (np.array([[0, 1e39]]), r"fit in float32"),
        (np.array([1.0, 2.0]), r"2-dimensional"),
        (np.array([["a", "b"]]), r"must be numbers"),
        (np.array([[1j]]), r"Complex data not supported"),
        (
            (np.array([0, 1]), np.array([-1]), np.array([1.0])),
            r"row 0 has feature index -1; indices run from 0",
        ),
        ((np.array([0, 1]), np.array([2**31 - 1]), np.array([1.0])), r"index 2147483647; indices run from 0"),
        ((np.array([0, 2]), np.array([1]), np.array([1.0])), r"indptr must start at 0"),
        ((np.array([0, 2, 1]), np.array([1]), np.array([1.0])), r"indptr must start at 0"),
        ((np.array([0, 1]), np.array([1]), np.array([1.0, 2.0])), r"1 indices but 2 values"),
        ((np.array([0, 1]), np.array([1.5]), np.array([1.0])), r"whole numbers"),
        ((np.array([0, 2]), np.array([1, 1]), np.array([3e38, 3e38])), r"beyond float32"),
        ((np.array([0]),), r"\(indptr, indices, values\)"),
    ],
)
def test_rows_that_break_a_rule_are_refused(X, rule):
    with pytest.raises(DataError, match=rule):
        Block.of(X)


@pytest.mark.parametrize(
    ("labels", "importances", "rule"),
    [
        ([1, 2], None, r"row 1 has the label"),
        ([1, np.nan], None, r"row 1 has the label"),
        ([1], None, r"2 rows need labels of shape \(2,\), got \(1,\)"),
        ([1, -1], [1, -1], r"row 1 has the importance -1.0; importances lie between 1e-100 and 1e\+12"),
        ([1, -1], [np.nan, 1], r"row 0 has the importance nan"),
        ([1, -1], [1], r"2 rows need importances"),
    ],
)
def test_labels_and_importances_that_break_a_rule_are_refused(labels, importances, rule):
    with pytest.raises(DataError, match=rule):
        Block.of(np.eye(2), labels, importances)


def test_labels_that_mix_both_conventions_are_refused():
    with pytest.raises(DataError, match="mix"):
        Block.of(np.eye(3), [-1, 0, 1])


@given(blocks(importances=True), st.data())
def test_cutting_and_joining_gives_the_rows_back(block, data):
    cut = data.draw(st.integers(0, len(block)))
    joined = concatenate([block[:cut], block[cut:]])
    for field in ("indptr", "indices", "values", "labels", "importances"):
        assert np.array_equal(getattr(joined, field), getattr(block, field))


@given(blocks(), st.randoms(use_true_random=False))
def test_take_gives_the_rows_asked_for(block, random):
    order = np.array([random.randrange(len(block)) for _ in range(5)])
    taken = block.take(order)
    dense = block.to_csr(12).toarray()
    assert np.array_equal(taken.to_csr(12).toarray(), dense[order])
    assert np.array_equal(taken.labels, block.labels[order])


def test_blocks_with_and_without_labels_do_not_join():
    with pytest.raises(DataError, match="1 of 2 blocks have labels"):
        concatenate([Block.of(np.eye(2)), Block.of(np.eye(2), [1, -1])])


@pytest.mark.parametrize("importances", [None, np.arange(1.0, 6.0)])
def test_classes_weigh_alike_when_balanced(importances):
    rows = Block.of(np.eye(5), [1, -1, -1, 1, -1], importances=importances)
    weights, positive = rows.balanced().importances, rows.labels > 0
    before = np.ones(5) if importances is None else importances
    assert weights[positive].sum() == pytest.approx(weights[~positive].sum())
    assert weights.sum() == pytest.approx(before.sum())
    assert np.ptp(weights[positive] / before[positive]) == pytest.approx(0)
    assert (rows.importances is None) == (importances is None)


def test_what_has_not_two_classes_is_not_balanced():
    with pytest.raises(DataError, match="without labels"):
        Block.of(np.eye(2)).balanced()
    with pytest.raises(DataError, match="no negative row"):
        Block.of(np.eye(2), [1, 1]).balanced()
    with pytest.raises(DataError, match="no positive row"):
        Block.of(np.eye(2), [1, -1], importances=[0, 1]).balanced()


def refilled(rows: int, k: int = 4) -> tuple[Block, np.ndarray, np.ndarray, np.ndarray]:
    """A Block, and the arrays it was made of."""
    indptr = np.arange(rows + 1, dtype=np.int64) * k
    indices = np.tile(np.arange(k, dtype=np.int32), rows)
    values = np.ones(rows * k, np.float32)
    return Block.of((indptr, indices, values), np.tile([1, -1], rows // 2)), indptr, indices, values


def test_what_happens_to_the_arrays_it_was_made_of_changes_no_block():
    block, indptr, indices, values = refilled(100)
    expected = Model("dual-auc").learn(block)
    indices[:], values[:], indptr[1:-1] = 2**31 - 1, np.nan, -5
    assert Model("dual-auc").learn(block).tolist() == expected.tolist()
    for part in (block.indptr, block.indices, block.values):
        with pytest.raises(ValueError, match="read-only|WRITEABLE"):
            part[:] = 0
    for mine in (block, block.take(np.arange(100))):
        mine.indices.flags.writeable = True  # whoever wants to can
        mine.indices[7] = 2**31 - 1
        with pytest.raises(RowError, match="its arrays have changed"):
            Model("dual-auc").learn(mine)


def test_of_many_rows_only_the_values_stay_where_they_are():
    rows = SHARED_FROM // (4 * 64) + 3000
    block, indptr, indices, values = refilled(rows, 64)
    assert block.own and np.shares_memory(block.values, values)
    expected = Model("dual-auc").learn(block)
    assert expected.tolist() == Model("dual-auc").learn(block.take(np.arange(rows))).tolist()
    indices[:], indptr[1:-1] = 2**31 - 1, -5
    assert Model("dual-auc").learn(block).tolist() == expected.tolist()
    values[64 * 3000 + 5] = np.nan
    model = Model("dual-auc")
    with pytest.raises(RowError, match="have changed since it was made") as error:
        model.learn(block)
    assert error.value.row == model.rows == 3000


def test_many_rows_out_of_order_are_copied_and_put_in_order():
    rows = SHARED_FROM // (4 * 64) + 1
    block, indptr, indices, values = refilled(rows - rows % 2, 64)
    indices[-2:] = indices[-2:][::-1].copy()
    values[-1] = 2.0
    ordered = Block.of((indptr, indices, values))
    assert ordered.own and not np.shares_memory(ordered.values, values)
    assert ordered.indices[-2:].tolist() == [62, 63] and ordered.values[-2:].tolist() == [2.0, 1.0]
    assert ordered.indices.tobytes() == block.indices.tobytes()


@pytest.mark.parametrize("broken", ["indices", "values", "indptr"])
def test_rows_that_are_not_a_blocks_own_are_looked_at_when_they_are_learned_or_scored(broken):
    rows = 3000
    owned, *arrays = refilled(rows, 64)
    block = Block(*arrays, owned.width, owned.labels)
    model = Model("dual-auc")
    assert model.learn(block).tolist() == Model("dual-auc").learn(owned).tolist()
    model = Model("dual-auc")
    at = {"indptr": 0, "indices": 1, "values": 2}[broken]
    arrays[at][len(arrays[at]) * 3 // 4] = {"indptr": 1 << 40, "indices": -7, "values": np.nan}[broken]
    with pytest.raises(RowError, match="have changed since it was made") as error:
        model.learn(block)
    assert error.value.row == model.rows
    assert rows * 3 // 4 - 1 <= model.rows <= rows * 3 // 4 + 1
    with pytest.raises(RowError, match="have changed"):
        model.score(block)
    assert Model.from_bytes(model.to_bytes()).rows == model.rows


def test_a_block_made_of_whatever_its_caller_says_writes_nowhere_else():
    wrong = Block(np.array([0, 1]), np.array([2**30], np.int32), np.ones(1, np.float32), 1, np.ones(1, np.int8))
    for name in learner_names():
        model = Model(name)
        before = model.to_bytes()
        with pytest.raises(RowError, match="has feature index 1073741824"):
            model.learn(wrong)
        assert model.to_bytes() == before
        with pytest.raises(RowError, match="has feature index 1073741824"):
            model.score(wrong)
    past = Block(np.array([0, 9]), np.array([0], np.int32), np.ones(1, np.float32), 1, np.ones(1, np.int8))
    with pytest.raises(RowError, match="indptr must start at 0"):
        Model("dual-auc").learn(past)


@pytest.mark.parametrize("importance", [np.nan, -1.0, 1e300])
def test_an_importance_that_was_never_checked_is_not_learned(importance):
    block = block_of([{0: 1.0}, {1: 1.0}, {0: 2.0}], [1, -1, 1])
    for name in learner_names():
        model = Model(name)
        model.learn(block)
        before = model.to_bytes()
        with pytest.raises(RowError):
            model.learn(replace(block, importances=np.full(3, importance)))
        assert model.to_bytes() == before, name


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (np.ma.array([[1.0, 2.0]], mask=[[True, False]]), "masked array with masked entries. Fill or drop"),
        (np.array([["1", "2.5"]]), "must be numbers, got text"),
        (np.array([["1", 2.5]], object), "must be numbers, got text"),
        (np.array([["2020-01-01", "2021-01-01"]], "datetime64[D]"), "Turn times into numbers"),
        (np.array([[1, 2]], "timedelta64[s]"), "Turn times into numbers"),
    ],
)
def test_what_numpy_would_turn_into_numbers_without_a_word_is_refused(values, rule):
    with pytest.raises(DataError, match=rf"Block: values .*{rule}"):
        Block.of(values)
    row = values[0]
    with pytest.raises(DataError, match=rf"Block: values .*{rule}"):
        Block.of((np.array([0, 2]), np.array([0, 1]), row))
    with pytest.raises(DataError, match=rf"Block: labels .*{rule}"):
        Block.of(np.ones((2, 1)), row)
    with pytest.raises(DataError, match=rf"Block: importances .*{rule}"):
        Block.of(np.ones((2, 1)), [1, 0], row)
    with pytest.raises(DataError, match=rule):
        Model().learn_one([0, 1], row, 1)
    with pytest.raises(DataError, match=rf"auc: labels .*{rule}"):
        auc(row, [1.0, 2.0])
    with pytest.raises(DataError, match=rf"auc: scores .*{rule}"):
        auc([0, 1], row)


def test_masks_and_objects_that_hide_nothing_are_taken():
    assert Block.of(np.ma.array([[1.0, 2.0]])).values.tolist() == [1, 2]
    assert Block.of(np.array([[1, 2.5]], object)).values.tolist() == [1, 2.5]


def test_a_block_says_how_large_it_is_not_what_is_in_it():
    block = block_of([{0: 1.0, 5: 2.0}, {1: 1.0}], [1, -1])
    assert repr(block) == "<Block: 2 rows (1 positive), 3 non-zeros, 6 columns>"
    assert "no labels" in repr(block_of([{0: 1.0}]))


def test_rows_keep_their_feature_space_wherever_they_go():
    block = hashed_block(50, 6)
    space = block.space
    assert space is not None
    for same in (
        block[3:9],
        block.take(np.array([4, 2])),
        block.balanced(),
        block.within(10),
        concatenate([block[:3], block[3:]]),
        replace(block, labels=None),
        *split_blocks([block], 7, 3),
        *shuffled(iter([block[:20], block[20:]]), 1, 10**9),
        *shuffled(iter([block[:20], block[20:]]), 1, 1 << 10),  # through files
    ):
        assert same.space is space
    assert "hashed features with 6 bits" in repr(block)
    assert random_block(3, 5, 2).space is None


def test_rows_of_different_feature_spaces_are_not_joined():
    hashed, columns = hashed_block(5, 6), random_block(5, 20, 3)
    rule = "rows of hashed features with 6 bits and of column numbers cannot be joined"
    with pytest.raises(DataError, match=rule):
        concatenate([hashed, columns])
    with pytest.raises(DataError, match="rows of column numbers and of hashed features with 6 bits cannot"):
        concatenate([columns, hashed])
    with pytest.raises(DataError, match="6 bits and of hashed features with 7 bits"):
        concatenate([hashed, hashed_block(5, 7)])


def test_rows_of_two_spaces_with_the_same_bits_are_joined_with_the_names_of_both():
    one, other = hashed_block(5, 10, words=5), hashed_block(5, 10, words=8)
    joined = concatenate([one, other])
    assert joined.space is one.space
    assert len(one.space.names) == len(other.space.names) == 8


def test_rows_of_dicts_need_a_hashed_space():
    with pytest.raises(TypeError, match=r"Block.of_dicts: features must be a Hashed, got Columns"):
        Block.of_dicts([{"a": "x"}], features=Columns())
