"""The beta distribution. SciPy has it too, but takes a tenth of a second to import."""

from __future__ import annotations

import math


def cdf(x: float, a: float, b: float) -> float:
    """Return P(X <= x): the regularised incomplete beta function, by its continued fraction (Lentz's method)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - cdf(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    tiny = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    value = d
    for m in range(1, 1000 + int(10 * math.sqrt(a + b))):  # it converges in the order of the square root
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


def quantile(p: float, a: float, b: float) -> float:
    """Return the x with P(X <= x) = p, for 0 < p < 1 and a, b >= 1/2, to about ten digits."""
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(200):
        gap = cdf(x, a, b) - p
        low, high = (low, x) if gap > 0 else (x, high)
        slope = math.exp(_log_density(x, a, b)) if 0 < x < 1 else 0.0
        step = gap / slope if slope > 0 else math.inf
        after = x - step
        if not low < after < high:  # Newton's step leaves the bracket: halve it, by ratio if it starts at zero
            after = (low + high) / 2 if low > 0 else high / 16
        if abs(after - x) <= 1e-11 * x:
            return after
        x = after
    return x


def _log_density(x: float, a: float, b: float) -> float:
    constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return constant + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x)
