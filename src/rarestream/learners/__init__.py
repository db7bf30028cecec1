"""Learners: one file per algorithm. A learner is a frozen value: its settings and its rule, never any data.

Every learner that a module of this package registers is a name of the package. Its module is imported when the learner
is first asked for: most programs use one.
"""

from typing import Any

from rarestream.learners.base import About, Learner
from rarestream.learners.index import CLASSES
from rarestream.learners.registry import learner_classes, learner_names, learner_of_class, make_learner
from rarestream.learners.state import TALLY, State

__all__ = ["TALLY", "About", "Learner", "State", "learner_classes", "learner_names", "make_learner"]
__all__ += list(CLASSES)


def __getattr__(name: str) -> Any:
    found = learner_of_class(name) if name[:1].isupper() else None  # not for modules, which are asked for here first
    if found is None:
        raise AttributeError(f"module 'rarestream.learners' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *(cls.__name__ for cls in learner_classes())})
