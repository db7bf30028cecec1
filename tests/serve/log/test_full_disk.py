"""No space: the log is as it was, byte for byte, and goes on when there is space again."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rarestream.serve.log import LogBrokenError, LogError, LogFullError, Record, SegmentLog, StateLock
from rarestream.serve.log.segments import HEADER_BYTES
from tests.serve.log.logs import contents, fill, segments

Parts = Any


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    mount = shutil.which("mount")
    folder = tmp_path / "small"
    folder.mkdir()
    words = [mount, "-t", "tmpfs", "-o", "size=256k", "none", str(folder)]
    if os.geteuid() != 0 or mount is None or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("only root can mount a file system, where containers may")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def with_records(folder: Path) -> dict[str, bytes]:
    """The segments that have records: one that was begun when there was no space for more is empty."""
    return {name: data for name, data in contents(folder).items() if len(data) > HEADER_BYTES}


def fill_up(log: SegmentLog, folder: Path, size: int) -> int:
    """Append until there is no space; returns how many. What was there stays as it was."""
    done = 0
    while True:
        before, following = with_records(folder), log.next
        try:
            log.append([(1, 1, b"x" * size), (2, 2, b"y" * size)])
        except LogFullError:
            assert with_records(folder) == before and log.next == following
            return done
        done += 1


@pytest.mark.parametrize("segment_bytes", [1 << 20, 20_000])
def test_a_full_disk(small_disk, segment_bytes):
    folder = small_disk / "log"
    with SegmentLog.open(folder, segment_bytes=segment_bytes) as log:
        done = fill_up(log, folder, 5000)
        log.sync()
        assert fill_up(log, folder, 5000) == 0
        assert sum(1 for _ in log.read()) == 2 * done
        following = log.next
    with SegmentLog.open(folder, segment_bytes=segment_bytes) as log:  # also with a disk that is full still
        assert log.cut is None and log.next == following
        assert fill_up(log, folder, 5000) == 0
        with StateLock(small_disk / "log"):
            assert fill_up(log, folder, 5000) == 0
        if log.remove_before(log.next):
            assert fill_up(log, folder, 5000) > 0
            assert next(log.read(following - 1)).sequence == following


def test_the_largest_size_of_a_file(tmp_path):
    fill(tmp_path, 10, segment_bytes=1 << 20)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with SegmentLog.open(tmp_path) as log:
        before, following = contents(tmp_path), log.next
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
        try:
            with pytest.raises(LogFullError, match=r"no space for the log \(File too large\)\. It is as it was before"):
                log.append([(1, 1, b"x" * 3000)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert contents(tmp_path) == before and log.next == following
        assert log.append([(1, 1, b"x" * 3000)]) == following


def written_in_steps(sizes: list[int], code: int | None) -> Callable[[int, Parts], int]:
    """A writev that takes only so many bytes in each call, and then fails, or goes on as usual."""
    writev, left = os.writev, list(sizes)

    def write(file: int, parts: Parts) -> int:
        if not left:
            if code is None:
                return writev(file, parts)
            raise OSError(code, os.strerror(code))
        return os.write(file, b"".join(parts)[: left.pop(0)])

    return write


@pytest.mark.parametrize("sizes", [[], [1], [20], [21], [50, 1], [10_000, 65_536, 3], [100_000]])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, None])
def test_writes_that_are_short_and_then_fail(tmp_path, monkeypatch, sizes, code):
    records = fill(tmp_path, 10, segment_bytes=1 << 20)
    new = [(1, 1, b"a" * 10_000), (2, 3, b"b" * 100_000), (3, 1, b""), (4, 1, b"c" * 70_000)]
    with SegmentLog.open(tmp_path) as log:
        before, first = contents(tmp_path), log.next
        with monkeypatch.context() as patch:
            patch.setattr(os, "writev", written_in_steps(sizes, code))
            if code is None:
                assert log.append(new) == first
            else:
                with pytest.raises(LogFullError):
                    log.append(new)
        if code is not None:
            assert contents(tmp_path) == before and log.next == first
            assert list(log.read()) == records
            log.sync()
            assert log.append(new) == first
        assert [one[3] for one in log.read(first - 1)] == [payload for _, _, payload in new]
    with SegmentLog.open(tmp_path) as log:
        assert log.cut is None and log.next == first + 6


def test_a_write_that_takes_nothing_for_ever_is_an_error(tmp_path, monkeypatch):
    with SegmentLog.open(tmp_path) as log:
        log.append([(1, 1, b"a")])
        monkeypatch.setattr(os, "writev", lambda file, parts: 0)
        with pytest.raises(LogBrokenError, match="nothing was written"):
            log.append([(1, 1, b"b")])


def test_another_error_of_writing_breaks_the_log_and_leaves_the_file(tmp_path, monkeypatch):
    records = fill(tmp_path, 10)
    before = contents(tmp_path)
    log = SegmentLog.open(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", written_in_steps([10], errno.EIO))
        with pytest.raises(LogBrokenError, match="Input/output error"):
            log.append([(1, 1, b"a")])
    with pytest.raises(LogBrokenError):
        log.append([(1, 1, b"a")])
    log.close()
    assert contents(tmp_path) == before
    with SegmentLog.open(tmp_path) as log:
        assert list(log.read()) == records


def test_what_cannot_be_undone_breaks_the_log_and_the_next_start_undoes_it(tmp_path, monkeypatch):
    records = fill(tmp_path, 10)
    log = SegmentLog.open(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", written_in_steps([10], errno.ENOSPC))
        patch.setattr(os, "ftruncate", lambda file, size: os.stat("/nowhere"))
        with pytest.raises(LogBrokenError, match="cannot be removed"):
            log.append([(1, 1, b"a")])
    log.close()
    with SegmentLog.open(tmp_path) as log:
        assert log.cut is not None and "10 bytes" in log.cut and list(log.read()) == records


def test_no_space_for_a_new_segment_leaves_none(tmp_path, monkeypatch):
    records = fill(tmp_path, 10)
    before = contents(tmp_path)
    for sizes in ([], [7]):
        with SegmentLog.open(tmp_path, segment_bytes=50) as log:
            following = log.next
            with monkeypatch.context() as patch:
                patch.setattr(os, "writev", written_in_steps(sizes, errno.ENOSPC))
                with pytest.raises(LogFullError):
                    log.append([(1, 1, b"a")])
            assert contents(tmp_path) == before and list(log.read()) == records
    with SegmentLog.open(tmp_path, segment_bytes=50) as log:
        log.append([(1, 1, b"a")])
        assert list(log.read()) == [*records, Record(following, 1, 1, b"a")]


def test_a_segment_that_cannot_be_made_for_another_reason_can_be_tried_again(tmp_path):
    log = SegmentLog.open(tmp_path / "log")
    (tmp_path / "log").rmdir()
    with pytest.raises(LogError, match="cannot be made"):
        log.append([(1, 1, b"a")])
    (tmp_path / "log").mkdir()
    assert log.append([(1, 1, b"a")]) == 1
    assert len(segments(tmp_path / "log")) == 1


def test_an_interrupted_write_is_undone(tmp_path, monkeypatch):
    fill(tmp_path, 10)
    before = contents(tmp_path)

    def interrupted(file: int, parts: Parts) -> int:
        os.write(file, parts[0])
        raise KeyboardInterrupt

    with SegmentLog.open(tmp_path) as log:
        with monkeypatch.context() as patch:
            patch.setattr(os, "writev", interrupted)
            with pytest.raises(KeyboardInterrupt):
                log.append([(1, 1, b"a")])
        assert contents(tmp_path) == before
        log.append([(1, 1, b"a")])
