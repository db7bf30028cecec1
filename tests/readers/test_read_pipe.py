"""Rows from a pipe go through as they come; what is learned does not depend on how they came; a stop loses none."""

from __future__ import annotations

import gzip
import os
import random
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from svm_rows import same, stream_of, stream_over

from rarestream.errors import DataError
from rarestream.readers import read

TEXT = b"".join(b"%d %d:1\n" % (i % 2, i + 1) for i in range(1000))


class Pipe:
    """A pipe that the test writes to, and a stream that reads it."""

    def __init__(self, threads: int = 0, **options: Any) -> None:
        self.ear, self.mouth = os.pipe()
        self.ending = threading.Lock()  # a timer may end it while the test does
        self.file = os.fdopen(self.ear, "rb", buffering=0)
        self.stream = read(self.file, threads=threads, **options)

    def write(self, data: bytes) -> None:
        os.write(self.mouth, data)

    def end(self) -> None:
        with self.ending:
            if self.mouth >= 0:
                os.close(self.mouth)
                self.mouth = -1

    def close(self) -> None:
        self.end()
        self.file.close()


@pytest.fixture
def pipe() -> Iterator[Callable[..., Pipe]]:
    made: list[Pipe] = []

    def make(**options: Any) -> Pipe:
        made.append(Pipe(**options))
        return made[-1]

    yield make
    for one in made:
        one.close()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("rarestream-reader")] == []


def later(seconds: float, act: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(seconds, act)
    timer.start()
    return timer


@pytest.mark.parametrize("threads", [0, 2])
def test_rows_come_out_while_the_writer_waits(pipe: Callable[..., Pipe], threads: int) -> None:
    one = pipe(threads=threads)
    one.write(b"1 1:1\n")
    blocks = iter(one.stream)
    assert next(blocks).indices.tolist() == [0]
    for j in range(1, 5):
        one.write(b"0 %d:1\n1 " % (j + 1))  # and the start of another
        assert next(blocks).indices.tolist() == [j]
        one.write(b"%d:1\n" % (j + 100))
        assert next(blocks).indices.tolist() == [j + 99]
    one.write(b"1 77:1")  # what has no line end at the end is a row
    one.end()
    assert [block.indices.tolist() for block in blocks] == [[76]]


def test_lines_that_come_in_quick_succession_are_one_block(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    writing = threading.Thread(target=lambda: [(one.write(b"1 1:1\n"), time.sleep(0.001)) for _ in range(20)])
    blocks = iter(one.stream)
    writing.start()
    assert len(next(blocks)) > 1
    writing.join()
    one.end()
    list(blocks)


def test_a_fast_pipe_fills_its_chunks(pipe: Callable[..., Pipe]) -> None:
    one = pipe(rows=1 << 20)
    text = TEXT * 300  # 3.3 MB

    def write() -> None:
        rest = memoryview(text)
        while rest:
            rest = rest[os.write(one.mouth, rest) :]
        one.end()

    writing = threading.Thread(target=write)
    writing.start()
    blocks = list(one.stream)
    writing.join()
    assert len(blocks) < 8
    assert same(blocks, list(stream_of(text)))


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.ZstdCompressor().compress])
@pytest.mark.parametrize("threads", [0, 2])
def test_how_bytes_arrive_changes_nothing(
    pipe: Callable[..., Pipe], compress: Callable[[bytes], bytes], threads: int
) -> None:
    draw = random.Random(threads)
    text = b"# first\n\n" + TEXT
    data = compress(text)
    one = pipe(threads=threads)

    def write() -> None:
        at = 0
        for _ in range(12):
            size = draw.choice([1, 2, 7, len(data) // 12])
            one.write(data[at : at + size])
            at += size
            time.sleep(draw.choice([0, 0.001, 0.12]))
        one.write(data[at:])
        one.end()

    writing = threading.Thread(target=write)
    writing.start()
    assert same(list(one.stream), list(stream_of(text)))
    writing.join()


def test_text_comes_out_of_a_compressed_pipe_as_its_members_come(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.write(gzip.compress(b"1 1:1\n"))
    blocks = iter(one.stream)
    assert next(blocks).indices.tolist() == [0]
    packer = zlib.compressobj(wbits=31)
    for j in (2, 3):
        one.write(packer.compress(b"1 %d:1\n" % j) + packer.flush(zlib.Z_SYNC_FLUSH))
        assert next(blocks).indices.tolist() == [j - 1]
    one.write(packer.flush())
    one.end()
    assert list(blocks) == []


def test_first_rows_that_do_not_tell_which_label_is_positive_wait_for_more(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.write(b"# a comment\n")
    timers = [later(0.2, lambda: one.write(b"4 1:1\n")), later(0.5, lambda: one.write(b"2 2:1\n"))]
    blocks = iter(one.stream)
    block = next(blocks)
    assert block.labels is not None
    assert block.labels.tolist() == [1, -1]
    one.write(b"2 1:1\n")
    assert len(next(blocks)) == 1  # from now on it is known
    for timer in timers:
        timer.join()


def test_first_rows_that_never_tell_are_refused_at_the_end(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.write(b"4 1:1\n")
    later(0.3, one.end)
    with pytest.raises(DataError, match="only the label 4"):
        list(one.stream)


def test_a_comment_alone_does_not_decide_what_columns_count_from(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.write(b"# columns count from 0\n")
    later(0.3, lambda: one.write(b"1 0:1\n"))
    assert next(iter(one.stream)).indices.tolist() == [0]


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("shuffle", [None, 3])
@pytest.mark.parametrize("said", [b"", b"1 1", TEXT, TEXT + b"1 7777:1", gzip.compress(TEXT)[:-9]])
def test_a_stop_gives_out_the_whole_lines_that_came(
    pipe: Callable[..., Pipe], threads: int, shuffle: int | None, said: bytes
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    one = pipe(threads=threads, shuffle=shuffle)
    if said:
        one.write(said)
    later(0.4, one.stream.stop)
    found = sorted(int(j) for block in one.stream for j in block.indices)
    assert found == (list(range(1000)) if len(said) > 10 else [])
    one.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("said", [TEXT + b"1 7777:1", gzip.compress(TEXT)[:-9]])
def test_a_stop_that_ended_the_writer_too_drops_only_what_is_not_whole(
    pipe: Callable[..., Pipe], threads: int, said: bytes
) -> None:
    one = pipe(threads=threads)
    one.write(said)

    def stop() -> None:
        one.stream.stop()
        one.end()

    timer = later(0.4, stop)
    assert [int(j) for block in one.stream for j in block.indices] == list(range(1000))
    timer.join()


def test_a_stop_before_it_is_known_which_label_is_positive_gives_out_nothing(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.write(b"4 1:1\n" * 10)
    later(0.4, one.stream.stop)
    assert list(one.stream) == []


@pytest.mark.parametrize("threads", [0, 2])
def test_a_stop_ends_a_pipe_that_never_pauses(pipe: Callable[..., Pipe], threads: int) -> None:
    one = pipe(threads=threads)
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            try:
                one.write(TEXT)
            except BrokenPipeError:
                return

    writing = threading.Thread(target=write)
    writing.start()
    later(0.3, one.stream.stop)
    for block in one.stream:
        assert len(block)
    over.set()
    one.file.close()
    writing.join()


def test_a_stop_ends_the_wait_for_someone_to_write_to_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe.svm"
    os.mkfifo(path)
    for threads in (0, 2):
        stream = read(path, threads=threads)
        later(0.3, stream.stop)
        assert list(stream) == []
    first = tmp_path / "first.svm"
    first.write_bytes(TEXT)
    stream = read([first, path], threads=2)
    later(0.3, stream.stop)
    assert sum(len(block) for block in stream) == 1000


def test_a_stop_of_a_file_gives_out_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT)
    for shuffle in (None, 1):
        stream = stream_over(path, chunk=100, threads=2, rows=10, shuffle=shuffle)
        blocks = iter(stream)
        if shuffle is None:
            next(blocks)
        stream.stop()
        assert len(list(blocks)) <= 1
        assert sum(len(block) for block in stream) == 1000  # the next pass is whole
