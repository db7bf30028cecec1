"""Learner: what all learners share.

The module of a learner has its maths and its settings; the step itself is in native/learners/*.hpp.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream import _native
from rarestream._native import LaneSetting, Scale
from rarestream.blocks import Block
from rarestream.learners.state import PAIR, TALLY, Layout, State, tally_of, zeros


class Kernel:
    """The compiled loop of a learner: a struct of native/learners with its settings. It borrows a state per call."""

    def __init__(self, name: str, settings: list[float]) -> None:
        self.core = _native.Kernel(name, [float(setting) for setting in settings])

    def learn(
        self, state: State, block: Block, scale: Scale | int, scores: NDArray[np.float64], repeats: float = 1.0
    ) -> int:
        """Learn the rows and write the score that each had before. Return how many were learned.

        `repeats`: the steps of z and v are those of so many rows, while each counts once, for groups that learn apart.
        Only learners that have rules to merge their state take notice of it.
        """
        assert block.labels is not None
        extra = list(state.extra.values())
        return self.core.learn(state.table, state.tally, state.largest, extra, block, scale, scores, repeats)

    def score(self, state: State, block: Block, scale: Scale | int, scores: NDArray[np.float64]) -> int:
        """Write the scores of the rows. Return the first row whose score is not finite, or -1."""
        extra = list(state.extra.values())
        return self.core.score(state.table, state.tally, state.largest, extra, block, scale, scores)

    def weights(self, state: State, start: int, stop: int) -> NDArray[Any]:
        """Return the weights of the coordinates from `start` to `stop`, which multiply the values of scaled rows."""
        return self.core.weights(state.table[start:stop], state.tally, list(state.extra.values()), start)


class About(NamedTuple):
    """A learner's entry in the table of learners of the documentation."""

    title: str  # in tables and figures
    objective: str
    cost: str  # per row, here
    published: str  # cost per row in the authors' code
    sparse: str
    returns: str  # the last or an averaged iterate
    paper: str  # with the equation or algorithm


class Tuning(NamedTuple):
    """How a learner is tuned where all are compared: the setting that controls its step length, and its range."""

    setting: str
    low: float | None = None  # None: a tenth of the default
    high: float | None = None  # None: ten times the default


class RacePlan(NamedTuple):
    """A race of settings that a learner starts with: see `Learner.race_plan`."""

    candidates: Sequence[Learner]  # the default first
    rows: int  # after which the best of them continue
    keep: int = 1  # how many these are
    cut: int = 1 << 14  # rows after which the best `kept` continue
    cut_wide: int = 1 << 11  # the same where there are so many features that all settings take much memory
    kept: int = 8
    half_lives: Sequence[float] = ()  # of copies of the best settings, which join at the cut; the shortest first
    early: int = 1 << 16  # rows after which the race may end earlier, if it is decided by then

    def kept_after(self, rows: int, decided: bool = False, wide: bool = False, close: bool = False) -> int:
        """Return how many settings continue after so many rows.

        `decided`: few of them may still be the best one; `wide`: there are so many features that all settings take much
        memory; `close`: no setting is likely to be much better than the leading one.
        """
        ends = (decided and rows >= self.early) or (wide and close and self.cut_wide <= rows < self.cut)
        if rows >= self.rows or (ends and self.keep == 1):
            return self.keep
        return max(self.kept, self.keep) if rows >= (self.cut_wide if wide else self.cut) else len(self.candidates)


@dataclass(frozen=True, kw_only=True)
class Learner(ABC):
    """Base class of all learners: an algorithm and its settings, without any data.

    A learner is a frozen dataclass: settings are checked when it is made, and never change. What a model has learned
    is in its state.

    Raises
    ------
    ValueError
        If a setting is out of its range.
    """

    registered_name: ClassVar[str]  # set by `register`; a class with several names overrides `name`
    about: ClassVar[About]
    tuning: ClassVar[Tuning | None] = Tuning("learning_rate")  # None: it chooses its settings itself
    loss_is_logistic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, self._checked(field, getattr(self, field.name)))

    def _checked(self, field: dataclasses.Field[Any], value: Any) -> Any:
        rule = field.metadata["rule"]
        where = f"{type(self).__name__}: {field.name} must be"
        if isinstance(field.default, bool):
            if not isinstance(value, bool | np.bool_):
                raise ValueError(f"{where} {rule}, got {value!r}.")
            return bool(value)
        if "choices" in field.metadata:
            if value not in field.metadata["choices"]:
                raise ValueError(f"{where} {rule}, got {value!r}.")
            return value
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{where} a number, got {value!r}.") from None
        if "least" in field.metadata:
            if not number.is_integer() or not field.metadata["least"] <= number <= field.metadata["most"]:
                raise ValueError(f"{where} {rule}, got {value!r}.")
            return int(number)
        least, most = field.metadata["range"]
        or_zero = field.metadata["or_zero"]
        if not least <= number <= most and not (or_zero and number == 0):
            inside = math.isfinite(number) and number > 0 and not or_zero
            raise ValueError(f"{where} {f'between {least:g} and {most:g}' if inside else rule}, got {value!r}.")
        return number

    @property
    def name(self) -> str:
        """Name in the registry and on the command line."""
        return self.registered_name

    @property
    def title(self) -> str:
        """Name in tables and figures."""
        return self.about.title

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by name: `make_learner(learner.name, **learner.settings)` makes an equal learner."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    def native(self) -> str:
        """The name of its struct in native/learners."""
        return type(self).__name__

    @property
    def layout(self) -> Layout:
        """Names and widths of the columns of its state, which are also the arrays of a model file."""
        return PAIR

    @abstractmethod
    def kernel_settings(self) -> list[float]:
        """The settings in the order of the fields of the native struct."""

    def kernel(self) -> Kernel:
        """Return the compiled loop with these settings."""
        return Kernel(self.native, self.kernel_settings())

    def start(self, slots: int, dtype: DTypeLike, largest: bool = False) -> State:
        """Return the state before the first row; `largest`: with the largest value of each coordinate."""
        layout = self.layout
        table = zeros((slots, sum(layout.columns.values())), dtype, layout.stacked)
        tally = np.zeros(len(TALLY) + len(layout.numbers))
        return State(table, tally, zeros((slots,), np.float32) if largest else None, self.extra_arrays(slots, dtype))

    @property
    def initial_features(self) -> int:
        """How many features have a weight before any row shows them."""
        return 0

    def rank_factors(self, state: State, start: int, stop: int) -> NDArray[np.float64] | None:
        """Return what |w| is multiplied by to decide which weights a smaller model keeps; None: by nothing."""
        return None

    def lane(self) -> LaneSetting | None:
        """Return its settings for learning beside others in one pass, or None if these settings cannot share a pass."""
        return None

    def multiplications(self, rows: int, nonzeros: int, features: int) -> float:
        """Return about how many multiplications a pass takes; 0 if O(k) per row."""
        return 0.0

    def expecting(self, rows: int, features: int) -> dict[str, Any]:
        """Return the settings that its paper assumes to be known of the rows to come."""
        return {}

    def race_plan(self) -> RacePlan | None:
        """Return the race that a model with this learner starts with, or None if the learner itself learns."""
        return None

    def tally(self, state: State) -> Any:
        """Return the numbers of a state of this learner by name, those of its own included: `tally(state)["n_pos"]`."""
        return tally_of(state.tally, self.layout.numbers)

    def threshold(self, tally: Any) -> float:
        """Return the score above which a row is called positive.

        It stands for zero log odds; for AUC losses it is halfway between the class means. `tally` are the named numbers
        of a state: see `tally_of`.
        """
        return float(-tally["w0"] if self.loss_is_logistic else (tally["a"] + tally["b"]) / 2)

    # Learners whose state has extra arrays define how these grow and what of them a file stores.

    def extra_arrays(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        """Return the extra arrays of a state before the first row."""
        return {}

    def grown(self, state: State, slots: int) -> State:
        """Return the same state with room for more coordinates."""
        return state.grown(slots, self.layout.stacked)

    def reserve(self, state: State, block: Block) -> State:
        """Return the same state with all the room in its extra arrays that learning these rows needs."""
        return state

    def dump_extra(self, state: State, n_features: int) -> Mapping[str, NDArray[Any]]:
        """Return the extra arrays as a file keeps them: the same for the same rows, whatever room was reserved."""
        return state.extra

    def load_extra(self, state: State, saved: Mapping[str, NDArray[Any]]) -> State:
        """Return the state with the extra arrays of a file; ValueError or KeyError if they break a rule."""
        for name, array in state.extra.items():
            if saved[name].dtype != array.dtype or saved[name].shape != array.shape:
                raise ValueError(f"array {name!r} is {saved[name].dtype}{list(saved[name].shape)}")
            array[...] = saved[name]
        return state

    def check(self, state: State) -> None:  # noqa: B027  # most learners have none
        """Raise ValueError if the numbers of a file break a rule of the learner's own."""
