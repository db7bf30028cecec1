"""A driver of a streaming query that is killed at a given moment: python -m tests.spark.stream_driver FOLDER [MOMENT BATCH]

MOMENT is "before" or "after": the whole process group, the JVM included, is killed right before or after the model of this
batch is saved. FOLDER has the Parquet files in `rows`, and gets `model.rare` and `checkpoint`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from rarestream import Model
from rarestream.spark.streaming import stream_fit
from tests.spark.cluster import session
from tests.spark.streams import ARGUMENTS, read_stream


def die_at_save(moment: str, batch: int) -> None:
    save = Model.save

    def saving(model: Model, path: Any, kind: str = "resumable") -> None:
        here = model.source["spark_stream"]["batch"] == batch
        if here and moment == "before":
            os.killpg(0, signal.SIGKILL)
        save(model, path, kind)
        if here:
            os.killpg(0, signal.SIGKILL)

    Model.save = saving  # type: ignore[method-assign]


def main(folder: Path, moment: str | None = None, batch: str = "0") -> None:
    if moment is not None:
        die_at_save(moment, int(batch))
    with session("local[1]", folder / "driver") as spark:
        stream = read_stream(spark, folder / "rows")
        stream_fit(stream, folder / "model.rare", checkpoint=folder / "checkpoint", **ARGUMENTS).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
