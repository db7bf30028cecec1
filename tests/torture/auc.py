"""Adversarial streams for the AUC: exact, streaming within its bound, windowed, saved, merged, with intervals."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from rarestream import StreamingAuc, WindowedAuc, auc, auc_interval
from rarestream.errors import DataError
from tests.metrics.auc_textbook import auc_of_all_pairs

SMALL, LARGE = 40, 2  # streams in a round
ROUNDING = 1e-12  # of sums with importances; without them, pairs are counted in integers
EXTREME = [0.0, 5e-324, 1e-300, 1e-170, 1e-20, 1.0, 3.0, 1e20, 1e150, 1e300]


def run_round(rng: random.Random, folder: Path) -> int:
    numbers = np.random.default_rng(rng.getrandbits(32))
    for _ in range(SMALL):
        labels, scores, weights = stream(rng, numbers, rng.choice([2, 5, 30, 60]))
        check_small(rng, labels, scores, weights)
    for _ in range(LARGE):
        labels, scores, _ = stream(rng, numbers, rng.choice([100_000, 250_000]))
        weights = None if rng.random() < 0.5 else 2.0 ** numbers.integers(0, rng.choice([2, 20]), len(labels))
        check_large(rng, labels, scores, weights)
    return SMALL + LARGE


def stream(rng: random.Random, numbers: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
    """Labels, scores in a difficult order, and importances or None."""
    labels = np.where(numbers.random(n) < rng.choice([0.5, 0.05, 0.9]), 1, -1)
    if rng.random() < 0.2:
        labels.sort()
    kind = rng.choice(
        ["normal", "constant", "two", "ties", "exponential", "denormal", "infinite", "alternating", "own"]
    )
    scores = numbers.normal(size=n) + rng.choice([0, 1, -3]) * labels
    if kind == "constant":
        scores = np.full(n, rng.choice([0.0, -1.5, 1e308]))
    elif kind == "two":
        scores = np.where(numbers.random(n) < 0.5, -1.0, 1.0)
    elif kind == "ties":
        scores = np.round(scores)
    elif kind == "exponential":
        scores = numbers.choice([-1.0, 1.0], n) * 10.0 ** numbers.uniform(-300, 300, n)
    elif kind == "denormal":
        scores = numbers.integers(-9, 9, n) * 5e-324
    elif kind == "infinite":
        scores = numbers.choice([-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf], n)
    elif kind == "alternating":
        scores = np.where(np.arange(n) % 2, 1.0, -1.0) * np.arange(n)
    elif kind == "own":
        scores = labels * rng.choice([1.0, -1.0])
    order = rng.choice(["as it is", "sorted", "reversed", "zigzag"])
    if order != "as it is":
        at = np.argsort(scores, kind="stable")
        at = at[::-1] if order == "reversed" else at
        at = np.concatenate([at[::2], at[1::2][::-1]]) if order == "zigzag" else at
        labels, scores = labels[at], scores[at]
    weights = None
    if rng.random() < 0.6:
        some = rng.sample(EXTREME, rng.randint(1, len(EXTREME)))
        weights = numbers.choice(some, n)
    return labels, np.ascontiguousarray(scores, np.float64), weights


def check_small(rng: random.Random, labels: Any, scores: Any, weights: Any) -> None:
    """Against all pairs in exact fractions."""
    said = f"{labels.tolist()}, {scores.tolist()}, {None if weights is None else weights.tolist()}"
    counts = labels if weights is None else labels[weights > 0]
    streaming = StreamingAuc()
    windowed = WindowedAuc(rng.choice([2, 7, 100]))
    for tool in (streaming, windowed):
        try:
            tool.add(labels, scores, weights)
        except DataError:
            assert may_be_refused(weights), f"{said}: refused"
    if len(set(counts.tolist())) < 2:
        for function in (auc, auc_interval):
            try:
                function(labels, scores, weights)
            except DataError:
                continue
            raise AssertionError(f"{said}: {function.__name__} of one class")
        assert math.isnan(streaming.auc)
        return
    exact = auc_of_all_pairs(labels, scores, weights)
    for function in (auc, auc_interval):
        try:
            close(function(labels, scores, weights), exact, 0.0, f"{function.__name__}: {said}")
        except DataError:
            assert may_be_refused(weights), f"{said}: {function.__name__} refused"
    if streaming.n_pos + streaming.n_neg:
        close(streaming.auc, exact, streaming.auc.bound, f"StreamingAuc: {said}")
    check_window(windowed, labels, scores, weights, said)
    for tool in (streaming, windowed):
        assert same(tool.state(), type(tool).from_state(tool.state()).state()), f"{said}: state"


def may_be_refused(weights: Any) -> bool:
    """Importances whose squares or products float64 cannot hold."""
    return weights is not None and (weights.max() > 1e100 or weights[weights > 0].min() < 1e-100)


def check_window(windowed: WindowedAuc, labels: Any, scores: Any, weights: Any, said: str) -> None:
    if not len(windowed):
        return
    if weights is not None:
        labels, scores, weights = labels[weights > 0], scores[weights > 0], weights[weights > 0]
    labels, scores = labels[-windowed.window :], scores[-windowed.window :]
    weights = None if weights is None else weights[-windowed.window :]
    assert len(windowed) == len(labels)
    if len(set(labels.tolist())) < 2:
        assert math.isnan(windowed.auc)
        return
    try:
        close(windowed.auc, auc_of_all_pairs(labels, scores, weights), 0.0, f"WindowedAuc: {said}")
    except DataError:
        assert may_be_refused(weights), f"{said}: WindowedAuc refused"


def check_large(rng: random.Random, labels: Any, scores: Any, weights: Any) -> None:
    """Beyond what a sketch keeps: within the bound; where it is cut, saved or merged leaves no other trace."""
    exact = by_sorting(labels, scores, weights)
    if weights is None:
        assert auc(labels, scores) == float(exact)
    close(auc_interval(labels, scores, weights), exact, 0.0, "auc_interval")
    whole, pieces, merged = StreamingAuc(), StreamingAuc(), StreamingAuc()
    whole.add(labels, scores, weights)
    close(whole.auc, exact, whole.auc.bound, "StreamingAuc")
    cuts = [0, *sorted(rng.randrange(len(labels)) for _ in range(4)), len(labels)]
    for a, b in itertools.pairwise(cuts):
        part = (labels[a:b], scores[a:b], None if weights is None else weights[a:b])
        pieces = StreamingAuc.from_state(pieces.state())
        pieces.add(*part)
        one = StreamingAuc()
        one.add(*part)
        merged.merge(one)
    assert same(whole.state(), pieces.state()), "where a stream is cut and saved shows in its state"
    close(merged.auc, exact, merged.auc.bound, "merged")
    assert (merged.n_pos, merged.n_neg) == (whole.n_pos, whole.n_neg)


def by_sorting(labels: Any, scores: Any, weights: Any) -> Fraction:
    """The AUC of many rows whose importances are whole numbers, in whole numbers."""
    whole = np.ones(len(labels), np.int64) if weights is None else weights.astype(np.int64)
    _, rank = np.unique(scores, return_inverse=True)
    positives, negatives = (np.zeros(rank.max() + 1, np.int64) for _ in range(2))
    np.add.at(positives, rank[labels > 0], whole[labels > 0])
    np.add.at(negatives, rank[labels < 0], whole[labels < 0])
    twice = 2 * np.cumsum(negatives) - negatives  # twice what lies below, a tie counting half
    won = sum(a * b for a, b in zip(positives.tolist(), twice.tolist(), strict=True))
    return Fraction(won, 2 * int(positives.sum()) * int(negatives.sum()))


def close(found: float, exact: Fraction, bound: float, what: str) -> None:
    assert not math.isnan(found), f"nan; {what}"
    assert abs(Fraction(float(found)) - exact) <= Fraction(bound) + Fraction(ROUNDING), (
        f"{float(found)!r}, not {float(exact)!r} within {bound}; {what}"
    )
    low, high = getattr(found, "low", 0.0), getattr(found, "high", 1.0)
    assert 0 <= low <= found <= high <= 1, f"the interval [{low}, {high}] without {float(found)}; {what}"


def same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return left.keys() == right.keys() and all(left[name].tobytes() == right[name].tobytes() for name in left)
