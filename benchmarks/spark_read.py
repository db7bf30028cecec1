"""What packing, training and scoring cost on Spark, beside reading the same Parquet alone.

    python benchmarks/spark_read.py --rows 200000 --nonzeros 40 --format pair

Generated rows are written to Parquet once; then everything runs turn and turn about in one local session, and the
smallest of the rounds counts, for the clock and for the CPU seconds of Spark and its workers, which a busy machine
changes less. `read alone` reads all columns into Spark's `noop` sink, which drops them. `pass to Python` is a function
of the same columns that returns nothing but nulls: what Spark takes for moving them, whatever is done with them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rarestream import Block, FtrlAuc, Model, read
from rarestream.spark.fitting import fit
from rarestream.spark.packing import pack
from rarestream.spark.scoring import score

FORMATS = ("pair", "vector", "map", "table")
FEATURES = 1 << 20
FILES = 4  # so that every core has one


def rows_of(count: int, nonzeros: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, and the indices and values of each row."""
    generator = np.random.default_rng(seed)
    indices = np.sort((FEATURES * generator.random((count, nonzeros)) ** 3).astype(np.int32), axis=1)
    values = generator.random((count, nonzeros)).astype(np.float32) + 0.5
    chance = np.where(indices % 7 == 0, 0.4, -0.1).sum(axis=1) - 2
    return (generator.random(count) < 1 / (1 + np.exp(-chance))).astype(float), indices, values


def table_of(kind: str, count: int, nonzeros: int, seed: int) -> pa.Table:
    labels, indices, values = rows_of(count, nonzeros, seed)
    columns: dict[str, Any] = {"label": labels, "id": np.arange(count)}
    starts = pa.array(np.arange(0, count * nonzeros + 1, nonzeros, dtype=np.int32))
    if kind == "table":
        columns |= {f"c{j}": pa.array(indices[:, j] % 10_000).cast(pa.string()) for j in range(nonzeros)}
    elif kind == "map":
        columns["m"] = pa.MapArray.from_arrays(starts, pa.array(indices.ravel()), pa.array(values.ravel()))
    else:
        columns["indices"] = pa.ListArray.from_arrays(starts, pa.array(indices.ravel()))
        columns["values"] = pa.ListArray.from_arrays(starts, pa.array(values.ravel()))
    return pa.table(columns)


def write(spark: Any, folder: Path, kind: str, count: int, nonzeros: int) -> str:
    """Write the rows as Parquet; vectors are made of pairs by Spark."""
    path = folder / "rows"
    path.mkdir()
    for number in range(FILES):
        pq.write_table(table_of(kind, count // FILES, nonzeros, number), path / f"{number}.parquet")
    if kind != "vector":
        return str(path)
    from pyspark.ml.linalg import SparseVector, VectorUDT
    from pyspark.sql import functions

    @functions.udf(returnType=VectorUDT())
    def vector(indices: list[int], values: list[float]) -> SparseVector:
        return SparseVector(FEATURES, dict(zip(indices, values, strict=True)))

    made = spark.read.parquet(str(path)).select("label", "id", vector("indices", "values").alias("x"))
    made.write.parquet(str(folder / "vectors"))
    return str(folder / "vectors")


def run(df: Any) -> None:
    df.write.format("noop").mode("overwrite").save()


def cpu_seconds() -> float:
    """CPU seconds of all processes that this one has started, and of those that they have."""
    ticks, children = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:  # it has ended
                continue
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    total, waiting = 0, list(children.get(os.getpid(), []))
    while waiting:
        process = waiting.pop()
        total += ticks[process]
        waiting += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")


def best(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, tuple[float, float]]:
    """Seconds by the clock, and of CPUs, of each way; the first round only warms up."""
    found = dict.fromkeys(ways, (float("inf"), float("inf")))
    for number in range(rounds + 1):
        for name, way in ways.items():
            start, before = time.perf_counter(), cpu_seconds()
            way()
            if number:
                took = time.perf_counter() - start, cpu_seconds() - before
                found[name] = min(found[name][0], took[0]), min(found[name][1], took[1])
    return found


def passed(df: Any, features: Any, columns: list[str]) -> Any:
    """The frame with a column of nulls from Python, which receives the features; None before Spark 4.1."""
    from pyspark.sql import functions

    if not hasattr(functions, "arrow_udf"):
        return None
    nothing = functions.arrow_udf(lambda *cells: pa.nulls(len(cells[0]), pa.float64()), "double")
    cells = [functions.unwrap_udt(name) if features == "x" else functions.col(name) for name in columns]
    return df.select("*", nothing(*cells).alias("nothing"))


def trained(kind: str, nonzeros: int) -> tuple[Model, Any]:
    """A model of the first rows, and the argument `features`."""
    model = Model(FtrlAuc(l1=0.01))
    if kind == "table":
        table = table_of(kind, 20_000, nonzeros, 0).drop_columns(["id"])
        for block in read(table, label="label"):
            model.learn(block)
        return model, None
    labels, indices, values = rows_of(20_000, nonzeros, 0)
    starts = np.arange(0, indices.size + 1, nonzeros)
    model.learn(Block.of((starts, indices.ravel(), values.ravel()), labels))
    return model, {"pair": ("indices", "values"), "vector": "x", "map": "m"}[kind]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--nonzeros", type=int, default=40, help="of a row, or columns of a table")
    parser.add_argument("--format", choices=FORMATS, default="pair")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--learner", default="dual-logistic", help="of fit")
    parser.add_argument("--groups", type=int, default=2, help="of fit")
    parser.add_argument("--batch", type=int, default=10_000, help="spark.sql.execution.arrow.maxRecordsPerBatch")
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(options.batch),
        "spark.driver.memory": "2g",
    }
    builder = SparkSession.builder.master("local[*]").appName("rarestream benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory() as folder:
            df = spark.read.parquet(write(spark, Path(folder), options.format, options.rows, options.nonzeros))
            model, features = trained(options.format, options.nonzeros)
            rows = df if features is not None else df.drop("id")
            packed = pack(rows, label="label", features=features)
            packed.write.parquet(f"{folder}/packed")
            again = spark.read.parquet(f"{folder}/packed")
            scored = score(df, model, features=features)
            columns = [name for name in df.columns if name not in ("label", "id")]
            frames = {
                "read alone": df,
                "pass to Python": passed(df, features, columns),
                "pack": packed,
                "score": scored,
                "score, keep id": score(df, model, features=features, keep=["id"]),
                "read packed": again,
            }
            ways: dict[str, Callable[[], Any]] = {
                name: partial(run, frame) for name, frame in frames.items() if frame is not None
            }
            fitting: dict[str, Any] = {"learner": options.learner, "groups": options.groups, "price": False}
            ways["fit"] = partial(fit, rows, label="label", features=features, **fitting)
            ways["fit of packed"] = partial(fit, again, **fitting)
            found = best(ways, options.rounds)
    finally:
        spark.stop()
    print(f"{options.rows:,} rows of {options.nonzeros} non-zeros as {options.format}, {os.cpu_count()} cores")
    print(f"{'':16}{'seconds':>9}{'of reading':>12}{'CPU seconds':>13}{'of reading':>12}")
    clock, cpu = found["read alone"]
    for name, took in found.items():
        print(f"{name:16}{took[0]:9.2f}{took[0] / clock:11.2f}x{took[1]:13.2f}{took[1] / cpu:11.2f}x")


if __name__ == "__main__":
    main()
