"""Joins two tables of text: the rows of one, as they are written, with a label from the other."""

from __future__ import annotations

import json
import math
import queue
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rarestream.errors import DataError, advice, quoted
from rarestream.joining.clocks import BEHIND
from rarestream.joining.join import JoinCounts, LabelJoin, Refused
from rarestream.readers.options import as_label
from rarestream.readers.picking import PickedRows, PickedTable
from rarestream.readers.refusals import Refusals

AHEAD = 2  # batches that are read ahead of the join, of each table
PATIENCE = 0.2  # seconds that a table whose rows are wanted may keep the other waiting, if it is a pipe
MOST_CELLS = 10_000  # different labels whose text is remembered
JSON_VALUE = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false")


class TableJoin:
    """Joins the rows of one table with labels of another: iterate over it for the text of the joined table.

    Labels are read ahead of events, by as much as the window is long. So an event finds its label when it is read, and
    what waits are labels, which are small, rather than events. Of two pipes, whatever comes is read.

    Parameters
    ----------
    events, labels : PickedTable
        The tables. Rows of `labels` without a label column count as positive.
    name : str
        The column to add.
    positive : float or str, optional
        The label that is written as 1, all others as 0. By default labels are written as they are.
    max_bad_rows : int
        Maximum number of invalid rows to skip, of both tables.
    unmatched : {"negative", "drop"}
        Whether events without a label are written, with 0.
    quoting : bool
        Whether cells of a CSV file may be in quotes.
    settings
        Those of LabelJoin.
    """

    def __init__(
        self,
        events: PickedTable,
        labels: PickedTable,
        *,
        name: str,
        within: float,
        unmatched: str = "negative",
        positive: float | str | None = None,
        max_bad_rows: int = 0,
        quoting: bool = True,
        **settings: Any,
    ) -> None:
        self.events, self.labels, self.name = events, labels, name
        self.refusals = Refusals(max_bad_rows)
        self.written = 0  # rows
        self.position = 0  # stored bytes of the events read so far
        self._positive = positive
        self._quoting = quoting
        self._checks = bool(labels.wanted.label) and positive is None and unmatched == "negative"
        self._checked: set[bytes] = set()
        self._places: dict[str, list[tuple[int, PickedRows]]] = {"events": [], "labels": []}
        self._ends: dict[bytes | None, bytes] = {}
        self._join = LabelJoin(
            within,
            unmatched=unmatched,  # type: ignore[arg-type]
            on_refused=self._refuse,
            **settings,
        )

    @property
    def counts(self) -> JoinCounts:
        """What has been seen so far."""
        return self._join.counts

    @property
    def spilled(self) -> int:
        """Rows in the temporary file."""
        return self._join.spilled

    def __iter__(self) -> Iterator[bytes]:
        events, labels = _Ahead(self.events), _Ahead(self.labels)
        begun = False
        try:
            while not (events.ended and labels.ended):
                source = self._next(events, labels)
                batch = source.take()
                if batch is None:
                    joined = self._join.advance(math.inf, "events" if source is events else "labels")
                    if source is events and not begun:
                        raise DataError(f"{self.events.sources[0].name}: is empty; there is nothing to join.")
                elif source is events:
                    self.position = batch.position
                    self._count_bad(batch, "events")
                    if not begun:
                        begun = True
                        yield self._heading()
                    joined = self._join.events(batch.keys, batch.times, batch.rows)  # type: ignore[arg-type]
                else:
                    self._count_bad(batch, "labels")
                    found = batch.labels if self.labels.wanted.label else [b"1"] * len(batch.keys)
                    self._check(batch)
                    joined = self._join.labels(batch.keys, batch.times, found)  # type: ignore[arg-type]
                yield from self._written(joined)
        finally:
            events.close()
            labels.close()
            self._join.close()

    def _next(self, events: _Ahead, labels: _Ahead) -> _Ahead:
        """Return the table to read next: labels until they are ahead of the events by the window."""
        join = self._join
        wanted, other = events, labels
        if not labels.ended and join.label_time <= join.event_time + join.within + join.disorder:
            wanted, other = labels, events
        if wanted.ended:
            return other
        # While one program is silent, another one may be waiting until its rows are read. A file can wait.
        while wanted.table.piped and other.table.piped and not other.ended:
            if wanted.ready(PATIENCE):
                return wanted
            if other.ready(0):
                return other
        return wanted

    # -- text

    def _heading(self) -> bytes:
        events = self.events
        if events.format != "csv" or events.heading is None:
            return b""
        return events.heading + events.delimiter.encode() + self._csv_cell(self.name) + events.line_end

    def _written(self, joined: Iterator[Any]) -> Iterator[bytes]:
        """Yield the text of joined rows, in pieces."""
        pieces: list[bytes] = []
        ends = self._ends
        size = 0
        for row in joined:
            label = row[1]
            try:
                end = ends[label]
            except KeyError:
                end = self._end(label)
            payload = row[0]
            pieces.append(payload)
            pieces.append(end)
            size += len(payload)
            if size > 1 << 20:
                yield self._piece(pieces)
                size = 0
        if pieces:
            yield self._piece(pieces)

    def _piece(self, pieces: list[bytes]) -> bytes:
        self.written += len(pieces) // 2
        text = b"".join(pieces)
        pieces.clear()
        return text

    def _end(self, label: bytes | None) -> bytes:
        """Return what follows the text of a row: the cell of its label, and the line end."""
        text = "0" if label is None else label.decode()
        if label is not None and self._positive is not None:
            text = "1" if _value(text) == self._positive else "0"
        if self.events.format == "csv":
            end = self.events.delimiter.encode() + self._csv_cell(text) + self.events.line_end
        else:
            value = text if JSON_VALUE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
            end = f",{json.dumps(self.name, ensure_ascii=False)}:{value}}}\n".encode()
        if len(self._ends) >= MOST_CELLS:
            self._ends.clear()
        self._ends[label] = end
        return end

    def _csv_cell(self, text: str) -> bytes:
        divides = any(mark in text for mark in (self.events.delimiter, "\n", "\r"))
        if divides and not self._quoting:
            raise DataError(
                f"join: the text {text!r} has a delimiter or a line end, and cannot be written without quotes. "
                f"Drop {advice('quoting=False', '--no-quoting')}."
            )
        if self._quoting and (divides or '"' in text):
            text = '"' + text.replace('"', '""') + '"'
        return text.encode()

    # -- what is wrong

    def _count_bad(self, batch: PickedRows, stream: str) -> None:
        if batch.keys:  # a row that was held back is of the batch before, so two are enough
            known = self._places[stream]
            first = known[-1][0] + len(known[-1][1].keys) if known else 0
            self._places[stream] = [*known[-1:], (first, batch._replace(rows=[]))]
        for message in batch.bad:
            self._count(message)

    def _count(self, message: str) -> None:
        error = self.refusals.add(message)
        if error is not None:
            raise error

    def _refuse(self, row: Refused) -> None:
        """Count a row whose time cannot be right."""
        first, batch = next(known for known in reversed(self._places[row.stream]) if row.row >= known[0])
        time, latest = _shown(row.time), _shown(row.latest)
        if row.why == BEHIND:
            message = (
                f"its time, {time}, is {_length(row.latest - row.time)} before the latest so far, {latest}; rows may "
                f"be {_length(self._join.disorder)} out of order. Sort the rows by time, or allow more: "
                f"{advice('disorder=', '--disorder ')}{_length(row.latest - row.time, True)}."
            )
        else:
            message = (
                f"its time, {time}, is {_length(row.time - row.latest)} after the latest so far, {latest}, and the "
                "next row is not: this clock is wrong. To leave such rows out, pass "
                f"{advice('max_bad_rows=N', '--max-bad-rows N')}."
            )
        self._count(f"{batch.source}:{int(batch.lines[row.row - first])}: {message}")

    def _check(self, batch: PickedRows) -> None:
        """Check that labels can be told from the 0 of events without one."""
        if not self._checks:
            return
        for label in set(batch.labels) - self._checked:
            if _value(label.decode()) not in (0, 1):
                line = int(batch.lines[batch.labels.index(label)])
                raise DataError(
                    f"{batch.source}:{line}: the label {quoted(label)} is neither 0 nor 1, and events without a label "
                    f"are written as 0. Name the positive label, {advice('positive=VALUE', '--positive VALUE')}, or "
                    f"drop events without one, {advice('unmatched=', '--unmatched ')}drop."
                )
            self._checked.add(label)


class _Ahead:
    """Reads a table on a thread, a few batches ahead."""

    def __init__(self, table: PickedTable) -> None:
        self.table = table
        self.ended = False
        self._batches: queue.Queue[PickedRows | BaseException | None] = queue.Queue(AHEAD)
        self._first: PickedRows | BaseException | None = None
        self._has_first = False
        self._left = False
        self._thread = threading.Thread(target=self._run, name="rarestream-join", daemon=True)
        self._thread.start()

    def ready(self, seconds: float) -> bool:
        """Return whether `take` returns at once, after waiting for that for some seconds."""
        if not self._has_first:
            try:
                self._first = self._batches.get(timeout=seconds) if seconds else self._batches.get_nowait()
            except queue.Empty:
                return False
            self._has_first = True
        return True

    def take(self) -> PickedRows | None:
        """Return the next batch; None after the last."""
        found = self._first if self._has_first else self._batches.get()
        self._first, self._has_first = None, False
        if isinstance(found, BaseException):
            self.ended = True
            raise found
        self.ended = found is None
        return found

    def close(self) -> None:
        """End the thread."""
        self._left = True
        self.table.stop()
        self._thread.join()

    def _run(self) -> None:
        last: BaseException | None = None
        try:
            for batch in self.table:
                if not self._put(batch):
                    return
        except BaseException as error:  # raised where the batch would have come
            last = error
        self._put(last)

    def _put(self, batch: PickedRows | BaseException | None) -> bool:
        """Hand a batch over. Returns whether it is wanted."""
        while not self._left:
            try:
                self._batches.put(batch, timeout=PATIENCE)
                return True
            except queue.Full:
                pass
        return False


def _value(text: str) -> float | str:
    """Return the label that a text is: a number where it is one."""
    try:
        return as_label(text)
    except ValueError:  # nan, inf, spaces: words like any other
        return text


def _shown(seconds: float) -> str:
    """Return a time as messages show it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g}"


def _length(seconds: float, up: bool = False) -> str:
    """Return a length of time as options have it: 90s, 5m, 12h, 7d; with `up`, not shorter."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            count = seconds / size
            return f"{math.ceil(count) if up else round(count)}{unit}"
    return f"{math.ceil(seconds) if up else round(seconds, 3):g}s"
