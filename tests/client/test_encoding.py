"""Rows become the same JSON with and without msgspec, and what is no row is refused."""

from __future__ import annotations

import datetime
import decimal
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream import DataError
from rarestream.client import encoding
from rarestream.client.encoding import checked_id, checked_importance, checked_label, encoded_row, encoded_rows

plain = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)
rows = st.dictionaries(st.text(), plain | st.lists(plain))
pairs = st.lists(st.tuples(st.integers(0), st.floats(allow_nan=False, allow_infinity=False)))


@given(rows)
def test_a_row_means_the_same_with_and_without_msgspec(row):
    found = json.loads(encoded_row(row))
    assert found == json.loads(json.dumps(row))
    assert list(found) == list(row)
    assert [repr(value) for value in found.values()] == [repr(value) for value in row.values()]


@given(pairs)
def test_pairs_mean_the_same_with_and_without_msgspec(row):
    assert json.loads(encoded_row(row)) == [list(pair) for pair in row]
    assert b"\n" not in encoded_row(row)


def test_without_msgspec_rows_are_encoded_too(monkeypatch):
    monkeypatch.setattr(encoding, "_codec", lambda: (encoding._checked, json.loads))
    assert encoded_row({"a": 1.5, "ä": "ö"}) == b'{"a":1.5,"\\u00e4":"\\u00f6"}'
    assert encoded_row([(1, 2.5)]) == b"[[1,2.5]]"


def test_numbers_of_numpy_are_numbers():
    row = {"a": np.float64(0.1), "b": np.float32(0.1), "c": np.int64(7), "d": np.bool_(True), "e": np.str_("x")}
    assert json.loads(encoded_row(row)) == {"a": 0.1, "b": float(np.float32(0.1)), "c": 7, "d": True, "e": "x"}
    assert encoded_row([(np.int32(3), np.float32(0.5))]) == b"[[3,0.5]]"
    assert encoded_row(np.array([[1, 2.5], [2, 3]])) == b"[[1.0,2.5],[2.0,3.0]]"
    assert [checked_label(one) for one in (np.int8(-1), np.bool_(True), True, 0.0)] == [-1, 1, 1, 0]


@pytest.mark.parametrize(
    "row",
    [
        {"a": float("nan")},
        {"a": float("inf"), "b": None},
        {"a": np.float32("nan")},
        {"a": b"bytes"},
        {"a": decimal.Decimal("1.5")},
        {"a": datetime.date(2026, 1, 1)},
        {"a": {1, 2}},
        {("a", "b"): 1},
        [(1, float("nan"))],
        [(1, 2, 3)],
        [1, 2],
        "a=1",
        b"a",
        17,
        None,
    ],
    ids=repr,
)
def test_what_is_no_row_is_refused_with_its_number(row):
    with pytest.raises(DataError, match=r"^Row 1 cannot be sent: .*\(index, value\)"):
        encoded_rows([{"a": 1}, row])


def test_a_row_that_holds_itself_is_refused():
    row: dict[str, object] = {}
    row["a"] = row
    with pytest.raises(DataError):
        encoded_row(row)


def test_one_row_is_not_taken_for_many():
    with pytest.raises(DataError, match="_one"):
        encoded_rows({"a": 1})


@pytest.mark.parametrize("label", [2, -2, 0.5, "1", None, [], float("nan")], ids=repr)
def test_labels_are_checked(label):
    with pytest.raises(DataError, match="A label must be 1"):
        checked_label(label)


@pytest.mark.parametrize("importance", [-1, float("nan"), 1e13, "x", None], ids=repr)
def test_importances_are_checked(importance):
    with pytest.raises(DataError, match="importance"):
        checked_importance(importance)


@pytest.mark.parametrize("id", ["", "x" * 257, 17, None], ids=lambda id: repr(id)[:10])
def test_ids_are_checked(id):
    with pytest.raises(DataError, match="An id"):
        checked_id(id)
