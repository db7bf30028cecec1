"""Many classes in one pass, beside scikit-learn's one-vs-rest: whole calls, and the macro AUC of rows held out.

The rows are text of 20 topics, made up: seeded, with about 80 different words a row out of 100,000 (Zipf-Mandelbrot, as
in shapes.py). Every topic has 300 words of its own; a row has a few words of its topic and of one other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import peers
from rarestream import Block, OneVsRest, auc
from shapes import EXPONENT, SHIFT
from timing import Contestant, interleaved, timed, touch

CLASSES, ROWS, HELD_OUT, D = 20, 11_000, 5_000, 100_000
WORDS = 96  # drawn for a row: about 80 are different
TOPIC_WORDS, OWN, OTHER = 300, 0.06, 0.04  # words of a topic; share of a row's own topic, and of one other
OURS, CALIBRATED = "OneVsRest(calibrate=False)", "OneVsRest"  # SGDClassifier gives no probabilities
ONE_PASS, DEFAULT = "SGD l1, one pass", "SGD l1, default passes"
BARS = {ONE_PASS: (10, 15), DEFAULT: (15, 50)}  # times faster: must, aim

Rows = tuple[Any, NDArray[np.int64]]  # a CSR matrix, and the class of each row


def text(rows: int, part: int) -> Rows:
    """Rows of text, and their topics; parts have the same topics and other rows."""
    from scipy.sparse import csr_matrix

    words = np.random.default_rng(0)
    columns = words.permutation(D)
    topics = np.stack([200 + words.permutation(D // 5)[:TOPIC_WORDS] for _ in range(CLASSES)])
    generator = np.random.default_rng([1, part])
    labels = generator.integers(0, CLASSES, rows)
    shape = (rows, WORDS)
    drawn = _zipf(generator, D, SHIFT, shape)
    for share, topic in ((OTHER, generator.integers(0, CLASSES, rows)), (OWN, labels)):
        own = topics[topic[:, None], _zipf(generator, TOPIC_WORDS, SHIFT, shape)]
        drawn = np.where(generator.random(shape) < share, own, drawn)
    entries = (np.ones(rows * WORDS), (np.repeat(np.arange(rows), WORDS), columns[drawn].ravel()))
    X = csr_matrix(entries, shape=(rows, D))
    X.sum_duplicates()
    X.data = 1 + np.log(X.data)
    X.data /= np.repeat(np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()), np.diff(X.indptr))
    return X, labels


def _zipf(generator: np.random.Generator, size: int, shift: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
    edges = np.cumsum((np.arange(size) + shift) ** -EXPONENT)
    return np.minimum(np.searchsorted(edges, generator.random(shape) * edges[-1]), size - 1)


def measure(rounds: int, chosen: set[str]) -> dict[str, dict[str, float]]:
    """CPU seconds of each fit, conversions included, and the macro AUC of rows held out."""
    X, y = text(ROWS, 0)
    test, truth = text(HELD_OUT, 1)
    contestants = {
        OURS: _fit(lambda: _ours(X, y, calibrate=False), X),
        CALIBRATED: _fit(lambda: _ours(X, y), X),
    }
    scores = {name: lambda: _ours(X, y).score(Block.of(test)) for name in contestants}
    if "sklearn" in chosen:
        for name, settings in {ONE_PASS: {"max_iter": 1, "tol": None}, DEFAULT: {}}.items():
            contestants[name] = _fit(lambda settings=settings: peers.one_vs_rest(**settings).fit(X, y), X)
            scores[name] = lambda settings=settings: peers.one_vs_rest(**settings).fit(X, y).decision_function(test)
    best = interleaved(contestants, rounds, seldom=(DEFAULT,))
    return {
        "seconds": {name: cost.cpu for name, cost in best.items()},
        "macro AUC": {name: macro_auc(truth, found()) for name, found in scores.items()},
    }


def _ours(X: Any, y: NDArray[np.int64], calibrate: bool = True) -> OneVsRest:
    model = OneVsRest(classes=range(CLASSES), calibrate=calibrate)
    model.learn(Block.of(X), y)
    return model


def _fit(action: Callable[[], Any], X: Any) -> Contestant:
    def prepare() -> Callable[[], Any]:
        touch(X.indices, X.data)
        return action

    return timed(prepare)


def macro_auc(truth: NDArray[np.int64], scores: NDArray[np.float64]) -> float:
    """Mean of the AUCs of each class against all others."""
    return float(np.mean([auc(truth == c, scores[:, c]) for c in range(scores.shape[1])]))
