"""The registry of learners by name: what brings a new one to the command line, the adapters and the tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from rarestream.errors import nearest
from rarestream.learners.base import Learner

L = TypeVar("L", bound=type[Learner])

_registry: dict[str, tuple[type[Learner], dict[str, Any]]] = {}


def register(name: str, **preset: Any) -> Callable[[L], L]:
    """Register a learner class under a name, with some settings fixed; for use as a decorator."""

    def add(cls: L) -> L:
        _registry[name] = (cls, preset)
        cls.registered_name = name
        return cls

    return add


def learner_names() -> list[str]:
    """List the names of all learners.

    Returns
    -------
    list of str
        What `make_learner`, `Model` and the command line accept, sorted.
    """
    return sorted(_registry)


def learner_classes() -> list[type[Learner]]:
    """Return the class of every registered learner, sorted by name."""
    return sorted({cls for cls, _ in _registry.values()}, key=lambda cls: cls.__name__)


def learner_class(name: str) -> tuple[type[Learner], dict[str, Any]]:
    """Return the class that a name stands for, and the settings that the name fixes; ValueError if it is unknown."""
    if name not in _registry:
        near = nearest(name, _registry)
        hint = f"did you mean {near!r}? There" if near else "there"
        raise ValueError(f"no learner is called {name!r}; {hint} are {', '.join(learner_names())}.")
    return _registry[name]


def make_learner(name: str, **settings: Any) -> Learner:
    """Make a learner by name.

    Parameters
    ----------
    name : str
        One of `learner_names()`, such as "dual-auc".
    **settings
        Settings of the learner, such as `learning_rate=0.5`. By default those of its class.

    Returns
    -------
    Learner
        `make_learner(x.name, **x.settings) == x` for every learner x.

    Raises
    ------
    ValueError
        If the name or a setting is unknown, or a value is out of its range.
    """
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
    """Convert a setting from the command line to the value that its learner expects."""
    cls, _ = learner_class(name)
    if isinstance(getattr(cls, word, None), bool):
        spelled = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if text.lower() not in spelled:
            raise ValueError(f"{name}: {word} must be true or false, got {text!r}.")
        return spelled[text.lower()]
    return text
