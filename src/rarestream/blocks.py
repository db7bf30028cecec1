"""Block: a batch of sparse rows with their labels, each field of one fixed dtype.

This is the only place where rows are checked. In a Block, indices ascend and are unique
within a row, values are finite, labels are -1 or +1, and importances are 0 or between
1e-100 and 1e12. Other modules rely on this and do not check again, except for arrays
that other code can still write to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream._native import CopyMode, CsrFault
from rarestream.errors import DataError
from rarestream.features import Hashed, described, encode_rows

Indptr = NDArray[np.int64]
Indices = NDArray[np.int32]
Values = NDArray[np.float32]
Labels = NDArray[np.int8]
Importances = NDArray[np.float64]

# NumPy compares and converts faster with dtype objects than with np.int32 etc.: a tenth of the time of a single row.
INT32, INT64, FLOAT32, FLOAT64 = (np.dtype(name) for name in ("int32", "int64", "float32", "float64"))

POSITIVE, NEGATIVE = np.array([1], np.int8), np.array([-1], np.int8)
DENSE_TYPES = "fd?bBhHiIlLqQ"  # of dense arrays that the core reads
NO_TAG = -1  # tag of a row without one, where other rows have tags
LARGEST_INDEX = 2**31 - 2  # both an index and the width of a block must fit in an int32
SMALLEST_IMPORTANCE, LARGEST_IMPORTANCE = 1e-100, 1e12  # of rows whose importance is not 0; native/csr.hpp
FEW_ROWS = 64  # rows up to which the core is first asked whether anything must be done at all
FEW = 4096  # non-zeros up to which the copies are NumPy's, which is faster; larger ones are allocated by the core
SHARED_FROM = 8 << 20  # bytes of values beyond which they are shared: a copy would cost more than checking them
# Names of the module: looking up a member of an enum costs a hundredth of learning a single row.
COPY_NOTHING, COPY_INDICES, COPY_ALL = CopyMode.nothing, CopyMode.indices, CopyMode.all


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A batch of sparse rows in CSR form, with labels, importances and tags.

    Row i has the features `indices[indptr[i]:indptr[i+1]]` with the `values` at the same positions. Use `Block.of` to
    make a Block: it checks, canonicalises and copies the rows, so that later changes of the arguments have no effect.
    Only more than 8 MB of float32 values are shared instead of copied.

    The constructor is for readers and does not check anything. Indices that the Block does not own are copied and
    checked whenever a model learns or scores them, so that they can never address memory outside of the model.

    Attributes
    ----------
    indptr : int64 array of shape (rows + 1,)
        Start of each row in `indices` and `values`.
    indices : int32 array
        Features, from 0, ascending within a row.
    values : float32 array
        Values of the features, finite.
    width : int
        Largest index + 1; 0 if there is none.
    labels : int8 array or None
        -1 or +1.
    importances : float64 array or None
        A row of importance h counts as h rows; None: all are 1.
    tags : array or None
        Anything that identifies a row, such as svmlight's qid.
    own : bool
        Whether no other code can write to `indptr` and `indices`.
    space : Hashed or None
        The feature space whose slots the indices are; None: they are column numbers.
    classes : array or None
        The class of each row, text or numbers, where there are more than two: for `OneVsRest`.
    """

    indptr: Indptr
    indices: Indices
    values: Values
    width: int
    labels: Labels | None = None
    importances: Importances | None = None
    tags: NDArray[Any] | None = None
    own: bool = False
    space: Hashed | None = None
    classes: NDArray[Any] | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        labels: ArrayLike | None = None,
        importances: ArrayLike | None = None,
        tags: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Block:
        """Make a Block of rows in memory.

        Parameters
        ----------
        X : SciPy sparse matrix or array, dense 2-d array, or tuple (indptr, indices, values)
            The rows. Indices count from 0, up to 2^31 - 2; values must be finite and fit in float32. Duplicate features
            of a row are summed.
        labels : array-like of shape (rows,), optional
            -1 and +1, 0 and 1, or booleans.
        importances : array-like of shape (rows,), optional
            0, or between 1e-100 and 1e12. A row of importance h counts as h rows; one of importance 0 is ignored.
        tags : array-like of shape (rows,), optional
            Anything that identifies a row.
        classes : array-like of shape (rows,), optional
            The class of each row, text or numbers, where there are more than two: for `OneVsRest`.

        Returns
        -------
        Block
            A copy of the rows, except for more than 8 MB of float32 values, which are shared.

        Raises
        ------
        DataError
            If a row, a label or an importance is invalid; the message names the row.
        """
        rows = rows_of(X)
        n = len(rows[0]) - 1
        return cls(
            *rows[:4],
            None if labels is None else _labels(labels, n),
            None if importances is None else checked_importances(importances, n),
            None if tags is None else _one_per_row(tags, n, "tags"),
            rows[4],
            classes=None if classes is None else _one_per_row(classes, n, "classes"),
        )

    @classmethod
    def of_dicts(
        cls,
        rows: Sequence[Mapping[str, Any]],
        labels: ArrayLike | str | None = None,
        importances: ArrayLike | None = None,
        features: Hashed | None = None,
    ) -> Block:
        """Make a Block of rows with named values, which are hashed.

        Parameters
        ----------
        rows : sequence of mappings
            Each row as names and values, such as {"site": "a.com", "price": 3.5, "tags": ["x", "y"]}.
        labels : array-like of shape (rows,), or str, optional
            As for `of`, or the name of the label in each row, which is then no feature.
        importances : array-like of shape (rows,), optional
            As for `of`.
        features : Hashed, optional
            The space that the rows belong to: that of the model, or of other rows. Its plan says what values become;
            without a plan, each counts as what it is. By default a new `Hashed()`.

        Returns
        -------
        Block
            The rows, with the slots of their features.

        Raises
        ------
        DataError
            If a value, a label or an importance is invalid; the message names the row.
        """
        if features is not None and not isinstance(features, Hashed):
            raise TypeError(f"Block.of_dicts: features must be a Hashed, got {features!r}.")
        space = Hashed() if features is None else features
        n = len(rows)
        label = labels if isinstance(labels, str) else None
        signs = None if labels is None or label is not None else _labels(labels, n)
        weights = None if importances is None else checked_importances(importances, n)
        encoded = encode_rows(space, rows, label=label)
        if label is not None:
            signs = _labels(_label_column(rows, label), n)
        return cls(*encoded, signs, weights, None, True, space)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __repr__(self) -> str:
        labels = "no labels" if self.labels is None else f"{int(np.count_nonzero(self.labels > 0)):,} positive"
        what = f"{self.width:,} columns" if self.space is None else self.space.describe()
        return f"<Block: {len(self):,} rows ({labels}), {self.nonzeros:,} non-zeros, {what}>"

    @property
    def sealed(self) -> bool:
        """Whether indptr and indices are immutable. Otherwise the core copies and checks them at each use."""
        return self.own and not (self.indices.flags.writeable or self.indptr.flags.writeable)

    def changed(self) -> str | None:
        """Return what to say of rows that break a rule because their arrays were written to; None if none does."""
        try:
            width = canonical(self.indptr, self.indices, self.values)[3]
            broken = None if width <= self.width else f"Block: a row has feature index {width - 1}."
        except DataError as error:
            broken = str(error)
        return broken and f"or one after it breaks a rule: its arrays have changed since it was made. {broken}"

    @property
    def nonzeros(self) -> int:
        """Number of stored entries of all rows."""
        return len(self.indices)

    def within(self, slots: int) -> Block:
        """Return the block for a model with so many slots, of which the last one belongs to no feature and is zero.

        Features without a slot are mapped to that one: they add nothing to a score, but count in the norm of a row.
        """
        if self.width <= slots:
            return self
        return replace(self, indices=seal(np.minimum(self.indices, np.int32(slots - 1))), width=slots)

    def __getitem__(self, rows: slice) -> Block:
        """Return consecutive rows as a Block that shares the memory of this one."""
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise DataError(f"Block: a slice must have step 1, got {step}. Use take() for other orders.")
        stop = max(start, stop)
        if start == 0 and stop == len(self):
            return self
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
            self.space,
            None if self.classes is None else self.classes[start:stop],
        )

    def take(self, rows: NDArray[np.integer[Any]]) -> Block:
        """Return some rows as a new Block.

        Parameters
        ----------
        rows : array of int
            Their numbers, from 0, in any order.

        Returns
        -------
        Block
            A copy of these rows.
        """
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
            self.space,
            None if self.classes is None else self.classes[rows],
        )

    def balanced(self) -> Block:
        """Return the rows with importances that give both classes the same total.

        The total of all importances stays the same.

        Returns
        -------
        Block
            The same rows, which share the memory of this Block, with new importances.

        Raises
        ------
        DataError
            If the rows have no labels, or a class has no importance.
        """
        if self.labels is None:
            raise DataError("rows without labels have no classes to balance.")
        weights = np.ones(len(self)) if self.importances is None else self.importances.copy()
        total = weights.sum()
        for name, mine in (("positive", self.labels > 0), ("negative", self.labels <= 0)):
            share = weights[mine].sum()
            if share == 0:
                raise DataError(f"no {name} row has an importance > 0: there are not two classes to balance.")
            weights[mine] *= total / (2 * share)
        return replace(self, importances=weights)

    def to_csr(self, n_features: int | None = None) -> Any:
        """Return the rows as a scipy.sparse.csr_array, with 32-bit indices where they fit, as some solvers require.

        Parameters
        ----------
        n_features : int, optional
            Number of columns, >= `width`. By default `width`.

        Returns
        -------
        scipy.sparse.csr_array
            Shares its memory with this Block, so it must not be written to.
        """
        from scipy.sparse import csr_array

        starts = self.indptr.astype(np.int32) if self.nonzeros <= LARGEST_INDEX else self.indptr
        return csr_array((self.values, self.indices, starts), shape=(len(self), n_features or self.width))


def concatenate(blocks: Iterable[Block]) -> Block:
    """Return all rows of all blocks, in order, as one Block.

    If only some blocks have importances or tags, the rows of the others have importance 1 and no tag. The feature space
    is that of the first block.

    Raises
    ------
    DataError
        If only some blocks have labels or classes, or their feature spaces differ.
    """
    parts = list(blocks)
    if not parts:
        return Block(
            seal(np.zeros(1, np.int64)), seal(np.zeros(0, np.int32)), seal(np.zeros(0, np.float32)), 0, own=True
        )
    if len(parts) == 1:
        return parts[0]
    for what in ("labels", "classes"):
        having = sum(getattr(part, what) is not None for part in parts)
        if 0 < having < len(parts):
            raise DataError(f"Block: {having} of {len(parts)} blocks have {what}; all or none must.")
    space = _joined_space(parts)
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
        _filled([part.tags for part in parts], rows, None),
        True,
        space,
        _filled([part.classes for part in parts], rows, None),
    )


def _joined_space(parts: list[Block]) -> Hashed | None:
    """Return the feature space of the first block, with the names of the others."""
    space = parts[0].space
    others = {id(part.space): part.space for part in parts if part.space is not space}.values()
    for other in others:
        if space is None or other is None or not space.compatible(other):
            raise DataError(
                f"Block: rows of {described(space)} and of {described(other)} cannot be joined. "
                "Read or make all of them with the same features."
            )
    for other in others:
        if space is not None and other is not None:
            space.take_names(other)
    return space


def seal(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it. Only for arrays that no other code refers to."""
    array.flags.writeable = False
    return array


def no_tag(dtype: np.dtype[Any]) -> Any:
    """Return the tag of a row without one, where other rows have tags of this dtype."""
    return "" if dtype.kind == "U" else NO_TAG


def _filled(parts: list[NDArray[Any] | None], rows: list[int], default: float | None) -> NDArray[Any] | None:
    """All parts as one array; those that are None are filled with the default, for tags with `no_tag`."""
    dtype = next((part.dtype for part in parts if part is not None), None)
    if dtype is None:
        return None
    default = no_tag(dtype) if default is None else default
    return np.concatenate(
        [np.full(n, default, dtype) if part is None else part for part, n in zip(parts, rows, strict=True)]
    )


# Valid CSR arrays, their width, and whether indptr and indices are copies; if not, they are the arguments themselves.
# A plain tuple, because a named tuple costs a fiftieth of learning a single row.
CanonicalRows = tuple[Indptr, Indices, Values, int, bool]


def rows_of(X: Any, copy: bool = True) -> CanonicalRows:
    """Return the rows of whatever `Block.of` takes, as `canonical` does."""
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
        dense = numeric(X, "Block: values")
        if dense.ndim != 2:
            raise DataError(f"Block: rows need a 2-dimensional array, got {dense.ndim} dimension(s).")
        return _dense_rows(dense)
    return canonical(indptr, indices, values, copy)


def _dense_rows(dense: NDArray[Any]) -> CanonicalRows:
    """Return the rows of a dense array of numbers, without its zeros."""
    kind = dense.dtype
    if kind.char == "e":
        dense = dense.astype(FLOAT32)  # exact
    elif kind.char not in DENSE_TYPES or dense.shape[1] > LARGEST_INDEX:
        from scipy.sparse import csr_array

        sparse = csr_array(dense)
        return canonical(sparse.indptr, sparse.indices, sparse.data)
    elif not (kind.isnative and dense.flags.aligned) or any(stride % kind.itemsize for stride in dense.strides):
        dense = dense.astype(kind.newbyteorder("="))
    fault, row, column, width, indptr, indices, values = _native.own_dense(dense)
    if fault is CsrFault.value:
        _raise_value(row, column, dense[row, column])
    if fault:
        _raise_changed()
    return indptr, indices, values, width, True


def canonical(indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any], copy: bool = True) -> CanonicalRows:
    """Check CSR arrays, sort them within rows, sum duplicates, and convert each to its dtype.

    Returns copies, except for many values that need no change. Without `copy`, no such values are copied, nor anything
    of a few rows that need no change: for rows that are used at once and then dropped.
    """
    if indptr.ndim != 1 or indices.ndim != 1 or values.ndim != 1 or len(indptr) < 1:
        raise DataError("Block: indptr, indices and values must be one-dimensional, indptr with at least one entry.")
    size = len(indices)
    if size != len(values):
        raise DataError(f"Block: {size} indices but {len(values)} values; there must be equally many.")
    if indptr.dtype.kind not in "iu" or (indices.dtype.kind not in "iu" and size):
        raise DataError(f"Block: indptr and indices must be whole numbers, got {indptr.dtype} and {indices.dtype}.")
    if not copy and size < FEW and len(indptr) <= FEW_ROWS + 1 and values.dtype == FLOAT32:
        width = _native.width_if_canonical(indptr, indices, values)
        if width >= 0:
            return indptr.astype(INT64, copy=False), indices, values, width, False
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
        keep = entries.dtype == FLOAT32 and (not copy or 4 * size > SHARED_FROM)
        what = COPY_NOTHING if size < FEW else COPY_INDICES if keep else COPY_ALL
        if what is COPY_NOTHING:
            starts = starts.astype(INT64, copy=False)
        fault, row, position, width, own_starts, own_columns, own_entries = _native.own_rows(
            starts, columns, entries, what
        )
        if not fault and own_starts is None:
            return starts, columns.astype(INT32, copy=False), entries.astype(FLOAT32, copy=False), width, False
        if not fault:
            return own_starts, own_columns, entries if own_entries is None else own_entries, width, True
    if fault is CsrFault.indptr:
        raise DataError(
            f"Block: indptr must start at 0, never fall and end at the number of entries ({size}); "
            f"it breaks at row {row}."
        )
    if fault is CsrFault.index:
        raise DataError(
            f"Block: row {row} has feature index {columns[position]}; indices run from 0 to {LARGEST_INDEX}. "
            "Hash or renumber larger ones."
        )
    if fault is CsrFault.value:
        _raise_value(row, columns[position], entries[position])
    if fault is CsrFault.changed:
        _raise_changed()
    raise DataError("Block: duplicate features of a row sum to a value beyond float32. Scale the values down.")


def checked_width(indptr: Indptr, indices: Indices, values: Values) -> int:
    """Return the width of rows that nobody can write to; DataError unless they are as a Block has them."""
    fault, row, _, width, changed, _, _ = _native.own_rows(indptr, indices, values, COPY_NOTHING)
    if fault or changed is not None:
        raise DataError(f"Block: the arrays are damaged: row {row} is not as it was stored.")
    return width


def _raise_value(row: int, feature: int, value: float) -> NoReturn:
    raise DataError(
        f"Block: row {row}, feature {feature} has the value {value}; values must be finite and fit in float32. NaN and "
        "infinity have no place in a dot product: drop or impute them."
    )


def _raise_changed() -> NoReturn:
    raise DataError("Block: the arrays are being changed by another thread. Wait for it, or pass a copy.")


def numeric(data: ArrayLike, what: str) -> NDArray[Any]:
    """Return an array of real numbers, or raise a DataError whose message starts with `what`."""
    array = np.asarray(data)
    if array.dtype.kind in "iufb" and not isinstance(data, np.ma.MaskedArray):
        return array
    refuse_disguised(data, what)
    if array.dtype.kind == "c":
        raise DataError(f"{what} must be real numbers. Complex data not supported.")
    refuse_disguised(array, what)
    try:
        return array if array.dtype.kind in "iufb" else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers, got dtype {array.dtype} ({error}).") from None


def refuse_disguised(data: Any, what: str, way: str = "Turn it into numbers, or hash it.") -> None:
    """Raise a DataError for data that NumPy would silently convert to numbers: masked entries, times, and text.

    Checks arrays and the columns of pandas and Polars frames, and nothing else. `way` says what to do with text.
    """
    if np.ma.is_masked(data):
        raise DataError(f"{what} must be numbers, got a masked array with masked entries. Fill or drop them first.")
    if isinstance(data, np.ndarray) and data.dtype.kind == "O":
        if any(isinstance(entry, str | bytes) for entry in data.flat):
            raise DataError(f"{what} must be numbers, got text. {way}")
        return
    types = [data.dtype] if hasattr(data, "dtype") else list(getattr(data, "dtypes", ()))
    for kind in dict.fromkeys(types):  # a frame of a thousand columns has a few types
        if getattr(kind, "kind", "") in ("m", "M") or str(kind).startswith(("Date", "Time", "Duration")):
            raise DataError(f"{what} must be numbers, got the type {kind}. Turn times into numbers first.")
        if getattr(kind, "kind", "") in ("S", "U") or str(kind).lower() in ("string", "str", "utf8", "category"):
            raise DataError(f"{what} must be numbers, got text. {way}")


def _label_column(rows: Sequence[Mapping[str, Any]], name: str) -> ArrayLike:
    for number, row in enumerate(rows):
        if row.get(name) is None:
            raise DataError(f"Block.of_dicts: row {number} has no label: {name!r} is missing. Leave such rows out.")
    return [row[name] for row in rows]


def _labels(labels: ArrayLike, n: int) -> Labels:
    values = numeric(labels, "Block: labels")
    if values.shape != (n,):
        raise DataError(f"Block: {n} rows need labels of shape ({n},), got {values.shape}.")
    narrow = narrow_labels(values)
    fault, row = _native.check_labels(narrow)
    if fault:
        raise_label_fault("Block", fault, row, values)
    return signs(narrow > 0)


def signs(positive: NDArray[np.bool_]) -> Labels:
    """Return +1 where a row is positive and -1 elsewhere."""
    if len(positive) < FEW:
        return np.where(positive, POSITIVE, NEGATIVE)
    labels: Labels = positive.view(np.int8) << 1  # of many rows a tenth of the time of np.where
    labels -= 1
    return labels


def narrow_labels(labels: NDArray[Any]) -> Labels:
    """Return labels of any numeric dtype as int8: -1, 0 and 1 as they are, anything else as 2, which is no label."""
    array = np.ascontiguousarray(labels)
    if array.dtype == np.int8:
        return array
    if array.dtype == np.bool_:
        return array.view(np.int8)
    if array.dtype not in (np.int32, np.int64, np.float32, np.float64):
        array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    return _native.narrow_labels(array)


def raise_label_fault(where: str, fault: _native.ScoredFault | int, row: int, labels: ArrayLike) -> NoReturn:
    """Raise the DataError for a label that breaks the rule: labels are -1 and +1, or 0 and 1."""
    if fault == _native.ScoredFault.mixed_labels:
        raise DataError(f"{where}: labels mix -1, 0 and +1 (row {row} has 0); use -1 and +1, or 0 and 1.")
    label = np.asarray(labels)[row].item()
    raise DataError(f"{where}: row {row} has the label {label!r}; labels are -1 and +1, or 0 and 1.")


def checked_importances(importances: ArrayLike, n: int) -> Importances:
    """Return the importances of n rows, copied; DataError if one is out of range."""
    values = numeric(importances, "Block: importances").astype(np.float64)  # a copy: nobody else can change it
    if values.shape != (n,):
        raise DataError(f"Block: {n} rows need importances of shape ({n},), got {values.shape}.")
    wrong = np.flatnonzero(~((values >= SMALLEST_IMPORTANCE) & (values <= LARGEST_IMPORTANCE) | (values == 0)))
    if len(wrong):
        raise DataError(f"Block: row {wrong[0]} {importance_rule(values[wrong[0]])}")
    return values


def importance_rule(value: float) -> str:
    """Return what is wrong with an importance out of range."""
    return (
        f"has the importance {value}; importances lie between {SMALLEST_IMPORTANCE:g} and {LARGEST_IMPORTANCE:g}, or "
        "are 0, which skips a row. Divide them all by the same number: mainly their ratios matter."
    )


def _one_per_row(entries: ArrayLike, n: int, what: str) -> NDArray[Any]:
    values = np.array(entries)
    if values.shape != (n,):
        raise DataError(f"Block: {n} rows need {what} of shape ({n},), got {values.shape}.")
    return values
