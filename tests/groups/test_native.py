"""merge_tables and mark_features: what they compute, and that no argument makes them read or write elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream._native import mark_features, merge_tables
from tests.strategies import examples

MEAN, ROOT, SUM = 0, 1, 2
RULES = np.array([MEAN, ROOT, SUM], np.int8)


def index(*places: int) -> np.ndarray:
    return np.array(places, np.int32)


@given(
    seed=st.integers(0, 2**32 - 1),
    slots=st.integers(0, 9000),
    dtype=st.sampled_from([np.float32, np.float64]),
    groups=st.integers(0, 4),
)
@settings(max_examples=examples(25))
def test_tables_are_merged_by_the_rules(seed, slots, dtype, groups):
    rng = np.random.default_rng(seed)
    rules = rng.integers(0, 3, rng.integers(1, 6)).astype(np.int8)
    table = abs(rng.normal(size=(slots, len(rules)))).astype(dtype)
    parts = []
    for _ in range(groups):
        at = np.flatnonzero(rng.random(slots) < rng.choice([0.01, 0.5, 1.0])).astype(np.int32)
        parts.append((at, abs(rng.normal(size=(len(at), len(rules)))).astype(dtype), float(rng.random())))
    expected = table.astype(np.float64)
    for column, rule in enumerate(rules):
        base = table[:, column].astype(np.float64)
        total = np.zeros(slots)
        for at, numbers, share in parts:
            x, b = numbers[:, column].astype(np.float64), base[at]
            total[at] += share * (x * x - b * b) if rule == ROOT else share * (x - b) if rule == MEAN else x - b
        expected[:, column] = np.sqrt(np.maximum(base**2 + total, 0)) if rule == ROOT else base + total
    untouched = np.setdiff1d(np.arange(slots), np.concatenate([index(), *(at for at, _, _ in parts)]))
    kept = table[untouched].tobytes()
    merge_tables(table, rules, parts)
    np.testing.assert_allclose(table, expected, rtol=1e-6 if dtype == np.float32 else 1e-12, atol=1e-6)
    assert table[untouched].tobytes() == kept


def numbers(rows: int, columns: int = 3, dtype=np.float64) -> np.ndarray:
    return np.ones((rows, columns), dtype)


@pytest.mark.parametrize(
    "rules, parts, reason",
    [
        (RULES[:2], [], "a rule for each column"),
        (np.zeros(4, np.int8), [], "a rule for each column"),
        (np.array([0, 1, 3], np.int8), [], "no such rule"),
        (np.array([0, -1, 2], np.int8), [], "no such rule"),
        (RULES, [(index(0, 1), numbers(1), 0.5)], "not one row for each index"),
        (RULES, [(index(0), numbers(2), 0.5)], "not one row for each index"),
        (RULES, [(index(0), numbers(1, 2), 0.5)], "other columns"),
        (RULES, [(index(0), numbers(1, 4), 0.5)], "other columns"),
        (RULES, [(index(5), numbers(1), 0.5)], "beyond the table"),
        (RULES, [(index(2**31 - 1), numbers(1), 0.5)], "beyond the table"),
        (RULES, [(index(-1), numbers(1), 0.5)], "beyond the table"),
        (RULES, [(index(-(2**31)), numbers(1), 0.5)], "beyond the table"),
        (RULES, [(index(2, 1), numbers(2), 0.5)], "not above the one before"),
        (RULES, [(index(1, 1), numbers(2), 0.5)], "not above the one before"),
        (RULES, [(index(0), numbers(1), 0.5), (index(0, 9), numbers(2), 0.5)], "beyond the table"),
    ],
)
def test_wrong_parts_are_refused_and_change_nothing(rules, parts, reason):
    table = numbers(5)
    with pytest.raises(ValueError, match=reason):
        merge_tables(table, rules, parts)
    assert (table == 1).all()


@pytest.mark.parametrize(
    "table, rules, part",
    [
        (numbers(5)[0], RULES, (index(0), numbers(1), 0.5)),
        (numbers(5)[:, ::2], RULES[:2], (index(0), numbers(1, 2), 0.5)),
        (np.asfortranarray(numbers(5)), RULES, (index(0), numbers(1), 0.5)),
        (numbers(5).astype(np.int64), RULES, (index(0), numbers(1), 0.5)),
        (numbers(5).astype(np.float16), RULES, (index(0), numbers(1), 0.5)),
        (numbers(5), RULES.astype(np.int64), (index(0), numbers(1), 0.5)),
        (numbers(5), RULES, (index(0), numbers(1, dtype=np.float32), 0.5)),
        (numbers(5), RULES, (index(0).astype(np.int64), numbers(1), 0.5)),
        (numbers(5), RULES, (index(0, 1, 2)[::2], numbers(2), 0.5)),
        (numbers(5), RULES, (index(0), numbers(1)[0], 0.5)),
        (numbers(5), RULES, (index(0), numbers(1), "half")),
        (numbers(5), RULES, (index(0), numbers(1))),
        (numbers(5), RULES, None),
    ],
)
def test_other_types_and_layouts_are_refused(table, rules, part):
    with pytest.raises(TypeError):
        merge_tables(table, rules, [part])


def test_tables_and_parts_may_be_empty():
    merge_tables(numbers(0), RULES, [])
    merge_tables(numbers(0), RULES, [(index(), numbers(0), 0.5)])
    merge_tables(numbers(5, 0), np.zeros(0, np.int8), [(index(0, 4), numbers(2, 0), 0.5)])
    table = numbers(5)
    merge_tables(table, RULES, [(index(), numbers(0), 0.5)] * 3)
    assert (table == 1).all()


def test_a_table_that_cannot_be_written_is_refused():
    table = numbers(5)
    table.flags.writeable = False
    with pytest.raises(TypeError):
        merge_tables(table, RULES, [(index(0), 2 * numbers(1), 0.5)])
    assert (table == 1).all()


def test_marks_are_written_where_features_are():
    marks = np.zeros(6, np.uint8)
    mark_features(index(4, 1, 4), marks)
    assert marks.tolist() == [0, 1, 0, 0, 1, 0]
    mark_features(index(), marks)
    assert marks.sum() == 2
    mark_features(index(), np.zeros(0, np.uint8))


@pytest.mark.parametrize("wrong", [6, 2**31 - 1, -1, -(2**31)])
def test_a_feature_beyond_the_marks_is_refused(wrong):
    marks = np.zeros(6, np.uint8)
    with pytest.raises(ValueError, match="an index is beyond the marks"):
        mark_features(index(2, wrong), marks)


@pytest.mark.parametrize(
    "features, marks",
    [
        (index(1).astype(np.int64), np.zeros(6, np.uint8)),
        (index(0, 1, 2)[::2], np.zeros(6, np.uint8)),
        (index(1), np.zeros(6, np.int8)),
        (index(1), np.zeros(6, np.uint8)[::2]),
        (index(1), np.zeros((6, 1), np.uint8)),
        (index(1), None),
    ],
)
def test_marks_of_another_kind_are_refused(features, marks):
    with pytest.raises(TypeError):
        mark_features(features, marks)


def test_marks_that_cannot_be_written_are_refused():
    marks = np.zeros(6, np.uint8)
    marks.flags.writeable = False
    with pytest.raises(TypeError):
        mark_features(index(1), marks)
    assert not marks.any()
