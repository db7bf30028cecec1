"""The state of a learner: named NumPy arrays, so that saving and cloning need no code of the learner's own."""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

SPARE = 1  # slots that no row touches: a feature without a weight is scored as the last one

TALLY = ("n_pos", "n_neg", "a", "b", "w0", "n0")  # the order of native/tally.hpp


class State(NamedTuple):
    """Everything a learner knows of its rows."""

    table: NDArray[Any]  # (slots, columns): the numbers of each coordinate, zeros while no row has touched it
    tally: NDArray[np.float64]  # the numbers of TALLY, then those of the learner's own; `tally_of` gives them names
    largest: NDArray[np.float32] | None  # the largest |x| of each coordinate, in models with scale="max"
    extra: Mapping[str, NDArray[Any]]  # arrays that are neither per coordinate nor a single number

    def grown(self, slots: int, stacked: bool = False) -> State:
        """Return the same state with room for more coordinates, all at zero."""
        return self._replace(table=padded(self.table, slots, stacked), largest=padded(self.largest, slots))

    @property
    def slots(self) -> int:
        """The number of coordinates there is room for."""
        return len(self.table)

    @property
    def features(self) -> int:
        """The number of features there is room for: no row touches the last slot."""
        return max(0, len(self.table) - SPARE)


class Layout(NamedTuple):
    """What a state holds besides the numbers of TALLY and its extra arrays."""

    columns: Mapping[str, int]  # per coordinate: the name of each column, and how many numbers it is
    numbers: tuple[str, ...] = ()  # names of single numbers, which follow those of TALLY
    stacked: bool = False  # columns stand one after the other, for steps that pass over all coordinates
    merge: Mapping[str, str] | None = None  # how columns of groups that learned apart are merged: MERGE_RULES

    def split(self, table: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return a table, given column by column, as one array per name."""
        columns, first = {}, 0
        for name, width in self.columns.items():
            part = table[first : first + width]
            columns[name] = part[0] if width == 1 else np.ascontiguousarray(part.T)
            first += width
        return columns


MERGE_RULES = ("mean", "root", "sum")  # of numbers, of squares, and sums of increments: native/merge.hpp

PAIR = Layout({"z": 1, "n": 1})  # z and n = sqrt(v)
COUNTS = {"positives": 1, "negatives": 1}  # how many of each class have the feature
PAIR_AND_COUNTS = Layout({**PAIR.columns, **COUNTS})

# The same for learners whose rows can be learned in groups: groups/merging.py has the mathematics.
MERGED_PAIR = PAIR._replace(merge={"z": "mean", "n": "root"})
MERGED_PAIR_AND_COUNTS = PAIR_AND_COUNTS._replace(merge={**(MERGED_PAIR.merge or {}), **dict.fromkeys(COUNTS, "sum")})


def tally_of(numbers: NDArray[np.float64], own: tuple[str, ...] = ()) -> Any:
    """Return a view of the numbers of a state by name: `tally_of(state.tally)["n_pos"]`.

    Parameters
    ----------
    numbers : array of float64
        Those of TALLY, then the learner's own.
    own : tuple of str
        The names of the learner's own numbers: `learner.layout.numbers`.

    Returns
    -------
    numpy.void
        A structured scalar that shares memory with `numbers`, so that writing to it writes to the state.
    """
    return numbers[: len(TALLY) + len(own)].view(_tally_dtype(own))[0]


@cache
def _tally_dtype(own: tuple[str, ...]) -> np.dtype[Any]:
    return np.dtype([(name, np.float64) for name in (*TALLY, *own)])


HUGE = 1 << 28  # bytes; larger arrays get pages of 4 KB
LARGE_PAGE = 1 << 21  # bytes; NumPy asks for pages of this size for arrays of two or more


def zeros(
    shape: tuple[int, ...], dtype: DTypeLike, stacked: bool = False, few: bool = False, in_order: bool = False
) -> NDArray[Any]:
    """Return zeros that cost memory only where they are written to.

    `stacked`: column by column in memory. `few`: hardly any entry will be written to. `in_order`: entries will be
    written one after the other.

    Large arrays get pages of 2 MB, which are quicker to touch and to look up, and start with such a page. In one of
    gigabytes a few scattered numbers would fill as many of these as there are: there, pages are of 4 KB. Not the memory
    that NumPy may take, which the program has used before: that is cleared as a whole.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    order: Any = "F" if stacked else "C"
    large = (size < HUGE or in_order) and not few
    if size == 0 or (large and size < 2 * LARGE_PAGE):
        return np.zeros(shape, kind, order)
    room = size + LARGE_PAGE if large else size
    try:
        if hasattr(mmap, "MAP_PRIVATE"):
            memory = mmap.mmap(-1, room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:  # Windows
            memory = mmap.mmap(-1, room)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"no room for {size} bytes") from error
    advice = "MADV_HUGEPAGE" if large else "MADV_NOHUGEPAGE"
    if hasattr(mmap, advice):
        with suppress(OSError):  # a kernel built without huge pages
            memory.madvise(getattr(mmap, advice))
    found = np.frombuffer(memory, np.uint8)
    skip = -found.ctypes.data % LARGE_PAGE if large else 0
    return found[skip : skip + size].view(kind).reshape(shape, order=order)


def placed(at: NDArray[Any], values: NDArray[Any], slots: int) -> NDArray[Any]:
    """Return zeros except for the values at some places; where these are few, only their pages cost memory."""
    weights = zeros((slots,), values.dtype, few=len(at) * mmap.PAGESIZE < slots * values.itemsize)
    weights[at] = values
    return weights


CHUNK = 1 << 12  # entries that are copied together, or skipped if all are zero


@overload
def padded(array: NDArray[Any], slots: int, stacked: bool = False) -> NDArray[Any]: ...
@overload
def padded(array: None, slots: int, stacked: bool = False) -> None: ...
def padded(array: NDArray[Any] | None, slots: int, stacked: bool = False) -> NDArray[Any] | None:
    """Return the array with zeros after its last entry; `stacked`: column by column in memory."""
    if array is None:
        return None
    wider = zeros((slots, *array.shape[1:]), array.dtype, stacked)
    copy_touched(array, wider)
    return wider


def copy_touched(array: NDArray[Any], into: NDArray[Any]) -> None:
    """Copy what is not zero into an array of zeros, some entries at a time: untouched pages stay untouched."""
    if array.nbytes < HUGE // 16:
        into[: len(array)] = array
        return
    for start in range(0, len(array), CHUNK):
        chunk = array[start : start + CHUNK]
        if chunk.any() or np.signbit(chunk).any():  # -0.0 has a bit set
            into[start : start + len(chunk)] = chunk
