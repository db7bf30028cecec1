"""The names of hashed features in a model file: four arrays, and entries of the header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.features import Hashed, plan_from_settings

Arrays = Mapping[str, NDArray[Any]]

INDEX, HASH, END, TEXT = ARRAYS = ("names.index", "names.hash", "names.end", "names.text")
ENTRY_BYTES = 4 + 4 + 8  # of a name, besides its text


def header(space: Hashed, arrays: Arrays, colliding: bool) -> dict[str, Any]:
    """Return the entries of a space in the header of a file with these arrays."""
    table = space.names
    collisions = 0 if table is None else _collisions(arrays) if colliding else table.collisions
    return {
        "bits": space.bits,
        "names": table is not None,
        "name_bytes": space.name_bytes,
        "collisions": collisions,
        "full": table is not None and table.full,
        "plan": None if space.plan is None else space.plan.settings(),
    }


def dump(space: Hashed, features: NDArray[np.int32], colliding: bool) -> dict[str, NDArray[Any]]:
    """Return the names of some features, which ascend; `colliding`: with the hashes that share their slots."""
    if space.names is None:
        return {}
    arrays = space.names.to_arrays(np.ascontiguousarray(features), colliding)
    return dict(zip(ARRAYS, arrays, strict=True))


def _collisions(arrays: Arrays) -> int:
    slots = arrays[INDEX]
    return int(np.count_nonzero(slots[1:] == slots[:-1]))


def load(entry: Mapping[str, Any], arrays: Arrays, colliding: bool) -> Hashed:
    """Return the space of a file; ValueError, KeyError or TypeError if its header or its arrays are invalid."""
    if type(entry["bits"]) is not int:
        raise ValueError(f"its bits are {entry['bits']!r}")
    space = Hashed(entry["bits"], entry["names"], entry["name_bytes"])
    space.plan = None if entry["plan"] is None else plan_from_settings(entry["plan"])
    collisions, full = entry["collisions"], entry["full"]
    if type(collisions) is not int or not 0 <= collisions < 1 << 32 or type(full) is not bool:
        raise ValueError("its counts of names are invalid")
    if space.names is None:
        if any(name in arrays for name in ARRAYS) or collisions or full:
            raise ValueError("it has names, but its header says that it has none")
        return space
    for name, dtype in zip(ARRAYS, (np.int32, np.int32, np.int64, np.uint8), strict=True):
        if arrays[name].dtype != dtype or arrays[name].ndim != 1:
            raise ValueError(f"array {name!r} is {arrays[name].dtype}{list(arrays[name].shape)}")
    slots, features = arrays[INDEX], np.ascontiguousarray(arrays["index"])
    if _collisions(arrays) != (collisions if colliding else 0):
        raise ValueError("names collide that its header does not count")
    if features.dtype != np.int32 or not np.isin(slots, features).all():
        raise ValueError("there are names of features that it does not have")
    space.names.load(*(np.ascontiguousarray(arrays[name]) for name in ARRAYS))
    space.names.restore(collisions, full, features)
    return space


# -- pruned models


def costs(arrays: Arrays) -> NDArray[np.int64]:
    """Return how many bytes the name of each feature in `index` takes in a scoring-only file; 0 without one."""
    bytes_of = np.zeros(len(arrays["index"]), np.int64)
    if INDEX in arrays:
        lengths = np.diff(arrays[END], prepend=0)
        bytes_of[np.searchsorted(arrays["index"], arrays[INDEX])] = ENTRY_BYTES + lengths
    return bytes_of


def cut(arrays: Arrays, features: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
    """Return the arrays with only the names of some features."""
    if INDEX not in arrays:
        return {}
    kept = np.isin(arrays[INDEX], features)
    lengths = np.diff(arrays[END], prepend=0)
    ends = np.cumsum(lengths[kept]).astype(np.int64)
    return {
        INDEX: arrays[INDEX][kept],
        HASH: arrays[HASH][kept],
        END: ends,
        TEXT: arrays[TEXT][np.repeat(kept, lengths)],
    }
