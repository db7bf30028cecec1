"""Who is compared, and over which settings each is tuned: one table.

A method is tuned over as many settings as every other: values of the one setting that says how long its steps are, each
larger than the one before by the same factor, around the default, which is always among them. All other settings keep
their defaults. So l1 stays 0: the AUC would choose that anyway, and what fewer weights cost is told by the curve of AUC
against size. `auto` and `race` choose their settings on the rows they learn, and are not tuned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rarestream.compare.scorers import BatchScorer, ModelScorer, RaceScorer, Scorer, SgdScorer, has_sklearn
from rarestream.learners import Learner, make_learner

Params = dict[str, Any]

AROUND = 10.0  # settings go from a tenth of the default to ten times it, unless the table says otherwise
MOST_STEPS = 2e9  # multiplications a pass, a few seconds; what needs more is left out unless it is named


class Size(NamedTuple):
    """Of the rows that are learned."""

    rows: int
    features: int
    nonzeros: int


@dataclass(frozen=True, kw_only=True)
class Method:
    """How a method is made, tuned and told of."""

    name: str
    label: str
    learner: str = ""  # of the registry; empty: it is made by `scorer`
    outside: Callable[[Params, int], Scorer] | None = None  # makes one of scikit-learn; rows come to it scaled
    tuned: str = ""  # the setting that is; empty: none
    default: float = 0.0
    low: float = 0.0
    high: float = 0.0
    fixed: Params = field(default_factory=dict)
    balanced: bool = False  # rows count so that both classes weigh alike
    note: str = ""
    steps: Callable[[Size], float] = lambda size: 0.0  # multiplications a pass, where O(k) a row is not the truth

    @property
    def word(self) -> str:
        """The name in rows of results."""
        return self.name.replace("-", "_")

    def settings(self, count: int, size: Size) -> list[Params]:
        """What it is tuned over; with what its paper takes for known of the rows to come."""
        fixed = {**self.fixed, **_known(self.learner, size)}
        if not self.tuned:
            return [fixed]
        return [{**fixed, self.tuned: value} for value in spread(self.low, self.default, self.high, count)]

    def made(self, params: Params) -> Learner | None:
        """Our learner of these settings; None if it is none of ours, or a race."""
        return make_learner(self.learner, **params) if self.learner else None

    def scorer(self, params: Params, scale: str, size: Size) -> Scorer:
        if self.outside is not None:
            return self.outside(params, size.features)
        learner = self.made(params)
        return RaceScorer(scale) if learner is None else ModelScorer(learner, scale, size.features)

    def refusal(self, size: Size, named: bool) -> str | None:
        """Why it is left out; None if it is not."""
        if self.outside is not None and not has_sklearn():
            return 'needs scikit-learn: pip install "rarestream[sklearn]"'
        steps = self.steps(size)
        if steps > MOST_STEPS and not named:
            return f"slow here: {steps:.0e} multiplications a pass, over {MOST_STEPS:.0e}; it runs if it is named"
        return None


def spread(low: float, default: float, high: float, count: int) -> list[float]:
    """So many values at equal factors from low to high; the one nearest to the default is the default."""
    if count == 1:
        return [default]
    values = np.geomspace(low, high, count)
    values[np.abs(np.log(values / default)).argmin()] = default
    return [float(f"{value:.4g}") for value in values]


def _known(learner: str, size: Size) -> Params:
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
