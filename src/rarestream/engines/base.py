"""Engine: how a model runs. One interface for one learner, a race of many settings, and frozen weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import LARGEST_INDEX, Block
from rarestream.engines.arrays import Arrays
from rarestream.engines.merging import Change, no_rules
from rarestream.errors import DataError, advice
from rarestream.learners import Learner
from rarestream.metrics.rows import ScoredRows

SCALES = ("none", "unit", "max")  # how rows are scaled, in the order of _native.Scale
DTYPES = ("float32", "float64")  # of a state
MAX_FEATURES = LARGEST_INDEX + 1
CHUNK = 1 << 20  # coordinates whose weights are computed at once
FEW_OF = 1000  # of so many weights or more, one alone is computed faster than all


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
    """The result of learning a block."""

    rows: int  # number of rows learned: all, or those before the first that cannot be
    engine: Engine  # the engine to continue with
    history: ScoredRows | None = None  # if not None, the progressive AUC restarts from these rows and scores
    since: int = 0  # the rows of the block from here on are not part of `history`
    warning: str | None = None  # that settings dropped out


class Engine(ABC):
    """Runs a model: learns rows, scores rows, and owns the state.

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
        self.candidates = [learner]  # the settings that learn: several during a race
        self.scale = scale
        self.scale_code = _native.Scale[scale]

    @property
    def leader(self) -> Learner:
        """The learner whose weights give the scores: during a race, that of the leading settings."""
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
    def reserve(self, n_features: int, exactly: bool = False) -> None:
        """Make room for so many features, and some more; DataError if they do not fit in memory.

        `exactly`: for no more than these, of which any may come first: slots of hashed features.
        """

    @abstractmethod
    def dump(self, n_features: int) -> dict[str, NDArray[Any]]:
        """Return the state of the first features as the arrays of a file."""

    @abstractmethod
    def load(self, arrays: Arrays, n_features: int) -> None:
        """Load the state of a file; ValueError or KeyError if its arrays are invalid."""

    def one_row(
        self,
        gate: _native.Gate,
        progress: _native.StreamingSketch,
        calibration: NDArray[np.float64] | None,
        n_features: int,
    ) -> _native.OneRow | None:
        """Return what learns and scores one row in one call of the core; None if this engine has no such thing.

        It is good until the state gets more room, or another one. Indices must be below `n_features`.
        """
        return None

    def finish_race(self) -> Learned:
        """End a race now; other engines do not change."""
        return Learned(0, self)

    def in_groups(self) -> GroupEngine:
        """Return this engine, if groups of rows can learn apart and be merged; ValueError if they cannot."""
        raise ValueError(no_rules(self.learner))

    def with_half_life(self, half_life: float) -> Engine:
        """Return an engine that continues from this state, which it takes over, with another half-life.

        ValueError if this engine does not run one learner that can have a half-life.
        """
        raise ValueError(
            f"Model.with_half_life: {self.learner.name} still compares settings, some of which may have half-lives of "
            "their own. Call finish_race() first: the model then continues with the leading setting."
        )

    def header(self) -> dict[str, Any]:
        """Return the entries of a file's header that `load` needs besides the learner."""
        return {}

    def weight_chunks(self, n_features: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the weights of the first features, some at a time, each time with the first feature's number."""
        for start, stop in self.chunks(n_features):
            yield start, self.weights(start, stop)

    @staticmethod
    def chunks(n_features: int) -> Iterator[tuple[int, int]]:
        """Yield where parts of the first features start and stop."""
        for start in range(0, n_features, CHUNK):
            yield start, min(start + CHUNK, n_features)

    def rank_keys(self, start: int, stop: int) -> NDArray[Any]:
        """Return the numbers whose size decides which of these weights a smaller model keeps."""
        return self.weights(start, stop)

    def weights_at(self, features: NDArray[np.int32], n_features: int) -> NDArray[np.float64]:
        """Return the weights of some features; zeros for those from `n_features` on."""
        weights = np.zeros(len(features))
        known = np.flatnonzero(features < n_features)
        if len(known) * FEW_OF < n_features:
            for at in known.tolist():
                j = int(features[at])
                weights[at] = self.weights(j, j + 1)[0]
            return weights
        for start, part in self.weight_chunks(n_features):
            here = known[(features[known] >= start) & (features[known] < start + len(part))]
            weights[here] = part[features[here] - start]
        return weights


class GroupEngine(Engine):
    """An engine whose rows can be learned in groups: what engines/merging.py needs to know of it."""

    def in_groups(self) -> GroupEngine:
        self.merge_rules()
        return self

    @abstractmethod
    def merge_rules(self) -> NDArray[np.int8]:
        """Return how each column of `numbers_at` is merged; ValueError if a learner has no rules."""

    @abstractmethod
    def learn_in_group(self, block: Block, repeats: float) -> int:
        """Learn the rows of a group as if each came `repeats` times, but count it once; return how many were."""

    @abstractmethod
    def numbers_at(self, features: NDArray[np.int32]) -> NDArray[Any]:
        """Return the numbers of some features, zeros for those that are not known: z, n, then counts."""

    @property
    @abstractmethod
    def tallies(self) -> NDArray[np.float64]:
        """The numbers of TALLY of each setting, one column each."""

    @abstractmethod
    def largest_at(self, features: NDArray[np.int32]) -> NDArray[np.float32] | None:
        """Return the largest |x| of some features, with scale="max"."""

    @abstractmethod
    def adopt(self, change: Change) -> str | None:
        """Take over what all groups have made of the state; return a warning if rows are too large for settings."""

    def settings_left(self) -> NDArray[np.int32]:
        """Return the settings that could learn all rows of the group."""
        return np.zeros(1, np.int32)

    def compared(self, block: Block, rows: int) -> tuple[Engine, NDArray[np.float64]]:
        """Return the engine to continue with after a round of groups, and the scores of rows that none has learned.

        A race compares its settings on these rows and continues with fewer; `rows` is how many a group has learned.
        """
        scores = np.empty(len(block))
        self.score(block, scores)
        return self, scores


def check_arguments(dtype: Any, scale: Any, n_features: Any, where: str = "") -> None:
    """Raise ValueError, whose message starts with `where`, unless an engine can be made with these."""
    if dtype not in DTYPES:
        raise ValueError(f"{where}dtype must be one of {', '.join(DTYPES)}, got {dtype!r}.")
    if scale not in SCALES:
        raise ValueError(f"{where}scale must be one of {', '.join(SCALES)}, got {scale!r}.")
    if type(n_features) is bool or not isinstance(n_features, int | np.integer) or not 0 <= n_features <= MAX_FEATURES:
        raise ValueError(f"{where}n_features must be a whole number between 0 and {MAX_FEATURES}, got {n_features!r}.")


def more_slots(needed: int, slots: int, most: int) -> int:
    """Return how many slots to make room for: some to spare, so that slightly larger indices do not move the state."""
    return min(max(needed + needed // 4, slots + slots // 2), most)


def overflow(learner: Learner, scale: str, dtype: str, learned: str = "") -> str:
    """Return the reason why a row cannot be learned, and what to do about it.

    `learned`, if given, is a sentence on the rows before it, and stands between the two.
    """
    learned = f" {learned}" if learned else ""
    if scale == "none":
        used, other = advice("scale='none'", "--scale none"), advice("scale='unit' or 'max'", "--scale unit or max")
        return f"has values so large that its step overflows {dtype} with {used}.{learned} Use {other}."
    return (
        f"cannot be learned: the weights of {learner!r} have grown beyond {dtype}, its steps are too long for these "
        f"rows.{learned} Use a smaller learning rate or more regularisation."
    )


def out_of_memory(feature: int, nbytes: int, where: str = "Model") -> DataError:
    """Return the error for a feature index whose state does not fit in memory."""
    return DataError(
        f"{where}: feature index {feature} needs a state of {nbytes / 1e9:.1f} GB or more, which this machine does not "
        "have. Hash or renumber the features into a smaller range."
    )
