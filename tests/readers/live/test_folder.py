"""A folder that files are added to: each is read once, of any format, through restarts."""

from __future__ import annotations

import gzip
import json
import os

import pytest

from rarestream import Model
from rarestream.errors import DataError
from rarestream.readers.live.opening import open_live
from tests.readers.live.lines import blocks, collect, follow, numbers, rows


def put(folder, name, lines):
    """Write a file aside and move it into the folder, as writers should."""
    data = "".join(lines).encode()
    (folder / f".{name}").write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    os.rename(folder / f".{name}", folder / name)


def test_files_are_read_in_the_order_of_their_names_and_new_ones_as_they_come(tmp_path):
    put(tmp_path, "2.svm.gz", rows(10, 20))
    put(tmp_path, "1.svm", rows(0, 10))
    (tmp_path / "_SUCCESS").write_text("not a row")
    (tmp_path / "3.svm.tmp").write_text("not a row")
    (tmp_path / "inside").mkdir()
    stream, found = follow(tmp_path), []
    for block in blocks(stream):
        found += numbers([block])
        if len(found) == 20:
            put(tmp_path, "0.svm", rows(20, 25))
            put(tmp_path, "4.svm", [])
    assert found == list(range(25))
    names = ["0.svm", "1.svm", "2.svm.gz", "4.svm"]
    assert stream.position == {"done": {name: (tmp_path / name).stat().st_size for name in names}}


def test_the_position_after_any_row_leads_to_the_next_one(tmp_path):
    for number in range(3):
        put(tmp_path, f"{number}.svm", rows(10 * number, 10 * number + 10))
    for learned in (1, 9, 10, 11, 29):
        stream, left = follow(tmp_path, rows=4), learned
        for block in blocks(stream):
            stream.learned(min(left, len(block)))
            left -= len(block)
            if left <= 0:
                break
        assert collect(follow(tmp_path, position=stream.position)) == list(range(learned, 30))


def test_a_pattern_chooses_files(tmp_path):
    put(tmp_path, "a.svm", rows(0, 3))
    put(tmp_path, "b.txt", ["not a row"])
    assert collect(follow(f"{tmp_path}/*.svm")) == [0, 1, 2]


def test_tables_of_several_files_are_one_table(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    for number in range(2):
        table = pyarrow.table({"site": ["a", "b", "c"], "clicked": [0, 1, number]})
        parquet.write_table(table, tmp_path / f"{number}.parquet")
    stream = open_live(tmp_path, idle=0.5, label="clicked")
    assert [block.labels.tolist() for block in blocks(stream)] == [[-1, 1, -1], [-1, 1, 1]]
    assert stream.settings["label"] == "clicked" and stream.features.plan is not None


def test_a_file_that_changes_after_it_was_learned_is_told(tmp_path):
    put(tmp_path, "1.svm", rows(0, 3))
    stream = follow(tmp_path)
    assert collect(stream) == [0, 1, 2]
    put(tmp_path, "1.svm", rows(0, 5))
    put(tmp_path, "2.svm", rows(5, 6))
    again = follow(tmp_path, position=stream.position)
    assert collect(again) == [5]
    assert "1.svm: has changed since it was learned" in again.take_notes()[0]


def test_a_file_that_is_gone_before_it_was_read_to_its_end_is_an_error(tmp_path):
    put(tmp_path, "1.svm", rows(0, 9))
    stream = follow(tmp_path, rows=3)
    next(blocks(stream))
    stream.learned(3)
    os.remove(tmp_path / "1.svm")
    with pytest.raises(DataError, match=r"1\.svm: is gone; the model has learned 3 rows of it"):
        list(follow(tmp_path, position=stream.position))
    put(tmp_path, "2.svm", rows(9, 12))
    again = follow(tmp_path, position=stream.position, lost=True)
    assert collect(again) == [9, 10, 11] and "are lost" in again.take_notes()[0]


def test_a_folder_that_is_gone_ends_the_stream(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    stream = follow(folder, idle=None)
    stream.ticks = True
    waiting = iter(stream)
    next(waiting)
    folder.rmdir()
    with pytest.raises(DataError, match="the folder cannot be read: no such file or directory"):
        next(waiting)


def test_dead_letters_are_written_once_though_a_file_is_read_twice(tmp_path):
    (tmp_path / "in").mkdir()
    put(tmp_path / "in", "1.svm", [*rows(0, 4), "nonsense\n", *rows(4, 8)])
    letters = tmp_path / "letters.jsonl"
    stream = follow(tmp_path / "in", rows=2, dead_letters=letters)
    for block in blocks(stream):
        if numbers([block]) == [4, 5]:
            break
    stream.learned(1)
    stream.flush()
    assert letters.read_text() == ""
    again = follow(tmp_path / "in", dead_letters=letters, position=stream.position)
    assert collect(again) == [5, 6, 7]
    (letter,) = map(json.loads, letters.read_text().splitlines())
    assert letter["reason"].startswith(f"{tmp_path}/in/1.svm:5:1: ")


def test_stop_ends_a_stream_in_the_middle_of_a_file(tmp_path):
    put(tmp_path, "1.svm", rows(0, 9))
    stream, model = follow(tmp_path, rows=3), Model("dual-auc")
    for block in blocks(stream):
        model.learn(block)
        stream.learned(len(block))
        stream.stop()
    assert model.rows == 3 and stream.position["rows"] == 3


def test_a_folder_needs_a_format_and_must_be_there(tmp_path):
    with pytest.raises(DataError, match="which format have the files"):
        open_live(tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        open_live(f"{tmp_path}/nowhere/*.svm")
