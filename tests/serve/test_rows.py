"""Rows of requests are the rows that files of the same text give."""

from __future__ import annotations

import gc
import json
import random
import struct
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rarestream import Block, Columns, Hashed, Model, read
from rarestream.blocks import LARGEST_INDEX, concatenate
from rarestream.features.rows import BY_VALUE
from rarestream.serve.errors import RequestError
from rarestream.serve.rows import DecodedRows, Limits, RowDecoder, RowText

RAWS = msgspec.json.Decoder(list[msgspec.Raw])
LIMITS = Limits()

# Text with escapes and UTF-8, whole numbers, decimals, dates, lists, nested objects, missing and odd values.
ROWS: list[dict[str, Any]] = [
    {"y": 1, "site": "a.com", "age": 31, "price": 3.5, "when": "2026-01-02T10:00:00", "title": "Hello, world"},
    {"y": 0, "site": "café.fr", "price": -0.125, "when": "2026-02-28", "title": 'say "hi"', "tags": ["x", "y", "x"]},
    {"y": 0, "site": "b\n\tc", "age": 0, "price": 4.0, "title": None, "user": {"geo": {"country": "DE"}, "age": 7}},
    {"y": 1, "age": -7, "ok": True, "bad": False, "big": 123456789012345678901234567890, "w": 2.5},
    {"y": 0},
    {"y": 1, "site": "", "price": 0.0, "漢字": "字", "a.b": "dot", "tags": [1, 2.5, True, None]},
]
VW = b"1 2.5 'first|site a.com |user age:31 b\n-1 |site:0.5 a.com:2 a.com:1\n|n x y z\n1 |empty\n"
SVMLIGHT = b"1 1:2 3:4.5\n-1 cost:2.5 7:1e-3 2:1 7:1\n0 # nothing\n3:1 12:2\n"


def row_text(rows: Sequence[Any]) -> RowText:
    return RowDecoder.joined(RAWS.decode(json.dumps(rows).encode()))


def same(a: Block, b: Block) -> bool:
    return (
        np.array_equal(a.indptr, b.indptr)
        and a.indices.tobytes() == b.indices.tobytes()
        and a.values.tobytes() == b.values.tobytes()
        and a.width == b.width
    )


def refused(decoder: RowDecoder, rows: RowText, names: bool = False) -> RequestError:
    with pytest.raises(RequestError) as caught:
        decoder.decode(rows, names=names)
    return caught.value


def known(space: Hashed) -> list[str | None]:
    assert space.names is not None
    return space.names.names(np.arange(space.slots, dtype=np.int32))


def planned(folder: Path, **options: Any) -> Hashed:
    """Return a space whose plan was decided on JSON lines."""
    path = folder / "first.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    space = Hashed(18)
    for _ in read(path, label="y", features=space, **options):
        pass
    return space


# -- the same rows as in a file


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"text": ["title"], "crosses": ["site*age"]},
        {"numbers": "raw", "missing": ["31"]},
        {"importance": "w", "tag": "when", "ignore": ["tags"]},
    ],
)
def test_objects_are_the_rows_of_json_lines(tmp_path: Path, options: dict[str, Any]) -> None:
    space = planned(tmp_path, **options)
    read_rows = concatenate(list(read(tmp_path / "first.jsonl", features=space, labels="optional", **options)))
    decoded = RowDecoder(space, LIMITS).decode(row_text(ROWS), names=False)
    assert same(decoded.block, read_rows)
    assert decoded.block.space is space
    assert decoded.labels is None and decoded.block.labels is None and decoded.names is None
    if "importance" in options:
        assert decoded.importances is not None and read_rows.importances is not None
        assert decoded.importances.tolist() == read_rows.importances.tolist()
    else:
        assert decoded.importances is None


def test_objects_of_a_space_without_a_plan_are_those_of_dicts() -> None:
    rows = [{key: value for key, value in row.items() if key != "y"} for row in ROWS]
    space = Hashed(18)
    other = Hashed(18)
    other.plan = BY_VALUE
    assert same(
        RowDecoder(space, LIMITS).decode(row_text(rows), names=False).block,
        concatenate(list(read(rows, features=other, labels="optional"))),
    )
    assert space.plan is None


def test_vw_lines_are_the_rows_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_bytes(VW)
    space = Hashed(18)
    decoded = RowDecoder(space, LIMITS).decode(RowDecoder.lines("vw", VW), names=True)
    whole = concatenate(list(read(path, features=Hashed(18), labels="optional")))
    assert same(decoded.block, whole)
    assert decoded.labels is not None and decoded.labels.tolist() == [1, -1, 0, 1]
    assert decoded.importances is not None and decoded.importances.tolist() == [2.5, 1, 1, 1]
    assert decoded.block.labels is None  # the third row has none


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight_lines_are_the_rows_of_a_file(tmp_path: Path, first: int) -> None:
    path = tmp_path / "rows.svm"
    path.write_bytes(SVMLIGHT)
    decoder = RowDecoder(Columns(), LIMITS, first_index=first)
    decoded = decoder.decode(RowDecoder.lines("svmlight", SVMLIGHT), names=False)
    whole = concatenate(list(read(path, labels="optional", zero_based=first == 0)))
    assert same(decoded.block, whole)
    assert decoded.labels is not None and decoded.labels.tolist() == [1, -1, -1, 0]
    assert decoded.importances is not None and decoded.importances.tolist() == [1, 2.5, 1, 1]


def ipc(table: Any, **options: Any) -> bytes:
    import pyarrow

    out = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(out, table.schema, options=pyarrow.ipc.IpcWriteOptions(**options)) as stream:
        stream.write_table(table)
    return bytes(out.getvalue())


def arrow_table() -> Any:
    import pyarrow

    return pyarrow.table(
        {
            "y": [1, 0, 1],
            "site": pyarrow.array(["a.com", None, "b.com"]).dictionary_encode(),
            "age": [31, 0, None],
            "price": [3.5, -0.125, 4.0],
            "tags": [["x", "y"], None, []],
            "w": [1.0, 2.5, 0.5],
        }
    )


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_arrow_streams_are_the_rows_of_a_file(tmp_path: Path, compression: str | None) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow

    table = arrow_table()
    path = tmp_path / "rows.arrows"
    path.write_bytes(ipc(table))
    space = Hashed(18)
    whole = concatenate(list(read(path, "arrow", label="y", importance="w", features=space)))
    decoder = RowDecoder(space, LIMITS)
    for body in (
        ipc(table, compression=compression),
        ipc(pyarrow.concat_tables([table[:1], table[1:]]), compression=compression, unify_dictionaries=True),
    ):
        decoded = decoder.decode(decoder.arrow(body), names=False)
        assert same(decoded.block, whole)
        assert decoded.labels is not None and whole.labels is not None and whole.importances is not None
        assert decoded.labels.tolist() == whole.labels.tolist() == decoded.block.labels.tolist()  # type: ignore[union-attr]
        assert decoded.importances is not None and decoded.importances.tolist() == whole.importances.tolist()
    # Rows to predict need no label and no importance, and other columns are ignored.
    others = table.drop_columns(["y", "w"]).append_column("new", pyarrow.array(["n"] * 3))
    assert same(decoder.decode(decoder.arrow(ipc(others)), names=False).block, whole)
    with pytest.raises(RequestError, match="the column 'price' is missing"):
        decoder.decode(decoder.arrow(ipc(table.drop_columns(["price"]))), names=False)


def test_arrow_columns_of_label_and_importance_may_be_named() -> None:
    pytest.importorskip("pyarrow")
    decoder = RowDecoder(Hashed(18), LIMITS)
    text = decoder.arrow(ipc(arrow_table()), label="y", importance="w")
    assert text.rows == 3
    decoded = decoder.decode(text, names=False)  # the text tells: nothing is remembered
    assert decoded.labels is not None and decoded.labels.tolist() == [1, -1, 1]
    assert decoded.importances is not None and decoded.importances.tolist() == [1, 2.5, 0.5]
    rows = [
        {key: row[key] for key in ("site", "age", "price", "tags") if row[key] is not None}
        for row in arrow_table().to_pylist()
    ]
    assert same(decoded.block, decoder.decode(row_text(rows), names=False).block)
    with pytest.raises(RequestError, match="label names the column 'Y', which is not there. Did you mean 'y'?"):
        decoder.arrow(ipc(arrow_table()), label="Y")


def test_arrow_lists_of_column_numbers() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    decoder = RowDecoder(Columns(), LIMITS)
    lists = {"indices": [[3, 1, 3], [], [7]], "values": [[1.5, 2.0, 1.0], [], [-1.0]]}
    for labels, signs in (([1, 0, 1], [1, -1, 1]), ([True, False, None], [1, -1, 0]), (["yes", "no", "1"], [1, -1, 1])):
        table = pyarrow.table({**lists, "label": labels, "w": [1.0, 2.0, 0.0]})
        decoded = decoder.decode(decoder.arrow(ipc(table), importance="w"), names=False)
        assert same(
            decoded.block, Block.of((np.array([0, 3, 3, 4]), np.array([3, 1, 3, 7]), np.array([1.5, 2, 1, -1])))
        )
        assert decoded.labels is not None and decoded.labels.tolist() == signs
        assert decoded.importances is not None and decoded.importances.tolist() == [1, 2, 0]
    for wrong, message in (
        ({"indices": [[1]], "values": [[1.0, 2.0]]}, "row 0: 'indices' and 'values' must be equally long"),
        ({"indices": [[-1]], "values": [[1.0]]}, "row 0 has feature index -1"),
        ({"indices": [[0.5]], "values": [[1.0]]}, "must be whole numbers"),
        ({"indices": [[1]], "values": [[float("nan")]]}, "row 0, feature 1 has the value nan"),
        ({"indices": [[None]], "values": [[1.0]]}, "without nulls"),
        ({"indices": [[1], None], "values": [[1.0], []]}, "row 1: 'indices' is missing"),
        ({"indices": [[1]], "values": [["a"]]}, "must be lists of numbers"),
        ({"a": [1]}, "must have the columns 'indices', lists of whole numbers from 0, and 'values'"),
        ({"indices": [[1 << 25]], "values": [[1.0]]}, "row 0: feature index 33,554,432"),
        ({"indices": [[1]], "values": [[1.0]], "label": [2]}, "row 0: label '2', but a label is 1"),
        ({"indices": [[1]], "values": [[1.0]], "label": [[1]]}, "the column of the label must be numbers"),
    ):
        with pytest.raises(RequestError, match=message.replace("[", "\\[")):
            decoder.decode(decoder.arrow(ipc(pyarrow.table(wrong))), names=False)


def test_a_damaged_arrow_body_is_refused_and_harms_nobody() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    decoders = [RowDecoder(Hashed(18), LIMITS), RowDecoder(Columns(), LIMITS)]
    tables = [arrow_table(), pyarrow.table({"indices": [[1, 2], [3]], "values": [[1.0, 2.0], [3.0]], "label": [1, 0]})]
    chosen = random.Random(7)
    bodies = [ipc(table, compression=compression) for table in tables for compression in (None, "lz4", "zstd")]
    for trial in range(3000):
        body = bytearray(bodies[trial % 6])
        for _ in range(chosen.randrange(1, 4)):
            body[chosen.randrange(len(body))] = chosen.choice([0, 1, 2, 8, 127, 128, 255, chosen.randrange(256)])
        if trial % 5 == 0:
            del body[chosen.randrange(len(body)) :]
        decoder = decoders[trial % 6 // 3]
        with suppress(RequestError):  # nothing else
            decoder.decode(decoder.arrow(bytes(body)), names=trial % 2 == 0)


def test_an_arrow_body_is_as_large_as_it_is_when_decompressed() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"a": ["x" * 1_000_000], "d": pyarrow.array(["y"]).dictionary_encode()})
    for compression in (None, "lz4", "zstd"):
        body = ipc(table, compression=compression)
        with pytest.raises(RequestError, match="1,000,.* bytes; a request has at most 500,000") as caught:
            RowDecoder(Hashed(18), Limits(body=500_000)).arrow(body)
        assert caught.value.status == 413


# -- pairs


def plain_pairs(row: Any, limits: Limits) -> list[tuple[int, float]] | None:
    """Return the pairs of a row, or None if it is none: plain Python, written only to be read."""
    if not isinstance(row, list) or len(row) > limits.nonzeros:
        return None
    for pair in row:
        if not isinstance(pair, list) or len(pair) != 2:
            return None
        index, value = pair
        if type(index) is not int or not 0 <= index < min(limits.features, LARGEST_INDEX + 1):
            return None
        if type(value) not in (int, float) or not abs(value) < 3.4028235677973366e38:
            return None
    return [(index, float(value)) for index, value in row]


NUMBERS = (
    st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(width=32, allow_nan=False, allow_infinity=False)
)
PAIR = st.tuples(st.integers(0, 40) | st.integers(0, LIMITS.features - 1), NUMBERS).map(list)
ODD = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=4) | st.integers(2**31 - 3, 2**31),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)


@given(
    st.lists(
        st.lists(PAIR | st.tuples(ODD, ODD).map(list) | ODD, max_size=6) | st.lists(PAIR, max_size=12), max_size=5
    ),
    st.sampled_from(["", " ", "\n", "\t \r\n"]),
)
@example([[[0, 1], [0, -1.5]], []], "")
@example([[[3, 3e38], [3, 3e38]]], "")
@example([[[True, 1]]], "")
@example([[[1, 2, 3]]], "")
def test_pairs_are_read_as_plain_python_reads_them(rows: list[Any], blank: str) -> None:
    decoder = RowDecoder(Columns(), LIMITS)
    text = json.dumps(rows, separators=(blank + "," + blank, ":"))
    found = [plain_pairs(row, LIMITS) for row in rows]
    joined = RowDecoder.joined(RAWS.decode(text.encode()))
    expected = None
    if None not in found:
        starts = np.cumsum([0, *(len(row) for row in found if row is not None)])
        flat = [pair for row in found if row is not None for pair in row]
        try:
            expected = Block.of(
                (starts, np.array([i for i, _ in flat], np.int64), np.array([x for _, x in flat], np.float64))
            )
        except ValueError:
            expected = None  # a sum beyond float32
    if expected is None:
        error = refused(decoder, joined)
        assert error.status == 422 and error.row is not None
        assert None not in found or error.row <= found.index(None)
    else:
        assert same(decoder.decode(joined, names=False).block, expected)


@pytest.mark.parametrize(
    "row, message",
    [
        ("[[-1, 1]]", "a feature index must not be negative, got '-1'."),
        ("[[0, 1], [1.5, 1]]", "a feature index must be a whole number, got '1.5'."),
        ("[[true, 1]]", "a feature index must be a whole number, got 'true'."),
        ('[["a", 1]]', "a feature index must be a whole number, got '\"a\"'."),
        ("[[1e3, 1]]", "a feature index must be a whole number, got '1e3'."),
        (f"[[{2**31 - 1}, 1]]", "feature index '2147483647' is too large; this service takes indices below 16,777,216."),
        (f"[[{10**40}, 1]]", "is too large"),
        ("[[1, null]]", "a feature value must be a number, got 'null'."),
        ("[[1, false]]", "a feature value must be a number, got 'false'."),
        ("[[1, NaN]]", "got 'NaN'. NaN and infinity have no place in a dot product"),
        ("[[1, -Infinity]]", "got '-Infinity'. NaN and infinity"),
        ("[[1, 1e39]]", "a feature value must fit in float32 (up to 3.4e38), got '1e39'."),
        ("[[1, 01]]", "a feature value must be a number, got '01'."),
        ("[[1, 3e38], [1, 3e38]]", "duplicate features of this row sum to a value beyond float32."),
        ("[1, 2]", "an entry must be [index, value], such as [7, 1.5], got '1'."),
        ("[[1]]", "an entry must be [index, value]"),
        ("[[1, 2, 3]]", "an entry must be [index, value]"),
        ("[[1, 2] [3, 4]]", "a comma or ] is expected after an entry, got '[3'."),
        ("[[1, 2]] 3", "text after the row, '3'."),
        ("[[1, 2]", "the row ends before its list does."),
        ("[[1", "the row ends before its list does."),
        ('"a"', "a row must be a list of [index, value], such as [[0, 1.5], [7, 1]], but this one starts with '\"a\"'."),
        ('{"a": 1}', "the model has column numbers: a row must be a list of [index, value], such as [[0, 1.5], [7, 1]], got an object."),
    ],
)  # fmt: skip
def test_invalid_pairs_are_refused_with_row_and_value(row: str, message: str) -> None:
    error = refused(RowDecoder(Columns(), LIMITS), RowText("json", b"[[0, 1]]\n" + row.encode(), 2))
    assert error.row == 1 and error.code == "bad_rows" and error.status == 422
    assert str(error).startswith("row 1: ") and message in str(error)


# -- refusals


@pytest.mark.parametrize(
    "row, message",
    [
        ('{"a": 1, "a": 2}', "the key '\"a\"' comes twice in this object. Rename or drop one."),
        ('{"a": NaN}', "a JSON value is expected, got 'NaN'. A missing value is null, or a key that is left out."),
        ('{"a": 01}', "'01' is not a JSON number"),
        ('{"a": "\\ud800"}', "is half of a surrogate pair"),
        ('{"n": "abc"}', "column 'n' has numbers in the first rows, got 'abc'."),
        ('{"a": [[1]]}', "'a': a list must hold numbers, text or booleans only, got '['."),
        ('{"a": 1', "the line ends before its object does"),
        ("[[1, 2]]", 'the model has hashed features with 18 bits: a row must be an object, such as {"site": "a.com", "price": 3.5}, got a list.'),
    ],
)  # fmt: skip
def test_invalid_objects_are_refused_in_the_words_of_the_readers(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"y": 1, "n": 1.5, "a": "x"}\n{"y": 0, "n": 2.5, "a": "y"}\n')
    space = Hashed(18)
    list(read(path, label="y", features=space))
    error = refused(RowDecoder(space, LIMITS), RowText("json", b'{"a": "x"}\n' + row.encode(), 2))
    assert error.row == 1 and error.status == 422 and error.code == "bad_rows"
    assert str(error).startswith("row 1: ") and message in str(error)
    assert "categorical=" not in str(error)  # the plan is fixed: no option helps


@pytest.mark.parametrize("row", [b"1", b'"text"', b"null", b"true", b"-1.5"])
@pytest.mark.parametrize("before", [0, 3, 40])
def test_rows_that_are_neither_objects_nor_lists_are_refused(row: bytes, before: int) -> None:
    raws = RAWS.decode(b"[" + b'{"a": 1},' * before + row + b',{"a":1}]')
    with pytest.raises(RequestError, match="a row must be an object") as caught:
        RowDecoder.joined(raws)
    assert caught.value.row == before and row.decode() in str(caught.value)


def test_rows_of_other_features_are_refused() -> None:
    hashed, columns = RowDecoder(Hashed(18), LIMITS), RowDecoder(None, LIMITS)
    assert "VW lines have named features, but the model has column numbers" in str(
        refused(columns, RowText("vw", b"1 |a b", 1))
    )
    assert "svmlight lines have column numbers, but the model has hashed features" in str(
        refused(hashed, RowText("svmlight", b"1 1:1", 1))
    )
    assert "feature index 0, but the columns of the model count from 1" in str(
        refused(RowDecoder(Columns(1), LIMITS), RowText("svmlight", b"1 1:1\n1 0:1", 2))
    )


def test_json_over_several_lines_is_one_row_each() -> None:
    body = json.dumps(ROWS[:3], indent=1).encode()
    text = RowDecoder.joined(RAWS.decode(body))
    assert text.rows == 3 and text.text.count(b"\n") == 2
    decoder = RowDecoder(Hashed(18), LIMITS)
    assert same(decoder.decode(text, names=False).block, decoder.decode(row_text(ROWS[:3]), names=False).block)


def test_blank_lines_and_comments_are_no_rows() -> None:
    assert RowDecoder.lines("json", b'\xef\xbb\xbf{"a":1}\r\n\n  \n{"b":2}\n').rows == 2
    assert RowDecoder.lines("svmlight", b"# heading\n1 1:1\n\n").rows == 1
    assert RowDecoder.lines("vw", b"") == RowText("vw", b"", 0)


def test_no_rows_are_no_rows() -> None:
    for space, formats in ((Hashed(18), ("json", "vw")), (Columns(), ("json", "svmlight"))):
        for format in formats:
            assert len(RowDecoder(space, LIMITS).decode(RowText(format, b"", 0), names=True)) == 0
    assert RowDecoder.joined([]) == RowText("json", b"", 0)


def test_a_text_with_another_number_of_rows_is_refused() -> None:
    error = refused(RowDecoder(Hashed(18), LIMITS), RowText("json", b'{"a":1}\n{"a":2}', 1))
    assert str(error) == "1 rows are announced, but there are 2."


# -- labels


def test_labels_count_as_in_the_files_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_bytes(b"1 |a b\n2 |a c\n" * 3)
    model = Model("dual-auc")
    stream = read(path)
    for block in stream:
        model.learn(block)
    decoder = RowDecoder(model.features, LIMITS, classes=(1.0, 2.0))
    decoded = decoder.decode(RowText("vw", b"1 |a b\n2 |a c\n|a d", 3), names=False)
    assert decoded.labels is not None and decoded.labels.tolist() == [-1, 1, 0]
    assert "label 0, but 2 counts as +1 and 1 as -1, as in the data learned before" in str(
        refused(decoder, RowText("vw", b"2 |a b\n0 |a b", 2))
    )
    usual = RowDecoder(model.features, LIMITS).decode(RowText("vw", b"1 |a\n0 |a\n-1 |a", 3), names=False)
    assert usual.labels is not None and usual.labels.tolist() == [1, -1, -1]


def test_the_decoder_of_a_model_knows_its_files(tmp_path: Path) -> None:
    from rarestream.evaluate import TrainingRun

    path = tmp_path / "rows.svm"
    path.write_text("1 1:1 2:1\n2 2:1 3:1\n" * 20)
    model = Model("dual-auc")
    run = TrainingRun(model, read(path))
    for _ in run:
        pass
    decoded = RowDecoder.of_model(model, LIMITS).decode(RowText("svmlight", b"2 1:1\n1 3:1", 2), names=False)
    assert decoded.block.indices.tolist() == [0, 2]
    assert decoded.labels is not None and decoded.labels.tolist() == [1, -1]


# -- limits


def test_limits_hold_for_every_format() -> None:
    few = Limits(rows=2, nonzeros=3, name_bytes=10, body=1000, features=100)
    hashed, columns = RowDecoder(Hashed(18), few), RowDecoder(Columns(), few)
    for decoder, text, status, message in (
        (hashed, RowText("json", b'{"a":1}\n' * 2 + b'{"a":1}', 3), 413, "3 rows; a request has at most 2"),
        (hashed, RowText("json", b'{"a":"' + b"x" * 1000 + b'"}', 1), 413, "bytes; a request has at most 1,000"),
        (hashed, RowText("json", b'{"a":"x"}\n{"a":["b","c","d","e"]}', 2), 422, "row 1: this row has too many features. There are more than 3."),
        (hashed, RowText("json", b'{"a":{"b":1,"c":1,"d":1,"e":1}}', 1), 422, "more than 3"),
        (hashed, RowText("json", b'{"a":"b","c":"d","e":"f","g":"h"}', 1), 422, "more than 3"),
        (hashed, RowText("json", b'{"a":"' + b"x" * 11 + b'"}', 1), 422, "row 0: a name of 'a' is too long, 'xxxxxxxxxxx'. It has more than 10 bytes."),
        (hashed, RowText("json", b'{"' + b"x" * 11 + b'":1}', 1), 422, "is too long"),
        (hashed, RowText("json", b'{"a":["' + b"x" * 11 + b'"]}', 1), 422, "is too long"),
        (hashed, RowText("json", b'{"a":{"' + b"x" * 11 + b'":1}}', 1), 422, "is too long"),
        (hashed, RowText("json", b'{"a":{"xxxxx":{"yyyyy":{"z":1}}}}', 1), 422, "is too long"),
        (hashed, RowText("vw", b"1 |a b\n1 |a " + b"x" * 11, 2), 422, "row 1: the word 'xxxxxxxxxxx' is too long"),
        (hashed, RowText("vw", b"1 |a b c d e", 1), 422, "row 0: 4 features; a row has at most 3."),
        (columns, RowText("json", b"[[1,1],[2,1],[3,1],[4,1]]", 1), 422, "There are more than 3"),
        (columns, RowText("json", b"[[100,1]]", 1), 422, "below 100"),
        (columns, RowText("svmlight", b"1 1:1\n1 1:1 100:1", 2), 422, "row 1: feature index 100, but this service takes indices below 100"),
        (columns, RowText("svmlight", b"1 1:1 2:1 3:1 4:1", 1), 422, "4 features"),
    ):  # fmt: skip
        error = refused(decoder, text)
        assert error.status == status and message in str(error)
    # At the limit.
    assert (
        len(hashed.decode(RowText("json", b'{"a":"xxxxxxxxxx","xxxxxxxxxx":"y"}\n{"a":["b","c","d"]}', 2), names=True))
        == 2
    )
    assert len(columns.decode(RowText("json", b"[[99,1],[2,1],[3,1]]", 1), names=True)) == 1


def test_text_that_is_split_into_words_may_be_longer_than_a_name(tmp_path: Path) -> None:
    space = planned(tmp_path, text=["title"])
    decoder = RowDecoder(space, Limits(name_bytes=20, nonzeros=50))
    assert len(decoder.decode(row_text([{"title": "word and " * 20}]), names=True)) == 1
    assert "more than 50" in str(refused(decoder, row_text([{"title": " ".join(map(str, range(51)))}])))


def test_a_huge_row_takes_no_more_than_its_limit_of_features(tmp_path: Path) -> None:
    space = planned(tmp_path, text=["title"], ngrams="chars:1-16")
    text = json.dumps({"title": " ".join(str(number * 7919) for number in range(300_000))}).encode()
    error = refused(RowDecoder(space, LIMITS), RowText("json", text, 1), names=True)
    assert "more than 10,000" in str(error)
    deep = b'{"a":' * 1_000_000
    assert "more than 64 deep" in str(refused(RowDecoder(space, LIMITS), RowText("json", deep, 1)))


# -- names


def test_names_are_those_of_the_text_whatever_was_decoded_before(tmp_path: Path) -> None:
    space = planned(tmp_path)
    fresh = space.fresh()
    decoder = RowDecoder(fresh, LIMITS)
    for text in (row_text(ROWS), RowText("vw", VW.strip(), 4)):
        assert decoder.decode(text, names=False).names is None
        for _ in range(3):  # each time all of them: a record may be decoded and then not be learned
            decoded = decoder.decode(text, names=True)
            assert decoded.names is not None
            one, other = Hashed(18), Hashed(18)
            assert one.names is not None and other.names is not None
            one.names.add(decoded.names)
            assert fresh.names is not None and len(fresh.names) == 0  # decoding adds nothing
            again = RowDecoder(fresh, LIMITS).decode(text, names=True)
            assert again.names is not None
            other.names.add(again.names)
            assert known(one) == known(other) and len(one.names) > 3
            refused(decoder, RowText("json", b'{"new name": "x", "price": 7.25, "a": [[]]}', 1), names=True)


def test_names_added_in_order_are_those_of_the_reader(tmp_path: Path) -> None:
    space = planned(tmp_path)
    other = space.fresh()
    decoder = RowDecoder(other, LIMITS)
    assert other.names is not None
    for row in ROWS:
        decoded = decoder.decode(row_text([row]), names=True)
        if decoded.names is not None:
            other.names.add(decoded.names)
    assert known(other) == known(space)


def test_a_space_without_names_collects_none() -> None:
    decoder = RowDecoder(Hashed(18, names=False), LIMITS)
    assert decoder.decode(row_text(ROWS), names=True).names is None
    assert RowDecoder(Columns(), LIMITS).decode(RowText("json", b"[[1,2]]", 1), names=True).names is None


# -- threads


def test_threads_decode_at_once(tmp_path: Path) -> None:
    space = planned(tmp_path)
    decoder = RowDecoder(space, LIMITS)
    texts = [row_text(ROWS * count) for count in (1, 7, 200)] + [RowText("vw", VW.strip(), 4)]
    expected = [decoder.decode(text, names=True) for text in texts]

    def decode(number: int) -> bool:
        decoded: DecodedRows = decoder.decode(texts[number % 4], names=number % 3 == 0)
        return same(decoded.block, expected[number % 4].block) and (decoded.names is not None) == (number % 3 == 0)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(decode, range(400)))


# -- one row in one call


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
)
OBJECTS = st.dictionaries(
    st.sampled_from(["site", "age", "price", "when", "title", "tags", "user", "y", "new", 'od"d\\'])
    | st.text(max_size=4),
    st.recursive(
        VALUES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    ),
    max_size=8,
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Model]:
    folder = tmp_path_factory.mktemp("models")
    found = []
    for options in ({}, {"text": ["title"], "crosses": ["site*age"]}, {"numbers": "raw"}):
        space = planned(folder, **options)
        model = Model("dual-auc", features=space)
        for block in read(folder / "first.jsonl", label="y", features=space, **options):
            model.learn(block)
        found.append(model)
    unplanned = Model("dual-logistic", features=Hashed(18))
    unplanned.learn(_labelled(unplanned))
    found.append(unplanned)
    return found


def _labelled(model: Model) -> Block:
    from dataclasses import replace

    block = RowDecoder(model.features, LIMITS).decode(row_text(ROWS), names=False).block
    return replace(block, labels=np.array([1, -1, -1, 1, -1, 1], np.int8))


@given(st.lists(OBJECTS, min_size=1, max_size=4))
@example([{"site": "a.com"}, {"site": "a.com", "price": 3.5}])
@example([{"age": 10**400}])
def test_a_row_alone_is_scored_as_in_a_block(models: list[Model], rows: list[dict[str, Any]]) -> None:
    for model in models:
        decoder = RowDecoder(model.features, LIMITS)
        for row in [*ROWS, *rows]:
            check_one(model, decoder, json.dumps(row).encode())
            check_one(model, decoder, json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def check_one(model: Model, decoder: RowDecoder, text: bytes) -> None:
    """Check that a row scored in one call has the bits of a block of one row, or that it goes the long way."""
    score = decoder.score_one(model, text)
    try:
        block = decoder.decode(RowText("json", text, 1), names=False).block
        expected = float(model.score(block)[0])
    except (RequestError, ValueError):
        assert score is None
        return
    assert score is not None
    assert struct.pack("<d", score) == struct.pack("<d", expected)


@given(st.lists(st.lists(PAIR | ODD, max_size=5), max_size=4))
def test_pairs_alone_are_scored_as_in_a_block(rows: list[Any]) -> None:
    decoder = RowDecoder(Columns(), LIMITS)
    for row in rows:
        text = json.dumps(row).encode()
        score = decoder.score_one(COLUMN_MODEL, text)
        try:
            block = decoder.decode(RowText("json", text, 1), names=False).block
            expected = float(COLUMN_MODEL.score(block)[0])
        except (RequestError, ValueError):
            assert score is None
            continue
        assert score == expected or (score is None and block.width > COLUMN_MODEL.n_features)


def column_model() -> Model:
    model = Model("dual-auc", n_features=50)
    values = np.random.default_rng(3).normal(size=(40, 41))
    model.learn(Block.of(values, (values[:, 0] > 0).astype(int)))
    return model


COLUMN_MODEL = column_model()


def test_a_row_alone_goes_the_long_way_if_it_is_unusual(models: list[Model]) -> None:
    model = models[0]
    decoder = RowDecoder(model.features, LIMITS)
    assert decoder.score_one(model, b'{"site": "a.com"}') is not None
    for text in (
        b"",
        b"\n",
        b"[[1, 2]]",
        b'{"a": 1}\n{"a": 2}',
        b'{"a": 1,\n"b": 2}',
        b"{",
        b'{"a": "' + b"x" * 1001 + b'"}',
    ):
        assert decoder.score_one(model, text) is None
    assert RowDecoder(model.features, Limits(body=10)).score_one(model, b'{"site": "a.com"}') is None
    columns = RowDecoder(Columns(), LIMITS)
    for text in (b'{"a": 1}', b"[[-1, 1]]", b"[[40, 1], [100, 1]]", b"[[0, 1]]\n[[0, 1]]"):
        assert columns.score_one(COLUMN_MODEL, text) is None
    assert columns.score_one(COLUMN_MODEL, b"[]") == 0


def test_a_row_alone_follows_what_the_model_learns() -> None:
    model = Model("dual-auc", features=Hashed(18))
    block = _labelled(model)
    decoder = RowDecoder(model.features, LIMITS)
    for _ in range(3):
        check_one(model, decoder, json.dumps(ROWS[0]).encode())
        model.learn(block)
    assert model.rows == 18


def test_many_new_keys_do_not_stay(models: list[Model]) -> None:
    model = models[-1]
    decoder = RowDecoder(model.features, LIMITS)
    for start in range(0, 40_000, 4_000):
        row = {f"key{number}": "x" for number in range(start, start + 4_000)}
        check_one(model, decoder, json.dumps(row).encode())
    check_one(model, decoder, json.dumps(ROWS[1]).encode())


def test_a_decoder_that_is_dropped_is_freed_at_once():
    gc.collect()
    gc.disable()  # no look for cycles: there must be none
    try:
        decoder = RowDecoder(Hashed(), Limits())
        decoder.decode(RowText("json", b'{"a": "b"}', 1), names=True)
        seen = weakref.ref(decoder)
        del decoder
        assert seen() is None
    finally:
        gc.enable()
