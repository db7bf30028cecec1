"""The Stream: passes, progress, resuming, standard input, threads that come and go."""

from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from svm_rows import same, stream_of, stream_over, until_error

from rarestream.errors import DataError
from rarestream.readers import read
from tests import children

TEXT = b"".join(b"%d %d:1\n" % (i % 2, i + 1) for i in range(1000))


def reader_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("rarestream-reader")]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def first_features(blocks: object) -> list[int]:
    return [int(j) for block in blocks for j in block.indices]  # type: ignore[attr-defined]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a.svm").write_bytes(TEXT)
    return tmp_path / "a.svm"


def test_a_file_can_be_read_again_and_again(path: Path) -> None:
    stream = read(path, rows=300)
    first = list(stream)
    assert [len(block) for block in first] == [300, 300, 300, 100]
    assert same(first, list(stream))
    again = read(io.BytesIO(TEXT), rows=300)
    assert same(first, list(again))
    assert same(first, list(again))


@pytest.mark.parametrize(
    ("cores", "threads"), [(1, 0), (2, 2), (3, 2), (4, 3), (6, 5), (8, 7), (9, 8), (16, 8), (256, 8)]
)
def test_the_threads_that_parse_follow_the_cores(cores: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rarestream.readers.stream.cores", lambda: cores)
    expected = list(stream_of(TEXT, rows=70, threads=0, chunk=64))
    blocks = iter(stream_of(TEXT, rows=70, chunk=64))
    first = [next(blocks), next(blocks)]  # the first chunk decides what the others are, and is parsed before them
    assert len(reader_threads()) == threads
    assert same([*first, *blocks], expected)
    assert reader_threads() == []


def test_several_files_and_globs_are_one_stream(tmp_path: Path) -> None:
    for i, name in enumerate(["a.svm", "b.svm", "c.svm"]):
        (tmp_path / name).write_bytes(b"%d %d:1" % (i % 2, i + 1))  # no newline at the end
    for source in (
        str(tmp_path / "*.svm"),
        sorted(tmp_path.iterdir()),
        [str(tmp_path / "[ab].svm"), tmp_path / "c.svm"],
    ):
        assert [j for block in read(source) for j in block.indices] == [0, 1, 2]


def test_a_line_is_counted_from_the_start_of_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_bytes(b"1 1:1\n-1 1:1\n")
    (tmp_path / "b.svm").write_bytes(b"1 1:1\nx\n")
    with pytest.raises(DataError, match=r"b\.svm:2:1: the label"):
        list(read(str(tmp_path / "*.svm")))


def test_fraction_grows_to_one(path: Path) -> None:
    stream = read(path, rows=10)
    assert stream.fraction == 0
    seen = [stream.fraction for _ in stream]
    assert seen == sorted(seen)
    assert stream.fraction == 1
    in_chunks = stream_of(TEXT * 50, rows=10, chunk=500, threads=0)
    seen = [in_chunks.fraction for _ in in_chunks]
    assert seen[0] is not None
    assert 0 < seen[0] < 0.2


def test_sources_tell_the_data_again(path: Path, tmp_path: Path) -> None:
    (tmp_path / "large.svm").write_bytes(TEXT * 20)
    assert read([path, tmp_path / "large.svm"]).sources == [
        {"name": "a.svm", "size": len(TEXT), "crc32": zlib.crc32(TEXT), "text": len(TEXT)},
        {"name": "large.svm", "size": 20 * len(TEXT), "crc32": zlib.crc32((TEXT * 20)[: 1 << 16]), "text": 1 << 16},
    ]


def test_many_files_are_named_without_being_opened_one_by_one_for_their_checksums(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rarestream.readers.stream.fingerprint", lambda source: pytest.fail("nobody asked"))
    assert sum(len(block) for block in read([path] * 5)) == 5000


def test_a_last_line_without_line_end_is_left_out_unless_the_data_are_finished(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"# first\n" + TEXT + b"\n1 7777:1")
    for chunk in (1 << 20, 100):
        stream = stream_over(path, chunk=chunk, finished=False, rows=100)
        assert first_features(stream) == list(range(1000))
        assert stream.unfinished == f"{path}:1003"
        assert stream.settings["finished"] is False
    assert read(path).unfinished is None
    assert first_features(read(path))[-1] == 7776
    other = tmp_path / "b.svm"
    other.write_bytes(b"1 5:1\n")
    stream = read([path, other], finished=False)  # a successor tells that it is finished
    assert first_features(stream)[-2:] == [7776, 4]
    assert stream.unfinished is None
    other.write_bytes(b"1 5:1")
    stream = read([path, other], finished=False)
    assert first_features(stream)[-1] == 7776
    assert stream.unfinished == f"{other}:1"
    packed = tmp_path / "a.svm.gz"
    packed.write_bytes(gzip.compress(TEXT + b"1 7777:1"))
    assert first_features(read(packed, finished=False))[-1] == 7776


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("memory", [1 << 30, 1 << 20])
def test_where_tells_file_and_line_of_every_row(tmp_path: Path, seed: int | None, threads: int, memory: int) -> None:
    count = 60_000 if seed is not None and memory < 1 << 30 else 3000  # many: through files
    expected = {}
    for name, first in (("a.svm", 1), ("b.svm", count + 1)):
        lines = []
        for j in range(first, first + count):
            lines += ["# a comment"] * (j % 97 == 0) + [""] * (j % 89 == 0) + ["1 x:1"] * (j % 1000 == 0)
            lines.append(f"{j % 2} {j}:1")
            expected[j - 1] = f"{tmp_path / name}:{len(lines)}"
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    paths = [tmp_path / "a.svm", tmp_path / "b.svm"]
    options = {"threads": threads, "shuffle": seed, "max_bad_rows": 1000, "memory": memory}
    stream = stream_over(paths, chunk=3000, rows=70, **options).skip(77)
    assert stream.where(0) is None
    seen = 0
    for number, block in enumerate(stream):
        for row in range(len(block)) if number % 50 < 2 else (0, len(block) - 1):
            assert stream.where(row) == expected[int(block.indices[row])]
        assert stream.where(len(block)) is stream.where(-1) is None
        seen += len(block)
    assert seen == 2 * count - 77


@pytest.mark.parametrize("seed", [None, 5])
def test_where_tells_the_line_of_a_pipe(seed: int | None) -> None:
    ear, mouth = os.pipe()
    os.write(mouth, b"# first\n" + TEXT)
    os.close(mouth)
    with os.fdopen(ear, "rb") as pipe:
        stream = read(pipe, shuffle=seed, rows=100)
        for block in stream:
            assert stream.where(99) == f"<file>:{block.indices[99] + 2}"


def test_a_file_with_nothing_but_an_unfinished_line_says_so(path: Path) -> None:
    path.write_bytes(b"1 1:1")
    with pytest.raises(DataError, match=r"a\.svm:1: has no line end, .*no other row.*finished=True"):
        list(read(path, finished=False))


@given(st.integers(0, 1000), st.integers(1, 400), st.sampled_from([None, 5]))
@settings(max_examples=25, deadline=None)
def test_skipping_rows_leaves_exactly_the_rest(skip: int, rows: int, seed: int | None) -> None:
    everything = first_features(read(io.BytesIO(TEXT), shuffle=seed))
    stream = read(io.BytesIO(TEXT), rows=rows, shuffle=seed).skip(skip)
    assert first_features(stream) == everything[skip:]
    assert first_features(stream) == everything  # the next pass is whole


def test_skipping_more_rows_than_there_are_is_refused(path: Path) -> None:
    with pytest.raises(DataError, match="cannot continue after row 1001: there are only 1000 rows"):
        list(read(path).skip(1001))


def test_standard_input_is_read_once_and_says_so() -> None:
    program = (
        "from rarestream.readers import read; from rarestream.errors import DataError\n"
        "stream = read('-'); print(sum(len(block) for block in stream), stream.fraction, stream.sources)\n"
        "try: list(stream)\n"
        "except DataError as error: print(error)"
    )
    made = children.run([sys.executable, "-c", program], input=TEXT.decode(), check=True)
    first, second = made.stdout.strip().split("\n")
    assert first == "1000 None [{'name': '-', 'size': None, 'crc32': None}]"
    assert second.startswith("-: can be read only once")


def test_ctrl_c_ends_a_wait_for_standard_input() -> None:
    program = (
        "from rarestream.readers import read\n"
        "try: print('ready', flush=True); list(read('-'))\n"
        "except KeyboardInterrupt: print('stopped')"
    )
    with children.Child([sys.executable, "-c", program], stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.line() == "ready\n"
        child.stdin.write(TEXT.decode())
        child.until_read()
        child.send_signal(signal.SIGINT)
        assert child.line() == "stopped\n"
    assert child.returncode == 0


def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.svm"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(TEXT,))
    stream = read(pipe)
    writer.start()
    assert first_features(stream) == list(range(1000))
    writer.join()
    assert stream.fraction is None
    with pytest.raises(DataError, match="can be read only once"):
        iter(stream)


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_threads_keep_the_order_of_rows(threads: int) -> None:
    stream = stream_of(TEXT * 3, rows=77, chunk=100, threads=threads)
    assert first_features(stream) == list(range(1000)) * 3
    assert reader_threads() == []


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_leaving_early_stops_the_threads_and_closes_the_files(tmp_path: Path, threads: int) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT * 3000)
    before = open_files()
    for block in read(path, threads=threads, rows=50):
        assert len(block) == 50
        assert reader_threads() == []  # the first chunk needs none
        break
    blocks = iter(read(path, threads=threads, rows=200_000))
    next(blocks), next(blocks)
    assert reader_threads() != []
    del blocks
    assert reader_threads() == []
    assert open_files() == before


def test_leaving_early_does_not_wait_for_a_pipe() -> None:
    ear, mouth = os.pipe()
    before = open_files()
    with os.fdopen(ear, "rb") as pipe:
        os.write(mouth, TEXT)
        blocks = iter(stream_over(pipe, chunk=64, threads=2, rows=1))
        for _ in range(20):
            next(blocks)
        assert reader_threads() != []
        blocks.close()  # type: ignore[attr-defined]
        assert reader_threads() == []
        assert open_files() == before
    os.close(mouth)


def test_an_error_in_a_thread_comes_where_its_row_would_have() -> None:
    text = TEXT + b"oops\n" + TEXT
    for threads in (0, 1, 2, 5):
        blocks, message = until_error(stream_of(text, rows=64, chunk=128, threads=threads))
        assert message == "<file>:1001:1: the label must be a number, got 'oops'."
        assert first_features(blocks) == list(range(1000))
        assert reader_threads() == []


def test_a_learner_that_fails_leaves_nothing_running(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT * 1000)

    def learn() -> None:
        for _ in read(path, rows=200_000):
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        learn()
    assert reader_threads() == []


def test_rows_longer_than_a_chunk_are_read_whole() -> None:
    long = b"1 " + b" ".join(b"%d:0.25" % j for j in range(1, 5000)) + b"\n-1 3:1\n"
    for chunk in (1, 1000, 1 << 20):
        (block,) = stream_of(long, chunk=chunk, threads=0)
        assert block.indptr.tolist() == [0, 4999, 5000]
        assert np.all(block.values[:-1] == 0.25)
    assert same(list(stream_of(long, chunk=7, threads=2)), list(stream_of(long)))
