"""Servers for tests, on 127.0.0.1 and a free port, and clients that say exactly what they are told."""

from __future__ import annotations

import http.client
import json
import queue
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from rarestream import Model, read
from rarestream.serve.http import Runner, Settings
from rarestream.serve.options import Options
from rarestream.serve.service import Service

LIMIT = 60.0  # seconds; ends a wait that would never end


def trained_model(rows: int = 400) -> Model:
    """A model of rows with two columns."""
    rng = np.random.default_rng(0)
    sites = rng.integers(0, 20, rows)
    data = [
        {"site": f"s{site}", "price": float(rng.uniform(1, 9)), "clicked": int(rng.random() < 0.05 + 0.02 * site)}
        for site in sites
    ]
    model = Model("dual-auc")
    for block in read(data, label="clicked"):
        model.learn(block)
    return model


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """What is wrong, after checking that it is said as it should be."""
        assert self.headers["content-type"] == "application/json"
        assert self.headers["x-request-id"]
        found = self.json
        assert set(found) == {"error"} and set(found["error"]) <= {"code", "message", "row"}
        message = found["error"]["message"]
        for jargon in ("$", "msgspec", "Traceback", "/work", "/usr", ".py", "Expected `"):
            assert jargon not in message, message
        assert message.endswith((".", ")", "?")), message
        return found["error"]


class Served:
    """A server that runs, and how to ask it."""

    def __init__(self, runner: Runner, service: Any, address: str) -> None:
        self.runner, self.service, self.address = runner, service, address
        self.port = int(address.rsplit(":", 1)[1])

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """One request on a connection of its own. What is not bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            sent = dict(headers or {})
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            if body is not None:
                sent.setdefault("Content-Type", "application/json")
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT)

    def raw(self, *pieces: bytes) -> bytes:
        """Everything the server says to these bytes, until it closes the connection."""
        with self.connect() as connection:
            for piece in pieces:
                connection.sendall(piece)
            return until_closed(connection)


def until_closed(connection: socket.socket) -> bytes:
    said = b""
    while True:
        try:
            piece = connection.recv(65536)
        except ConnectionResetError:
            return said
        if not piece:
            return said
        said += piece


def answers(said: bytes) -> list[Answer]:
    """The answers in what a server said on one connection; all have a Content-Length."""
    found = []
    while said:
        head, _, rest = said.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        length = int(headers.get("content-length", 0))
        found.append(Answer(int(lines[0].split()[1]), headers, rest[:length]))
        said = rest[length:]
    return found


@contextmanager
def serving(
    kind: type[Service] = Service,
    *,
    options: Options | None = None,
    folder: str | None = None,
    **settings: Any,
) -> Iterator[Served]:
    """A server in a thread of this process, over a new service."""
    with tempfile.TemporaryDirectory() as own:
        service = kind(folder or own, trained_model(), options)
        said: queue.Queue[str | BaseException] = queue.Queue()
        runner = Runner(service, Settings(**{"port": 0, **settings}), say=said.put)

        def run() -> None:
            try:
                runner.run()
            except BaseException as error:
                said.put(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        first = said.get(timeout=LIMIT)
        if isinstance(first, BaseException):
            raise first
        try:
            yield Served(runner, service, first.split()[-1])
        finally:
            runner.stop()
            thread.join(LIMIT)
            assert not thread.is_alive()
