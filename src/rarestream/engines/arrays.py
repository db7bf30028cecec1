"""The arrays of a model file: an engine's state dumped to named arrays, and loaded from them with all checks.

The functions that load raise ValueError or KeyError if an array is invalid or missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.learners.state import SPARE, TALLY, Layout, placed

EXTRA = "more."  # prefix of the names of extra arrays

Arrays = Mapping[str, NDArray[Any]]


def dump_table(table: NDArray[Any], layout: Layout) -> dict[str, NDArray[Any]]:
    """Return the coordinates that rows have touched, and each column of these."""
    index, numbers = _native.touched(table)
    return {"index": index, **layout.split(numbers.reshape(table.shape[1], len(index)))}


def load_table(arrays: Arrays, table: NDArray[Any], layout: Layout, slots: int) -> None:
    """Write the columns of a file to a table of zeros; its coordinates are below `slots`."""
    index = checked_index(arrays, "index", slots)
    first = 0
    for name, width in layout.columns.items():
        shape = (len(index),) if width == 1 else (len(index), width)
        part = checked(arrays, name, table.dtype, *shape)
        table[index, first : first + width] = part.reshape(len(index), width)
        first += width


def expected(arrays: Arrays, name: str, like: NDArray[Any]) -> NDArray[Any]:
    """Return an array that has the dtype and shape of another."""
    return checked(arrays, name, like.dtype, *like.shape)


def dump_extra(extra: Arrays) -> dict[str, NDArray[Any]]:
    """Return copies of extra arrays under their names in a file."""
    return {EXTRA + name: array.copy() for name, array in extra.items()}


def load_extra(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Return the extra arrays of a file under their own names; they are finite."""
    extra = {name: array for name, array in arrays.items() if name.startswith(EXTRA)}
    return {name[len(EXTRA) :]: checked(arrays, name, array.dtype, *array.shape) for name, array in extra.items()}


def dump_largest(largest: NDArray[np.float32] | None) -> dict[str, NDArray[Any]]:
    """Return the largest absolute values of features, with scale="max"."""
    if largest is None:
        return {}
    known = np.flatnonzero(largest)
    return {"largest_index": known.astype(np.int32), "largest": largest[known]}


def load_largest(arrays: Arrays, largest: NDArray[np.float32] | None, slots: int) -> None:
    """Write the largest absolute values of features to an array of zeros, with scale="max"."""
    if largest is None:
        return
    known = checked_index(arrays, "largest_index", slots)
    values = checked(arrays, "largest", np.dtype(np.float32), len(known))
    if (values <= 0).any():
        raise ValueError("array 'largest' has entries <= 0")
    largest[known] = values


def load_weights(arrays: Arrays, dtype: str, n_features: int) -> NDArray[Any]:
    """Return the weights of a scoring-only file, with the spare slot that features without a weight are scored as."""
    index = checked_index(arrays, "index", n_features)
    return placed(index, checked(arrays, "weight", np.dtype(dtype), len(index)), n_features + SPARE)


def load_tally(arrays: Arrays, own: int = 0) -> NDArray[np.float64]:
    """Return the numbers of TALLY and `own` others; counts and roots are not negative."""
    numbers = checked(arrays, "tally", np.dtype(np.float64), len(TALLY) + own)
    if any(numbers[TALLY.index(name)] < 0 for name in ("n_pos", "n_neg", "n0")):
        raise ValueError("its counts are negative")
    return numbers


def load_race(arrays: Arrays, settings: int, rows: int | None) -> tuple[int, int]:
    """Return how many rows were raced, which are less than `rows`, and which of the settings leads."""
    raced, lead = load_tally(arrays, 2)[len(TALLY) :].tolist()
    if not (raced.is_integer() and raced >= 0 and (rows is None or raced < rows)):
        raise ValueError(f"the number of raced rows is {raced}, not a whole number below {rows}")
    if lead not in range(settings):
        raise ValueError(f"the leading setting is {lead}, not a whole number below {settings}")
    return int(raced), int(lead)


def checked(arrays: Arrays, name: str, dtype: np.dtype[Any], *shape: int) -> NDArray[Any]:
    """Return an array of this dtype and shape; its numbers are finite."""
    array = arrays[name]
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(f"array {name!r} is {array.dtype}{list(array.shape)}, not {dtype}{list(shape)}")
    if not np.isfinite(array).all():
        raise ValueError(f"array {name!r} holds NaN or infinity")
    return array


def checked_index(arrays: Arrays, name: str, slots: int) -> NDArray[Any]:
    """Return an array of coordinates below `slots`, which must ascend."""
    index = checked(arrays, name, np.dtype(np.int32), arrays[name].size)
    if len(index) and (index[0] < 0 or index[-1] >= slots or (index[1:] <= index[:-1]).any()):
        raise ValueError(f"array {name!r} must ascend within 0 .. {slots - 1}")
    return index
