"""AdaGrad: dual averaging with a rate per coordinate and l1, on the logistic loss.

    s = <w, x>,    c = sigmoid(s + w0) - [y = +1]

A coordinate holds the sum of its gradients and of their squares,

    z <- z + c x,    v <- v + (c x)^2,

and with t rows so far and the mean gradient z / t the primal-dual subgradient update of
[1, equation (3)] with l1 has

    w = -sign(z) eta t / (epsilon + sqrt(v)) max(|z / t| - lambda, 0)
      = -eta soft(z, lambda t) / (epsilon + sqrt(v)),    soft(z, u) = sign(z) max(|z| - u, 0),

so a weight is a function of its own z and v and of t, read when needed: O(k) per row, where
code that stores w visits all d. The intercept is the weight of a feature that is 1 in
every row, kept out of lambda. The score is s, without the intercept. A row of importance
h counts as h rows learned at one score.

Against DualAveraging(loss="logistic"): the threshold grows with t, r = 2, next to no
beta, and the intercept averages as the weights do.

[1] Duchi, Hazan, Singer. Adaptive Subgradient Methods for Online Learning and Stochastic
    Optimization. JMLR 2011.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rarestream.learners.base import About, Learner
from rarestream.learners.registry import register
from rarestream.learners.settings import RATES, STRENGTHS, non_negative, positive, switch


@register("adagrad")
@dataclass(frozen=True, kw_only=True)
class AdaGrad(Learner):
    """AdaGrad of Duchi, Hazan and Singer (JMLR 2011), dual averaging, logistic loss: O(k) per row, exact zeros."""

    learning_rate: float = positive(0.6, "Learning rate: eta in [1].", **RATES)
    l1: float = non_negative(
        0.0,
        "Strength of the l1 penalty, a threshold on the mean gradient that makes weights exactly zero: lambda in [1].",
        **STRENGTHS,
    )
    epsilon: float = positive(1e-8, "Smoothing term of the per-coordinate learning rates: delta in [1].", **RATES)
    intercept: bool = switch(True, "Whether to fit an intercept.")

    loss_is_logistic: ClassVar[bool] = True
    about: ClassVar[About] = About(
        title="AdaGrad",
        objective="logistic",
        cost="O(k)",
        published="O(d)",
        sparse="exact zeros with `l1`",
        returns="last iterate",
        paper="Duchi, Hazan, Singer 2011, equation (3) and section 5.1",
    )

    def kernel_settings(self) -> list[float]:
        return [self.learning_rate, self.l1, self.epsilon, float(self.intercept)]
