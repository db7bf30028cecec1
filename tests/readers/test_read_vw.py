"""Vowpal Wabbit text: what a line means, slots as Vowpal Wabbit has them, and what is said of lines that are wrong."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream import Block, DataError, Hashed, Model, _native, read
from rarestream.blocks import concatenate
from rarestream.readers.formats import load_format
from rarestream.readers.parser import ParsedRows, parsed_rows
from rarestream.readers.sources import expand
from rarestream.readers.stream import Stream
from tests.features import textbook as tables
from tests.readers import vw_textbook

BITS = 22
ISAS = ["portable", ""]  # any machine's instructions, and the best of this one
VECTORS = Path(__file__).with_name("vw_slots.tsv")


def parsed(text: bytes, bits: int = BITS, isa: str = "", stop_after: int = 1 << 40) -> ParsedRows:
    parser = _native.VwParser(bits=bits, names=True)
    return parsed_rows(parser.parse(np.frombuffer(text, np.uint8), stop_after=stop_after, isa=isa))


def slot(namespace: str, name: str) -> int:
    return tables.slot(namespace, name, BITS)


def slots_of(rows: ParsedRows | Block) -> list[dict[int, float]]:
    return [
        dict(zip(rows.indices[a:b].tolist(), rows.values[a:b].tolist(), strict=True))
        for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    ]


def one_row(line: str) -> dict[int, float]:
    rows = parsed(line.encode())
    assert not rows.bad
    (row,) = slots_of(rows)
    return row


def stream_of(text: bytes, chunk: int = 1 << 20, **options: Any) -> Stream:
    format = load_format("vw")
    return Stream(expand(io.BytesIO(text)), format, format.make_options(**options), rows=8192, chunk=chunk)


def rows_of(stream: Stream) -> Block:
    blocks = list(stream)
    labelled = all(block.labels is not None for block in blocks)
    return concatenate(blocks if labelled else [replace(block, labels=None) for block in blocks])


# -- what a line means


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1 |a x y", {("a", "x"): 1, ("a", "y"): 1}),
        ("1 |a x:2.5 y:-1e-3", {("a", "x"): 2.5, ("a", "y"): -1e-3}),
        ("1 |a x:+3 y:.5 z:5.", {("a", "x"): 3, ("a", "y"): 0.5, ("a", "z"): 5}),
        ("1 |a:2 x y:3 |b x", {("a", "x"): 2, ("a", "y"): 6, ("b", "x"): 1}),
        ("1 | x y", {("", "x"): 1, ("", "y"): 1}),
        ("1 |a x |b y |a z", {("a", "x"): 1, ("b", "y"): 1, ("a", "z"): 1}),
        ("1 |a x |a x:2 x", {("a", "x"): 4}),
        ("1 |a x|b y:2|c z", {("a", "x"): 1, ("b", "y"): 2, ("c", "z"): 1}),
        ("1 |a\tx\ty:2\t", {("a", "x"): 1, ("a", "y"): 2}),
        ("1 |a   x  y  ", {("a", "x"): 1, ("a", "y"): 1}),
        ("1 |a x:0 y:-0.0 z:1e-60", {}),
        ("1 |a:0 x y:2", {}),
        ("1 |a", {}),
        ("1 |", {}),
        ("1 || |a x", {("a", "x"): 1}),
        ("1 |été naïve:2 日本", {("été", "naïve"): 2, ("été", "日本"): 1}),
        ("1 |a 7 007 3.5 -1", {("a", "7"): 1, ("a", "007"): 1, ("a", "3.5"): 1, ("a", "-1"): 1}),
        ("1 |a x^y 'quoted' \"x\" #", {("a", "x^y"): 1, ("a", "'quoted'"): 1, ("a", '"x"'): 1, ("a", "#"): 1}),
    ],
)
def test_features_are_names_in_namespaces_with_values(line: str, expected: dict[tuple[str, str], float]) -> None:
    wanted = {slot(*feature): float(np.float32(value)) for feature, value in expected.items()}
    assert one_row(line) == dict(sorted(wanted.items()))


def test_features_without_a_name_count_up_from_the_slot_of_their_namespace() -> None:
    first = tables.murmur3("a", 0) & (1 << BITS) - 1
    assert one_row("1 |a :2 x :0 :3") == {first: 2, first + 2: 3, slot("a", "x"): 1}
    assert one_row("1 | :2 :3 |a :5 |a :7") == {0: 2, 1: 3, first: 12}
    assert [name for _, name in parsed(b"1 |a :2 :3 x").names.to_list()] == ["a^:0", "a^:1", "a^x"]


@pytest.mark.parametrize(
    ("head", "label", "importance", "tag"),
    [
        ("1 ", 1, 1, ""),
        ("-1 ", -1, 1, ""),
        ("+1 ", 1, 1, ""),
        ("0 ", 0, 1, ""),
        ("2.5e1 ", 25, 1, ""),
        ("", None, 1, ""),
        ("  1  ", 1, 1, ""),
        ("1 0.25 ", 1, 0.25, ""),
        ("1 0 ", 1, 0, ""),
        ("1 2 0 ", 1, 2, ""),
        ("1 'id7", 1, 1, "id7"),
        ("1 'id7 ", 1, 1, "id7"),
        ("1 id7", 1, 1, "id7"),
        ("1 2 id7", 1, 2, "id7"),
        ("1 2 0 'id7", 1, 2, "id7"),
        ("1", None, 1, "1"),
        ("'id7 ", None, 1, "id7"),
        ("'", None, 1, ""),
        ("1 ''", 1, 1, "'"),
        ("1 'a:b'c", 1, 1, "a:b'c"),
        ("1 'größe", 1, 1, "größe"),
    ],
)
def test_before_the_bar_are_label_importance_and_tag(head: str, label: float, importance: float, tag: str) -> None:
    rows = parsed(f"{head}|a x\n1 3 'other|a y".encode())
    assert not rows.bad
    assert np.isnan(rows.labels[0]) if label is None else rows.labels[0] == label
    assert rows.importances is not None and rows.importances.tolist() == [importance, 3]
    assert rows.tags == [tag, "other"]


def test_without_importances_and_tags_there_are_none() -> None:
    rows = parsed(b"1 |a x\n-1 |a y\n")
    assert rows.importances is None and rows.tags is None


def test_lines_end_in_lf_or_cr_lf_and_blank_ones_are_skipped() -> None:
    rows = parsed(b"\n1 |a x\r\n \t\r\n\r\n-1 |a y \r\n\n1 |a z")
    assert not rows.bad
    assert rows.lines.tolist() == [2, 5, 7]
    assert rows.lines_read == 7
    assert slots_of(rows) == [{slot("a", name): 1.0} for name in "xyz"]


def test_a_byte_order_mark_is_no_part_of_the_label() -> None:
    assert rows_of(stream_of(b"\xef\xbb\xbf1 |a x\n-1 |a y\n")).labels.tolist() == [1, -1]  # type: ignore[union-attr]


@pytest.mark.parametrize(("labels", "signs"), [("1 -1 1", [1, -1, 1]), ("0 1 0", [-1, 1, -1]), ("2 3 3", [-1, 1, 1])])
def test_labels_follow_the_rule_of_all_formats(labels: str, signs: list[int]) -> None:
    block = rows_of(stream_of("".join(f"{label} |a x\n" for label in labels.split()).encode()))
    assert block.labels is not None and block.labels.tolist() == signs


def test_rows_without_a_label_are_left_out_and_counted_or_kept_as_unknown() -> None:
    text = b"1 |a x\n'id|a z\n-1 |a y\n|a w\n"
    stream = stream_of(text)
    assert slots_of(rows_of(stream)) == [{slot("a", "x"): 1.0}, {slot("a", "y"): 1.0}]
    assert stream.unlabelled == 2
    assert len(rows_of(stream_of(text, labels="optional"))) == 4


# -- slots


def vectors() -> list[tuple[str, str, int]]:
    lines = VECTORS.read_bytes().decode().split("\n")[:-1]
    return [(namespace, name, int(hashed)) for namespace, name, hashed in (line.split("\t") for line in lines)]


def test_slots_are_those_that_vowpal_wabbit_gave() -> None:
    known = vectors()
    assert len(known) > 400
    rows = parsed("".join(f"1 |{namespace} {name}\n" for namespace, name, _ in known).encode(), bits=30)
    assert rows.indices.tolist() == [hashed for _, _, hashed in known]
    space = Hashed(bits=30)
    assert [space.slot(namespace, name) for namespace, name, _ in known] == [hashed for _, _, hashed in known]


def audit(folder: Path, text: bytes, bits: int = BITS) -> list[list[tuple[int, float]]]:
    """The slots and values of each line, as a real Vowpal Wabbit prints them."""
    path = folder / "rows.vw"
    path.write_bytes(text)
    command = f"-m vowpalwabbit -d {path} --hash all --audit -b {bits} --noconstant --quiet".split()
    out = subprocess.run([sys.executable, *command], capture_output=True, check=True).stdout
    rows = [line[1:].split(b"\t") for line in out.split(b"\n") if line.startswith(b"\t")]
    return [
        [(int(hashed), float(value)) for _, hashed, value, _ in (word.rsplit(b":", 3) for word in row)] for row in rows
    ]


@pytest.mark.skipif(find_spec("vowpalwabbit") is None, reason="needs vowpalwabbit")
def test_slots_and_values_are_those_of_a_real_vowpal_wabbit(tmp_path: Path) -> None:
    drawn = random.Random(3)
    letters = "abcdefghijklmnopqrstuvwxyzABC0123456789_=.-+/?&%#@!$()[]*~^'\";,"
    wide = letters + "éüñßøабвгдκλμν日本語文字한국어ไทยعربي🙂🚀"

    def word(longest: int) -> str:
        pool = drawn.choice([letters, letters, "0123456789", wide])
        return "".join(drawn.choice(pool) for _ in range(drawn.randint(1, longest)))

    lines, features = [], 0
    while features < 10_000:
        # One namespace a line: Vowpal Wabbit prints those with the same first byte together.
        names = [word(drawn.choice([4, 12, 40, 300])) for _ in range(drawn.randint(1, 30))]
        values = [drawn.choice(["", "", ":2", ":-0.5", ":1e-3", ":0.125"]) for _ in names]
        scale = drawn.choice(["", "", "", ":2", ":0.25"])
        namespace = drawn.choice(["", word(1), word(8), word(30)])
        names[0] = drawn.choice([names[0], "" if values[0] else names[0]])
        lines.append(
            f"1 |{namespace}{scale if namespace else ''} " + " ".join(map("".join, zip(names, values, strict=True)))
        )
        features += len(names)
    text = "\n".join(lines).encode() + b"\n"
    theirs = audit(tmp_path, text)
    ours = parsed(text)
    assert not ours.bad
    assert len(theirs) == len(ours.labels)
    for row, expected in zip(slots_of(ours), theirs, strict=True):
        sums: dict[int, float] = {}
        for hashed, value in expected:
            sums[hashed] = sums.get(hashed, 0.0) + value
        assert row == pytest.approx(sums, rel=1e-5)


def test_a_model_of_vw_text_scores_the_same_features_from_a_dict(tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_text("1 |site a.com |device phone\n-1 |site b.com |device phone\n" * 20)
    model = Model("ftrl-auc")
    for block in read(path):
        model.learn(block)
    (block,) = read(path)
    row = {"site": "a.com", "device": "phone"}
    assert model.score_one(row) == pytest.approx(float(model.score(block)[0]))


# -- threads, chunks and instruction sets leave no trace

words = st.text("ab7:.é|'", min_size=1, max_size=5)
numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
    st.integers(-10, 10**20).map(str),
    st.sampled_from(
        ["", "1", "0", "-2.50", "1e5", "3E-07", "+.5", "1e39", "nan", "12345678.12345678", "0.123456789012345678"]
    ),
)
names = st.text(st.characters(codec="utf-8", exclude_characters=" \t:|", exclude_categories=["Cc", "Cs"]), max_size=20)
features = st.builds(lambda name, value: f"{name}:{value}" if value is not None else name, names, st.none() | numbers)
namespaces = st.builds(
    lambda name, scale, found: (
        "|" + name + ("" if scale is None else f":{scale}") + "".join(f" {word}" for word in found)
    ),
    names,
    st.none() | st.none() | numbers,
    st.lists(features, max_size=6),
)
heads = st.builds(" ".join, st.lists(st.one_of(numbers, words), max_size=4).map(lambda found: [*found, ""]))
lines_of_text = st.builds(lambda head, found: head + " ".join(found), heads, st.lists(namespaces, max_size=4))
any_text = st.text("1-. :|'ab\t\r\n\0é", max_size=60)
texts = st.one_of(
    st.lists(lines_of_text, max_size=8).map("\n".join).map(str.encode),
    any_text.map(str.encode),
    st.binary(max_size=40),
)


def check(text: bytes, rows: ParsedRows, bits: int) -> None:
    expected, bad = vw_textbook.parse(text, bits)
    assert [row.line for row in rows.bad] == bad
    assert rows.lines.tolist() == [row.line for row in expected]
    assert [None if np.isnan(label) else label for label in rows.labels] == [row.label for row in expected]
    assert slots_of(rows) == [row.slots for row in expected]
    importances = [1.0] * len(expected) if rows.importances is None else rows.importances.tolist()
    assert importances == [row.importance for row in expected]
    assert ([""] * len(expected) if rows.tags is None else rows.tags) == [row.tag for row in expected]


@given(text=texts, bits=st.sampled_from([1, 5, 22, 30]), isa=st.sampled_from(ISAS))
def test_any_text_is_read_as_the_textbook_reads_it(text: bytes, bits: int, isa: str) -> None:
    check(text, parsed(text, bits, isa), bits)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 100, 1000, 5000])
def test_long_rows_and_long_names(size: int, isa: str) -> None:
    names = " ".join(f"w{i}:{i % 7}.{i}" for i in range(size))
    text = f"1 |a {names} |b {'n' * size}:2 {'é' * size}\n-1 |{'s' * size} x\n" * 3
    rows = parsed(text.encode(), isa=isa)
    check(text.encode(), rows, BITS)


def random_rows(count: int) -> bytes:
    drawn = random.Random(1)
    spaces = ["site", "device", "é", "", "a_long_namespace_name"]
    return "".join(
        f"{drawn.choice([1, -1])} 'r{i}"
        + " ".join(f"|{space} " + " ".join(str(drawn.randrange(200)) for _ in range(3)) for space in spaces)
        + "\n"
        for i in range(count)
    ).encode()


def names_of(stream: Stream) -> list[str | None]:
    assert isinstance(stream.features, Hashed) and stream.features.names is not None
    known = stream.features.names.names(np.arange(1 << 12, dtype=np.int32))
    return [*known, str(stream.features.names.collisions)]


@pytest.mark.parametrize("chunk", [64, 1000, 1 << 14])
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_threads_and_chunks_change_neither_rows_nor_names(threads: int, chunk: int) -> None:
    text = random_rows(500)
    whole = stream_of(text, threads=0, bits=12, positive=1)
    cut = stream_of(text, chunk, threads=threads, bits=12, positive=1)
    one, other = rows_of(whole), rows_of(cut)
    for field in ("indptr", "indices", "values", "labels", "tags"):
        assert getattr(one, field).tolist() == getattr(other, field).tolist(), field
    assert names_of(whole) == names_of(cut)


def test_names_are_remembered_unless_they_are_not_wanted() -> None:
    stream = stream_of(b"1 |site a.com |price:2 usd:3\n-1 | x\n")
    rows_of(stream)
    assert isinstance(stream.features, Hashed) and stream.features.names is not None
    at = np.array([slot("site", "a.com"), slot("price", "usd"), slot("", "x")], np.int32)
    assert stream.features.names.names(at) == ["site^a.com", "price^usd", "^x"]
    unnamed = stream_of(b"1 |site a.com\n-1 | x\n", names=False)
    assert len(rows_of(unnamed)) == 2
    assert isinstance(unnamed.features, Hashed) and unnamed.features.names is None


# -- what is wrong


@pytest.mark.parametrize(
    ("line", "place", "said"),
    [
        (
            b"1 a x",
            "3:1",
            "a row has a bar before its features, as in 1 |site a.com, but this one, which starts with '1'",
        ),
        (b"abc |a x", "3:1", "the label must be a number, got 'abc'. A row without a label starts with the bar"),
        (b"  0x1 |a x", "3:3", "the label must be a number, got '0x1'"),
        (b"'my tag|a x", "3:1", 'the label must be a number, got "\'my"'),
        (b"nan |a x", "3:1", "the label must be a finite number, got 'nan'"),
        (b"1e400 |a x", "3:1", "the label must be a finite number, got '1e400'"),
        (b"1:2:3 |a x", "3:1", "'1:2:3' is not a label of two classes."),
        (b"shared |a x", "3:1", "'shared' is not a label of two classes. Labels of several classes, with costs"),
        (b"1 2 0 4 |a x", "3:7", "a label, an importance and a base come before the bar, but '4' is a fourth word."),
        (b"1 2 0 4 5 'tag|a x", "3:7", "but '4' is a fourth word. Put the bar before the features"),
        (b"1 -2 |a x", "3:3", "must be 0 or a number between 1e-100 and 1e12, got '-2'"),
        (b"1 1e13 |a x", "3:3", "must be 0 or a number between 1e-100 and 1e12, got '1e13'"),
        (b"1 tag |a x", "3:3", "got 'tag'. A tag touches the bar, or starts with an apostrophe"),
        (b"1 2 0.5 |a x", "3:5", "a prediction to start from, got '0.5'. Only 0 is supported: drop it."),
        (b"1\t|a x", "3:2", "a tab before the bar. Vowpal Wabbit would skip all that is before it: use blanks."),
        (b"1 |:2 x", "3:4", "a namespace that has a scale needs a name, as in |price:0.5, got ':2'"),
        (b"1 |a:x y", "3:6", "the scale of a namespace must be a number, got 'x'"),
        (b"1 |a: y", "3:6", "the scale of a namespace must be a number, got ''"),
        (b"1 |a:2:3 y", "3:6", "the scale of a namespace must be a number, got '2:3'"),
        (b"1 |a:inf y", "3:6", "a feature value must be finite, got 'inf'"),
        (b"1 |a:1e39 y", "3:6", "must fit in float32 (up to 3.4e38), got '1e39'"),
        (
            b"1 |site x:abc y",
            "3:11",
            "a feature value must be a number, got 'abc'. For a category, write it into the name",
        ),
        (b"1 |a x: y", "3:8", "a feature value must be a number, got ''"),
        (b"1 |a x:1:2 y", "3:8", "a feature value must be a number, got '1:2'"),
        (b"1 |a x::2|b y", "3:8", "a feature value must be a number, got ':2'"),
        (b"1 |a x:1e |b", "3:8", "a feature value must be a number, got '1e'"),
        (b"1 |a x:0x10", "3:8", "a feature value must be a number, got '0x10'"),
        (b"1 |a : y", "3:7", "a feature value must be a number, got ''"),
        (b"1 |a x:nan", "3:8", "a feature value must be finite, got 'nan'. NaN and infinity have no place"),
        (b"1 |a x:-Infinity", "3:8", "a feature value must be finite, got '-Infinity'"),
        (b"1 |a x:1e39", "3:8", "must fit in float32 (up to 3.4e38), got '1e39'. Scale the values down."),
        (b"1 |a x:1e999", "3:8", "must fit in float32 (up to 3.4e38), got '1e999'"),
        (
            b"1 |a:1e20 x:1e20",
            "3:13",
            "times the scale of its namespace, must fit in float32 (up to 3.4e38), got '1e20'",
        ),
        (b"1 |a x\x00y", "3:7", "control character '\\x00' in the text; this looks like binary data, not VW text."),
        (b"1 |a x\x0by", "3:7", "control character '\\x0b'"),
        (b"1 |a x\ry", "3:7", "control character '\\r'"),
        (b"1\x01 |a x", "3:2", "control character '\\x01'"),
        (b"1 |a x \xff\xfe y", "3:8", "not UTF-8, '\\xff\\xfe y'. Convert the file, for example with iconv"),
        (b"1 |a:3 x:1e38 x:1e38", "3:1", "duplicate features of this row sum to a value beyond float32."),
    ],
)
def test_a_line_that_is_wrong_is_named_with_its_rule(line: bytes, place: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_bytes(b"1 |a x\n-1 |a y\n" + line + b"\n1 |a z\n")
    with pytest.raises(DataError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"{path}:{place}: ")
    assert said in str(caught.value)
    stream = read(path, max_bad_rows=1)
    assert slots_of(rows_of(stream)) == [{slot("a", name): 1.0} for name in "xyz"]


def test_parsing_stops_after_as_many_bad_rows_as_are_wanted() -> None:
    text = b"x\n1 |a x\ny\nz\n1 |a y\n"
    assert [row.line for row in parsed(text, stop_after=2).bad] == [1, 3]
    assert parsed(text, stop_after=2).lines_read == 3


def test_one_label_in_the_first_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_text("3 |a x\n3 |a y\n")
    with pytest.raises(DataError, match=r"rows\.vw:1:1: "):
        list(read(path))


def test_a_model_of_column_numbers_refuses_named_features(tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_text("1 |a x\n-1 |a y\n")
    with pytest.raises(DataError, match="5 bits"):
        Model("ftrl-auc", features=Hashed(bits=5)).learn(next(iter(read(path, bits=6))))


def test_a_line_without_end_is_refused_in_bounded_memory() -> None:
    format = load_format("vw")
    source = expand(io.BytesIO(b"1 |a " + b"x" * 5000))
    stream = Stream(source, format, format.make_options(), rows=8192, chunk=100, longest_line=1000)
    with pytest.raises(DataError, match=r"line longer than 1000 bytes.*vw text"):
        list(stream)


@pytest.mark.parametrize("isa", ISAS)
def test_names_of_all_lengths_have_their_hash(isa):
    """Names are hashed eight at a time, in steps of sixteen bytes, long ones alone: each way gives the same hash."""
    names = [(f"name{size}-" * 200)[:size] for size in (*range(1, 40), *range(60, 70), 200, 1, 3, 500, 16, 32, 48, 64)]
    line = "1 |space " + " ".join(names)
    rows = parsed(line.encode(), isa=isa)
    slots = sorted({slot("space", name) for name in names})
    assert rows.indices.tolist() == slots
    assert parsed(f"{line}\n{line}".encode(), isa=isa).indices.tolist() == 2 * slots  # at the end of a text, and before


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 16, 23, 24, 25, 48, 63, 64, 65, 129])
def test_rows_of_all_lengths_are_sorted_and_duplicates_summed(isa, size):
    written = [f"n{i % size}" for i in range(0, 7 * size, 7)] + ["n0"]
    for names in (dict.fromkeys(written), written):
        expected: dict[int, float] = {}
        for value, name in enumerate(names, 1):
            expected[slot("s", name)] = expected.get(slot("s", name), 0) + value
        features = " ".join(f"{name}:{value}" for value, name in enumerate(names, 1))
        rows = parsed(f"1 |s {features}".encode(), isa=isa)
        assert rows.indices.tolist() == sorted(expected)
        assert slots_of(rows) == [expected]
