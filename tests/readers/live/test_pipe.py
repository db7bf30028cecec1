"""Standard input and named pipes: rows as they come, and nothing lost when they end or are stopped."""

from __future__ import annotations

import io
import os

import pytest

from rarestream.errors import DataError
from rarestream.readers.live.opening import open_live
from tests.readers.live.lines import Beside, blocks, collect, follow, numbers, rows, soon


@pytest.fixture
def pipe():
    read, write = os.pipe()
    reader, writer = os.fdopen(read, "rb", buffering=0), os.fdopen(write, "wb", buffering=0)
    yield reader, writer
    reader.close()
    writer.close()


def text(start, stop):
    return "".join(rows(start, stop)).encode()


def test_rows_come_as_they_are_written_until_the_pipe_is_closed(pipe):
    reader, writer = pipe
    stream = follow(reader, idle=None)

    def write():
        writer.write(text(0, 5))
        soon(lambda: stream.position.get("lines") == 5)
        writer.write(text(5, 8).rstrip(b"\n"))
        writer.close()

    with Beside(write):
        assert collect(stream) == list(range(8))
    assert stream.position == {"lines": 8} and not stream.replayable


def test_what_has_arrived_when_it_is_stopped_is_still_yielded(pipe):
    reader, writer = pipe
    writer.write(text(0, 5))
    stream, found = follow(reader, idle=None), []
    for block in blocks(stream):
        found += numbers([block])
        if len(found) == 5:
            writer.write(text(5, 9) + b"1 77")
            stream.stop()
    assert found == list(range(9))


def test_a_named_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write():
        with open(path, "wb") as file:
            file.write(text(0, 4))

    with Beside(write):
        assert collect(follow(path, idle=5.0)) == [0, 1, 2, 3]


def test_the_first_rows_of_a_pipe_wait_until_both_labels_are_there(pipe):
    reader, writer = pipe
    stream = open_live(reader, "csv", label="what", idle=5.0)

    def write():
        writer.write(b"site,what\na,ham\n")
        soon(lambda: len(stream._source._unfinished) == 0)
        writer.write(b"b,spam\nc,ham\n")
        writer.close()

    with Beside(write):
        found = [block.labels.tolist() for block in blocks(stream)]
    assert found == [[-1, 1, -1]]


def test_an_open_file_is_followed_by_its_path(tmp_path):
    with pytest.raises(DataError, match="is an open file; pass its path"):
        open_live(io.BytesIO(text(0, 3)))
