"""Learners: one file per algorithm. A learner is a frozen value: its settings and its rule, never any data.

Every module of this package is imported, and the learners it registers are names of the package.
"""

from importlib import import_module
from pkgutil import iter_modules

from rarestream.learners.base import About, Learner
from rarestream.learners.registry import learner_classes, learner_names, make_learner
from rarestream.learners.state import TALLY, State

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
globals().update({cls.__name__: cls for cls in learner_classes()})

__all__ = ["TALLY", "About", "Learner", "State", "learner_classes", "learner_names", "make_learner"]
__all__ += [cls.__name__ for cls in learner_classes()]
