"""SOLAM: stochastic online AUC maximisation, as a saddle point.

The square loss on pairs is the saddle point, over w, a and b below and alpha above, of a
function that is a sum over single rows [1, Theorem 1]. Of row t, with s = <w, x>:

    y = +1:  g_w = 2 (1 - p) (s - a - 1 - alpha) x,    g_a = -2 (1 - p) (s - a),
             g_alpha = -2 (1 - p) (s + p alpha)
    y = -1:  g_w = 2 p (s - b + 1 + alpha) x,          g_b = -2 p (s - b),
             g_alpha = 2 p (s - (1 - p) alpha)

p is the share of positives so far, this row included. With gamma = xi / sqrt(t), w, a and b
take a step -gamma g, alpha a step +gamma g, and each goes back into its bounds:

    |w|_2 <= r,    |a|, |b| <= r,    |alpha| <= 2 r.

The weights of the model, those of `coef`, `score` and files, are the mean of the iterates
that the rows met, weighted by gamma; the gradient is that of the current iterate:

    wbar_t = sum_{i <= t} gamma_i w_i / sum_{i <= t} gamma_i.

A row writes only its own coordinates. Projection and start are two factors,

    w = sigma u + kappa [j < D],

|w|^2 is kept up with u, and so is the mean: with G = sum gamma_i sigma_i,

    sum gamma_i sigma_i u_i = G u - past,    past <- past + G (change of u).

When sigma gets too small for the digits of u, an epoch ends: sigma = 1, G = 0, and for every
coordinate u <- sigma u, past <- past - G u. This is done when a row meets the coordinate, by
the epoch in which it was written; when 256 epochs have ended, for all that are left.

The start: [1] leaves it open. By default all is zero, and swapping the classes negates the
model. With D = `expected_features` it is that of [2]: w = r / sqrt(D) on the first D
features, a = b = r, alpha = 2 r. A row of importance h counts as h rows learned at one
score: t and p count it h times, and its gamma is h times as long. With scale="max" what
was learned of a feature is measured anew when its largest value grows, the start is not.

Where this differs from the code of [2]: a and b are bounded on both sides, as in [1], not only
from above.

[1] Ying, Wen, Lyu. Stochastic Online AUC Maximization. NIPS 2016.
[2] Zhou, Ying, Skiena. Online AUC Optimization for Sparse High-Dimensional Datasets.
    ICDM 2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream.blocks import LARGEST_INDEX
from rarestream.learners.base import About, Learner
from rarestream.learners.registry import register
from rarestream.learners.settings import positive, whole
from rarestream.learners.state import Layout, State

EPOCHS = 256  # as many as native/learners/solam.hpp has


LAYOUT = Layout(
    columns={"u": 1, "past": 1, "epoch": 1},
    numbers=("saddle_a", "saddle_b", "alpha", "sigma", "kappa", "uu", "u_start", "gammas", "sigmas", "kappas", "epoch"),
)


@register("solam")
@dataclass(frozen=True, kw_only=True)
class Solam(Learner):
    """SOLAM of Ying, Wen and Lyu (NIPS 2016): O(k) per row; the model is the mean of the iterates."""

    learning_rate: float = positive(
        7.0, "Initial learning rate: xi; row t has the rate xi / sqrt(t).", least=1e-12, most=1e12
    )
    radius: float = positive(5.0, "Maximum Euclidean norm of the weights: r.", least=1e-12, most=1e12)
    expected_features: int = whole(
        0,
        "Number D of features whose weights start at r / sqrt(D). 0: all weights start at zero.",
        most=LARGEST_INDEX + 1,
    )

    about: ClassVar[About] = About(
        title="SOLAM",
        objective="square loss on pairs",
        cost="O(k)",
        published="O(d)",
        sparse="no",
        returns="mean of the iterates",
        paper="Ying, Wen, Lyu 2016, Algorithm 1",
    )

    def expecting(self, rows: int, features: int) -> dict[str, Any]:
        return {"expected_features": features}

    @property
    def layout(self) -> Layout:
        return LAYOUT

    @property
    def initial_features(self) -> int:
        return self.expected_features

    def kernel_settings(self) -> list[float]:
        return [self.learning_rate, self.radius, float(self.expected_features)]

    def start(self, slots: int, dtype: DTypeLike, largest: bool = False) -> State:
        state = super().start(slots, dtype, largest)
        tally = self.tally(state)
        tally["sigma"] = 1
        if self.expected_features:
            r = self.radius
            tally["saddle_a"], tally["saddle_b"], tally["alpha"] = r, r, 2 * r
            tally["kappa"] = r / math.sqrt(self.expected_features)
        return state

    def extra_arrays(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        """Of every epoch: what u has been multiplied by since, and what G was in all, in its own measure."""
        epochs = np.zeros((EPOCHS, 2))
        epochs[0, 0] = 1
        return {"epochs": epochs}

    def dump_extra(self, state: State, n_features: int) -> Mapping[str, NDArray[Any]]:
        return {"epochs": state.extra["epochs"][: int(self.tally(state)["epoch"]) + 1]}

    def load_extra(self, state: State, saved: Mapping[str, NDArray[Any]]) -> State:
        epochs, epoch = saved["epochs"], self.tally(state)["epoch"]
        if epoch not in range(EPOCHS) or epochs.dtype != np.float64 or epochs.shape != (int(epoch) + 1, 2):
            raise ValueError("array 'epochs' must have two numbers for every epoch")
        if not np.isin(state.table[:, 2], np.arange(epoch + 1)).all():
            raise ValueError("array 'epoch' has entries that are no epoch")
        state.extra["epochs"][: len(epochs)] = epochs
        return state

    def check(self, state: State) -> None:
        tally = self.tally(state)
        if not (tally["sigma"] > 0 and tally["gammas"] >= 0):
            raise ValueError("its scale or its sum of steps is negative")
