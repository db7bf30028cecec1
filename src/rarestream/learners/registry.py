"""The registry of learners by name: what brings a new one to the command line, the adapters and the tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from rarestream.learners.base import Learner

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
