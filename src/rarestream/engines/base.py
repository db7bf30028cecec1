"""Engine: how a model runs. One interface for one learner, a race of many settings, and frozen weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.learners import Learner
from rarestream.learners.state import SPARE, TALLY, placed
from rarestream.metrics.rows import ScoredRows

SCALES = ("none", "unit", "max")  # how rows are scaled, in the order of _native.Scale
CHUNK = 1 << 20  # coordinates whose weights are computed at once

Arrays = Mapping[str, NDArray[Any]]


class Weights(NamedTuple):
    """What scoring needs of a model."""

    weight: NDArray[Any]  # of each feature; it multiplies the values of scaled rows
    tally: NDArray[np.float64]  # the numbers of TALLY
    largest: NDArray[np.float32] | None  # the largest |x| of each feature, in models with scale="max"

    @property
    def slots(self) -> int:
        """The number of coordinates there is room for."""
        return len(self.weight)


class Learned(NamedTuple):
    """What came of learning a block."""

    rows: int  # learned: all, or those before the first that cannot be
    engine: Engine  # the one to go on with
    history: ScoredRows | None = None  # if not None, the progressive AUC starts again from these rows and scores
    since: int = 0  # the rows of the block from here on are not part of `history`


class Engine(ABC):
    """Runs a model: learns rows, scores rows, and keeps the state that this needs.

    Parameters
    ----------
    learner : Learner
        The learner as the user named it.
    scale : str
        How rows are scaled: one of SCALES.
    """

    resumable = True  # whether it can learn on

    def __init__(self, learner: Learner, scale: str) -> None:
        self.learner = learner
        self.scale = scale
        self.scale_code = _native.Scale[scale]

    @property
    def leader(self) -> Learner:
        """The learner whose weights give the scores: during a race, that of the settings in the lead."""
        return self.learner

    @property
    @abstractmethod
    def tally(self) -> NDArray[np.float64]:
        """The numbers of TALLY, those of the leader."""

    @property
    @abstractmethod
    def largest(self) -> NDArray[np.float32] | None:
        """The largest |x| of each coordinate, with scale="max"."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """The number of coordinates there is room for."""

    @property
    @abstractmethod
    def weight_dtype(self) -> np.dtype[Any]:
        """The dtype of the weights that scores are made with."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The memory that the state takes, room for more features included."""

    @abstractmethod
    def learn(self, block: Block, scores: NDArray[np.float64]) -> Learned:
        """Learn the rows in order, and write the score that each had before it was learned."""

    @abstractmethod
    def score(self, block: Block, scores: NDArray[np.float64]) -> int:
        """Write the scores of the rows. Return the first row whose score is not finite, or -1."""

    @abstractmethod
    def weights(self, start: int, stop: int) -> NDArray[Any]:
        """Return the weights of the coordinates from `start` to `stop`."""

    @abstractmethod
    def reserve(self, n_features: int) -> None:
        """Make room for so many features, and some more; raises DataError where the machine has no memory for them."""

    @abstractmethod
    def dump(self, n_features: int) -> dict[str, NDArray[Any]]:
        """Return the state of the first features as the arrays of a file."""

    @abstractmethod
    def load(self, arrays: Arrays, n_features: int) -> None:
        """Take over the state of a file; ValueError or KeyError if its arrays break a rule."""

    def finish_race(self) -> Learned:
        """End a race before its time; anything else goes on as it is."""
        return Learned(0, self)

    def header(self) -> dict[str, Any]:
        """Return what the header of a file must say besides the learner, so that `load` understands the arrays."""
        return {}

    def weight_chunks(self, n_features: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the weights of the first features, some at a time, each time with the first feature's number."""
        for start in range(0, n_features, CHUNK):
            yield start, self.weights(start, min(start + CHUNK, n_features))


def more_slots(needed: int, slots: int, most: int) -> int:
    """Return how many slots to make room for: some to spare, so that slightly larger indices do not move the state."""
    return min(max(needed + needed // 4, slots + slots // 2), most)


def out_of_memory(feature: int, nbytes: int) -> DataError:
    """Return the error for a feature index whose state does not fit in memory."""
    return DataError(
        f"Model: feature index {feature} needs a state of {nbytes / 1e9:.1f} GB or more, which this machine does not "
        "have. Hash or renumber the features into a smaller range."
    )


# -- the arrays of a file, checked


def checked(arrays: Arrays, name: str, dtype: np.dtype[Any], *shape: int) -> NDArray[Any]:
    """Return an array of a file; ValueError if it is not what it has to be, KeyError if there is none."""
    array = arrays[name]
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(f"array {name!r} is {array.dtype}{list(array.shape)}, not {dtype}{list(shape)}")
    if not np.isfinite(array).all():
        raise ValueError(f"array {name!r} holds NaN or infinity")
    return array


def checked_index(arrays: Arrays, name: str, slots: int) -> NDArray[Any]:
    """Return an array of coordinates, which must ascend."""
    index = checked(arrays, name, np.dtype(np.int32), arrays[name].size)
    if len(index) and (index[0] < 0 or index[-1] >= slots or (index[1:] <= index[:-1]).any()):
        raise ValueError(f"array {name!r} must ascend within 0 .. {slots - 1}")
    return index


def checked_tally(arrays: Arrays, own: int = 0) -> NDArray[np.float64]:
    """Return the numbers of TALLY and so many others; counts and roots are not negative."""
    numbers = checked(arrays, "tally", np.dtype(np.float64), len(TALLY) + own)
    if any(numbers[TALLY.index(name)] < 0 for name in ("n_pos", "n_neg", "n0")):
        raise ValueError("its counts are negative")
    return numbers


def dump_largest(largest: NDArray[np.float32] | None) -> dict[str, NDArray[Any]]:
    """Return the largest values of features as arrays of a file."""
    if largest is None:
        return {}
    known = np.flatnonzero(largest)
    return {"largest_index": known.astype(np.int32), "largest": largest[known]}


def load_largest(arrays: Arrays, largest: NDArray[np.float32] | None, slots: int) -> None:
    """Write the largest values of features in a file to where they belong."""
    if largest is None:
        return
    known = checked_index(arrays, "largest_index", slots)
    values = checked(arrays, "largest", np.dtype(np.float32), len(known))
    if (values <= 0).any():
        raise ValueError("array 'largest' has entries <= 0")
    largest[known] = values


def load_weights(arrays: Arrays, dtype: str, n_features: int) -> NDArray[Any]:
    """Return the weights of a file made for scoring, with the slot that features without a weight are scored as."""
    index = checked_index(arrays, "index", n_features)
    return placed(index, checked(arrays, "weight", np.dtype(dtype), len(index)), n_features + SPARE)
