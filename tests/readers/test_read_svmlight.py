"""svmlight text to rows: what is read, and that how it is read leaves no trace."""

from __future__ import annotations

import io

import numpy as np
import pytest
import svmlight_textbook as textbook
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file
from svm_rows import FLOATS, ROWS, plain, same, stream_of, text_of_rows

from rarestream import _native
from rarestream.readers import read
from rarestream.readers.text import ParsedRows

GOLDEN = b"""\xef\xbb\xbf# a comment, with 3:4 in it
+1 1:0.5 3:-2 10:1e-3\r
-1 qid:7 cost:2.5 2:1   4:.25\t# trailing: 9:9

\t 1 5:1 2:4 5:0.5
-1
1 3:12345678 4:0.04331085600000001#close
-1 2147483647:1"""


def parsed(text: bytes, **options: object) -> ParsedRows:
    return ParsedRows(*_native.parse_svmlight(np.frombuffer(text, np.uint8), **options))


def test_golden_text_gives_its_rows() -> None:
    (block,) = read(io.BytesIO(GOLDEN))
    assert block.labels is not None
    assert block.importances is not None
    assert block.tags is not None
    assert block.labels.tolist() == [1, -1, 1, -1, 1, -1]
    assert block.indptr.tolist() == [0, 3, 5, 7, 7, 9, 10]
    assert block.indices.tolist() == [0, 2, 9, 1, 3, 1, 4, 2, 3, 2**31 - 2]
    expected = [0.5, -2, 1e-3, 1, 0.25, 4, 1.5, 12345678, 0.04331085600000001, 1]
    assert block.values.tolist() == np.float32(expected).tolist()
    assert block.importances.tolist() == [1, 2.5, 1, 1, 1, 1]
    assert block.tags.tolist() == [-1, 7, -1, -1, -1, -1]
    assert block.width == 2**31 - 1


@pytest.mark.parametrize("isa", ["portable", ""])
@pytest.mark.parametrize(
    "row",
    [
        "1",
        "-1",
        "+1",
        "1.5",
        "1 ",
        "1 3:4",
        "1 3:4 ",
        "1 3:4.25",
        "-1 3:4 7:0.5 8:1e2",
        "1 qid:3",
        "1 cost:2 qid:3 1:1",
    ],
)
@pytest.mark.parametrize("comment", ["#", "#x", "#a:b", "##", "# 3:4", "#3:4:5", "#\x01", "#:", "#\t9:9", "#\xff"])
def test_a_comment_starts_anywhere(isa: str, row: str, comment: str) -> None:
    after = " 1 2:3\n" * 20  # what the quick way may read past the line
    plain_rows = parsed(f"{row}\n{after}".encode(), isa=isa)
    with_comment = parsed(f"{row}{comment}\n{after}".encode("latin-1"), isa=isa)
    assert plain_rows.bad == with_comment.bad == []
    for left, right in zip(plain_rows, with_comment, strict=True):
        assert np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right


@pytest.mark.parametrize("isa", ["portable", ""])
@pytest.mark.parametrize(
    ("text", "bad"),
    [
        (b"1 3#a:b\n", (1, 3, 4, b"3")),
        (b"1 3:#x\n", (1, 5, 9, b"#x")),
        (b"x#1:2\n", (1, 1, 2, b"x")),
        (b"1 qid:#2\n", (1, 7, 13, b"#2")),
        (b"1 cost:x#2\n", (1, 8, 12, b"x#2")),
        (b"1 3:4:5#x\n", (1, 5, 9, b"4:5#x")),
    ],
)
def test_what_stands_before_a_comment_must_still_be_right(isa: str, text: bytes, bad: tuple) -> None:
    assert parsed(text, isa=isa).bad == [(*bad, "")]


@given(st.text("0123456789.:+-eE \t\r#nqidcost", max_size=60), st.booleans())
@settings(max_examples=500, deadline=None)
def test_a_line_means_what_stands_before_its_comment(line: str, required: bool) -> None:
    cut = line.partition("#")[0]
    for isa in ("portable", ""):
        whole, short = (
            parsed(f"{text}\n1 2:3\n".encode(), isa=isa, stop_after=9, label_required=required) for text in (line, cut)
        )
        assert [one[:3] for one in whole.bad] == [one[:3] for one in short.bad]
        for left, right in zip(whole._replace(bad=[]), short._replace(bad=[]), strict=True):
            same_field = np.array_equal(left, right, equal_nan=True) if isinstance(left, np.ndarray) else left == right
            assert same_field


@pytest.mark.parametrize("isa", ["portable", ""])
def test_every_way_to_write_a_number_gives_the_nearest_one(isa: str) -> None:
    numbers = [
        "0",
        "1",
        "9",
        "-1",
        "-0",
        "0.5",
        "-0.5",
        ".5",
        "5.",
        "1.0",
        "9.99999999",
        "0.00000001",
        "0.000000001",
        "0.123456789",
        "1.2345678901234567",
        "12",
        "12.5",
        "99999999",
        "123456789",
        "1e3",
        "1E-3",
        "1e+3",
        "2.5e-7",
        "0.1e1",
        "00012",
        "007.50",
        "1e-45",
        "1e-46",
        "1e-400",
        "3.4028235e38",
        "0.30000000000000004",
        "9007199254740993",
        "123456789012345678901234567890",
        "0.1000000000000000055511151231257827",
    ]
    text = "1 " + " ".join(f"{i}:{number}" for i, number in enumerate(numbers, 1)) + "\n"
    rows = parsed(text.encode(), isa=isa)
    assert rows.bad == []
    assert rows.values.tolist() == np.float32([float(number) for number in numbers]).tolist()


@given(ROWS, st.integers(0, 3))
@settings(deadline=None)
def test_text_written_from_rows_gives_the_rows_back(rows: list, style: int) -> None:
    (block,) = read(io.BytesIO(text_of_rows(rows, style)), zero_based=False)
    assert block.labels is not None
    assert block.labels.tolist() == [label for label, _ in rows]
    for i, (_, features) in enumerate(rows):
        one = block[i : i + 1]
        ordered = sorted(features)
        assert one.indices.tolist() == [j - 1 for j in ordered]
        assert one.values.tolist() == np.float32([features[j] for j in ordered]).tolist()


@given(st.one_of(st.binary(max_size=300), st.text("0123456789.:+-eE \t\n\r#nqidcost", max_size=300).map(str.encode)))
@settings(max_examples=300, deadline=None)
def test_instruction_sets_agree_on_any_bytes(text: bytes) -> None:
    assert_agree(text, stop_after=1000)


def assert_agree(text: bytes, **options: object) -> None:
    """The instruction sets that this machine has give the same rows, byte for byte."""
    slow = parsed(text, isa="portable", **options)
    for isa in ("avx2", "avx512"):
        try:
            quick = parsed(text, isa=isa, **options)
        except ValueError:
            continue  # this machine has it not
        for left, right in zip(quick, slow, strict=True):
            assert left.tobytes() == right.tobytes() if isinstance(left, np.ndarray) else left == right


@st.composite
def lines_of_pairs(draw: st.DrawFn) -> bytes:
    """Lines as nearly all are, among others, and with one byte or another replaced; longer than what is searched at once."""
    values = ["1", "0", "7", "0.5", "0.123456", "2.12345678", "0.123456789", "12", "-1", "1.", ".5", "1e3"]
    steps = st.lists(st.tuples(st.integers(1, 30_000_000), st.sampled_from(values[:6])), min_size=3, max_size=9)
    odd = st.sampled_from(
        ["", "# nothing", "1", "1 3:1", "1 2:0.5 1:1 3:1 9:1", "2 qid:3 4:1 5:1 6:1 7:1", "1 1:1\t2:1 3:1 4:1"]
    )
    found = []
    for pairs in draw(st.lists(steps, min_size=1, max_size=12)):
        columns = np.cumsum([step for step, _ in pairs])
        words = [f"{column}:{value}" for column, (_, value) in zip(columns, pairs, strict=True)]
        end = draw(st.sampled_from(["", "", "", " ", "  ", "\r", " # 3:4", f" {columns[-1] + 1}:{values[-1]}"]))
        found.append(draw(st.sampled_from(["1", "-1", "+1", "0", "0.5"])) + " " + " ".join(words) + end)
        if draw(st.integers(0, 5)) == 0:
            found.append(draw(odd))
    text = bytearray(("\n".join(found) + "\n").encode() * draw(st.sampled_from([1, 3, 40])))
    for _ in range(draw(st.integers(0, 3))):
        text[draw(st.integers(0, len(text) - 1))] = draw(st.sampled_from(b" :\n.0-\t#9"))
    return bytes(text)


@given(lines_of_pairs(), st.integers(0, 1), st.sampled_from([1, 1000]))
@settings(max_examples=300, deadline=None)
def test_instruction_sets_agree_on_lines_of_pairs(text: bytes, first: int, stop_after: int) -> None:
    assert_agree(text, first_index=first, stop_after=stop_after)


@pytest.mark.parametrize(
    "other", ["", "1", "1 1:1", "1 x", "1 2:1 1:1 3:1 4:1", "1 1:1 2:1 3:1 4:1\r", "1 1:1 2:1  3:1 4:1"]
)
def test_instruction_sets_agree_wherever_another_line_is(other: str) -> None:
    usual = "1 " + " ".join(f"{7 * i + 1}:0.12345" for i in range(20)) + "\n"
    for before in range(0, 40, 3):
        text = (usual * before + f"1 {'0' * before}1:1 2:1 3:1 4:1\n" + other + "\n" + usual * 40).encode()
        assert_agree(text, stop_after=1000)


def test_lines_with_very_many_pairs_are_read() -> None:
    for count in (500, 16_383, 16_384, 50_000):
        line = "1 " + " ".join(f"{i}:0.5" for i in range(1, count + 1)) + "\n"
        text = (line + "-1 1:1 2:1 3:1 4:1\n" + line).encode()
        assert_agree(text)
        assert np.diff(parsed(text).indptr).tolist() == [count, 4, count]


@given(st.lists(FLOATS, min_size=1, max_size=20), st.integers(0, 12))
@settings(deadline=None)
def test_decimals_of_any_length_give_the_nearest_number(numbers: list[float], digits: int) -> None:
    words = [f"{number:.{digits}f}" for number in numbers]
    text = ("1 " + " ".join(f"{i}:{word}" for i, word in enumerate(words, 1))).encode()
    for isa in ("portable", ""):
        rows = parsed(text, isa=isa)
        assert rows.values.tolist() == np.float32([float(word) for word in words]).tolist()


LARGEST = 2**31 - 2  # index of a column


@pytest.mark.parametrize("isa", ["portable", ""])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("value", ["1", "7", "-3", "0.25", "0.123456", "0.1234567890123", "12.5", "1e2"])
def test_indices_of_any_length_are_read(isa: str, first: int, value: str) -> None:
    columns = [0, 8, 9, *(10**power + off for power in range(1, 10) for off in (-2, -1, 0, 1)), LARGEST - 1, LARGEST]
    columns = sorted(set(columns))
    for width in (1, 8, 9, 10, 11, 30):  # with zeros before them up to so many digits
        pairs = " ".join(f"{column + first:0{width}}:{value}" for column in columns)
        rows = parsed(f"1 {pairs}\n-1 3:1\n".encode(), first_index=first, isa=isa)
        assert rows.bad == []
        assert rows.indices.tolist() == [*columns, 3 - first]
        assert rows.values.tolist() == [np.float32(float(value))] * len(columns) + [1]
        assert rows.width == LARGEST + 1


@pytest.mark.parametrize("isa", ["portable", ""])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("before", ["", "7:1 ", "4:0.5 1234567890:1 ", "123456789:0.25 "])
@pytest.mark.parametrize("after", ["", " 9:1", " 2000000000:0.5"])
@pytest.mark.parametrize(
    ("index", "rule"),
    [
        ("{beyond}", 8),
        ("0{beyond}", 8),
        ("0000000000{beyond}", 8),
        ("9999999999", 8),
        ("12345678901", 8),
        ("21474836480", 8),
        ("99999999999999999999", 8),
        ("-3", 6),
        ("-123456789", 6),
        ("-2147483646", 6),
        ("-12345678901", 6),
        ("+123456789", 5),
        ("+1234567890", 5),
        ("123456789x", 5),
        ("x123456789", 5),
        ("1x23456789", 5),
        ("12x4567890", 5),
        ("1/23456789", 5),
        ("12345678.9", 5),
        ("123456 89", 4),
    ],
)
def test_a_long_index_that_is_wrong_is_refused_at_its_place(
    isa: str, first: int, before: str, after: str, index: str, rule: int
) -> None:
    index = index.format(beyond=LARGEST + 1 + first)
    for value in ("1", "0.5", "1e1"):
        text = f"1 {before}{index}:{value}{after}\n-1 8:1\n".encode()
        rows = parsed(text, first_index=first, stop_after=10, isa=isa)
        token = index.partition(" ")[0].encode()
        assert rows.bad == [(1, 3 + len(before), rule, token, "")]
        assert rows.indices.tolist() == [8 - first]


@pytest.mark.parametrize("isa", ["portable", ""])
@pytest.mark.parametrize("zeros", range(1, 14))
def test_an_index_of_zeros_only_is_an_index_0(isa: str, zeros: int) -> None:
    text = f"1 {'0' * zeros}:1 5:1\n".encode()
    assert parsed(text, first_index=0, isa=isa).indices.tolist() == [0, 5]
    assert parsed(text, first_index=1, isa=isa).bad == [(1, 3, 7, b"0", "")]


LONG = st.one_of(
    st.integers(0, 10**12).map(str),
    st.integers(2**31 - 4, 2**31 + 2).map(str),
    st.text("0123456789", min_size=7, max_size=12),
    st.text("0123456789+-x ", min_size=7, max_size=12),
)


@given(
    st.lists(st.tuples(LONG, st.sampled_from(["1", "0.5", "-2", "0.123456789", "33"])), max_size=8), st.integers(0, 1)
)
@settings(max_examples=300, deadline=None)
def test_long_indices_are_read_as_the_textbook_reads_them(pairs: list[tuple[str, str]], first: int) -> None:
    line = ("1 " + " ".join(f"{index}:{value}" for index, value in pairs)).encode()
    try:
        row = textbook.parse_line(line, first, "")
    except (textbook.Refused, textbook.ZeroIndex):
        row = None
    for isa in ("portable", ""):
        rows = parsed(line, first_index=first, isa=isa)
        assert (row is None) == (len(rows.bad) == 1)
        if row is not None:
            assert list(zip(rows.indices.tolist(), rows.values.tolist(), strict=True)) == list(row.features)


def test_the_environment_can_ask_for_the_portable_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RARESTREAM_ISA", "portable")
    assert parsed(b"1 3:0.25\n").values.tolist() == [0.25]
    with pytest.raises(ValueError, match="isa must be"):
        parsed(b"1 3:0.25\n", isa="avx1024")


def test_where_a_chunk_is_cut_does_not_matter() -> None:
    text = GOLDEN.replace(b"2147483647", b"77")
    whole = list(stream_of(text, rows=2, threads=0))
    assert [len(block) for block in whole] == [2, 2, 2]
    for size in range(1, len(text) + 2):
        assert same(whole, list(stream_of(text, rows=2, threads=0, chunk=size, zero_based=False)))


@given(ROWS, st.integers(1, 40), st.integers(1, 200), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_rows_chunks_and_threads_never_change_what_comes(rows: list, cut: int, chunk: int, threads: int) -> None:
    text = text_of_rows(rows)
    (whole,) = stream_of(text, threads=0, zero_based=False)
    blocks = list(stream_of(text, rows=cut, threads=threads, chunk=chunk, zero_based=False))
    assert all(0 < len(block) <= cut for block in blocks)
    start = 0
    for block in blocks:
        expected = whole[start : start + len(block)]
        assert plain([block])[0][:3] == plain([expected])[0][:3]
        assert block.labels is not None
        assert whole.labels is not None
        assert block.labels.tolist() == whole.labels[start : start + len(block)].tolist()
        assert block.width == max(block.indices, default=-1) + 1
        start += len(block)
    assert start == len(whole)


@given(ROWS, st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_agrees_with_scikit_learn(rows: list, style: int) -> None:
    text = text_of_rows([(label, dict(sorted(features.items()))) for label, features in rows], style)
    (block,) = read(io.BytesIO(text), zero_based=False)
    X, y = load_svmlight_file(io.BytesIO(text), dtype=np.float32, zero_based=False)
    assert block.labels is not None
    assert block.labels.tolist() == y.tolist()
    assert block.indptr.tolist() == X.indptr.tolist()
    assert block.indices.tolist() == X.indices.tolist()
    assert block.values.tobytes() == X.data.tobytes()


def test_duplicate_features_are_summed_and_rows_sorted() -> None:
    (block,) = read(io.BytesIO(b"1 9:1 3:0.5 9:2 1:4\n-1 2:1 2:-1\n"))
    assert block.indices.tolist() == [0, 2, 8, 1]
    assert block.values.tolist() == [4, 0.5, 3, 0]


def test_an_index_0_in_the_first_chunk_makes_a_stream_zero_based() -> None:
    (block,) = read(io.BytesIO(b"1 3:1\n-1 0:1 2:1\n"))
    assert block.indices.tolist() == [3, 0, 2]
    (block,) = read(io.BytesIO(b"1 3:1\n-1 1:1 2:1\n"))
    assert block.indices.tolist() == [2, 0, 1]
    (block,) = read(io.BytesIO(b"1 3:1\n-1 1:1 2:1\n"), zero_based=True)
    assert block.indices.tolist() == [3, 1, 2]


def test_the_base_is_decided_once_for_several_files(tmp_path) -> None:
    (tmp_path / "a.svm").write_bytes(b"1 0:1\n")
    (tmp_path / "b.svm").write_bytes(b"-1 5:1\n")
    blocks = list(read([tmp_path / "a.svm", tmp_path / "b.svm"], rows=1))
    assert [block.indices.tolist() for block in blocks] == [[0], [5]]


def test_importances_and_tags_are_there_only_where_they_say_something() -> None:
    text = b"1 1:1\n1 1:1\n-1 cost:0 1:1\n1 1:1\n1 1:1\n-1 qid:4 1:1\n"
    first, second, third = read(io.BytesIO(text), rows=2)
    assert first.importances is None
    assert first.tags is None
    assert second.importances is not None
    assert second.importances.tolist() == [0, 1]
    assert third.tags is not None
    assert third.tags.tolist() == [-1, 4]
