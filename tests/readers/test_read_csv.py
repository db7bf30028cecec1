"""CSV files: what is a row, what is a cell, how columns are planned, and what is said of files that are wrong."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream import Block, DataError, Model, read
from rarestream.blocks import concatenate
from rarestream.features import Columns, Hashed
from rarestream.readers.stream import Stream
from rarestream.readers.tables import as_config
from tests.features import textbook

CLICKS = """\
when,site,price,n,note,clicked
2026-01-02 10:00,a.com,3.5,7,"hello, ""world""
again",yes
2026-01-03 11:30,b.com,4,8,x y z,no
2026-01-03 11:30,b.com,,8,,no
"""


def written(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows_of(stream: Stream) -> Block:
    blocks = list(stream)
    labelled = all(block.labels is not None for block in blocks)
    return concatenate(blocks if labelled else [replace(block, labels=None) for block in blocks])


def as_dicts(block: Block) -> list[dict[int, float]]:
    return [
        dict(zip(block.indices[a:b].tolist(), block.values[a:b].tolist(), strict=True))
        for a, b in zip(block.indptr[:-1], block.indptr[1:], strict=True)
    ]


def same(one: Block, other: Block) -> None:
    for field in ("indptr", "indices", "values", "labels"):
        assert getattr(one, field).tobytes() == getattr(other, field).tobytes(), field


def small_chunks(path: Path, size: int, longest: int = 1 << 20, **options: Any) -> Stream:
    """A stream of tiny chunks, so that rows of a short file lie in many of them."""
    from rarestream.readers.formats import load_format
    from rarestream.readers.sources import expand

    format = load_format("csv")
    return Stream(expand(path), format, format.make_options(**options), rows=8192, chunk=size, longest_line=longest)


# -- cells


def test_a_table_becomes_features(tmp_path: Path) -> None:
    stream = read(written(tmp_path, CLICKS), label="clicked", text=["note"], crosses=["site*n"])
    block = rows_of(stream)
    kinds = {"when": ["date"], "site": ["category"], "price": ["number"], "n": ["category", "number"], "note": ["text"]}
    rows = list(csv.DictReader(io.StringIO(CLICKS)))
    assert block.labels is not None and block.labels.tolist() == [1, -1, -1]
    for row, found in zip(rows, as_dicts(block), strict=True):
        expected = textbook.slots(textbook.row_features(row, kinds, crosses=["site*n"]), 22)
        assert found == pytest.approx(expected, rel=1e-6)
    assert isinstance(stream.features, Hashed) and stream.features.plan is not None
    assert as_config(stream.features.plan) == [
        "[columns]",
        'label = "clicked"',
        'numeric = ["price", "n"]',
        'categorical = ["site", "n"]',
        'text = ["note"]',
        'dates = ["when"]',
        'crosses = ["site*n"]',
    ]


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


@given(
    rows=st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=8),
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    chunk=st.sampled_from([16, 40, 1 << 20]),
)
def test_what_python_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], delimiter: str, end: str, quoting: Any, chunk: int
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow(["y", "a", "b", "c"])
    for number, row in enumerate(rows):
        writer.writerow([number % 2, *row])
    path = written(tmp_path_factory.mktemp("csv"), out.getvalue().encode())
    categorical = ("a", "b", "c")
    stream = small_chunks(path, chunk, label="y", delimiter=delimiter, categorical=categorical, positive=1)
    block = rows_of(stream)
    assert len(block) == len(rows)
    for row, found in zip(rows, as_dicts(block), strict=True):
        features = {(column, cell): 1.0 for column, cell in zip("abc", row, strict=True) if cell}
        assert found == textbook.slots(features, 22)


@given(st.text(st.sampled_from('a,"\n '), max_size=30), st.integers(1, 12))
def test_any_text_is_read_as_python_reads_it_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, chunk: int
) -> None:
    path = written(tmp_path_factory.mktemp("csv"), "y,a\n1,x\n0,y\n" + text)
    names = {"columns": ("y", "a"), "label": "y", "categorical": "a", "positive": 1, "delimiter": ","}
    try:
        expected = [row for row in csv.reader(io.StringIO("y,a\n1,x\n0,y\n" + text), strict=True) if row]
    except csv.Error:
        with pytest.raises(DataError):
            rows_of(small_chunks(path, chunk, labels="optional", **names))
        return
    if any(len(row) != 2 for row in expected):
        with pytest.raises(DataError, match="cells?, but there are 2 columns"):
            rows_of(small_chunks(path, chunk, labels="optional", **names))
        return
    block = rows_of(small_chunks(path, chunk, labels="optional", **names))
    assert as_dicts(block) == [textbook.slots({("a", cell): 1.0} if cell else {}, 22) for _, cell in expected]


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("chunk", [64, 1000, 1 << 20])
def test_chunks_and_threads_change_nothing(tmp_path: Path, threads: int, chunk: int) -> None:
    rng = np.random.default_rng(3)
    lines = ["y,site,price,words"]
    for i in range(500):
        lines.append(f'{i % 3 == 0:d},s{rng.integers(40)},{rng.normal():.3f},"w{rng.integers(9)} x{i}\nnext ""line"""')
    path = written(tmp_path, "\n".join(lines) + "\n")
    whole = read(path, label="y", text="words", threads=0)
    expected = rows_of(whole)
    stream = small_chunks(path, chunk, label="y", text="words", threads=threads, numeric="price", categorical="site")
    same(rows_of(stream), expected)
    mine, theirs = (s.features.names for s in (stream, whole) if isinstance(s.features, Hashed))
    slots = np.unique(expected.indices)
    assert mine is not None and theirs is not None
    assert mine.names(slots) == theirs.names(slots) and None not in mine.names(slots)
    assert len(mine) == len(theirs) and mine.collisions == theirs.collisions


def test_compressed_and_several_files_are_one_table(tmp_path: Path) -> None:
    path = written(tmp_path, CLICKS)
    (tmp_path / "u.csv.gz").write_bytes(gzip.compress(CLICKS.encode()))
    once = rows_of(read(path, label="clicked"))
    twice = rows_of(read([path, tmp_path / "u.csv.gz"], label="clicked"))
    same(twice, concatenate([once, once]))


def test_columns_may_come_in_another_order(tmp_path: Path) -> None:
    one = written(tmp_path, "a,b,y\nx,1,1\nz,2,0\n", "one.csv")
    other = written(tmp_path, "y,b,a\n1,1,x\n0,2,z\n", "two.csv")
    both = rows_of(read([one, other], label="y"))
    same(both[:2], both[2:])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.tsv", "a\tb\ty\n"),
        ("t.csv", "a;b;y\n"),
        ("t.csv", "a|b|y\n"),
        ("t.csv", "a\tb\ty\n"),
        ("t.csv", 'a,"b;;;;b",y\n'),
    ],
)
def test_the_delimiter_is_found(tmp_path: Path, name: str, text: str) -> None:
    delimiter = next(c for c in "\t|,;" if c in text)
    rows = f"x{delimiter}1{delimiter}1\nz{delimiter}2{delimiter}0\n"
    assert len(rows_of(read(written(tmp_path, text + rows, name), label="y"))) == 2


def test_a_file_without_heading_needs_names(tmp_path: Path) -> None:
    path = written(tmp_path, "1,x,2\n0,y,3\n")
    named = rows_of(read(path, columns=["y", "a", "b"], label="y"))
    headed = rows_of(read(written(tmp_path, "y,a,b\n1,x,2\n0,y,3\n", "h.csv"), label="y"))
    same(named, headed)


def test_the_delimiter_is_found_in_a_small_file_without_heading(tmp_path: Path) -> None:
    stream = read(written(tmp_path, "1\tx\n0\ty\n", "h.tsv"), columns=["y", "a"], label="y", quoting=False)
    assert len(rows_of(stream)) == 2
    assert stream.facts == {"delimiter": "\t"}


def test_a_byte_order_mark_crlf_and_blank_lines_are_nothing(tmp_path: Path) -> None:
    plain = rows_of(read(written(tmp_path, "y,a\n1,x\n0,z\n"), label="y"))
    odd = rows_of(read(written(tmp_path, b"\xef\xbb\xbfy,a\r\n1,x\r\n\r\n\n0,z"), label="y"))
    same(plain, odd)


def test_quotes_may_be_ordinary_characters(tmp_path: Path) -> None:
    path = written(tmp_path, 'y,a\n1,"x\n0,5" pipe\n')
    block = rows_of(read(path, label="y", quoting=False))
    assert as_dicts(block) == [textbook.slots({("a", cell): 1.0}, 22) for cell in ('"x', '5" pipe')]


def test_importance_tag_and_missing(tmp_path: Path) -> None:
    path = written(tmp_path, "y,w,id,a,b\n1,2.5,r1,NA,3\n0,1,,x,-\n0,0,r3,x,4\n")
    block = rows_of(read(path, label="y", importance="w", tag="id", missing=["NA", "-"]))
    assert block.importances is not None and block.importances.tolist() == [2.5, 1, 0]
    assert block.tags is not None and block.tags.tolist() == ["r1", "", "r3"]
    assert np.diff(block.indptr).tolist() == [3, 1, 3]  # 3 is a category and two buckets; 4 a category and one


# -- the plan


def test_the_plan_is_kept_and_later_files_need_no_options(tmp_path: Path) -> None:
    model = Model("dual-auc")
    train = written(tmp_path, CLICKS)
    for block in read(train, label="clicked", text="note", numbers="raw"):
        model.learn(block)
    model.save(tmp_path / "m.rare")
    loaded = Model.load(tmp_path / "m.rare")
    for space in (model.features, loaded.features):
        again = read(train, features=space)
        same(rows_of(again), rows_of(read(train, label="clicked", text="note", numbers="raw")))
    new = written(tmp_path, "extra,site,note,n,price,when\n1,a.com,hello,7,3.5,2026-01-02 10:00\n", "new.csv")
    stream = read(new, features=loaded.features, labels="optional")
    scores = loaded.score(rows_of(stream))
    assert len(scores) == 1 and scores[0] != 0
    assert stream.notes == [f"{new}: the new column 'extra' is ignored."]


def test_a_column_that_the_model_needs_must_be_there(tmp_path: Path) -> None:
    stream = read(written(tmp_path, CLICKS), label="clicked")
    rows_of(stream)
    new = written(tmp_path, "site,clicked\na.com,yes\n", "new.csv")
    with pytest.raises(DataError, match=r"new\.csv: the columns 'when', 'price', 'n', 'note' are missing"):
        rows_of(read(new, features=stream.features))


def test_options_must_agree_with_a_plan_that_is_there(tmp_path: Path) -> None:
    path = written(tmp_path, CLICKS)
    stream = read(path, label="clicked")
    rows_of(stream)
    rows_of(read(path, features=stream.features, numeric="price", categorical=["site", "n"]))
    for options in ({"categorical": "price"}, {"numbers": "raw"}, {"ignore": "site"}, {"crosses": "site*n"}):
        with pytest.raises(DataError, match="as in the model"):
            rows_of(read(path, features=stream.features, **options))
    with pytest.raises(DataError, match="bits must be 22, as in the model, got 18"):
        rows_of(read(path, features=stream.features, bits=18))
    with pytest.raises(DataError, match="column numbers are wanted"):
        rows_of(read(path, features=Columns(), label="clicked"))


@pytest.mark.parametrize(
    ("cells", "kinds"),
    [
        (["a", "1", "2.5"], 1), (["1", "2", ""], 3), (["1", "2.5", ""], 2), (["2026-01-01", "2026-01-02T03:04", ""], 8),
        (["2026-01-01", "5", ""], 1), (["", "", ""], 16), (["007", "008", "9"], 1), (["1.0", "2.00", "3."], 3), (["true", "false", ""], 1),
    ],
)  # fmt: skip
def test_kinds_are_decided_by_values(tmp_path: Path, cells: list[str], kinds: int) -> None:
    rows = "".join(f"{number % 2},{cell},z\n" for number, cell in enumerate(cells))
    stream = read(written(tmp_path, "y,a,b\n" + rows), label="y")
    rows_of(stream)
    assert isinstance(stream.features, Hashed) and stream.features.plan is not None
    assert stream.features.plan.columns[0].kinds == kinds


# -- what is wrong

HEAD = "y,a,n\n1,x,1.5\n0,z,2.5\n"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (HEAD + "1,x\n", ":4:1: ", "this row has 2 cells, but there are 3 columns"),
        (HEAD + "1,x,2,3\n", ":4:1: ", "this row has 4 cells, but there are 3 columns"),
        (HEAD + '1,"x"y,2\n', ":4:6: ", "text after a closing quote"),
        (HEAD + "1,x\0,2\n", ":4:4: ", "a NUL byte"),
        (HEAD.encode() + b"1,\xff,2\n", ":4:3: ", "not UTF-8"),
        (HEAD + "1,x,nan\n", ":4:5: ", "column 'n' must have finite numbers, got 'nan'. If this text means a missing value, pass missing=['nan']"),
        (HEAD + "1,x,inf\n", ":4:5: ", "must have finite numbers"),
        (HEAD + "1,x,abc\n", ":4:5: ", "column 'n' has numbers in the first rows, got 'abc'. If it is a category, pass categorical=['n']; if this text means a missing value, missing=['abc']."),
        (HEAD + "1,x,1e999\n", ":4:5: ", "too large"),
        (HEAD + "2,x,1\n", ":4:1: ", "a third label, 2"),
        (HEAD + '1,"x,2\n0,y,3\n', ":4", "never closed"),
        ("y,a,a\n1,2,3\n", ":1: ", "two columns are named 'a', number 2 and 3"),
        (b"y,\xff\n1,2\n", ":1:3: ", "not UTF-8"),
        ("y\0,a\n1,2\n", ":1:2: ", "a NUL byte"),
    ],
)  # fmt: skip
def test_wrong_files_say_where_and_what(tmp_path: Path, text: str | bytes, place: str, message: str) -> None:
    path = written(tmp_path, text)
    stream = (
        small_chunks(path, 22, longest=4096, label="y", delimiter=",")
        if isinstance(text, str)
        else read(path, label="y")
    )
    with pytest.raises(DataError) as error:
        rows_of(stream)
    assert str(error.value).startswith(f"{path}{place}"), error.value
    assert message in str(error.value)


def test_wrong_rows_are_skipped_up_to_a_limit(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + "1,x\n1,x,abc\n1,w,3\n")
    stream = small_chunks(path, 22, label="y", max_bad_rows=2)
    assert len(rows_of(stream)) == 3
    assert stream.refused == 2 and [message.split(":")[1] for message in stream.refusals] == ["4", "5"]
    with pytest.raises(DataError, match="2 invalid rows, more than max_bad_rows=1"):
        rows_of(small_chunks(path, 22, label="y", max_bad_rows=1))


def test_a_quote_never_closed_is_found_in_bounded_memory(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + '1,"x,2\n' + "0,y,3\n" * 3000)
    with pytest.raises(
        DataError, match=r":4: row longer than 4096 bytes: the quote that opens in line 4 is never closed"
    ):
        rows_of(small_chunks(path, 22, longest=4096, label="y"))


@pytest.mark.parametrize("importance", ["-1", "abc", "1e300", "nan"])
def test_an_importance_must_be_in_range(tmp_path: Path, importance: str) -> None:
    path = written(tmp_path, f"y,w,a\n1,1,x\n0,1,y\n1,{importance},x\n")
    with pytest.raises(DataError, match=r":4:3: column 'w': an importance must be 0 or a number between"):
        rows_of(read(path, label="y", importance="w"))


def test_the_label_must_be_named_and_there(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD)
    with pytest.raises(
        DataError, match=r"which column is the label\? Pass label=COLUMN; the columns are 'y', 'a', 'n'"
    ):
        rows_of(read(path))
    with pytest.raises(DataError, match="label names the column 'Y', which is not there. Did you mean 'y'"):
        rows_of(read(path, label="Y"))
    only = written(tmp_path, "y,a\nsame,x\nsame,z\n", "one.csv")
    with pytest.raises(DataError, match="only the label 'same'"):
        rows_of(read(only, label="y"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"numeric": "q"}, "numeric names the column 'q', which is not there"),
        ({"text": "a", "ignore": "a"}, "named by both ignore and text"),
        ({"crosses": "a"}, "a cross must be two to eight different columns"),
        ({"crosses": "a*y"}, "named by both label and crosses"),
        ({"ngrams": "letters:3"}, "ngrams must be such as words:1"),
        ({"delimiter": "ab"}, "delimiter must be one character"),
        ({"bits": 31}, "bits must be"),
        ({"numbers": "hard"}, "numbers must be 'soft' or 'raw'"),
        ({"zero_based": True}, "csv has no option zero_based; blocks, svmlight have it"),
    ],
)
def test_options_are_checked(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message.replace("(", r"\(")):
        rows_of(read(written(tmp_path, HEAD), label="y", **options))


def test_a_million_columns_are_refused(tmp_path: Path) -> None:
    names = ",".join(f"c{i}" for i in range(1_000_000))
    path = written(tmp_path, f"y,{names}\n1{',2' * 1_000_000}\n")
    with pytest.raises(DataError, match=r"1,000,001 columns; a table has at most 100,000"):
        rows_of(read(path, label="y"))


def test_many_columns_are_read(tmp_path: Path) -> None:
    names = ",".join(f"c{i}" for i in range(20_000))
    path = written(tmp_path, f"y,{names}\n" + "".join(f"{y}{',2.5' * 20_000}\n" for y in (1, 0)))
    assert rows_of(read(path, label="y")).nonzeros > 70_000


def test_a_heading_alone_has_no_rows(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no rows"):
        rows_of(read(written(tmp_path, "y,a\n"), label="y"))


def test_a_decompression_bomb_ends_at_the_longest_row(tmp_path: Path) -> None:
    """A small file that expands to 200 MB without a line end is refused after 64 MB of it."""
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=9) as out:
        out.write(b"y,a\n1,x\n0,")
        for _ in range(20):
            out.write(b"z" * 10_000_000)
    assert path.stat().st_size < 400_000
    with pytest.raises(DataError, match=r"bomb\.csv\.gz:3: line longer than 64 MB"):
        rows_of(read(path, label="y"))
