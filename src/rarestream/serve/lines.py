"""The line protocol: a row per line in, a score per line out, in the same order, over TCP or the standard streams.

Lines are VW text for a model with hashed names, svmlight for one with column numbers, and JSON objects or lists of
pairs for either (a line that begins with { or [). A line with a label is learned and, once it is on disk, answered with
the score from before; a line without one is scored. An invalid line is answered with "error: " and the reason, and
changes nothing. With a token, the first line of a connection must be "token " and the token.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import sys
from collections.abc import Awaitable, Callable
from itertools import groupby
from typing import Any, Protocol

from rarestream.features import Hashed
from rarestream.model import Model
from rarestream.serve.errors import RequestError
from rarestream.serve.messages import Learned, Prediction
from rarestream.serve.rows import Limits, RowDecoder, RowText

PIECE = 1 << 16  # bytes that are read at once
AT_ONCE = 1000  # lines
LONGEST = 1 << 20  # bytes of a line
LINGER = 2.0  # seconds that a caller has to read the reason before its connection is closed
CLOSING = 5.0  # seconds that callers have to read their answers when the service stops
IDLE = 3600.0  # seconds after which a connection that sends nothing is closed


class LineService(Protocol):
    """What the lines are answered by."""

    limits: Limits

    @property
    def answering(self) -> Model: ...
    @property
    def decoder(self) -> RowDecoder: ...
    async def predict(self, rows: RowText) -> Prediction: ...
    async def learn(self, rows: RowText, labels: None) -> Learned: ...


async def answer(service: LineService, lines: list[bytes]) -> bytes:
    """Return the answers to some lines, a line each."""
    answers: list[bytes] = []
    for format, group in groupby(lines, lambda line: _format(service, line)):
        left = list(group)
        if not format:
            answers += [b"error: the line is empty."] * len(left)
            continue
        while left:
            done, left = left[:AT_ONCE], left[AT_ONCE:]
            answers += await _answer_rows(service, format, done)
    return b"".join(one + b"\n" for one in answers)


def _format(service: LineService, line: bytes) -> str:
    first = line.lstrip()[:1]
    if not first:
        return ""
    if first in (b"{", b"["):
        return "json"
    return "vw" if isinstance(service.answering.features, Hashed) else "svmlight"


async def _answer_rows(service: LineService, format: str, lines: list[bytes]) -> list[bytes]:
    """Answer lines of one format. Those before an invalid one are answered first."""
    answers: list[bytes] = []
    while lines:
        try:
            labels = _labels(service, format, lines)
            refusal, valid, lines = None, lines, []
        except RequestError as error:
            if error.row is None:
                return [*answers, *[_refusal(error)] * len(lines)]
            refusal, valid, lines = _refusal(error), lines[: error.row], lines[error.row + 1 :]
            labels = _labels(service, format, valid)
        answers += await _answer_valid(service, format, valid, labels)
        if refusal is not None:
            answers.append(refusal)
    return answers


def _labels(service: LineService, format: str, lines: list[bytes]) -> list[int]:
    """Return the labels of lines, 0 for those that have none."""
    decoded = service.decoder.decode(RowText(format, b"\n".join(lines), len(lines)), names=False)
    return [0] * len(lines) if decoded.labels is None else decoded.labels.tolist()


async def _answer_valid(service: LineService, format: str, lines: list[bytes], labels: list[int]) -> list[bytes]:
    answers: list[bytes] = []
    for labelled, group in groupby(range(len(lines)), lambda row: labels[row] != 0):
        rows = list(group)
        text = RowText(format, b"\n".join(lines[rows[0] : rows[-1] + 1]), len(rows))
        try:
            if not labelled:
                answers += [b"%.9g" % score for score in (await service.predict(text)).scores]
                continue
            learned = await service.learn(text, None)
        except RequestError as error:
            answers += [_refusal(error)] * len(rows)
            continue
        reasons = {refused.row: refused.reason for refused in learned.refused}
        for row, score in enumerate(learned.scores or []):
            answers.append(b"error: " + _line(reasons.get(row, "")) if score is None else b"%.9g" % score)
    return answers


def _refusal(error: RequestError) -> bytes:
    message = str(error)
    return b"error: " + _line(message.partition(": ")[2] if error.row is not None else message)


def _line(text: str) -> bytes:
    return text.replace("\n", " ").encode()


class _BrokenError(Exception):
    """A connection that is closed, with a last line for the caller."""


async def _talk(
    service: LineService,
    read: Callable[[], Awaitable[bytes]],
    write: Callable[[bytes], Awaitable[None]],
    token: bytes | None,
) -> None:
    """Answer lines until there are no more."""
    left = b""
    known = token is None
    while True:
        piece = await read()
        *lines, left = (left + piece).split(b"\n")
        if not piece and left:  # a last line without an end
            lines, left = [*lines, left], b""
        if len(left) > LONGEST or any(len(line) > LONGEST for line in lines):
            raise _BrokenError(f"error: a line has at most {LONGEST:,} bytes.")
        if lines and not known and token is not None:
            word, _, secret = lines.pop(0).strip().partition(b" ")
            if word != b"token" or not hmac.compare_digest(secret.strip(), token):
                raise _BrokenError('error: the first line must be "token " and the token.')
            known = True
        if lines:
            await write(await answer(service, [line.rstrip(b"\r") for line in lines]))
        if not piece:
            return


class LineServer:
    """Answers the lines of TCP connections.

    Parameters
    ----------
    service : LineService
        What they are answered by.
    token : bytes or None
        That connections begin with.
    connections : int
        Open at the same time; more are refused.
    """

    def __init__(self, service: Any, token: bytes | None = None, connections: int = 1000) -> None:
        self._service, self._token, self._most = service, token, connections
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._reading: set[asyncio.Task[None]] = set()  # those that wait for lines
        self._closing = False

    async def listen(self, host: str, port: int) -> int:
        """Begin; return the port."""
        self._server = await asyncio.start_server(self._talk, host, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Answer the lines that have been read, and close all connections."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        for task in self._reading:
            task.cancel()
        if self._tasks:
            _, slow = await asyncio.wait(self._tasks, timeout=CLOSING)
            for task in slow:  # whoever does not read the answers
                task.cancel()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None

        async def read() -> bytes:
            if self._closing:
                raise asyncio.CancelledError
            self._reading.add(task)
            try:
                return await asyncio.wait_for(reader.read(PIECE), IDLE)
            finally:
                self._reading.discard(task)

        async def write(data: bytes) -> None:
            writer.write(data)
            await writer.drain()  # a caller that does not read is not read from

        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, TimeoutError, asyncio.CancelledError):
                try:
                    if len(self._tasks) > self._most:
                        raise _BrokenError("error: too many connections.")
                    await _talk(self._service, read, write, self._token)
                except _BrokenError as error:
                    await write(f"{error}\n".encode())
                    writer.write_eof()
                    await _drop(reader)
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                writer.close()
        finally:
            self._tasks.discard(task)


async def _drop(reader: asyncio.StreamReader) -> None:
    """Read and drop what a caller still sends, for a while: it would not see the last answer otherwise."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            while await reader.read(PIECE):
                pass


async def serve_stdin(service: Any) -> None:
    """Answer the lines of standard input on standard output, until there are no more."""
    loop = asyncio.get_running_loop()

    async def read() -> bytes:
        return await loop.run_in_executor(None, os.read, sys.stdin.fileno(), PIECE)

    async def write(data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    try:
        await _talk(service, read, write, None)
    except _BrokenError as error:
        await write(f"{error}\n".encode())
