"""Every way a file can be wrong: the message names the place, and nothing of a bad row comes out."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from svm_rows import stream_of, until_error

from rarestream.errors import DataError
from rarestream.readers import read
from tests import children

GOOD = b"1 1:1\n-1 2:1\n"


@pytest.mark.parametrize(
    ("line", "place", "said"),
    [
        (b"1:1 2:1", "3:1", "a row starts with its label, but this one starts with '1:1'"),
        (b":1", "3:1", "a row starts with its label"),
        (b"spam 1:1", "3:1", "the label must be a number, got 'spam'"),
        (b"nan 1:1", "3:1", "the label must be a finite number, got 'nan'"),
        (b"1e400 1:1", "3:1", "the label must be a finite number, got '1e400'"),
        (b"1,2 1:1", "3:1", "the label must be a number, got '1,2'"),
        (b"1 3", "3:3", "a feature is index:value, but '3' has no colon"),
        (b"1 1:1 word # c", "3:7", "a feature is index:value, but 'word' has no colon"),
        (b"1 1.5:1", "3:3", "a feature index must be a whole number, got '1.5'"),
        (b"1 age:1", "3:3", "a feature index must be a whole number, got 'age'"),
        (b"1 :1", "3:3", "a feature index must be a whole number, got ''"),
        (b"1 -3:1", "3:3", "a feature index must not be negative, got '-3'"),
        (b"1 2147483648:1", "3:3", "feature index '2147483648' is too large"),
        (b"1 1:1 99999999999999999999:1", "3:7", "is too large; the largest is 2,147,483,647"),
        (b"1 1:", "3:5", "a feature value must be a number, got ''"),
        (b"1 1:x", "3:5", "a feature value must be a number, got 'x'"),
        (b"1 1:2:3", "3:5", "a feature value must be a number, got '2:3'"),
        (b"1 1:0x10", "3:5", "a feature value must be a number, got '0x10'"),
        (b"1 1:1e", "3:5", "a feature value must be a number, got '1e'"),
        (b"1 1:NaN", "3:5", "a feature value must be finite, got 'NaN'"),
        (b"1 1:-inf", "3:5", "a feature value must be finite, got '-inf'"),
        (b"1 1:Infinity", "3:5", "a feature value must be finite, got 'Infinity'"),
        (b"1 1:1e400", "3:5", "a feature value must fit in float32 (up to 3.4e38), got '1e400'"),
        (b"1 1:-3.5e38", "3:5", "a feature value must fit in float32 (up to 3.4e38), got '-3.5e38'"),
        (b"1 7:3e38 7:3e38", "3:1", "duplicate features of this row sum to a value beyond float32"),
        (b"1 cost:-1 1:1", "3:8", "cost must be a number between 1e-100 and 1e+12, or 0, which skips a row, got '-1'"),
        (
            b"1 cost:inf 1:1",
            "3:8",
            "cost must be a number between 1e-100 and 1e+12, or 0, which skips a row, got 'inf'",
        ),
        (
            b"1 cost:much 1:1",
            "3:8",
            "cost must be a number between 1e-100 and 1e+12, or 0, which skips a row, got 'much'",
        ),
        (b"1 qid:1.5 1:1", "3:7", "qid must be a whole number from 0 to 2^63 - 1, got '1.5'"),
        (b"1 1:1\0 2:1", "3:6", "control character '\\x00' in the text; this looks like binary data"),
        (b"\x93NUMPY\x01\0v\0{", "3:7", "control character '\\x01' in the text"),
        (b"\xff\xfe1 1:1", "3:1", "the label must be a number, got '\\xff\\xfe1'"),
        (b"1 " + b"9" * 300 + b"x:1", "3:3", "9999'..."),
    ],
)
def test_a_bad_row_is_refused_at_its_place(line: bytes, place: str, said: str) -> None:
    (before,), message = until_error(read(io.BytesIO(GOOD + line + b"\n-1 9:1\n"), zero_based=False))
    assert message.startswith(f"<file>:{place}: ")
    assert said in message
    assert len(message) < 250
    assert len(before) == 2  # and nothing after it

    stream = read(io.BytesIO(GOOD + line + b"\n-1 9:1\n"), zero_based=False, max_bad_rows=1)
    (block,) = stream
    assert block.indices.tolist() == [0, 1, 8]
    assert stream.refused == 1
    assert said in stream.refusals[0]


def test_an_index_0_after_the_first_chunk_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ads.svm"
    path.write_bytes(b"1 1:1\n-1 2:1\n" * 100_000 + b"1 00:1 1:1\n")
    with pytest.raises(DataError) as caught:
        list(read(path))
    assert str(caught.value) == (
        f"{path}:200001:3: feature index 0, but svmlight counts from 1. "
        "If this file counts from 0, pass zero_based=True."
    )
    with pytest.raises(DataError, match=r":1:5: feature index 0"):
        list(read(io.BytesIO(b"1 \t 0:1\n"), zero_based=False))


def test_more_bad_rows_than_allowed_give_the_count_and_the_first_places() -> None:
    text = b"".join(b"x\n1 1:1\n" for _ in range(20))
    with pytest.raises(DataError) as caught:
        list(read(io.BytesIO(text), max_bad_rows=7))
    said = str(caught.value)
    assert said.startswith("8 invalid rows, more than max_bad_rows=7 allows")
    assert "<file>:1:1: the label" in said
    assert "<file>:9:1: the label" in said
    assert said.count("\n") == 5


def test_bad_rows_are_counted_across_chunks_and_threads() -> None:
    text = b"".join(b"1 1:1\nx\n" for _ in range(50))
    for threads in (0, 1, 2):
        stream = stream_of(text, max_bad_rows=50, chunk=16, threads=threads)
        assert sum(len(block) for block in stream) == 50
        assert stream.refused == 50
        blocks, message = until_error(stream_of(text, max_bad_rows=20, chunk=16, threads=threads))
        assert sum(map(len, blocks)) == 21
        assert message.startswith("21 invalid rows")


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# nothing\n", b"\xef\xbb\xbf"])
def test_a_file_without_rows_is_refused(text: bytes) -> None:
    with pytest.raises(DataError, match="<file>: no rows"):
        list(read(io.BytesIO(text)))


def test_a_file_of_bad_rows_only_is_refused() -> None:
    with pytest.raises(DataError, match="no valid rows; 2 invalid rows were skipped"):
        list(read(io.BytesIO(b"x\ny\n"), max_bad_rows=5))


def test_a_name_without_file_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.svm: cannot be read: no such file"):
        read(tmp_path / "none.svm")
    with pytest.raises(DataError, match=r"\*\.svm: no file matches"):
        read(str(tmp_path / "*.svm"))
    with pytest.raises(DataError, match=r"is a directory\. Name its files, for example .*/\*\.svm"):
        read(tmp_path)
    with pytest.raises(DataError, match="no file given"):
        read([])
    with pytest.raises(DataError, match="got int"):
        read(3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="binary mode"):
        read(io.StringIO("1 1:1"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"format": "arff"}, "got 'arff'"),
        ({"rows": 0}, "rows must be >= 1, got 0"),
        ({"max_bad_rows": -1}, "max_bad_rows must be >= 0, got -1"),
        ({"labels": "maybe"}, "labels must be one of 'required', 'missing', 'optional', got 'maybe'"),
        ({"threads": -1}, "threads must be >= 0, got -1"),
        ({"memory": 0}, "memory must be >= 1 byte, got 0"),
    ],
)
def test_wrong_options_are_refused(options: dict, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read(io.BytesIO(GOOD), **options)


def test_a_file_that_vanishes_between_files_or_passes_is_named(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.svm").write_bytes(GOOD)
    stream = read(str(tmp_path / "*.svm"))
    assert sum(len(block) for block in stream) == 4
    (tmp_path / "b.svm").unlink()
    with pytest.raises(DataError, match=r"b\.svm: cannot be read: no such file"):
        list(stream)


def test_a_file_that_shrinks_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(GOOD * 1_500_000)  # more than is read ahead
    blocks = iter(read(path))
    next(blocks)
    os.truncate(path, 1 << 20)
    with pytest.raises(DataError, match="shrank while it was read"):
        list(blocks)


class Endless(io.RawIOBase):
    """A line of 100 MB."""

    left = 100 << 20

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        size = min(size, self.left)
        self.left -= size
        return b"1" * size


def test_a_line_of_100_mb_is_refused() -> None:
    with pytest.raises(DataError, match=r"<file>:1: line longer than 64 MB; a row must fit in that"):
        list(read(Endless()))  # type: ignore[arg-type]


def test_a_line_beyond_the_limit_is_refused_with_its_number() -> None:
    text = b"1 1:1\n" * 30 + b"1 1:0." + b"1" * 1000 + b"\n"
    for threads in (0, 2):
        blocks, message = until_error(stream_of(text, chunk=64, longest_line=200, threads=threads))
        assert sum(map(len, blocks)) == 30
        assert message.startswith("<file>:31: line longer than 200 bytes")
    assert sum(map(len, stream_of(text, chunk=64, longest_line=2000))) == 31


def test_memory_stays_bounded_whatever_the_size(tmp_path: Path) -> None:
    path = tmp_path / "large.svm"
    line = b"1 " + b" ".join(b"%d:0.%04d" % (j, j) for j in range(1, 75)) + b"\n"
    with path.open("wb") as file:
        for _ in range(60):
            file.write(line * 1000)
    program = (
        "import resource, sys; from rarestream.readers import read\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "rows = sum(len(block) for block in read(sys.argv[1]))\n"
        "print(rows, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)"
    )
    made = children.run([sys.executable, "-c", program, path], check=True)
    rows, megabytes = map(int, made.stdout.split())
    assert rows == 60_000
    assert megabytes < 45  # of a file of 49 MB; the same for one of 2 GB
