"""AsyncClient: the service, for programs of asyncio."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeVar, cast

from rarestream.client import requests
from rarestream.client.answers import Labelled, Learned, ModelInfo, Prediction, RowPrediction, ShadowInfo
from rarestream.client.batching import BatchQueue, Item, Part
from rarestream.client.blocking import checked_connections, checked_timeout, tls_context
from rarestream.client.encoding import checked_id, encoded_row
from rarestream.client.errors import BatchError, FailedRow, QueueFullError, Row, ServiceError, ServiceUnavailableError
from rarestream.client.http import (
    Answer,
    AnswerParser,
    BadAnswerError,
    LostConnectionError,
    common_head,
    parse_address,
)
from rarestream.client.requests import Labels, Request
from rarestream.client.retrying import RETRY_ON, Attempts, Retries, bad_answer, checked_retries, read_answer
from rarestream.errors import DataError

T = TypeVar("T")

MOST_COMBINED = 2  # requests of combined rows at a time: what comes meanwhile goes into the next one


class AsyncConnection(asyncio.Protocol):
    """A connection, for one request at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser: AnswerParser | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._patience = 0.0  # seconds, for files: the timer starts again whenever something comes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._parser is None or self._waiter is None:  # nobody asked
            self.close()
            return
        try:
            answer = self._parser.feed(data)
        except BadAnswerError as error:
            self._finish(error)
            return
        if answer is not None:
            self._finish(answer)
        elif self._patience:
            self._start_timer(self._patience)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._parser is None:
            return
        if error is not None:
            self._finish(error if isinstance(error, OSError) else LostConnectionError(self._parser.begun))
            return
        try:
            self._finish(self._parser.end())
        except LostConnectionError as lost:
            self._finish(lost)

    def resume_writing(self) -> None:
        if self._patience:
            self._start_timer(self._patience)

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, text: bytes, timeout: float, file: bool) -> Answer:
        """Send a request and return its answer, in `timeout` seconds; for a file, with no longer pause than that."""
        if self._transport is None or self._transport.is_closing():
            raise LostConnectionError(False)
        self._parser = AnswerParser()
        waiter: asyncio.Future[Answer] = self._loop.create_future()
        self._waiter = waiter
        self._patience = timeout if file else 0.0
        self._start_timer(timeout)
        try:
            self._transport.write(text)
            return await waiter
        finally:
            self._parser = self._waiter = None
            self._patience = 0.0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _start_timer(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        begun = self._parser is not None and self._parser.begun
        self._finish(TimeoutError("timed out within an answer" if begun else "timed out"))

    def _finish(self, result: Answer | Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            if isinstance(result, Answer):
                self._waiter.set_result(result)
            else:
                self._waiter.set_exception(result)


class _Waiting(NamedTuple):
    """A row that waits to be sent with others."""

    text: bytes
    id: str | None
    future: asyncio.Future[RowPrediction]


class AsyncClient:
    """A client of the service for asyncio. Its methods are those of `Client`, to await.

    It belongs to the event loop that runs when it is first used. In another loop, or after a fork, it opens new
    connections.

    Parameters
    ----------
    address, token, timeout, retries, pause, max_wait, retry_on, ca, verify
        As those of `Client`.
    connections : int, default=10
        Most connections at once. Calls beyond that wait for their turn, in order; the time-out begins when it is
        theirs.
    combine : int, default=0
        Most rows that `predict_one` sends together: rows of calls that wait at the same time go into one request, all
        scored by the same state of the model. A row that the service refuses fails alone. 0 or 1 sends each for itself.

    Examples
    --------
    >>> async with AsyncClient("http://localhost:8080") as client:  # doctest: +SKIP
    ...     await client.predict_one({"site": "a.com"})
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: int = 5,
        pause: float = 0.1,
        max_wait: float = 30.0,
        retry_on: Collection[int] = RETRY_ON,
        connections: int = 10,
        combine: int = 0,
        ca: str | os.PathLike[str] | None = None,
        verify: bool = True,
    ) -> None:
        self._address = parse_address(address)
        self._head = common_head(self._address, token)
        self._timeout = checked_timeout(timeout)
        self._retries = checked_retries(retries, pause, max_wait, retry_on)
        self._tls = tls_context(self._address, ca, verify)
        self._connections = checked_connections(connections)
        if not isinstance(combine, int) or combine < 0:
            raise DataError(f"combine must be a whole number >= 0; got {combine!r:.80}.")
        self._combine = combine
        self._closed = False
        self._owner: tuple[asyncio.AbstractEventLoop, int] | None = None
        self._renew()

    def _renew(self) -> None:
        """Begin without connections."""
        self._idle: list[AsyncConnection] = []
        self._open = 0  # connections that are used, or being opened
        self._turns: deque[asyncio.Future[None]] = deque()
        self._waiting: dict[tuple[bool, bool], list[_Waiting]] = {}
        self._combined: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"AsyncClient({self._address.shown!r})"  # without the token

    # -- rows

    async def predict(
        self, rows: Iterable[Row], *, ids: Iterable[str] | None = None, remember: bool = False
    ) -> Prediction:
        """Score rows. See `Client.predict`."""
        return await self._call(requests.predict(rows, ids, remember))

    async def predict_one(self, row: Row, *, id: str | None = None, remember: bool = False) -> RowPrediction:
        """Score a row; with `combine`, together with those of other calls. See `Client.predict`."""
        if self._combine < 2:
            return await self._call(requests.predict_one(row, id, remember))
        return await self._predict_combined(row, id, remember)

    async def learn(
        self,
        rows: Iterable[Row],
        labels: Iterable[int],
        importances: Iterable[float] | None = None,
        *,
        key: str | None = None,
    ) -> Learned:
        """Learn rows, in their order. See `Client.learn`."""
        return await self._call(requests.learn(rows, labels, importances, key))

    async def learn_one(
        self, row: Row, label: int, importance: float | None = None, *, key: str | None = None
    ) -> Learned:
        """Learn a row. See `Client.learn`."""
        return await self._call(requests.learn_one(row, label, importance, key))

    async def label(self, labels: Labels, *, key: str | None = None) -> Labelled:
        """Give stored rows their labels. See `Client.label`."""
        return await self._call(requests.label(labels, key))

    async def label_one(self, id: str, label: int, *, key: str | None = None) -> Labelled:
        """Give a stored row its label. See `Client.label`."""
        return await self._call(requests.label_one(id, label, key))

    def batch(
        self,
        *,
        size: int = 500,
        seconds: float = 0.2,
        queue: int = 10_000,
        full: Literal["wait", "raise"] = "wait",
        on_failed: Callable[[FailedRow], object] | None = None,
        give_up: float = 300.0,
    ) -> AsyncBatch:
        """Return an `AsyncBatch`: rows and labels that are sent many at a time, by a task. See `Client.batch`."""
        self._check_open()
        return AsyncBatch(self, BatchQueue(size, seconds, queue, full, on_failed), give_up)

    # -- the model

    async def model(self) -> ModelInfo:
        """Return what the service says of its model."""
        return await self._call(requests.model())

    async def statistics(self) -> dict[str, Any]:
        """Return the numbers of the live page."""
        return await self._call(requests.statistics())

    async def model_file(self) -> bytes:
        """Return the newest snapshot of the model, as the bytes of a .rare file."""
        return await self._call(requests.model_file())

    async def download_model(self, path: str | os.PathLike[str]) -> None:
        """Write the newest snapshot of the model to a file, atomically. See `Client.download_model`."""
        from rarestream.system import check_writable, write_whole

        await asyncio.to_thread(check_writable, path)
        await asyncio.to_thread(write_whole, path, await self.model_file())

    async def snapshot(self) -> int:
        """Let the service write a snapshot now. See `Client.snapshot`."""
        return await self._call(requests.snapshot())

    async def shadow(self) -> ShadowInfo | None:
        """Return how the shadow model does, or None if there is none."""
        try:
            return await self._call(requests.shadow())
        except ServiceError as error:
            if error.status != 404:
                raise
            return (await self.model()).shadow  # None, unless there is no such service at all

    async def start_shadow(
        self,
        file: bytes | str | os.PathLike[str],
        *,
        promote: Literal["auto", "manual"] = "manual",
        positives: int | None = None,
        margin: float | None = None,
    ) -> ShadowInfo:
        """Start a model that scores and learns beside the one that answers. See `Client.start_shadow`."""
        return await self._call(await asyncio.to_thread(requests.start_shadow, file, promote, positives, margin))

    async def stop_shadow(self) -> None:
        """Stop the shadow model and forget it. See `Client.stop_shadow`."""
        await self._call(requests.stop_shadow())

    async def promote(self) -> ModelInfo:
        """Let the shadow model replace the other, if the gate allows it. See `Client.promote`."""
        return await self._call(requests.promote())

    # -- the service

    async def healthy(self) -> bool:
        """Return whether the process of the service answers. Asks once."""
        return await self._asked("/healthz")

    async def ready(self, wait: float = 0.0) -> bool:
        """Return whether the service takes requests. Asks once, or until it does, for at most `wait` seconds."""
        end = time.monotonic() + wait
        while not await self._asked("/readyz"):
            left = end - time.monotonic()
            if left <= 0:
                return False
            await asyncio.sleep(min(0.1, left))
        return True

    async def _asked(self, path: str) -> bool:
        try:
            return await self._call(requests.health(path), Retries(times=0))
        except ServiceUnavailableError as error:
            if type(error.__cause__).__name__ == "SSLCertVerificationError":
                raise  # a reason that somebody has to know
            return False

    async def close(self) -> None:
        """Close all connections. Batches must be closed before."""
        self._closed = True
        while self._combined:
            await asyncio.wait(self._combined)
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        await asyncio.sleep(0)  # for the transports to close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise DataError("This client is closed. Make another one.")

    async def _call(self, request: Request[T], retries: Retries | None = None) -> T:
        """Send a request, again where that helps, and return what its answer says."""
        self._check_open()
        attempts: Attempts | None = None
        service = self._address.shown
        while True:
            sent = False
            try:
                connection, used = await self._free_connection()
                sent = True
                answer = await self._asked_once(connection, used, request)
                if answer is None:
                    continue
            except BadAnswerError as error:
                raise bad_answer(request, service) from error
            except OSError as error:
                attempts = attempts or Attempts(request, retries or self._retries, service)
                wait = attempts.lost(error, sent)
            else:
                if 200 <= answer.status < 300:
                    return read_answer(answer, request, service)
                attempts = attempts or Attempts(request, retries or self._retries, service)
                wait = attempts.refused(answer)
            await asyncio.sleep(wait)

    async def _free_connection(self) -> tuple[AsyncConnection, bool]:
        """Return a connection, and whether it was used before. It counts as used until `_give_back`."""
        owner = asyncio.get_running_loop(), os.getpid()
        if self._owner != owner:
            self._owner = owner
            self._renew()
        while self._open >= self._connections:
            turn = owner[0].create_future()
            self._turns.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # its turn had come: it is the next one's
                    self._next_turn()
                elif turn in self._turns:
                    self._turns.remove(turn)
                raise
        self._open += 1
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection, True
        try:
            return await self._new_connection(), False
        except BaseException:
            self._give_back(None)
            raise

    async def _new_connection(self) -> AsyncConnection:
        loop = asyncio.get_running_loop()
        address = self._address
        async with asyncio.timeout(self._timeout):
            if address.socket is not None:
                _, found = await loop.create_unix_connection(AsyncConnection, address.socket)
            else:
                host = address.host if address.tls else None
                _, found = await loop.create_connection(
                    AsyncConnection, address.host, address.port, ssl=self._tls, server_hostname=host
                )
        return found

    def _give_back(self, connection: AsyncConnection | None) -> None:
        self._open -= 1
        if connection is not None:
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)
        self._next_turn()

    def _next_turn(self) -> None:
        while self._turns:
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def _asked_once(self, connection: AsyncConnection, used: bool, request: Request[T]) -> Answer | None:
        """Return the answer; None if the service had closed the connection while nobody used it."""
        kept: AsyncConnection | None = None
        try:
            answer = await connection.ask(request.text(self._address.prefix, self._head), self._timeout, request.file)
            if answer.keep:
                kept = connection
        except (OSError, BadAnswerError) as error:
            before_answer = isinstance(error, LostConnectionError) and not error.begun
            gone = before_answer or isinstance(error, ConnectionResetError | BrokenPipeError | ConnectionAbortedError)
            if used and gone and request.repeatable:
                return None  # no attempt: each connection can end like this only once, and a new one cannot
            raise
        finally:
            if kept is None:
                connection.close()
            self._give_back(kept)
        return answer

    # -- rows of several calls in one request

    async def _predict_combined(self, row: Row, id: str | None, remember: bool) -> RowPrediction:
        self._check_open()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[RowPrediction] = loop.create_future()
        one = _Waiting(encoded_row(row), None if id is None else checked_id(id), future)
        if self._owner != (loop, os.getpid()):
            self._owner = loop, os.getpid()
            self._renew()
        kind = id is not None, remember
        waiting = self._waiting.setdefault(kind, [])
        waiting.append(one)
        if len(waiting) == 1:
            loop.call_soon(self._send_combined)  # after the other calls that are about to come
        return await future

    def _send_combined(self) -> None:
        """Send what waits, unless enough requests are on their way: when one is back, this is called again."""
        for kind, waiting in self._waiting.items():
            while waiting and len(self._combined) < MOST_COMBINED:
                part = [
                    one for one in waiting[: self._combine] if not one.future.done()
                ]  # not those that were cancelled
                del waiting[: self._combine]
                if part:
                    task = asyncio.get_running_loop().create_task(self._predict_part(part, kind[1]))
                    self._combined.add(task)
                    task.add_done_callback(self._combined_back)

    def _combined_back(self, task: asyncio.Task[None]) -> None:
        self._combined.discard(task)
        self._send_combined()

    async def _predict_part(self, part: list[_Waiting], remember: bool) -> None:
        while part:
            ids = None if part[0].id is None else [one.id or "" for one in part]
            try:
                found = await self._call(requests.predict_encoded([one.text for one in part], ids, remember))
            except ServiceError as error:
                if error.row is not None and 0 <= error.row < len(part):
                    _fail(part.pop(error.row), error)
                    continue
                if error.status == 413 and len(part) > 1:
                    half = len(part) // 2
                    await self._predict_part(part[:half], remember)
                    part = part[half:]
                    continue
                for one in part:
                    _fail(one, error)
                return
            except BaseException as error:
                for one in part:
                    _fail(one, error)
                raise
            for number, one in enumerate(part):
                if not one.future.done():
                    one.future.set_result(_row_of(found, number))
            return


def _fail(one: _Waiting, error: BaseException) -> None:
    if one.future.done():
        return
    if isinstance(error, asyncio.CancelledError):
        one.future.cancel()
    else:
        one.future.set_exception(error)


def _row_of(found: Prediction, number: int) -> RowPrediction:
    stored = {0: 0, len(found.scores): 1}
    return RowPrediction(
        found.scores[number],
        None if found.probabilities is None else found.probabilities[number],
        None if found.labels is None else found.labels[number],
        None if found.ids is None else found.ids[number],
        stored.get(found.stored),
        found.version,
        found.sequence,
        found.rows,
    )


class AsyncBatch:
    """Rows and labels that are sent many at a time, in the order in which they came, by one task. See `Batch`.

    Made by `AsyncClient.batch`, for an `async with` statement. Its methods are those of `Batch`, to await. What is
    queued when the event loop ends is lost: close it.
    """

    def __init__(self, client: AsyncClient, queue: BatchQueue, give_up: float) -> None:
        if not 0 <= give_up < float("inf"):
            raise DataError(f"give_up must be a number of seconds >= 0; got {give_up!r:.80}.")
        self._client, self._queue = client, queue
        self._retries = client._retries._replace(give_up=give_up, statuses=client._retries.statuses | {507})
        self._changed = asyncio.Condition()
        self._flushing = 0
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    @property
    def learned(self) -> int:
        return self._queue.learned

    @property
    def failures(self) -> int:
        return self._queue.failures

    @property
    def waiting(self) -> int:
        return self._queue.added - self._queue.finished

    async def learn_one(self, row: Row, label: int, importance: float | None = None) -> None:
        """Queue a row with its label. See `Batch.learn_one`."""
        await self._add(self._queue.row_item(row, label, importance))

    async def label_one(self, id: str, label: int) -> None:
        """Queue the label of a stored row. See `Batch.learn_one`."""
        await self._add(self._queue.label_item(id, label))

    async def flush(self) -> None:
        """Send all that is queued, and return when the answers have come. See `Batch.flush`."""
        async with self._changed:
            goal = self._queue.added
            self._flushing = max(self._flushing, goal)
            self._changed.notify_all()
            while self._queue.finished < goal:
                await self._changed.wait()
            self._queue.check()

    async def close(self) -> None:
        """Flush, then end the task. Raises as `flush`. A batch that is closed takes nothing more."""
        if self._closing:
            return
        try:
            await self.flush()
        finally:
            async with self._changed:
                self._closing = True
                self._changed.notify_all()
            if self._task is not None:
                await self._task

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.close()
            return
        try:
            await self.close()
        except BatchError as failed:  # the first error matters more
            error.add_note(f"In a batch of rarestream, {failed}")

    async def _add(self, item: Item) -> None:
        queue = self._queue
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="rarestream-batch")
        async with self._changed:
            while queue.is_full and not queue.blocked:
                if queue.raises:
                    raise QueueFullError(
                        f"The queue of the batch is full: {len(queue.items)} rows and labels wait. Send fewer, or wait."
                    )
                await self._changed.wait()
            if self._closing:
                raise DataError("This batch is closed. Make another one.")
            if queue.blocked:
                queue.check()
            queue.add(item)
            if len(queue.items) == 1 or queue.is_due:
                self._changed.notify_all()

    async def _run(self) -> None:
        while (part := await self._next_part()) is not None:
            parts = deque([part])
            while parts:
                part = parts.popleft()
                learned, failed, again = 0, list[FailedRow](), list[Part]()
                try:
                    answer: Learned | Labelled = await self._client._call(part.request(), self._retries)
                    learned = answer.learned
                    failed = part.after(answer)
                except ServiceError as error:
                    again, failed = part.without(error)
                except DataError as error:  # the client was closed
                    failed = [item.failed("not_sent", str(error)) for item in part.items]
                parts.extendleft(reversed(again))
                kept = self._queue.tell(failed)
                async with self._changed:
                    left = sum(len(one.items) for one in again)
                    self._queue.finish(len(part.items) - left, learned, len(failed), kept)
                    self._changed.notify_all()

    async def _next_part(self) -> Part | None:
        """Wait until there is something to send; None at the end."""
        queue = self._queue
        async with self._changed:
            while not queue.items:
                if self._closing:
                    return None
                await self._changed.wait()
            end = time.monotonic() + queue.seconds
            while not queue.is_due and not self._closing and queue.added - len(queue.items) >= self._flushing:
                left = end - time.monotonic()
                if left <= 0:
                    break
                try:
                    async with asyncio.timeout(left):
                        await self._changed.wait()
                except TimeoutError:
                    break
            part = queue.take()
            self._changed.notify_all()
            return part
