"""Block: a batch of sparse rows with their labels, each field one fixed dtype.

This is the one place where rows are checked: past a Block, indices ascend and are
unique within a row, values are finite, labels are -1 or +1, importances are finite
and not negative. Everything below trusts that and checks nothing again.
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

NO_TAG = -1  # where only some rows have a tag
LARGEST_INDEX = 2**31 - 2  # an index is an int32, and the width of a block must be one too


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows in compressed form: row i holds `indices[indptr[i]:indptr[i+1]]` and the values beside them.

    `Block(...)` trusts its arguments: readers that have already checked use it. Everyone else calls
    `Block.of`, which takes a SciPy matrix, an array or the three CSR arrays, checks and canonicalises.
    """

    indptr: Indptr
    indices: Indices
    values: Values
    width: int  # largest index + 1, 0 when there is none
    labels: Labels | None = None  # -1 or +1
    importances: Importances | None = None  # a row of importance h counts as h rows; None: 1 each
    tags: NDArray[Any] | None = None  # whatever names a row: svmlight's qid

    @classmethod
    def of(
        cls,
        X: Any,
        labels: ArrayLike | None = None,
        importances: ArrayLike | None = None,
        tags: ArrayLike | None = None,
    ) -> Block:
        """The Block of a SciPy sparse matrix or array, a dense 2-d array, or a tuple (indptr, indices, values)."""
        indptr, indices, values, width = _rows(X)
        n = len(indptr) - 1
        return cls(
            indptr,
            indices,
            values,
            width,
            None if labels is None else _labels(labels, n),
            None if importances is None else _importances(importances, n),
            None if tags is None else _tags(tags, n),
        )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def nonzeros(self) -> int:
        return len(self.indices)

    def __getitem__(self, rows: slice) -> Block:
        """A run of rows as a Block that shares this one's memory."""
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise DataError(f"Block: rows are taken in runs, got a step of {step}. Use take() for other orders.")
        stop = max(start, stop)
        a, b = int(self.indptr[start]), int(self.indptr[stop])
        return Block(
            self.indptr[start : stop + 1] - a,
            self.indices[a:b],
            self.values[a:b],
            self.width,
            None if self.labels is None else self.labels[start:stop],
            None if self.importances is None else self.importances[start:stop],
            None if self.tags is None else self.tags[start:stop],
        )

    def take(self, rows: NDArray[np.integer[Any]]) -> Block:
        """The given rows, in the given order."""
        sizes = np.diff(self.indptr)[rows]
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(sizes, out=indptr[1:])
        at = np.repeat(self.indptr[:-1][rows] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return Block(
            indptr,
            self.indices[at],
            self.values[at],
            self.width,
            None if self.labels is None else self.labels[rows],
            None if self.importances is None else self.importances[rows],
            None if self.tags is None else self.tags[rows],
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
        return Block(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 0)
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
        np.concatenate(starts),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.values for part in parts]),
        max(part.width for part in parts),
        _filled([part.labels for part in parts], rows, 0),
        _filled([part.importances for part in parts], rows, 1.0),
        _filled([part.tags for part in parts], rows, NO_TAG),
    )


def _filled(parts: list[NDArray[Any] | None], rows: list[int], default: float) -> NDArray[Any] | None:
    dtype = next((part.dtype for part in parts if part is not None), None)
    if dtype is None:
        return None
    return np.concatenate(
        [np.full(n, default, dtype) if part is None else part for part, n in zip(parts, rows, strict=True)]
    )


def _rows(X: Any) -> tuple[Indptr, Indices, Values, int]:
    if isinstance(X, tuple):
        if len(X) != 3:
            raise DataError(f"Block: a tuple must be (indptr, indices, values), got {len(X)} items.")
        indptr, indices, values = (np.asarray(part) for part in X)
    elif hasattr(X, "tocsr"):
        if X.ndim != 2:
            raise DataError(f"Block: rows need a 2-dimensional matrix, got {X.ndim} dimension(s).")
        X = X.tocsr()
        indptr, indices, values = X.indptr, X.indices, X.data
    else:
        from scipy.sparse import csr_array

        dense = np.asarray(X)
        if dense.ndim != 2:
            raise DataError(f"Block: rows need a 2-dimensional array, got {dense.ndim} dimension(s).")
        sparse = csr_array(_numeric(dense, "values"))
        indptr, indices, values = sparse.indptr, sparse.indices, sparse.data
    return canonical(indptr, indices, values)


def canonical(indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any]) -> tuple[Indptr, Indices, Values, int]:
    """CSR arrays checked, sorted within rows, duplicates summed, each in its one dtype; and their width."""
    if indptr.ndim != 1 or indices.ndim != 1 or values.ndim != 1 or len(indptr) < 1:
        raise DataError("Block: indptr, indices and values must be one-dimensional, indptr with at least one entry.")
    if len(indices) != len(values):
        raise DataError(f"Block: {len(indices)} indices but {len(values)} values; they go in pairs.")
    if indptr.dtype.kind not in "iu" or (indices.dtype.kind not in "iu" and len(indices)):
        raise DataError(f"Block: indptr and indices must be whole numbers, got {indptr.dtype} and {indices.dtype}.")
    starts = np.ascontiguousarray(indptr, INT64)
    columns = np.ascontiguousarray(indices, indices.dtype if indices.dtype in (INT32, INT64) else INT64)
    entries = np.ascontiguousarray(
        _numeric(values, "values"), values.dtype if values.dtype in (FLOAT32, FLOAT64) else FLOAT64
    )
    fault, row, position, width, ordered = _native.survey_rows(starts, columns, entries)
    if fault == 1:
        raise DataError(
            f"Block: indptr must start at 0, never fall and end at the number of entries ({len(columns)}); "
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
    starts = starts.copy() if not ordered else starts
    narrow = columns.astype(INT32, copy=not ordered)
    single = entries.astype(FLOAT32, copy=not ordered)
    if not ordered:
        kept = _native.canonicalise_rows(starts, narrow, single)
        narrow, single = narrow[:kept], single[:kept]
        if not np.isfinite(single).all():
            raise DataError("Block: duplicate features of a row sum to a value beyond float32. Scale the values down.")
    return starts, narrow, single, int(width)


def _numeric(array: NDArray[Any], what: str) -> NDArray[Any]:
    if array.dtype.kind in "iufb":
        return array
    if array.dtype.kind == "c":
        raise DataError(f"Block: {what} must be real numbers. Complex data not supported.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"Block: {what} must be numbers, got dtype {array.dtype} ({error}).") from None


def _labels(labels: ArrayLike, n: int) -> Labels:
    given = np.asarray(labels)
    if given.shape != (n,):
        raise DataError(f"Block: {n} rows need labels of shape ({n},), got {given.shape}.")
    if given.dtype.kind == "b":
        given = given.astype(np.int8)
    wrong = np.flatnonzero((given != 1) & (given != -1) & (given != 0))
    if len(wrong):
        raise DataError(f"Block: row {wrong[0]} has the label {given[wrong[0]]!r}; labels are -1 and +1, or 0 and 1.")
    if (given == 0).any() and (given == -1).any():
        raise DataError("Block: labels mix -1, 0 and +1; use -1 and +1, or 0 and 1.")
    return np.where(given == 1, 1, -1).astype(np.int8)


def _importances(importances: ArrayLike, n: int) -> Importances:
    given = np.ascontiguousarray(importances, np.float64)
    if given.shape != (n,):
        raise DataError(f"Block: {n} rows need importances of shape ({n},), got {given.shape}.")
    wrong = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
    if len(wrong):
        raise DataError(
            f"Block: row {wrong[0]} has the importance {given[wrong[0]]}; importances are finite and >= 0 "
            "(0 skips a row)."
        )
    return given


def _tags(tags: ArrayLike, n: int) -> NDArray[Any]:
    given = np.asarray(tags)
    if given.shape != (n,):
        raise DataError(f"Block: {n} rows need tags of shape ({n},), got {given.shape}.")
    return given
