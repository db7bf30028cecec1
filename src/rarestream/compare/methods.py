"""The methods that are compared, and the settings that each is tuned over: one table.

Every method is tuned over the same number of settings: values of the one setting that controls its step length, each
larger than the one before by the same factor, around the default, which is always among them. All other settings keep
their defaults. So l1 stays 0: the AUC would choose that anyway, and the curve of AUC against size shows what fewer
weights cost. `auto` and `race` choose their settings on the rows they learn, and are not tuned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rarestream.blocks import Block
from rarestream.compare.scorers import BatchScorer, ModelScorer, RaceScorer, Scorer, SgdScorer, has_sklearn
from rarestream.learners import Learner, make_learner
from rarestream.study.tuning import Params

AROUND = 10.0  # by default settings range from a tenth of the default to ten times it
MOST_STEPS = 2e9  # multiplications per pass, a few seconds; what needs more is left out unless it is named


class Size(NamedTuple):
    """Of rows to learn."""

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
    learner: str = ""  # of the registry; empty: not a learner of this library, or a race
    outside: Callable[[Params, int], Scorer] | None = None  # makes one of scikit-learn, which gets scaled rows
    tuned: str = ""  # the setting that is tuned; empty: none
    default: float = 0.0
    low: float = 0.0
    high: float = 0.0
    fixed: dict[str, Any] = field(default_factory=dict)
    balanced: bool = False  # importances give both classes of the training rows the same total
    note: str = ""
    steps: Callable[[Size], float] = lambda size: 0.0  # multiplications per pass, where a row costs more than O(k)

    @property
    def word(self) -> str:
        """The name in rows of results."""
        return self.name.replace("-", "_")

    def settings(self, count: int, size: Size) -> list[Params]:
        """Return the settings that it is tuned over, with what its paper assumes to be known of the rows to come."""
        fixed = {**self.fixed, **_known(self.learner, size)}
        if not self.tuned:
            return [fixed]
        return [{**fixed, self.tuned: value} for value in spread(self.low, self.default, self.high, count)]

    def made(self, params: Params) -> Learner | None:
        """Return our learner with these settings; None if it is not one of ours, or a race."""
        return make_learner(self.learner, **params) if self.learner else None

    def scorer(self, params: Params, scale: str, size: Size) -> Scorer:
        """Return what learns with these settings."""
        if self.outside is not None:
            return self.outside(params, size.features)
        learner = self.made(params)
        return RaceScorer(scale) if learner is None else ModelScorer(learner, scale, size.features)

    def refusal(self, size: Size, named: bool) -> str | None:
        """Return why it is left out; None if it is not."""
        if self.outside is not None and not has_sklearn():
            return 'needs scikit-learn: pip install "rarestream[sklearn]"'
        steps = self.steps(size)
        if steps > MOST_STEPS and not named:
            return f"slow here: {steps:.0e} multiplications per pass, over {MOST_STEPS:.0e}; it runs if it is named"
        return None


def spread(low: float, default: float, high: float, count: int) -> list[float]:
    """Return so many values at equal factors from low to high; the one nearest to the default is the default."""
    if count == 1:
        return [default]
    values = np.geomspace(low, high, count)
    values[np.abs(np.log(values / default)).argmin()] = default
    return [float(f"{value:.4g}") for value in values]


def _known(learner: str, size: Size) -> dict[str, Any]:
    if learner == "fsauc":
        return {"expected_rows": max(44, size.rows)}
    return {"expected_features": size.features} if learner == "solam" else {}


def _ours(name: str, label: str, tuned: str = "learning_rate", **more: Any) -> Method:
    more = {"learner": name, **more}
    default = float(getattr(make_learner(more["learner"]), tuned))
    around = {"default": default, "low": default / AROUND, "high": default * AROUND}
    return Method(name=name, label=label, tuned=tuned, **{**around, **more})


_SGD: dict[str, Any] = {"outside": SgdScorer, "tuned": "alpha", "default": 1e-4, "low": 1e-6, "high": 1e-3}

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(name="auto", label="auto", learner="auto", note="not tuned"),
        Method(name="race", label="race", note="not tuned"),
        _ours("dual-auc", "dual averaging, AUC"),
        _ours("dual-logistic", "dual averaging, logistic"),
        _ours("ftrl-auc", "FTRL-AUC"),
        _ours("ftrl-proximal", "FTRL-Proximal"),
        _ours("adagrad", "AdaGrad"),
        _ours("rda", "RDA", "gamma"),
        _ours("spam", "SPAM"),
        _ours("spauc", "SPAUC", "mu", low=1e-4, high=0.02),
        _ours("solam", "SOLAM"),
        _ours("fsauc", "FSAUC"),
        _ours("oam", "OAM", low=3e-4, steps=lambda size: 200.0 * size.nonzeros),
        _ours("opauc", "OPAUC", steps=lambda size: 100.0 * size.nonzeros + 5e3 * size.rows),
        _ours(
            "opauc-full",
            "OPAUC, all covariances",
            learner="opauc",
            fixed={"rank": 0},
            steps=lambda size: 2.0 * size.rows * size.features**2,
        ),
        _ours("adaoam", "AdaOAM", steps=lambda size: 20.0 * size.rows * size.features),
        _ours("balanced-logistic", "balanced logistic", learner="dual-logistic", balanced=True),
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
