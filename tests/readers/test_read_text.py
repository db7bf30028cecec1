"""A text format needs a parser and nothing else: a small one, in Python, has all that svmlight has."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import numpy as np
import pytest

from rarestream import Block, DataError
from rarestream.blocks import concatenate, seal
from rarestream.readers.chunks import Chunk
from rarestream.readers.formats import Format
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
