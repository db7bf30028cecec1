"""RowReader: in a task, the record batches of a partition as Blocks.

Nothing loops over rows in Python: lists are the offsets and elements that Arrow has, which `blocks.canonical` checks,
sorts and copies once; labels, importances and the cells of tables go through the native parser of tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import Block, CanonicalRows, canonical, rows_of
from rarestream.errors import DataError, plain
from rarestream.features.plan import TablePlan, table_parser
from rarestream.readers.batches import BatchRules, exported
from rarestream.readers.labels import LabelRule
from rarestream.readers.options import Classes
from rarestream.readers.parser import ParsedRows, parsed_rows
from rarestream.readers.reading import Reading
from rarestream.readers.refusals import Refusals
from rarestream.readers.rows import RowsToBlocks
from rarestream.readers.tables import TableOptions
from rarestream.spark.errors import check_version
from rarestream.spark.inputs import SKIP, Inputs, space_from_json

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch


class Rows(NamedTuple):
    """Some rows of a partition."""

    block: Block
    present: NDArray[np.bool_] | None  # of the rows that were read, those that have features; None: all


class RowReader:
    """Turns record batches into Blocks, in the order of a partition.

    Parameters
    ----------
    inputs : Inputs
        What the columns are.
    place : str
        Where the rows are, for messages: the partition.
    names : bool
        Whether the feature space remembers names. Rows that are only scored need none.

    Attributes
    ----------
    space : Hashed or None
        The feature space of the Blocks.
    skipped : int
        Rows that were left out because they have no label or no features.
    """

    def __init__(self, inputs: Inputs, place: str, names: bool = True) -> None:
        check_version(inputs.version)
        self.inputs, self.place = inputs, place
        self.space = space_from_json(inputs.space)
        self.size = inputs.size
        self.skipped = 0
        plan = TablePlan() if self.space is None or self.space.plan is None else self.space.plan
        plan = replace(plan, label=inputs.label, importance=inputs.importance, tag=None)
        if self.space is not None and not names:
            self.space.names = None
        bits, named = (1, False) if self.space is None else (self.space.bits, self.space.names is not None)
        self._parser, self._numbers = table_parser(plan, bits, named)
        options = TableOptions(labels="optional" if inputs.label is None else "required")
        self._reading = Reading([], options, Refusals(0))
        self._blocks = RowsToBlocks(self._reading, BatchRules(self.space), between=": row ")
        self._blocks.rule = LabelRule(inputs.positive, inputs.label is None, inputs.classes, inputs.earlier)
        self._read = None if inputs.kind == "table" else _READERS[inputs.kind]
        self._new: list[NDArray[np.int32]] = []  # slots of rows with names that nobody has taken yet

    @property
    def classes(self) -> Classes | None:
        """The two labels, as far as they are known."""
        return None if self.inputs.label is None else self._blocks.rule.classes

    def read(self, batch: RecordBatch, before: int) -> Rows:
        """Return the rows of a batch.

        Parameters
        ----------
        batch : RecordBatch
            With the columns of `Inputs.names`.
        before : int
            Rows of the partition before it, for messages.

        Raises
        ------
        DataError
            If a row is invalid; the message names it.
        """
        present = self._present(batch, before)
        numbers = np.arange(before, before + len(batch))
        if present is not None:
            import pyarrow

            self.skipped += len(batch) - int(np.count_nonzero(present))
            batch, numbers = batch.filter(pyarrow.array(present)), numbers[present]
        rows = None if self._read is None else self._checked(batch, numbers)
        roles = self.inputs.label is not None or self.inputs.importance is not None
        if rows is not None and not roles:
            return Rows(Block(rows[0], rows[1], rows[2], rows[3], own=True), present)
        parsed = self._parsed(batch, numbers)
        if rows is not None and not parsed.bad:
            parsed = parsed._replace(indptr=rows[0], indices=rows[1], values=rows[2], width=rows[3])
        if self.inputs.label is not None and not parsed.bad:
            self._count_unlabelled(parsed, len(batch))
        if parsed.names is not None and len(parsed.names):
            self._new.append(parsed.indices)
        block, error = self._blocks.block(self.place, 0, parsed)
        if error is not None:
            raise error
        return Rows(block if self.inputs.label is not None else replace(block, labels=None), present)

    def take_names(self) -> tuple[NDArray[Any], ...] | None:
        """Return the names of features that are new since the last call, as a NameTable gives them; None: none."""
        if self.space is None or self.space.names is None or not self._new:
            return None
        names = self.space.names.to_arrays(_distinct(np.concatenate(self._new), self.space.slots), True)
        self.space.names, self._new = _native.NameTable(self.space.bits, self.space.name_bytes), []
        return names

    def _present(self, batch: RecordBatch, before: int) -> NDArray[np.bool_] | None:
        """Return which rows have features; None: all."""
        if self.inputs.kind == "table" and not self.inputs.one_value:
            return None
        missing: NDArray[np.bool_] | None = None
        name = ""
        for name in self.inputs.columns:
            cells = batch.column(name)
            if cells.null_count:
                null = cells.is_null().to_numpy(zero_copy_only=False)
                missing = null if missing is None else missing | null
        if missing is None:
            return None
        if self.inputs.nulls == "error":
            count, row = int(np.count_nonzero(missing)), int(np.flatnonzero(missing)[0])
            name = next(name for name in self.inputs.columns if not batch.column(name)[row].is_valid)
            raise self._null(f"the features (column {name!r}) are null", count, before + row, len(batch), before)
        return ~missing

    def _null(self, what: str, count: int, row: int, rows: int, before: int) -> DataError:
        these = "is the only such row" if count == 1 else f"is the first of {count:,} such rows"
        return DataError(
            f"{self.place}: row {row}: {what}; it {these} in rows {before:,} to {before + rows - 1:,} of the "
            f"partition. Fill it, or {SKIP}."
        )

    def _count_unlabelled(self, parsed: ParsedRows, rows: int) -> None:
        missing = np.isnan(parsed.labels)
        count = int(np.count_nonzero(missing))
        if count and self.inputs.nulls == "error":
            first, last = int(parsed.lines[0]), int(parsed.lines[-1])
            row = int(parsed.lines[np.flatnonzero(missing)[0]])
            raise self._null(f"the label (column {self.inputs.label!r}) is null", count, row, last - first + 1, first)
        self.skipped += count

    def _parsed(self, batch: RecordBatch, numbers: NDArray[np.int64]) -> ParsedRows:
        if self._read is not None:
            batch = batch.select([name for name in (self.inputs.label, self.inputs.importance) if name is not None])
        try:
            found = self._parser.parse_arrow(
                exported(batch),
                columns=[self._numbers.get(name, -1) for name in batch.schema.names],
                start=0,
                stop=len(batch),
                stop_after=1,
            )
        except ValueError as error:
            raise DataError(f"{self.place}: {plain(str(error))}. Leave the column out, or convert it.") from None
        parsed = parsed_rows(found)
        bad = [row._replace(line=int(numbers[row.line])) for row in parsed.bad]
        return parsed._replace(lines=numbers[parsed.lines], bad=bad)

    def _checked(self, batch: RecordBatch, numbers: NDArray[np.int64]) -> CanonicalRows:
        """Return the features of rows that have column numbers, as `blocks.canonical` does."""
        assert self._read is not None
        try:
            return self._read(self, [batch.column(name) for name in self.inputs.columns])
        except _RowFaultError as fault:
            raise DataError(f"{self.place}: row {numbers[fault.row]}: {fault}") from None
        except DataError as error:
            found = re.match(r"Block: row (\d+)(?: has |, )", str(error))
            if found is None:
                raise DataError(f"{self.place}: {str(error).removeprefix('Block: ')}") from None
            rule = str(error)[found.end() :]
            raise DataError(f"{self.place}: row {numbers[int(found[1])]}: {rule}") from None


def _distinct(slots: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    """Return the different slots, which ascend. Marking them is faster than sorting, as long as the marks are few."""
    if size > 64 * len(slots):
        return np.unique(slots)
    marked = np.zeros(size, bool)
    marked[slots] = True
    return np.flatnonzero(marked).astype(np.int32)


class _RowFaultError(Exception):
    """A row that breaks a rule."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


def _lists(array: Array) -> tuple[NDArray[Any], Array]:
    """Return where each list starts, and all their elements. None of the lists may be null."""
    if len(array) == 0:
        return np.zeros(1, np.int64), array.values.slice(0, 0)
    offsets = array.offsets.to_numpy()
    start, stop = int(offsets[0]), int(offsets[-1])
    return offsets - offsets[0], array.values.slice(start, stop - start)


def _numbers(elements: Array, starts: NDArray[Any], name: str) -> NDArray[Any]:
    """Return the elements of lists as NumPy has them; none may be null."""
    if elements.null_count:
        at = int(np.flatnonzero(elements.is_null().to_numpy(zero_copy_only=False))[0])
        row = int(np.searchsorted(starts, at, "right")) - 1
        raise _RowFaultError(
            row, f"{name} has a null at position {at - int(starts[row])}; leave it out, or fill it with a number."
        )
    numbers: NDArray[Any] = elements.to_numpy(zero_copy_only=False)
    return numbers


def _check_lengths(one: NDArray[Any], other: NDArray[Any], names: tuple[str, str]) -> None:
    if np.array_equal(one, other):
        return
    sizes, others = np.diff(one), np.diff(other)
    row = int(np.flatnonzero(sizes != others)[0])
    raise _RowFaultError(
        row,
        f"{names[0]} has {sizes[row]} elements, but {names[1]} has {others[row]}; there must be one "
        "value for each index.",
    )


def _pair(reader: RowReader, columns: Sequence[Array]) -> CanonicalRows:
    first, second = (f"column {name!r}" for name in reader.inputs.columns)
    starts, indices = _lists(columns[0])
    others, values = _lists(columns[1])
    _check_lengths(starts, others, (first, second))
    return canonical(starts, _numbers(indices, starts, first), _numbers(values, starts, second))


def _map(reader: RowReader, columns: Sequence[Array]) -> CanonicalRows:
    (pairs,) = columns
    name = f"column {reader.inputs.columns[0]!r}"
    starts, _ = _lists(pairs)
    begin = int(pairs.offsets[0].as_py()) if len(pairs) else 0
    keys, items = (part.slice(begin, int(starts[-1])) for part in (pairs.keys, pairs.items))
    return canonical(starts, _numbers(keys, starts, name), _numbers(items, starts, name))


def _array(reader: RowReader, columns: Sequence[Array]) -> CanonicalRows:
    starts, elements = _lists(columns[0])
    _check_sizes(reader, np.diff(starts), "arrays")
    return _dense(starts, _numbers(elements, starts, f"column {reader.inputs.columns[0]!r}"))


def _dense(starts: NDArray[Any], values: NDArray[Any]) -> CanonicalRows:
    rows = len(starts) - 1
    return rows_of(values.reshape(rows, len(values) // rows if rows else 0))


def _vector(reader: RowReader, columns: Sequence[Array]) -> CanonicalRows:
    name = f"column {reader.inputs.columns[0]!r}"
    kinds, sizes, index_lists, value_lists = columns[0].flatten()
    starts, elements = _lists(value_lists)
    values = _numbers(elements, starts, name)
    sparse: NDArray[np.bool_] = kinds.to_numpy(zero_copy_only=False) == SPARSE
    if not sparse.any():
        _check_sizes(reader, np.diff(starts), "vectors")
        return _dense(starts, values)
    mixed = not sparse.all()
    own_starts, own = _lists(index_lists.filter(_mask(sparse)) if mixed else index_lists)
    lengths = np.diff(starts)
    stated = sizes.fill_null(0).to_numpy(zero_copy_only=False)
    _check_sizes(reader, np.where(sparse, stated, lengths) if mixed else stated, "vectors")
    indices = _numbers(own, own_starts, name)
    if not mixed:
        _check_lengths(own_starts, starts, (f"a sparse vector of {name}", "its list of values"))
        _check_within(indices, starts, reader.size, np.arange(len(starts) - 1))
        return canonical(starts, indices, values)
    _check_lengths(
        own_starts, np.concatenate([[0], np.cumsum(lengths[sparse])]), (f"a sparse vector of {name}", "its values")
    )
    _check_within(indices, own_starts, reader.size, np.flatnonzero(sparse))
    from_sparse = np.repeat(sparse, lengths)
    columns_of = np.arange(len(values)) - np.repeat(starts[:-1], lengths)
    columns_of[from_sparse] = indices
    kept = from_sparse | (values != 0)  # zeros of a dense row are absent, as everywhere
    ends = np.concatenate([[0], np.cumsum(kept)])[starts]
    return canonical(ends, columns_of[kept], values[kept])


SPARSE = 0  # the type of a sparse vector; 1: dense


def _mask(rows: NDArray[np.bool_]) -> Any:
    import pyarrow

    return pyarrow.array(rows)


def _check_sizes(reader: RowReader, sizes: NDArray[Any], what: str) -> None:
    """Raise if rows are of different sizes: what a coordinate is would be unknown."""
    if len(sizes) == 0:
        return
    if reader.size is None:
        reader.size = int(sizes[0])
    wrong = np.flatnonzero(sizes != reader.size)
    if len(wrong):
        row = int(wrong[0])
        raise _RowFaultError(
            row,
            f"its size is {sizes[row]}, but other {what} of this column have {reader.size}. All must be alike.",
        )


def _check_within(indices: NDArray[Any], starts: NDArray[Any], size: int | None, rows: NDArray[Any]) -> None:
    """Raise if a sparse vector has an index beyond its size. Negative ones are refused with those of all rows."""
    if size is None or len(indices) == 0 or int(indices.max()) < size:
        return
    at = int(np.flatnonzero(indices >= size)[0])
    row = int(rows[np.searchsorted(starts, at, "right") - 1])
    raise _RowFaultError(row, f"feature index {indices[at]} of a vector of size {size}; indices are below the size.")


_READERS: Mapping[str, Callable[[RowReader, Sequence[Array]], CanonicalRows]] = {
    "pair": _pair,
    "map": _map,
    "array": _array,
    "vector": _vector,
}
