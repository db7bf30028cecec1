"""The results file, results.jsonl: one JSON object per line, one line per finished trial.

Each row is written, flushed and synced before the next, and one process at a time holds the file's lock. So a kill or
a full disk leaves a valid file: at worst the last line is torn, and it is dropped when the file is next read.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rarestream.errors import RarestreamError
from rarestream.system import lock_file

RESULTS = "results.jsonl"  # the file's name in a folder of results

Unit = Mapping[str, Any]  # what to do: a few JSON values
Row = dict[str, Any]  # the unit and its result


class TrialsError(RarestreamError):
    """Trials that cannot continue, or a file that is not a results file."""


class Store:
    """A results file, open for reading and appending by this process alone.

    Parameters
    ----------
    path : str or path
        The file. It is created if it does not exist.

    Attributes
    ----------
    rows : list of dict
        The rows of the file, in order.

    Raises
    ------
    TrialsError
        If another process has the file open, or a line other than the last is not a row.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file = io.FileIO(self.path, "a+")
        try:
            try:
                lock_file(self._file.fileno())
            except OSError:
                raise TrialsError(
                    f"{self.path}: another run writes to it. Wait until it ends, or choose another file."
                ) from None
            self._file.seek(0)
            self.rows, self._end = _parse(self._file.read(), self.path)
            self._file.truncate(self._end)  # a torn line would corrupt the one that follows
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Row) -> None:
        """Append a row; it is on the disk when this returns."""
        line = json.dumps(row, allow_nan=False).encode() + b"\n"
        try:
            written = self._file.write(line)
            if written != len(line):  # a nearly full disk takes a part; writing the rest tells why
                self._file.write(line[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(self._end)
            raise TrialsError(
                f"{self.path}: {(error.strerror or str(error)).lower()}. Rows written before are safe: "
                f"{len(self.rows)}. Rerun to resume."
            ) from error
        self._end += len(line)
        self.rows.append(row)

    def find(self, units: Iterable[Unit]) -> list[Row | None]:
        """Return the row of each unit, or None for a unit that has no row yet."""
        return [next((row for row in self.rows if _matches(row, unit)), None) for unit in units]

    def close(self) -> None:
        """Close the file and release its lock."""
        self._file.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    """Read the rows of a results file without changing it; a torn last line is ignored.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    list of dict
        The rows, in order.

    Raises
    ------
    TrialsError
        If a line other than the last is not a row.
    """
    return _parse(Path(path).read_bytes(), Path(path))[0]


def _parse(content: bytes, path: Path) -> tuple[list[Row], int]:
    """Return the rows, and where the last complete line ends."""
    rows: list[Row] = []
    end = 0
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line) if line.endswith(b"\n") else None
        except ValueError:
            row = None
        if not isinstance(row, dict):
            if number == len(lines) and (rows or line[:1] in (b"{", b"\0")):  # else it never was a results file
                break
            raise TrialsError(
                f"{path}:{number}: not a row of results. Repair or remove the line, or choose another file."
            )
        rows.append(row)
        end += len(line)
    return rows, end


def _matches(row: Row, unit: Unit) -> bool:
    return all(word in row and row[word] == value for word, value in unit.items())
