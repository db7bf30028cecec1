"""What users of scikit-learn have, as rows of hashed features: frames, lists of dicts, and arrays.

All of it goes through `read`, so the features are those of a file with the same rows.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from rarestream import _native
from rarestream.adapters.tables import read_rows
from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.features import Hashed

# Types of Arrow and Polars. Booleans count: a frame of dummy variables is a matrix of zeros and ones.
NUMERIC = ("int", "uint", "float", "decimal", "bool")


def is_frame(X: Any) -> bool:
    """Return whether X is a table with named columns: of pandas, Polars, Arrow, DuckDB and others."""
    exports = any(hasattr(X, method) for method in ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__"))
    return exports and not hasattr(type(X), "dtype")  # a Series, which is a single column, has one


def is_dicts(X: Any) -> bool:
    """Return whether X is a list of dicts."""
    return isinstance(X, list) and bool(X) and isinstance(X[0], Mapping)


def must_be_hashed(X: Any) -> bool:
    """Return whether rows are no matrix: dicts, or a frame with a column that is not of numbers or booleans."""
    if is_dicts(X):
        return True
    if not is_frame(X):
        return False
    if not hasattr(X, "__array__"):
        return True  # NumPy cannot make a matrix of it
    if hasattr(X, "iloc"):  # pandas, which takes longer to return a column than to tell its type
        return not all(_is_numeric(X, at, kind) for at, kind in enumerate(X.dtypes))
    types = X.dtypes if hasattr(X, "dtypes") else [word for _, word in _arrow_columns(X)]
    return not all(str(kind).lower().startswith(NUMERIC) for kind in types)


def _is_numeric(X: Any, at: int, dtype: Any) -> bool:
    """Return whether a column of a pandas frame has numbers only; its dtype may be that of any objects."""
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return all(entry is None or isinstance(entry, numbers.Number) for entry in X.iloc[:, at])
    return dtype.kind in "iufb"


def _arrow_columns(X: Any) -> list[tuple[str, str]]:
    """Return names and types of the columns of an Arrow table, whose memory is not copied for it."""
    if hasattr(X, "__arrow_c_stream__"):
        return _native.ArrowStream(X.__arrow_c_stream__()).columns
    return _native.ArrowBatch(*X.__arrow_c_array__()).columns


def first_rows(estimator: Any, X: Any, space: Hashed, options: Mapping[str, Any]) -> list[Block]:
    """Return the rows that an estimator is fitted on first. They decide the plan of the columns, which the space keeps.

    Sets `n_features_in_` and, unless X is an array, `feature_names_in_` of the estimator.

    Parameters
    ----------
    estimator : estimator
        For messages, and its attributes.
    X : frame, list of dicts, or array
        The rows. The columns of an array are called x0, x1, ...
    space : Hashed
        A new feature space.
    options : mapping
        The options of reading.

    Raises
    ------
    DataError
        If a value cannot be a feature, or an option is not allowed or names a column that is not there.
    """
    where = type(estimator).__name__
    if is_frame(X) or is_dicts(X):
        blocks = read_rows(X, space, options, where)
        assert space.plan is not None
        names = [column.name for column in space.plan.columns]
        estimator.feature_names_in_ = np.array(names, object)
    else:
        array = _array(X, where)
        names = _generated(array.shape[1])
        blocks = read_rows(_dicts(array, names), space, options, where)
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    estimator.n_features_in_ = len(names)
    return blocks


def more_rows(
    estimator: Any, X: Any, space: Hashed, names_go_to: Literal["the space", "the blocks", "nobody"]
) -> list[Block]:
    """Return rows that follow the plan of the first ones.

    Parameters
    ----------
    estimator : estimator
        For messages, and its `n_features_in_` and `feature_names_in_`, which are the columns of an array.
    X : frame, list of dicts, or array
        The rows.
    space : Hashed
        The feature space.
    names_go_to : {"the space", "the blocks", "nobody"}
        Who remembers the names of features: the space, or another one that only these Blocks have.

    Raises
    ------
    DataError
        If a value cannot be a feature, or a column is missing.
    """
    where = type(estimator).__name__
    if names_go_to != "the space":
        plan, space = space.plan, Hashed(space.bits, names_go_to == "the blocks", space.name_bytes)
        space.plan = plan
    if not (is_frame(X) or is_dicts(X)):
        array = _array(X, where)
        expected = estimator.n_features_in_
        if array.shape[1] != expected:
            raise DataError(f"X has {array.shape[1]} features, but {where} is expecting {expected} features as input.")
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None:
            warnings.warn(
                f"X does not have valid feature names, but {where} was fitted with feature names", stacklevel=3
            )
        X = _dicts(array, _generated(expected) if names is None else names.tolist())
    return read_rows(X, space, {}, where)


def _array(X: Any, where: str) -> NDArray[Any]:
    if issparse(X):
        raise TypeError(
            f"{where}: sparse data has no names that could be hashed. Pass a frame, a list of dicts, or a dense array."
        )
    if isinstance(X, str | bytes | Mapping):
        raise TypeError(f"{where}: X must be a frame, a list of dicts, or an array, got {type(X).__name__}.")
    array: NDArray[Any] = check_array(X, dtype=None, ensure_all_finite="allow-nan", estimator=where)
    return array


def _generated(count: int) -> list[str]:
    return [f"x{number}" for number in range(count)]


def _dicts(X: NDArray[Any], names: list[str]) -> list[dict[str, Any]]:
    if X.dtype.kind == "M":  # of finer units, `tolist` makes numbers
        X = X.astype("datetime64[us]")
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]
