"""The way of a change through the log, which keeps the state and the log the same.

    queued -> written to the log -> flushed to disk -> applied in its order -> answered

Records are applied in slices of a fraction of a millisecond; between two slices the event loop answers requests.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from rarestream.model import Model
from rarestream.serve import entries
from rarestream.serve.committer import Committer, Write
from rarestream.serve.errors import RequestError
from rarestream.serve.log import LogFullError, Record, SegmentLog
from rarestream.serve.options import Options
from rarestream.serve.rows import DecodedRows, RowDecoder
from rarestream.serve.scoring import Scoring
from rarestream.serve.state import GRID, ServedState

SLICE = 0.0001  # seconds of learning between two looks at requests
LEAST_NONZEROS = 2048  # of a slice: below, what does not depend on its rows would take most of the time
TOGETHER = 256  # rows of small records that are applied together

say = logging.getLogger("rarestream.serve")


class Pending:
    """A change on its way through the log."""

    __slots__ = ("answer", "bytes", "decoded", "entry", "model", "rows", "written")

    def __init__(self, entry: entries.Entry, rows: int, size: int, decoded: DecodedRows | None, model: Model) -> None:
        loop = asyncio.get_running_loop()
        self.entry, self.rows, self.bytes, self.decoded, self.model = entry, rows, size, decoded, model
        self.answer: asyncio.Future[Any] = loop.create_future()
        self.written: asyncio.Future[None] | None = None


class Pipeline(Scoring):
    """A state, the log that it is made from, and the changes on their way between them.

    Parameters
    ----------
    options : Options
        How much may wait.

    Attributes
    ----------
    state : ServedState
        What all entries of the log up to `state.sequence` have made.
    stopping : bool
        Whether no more changes are taken.
    broken : str or None
        Why nothing can be learned until the next start.
    full : str or None
        Why nothing could be learned a moment ago.
    behind : bool
        Whether an entry of the log could not be applied: the state must not be used again.
    """

    state: ServedState

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options, self.limits = options, options.limits
        self.stopping = self.behind = False
        self.broken: str | None = None
        self.full: str | None = None
        self.queued_rows = self.queued_bytes = 0
        self.under_way = 0  # changes that are queued, and not yet applied
        self._durable: deque[Write] = deque()
        self._some_durable = asyncio.Event()
        self._storing: dict[str, int] = {}  # ids of rows under way to the join
        self._last_time = 0.0
        self._decoder_of: Model | None = None
        self._applying: asyncio.Task[None] | None = None

    def begin(self, state: ServedState, log: SegmentLog) -> None:
        """Take over a state, and the log that it is made from."""
        self._loop = asyncio.get_running_loop()
        self.state, self._log = state, log
        self._last_time = state.time
        state.slice_rows, state.least_nonzeros = GRID // 4, LEAST_NONZEROS
        self._committer = Committer(log, self._on_written, self._on_synced, self._on_failed)
        self._applying = self._loop.create_task(self._apply_records())

    async def finish(self) -> None:
        """Bring what was taken to disk, and apply it."""
        await self._loop.run_in_executor(None, self._committer.close)
        while self.under_way and not self.behind:
            await asyncio.sleep(0.002)
        if self._applying is not None:
            self._applying.cancel()
            await asyncio.gather(self._applying, return_exceptions=True)

    # -- what a request sees of the state

    @property
    def answering(self) -> Model:  # type: ignore[override]
        """The model that answers."""
        return self.state.model

    @property
    def decoder(self) -> RowDecoder:  # type: ignore[override]
        """The decoder of the rows of requests."""
        if self._decoder_of is not self.state.model:
            self._decoder_of = self.state.model
            self._decoder = RowDecoder.of_model(self._decoder_of, self.limits)
        return self._decoder

    @property
    def version(self) -> int:  # type: ignore[override]
        """The version of the model."""
        return self.state.version

    @property
    def sequence(self) -> int:  # type: ignore[override]
        """The last entry that was applied."""
        return self.state.sequence

    # -- the way through the log

    def now(self) -> float:
        """Return the time for a record: it never goes back, whatever the clock does."""
        self._last_time = max(self._last_time, time.time())
        return self._last_time

    def why_not_learning(self) -> str | None:
        """Return why nothing can be learned; None if it can."""
        if self.broken is not None:
            return self.broken
        if self.full is not None:
            return self.full
        return None if self.answering.kind == "resumable" else "The model has only weights: it can score, not learn."

    def check_ready(self) -> None:
        """Raise a RequestError unless rows can be scored."""
        if self.stopping and not self.ready:
            raise stopping()
        super().check_ready()

    def check_learning(self) -> None:
        """Raise a RequestError unless rows can be learned."""
        self.check_ready()
        if self.stopping:
            raise stopping()
        if self.broken is not None:
            raise RequestError(503, "log_broken", self.broken)
        if self.answering.kind != "resumable":
            raise RequestError(403, "read_only", "The model has only weights: it can score, not learn.")

    def submit(
        self,
        entry: entries.Entry,
        rows: int,
        decoded: DecodedRows | None = None,
        model: Model | None = None,
        *,
        written: bool = False,
    ) -> Pending:
        """Queue an entry for the log.

        Raises
        ------
        RequestError
            If too much is waiting.
        """
        if self.stopping or self.broken is not None:
            self.check_learning()  # it was asked before the rows were decoded
        payload = entries.encode(entry)
        if rows and self.queued_rows:
            over_rows = self.queued_rows + rows > self.options.queue_rows
            if over_rows or self.queued_bytes + len(payload) > self.options.queue_bytes:
                raise RequestError(
                    429, "busy", "Too many rows are waiting to be learned. Try again in a second.", retry_after=1
                )
        pending = Pending(entry, rows, len(payload), decoded, self.answering if model is None else model)
        if written:
            pending.written = self._loop.create_future()
        self.under_way += 1
        self.queued_rows += rows
        self.queued_bytes += len(payload)
        self._committer.submit(Write(entries.KINDS[type(entry)], max(rows, 1), payload, pending), at_once=written)
        return pending

    def _on_written(self, batch: Sequence[Write]) -> None:
        self._loop.call_soon_threadsafe(self._when_written, batch)

    def _on_synced(self, batch: Sequence[Write]) -> None:
        self._loop.call_soon_threadsafe(self._when_synced, batch)

    def _on_failed(self, batch: Sequence[Write], error: Exception) -> None:
        self._loop.call_soon_threadsafe(self._when_failed, batch, error)

    def _when_written(self, batch: Sequence[Write]) -> None:
        for write in batch:
            _resolve(write.context.written)

    def _when_synced(self, batch: Sequence[Write]) -> None:
        if self.full is not None:
            say.info("there is space on the disk again: the service learns")
            self.full = None
        self._durable.extend(batch)
        self._some_durable.set()
        if self.behind:
            self._refuse_durable()

    def _refuse_durable(self) -> None:
        """Answer those whose changes are in the log and cannot be applied now."""
        while self._durable:
            pending: Pending = self._durable.popleft().context
            self._forget(pending)
            if not pending.answer.done():
                pending.answer.set_exception(RequestError(500, "internal", str(self.broken)))
                pending.answer.exception()  # nobody may be waiting for it

    def _when_failed(self, batch: Sequence[Write], error: Exception) -> None:
        if isinstance(error, LogFullError):
            if self.full is None:
                say.error("the disk is full: the service predicts, but refuses to learn")
            self.full = "The disk is full: the service predicts, but does not learn until there is space."
            status, code, words = 507, "disk_full", self.full
        else:
            say.error("the log cannot be written: %s", error, exc_info=error)
            self.broken = "The log cannot be written: the service predicts, but learns again only after a restart."
            status, code, words = 503, "log_broken", self.broken
        for write in batch:
            failure = RequestError(status, code, words, retry_after=10 if status == 507 else None)
            for future in (write.context.answer, write.context.written):
                if future is not None and not future.done():
                    future.set_exception(failure)
                    future.exception()  # nobody may be waiting for it
            self._forget(write.context)

    def _forget(self, pending: Pending) -> None:
        """Take a change that is applied, or failed, off the books."""
        self.under_way -= 1
        self.queued_rows -= pending.rows
        self.queued_bytes -= pending.bytes
        if isinstance(pending.entry, entries.Store):
            for name in pending.entry.ids:
                left = self._storing.pop(name, 1) - 1
                if left:
                    self._storing[name] = left

    async def _apply_records(self) -> None:
        """Apply records in the order of the log, in slices."""
        clock = time.perf_counter
        begun = clock()
        while True:
            if not self._durable:
                self._some_durable.clear()
                await self._some_durable.wait()
                begun = clock()
            while self._scoring:
                await self.turn()
            writes, steps = self._next_records()
            try:
                while True:
                    before, rows = clock(), self.answering.rows
                    next(steps)
                    self._adapt(clock() - before, self.answering.rows - rows)
                    await self.turn()
                    begun = clock()
            except StopIteration as stop:
                self._adapt(clock() - before, self.answering.rows - rows)
                answers = stop.value
            except Exception as error:  # a bug: going on would leave the state behind the log
                say.critical("entry %d of the log cannot be applied", writes[0].sequence, exc_info=error)
                self.broken = "An entry of the log could not be applied: see the log of the service."
                self.behind = True
                self._durable.extendleft(reversed(writes))
                self._refuse_durable()
                raise
            for write, answer in zip(writes, answers if len(writes) > 1 else [answers], strict=True):
                self._forget(write.context)
                _resolve(write.context.answer, answer)
            if clock() - begun > SLICE:
                await self.turn()
                begun = clock()

    def _next_records(self) -> tuple[list[Write], Any]:
        """Return the next records, and what applies them: several small ones together, where that is the same."""
        state, durable = self.state, self._durable
        writes = [durable.popleft()]
        first: Pending = writes[0].context
        # A shadow may be unable to read one record and not the others; what waits must expire between the right two.
        kind = self._kind_of_rows(first)
        if kind is not None and state.shadow is None and not state.expires_by(first.entry.time):
            rows = first.rows
            while durable and rows + durable[0].count <= TOGETHER:
                pending: Pending = durable[0].context
                if self._kind_of_rows(pending) != kind or state.expires_by(pending.entry.time):
                    break
                rows += durable[0].count
                writes.append(durable.popleft())
        records = [Record(write.sequence, write.count, write.kind, write.payload) for write in writes]
        if len(writes) == 1:
            return writes, state.apply(records[0], first.entry, first.decoded, first.model)
        pendings: list[Pending] = [write.context for write in writes]
        learns: Any = [pending.entry for pending in pendings]
        decoded: Any = [pending.decoded for pending in pendings]
        return writes, state.apply_together(records, learns, decoded)

    def _kind_of_rows(self, pending: Pending) -> tuple[str, bool] | None:
        """Return the format of rows to learn, and whether they have importances; None if they must be applied alone."""
        entry, decoded = pending.entry, pending.decoded
        if not isinstance(entry, entries.Learn) or decoded is None or pending.model is not self.answering:
            return None
        if entry.format == "arrow":
            return None
        return entry.format, entry.importances is not None or decoded.importances is not None

    def _adapt(self, seconds: float, rows: int) -> None:
        """Choose how many rows the next slices have, after one that took some seconds."""
        state = self.state
        if seconds > SLICE:
            state.slice_rows = max(1, state.slice_rows // 2)
        elif seconds < SLICE / 2 and rows >= state.slice_rows:
            state.slice_rows = min(GRID, 2 * state.slice_rows)


def stopping() -> RequestError:
    """Return the answer to a request that comes too late."""
    return RequestError(503, "stopping", "The service is stopping. Try again soon.", retry_after=2)


def _resolve(future: asyncio.Future[Any] | None, value: Any = None) -> None:
    if future is not None and not future.done():
        future.set_result(value)
