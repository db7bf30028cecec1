"""Block: a batch of sparse rows with their labels, each field one fixed dtype.

This is the one place where rows are checked: past a Block, indices ascend and are
unique within a row, values are finite, labels are -1 or +1, importances are 0 or lie
between 1e-100 and 1e12. Everything below trusts that and checks nothing again, but for
rows that somebody else can still write to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError

Indptr = NDArray[np.int64]
Indices = NDArray[np.int32]
Values = NDArray[np.float32]
Labels = NDArray[np.int8]
Importances = NDArray[np.float64]

# NumPy compares and converts faster with these than with np.int32 and so on: a tenth of learning a single row.
INT32, INT64, FLOAT32, FLOAT64 = (np.dtype(name) for name in ("int32", "int64", "float32", "float64"))

POSITIVE, NEGATIVE = np.array([1], np.int8), np.array([-1], np.int8)
NO_TAG = -1  # where only some rows have a tag
LARGEST_INDEX = 2**31 - 2  # an index is an int32, and the width of a block must be one too
SMALLEST_IMPORTANCE, LARGEST_IMPORTANCE = 1e-100, 1e12  # of rows that count; native/csr.hpp
FEW = 4096  # non-zeros up to which NumPy makes the copies: quicker than the core, which has memory of its own for them
SHARED_FROM = 8 << 20  # bytes of values from which on a copy costs fresh memory, and more than looking at them
COPY_NOTHING, COPY_INDICES, COPY_ALL = range(3)  # of rows that need no change; native/bind_blocks.cpp


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows in compressed form: row i holds `indices[indptr[i]:indptr[i+1]]` and the values beside them.

    `Block.of` takes a SciPy matrix, an array or the three CSR arrays, checks and canonicalises. It copies them, so that
    what its caller does to those arrays afterwards changes nothing; but for more than 8 MB of float32 values, which
    stay where they are. `Block(...)` is for readers, and checks nothing: indices that are not a block's own are copied
    and looked at whenever a model learns or scores its rows, so that they cannot lead out of its memory.
    """

    indptr: Indptr
    indices: Indices
    values: Values
    width: int  # largest index + 1, 0 when there is none
    labels: Labels | None = None  # -1 or +1
    importances: Importances | None = None  # a row of importance h counts as h rows; None: 1 each
    tags: NDArray[Any] | None = None  # whatever names a row: svmlight's qid
    own: bool = False  # whether nobody else can write to indptr and indices

    @classmethod
    def of(
        cls,
        X: Any,
        labels: ArrayLike | None = None,
        importances: ArrayLike | None = None,
        tags: ArrayLike | None = None,
    ) -> Block:
        """The Block of a SciPy sparse matrix or array, a dense 2-d array, or a tuple (indptr, indices, values)."""
        rows = _rows(X)
        n = len(rows[0]) - 1
        return cls(
            *rows[:4],
            None if labels is None else _labels(labels, n),
            None if importances is None else _importances(importances, n),
            None if tags is None else _tags(tags, n),
            rows[4],
        )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __repr__(self) -> str:
        labels = "no labels" if self.labels is None else f"{int(np.count_nonzero(self.labels > 0)):,} positive"
        return f"<Block: {len(self):,} rows ({labels}), {self.nonzeros:,} non-zeros, {self.width:,} columns>"

    @property
    def sealed(self) -> bool:
        """Whether nobody can change where the rows lead; else the core copies and checks that before it uses them."""
        return self.own and not (self.indices.flags.writeable or self.indptr.flags.writeable)

    @property
    def rows(self) -> tuple[Indptr, Indices, Values, int, bool]:
        """What kernels are given: the arrays, the width, and whether they can be trusted."""
        return self.indptr, self.indices, self.values, self.width, self.sealed

    def broken(self) -> str | None:
        """Which rule the rows have come to break since the block was made; None if none."""
        try:
            rows = canonical(self.indptr, self.indices, self.values)
        except DataError as error:
            return str(error)
        return None if rows[3] <= self.width else f"Block: a row has feature index {rows[3] - 1}."

    @property
    def nonzeros(self) -> int:
        return len(self.indices)

    def within(self, slots: int) -> Block:
        """The block for weights of which the last has no feature: features that have no weight are taken for that one.

        They count for nothing, but are part of a row's length.
        """
        if self.width <= slots:
            return self
        return replace(self, indices=seal(np.minimum(self.indices, np.int32(slots - 1))), width=slots)

    def __getitem__(self, rows: slice) -> Block:
        """A run of rows as a Block that shares this one's memory."""
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise DataError(f"Block: rows are taken in runs, got a step of {step}. Use take() for other orders.")
        stop = max(start, stop)
        a, b = int(self.indptr[start]), int(self.indptr[stop])
        return Block(
            seal(self.indptr[start : stop + 1] - a),
            self.indices[a:b],
            self.values[a:b],
            self.width,
            None if self.labels is None else self.labels[start:stop],
            None if self.importances is None else self.importances[start:stop],
            None if self.tags is None else self.tags[start:stop],
            self.own,
        )

    def take(self, rows: NDArray[np.integer[Any]]) -> Block:
        """The given rows, in the given order."""
        sizes = np.diff(self.indptr)[rows]
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(sizes, out=indptr[1:])
        at = np.repeat(self.indptr[:-1][rows] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return Block(
            seal(indptr),
            seal(self.indices[at]),
            seal(self.values[at]),
            self.width,
            None if self.labels is None else self.labels[rows],
            None if self.importances is None else self.importances[rows],
            None if self.tags is None else self.tags[rows],
            True,
        )

    def balanced(self) -> Block:
        """The rows with importances by which both classes weigh alike, and all together as much as before."""
        if self.labels is None:
            raise DataError("rows without labels have no classes to balance.")
        weights = np.ones(len(self)) if self.importances is None else self.importances.copy()
        total = weights.sum()
        for name, mine in (("positive", self.labels > 0), ("negative", self.labels <= 0)):
            share = weights[mine].sum()
            if share == 0:
                raise DataError(f"no {name} row weighs anything: there are not two classes to balance.")
            weights[mine] *= total / (2 * share)
        return replace(self, importances=weights)

    def to_csr(self, n_features: int | None = None) -> Any:
        """The rows as a scipy.sparse.csr_array, with 32-bit indices where they fit, which some solvers insist on."""
        from scipy.sparse import csr_array

        starts = self.indptr.astype(np.int32) if self.nonzeros <= LARGEST_INDEX else self.indptr
        return csr_array((self.values, self.indices, starts), shape=(len(self), n_features or self.width))


def concatenate(blocks: Iterable[Block]) -> Block:
    """All rows of all blocks, in order. Where only some blocks have importances or tags, the others' rows count 1 and
    have no tag; labels must be in all blocks or in none."""
    parts = list(blocks)
    if not parts:
        return Block(
            seal(np.zeros(1, np.int64)), seal(np.zeros(0, np.int32)), seal(np.zeros(0, np.float32)), 0, own=True
        )
    if len(parts) == 1:
        return parts[0]
    labelled = sum(part.labels is not None for part in parts)
    if 0 < labelled < len(parts):
        raise DataError(f"Block: {labelled} of {len(parts)} blocks have labels; all or none must.")
    rows = [len(part) for part in parts]
    starts = [np.zeros(1, np.int64)]
    for part, before in zip(parts, accumulate((part.nonzeros for part in parts), initial=0), strict=False):
        starts.append(part.indptr[1:] + before)
    return Block(
        seal(np.concatenate(starts)),
        seal(np.concatenate([part.indices for part in parts])),
        seal(np.concatenate([part.values for part in parts])),
        max(part.width for part in parts),
        _filled([part.labels for part in parts], rows, 0),
        _filled([part.importances for part in parts], rows, 1.0),
        _filled([part.tags for part in parts], rows, NO_TAG),
        True,
    )


def seal(array: NDArray[Any]) -> NDArray[Any]:
    """The array, from now on read-only. For arrays that nobody else holds."""
    array.flags.writeable = False
    return array


def _filled(parts: list[NDArray[Any] | None], rows: list[int], default: float) -> NDArray[Any] | None:
    dtype = next((part.dtype for part in parts if part is not None), None)
    if dtype is None:
        return None
    return np.concatenate(
        [np.full(n, default, dtype) if part is None else part for part, n in zip(parts, rows, strict=True)]
    )


def _rows(X: Any) -> CanonicalRows:
    if isinstance(X, tuple):
        if len(X) != 3:
            raise DataError(f"Block: a tuple must be (indptr, indices, values), got {len(X)} items.")
        indptr, indices = (np.asarray(part) for part in X[:2])
        values = numeric(X[2], "Block: values")
    elif hasattr(X, "tocsr"):
        if X.ndim != 2:
            raise DataError(f"Block: rows need a 2-dimensional matrix, got {X.ndim} dimension(s).")
        X = X.tocsr()
        indptr, indices, values = X.indptr, X.indices, X.data
    else:
        from scipy.sparse import csr_array

        dense = numeric(X, "Block: values")
        if dense.ndim != 2:
            raise DataError(f"Block: rows need a 2-dimensional array, got {dense.ndim} dimension(s).")
        sparse = csr_array(dense)
        indptr, indices, values = sparse.indptr, sparse.indices, sparse.data
    return canonical(indptr, indices, values)


# CSR arrays that keep the rules of a Block, how wide they are, and whether indptr and indices are copies; else they are
# those that were given, in order already. A plain tuple: a named one costs a fiftieth of learning a row.
CanonicalRows = tuple[Indptr, Indices, Values, int, bool]


def canonical(indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any], copy: bool = True) -> CanonicalRows:
    """CSR arrays checked, sorted within rows, duplicates summed, each in its one dtype.

    Copies of them, but for many values that need no change; without `copy`, also for few rows that need none: for those
    that are used at once.
    """
    if indptr.ndim != 1 or indices.ndim != 1 or values.ndim != 1 or len(indptr) < 1:
        raise DataError("Block: indptr, indices and values must be one-dimensional, indptr with at least one entry.")
    size = len(indices)
    if size != len(values):
        raise DataError(f"Block: {size} indices but {len(values)} values; they go in pairs.")
    if indptr.dtype.kind not in "iu" or (indices.dtype.kind not in "iu" and size):
        raise DataError(f"Block: indptr and indices must be whole numbers, got {indptr.dtype} and {indices.dtype}.")
    starts = np.ascontiguousarray(indptr, indptr.dtype if indptr.dtype in (INT32, INT64) else INT64)
    columns = np.ascontiguousarray(indices, indices.dtype if indices.dtype in (INT32, INT64) else INT64)
    entries = values if values.dtype in (FLOAT32, FLOAT64) else numeric(values, "Block: values")
    entries = np.ascontiguousarray(entries, entries.dtype if entries.dtype in (FLOAT32, FLOAT64) else FLOAT64)
    if copy and size < FEW:
        own = np.empty(len(starts), INT64), np.empty(size, INT32), np.empty(size, FLOAT32)
        fault, row, position, width, kept = _native.own_rows_in(starts, columns, entries, *own)
        for part in own:
            part.flags.writeable = False
        if not fault:
            if kept < size:
                own = own[0], own[1][:kept], own[2][:kept]
            return *own, width, True
    else:
        keep = entries.dtype == FLOAT32 and 4 * size > SHARED_FROM
        what = COPY_NOTHING if size < FEW else COPY_INDICES if keep else COPY_ALL
        if what == COPY_NOTHING:
            starts = starts.astype(INT64, copy=False)
        fault, row, position, width, own_starts, own_columns, own_entries = _native.own_rows(
            starts, columns, entries, what
        )
        if not fault and own_starts is None:
            return starts, columns.astype(INT32, copy=False), entries.astype(FLOAT32, copy=False), width, False
        if not fault:
            return own_starts, own_columns, entries if own_entries is None else own_entries, width, True
    if fault == 1:
        raise DataError(
            f"Block: indptr must start at 0, never fall and end at the number of entries ({size}); "
            f"it breaks at row {row}."
        )
    if fault == 2:
        raise DataError(
            f"Block: row {row} has feature index {columns[position]}; indices run from 0 to {LARGEST_INDEX}. "
            "Hash or renumber larger ones."
        )
    if fault == 3:
        raise DataError(
            f"Block: row {row}, feature {columns[position]} has the value {entries[position]}; values must be finite "
            "and fit in float32. NaN and infinity have no place in a dot product: drop or impute them."
        )
    if fault == 4:
        raise DataError("Block: the arrays are being changed by another thread. Wait for it, or pass a copy.")
    raise DataError("Block: duplicate features of a row sum to a value beyond float32. Scale the values down.")


def numeric(given: ArrayLike, what: str) -> NDArray[Any]:
    """An array of real numbers, or a refusal that starts with `what`."""
    array = np.asarray(given)
    if array.dtype.kind in "iufb" and not isinstance(given, np.ma.MaskedArray):
        return array
    refuse_disguised(given, what)
    if array.dtype.kind == "c":
        raise DataError(f"{what} must be numbers that have an order. Complex data not supported.")
    refuse_disguised(array, what)
    try:
        return array if array.dtype.kind in "iufb" else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers, got dtype {array.dtype} ({error}).") from None


def refuse_disguised(given: Any, what: str) -> None:
    """Refuses what NumPy would turn into numbers without a word: masked entries, times, and digits in a text.

    Looks at arrays and at the columns of pandas and Polars frames; passes over everything else.
    """
    if np.ma.is_masked(given):
        raise DataError(f"{what} must be numbers, got a masked array with masked entries. Fill or drop them first.")
    if isinstance(given, np.ndarray) and given.dtype.kind == "O":
        if any(isinstance(one, str | bytes) for one in given.flat):
            raise DataError(f"{what} must be numbers, got text. Turn it into numbers, or hash it.")
        return
    types = [given.dtype] if hasattr(given, "dtype") else list(getattr(given, "dtypes", ()))
    for kind in types:
        if getattr(kind, "kind", "") in ("m", "M") or str(kind).startswith(("Date", "Time", "Duration")):
            raise DataError(f"{what} must be numbers, got the type {kind}. Turn times into numbers first.")
        if getattr(kind, "kind", "") in ("S", "U") or str(kind).lower() in ("string", "str", "utf8", "category"):
            raise DataError(f"{what} must be numbers, got text. Turn it into numbers, or hash it.")


def _labels(labels: ArrayLike, n: int) -> Labels:
    given = numeric(labels, "Block: labels")
    if given.shape != (n,):
        raise DataError(f"Block: {n} rows need labels of shape ({n},), got {given.shape}.")
    if given.dtype.kind == "b":
        given = given.view(np.int8)
    positive, negative, zero = given == 1, given == -1, given == 0
    known = positive | negative | zero
    if not known.all():
        wrong = int(np.argmin(known))
        raise DataError(f"Block: row {wrong} has the label {given[wrong]!r}; labels are -1 and +1, or 0 and 1.")
    if zero.any() and negative.any():
        raise DataError("Block: labels mix -1, 0 and +1; use -1 and +1, or 0 and 1.")
    return np.where(positive, POSITIVE, NEGATIVE)


def _importances(importances: ArrayLike, n: int) -> Importances:
    given = numeric(importances, "Block: importances").astype(np.float64)  # a copy: nobody else can change it
    if given.shape != (n,):
        raise DataError(f"Block: {n} rows need importances of shape ({n},), got {given.shape}.")
    wrong = np.flatnonzero(~((given >= SMALLEST_IMPORTANCE) & (given <= LARGEST_IMPORTANCE) | (given == 0)))
    if len(wrong):
        raise DataError(f"Block: row {wrong[0]} {importance_rule(given[wrong[0]])}")
    return given


def importance_rule(value: float) -> str:
    """What to say of an importance that breaks the rule."""
    return (
        f"has the importance {value}; importances lie between {SMALLEST_IMPORTANCE:g} and {LARGEST_IMPORTANCE:g}, or "
        "are 0, which skips a row. Divide them all by the same number: only their ratios matter much."
    )


def _tags(tags: ArrayLike, n: int) -> NDArray[Any]:
    given = np.array(tags)
    if given.shape != (n,):
        raise DataError(f"Block: {n} rows need tags of shape ({n},), got {given.shape}.")
    return given
