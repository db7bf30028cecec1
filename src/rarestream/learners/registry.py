"""The registry of learners by name: what brings a new one to the command line, the adapters and the tests.

A learner registers when its module is imported, which happens when it is first asked for. index.py says which module
that is; modules that it does not know (yet) are imported whenever a name is looked for that it does not know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from rarestream.errors import nearest
from rarestream.learners import index
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
    _import_new()
    return sorted({*index.NAMES, *_registry})


def learner_classes() -> list[type[Learner]]:
    """Return the class of every registered learner, sorted by name."""
    for module in {*index.NAMES.values()}:
        _import_one(module)
    _import_new()
    return sorted({cls for cls, _ in _registry.values()}, key=lambda cls: cls.__name__)


def learner_class(name: str) -> tuple[type[Learner], dict[str, Any]]:
    """Return the class that a name stands for, and the settings that the name fixes; ValueError if it is unknown."""
    if name not in _registry:
        _import_one(index.NAMES.get(name))
    if name not in _registry:
        near = nearest(name, _registry)
        hint = f"did you mean {near!r}? There" if near else "there"
        raise ValueError(f"no learner is called {name!r}; {hint} are {', '.join(learner_names())}.")
    return _registry[name]


def learner_of_class(name: str) -> type[Learner] | None:
    """Return the learner whose class has a name, such as DualAveraging; None if there is none."""
    for _ in range(2):
        for cls, _ in _registry.values():
            if cls.__name__ == name:
                return cls
        _import_one(index.CLASSES.get(name))
    return None


def _import_one(module: str | None) -> None:
    """Import a module of this package; the new ones if it is not known which."""
    if module is None:
        _import_new()
    else:
        import_module(f"rarestream.learners.{module}")


def _import_new() -> None:
    """Import the modules of this package that index.py does not list."""
    from pkgutil import iter_modules

    for module in iter_modules(import_module("rarestream.learners").__path__):
        if module.name not in index.MODULES:
            import_module(f"rarestream.learners.{module.name}")


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
