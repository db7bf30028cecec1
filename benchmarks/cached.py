"""A second pass over the same data, from a `.blocks` file, beside Vowpal Wabbit's cache and a first pass over CSV.

Two comparisons on each shape. From the cache that `read(..., cache=True)` made of svmlight text to a saved model,
against VW learning the same rows from the binary cache that it made; what VW takes to start is deducted.
And a pass that learns the rows of a table in CSV, as users have them, against one from its cache, both without saving a
model, which costs both the same. A click log has a column for each field, text has a column of words.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
import peers
from contests import OURS
from rarestream import Block, Model, read
from shapes import SHAPES, Data, make
from timing import interleaved, timed

BLOCKS = ".blocks to model"
FIRST, MAKING, SECOND = "a pass over CSV", "a pass over CSV, making its cache", "a pass over its cache"
VW = "VW cache, start-up deducted"
BARS = {"rcv1b": (10, 15), "avazu": (10, 15)}
SECOND_BARS = {"rcv1b": (6, 10), "avazu": (6, 10)}


def measure(fraction: float, rounds: int, chosen: set[str]) -> dict[str, dict[str, float]]:
    """Seconds on each shape. One core: CPU seconds; all cores: by the clock."""
    return {name: _shape(make(SHAPES[name], fraction), rounds, chosen) for name in BARS}


def _shape(data: Data, rounds: int, chosen: set[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=machine.CACHE) as folder:
        scratch = Path(folder)
        table = scratch / "table.csv"
        columns = _write_csv(table, data.train, fields=data.shape.fields)
        contestants = {}
        for cores, threads in (("", 0), (", all cores", None)):
            how: dict[str, Any] = {"threads": threads}
            many = 2 if cores else 1
            kept = {"cache_dir": scratch / "kept"}
            contestants |= {
                BLOCKS + cores: timed(_learn(data.svmlight, how | kept, scratch / "ours.rare"), cores=many),
                FIRST + cores: timed(_learn(table, how | columns), cores=many),
                MAKING + cores: timed(_learn(table, how | columns | {"cache": True}, anew=True), cores=many),
                SECOND + cores: timed(_learn(table, how | columns | kept), cores=many),
            }
        _learn(data.svmlight, kept)()()
        _learn(table, columns | kept)()()
        if "vw" in chosen:
            vw = peers.vw_contestants(data.vw, data.shape.d, scratch)
            contestants |= {name: vw[name] for name in ("VW start-up", "VW cache")}
        best = interleaved(contestants, rounds)
        size = sum(path.stat().st_size for path in (scratch / "kept").glob("*.svm-*.blocks"))
    if "VW cache" in best:
        best[VW] = best["VW cache"] - best["VW start-up"]
    seconds = {name: cost.wall if "all cores" in name else cost.cpu for name, cost in best.items()}
    return {**seconds, "MB of .blocks": size / 1e6, "MB of svmlight": data.svmlight.stat().st_size / 1e6}


def _learn(source: Path, options: dict[str, Any], target: Path | None = None, anew: bool = False) -> Callable[[], Any]:
    def prepare() -> Callable[[], Any]:
        if anew:
            for made in source.parent.glob(f"{source.name}-*.blocks"):
                made.unlink()

        def action() -> None:
            model = Model(OURS)
            for block in read(source, **options):
                model.learn(block)
            if target is not None:
                model.save(target)

        return action

    return prepare


def _write_csv(path: Path, block: Block, fields: bool) -> dict[str, Any]:
    """The rows as a table, a column for each field or one of words. Returns the options that read it."""
    assert block.labels is not None
    width = int((block.indptr[1:] - block.indptr[:-1]).max())
    names = [f"c{number}" for number in range(width)] if fields else ["words"]
    indptr, indices, labels = block.indptr.tolist(), block.indices.tolist(), block.labels.tolist()
    with path.open("w") as out:
        out.write(",".join(["clicked", *names]) + "\n")
        for row, label in enumerate(labels):
            cells = [f"w{index:x}" for index in indices[indptr[row] : indptr[row + 1]]]
            line = ",".join(cells + [""] * (width - len(cells))) if fields else " ".join(cells)
            out.write(f"{int(label > 0)},{line}\n")
    os.utime(path, (0, 0))  # as a file that was not made just now
    return {"label": "clicked"} if fields else {"label": "clicked", "text": ["words"]}
