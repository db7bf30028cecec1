"""Feature spaces: what the indices of rows mean.

`Columns`: the index is the column's number. `Hashed`: a feature is a name in a namespace, such as the text of a cell in
a column, and its index is a slot:

    slot = murmur3_x86_32(name, seed = murmur3_x86_32(namespace, 0)) mod 2^bits        of their UTF-8 bytes.

Rows of spaces with the same number of bits can be learned by the same model. Each `Hashed` remembers the names it has
seen, and how the columns of its table become features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.features.display import display
from rarestream.features.plan import TablePlan, plan_from_settings, table_parser

MIN_BITS, MAX_BITS, DEFAULT_BITS = 1, 30, 22
NAME_BYTES = 64 << 20  # default memory for names
MAX_NAME_BYTES = 1 << 40


@dataclass(frozen=True, slots=True)
class Columns:
    """Features are the numbers of columns.

    Parameters
    ----------
    first : {0, 1}, default 0
        The number of the first column where columns are shown. Indices of rows always count from 0.
    """

    first: int = 0

    def __post_init__(self) -> None:
        if type(self.first) is not int or self.first not in (0, 1):
            raise ValueError(f"Columns: first must be 0 or 1, got {self.first!r}.")

    @property
    def fingerprint(self) -> str:
        """Text that is the same for all spaces of column numbers."""
        return "columns"

    def compatible(self, other: Space | None) -> bool:
        """Return whether a model of this space can use rows of another; None: column numbers."""
        return other is None or isinstance(other, Columns)

    def describe(self) -> str:
        """Return what the space is called in messages."""
        return "column numbers"

    def shown(self, indices: NDArray[np.int32]) -> list[str]:
        """Return what each feature is called."""
        return [str(index + self.first) for index in indices.tolist()]


class Hashed:
    """Features are names, each hashed to one of 2^bits slots.

    Two objects are equal only if they are the same: each remembers names of its own. `compatible` tells whether rows of
    one can be learned by a model of the other.

    Parameters
    ----------
    bits : int, 1 to 30, default 22
        Base-2 logarithm of the number of slots. Two names may share a slot; with more bits fewer do.
    names : bool, default True
        Whether to remember the first name of each slot.
    name_bytes : int, default 64 MiB
        Maximum memory for names. Beyond it only names that are already known are kept.

    Attributes
    ----------
    bits : int
        As given.
    names : NameTable or None
        The names seen so far; None without names.
    name_bytes : int
        As given.
    plan : TablePlan or None
        How the columns of the table become features; None until a table has decided it.
    """

    __slots__ = ("__weakref__", "_parsers", "_taken", "bits", "name_bytes", "names", "plan")

    def __init__(self, bits: int = DEFAULT_BITS, names: bool = True, name_bytes: int = NAME_BYTES) -> None:
        if type(bits) is bool or not isinstance(bits, int | np.integer) or not MIN_BITS <= bits <= MAX_BITS:
            raise ValueError(
                f"Hashed: bits must be a whole number between {MIN_BITS} and {MAX_BITS}, got {bits!r}. "
                f"{DEFAULT_BITS} bits have {1 << DEFAULT_BITS:,} slots."
            )
        if type(names) is not bool:
            raise ValueError(f"Hashed: names must be True or False, got {names!r}.")
        if type(name_bytes) is bool or not isinstance(name_bytes, int) or not 0 <= name_bytes <= MAX_NAME_BYTES:
            raise ValueError(f"Hashed: name_bytes must be a number of bytes from 0 to 2^40, got {name_bytes!r}.")
        self.bits = int(bits)
        self.name_bytes = name_bytes
        self.names = _native.NameTable(self.bits, name_bytes) if names else None
        self.plan: TablePlan | None = None
        self._parsers: tuple[TablePlan, dict[tuple[bool, str | None], _native.TableParser]] | None = None
        self._taken: WeakKeyDictionary[Hashed, int] | None = None  # how many names of other spaces are here already

    @property
    def slots(self) -> int:
        """Number of slots."""
        return 1 << self.bits

    @property
    def fingerprint(self) -> str:
        """Text that is the same for spaces that give the same rows the same slots."""
        import hashlib
        import json

        plan = None if self.plan is None else self.plan.settings()
        what = {"space": "hashed", "hash": "murmur3_x86_32", "bits": self.bits, "plan": plan}
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    def slot(self, namespace: str, name: str) -> int:
        """Return the slot of a feature.

        Parameters
        ----------
        namespace : str
            Where the name comes from, such as a column.
        name : str
            The name, such as the text of a cell.

        Returns
        -------
        int
            Its index in rows, from 0.
        """
        return _native.feature_hash(namespace.encode(), name.encode()) & (self.slots - 1)

    def compatible(self, other: Space | None) -> bool:
        """Return whether a model of this space can use rows of another; None: column numbers."""
        return isinstance(other, Hashed) and other.bits == self.bits

    def describe(self) -> str:
        """Return what the space is called in messages."""
        return f"hashed features with {self.bits} bits"

    def shown(self, indices: NDArray[np.int32], other: Hashed | None = None) -> list[str]:
        """Return what each feature is called: its name here or in another space, or its slot if both do not know it."""
        slots = np.ascontiguousarray(indices, np.int32)
        found: list[str | None] = [None] * len(slots)
        for space in (other, self):
            if space is not None and space.names is not None:
                found = [name or before for name, before in zip(space.names.names(slots), found, strict=True)]
        return [
            f"slot {slot}" if name is None else display(name) for slot, name in zip(slots.tolist(), found, strict=True)
        ]

    def all_shown(self) -> list[str]:
        """Return what all features are called, as `shown` does, but much faster than that for all of them."""
        found = [f"slot {slot}" for slot in range(self.slots)]
        if self.names is not None:
            known = self.names.to_arrays(np.arange(self.slots, dtype=np.int32), False)[0]
            for slot, name in zip(known.tolist(), self.shown(known), strict=True):
                found[slot] = name
        return found

    def parser(self, names: bool = True, label: str | None = None) -> _native.TableParser:
        """Return the native parser that follows the plan. It is kept: making one takes longer than a row.

        Parameters
        ----------
        names : bool
            Whether the parser collects names.
        label : str, optional
            The column of the label. By default that of the plan.
        """
        if self.plan is None:
            raise ValueError("Hashed: there is no plan yet.")
        if self._parsers is None or self._parsers[0] is not self.plan:
            self._parsers = self.plan, {}
        made = self._parsers[1]
        found = made.get((names, label))
        if found is None:
            plan = self.plan if label is None else replace(self.plan, label=label)
            found = made[names, label] = table_parser(plan, self.bits, names and self.names is not None)[0]
        return found

    def take_names(self, other: Hashed) -> None:
        """Add the names that a compatible space has seen since this was last called, and its plan if there is none."""
        if self.plan is None:
            self.plan = other.plan
        if other is self or self.names is None or other.names is None:
            return
        if self._taken is None:
            self._taken = WeakKeyDictionary()
        self._taken[other] = self.names.merge(other.names, self._taken.get(other, 0))

    def fresh(self) -> Hashed:
        """Return a space with the same settings and plan, which has seen no names."""
        space = Hashed(self.bits, self.names is not None, self.name_bytes)
        space.plan = self.plan
        return space

    def settings(self) -> dict[str, Any]:
        """Return the space without its names, ready for JSON."""
        return {
            "bits": self.bits,
            "names": self.names is not None,
            "name_bytes": self.name_bytes,
            "plan": None if self.plan is None else self.plan.settings(),
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Hashed:
        """Return the space of `settings()`, which knows no names yet.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the settings are invalid, damaged or of a newer version.
        """
        space = cls(settings["bits"], settings["names"], settings["name_bytes"])
        space.plan = None if settings["plan"] is None else plan_from_settings(settings["plan"])
        if space.fingerprint != settings["fingerprint"]:
            raise ValueError("the fingerprint of the space is another: it is damaged or of a newer version")
        return space

    def __repr__(self) -> str:
        names = ", names=False" if self.names is None else ""
        size = f", name_bytes={self.name_bytes}" if self.name_bytes != NAME_BYTES else ""
        return f"Hashed(bits={self.bits}{names}{size})"

    def __copy__(self) -> Hashed:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Hashed:
        space = self.fresh()
        space.names = None if self.names is None else self.names.copy()
        return space

    def __reduce__(self) -> tuple[Any, ...]:
        plan = None if self.plan is None else self.plan.settings()
        names = None
        if self.names is not None:
            all_slots = np.arange(self.slots, dtype=np.int32)
            counts = self.names.collisions, self.names.full, self.names.lost_slots()
            names = self.names.to_arrays(all_slots, True), counts
        return _restored, (self.bits, self.name_bytes, plan, names)


def _restored(bits: int, name_bytes: int, plan: Any, names: Any) -> Hashed:
    space = Hashed(bits, names is not None, name_bytes)
    space.plan = None if plan is None else plan_from_settings(plan)
    if space.names is not None:
        entries, (collisions, full, lost) = names
        space.names.load(*entries)
        space.names.restore(collisions, full, lost)
    return space


Space = Columns | Hashed
COLUMNS = Columns()


def of_block(space: Hashed | None) -> Space:
    """Return the space of a Block whose `space` this is: None means column numbers."""
    return COLUMNS if space is None else space


def described(space: Space | None) -> str:
    """Return what a space is called in messages; None: column numbers."""
    return (COLUMNS if space is None else space).describe()
