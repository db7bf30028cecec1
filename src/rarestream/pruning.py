"""Pruning: which weights a smaller model keeps, and what AUC the others were worth.

Weights are ranked by |w|, the largest first; of equal ones the lower index comes first. A
model of size B keeps the first B as they are, and its other weights are exactly zero:

    s_B(x) = sum over j with rank(j) < B of w_j x_j,      x as the full model scales it.

|w| is compared as scaled rows meet it, so with scale="max" it is what a feature's largest
value so far is worth. Rows keep their scale: it is the full row that has norm 1.

The path is the AUC of s_B at many sizes B_0 < B_1 < ... . The first size that keeps a weight
is its class; an entry of a row counts at that size and at all larger ones, so one pass over
the rows gives their scores at every size (native/path.hpp), the same bits as scoring with
each smaller model alone.

AUC does not grow with the size at every step. So the smallest model that loses no more than
E is that of the smallest size from which on every larger size of the path loses no more
than E. After the sizes of the path, up to 50 more are looked at between the largest that
loses more and the next, until these two are within 1 % of one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rarestream import _native
from rarestream.blocks import Block
from rarestream.errors import DataError, RowError
from rarestream.learners import Weights
from rarestream.learners.base import SPARE, padded
from rarestream.metrics import auc
from rarestream.metrics.kept import KeptScores
from rarestream.metrics.rows import both_classes
from rarestream.readers import Stream

FIRST, SIZES, MOST_SIZES = 10, 50, 1000
KEPT = 10_000_000  # scores, of all sizes together, that are kept: 80 MB; beyond that each AUC is streamed
AT_ONCE = 1024  # rows: their scores at 50 sizes stay near
TOLERANCE = 0.01  # of the smallest size

Rows = Block | Iterable[Block]


@dataclass(frozen=True, slots=True)
class Path:
    """The AUC against the size, on some rows."""

    sizes: tuple[int, ...]  # how many weights are kept, ascending; the last are all of them
    aucs: tuple[float, ...]  # the AUC at each size
    rows: int
    positives: int
    bound: float  # how far an AUC can be from the exact one; 0: they are exact

    @property
    def full(self) -> float:
        """The AUC of the full model."""
        return self.aucs[-1]

    def __getitem__(self, size: int) -> float:
        """The AUC at a size."""
        return self.aucs[self.sizes.index(size)]

    def smallest(self, auc_loss: float) -> int:
        """The smallest size from which on every larger size is at most `auc_loss` below the full model."""
        return self.sizes[self._first(auc_loss)]

    def _first(self, auc_loss: float) -> int:
        losing = [place for place, value in enumerate(self.aucs) if self.full - value > auc_loss]
        return losing[-1] + 1 if losing else 0

    def between(self, auc_loss: float) -> list[int]:
        """Sizes to look at next, from the largest that loses more up to `smallest`; none if these two are near."""
        place = self._first(auc_loss)
        high = self.sizes[place]
        if place == 0:
            return sorted({0, *spread(1, high - 1)}) if high else []
        low = self.sizes[place - 1]
        return spread(low + 1, high - 1) if high - low > max(1.0, TOLERANCE * high) else []

    def joined(self, other: Path) -> Path:
        """The sizes of both; they are of the same model and the same rows."""
        sizes, aucs = zip(*sorted({**self._pairs(), **other._pairs()}.items()), strict=True)
        return Path(sizes, aucs, self.rows, self.positives, max(self.bound, other.bound))

    def _pairs(self) -> dict[int, float]:
        return dict(zip(self.sizes, self.aucs, strict=True))


class Ranked:
    """The weights of a model in the order in which smaller ones keep them."""

    def __init__(self, weights: Weights, scale: int) -> None:
        self.order = _native.ranked(weights.weight)  # the features of weights that are not zero
        slots = weights.slots + SPARE
        self._weights = Weights(padded(weights.weight, slots), weights.tally, padded(weights.largest, slots))
        self._scale = scale

    def path(self, rows: Rows, sizes: int | Sequence[int] = SIZES, auc_loss: float | None = None) -> Path:
        """The AUC at each of the sizes and of the full model; `auc_loss` adds sizes near the smallest that will do.

        One pass over the rows; with `auc_loss` two or three, and rows that come only once are kept meanwhile.
        """
        wanted = self._wanted(sizes)
        if auc_loss is None:
            return self._passed(rows, wanted)
        again = rows if isinstance(rows, Block) or _repeatable(rows) else list(rows)
        found = self._passed(again, wanted)
        while more := found.between(auc_loss):
            found = found.joined(self._passed(again, more))
        return found

    def _passed(self, rows: Rows, sizes: list[int]) -> Path:
        """The AUC at each of the sizes, which ascend, in one pass."""
        classes = np.full(self._weights.slots, len(sizes), np.uint16)
        classes[self.order[: sizes[-1]]] = np.repeat(np.arange(len(sizes), dtype=np.uint16), np.diff(sizes, prepend=0))
        kept = [KeptScores(KEPT // len(sizes)) for _ in sizes]
        count = positives = 0
        for block in _pieces(rows):
            if block.labels is None:
                raise DataError("path: the rows have no labels to compare with.")
            rows_now = block.within(len(classes))
            weight, _, largest = self._weights
            scores = np.empty((len(sizes), len(block)))
            wrong = _native.score_path(weight, classes, largest, *rows_now.rows, self._scale, scores)
            if wrong >= 0:
                raise RowError("path", wrong, f"has changed since it was made. {block.broken() or ''}")
            labels, importances = block.labels, block.importances
            living = labels if importances is None else labels[importances > 0]
            count += len(living)
            positives += int(np.count_nonzero(living > 0))
            for one, its_scores in zip(kept, scores, strict=True):
                one.add(labels, its_scores, importances)
        both_classes("path", count, positives)
        aucs, bounds = zip(*map(_auc, kept), strict=True)
        return Path(tuple(sizes), aucs, count, positives, max(bounds))

    def _wanted(self, sizes: int | Sequence[int]) -> list[int]:
        most = len(self.order)
        if isinstance(sizes, int | np.integer):
            number, wanted = int(sizes), spread(FIRST, most, max(1, min(int(sizes), MOST_SIZES)))
        else:
            wanted = sorted({min(int(size), most) for size in sizes} | {most})
            number = len(wanted)
        if not 1 <= number <= MOST_SIZES:
            raise ValueError(f"path: there may be 1 to {MOST_SIZES} sizes, got {number}.")
        if wanted[0] < 0:
            raise ValueError(f"path: a size must be >= 0, got {wanted[0]}.")
        return wanted


def _auc(kept: KeptScores) -> tuple[float, float]:
    """The AUC of scores, and how far it can be from the exact one."""
    if kept.streamed is not None:
        found = kept.streamed.auc
        return float(found), found.bound
    return auc(*kept.joined()), 0.0


def spread(first: int, last: int, count: int = SIZES) -> list[int]:
    """`count` sizes, or fewer where they fall together, up to `last`, each larger by the same factor."""
    if last < 1:
        return [last]
    return [int(size) for size in np.unique(np.geomspace(last, min(first, last), count).round())]


def _pieces(rows: Rows) -> Iterator[Block]:
    """The rows, so many at a time that their scores at all sizes do not need much room."""
    for block in [rows] if isinstance(rows, Block) else rows:
        for start in range(0, len(block), AT_ONCE):
            yield block[start : start + AT_ONCE]


def _repeatable(blocks: Iterable[Block]) -> bool:
    """Whether a second pass over them gives the same rows again."""
    return blocks.replayable if isinstance(blocks, Stream) else not isinstance(blocks, Iterator)
