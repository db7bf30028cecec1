"""Packed blocks: a frame with one row for each Block, ready to be learned many times.

`pack` reads the partitions of a frame as they are, in one pass, without a shuffle. What it returns can be written to
Parquet and read again. Its columns:

    part       the partition of the rows, as Spark numbers it
    block      the number of the block in its partition, from 0
    rows       rows in the block                       positives  those that are positive
    skipped    rows without label or features that were left out in this block, or between the one before and this
    check      CRC-32 of data
    space      the feature space without names, as JSON; null: column numbers
    classes    the negative and the positive label, as JSON; null if `positive` was given, or there are no labels
    names      names of features that the partition has first in this block; null: none
    data       the Block: an Arrow IPC stream of one row of lists: indptr, indices, values, labels, importances; values
               are null if all are 1
"""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import Block, checked_importances, checked_width, concatenate
from rarestream.errors import DataError
from rarestream.features import Hashed
from rarestream.readers.options import Classes, Label, shown_label
from rarestream.spark.inputs import WHERE, Inputs, resolve, space_from_json
from rarestream.spark.rows import RowReader
from rarestream.spark.tasks import arrow_schema, partition

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

    from rarestream.model import Model

SCHEMA = (
    "part int, block int, rows int, positives int, skipped int, check bigint, space string, classes string, "
    "names binary, data binary"
)
BLOCK_ROWS = 4096
MOST_NONZEROS = 1 << 24  # of a block, about 200 MB: a cell of Spark has at most 2 GB


def pack(
    df: DataFrame,
    *,
    label: str | None,
    features: str | Sequence[str] | None = None,
    importance: str | None = None,
    positive: Label | None = None,
    nulls: str = "error",
    bits: int | None = None,
    like: Model | None = None,
    block_rows: int = BLOCK_ROWS,
    **options: Any,
) -> DataFrame:
    """Pack the rows of a Spark frame into Blocks.

    The first rows are read at once, for what they decide: the plan of a table, and which label is positive. All others
    are read when Spark runs the frame that is returned. `fit` takes it in place of the rows; to pack once and train
    many times, write it to Parquet and read it again.

    Parameters
    ----------
    df : DataFrame
        The rows.
    label : str or None
        The column of the label; None for rows without.
    features : str or sequence of str, optional
        A vector column, a column of dense arrays, a pair of columns (indices, values), a map column, or a list of
        columns of a table. By default the columns that `like` has learned, else all that are not label or importance.
    importance : str, optional
        The column of the importance of rows.
    positive : number or str, optional
        The label that counts as +1, against all others. By default as for `rarestream.read`.
    nulls : {"error", "skip"}, default "error"
        Whether a row whose label or features are null is an error, or left out and counted.
    bits : int, optional
        Of a table or a map with text: names are hashed to 2^bits slots. By default as in `like`, else 22.
    like : Model, optional
        A model that is to learn the rows: they get its feature space, and its labels are positive and negative.
    block_rows : int, >= 1, default 4096
        Maximum number of rows in a Block.
    **options
        Of a table: the options of `rarestream.read`, such as categorical, text, crosses and names.

    Returns
    -------
    DataFrame
        One row per Block, with the columns of `rarestream.spark.packing.SCHEMA`.

    Raises
    ------
    DataError
        If an argument is invalid, or the frame has no rows. Invalid rows raise it when the frame is run.
    """
    if isinstance(block_rows, bool) or not isinstance(block_rows, int) or block_rows < 1:
        raise DataError(f"{WHERE}: block_rows must be a whole number >= 1, got {block_rows!r}.")
    if is_packed(df):
        raise DataError(f"{WHERE}: these rows are packed already. Use them as they are.")
    inputs = resolve(
        df,
        label=label,
        features=features,
        importance=importance,
        positive=positive,
        nulls=nulls,
        bits=bits,
        like=like,
        **options,
    )
    for note in inputs.notes:
        warnings.warn(f"{WHERE}: {note}", stacklevel=2)
    return inputs.select(df).mapInArrow(Packer(inputs, block_rows).pack, SCHEMA)


def is_packed(df: DataFrame) -> bool:
    """Return whether a frame has packed blocks, by its columns and their types."""
    types = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    return all(types.get(name) == kind for name, kind in (field.split(" ") for field in SCHEMA.split(", ")))


class Packer:
    """Packs the rows of a partition; its method `pack` runs in tasks."""

    def __init__(self, inputs: Inputs, block_rows: int) -> None:
        self.inputs, self.block_rows = inputs, block_rows

    def pack(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """Yield the packed blocks of a partition, one at a time."""
        import pyarrow

        part = partition()
        reader = RowReader(self.inputs, f"partition {part}")
        schema = arrow_schema(SCHEMA)
        number = reported = 0
        for block in self._blocks(reader, batches):
            data = block_to_bytes(block)
            classes = reader.classes
            row = {
                "part": part,
                "block": number,
                "rows": len(block),
                "positives": 0 if block.labels is None else int(np.count_nonzero(block.labels > 0)),
                "skipped": reader.skipped - reported,
                "check": zlib.crc32(data),
                "space": self.inputs.space,
                "classes": None if classes is None else json.dumps(classes, ensure_ascii=False),
                "names": _names_to_bytes(reader),
                "data": data,
            }
            yield pyarrow.RecordBatch.from_pylist([row], schema)
            number, reported = number + 1, reader.skipped

    def _blocks(self, reader: RowReader, batches: Iterable[RecordBatch]) -> Iterator[Block]:
        """Yield Blocks of `block_rows` rows, including those that are skipped, wherever batches end.

        So a partition that is read again gives the same Blocks.
        """
        parts: list[Block] = []
        before = missing = 0
        skipped = 0  # that an earlier block has
        for batch in batches:
            start, batch = 0, self.inputs.named(batch)
            while start < len(batch):
                missing = self.block_rows if missing == 0 else missing
                piece = batch.slice(start, missing)
                parts.append(reader.read(piece, before).block)
                start, before, missing = start + len(piece), before + len(piece), missing - len(piece)
                if missing == 0 and any(len(part) for part in parts):
                    yield from _of_bounded_size(concatenate(parts))
                    parts, skipped = [], reader.skipped
        if any(len(part) for part in parts) or reader.skipped > skipped:
            yield from _of_bounded_size(concatenate(parts))


def _of_bounded_size(block: Block) -> Iterator[Block]:
    if block.nonzeros <= MOST_NONZEROS or len(block) == 1:
        yield block
        return
    middle = len(block) // 2
    yield from _of_bounded_size(block[:middle])
    yield from _of_bounded_size(block[middle:])


# -- blocks as bytes

_BLOCK = ("indptr", "indices", "values", "labels", "importances")
_TYPES = (np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.float32), np.dtype(np.int8), np.dtype(np.float64))


def block_to_bytes(block: Block) -> bytes:
    """Return a Block as bytes: rows, labels and importances, without the names of its space."""
    values = None if (block.values == 1).all() else block.values  # categories: half of the bytes
    arrays = (block.indptr, block.indices, values, block.labels, block.importances)
    return arrays_to_bytes(dict(zip(_BLOCK, arrays, strict=True)), _TYPES)


def block_from_bytes(data: bytes, space: Hashed | None = None) -> Block:
    """Return the Block of `block_to_bytes`, which shares the memory of the bytes.

    Parameters
    ----------
    data : bytes
        What `block_to_bytes` returned.
    space : Hashed, optional
        The feature space of the rows. By default column numbers.

    Raises
    ------
    DataError
        If the bytes are no such Block.
    """
    indptr, indices, values, labels, importances = arrays_from_bytes(data, _BLOCK, _TYPES)
    if indptr is None or indices is None or len(indptr) < 1 or (values is not None and len(indices) != len(values)):
        raise DataError(f"{WHERE}: packed rows are damaged: parts of a block are missing. Pack them again.")
    values = np.ones(len(indices), np.float32) if values is None else values
    width = checked_width(indptr, indices, values)
    rows = len(indptr) - 1
    if labels is not None and (len(labels) != rows or not (abs(labels) == 1).all()):
        raise DataError(f"{WHERE}: packed rows are damaged: their labels are invalid. Pack them again.")
    if space is not None and width > space.slots:
        raise DataError(f"{WHERE}: packed rows have slot {width - 1}, but {space.describe()} are expected.")
    weights = None if importances is None else checked_importances(importances, rows)
    return Block(indptr, indices, values, width, labels, weights, own=True, space=space)


def arrays_to_bytes(arrays: Mapping[str, NDArray[Any] | None], types: Sequence[np.dtype[Any]]) -> bytes:
    """Return arrays as an Arrow IPC stream of one row, with a list for each; None is null."""
    import pyarrow

    lists = []
    for array, dtype in zip(arrays.values(), types, strict=True):
        kind = pyarrow.list_(pyarrow.from_numpy_dtype(dtype))
        if array is None:
            lists.append(pyarrow.nulls(1, kind))
        else:
            flat = pyarrow.array(np.ascontiguousarray(array, dtype))
            lists.append(pyarrow.ListArray.from_arrays(pyarrow.array([0, len(flat)], pyarrow.int32()), flat))
    batch = pyarrow.RecordBatch.from_arrays(lists, list(arrays))
    out = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(out.getvalue().to_pybytes())


def arrays_from_bytes(data: bytes, names: Sequence[str], types: Sequence[np.dtype[Any]]) -> list[NDArray[Any] | None]:
    """Return the arrays of `arrays_to_bytes`, which share the memory of the bytes; DataError if they are invalid."""
    import pyarrow

    try:
        batch = pyarrow.ipc.open_stream(data).read_next_batch()
        batch.validate(full=True)
        if batch.schema.names != list(names) or len(batch) != 1:
            raise ValueError("other arrays are expected")
        found = [
            batch.column(at).values.to_numpy() if batch.column(at).null_count == 0 else None for at in range(len(names))
        ]
    except (pyarrow.ArrowException, ValueError, OSError, StopIteration) as error:
        reason = str(error).strip().split("\n")[0]
        raise DataError(f"{WHERE}: packed rows are damaged ({reason}). Pack them again.") from None
    for array, dtype in zip(found, types, strict=True):
        if array is not None and array.dtype != dtype:
            raise DataError(f"{WHERE}: packed rows are damaged: {array.dtype} instead of {dtype}. Pack them again.")
    return found


def blocks_of(rows: Iterable[Any], space: Hashed | None = None) -> Iterator[Block]:
    """Yield the Blocks of packed rows, in the order in which they come; Blocks without rows are left out.

    Parameters
    ----------
    rows : iterable of RecordBatch, or of Row or dict
        Rows with the columns `part`, `block`, `rows`, `check` and `data`.
    space : Hashed, optional
        The feature space of the rows, as `packed_space` returns it.

    Raises
    ------
    DataError
        If the bytes of a block are not those that were written.
    """
    for row in _each(rows, ("part", "block", "rows", "check", "data")):
        data = bytes(row["data"])
        place = f"packed block {row['block']} of partition {row['part']}"
        if zlib.crc32(data) != row["check"]:
            raise DataError(f"{place}: its bytes are damaged: their checksum differs. Pack the rows again.")
        block = block_from_bytes(data, space)
        if len(block) != row["rows"]:
            raise DataError(f"{place}: has {len(block)} rows, but {row['rows']} were packed. Pack the rows again.")
        if len(block):
            yield block


def _each(rows: Iterable[Any], names: Sequence[str]) -> Iterator[Any]:
    for item in rows:
        if hasattr(item, "to_pylist"):
            for at in range(item.num_rows):
                yield {name: item.column(name)[at].as_py() for name in names}
        else:
            yield item


def packed_space(text: str | None) -> Hashed | None:
    """Return the feature space of packed rows, by their column `space`; it knows no names yet."""
    return space_from_json(text)


def packed_classes(text: str | None) -> Classes | None:
    """Return the negative and the positive label of packed rows, by their column `classes`."""
    if text is None:
        return None
    low, high = json.loads(text)
    return low, high


def joined_classes(found: Iterable[Classes | None], known: Classes | None = None) -> Classes | None:
    """Return the two labels of rows that were packed apart; DataError if they differ."""
    labels: list[Label | None] = list(known or (None, None))
    for classes in found:
        for at, other in enumerate(classes or ()):
            before = labels[at]
            labels[at] = other if before is None else before
            if before is not None and other is not None and before != other:
                raise DataError(
                    f"label {shown_label(other)} for the class whose label is {shown_label(before)} in other rows. "
                    "Make them alike, or pass positive=VALUE to name the label that counts as +1."
                )
    low, high = labels
    return None if high is None else (low, high)


# -- names

_NAMES = ("slot", "hash", "end", "text")  # as a NameTable gives them
_NAME_TYPES = (np.dtype(np.int32), np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8))


def _names_to_bytes(reader: RowReader) -> bytes | None:
    """Return the names of features that are new since the last call; None: none."""
    found = reader.take_names()
    return None if found is None else arrays_to_bytes(dict(zip(_NAMES, found, strict=True)), _NAME_TYPES)


def add_names(space: Hashed, rows: Iterable[Any]) -> None:
    """Add the names of packed rows to a feature space, in the order of partitions and blocks.

    So it does not depend on which task ends first.

    Parameters
    ----------
    space : Hashed
        Of the rows.
    rows : iterable of RecordBatch, or of Row or dict
        Rows with the columns `part`, `block` and `names`.

    Raises
    ------
    DataError
        If the names are damaged.
    """
    if space.names is None:
        return
    columns = ("part", "block", "names")
    found = ((row["part"], row["block"], row["names"]) for row in _each(rows, columns) if row["names"] is not None)
    for part, block, names in sorted(found, key=lambda row: row[:2]):
        arrays = arrays_from_bytes(bytes(names), _NAMES, _NAME_TYPES)
        table = _native.NameTable(space.bits, space.name_bytes)
        try:
            if any(array is None for array in arrays):
                raise ValueError("parts are missing")
            table.load(*arrays)  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            place = f"packed block {block} of partition {part}"
            raise DataError(f"{place}: its names are damaged ({error}). Pack the rows again.") from None
        space.names.merge(table, 0)
