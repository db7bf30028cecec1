"""Where rows are in their files: maps a row's number in the stream to its file and line, for error messages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class PieceLines(NamedTuple):
    """The lines of a piece's rows. Line numbers count from 1, after the `before` lines of the file that precede it."""

    name: str  # of the file
    before: int
    lines: NDArray[np.int64]  # one per row
    between: str = ":"  # what stands between the name and the number of a line


class RowLocations:
    """Locations of the rows of the last piece, or of all pieces.

    Most rows are in consecutive lines, so for all pieces only the starts of runs of consecutive lines are stored.

    Parameters
    ----------
    everything : bool
        Whether to remember all pieces. A shuffle needs that, because its rows come from anywhere.
    """

    def __init__(self, everything: bool) -> None:
        self._everything = everything
        self._firsts: list[int] = []  # the number of each piece's first row
        # and its rows, from 0, that start a run; None: each row does
        self._pieces: list[tuple[PieceLines, NDArray[np.int64] | None]] = []

    def add(self, first: int, piece: PieceLines) -> None:
        """Add the rows of a piece, whose first row has the number `first` in the stream."""
        if not self._everything:
            self._firsts, self._pieces = [first], [(piece, None)]
            return
        runs = np.flatnonzero(np.diff(piece.lines, prepend=-1) != 1)
        self._firsts.append(first)
        self._pieces.append((piece._replace(lines=piece.lines[runs]), runs))

    def find(self, number: int) -> str | None:
        """Return file and line of a row, such as ads.svm:1043; None if its piece is not known."""
        at = int(np.searchsorted(self._firsts, number, "right")) - 1
        if at < 0:
            return None
        (name, before, lines, between), runs = self._pieces[at]
        row = number - self._firsts[at]
        if runs is None:
            return f"{name}{between}{before + int(lines[row])}"
        run = int(np.searchsorted(runs, row, "right")) - 1
        return f"{name}{between}{before + int(lines[run]) + row - int(runs[run])}"
