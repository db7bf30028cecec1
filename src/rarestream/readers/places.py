"""Where rows stand in their files, for messages: a row's number in the stream to its file and line."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Piece(NamedTuple):
    """Where the rows of a piece stand. Lines count from 1, after the `before` lines of the file that went before."""

    name: str  # of the file
    before: int
    lines: NDArray[np.int64]  # of each row


class Places:
    """Places of the rows of the last piece, or of all of them.

    Rows mostly stand in lines one after the other, so all that is kept of all pieces is where a line was passed over.
    """

    def __init__(self, everything: bool) -> None:
        self._everything = everything
        self._firsts: list[int] = []  # the number of each piece's first row
        self._pieces: list[tuple[Piece, NDArray[np.int64]]] = []  # and those rows of it that start a run, from 0

    def add(self, first: int, piece: Piece) -> None:
        """The rows from number `first` on."""
        if not self._everything:
            self._firsts, self._pieces = [first], [(piece, np.arange(len(piece.lines)))]
            return
        runs = np.flatnonzero(np.diff(piece.lines, prepend=-1) != 1)
        self._firsts.append(first)
        self._pieces.append((piece._replace(lines=piece.lines[runs]), runs))

    def of(self, number: int) -> str | None:
        """File and line of a row, as ads.svm:1043."""
        at = int(np.searchsorted(self._firsts, number, "right")) - 1
        if at < 0:
            return None
        (name, before, lines), runs = self._pieces[at]
        row = number - self._firsts[at]
        run = int(np.searchsorted(runs, row, "right")) - 1
        return f"{name}:{before + int(lines[run]) + row - int(runs[run])}"
