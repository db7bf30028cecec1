"""JSON lines: against Python's json module and the encoder of dicts, and what is said of lines that are wrong."""

from __future__ import annotations

import gzip
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rarestream import Block, DataError, Hashed, Model, _native, read
from rarestream.blocks import concatenate
from rarestream.readers.formats import load_format
from rarestream.readers.sources import expand
from rarestream.readers.stream import Stream
from tests.features import textbook

CATEGORY, NUMBER, TEXT, DATE, AUTO = 1, 2, 4, 8, 16
FEATURE, LABEL, IMPORTANCE, TAG, IGNORED = range(5)
MANY = 1 << 40


def table_parser(columns: list[tuple[str, int, int]] | None = None, **more: Any) -> _native.TableParser:
    arguments = {
        "bits": 22, "names": True, "columns": columns or [], "crosses": [], "missing": [], "raw": False,
        "counts": False, "open": True, "characters": False, "shortest": 1, "longest": 1,
    }  # fmt: skip
    return _native.TableParser(**(arguments | more))


def parsed(text: str | bytes, parser: _native.TableParser | None = None) -> tuple[Any, ...]:
    data = text.encode() if isinstance(text, str) else text
    return (parser or table_parser()).parse_jsonl(np.frombuffer(data, np.uint8), stop_after=MANY)


def encoded(rows: list[Any], parser: _native.TableParser | None = None) -> tuple[Any, ...]:
    return (parser or table_parser()).encode_dicts(rows, stop_after=MANY)


def features(found: tuple[Any, ...]) -> list[dict[int, float]]:
    indptr, indices, values = found[:3]
    return [dict(zip(indices[a:b].tolist(), values[a:b].tolist(), strict=True)) for a, b in itertools.pairwise(indptr)]


def slots(named: dict[tuple[str, str], float]) -> dict[int, float]:
    return textbook.slots(named, 22)


def names_of(found: tuple[Any, ...], bits: int = 16) -> list[list[Any]]:
    table = _native.NameTable(bits, 1 << 24)
    if found[12] is not None:
        table.add(found[12])
    return [array.tolist() for array in table.to_arrays(np.arange(1 << bits, dtype=np.int32), True)]


def assert_same_rows(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    """JSON text and dicts have the same rows; lines count from 1, dicts from 0."""
    for place in range(4):
        assert np.array_equal(one[place], other[place]), place
    assert np.array_equal(one[4], other[4], equal_nan=True)
    for place in (5, 6, 11):  # importances, tags, texts of labels
        assert str(one[place]) == str(other[place])
    assert np.array_equal(one[7] - 1, other[7])
    assert [bad[0] - 1 for bad in one[10]] == [bad[0] for bad in other[10]]


# -- what objects become


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"site": "a.com"}', {("site", "a.com"): 1}),
        ('{"n": 7}', {("n", "7"): 1, **textbook.number_features("n", 7)}),
        ('{"n": 7.0}', {("n", "7"): 1, **textbook.number_features("n", 7)}),
        ('{"n": 7e0}', {("n", "7"): 1, **textbook.number_features("n", 7)}),
        ('{"n": -0}', {("n", "0"): 1, ("n", "~0"): 1}),
        ('{"p": 3.5}', textbook.number_features("p", 3.5)),
        ('{"p": 1234567890123456789}', textbook.number_features("p", 1234567890123456789)),
        ('{"yes": true, "no": false}', {("yes", "true"): 1, ("no", "false"): 1}),
        ('{"a": null, "b": "", "c": [], "d": {}, "e": [null, ""]}', {}),
        ('{"digits": "7"}', {("digits", "7"): 1}),
        ('{"when": "2026-01-31"}', {("when", "2026-01-31"): 1}),
        ('{"tags": ["x", "y", "x", 7, 2.50, -0, 7.0, true]}', {("tags", t): 1 for t in ("x", "y", "7", "2.5", "0", "true")}),
        ('{"m": {"k": 2, "t": "x", "b": false, "z": 0, "n": null}}', {("m", "k"): 2, ("m", "t=x"): 1, ("m", "b=false"): 1}),
        ('{"m": {"l": [1, "x"]}}', {("m", "l=1"): 1, ("m", "l=x"): 1}),
        (
            '{"user": {"age": 3, "geo": {"country": "DE", "at": {"x": 1.5}}}}',
            {("user", "age"): 3, ("user.geo", "country=DE"): 1, ("user.geo.at", "x"): 1.5},
        ),
        (r'{"caf\u00e9": "\ud83d\ude00\n\"\\\/\b\f\r\t"}', {("café", '\U0001f600\n"\\/\b\f\r\t'): 1}),
        ('{"": "x"}', {("", "x"): 1}),
    ],
)  # fmt: skip
def test_an_object_becomes_features(line: str, expected: dict[tuple[str, str], float]) -> None:
    found = parsed(line)
    assert not found[10]
    assert features(found)[0] == pytest.approx(slots(expected), rel=1e-6)


def test_counts_of_list_elements() -> None:
    assert features(parsed('{"t": ["x", "y", "x"]}', table_parser(counts=True))) == [
        slots({("t", "x"): 2, ("t", "y"): 1})
    ]


def test_columns_follow_the_plan() -> None:
    columns = [
        ("c", CATEGORY, FEATURE), ("n", NUMBER, FEATURE), ("words", TEXT, FEATURE), ("when", DATE, FEATURE),
        ("y", CATEGORY, LABEL), ("w", CATEGORY, IMPORTANCE), ("id", CATEGORY, TAG), ("no", CATEGORY, IGNORED),
    ]  # fmt: skip
    line = {
        "c": 7.25, "n": "3", "words": ["A b", "b c"], "when": "2026-01-02 10:00", "y": 1.0, "w": 2, "id": 17,
        "no": [[{}]], "new": "x",
    }  # fmt: skip
    expected = {
        ("c", "7.25"): 1.0, **textbook.number_features("n", 3), ("words", "a"): 1, ("words", "b"): 1, ("words", "c"): 1,
        **(textbook.date_features("when", "2026-01-02 10:00") or {}),
    }  # fmt: skip
    for is_open in (False, True):
        found = parsed(json.dumps(line), table_parser(columns, open=is_open))
        assert not found[10]
        more = {("new", "x"): 1.0} if is_open else {}
        assert features(found)[0] == pytest.approx(slots(expected | more), rel=1e-6)
        assert (found[11], found[5].tolist(), found[6]) == (["1"], [2.0], ["17"])


def test_blank_lines_line_ends_and_white_space() -> None:
    text = '\n  \n{"a":1}\r\n\t\r\n \t{ "a"\t: [ 1 , 2 ] , "b" : { "c" : 1 } } \r\n{"a":1}'
    found = parsed(text)
    assert not found[10]
    assert found[7].tolist() == [3, 5, 6]
    assert found[9] == 6


# -- against Python's json module

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(10**40), 10**40), st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=8), st.sampled_from(["NA", "5", "2026-01-02", "x", "7.0", ""]),
    st.sampled_from([0.0, -0.0, 5.0, 1e5, 1e16, 9007199254740993.0, 1e-320, 3.4e38, 1e300, 2**53, 2**63, 2**64]),
)  # fmt: skip
keys = st.one_of(st.sampled_from("abcdeywti"), st.text(st.characters(codec="utf-8"), max_size=4))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)
objects = st.dictionaries(keys, values, max_size=8)
COLUMNS = [
    ("a", AUTO, FEATURE), ("b", CATEGORY | NUMBER, FEATURE), ("c", TEXT, FEATURE), ("d", DATE, FEATURE),
    ("e", CATEGORY, FEATURE), ("y", CATEGORY, LABEL), ("w", CATEGORY, IMPORTANCE), ("t", CATEGORY, TAG),
    ("i", CATEGORY, IGNORED),
]  # fmt: skip
plans = st.fixed_dictionaries(
    {
        "columns": st.sampled_from([[], COLUMNS, COLUMNS[:5]]),
        "open": st.booleans(),
        "raw": st.booleans(),
        "counts": st.booleans(),
        "missing": st.sampled_from([[], ["NA", "5", "1e+16"]]),
        "characters": st.booleans(),
    }
)


@given(
    rows=st.lists(objects, max_size=4),
    plan=plans,
    ascii=st.booleans(),
    separators=st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\t")]),
    crossed=st.booleans(),
)
def test_text_and_dicts_have_the_same_rows(
    rows: list[Any], plan: dict[str, Any], ascii: bool, separators: tuple[str, str], crossed: bool
) -> None:
    if crossed and plan["columns"]:
        plan = plan | {"crosses": [("a*e", [0, 4]), ("a*b*c", [0, 1, 2])]}
    text = "\n".join(json.dumps(row, ensure_ascii=ascii, separators=separators) for row in rows)
    one, other = parsed(text, table_parser(**plan)), encoded(rows, table_parser(**plan))
    assert_same_rows(one, other)
    assert [bad[2] for bad in one[10]] == [bad[2] for bad in other[10]]
    assert names_of(one) == names_of(other)
    surveys = (
        _native.survey_jsonl(np.frombuffer(text.encode(), np.uint8), missing=[]),
        _native.survey_dicts(rows, missing=[]),
    )
    assert surveys[0] == surveys[1]


class OurRuleError(Exception):
    """JSON for Python, but not for us."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise OurRuleError
    return dict(pairs)


def no_constant(word: str) -> Any:
    raise OurRuleError


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return (1 + max(map(depth, inner), default=0)) if isinstance(value, dict | list) else 0


def as_row(line: bytes) -> dict[str, Any] | None:
    """The object of a line, if it is one by our rules."""
    try:
        row = json.loads(line.decode(), object_pairs_hook=unique, parse_constant=no_constant)
        json.dumps(row, ensure_ascii=False).encode()  # no halves of surrogate pairs
    except (OurRuleError, ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and depth(row) <= 64 else None


fragments = st.sampled_from(
    [
        *'{}[],:" \t\r0123456789.-+eE\\/bfnrtu\'', "\x00", "\x1f", "\x7f", "é", "\ufeff", "\u2028", '{"a":', '"b":',
        "true", "false", "null", "NaN", "Infinity", "-", "1e5", "0.5", "01", '"x"', "\\u00e9", "\\ud800",
        "\\ud83d\\ude00", '{"a":1}', "[]", "{}", '""', '"a"',
    ]
)  # fmt: skip
texts = st.one_of(
    st.lists(fragments, max_size=12).map("".join),
    st.tuples(st.lists(fragments, max_size=8).map("".join), st.sampled_from(['{"a":%s}', '{"a":[%s]}', '{"a":{"b":%s}}', '{"a":"%s"}', '{%s}'])).map(
        lambda both: both[1] % both[0].replace("%", "")
    ),
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A line of JSON with a few bytes changed."""
    line = bytearray(json.dumps(draw(objects), ensure_ascii=draw(st.booleans())).encode())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(line)))
        what = draw(st.sampled_from(["insert", "delete", "cut"]))
        if what == "insert":
            line[at:at] = draw(fragments).encode()
        elif what == "delete":
            del line[at : at + 1]
        else:
            del line[at:]
    return bytes(line)


@given(line=st.one_of(texts.map(str.encode), damaged(), st.binary(max_size=12)))
@example(b'{"a":1}{"a":1}')
@example(b'{"a":"\xff"}')
@example(b'{"a":"\xed\xa0\x80"}')
@example(b'{"a":' + b"[" * 63 + b"]" * 63 + b"}")
@example(b'{"a":' + b"[" * 64 + b"]" * 64 + b"}")
@example(b'{"a":' * 64 + b"1" + b"}" * 64)
@example(b'{"a":' * 65 + b"1" + b"}" * 65)
def test_what_python_refuses_is_refused_and_what_it_accepts_has_the_features_of_the_dict(line: bytes) -> None:
    line = line.replace(b"\n", b" ")
    if not line.strip(b" \t\r"):
        assert len(parsed(line)[4]) == len(parsed(line)[10]) == 0
        return
    row = as_row(line)
    for parser in (table_parser, lambda: table_parser(open=False)):
        found = parsed(line, parser())
        if row is None:
            assert len(found[10]) == 1 and len(found[4]) == 0
            assert found[10][0][2] >= 20 or found[10][0][2] == 8  # a list in a list, with more that is wrong in it
        else:
            assert_same_rows(found, encoded([row], parser()))


def test_lines_do_not_depend_on_each_other() -> None:
    lines = [
        '{"a": 1, "b": 2}',
        '{"b": 2, "c": "x"}',
        '{"a":',
        '{"c": "y", "a": 1}',
        "",
        '{"é": {"a": [1]}}',
        '{"b": 3}',
    ]
    whole = parsed("\n".join(lines))
    apart = [parsed(line) for line in lines]
    assert features(whole) == [row for found in apart for row in features(found)]
    assert [bad[0] for bad in whole[10]] == [3]


@pytest.mark.parametrize("size", [1, 15, 16, 17, 63, 64, 65, 1000, 100_000])
def test_long_strings_keys_and_lines(size: int) -> None:
    text, key = "é" * (size // 2) + "x" * (size % 2), "k" * size
    rows = [{key: text, "b": [text]}, {key: text + "\n", "c": {text: 1}}, {key + "x": 1, key: 2}]
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    assert_same_rows(parsed(lines), encoded(rows))


def test_keys_that_change_from_row_to_row() -> None:
    rng = np.random.default_rng(1)
    rows = [{f"k{k}": int(k) for k in rng.permutation(12)[: rng.integers(12)]} for _ in range(300)]
    rows += [{f"new {i}": 1, "k1": "x"} for i in range(20_000)]  # more than are remembered
    rows += [{"k1": 5, f"new {i}": 2} for i in range(100)]
    assert_same_rows(parsed("\n".join(map(json.dumps, rows))), encoded(rows))
    twice = "\n".join(map(json.dumps, rows)) + '\n{"new 19999": 1, "k1": 1, "new 19999": 2}\n{"k1": 1, "k1": 1}'
    assert [bad[0] for bad in parsed(twice)[10]] == [len(rows) + 1, len(rows) + 2]


# -- files


def written(folder: Path, text: str | bytes, name: str = "t.jsonl") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def clicks(n: int = 300) -> list[dict[str, Any]]:
    return [
        {
            "site": f"s{i % 7}.com", "price": i / 8, "n": i % 11, "when": f"2026-01-{1 + i % 28:02} 10:{i % 60:02}",
            "tags": [f"t{j}" for j in range(i % 4)], "user": {"age": i % 90, "geo": {"country": "DE" if i % 2 else "FR"}},
            "clicked": "yes" if i % 10 == 0 else "no", **({"rare": i} if i % 50 == 49 else {}),
        }
        for i in range(n)
    ]  # fmt: skip


def lines_of(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def rows_of(stream: Stream) -> Block:
    blocks = list(stream)
    labelled = all(block.labels is not None for block in blocks)
    return concatenate(blocks if labelled else [replace(block, labels=None) for block in blocks])


def assert_same_blocks(one: Block, other: Block) -> None:
    for field in ("indptr", "indices", "values", "labels"):
        assert getattr(one, field).tobytes() == getattr(other, field).tobytes(), field


def small_chunks(path: Path, size: int, **options: Any) -> Stream:
    """A stream of tiny chunks, so that rows of a short file lie in many of them."""
    format = load_format("jsonl")
    return Stream(expand(path), format, format.make_options(**options), rows=8192, chunk=size)


def test_a_file_is_planned_on_its_first_rows(tmp_path: Path) -> None:
    stream = read(written(tmp_path, lines_of(clicks())), label="clicked")
    block = rows_of(stream)
    assert isinstance(stream.features, Hashed) and stream.features.plan is not None
    plan = stream.features.plan
    kinds = {column.name: column.kinds for column in plan.columns}
    assert kinds == {
        "site": CATEGORY, "price": NUMBER, "n": CATEGORY | NUMBER, "when": DATE, "tags": AUTO, "user": AUTO,
        "rare": CATEGORY | NUMBER,
    }  # fmt: skip
    assert plan.open and plan.label == "clicked"
    assert block.labels is not None and int((block.labels > 0).sum()) == 30
    assert stream.notes == ["label 'no' counts as -1 and 'yes' as +1"] or not stream.notes
    assert "user.geo = country=DE" in stream.features.shown(block.indices)


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("size", [400, 1000, 1 << 20])
def test_chunks_and_threads_do_not_matter(tmp_path: Path, size: int, threads: int) -> None:
    path = written(tmp_path, lines_of(clicks()))
    space = Hashed(18)
    rows_of(small_chunks(path, 1 << 20, label="clicked", threads=0, bits=18))
    planned = read(path, label="clicked", features=space)
    whole = rows_of(planned)
    fresh = space.fresh()
    format = load_format("jsonl")
    options = format.make_options(label="clicked", threads=threads)
    cut = Stream(expand(path), format, options, rows=8192, chunk=size, features=fresh)
    assert_same_blocks(whole, rows_of(cut))
    assert fresh.shown(whole.indices) == space.shown(whole.indices)


def test_compressed_files_byte_order_marks_and_suffixes(tmp_path: Path) -> None:
    text = lines_of(clicks()).encode()
    expected = rows_of(read(written(tmp_path, text), label="clicked"))
    for name, data in (
        ("a.ndjson", b"\xef\xbb\xbf" + text),
        ("b.jsonl.gz", gzip.compress(text)),
        ("c.jsonl", text.replace(b"\n", b"\r\n")),
        ("d.jsonl", text[:-1]),
    ):
        assert_same_blocks(expected, rows_of(read(written(tmp_path, data, name), label="clicked")))
    assert_same_blocks(expected, rows_of(read(written(tmp_path, text, "x.log"), format="jsonl", label="clicked")))


def test_dicts_and_lines_give_the_same_model(tmp_path: Path) -> None:
    rows = clicks()
    models = [Model("dual-auc"), Model("dual-auc")]
    for model, stream in zip(
        models, (read(written(tmp_path, lines_of(rows)), label="clicked"), read(rows, label="clicked")), strict=True
    ):
        for block in stream:
            model.learn(block)
    assert models[0].to_bytes() == models[1].to_bytes()
    one = models[0].score_one(rows[5])
    assert one == models[0].score(rows_of(read(rows[5:6], features=models[0].features, labels="optional")))[0]


def test_a_plan_of_a_csv_file_is_followed(tmp_path: Path) -> None:
    table = "site,price,n,clicked\na.com,3.5,7,1\nb.com,4,8,0\n"
    stream = read(written(tmp_path, table, "t.csv"), label="clicked")
    expected = rows_of(stream)
    rows = [
        {"site": "a.com", "price": 3.5, "n": 7, "clicked": 1},
        {"n": 8.0, "new": "x", "price": 4, "site": "b.com", "clicked": 0},
    ]
    for source in (written(tmp_path, lines_of(rows)), rows):
        assert_same_blocks(expected, rows_of(read(source, features=stream.features)))


def test_more_keys_than_a_plan_has(tmp_path: Path) -> None:
    rows = [{f"k{i}": i, "x": i, "clicked": i % 2} for i in range(1100)]
    stream = read(written(tmp_path, lines_of(rows)), label="clicked", categorical=["x"])
    block = rows_of(stream)
    assert isinstance(stream.features, Hashed) and stream.features.plan is not None
    assert [(column.name, column.kinds) for column in stream.features.plan.columns] == [("x", CATEGORY)]
    assert len(block) == 1100


def test_rows_without_a_label_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [{"a": 1, "y": 1}, {"a": 2}, {"a": 3, "y": None}, {"a": 4, "y": 0}]
    stream = read(written(tmp_path, lines_of(rows)), label="y")
    assert len(rows_of(stream)) == 2
    assert stream.unlabelled == 2


def test_invalid_lines_are_skipped_and_do_not_decide_the_plan(tmp_path: Path) -> None:
    text = '{"a": "text", "y": 1\n{"a": 1.5, "y": 1}\n{"a": 2, "y": 0}\n{"a": "x", "y": 0}\n'
    stream = read(written(tmp_path, text), label="y", max_bad_rows=2, numeric=["a"])
    assert len(rows_of(stream)) == 2
    assert stream.refused == 2
    survey = _native.survey_jsonl(np.frombuffer(text[:21].encode(), np.uint8), missing=[])
    assert survey == (0, [])


def test_options_that_name_keys_which_no_row_has(tmp_path: Path) -> None:
    path = written(tmp_path, lines_of(clicks()))
    with pytest.raises(DataError, match="label names the column 'click', which is not there. Did you mean 'clicked'"):
        list(read(path, label="click"))
    with pytest.raises(DataError, match="which column is the label"):
        list(read(path))
    stream = read(path, label="clicked", text=["note"])
    list(stream)
    assert f"{path}: text names 'note', which none of the first rows has." in stream.notes


BAD = [
    ("[1]", 1, "a line must be a JSON object, such as {\"site\": \"a.com\"}, but this one starts with '['. If the file is one array of objects, jq -c '.[]' puts each on a line."),
    ("null", 1, "a line must be a JSON object, such as {\"site\": \"a.com\"}, but this one starts with 'null'."),
    ("\x00", 1, "a line must be a JSON object, such as {\"site\": \"a.com\"}, but this one starts with '\\x00'."),
    ('{"a":1} x', 9, "text after the object, 'x'. Each object must be on a line of its own."),
    ('{"a":1}{"a":1}', 8, "text after the object, '{'. Each object must be on a line of its own."),
    ('{"a":01}', 6, "'01' is not a JSON number: digits, without leading zeros, and digits after a point."),
    ('{"a":1.}', 6, "'1.' is not a JSON number: digits, without leading zeros, and digits after a point."),
    ('{"a":-}', 6, "'-' is not a JSON number: digits, without leading zeros, and digits after a point."),
    ('{"a":1e}', 6, "'1e' is not a JSON number: digits, without leading zeros, and digits after a point."),
    ('{"a":0x10}', 6, "'0x10' is not a JSON number: digits, without leading zeros, and digits after a point."),
    ('{"a":.5}', 6, "a JSON value is expected, got '.5'."),
    ('{"a":+5}', 6, "a JSON value is expected, got '+5'."),
    ('{"a":NaN}', 6, "a JSON value is expected, got 'NaN'. A missing value is null, or a key that is left out."),
    ('{"a":-Infinity}', 6, "'-Infinity' is not a JSON number: digits, without leading zeros, and digits after a point. A missing value is null, or a key that is left out."),
    ('{"a":tru}', 6, "a JSON value is expected, got 'tru'."),
    ('{"a":}', 6, "a JSON value is expected, got '}'."),
    ("{'a':1}", 2, "a key in double quotes is expected, got \"'\". JSON has double quotes."),
    ("{\"a\":'x'}", 6, "a JSON value is expected, got \"'\". JSON has double quotes."),
    ('{"a":1,}', 8, "a key in double quotes is expected, got '}'."),
    ('{"a" 1}', 6, "a colon is expected after a key, got '1'."),
    ('{"a":1 "b":2}', 8, "a comma or } is expected after a value, got '\"'."),
    ('{"a":[1 2]}', 9, "a comma or ] is expected after an element, got '2'."),
    ('{"a":[1}', 8, "a comma or ] is expected after an element, got '}'."),
    ('{"a":{"b":1', 12, "the line ends before its object does. Each object must be on one line; jq -c . puts it there."),
    ("{", 2, "the line ends before its object does. Each object must be on one line; jq -c . puts it there."),
    ('{"a":"x', 6, "the string that starts here, '\"x', is not closed on this line. A line end inside a string must be written \\n."),
    ('{"a":"x\\', 6, "the string that starts here, '\"x\\\\', is not closed on this line. A line end inside a string must be written \\n."),
    ('{"a":"\t"}', 7, "control character '\\t' in a string; it must be written as an escape, such as \\t or \\u0009."),
    ('{"a":"\x00"}', 7, "control character '\\x00' in a string; it must be written as an escape, such as \\t or \\u0009."),
    ('{"a":"\\x41"}', 7, "'\\\\x' is not an escape of JSON. A backslash must be written \\\\."),
    ('{"a":"\\u12g4"}', 7, "'\\\\u12g4' is not an escape of JSON. A backslash must be written \\\\."),
    ('{"a":"x\\ud800y"}', 8, "'\\\\ud800' is half of a surrogate pair, which is no character. Write both halves, or the character itself."),
    ('{"a":"\\udc00\\ud800"}', 7, "'\\\\udc00' is half of a surrogate pair, which is no character. Write both halves, or the character itself."),
    (b'{"a":"\xff"}', 7, "not UTF-8, '\\xff\"}'. Convert the file, for example with iconv -f latin1 -t utf8."),
    ('{"a":1,"b":2,"a":3}', 14, "the key '\"a\"' comes twice in this object. Rename or drop one."),
    ('{"a":1,"\\u0061":3}', 8, "the key '\"\\\\u0061\"' comes twice in this object. Rename or drop one."),
    ('{"m":{"k":1,"k":2}}', 13, "the key '\"k\"' comes twice in this object. Rename or drop one."),
    ('{"m":' * 65 + "1" + "}" * 65, 321, "objects and lists are nested more than 64 deep."),
    ('{"skip":' + "[" * 64 + "]" * 64 + "}", 72, "objects and lists are nested more than 64 deep."),
    ('{"l":[[1]]}', 7, "'l': a list must hold numbers, text or booleans only, got '['."),
    ('{"l":[{"a":1}]}', 7, "'l': a list must hold numbers, text or booleans only, got '{'."),
    ('{"m":{"k":[[1]]}}', 12, "'m': a list must hold numbers, text or booleans only, got '['."),
    ('{"y":[1]}', 1, "column 'y' is a label, importance or tag and must be a single value, got '['."),
    ('{"y":{"a":1}}', 1, "column 'y' is a label, importance or tag and must be a single value, got '{'."),
    ('{"n":"seven"}', 7, "column 'n' has numbers in the first rows, got 'seven'. If it is a category, pass categorical=['n']; if this text means a missing value, missing=['seven']."),
    ('{"n":1e400}', 6, "column 'n': the number '1e400' is too large. Scale the values down."),
    ('{"l":[1e400]}', 7, "column 'l': the number '1e400' is too large. Scale the values down."),
    ('{"m":{"k":1e39}}', 11, "column 'm.k': the number '1e39' is too large. Scale the values down."),
    ('{"n":' + "9" * 5000 + "}", 6, "column 'n': the number '" + "9" * 40 + "'... is too large. Scale the values down."),
]  # fmt: skip


@pytest.mark.parametrize(("line", "column", "message"), BAD, ids=range(len(BAD)))
def test_messages(tmp_path: Path, line: str | bytes, column: int, message: str) -> None:
    data = line.encode() if isinstance(line, str) else line
    path = written(tmp_path, b'{"y": 1, "n": 1.5, "skip": 1}\n\n{"y": 0, "n": 2}\n' + data + b'\n{"y": 0}\n')
    with pytest.raises(DataError) as caught:
        list(read(path, label="y", ignore=["skip"], numeric=["n"]))
    assert str(caught.value) == f"{path}:4:{column}: {message}"


def test_numbers_of_any_size() -> None:
    for digits in (
        "9" * 18,
        "9" * 19,
        "9" * 300,
        "-" + "9" * 20,
        "1" + "0" * 308,
        "0.0" + "1" * 400,
        "1e-400",
        "-0.0",
        "0e5",
    ):
        assert_same_rows(parsed(f'{{"a":{digits}}}'), encoded([json.loads(f'{{"a":{digits}}}')]))
    found = parsed('{"e":' + "9" * 5000 + "}", table_parser([("e", CATEGORY, FEATURE)]))
    assert features(found) == [slots({("e", "9" * 5000): 1})]


def test_a_long_line_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, '{"a": "' + "x" * 5000 + '"}\n')
    format = load_format("jsonl")
    stream = Stream(expand(path), format, format.make_options(label="y"), rows=10, chunk=100, longest_line=1000)
    with pytest.raises(DataError, match="line longer than 1000 bytes; .* and is jsonl text"):
        list(stream)
