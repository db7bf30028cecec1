"""A text format needs a parser and nothing else: a small one, in Python, has all that svmlight has."""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from rarestream import Block, DataError
from rarestream.blocks import concatenate, seal
from rarestream.readers.chunks import Chunk
from rarestream.readers.formats import Format, load_format
from rarestream.readers.options import FormatOptions
from rarestream.readers.parser import BadRow, LineParser, ParsedRows, quoted
from rarestream.readers.reading import Reading
from rarestream.readers.sources import expand
from rarestream.readers.stream import Stream
from rarestream.readers.text import read_text

NOT_A_NUMBER = 1


class TabParser(LineParser):
    """A label and values, separated by tabs; a heading line in each file; column j is feature j."""

    name = "tab"

    def parse(self, chunk: Chunk, context: object) -> ParsedRows:
        rows: list[list[float]] = []
        numbers: list[int] = []
        bad: list[BadRow] = []
        lines = chunk.text.tobytes().splitlines()
        for number, line in enumerate(lines, 1):
            if chunk.begins and number == 1:
                continue
            column, values = 1, []
            for word in line.split(b"\t"):
                try:
                    values.append(float(word))
                except ValueError:
                    bad.append(BadRow(number, column, NOT_A_NUMBER, word))
                    break
                column += len(word) + 1
            else:
                rows.append(values)
                numbers.append(number)
        sizes = [len(row) - 1 for row in rows]
        return ParsedRows(
            indptr=seal(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)),
            indices=seal(np.array([j for size in sizes for j in range(size)], np.int32)),
            values=seal(np.array([value for row in rows for value in row[1:]], np.float32)),
            width=max(sizes, default=0),
            labels=np.array([row[0] for row in rows], np.float64),
            importances=None,
            tags=None,
            lines=np.array(numbers, np.int64),
            columns=np.ones(len(rows), np.int32),
            lines_read=len(lines),
            bad=bad,
        )

    def message(self, bad: BadRow) -> str:
        return f"a field must be a number, got {quoted(bad.token)}."


def tab(reading: Reading) -> Iterator[Block]:
    return read_text(reading, TabParser())


def stream_of(*texts: bytes, max_bad_rows: int = 0, chunk: int = 64, threads: int = 2, longest: int = 500) -> Stream:
    sources = expand([io.BytesIO(text) for text in texts])
    format = Format("tab", (".tab",), FormatOptions, tab, "tab-separated numbers")
    options = format.make_options(threads=threads, max_bad_rows=max_bad_rows)
    return Stream(sources, format, options, rows=100, chunk=chunk, longest_line=longest)


TEXT = b"label\ta\tb\n" + b"".join(b"%d\t%d\t0.5\n" % (1 + i % 2, i) for i in range(300))


@pytest.mark.parametrize("threads", [0, 2])
def test_rows_come_in_order_with_the_labels_mapped(threads: int) -> None:
    block = concatenate(stream_of(TEXT, TEXT, threads=threads))
    assert block.labels is not None
    assert block.values[::2].tolist() == [*range(300), *range(300)]
    assert block.labels.tolist() == [-1, 1] * 300  # the labels 1 and 2


def test_a_bad_row_is_named_by_file_line_and_column() -> None:
    with pytest.raises(DataError, match=re.escape("<file>:302:3: a field must be a number, got 'oops'.")):
        list(stream_of(TEXT + b"1\toops\t3\n"))


def test_bad_rows_are_skipped_up_to_the_limit() -> None:
    damaged = TEXT.replace(b"1\t10\t", b"1\tten\t").replace(b"2\t11\t", b"2\televen\t")
    stream = stream_of(damaged, max_bad_rows=2)
    assert sum(len(block) for block in stream) == 298
    assert stream.refused == 2
    assert stream.refusals[0].startswith("<file>:12:3: a field must be a number, got 'ten'")
    with pytest.raises(DataError, match="2 invalid rows"):
        list(stream_of(damaged, max_bad_rows=1))


def test_a_third_label_is_named_by_file_and_line() -> None:
    with pytest.raises(DataError, match=r"<file>:302:1: a third label, 7"):
        list(stream_of(TEXT + b"7\t1\t3\n"))


def test_rows_have_their_lines() -> None:
    stream = stream_of(TEXT)
    next(iter(stream))
    assert stream.where(0) == "<file>:2"


def test_a_line_that_is_too_long_names_the_format() -> None:
    with pytest.raises(DataError, match=r"<file>:302: line longer than 500 bytes.* is tab text"):
        list(stream_of(TEXT + b"1\t" + b"1" * 1000))


# -- what only some formats need: a heading in each file, rows over several lines, labels and tags that are text


def tab_stream(*texts: bytes, chunk: int = 1 << 20, longest: int = 500, features: object = None, **options) -> Stream:
    sources = expand([io.BytesIO(text) for text in texts])
    format = load_format("tab")
    return Stream(
        sources,
        format,
        format.make_options(**options),
        rows=100,
        chunk=chunk,
        longest_line=longest,
        features=features,
    )


ROWS = b"".join(b"%d\t%s\t0.5\n" % (i, b"yes" if i % 3 == 0 else b"no") for i in range(90))
OTHER = b"".join(b"0.5\t%d\t%s\n" % (i, b"yes" if i % 3 == 0 else b"no") for i in range(90))


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("chunk", [16, 200, 1 << 20])
def test_each_file_has_its_own_heading(tab_format: str, threads: int, chunk: int) -> None:
    texts = (b"a\ty\tb\n" + ROWS, b"\xef\xbb\xbfb\ta\ty\n" + OTHER)
    stream = tab_stream(*texts, chunk=chunk, threads=threads, target="y", positive="yes", drop=["b"])
    block = concatenate(stream)
    assert block.labels is not None
    assert block.values.tolist() == [*range(90), *range(90)]
    assert block.labels.tolist() == [1, -1, -1] * 60
    assert block.indices.tolist() == [0] * 90 + [1] * 90


def test_a_wrong_heading_is_an_error_where_its_file_begins(tab_format: str) -> None:
    for threads in (0, 2):
        blocks = []
        with pytest.raises(DataError, match="<file>:1: no column is called 'y'; there are b, a."):
            blocks.extend(tab_stream(b"a\ty\tb\n" + ROWS, b"b\ta\n1\t2\n", target="y", threads=threads))
    with pytest.raises(DataError, match="no column is called 'z'"):
        list(tab_stream(b"a\ty\tb\n" + ROWS, target="z"))


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("chunk", [1, 10, 64, 1 << 20])
def test_a_row_may_go_over_several_lines(tab_format: str, threads: int, chunk: int) -> None:
    text = b"y\ta\n" + b"".join(b'yes\t"\n%d\n"\nno\t7\n' % i for i in range(50))
    for start in (b"", b"\xef\xbb\xbf"):
        stream = tab_stream(start + text, chunk=chunk, threads=threads)
        blocks = list(stream)
        assert [float(x) for block in blocks for x in block.values[::1]] == [x for i in range(50) for x in (i, 7)]
        assert stream.where(len(blocks[-1]) - 1) == "<file>:201"
    with pytest.raises(DataError, match="<file>:202:1: column 'a' must be a number, got 'x'."):
        list(tab_stream(text + b"no\tx\n", chunk=chunk, threads=threads))


def test_a_quote_that_is_never_closed_is_the_formats_to_explain(tab_format: str) -> None:
    text = b"y\ta\nyes\t1\nno\t2\n" + b'no\t"' + b"3\n" * 1000
    with pytest.raises(DataError, match="<file>:4: the quote that opens at line 4 is not closed within 500 bytes."):
        list(tab_stream(text, chunk=8))


def test_a_row_without_a_label_is_left_out_and_counted_or_kept(tab_format: str) -> None:
    text = b"y\ta\nyes\t1\n\t2\nno\t3\n\t4\n\tx\n"
    for chunk in (4, 1 << 20):
        stream = tab_stream(text, chunk=chunk, max_bad_rows=1)
        block = concatenate(stream)
        assert block.values.tolist() == [1, 3]
        assert (stream.unlabelled, stream.refused) == (2, 1)
        assert stream.where(0) in ("<file>:2", "<file>:4")
    stream = tab_stream(text, labels="optional", max_bad_rows=1)
    (block,) = stream
    assert (block.labels, block.values.tolist(), stream.unlabelled) == (None, [1, 2, 3, 4], 0)
    with pytest.raises(DataError, match="<file>: no rows with a label; 2 have none."):
        list(tab_stream(b"y\ta\n\t1\n\t2\n"))


def test_tags_may_be_text(tab_format: str) -> None:
    text = b"y\tid\ta\n" + b"".join(b"%s\t%s\t1\n" % (y, t) for y, t in [(b"yes", b"ab"), (b"no", b""), (b"no", b"c")])
    (block,) = tab_stream(text, row_id="id")
    assert block.tags is not None and block.tags.tolist() == ["ab", "", "c"]
    for stream in (
        tab_stream(text, drop=["id"]),
        tab_stream(text.replace(b"ab", b"").replace(b"c\t", b"\t"), row_id="id"),
    ):
        assert next(iter(stream)).tags is None
    rows = concatenate([next(iter(tab_stream(text, drop=["id"]))), block, block])
    assert rows.tags is not None and rows.tags.tolist() == ["", "", "", *["ab", "", "c"] * 2]
    shuffled = concatenate(tab_stream(text * 1, row_id="id", shuffle=3))
    assert shuffled.tags is not None and sorted(shuffled.tags.tolist()) == ["", "ab", "c"]


class Names:
    """Stands where a feature space keeps its names."""

    def __init__(self) -> None:
        self.names, self.seen, self.added = self, [], threading.Event()

    def add(self, names: list[str]) -> None:
        self.seen.append(names)
        self.added.set()


@pytest.mark.parametrize("threads", [0, 2])
def test_names_are_added_in_the_order_of_the_stream(tab_format: str, threads: int) -> None:
    space = Names()
    text = b"y\ta\n" + b"".join(b"%d\t1\n" % i for i in range(200))
    list(tab_stream(text, chunk=20, threads=threads, positive=1, features=space))
    assert [name for names in space.seen for name in names] == [str(i) for i in range(200)]


def test_names_of_the_first_rows_of_a_pipe_are_not_lost(tab_format: str) -> None:
    space = Names()
    ear, mouth = os.pipe()
    with os.fdopen(ear, "rb") as pipe:
        os.write(mouth, b"y\ta\nspam\t1\n")

        def write_more() -> None:
            space.added.wait()  # the first rows were parsed, and did not decide which label is positive
            os.write(mouth, b"ham\t2\nspam\t3\n")
            os.close(mouth)

        writer = threading.Thread(target=write_more)
        writer.start()
        format = load_format("tab")
        stream = Stream(expand(pipe), format, format.make_options(), rows=9, features=space)
        block = concatenate(stream)
        writer.join()
    assert block.labels is not None and block.labels.tolist() == [-1, 1, -1]
    assert {name for names in space.seen for name in names} == {"spam", "ham"}
    assert stream.notes == ["label 'spam' counts as -1 and 'ham' as +1"]
