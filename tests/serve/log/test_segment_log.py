"""SegmentLog: what is appended is read, in order, by whoever reads; its bytes are those of the specification."""

from __future__ import annotations

import os
import threading
import tracemalloc

import pytest

from rarestream.errors import DataError
from rarestream.serve.log import LogBrokenError, LogError, Record, SegmentLog, segment_log, segments
from rarestream.serve.log.segments import HEADER_BYTES, RECORD_BYTES
from tests.serve.log.logs import contents, fill
from tests.serve.log.logs import segments as files

GOLDEN = """
52 41 52 45 4c 4f 47 0a  01 00 00 00               # magic, format
07 00 00 00 00 00 00 00                            # first entry
00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00   # no segment before
d5 65 ec e6                                        # CRC
4c bf dd 70  05 00 00 00  07 00 00 00 00 00 00 00  02 00 00 00  03  68 65 6c 6c 6f
68 3d 18 5e  00 00 00 00  09 00 00 00 00 00 00 00  01 00 00 00  ff
"""
GOLDEN_NEXT = """
52 41 52 45 4c 4f 47 0a  01 00 00 00
0a 00 00 00 00 00 00 00
07 00 00 00 00 00 00 00  57 00 00 00 00 00 00 00   # first entry and size of the segment before
b9 a0 d8 7e
ba ec a1 6e  04 00 00 00  0a 00 00 00 00 00 00 00  01 00 00 00  01  6e 65 78 74
"""


def golden(text: str) -> bytes:
    return bytes.fromhex("".join(line.partition("#")[0] for line in text.splitlines()))


def test_the_bytes_of_a_log_are_those_of_the_specification(tmp_path):
    with SegmentLog.open(tmp_path, first=7, segment_bytes=80) as log:
        assert log.append([(3, 2, b"hello"), (255, 1, b"")]) == 7
        assert log.append([(1, 1, b"next")]) == 10
    assert files(tmp_path)[0].read_bytes() == golden(GOLDEN)
    assert files(tmp_path)[1].read_bytes() == golden(GOLDEN_NEXT)
    assert [path.name for path in files(tmp_path)] == ["00000000000000000007.log", "00000000000000000010.log"]


def test_the_golden_bytes_are_read(tmp_path):
    (tmp_path / "00000000000000000007.log").write_bytes(golden(GOLDEN))
    with SegmentLog.open(tmp_path) as log:
        assert list(log.read()) == [Record(7, 2, 3, b"hello"), Record(9, 1, 255, b"")]
        assert (log.first, log.next, log.bytes, log.cut) == (7, 10, 87, None)


def test_what_is_appended_is_read_after_reopening(tmp_path):
    records = fill(tmp_path, 100)
    assert len(files(tmp_path)) > 5
    for read_only in (True, False):
        with SegmentLog.open(tmp_path, read_only=read_only) as log:
            assert list(log.read()) == records
            assert (log.first, log.next, log.cut) == (1, records[-1].sequence + records[-1].count, None)
            assert log.bytes == sum(path.stat().st_size for path in files(tmp_path))


def test_reading_begins_with_the_record_that_has_the_next_entry(tmp_path):
    records = fill(tmp_path, 60)
    with SegmentLog.open(tmp_path, read_only=True) as log:
        for after in range(66):
            assert list(log.read(after)) == [one for one in records if one.sequence + one.count - 1 > after]


def test_an_empty_log_begins_where_it_is_told(tmp_path):
    with SegmentLog.open(tmp_path / "log", first=50) as log:
        assert (log.first, log.next, log.bytes, list(log.read())) == (50, 50, 0, [])
        log.sync()
        assert log.append([]) == 50 and files(tmp_path / "log") == []
        assert log.append([(1, 1, b"a")]) == 50
    with SegmentLog.open(tmp_path / "log", first=1) as log:
        assert log.next == 51


def test_a_log_that_ends_before_what_is_needed_goes_on_there(tmp_path):
    before = fill(tmp_path, 10)
    with SegmentLog.open(tmp_path, first=1000) as log:
        assert log.next == 1000 and log.append([(1, 1, b"a")]) == 1000
    for read_only in (True, False):
        with SegmentLog.open(tmp_path, first=1001, read_only=read_only) as log:
            assert list(log.read()) == [*before, Record(1000, 1, 1, b"a")]
            assert log.next == 1001


def test_segments_that_have_only_older_entries_are_removed(tmp_path):
    records = fill(tmp_path, 100)
    firsts = [int(path.stem) for path in files(tmp_path)]
    with SegmentLog.open(tmp_path, segment_bytes=300) as log:
        assert log.remove_before(firsts[2] - 1) == 1
        assert log.remove_before(firsts[2]) == 1
        assert log.first == firsts[2]
        assert list(log.read()) == [one for one in records if one.sequence >= firsts[2]]
        assert log.remove_before(10**9) == len(firsts) - 3
        assert log.first == firsts[-1] and log.bytes == files(tmp_path)[0].stat().st_size
        assert log.append([(1, 1, b"a")]) == records[-1].sequence + records[-1].count
    with SegmentLog.open(tmp_path) as log:
        assert log.first == firsts[-1]


def test_one_append_is_one_call_and_one_that_exceeds_a_segment_is_not_divided(tmp_path, monkeypatch):
    calls = []
    writev = os.writev
    monkeypatch.setattr(os, "writev", lambda file, parts: calls.append(len(parts)) or writev(file, parts))
    with SegmentLog.open(tmp_path, segment_bytes=1000) as log:
        log.append([(1, 1, b"small")])
        del calls[:]
        log.append([(1, 1, b"x" * 600)] * 5000)
        assert calls == [1, 1]  # the header of a new segment, and all records
        assert len(files(tmp_path)) == 2
        del calls[:]
        log.append([(1, 1, b"y" * segments.LARGE), (1, 1, b"z")] * 3)
        assert calls == [1, 7]
        assert [len(one.payload) for one in log.read(5001)] == [segments.LARGE, 1] * 3


def test_more_parts_than_a_call_takes(tmp_path):
    payload = b"y" * segments.LARGE
    with SegmentLog.open(tmp_path) as log:
        log.append([(1, 1, payload)] * 600)
        assert [one.payload == payload for one in log.read()] == [True] * 600


def test_a_record_longer_than_what_is_read_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "PIECE", 64)
    payloads = [b"a" * size for size in (0, 1, 42, 43, 44, 63, 64, 65, 128, 1000, 5)]
    with SegmentLog.open(tmp_path) as log:
        log.append([(1, 1, payload) for payload in payloads])
        assert [one.payload for one in log.read()] == payloads
    with SegmentLog.open(tmp_path) as log:
        assert log.next == len(payloads) + 1


def test_reading_takes_memory_for_a_piece_not_for_the_log(tmp_path):
    with SegmentLog.open(tmp_path) as log:
        for _ in range(40):
            log.append([(1, 1, b"x" * 1000)] * 1000)
        tracemalloc.start()
        try:
            assert sum(1 for _ in log.read()) == 40_000
            assert tracemalloc.get_traced_memory()[1] < 8 << 20
        finally:
            tracemalloc.stop()


def test_reading_yields_what_was_there_when_it_began(tmp_path):
    with SegmentLog.open(tmp_path, segment_bytes=100) as log:
        log.append([(1, 1, b"a")])
        records = log.read()
        log.append([(1, 1, b"b")])
        assert [one.payload for one in records] == [b"a"]
        assert [one.payload for one in log.read()] == [b"a", b"b"]


@pytest.mark.parametrize("read_only", [False, True])
def test_reading_beside_appending_yields_whole_records_in_order(tmp_path, read_only):
    with SegmentLog.open(tmp_path, segment_bytes=20_000) as log:
        log.append([(1, 1, b"1")])
        reader = SegmentLog.open(tmp_path, read_only=True) if read_only else log
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                first = log.next
                log.append([(1, 1, str(first + i).encode() * 50) for i in range(20)])
                log.sync()

        writing = threading.Thread(target=write)
        writing.start()
        try:
            last = 1
            while last < 20_000:
                for one in reader.read(last):
                    assert one.sequence == last + 1 and one.payload == str(one.sequence).encode() * 50
                    last = one.sequence
        finally:
            stop.set()
            writing.join()


def test_syncing_beside_appending_through_many_segments(tmp_path):
    with SegmentLog.open(tmp_path, segment_bytes=200) as log:
        done = threading.Event()

        def sync() -> None:
            while not done.is_set():
                log.sync()

        syncing = [threading.Thread(target=sync) for _ in range(2)]
        for thread in syncing:
            thread.start()
        for _ in range(300):
            log.append([(1, 1, b"x" * 50)])
        done.set()
        for thread in syncing:
            thread.join()
        assert sum(1 for _ in log.read()) == 300


@pytest.mark.parametrize(
    "bad", [(0, 1, b""), (256, 1, b""), (1, 0, b""), (1, -1, b""), (1, 1 << 32, b""), (-1, 1, b"")]
)
def test_a_record_that_is_not_as_it_should_be_changes_nothing(tmp_path, bad):
    fill(tmp_path, 5)
    before = contents(tmp_path)
    with SegmentLog.open(tmp_path) as log, pytest.raises(DataError, match="kind from 1 to 255"):
        log.append([(1, 1, b"good"), bad])
    assert contents(tmp_path) == before


def test_a_payload_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "LONGEST", 100)
    with SegmentLog.open(tmp_path) as log:
        log.append([(1, 1, b"x" * 100)])
        with pytest.raises(DataError, match="at most 100 bytes"):
            log.append([(1, 1, b"x" * 101)])


def test_a_log_open_for_reading_or_closed_refuses_to_write(tmp_path):
    fill(tmp_path, 5)
    log = SegmentLog.open(tmp_path, read_only=True)
    for call in (lambda: log.append([(1, 1, b"")]), log.sync, lambda: log.remove_before(3)):
        with pytest.raises(LogError, match="open for reading only"):
            call()
    log = SegmentLog.open(tmp_path)
    log.close()
    log.close()
    with pytest.raises(LogError, match="is closed"):
        log.append([(1, 1, b"")])


def test_a_log_that_is_not_there_is_not_made_for_reading(tmp_path):
    with pytest.raises(LogError, match="No such file"):
        SegmentLog.open(tmp_path / "no", read_only=True)
    assert not (tmp_path / "no").exists()


def test_the_first_entry_has_a_number_above_zero(tmp_path):
    with pytest.raises(DataError, match="first must be >= 1"):
        SegmentLog.open(tmp_path, first=0)


def test_a_segment_removed_while_it_is_read_is_said(tmp_path):
    fill(tmp_path, 50)
    with SegmentLog.open(tmp_path) as log:
        records = log.read()
        next(records)
        log.remove_before(10**6)
        with pytest.raises(LogError, match="was removed while the log was read"):
            list(records)


# -- syncing


def test_what_an_earlier_process_left_unsynced_is_synced_when_it_is_opened(tmp_path, monkeypatch):
    fill(tmp_path, 5)
    synced = []
    monkeypatch.setattr(segment_log, "fdatasync", synced.append)
    with SegmentLog.open(tmp_path):
        assert len(synced) == 1


def test_a_sync_that_fails_breaks_the_log_for_good(tmp_path, monkeypatch):
    fill(tmp_path, 5)
    log = SegmentLog.open(tmp_path)
    calls = []

    def fail(file: int) -> None:
        calls.append(file)
        raise OSError(5, "Input/output error")

    log.append([(1, 1, b"a")])
    monkeypatch.setattr(segment_log, "fdatasync", fail)
    for call in (log.sync, log.sync, lambda: log.append([(1, 1, b"")]), lambda: log.remove_before(9)):
        with pytest.raises(LogBrokenError, match="could not be written to disk"):
            call()
    assert len(calls) == 1  # never again: the second call might succeed without anything being written
    assert [one.sequence for one in log.read()][-1] == log.next - 1  # what is in the files can be read still
    log.close()


def test_a_sync_that_fails_when_a_segment_is_full_breaks_the_log(tmp_path, monkeypatch):
    log = SegmentLog.open(tmp_path, segment_bytes=100)
    log.append([(1, 1, b"x" * 90)])
    before = contents(tmp_path)

    def fail(file: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(segment_log, "fdatasync", fail)
        with pytest.raises(LogBrokenError):
            log.append([(1, 1, b"y")])
    with pytest.raises(LogBrokenError):
        log.append([(1, 1, b"y")])
    assert contents(tmp_path) == before


def test_sizes_are_those_of_the_docs():
    assert (HEADER_BYTES, RECORD_BYTES) == (40, 21)
