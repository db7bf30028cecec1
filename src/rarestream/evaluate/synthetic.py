"""A synthetic stream of rare events with known weights, so that the best possible AUC is known.

A row is one event of a log with `FIELDS` fields. Each field takes one of its values, with probabilities of a Zipf law,
and every value of every field has its own column, scattered over `D` columns as a hash would. A few columns have a
planted weight; the weights of all others are zero:

    log odds of a positive = intercept + sum of the planted weights of the row's columns.

No ranking is better than that by the log odds: their AUC is an upper limit for any learner.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block, seal

D = 2**18
FIELDS = 24
BLOCK = 8192
LARGEST_FIELD = 60_000  # values of the largest field; the smallest has two
ZIPF = 1.1
HELD_OUT = 1  # number of the part for evaluation; part 0 is for training


class Part(NamedTuple):
    """Some rows, and the log odds from which their labels were drawn."""

    block: Block
    log_odds: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Planted:
    """A synthetic rare-event stream with planted weights, determined by its seed."""

    seed: int
    positives: float  # the share of positive rows
    weights: NDArray[np.float64]  # of every column, most of them zero
    intercept: float
    shows: NDArray[np.float64]  # probability of each column to be in a row
    _first: NDArray[np.int64]  # number of each field's first value, all values counted through
    _columns: NDArray[np.int32]  # the column of every value

    @classmethod
    def plant(cls, seed: int = 0, positives: float = 0.02, planted: int = 300, strength: float = 1.3) -> Planted:
        """Make a stream.

        Parameters
        ----------
        seed : int
            Determines weights and rows.
        positives : float, between 0 and 1
            Expected share of positive rows.
        planted : int
            Number of non-zero weights, on columns that are frequent enough to be learned.
        strength : float
            Standard deviation of the weights, which are Gaussian.
        """
        rng = np.random.default_rng([seed, 7])
        sizes = np.geomspace(2, LARGEST_FIELD, FIELDS).astype(np.int64)
        first = np.concatenate([[0], np.cumsum(sizes)])
        columns = rng.permutation(D)[: first[-1]].astype(np.int32)
        shows = np.zeros(D)
        for field in range(FIELDS):
            edges = _zipf_edges(int(sizes[field]))
            shows[columns[first[field] : first[field + 1]]] = np.diff(edges)
        weights = np.zeros(D)
        known = np.flatnonzero(shows > 1e-3)
        chosen = rng.choice(known, min(planted, len(known)), replace=False)
        weights[chosen] = rng.normal(0, strength, len(chosen))
        stream = cls(seed, positives, weights, 0.0, shows, first, columns)
        odds = np.concatenate([weights[stream._draw(part, 2)].sum(axis=1) for part in range(4)])
        object.__setattr__(stream, "intercept", _intercept(odds, positives))
        return stream

    def rows(self, n: int, part: int = 0) -> Iterator[Part]:
        """Yield `n` rows in blocks. Parts are independent of each other; a part always has the same rows."""
        for at in range(0, n, BLOCK):
            size = min(BLOCK, n - at)
            columns = self._draw(at // BLOCK, part)[:size]
            log_odds = self.intercept + self.weights[columns].sum(axis=1)
            luck = np.random.default_rng([self.seed, part, at // BLOCK, 1]).random(BLOCK)[:size]
            labels = np.where(luck < 1 / (1 + np.exp(-log_odds)), 1, -1).astype(np.int8)
            yield Part(_block(columns, labels), log_odds)

    def _draw(self, number: int, part: int) -> NDArray[np.int32]:
        """Return the columns of a full block of rows: one per field, ascending within a row."""
        rng = np.random.default_rng([self.seed, part, number, 0])
        columns = np.empty((BLOCK, FIELDS), np.int32)
        for field in range(FIELDS):
            size = int(self._first[field + 1] - self._first[field])
            value = np.searchsorted(_zipf_edges(size), rng.random(BLOCK), side="right") - 1
            columns[:, field] = self._columns[self._first[field] + np.minimum(value, size - 1)]
        columns.sort(axis=1)
        return columns


def write_svmlight(blocks: Iterable[Block], path: Path) -> int:
    """Write blocks whose values are all 1 as svmlight text, gzipped if the name ends in .gz. Returns bytes of text."""
    import gzip
    from concurrent.futures import Future, ThreadPoolExecutor

    words = _Words()
    size = 0
    with path.open("wb") as raw, ThreadPoolExecutor(1) as beside:
        file: BinaryIO | gzip.GzipFile = raw
        if path.suffix == ".gz":
            # No name and no time in the header: the same rows give the same bytes.
            file = gzip.GzipFile(filename="", mode="wb", compresslevel=1, fileobj=raw, mtime=0)
        written: Future[int] | None = None
        for block in blocks:
            text = words.text(block)
            if written is not None:
                size += written.result()
            written = beside.submit(file.write, text)
        if written is not None:
            size += written.result()
        if file is not raw:
            file.close()
    return size


class _Words:
    """Formats rows with a lookup table of padded words; the padding is removed from the whole block at once."""

    def __init__(self) -> None:
        self._words = np.zeros(0, "S1")

    def text(self, block: Block) -> bytes:
        assert block.labels is not None
        if (block.values != 1).any():
            raise ValueError("write_svmlight: all values must be 1.")
        if len(self._words) < block.width:
            self._words = np.array([f" {j + 1}:1" for j in range(block.width)], "S")
        sizes = np.diff(block.indptr) + 2  # a label, the features, a line end
        ends = np.cumsum(sizes)
        heads, tails = ends - sizes, ends - 1
        body = np.ones(len(block.indices) + 2 * len(block), bool)
        body[heads] = body[tails] = False
        out = np.zeros(len(body), self._words.dtype)
        out[body] = self._words[block.indices]
        out[heads] = np.where(block.labels > 0, b"+1", b"-1")
        out[tails] = b"\n"
        padded = out.view(np.uint8)
        return bytes(padded[padded != 0])


@cache
def _zipf_edges(size: int) -> NDArray[np.float64]:
    """Return the cumulative distribution of a Zipf law: value i has the probability edges[i + 1] - edges[i]."""
    shares = (np.arange(size) + 1.5) ** -ZIPF
    edges = np.concatenate([[0.0], np.cumsum(shares)])
    return np.asarray(edges / edges[-1])


def _intercept(odds: NDArray[np.float64], share: float) -> float:
    """Return the intercept for which the mean probability is `share`, by bisection."""
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        if np.mean(1 / (1 + np.exp(-(odds + middle)))) < share:
            low = middle
        else:
            high = middle
    return math.fsum((low, high)) / 2


def _block(columns: NDArray[np.int32], labels: NDArray[np.int8]) -> Block:
    n, k = columns.shape
    indices = columns.reshape(-1)
    width = int(indices.max()) + 1 if len(indices) else 0
    starts, ones = np.arange(n + 1, dtype=np.int64) * k, np.ones(n * k, np.float32)
    return Block(seal(starts), seal(indices), seal(ones), width, labels, own=True)
