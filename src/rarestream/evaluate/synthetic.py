"""A synthetic stream of rare events with known weights, so that the best possible AUC is known.

A row is one event of a log with several fields, `FIELDS` unless asked otherwise. Each field takes one of its values,
with probabilities of a Zipf law, and every value of every field has its own column, scattered over `D` columns, or more
where there are more values, as a hash would. A few columns have a planted weight; the weights of all others are zero:

    log odds of a positive = intercept + sum of the planted weights of the row's columns.

No ranking is better than that by the log odds: their AUC is an upper limit for any learner.

With noise, the labels of that share of the rows say nothing of them: they are positive with the probability of any row.
Other rows are as before, so that the share of positives stays, the order of the log odds too, and only their AUC falls:

    probability of a positive = (1 - noise) / (1 + exp(-log odds)) + noise * positives,
    best AUC = (1 - noise) * (best AUC without noise) + noise / 2.

In a drifting stream the planted columns stay and their weights turn over. With t the number of the row, every planted
weight w_j moves from one independent Gaussian number to the next along a quarter of a circle, each with a phase u_j of
its own, uniform in [0, 1), and all of the standard deviation `strength`:

    m + r = 2 t / drift + u_j,    m whole, 0 <= r < 1
    w_j(t) = W_jm cos(pi r / 2) + W_j,m+1 sin(pi r / 2).

As cos^2 + sin^2 = 1, the weights have the same distribution at every t; those of rows `drift` or more apart share no
W and are independent. The intercept follows, so that the expected share of positives stays. Weights and intercept are
those of the first row of a block of `BLOCK` rows for all of it, the same in all parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

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
    """Some rows, and the log odds from which their labels were drawn: without noise, which changes no order."""

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
    strength: float = 1.3  # standard deviation of the planted weights
    drift: int = 0  # the number of rows after which the weights have turned over; 0: they stay
    _chosen: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # the planted columns
    noise: float = 0.0  # the share of rows whose labels say nothing of them

    @classmethod
    def plant(
        cls,
        seed: int = 0,
        positives: float = 0.02,
        planted: int = 300,
        strength: float = 1.3,
        *,
        rarest: float = 1e-3,
        drift: int = 0,
        fields: int | Sequence[int] = FIELDS,
        noise: float = 0.0,
    ) -> Planted:
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
        rarest : float, between 0 and 1
            Planted columns are in more than this share of the rows. With a small one, many columns can be planted that
            are too rare to be learned well.
        drift : int, >= 0
            Number of rows after which the planted weights have turned over: they are independent of what they were.
            With 0 they never change.
        fields : int or sequence of int, >= 1
            Number of fields, from 2 values to `LARGEST_FIELD` in geometric steps; or the number of values of each.
        noise : float, between 0 and 1
            Share of rows whose labels say nothing of them.

        Returns
        -------
        Planted
            `weights` and `intercept` are those of the first rows; `truth` has those of later ones.

        Raises
        ------
        ValueError
            If `drift` is negative.
        """
        if drift < 0:
            raise ValueError(f"Planted: drift must be >= 0 rows, got {drift}.")
        rng = np.random.default_rng([seed, 7])
        sizes = field_sizes(fields)
        first = np.concatenate([[0], np.cumsum(sizes)])
        width = max(D, 1 << int(first[-1] - 1).bit_length())
        columns = rng.permutation(width)[: first[-1]].astype(np.int32)
        shows = np.zeros(width)
        for number, size in enumerate(sizes):
            shows[columns[first[number] : first[number + 1]]] = np.diff(_zipf_edges(int(size)))
        weights = np.zeros(width)
        known = np.flatnonzero(shows > rarest)
        chosen = rng.choice(known, min(planted, len(known)), replace=False)
        weights[chosen] = rng.normal(0, strength, len(chosen))
        stream = cls(seed, positives, weights, 0.0, shows, first, columns, strength, drift, chosen, noise)
        if drift:
            weights[:] = stream._turned(0)
        object.__setattr__(stream, "intercept", stream._balanced(weights))
        return stream

    def truth(self, row: int) -> tuple[NDArray[np.float64], float]:
        """Return the weights of every column and the intercept at the number of a row, from 0, of any part."""
        row -= row % BLOCK
        if not self.drift or not row:
            return self.weights, self.intercept
        weights = self._turned(row)
        return weights, self._balanced(weights)

    def rows(self, n: int, part: int = 0) -> Iterator[Part]:
        """Yield `n` rows in blocks. Parts are independent of each other; a part always has the same rows."""
        for at in range(0, n, BLOCK):
            size = min(BLOCK, n - at)
            columns = self._draw(at // BLOCK, part)[:size]
            weights, intercept = self.truth(at)
            log_odds = intercept + weights[columns].sum(axis=1)
            luck = np.random.default_rng([self.seed, part, at // BLOCK, 1]).random(BLOCK)[:size]
            chances = 1 / (1 + np.exp(-log_odds))
            if self.noise:
                chances = (1 - self.noise) * chances + self.noise * self.positives
            labels = np.where(luck < chances, 1, -1).astype(np.int8)
            yield Part(_block(columns, labels), log_odds)

    def values(self, n: int, part: int = 0) -> Iterator[NDArray[np.int64]]:
        """Yield which value each field of the same `n` rows has, from 0, the most frequent one: a column per field."""
        for at in range(0, n, BLOCK):
            yield self._values(at // BLOCK, part)[: min(BLOCK, n - at)]

    def _values(self, number: int, part: int) -> NDArray[np.int64]:
        """Return which value each field of a full block of rows has."""
        rng = np.random.default_rng([self.seed, part, number, 0])
        values = np.empty((BLOCK, len(self.sizes)), np.int64)
        for place, size in enumerate(self.sizes.tolist()):
            value = np.searchsorted(_zipf_edges(size), rng.random(BLOCK), side="right") - 1
            values[:, place] = np.minimum(value, size - 1)
        return values

    def _draw(self, number: int, part: int) -> NDArray[np.int32]:
        """Return the columns of a full block of rows: one per field, ascending within a row."""
        columns: NDArray[np.int32] = self._columns[self._first[:-1] + self._values(number, part)]
        columns.sort(axis=1)
        return columns

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of values of each field."""
        return np.diff(self._first)

    def planted(self, row: int = 0) -> Iterator[tuple[int, int, float]]:
        """Yield the number of the field, that of the value and the weight of every planted column at a row."""
        weights = self.truth(row)[0][self._columns]
        for number in np.flatnonzero(weights).tolist():
            place = int(np.searchsorted(self._first, number, side="right")) - 1
            yield place, number - int(self._first[place]), float(weights[number])

    def _turned(self, row: int) -> NDArray[np.float64]:
        """Return the weights of every column at a row of a drifting stream."""
        phases = np.random.default_rng([self.seed, 0, 0, 3]).random(len(self._chosen))
        place, angle = divmod(2 * row / self.drift + phases, 1.0)
        numbers = place.astype(np.int64)
        weights = np.zeros(len(self.weights))
        for m in np.unique(numbers):
            mine = numbers == m
            now, then = (
                np.random.default_rng([self.seed, 0, one, 2]).normal(0, self.strength, len(mine)) for one in (m, m + 1)
            )
            turned = now * np.cos(np.pi / 2 * angle) + then * np.sin(np.pi / 2 * angle)
            weights[self._chosen[mine]] = turned[mine]
        return weights

    def _balanced(self, weights: NDArray[np.float64]) -> float:
        """Return the intercept for which the expected share of positives is as asked, on rows of no other use."""
        return _intercept(weights[self._sample].sum(axis=1), self.positives)

    @cached_property
    def _sample(self) -> NDArray[np.int32]:
        return np.concatenate([self._draw(number, 2) for number in range(4)])


def field_sizes(fields: int | Sequence[int]) -> NDArray[np.int64]:
    """Return the number of values of each field: of so many, in geometric steps, or as given."""
    if isinstance(fields, int):
        return np.geomspace(2, LARGEST_FIELD, fields).astype(np.int64)
    return np.array(fields, np.int64)


def write_svmlight(blocks: Iterable[Block], path: Path) -> int:
    """Write blocks as svmlight text, compressed by the suffix of the name. Returns bytes of text."""
    from rarestream.writers.files import opened
    from rarestream.writers.svmlight import SvmlightWriter

    with opened(str(path), level=1) as file:
        writer = SvmlightWriter(cast(BinaryIO, file))
        for block in blocks:
            writer.write(block)
        writer.close()
    return file.size


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
