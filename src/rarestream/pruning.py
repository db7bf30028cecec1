"""Pruning: which weights a smaller model keeps, and its AUC at many sizes.

Weights are ranked by |w|, the largest first; among equal ones the lower index is first. (A learner may
multiply |w| by what else it knows of a feature: `Learner.rank_factors`.) A model of size B keeps the first B
unchanged, and its other weights are exactly zero:

    s_B(x) = sum over j with rank(j) < B of w_j x_j,      x as the full model scales it.

|w| is the weight for scaled rows, so with scale="max" it is what the largest value of a
feature so far contributes to a score. Rows are scaled as before: the full row has norm 1.

The path is the AUC of s_B at many sizes B_0 < B_1 < ... . The first size that keeps a weight
is its class. An entry of a row counts at that size and at all larger ones, so one pass over
the rows gives their scores at every size (native/pruning_path.hpp), bit for bit those of each smaller
model.

AUC does not grow with every step in size. So the smallest model that loses no more than
E has the smallest size such that it and every larger size of the path lose no more than E.
After the sizes of the path, up to 50 more are tried between the largest size that loses more
and the next one, until these two are within 1 % of each other.

A pruned model can be learned again: one more pass over the same rows, as if only its features existed, but with rows
scaled as before. Weights that shared their work with dropped ones then take it over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream import _native, modelfile
from rarestream.blocks import Block
from rarestream.engines import Weights, overflow
from rarestream.engines.single import Single
from rarestream.errors import DataError, RowError
from rarestream.learners import Learner
from rarestream.learners.state import SPARE, padded
from rarestream.metrics import Calibration, auc
from rarestream.metrics.kept import KeptScores
from rarestream.metrics.rows import ScoredRows, both_classes
from rarestream.modelfile import names
from rarestream.modelfile.codec import FileParts
from rarestream.readers import Stream

FIRST, SIZES, MAX_SIZES = 10, 50, 1000  # by default 50 sizes, from 10 weights on
MAX_SCORES = 10_000_000  # of all sizes together, 80 MB; beyond that each AUC is streamed
BATCH = 1024  # rows scored at once: their scores at 50 sizes fit in the cache
TOLERANCE = 0.01  # relative, of the smallest size

Rows = Block | Iterable[Block]


@dataclass(frozen=True, slots=True)
class Path:
    """AUC against model size, on some rows.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of weights kept, ascending; the last is that of the full model.
    aucs : tuple of float
        AUC at each size.
    rows : int
        Number of rows; rows of importance 0 do not count.
    positives : int
        Number of positive rows.
    bound : float
        Maximum distance of an AUC from the exact one; 0 if they are exact.
    """

    sizes: tuple[int, ...]
    aucs: tuple[float, ...]
    rows: int
    positives: int
    bound: float

    @property
    def full(self) -> float:
        """AUC of the full model."""
        return self.aucs[-1]

    def __getitem__(self, size: int) -> float:
        """Return the AUC at one of the sizes."""
        return self.aucs[self.sizes.index(size)]

    def smallest(self, auc_loss: float) -> int:
        """Return the smallest size such that it and every larger size lose at most `auc_loss`.

        Parameters
        ----------
        auc_loss : float, >= 0
            Maximum difference from the AUC of the full model.

        Returns
        -------
        int
            One of `sizes`.
        """
        return self.sizes[self._first(auc_loss)]

    def _first(self, auc_loss: float) -> int:
        losing = [place for place, value in enumerate(self.aucs) if self.full - value > auc_loss]
        return losing[-1] + 1 if losing else 0

    def between(self, auc_loss: float) -> list[int]:
        """Return sizes to try next, between the largest that loses more and `smallest`; none if these are close."""
        place = self._first(auc_loss)
        high = self.sizes[place]
        if place == 0:
            return sorted({0, *spread(1, high - 1)}) if high else []
        low = self.sizes[place - 1]
        return spread(low + 1, high - 1) if high - low > max(1.0, TOLERANCE * high) else []

    def joined(self, other: Path) -> Path:
        """Return a path with the sizes of both, which must be of the same model and the same rows."""
        sizes, aucs = zip(*sorted({**self._pairs(), **other._pairs()}.items()), strict=True)
        return Path(sizes, aucs, self.rows, self.positives, max(self.bound, other.bound))

    def _pairs(self) -> dict[int, float]:
        return dict(zip(self.sizes, self.aucs, strict=True))


class Ranked:
    """The weights of a model, ranked in the order in which smaller models keep them."""

    def __init__(self, weights: Weights, keys: NDArray[Any], scale: _native.Scale | int) -> None:
        self.order = _native.ranked(keys)  # the features of weights that are not zero
        slots = weights.slots + SPARE
        self._weights = Weights(padded(weights.weight, slots), weights.tally, padded(weights.largest, slots))
        self._scale = scale

    def path(self, rows: Rows, sizes: int | Sequence[int] = SIZES, auc_loss: float | None = None) -> Path:
        """Return the AUC at each of the sizes and of the full model; `auc_loss` adds sizes near the smallest one.

        One pass over the rows is needed; with `auc_loss` two or three, for which rows that can be read only once are
        held in memory.
        """
        first_sizes = self._checked_sizes(sizes)
        if auc_loss is None:
            return self._one_pass(rows, first_sizes)
        rows = repeatable(rows)
        path = self._one_pass(rows, first_sizes)
        while more := path.between(auc_loss):
            path = path.joined(self._one_pass(rows, more))
        return path

    def _one_pass(self, rows: Rows, sizes: list[int]) -> Path:
        """Return the AUC at each of the sizes, which ascend, in one pass."""
        classes = np.full(self._weights.slots, len(sizes), np.uint16)
        classes[self.order[: sizes[-1]]] = np.repeat(np.arange(len(sizes), dtype=np.uint16), np.diff(sizes, prepend=0))
        by_size = [KeptScores(MAX_SCORES // len(sizes)) for _ in sizes]
        count = positives = 0
        for block in _pieces(rows):
            if block.labels is None:
                raise DataError("path: the rows have no labels to compare with.")
            rows_now = block.within(len(classes))
            weight, _, largest = self._weights
            scores = np.empty((len(sizes), len(block)))
            wrong = _native.score_path(weight, classes, largest, rows_now, self._scale, scores)
            if wrong >= 0:
                raise RowError("path", wrong, block.changed() or "has changed since it was made.")
            labels, importances = block.labels, block.importances
            counted = labels if importances is None else labels[importances > 0]
            count += len(counted)
            positives += int(np.count_nonzero(counted > 0))
            for scores_kept, scores_now in zip(by_size, scores, strict=True):
                scores_kept.add(labels, scores_now, importances)
        both_classes("path", count, positives)
        aucs, bounds = zip(*map(_auc, by_size), strict=True)
        return Path(tuple(sizes), aucs, count, positives, max(bounds))

    def _checked_sizes(self, sizes: int | Sequence[int]) -> list[int]:
        """Return the sizes, ascending, up to that of the full model."""
        full = len(self.order)
        if isinstance(sizes, int | np.integer):
            number, ascending = int(sizes), spread(FIRST, full, max(1, min(int(sizes), MAX_SIZES)))
        else:
            ascending = sorted({min(int(size), full) for size in sizes} | {full})
            number = len(ascending)
        if not 1 <= number <= MAX_SIZES:
            raise ValueError(f"path: the number of sizes must be between 1 and {MAX_SIZES}, got {number}.")
        if ascending[0] < 0:
            raise ValueError(f"path: a size must be >= 0, got {ascending[0]}.")
        return ascending


def _auc(kept: KeptScores) -> tuple[float, float]:
    """Return the AUC of scores, and its maximum distance from the exact one."""
    if kept.streamed is not None:
        estimate = kept.streamed.auc
        return float(estimate), estimate.bound
    return auc(*kept.joined()), 0.0


def spread(first: int, last: int, count: int = SIZES) -> list[int]:
    """Return `count` sizes in equal ratios up to `last`; fewer if some are equal."""
    if last < 1:
        return [last]
    return [int(size) for size in np.unique(np.geomspace(last, min(first, last), count).round())]


def _pieces(rows: Rows) -> Iterator[Block]:
    """Yield the rows in small blocks, so that their scores at all sizes need little memory."""
    for block in [rows] if isinstance(rows, Block) else rows:
        for start in range(0, len(block), BATCH):
            yield block[start : start + BATCH]


def repeatable(rows: Rows) -> Rows:
    """Return the rows such that a second pass gives them again: as they are, or held in memory."""
    if isinstance(rows, Block):
        return rows
    again = rows.replayable if isinstance(rows, Stream) else not isinstance(rows, Iterator)
    return rows if again else list(rows)


# -- learning again with few features


def refit(
    learner: Learner, scale: str, weights: Weights, rows: Rows, check: Callable[[Block], None]
) -> tuple[Single, Calibration]:
    """Return what a new model learns from the rows if only the features with a weight exist, and its calibration.

    Rows are scaled as the full model scales them, so that the new weights can take the place of the old ones.
    `check` raises an error for a block that the model does not take.
    """
    engine = Single.start(learner, "none", weights.slots, weights.weight.dtype)
    kept = weights.weight != 0
    calibration = Calibration()
    learned = 0
    for block in [rows] if isinstance(rows, Block) else rows:
        check(block)
        if block.labels is None:
            raise DataError("Model.prune: the rows to refit on have no labels.")
        few = _only(kept, block, scale, weights.largest)
        scores = np.empty(len(few))
        done = engine.learn(few, scores).rows
        if done < len(few):
            raise RowError("Model.prune", done, overflow(learner, "unit", str(engine.weight_dtype)))
        calibration.count(ScoredRows(block.labels, scores, block.importances))
        learned += len(few)
    if not learned:
        raise DataError("Model.prune: there are no rows to refit on.")
    return engine, calibration


def _only(kept: NDArray[np.bool_], block: Block, scale: str, largest: NDArray[np.float32] | None) -> Block:
    """Return the rows with only some features, with the values that these have in the scaled whole rows."""
    lengths = np.diff(block.indptr)
    known = block.indices < len(kept)
    values = block.values.astype(np.float64)
    if largest is not None:
        most = np.where(known, largest[np.where(known, block.indices, 0)], 0)
        values /= np.maximum(most, np.abs(values))  # a larger value than any so far counts as one
        values[~np.isfinite(values)] = 0
    if scale != "none":
        row_of = np.repeat(np.arange(len(block)), lengths)
        norms = np.sqrt(np.bincount(row_of, values * values, len(block)))
        values /= np.repeat(np.where(norms > 0, norms, 1.0), lengths)
    here = np.zeros(len(known), bool)
    here[known] = kept[block.indices[known]]
    indptr = np.concatenate([[0], np.cumsum(here)])[block.indptr]
    return Block.of((indptr, block.indices[here], values[here].astype(np.float32)), block.labels, block.importances)


# -- model files with fewer weights


def cut(header: dict[str, Any], arrays: dict[str, NDArray[Any]], kept: NDArray[Any]) -> FileParts:
    """Return the parts of a scoring-only file with only the weights at some places, which ascend."""
    had = len(arrays["weight"])
    if len(kept) == had:
        return header, arrays
    fewer = {name: arrays[name][kept] for name in ("index", "weight")}
    fewer |= names.cut(arrays, fewer["index"])
    return {"pruned_from": had, **header}, {**arrays, **fewer}


def largest_size(header: dict[str, Any], arrays: dict[str, NDArray[Any]], order: NDArray[Any], room: int) -> int:
    """Return the largest number of weights, kept in this order, of a scoring-only file of at most `room` bytes."""
    had = len(arrays["weight"])

    def length(size: int) -> int:
        return len(modelfile.to_bytes(*cut(header, arrays, np.sort(order[:size]))))

    if length(had) <= room:
        return had
    least = length(0)
    if least > room:
        raise ValueError(
            f"Model.prune: bytes must be at least {least}, the size of a file without weights, got {room}."
        )
    each = sum(arrays[name].itemsize for name in ("index", "weight")) + names.costs(arrays)[order]
    size = min(had - 1, int(np.searchsorted(np.cumsum(each), room - least, "right")))
    while length(size) > room:  # the file's header has grown by a few digits
        size -= 1
    return size
