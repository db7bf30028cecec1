"""The file format `.blocks`: the rows of Blocks as an Arrow IPC file, to be read again at the speed of memory.

One Arrow row per row, in these columns, of which those in brackets may be missing:

    [label]       int8: -1 or 1; null: no label
    [class]       string: the label where there may be more than two
    [importance]  double; null: 1
    [tag]         string; null: none
    [names]       binary: in the first row of a record batch, the names of features that its rows have first
    indices       large_list<int32>: from 0, ascending
    values        large_list<float>; null: all of them are 1

Values are null for all rows of a record batch or for none. The key `rarestream.blocks` of the schema's metadata holds
JSON with the version and what is known of all rows. The same key of a record batch holds what is known once its rows
have been read. A last batch without rows holds what is known at the end. docs/formats/blocks.md is the specification.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream._version import __version__
from rarestream.blocks import Block, concatenate
from rarestream.errors import MissingExtraError
from rarestream.system import whole

VERSION = 1
KEY = "rarestream.blocks"  # of the metadata of schema and batches
OPTIONAL = ("importance", "tag", "names")
BATCH_ROWS = 8192  # as `read` cuts Blocks by default: a batch is then one Block, and need not be cut
BATCH_NONZEROS = 1 << 20  # a batch with more ends before it has so many rows

NameChanges = tuple[NDArray[np.int32], NDArray[np.uint16], NDArray[np.uint8], NDArray[np.int32]]


class Lines(NamedTuple):
    """Where rows came from: the number of their source, what stands between its name and a line, and the lines."""

    source: int
    between: str
    numbers: NDArray[np.int64]  # one per row

    def runs(self) -> list[list[int]]:
        """Return the rows, from 0, that do not follow the line of the row before them, with their lines."""
        starts = np.flatnonzero(np.diff(self.numbers, prepend=self.numbers[:1] - 2) != 1)
        return np.stack([starts, self.numbers[starts]], 1).tolist()  # type: ignore[no-any-return]


def import_pyarrow() -> Any:
    """Return the package pyarrow."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError('A .blocks file needs the package pyarrow: pip install "rarestream[arrow]"') from None
    return pyarrow


class BlocksWriter:
    """Writes a `.blocks` file. Small Blocks are joined: a record batch has 8192 rows where possible.

    Parameters
    ----------
    file : path or binary file
        Where to write. A path is written atomically: the file is there once the writer is closed.
    about : mapping
        What is known of all rows, ready for JSON.
    columns : sequence of {"importance", "tag", "names"}
        Which of these the rows may have. By default the first two: each takes room in the file.

    Examples
    --------
    >>> from rarestream import read
    >>> with BlocksWriter("clicks.blocks") as writer:  # doctest: +SKIP
    ...     for block in read("clicks.svm"):
    ...         writer.write(block)
    """

    def __init__(
        self,
        file: str | os.PathLike[str] | BinaryIO,
        about: Mapping[str, Any] | None = None,
        columns: Sequence[str] = OPTIONAL[:2],
    ) -> None:
        self._arrow = import_pyarrow()
        self.rows = 0
        self._about = {"version": VERSION, "written_by": f"rarestream {__version__}", **(about or {})}
        self._columns = columns
        self._opened: AbstractContextManager[BinaryIO] = (
            whole(file) if isinstance(file, str | os.PathLike) else nullcontext(file)
        )
        self._file = self._opened.__enter__()
        self._writer: Any = None  # once the first Block has shown which columns there are
        self._waiting: list[tuple[Block, Lines | None]] = []  # rows of the next batch
        self._state: dict[str, Any] = {}  # what is known once the rows that wait have been read
        self._written: dict[str, Any] = {}  # and what earlier batches hold of it
        self._names: list[NameChanges] = []

    def write(
        self,
        block: Block,
        lines: Lines | None = None,
        names: NameChanges | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Write rows.

        Parameters
        ----------
        block : Block
            The rows. A label 0 is none.
        lines : Lines, optional
            Where they came from.
        names : tuple of arrays, optional
            Names of features that these rows have first, as `NameTable.take_changes` returns them.
        state : mapping, optional
            What is known once they have been read, ready for JSON.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        if self._waiting and _kind(block, lines) != _kind(*self._waiting[0]):
            self._write_waiting(0)
        self._waiting.append((block, lines))
        self._state |= state or {}
        if names is not None and (len(names[0]) or len(names[3])):
            self._names.append(names)
        if sum(len(part) for part, _ in self._waiting) >= BATCH_ROWS:
            self._write_waiting(BATCH_ROWS)
        if sum(part.nonzeros for part, _ in self._waiting) >= BATCH_NONZEROS:
            self._write_waiting(0)

    def close(self, end: Mapping[str, Any] | None = None) -> None:
        """Write what is left, and the end of the file; a file given by its path is then in its place.

        Parameters
        ----------
        end : mapping, optional
            What is known at the end, ready for JSON.
        """
        if self._waiting:
            self._write_waiting(0)
        if self._writer is None:
            self._start(Block(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 0))
        self._write_batch(self._empty(), {"end": {**(end or {}), "rows": self.rows}})
        self._writer.close()
        self._opened.__exit__(None, None, None)

    def abandon(self, error: BaseException | None = None) -> None:
        """End without a file, if it was given by its path."""
        error = error or _AbandonedError()
        self._opened.__exit__(type(error), error, error.__traceback__)

    def __enter__(self) -> BlocksWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon(error)

    # -- batches

    def _start(self, first: Block) -> None:
        arrow = self._arrow
        label = ("label", arrow.int8()) if first.classes is None else ("class", arrow.string())
        optional = {"importance": arrow.float64(), "tag": arrow.string(), "names": arrow.binary()}
        self._schema = arrow.schema(
            [
                label,
                *((name, optional[name]) for name in OPTIONAL if name in self._columns),
                ("indices", arrow.large_list(arrow.int32())),
                ("values", arrow.large_list(arrow.float32())),
            ],
            metadata={KEY: json.dumps(self._about, ensure_ascii=False)},
        )
        self._writer = arrow.ipc.new_file(self._file, self._schema)

    def _write_waiting(self, size: int) -> None:
        """Write what waits in batches of so many rows, and keep the rest; 0: all of it, as one batch."""
        block = concatenate(part for part, _ in self._waiting)
        places = [lines for _, lines in self._waiting if lines is not None]
        lines = places[0]._replace(numbers=np.concatenate([place.numbers for place in places])) if places else None
        step = size or len(block)
        stop = len(block) // step * step
        for start in range(0, stop, step):
            part = slice(start, start + step)
            self._write_rows(block[part], None if lines is None else lines._replace(numbers=lines.numbers[part]))
        rest = slice(stop, None)
        self._waiting = []
        if stop < len(block):
            numbers = None if lines is None else lines._replace(numbers=lines.numbers[rest])
            self._waiting.append((block[rest], numbers))

    def _write_rows(self, block: Block, lines: Lines | None) -> None:
        if self._writer is None:
            self._start(block)
        state = {word: value for word, value in self._state.items() if self._written.get(word) != value}
        self._written |= state
        if lines is not None:
            state |= {"source": lines.source, "between": lines.between, "lines": lines.runs()}
        if block.classes is not None:
            state["class_type"] = _TYPES[block.classes.dtype.kind]
        if block.tags is not None:
            state["tag_type"] = _TYPES[block.tags.dtype.kind]
        self._write_batch(self._batch(block), state)
        self.rows += len(block)

    def _batch(self, block: Block) -> Any:
        arrow, rows = self._arrow, len(block)
        starts = arrow.array(block.indptr)
        found = {"indices": arrow.LargeListArray.from_arrays(starts, arrow.array(block.indices))}
        if not (block.values == 1).all():  # else, as of categories, half of the bytes suffice
            found["values"] = arrow.LargeListArray.from_arrays(starts, arrow.array(block.values))
        if block.labels is not None:
            found["label"] = arrow.array(block.labels, mask=None if block.labels.all() else block.labels == 0)
        if block.classes is not None:
            found["class"] = _texts(arrow, block.classes)
        if block.importances is not None:
            found["importance"] = arrow.array(block.importances)
        if block.tags is not None:
            found["tag"] = _texts(arrow, block.tags, block.tags == ("" if block.tags.dtype.kind == "U" else -1))
        if self._names:
            found["names"] = arrow.array([names_to_bytes(self._names)] + [None] * (rows - 1), arrow.binary())
            self._names = []
        schema = self._schema
        for name in found:
            if name not in schema.names:
                raise ValueError(f"BlocksWriter: the rows have {name}, which is not one of the columns.")
        columns = [
            found[name] if name in found else arrow.nulls(rows, schema.field(name).type) for name in schema.names
        ]
        return arrow.RecordBatch.from_arrays(columns, schema=schema)

    def _write_batch(self, batch: Any, state: Mapping[str, Any]) -> None:
        metadata = {KEY: json.dumps(state, ensure_ascii=False, separators=(",", ":"))} if state else None
        self._writer.write_batch(batch, custom_metadata=metadata)

    def _empty(self) -> Any:
        arrow, schema = self._arrow, self._schema
        return arrow.RecordBatch.from_arrays([arrow.nulls(0, field.type) for field in schema], schema=schema)


class _AbandonedError(Exception):
    """A file is not wanted after all."""


_TYPES = {"U": "text", "i": "int", "f": "float"}  # of tags and classes, by the kind of their array


def _kind(block: Block, lines: Lines | None) -> tuple[Any, ...]:
    """Return what rows of the same batch have in common."""
    classes = None if block.classes is None else block.classes.dtype.kind
    place = None if lines is None else (lines.source, lines.between)
    return classes, place, block.labels is None


def _texts(arrow: Any, values: NDArray[Any], none: NDArray[np.bool_] | None = None) -> Any:
    """Return tags or classes as text; `none`: where there is none."""
    if values.dtype.kind != "U":
        values = np.array([repr(value) for value in values.tolist()])
    return arrow.array(values, arrow.string(), mask=none)


def names_to_bytes(changes: Sequence[NameChanges]) -> bytes:
    """Return names as a `.blocks` file has them: two counts, hashes, lost slots, lengths, and the text."""
    hashes, lengths, text, lost = (np.concatenate(parts) for parts in zip(*changes, strict=True))
    counts = np.array([len(hashes), len(lost)])
    parts = zip((counts, hashes, lost, lengths, text), ("<i4", "<i4", "<i4", "<u2", "u1"), strict=True)
    return b"".join(np.asarray(part, dtype).tobytes() for part, dtype in parts)


def names_from_bytes(data: Any) -> NameChanges:
    """Return the names of `names_to_bytes`, which share the memory of the bytes; ValueError if they are too few."""
    known, missing = np.frombuffer(data, "<i4", 2).tolist()
    if min(known, missing) < 0:
        raise ValueError("the number of names is negative")
    hashes = np.frombuffer(data, "<i4", known, 8)
    lost = np.frombuffer(data, "<i4", missing, 8 + 4 * known)
    lengths = np.frombuffer(data, "<u2", known, 8 + 4 * (known + missing))
    return hashes, lengths, np.frombuffer(data, np.uint8, offset=8 + 6 * known + 4 * missing), lost
