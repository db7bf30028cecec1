"""Estimate: a number with a confidence interval; and the interval of an AUC.

The variance of an AUC is DeLong's: with V the placement of a score (its mid-rank
within the other class, as a share) and S the variance of V within a class,

    var = S_pos / n_pos + S_neg / n_neg.

A symmetric interval would exceed [0, 1], and be empty when AUC = 1. So the variance
is taken as that of `trials` independent trials, var = auc (1 - auc) / trials, and
the interval is Wilson's for so many trials, with Student's t in place of the
normal quantile (degrees of freedom by Welch and Satterthwaite: they are few when
positives are). No distribution has a variance above auc (1 - auc) / min(n_pos,
n_neg) [2], so `trials` is at least min(n_pos, n_neg); this value is also used
when DeLong's variance is zero or undefined.

Rows of unequal importance count as n = (sum h)^2 / sum h^2 rows (Kish).

[1] DeLong, DeLong, Clarke-Pearson. Comparing the areas under two or more
    correlated receiver operating characteristic curves. Biometrics 44, 1988.
[2] Birnbaum, Klose. Bounds for the variance of the Mann-Whitney statistic.
    Annals of Mathematical Statistics 28, 1957.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rarestream.errors import DataError
from rarestream.metrics import student


class Estimate(float):
    """A float with a confidence interval.

    Attributes
    ----------
    low : float
        Lower end of the confidence interval, which includes `bound`.
    high : float
        Upper end of the confidence interval.
    bound : float
        Certified maximum distance from the value of an exact computation; 0 if it is exact.
    level : float
        Confidence level of the interval, such as 0.95.
    """

    __slots__ = ("bound", "high", "level", "low")

    low: float
    high: float
    bound: float
    level: float

    def __new__(cls, value: float, low: float, high: float, bound: float = 0.0, level: float = 0.95) -> Estimate:
        self = super().__new__(cls, value)
        self.low, self.high, self.bound, self.level = float(low), float(high), float(bound), float(level)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (float(self), self.low, self.high, self.bound, self.level)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({float(self):.6g}, low={self.low:.6g}, high={self.high:.6g}, bound={self.bound:.2g})"

    def __str__(self) -> str:
        return f"{float(self):.4f} [{self.low:.4f}, {self.high:.4f}]"

    def __format__(self, spec: str) -> str:
        """Format the number with its interval; with a format specification, the number alone."""
        return float(self).__format__(spec) if spec else str(self)


class Difference(Estimate):
    """An Estimate of a difference. `p_value` is two-sided, for the hypothesis that there is no difference."""

    __slots__ = ("p_value",)

    p_value: float

    def __new__(
        cls,
        value: float,
        low: float,
        high: float,
        bound: float = 0.0,
        level: float = 0.95,
        p_value: float = math.nan,
    ) -> Difference:
        self = super().__new__(cls, value, low, high, bound, level)
        assert isinstance(self, Difference)
        self.p_value = float(p_value)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (float(self), self.low, self.high, self.bound, self.level, self.p_value)


class Bounded(NamedTuple):
    """A number computed in bounded memory, with certified limits of the exact one.

    Attributes
    ----------
    value : float
        The number.
    low, high : float
        The number of an exact computation lies between these.
    """

    value: float
    low: float
    high: float

    @property
    def bound(self) -> float:
        """Maximum distance from the exact number; 0 if this is it."""
        return max(self.high - self.value, self.value - self.low)


class Placements(NamedTuple):
    """What an interval is computed from: the AUC and, per class, the variance of placements and the effective rows."""

    auc: float
    spread_pos: float
    spread_neg: float
    n_pos: float
    n_neg: float


def unknown(level: float = 0.95) -> Estimate:
    """Return the AUC while a class is missing: nan, with the interval [0, 1]."""
    return Estimate(math.nan, 0.0, 1.0, 0.0, level)


def interval(placed: Placements, level: float, bound: float = 0.0) -> Estimate:
    """Return the AUC with its interval, widened by the bound."""
    auc = min(1.0, max(0.0, placed.auc))
    fewest = min(placed.n_pos, placed.n_neg)
    variance, freedom = welch(placed)
    trials = auc * (1 - auc) / variance if variance > 0 else 0.0
    if trials <= fewest:
        trials, freedom = fewest, math.inf
    t = student.quantile((1 + checked_level(level)) / 2, freedom)
    shrink = 1 + t * t / trials
    centre = (auc + t * t / (2 * trials)) / shrink
    half = t * math.sqrt(auc * (1 - auc) / trials + (t / (2 * trials)) ** 2) / shrink
    low, high = min(auc, centre - half) - bound, max(auc, centre + half) + bound
    return Estimate(auc, max(0.0, low), min(1.0, high), bound, level)


def welch(placed: Placements) -> tuple[float, float]:
    """Return DeLong's variance and its degrees of freedom; zero if a class has fewer than two effective rows."""
    if min(placed.n_pos, placed.n_neg) < 2:
        return 0.0, math.inf
    pos = placed.spread_pos / (placed.n_pos - 1)
    neg = placed.spread_neg / (placed.n_neg - 1)
    variance = pos + neg
    if variance <= 0:
        return 0.0, math.inf
    if variance < 1e-140:  # only the ratio of the two matters below, and their squares must not underflow
        pos, neg = pos / variance, neg / variance
    return variance, (pos + neg) ** 2 / (pos**2 / (placed.n_pos - 1) + neg**2 / (placed.n_neg - 1))


def checked_level(level: float) -> float:
    """Return the confidence level, or raise a DataError if it is not between 0 and 1."""
    if not 0 < level < 1:
        raise DataError(f"metrics: level must be between 0 and 1, got {level}; 0.95 is usual.")
    return level
