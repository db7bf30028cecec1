"""RDA: regularised dual averaging with l1, on the logistic loss.

    s = <w, x>,    c = sigmoid(s + w0) - [y = +1]

A coordinate holds the sum of its gradients, z <- z + c x. With t rows so far and the mean
gradient z / t, the enhanced l1-RDA of [1, Algorithm 2] has

    lambda_t = lambda + gamma rho / sqrt(t)
    w = -sqrt(t) / gamma soft(z / t, lambda_t)
      = -1 / (gamma sqrt(t)) soft(z, t lambda + gamma rho sqrt(t)),    soft(z, u) = sign(z) max(|z| - u, 0),

so a weight is a function of its own z and of t, read when needed: O(k) per row, where code
that stores w visits all d. The intercept is the weight of a feature that is 1 in every
row, kept out of lambda and rho. The score is s, without the intercept. A row of
importance h counts as h rows learned at one score.

[1] Xiao. Dual Averaging Methods for Regularized Stochastic Learning and Online
    Optimization. JMLR 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rarestream.learners.base import About, Learner, Tuning
from rarestream.learners.registry import register
from rarestream.learners.settings import non_negative, positive, switch
from rarestream.learners.state import Layout


@register("rda")
@dataclass(frozen=True, kw_only=True)
class Rda(Learner):
    """Enhanced l1-RDA of Xiao (JMLR 2010), logistic loss: O(k) per row, exact zeros."""

    gamma: float = positive(0.01, "Inverse learning rate, larger values shorten all steps: gamma in [1].")
    l1: float = non_negative(
        0.0,
        "Strength of the l1 penalty, a threshold on the mean gradient that makes weights exactly zero: lambda in [1].",
    )
    rho: float = non_negative(0.0, "Sparsity-enhancing term of [1]: adds gamma rho / sqrt(t) to l1 after t rows.")
    intercept: bool = switch(True, "Whether to fit an intercept.")

    loss_is_logistic: ClassVar[bool] = True
    tuning: ClassVar[Tuning | None] = Tuning("gamma")
    about: ClassVar[About] = About(
        title="RDA",
        objective="logistic",
        cost="O(k)",
        published="O(d)",
        sparse="exact zeros with `l1` or `rho`",
        returns="last iterate",
        paper="Xiao 2010, Algorithm 2",
    )

    @property
    def layout(self) -> Layout:
        return Layout({"z": 1})

    def kernel_settings(self) -> list[float]:
        return [self.gamma, self.l1, self.rho, float(self.intercept)]
