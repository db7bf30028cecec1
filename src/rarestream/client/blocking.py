"""Client: the service, for programs that wait for each answer."""

from __future__ import annotations

import atexit
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from rarestream.client import requests
from rarestream.client.answers import Labelled, Learned, ModelInfo, Prediction, RowPrediction, ShadowInfo
from rarestream.client.batching import BatchQueue, Item, Part
from rarestream.client.errors import BatchError, FailedRow, QueueFullError, Row, ServiceError, ServiceUnavailableError
from rarestream.client.http import (
    Address,
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

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")

MOST_RECEIVED = 1 << 18  # bytes at once


def checked_timeout(timeout: float) -> float:
    if not 0 < timeout < float("inf"):
        raise DataError(f"timeout must be a number of seconds > 0; got {timeout!r:.80}.")
    return float(timeout)


def checked_connections(connections: int) -> int:
    if not isinstance(connections, int) or connections < 1:
        raise DataError(f"connections must be a whole number >= 1; got {connections!r:.80}.")
    return connections


def tls_context(address: Address, ca: str | os.PathLike[str] | None, verify: bool) -> ssl.SSLContext | None:
    """Return how to encrypt, or None for an address without TLS."""
    if not address.tls:
        if ca is not None or not verify:
            raise DataError(f"ca= and verify= are for https:// addresses; this one is {address.shown}.")
        return None
    import ssl

    try:
        context = ssl.create_default_context(cafile=None if ca is None else os.fspath(ca))
    except (OSError, ssl.SSLError) as error:
        raise DataError(f"{ca}: cannot be read as certificates in PEM form ({error}).") from error
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class Connection:
    """A connection, for one request at a time."""

    __slots__ = ("_poll", "_socket")

    def __init__(self, address: Address, tls: ssl.SSLContext | None, timeout: float) -> None:
        if address.socket is not None:
            found = socket.socket(socket.AF_UNIX)
            try:
                found.settimeout(timeout)
                found.connect(address.socket)
            except BaseException:
                found.close()
                raise
        else:
            found = socket.create_connection((address.host, address.port), timeout)
        try:
            if address.socket is None:
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                found = tls.wrap_socket(found, server_hostname=address.host)
        except BaseException:
            found.close()
            raise
        self._socket = found
        self._poll = None
        if hasattr(select, "poll"):  # not on Windows
            self._poll = select.poll()
            self._poll.register(found, select.POLLIN)

    def is_idle(self) -> bool:
        """Whether it is open and silent: the service has neither closed it nor sent what nobody asked for."""
        if self._poll is not None:
            return not self._poll.poll(0)
        return not select.select([self._socket], [], [], 0)[0]

    def ask(self, text: bytes, timeout: float, file: bool) -> Answer:
        """Send a request and return its answer, in `timeout` seconds; for a file, with no longer pause than that."""
        found = self._socket
        found.settimeout(timeout)
        end = time.monotonic() + timeout
        refused: OSError | None = None
        try:
            if file and len(text) > MOST_RECEIVED:
                view = memoryview(text)
                for begin in range(0, len(view), MOST_RECEIVED):
                    found.sendall(view[begin : begin + MOST_RECEIVED])
            else:
                found.sendall(text)
        except (BrokenPipeError, ConnectionResetError) as error:
            refused = error  # perhaps the service has answered before it read everything: too large, a wrong token
        parser = AnswerParser()
        while True:
            try:
                data = found.recv(MOST_RECEIVED)
            except OSError as error:
                raise refused or error from None
            if not data and refused is not None and not parser.begun:
                raise refused
            if not data:
                return parser.end()
            answer = parser.feed(data)
            if answer is not None:
                return answer
            if not file:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError("timed out within an answer")
                found.settimeout(left)

    def close(self) -> None:
        self._socket.close()


class Client:
    """A client of the service, for one or many threads.

    A request that fails in a way that may pass is sent again, after growing, random pauses: a connection that is
    refused or lost, no answer in time, and the statuses 408, 429, 502, 503 and 504. Rows and labels carry an
    idempotency key, so the service learns them once, however often they are sent. Everything else raises ServiceError
    at once.

    Connections are kept open and used again. A process that was forked opens its own.

    Parameters
    ----------
    address : str
        http://HOST:PORT, https://HOST:PORT, either with a path before those of the service, or
        http+unix:///PATH/OF/SOCKET.
    token : str, optional
        What the service was given as its token.
    timeout : float, default=10.0
        Seconds in which an attempt must have its answer; for whole models, the longest pause within them.
    retries : int, default=5
        How often a request is sent again.
    pause : float, default=0.1
        Seconds before the first retry, of which up to half are random. Each one doubles it, up to 5 seconds.
    max_wait : float, default=30.0
        Longest Retry-After of the service that is waited for; a longer one raises ServiceUnavailableError at once.
    retry_on : collection of int
        Statuses to retry on. A full disk, 507, is not among them: it may last. Add it if you would rather wait.
    connections : int, default=10
        Connections that are kept open. If more threads than that ask at once, the others open one for each request.
    ca : path, optional
        A file of certificates to trust, in PEM form, in place of those of the system.
    verify : bool, default=True
        Whether to check the certificate of the service. Without it, anybody in between can read and change everything.

    Raises
    ------
    DataError
        If an argument is invalid.

    Examples
    --------
    >>> with Client("http://localhost:8080") as client:  # doctest: +SKIP
    ...     client.learn([{"site": "a.com"}, {"site": "b.com"}], [1, 0])
    ...     client.predict_one({"site": "a.com"}).score
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
        ca: str | os.PathLike[str] | None = None,
        verify: bool = True,
    ) -> None:
        self._address = parse_address(address)
        self._head = common_head(self._address, token)
        self._timeout = checked_timeout(timeout)
        self._retries = checked_retries(retries, pause, max_wait, retry_on)
        self._tls = tls_context(self._address, ca, verify)
        self._connections = checked_connections(connections)
        self._idle: deque[Connection] = deque()  # whose methods are atomic: threads need no lock
        self._process = os.getpid()
        self._closed = False

    def __repr__(self) -> str:
        return f"Client({self._address.shown!r})"  # without the token

    # -- rows

    def predict(self, rows: Iterable[Row], *, ids: Iterable[str] | None = None, remember: bool = False) -> Prediction:
        """Score rows, all with the same state of the model.

        Parameters
        ----------
        rows : iterable of dict, or of lists of (index, value)
            At most 10,000 by default; the service has limits.
        ids : iterable of str, optional
            Names for the rows, which are then stored until their labels come (`label`). A row whose id is known is not
            stored again, so this can be repeated.
        remember : bool, default=False
            Store the rows; the service makes ids for those that have none, and returns them. If the connection is lost
            and the request sent again, a row may be stored under two ids, of which only the second is returned.

        Returns
        -------
        Prediction

        Raises
        ------
        DataError
            If rows or ids cannot be sent.
        ServiceError
            If the service refuses them. `row` says which one is wrong.
        ServiceUnavailableError
            After the last retry.
        """
        return self._call(requests.predict(rows, ids, remember))

    def predict_one(self, row: Row, *, id: str | None = None, remember: bool = False) -> RowPrediction:
        """Score a row. See `predict`."""
        return self._call(requests.predict_one(row, id, remember))

    def learn(
        self,
        rows: Iterable[Row],
        labels: Iterable[int],
        importances: Iterable[float] | None = None,
        *,
        key: str | None = None,
    ) -> Learned:
        """Learn rows, in their order. When this returns, they are on the disk of the service.

        Parameters
        ----------
        rows : iterable of dict, or of lists of (index, value)
            At most 10,000 by default; the service has limits. For an endless stream, see `batch`.
        labels : iterable of int
            1 for a positive row; 0 or -1 for a negative one.
        importances : iterable of float, optional
            A row of importance h counts as h rows.
        key : str, optional
            Idempotency key, by default a random one. The service learns a key once: pass one of your own to make a
            repetition harmless that this client does not know of, such as that of a message that is delivered twice.

        Returns
        -------
        Learned
            `refused` has rows that could not be learned; all others were.

        Raises
        ------
        DataError
            If rows, labels or importances cannot be sent.
        ServiceError
            If the service refuses them: nothing was learned.
        ServiceUnavailableError
            After the last retry. `uncertain` says whether they may have been learned; pass `key` to try again later.
        """
        return self._call(requests.learn(rows, labels, importances, key))

    def learn_one(self, row: Row, label: int, importance: float | None = None, *, key: str | None = None) -> Learned:
        """Learn a row. See `learn`."""
        return self._call(requests.learn_one(row, label, importance, key))

    def label(self, labels: Labels, *, key: str | None = None) -> Labelled:
        """Give stored rows their labels: they are learned.

        Parameters
        ----------
        labels : dict of str and int, or iterable of (str, int)
            Ids, as in `predict`, with labels.
        key : str, optional
            Idempotency key, see `learn`.

        Returns
        -------
        Labelled
            Ids that are unknown, have a label already, or came too late are listed; that is no error.

        Raises
        ------
        DataError
            If ids or labels cannot be sent.
        ServiceError
            If the service refuses them: nothing was learned.
        ServiceUnavailableError
            After the last retry.
        """
        return self._call(requests.label(labels, key))

    def label_one(self, id: str, label: int, *, key: str | None = None) -> Labelled:
        """Give a stored row its label. See `label`."""
        return self._call(requests.label_one(id, label, key))

    def batch(
        self,
        *,
        size: int = 500,
        seconds: float = 0.2,
        queue: int = 10_000,
        full: Literal["wait", "raise"] = "wait",
        on_failed: Callable[[FailedRow], object] | None = None,
        give_up: float = 300.0,
    ) -> Batch:
        """Return a `Batch`: rows and labels that are sent many at a time, by a thread, while the program goes on.

        Parameters
        ----------
        size : int, default=500
            Most rows, or labels, of a request.
        seconds : float, default=0.2
            Longest time that a row waits for others.
        queue : int, default=10000
            Most rows and labels that wait. All rows together may have about 64 MB.
        full : {"wait", "raise"}, default="wait"
            What learn_one and label_one do when the queue is full: wait until there is space, or raise QueueFullError.
        on_failed : callable, optional
            Called, in the thread of the batch, with a FailedRow for each row or label that was not learned. Without it
            they are kept, and raised as a BatchError by `flush` and `close`; after 1,000 of them also by `learn_one`
            and `label_one`.
        give_up : float, default=300.0
            Seconds for which a request is tried again while the service cannot be reached, is busy, or its disk is
            full.

        Returns
        -------
        Batch
        """
        self._check_open()
        return Batch(self, BatchQueue(size, seconds, queue, full, on_failed), give_up)

    # -- the model

    def model(self) -> ModelInfo:
        """Return what the service says of its model."""
        return self._call(requests.model())

    def statistics(self) -> dict[str, Any]:
        """Return the numbers of the live page."""
        return self._call(requests.statistics())

    def model_file(self) -> bytes:
        """Return the newest snapshot of the model, as the bytes of a .rare file."""
        return self._call(requests.model_file())

    def download_model(self, path: str | os.PathLike[str]) -> None:
        """Write the newest snapshot of the model to a file, atomically.

        Raises
        ------
        OutputError
            If the file cannot be written. One that was there is unchanged.
        """
        from rarestream.system import check_writable, write_whole

        check_writable(path)
        write_whole(path, self.model_file())

    def snapshot(self) -> int:
        """Let the service write a snapshot now; return the number of the last entry of the log that it has learned."""
        return self._call(requests.snapshot())

    def shadow(self) -> ShadowInfo | None:
        """Return how the shadow model does, or None if there is none."""
        try:
            return self._call(requests.shadow())
        except ServiceError as error:
            if error.status != 404:
                raise
            return self.model().shadow  # None, unless there is no such service at all

    def start_shadow(
        self,
        file: bytes | str | os.PathLike[str],
        *,
        promote: Literal["auto", "manual"] = "manual",
        positives: int | None = None,
        margin: float | None = None,
    ) -> ShadowInfo:
        """Start a model that scores and learns beside the one that answers, to replace it once it is not worse.

        It is not sent again once it may have arrived; see `shadow`.

        Parameters
        ----------
        file : path or bytes
            A .rare file.
        promote : {"auto", "manual"}, default="manual"
            Whether it replaces the other as soon as the gate lets it through, or waits for `promote`.
        positives : int, optional
            Positive rows that the gate waits for; default: that of the service.
        margin : float, optional
            By how much its AUC may be lower, with 95 % confidence; default: that of the service.

        Returns
        -------
        ShadowInfo
        """
        return self._call(requests.start_shadow(file, promote, positives, margin))

    def stop_shadow(self) -> None:
        """Stop the shadow model and forget it. Not sent again once it may have arrived."""
        self._call(requests.stop_shadow())

    def promote(self) -> ModelInfo:
        """Let the shadow model replace the other, if the gate allows it. Not sent again once it may have arrived."""
        return self._call(requests.promote())

    # -- the service

    def healthy(self) -> bool:
        """Return whether the process of the service answers. Asks once."""
        return self._asked("/healthz")

    def ready(self, wait: float = 0.0) -> bool:
        """Return whether the service takes requests. Asks once, or until it does, for at most `wait` seconds."""
        end = time.monotonic() + wait
        while not self._asked("/readyz"):
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(0.1, left))
        return True

    def _asked(self, path: str) -> bool:
        try:
            return self._call(requests.health(path), Retries(times=0))
        except ServiceUnavailableError as error:
            if type(error.__cause__).__name__ == "SSLCertVerificationError":
                raise  # a reason that somebody has to know
            return False

    def close(self) -> None:
        """Close all connections. Batches must be closed before."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise DataError("This client is closed. Make another one.")

    def _call(self, request: Request[T], retries: Retries | None = None) -> T:
        """Send a request, again where that helps, and return what its answer says."""
        attempts: Attempts | None = None
        service = self._address.shown
        while True:
            self._check_open()
            sent = False
            try:
                connection, used = self._free_connection()
                sent = True
                answer = self._asked_once(connection, used, request)
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
            time.sleep(wait)

    def _free_connection(self) -> tuple[Connection, bool]:
        """Return a connection, and whether it was used before."""
        if self._process != os.getpid():  # those of the parent are the parent's
            self._process = os.getpid()
            while self._idle:
                self._idle.pop().close()
        while self._idle:
            try:
                connection = self._idle.pop()  # the one that was used last
            except IndexError:  # another thread took it
                break
            if connection.is_idle():
                return connection, True
            connection.close()
        return Connection(self._address, self._tls, self._timeout), False

    def _asked_once(self, connection: Connection, used: bool, request: Request[T]) -> Answer | None:
        """Return the answer; None if the service had closed the connection while nobody used it."""
        try:
            answer = connection.ask(request.text(self._address.prefix, self._head), self._timeout, request.file)
        except BaseException as error:
            connection.close()
            before_answer = isinstance(error, LostConnectionError) and not error.begun
            gone = before_answer or isinstance(error, ConnectionResetError | BrokenPipeError | ConnectionAbortedError)
            if used and gone and request.repeatable:
                return None  # no attempt: each connection can end like this only once, and a new one cannot
            raise
        if answer.keep and len(self._idle) < self._connections and not self._closed:
            self._idle.append(connection)
        else:
            connection.close()
        return answer


class Batch:
    """Rows and labels that are sent many at a time, in the order in which they came, by one thread.

    Made by `Client.batch`, best in a `with` statement. `learn_one` and `label_one` return at once. Rows that follow
    each other are sent together, and so are labels; a label is sent after all rows that came before it. The thread
    tries again while the service is away, meanwhile the queue fills, and then `learn_one` waits: a service that is slow
    slows the program down, and nothing is lost. What cannot be learned is reported, see `Client.batch`.

    When the program ends without `close`, what is queued is still sent.

    Attributes
    ----------
    learned : int
        Rows that the service has learned.
    failures : int
        Rows and labels that it has not.
    waiting : int
        Rows and labels whose answer has not come.
    """

    def __init__(self, client: Client, queue: BatchQueue, give_up: float) -> None:
        if not 0 <= give_up < float("inf"):
            raise DataError(f"give_up must be a number of seconds >= 0; got {give_up!r:.80}.")
        self._client, self._queue = client, queue
        self._retries = client._retries._replace(give_up=give_up, statuses=client._retries.statuses | {507})
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._flushing = 0  # items up to this one do not wait for others
        self._closing = False
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="rarestream-batch", daemon=True)
        self._thread.start()
        atexit.register(self._at_exit)

    @property
    def learned(self) -> int:
        return self._queue.learned

    @property
    def failures(self) -> int:
        return self._queue.failures

    @property
    def waiting(self) -> int:
        return self._queue.added - self._queue.finished

    def learn_one(self, row: Row, label: int, importance: float | None = None) -> None:
        """Queue a row with its label.

        Raises
        ------
        DataError
            If the row cannot be sent. It was not queued.
        QueueFullError
            If the queue is full and the batch was made with full="raise".
        BatchError
            If 1,000 rows have failed and nobody has looked. The row was not queued.
        """
        self._add(self._queue.row_item(row, label, importance))

    def label_one(self, id: str, label: int) -> None:
        """Queue the label of a stored row. Raises as `learn_one`."""
        self._add(self._queue.label_item(id, label))

    def flush(self) -> None:
        """Send all that is queued, without waiting for more, and return when the answers have come.

        Raises
        ------
        BatchError
            If rows or labels have failed since the last time, and there is no on_failed.
        """
        self._check_process()
        with self._lock:
            if threading.current_thread() is self._thread:
                raise DataError("on_failed cannot flush its own batch.")
            goal = self._queue.added
            self._flushing = max(self._flushing, goal)
            self._changed.notify_all()
            while self._queue.finished < goal:
                self._changed.wait()
            self._queue.check()

    def close(self) -> None:
        """Flush, then end the thread. Raises as `flush`. A batch that is closed takes nothing more."""
        if self._closing:
            return
        try:
            self.flush()
        finally:
            with self._lock:
                self._closing = True
                self._changed.notify_all()
            atexit.unregister(self._at_exit)
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close()
        except BatchError as failed:  # the first error matters more
            error.add_note(f"In a batch of rarestream, {failed}")

    def _add(self, item: Item) -> None:
        self._check_process()
        queue = self._queue
        with self._lock:
            while queue.is_full and not queue.blocked and threading.current_thread() is not self._thread:
                if queue.raises:
                    raise QueueFullError(
                        f"The queue of the batch is full: {len(queue.items)} rows and labels wait. Send fewer, or wait."
                    )
                self._changed.wait()
            if self._closing:
                raise DataError("This batch is closed. Make another one.")
            if queue.blocked:
                queue.check()
            queue.add(item)
            # The thread wakes up for the first item, whose time it waits for, and for a whole request.
            if len(queue.items) == 1 or queue.is_due:
                self._changed.notify_all()

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise DataError("This batch belongs to another process: after a fork, make another one.")

    def _run(self) -> None:
        while True:
            with self._lock:
                part = self._next_part()
            if part is None:
                return
            parts = deque([part])
            while parts:
                part = parts.popleft()
                learned, failed, again = 0, list[FailedRow](), list[Part]()
                try:
                    answer: Learned | Labelled = self._client._call(part.request(), self._retries)
                    learned = answer.learned
                    failed = part.after(answer)
                except ServiceError as error:
                    again, failed = part.without(error)
                except BaseException as error:  # the client was closed
                    failed = [item.failed("not_sent", str(error)) for item in part.items]
                parts.extendleft(reversed(again))
                kept = self._queue.tell(failed)
                with self._lock:
                    left = sum(len(one.items) for one in again)
                    self._queue.finish(len(part.items) - left, learned, len(failed), kept)
                    self._changed.notify_all()

    def _next_part(self) -> Part | None:
        """Wait until there is something to send; None at the end."""
        queue = self._queue
        while not queue.items:
            if self._closing:
                return None
            self._changed.wait()
        end = time.monotonic() + queue.seconds
        while not queue.is_due and not self._closing and queue.added - len(queue.items) >= self._flushing:
            left = end - time.monotonic()
            if left <= 0:
                break
            self._changed.wait(left)
        part = queue.take()
        self._changed.notify_all()  # there is space
        return part

    def _at_exit(self) -> None:
        if self._process == os.getpid():
            self.close()
