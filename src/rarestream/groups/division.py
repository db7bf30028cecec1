"""Division: which blocks of rows are learned in which round by which group, and which are held out.

Rounds follow the order of the rows: the first round has the first rows. Within a round, blocks go to the groups in
turn, so that all groups have rows of the same time. A few blocks, spread evenly over all rows, are held out: after
every round the merged model is measured on them, and in the end they are learned too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import DataError

HELD_OUT = -1  # as a round
ENOUGH_HELD_OUT = 200  # rows of each class that the AUC is measured on, if that is not too many
MOST_HELD_OUT = 1 << 16  # rows
SMALLEST_SHARE, LARGEST_SHARE = 0.02, 0.1  # of all rows that are held out, unless these are very many
MOST_AUTO_GROUPS = 64
GROUP_ROWS, GROUP_POSITIVES = 20_000, 100  # that a group has at least, with groups="auto"


class Division(NamedTuple):
    """Which blocks are learned in which round by which group."""

    groups: int
    rounds: int
    round_of: NDArray[np.int32]  # of each block; HELD_OUT: none
    group_of: NDArray[np.int32]
    rows: NDArray[np.int64]  # of each block

    def blocks(self, number: int, group: int) -> NDArray[np.intp]:
        """Return the blocks that a group learns in a round, in order."""
        return np.flatnonzero((self.round_of == number) & (self.group_of == group))

    @property
    def held_out(self) -> NDArray[np.intp]:
        """The blocks that are held out."""
        return np.flatnonzero(self.round_of == HELD_OUT)

    def group_rows(self, number: int) -> NDArray[np.int64]:
        """Return the number of rows of each group in a round."""
        mine = self.round_of == number
        return np.bincount(self.group_of[mine], self.rows[mine], self.groups).astype(np.int64)


def auto_rounds(groups: int) -> int:
    """Return the number of rounds that so many groups need.

    Measured on real data: docs/scaling.md. With one group there is nothing to merge.
    """
    return 1 if groups == 1 else max(4, math.ceil(groups / 4))


def auto_groups(cores: int, rows: int, positives: int) -> int:
    """Return how many groups to use: one for each core, but none with few rows or few positives.

    More than MOST_AUTO_GROUPS would not be quicker: every round sends and merges a state for each (docs/scaling.md).
    """
    rarer = min(positives, rows - positives)
    return max(1, min(cores, MOST_AUTO_GROUPS, rows // GROUP_ROWS, rarer // GROUP_POSITIVES))


def divide(
    rows: NDArray[np.integer],
    positives: NDArray[np.integer],
    groups: int,
    rounds: int,
    first_rounds: Sequence[int] = (),
    race: bool = False,
) -> Division:
    """Divide blocks between rounds and groups.

    Parameters
    ----------
    rows, positives : array of int
        The number of rows of each block, and of positives among them, in the order of the stream.
    groups, rounds : int
        How many.
    first_rounds : sequence of int
        Numbers of rows after which short rounds end that come before the others: for a race of settings.
    race : bool
        Whether settings are compared on the rows held out, which takes more of them.

    Raises
    ------
    DataError
        If there are too few rows, or the rows of a group, or of a round, are all of one class.
    """
    sizes = np.asarray(rows, np.int64)
    total, total_positives = int(sizes.sum()), int(np.asarray(positives).sum())
    if total == 0:
        raise DataError("there are no rows to learn.")
    if not 0 < total_positives < total:
        kind = "positive" if total_positives else "negative"
        raise DataError(f"all {total:,} rows are {kind}; learning needs both classes.")
    round_of, group_of = np.zeros(len(sizes), np.int32), np.zeros(len(sizes), np.int32)
    if groups > 1:
        round_of[_held_out(sizes, np.asarray(positives, np.int64), race)] = HELD_OUT
    mine = np.flatnonzero(round_of != HELD_OUT)
    before = np.cumsum(sizes[mine]) - sizes[mine]
    learned = int(sizes[mine].sum())
    short = [end for end in sorted(set(first_rounds)) if end < learned // rounds] if groups > 1 else []
    start = short[-1] if short else 0
    rest = [start + (learned - start) * number / rounds for number in range(1, rounds)]
    round_of[mine] = np.searchsorted([*short, *rest], before, "right")
    found = len(short) + rounds
    for number in range(found):
        in_round = mine[round_of[mine] == number]
        group_of[in_round] = np.arange(len(in_round)) % groups
    division = Division(groups, found, round_of, group_of, sizes)
    if groups > 1:
        _check_classes(division, np.asarray(positives, np.int64))
    return division


def _held_out(rows: NDArray[np.int64], positives: NDArray[np.int64], race: bool) -> NDArray[np.intp]:
    """Return blocks that are spread evenly over all, with enough rows of both classes if there are."""
    total = int(rows.sum())
    rarer = max(1, min(int(positives.sum()), total - int(positives.sum())))
    share = LARGEST_SHARE if race else max(SMALLEST_SHARE, ENOUGH_HELD_OUT / rarer)
    share = min(share, LARGEST_SHARE, MOST_HELD_OUT / total)
    number = max(1, round(share * len(rows)))
    return np.unique(((np.arange(number) + 0.5) * len(rows) / number).astype(np.intp))


def _check_classes(division: Division, positives: NDArray[np.int64]) -> None:
    """Raise a DataError if a round lacks rows for a group, or a group or a round has one class only."""
    shuffle = "put the rows into random order once (df.orderBy(rand()) written to a file), if they are sorted by label"
    for number in range(division.rounds):
        sizes = division.group_rows(number)
        if (sizes == 0).any():
            raise DataError(
                f"round {number + 1} of {division.rounds} has blocks for {int((sizes > 0).sum())} of "
                f"{division.groups} groups only. Use fewer groups or rounds."
            )
    mine = division.round_of != HELD_OUT
    both = (("group", division.group_of, division.groups), ("round", division.round_of, division.rounds))
    for what, number_of, count in both:
        sizes = np.bincount(number_of[mine], division.rows[mine], count).astype(np.int64)
        found = np.bincount(number_of[mine], positives[mine], count).astype(np.int64)
        wrong = np.flatnonzero((found == 0) | (found == sizes))
        if len(wrong):
            at = int(wrong[0])
            kind = "positive" if found[at] else "negative"
            rounds = f"{division.rounds} round{'s' * (division.rounds > 1)} are"
            raise DataError(
                f"all {sizes[at]:,} rows of {what} {at + 1} of {count} are {kind}: {division.groups} groups in "
                f"{rounds} too many for so few rows of the other class, or the rows are sorted by label. Use fewer "
                f"groups, or {shuffle}."
            )
