"""The first rows of a frame, which decide the plan of a table and which label is positive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rarestream._version import __version__
from rarestream.spark.errors import check_version, readable_errors
from rarestream.spark.tasks import arrow_schema, partition

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Table
    from pyspark.sql import DataFrame


class First:
    """The first rows of a frame: its function runs in tasks and returns those of a partition as bytes."""

    SCHEMA = "part int, rows int, data binary"

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.version = __version__

    def __call__(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        import pyarrow

        check_version(self.version)
        found: list[RecordBatch] = []
        missing = self.rows
        for batch in batches:
            found.append(batch.slice(0, missing))
            missing -= len(found[-1])
            if missing <= 0:
                break
        if missing == self.rows:
            return
        out = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(out, found[0].schema) as writer:
            for batch in found:
                writer.write_batch(batch)
        row = {"part": partition(), "rows": self.rows - missing, "data": out.getvalue().to_pybytes()}
        yield pyarrow.RecordBatch.from_pylist([row], arrow_schema(self.SCHEMA))


def first_rows(df: DataFrame, rows: int) -> Table | None:
    """Return the first rows of a frame, in the order of its partitions; None if it has none.

    Partitions are read until there are enough rows. `DataFrame.limit` would read the first rows of all of them and
    return whichever come first.
    """
    import pyarrow

    tagged = df.mapInArrow(First(rows).__call__, First.SCHEMA)
    partitions = 1
    while True:
        with readable_errors():
            found = sorted(tagged.head(partitions))
        if sum(row["rows"] for row in found) >= rows or len(found) < partitions:
            break
        partitions *= 4
    if not found:
        return None
    tables = [pyarrow.ipc.open_stream(row["data"]).read_all() for row in found]
    return pyarrow.concat_tables(tables).slice(0, rows)
