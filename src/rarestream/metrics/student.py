"""Student's t distribution. SciPy has it too, but takes a tenth of a second to import."""

from __future__ import annotations

import math


def cdf(t: float, freedom: float) -> float:
    """Return P(T <= t) with `freedom` degrees of freedom; infinity gives the normal distribution."""
    if freedom > 1e8:
        return math.erfc(-t / math.sqrt(2)) / 2
    tail = _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2
    return tail if t < 0 else 1 - tail


def quantile(p: float, freedom: float) -> float:
    """Return the t with P(T <= t) = p, for 1/2 <= p < 1."""
    # The distribution function is concave for t > 0, so Newton's steps approach the root from below.
    t = 0.0
    for _ in range(200):
        step = (p - cdf(t, freedom)) / _density(t, freedom)
        t += step
        if step <= 1e-12 * t:
            break
    return t


def _density(t: float, freedom: float) -> float:
    if freedom > 1e8:
        return math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(math.pi * freedom) / 2
    return math.exp(log_scale - (freedom + 1) / 2 * math.log1p(t * t / freedom))


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (Lentz's method)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    tiny = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    value = d
    for m in range(1, 1000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return math.exp(log_front) * value / a
