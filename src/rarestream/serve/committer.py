"""Group commit: a thread appends to the log what has been queued, flushes it to disk, and begins again.

What comes during a flush waits for the next one, which is for all of it. So the disk decides how many requests share a
flush, and nobody waits for a timer. Records that are only to be written, and need not wait for the disk, are appended
meanwhile by another thread, and flushed with the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from rarestream.serve.log import SegmentLog


class Write:
    """A record on its way to disk.

    Attributes
    ----------
    kind, count, payload
        Of the record.
    context : Any
        What the owner of the record needs when it comes back.
    sequence : int
        That of its first entry; 0 until it is written.
    """

    __slots__ = ("context", "count", "kind", "payload", "sequence")

    def __init__(self, kind: int, count: int, payload: bytes, context: Any) -> None:
        self.kind, self.count, self.payload, self.context = kind, count, payload, context
        self.sequence = 0


class Committer:
    """Brings records to disk.

    Parameters
    ----------
    log : SegmentLog
        Nobody else may append to it.
    on_written : callable
        Called with a list of Writes that were submitted to be written at once and are in the file: they outlive this
        process, but not a power cut.
    on_synced : callable
        Called with a list of Writes that are on disk, in the order of the log.
    on_failed : callable
        Called with a list of Writes that are not on disk, and the exception.

    The callables are called in the threads of the committer.
    """

    def __init__(
        self,
        log: SegmentLog,
        on_written: Callable[[Sequence[Write]], None],
        on_synced: Callable[[Sequence[Write]], None],
        on_failed: Callable[[Sequence[Write], Exception], None],
    ) -> None:
        self._log = log
        self._on_written, self._on_synced, self._on_failed = on_written, on_synced, on_failed
        self._order = threading.Lock()  # held while something is appended and noted
        self._appended: list[Write] = []  # and not yet flushed, in the order of the log
        self._patient: SimpleQueue[Write | None] = SimpleQueue()  # for the thread that flushes
        self._urgent: SimpleQueue[Write | None] = SimpleQueue()  # for the thread that only writes
        self._writer = threading.Thread(target=self._write_urgent, name="log-write", daemon=True)
        self._flusher = threading.Thread(target=self._flush, name="log-flush", daemon=True)
        self._ended = False
        self._writer.start()
        self._flusher.start()

    def submit(self, write: Write, at_once: bool = False) -> None:
        """Queue a record.

        Parameters
        ----------
        write : Write
            The record.
        at_once : bool, default False
            Whether it is to be written before the flush that is under way has ended.
        """
        (self._urgent if at_once else self._patient).put(write)

    def close(self) -> None:
        """Bring what is queued to disk, and end."""
        self._urgent.put(None)
        self._writer.join()
        self._ended = True
        self._patient.put(None)
        self._flusher.join()

    def _write_urgent(self) -> None:
        while True:
            batch = _taken(self._urgent)
            writes = [write for write in batch if write is not None]
            if self._append(writes):
                self._on_written(writes)
                self._patient.put(None)  # to be flushed too
            if len(writes) < len(batch):
                return

    def _flush(self) -> None:
        while True:
            batch = _taken(self._patient)
            self._append([write for write in batch if write is not None])
            with self._order:
                appended, self._appended = self._appended, []
            if appended:
                try:
                    self._log.sync()
                except Exception as error:
                    self._on_failed(appended, error)
                else:
                    self._on_synced(appended)
            if self._ended and self._patient.empty():
                return

    def _append(self, writes: list[Write]) -> bool:
        """Append records to the log; return whether that was possible."""
        if not writes:
            return False
        with self._order:
            try:
                sequence = self._log.append([(write.kind, write.count, write.payload) for write in writes])
            except Exception as error:
                self._on_failed(writes, error)
                return False
            for write in writes:
                write.sequence = sequence
                sequence += write.count
            self._appended += writes
        return True


def _taken(queue: SimpleQueue[Write | None]) -> list[Write | None]:
    """Return everything in a queue, and wait until there is something."""
    batch = [queue.get()]
    while not queue.empty():
        batch.append(queue.get())
    return batch
