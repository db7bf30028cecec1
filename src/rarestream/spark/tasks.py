"""What all functions that run in tasks share."""

from __future__ import annotations

from typing import Any


def partition() -> int:
    """Return the number of the partition that this task reads; 0 outside of tasks."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def arrow_schema(ddl: str) -> Any:
    """Return the schema of Arrow for one of Spark, such as \"part int, data binary\"."""
    import pyarrow

    types = {"int": pyarrow.int32(), "bigint": pyarrow.int64(), "string": pyarrow.string(), "binary": pyarrow.binary()}
    return pyarrow.schema([(name, types[kind]) for name, kind in (field.split(" ") for field in ddl.split(", "))])
