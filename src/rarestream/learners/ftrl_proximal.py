"""FTRL-Proximal: follow the regularised leader on the logistic loss.

    s = <w, x>,    c = sigmoid(s + w0) - [y = +1],    g = c x

Each coordinate accumulates

    z <- z + g - (sqrt(v + g^2) - sqrt(v)) / gamma * w,     v <- v + g^2

and its weight is read off them when needed:

    w = -gamma soft(z, lambda) / (beta + sqrt(v) + gamma l2),    soft(z, t) = sign(z) max(|z| - t, 0).

The intercept w0 is the weight of a feature that is 1 in every row, kept out of lambda
and l2; without lambda the rule above is exactly

    v0 <- v0 + c^2,    w0 <- w0 - gamma c / (beta + sqrt(v0)).

With a half-life H old rows fade, for streams that drift. Time t is the number of rows so far,
by importance. Before a row at time t, one that was learned at time t' counts
2^(-(t - t') / H) times in z and v: after a row of importance h,

    z <- 2^(-h/H) z,    v <- 2^(-h/H) v    of all coordinates.

w0 does not decay, but v0 <- 2^(-h/H) v0 + h c^2. A row still costs O(k): native/half_life.hpp.

The score is s, without the intercept: a constant changes no ranking, and one that moves
while the model learns would blur the progressive AUC. A row of importance h counts as h
rows learned at one score.

[1] McMahan et al. Ad Click Prediction: a View from the Trenches. KDD 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rarestream._native import LaneSetting, Loss
from rarestream.learners.base import About, Learner
from rarestream.learners.registry import register
from rarestream.learners.settings import HALF_LIVES, RATES, STRENGTHS, non_negative, positive, switch, zero_or
from rarestream.learners.state import MERGED_PAIR, PAIR, Layout


@register("ftrl-proximal")
@dataclass(frozen=True, kw_only=True)
class FtrlProximal(Learner):
    """FTRL-Proximal of McMahan et al. (KDD 2013), logistic loss: O(k) per row, exact zeros with l1 > 0."""

    learning_rate: float = positive(4.0, "Learning rate: alpha in [1], gamma above.", **RATES)
    l1: float = non_negative(0.0, "Strength of the l1 penalty, which makes weights exactly zero: lambda.", **STRENGTHS)
    l2: float = non_negative(0.0, "Strength of the l2 penalty, which shrinks weights.", **STRENGTHS)
    beta: float = positive(
        1.0, "Smoothing term of the per-coordinate learning rates: larger values shorten early steps.", **RATES
    )
    intercept: bool = switch(True, "Whether to fit an intercept.")
    half_life: float = zero_or(0.0, "Rows after which a row counts half: H. 0: rows never fade.", **HALF_LIVES)

    loss_is_logistic: ClassVar[bool] = True
    about: ClassVar[About] = About(
        title="FTRL-Proximal",
        objective="logistic",
        cost="O(k)",
        published="O(k)",
        sparse="exact zeros with `l1`",
        returns="last iterate",
        paper="McMahan et al. 2013, Algorithm 1",
    )

    @property
    def native(self) -> str:
        return "FtrlProximalHalfLife" if self.half_life else "FtrlProximal"

    @property
    def layout(self) -> Layout:
        return PAIR if self.half_life else MERGED_PAIR

    def kernel_settings(self) -> list[float]:
        plain = [self.learning_rate, self.l1, self.l2, self.beta, float(self.intercept)]
        return [*plain, self.half_life] if self.half_life else plain

    def lane(self) -> LaneSetting:
        return LaneSetting(
            loss=Loss.logistic,
            power=0.0,
            proximal=1.0,
            evidence=0.0,
            learning_rate=self.learning_rate,
            l1=self.l1,
            l2=self.l2,
            beta=self.beta,
            rate_power=2.0,
            intercept=self.intercept,
            half_life=self.half_life,
            mean_gradient=False,
        )
