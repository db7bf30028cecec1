"""A growing file: every row once, through growth, rotation, truncation and restarts."""

from __future__ import annotations

import gzip
import os
import shutil

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rarestream.errors import DataError
from rarestream.readers.live.file import FileSource
from rarestream.readers.live.opening import open_live
from tests.readers.live.lines import Beside, blocks, collect, follow, numbers, rows, soon


def add(path, lines):
    with open(path, "a") as file:
        file.writelines(lines)


def test_rows_that_are_there_and_rows_that_come_are_read_once(tmp_path):
    log = tmp_path / "a.svm"
    add(log, rows(0, 50))
    stream, found = follow(log), []
    for block in blocks(stream):
        found += numbers([block])
        if len(found) in (50, 60):
            add(log, rows(len(found), len(found) + 10))
    assert found == list(range(70))


def test_a_row_is_read_when_its_line_is_complete(tmp_path):
    log = tmp_path / "a.svm"
    add(log, [*rows(0, 5), "1 6"])
    stream, found = follow(log), []
    for block in blocks(stream):
        found += numbers([block])
        if len(found) == 5:
            add(log, ["2:1 900:1\n"])
    assert found == [0, 1, 2, 3, 4, 61]


def test_the_position_after_any_row_leads_to_the_next_one(tmp_path):
    log = tmp_path / "a.svm"
    add(log, ["# a comment\n", *rows(0, 10), "\n", *rows(10, 20)])
    for learned in (1, 9, 10, 11, 19):
        stream = follow(log)
        next(blocks(stream))
        stream.learned(learned)
        assert collect(follow(log, position=stream.position)) == list(range(learned, 20))


def test_a_table_is_continued_with_its_heading(tmp_path):
    log = tmp_path / "a.csv"
    add(log, ["id,clicked\n", *(f'"row\n{i}",{i % 2}\n' for i in range(9))])
    options = {"format": None, "label": "clicked", "zero_based": None}
    options = {name: value for name, value in options.items() if value is not None}
    stream = open_live(log, idle=0.3, rows=4, **options)
    first = next(blocks(stream))
    stream.learned(3)
    rest = open_live(log, idle=0.3, position=stream.position, features=stream.features, classes=(0, 1), **options)
    found = list(blocks(rest))
    assert sum(map(len, found)) == 6 and len(first) == 4
    assert rest.features.names.names(found[0].indices[:1]) == stream.features.names.names(first.indices[3:4])


@pytest.mark.parametrize("name", ["a.svm.1", "a.svm-20260131", "a-20260131.svm"])
def test_a_file_that_is_rotated_while_it_is_followed(tmp_path, name):
    log = tmp_path / "a.svm"
    add(log, rows(0, 10))
    stream, found = follow(log), []
    for block in blocks(stream):
        found += numbers([block])
        if len(found) == 10:
            os.rename(log, tmp_path / name)
            add(tmp_path / name, [*rows(10, 14), rows(14, 15)[0].rstrip("\n")])  # its writer has not noticed yet
            add(log, rows(15, 20))
    assert found == list(range(20))
    assert stream.take_notes() == [f"{log}: was rotated; the next file is read from its start."]


@pytest.mark.parametrize("packed", [False, True])
def test_files_that_were_rotated_while_nobody_followed(tmp_path, packed):
    log = tmp_path / "a.svm"
    add(log, rows(0, 400))
    stream = follow(log)
    next(blocks(stream))
    stream.learned(7)
    add(log, rows(400, 410))
    os.rename(log, tmp_path / "a.svm.2")
    add(tmp_path / "a.svm.1", rows(410, 420))
    add(log, rows(420, 430))
    (tmp_path / "a.svm.backup").write_text("not a row")
    for number, name in enumerate(["a.svm.2", "a.svm.1", "a.svm"]):
        os.utime(tmp_path / name, (1000 + number, 1000 + number))
    if packed:
        with open(tmp_path / "a.svm.2", "rb") as source, gzip.open(tmp_path / "a.svm.2.gz", "wb") as target:
            shutil.copyfileobj(source, target)
        os.utime(tmp_path / "a.svm.2.gz", (1000, 1000))
        os.remove(tmp_path / "a.svm.2")
    again = follow(log, position=stream.position)
    assert collect(again) == list(range(7, 430))
    assert "was rotated; its rest is read from" in again.take_notes()[0]


def test_a_position_at_the_end_of_a_file_that_is_then_rotated_and_deleted(tmp_path):
    log = tmp_path / "a.svm"
    add(log, rows(0, 10))
    stream = follow(log)

    def rotate():
        soon(lambda: stream.position.get("offset"))
        os.rename(log, tmp_path / "gone")
        add(log, [])

    with Beside(rotate):
        assert collect(stream) == list(range(10))
    os.remove(tmp_path / "gone")
    add(log, rows(10, 12))
    assert collect(follow(log, position=stream.position)) == [10, 11]


@pytest.mark.parametrize("longer", [False, True])
def test_a_file_that_is_truncated_is_read_from_its_start(tmp_path, longer):
    log = tmp_path / "a.svm"
    add(log, rows(0, 10))
    stream, found = follow(log), []
    for block in blocks(stream):
        found += numbers([block])
        if len(found) == 10:
            log.write_text("".join(rows(20, 60 if longer else 23)))
    assert found == [*range(10), *range(20, 60 if longer else 23)]
    assert "was truncated after byte" in stream.take_notes()[0]


def test_a_file_that_is_copied_and_truncated_is_read_to_the_end_of_its_copy(tmp_path):
    log = tmp_path / "a.svm"
    add(log, rows(0, 10))
    stream, found = follow(log), []
    for block in blocks(stream):
        found += numbers([block])
        if len(found) == 10:
            (tmp_path / "a.svm.1").write_text("".join(rows(0, 14)))  # four rows came before the copy was made
            log.write_text("".join(rows(14, 16)))
    assert found == list(range(16))
    assert "what was not read yet is read from" in stream.take_notes()[0]


def test_another_file_than_the_one_that_was_learned_is_an_error_unless_that_is_accepted(tmp_path):
    log = tmp_path / "a.svm"
    add(log, rows(0, 10))
    stream = follow(log)
    list(stream)
    os.remove(log)
    add(log, rows(30, 50))
    with pytest.raises(DataError, match=r"another file than the one that the model has learned up to byte 189.*lost"):
        list(follow(log, position=stream.position))
    os.remove(log)
    with pytest.raises(DataError, match="is not there, and neither is"):
        list(follow(log, position=stream.position))
    add(log, rows(30, 50))
    again = follow(log, position=stream.position, lost=True)
    assert collect(again) == list(range(30, 50))
    assert "is gone" in again.take_notes()[0]


def test_a_copy_of_the_file_is_recognised_by_its_first_text(tmp_path):
    log = tmp_path / "a.svm"
    add(log, rows(0, 500))
    stream = follow(log, rows=100)
    next(blocks(stream))
    stream.learned(100)
    shutil.copy(log, tmp_path / "copy")
    os.replace(tmp_path / "copy", log)
    assert collect(follow(log, position=stream.position)) == list(range(100, 500))


def test_a_file_that_comes_later(tmp_path):
    log = tmp_path / "a.svm"
    stream = follow(log, idle=3.0)

    def write():
        soon(lambda: stream._source.notes)
        add(log, rows(0, 4))
        soon(lambda: stream.position.get("offset"))
        stream.stop()

    with Beside(write):
        found = []
        for block in blocks(stream):
            found += numbers([block])
    assert found == [0, 1, 2, 3]
    assert stream.take_notes() == [f"{log}: is not there yet; waiting for it."]


def test_names_that_cannot_be_followed(tmp_path):
    with pytest.raises(DataError, match="compressed file cannot be followed"):
        FileSource(str(tmp_path / "a.svm.gz"))
    with pytest.raises(DataError, match=r"the folder .* does not exist"):
        FileSource(str(tmp_path / "nowhere" / "a.svm"))
    with pytest.raises(DataError, match="come in files"):
        open_live(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="cannot be shuffled"):
        follow(tmp_path / "a.svm", shuffle=1)


def test_a_byte_order_mark_is_no_text(tmp_path):
    log = tmp_path / "a.svm"
    log.write_bytes(b"\xef\xbb\xbf" + "".join(rows(0, 9)).encode())
    stream = follow(log)
    next(blocks(stream))
    stream.learned(4)
    assert collect(follow(log, position=stream.position)) == list(range(4, 9))


@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])  # shrinking would take minutes
@given(data=st.data())
def test_restarts_growth_and_rotation_in_any_order(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("log")
    log, written, found, rotated = folder / "a.svm", 0, [], 0
    add(log, [])
    stream = follow(log, idle=0.1)
    assert list(stream) == []
    position = stream.position
    for _ in range(data.draw(st.integers(1, 5))):
        for _ in range(data.draw(st.integers(1, 3))):
            more = data.draw(st.integers(0, 30))
            add(log, rows(written, written + more))
            written += more
            if data.draw(st.booleans()):
                rotated += 1
                os.rename(log, folder / f"a.svm.{rotated}")
                os.utime(folder / f"a.svm.{rotated}", (1000 + rotated, 1000 + rotated))
        add(log, [])
        stream = follow(log, position=position, idle=0.4, rows=data.draw(st.integers(1, 20)), threads=0)
        wanted = data.draw(st.integers(0, written - len(found)))
        mine = 0
        for block in blocks(stream):
            taken = min(len(block), wanted - mine)
            stream.learned(taken)
            found += numbers([block[:taken]])
            mine += taken
            if mine == wanted:
                break
        position = stream.position
    found += collect(follow(log, position=position, idle=0.4, threads=0))
    assert found == list(range(written))
