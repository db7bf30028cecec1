"""Parquet files for tests; as a stream, they come in the order of their times."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rarestream import Block

SCHEMA = "indices array<int>, values array<float>, label int"
ARGUMENTS: dict[str, Any] = {"label": "label", "features": ("indices", "values")}

FIT: dict[str, Any] = {**ARGUMENTS, "learner": "dual-logistic", "groups": 2, "rounds": 4, "price": False}


def make_rows(rows: int, seed: int) -> list[tuple[list[int], list[float], int]]:
    """Sparse rows of which a fifth is positive."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(rows):
        label = int(random.random() < 0.2)
        indices = np.sort(random.choice(200, 8, replace=False)) + 20 * label
        found.append((indices.tolist(), random.random(8, np.float32).tolist(), label))
    return found


def write_file(folder: Path, number: int, rows: Sequence[tuple[Any, ...]], schema: str = SCHEMA) -> Path:
    """A Parquet file of a stream; its time is after that of all files with a smaller number."""
    import pyarrow
    import pyarrow.parquet

    types = {
        "array<int>": pyarrow.list_(pyarrow.int32()),
        "array<float>": pyarrow.list_(pyarrow.float32()),
        "int": pyarrow.int32(),
        "double": pyarrow.float64(),
        "string": pyarrow.string(),
    }
    fields = [pyarrow.field(name, types[kind]) for name, kind in (column.split(" ") for column in schema.split(", "))]
    columns = [pyarrow.array([row[at] for row in rows], field.type) for at, field in enumerate(fields)]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:03d}.parquet"
    hidden = folder / f".{number:03d}.part"
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(columns, schema=pyarrow.schema(fields)), hidden)
    os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
    hidden.rename(path)
    return path


def read_stream(spark: Any, folder: Path, schema: str = SCHEMA, files: int = 1) -> Any:
    """A stream of the files of a folder, so many of them in each batch."""
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(folder))


def block_of(rows: Sequence[tuple[list[int], list[float], int]]) -> Block:
    """The Block of rows as `make_rows` makes them."""
    import scipy.sparse

    starts = np.cumsum([0, *(len(row[0]) for row in rows)])
    values = np.concatenate([np.array(row[1], np.float32) for row in rows])
    matrix = scipy.sparse.csr_array((values, np.concatenate([row[0] for row in rows]), starts))
    return Block.of(matrix, np.array([row[2] for row in rows]))
