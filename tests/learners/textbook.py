"""Every learner once more, dense, slow and plain: written only to be read, and to be agreed with.

Each takes a Block and the learner's settings, in double precision, and returns the score each row had before it was
learned and the weights at the end (for rows scaled as the model scales them), with the intercept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rarestream import (
    AdaGrad,
    AdaOam,
    Block,
    DualAveraging,
    Fsauc,
    FtrlAuc,
    FtrlProximal,
    Learner,
    Oam,
    Opauc,
    Rda,
    Solam,
    Spam,
    Spauc,
)

Promise = bool | Callable[[Any], bool]


@dataclass(frozen=True)
class Twin:
    """A learner's textbook form, and which promises it makes beyond those that all make."""

    run: Callable[[Any, Rows], tuple[np.ndarray, np.ndarray, float]]
    variants: tuple[dict[str, Any], ...]  # settings to compare under, beside the defaults
    # True, False, or a function of the learner that says.
    steps_in_the_row: Promise = True  # a row writes its own coordinates and nothing else
    swaps: Promise = True  # swapping the classes negates the model
    waits: Promise = True  # nothing is learned while one class was seen
    reaches: float = 0.75  # the progressive AUC of 3000 easy rows, with the defaults

    def promises(self, what: str, learner: Any) -> bool:
        said = getattr(self, what)
        return said(learner) if callable(said) else said


TWINS: dict[type[Learner], Twin] = {}


def twin(learner: type[Learner], *variants: dict[str, Any], **promises: Any):
    """Makes a function the textbook form of a learner."""

    def put(run):
        TWINS[learner] = Twin(run, variants, **promises)
        return run

    return put


class Rows:
    """The rows of a Block, dense and scaled, with the largest value of each feature so far."""

    def __init__(self, block: Block, d: int, scale: str) -> None:
        self.dense = np.zeros((len(block), d))
        for i in range(len(block)):
            at = slice(block.indptr[i], block.indptr[i + 1])
            self.dense[i, block.indices[at]] = block.values[at]
        self.y = block.labels
        self.h = np.ones(len(block)) if block.importances is None else block.importances
        self.scale = scale
        self.largest = np.zeros(d)

    def __iter__(self):
        """x, y, h and by how much older state shrinks because a feature's largest value grew."""
        for x, y, h in zip(self.dense, self.y, self.h, strict=True):
            shrink = np.ones_like(x)
            if self.scale == "max":
                grown = np.maximum(self.largest, abs(x))
                shrink = np.divide(self.largest, grown, out=shrink, where=grown > 0)
                x = np.divide(x, grown, out=np.zeros_like(x), where=grown > 0)
                if h > 0:
                    self.largest = grown
            if self.scale != "none" and np.linalg.norm(x) > 0:
                x = x / np.linalg.norm(x)
            yield x, y, h, shrink


def sigmoid(s: float) -> float:
    return 1 / (1 + math.exp(-s)) if s >= 0 else math.exp(s) / (1 + math.exp(s))


def soft(z: np.ndarray, t: float) -> np.ndarray:
    return np.sign(z) * np.maximum(abs(z) - t, 0)


def among_the_most(worth: np.ndarray, budget: int) -> np.ndarray:
    """Which numbers live: no more than `budget` stand on their rung of the ladder or higher."""
    size, power = np.frexp(worth)  # worth = size * 2^power, 1/2 <= size < 1: 512 rungs from there to 1
    rung = np.where(worth > 0, np.floor(1024 * size + 10126 / 2**14) + 512 * power, -np.inf)
    return np.array([np.sum(rung >= mine) <= budget for mine in rung])


def decay(h: float, half_life: float) -> float:
    """What is left of a number after h rows; a half-life of 0 is none."""
    return 2 ** (-h / half_life) if half_life else 1.0


class Means:
    """Class counts and mean scores, each row counted when it arrives."""

    def __init__(self, half_life: float = 0.0) -> None:
        self.n = {1: 0.0, -1: 0.0}
        self.mean = {1: 0.0, -1: 0.0}
        self.half_life = half_life

    def count(self, s: float, y: int, h: float) -> float:
        self.n[y] += h
        rows = self.n[1] + self.n[-1]
        recent = math.log(2) * rows / (self.n[y] * self.half_life) if self.half_life else 0.0
        self.mean[y] += min(1, h * max(1 / self.n[y], recent)) * (s - self.mean[y])
        return self.n[1] / rows


class Intercept:
    def __init__(self, learning_rate: float, beta: float, half_life: float) -> None:
        self.w, self.v, self.learning_rate, self.beta = 0.0, 0.0, learning_rate, beta
        self.half_life = half_life

    def step(self, c: float, h: float) -> None:
        self.v = decay(h, self.half_life) * self.v + h * c**2
        self.w -= self.learning_rate * h * c / (self.beta + math.sqrt(self.v))


class Sums:
    """The state of FTRL and dual averaging: what a group starts from, and what is merged (tests/groups/textbook.py)."""

    def __init__(self, learner: FtrlAuc | FtrlProximal | DualAveraging, d: int) -> None:
        self.z, self.v, self.means = np.zeros(d), np.zeros(d), Means(learner.half_life)
        self.bias = Intercept(learner.learning_rate, learner.beta, learner.half_life)
        self.having = {1: np.zeros(d), -1: np.zeros(d)}
        self.largest = np.zeros(d)


@twin(
    FtrlAuc,
    {"l1": 0.05, "l2": 0.3},
    {"l1": 0.6, "beta": 0.2},
    {"means": "exact"},
    {"means": "exact", "l1": 0.3, "l2": 0.1},
    {"half_life": 100},
    {"half_life": 150, "l1": 0.05, "l2": 0.3},
)
@twin(
    FtrlProximal,
    {"l1": 0.05, "l2": 0.3},
    {"l1": 0.6, "intercept": False},
    {"half_life": 100},
    {"half_life": 150, "l1": 0.05, "l2": 0.3},
    waits=False,
)
def ftrl(learner: FtrlAuc | FtrlProximal, rows: Rows, state: Sums | None = None, repeats: float = 1.0):
    d = rows.dense.shape[1]
    state = state or Sums(learner, d)
    z, v, means, bias = state.z, state.v, state.means, state.bias
    sums = {1: np.zeros(d), -1: np.zeros(d)}
    gamma, scores = learner.learning_rate, []

    def weights():
        return -gamma * soft(z, learner.l1) / (learner.beta + np.sqrt(v) + gamma * learner.l2)

    for x, y, h, shrink in rows:
        s = weights() @ x
        scores.append(s)
        if h == 0:
            continue
        z, v = z * shrink, v * shrink**2
        p = means.count(s, y, h)
        sums = {c: sums[c] * shrink + (h * x if c == y else 0) for c in sums}
        if isinstance(learner, FtrlAuc) and learner.means == "exact":
            means.mean = {c: weights() @ sums[c] / max(means.n[c], 1e-300) for c in sums}
        if isinstance(learner, FtrlProximal):
            c = sigmoid(s + bias.w) - (y == 1)
            if learner.intercept:
                bias.step(c, h)
        elif y == 1:
            c = 2 * (1 - p) * (s - means.mean[-1] - 1)
        else:
            c = 2 * p * (s - means.mean[1] + 1)
        g, w = c * x, weights()
        grown = v + repeats * h * g**2
        z = z + repeats * h * g - (np.sqrt(grown) - np.sqrt(v)) / gamma * w
        left = decay(h, learner.half_life)
        z, v = z * left, grown * left
    state.z, state.v = z, v
    return np.array(scores), weights(), bias.w


@twin(
    DualAveraging,
    {"l1": 0.05},
    {"loss": "logistic", "l1": 0.6},
    {"budget": 3},
    {"loss": "logistic", "budget": 5},
    {"power": 0.5, "proximal": 0.5},
    {"loss": "logistic", "power": 1.0, "learning_rate": 3.0},
    {"loss": "logistic", "proximal": 1.0, "rate_power": 2.0, "l1": 0.05},
    {"loss": "logistic", "power": 0.3, "proximal": 0.7, "l1": 0.02},
    {"evidence": 0.5, "proximal": 0.5},
    {"loss": "logistic", "evidence": 1.0, "power": 0.5, "l1": 0.02},
    {"loss": "logistic", "evidence": 0.3, "rate_power": 2.0, "learning_rate": 0.5},
    {"power": 1.0, "budget": 3},
    {"loss": "logistic", "power": 0.5, "proximal": 0.5, "budget": 5},
    {"half_life": 100},
    {"half_life": 150, "l1": 0.05, "rate_power": 1.3},
    {"loss": "logistic", "half_life": 100, "l1": 0.05},
    {"half_life": 100, "power": 0.5, "proximal": 0.5},
    {"loss": "logistic", "half_life": 150, "power": 0.3, "proximal": 0.7, "l1": 0.02},
    {"loss": "logistic", "half_life": 100, "evidence": 0.5, "proximal": 0.5},
    waits=lambda learner: learner.loss == "auc",
)
def dual_averaging(learner: DualAveraging, rows: Rows, state: Sums | None = None, repeats: float = 1.0):
    state = state or Sums(learner, rows.dense.shape[1])
    z, v, means, bias = state.z, state.v, state.means, state.bias
    having, scores = state.having, []

    def mean_gradient():
        return soft(z, learner.l1) / (learner.beta + np.sqrt(v))

    def evidence():
        a, b = ((having[y] + 1) / (means.n[y] + 1) for y in (1, -1))
        return abs(a - b) / np.sqrt(a * b)

    def weights():
        w = -learner.learning_rate * mean_gradient() * abs(mean_gradient()) ** learner.power
        w = w * evidence() ** learner.evidence
        return np.where(among_the_most(abs(z * w), learner.budget), w, 0) if learner.budget else w

    for x, y, h, shrink in rows:
        s = weights() @ x
        scores.append(s)
        if h == 0:
            continue
        z, v = z * shrink, v * shrink**2
        having[y] = having[y] + h * (x != 0)
        p = means.count(s, y, h)
        if learner.loss == "logistic":
            c = sigmoid(s + bias.w) - (y == 1)
            bias.step(c, h)
        elif y == 1:
            c = 2 * (1 - p) * min(s - means.mean[-1] - 1, 0)
        else:
            c = 2 * p * max(s - means.mean[1] + 1, 0)
        if c != 0:
            g, before = mean_gradient(), v
            v = v + repeats * h * abs(c) ** learner.rate_power * x**2
            z = z + repeats * h * c * x + learner.proximal * (np.sqrt(v) - np.sqrt(before)) * g
        left = decay(h, learner.half_life)
        z, v = z * left, v * left
    state.z, state.v = z, v
    return np.array(scores), weights(), bias.w


@twin(Rda, {"l1": 0.01, "rho": 0.02}, {"l1": 0.1, "gamma": 2.0, "intercept": False}, waits=False)
def rda(learner: Rda, rows: Rows):
    d = rows.dense.shape[1]
    z, z0, t, scores = np.zeros(d), 0.0, 0.0, []

    def weights():
        if t == 0:
            return np.zeros(d)
        threshold = learner.l1 + learner.gamma * learner.rho / math.sqrt(t)
        return -math.sqrt(t) / learner.gamma * soft(z / t, threshold)

    def intercept():
        return -math.sqrt(t) / learner.gamma * z0 / t if t > 0 and learner.intercept else 0.0

    for x, y, h, shrink in rows:
        s = weights() @ x
        scores.append(s)
        if h == 0:
            continue
        c = sigmoid(s + intercept()) - (y == 1)
        z = z * shrink + h * c * x
        z0, t = z0 + h * c, t + h
    return np.array(scores), weights(), intercept()


@twin(AdaGrad, {"l1": 0.01}, {"l1": 0.1, "learning_rate": 2.0, "epsilon": 0.1, "intercept": False}, waits=False)
def adagrad(learner: AdaGrad, rows: Rows):
    d = rows.dense.shape[1]
    z, v, z0, v0, t, scores = np.zeros(d), np.zeros(d), 0.0, 0.0, 0.0, []

    def weights():
        mean = z / t if t > 0 else z
        return -learner.learning_rate * t / (learner.epsilon + np.sqrt(v)) * soft(mean, learner.l1)

    def intercept():
        return -learner.learning_rate * z0 / (learner.epsilon + math.sqrt(v0)) if learner.intercept else 0.0

    for x, y, h, shrink in rows:
        s = weights() @ x
        scores.append(s)
        if h == 0:
            continue
        c = sigmoid(s + intercept()) - (y == 1)
        z, v = z * shrink + h * c * x, v * shrink**2 + h * (c * x) ** 2
        z0, v0, t = z0 + h * c, v0 + h * c**2, t + h
    return np.array(scores), weights(), intercept()


@twin(Spauc, {"mu": 1.0}, {"l1": 0.01}, {"mu": 0.3, "l1": 0.1}, steps_in_the_row=lambda learner: learner.l1 == 0)
def spauc(learner: Spauc, rows: Rows):
    w, total, n, scores = np.zeros(rows.dense.shape[1]), {1: 0.0, -1: 0.0}, {1: 0.0, -1: 0.0}, []
    for x, y, h, shrink in rows:
        s = w @ x
        scores.append(s)
        if h == 0:
            continue
        w = w * shrink
        total = {c: total[c] * shrink for c in total}
        total[y] = total[y] + h * x
        n[y] += h
        if n[-y] == 0:
            continue
        t, mean = n[1] + n[-1], {c: total[c] / n[c] for c in total}
        p, a, b = n[1] / t, w @ mean[1], w @ mean[-1]
        c = 2 * (1 - p) * (s - a) if y == 1 else 2 * p * (s - b)
        g = c * (x - mean[y]) - 2 * p * (1 - p) * (1 + b - a) * (mean[1] - mean[-1])
        eta = h * 2 / (learner.mu * max(t - 1, 0) + 1)
        w = soft(w - eta * g, eta * learner.l1)
    return np.array(scores), w, 0.0


def splitmix64(seed: int, count: int) -> int:
    """Steele, Lea, Flood 2014: the number after `count` steps from `seed`."""
    z = (seed + count * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def signs(seed: int, t: float, rank: int) -> np.ndarray:
    """Of the row that makes the count t: the bits of words made from the seed and t."""
    start = splitmix64(seed, int(np.float64(t).view(np.uint64)))
    words = [splitmix64(start, i // 64 + 1) for i in range(rank)]
    return np.array([1.0 if word >> i % 64 & 1 else -1.0 for i, word in enumerate(words)])


class Moments:
    """The mean row and the covariance of each class: in full, or from a sketch of `rank` columns if that is not 0."""

    def __init__(self, d: int, rank: int, seed: int):
        self.rank, self.seed = rank, seed
        self.n = {1: 0.0, -1: 0.0}
        self.total, self.square = {c: np.zeros(d) for c in self.n}, {c: np.zeros((d, d)) for c in self.n}
        self.sketch, self.drawn = {c: np.zeros((d, rank)) for c in self.n}, {c: np.zeros(rank) for c in self.n}

    def shrink(self, factors: np.ndarray):
        for c in self.n:
            self.total[c] *= factors
            self.square[c] *= np.outer(factors, factors)
            self.sketch[c] *= factors[:, None]

    def count(self, x: np.ndarray, y: int, h: float):
        self.n[y] += h
        self.total[y] += h * x
        self.square[y] += h * np.outer(x, x)
        if self.rank:
            r = math.sqrt(h / self.rank) * signs(self.seed, self.n[1] + self.n[-1], self.rank)
            self.sketch[y] += np.outer(x, r)
            self.drawn[y] += r

    def mean_and_covariance(self, c: int):
        n = self.n[c]
        m = self.total[c] / n
        Z = self.sketch[c] - np.outer(m, self.drawn[c])
        return m, Z @ Z.T / n if self.rank else self.square[c] / n - np.outer(m, m)


@twin(
    Opauc,
    {"rank": 3, "l2": 0.1, "seed": 9},
    {"rank": 70, "learning_rate": 0.02},
    {"rank": 0, "l2": 0.1},
    steps_in_the_row=lambda learner: learner.rank > 0,
)
def opauc(learner: Opauc, rows: Rows):
    d = rows.dense.shape[1]
    w, scores, moments = np.zeros(d), [], Moments(d, learner.rank, learner.seed)
    for x, y, h, shrink in rows:
        s = w @ x
        scores.append(s)
        if h == 0:
            continue
        w = w * shrink
        moments.shrink(shrink)
        moments.count(x, y, h)
        if moments.n[-y] == 0:
            continue
        m, C = moments.mean_and_covariance(-y)
        eta = h * learner.learning_rate
        w = (w + eta * ((y - (s - w @ m)) * (x - m) - C @ w)) / (1 + eta * learner.l2)
    return np.array(scores), w, 0.0


def spam_gradient(
    form: str, x: np.ndarray, y: int, w: np.ndarray, p: float, pos: np.ndarray, neg: np.ndarray, s: float
):
    """Of SPAM, with the share of positives and the mean rows of both classes."""
    a, b = w @ pos, w @ neg
    g = 2 * (1 - p) * (s - b - 1) * x if y == 1 else 2 * p * (s - a + 1) * x
    if form == "full":
        g = g + (2 * (1 - p) * (a * pos - s * neg) if y == 1 else 2 * p * (b * neg - s * pos))
        g = g - 2 * p * (1 - p) * (b - a) * (neg - pos)
    return g


@twin(
    Spam,
    {"learning_rate": 0.3, "l2": 2.0},
    {"penalty": "l1", "l1": 0.02},
    {"penalty": "l1", "l1": 0.3},
    {"penalty": "elasticnet", "learning_rate": 0.3, "l1": 0.02, "l2": 2.0},
    {"gradient": "full", "learning_rate": 0.3, "l2": 2.0},
    {"gradient": "full", "penalty": "l1", "l1": 0.02},
    {"gradient": "full", "penalty": "elasticnet", "learning_rate": 0.3, "l1": 0.02, "l2": 2.0},
    steps_in_the_row=lambda learner: learner.penalty == "l2",
)
def spam(learner: Spam, rows: Rows):
    d = rows.dense.shape[1]
    w, n, sums, scores = np.zeros(d), {1: 0.0, -1: 0.0}, {1: np.zeros(d), -1: np.zeros(d)}, []
    l1 = 0 if learner.penalty == "l2" else learner.l1
    l2 = 0 if learner.penalty == "l1" else learner.l2
    for x, y, h, shrink in rows:
        s = w @ x
        scores.append(s)
        if h == 0:
            continue
        w, sums = w * shrink, {c: sums[c] * shrink for c in sums}
        n[y] += h
        sums[y] = sums[y] + h * x
        if n[-y] == 0:
            continue
        t = n[1] + n[-1]
        eta = h * learner.learning_rate / math.sqrt(t)
        g = spam_gradient(learner.gradient, x, y, w, n[1] / t, sums[1] / n[1], sums[-1] / n[-1], s)
        w = soft(w - eta * g, eta * l1) / (1 + eta * l2)
    return np.array(scores), w, 0.0


# The gradient's rate is no simple fraction: rounding would decide whether a pair exactly at the margin is missed.
@twin(
    Oam,
    {"buffer": 3, "learning_rate": 0.8, "seed": 7},
    {"update": "gradient", "learning_rate": 0.0371},
    {"update": "gradient", "learning_rate": 0.0371, "buffer": 2},
    steps_in_the_row=False,
)
def oam(learner: Oam, rows: Rows):
    w = np.zeros(rows.dense.shape[1])
    kept: dict[int, list[np.ndarray]] = {1: [], -1: []}
    n, scores = {1: 0, -1: 0}, []
    for x, y, h, shrink in rows:
        scores.append(w @ x)
        if h == 0:
            continue
        w = w * shrink
        kept = {label: [z * shrink for z in some] for label, some in kept.items()}
        longest = h * learner.learning_rate * max(1, n[-y] / learner.buffer) / 2
        if learner.update == "sequential":
            for z in kept[-y]:
                loss, apart = max(0, 1 - y * (w @ (x - z))), (x - z) @ (x - z)
                if apart > 0:
                    w = w + min(longest, loss / apart) * y * (x - z)
        else:
            w = w + longest * y * sum([x - z for z in kept[-y] if y * (w @ (x - z)) < 1], np.zeros_like(w))
        n[y] += 1
        if n[y] <= learner.buffer:
            kept[y].append(x)
        else:
            place = splitmix64(learner.seed, n[1] + n[-1]) % n[y]
            if place < learner.buffer:
                kept[y][place] = x
    return np.array(scores), w, 0.0


@twin(
    AdaOam,
    {"rank": 3, "l2": 0.1, "seed": 9},
    {"rank": 70, "epsilon": 1.0, "learning_rate": 0.5},
    {"rank": 0, "l2": 0.1},
    steps_in_the_row=False,
)
def adaoam(learner: AdaOam, rows: Rows):
    d = rows.dense.shape[1]
    w, v, scores, moments = np.zeros(d), np.zeros(d), [], Moments(d, learner.rank, learner.seed)
    for x, y, h, shrink in rows:
        scores.append(w @ x)
        if h == 0:
            continue
        w = w * shrink * (learner.epsilon + np.sqrt(v)) / (learner.epsilon + shrink * np.sqrt(v))
        v = v * shrink**2
        moments.shrink(shrink)
        moments.count(x, y, h)
        if moments.n[-y] == 0:
            continue
        m, C = moments.mean_and_covariance(-y)
        g = learner.l2 * w + (w @ (x - m) - y) * (x - m) + C @ w
        v = v + h * g**2
        w = w - h * learner.learning_rate * g / (learner.epsilon + np.sqrt(v))
    return np.array(scores), w, 0.0


@twin(
    Solam,
    {"learning_rate": 0.5, "radius": 0.2},
    {"learning_rate": 100.0, "radius": 0.1},
    {"radius": 50.0, "expected_features": 5},
    {"radius": 0.5, "expected_features": 12},
    swaps=lambda learner: learner.expected_features == 0,
    waits=lambda learner: learner.expected_features == 0,
)
def solam(learner: Solam, rows: Rows):
    d, r = rows.dense.shape[1], learner.radius
    start, learned, a, b, alpha = np.zeros(d), np.zeros(d), 0.0, 0.0, 0.0  # w = start + learned
    if learner.expected_features:
        start[: learner.expected_features] = r / math.sqrt(learner.expected_features)
        a, b, alpha = r, r, 2 * r
    start_sum, learned_sum, gamma_sum, means, scores = np.zeros(d), np.zeros(d), 0.0, Means(), []

    def weights():
        return (start_sum + learned_sum) / gamma_sum if gamma_sum > 0 else np.zeros(d)

    for x, y, h, shrink in rows:
        scores.append(weights() @ x)
        if h == 0:
            continue
        learned, learned_sum = learned * shrink, learned_sum * shrink
        p = means.count(scores[-1], y, h)
        s, gamma = (start + learned) @ x, h * learner.learning_rate / math.sqrt(means.n[1] + means.n[-1])
        start_sum, learned_sum = start_sum + gamma * start, learned_sum + gamma * learned
        gamma_sum += gamma
        if y == 1:
            g = 2 * (1 - p) * (s - a - 1 - alpha) * x
            a, alpha = a + gamma * 2 * (1 - p) * (s - a), alpha - gamma * 2 * (1 - p) * (s + p * alpha)
        else:
            g = 2 * p * (s - b + 1 + alpha) * x
            b, alpha = b + gamma * 2 * p * (s - b), alpha + gamma * 2 * p * (s - (1 - p) * alpha)
        learned = learned - gamma * g
        norm = np.linalg.norm(start + learned)
        if norm > r:
            start, learned = start * r / norm, learned * r / norm
        a, b, alpha = np.clip(a, -r, r), np.clip(b, -r, r), np.clip(alpha, -2 * r, 2 * r)
    return np.array(scores), weights(), 0.0


def on_the_l1_ball(w: np.ndarray, r: float) -> np.ndarray:
    if abs(w).sum() <= r:
        return w
    largest = np.sort(abs(w))[::-1]
    thresholds = (np.cumsum(largest) - r) / np.arange(1, len(w) + 1)
    return soft(w, thresholds[largest > thresholds][-1])


@twin(
    Fsauc,
    {"radius": 0.7, "expected_rows": 44},
    {"radius": 2.0, "learning_rate": 0.3},
    {"radius": 1.5, "learning_rate": 20.0, "expected_rows": 44},
    steps_in_the_row=lambda learner: learner.radius > 100,
)
def fsauc(learner: Fsauc, rows: Rows):
    d, r, n = rows.dense.shape[1], learner.radius, learner.expected_rows
    m = math.floor(0.5 * math.log2(2 * n / math.log2(n))) - 1
    n0, L = n // m, math.log(12 / 0.1)
    K = 2 + math.sqrt(2 * L)
    R, beta, eta = 2 * math.sqrt(3) * r, 9.0, learner.learning_rate
    D = 2 * math.sqrt(2) * R
    v_1, alpha_1 = np.zeros(d + 2), 0.0  # w, a, b
    v, alpha, v_sum, h_sum, stage, stage_rows = v_1, alpha_1, np.zeros(d + 2), 0.0, 0, 0
    means, sums, scores = Means(), {1: np.zeros(d), -1: np.zeros(d)}, []

    def weights():
        return v_sum[:d] / h_sum if h_sum > 0 else v_1[:d]

    for x, y, h, shrink in rows:
        scores.append(weights() @ x)
        if h == 0:
            continue
        shrink = np.append(shrink, [1, 1])
        v, v_1, v_sum = v * shrink, v_1 * shrink, v_sum * shrink
        sums = {c: sums[c] * shrink[:d] + (h * x if c == y else 0) for c in sums}
        p = means.count(scores[-1], y, h)
        s, a, b = v[:d] @ x, v[d], v[d + 1]
        if y == 1:
            g = np.append((1 - p) * (s - a - 1 - alpha) * x, [-(1 - p) * (s - a), 0])
            g_alpha = -(1 - p) * (s + p * alpha)
        else:
            g = np.append(p * (s - b + 1 + alpha) * x, [0, -p * (s - b)])
            g_alpha = p * (s - (1 - p) * alpha)
        v, alpha = v - h * eta * g, np.clip(alpha + h * eta * g_alpha, -2 * r, 2 * r)
        v = np.append(on_the_l1_ball(v[:d], r), np.clip(v[d:], -r, r))
        away = np.linalg.norm(v - v_1)
        if away > R:
            v = v_1 + (v - v_1) * R / away
        alpha = alpha_1 + np.clip(alpha - alpha_1, -D, D)
        v_sum, h_sum, stage_rows = v_sum + h * v, h_sum + h, stage_rows + 1
        if stage_rows == n0 and stage < m:
            stage, stage_rows = stage + 1, 0
            v = v_1 = v_sum / h_sum
            xbar = {c: sums[c] / max(means.n[c], 1e-300) for c in sums}
            alpha = alpha_1 = v_1[:d] @ (xbar[-1] - xbar[1])
            v_sum, h_sum, q, R = np.zeros(d + 2), 0.0, min(p, 1 - p), R / 2
            few, rare = q * n0 - math.sqrt(2 * n0 * L), q - math.sqrt(2 * L / n0)
            D = 2 * math.sqrt(2) * R + 12 * math.sqrt(2) * K * r / math.sqrt(few) if few > 0 else 1e7
            faster = 9 + 288 * K**2 / rare if rare > 0 else 1e7
            eta, beta = min(math.sqrt(faster / beta) * eta / 2, eta), faster
    return np.array(scores), weights(), 0.0


def textbook(learner: Learner, block: Block, d: int, scale: str = "unit"):
    """The scores before learning, the weights of scaled rows, the intercept, and the features' largest values."""
    rows = Rows(block, d, scale)
    return *TWINS[type(learner)].run(learner, rows), rows.largest
