"""Every Arrow type becomes the features that the same values have as dicts, whatever the layout of the array."""

from __future__ import annotations

import decimal
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rarestream import Block, DataError, Model, read
from tests.readers.arrow_rows import named, rows_of, same, together

D = decimal.Decimal
INTEGERS = [1, None, 0, 5, -7, 5]
TEXTS = ["a", None, "", "Grüße", "a longer text than twelve bytes", "a"]

# Columns whose values a dict has, too.
COLUMNS: dict[str, pa.Array] = {
    **{f"{kind}": pa.array(INTEGERS, kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{f"{kind}": pa.array([1, None, 0, 5, 200, 5], kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32())},
    "uint64": pa.array([1, None, 0, 2**63 + 1, 10**18, 10**18 - 1], pa.uint64()),
    "large int64": pa.array([2**62, -(2**63), 10**18, 10**18 - 1, -(10**18), None], pa.int64()),
    "float16": pa.array(np.array([1.5, np.nan, 0, -0.25, 6e-8, 60000], np.float16)),
    "float32": pa.array([1.5, None, 0.0, -0.25, 2.0, 1e30], pa.float32()),
    "float64": pa.array([1.5, None, 0.0, -0.1, 1e300, 5e-324], pa.float64()),
    "whole floats": pa.array([1.0, float("nan"), 0.0, -0.0, 7.0, 2.0**60]),
    "boolean": pa.array([True, None, False, True, True, False]),
    "utf8": pa.array(TEXTS),
    "large_utf8": pa.array(TEXTS, pa.large_string()),
    "utf8_view": pa.array(TEXTS, pa.string_view()),
    "dates as text": pa.array(["2024-01-31", None, "2024-02-29 23:59", "", "1969-12-31T00:00:00Z", "2024-01-31"]),
    "digits as text": pa.array(["1", None, "2.5", "", "007", "1"]),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "dictionary of numbers": pa.array(INTEGERS).dictionary_encode(),
    "dictionary with a null": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 2, 1, 0], pa.int8()), pa.array(["x", None, "y"])
    ),
    "null": pa.nulls(6),
    "date32": pa.array([date(2024, 2, 29), None, date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31), date(2000, 1, 1)]),
    "date64": pa.array([date(2024, 2, 29), None, date(1969, 12, 31), date(2000, 1, 1), None, None], pa.date64()),
    **{
        f"timestamp {unit}": pa.array(
            [datetime(2024, 2, 29, 23, 59, 59), None, datetime(1969, 12, 31, 23), datetime(1970, 1, 1), None, None],
            pa.timestamp(unit),
        )
        for unit in ("s", "ms", "us")
    },
    "fractions": pa.array([datetime(2024, 2, 29, 1, 2, 3, 250000), datetime(1969, 1, 1, 0, 0, 0, 1), *[None] * 4]),
    "zone": pa.array([datetime(2024, 2, 29, 23, 59, tzinfo=UTC), *[None] * 5], pa.timestamp("us", "Europe/Berlin")),
    "decimal128": pa.array([D("1.50"), None, D("0.00"), D("-3.00"), D("123456789012345678.25"), D("7.00")]),
    "decimal256": pa.array([D("1.5"), None, D("-0.5"), D("3.0"), D(10) ** 40, D("7.0")], pa.decimal256(60, 1)),
    "list": pa.array([["a", "b", "a"], None, [], [None, ""], ["c"], ["a"]]),
    "large_list": pa.array([[1, 2, 2], None, [], [None, 3], [4], [1]], pa.large_list(pa.int64())),
    "fixed_size_list": pa.array([[1.5, 2.0], None, [0.5, 0.5], [None, 3.0], [4.0, 1.0], [1.5, 7.0]], pa.list_(pa.float64(), 2)),
    "list_view": pa.array([["a", "b"], None, [], ["x"], ["c"], ["a"]], pa.list_view(pa.string())),
    "large_list_view": pa.array([[True, False], None, [], [True], [None], [True]], pa.large_list_view(pa.bool_())),
    "list of dates": pa.array([[date(2024, 1, 1)], None, [], [None], [], [date(2024, 1, 2)]]),
    "list of dictionaries": pa.array([["a"], None, [], ["b", "a"], [None], []], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    "struct": pa.array(
        [{"n": 1, "t": "x", "b": True}, None, {"n": None, "t": None, "b": None}, {"n": 2, "t": "", "b": False}, {"n": 0, "t": "y", "b": None}, {"n": 3, "t": "z", "b": None}]
    ),
    "nested": pa.array(
        [{"p": {"q": 1.5, "l": ["u", "v"]}}, None, {"p": None}, {"p": {"q": None, "l": []}}, {"p": {"q": 2.0, "l": None}}, {"p": {"q": 7.0, "l": ["u"]}}]
    ),
}  # fmt: skip


def table_of(column: pa.Array | pa.ChunkedArray, **others: Any) -> pa.Table:
    return pa.table({"y": [1, 0, 0, 1, 0, 0], "x": column, "z": ["p", "q", None, "p", "q", "p"], **others})


def rows_or_message(source: Any, **options: Any) -> Block | str:
    """The rows, or what is said of one that cannot be read."""
    try:
        return rows_of(source, **options)
    except DataError as error:
        return str(error).partition(": row ")[2]


def test_all_kinds_of_columns_are_here() -> None:
    assert len(COLUMNS) > 35


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(
    "options",
    [{}, {"categorical": ["x"]}, {"numbers": "raw"}, {"missing": ["5", "a", "true"]}, {"counts": True}, {"tag": "x"}],
    ids=str,
)
def test_a_column_has_the_features_of_the_same_values_in_dicts(name: str, options: dict[str, Any]) -> None:
    table = table_of(COLUMNS[name])
    if options == {"tag": "x"} and pa.types.is_nested(table["x"].type):
        return
    if options in ({"categorical": ["x"]}, {"tag": "x"}) and name in ("float16", "float32"):
        return  # a float is called by its shortest name, a dict has doubles
    options = {"label": "y", **options}
    expected, found = rows_or_message(table.to_pylist(), **options), rows_or_message(table, **options)
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return
    same(found, expected)
    assert (found.tags is None) == (expected.tags is None)
    assert found.tags is None or found.tags.tolist() == expected.tags.tolist()


@pytest.mark.parametrize("name", COLUMNS)
def test_a_slice_a_chunk_and_a_run_have_the_same_features(name: str) -> None:
    table = table_of(COLUMNS[name])
    expected = rows_of(table, label="y")
    padding = table.slice(3, 2)
    padded = pa.concat_tables([padding, table, padding]).combine_chunks()
    same(rows_of(padded.slice(2, 6), label="y"), expected)
    same(rows_of(pa.Table.from_batches(table.to_batches(max_chunksize=2)), label="y"), expected)
    same(rows_of(table, label="y", threads=0), expected)


@pytest.mark.parametrize("name", COLUMNS)
def test_the_array_of_a_record_batch_that_is_sliced_twice_is_read_where_it_starts(name: str) -> None:
    batch = table_of(COLUMNS[name]).to_batches()[0]
    rows = batch.to_struct_array().slice(1).slice(1, 3)
    expected = rows_of(pa.Table.from_batches([batch.slice(2, 3)]), label="y")
    same(rows_of(Exported(rows), label="y"), expected)


class Exported:
    """An object with the array interface only."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.array.__arrow_c_array__(requested_schema)


def test_a_null_row_has_no_features() -> None:
    rows = pa.array([{"y": 1, "x": "a"}, None, {"y": 0, "x": "b"}])
    assert named(rows_of(Exported(rows), label="y")) == [{"x = a": 1.0}, {}, {"x = b": 1.0}]


def test_times_are_text_and_durations_seconds() -> None:
    times = [time(13, 5, 59), None, time(0), time(1, 2, 3, 250000), time(23, 59), time(0)]
    spelled = ["13:05:59", None, "00:00:00", "01:02:03.25", "23:59:00", "00:00:00"]
    seconds = [1.5, None, 0.0, 60.0, -7.25, 1.5]
    for unit in ("us", "ns"):
        same(
            rows_of(table_of(pa.array(times, pa.time64(unit))), label="y"),
            rows_of(table_of(pa.array(spelled)), label="y"),
        )
    whole = [None if one is None else one.replace(microsecond=0) for one in times]
    expected = rows_of(table_of(pa.array([text and text.partition(".")[0] for text in spelled])), label="y")
    for unit in ("s", "ms"):
        same(rows_of(table_of(pa.array(whole, pa.time32(unit))), label="y"), expected)
    for unit in ("ms", "us", "ns"):
        found = pa.array([None if one is None else timedelta(seconds=one) for one in seconds], pa.duration(unit))
        same(rows_of(table_of(found), label="y"), rows_of(table_of(pa.array(seconds)), label="y"))


def test_nanoseconds_are_dates() -> None:
    moments = [datetime(2024, 2, 29, 23, 59, 59), None, datetime(1969, 12, 31, 23), datetime(1970, 1, 1), None, None]
    expected = rows_of(table_of(pa.array(moments, pa.timestamp("us"))), label="y")
    same(rows_of(table_of(pa.array(moments, pa.timestamp("ns"))), label="y"), expected)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_bytes_are_text_if_they_are_utf8(kind: pa.DataType) -> None:
    column = pa.array([None if text is None else text.encode() for text in TEXTS], kind)
    same(rows_of(table_of(column), label="y"), rows_of(table_of(pa.array(TEXTS)), label="y"))
    bad = pa.array([b"fine", b"\xff\xfe not text at all", b"fine", None, b"", b"fine"], kind)
    with pytest.raises(DataError, match=r"<frame>: row 1: column 'x' has bytes that are not text in UTF-8, .*ignore"):
        rows_of(table_of(bad), label="y")
    found = read(table_of(bad), label="y", max_bad_rows=1)
    assert len(together(found)) == 5 and found.refused == 1


def test_fixed_bytes_and_dictionaries_of_bytes_are_text_too() -> None:
    texts = ["ab", None, "cd", "ab", "ef", "gh"]
    expected = rows_of(table_of(pa.array(texts)), label="y")
    column = pa.array([None if text is None else text.encode() for text in texts], pa.binary(2))
    same(rows_of(table_of(column), label="y"), expected)
    same(rows_of(table_of(column.cast(pa.binary()).dictionary_encode()), label="y"), expected)
    bad = pa.array([b"a", b"\xff", b"\xff", b"b", None, b"\xff"]).dictionary_encode()
    stream = read(table_of(bad), label="y", max_bad_rows=3, positive=1)
    assert named(together(stream)) == named(
        rows_of(table_of(pa.array(["a", "-", "-", "b", None, "-"])).take([0, 3, 4]), label="y")
    )
    assert stream.refused == 3


def test_text_that_is_valid_only_as_a_whole_is_refused() -> None:
    halves = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer("é".encode())]
    )
    with pytest.raises(DataError, match="not text in UTF-8"):
        rows_of(pa.table({"y": [1, 0], "x": halves}), label="y", positive=1)


def test_the_name_of_a_float_is_its_shortest() -> None:
    column = pa.array([0.1, None, 2.0, 1e-7, 16777216.0, 3.4e38], pa.float32())
    table = table_of(column).drop_columns("z")
    names = [list(row) for row in named(rows_of(table, label="y", categorical=["x"]))]
    assert names == [["x = 0.1"], [], ["x = 2"], ["x = 1e-07"], ["x = 16777216"], ["x = 3.4e+38"]]


def test_decimals_are_called_by_their_value() -> None:
    thousands = pa.array([D(1000), None, D(-2000), *[D(3000)] * 3], pa.decimal128(10, -3))
    same(
        rows_of(table_of(thousands), label="y"),
        rows_of(table_of(pa.array(thousands.to_pylist(), pa.int64())), label="y"),
    )
    lists = pa.array([[D("1.50")], None, [], [D("2.00"), D("-0.05")], [None], []])
    floats = [
        None if row is None else [None if one is None else float(one) for one in row] for row in lists.to_pylist()
    ]
    same(rows_of(table_of(lists), label="y"), rows_of(table_of(pa.array(floats)), label="y"))


def test_maps_are_entries() -> None:
    entries = [[("a", 1.5), ("b", 2.0)], None, [], [("a", None)], [("c", 0.0)], [("b", 7.0)]]
    expected = [
        {"y": y, "x": None if row is None else dict(row)} for y, row in zip([1, 0, 0, 1, 0, 0], entries, strict=True)
    ]
    table = table_of(pa.array(entries, pa.map_(pa.string(), pa.float64()))).drop_columns("z")
    same(rows_of(table, label="y"), rows_of(expected, label="y"))
    same(
        rows_of(pa.concat_tables([table, table]).combine_chunks().slice(3, 6), label="y"),
        rows_of(expected[3:] + expected[:3], label="y"),
    )
    texts = [[(1, "u"), (2, "v")], None, [], [(3, None)], [(1, "w")], []]
    expected = [
        {"y": y, "x": None if row is None else {str(key): value for key, value in row}}
        for y, row in zip([1, 0, 0, 1, 0, 0], texts, strict=True)
    ]
    table = table_of(pa.array(texts, pa.map_(pa.int32(), pa.string()))).drop_columns("z")
    same(rows_of(table, label="y"), rows_of(expected, label="y"))


def test_maps_of_structs_have_longer_paths() -> None:
    kind = pa.map_(pa.string(), pa.struct({"n": pa.int64(), "t": pa.list_(pa.string())}))
    rows = [[("k", {"n": 1, "t": ["u", "v"]}), ("m", {"n": None, "t": None})], None]
    table = pa.table({"y": [1, 0], "x": pa.array(rows, kind)})
    expected = [{"y": 1, "x": {"k": {"n": 1, "t": ["u", "v"]}, "m": {}}}, {"y": 0}]
    same(rows_of(table, label="y"), rows_of(expected, label="y"))


@pytest.mark.parametrize("ends", [pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_runs_are_the_values_they_stand_for(ends: pa.DataType) -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 6], ends), pa.array(["a", None, "b"]))
    plain = pa.array(["a", "a", None, "b", "b", "b"])
    same(rows_of(table_of(runs), label="y"), rows_of(table_of(plain), label="y"))
    batch = pa.record_batch({"y": pa.array([1, 0, 0, 1, 0, 0]), "x": runs})
    expected = rows_of(pa.table({"y": [0, 0, 1, 0], "x": plain.slice(1, 4)}), label="y", positive=1)
    same(rows_of(batch.slice(1, 4), label="y", positive=1), expected)


@pytest.mark.parametrize(
    ("column", "format"),
    [
        (pa.UnionArray.from_sparse(pa.array([0] * 6, pa.int8()), [pa.array([1] * 6)]), r"\+us:0"),
        (pa.array([pa.MonthDayNano((1, 2, 3))] * 6), "tin"),
        (pa.array([[[1]]] * 6), r"\+l"),
        (pa.array([[{"a": 1}]] * 6), r"\+s"),
    ],
    ids=["union", "interval", "list of lists", "list of structs"],
)
def test_a_type_that_cannot_be_a_feature_is_named_with_its_column(column: pa.Array, format: str) -> None:
    table = table_of(column)
    with pytest.raises(DataError, match=rf"<frame>: column 'x': Arrow type '{format}' cannot be a feature.*ignore=\["):
        rows_of(table, label="y")
    same(rows_of(table, label="y", ignore=["x"]), rows_of(table.drop_columns("x"), label="y"))


def test_infinity_is_an_error_unless_it_is_missing() -> None:
    column = pa.array([1.5, float("inf"), 0.0, 1.0, 1.0, 1.0])
    with pytest.raises(DataError, match=r"<frame>: row 1: column 'x' must have finite numbers, got 'inf'"):
        rows_of(table_of(column), label="y")
    for nested in (
        pa.array([[value] for value in column.to_pylist()]),
        pa.array([{"k": value} for value in column.to_pylist()]),
    ):
        with pytest.raises(DataError, match=r"<frame>: row 1: column .* must have finite numbers"):
            rows_of(table_of(nested), label="y")


def test_text_after_numbers_is_an_error_with_its_row() -> None:
    first = pa.table({"y": [1, 0], "x": pa.array([1.5, 2.5])})
    model = rows_of(first, label="y").space
    later = pa.table({"y": [1, 0], "x": pa.array(["3.5", "n/a"])})
    with pytest.raises(DataError, match=r"<frame>: row 1: column 'x' has numbers in the first rows, got 'n/a'"):
        rows_of(later, label="y", features=model)


def test_crosses_of_dictionaries_and_numbers_are_those_of_dicts() -> None:
    rng = np.random.default_rng(1)
    rows = [
        {"y": int(rng.integers(2)), "a": f"v{rng.integers(5)}", "b": f"w{rng.integers(300)}", "n": float(rng.normal())}
        for _ in range(1000)
    ]
    table = pa.Table.from_pylist(rows)
    encoded = table.set_column(1, "a", table["a"].dictionary_encode()).set_column(
        2, "b", table["b"].dictionary_encode()
    )
    options: dict[str, Any] = {"label": "y", "crosses": ["a*b", "a*n"]}
    expected = rows_of(rows, **options)
    same(rows_of(table, **options), expected)
    same(rows_of(encoded, **options), expected)


def test_names_of_rows_that_are_dropped_come_with_the_next_row_that_has_them() -> None:
    rows = [{"y": i % 2, "a": f"v{i // 7}", "n": "x" if i % 3 == 0 else 1.5 + i} for i in range(400)]
    numbers = [row | {"n": 0.5} for row in rows[:4]]
    good = [row for row in rows if row["n"] != "x"]
    space = rows_of(numbers, label="y").space
    assert space is not None
    table = pa.table(
        {
            "y": [row["y"] for row in rows],
            "a": pa.array([row["a"] for row in rows]).dictionary_encode(),
            "n": [str(row["n"]) for row in rows],
        }
    )
    found = rows_of(table, label="y", features=space.fresh(), max_bad_rows=200)
    same(found, rows_of(good, label="y", features=space.fresh()))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_a_character_that_two_rows_share_is_no_text_in_either(kind: pa.DataType) -> None:
    """Together the bytes of both rows are valid UTF-8; each row alone is not."""
    parts = pa.array([b"ok", b"\xc3", b"\xa9", b"ok"], kind)
    table = pa.table({"y": [0, 1, 1, 0], "x": parts})
    with pytest.raises(DataError, match=r"row 1: column 'x' has bytes that are not text in UTF-8"):
        list(read(table, label="y"))
    stream = read(table, label="y", max_bad_rows=2)
    assert sum(map(len, stream)) == 2
    assert stream.refused == 2


def test_a_row_that_is_null_does_not_take_the_name_of_a_category_with_it() -> None:
    """A category whose first row is null as a whole has its name from the next one."""
    values = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1], pa.int8()), pa.array(["a", "b"]))
    labels = pa.array(["no", "yes", "no"])
    rows = pa.StructArray.from_arrays([labels, values], ["y", "x"], mask=pa.array([True, False, False]))
    stream = read(pa.chunked_array([rows]), label="y", positive="yes")
    (block,) = stream
    assert (len(block), stream.unlabelled) == (2, 1)
    model = Model("dual-auc")
    model.learn(block)
    assert sorted(model.feature_names(np.unique(block.indices))) == ["x = a", "x = b"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_first_and_last_moments_have_parts(unit: str) -> None:
    moments = pa.array([-(2**63), 2**63 - 1], pa.int64()).cast(pa.timestamp(unit))
    table = pa.table({"y": [0, 1], "t": moments})
    for options in ({}, {"categorical": ["t"]}):
        (block,) = read(table, label="y", **options)
        assert len(block) == 2 and (np.diff(block.indptr) > 0).all()


def test_a_cross_of_numbers_beyond_float32_is_refused() -> None:
    table = pa.table({"y": [0, 1], "a": [1e30, 2.0], "b": [1e30, 3.0]})
    with pytest.raises(DataError, match=r"row 0: the cross 'a\*b': the product of the numbers .* is beyond float32"):
        list(read(table, label="y", numbers="raw", crosses=["a*b"]))
    table = pa.table({"y": [0, 1], "a": [1.5e39, 2.0]})
    with pytest.raises(DataError, match=r"row 0: column 'a': the number '1.5e\+39' is too large"):
        list(read(table, label="y", numbers="raw"))
