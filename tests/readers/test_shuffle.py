"""Shuffling: a permutation that depends on the seed alone, in memory or through files."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from svm_rows import same

from rarestream import Block
from rarestream.errors import DataError
from rarestream.readers import read
from rarestream.readers.shuffle import keys, row_of, shuffled
from rarestream.readers.split import split_blocks
from tests import children


def numbered(rows: int, cut_at: int) -> list[Block]:
    """Row i has i % 4 features, the label (-1)^i and, now and then, an importance and a tag."""
    sizes = np.arange(rows) % 4
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    indices = np.concatenate([np.arange(size) * 1000 + i for i, size in enumerate(sizes)]).astype(np.int32)
    numbers = np.arange(rows)
    block = Block(
        indptr,
        indices,
        np.repeat(numbers, sizes).astype(np.float32),
        int(indices.max(initial=-1)) + 1,
        np.where(numbers % 2, -1, 1).astype(np.int8),
        numbers.astype(np.float64) + 2,
        numbers,
    )
    return [block[start : start + cut_at] for start in range(0, rows, cut_at)]


def tags(blocks: list[Block]) -> list[int]:
    return [int(tag) for block in blocks if block.tags is not None for tag in block.tags]


GOLDEN_KEYS = [3676530691901710540, 18097497187473122809]
GOLDEN_ORDER = [3, 11, 6, 0, 2, 10, 9, 5, 8, 7, 4, 1]


@given(st.integers(-(2**70), 2**70), st.integers(0, 2**40))
def test_a_key_tells_its_row(seed: int, row: int) -> None:
    assert row_of(seed, int(keys(seed, row, 1)[0])) == row


def temporary() -> list[str]:
    return [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("rarestream-shuffle-")]


@pytest.fixture(scope="module", autouse=True)
def temporary_files_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Other tests shuffle at the same time in other processes."""
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path_factory.mktemp("shuffle"))
    yield
    tempfile.tempdir = before


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**64))
@settings(max_examples=40, deadline=None)
def test_every_row_comes_once_with_all_its_fields(rows: int, cut_at: int, seed: int) -> None:
    blocks = list(shuffled(iter(numbered(rows, cut_at)), seed, 1 << 30))
    assert sorted(tags(blocks)) == list(range(rows))
    for block in blocks:
        for i in range(len(block)):
            (tag,) = tags([block[i : i + 1]])
            one = block[i : i + 1]
            assert one.values.tolist() == [tag] * (tag % 4)
            assert one.indices.tolist() == [tag, 1000 + tag, 2000 + tag][: tag % 4]
            assert one.labels is not None
            assert one.importances is not None
            assert one.labels.tolist() == [1 if tag % 2 == 0 else -1]
            assert one.importances.tolist() == [tag + 2]


@given(st.integers(1, 300), st.integers(1, 100), st.integers(0, 1000), st.integers(100, 20_000))
@settings(max_examples=25, deadline=None)
def test_memory_and_files_give_the_same_order(rows: int, cut_at: int, seed: int, memory: int) -> None:
    in_memory = list(split_blocks(shuffled(iter(numbered(rows, rows)), seed, 1 << 30), 64))
    through_files = list(split_blocks(shuffled(iter(numbered(rows, cut_at)), seed, memory), 64))
    assert same(in_memory, through_files)
    assert temporary() == []


def test_the_order_is_the_same_for_ever() -> None:
    assert keys(17, 0, 3).tolist() == keys(17, 0, 9).tolist()[:3]
    assert keys(17, 5, 4).tolist() == keys(17, 0, 9).tolist()[5:]
    assert keys(17, 0, 2).tolist() == GOLDEN_KEYS
    assert tags(list(shuffled(iter(numbered(12, 5)), 17, 1 << 30))) == GOLDEN_ORDER


def test_seeds_give_different_orders_and_no_row_stays_near() -> None:
    orders = [tags(list(shuffled(iter(numbered(1000, 100)), seed, 1 << 30))) for seed in (0, 1, 2)]
    assert orders[0] != orders[1] != orders[2] != orders[0]
    for order in orders:
        moved = np.abs(np.array(order) - np.arange(1000)).mean()
        assert 280 < moved < 390  # a third of the rows, if the order is random


def test_read_shuffles_files_larger_than_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(b"".join(b"%d %d:1 %d:0.5\n" % (i % 2, i + 1, i + 40_000) for i in range(40_000)))
    small, large = read(path, shuffle=3, memory=1), read(path, shuffle=3)
    assert same(list(small), list(large))
    assert small.fraction == 1
    everything = np.concatenate([block.indices for block in small])
    assert sorted(everything[everything < 39_999].tolist()) == list(range(39_999))


def test_temporary_files_go_whatever_happens(tmp_path: Path) -> None:
    blocks = shuffled(iter(numbered(300, 10)), 1, 1000)
    next(blocks)
    assert len(temporary()) == 1
    blocks.close()  # type: ignore[attr-defined]
    assert temporary() == []

    def failing():
        yield from numbered(300, 10)
        raise DataError("bad row")

    with pytest.raises(DataError, match="bad row"):
        list(shuffled(failing(), 1, 1000))
    assert temporary() == []


def test_a_full_disk_is_named_and_left_clean(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(b"".join(b"%d %d:1\n" % (i % 2, i + 1) for i in range(200_000)))
    (tmp_path / "tmp").mkdir()
    program = (
        "import resource, sys; from rarestream.errors import DataError; from rarestream.readers import read\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try: list(read(sys.argv[1], shuffle=1, memory=1))\n"
        "except DataError as error: print(error)"
    )
    environment = dict(os.environ, TMPDIR=str(tmp_path / "tmp"))
    made = children.run([sys.executable, "-c", program, path], check=True, env=environment)
    assert made.stdout.startswith("shuffle: cannot write temporary files to ")
    assert "set TMPDIR" in made.stdout
    assert list((tmp_path / "tmp").iterdir()) == []
