"""Joins events with labels that come later, in bounded memory.

The rules, with W for `within` and D for `disorder`. They name only what is in the rows, and the order of the rows
within each stream: when one stream is read against the other does not matter.

1. A label belongs to the event of its key whose time is at most W from its own, before or after.
2. An event whose key an event before it has, at most 2 W away, is a duplicate and left out. So a label never has two
   events to belong to; a key may be used again later.
3. The first label of an event counts, in the order of the labels; others are duplicates.
4. An event is decided when its label comes, or when no label can belong to it any more: when the labels have passed its
   time by more than W + D, or have ended. It is then unmatched: negative, or dropped.
5. A label whose event has not come waits until the events have passed its time by more than W + D, or have ended. It is
   then late if an event of its key is more than W and at most 2 W before it, and otherwise without event.
6. The rows of a stream are in order up to D; clocks.py says which rows are refused.

How much is kept follows: an event until it is decided; its key, to recognise duplicates and late labels, until both
streams have passed it by 2 W + D; a label until its event comes. What exceeds `memory` goes to a temporary file, the
oldest first, and gives the same result.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from rarestream.errors import DataError
from rarestream.joining.clocks import Clock
from rarestream.joining.disk import Disk

MINUTE = 60.0
DISORDER = 5 * MINUTE
MEMORY = 500_000_000
OVERHEAD = 250  # bytes of memory that an event or a label takes beside its key and its payload
PORTION = 256  # events that are read from disk at once

Label = bytes | str | int | float


class Joined(NamedTuple):
    """An event and its label.

    Attributes
    ----------
    payload : bytes
        What came with the event.
    label : bytes, str, int, float or None
        What came with its label; None for an event without one.
    key : bytes
        The key of both.
    time : float
        The time of the event.
    """

    payload: bytes
    label: Label | None
    key: bytes
    time: float

    @property
    def matched(self) -> bool:
        """Whether the event has a label."""
        return self.label is not None


class Refused(NamedTuple):
    """A row whose time cannot be right.

    Attributes
    ----------
    stream : {"events", "labels"}
        Where it came.
    row : int
        Its number in the stream, from 0.
    time : float
        Its time.
    latest : float
        The latest time of the rows before it.
    why : {"behind", "ahead"}
        Whether it is more than `disorder` before the latest time, or far after it and the next row is not.
    """

    stream: str
    row: int
    time: float
    latest: float
    why: str


@dataclass
class JoinCounts:
    """What a join has seen so far. Each row is counted once below its stream, when it is decided.

    Attributes
    ----------
    events, labels : int
        Rows of each stream.
    matched : int
        Events with a label.
    unmatched : int
        Events without one: negative, or dropped.
    duplicate_events : int
        Events whose key an event before them has. They are left out.
    refused_events, refused_labels : int
        Rows whose time cannot be right. They are left out.
    duplicate_labels : int
        Labels of an event that had one already.
    late_labels : int
        Labels that came after the window of their event.
    labels_without_event : int
        Labels whose event never came.
    """

    events: int = 0
    labels: int = 0
    matched: int = 0
    unmatched: int = 0
    duplicate_events: int = 0
    refused_events: int = 0
    duplicate_labels: int = 0
    late_labels: int = 0
    labels_without_event: int = 0
    refused_labels: int = 0

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)


@dataclass(slots=True, eq=False)
class _Event:
    key: bytes
    time: float
    payload: bytes | None  # None: not needed any more
    label: Label | None
    waiting: bool  # whether it is still to be returned
    older: _Event | None  # of the same key


@dataclass(slots=True, eq=False)
class _Label:
    key: bytes
    time: float
    label: Label
    late: bool
    waiting: bool


class LabelJoin:
    """Joins a stream of events with a stream of labels that come later, in bounded memory.

    Times are those of the rows, in seconds; the clock of the machine is never asked. A label belongs to the event of
    its key that is at most `within` from it; see "Labels that come late" for all rules. Methods that take rows return
    an iterator over the events that are decided now. What is not taken from it comes with the next call. One thread at
    a time may use a join.

    Parameters
    ----------
    within : float, > 0
        Seconds that a label may be from its event.
    unmatched : {"negative", "drop"}, default "negative"
        Whether events without a label are returned, with None for the label.
    order : {"event", "match"}, default "event"
        "event": events are returned in the order in which they came. "match": an event is returned as soon as its label
        is there.
    disorder : float, >= 0, default 300
        Seconds that a row may be before the latest row of its stream.
    jump : float, optional
        Seconds by which a single row may move the time of its stream without the next row to confirm it. By default
        the larger of `within` and `disorder`; `math.inf` takes every row as it is.
    memory : int, default 500 MB
        Bytes of memory for what waits. What exceeds them goes to a temporary file, which takes up to a quarter of them
        again to be searched.
    folder : str, optional
        Where that file is. By default where the system has its temporary files.
    on_refused : callable, optional
        Called with a `Refused` for each row that is left out because of its time.

    Attributes
    ----------
    counts : JoinCounts
        What has been seen so far.
    """

    def __init__(
        self,
        within: float,
        *,
        unmatched: Literal["negative", "drop"] = "negative",
        order: Literal["event", "match"] = "event",
        disorder: float = DISORDER,
        jump: float | None = None,
        memory: int = MEMORY,
        folder: str | None = None,
        on_refused: Callable[[Refused], None] | None = None,
    ) -> None:
        if not (within > 0 and math.isfinite(within)):
            raise DataError(f"LabelJoin: within must be a number of seconds above 0, got {within!r}.")
        if not (disorder >= 0 and math.isfinite(disorder)):
            raise DataError(f"LabelJoin: disorder must be a number of seconds, 0 or more, got {disorder!r}.")
        if unmatched not in ("negative", "drop"):
            raise DataError(f"LabelJoin: unmatched must be 'negative' or 'drop', got {unmatched!r}.")
        if order not in ("event", "match"):
            raise DataError(f"LabelJoin: order must be 'event' or 'match', got {order!r}.")
        if memory < 0:
            raise DataError(f"LabelJoin: memory must be a number of bytes, got {memory!r}.")
        jump = max(within, disorder) if jump is None else jump
        self.within, self.disorder, self.memory = within, disorder, memory
        self.counts = JoinCounts()
        self._keeps_unmatched = unmatched == "negative"
        self._at_once = order == "match"
        self._folder = folder
        self._on_refused = on_refused
        self._event_clock, self._label_clock = Clock(disorder, jump), Clock(disorder, jump)
        self._events: dict[bytes, _Event] = {}  # by key, the newest first: those that wait, and keys to recognise
        self._queue: deque[_Event] = deque()  # those that wait; with order="match", some that no longer do
        self._seen: deque[_Event] = deque()  # those that do not wait
        self._labels: dict[bytes, deque[_Label]] = {}  # those that wait, by key
        self._label_queue: deque[_Label] = deque()  # the same, and some that no longer do
        self._ready: deque[Joined] = deque()  # decided and not yet returned
        self._held = 0  # bytes in memory
        self._disk: Disk | None = None
        self._disk_waiting = 0  # events on disk that wait: they are older than those in memory
        self._disk_first = 0  # none of them has a lower number
        self._disk_head: tuple[int, float] | None = None  # number and time of the first of them, if it is not decided
        self._forgotten = -math.inf  # up to here, what is on disk was removed

    # -- rows

    def event(self, key: bytes | str, time: float, payload: bytes) -> Iterator[Joined]:
        """Add an event.

        Parameters
        ----------
        key : bytes or str
            What its label has too.
        time : float
            When it happened, in seconds.
        payload : bytes
            What is returned with its label.

        Returns
        -------
        iterator of Joined
            The events that are decided now.
        """
        self._add(self._event_clock, _finite(time), (_bytes(key), payload))
        return self._decided()

    def label(self, key: bytes | str, time: float, label: Label) -> Iterator[Joined]:
        """Add a label.

        Parameters
        ----------
        key : bytes or str
            That of its event.
        time : float
            When it became known, in seconds.
        label : bytes, str, int or float
            What is returned with the event.

        Returns
        -------
        iterator of Joined
            The events that are decided now.
        """
        if label is None:
            raise DataError("LabelJoin: label must not be None, which stands for no label.")
        self._add(self._label_clock, _finite(time), (_bytes(key), label))
        return self._decided()

    def events(
        self, keys: Sequence[bytes | str], times: Sequence[float], payloads: Sequence[bytes]
    ) -> Iterator[Joined]:
        """Add many events; the same as `event` for each, and quicker."""
        self._add_all(self._event_clock, self._add_event, keys, times, payloads)
        return self._decided()

    def labels(self, keys: Sequence[bytes | str], times: Sequence[float], labels: Sequence[Label]) -> Iterator[Joined]:
        """Add many labels; the same as `label` for each, and quicker."""
        self._add_all(self._label_clock, self._add_label, keys, times, labels)
        return self._decided()

    def advance(self, time: float, stream: Literal["both", "events", "labels"] = "both") -> Iterator[Joined]:
        """Say that time has come to this: rows more than `disorder` before it will not come.

        Parameters
        ----------
        time : float
            In seconds; `math.inf` if there are no more rows.
        stream : {"both", "events", "labels"}, default "both"
            Of which stream.

        Returns
        -------
        iterator of Joined
            The events that are decided now.
        """
        if math.isnan(time):
            raise DataError("LabelJoin: time must be a number, got nan.")
        if stream != "labels":
            for at, (key, payload) in self._event_clock.advance(time):
                self._add_event(key, at, payload)
        if stream != "events":
            for at, (key, label) in self._label_clock.advance(time):
                self._add_label(key, at, label)
        return self._decided()

    def finish(self) -> Iterator[Joined]:
        """Say that there are no more rows. All events are decided."""
        self.advance(math.inf)
        return self._finished()

    def _finished(self) -> Iterator[Joined]:
        yield from self._decided()
        self.close()

    def close(self) -> None:
        """Remove the temporary file, if there is one. What waits is lost."""
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def __enter__(self) -> LabelJoin:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- what waits

    @property
    def event_time(self) -> float:
        """The latest time of the events; infinite once they have ended."""
        return math.inf if self._event_clock.ended else self._event_clock.latest

    @property
    def label_time(self) -> float:
        """The latest time of the labels; infinite once they have ended."""
        return math.inf if self._label_clock.ended else self._label_clock.latest

    @property
    def held(self) -> int:
        """Bytes of memory that are used for what waits."""
        return self._held

    @property
    def spilled(self) -> int:
        """Rows in the temporary file."""
        return 0 if self._disk is None else self._disk.events + self._disk.labels

    @property
    def earliest(self) -> float:
        """A time that no event that waits is before; infinite if none waits."""
        if self._disk_waiting:
            return -math.inf
        return self._queue[0].time if self._queue else math.inf

    def outcome(self, key: bytes | str, time: float) -> Literal["label", "duplicate", "late", "unknown"]:
        """Return what a label would be if it were added now, by the events that have come. Nothing changes.

        Parameters
        ----------
        key : bytes or str
            That of its event.
        time : float
            When it became known, in seconds.

        Returns
        -------
        {"label", "duplicate", "late", "unknown"}
            "label": that of an event which waits for it; "duplicate": the event has one already, or was decided
            without; "late": it is more than `within` after its event; "unknown": no event has this key.
        """
        name, within = _bytes(key), self.within
        found: Literal["late", "unknown"] = "unknown"
        for at, waits in self._known(name):
            after = time - at
            if abs(after) <= within:
                return "label" if waits else "duplicate"
            if within < after <= 2 * within:
                found = "late"
        return found

    def has_event(self, key: bytes | str, time: float) -> bool:
        """Return whether an event of this key and time would be a duplicate."""
        return any(abs(time - at) <= 2 * self.within for at, _ in self._known(_bytes(key)))

    def _known(self, key: bytes) -> Iterator[tuple[float, bool]]:
        """Yield the time of each event of a key, and whether it waits for its label."""
        event = self._events.get(key)
        while event is not None:
            yield event.time, event.label is None and event.waiting
            event = event.older
        if self._disk is not None and self._disk.events:
            for number, at, label in self._disk.events_of(key):
                yield at, label is None and self._disk.waits(number)

    # -- adding

    def _add(self, clock: Clock, time: float, row: tuple[bytes, Any]) -> None:
        self._make_room()
        is_event = clock is self._event_clock
        if is_event:
            self.counts.events += 1
        else:
            self.counts.labels += 1
        latest = clock.latest
        taken, refused = clock.take(time, row)
        add = self._add_event if is_event else self._add_label
        for number, at, why in refused:
            if is_event:
                self.counts.refused_events += 1
            else:
                self.counts.refused_labels += 1
            if self._on_refused is not None:
                self._on_refused(Refused("events" if is_event else "labels", number, at, latest, why))
        for at, (key, what) in taken:
            add(key, at, what)

    def _add_all(
        self,
        clock: Clock,
        add: Callable[[bytes, float, Any], None],
        keys: Sequence[bytes | str],
        times: Sequence[float],
        rows: Sequence[Any],
    ) -> None:
        names = list(map(_bytes, keys))
        numbers = np.asarray(times, np.float64)
        if not len(names) == len(numbers) == len(rows):
            raise DataError("LabelJoin: keys, times and rows must be equally many.")
        if not np.isfinite(numbers).all():
            _finite(float(numbers[~np.isfinite(numbers)][0]))
        if clock.takes_all(numbers):
            self._make_room()
            if clock is self._event_clock:
                self.counts.events += len(names)
            else:
                self.counts.labels += len(names)
            for key, time, row in zip(names, numbers.tolist(), rows, strict=True):
                add(key, time, row)
            return
        for key, time, row in zip(names, numbers.tolist(), rows, strict=True):
            self._add(clock, time, (key, row))

    def _add_event(self, key: bytes, time: float, payload: bytes) -> None:
        within, disk = self.within, self._disk
        older = event = self._events.get(key)
        while event is not None:
            if abs(time - event.time) <= 2 * within:
                self.counts.duplicate_events += 1
                return
            event = event.older
        if disk is not None and disk.events:
            for _, at, _ in disk.events_of(key):
                if abs(time - at) <= 2 * within:
                    self.counts.duplicate_events += 1
                    return
        label = None
        if key in self._labels or (disk is not None and disk.labels):
            label = self._waiting_label(key, time)
        event = self._events[key] = _Event(key, time, payload, label, True, older)
        self._held += OVERHEAD + len(key) + len(payload)
        if label is not None:
            self.counts.matched += 1
        if label is not None and self._at_once:
            self._ready.append(self._returned(event))
        else:
            self._queue.append(event)

    def _waiting_label(self, key: bytes, time: float) -> Label | None:
        """Return the first label that belongs to an event. All that do are removed."""
        within = self.within
        found: Label | None = None
        if self._disk is not None and self._disk.labels:  # these came before those in memory
            for number, at, label in self._disk.labels_of(key):
                if abs(at - time) <= within:
                    if found is None:
                        found = label
                    else:
                        self.counts.duplicate_labels += 1
                    self._disk.remove_label(number)
                elif within < at - time <= 2 * within:
                    self._disk.set_late(number)
        waiting: deque[_Label] = deque()
        for row in self._labels.pop(key, ()):
            if abs(row.time - time) <= within:
                if found is None:
                    found = row.label
                else:
                    self.counts.duplicate_labels += 1
                row.waiting = False
            else:
                row.late |= within < row.time - time <= 2 * within
                waiting.append(row)
        if waiting:
            self._labels[key] = waiting
        return found

    def _add_label(self, key: bytes, time: float, label: Label) -> None:
        within = self.within
        late = False
        event = self._events.get(key)
        while event is not None:
            after = time - event.time
            if abs(after) <= within:
                if event.label is not None:
                    self.counts.duplicate_labels += 1
                else:
                    event.label = label
                    self.counts.matched += 1
                    if self._at_once:
                        self._ready.append(self._returned(event))
                return
            late |= within < after <= 2 * within
            event = event.older
        if self._disk is not None and self._disk.events:
            for number, at, known in self._disk.events_of(key):
                if abs(time - at) <= within:
                    if known is not None:
                        self.counts.duplicate_labels += 1
                    else:
                        self._label_on_disk(self._disk, number, key, at, label)
                    return
                late |= within < time - at <= 2 * within
        row = _Label(key, time, label, late, True)
        self._labels.setdefault(key, deque()).append(row)
        self._label_queue.append(row)
        self._held += OVERHEAD + len(key)

    def _label_on_disk(self, disk: Disk, number: int, key: bytes, time: float, label: Label) -> None:
        """Give a label to an event on disk."""
        self.counts.matched += 1
        disk.set_label(number, label)
        if self._disk_head is not None and self._disk_head[0] == number:
            self._disk_head = None
        if self._at_once:
            self._ready.append(Joined(disk.payload_of(number), label, key, time))
            disk.close_events([number])
            self._disk_waiting -= 1

    # -- deciding

    def _decided(self) -> Iterator[Joined]:
        """Yield the events that are decided, and forget what is not needed any more."""
        ready, queue, within = self._ready, self._queue, self.within
        while True:
            while ready:
                yield ready.popleft()
            if not self._decide_on_disk():
                break
        labels = self._label_clock.watermark
        while queue and not self._disk_waiting:
            event = queue[0]
            if event.waiting:
                if event.label is None and not labels - event.time > within:
                    break
                queue.popleft()
                joined = self._returned(event)
                if joined.label is not None:
                    yield joined
                else:
                    self.counts.unmatched += 1
                    if self._keeps_unmatched:
                        yield joined
            else:
                queue.popleft()
        self._forget()
        self._make_room()

    def _returned(self, event: _Event) -> Joined:
        """Return an event, of which the key stays to be recognised."""
        payload = event.payload
        assert payload is not None
        event.payload, event.waiting = None, False
        self._held -= len(payload)
        self._seen.append(event)
        return tuple.__new__(Joined, (payload, event.label, event.key, event.time))

    def _decide_on_disk(self) -> bool:
        """Decide the first events on disk. Returns whether there may be more to decide."""
        disk, labels, within = self._disk, self._label_clock.watermark, self.within
        if not self._disk_waiting or disk is None:
            return False
        if self._disk_head is not None and not labels - self._disk_head[1] > within:
            return False
        self._disk_head = None
        closed = []
        for number, key, time, payload, label in disk.waiting_events(self._disk_first, PORTION):
            self._disk_first = number
            if label is None and not labels - time > within:
                self._disk_head = number, time
                break
            closed.append(number)
            self.counts.unmatched += label is None
            if label is not None or self._keeps_unmatched:
                self._ready.append(Joined(payload, label, key, time))
        disk.close_events(closed)
        self._disk_waiting -= len(closed)
        return bool(closed)

    def _forget(self) -> None:
        """Forget keys that no row can have any more, and labels whose events will not come."""
        within, events = self.within, self._event_clock.watermark
        both = min(events, self._label_clock.watermark)
        seen, waiting = self._seen, self._label_queue
        while seen and both - seen[0].time > 2 * within:
            self._drop_event(seen.popleft())
        while waiting and (not waiting[0].waiting or events - waiting[0].time > within):
            row = waiting.popleft()
            if row.waiting:
                self._count_label(row.late)
            self._drop_label(row)
        # On disk this takes a scan, so it is done once in a while; keeping a row longer changes nothing.
        if self._disk is not None and (both == math.inf or both - self._forgotten > within / 16):
            self._forgotten = both
            # Events that wait behind an earlier one may be up to `disorder` older than it.
            self._disk.forget_events(both - 2 * within - self.disorder - 1)
            removed, late = self._disk.take_labels(events - within - 1)
            self.counts.late_labels += late
            self.counts.labels_without_event += removed - late

    def _count_label(self, late: bool) -> None:
        if late:
            self.counts.late_labels += 1
        else:
            self.counts.labels_without_event += 1

    def _drop_event(self, event: _Event) -> None:
        """Remove an event from memory that does not wait, or that is on disk now."""
        newest = self._events[event.key]
        if newest is event:
            if event.older is None:
                del self._events[event.key]
            else:
                self._events[event.key] = event.older
        else:
            while newest.older is not event:
                assert newest.older is not None
                newest = newest.older
            newest.older = event.older
        self._held -= OVERHEAD + len(event.key) + (0 if event.payload is None else len(event.payload))

    def _drop_label(self, row: _Label) -> None:
        """Remove a label from memory."""
        self._held -= OVERHEAD + len(row.key)
        others = self._labels.get(row.key)
        if row.waiting and others is not None:
            others.remove(row)  # mostly the first
            if not others:
                del self._labels[row.key]

    # -- the temporary file

    def _make_room(self) -> None:
        """Move what is oldest to disk if memory is short: keys first, then events that wait, then labels."""
        if self._held <= self.memory:
            return
        if self._disk is None:
            self._disk = Disk(self._folder, self.memory // 4)
        # The order of keys does not matter. In that of the index they are added, and later removed, more quickly.
        self._disk.add_events(sorted(self._oldest_keys(), key=lambda row: hash(row[0])))
        if not self._disk_waiting:
            self._disk_first = self._disk.next_event
        self._disk.add_events(self._oldest_events())
        self._disk.add_labels(self._oldest_labels())

    def _oldest_keys(self) -> Iterator[tuple[bytes, float, bytes | None, Any, bool]]:
        least = self.memory // 2
        while self._held > least and self._seen:
            event = self._seen.popleft()
            self._drop_event(event)
            yield event.key, event.time, None, event.label, False

    def _oldest_events(self) -> Iterator[tuple[bytes, float, bytes | None, Any, bool]]:
        least = self.memory // 2
        while self._held > least and self._queue:
            event = self._queue.popleft()
            if event.waiting:
                self._drop_event(event)
                self._disk_waiting += 1
                yield event.key, event.time, event.payload, event.label, True

    def _oldest_labels(self) -> Iterator[tuple[bytes, float, Any, bool]]:
        least = self.memory // 2
        while self._held > least and self._label_queue:
            row = self._label_queue.popleft()
            self._drop_label(row)
            if row.waiting:
                yield row.key, row.time, row.label, row.late


def _bytes(key: bytes | str) -> bytes:
    return key.encode() if isinstance(key, str) else key


def _finite(time: float) -> float:
    if not math.isfinite(time):
        raise DataError(f"LabelJoin: time must be a finite number of seconds, got {time!r}.")
    return time
