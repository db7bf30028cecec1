"""Rows of a live source that are invalid: counted up to a limit and, where that is wanted, written to a file.

A dead letter is a line of JSON: where the row was, what is wrong with it, and its text. The size of the file is part of
the position that a model keeps, so that a row which is read again after a kill is not in the file twice.
"""

from __future__ import annotations

import json
import os
from typing import BinaryIO

from rarestream.errors import DataError, OutputError, plain
from rarestream.readers.live.lines import Lines, Position
from rarestream.readers.refusals import Refusals

KEY = "dead_letters"  # of a position
LONGEST = 1 << 16  # bytes of a row that are written


class DeadLetters(Refusals):
    """Counts invalid rows, and writes them to a file once the position of the source is beyond them.

    Parameters
    ----------
    allowed : int, >= 0
        Maximum number of invalid rows to skip.
    path : str, optional
        The file; rows are added to its end. By default there is none.
    size : int, optional
        How large the file was when the position was saved: what is beyond that is written again.

    Attributes
    ----------
    last_line : int
        The line of the last invalid row, within the lines that are being read.
    """

    def __init__(self, allowed: int, path: str | os.PathLike[str] | None = None, size: int | None = None) -> None:
        super().__init__(allowed)
        self.path = None if path is None else os.path.abspath(path)
        self.last_line = 0
        self._lines: Lines | None = None
        self._waiting: list[tuple[int, bytes]] = []  # the line of each row, and what is to be written
        self._file: BinaryIO | None = None
        self._size = 0
        if self.path is not None:
            self._open(self.path, size)

    def _open(self, path: str, size: int | None) -> None:
        try:
            self._file = open(path, "ab")  # noqa: SIM115  closed by `close`
            there = os.fstat(self._file.fileno()).st_size
            if size is not None and there > size:
                os.truncate(self._file.fileno(), size)
            self._size = there if size is None else min(there, size)
        except OSError as error:
            raise OutputError(f"{plain(path)}: cannot be written ({error.strerror}). Choose another name.") from error

    def begin(self, lines: Lines | None) -> None:
        """Begin with other lines. Those before have been passed."""
        self._lines = lines
        self.last_line = 0
        self._waiting.clear()

    def add(self, message: str, line: int = 0) -> DataError | None:
        """Count an invalid row, as `Refusals` does, and keep it until its line is passed."""
        self.last_line = line
        error = super().add(message, line)
        if error is None and self._file is not None:
            self._waiting.append((line, self._letter(message, line)))
        return error

    def _letter(self, message: str, line: int) -> bytes:
        letter = {"reason": message}
        if self._lines is not None:
            row = self._lines.text.split(b"\n", line)[line - 1][:LONGEST]
            letter = {"place": self._lines.place(line), **letter, "row": row.decode(errors="replace")}
        return json.dumps(letter, ensure_ascii=False).encode() + b"\n"

    def pass_line(self, number: int) -> None:
        """Write the rows up to this line: the position is after them."""
        if self._file is None or not self._waiting:
            return
        passed = b"".join(letter for line, letter in self._waiting if line <= number)
        self._waiting = [(line, letter) for line, letter in self._waiting if line > number]
        self._size += len(passed)
        self._file.write(passed)

    def noted(self, position: Position) -> Position:
        """Return a position with the size of the file, if there is one."""
        return position if self.path is None else {**position, KEY: {"file": self.path, "size": self._size}}

    def flush(self) -> None:
        """Write everything to disk."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write everything to disk, and close the file."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


def remembered(position: Position) -> tuple[str, int] | None:
    """Return the file and its size that a position of a model has; None if it has none, or no valid one."""
    kept = position.get(KEY)
    if not isinstance(kept, dict) or not isinstance(kept.get("file"), str) or not isinstance(kept.get("size"), int):
        return None
    return kept["file"], kept["size"]
