"""Training on Spark from beginning to end: make rows on the cluster, fit, print the receipt, score, print AUC.

    python benchmarks/spark_example.py --rows 5000000 --folder /tmp/clicks
    spark-submit --master spark://host:7077 benchmarks/spark_example.py --rows 100000000 --folder s3a://bucket/clicks

Rows are those of `rarestream.evaluate.synthetic`: a log of clicks with planted weights, so that the best possible AUC
is known. Each task makes some of them, by the seed and its own number: the same rows whatever the cluster is. They are
written to the folder as Parquet, with the columns label, indices, values, and log_odds, which is not learned. Without
spark-submit, Spark runs on the cores of this machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rarestream.evaluate.synthetic import FIELDS, HELD_OUT, Planted
from rarestream.metrics import auc
from rarestream.spark import fit, receipt, score

SCHEMA = "label int, indices array<int>, values array<float>, log_odds double"
FIRST_PART = 16  # of the rows to learn; the smaller numbers are used otherwise
PART_ROWS = 1 << 17  # that one task makes


@dataclass(frozen=True)
class Parts:
    """Makes rows in parts, which are numbered from `first` on; its method `make` runs in tasks."""

    seed: int
    positives: float
    rows: int  # in all
    first: int
    part_rows: int

    def write(self, spark: Any, path: str) -> None:
        """Write the rows as Parquet; a task makes a part."""
        parts = -(-self.rows // self.part_rows)
        numbers = spark.range(0, parts, 1, parts)
        numbers.mapInArrow(self.make, SCHEMA).write.mode("overwrite").parquet(path)

    def make(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the rows of the parts whose numbers the batches have."""
        import numpy as np
        import pyarrow as pa

        stream = Planted.plant(self.seed, self.positives)
        for batch in batches:
            for number in batch.column("id").to_pylist():
                rows = min(self.part_rows, self.rows - number * self.part_rows)
                for block, log_odds in stream.rows(rows, self.first + number):
                    starts = pa.array(block.indptr.astype(np.int32))
                    columns = {
                        "label": pa.array((block.labels > 0).astype(np.int32)),
                        "indices": pa.ListArray.from_arrays(starts, pa.array(block.indices)),
                        "values": pa.ListArray.from_arrays(starts, pa.array(block.values)),
                        "log_odds": pa.array(log_odds),
                    }
                    yield pa.RecordBatch.from_pydict(columns)


def session() -> Any:
    """Return the session of spark-submit, or one on this machine."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("rarestream example")
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # not started by spark-submit
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings = {
            "spark.master": "local[*]",
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "2g",
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on Spark from beginning to end.")
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows to learn")
    parser.add_argument("--test-rows", type=int, default=500_000, help="further rows that AUC is computed on")
    parser.add_argument("--positives", type=float, default=0.02, help="share of positive rows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", required=True, help="where rows are written")
    parser.add_argument("--reuse", action="store_true", help="use the rows that the folder has")
    parser.add_argument("--learner", default="auto")
    parser.add_argument("--groups", default="auto", help='a number, or "auto"')
    parser.add_argument("--rounds", default="auto", help='a number, or "auto"')
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--save", help="path of a model file to write")
    options = parser.parse_args()
    if min(options.rows, options.test_rows) < 1:
        parser.error("--rows and --test-rows must be at least 1")

    spark = session()
    folder = options.folder.rstrip("/")
    try:
        if not options.reuse:
            made = Parts(options.seed, options.positives, options.rows, FIRST_PART, PART_ROWS)
            test = Parts(options.seed, options.positives, options.test_rows, HELD_OUT, options.test_rows)
            started = time.perf_counter()
            made.write(spark, f"{folder}/learn")
            test.write(spark, f"{folder}/test")
            written = options.rows + options.test_rows
            print(f"{written:,} rows of {FIELDS} non-zeros written in {time.perf_counter() - started:.1f} s")

        started = time.perf_counter()
        model = fit(
            spark.read.parquet(f"{folder}/learn"),
            label="label",
            features=("indices", "values"),
            learner=options.learner,
            groups=options.groups if options.groups == "auto" else int(options.groups),
            rounds=options.rounds if options.rounds == "auto" else int(options.rounds),
            passes=options.passes,
        )
        print(f"\nfit took {time.perf_counter() - started:.1f} s\n{receipt(model)}\n\n{model}\n")
        if options.save:
            model.save(options.save)

        started = time.perf_counter()
        scored = score(spark.read.parquet(f"{folder}/test"), model, features=("indices", "values"))
        table = scored.select("label", "score", "log_odds").toPandas()
        print(f"{len(table):,} rows scored in {time.perf_counter() - started:.1f} s")
        for column, what in (("score", "the model"), ("log_odds", "the odds that labels were drawn by: the limit")):
            print(f"AUC {auc(table['label'].to_numpy(), table[column].to_numpy()):.5f} of {what}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
