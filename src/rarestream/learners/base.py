"""What all learners share: checked settings, a registry by name, and state as named arrays.

A learner's module holds its maths, its settings and nothing else; the step itself is native/learners/*.hpp.
"""

from __future__ import annotations

import dataclasses
import math
import mmap
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream import _native
from rarestream.blocks import LARGEST_INDEX, Block
from rarestream.metrics.rows import Rows

SPARE = 1  # slots that no row touches: features without weight are scored as the last one

TALLY = ("n_pos", "n_neg", "a", "b", "w0", "n0")  # the order of native/tally.hpp


class State(NamedTuple):
    """Everything a learner knows of its rows."""

    table: NDArray[Any]  # (slots, columns): a coordinate's numbers, zeros while no row has touched it
    tally: NDArray[np.float64]  # class counts, class mean scores, intercept (see TALLY), then the learner's own numbers
    largest: NDArray[np.float32] | None  # |x| of a coordinate, of models with scale="max"
    more: Mapping[str, NDArray[Any]]  # what is neither per coordinate nor a single number

    def grown(self, slots: int, stacked: bool = False) -> State:
        """The same state with room for more coordinates, all at zero."""
        return self._replace(table=padded(self.table, slots, stacked), largest=padded(self.largest, slots))

    @property
    def slots(self) -> int:
        return len(self.table)

    @property
    def features(self) -> int:
        """How many there is room for: no row touches the last slot."""
        return max(0, len(self.table) - SPARE)


class Weights(NamedTuple):
    """What is left of a state in a model made for scoring only."""

    weight: NDArray[Any]
    tally: NDArray[np.float64]
    largest: NDArray[np.float32] | None

    @property
    def slots(self) -> int:
        return len(self.weight)


HUGE = 1 << 30  # bytes of an array from which on its pages are small ones


def zeros(shape: tuple[int, ...], dtype: DTypeLike, stacked: bool = False, few: bool = False) -> NDArray[Any]:
    """Zeros that cost memory where they are written to; `stacked`: column by column; `few`: hardly anywhere.

    NumPy asks for pages of 2 MB, which are quicker to look up. In an array of gigabytes a few scattered numbers would
    fill as many of these as there are: there, pages are of 4 KB.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    order: Any = "F" if stacked else "C"
    if size < HUGE and not (few and size):
        return np.zeros(shape, kind, order)
    try:
        plain = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"no room for {size} bytes") from error
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a kernel built without huge pages
            plain.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(plain, kind).reshape(shape, order=order)


def placed(at: NDArray[Any], values: NDArray[Any], slots: int) -> NDArray[Any]:
    """Zeros but for the values at some places. Where these are few, only the pages they stand on cost memory."""
    weights = zeros((slots,), values.dtype, few=len(at) * mmap.PAGESIZE < slots * values.itemsize)
    weights[at] = values
    return weights


RUN = 1 << 12  # entries that are copied together, or left alone if all are zero


@overload
def padded(array: NDArray[Any], slots: int, stacked: bool = False) -> NDArray[Any]: ...
@overload
def padded(array: None, slots: int, stacked: bool = False) -> None: ...
def padded(array: NDArray[Any] | None, slots: int, stacked: bool = False) -> NDArray[Any] | None:
    """The array with zeros after its last entry; `stacked`: column by column in memory."""
    if array is None:
        return None
    wider = zeros((slots, *array.shape[1:]), array.dtype, stacked)
    copy_touched(array, wider)
    return wider


def copy_touched(array: NDArray[Any], into: NDArray[Any]) -> None:
    """Copies to zeros what is not zero, a run of entries at a time: pages that nobody has written to stay so."""
    if array.nbytes < HUGE // 16:
        into[: len(array)] = array
        return
    for start in range(0, len(array), RUN):
        run = array[start : start + RUN]
        if run.any() or np.signbit(run).any():  # -0.0 is not nothing
            into[start : start + len(run)] = run


def positive(default: Any, says: str, least: float = sys.float_info.min, most: float = sys.float_info.max) -> Any:
    """A setting that is a number > 0, in a range with which states stay finite. `says`: its line in the docs."""
    return _number(default, says, "> 0", least, most)


def non_negative(default: Any, says: str, most: float = sys.float_info.max) -> Any:
    """A setting that is a number >= 0, in a range with which states stay finite."""
    return _number(default, says, ">= 0", 0.0, most)


def _number(default: Any, says: str, rule: str, least: float, most: float) -> Any:
    return dataclasses.field(default=default, metadata={"says": says, "rule": rule, "range": (least, most)})


def whole(default: int, says: str, least: int = 0, most: int = 2**53) -> Any:
    """A setting that must be a whole number, not below `least` nor above `most`: kernels take it as a double."""
    rule = f"a whole number >= {least}" if most == 2**53 else f"a whole number between {least} and {most}"
    return dataclasses.field(default=default, metadata={"says": says, "rule": rule, "least": least, "most": most})


def one_of(default: str, says: str, *choices: str) -> Any:
    """A setting that is one of a few words."""
    rule = "one of " + ", ".join(repr(choice) for choice in choices)
    return dataclasses.field(default=default, metadata={"says": says, "rule": rule, "choices": choices})


def switch(default: bool, says: str) -> Any:
    """A setting that is True or False."""
    return dataclasses.field(default=default, metadata={"says": says, "rule": "True or False"})


# Of learners whose coordinate is a pair {z, n}: with rates and penalties in these ranges, all steps that the core lets
# pass (BOUND in native/learn.hpp) leave finite pairs, in float32 too.
RATES = {"least": 1e-12, "most": 1e6}
STRENGTHS = {"most": 1e6}


class Layout(NamedTuple):
    """What a state holds besides its TALLY and other arrays."""

    columns: Mapping[str, int]  # of a coordinate: their names, and how many numbers each is
    numbers: tuple[str, ...] = ()  # once: their names
    stacked: bool = False  # columns one after the other, for steps that pass over all coordinates

    def split(self, table: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """A table, given column by column, as one array to a name."""
        found, first = {}, 0
        for name, width in self.columns.items():
            part = table[first : first + width]
            found[name] = part[0] if width == 1 else np.ascontiguousarray(part.T)
            first += width
        return found


PAIR = Layout({"z": 1, "n": 1})  # z and n = sqrt(v)


class Kernel(ABC):
    """What a learner does with rows, on a state that it borrows for the length of a call."""

    @abstractmethod
    def learn(self, state: State, block: Block, scale: int, scores: NDArray[np.float64]) -> int:
        """Learns the rows; writes the score of each before it was. Returns how many were learned."""

    @abstractmethod
    def score(self, state: State, block: Block, scale: int, scores: NDArray[np.float64]) -> int:
        """Writes the rows' scores. Returns the first row whose score is beyond float64, or -1."""

    @abstractmethod
    def weights(self, state: State, start: int, stop: int) -> NDArray[Any]:
        """The weights of a run of coordinates, as scaled rows meet them."""


class NativeKernel(Kernel):
    """That of a struct in native/learners."""

    def __init__(self, name: str, settings: list[float]) -> None:
        self._core = _native.Kernel(name, [float(setting) for setting in settings])

    def learn(self, state: State, block: Block, scale: int, scores: NDArray[np.float64]) -> int:
        assert block.labels is not None
        return self._core.learn(
            state.table,
            state.tally,
            state.largest,
            list(state.more.values()),
            block.indptr,
            block.indices,
            block.values,
            block.width,
            block.sealed,
            block.labels,
            block.importances,
            scale,
            scores,
        )

    def score(self, state: State, block: Block, scale: int, scores: NDArray[np.float64]) -> int:
        more = list(state.more.values())
        return self._core.score(state.table, state.tally, state.largest, more, *block.rows, scale, scores)

    def weights(self, state: State, start: int, stop: int) -> NDArray[Any]:
        return self._core.weights(state.table[start:stop], state.tally, list(state.more.values()), start)


class Turn(NamedTuple):
    """What a learner that takes stock goes on as, and the rows whose scores are its own so far."""

    learner: Learner
    state: State
    rows: Rows


class About(NamedTuple):
    """What the table of learners in the documentation says of one."""

    objective: str
    cost: str  # of a row, here
    published: str  # of a row, in the authors' code
    sparse: str
    returns: str  # the last or an averaged iterate
    paper: str  # with the equation or algorithm


@dataclass(frozen=True, kw_only=True)
class Learner(ABC):
    """Base of all learners. Settings are checked when a learner is made, and never change."""

    about: ClassVar[About]
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
        if not least <= number <= most:
            inside = math.isfinite(number) and number > 0
            raise ValueError(f"{where} {f'between {least:g} and {most:g}' if inside else rule}, got {value!r}.")
        return number

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the registry and on the command line."""

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting by name: enough to make this learner again."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    def native(self) -> str:
        """The name of its struct in native/learners."""
        return type(self).__name__

    @property
    def layout(self) -> Layout:
        """What its state holds: the names of a model file's arrays."""
        return PAIR

    @abstractmethod
    def kernel_settings(self) -> list[float]:
        """The settings in the order of the fields of the native struct."""

    def kernel(self) -> Kernel:
        return NativeKernel(self.native, self.kernel_settings())

    def start(self, slots: int, dtype: DTypeLike, largest: bool = False) -> State:
        """The state before the first row; with the coordinates' largest values if asked for."""
        columns, numbers, stacked = self.layout
        table = zeros((slots, sum(columns.values())), dtype, stacked)
        tally = np.zeros(len(TALLY) + len(numbers))
        return State(table, tally, zeros((slots,), np.float32) if largest else None, self.more(slots, dtype))

    @property
    def widest(self) -> int:
        """How many features its state can have room for; those beyond have no weight."""
        return LARGEST_INDEX + 1

    @property
    def features(self) -> int:
        """How many features have a weight before any row shows them."""
        return 0

    def threshold(self, tally: NDArray[np.float64]) -> float:
        """Scores above it are called positive: zero log odds, or for AUC losses halfway between the class means."""
        return float(-tally[4] if self.loss_is_logistic else (tally[2] + tally[3]) / 2)

    # A learner may take stock after some rows, and go on as another.

    def pause(self, state: State, block: Block) -> int | None:
        """How many of these rows to learn before it takes stock; None: all, and there is no need to."""
        return None

    def turn(self, state: State, rest: Block | None, dtype: DTypeLike) -> Turn | None:
        """Takes stock before the rest of some rows; None for `rest`: for good. None: it never changes."""
        return None

    def leader(self, state: State) -> Learner | None:
        """Whom it scores as meanwhile; None: itself."""
        return None

    # Learners that keep more than a table and a few numbers say how it grows and what of it a file keeps.

    def more(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        """The state's other arrays before the first row."""
        return {}

    def grown(self, state: State, slots: int) -> State:
        """The same state with room for more coordinates."""
        return state.grown(slots, self.layout.stacked)

    def ready(self, state: State, block: Block) -> State:
        """The same state with all the room that learning these rows needs, coordinates aside."""
        return state

    def kept(self, state: State, d: int) -> Mapping[str, NDArray[Any]]:
        """The other arrays as a file keeps them: whatever room they have to spare, the same for the same rows."""
        return state.more

    def taken(self, state: State, kept: Mapping[str, NDArray[Any]]) -> State:
        """The state with the other arrays of a file; ValueError or KeyError if they break a rule."""
        for name, array in state.more.items():
            if kept[name].dtype != array.dtype or kept[name].shape != array.shape:
                raise ValueError(f"array {name!r} is {kept[name].dtype}{list(kept[name].shape)}")
            array[...] = kept[name]
        return state

    def check(self, state: State) -> None:
        """ValueError if the numbers of a file cannot be those of a state: a root is not negative."""
        columns = list(self.layout.columns)
        if "n" in columns and (state.table[:, columns.index("n")] < 0).any():
            raise ValueError("array 'n' has negative entries")


L = TypeVar("L", bound=type[Learner])

_registry: dict[str, tuple[type[Learner], dict[str, Any]]] = {}


def register(name: str, **preset: Any) -> Callable[[L], L]:
    """Gives a learner, with some settings fixed, its name; the registry brings it to CLI, adapters and tests."""

    def put(cls: L) -> L:
        _registry[name] = (cls, preset)
        return cls

    return put


def learner_names() -> list[str]:
    """The names `make_learner` and the command line know."""
    return sorted(_registry)


def learner_classes() -> list[type[Learner]]:
    """Every registered learner, by name."""
    return sorted({cls for cls, _ in _registry.values()}, key=lambda cls: cls.__name__)


def learner_class(name: str) -> tuple[type[Learner], dict[str, Any]]:
    """The class behind a name, and the settings the name fixes."""
    if name not in _registry:
        near = nearest(name, _registry)
        hint = f"did you mean {near!r}? There" if near else "there"
        raise ValueError(f"no learner is called {name!r}; {hint} are {', '.join(learner_names())}.")
    return _registry[name]


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The word that was probably meant, if any looks like it; dual_auc is dual-auc."""
    import difflib

    spelled = {one.replace("_", "-"): one for one in known}
    near = difflib.get_close_matches(str(word).lower().replace("_", "-"), spelled, 1)
    return spelled[near[0]] if near else None


def make_learner(name: str, **settings: Any) -> Learner:
    """The learner of that name; `make_learner(x.name, **x.settings) == x` for every learner x."""
    cls, preset = learner_class(name)
    known = {field.name for field in dataclasses.fields(cls)}
    for word in settings:
        if word not in known:
            near = nearest(word, known)
            hint = f"did you mean {near!r}? There" if near else "there"
            raise ValueError(f"{name}: no setting is called {word!r}; {hint} are {', '.join(sorted(known))}.")
    for word, value in preset.items():
        if settings.get(word, value) != value:
            raise ValueError(f"{name}: {word} is {value!r} by the learner's name, got {settings[word]!r}.")
    return cls(**{**settings, **preset})


def parse_setting(name: str, word: str, text: str) -> Any:
    """A setting typed on a command line, as the value its learner expects."""
    cls, _ = learner_class(name)
    if isinstance(getattr(cls, word, None), bool):
        spelled = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if text.lower() not in spelled:
            raise ValueError(f"{name}: {word} must be true or false, got {text!r}.")
        return spelled[text.lower()]
    return text
