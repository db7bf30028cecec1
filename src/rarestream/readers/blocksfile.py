"""Opens a `.blocks` file (writers/blocks.py): mapped into memory, and yielded as pieces.

Another program may write to the file while it is mapped, so nothing of it is trusted: where rows begin, and their
indices, are copied and checked in one pass (`own_rows` of the core), and all else can do no harm. Values are not
copied: a row with an invalid one is refused when it is learned.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import (
    COPY_INDICES,
    FLOAT32,
    INT32,
    NO_TAG,
    Block,
    Indices,
    Indptr,
    Values,
    canonical,
    checked_importances,
    seal,
)
from rarestream.errors import DataError, plain
from rarestream.features import Hashed
from rarestream.readers.locations import PieceLines
from rarestream.readers.prefetch import Prefetch
from rarestream.writers.blocks import KEY, VERSION, NameChanges, import_pyarrow, names_from_bytes

COLUMNS = ("indices", "values", "label", "class", "importance", "tag", "names")
UNEXPECTED = (OSError, ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError)
MAKE_AGAIN = "Make it again."
MOST_THREADS = 2  # that check batches ahead: one does that several times faster than rows are learned
FORGET = 64 << 20  # bytes that have been read after which their pages are given back to the system


Result = TypeVar("Result")


class Piece(NamedTuple):
    """The rows of a record batch, and what is known once they have been read."""

    block: Block  # its labels are -1, +1, and 0 for none
    lines: PieceLines
    names: NameChanges | None  # of features that these rows have first
    state: Mapping[str, Any]
    position: int  # bytes of the file up to its indices


class BlocksFile:
    """An open `.blocks` file.

    Parameters
    ----------
    path : str
        The file.
    name : str, optional
        What messages call it.

    Attributes
    ----------
    about : mapping
        What is known of all rows.
    end : mapping
        What is known at the end.

    Raises
    ------
    DataError
        If the file is damaged, cut short, of a newer version, or no such file.
    """

    def __init__(self, path: str, name: str | None = None) -> None:
        self._arrow = import_pyarrow()
        self.path, self.name = path, name or plain(path)
        try:
            with open(path, "rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise DataError(f"{self.name}: cannot be read: {(error.strerror or str(error)).lower()}.") from None
        except ValueError:
            raise self._damaged("it is empty") from None
        self._base = np.frombuffer(self._map, np.uint8).ctypes.data
        self._forgotten = 0
        self._reader = self.guarded(lambda: self._arrow.ipc.open_file(self._arrow.py_buffer(self._map)))
        self._schema = self._reader.schema
        names = self.guarded(lambda: self._schema.names)
        self._columns = {name: at for at, name in enumerate(names) if name in COLUMNS}
        self.has_classes = "class" in self._columns  # not two, but maybe many
        self.about = self._read_about()
        self._batches: int = self._reader.num_record_batches
        self.end: Mapping[str, Any] = {}
        if self._batches:
            batch, state = self._batch(self._batches - 1)
            found = state.get("end")
            if not len(batch) and isinstance(found, dict):
                self.end = found
                self._batches -= 1

    def __len__(self) -> int:
        return self._batches

    def guarded(self, action: Callable[[], Result]) -> Result:
        """Return what `action`, which trusts the file, returns; DataError if the file does not hold what it needs."""
        try:
            return action()
        except DataError as error:
            if str(error).startswith(self.name):
                raise
            raise self._damaged(str(error)) from None
        except (self._arrow.ArrowException, *UNEXPECTED) as error:
            reason = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)
            raise self._damaged(plain(reason.strip().split("\n")[0].rstrip("."))) from None

    def _damaged(self, reason: str) -> DataError:
        return DataError(f"{self.name}: is cut short or damaged, or no .blocks file ({reason}). {MAKE_AGAIN}")

    def _read_about(self) -> dict[str, Any]:
        text = (self._schema.metadata or {}).get(KEY.encode())
        if text is None:
            raise DataError(
                f"{self.name}: is an Arrow file, but not of the format .blocks: its schema has no metadata {KEY!r}. "
                "To read it as a table, pass format='arrow' and its columns."
            )
        about = self.guarded(lambda: json.loads(text))
        version = about.get("version") if isinstance(about, dict) else None
        if type(version) is not int or version < 1:
            raise self._damaged("its version is missing")
        if version > VERSION:
            raise DataError(
                f"{self.name}: written by format {version}; this version reads up to {VERSION}. "
                "Upgrade rarestream, or make the file again."
            )
        return about  # type: ignore[no-any-return]

    def space(self) -> Hashed | None:
        """Return the feature space of the rows, without names; None: column numbers."""
        given = self.about.get("space")
        if given is None:
            return None
        return self.guarded(lambda: Hashed.from_settings(given))

    def pieces(self, space: Hashed | None = None, threads: int = 0) -> Iterator[Piece]:
        """Yield the rows of each batch, in order, as rows of this feature space; `threads` read ahead."""
        numbers = iter(range(self._batches))

        def take(_: bytearray) -> Callable[[], Piece] | None:
            number = next(numbers, None)  # by one thread at a time, as pyarrow's reader wants it
            return None if number is None else partial(self.guarded, partial(self._piece, *self._batch(number), space))

        def in_turn() -> Iterator[Piece]:
            while (task := take(bytearray())) is not None:
                yield task()

        before = 0
        ahead = min(threads, MOST_THREADS) if self._batches > 1 else 0
        found: Any = iter(Prefetch(take, lambda: None, ahead)) if ahead else in_turn()
        with closing(found):
            for piece in found:
                if piece.lines.name == self.name:
                    piece = piece._replace(lines=piece.lines._replace(before=before))
                before += len(piece.block)
                self._forget(piece.position)
                yield piece

    def add_names(self, space: Hashed | None, piece: Piece) -> None:
        """Add the names that come with a piece to the feature space of its rows."""
        if space is None or space.names is None or piece.names is None:
            return
        try:
            space.names.replay(*piece.names)
        except (TypeError, ValueError) as error:
            raise self._damaged(str(error)) from None

    def close(self) -> None:
        """Let go of the file. What was made of it can still be used."""
        self._reader = None

    # -- batches

    def _batch(self, number: int) -> tuple[Any, dict[str, Any]]:
        def read() -> tuple[Any, dict[str, Any]]:
            batch, metadata = self._reader.get_batch_with_custom_metadata(number)
            batch.validate()
            text = None if metadata is None else metadata.get(KEY.encode())
            state = {} if text is None else json.loads(text)
            if not isinstance(state, dict):
                raise ValueError("the metadata of a batch are not an object")
            return batch, state

        return self.guarded(read)

    def _piece(self, batch: Any, state: dict[str, Any], space: Hashed | None) -> Piece:
        rows = len(batch)
        columns = {name: batch.column(at) for name, at in self._columns.items()}
        if "indices" not in columns:
            raise ValueError("there is no column indices")
        indptr, indices, values, width = self._rows(columns["indices"], columns.get("values"))
        if len(indptr) != rows + 1:
            raise ValueError("a column has another number of rows")
        if space is not None and width > space.slots:
            raise ValueError(f"slot {width - 1} of {space.slots}")
        weights = _numbers(columns.get("importance"), 1.0)
        block = Block(
            indptr,
            indices,
            values,
            width,
            _labels(columns["label"]) if "label" in columns else None,
            None if weights is None else checked_importances(weights, rows),
            _texts(columns.get("tag"), state.get("tag_type", "text"), NO_TAG),
            True,
            space,
            _texts(columns.get("class"), state.get("class_type", "text"), None),
        )
        names, position = _names(columns.get("names"), space), self._position(columns["indices"])
        return Piece(block, self._lines(state, rows), names, state, position)

    def _rows(self, indices: Any, values: Any) -> tuple[Indptr, Indices, Values, int]:
        """Return the features of rows: where they begin, and their indices, are copies, checked."""
        starts, columns = _list(indices, "indices")
        if values is None or values.null_count == len(values):
            entries = _ones(len(columns))
        else:
            ends, entries = _list(values, "values")
            if not np.array_equal(starts, ends):
                raise ValueError("indices and values have different lengths")
        if columns.dtype != INT32 or entries.dtype != FLOAT32:
            return canonical(starts, columns, entries)[:4]
        fault, row, _, width, own_starts, own_columns, own_entries = _native.own_rows(
            starts, columns, entries, COPY_INDICES
        )
        if fault or own_starts is None or own_columns is None:
            raise ValueError(f"row {row} of a batch is invalid: {fault}")
        return own_starts, own_columns, entries if own_entries is None else own_entries, width

    def _lines(self, state: Mapping[str, Any], rows: int) -> PieceLines:
        """Return where the rows came from; without that, their numbers in this file."""
        runs, source = state.get("lines"), state.get("source")
        names = self.about.get("sources")
        if runs is None or source is None or not names:
            return PieceLines(self.name, 0, _counted(rows), ": row ")
        name, between = str(names[source]["name"]), str(state.get("between", ":"))
        if len(runs) == 1 and runs[0][0] == 0:
            return PieceLines(name, int(runs[0][1]), _counted(rows), between)
        starts, numbers = np.array(runs, np.int64).reshape(-1, 2).T
        if len(starts) == 0 or starts[0] != 0 or (np.diff(starts) <= 0).any() or starts[-1] >= max(rows, 1):
            raise ValueError("the lines of a batch are invalid")
        lines = _counted(rows) + np.repeat(numbers - starts, np.diff(starts, append=rows))
        return PieceLines(name, 0, lines, between)

    def _position(self, indices: Any) -> int:
        """Return where the elements of a column are in the file."""
        elements = indices.values.buffers()[1]
        return self._forgotten if elements is None else int(elements.address) - self._base

    def _forget(self, position: int) -> None:
        """Give back the pages that were read, so that memory stays bounded. They are read again if they are needed."""
        start, page = self._forgotten, mmap.ALLOCATIONGRANULARITY
        stop = position // page * page
        if start + FORGET < stop < len(self._map) and hasattr(self._map, "madvise"):
            with suppress(OSError, ValueError):
                self._map.madvise(mmap.MADV_DONTNEED, start, stop - start)
            self._forgotten = stop


_ONES, _NUMBERS = np.ones(0, np.float32), np.arange(0)


def _ones(size: int) -> NDArray[np.float32]:
    """Return so many ones, which all callers share."""
    global _ONES
    ones = _ONES
    if len(ones) < size:
        ones = _ONES = seal(np.ones(2 * size, np.float32))
    return ones[:size]


def _counted(size: int) -> NDArray[np.int64]:
    """Return the numbers from 0 to a size, which all callers share."""
    global _NUMBERS
    numbers = _NUMBERS
    if len(numbers) < size:
        numbers = _NUMBERS = seal(np.arange(2 * size))
    return numbers[:size]


def _list(column: Any, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return where the lists of a column begin, and their elements, as views."""
    kind = str(column.type)
    if not kind.startswith(("large_list<", "list<")):
        raise ValueError(f"the column {name} is {kind}, not a list")
    if column.null_count or column.values.null_count:
        raise ValueError(f"the column {name} has nulls")
    starts = column.offsets.to_numpy()
    return starts.astype(np.int64, copy=False), column.values.to_numpy()


def _numbers(column: Any, missing: float) -> NDArray[np.float64] | None:
    if column is None or column.null_count == len(column):
        return None
    if column.null_count:
        column = column.fill_null(missing)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def _labels(column: Any) -> NDArray[np.int8]:
    """Return -1 and +1, and 0 where there is none. In the file 0 is negative, too."""
    import pyarrow

    if not (pyarrow.types.is_boolean(column.type) or pyarrow.types.is_integer(column.type)):
        raise ValueError(f"the column label is {column.type}, not int8")
    missing = column.null_count
    given = (column.fill_null(-1) if missing else column).to_numpy(zero_copy_only=False)
    labels: NDArray[np.int8] = given.astype(np.int8, copy=False)
    if not (abs(labels) == 1).all() or labels.dtype != given.dtype:
        if not np.isin(given, (-1, 0, 1)).all():
            raise ValueError("a label is neither -1, 0 nor 1")
        labels = np.where(given == 1, 1, -1).astype(np.int8)
    if missing:
        labels = np.where(column.is_valid().to_numpy(zero_copy_only=False), labels, 0).astype(np.int8)
    return labels


def _owned(column: Any) -> Any:
    """Return a copy of a column of text, checked: where texts begin is followed without a further look."""
    import pyarrow

    if not (pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)):
        raise ValueError(f"a column of text is {column.type}, not string")
    copies = [None if part is None else pyarrow.py_buffer(part.to_pybytes()) for part in column.buffers()]
    copy = pyarrow.Array.from_buffers(column.type, len(column), copies, column.null_count, column.offset)
    copy.validate(full=True)
    return copy


def _texts(column: Any, kind: str, none: Any) -> NDArray[Any] | None:
    """Return tags or classes: text, or the numbers that were written as text."""
    if column is None or column.null_count == len(column):
        return None
    if none is None and column.null_count:
        raise ValueError("the column class has nulls")
    found = _owned(column).to_pylist()
    if kind == "text":
        return np.array([text or "" for text in found])
    number = {"int": int, "float": float}[kind]
    return np.array([none if text is None else number(text) for text in found], np.int64 if kind == "int" else float)


def _names(column: Any, space: Hashed | None) -> NameChanges | None:
    """Return the names of a batch, if its feature space keeps any."""
    if column is None or space is None or space.names is None or column.null_count == len(column):
        return None
    if str(column.type) != "binary":
        raise ValueError(f"the column names is {column.type}, not binary")
    valid, ends, text = column.buffers()  # a value is not asked for: its place has not been checked
    if valid is not None and not np.frombuffer(valid, np.uint8, 1)[0] & 1:
        return None
    first, stop = np.frombuffer(ends, np.int32, 2).tolist()
    if text is None or not 0 <= first <= stop <= text.size:
        raise ValueError("the names are damaged")
    return names_from_bytes(text.slice(first, stop - first))
