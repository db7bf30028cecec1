"""Bytes in Parquet folders: what was written comes back, and what is damaged or incomplete does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from rarestream.spark import store
from rarestream.spark.store import TwoSlots, read_bytes, write_bytes

ABOUT = {"round": 3, "name": "clicks, ünïcode", "groups": [1, 2], "done": None}


def noise(size: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).bytes(size)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch):
    """Pieces of 1,000 bytes, four at once, so that a few thousand bytes are many pieces and portions."""
    monkeypatch.setattr(store, "PIECE", 1000)
    monkeypatch.setattr(store, "PORTION", 4)


@pytest.mark.parametrize("size", [0, 4000, 12_345])
def test_bytes_of_any_length_come_back(spark, tmp_path: Path, small_pieces, size: int):
    data = noise(size)
    write_bytes(spark, tmp_path / "model", data, ABOUT)
    assert read_bytes(spark, str(tmp_path / "model")) == (data, ABOUT)


def test_a_piece_of_the_usual_size(spark, tmp_path: Path):
    data = noise(2 * store.PIECE + 7)
    write_bytes(spark, tmp_path / "model", data, {})
    assert read_bytes(spark, tmp_path / "model") == (data, {})


def test_what_is_there_is_replaced_also_by_less(spark, tmp_path: Path, small_pieces):
    write_bytes(spark, tmp_path / "model", noise(5000), ABOUT)
    write_bytes(spark, tmp_path / "model", noise(1500, 1), {"round": 4})
    assert read_bytes(spark, tmp_path / "model") == (noise(1500, 1), {"round": 4})


def test_nothing_is_none(spark, tmp_path: Path):
    assert read_bytes(spark, tmp_path / "model") is None
    (tmp_path / "model").mkdir()
    assert read_bytes(spark, tmp_path / "model") is None


def test_another_table_is_none(spark, tmp_path: Path):
    spark.range(3).write.parquet(str(tmp_path / "table"))
    assert read_bytes(spark, tmp_path / "table") is None


@pytest.mark.parametrize("damage", ["flip a bit", "cut", "remove", "empty", "mix"])
def test_what_is_damaged_or_incomplete_is_none(spark, tmp_path: Path, small_pieces, damage: str):
    folder = tmp_path / "model"
    write_bytes(spark, folder, noise(5000), ABOUT)
    for checksum in folder.glob(".*.crc"):  # file systems other than the local one have none
        checksum.unlink()
    file = max(folder.glob("*.parquet"), key=lambda path: path.stat().st_size)
    kept = file.read_bytes()
    if damage == "flip a bit":
        at = kept.index(noise(5000)[1500:1600])
        file.write_bytes(kept[:at] + bytes([kept[at] ^ 1]) + kept[at + 1 :])
    elif damage == "cut":
        file.write_bytes(kept[: len(kept) // 2])
    elif damage == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
    if damage == "mix":
        write_bytes(spark, tmp_path / "other", noise(5000, 1), ABOUT)
        for other in (tmp_path / "other").glob("*.parquet"):
            shutil.copy(other, folder / f"other-{other.name}")
    assert read_bytes(spark, folder) is None


def test_of_two_slots_the_older_stays_while_the_newer_is_written(spark, tmp_path: Path, small_pieces):
    slots = TwoSlots(spark, tmp_path / "checkpoints")
    assert slots.latest() is None
    for number in range(3):
        slots.save(number, noise(1200, number), {"round": number})
    assert slots.latest() == (2, noise(1200, 2), {"round": 2})
    shutil.rmtree(tmp_path / "checkpoints" / "slot-0")  # as if 2 was never written to the end
    assert TwoSlots(spark, f"{tmp_path}/checkpoints/").latest() == (1, noise(1200, 1), {"round": 1})


def test_with_spark_connect(connect, tmp_path: Path, small_pieces):
    assert read_bytes(connect, tmp_path / "model") is None
    write_bytes(connect, tmp_path / "model", noise(5000), ABOUT)
    assert read_bytes(connect, tmp_path / "model") == (noise(5000), ABOUT)
