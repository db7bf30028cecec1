"""What all learners share: checked settings, a registry by name, and state as named arrays.

A learner's module holds its maths, its settings and nothing else; the step itself is native/learners/*.hpp.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar, get_type_hints, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream import _native

TALLY = ("n_pos", "n_neg", "a", "b", "w0", "n0")  # the order of native/tally.hpp


class State(NamedTuple):
    """Everything a learner knows of its rows. Every field but `tally` has one entry a coordinate."""

    pairs: NDArray[Any]  # (slots, 2): z and n = sqrt(v) of a coordinate, side by side
    tally: NDArray[np.float64]  # class counts, class mean scores, intercept: see TALLY
    largest: NDArray[np.float32] | None  # |x| of a coordinate, of models with scale="max"

    def grown(self, slots: int) -> State:
        """The same state with room for more coordinates, all at zero."""
        return State(_padded(self.pairs, slots), self.tally, _padded(self.largest, slots))

    @property
    def slots(self) -> int:
        return len(self.pairs)


class Weights(NamedTuple):
    """What is left of a state in a model made for scoring only."""

    weight: NDArray[Any]
    tally: NDArray[np.float64]
    largest: NDArray[np.float32] | None

    def grown(self, slots: int) -> Weights:
        return Weights(_padded(self.weight, slots), self.tally, _padded(self.largest, slots))

    @property
    def slots(self) -> int:
        return len(self.weight)


@overload
def _padded(array: NDArray[Any], slots: int) -> NDArray[Any]: ...
@overload
def _padded(array: None, slots: int) -> None: ...
def _padded(array: NDArray[Any] | None, slots: int) -> NDArray[Any] | None:
    if array is None:
        return None
    wider = np.zeros((slots, *array.shape[1:]), array.dtype)  # untouched pages cost no memory
    wider[: len(array)] = array
    return wider


def positive(default: Any) -> Any:
    """A setting that must be a finite number > 0."""
    return dataclasses.field(default=default, metadata={"rule": "> 0", "holds": lambda v: v > 0})


def non_negative(default: Any) -> Any:
    """A setting that must be a finite number >= 0."""
    return dataclasses.field(default=default, metadata={"rule": ">= 0", "holds": lambda v: v >= 0})


def one_of(default: str, *choices: str) -> Any:
    """A setting that is one of a few words."""
    rule = "one of " + ", ".join(repr(choice) for choice in choices)
    return dataclasses.field(default=default, metadata={"rule": rule, "choices": choices})


@dataclass(frozen=True, kw_only=True)
class Learner(ABC):
    """Base of all learners. Settings are checked when a learner is made, and never change."""

    native: ClassVar[str]  # the name of its struct in native/learners
    loss_is_logistic: ClassVar[bool]

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, self._checked(field, getattr(self, field.name)))

    def _checked(self, field: dataclasses.Field[Any], value: Any) -> Any:
        rule = field.metadata.get("rule")
        where = f"{type(self).__name__}: {field.name} must be"
        if isinstance(field.default, bool):
            if not isinstance(value, bool | np.bool_):
                raise ValueError(f"{where} True or False, got {value!r}.")
            return bool(value)
        if "choices" in field.metadata:
            if value not in field.metadata["choices"]:
                raise ValueError(f"{where} {rule}, got {value!r}.")
            return value
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{where} a number, got {value!r}.") from None
        if not math.isfinite(number) or (rule and not field.metadata["holds"](number)):
            raise ValueError(f"{where} {rule or 'finite'}, got {value!r}.")
        return number

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the registry and on the command line."""

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting by name: enough to make this learner again."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @abstractmethod
    def kernel_settings(self) -> list[float]:
        """The settings in the order of the fields of the native struct."""

    def kernel(self) -> _native.Kernel:
        return _native.Kernel(self.native, self.kernel_settings())

    def start(self, slots: int, dtype: DTypeLike, largest: bool = False) -> State:
        """The state before the first row; with the coordinates' largest values if asked for."""
        pairs = np.zeros((slots, 2), dtype)
        return State(pairs, np.zeros(len(TALLY)), np.zeros(slots, np.float32) if largest else None)


L = TypeVar("L", bound=type[Learner])

_registry: dict[str, tuple[type[Learner], dict[str, Any]]] = {}


def register(name: str, **preset: Any) -> Callable[[L], L]:
    """Gives a learner, with some settings fixed, its name; the registry brings it to CLI, adapters and tests."""

    def put(cls: L) -> L:
        _registry[name] = (cls, preset)
        return cls

    return put


def learner_names() -> list[str]:
    return sorted(_registry)


def learner_class(name: str) -> tuple[type[Learner], dict[str, Any]]:
    """The class behind a name, and the settings the name fixes."""
    if name not in _registry:
        raise ValueError(f"no learner is called {name!r}; there are {', '.join(learner_names())}.")
    return _registry[name]


def make_learner(name: str, **settings: Any) -> Learner:
    """The learner of that name; `make_learner(x.name, **x.settings) == x` for every learner x."""
    cls, preset = learner_class(name)
    known = {field.name for field in dataclasses.fields(cls)}
    for word in settings:
        if word not in known:
            raise ValueError(f"{name}: no setting is called {word!r}; there are {', '.join(sorted(known))}.")
    for word, value in preset.items():
        if settings.get(word, value) != value:
            raise ValueError(f"{name}: {word} is {value!r} by the learner's name, got {settings[word]!r}.")
    return cls(**{**settings, **preset})


def parse_setting(name: str, word: str, text: str) -> Any:
    """A setting typed on a command line, as the value its learner expects."""
    cls, _ = learner_class(name)
    kind = get_type_hints(cls).get(word)
    if kind is bool:
        spelled = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if text.lower() not in spelled:
            raise ValueError(f"{name}: {word} must be true or false, got {text!r}.")
        return spelled[text.lower()]
    return text
