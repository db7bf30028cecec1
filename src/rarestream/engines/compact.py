"""Compact slots: the coordinates of a race are numbered in the order in which features first come.

A coordinate of a race holds two numbers for every setting. Under their own numbers the features of the first rows would
touch memory all over a table as long as the largest index; so only features that were seen have a slot, one after the
other. Lanes sum a row in the order of its entries, which does not change, so the slots do not change any score.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import Block, seal
from rarestream.engines.base import more_slots
from rarestream.learners.state import padded, zeros

UNSEEN = 1  # slot 0 is that of all features that have none: no row touches it


class CompactSlots:
    """Which slot a feature has.

    Parameters
    ----------
    features : int
        The number of features to make room for.
    """

    def __init__(self, features: int = 0) -> None:
        self.used = 0  # number of features that have a slot
        self._slot_of = zeros((features,), np.int32, few=True)
        self._features = np.zeros(UNSEEN, np.int32)  # of each slot

    @property
    def room(self) -> int:
        """The number of features, seen or not, there is room for."""
        return len(self._slot_of)

    @property
    def features(self) -> NDArray[np.int32]:
        """The feature of each slot that is used, from slot 1 on."""
        return self._features[UNSEEN : UNSEEN + self.used]

    @property
    def nbytes(self) -> int:
        return self._slot_of.nbytes + self._features.nbytes

    def reserve(self, features: int, most: int) -> None:
        """Make room for so many features, and some more, but never for more than `most`."""
        if features > self.room:
            self._slot_of = padded(self._slot_of, more_slots(features, self.room, most))

    def added(self, block: Block) -> Block:
        """Return a block with slots in place of features; new features get one. There must be room for them."""
        self._make_room(block)
        slots, self.used = self._slots(block, add=True)
        return replace(block, indices=seal(slots), width=UNSEEN + self.used)

    def prepared(
        self, block: Block, slots: int, having: NDArray[np.float32] | None, counts: NDArray[np.float64]
    ) -> _native.PreparedRows:
        """Return rows to prepare for lanes of so many slots: new features will get one.

        `having`: how many positives and negatives have the feature of each slot, if a lane needs it; `counts`: of all.
        """
        self._make_room(block)
        return _native.PreparedRows(block, self._slot_of, self._features, slots, self.used, having, *counts.tolist())

    def _make_room(self, block: Block) -> None:
        needed = UNSEEN + self.used + min(len(block.indices), self.room - self.used)
        if needed > len(self._features):
            self._features = padded(self._features, max(needed, 2 * len(self._features)))

    def known(self, block: Block) -> Block:
        """Return a block with slots in place of features; those that have none have slot 0."""
        slots, _ = self._slots(block, add=False)
        return replace(block, indices=seal(slots), width=UNSEEN + self.used)

    def _slots(self, block: Block, add: bool) -> tuple[NDArray[np.int32], int]:
        return _native.compact_slots(block.indices, block.width, self._slot_of, self._features, self.used, add)

    def new_features_in(self, block: Block) -> NDArray[np.int64]:
        """Return the places in `indices` where features come that have no slot, each for the first time."""
        unseen = np.flatnonzero(self._slots(block, add=False)[0] == 0)
        _, first = np.unique(block.indices[unseen], return_index=True)
        return np.sort(unseen[first])

    def slots_of(self, start: int, stop: int) -> NDArray[np.int32]:
        """Return the slots of the features from `start` to `stop`; 0 where there is none."""
        found = np.zeros(stop - start, np.int32)
        within = self._slot_of[start:stop]
        found[: len(within)] = within
        return found

    def slots_at(self, features: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the slots of some features; 0 where there is none."""
        slots = np.zeros(len(features), np.int32)
        known = features < self.room
        slots[known] = self._slot_of[features[known]]
        return slots

    def add(self, features: NDArray[np.int32]) -> None:
        """Give slots to those of some features, all below `room`, that have none yet, in this order."""
        new = features[self._slot_of[features] == 0]
        first = UNSEEN + self.used
        if first + len(new) > len(self._features):
            self._features = padded(self._features, max(first + len(new), 2 * len(self._features)))
        self._features[first : first + len(new)] = new
        self._slot_of[new] = np.arange(first, first + len(new), dtype=np.int32)
        self.used += len(new)

    def features_of(self, slots: slice) -> NDArray[np.int32]:
        """Return the features of some slots that are used."""
        return self._features[slots]

    def load(self, features: NDArray[np.int32]) -> None:
        """Give slots to some features, which are below `room`; there are none yet."""
        self._features = np.concatenate([np.zeros(UNSEEN, np.int32), features])
        self.used = len(features)
        self._slot_of[features] = np.arange(UNSEEN, UNSEEN + self.used, dtype=np.int32)
