"""What waits in a join and does not fit in memory: a temporary SQLite file."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

from rarestream.errors import OutputError, plain
from rarestream.system import WINDOWS

CACHE = 16 << 20  # bytes of memory that SQLite uses
TABLES = """
CREATE TABLE events (number INTEGER PRIMARY KEY, key BLOB, time REAL, payload BLOB, label, waiting INTEGER);
CREATE INDEX events_by_key ON events (key);
CREATE INDEX events_by_time ON events (time);
CREATE TABLE labels (number INTEGER PRIMARY KEY, key BLOB, time REAL, label, late INTEGER);
CREATE INDEX labels_by_key ON labels (key);
CREATE INDEX labels_by_time ON labels (time);
"""


class Disk:
    """Events and labels in a file that only this process can open: it has no name once it is open.

    Whatever becomes of the process, the system removes it. It is not flushed and has no journal: it need not outlive
    the process.

    Parameters
    ----------
    folder : str, optional
        Where the file is. By default where the system has its temporary files.
    """

    def __init__(self, folder: str | None) -> None:
        try:
            handle, self._path = tempfile.mkstemp(prefix="rarestream-join-", dir=folder)
        except OSError as error:
            raise OutputError(
                f"{plain(folder or tempfile.gettempdir())}: no temporary file can be made ({error.strerror}). "
                "Choose another folder."
            ) from error
        os.close(handle)
        # One thread at a time uses a join, but not always the same one.
        self._base = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "temp_store = MEMORY"):
            self._base.execute(f"PRAGMA {setting}")
        self._base.execute(f"PRAGMA cache_size = -{CACHE >> 10}")
        self._base.executescript(TABLES)
        if not WINDOWS:  # which cannot remove an open file
            os.unlink(self._path)
        self.events = self.labels = 0  # rows

    def close(self) -> None:
        self._base.close()
        if WINDOWS:
            os.unlink(self._path)

    def add_events(self, events: Iterable[tuple[int, bytes, float, bytes | None, Any, bool]]) -> None:
        """Add events: number, key, time, payload, label, and whether they wait."""
        self.events += self._insert("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", events)

    def add_labels(self, labels: Iterable[tuple[int, bytes, float, Any, bool]]) -> None:
        """Add labels: number, key, time, label, and whether they are late for an event."""
        self.labels += self._insert("INSERT INTO labels VALUES (?, ?, ?, ?, ?)", labels)

    def events_of(self, key: bytes) -> list[tuple[int, float, Any, bool]]:
        """Return number, time and label of the events of a key, and whether they wait, in order."""
        found = self._run("SELECT number, time, label, waiting FROM events WHERE key = ? ORDER BY number", (key,))
        return found.fetchall()

    def labels_of(self, key: bytes) -> list[tuple[int, float, Any]]:
        """Return number, time and label of the labels of a key, in order."""
        return self._run("SELECT number, time, label FROM labels WHERE key = ? ORDER BY number", (key,)).fetchall()

    def waiting_events(self, first: int, count: int) -> list[tuple[int, bytes, float, bytes, Any]]:
        """Return the first events that wait, from a number on: number, key, time, payload, label."""
        return self._run(
            "SELECT number, key, time, payload, label FROM events WHERE number >= ? AND waiting ORDER BY number LIMIT ?",
            (first, count),
        ).fetchall()

    def payload_of(self, number: int) -> bytes:
        payload: bytes = self._run("SELECT payload FROM events WHERE number = ?", (number,)).fetchone()[0]
        return payload

    def set_label(self, number: int, label: Any) -> None:
        self._run("UPDATE events SET label = ? WHERE number = ?", (label, number))

    def close_events(self, numbers: Iterable[int]) -> None:
        """Events that wait no longer: they stay, without their payload, to be recognised."""
        self._insert(
            "UPDATE events SET waiting = 0, payload = NULL WHERE number = ?", ((number,) for number in numbers)
        )

    def forget_events(self, before: float) -> None:
        """Remove events before a time that do not wait."""
        if self.events:
            self.events -= self._run("DELETE FROM events WHERE time < ? AND NOT waiting", (before,)).rowcount

    def set_late(self, number: int) -> None:
        self._run("UPDATE labels SET late = 1 WHERE number = ?", (number,))

    def remove_label(self, number: int) -> None:
        self.labels -= self._run("DELETE FROM labels WHERE number = ?", (number,)).rowcount

    def take_labels(self, before: float) -> tuple[int, int]:
        """Remove the labels before a time. Returns how many there were, and how many of them were late."""
        if not self.labels:
            return 0, 0
        late = self._run("SELECT count(*) FROM labels WHERE time < ? AND late", (before,)).fetchone()[0]
        removed = self._run("DELETE FROM labels WHERE time < ?", (before,)).rowcount
        self.labels -= removed
        return removed, late

    def _run(self, statement: str, values: tuple[Any, ...]) -> sqlite3.Cursor:
        try:
            return self._base.execute(statement, values)
        except sqlite3.Error as error:
            raise _failed(error) from error

    def _insert(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> int:
        count = 0

        def counted() -> Iterator[tuple[Any, ...]]:
            nonlocal count
            for row in rows:
                count += 1
                yield row

        try:
            self._base.execute("BEGIN")
            self._base.executemany(statement, counted())
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            raise _failed(error) from error
        return count


def _failed(error: sqlite3.Error) -> OutputError:
    return OutputError(
        f"join: the temporary file cannot be used ({error}). Free some space, name another folder, or allow more memory."
    )
