"""The methods that are compared, and the settings that each is tuned over.

Every method is tuned over the same number of settings: values of the one setting that controls its step length, each
larger than the one before by the same factor, around the default, which is always among them. A learner declares the
setting and its range (`Learner.tuning`). All other settings keep their defaults. So l1 stays 0: the AUC would choose
that anyway, and the curve of AUC against size shows what fewer weights cost. `auto` and `race` choose their settings
on the rows they learn, and are not tuned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rarestream.blocks import Block
from rarestream.compare.scorers import BatchScorer, ModelScorer, RaceScorer, Scorer, SgdScorer, has_sklearn
from rarestream.learners import Learner, learner_names, make_learner
from rarestream.study.tuning import Params

AROUND = 10.0  # by default settings range from a tenth of the default to ten times it
MOST_MULTIPLICATIONS = 2e9  # per pass, a few seconds; a method that needs more runs only if it is named


class Size(NamedTuple):
    """The size of the rows to learn."""

    rows: int
    features: int
    nonzeros: int

    @classmethod
    def of(cls, block: Block) -> Size:
        """Return the size of a block."""
        return cls(len(block), block.width, block.nonzeros)


@dataclass(frozen=True, kw_only=True)
class Method:
    """How a method is made, tuned and named."""

    name: str
    label: str
    learner: str = ""  # name in the registry; empty: a race, or a method of scikit-learn
    outside: Callable[[Params, int], Scorer] | None = None  # makes a scorer of scikit-learn, which gets scaled rows
    tuned: str = ""  # the setting that is tuned; empty: none
    default: float = 0.0
    low: float = 0.0
    high: float = 0.0
    fixed: dict[str, Any] = field(default_factory=dict)
    balanced: bool = False  # importances give both classes of the training rows the same total
    note: str = ""

    @classmethod
    def of_learner(cls, learner: str, name: str = "", label: str = "", balanced: bool = False, **fixed: Any) -> Method:
        """Return a learner of the registry as a method, tuned as it declares; `fixed` are settings that it keeps."""
        base = make_learner(learner, **fixed)
        label = label or base.title
        made = partial(cls, name=name or learner, label=label, learner=learner, fixed=fixed, balanced=balanced)
        if base.tuning is None:
            return made(note="not tuned")
        setting, low, high = base.tuning
        default = float(getattr(base, setting))
        low, high = low or default / AROUND, high or default * AROUND
        return made(tuned=setting, default=default, low=low, high=high)

    @property
    def word(self) -> str:
        """The name in rows of results."""
        return self.name.replace("-", "_")

    def settings(self, count: int, size: Size) -> list[Params]:
        """Return the settings that it is tuned over, with what its paper assumes to be known of the rows to come."""
        fixed = dict(self.fixed)
        if self.learner:
            fixed |= make_learner(self.learner, **fixed).expecting(size.rows, size.features)
        if not self.tuned:
            return [fixed]
        return [{**fixed, self.tuned: value} for value in spread(self.low, self.default, self.high, count)]

    def make_learner(self, params: Params) -> Learner | None:
        """Return our learner with these settings; None if it is not one of ours, or a race."""
        return make_learner(self.learner, **params) if self.learner else None

    def scorer(self, params: Params, scale: str, size: Size) -> Scorer:
        """Return what learns with these settings."""
        if self.outside is not None:
            return self.outside(params, size.features)
        learner = self.make_learner(params)
        return RaceScorer(scale) if learner is None else ModelScorer(learner, scale, size.features)

    def refusal(self, size: Size, named: bool) -> str | None:
        """Return why it is left out; None if it is not."""
        if self.outside is not None and not has_sklearn():
            return 'needs scikit-learn: pip install "rarestream[sklearn]"'
        learner = self.make_learner(self.fixed)
        count = 0.0 if learner is None else learner.multiplications(size.rows, size.nonzeros, size.features)
        if count > MOST_MULTIPLICATIONS and not named:
            limit = f"over {MOST_MULTIPLICATIONS:.0e}"
            return f"slow here: {count:.0e} multiplications per pass, {limit}; it runs if it is named"
        return None


def spread(low: float, default: float, high: float, count: int) -> list[float]:
    """Return so many values at equal factors from low to high; the one nearest to the default is the default."""
    if count == 1:
        return [default]
    values = np.geomspace(low, high, count)
    values[np.abs(np.log(values / default)).argmin()] = default
    return [float(f"{value:.4g}") for value in values]


_SGD: dict[str, Any] = {"outside": SgdScorer, "tuned": "alpha", "default": 1e-4, "low": 1e-6, "high": 1e-3}

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method.of_learner("auto"),
        Method(name="race", label="race", note="not tuned"),
        *(Method.of_learner(name) for name in learner_names() if name != "auto"),
        Method.of_learner("opauc", "opauc-full", "OPAUC, all covariances", rank=0),
        Method.of_learner("dual-logistic", "balanced-logistic", "balanced logistic", balanced=True),
        Method(name="sgd", label="scikit-learn SGD, l2", fixed={"penalty": "l2"}, **_SGD),
        Method(name="sgd-l1", label="scikit-learn SGD, l1", fixed={"penalty": "l1"}, **_SGD),
        Method(
            name="batch-logistic",
            label="scikit-learn logistic",
            outside=BatchScorer,
            tuned="C",
            default=1.0,
            low=0.1,
            high=100.0,
            note="many passes",
        ),
    )
}
