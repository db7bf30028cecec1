"""A driver of a fit that is killed after a round: python -m tests.spark.fit_driver FOLDER ROUNDS

The whole process group, the JVM included, is killed once the state after so many rounds is saved. FOLDER has the Parquet
files in `rows`, and gets `checkpoint`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from rarestream.spark import fit, store
from tests.spark.cluster import session
from tests.spark.streams import FIT


def main(folder: Path, rounds: int) -> None:
    save = store.TwoSlots.save

    def saving(slots: store.TwoSlots, number: int, *arguments: Any) -> None:
        save(slots, number, *arguments)
        if number == rounds:
            os.killpg(0, signal.SIGKILL)

    store.TwoSlots.save = saving  # type: ignore[method-assign]
    with session("local[2]", folder / "driver") as spark:
        fit(spark.read.parquet(str(folder / "rows")), checkpoint_dir=folder / "checkpoint", **FIT)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
