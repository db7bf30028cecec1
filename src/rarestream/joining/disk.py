"""What waits in a join and does not fit in memory: a temporary SQLite file."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from rarestream.errors import OutputError, plain
from rarestream.system import WINDOWS

# Rows are numbered as they come. They are found by the hash of their key: an index of numbers is small.
TABLES = """
CREATE TABLE events (number INTEGER PRIMARY KEY, hash INTEGER, key BLOB, time REAL, payload BLOB, label, waiting);
CREATE INDEX event_hashes ON events (hash);
CREATE TABLE labels (number INTEGER PRIMARY KEY, hash INTEGER, key BLOB, time REAL, label, late);
CREATE INDEX label_hashes ON labels (hash);
"""
LEAST_FILTER, MOST_FILTER = 1 << 12, 1 << 27  # bytes
LEAST_CACHE, MOST_CACHE = 1 << 20, 1 << 26  # bytes


class Disk:
    """Events and labels in a file that only this process can open: it has no name once it is open.

    Whatever becomes of the process, the system removes it. It is not flushed and has no journal: it need not outlive
    the process.

    Parameters
    ----------
    folder : str, optional
        Where the file is. By default where the system has its temporary files.
    memory : int
        About the bytes of memory that SQLite and the filters of keys use, unless that is very little.
    """

    def __init__(self, folder: str | None, memory: int) -> None:
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
        self._base.execute(f"PRAGMA cache_size = -{min(max(memory // 2, LEAST_CACHE), MOST_CACHE) >> 10}")
        self._base.executescript(TABLES)
        if not WINDOWS:  # which cannot remove an open file
            os.unlink(self._path)
        self._event_keys, self._label_keys = KeyFilter(memory // 8), KeyFilter(memory // 8)
        self._last_event = self._last_label = 0
        self._event_runs: deque[tuple[int, float]] = deque()  # of events added together: last number, latest time
        self._label_runs: deque[tuple[int, float]] = deque()
        self.events = self.labels = 0  # rows

    def close(self) -> None:
        self._base.close()
        if WINDOWS:
            os.unlink(self._path)

    # -- events

    def add_events(self, events: Iterable[tuple[bytes, float, bytes | None, Any, bool]]) -> None:
        """Add events: key, time, payload, label, and whether they wait. Those that wait are in order."""
        latest = None

        def rows() -> Iterator[tuple[Any, ...]]:
            nonlocal latest
            for key, time, payload, label, waiting in events:
                self._last_event += 1
                found = hash(key)
                self._event_keys.add(found)
                latest = time if latest is None else max(latest, time)
                yield self._last_event, found, key, time, payload, label, waiting

        before = self._last_event
        self._run_many("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows())
        if latest is not None:
            self.events += self._last_event - before
            self._event_runs.append((self._last_event, latest))
            self._event_keys.extend(latest)

    def events_of(self, key: bytes) -> list[tuple[int, float, Any]]:
        """Return number, time and label of the events of a key."""
        found = hash(key)
        if not self._event_keys.may_have(found):
            return []
        return self._run(
            "SELECT number, time, label FROM events WHERE hash = ? AND key = ? ORDER BY number", (found, key)
        ).fetchall()

    def waiting_events(self, first: int, count: int) -> list[tuple[int, bytes, float, bytes, Any]]:
        """Return the first events that wait, from a number on: number, key, time, payload, label."""
        return self._run(
            "SELECT number, key, time, payload, label FROM events "
            "WHERE number >= ? AND waiting ORDER BY number LIMIT ?",
            (first, count),
        ).fetchall()

    @property
    def next_event(self) -> int:
        """The number of the next event that is added."""
        return self._last_event + 1

    def waits(self, number: int) -> bool:
        """Return whether an event waits for its label."""
        return bool(self._run("SELECT waiting FROM events WHERE number = ?", (number,)).fetchone()[0])

    def payload_of(self, number: int) -> bytes:
        payload: bytes = self._run("SELECT payload FROM events WHERE number = ?", (number,)).fetchone()[0]
        return payload

    def set_label(self, number: int, label: Any) -> None:
        self._run("UPDATE events SET label = ? WHERE number = ?", (label, number))

    def close_events(self, numbers: Iterable[int]) -> None:
        """Events that wait no longer: they stay, without their payload, to be recognised."""
        self._run_many("UPDATE events SET waiting = 0, payload = NULL WHERE number = ?", ((i,) for i in numbers))

    def forget_events(self, before: float) -> None:
        """Remove events before a time, none of which waits. Some may stay: keeping one longer changes nothing."""
        last = _last_before(self._event_runs, before)
        if last is not None:
            self.events -= self._run("DELETE FROM events WHERE number <= ?", (last,)).rowcount
        self._event_keys.forget(before)

    # -- labels

    def add_labels(self, labels: Iterable[tuple[bytes, float, Any, bool]]) -> None:
        """Add labels, in order: key, time, label, and whether they are late for an event."""
        latest = None

        def rows() -> Iterator[tuple[Any, ...]]:
            nonlocal latest
            for key, time, label, late in labels:
                self._last_label += 1
                found = hash(key)
                self._label_keys.add(found)
                latest = time if latest is None else max(latest, time)
                yield self._last_label, found, key, time, label, late

        before = self._last_label
        self._run_many("INSERT INTO labels VALUES (?, ?, ?, ?, ?, ?)", rows())
        if latest is not None:
            self.labels += self._last_label - before
            self._label_runs.append((self._last_label, latest))
            self._label_keys.extend(latest)

    def labels_of(self, key: bytes) -> list[tuple[int, float, Any]]:
        """Return number, time and label of the labels of a key, in order."""
        found = hash(key)
        if not self._label_keys.may_have(found):
            return []
        return self._run(
            "SELECT number, time, label FROM labels WHERE hash = ? AND key = ? ORDER BY number", (found, key)
        ).fetchall()

    def set_late(self, number: int) -> None:
        self._run("UPDATE labels SET late = 1 WHERE number = ?", (number,))

    def remove_label(self, number: int) -> None:
        self.labels -= self._run("DELETE FROM labels WHERE number = ?", (number,)).rowcount

    def take_labels(self, before: float) -> tuple[int, int]:
        """Remove labels before a time; some may stay. Returns how many were removed, and how many of them were late."""
        last = _last_before(self._label_runs, before)
        self._label_keys.forget(before)
        if last is None:
            return 0, 0
        late: int = self._run("SELECT count(*) FROM labels WHERE number <= ? AND late", (last,)).fetchone()[0]
        removed = self._run("DELETE FROM labels WHERE number <= ?", (last,)).rowcount
        self.labels -= removed
        return removed, late

    # -- SQLite

    def _run(self, statement: str, values: tuple[Any, ...]) -> sqlite3.Cursor:
        try:
            return self._base.execute(statement, values)
        except sqlite3.Error as error:
            raise _failed(error) from error

    def _run_many(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        try:
            self._base.execute("BEGIN")
            self._base.executemany(statement, rows)
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            raise _failed(error) from error


class KeyFilter:
    """Says of most keys that are not on disk that they are not. It never says so of one that is.

    A bit for each hash, in two generations: when all rows of the older one are forgotten, so are its bits.
    """

    def __init__(self, size: int) -> None:
        size = 1 << (min(max(size, LEAST_FILTER), MOST_FILTER).bit_length() - 1)
        self._mask = 8 * size - 1
        self._new, self._old = bytearray(size), bytearray(size)
        self._new_latest = self._old_latest = float("-inf")

    def add(self, found: int) -> None:
        bit = found & self._mask
        self._new[bit >> 3] |= 1 << (bit & 7)

    def extend(self, latest: float) -> None:
        """Say up to which time the rows added are."""
        self._new_latest = max(self._new_latest, latest)

    def may_have(self, found: int) -> bool:
        bit = found & self._mask
        return bool((self._new[bit >> 3] | self._old[bit >> 3]) >> (bit & 7) & 1)

    def forget(self, before: float) -> None:
        """Forget rows before a time, which are not on disk any more."""
        if self._old_latest < before and self._new_latest != float("-inf"):
            self._old, self._old_latest = self._new, self._new_latest
            self._new, self._new_latest = bytearray(len(self._old)), float("-inf")


def _last_before(runs: deque[tuple[int, float]], before: float) -> int | None:
    """Remove the first runs that are before a time. Returns the last number of them, if there are any."""
    last = None
    while runs and runs[0][1] < before:
        last = runs.popleft()[0]
    return last


def _failed(error: sqlite3.Error) -> OutputError:
    return OutputError(
        f"join: the temporary file cannot be used ({error}). Free some space, name another folder, or allow more "
        "memory."
    )
