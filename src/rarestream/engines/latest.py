"""LatestRows: the scores of the latest rows of a race under each setting, on which settings are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.engines import arrays as file_arrays
from rarestream.engines.arrays import Arrays
from rarestream.engines.choice import MIN_CLASS_ROWS, Choice, Schedule, warm_up
from rarestream.learners.state import padded, zeros
from rarestream.metrics.paired import Standings
from rarestream.metrics.rows import ScoredRows

FIRST_LOOK = Schedule(first=512, factor=2)  # when settings are compared
WINDOW = 1 << 17  # of so many rows, the latest, the scores under each setting are kept
COMMON, COMPARED = 4, 1 << 15  # rows that settings are compared on: of the larger class for one of the other; of both

Scores = NDArray[np.float32]


class LatestRows:
    """The scores of the latest rows under each setting, at least of WINDOW of them if there were as many.

    Parameters
    ----------
    settings : int
    """

    def __init__(self, settings: int) -> None:
        self.count = 0
        self._scores = np.zeros((0, settings), np.float32)
        self._labels, self._importances = np.zeros(0, np.int8), np.zeros(0)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)

    def lend(self, rows: int) -> Scores:
        """Return where to write the scores of the next rows under each setting, before these are passed to `add`."""
        if rows > WINDOW:
            return np.empty((rows, self._scores.shape[1]), np.float32)
        self._make_room(rows)
        return self._scores[self.count : self.count + rows]

    def add_learned(self, block: Block, scores: Scores) -> int:
        """Add rows that were learned, without those of importance 0; return how many were added."""
        assert block.labels is not None
        labels, importances = block.labels, block.importances
        if importances is not None:
            counted = importances > 0
            scores, labels, importances = scores[counted], labels[counted], importances[counted]
        self.add(scores, labels, importances)
        return len(labels)

    def add(self, scores: Scores, labels: NDArray[np.int8], importances: NDArray[np.float64] | None) -> None:
        """Add rows, all of which have an importance above 0."""
        scores, labels = scores[-WINDOW:], labels[-WINDOW:]
        self._make_room(len(labels))
        new = slice(self.count, self.count + len(labels))
        place = self._scores[new]
        if not np.may_share_memory(scores, place):  # else they were written there
            place[:] = scores
        self._labels[new] = labels
        self._importances[new] = 1.0 if importances is None else importances[-WINDOW:]
        self.count = new.stop

    def _make_room(self, rows: int) -> None:
        """Make room for so many rows after the latest; all but WINDOW of those may be forgotten."""
        if self.count + rows > 2 * WINDOW:
            kept = WINDOW
            for array in self._arrays:
                array[:kept] = array[self.count - kept : self.count].copy()
            self.count = kept
        wanted = self.count + rows
        if wanted > len(self._labels):
            room = min(max(wanted, 2 * len(self._labels), 1024), 2 * WINDOW)
            self._scores, self._labels, self._importances = (padded(array, room) for array in self._arrays)

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self._scores, self._labels, self._importances

    def keep(self, settings: Sequence[int]) -> None:
        """Forget the scores under all settings but these."""
        kept = zeros((len(self._scores), len(settings)), np.float32)
        kept[: self.count] = self._scores[: self.count, list(settings)]
        self._scores = kept

    def rows(self, choice: Choice) -> ScoredRows:
        """Return the latest rows, WINDOW or fewer, with the scores of the mixture."""
        last = slice(max(0, self.count - WINDOW), self.count)
        return ScoredRows(
            self._labels[last].copy(), choice.mixed(self._scores[last]), _unless_ones(self._importances[last])
        )

    def compared(self, raced: int) -> tuple[Standings, Scores] | None:
        """Return the settings compared on the latest rows, and the scores of these; None if there are too few.

        The first quarter of all rows does not count. Of the class with more rows, four are compared for each row of the
        other one: more would hardly change the errors.
        """
        first = max(0, self.count - WINDOW, warm_up(raced) - (raced - self.count))
        at = first + _thinned(self._labels[first : self.count])
        labels, scores = self._labels[at], self._scores[at]
        if min(np.count_nonzero(labels > 0), np.count_nonzero(labels < 0)) < MIN_CLASS_ROWS:
            return None
        return Standings(labels, scores, _unless_ones(self._importances[at])), scores

    def dump(self) -> dict[str, NDArray[Any]]:
        last = slice(max(0, self.count - WINDOW), self.count)
        return dict(zip(("scores", "labels", "importances"), (array[last] for array in self._arrays), strict=True))

    def load(self, extra: Arrays, raced: int) -> None:
        """Load the rows of a file; ValueError or KeyError if they are invalid."""
        count = extra["labels"].size
        settings = self._scores.shape[1]
        if count > min(raced, WINDOW):  # there are fewer of a race in groups
            raise ValueError(f"it has the scores of {count} rows")
        scores = file_arrays.expected(extra, "scores", np.zeros((count, len(extra["scores"].T)), np.float32))
        labels = file_arrays.expected(extra, "labels", np.zeros(count, np.int8))
        importances = file_arrays.expected(extra, "importances", np.zeros(count))
        if scores.shape[1] < settings:
            raise ValueError(f"it has the scores of {scores.shape[1]} settings, not of {settings}")
        if not np.isin(labels, (-1, 1)).all() or (importances <= 0).any():
            raise ValueError("its rows have labels other than -1 and 1, or importances that are not positive")
        self.add(scores[:, :settings], labels, importances)


def _unless_ones(importances: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return a copy of importances, or None if all are 1."""
    return None if (importances == 1).all() else importances.copy()


def _thinned(labels: NDArray[np.int8]) -> NDArray[np.intp]:
    """Return which of the rows to compare settings on: all of the rarer class, and evenly spread ones of the other."""
    classes = [np.flatnonzero(labels > 0), np.flatnonzero(labels < 0)]
    few, many = sorted(classes, key=len)
    step = max(1, len(many) // max(1, COMMON * len(few)))
    at = np.sort(np.concatenate([few, many[::step]]))
    return at[max(0, len(at) - COMPARED) :]


def dropped_out(count: int, reasons: Mapping[int, str]) -> str:
    """Return the warning that some of `count` settings dropped out, each for a reason."""
    reason = next(iter(reasons.values()))
    return f"auto: {len(reasons)} of {count} settings dropped out, the others continue: a row {reason}"


def rows_up_to(block: Block, wanted: int) -> int | None:
    """Return how many rows there are up to the `wanted`-th that counts; None if it is not among them."""
    if block.importances is None:
        return wanted if wanted <= len(block) else None
    count = np.cumsum(block.importances > 0)
    return int(np.searchsorted(count, wanted)) + 1 if len(count) and count[-1] >= wanted else None
