"""Data of the shapes of Table I of the FTRL-AUC paper, made up: seeded, quick, with a planted signal.

Rows, features and mean non-zeros follow the table. Text shapes draw features from a Zipf-Mandelbrot law (exponent 1.05,
shift 2.7) whose ranks are scattered over the columns by a random permutation, with log-normal row lengths and
tf-idf-like values in unit rows. Click shapes have 15 fields of the cardinalities of a public click log, each Zipf,
hashed into d slots, every value 1. A name that ends in "-uniform" draws features evenly: the worst case for caches.

Speed ratios carry over to real data of these shapes; AUC values do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import machine
from rarestream import Block

EXPONENT, SHIFT = 1.05, 2.7
SEED = 20
FIELDS = (24, 7, 7, 4737, 7745, 26, 8552, 559, 36, 2_686_408, 6_729_486, 8251, 5, 4, 2626)

Draw = Callable[[np.random.Generator, NDArray[np.int64]], NDArray[np.int64]]


@dataclass(frozen=True)
class Shape:
    name: str
    n: int  # rows
    d: int  # features
    k: int  # mean non-zeros of a row
    positives: float  # their share
    fields: bool = False
    uniform: bool = False


TABLE = (
    Shape("real-sim", 72_309, 20_958, 52, 0.31),
    Shape("rcv1b", 100_000, 47_236, 74, 0.52),
    Shape("news20b", 19_996, 1_355_191, 455, 0.50),
    Shape("avazu", 500_000, 10**6, 15, 0.12, fields=True),
    Shape("avazu-2^24", 500_000, 2**24, 15, 0.12, fields=True),
)
SHAPES = {
    name: Shape(name, s.n, s.d, s.k, s.positives, s.fields, uniform)
    for s in TABLE
    for name, uniform in ((s.name, False), (f"{s.name}-uniform", True))
}


@dataclass(frozen=True)
class Data:
    shape: Shape
    train: Block
    test: Block
    svmlight: Path
    vw: Path


def make(shape: Shape, fraction: float = 1.0) -> Data:
    """The shape's rows, in memory and as text files; a fifth more rows to test on."""
    n = int(shape.n * fraction)
    everything = rows(shape, n + n // 5)
    stem = machine.CACHE / f"{shape.name}-{n}-{SEED}"
    data = Data(shape, everything[:n], everything[n:], stem.with_suffix(".svm"), stem.with_suffix(".vw"))
    for path in (data.svmlight, data.vw):
        if not path.exists():
            aside = path.with_name(path.name + ".part")
            machine.write_text(aside, data.train, vw=path.suffix == ".vw")
            aside.rename(path)
    return data


def rows(shape: Shape, n: int, seed: int = SEED) -> Block:
    """So many rows of the shape, in memory."""
    generator = np.random.default_rng(seed)
    indptr, indices = (_clicks if shape.fields else _text)(shape, n, generator)
    sizes = np.diff(indptr)
    values = np.ones(len(indices), np.float32)
    if not shape.fields:
        values = np.exp(generator.normal(0.0, 0.6, len(indices))).astype(np.float32)
        norms = np.sqrt(np.add.reduceat(values * values, indptr[:-1]))
        values /= np.repeat(norms, sizes).astype(np.float32)
    planted = generator.normal(size=shape.d).astype(np.float32)
    signal = np.add.reduceat(planted[indices] * values, indptr[:-1])
    signal = 4 * (signal - signal.mean()) / signal.std() + generator.logistic(size=n)
    labels = np.where(signal > np.quantile(signal, 1 - shape.positives), 1, -1)
    return Block.of((indptr, indices, values), labels)


def _text(shape: Shape, n: int, generator: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    names = generator.permutation(shape.d).astype(np.int32)
    draw = partial(generator.integers, 0, shape.d) if shape.uniform else partial(_zipf, generator, shape.d)
    draws = float(shape.k)
    for _ in range(4):  # a feature drawn twice counts once: draw more until rows hold k features on average
        indptr, _ = _unique_rows(_lengths(generator, 2000, draws), draw, names)
        draws *= shape.k * 2000 / indptr[-1]
    return _unique_rows(_lengths(generator, n, draws), draw, names)


def _clicks(shape: Shape, n: int, generator: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    columns = np.empty((n, len(FIELDS)), np.int64)
    for field, cardinality in enumerate(FIELDS):
        if shape.uniform:
            columns[:, field] = generator.integers(0, shape.d, n)
        else:
            values = _zipf(generator, cardinality, n).astype(np.uint64)
            columns[:, field] = _mixed(values * np.uint64(16) + np.uint64(field)) % np.uint64(shape.d)
    columns.sort(axis=1)
    kept = np.ones(columns.shape, bool)  # two fields in one slot: a collision, counted once
    kept[:, 1:] = columns[:, 1:] != columns[:, :-1]
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(kept.sum(axis=1), out=indptr[1:])
    return indptr, columns[kept].astype(np.int32)


def _lengths(generator: np.random.Generator, n: int, mean: float) -> NDArray[np.int64]:
    sigma = 0.6
    lengths = generator.lognormal(np.log(mean) - sigma**2 / 2, sigma, n)
    return np.maximum(1, np.rint(lengths)).astype(np.int64)


def _unique_rows(
    lengths: NDArray[np.int64], draw: Callable[[int], NDArray[np.int64]], names: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    keys = np.repeat(np.arange(len(lengths), dtype=np.int64) << 32, lengths)
    keys |= names[draw(int(lengths.sum()))]
    keys.sort()
    keys = keys[np.concatenate(([True], keys[1:] != keys[:-1]))]
    indptr = np.searchsorted(keys >> 32, np.arange(len(lengths) + 1))
    return indptr.astype(np.int64), (keys & 0xFFFFFFFF).astype(np.int32)


def _zipf(generator: np.random.Generator, cardinality: int, count: int) -> NDArray[np.int64]:
    """Ranks from 0 with density (rank + SHIFT)^-EXPONENT, by inverting its integral."""
    power = 1 - EXPONENT
    low, high = SHIFT**power, (cardinality + SHIFT) ** power
    ranks = (low + generator.random(count) * (high - low)) ** (1 / power) - SHIFT
    return np.minimum(ranks.astype(np.int64), cardinality - 1)


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: an even hash of whole numbers."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
