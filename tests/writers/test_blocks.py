"""BlocksWriter: what is in a `.blocks` file, and how others read it."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream import Block, OutputError, read
from rarestream.blocks import concatenate
from rarestream.readers.blocksfile import BlocksFile
from rarestream.writers.blocks import KEY, BlocksWriter, Lines
from tests.strategies import blocks, random_block, same_rows

pyarrow = pytest.importorskip("pyarrow")


def written(path: Path, *parts: Block, **options: Any) -> Path:
    with BlocksWriter(path, **options) as writer:
        for part in parts:
            writer.write(part)
    return path


def rows_in(path: Path) -> Block:
    return concatenate(piece.block for piece in BlocksFile(str(path)).pieces())


@given(block=blocks(importances=True), cut=st.integers(0, 30), tagged=st.booleans())
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, block: Block, cut: int, tagged: bool
) -> None:
    if tagged:
        block = replace(block, tags=np.arange(len(block)) - 1)
    path = written(tmp_path_factory.mktemp("w") / "t.blocks", block[:cut], block[cut:])
    found = rows_in(path)
    same_rows(found, block)
    if tagged and len(block) > 1:  # the first row has none
        assert np.array_equal(found.tags, block.tags)  # type: ignore[arg-type]


def test_small_blocks_are_joined_and_large_ones_cut(tmp_path: Path) -> None:
    block = random_block(20_000, 100, 3)
    path = written(tmp_path / "t.blocks", *(block[start : start + 7] for start in range(0, len(block), 7)))
    assert [len(piece.block) for piece in BlocksFile(str(path)).pieces()] == [8192, 8192, 3616]
    other = written(tmp_path / "u.blocks", block)
    assert path.read_bytes() == other.read_bytes()
    same_rows(rows_in(path), block)


def test_a_batch_of_long_rows_is_not_too_large(tmp_path: Path) -> None:
    block = random_block(300, 20_000, 9_000)
    path = written(tmp_path / "t.blocks", *(block[start : start + 10] for start in range(0, 300, 10)))
    sizes = [piece.block.nonzeros for piece in BlocksFile(str(path)).pieces()]
    assert len(sizes) > 1 and max(sizes) < 1_300_000
    same_rows(rows_in(path), block)


def test_values_of_categories_take_no_room(tmp_path: Path) -> None:
    block = random_block(4000, 1000, 20)
    ones = replace(block, values=np.ones_like(block.values))
    full, half = (written(tmp_path / name, part) for name, part in (("a.blocks", block), ("b.blocks", ones)))
    assert full.stat().st_size - half.stat().st_size > 4 * block.nonzeros - 10_000
    same_rows(rows_in(half), ones)


def test_other_programs_read_the_rows(tmp_path: Path) -> None:
    block = replace(random_block(50, 9, 3), tags=np.array([f"r{row}" for row in range(50)]))
    path = written(tmp_path / "t.blocks", block)
    expected = [
        block.indices[block.indptr[row] : block.indptr[row + 1]].tolist() for row in range(len(block))
    ]  # fmt: skip
    table = pyarrow.ipc.open_file(str(path)).read_all()
    assert table.column_names == ["label", "importance", "tag", "indices", "values"]
    assert table["indices"].to_pylist() == expected
    assert table["label"].to_pylist() == block.labels.tolist()  # type: ignore[union-attr]
    assert table["importance"].null_count == 50
    assert json.loads(table.schema.metadata[KEY.encode()])["version"] == 1
    polars = pytest.importorskip("polars")
    frame = polars.read_ipc(path)
    assert frame["indices"].to_list() == expected and frame["tag"].to_list() == block.tags.tolist()  # type: ignore[union-attr]
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("stored", table)
    found = connection.sql("select sum(len(indices)), count(*) filter (label = 1) from stored").fetchall()[0]
    assert found == (block.nonzeros, np.count_nonzero(block.labels == 1))


def test_lines_are_kept_as_runs() -> None:
    lines = Lines(0, ":", np.array([3, 4, 5, 9, 10, 2]))
    assert lines.runs() == [[0, 3], [3, 9], [5, 2]]
    assert Lines(0, ":", np.array([0])).runs() == [[0, 0]]


def test_a_file_is_there_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.blocks"
    writer = BlocksWriter(path)
    writer.write(random_block(10, 5, 2))
    assert not path.exists()
    writer.close()
    before = path.read_bytes()
    writer = BlocksWriter(path)
    writer.write(random_block(20, 5, 2))
    with pytest.raises(AttributeError), writer:
        writer.write(None)  # type: ignore[arg-type]
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.blocks"]
    with pytest.raises(OutputError, match="is a directory"):
        BlocksWriter(tmp_path)


def test_any_binary_file_can_be_written_to(tmp_path: Path) -> None:
    block, out = random_block(10, 5, 2), io.BytesIO()
    with BlocksWriter(out) as writer:  # type: ignore[arg-type]
        writer.write(block)
    (tmp_path / "t.blocks").write_bytes(out.getvalue())
    same_rows(concatenate(read(tmp_path / "t.blocks")), block)


def test_rows_must_not_have_more_than_was_said(tmp_path: Path) -> None:
    block = replace(random_block(10, 5, 2), importances=np.full(10, 2.0))
    with pytest.raises(ValueError, match="the rows have importance, which is not one of the columns"):
        written(tmp_path / "t.blocks", block, columns=("tag",))
    assert not (tmp_path / "t.blocks").exists()


def test_a_file_without_rows_is_valid(tmp_path: Path) -> None:
    path = written(tmp_path / "t.blocks")
    file = BlocksFile(str(path))
    assert len(file) == 0 and file.end == {"rows": 0}
