"""Rows in memory: dicts with values of Python, NumPy and pandas, read, learned and scored."""

from __future__ import annotations

import enum
import gc
import math
import sys
from collections import OrderedDict, UserDict, deque, namedtuple
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from rarestream import Block, DataError, Hashed, Model, _native, read
from tests.features import textbook
from tests.readers.test_read_jsonl import (
    AUTO,
    CATEGORY,
    DATE,
    FEATURE,
    NUMBER,
    assert_same_blocks,
    assert_same_rows,
    clicks,
    encoded,
    features,
    rows_of,
    slots,
    table_parser,
)

DAY = datetime(2026, 1, 2, 10, 30)
DAY_FEATURES = textbook.date_features("x", "2026-01-02 10:30") or {}


def whole(n: int) -> dict[tuple[str, str], float]:
    return {("x", str(n)): 1.0, **textbook.number_features("x", n)}


def number(value: float) -> dict[tuple[str, str], float]:
    return textbook.number_features("x", value)


class Colour(enum.IntEnum):
    RED = 3


class Name(str):
    pass


Pair = namedtuple("Pair", "first second")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a.com", {("x", "a.com"): 1}),
        (Name("a.com"), {("x", "a.com"): 1}),
        (np.str_("a.com"), {("x", "a.com"): 1}),
        ("é\U0001f600\0", {("x", "é\U0001f600\0"): 1}),
        ("7", {("x", "7"): 1}),
        ("2026-01-02", {("x", "2026-01-02"): 1}),
        (7, whole(7)),
        (-7, whole(-7)),
        (Colour.RED, whole(3)),
        (7.0, whole(7)),
        (-0.0, whole(0)),
        (3.5, number(3.5)),
        (1e300, number(1e300)),
        (2.0**53, number(2.0**53)),
        (10**17, whole(10**17)),
        (10**18, number(1e18)),
        (2**64, number(2.0**64)),
        (-(2**70), number(-(2.0**70))),
        (True, {("x", "true"): 1}),
        (False, {("x", "false"): 1}),
        (np.int64(7), whole(7)),
        (np.uint8(200), whole(200)),
        (np.uint64(2**64 - 1), number(2.0**64)),
        (np.float64(3.5), number(3.5)),
        (np.float32(3.5), number(3.5)),
        (np.float16(4), whole(4)),
        (np.bool_(True), {("x", "true"): 1}),
        (Decimal("7.00"), whole(7)),
        (Decimal("3.5"), number(3.5)),
        (Decimal("1E+2"), number(100)),
        (Fraction(7, 2), number(3.5)),
        *[(missing, {}) for missing in (None, "", math.nan, np.nan, pd.NaT, pd.NA, np.datetime64("NaT"), Decimal("NaN"), [], {}, set())],
        (DAY, DAY_FEATURES),
        (pd.Timestamp(DAY), DAY_FEATURES),
        (np.datetime64(DAY), DAY_FEATURES),
        (np.datetime64("2026-01-02T10:30:00.000000001"), DAY_FEATURES),
        (datetime(2026, 1, 2, 10, 30, tzinfo=UTC), DAY_FEATURES),
        (datetime(2026, 1, 1, 23, 30, tzinfo=timezone(timedelta(hours=-11))), DAY_FEATURES),
        (date(2026, 1, 2), textbook.date_features("x", "2026-01-02")),
        (np.datetime64("2026-01-02"), textbook.date_features("x", "2026-01-02")),
        (date(1, 1, 1), textbook.date_features("x", "0001-01-01")),
        *[(many, {("x", "1"): 1, ("x", "b"): 1}) for many in ([1, "b", "b"], (1, "b"), {1, "b"}, frozenset({1, "b"}), Pair(1, "b"))],
        ([1.0, 2.5, True, None, math.nan, np.int8(3)], {("x", t): 1 for t in ("1", "2.5", "true", "3")}),
        (np.array([1, 2]), {("x", "1"): 1, ("x", "2"): 1}),
        (np.array(7), whole(7)),
        ([DAY, date(2026, 1, 2)], {("x", "2026-01-02T10:30:00"): 1, ("x", "2026-01-02"): 1}),
        *[(made({"k": 2, "t": "a"}), {("x", "k"): 2, ("x", "t=a"): 1}) for made in (dict, OrderedDict, UserDict, MappingProxyType)],
        ({"k": [1, "a"], "s": {"b", "a"}}, {("x", n): 1 for n in ("k=1", "k=a", "s=a", "s=b")}),
        ({"a": {"b": {"c": 2.5, "d": None}}, "e": True}, {("x.a.b", "c"): 2.5, ("x", "e=true"): 1}),
        ({"big": 2**100, "d": DAY, "f": np.float32(2)}, {("x", "big"): 2.0**100, ("x", "d=2026-01-02T10:30:00"): 1, ("x", "f"): 2}),
    ],
    ids=lambda value: None if "{" in repr(value) else repr(value),  # the order of a set differs from run to run
)  # fmt: skip
def test_a_value_becomes_features(value: Any, expected: dict[tuple[str, str], float]) -> None:
    for rows in ([{"x": value}], [{"x": "before"}, {"x": value}]):
        found = encoded(rows)
        assert not found[10]
        assert features(found)[-1] == pytest.approx(slots(expected), rel=1e-6)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7.0, "7"), (0.1, "0.1"), (1e16, "1e+16"), (1e-7, "1e-07"), (True, "true"), (2**70, str(2**70)), (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5, 250_000), "2026-01-02T03:04:05.25"),
        (datetime(2026, 1, 2, 3, 4, 5, 1, timezone(timedelta(hours=2))), "2026-01-02T01:04:05.000001+00:00"),
    ],
)  # fmt: skip
def test_names_of_values_in_a_column_of_categories(value: Any, text: str) -> None:
    found = encoded([{"x": value}], table_parser([("x", CATEGORY, FEATURE)]))
    assert features(found) == [slots({("x", text): 1})]


def test_a_column_of_numbers_and_one_of_dates_take_text() -> None:
    parser = table_parser([("n", NUMBER, FEATURE), ("d", DATE, FEATURE)])
    found = encoded([{"n": "3.5", "d": "2026-01-02 10:30"}, {"n": 3.5, "d": DAY}], parser)
    assert features(found)[0] == features(found)[1]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (3, "a row must be a dict of names and values, got int."),
        ("text", "a row must be a dict of names and values, got str."),
        ([("a", 1)], "a row must be a dict of names and values, got list."),
        (None, "a row must be a dict of names and values, got NoneType."),
        ({1: 2}, "a key must be text, got int. Convert the keys: {str(key): value for key, value in row.items()}."),
        ({"a": {b"k": 2}}, "a key must be text, got bytes. Convert the keys: {str(key): value for key, value in row.items()}."),
        *[
            ({"a": value}, f"'a' has a value of type {name}, which cannot be a feature. Use text, numbers, booleans, dates, None, or lists and dicts of these.")
            for value, name in ((b"x", "bytes"), (1j, "complex"), (object(), "object"), (UUID(int=1), "UUID"), (timedelta(1), "datetime.timedelta"),
                                (np.complex64(1), "numpy.complex64"), (np.timedelta64(1, "s"), "numpy.timedelta64"), (np.bytes_(b"x"), "numpy.bytes_"),
                                (deque([1]), "collections.deque"), (len, "builtin_function_or_method"), (Decimal("sNaN"), "decimal.Decimal"),
                                (pd.Series([1, 2]), "Series"), ([b"x"], "bytes"))
        ],
        ({"a": {"b": {"c": b""}}}, "'a.b' has a value of type bytes, which cannot be a feature. Use text, numbers, booleans, dates, None, or lists and dicts of these."),
        ({"a": "x\ud800"}, "'a' has text that is not valid Unicode, 'x\\\\ud800': half of a surrogate pair is no character."),
        ({"\ud800": 1}, "a key has text that is not valid Unicode, '\\\\ud800': half of a surrogate pair is no character."),
        ({"a": [[1]]}, "'a': a list must hold numbers, text or booleans only, got '['."),
        ({"a": [{"b": 1}]}, "'a': a list must hold numbers, text or booleans only, got '{'."),
        ({"a": np.zeros((2, 2))}, "'a': a list must hold numbers, text or booleans only, got '['."),
        ({"a": math.inf}, "column 'a' must have finite numbers, got 'inf'. If this text means a missing value, pass missing=['inf']."),
        ({"a": [-math.inf]}, "column 'a' must have finite numbers, got '-inf'. If this text means a missing value, pass missing=['-inf']."),
        ({"a": {"b": math.inf}}, "column 'a.b' must have finite numbers, got 'inf'. If this text means a missing value, pass missing=['inf']."),
        ({"a": {"b": 1e39}}, "column 'a.b': the number '1e+39' is too large. Scale the values down."),
        ({"a": 10**400}, "column 'a': the number '1" + "0" * 39 + "'... is too large. Scale the values down."),
        ({"a": 10**10_000}, "column 'a': the number 'an int of thousands of digits' is too large. Scale the values down."),
    ],
    ids=lambda value: repr(value)[:40] if not isinstance(value, dict | str) else None,
)  # fmt: skip
def test_messages(row: Any, message: str) -> None:
    good = {"a": 1, "y": 1}
    with pytest.raises(DataError) as caught:
        list(read([good, {"y": 0}, row], label="y"))
    assert str(caught.value) == f"<rows>: row 2: {message}"
    with pytest.raises(DataError) as caught:
        Block.of_dicts([good, row])
    assert str(caught.value) == f"Block.of_dicts: row 1: {message}"
    if isinstance(row, dict):
        with pytest.raises(DataError) as caught:
            Model("dual-auc").learn_one(row, 1)
        assert str(caught.value) == f"Model.learn_one: {message}"


def test_dicts_inside_dicts_without_end() -> None:
    row: dict[str, Any] = {}
    row["a"] = row
    with pytest.raises(DataError, match="dicts are nested more than 64 deep"):
        Block.of_dicts([row])
    deep: dict[str, Any] = {"v": 1}
    for _ in range(62):
        deep = {"k": deep}
    assert len(Block.of_dicts([{"x": deep}]).indices) == 1


def test_sets_have_an_order_of_their_own() -> None:
    """The first name of a slot must not depend on the hash seed of the process."""
    names = [f"n{i}" for i in range(50)]
    tables = []
    for elements in (names, names[::-1]):
        space = Hashed(4)
        Block.of_dicts([{"x": set(elements)}], features=space)
        tables.append(space.shown(np.arange(16, dtype=np.int32)))
    assert tables[0] == tables[1]


# -- values whose code runs while their row is encoded


def test_a_value_may_change_its_row_and_the_list_of_rows() -> None:
    rows: list[dict[str, Any]] = []

    class Vandal:
        def __float__(self) -> float:
            rows[0].clear()
            rows.clear()
            gc.collect()
            return 2.5

    rows += [{"a": "".join(["long ", "text"]) * 9, "x": Vandal(), "b": "".join(["y"] * 99)}, {"a": 1}]
    found = encoded(rows)
    assert len(found[4]) == 1
    first = slots({("a", "long text" * 9): 1, **number(2.5)})
    assert first.items() <= features(found)[0].items()


def test_an_inner_dict_may_change() -> None:
    inner: dict[str, Any] = {}

    class Vandal:
        def __index__(self) -> int:
            inner.clear()
            gc.collect()
            return 3

    inner.update({"".join(["ke", "y"]): Vandal(), "other": "".join(["x"] * 30)})
    assert features(encoded([{"m": inner}])) == [slots({("m", "key"): 3})]


def test_an_interrupt_is_raised() -> None:
    class Stop:
        def __float__(self) -> float:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encoded([{"x": Stop()}])


def test_no_reference_is_lost_or_kept() -> None:
    key, text, odd = "".join(["some", " key"]), "".join(["some", " text"]), Decimal("3.5")
    rows = [{key: text, "d": odd, "l": [text], "m": {key: text}, "s": {text}} for _ in range(3)]
    before = [sys.getrefcount(thing) for thing in (key, text, odd)]
    for _ in range(3):
        encoded(rows)
        encoded(rows[:1])
        encoded([*rows, {key: object()}])
        _native.survey_dicts(rows, missing=[])
    assert [sys.getrefcount(thing) for thing in (key, text, odd)] == before


# -- read


def test_a_list_is_planned_and_read_again() -> None:
    rows = clicks()
    stream = read(rows, label="clicked")
    first = rows_of(stream)
    assert stream.fraction == 1
    assert stream.replayable
    assert_same_blocks(first, rows_of(stream))
    assert isinstance(stream.features, Hashed) and stream.features.plan is not None
    assert {column.name: column.kinds for column in stream.features.plan.columns}["tags"] == AUTO
    assert stream.where(5) == "<rows>: row 5"
    assert stream.sources == [{"name": "<rows>", "size": None, "crc32": None}]
    assert [len(block) for block in read(rows, label="clicked", rows=128)] == [128, 128, 44]


@pytest.mark.parametrize(
    "made", [tuple, deque, lambda rows: dict(enumerate(rows)).values()], ids=["tuple", "deque", "view"]
)
def test_other_collections(made: Any) -> None:
    stream = read(made(clicks()), label="clicked")
    assert_same_blocks(rows_of(stream), rows_of(read(clicks(), label="clicked")))
    assert stream.replayable


def test_an_iterator_is_read_once() -> None:
    stream = read(iter(clicks()), label="clicked")
    assert_same_blocks(rows_of(stream), rows_of(read(clicks(), label="clicked")))
    with pytest.raises(DataError, match="<rows>: can be read only once"):
        list(stream)


def test_an_iterator_is_not_read_further_than_needed() -> None:
    taken = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for taken in range(1, 10_001):
            yield {"a": taken, "y": taken % 2}

    stream = iter(read(rows(), label="y", rows=4))
    assert taken == 1
    next(stream)
    assert taken == 4
    next(stream)
    assert taken == 8


def test_an_iterator_is_read_until_its_labels_are_known() -> None:
    rows = [{"a": i, "y": "rare" if i == 300 else "usual"} for i in range(1000)]
    stream = read(iter(rows), label="y", rows=10)
    block = rows_of(stream)
    assert block.labels is not None and np.flatnonzero(block.labels > 0).tolist() == [300]
    with pytest.raises(DataError, match=r"<rows>: row 0: the first 10,000 rows have only the label 'usual'"):
        list(read(iter(rows[:200]), label="y", rows=10))


def test_invalid_rows_are_skipped_and_named() -> None:
    rows: list[Any] = [*clicks(20), 3, {"site": b""}, *clicks(20)]
    stream = read(rows, label="clicked", max_bad_rows=2)
    assert len(rows_of(stream)) == 40
    assert [message.partition(": a")[0].partition(": '")[0] for message in stream.refusals] == [
        "<rows>: row 20",
        "<rows>: row 21",
    ]


def test_rows_are_shuffled_as_in_a_file() -> None:
    block = rows_of(read(clicks(), label="clicked", shuffle=3))
    assert len(block) == 300
    assert block.indices.tobytes() != rows_of(read(clicks(), label="clicked")).indices.tobytes()


def test_what_is_no_source() -> None:
    with pytest.raises(DataError, match="a dict is one row; pass a list of rows"):
        read({"a": 1}, label="y")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="format must be 'rows' for rows in memory"):
        read(clicks(), format="csv", label="y")
    with pytest.raises(DataError, match="format must be one of .*jsonl"):
        read(__file__, format="rows")
    with pytest.raises(DataError, match="no file given"):
        read([], label="y")


# -- rows one by one


def test_rows_one_by_one_follow_the_plan_of_the_model() -> None:
    model = Model("dual-auc")
    stream = read(clicks(), label="clicked")
    for block in stream:
        model.learn(block)
    row = clicks()[7]
    expected = rows_of(read([row], features=model.features, labels="optional"))
    for given in (row, {key: value for key, value in row.items() if key != "clicked"}):
        assert model.score_one(given) == model.score(expected)[0]
        assert np.array_equal(Block.of_dicts([given], features=model.features).indices, expected.indices)
    with pytest.raises(DataError, match="Model.score_one: column 'price' has numbers in the first rows, got 'free'"):
        model.score_one({"price": "free"})


def test_a_space_without_a_plan_takes_each_value_as_it_is() -> None:
    model = Model("dual-auc", features=Hashed(20))
    for x, label in ((7, 1), ("seven", 0), (7.5, 1), ([7], 0), (DAY, 1)):
        model.learn_one({"x": x}, label)
    assert isinstance(model.features, Hashed) and model.features.plan is not None
    assert model.features.plan.open and not model.features.plan.columns


def test_a_block_of_dicts_with_the_label_among_the_values() -> None:
    rows = [{"a": "x", "y": 1}, {"a": "y", "y": 0}, {"a": "z", "y": True}]
    block = Block.of_dicts(rows, "y")
    assert block.labels is not None and block.labels.tolist() == [1, -1, 1]
    assert len(block.indices) == 3
    space = Hashed(18)
    Block.of_dicts([{"a": "q"}], features=space)
    assert len(Block.of_dicts(rows, "y", features=space).indices) == 3
    with pytest.raises(DataError, match="Block.of_dicts: row 1 has no label: 'y' is missing"):
        Block.of_dicts([rows[0], {"a": 1}], "y")


def test_names_of_rows_before_an_invalid_one_are_not_lost() -> None:
    space = Hashed(20)
    with pytest.raises(DataError):
        Block.of_dicts([{"a": "first"}, {"a": b""}], features=space)
    assert space.shown(Block.of_dicts([{"a": "first"}], features=space).indices) == ["a = first"]


def test_many_rows_at_once_and_one_by_one_are_the_same() -> None:
    rows = clicks(100)
    together = encoded(rows)
    assert features(together) == [features(encoded([row]))[0] for row in rows]
    again = encoded([dict(reversed(row.items())) for row in rows])
    assert_same_rows((*together[:7], together[7] + 1, *together[8:]), again)
