"""Snapshots: the newest whole one is found, whatever was cut short, damaged, left over or interrupted."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tracemalloc
from pathlib import Path
from zlib import crc32

import pytest

from rarestream.errors import DataError, OutputError
from rarestream.serve import snapshots as module
from rarestream.serve.snapshots import Snapshot, Snapshots
from tests.serve.log.logs import contents, flipped
from tests.serve.log.test_damage import Crash, crash_after

CALLS = ("mkdir", "makedirs", "fsync", "rename", "open", "rmdir", "unlink", "listdir", "stat")


def files(sequence: int) -> dict[str, bytes]:
    return {"model.rare": b"model %d " % sequence * 20, "join.bin": bytes([sequence % 256]) * 10, "empty": b""}


def filled(folder: Path, *sequences: int, keep: int = 2) -> Snapshots:
    store = Snapshots(folder, keep)
    for sequence in sequences:
        store.write(sequence, files(sequence))
    return store


def test_the_newest_snapshot_is_what_was_written(tmp_path):
    store = Snapshots(tmp_path / "snapshots")
    assert store.newest() == (None, []) and store.sequences() == []
    store.write(0, files(0))
    assert store.newest() == (Snapshot(0, files(0)), [])
    store.write(12_000, files(12_000))
    assert Snapshots(tmp_path / "snapshots").newest() == (Snapshot(12_000, files(12_000)), [])
    assert store.sequences() == [0, 12_000]
    folder = tmp_path / "snapshots" / "00000000000000012000"
    assert sorted(os.listdir(folder)) == ["empty", "join.bin", "manifest.json", "model.rare"]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == 1 and manifest["sequence"] == 12_000
    assert manifest["files"]["empty"] == {"size": 0, "crc32": 0}


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_as_many_as_asked_for_are_kept(tmp_path, keep):
    store = filled(tmp_path, 1, 2, 3, 4, 5, keep=keep)
    assert store.sequences() == [1, 2, 3, 4, 5][-keep:]
    assert sorted(os.listdir(tmp_path)) == [f"{sequence:020}" for sequence in store.sequences()]


def test_a_snapshot_of_the_same_entry_stays_as_it_is_if_it_is_whole(tmp_path):
    store = filled(tmp_path, 5)
    before = contents(tmp_path)
    store.write(5, {"model.rare": b"another"})
    assert contents(tmp_path) == before
    (tmp_path / f"{5:020}" / "model.rare").write_bytes(b"damaged")
    store.write(5, files(5))
    assert contents(tmp_path) == before and sorted(os.listdir(tmp_path)) == [f"{5:020}"]


def test_one_that_is_cut_short_anywhere_is_passed_over_and_said(tmp_path):
    store = filled(tmp_path, 1, 2)
    for name in ("model.rare", "join.bin", "manifest.json"):
        path = tmp_path / f"{2:020}" / name
        data = path.read_bytes()
        for size in range(len(data)):
            path.write_bytes(data[:size])
            found, notes = store.newest()
            assert found == Snapshot(1, files(1))
            assert len(notes) == 1 and name in notes[0] and f"{2:020}" in notes[0]
            assert store.problem(2) is not None and store.problem(1) is None
        path.unlink()
        assert store.newest()[0] == Snapshot(1, files(1)) and "cannot be read" in store.newest()[1][0]
        path.write_bytes(data)
    assert store.newest() == (Snapshot(2, files(2)), [])


def test_a_bit_flipped_anywhere_is_noticed(tmp_path):
    store = filled(tmp_path, 1, 2)
    for name in ("model.rare", "join.bin"):
        path = tmp_path / f"{2:020}" / name
        data = path.read_bytes()
        for at in range(len(data)):
            path.write_bytes(flipped(data, at, at % 8))
            assert store.newest()[0] == Snapshot(1, files(1)) and "its CRC is wrong" in store.newest()[1][0]
            assert store.problem(2) is not None
        path.write_bytes(data)
    path = tmp_path / f"{2:020}" / "manifest.json"
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(flipped(data, at, at % 7))
        assert store.newest()[0] in (Snapshot(1, files(1)), Snapshot(2, files(2)))


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"format": 1}',
        '{"format": 1, "sequence": 3, "files": {}}',
        '{"format": 1, "sequence": 2, "files": []}',
        '{"format": 1, "sequence": 2, "files": {"../1": {"size": 0, "crc32": 0}}}',
        '{"format": 1, "sequence": 2, "files": {"a": 5}}',
        '{"format": 1, "sequence": 2, "files": {"a": {"size": "9", "crc32": 0}}}',
        '{"format": 1, "sequence": 2, "files": {"model.rare": {"size": 99999999999999, "crc32": 0}}}',
        '{"format": 1, "sequence": 2, "files": {"model.rare": {"size": -1, "crc32": 0}}}',
        "[" * 100_000,
        " " * (2 << 20),
    ],
)
def test_a_manifest_that_is_none_is_passed_over_and_takes_no_memory(tmp_path, manifest):
    store = filled(tmp_path, 1, 2)
    if manifest.endswith("}}}"):
        entries = json.loads(manifest)["files"]
        manifest = manifest[:-1] + f', "crc32": {crc32(json.dumps(entries).encode())}}}'
    (tmp_path / f"{2:020}" / "manifest.json").write_text(manifest)
    tracemalloc.start()
    try:
        found, notes = store.newest()
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert found == Snapshot(1, files(1)) and len(notes) == 1


def test_a_newer_format_is_passed_over_and_said(tmp_path):
    store = filled(tmp_path, 1, 2)
    path = tmp_path / f"{2:020}" / "manifest.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    assert "written by snapshot format 2; this version reads 1" in store.newest()[1][0]


def test_what_was_left_unfinished_is_no_snapshot_and_is_removed_by_the_next(tmp_path):
    store = filled(tmp_path, 1)
    for name in (f".{7:020}.part", f".{8:020}.removed"):
        shutil.copytree(tmp_path / f"{1:020}", tmp_path / name)
    (tmp_path / "mine").mkdir()
    assert store.sequences() == [1] and store.newest() == (Snapshot(1, files(1)), [])
    store.write(2, files(2))
    assert sorted(os.listdir(tmp_path)) == [f"{1:020}", f"{2:020}", "mine"]


def test_damaged_snapshots_do_not_count_as_kept(tmp_path):
    store = filled(tmp_path, 1, 2, keep=2)
    (tmp_path / f"{2:020}" / "model.rare").unlink()
    store.write(3, files(3))
    assert store.sequences() == [1, 2, 3]  # 1 and 3 are the two that are whole
    store.write(4, files(4))
    assert store.sequences() == [3, 4]


def test_a_snapshot_older_than_others_is_not_removed_by_its_own_writing(tmp_path):
    store = filled(tmp_path, 10, 11, keep=1)
    store.write(5, files(5))
    assert store.sequences() == [5, 11] and store.newest()[0] == Snapshot(11, files(11))


def test_a_crash_at_any_call_leaves_a_whole_snapshot(tmp_path):
    master = tmp_path / "master"
    filled(master, 1, 2)
    for number in range(1000):
        folder = tmp_path / f"state{number}"
        shutil.copytree(master, folder)
        with pytest.MonkeyPatch.context() as patch:
            left = crash_after(patch, number, CALLS)
            try:
                Snapshots(folder).write(3, files(3))
                ended = True
            except Crash:
                ended = False
        store = Snapshots(folder)
        found, notes = store.newest()
        assert notes == [] and found in (Snapshot(2, files(2)), Snapshot(3, files(3)))
        assert not ended or found == Snapshot(3, files(3))
        store.write(4, files(4))
        assert store.newest() == (Snapshot(4, files(4)), []) and len(store.sequences()) == 2
        assert not [name for name in os.listdir(folder) if name.startswith(".")]
        shutil.rmtree(folder)
        if ended and left():
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("name", ["mkdir", "fsync", "rename"])
def test_a_call_that_fails_leaves_the_snapshots_as_they_were(tmp_path, monkeypatch, name):
    store = filled(tmp_path, 1, 2)
    before = contents(tmp_path)

    def fail(*words: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(OutputError, match="No space left on device.*unchanged"):
        store.write(3, files(3))
    monkeypatch.undo()
    assert contents(tmp_path) == before and sorted(os.listdir(tmp_path)) == [f"{1:020}", f"{2:020}"]


def test_old_ones_that_cannot_be_removed_do_not_matter(tmp_path, monkeypatch):
    store = filled(tmp_path, 1, 2)

    def fail(sequence: int) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(store, "_remove", fail)
    store.write(3, files(3))
    assert store.sequences() == [1, 2, 3] and store.newest()[0] == Snapshot(3, files(3))


def test_one_that_is_removed_while_it_is_read_gives_way_to_a_newer_one(tmp_path, monkeypatch):
    store, writer = filled(tmp_path, 1, keep=1), Snapshots(tmp_path, keep=1)
    read = store._read

    def slow(sequence: int, name: str, most: int) -> bytes:
        if sequence == 1 and name == "model.rare":
            writer.write(2, files(2))
        return read(sequence, name, most)

    monkeypatch.setattr(store, "_read", slow)
    assert store.newest() == (Snapshot(2, files(2)), [])


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "manifest.json", "a\n", "x" * 200])
def test_names_that_are_no_plain_names_are_refused(tmp_path, name):
    with pytest.raises(DataError, match="cannot be the name of a file"):
        Snapshots(tmp_path / "s").write(1, {name: b""})
    assert not (tmp_path / "s").exists()


def test_settings_have_ranges(tmp_path):
    with pytest.raises(DataError, match="keep must be >= 1"):
        Snapshots(tmp_path, keep=0)
    with pytest.raises(DataError, match="sequence must be >= 0"):
        Snapshots(tmp_path).write(-1, {})
    assert module.FORMAT == 1
