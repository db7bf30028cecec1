"""Packed blocks: the same rows come back, in the same blocks wherever batches end, and errors of tasks in plain words."""

from __future__ import annotations

import json
import stat
import sys
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Block, DataError, Hashed, ModelFileError, RarestreamError, __version__, read
from rarestream.blocks import concatenate
from rarestream.spark import packing
from rarestream.spark.errors import check_version, readable_error, readable_errors
from rarestream.spark.inputs import Inputs, space_to_json
from rarestream.spark.packing import Packer, add_names, block_from_bytes, block_to_bytes, blocks_of, is_packed, pack
from tests.strategies import blocks as any_blocks
from tests.strategies import examples, same_rows


def some_rows(count: int) -> pa.RecordBatch:
    """Rows with the numbered columns of `Inputs.select`: indices, values and the label; every seventh has none."""
    rows = range(count)
    return pa.RecordBatch.from_pydict(
        {
            "c0": pa.array([[i, i + 3] for i in rows], pa.list_(pa.int32())),
            "c1": pa.array([[1.0, i / 2] for i in rows], pa.list_(pa.float32())),
            "c2": pa.array([None if i % 7 == 6 else float(i % 3 == 0) for i in rows]),
        }
    )


INPUTS = Inputs(kind="pair", columns=("i", "v"), label="y", classes=(0.0, 1.0), nulls="skip")


def packed(inputs: Inputs, batches: list[pa.RecordBatch], block_rows: int) -> list[dict[str, Any]]:
    return [row for batch in Packer(inputs, block_rows).pack(iter(batches)) for row in batch.to_pylist()]


@given(block=any_blocks())
def test_a_block_comes_back_as_it_was_and_shares_the_memory_of_its_bytes(block: Block) -> None:
    data = block_to_bytes(block)
    again = block_from_bytes(data)
    same_rows(again, Block.of((block.indptr, block.indices, block.values), block.labels, block.importances))
    assert again.sealed and again.space is None
    assert len(block) == 0 or np.shares_memory(again.indptr, np.frombuffer(data, np.uint8))


@settings(max_examples=examples(25))
@given(cuts=st.lists(st.integers(1, 99), max_size=6), block_rows=st.sampled_from([3, 7, 16, 99, 1000]))
def test_blocks_do_not_depend_on_where_batches_end(cuts: list[int], block_rows: int) -> None:
    whole = some_rows(100)
    ends = [0, *sorted(set(cuts)), 100]
    pieces = [whole.slice(a, b - a) for a, b in pairwise(ends)]
    rows = packed(INPUTS, pieces, block_rows)
    assert rows == packed(INPUTS, [whole], block_rows)
    assert sum(row["rows"] for row in rows) == 86 and sum(row["skipped"] for row in rows) == 14
    assert [row["block"] for row in rows] == list(range(len(rows)))
    assert all(row["rows"] <= block_rows for row in rows)
    block = concatenate(blocks_of(rows))
    assert block.labels is not None
    assert sum(row["positives"] for row in rows) == np.count_nonzero(block.labels > 0)
    assert block.indices.tolist() == [j for i in range(100) if i % 7 != 6 for j in (i, i + 3)]


def test_rows_that_are_all_skipped_are_counted_in_a_block_without_rows() -> None:
    batch = some_rows(7).slice(6)
    rows = packed(INPUTS, [batch, batch], 1)
    assert [(row["rows"], row["skipped"]) for row in rows] == [(0, 2)]
    assert list(blocks_of(rows)) == []
    assert packed(INPUTS, [], 1) == packed(INPUTS, [some_rows(0)], 1) == []


def test_large_rows_are_packed_into_more_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = packed(INPUTS, [some_rows(20)], 20)
    monkeypatch.setattr(packing, "MOST_NONZEROS", 10)
    rows = packed(INPUTS, [some_rows(20)], 20)
    assert max(row["rows"] for row in rows) <= 5
    same_rows(concatenate(blocks_of(rows)), concatenate(blocks_of(whole)))


def test_damaged_blocks_are_errors() -> None:
    (row,) = packed(INPUTS, [some_rows(5)], 5)
    with pytest.raises(DataError, match="packed block 0 of partition 0: its bytes are damaged: their checksum differs"):
        list(blocks_of([{**row, "data": row["data"][:-1] + b"x"}]))
    with pytest.raises(DataError, match="has 5 rows, but 6 were packed. Pack the rows again."):
        list(blocks_of([{**row, "rows": 6}]))
    with pytest.raises(DataError, match="packed rows have slot 7, but hashed features with 1 bits are expected"):
        list(blocks_of([row], Hashed(1)))
    block = block_from_bytes(row["data"])
    for changed in (
        Block(block.indptr, block.indices[::-1].copy(), block.values, 8, block.labels),
        Block(block.indptr, np.full_like(block.indices, -1), block.values, 8, block.labels),
        Block(block.indptr + 1, block.indices, block.values, 8, block.labels),
        Block(block.indptr, block.indices, block.values, 8, np.zeros(5, np.int8)),
        Block(block.indptr, block.indices, block.values, 8, block.labels[:2] if block.labels is not None else None),
        Block(block.indptr, block.indices[:3], block.values, 8, block.labels),
    ):
        with pytest.raises(DataError, match="damaged"):
            block_from_bytes(block_to_bytes(changed))
    for data in (b"", b"no Arrow", row["data"][:200], block_to_bytes(block)[: len(row["data"]) // 2]):
        with pytest.raises(DataError, match="packed rows are damaged .*Pack them again"):
            block_from_bytes(data)


def test_damaged_names_are_errors() -> None:
    space = Hashed(8)
    table = pa.table({"y": [1, 0], "a": ["x", "z"]})
    list(read(table, label="y", features=space))
    inputs = Inputs(kind="table", columns=("a",), label="y", classes=(0.0, 1.0), space=space_to_json(space))
    batch = table.select(["a", "y"]).rename_columns(["c0", "c1"]).to_batches()[0]
    (row,) = packed(inputs, [batch], 5)
    fresh = space.fresh()
    add_names(fresh, [row])
    assert fresh.all_shown() == space.all_shown()
    with pytest.raises(DataError, match="its names are damaged .*. Pack the rows again."):
        add_names(Hashed(4), [row])
    nameless = Hashed(8, names=False)
    add_names(nameless, [row])
    assert nameless.names is None


# -- errors of tasks

TRACEBACK = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/somewhere/packing.py", line 141, in pack
    raise
{error}
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)

Driver stacktrace:
"""


def test_errors_of_tasks_are_found_in_those_of_spark() -> None:
    def found(error: str) -> RarestreamError:
        readable = readable_error(TRACEBACK.format(error=error))
        assert readable is not None
        return readable

    one = found("rarestream.errors.DataError: partition 1: row 0: a label.\n  and a second line")
    assert type(one) is DataError and str(one) == "partition 1: row 0: a label.\n  and a second line"
    assert type(found("rarestream.errors.RowError: this row")) is DataError
    assert type(found("rarestream.readers.options.OptionError: read: bits")) is DataError
    assert type(found("rarestream.errors.ModelFileError: model: is damaged")) is ModelFileError
    missing = found("ModuleNotFoundError: No module named 'rarestream'")
    assert str(missing) == (
        "the workers do not have rarestream. Install it there, in the Python that spark.pyspark.python or PYSPARK_PYTHON "
        f'names: pip install "rarestream[spark]=={__version__}"; or send a packed environment that has it with '
        "spark.archives."
    )
    older = str(found("AttributeError: Can't get attribute 'Packer' on <module 'rarestream.spark.packing' from 'x'>"))
    assert older.startswith(
        "a worker has another version of rarestream, without rarestream.spark.packing; the driver has"
    )
    assert str(found("ModuleNotFoundError: No module named 'rarestream.spark'")).startswith(
        "a worker has another version"
    )
    assert readable_error(TRACEBACK.format(error="ValueError: something else")) is None


def test_a_task_of_another_version_is_an_error() -> None:
    check_version(__version__)
    with pytest.raises(
        RarestreamError, match=f"a worker has rarestream {__version__}, but the driver has 0.0.1. Install"
    ):
        check_version("0.0.1")


def test_errors_that_are_not_of_spark_pass_through() -> None:
    with pytest.raises(KeyError), readable_errors():
        raise KeyError("rarestream.errors.DataError: no")


# -- with Spark


def test_packed_rows_are_the_same_from_parquet_and_errors_are_plain(spark: Any, tmp_path: Path) -> None:
    schema = "i array<int>, v array<float>, y double"
    columns = some_rows(100).to_pydict()
    rows = list(zip(columns["c0"], columns["c1"], columns["c2"], strict=True))
    df = spark.createDataFrame(rows, schema).repartitionByRange(3, "i").sortWithinPartitions("i")
    assert not is_packed(df)
    frame = pack(df, label="y", features=("i", "v"), nulls="skip", block_rows=16)
    assert is_packed(frame)
    with readable_errors():
        frame.write.parquet(str(tmp_path / "packed"))
    again = spark.read.parquet(str(tmp_path / "packed"))
    assert is_packed(again)
    found = sorted(again.collect())
    assert {row["part"] for row in found} == {0, 1, 2}
    assert {row["classes"] for row in found} == {json.dumps([0.0, 1.0])}
    assert all(row["check"] == zlib.crc32(row["data"]) for row in found)
    block = concatenate(blocks_of(found))
    same_rows(block, concatenate(blocks_of(packed(INPUTS, [some_rows(100)], 1000))))
    with pytest.raises(DataError, match="these rows are packed already"):
        pack(again, label="y")
    with pytest.raises(DataError, match="block_rows must be a whole number >= 1, got 0"):
        pack(df, label="y", block_rows=0)
    bad = spark.createDataFrame([([1], [1.0], 1.0), ([-4], [1.0], 0.0)], schema).coalesce(1)
    with pytest.raises(DataError) as caught, readable_errors():
        pack(bad, label="y", features=("i", "v")).write.parquet(str(tmp_path / "bad"))
    assert str(caught.value) == (
        "partition 0: row 1: feature index -4; indices run from 0 to 2147483646. Hash or renumber larger ones."
    )
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


WITHOUT_THE_PACKAGE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "rarestream":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def test_workers_without_the_package_are_told_apart(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python of the workers is a program that cannot import rarestream."""
    worker = tmp_path / "python"
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_THE_PACKAGE)
    worker.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}:$PYTHONPATH exec {sys.executable} "$@"\n')
    worker.chmod(worker.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(worker))
    df = spark.createDataFrame([(1.0, "a"), (0.0, "b")], "y double, s string")
    with pytest.raises(RarestreamError, match="the workers do not have rarestream. Install it there, in the Python"):
        pack(df, label="y")
