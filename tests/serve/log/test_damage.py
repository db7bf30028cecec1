"""A torn end is cut off; everything else that is not as it was written is damage, with its place; repair loses nothing."""

from __future__ import annotations

import os
import shutil
import struct
import tracemalloc
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream.errors import OutputError
from rarestream.serve.log import LogDamagedError, LogError, Record, SegmentLog, segments, survey
from rarestream.serve.log.segments import HEADER_BYTES, RECORD_BYTES, Header
from rarestream.serve.log.survey import repair
from tests.serve.log.logs import contents, fill, flipped
from tests.serve.log.logs import segments as files


def one_segment(folder: Path) -> tuple[Path, list[Record], bytes, list[int]]:
    """A log of one segment: its file, its records, its bytes, and where each record begins."""
    records = fill(folder, 12, segment_bytes=1 << 20)
    (path,) = files(folder)
    starts, at = [], HEADER_BYTES
    for one in records:
        starts.append(at)
        at += RECORD_BYTES + len(one.payload)
    return path, records, path.read_bytes(), starts


def read(folder: Path) -> list[Record]:
    with SegmentLog.open(folder, read_only=True) as log:
        return list(log.read())


# -- a torn end


def test_an_end_torn_at_any_byte_is_cut_off_and_said(tmp_path):
    path, records, data, starts = one_segment(tmp_path)
    for size in range(starts[-2] + 1, len(data)):
        path.write_bytes(data[:size])
        whole = sum(start <= size for start in [*starts[1:], len(data)])
        assert read(tmp_path) == records[:whole]
        assert path.read_bytes() == data[:size]
        with SegmentLog.open(tmp_path) as log:
            assert list(log.read()) == records[:whole]
            assert log.next == records[whole].sequence
            if size in starts:
                assert log.cut is None
            else:
                assert log.cut is not None and "of an append that was not finished" in log.cut
                assert f"after entry {log.next - 1}" in log.cut
            assert path.read_bytes() == data[: [*starts, len(data)][whole]]
            again = records[whole]
            log.append([(again.kind, again.count, again.payload)])
            assert list(log.read()) == records[: whole + 1]


@pytest.mark.parametrize("filled", [b"\0", b"\xff", b"x"])
@pytest.mark.parametrize("size", [1, 20, 21, 22, 5000])
def test_an_end_that_is_no_record_is_torn(tmp_path, filled, size):
    path, records, data, _ = one_segment(tmp_path)
    path.write_bytes(data + filled * size)
    with SegmentLog.open(tmp_path) as log:
        assert log.cut is not None and list(log.read()) == records
    assert path.read_bytes() == data


def test_a_segment_that_a_crash_has_left_without_its_header_is_removed(tmp_path):
    records = fill(tmp_path, 30)
    before = contents(tmp_path)
    last = files(tmp_path)[-1]
    following = records[-1].sequence + records[-1].count
    header = Header(following, int(last.stem), last.stat().st_size).encode()
    new = tmp_path / f"{following:020}.log"
    for left in [*(header[:size] for size in range(len(header))), bytes(5), bytes(40), header[:20] + bytes(20)]:
        new.write_bytes(left)
        assert read(tmp_path) == records
        with SegmentLog.open(tmp_path) as log:
            assert log.cut is not None and new.name in log.cut
            assert log.next == following and list(log.read()) == records
        assert contents(tmp_path) == before
    new.write_bytes(header)  # a crash right after it was made
    with SegmentLog.open(tmp_path) as log:
        assert log.cut is None and log.append([(1, 1, b"a")]) == following
        assert list(log.read()) == [*records, Record(following, 1, 1, b"a")]


def test_a_log_whose_very_first_segment_was_begun_only(tmp_path):
    (tmp_path / "00000000000000000005.log").touch()
    with SegmentLog.open(tmp_path) as log:
        assert log.next == 5 and log.cut is not None and files(tmp_path) == []


# -- damage


def test_a_bit_flipped_anywhere_is_found_or_is_in_the_last_record(tmp_path):
    path, records, data, starts = one_segment(tmp_path)
    for at in range(len(data)):
        damaged = flipped(data, at, at % 8)
        path.write_bytes(damaged)
        if at >= starts[-1]:
            with SegmentLog.open(tmp_path) as log:
                assert log.cut is not None and list(log.read()) == records[:-1]
            continue
        offset = 0 if at < HEADER_BYTES else max(start for start in starts if start <= at)
        last = 0 if offset == 0 else records[starts.index(offset)].sequence - 1
        for read_only in (False, True):
            with pytest.raises(LogDamagedError) as error:
                SegmentLog.open(tmp_path, read_only=read_only)
            assert (error.value.path, error.value.offset, error.value.last) == (str(path), offset, last)
        assert path.read_bytes() == damaged


def test_damage_in_a_segment_that_is_not_the_last_is_found_when_it_is_read(tmp_path):
    records = fill(tmp_path, 60)
    for path in files(tmp_path)[:-1]:
        data = path.read_bytes()
        path.write_bytes(flipped(data, HEADER_BYTES + RECORD_BYTES // 2))
        with SegmentLog.open(tmp_path) as log:
            good: list[Record] = []
            with pytest.raises(LogDamagedError) as error:
                good.extend(log.read())
            assert error.value.offset == HEADER_BYTES and error.value.path == str(path)
            assert good == [one for one in records if one.sequence < int(path.stem)]
        path.write_bytes(data)
    assert read(tmp_path) == records


def test_a_message_says_the_place_what_is_good_and_the_command(tmp_path):
    state = tmp_path / "my state"
    fill(state / "log", 60)
    path = files(state / "log")[-1]
    path.write_bytes(flipped(path.read_bytes(), HEADER_BYTES + 5))
    with pytest.raises(LogDamagedError) as error:
        SegmentLog.open(state / "log")
    text = str(error.value)
    assert text.startswith(f"{path}: damaged at byte 40: ")
    assert f"good up to entry {int(path.stem) - 1}" in text
    assert text.endswith(f"rarestream log repair '{state}'")


@pytest.mark.parametrize("which", [0, 1, 2, -2])
def test_a_missing_segment_is_damage_unless_it_is_the_oldest(tmp_path, which):
    records = fill(tmp_path, 60)
    path = files(tmp_path)[which]
    after = int(files(tmp_path)[which + 1].stem)
    path.unlink()
    if which == 0:  # as if it had been removed because it is no longer needed
        assert read(tmp_path) == [one for one in records if one.sequence >= after]
        return
    with pytest.raises(LogDamagedError, match=f"entries from {int(path.stem)} to {after - 1} are missing"):
        SegmentLog.open(tmp_path)


def test_a_segment_that_is_cut_short_is_damage_even_between_records(tmp_path):
    path, records, _, starts = one_segment(tmp_path)
    with SegmentLog.open(tmp_path, segment_bytes=10) as log:
        log.append([(1, 1, b"a")])
    data = path.read_bytes()
    for size in range(HEADER_BYTES, len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(LogDamagedError) as error:
            SegmentLog.open(tmp_path)
        assert error.value.offset == max(start for start in starts if start <= size)
        with pytest.raises(LogDamagedError):
            survey.survey(str(tmp_path)).raise_damage()
    for more in (b"\0", b"x" * 100):
        path.write_bytes(data + more)
        with pytest.raises(LogDamagedError) as error:
            SegmentLog.open(tmp_path)
        assert error.value.offset == len(data) and error.value.last == records[-1].sequence + records[-1].count - 1


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_renamed_segment_is_damage(tmp_path, which):
    fill(tmp_path, 60)
    path = files(tmp_path)[which]
    path.rename(tmp_path / f"{int(path.stem) + 1:020}.log")
    with pytest.raises(LogDamagedError, match=f"by its header its name is {path.name}; if it was renamed, rename it b"):
        SegmentLog.open(tmp_path)


@pytest.mark.parametrize("text", [b"", b"hello", b"x" * 40, b"a diary\n" * 100, bytes(41), bytes(1000)])
@pytest.mark.parametrize("which", [0, 1, -1])
def test_an_empty_or_foreign_file_under_the_name_of_a_segment_is_damage(tmp_path, text, which):
    fill(tmp_path, 60)
    path = files(tmp_path)[which]
    path.write_bytes(text or b"\n" * (which == -1))  # a last one that is empty is what a crash leaves
    with pytest.raises(LogDamagedError) as error:
        SegmentLog.open(tmp_path)
    assert error.value.path == str(path) and error.value.offset == 0


def test_a_folder_under_the_name_of_a_segment_is_damage(tmp_path):
    fill(tmp_path, 60)
    (tmp_path / f"{1000:020}.log").mkdir()
    with pytest.raises(LogDamagedError, match="is not a file"):
        SegmentLog.open(tmp_path)


def test_other_files_beside_segments_do_not_matter(tmp_path):
    records = fill(tmp_path, 20)
    for name in ("notes.txt", "1.log", f"{5:020}.log.bak", ".part"):
        (tmp_path / name).write_text("hello")
    assert read(tmp_path) == records


def test_a_segment_of_a_newer_format_is_said_and_never_changed(tmp_path):
    fill(tmp_path, 60)
    path = files(tmp_path)[-1]
    header = struct.pack("<8sIQQQ", b"RARELOG\n", 2, int(path.stem), 0, 0)
    path.write_bytes(header + struct.pack("<I", crc32(header)) + b"something new")
    before = contents(tmp_path)
    for call in (SegmentLog.open, lambda folder: repair(str(folder), str(tmp_path / "aside")), read):
        with pytest.raises(LogError, match="written by log format 2; this version reads up to 1. Upgrade") as error:
            call(tmp_path)
        assert not isinstance(error.value, LogDamagedError)
    assert contents(tmp_path) == before


def test_a_record_out_of_order_is_damage_even_at_the_end(tmp_path):
    path, _, data, starts = one_segment(tmp_path)
    path.write_bytes(data + data[starts[-1] :])
    with pytest.raises(LogDamagedError, match="a record begins with entry 12, where 13 should be"):
        SegmentLog.open(tmp_path)


def test_a_huge_length_takes_no_memory(tmp_path):
    path, records, data, _ = one_segment(tmp_path)
    for length in (segments.LONGEST, segments.LONGEST + 1, (1 << 32) - 1):
        path.write_bytes(data + struct.pack("<IIQIB", 1, length, 14, 1, 1) + b"x" * 100)
        tracemalloc.start()
        try:
            with SegmentLog.open(tmp_path) as log:
                assert log.cut is not None and list(log.read()) == records
            assert tracemalloc.get_traced_memory()[1] < 32 << 20  # the most of it is for looking for whole records
        finally:
            tracemalloc.stop()


def test_a_whole_record_far_behind_a_bad_one_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "PIECE", 128)
    with SegmentLog.open(tmp_path) as log:
        log.append([(1, 1, b"a"), (1, 1, b"b" * 1000), (1, 1, b"c")])
    (path,) = files(tmp_path)
    data = path.read_bytes()
    path.write_bytes(flipped(data, HEADER_BYTES + RECORD_BYTES + 1 + 5))
    with pytest.raises(LogDamagedError, match="whole records follow"):
        SegmentLog.open(tmp_path)


def test_payloads_that_look_like_headers_do_not_make_opening_slow_or_cut_too_much(tmp_path, monkeypatch):
    """What would take too long is taken for damage: nothing is cut off then."""
    checked = []
    crc = segments._crc
    monkeypatch.setattr(segments, "_crc", lambda *place: checked.append(place) or crc(*place))
    lure = struct.pack("<IIQIB", 0, 1 << 20, 5, 1, 1)
    with SegmentLog.open(tmp_path) as log:
        log.append([(1, 1, lure * 100_000)])
    (path,) = files(tmp_path)
    before = flipped(path.read_bytes(), HEADER_BYTES)
    path.write_bytes(before)
    with pytest.raises(LogDamagedError):
        SegmentLog.open(tmp_path)
    assert path.read_bytes() == before and len(checked) < 500


# -- repair


def repaired(folder: Path) -> survey.Repair:
    return repair(str(folder / "log"), str(folder / "aside"))


def found_again(state: Path, name: str) -> list[bytes]:
    """What a segment may have been before a repair: every byte is in the log still, or aside."""
    kept = contents(state / "log").get(name, b"")
    aside = {Path(path).name: data for path, data in contents(state / "aside").items()}
    ends = [kept + data for other, data in aside.items() if other.startswith(f"{name}.from-")]
    return [kept, *ends, *(data for other, data in aside.items() if other.startswith(name) and ".from-" not in other)]


DAMAGES = {
    "a flipped bit": lambda paths: paths[2].write_bytes(flipped(paths[2].read_bytes(), 150)),
    "in the first record": lambda paths: paths[0].write_bytes(flipped(paths[0].read_bytes(), 45)),
    "in the first header": lambda paths: paths[0].write_bytes(flipped(paths[0].read_bytes(), 3)),
    "in a header": lambda paths: paths[3].write_bytes(flipped(paths[3].read_bytes(), 20)),
    "in the last header": lambda paths: paths[-1].write_bytes(flipped(paths[-1].read_bytes(), 20)),
    "a missing segment": lambda paths: paths[1].unlink(),
    "cut short": lambda paths: os.truncate(paths[1], 100),
    "foreign": lambda paths: paths[2].write_text("hello"),
    "renamed": lambda paths: paths[2].rename(paths[2].with_name(f"{int(paths[2].stem) + 1:020}.log")),
    "too long": lambda paths: paths[2].write_bytes(paths[2].read_bytes() + b"more"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_repair_keeps_what_is_good_and_moves_the_rest_aside(tmp_path, damage):
    log = tmp_path / "log"
    records = fill(log, 60)
    DAMAGES[damage](files(log))
    before = contents(log)
    with pytest.raises(LogDamagedError) as error:
        survey.survey(str(log)).raise_damage()
    done = repaired(tmp_path)
    assert done.last == error.value.last and done.damage is not None and done.shortened
    good = [one for one in records if one.sequence + one.count - 1 <= done.last]
    assert read(log) == good
    assert done.aside is not None and sorted(done.moved) == sorted(os.listdir(done.aside))
    for name, data in before.items():
        assert data in found_again(tmp_path, name)
    with SegmentLog.open(log) as again:
        assert again.next == done.last + 1
        again.append([(9, 1, b"after the repair")])
        assert list(again.read()) == [*good, Record(done.last + 1, 1, 9, b"after the repair")]
    assert repaired(tmp_path).damage is None


def test_repair_of_a_log_that_is_whole_changes_nothing_but_a_torn_end(tmp_path):
    log = tmp_path / "log"
    records = fill(log, 60)
    before = contents(tmp_path)
    done = repaired(tmp_path)
    assert (done.damage, done.torn, done.moved) == (None, None, []) and contents(tmp_path) == before
    with open(files(log)[-1], "ab") as file:
        file.write(b"torn")
    done = repaired(tmp_path)
    assert done.torn is not None and done.torn.bytes == 4
    assert contents(tmp_path) == before and read(log) == records


CALLS = ("rename", "ftruncate", "fsync", "replace", "makedirs", "open", "unlink")


@pytest.mark.parametrize("needed", [None, 50])
@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "in the last header"])
def test_a_repair_that_is_interrupted_anywhere_loses_nothing_and_can_be_run_again(tmp_path, damage, needed):
    master = tmp_path / "master"
    records = fill(master / "log", 60)
    DAMAGES[damage](files(master / "log"))
    with pytest.raises(LogDamagedError) as error:
        survey.survey(str(master / "log")).raise_damage()
    last = error.value.last
    for number in range(1000):
        state = tmp_path / f"state{number}"
        shutil.copytree(master, state)
        with pytest.MonkeyPatch.context() as patch:
            left = crash_after(patch, number)
            try:
                repair(str(state / "log"), str(state / "aside"), needed)
                ended = True
            except (LogError, OutputError, OSError, Crash):
                ended = False
        done = repair(str(state / "log"), str(state / "aside"), needed)
        if needed is None:
            good = [one for one in records if one.sequence + one.count - 1 <= last]
            assert read(state / "log") == good and done.last == last
        else:
            assert read(state / "log") == [one for one in records if one.sequence >= done.first] and done.last == 60
        for name, data in contents(master / "log").items():
            assert data in found_again(state, name)
        shutil.rmtree(state)
        if ended and left():
            return
    raise AssertionError("it never ended")


class Crash(BaseException):
    """The process ends here."""


def crash_after(patch: pytest.MonkeyPatch, number: int, calls: tuple[str, ...] = CALLS):
    """Make the call of the system after so many end the process, and all after it do nothing.

    Returns a function that tells whether there were fewer.
    """
    made = 0

    def replaced(call):
        def act(*words, **named):
            nonlocal made
            made += 1
            if made > number:
                raise Crash
            return call(*words, **named)

        return act

    for name in calls:
        patch.setattr(os, name, replaced(getattr(os, name)))
    return lambda: made <= number


@pytest.mark.parametrize("damage", DAMAGES)
def test_repair_keeps_what_follows_the_newest_snapshot_if_that_is_whole(tmp_path, damage):
    log = tmp_path / "log"
    records = fill(log, 60)
    DAMAGES[damage](files(log))
    before = contents(log)
    kept = files(log)[-2]
    done = repair(str(log), str(tmp_path / "aside"), int(kept.stem) + 1)
    if damage == "in the last header":
        assert done.last == int(files(log)[-1].stem) - 1 or done.first == 1
    else:
        assert (done.first, done.last, done.shortened) == (int(kept.stem), 60, False)
        assert read(log) == [one for one in records if one.sequence >= done.first]
    for name, data in before.items():
        assert data in found_again(tmp_path, name)
    assert done.damage is not None and repaired(tmp_path).damage is None


def test_repair_keeps_what_is_whole_between_a_snapshot_and_a_second_damage(tmp_path):
    log = tmp_path / "log"
    records = fill(log, 80)
    paths = files(log)
    for path in (paths[1], paths[4]):
        path.write_bytes(flipped(path.read_bytes(), 150))
    done = repair(str(log), str(tmp_path / "aside"), int(paths[3].stem))
    assert done.first == int(paths[3].stem) and int(paths[4].stem) <= done.last < int(paths[5].stem)
    assert read(log) == [one for one in records if done.first <= one.sequence <= done.last]


def test_a_snapshot_that_lies_in_the_damaged_segment_does_not_help(tmp_path):
    log = tmp_path / "log"
    fill(log, 60)
    paths = files(log)
    paths[2].write_bytes(flipped(paths[2].read_bytes(), 60))
    done = repair(str(log), str(tmp_path / "aside"), int(paths[3].stem) - 1)
    assert done.first == 1 and done.last == int(paths[2].stem) - 1


# -- anything


@settings(max_examples=150)
@given(data=st.data())
def test_whatever_is_done_to_the_files_good_records_are_read_or_damage_is_said(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("log")
    records = fill(folder, 30)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(files(folder)))
        text = path.read_bytes()
        at = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(at, len(text)))
        new = data.draw(st.binary(max_size=60) | st.sampled_from([text[at:], b"\0" * (end - at)]))
        path.write_bytes(text[:at] + new + text[end:])
    before = contents(folder)
    found = survey.survey(str(folder))
    if found.damage is None:
        good = read(folder)
        assert good == records[: len(good)]
    else:
        with pytest.raises(LogDamagedError) as error:
            read(folder)
        assert error.value.last <= records[-1].sequence + records[-1].count - 1
    assert contents(folder) == before
    repair(str(folder), str(folder / "aside"))
    kept = read(folder)
    assert kept == records[: len(kept)]
