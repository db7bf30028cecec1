"""A server on this machine that behaves as badly as real ones do."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from rarestream.datasets.catalogue import Original


@dataclass
class Server:
    """The file that it has, how it behaves, and what it was asked."""

    content: bytes = b""
    address: str = ""
    etag: str | None = '"first"'
    date: str | None = None
    ranges: bool = True  # whether it knows them
    if_range: bool = True  # whether it honours If-Range
    lengths: bool = True  # whether it says how long the file is
    cuts: list[int] = field(default_factory=list)  # bytes after which the next answers end, one each
    statuses: list[tuple[int, dict[str, str]]] = field(default_factory=list)  # of the next answers, one each
    wrong_start: int = 0  # added to where it says that a part starts
    stall: int | None = None  # bytes after which it says nothing more, and keeps the connection
    end: threading.Event = field(default_factory=threading.Event)  # of the test
    asked: list[dict[str, str]] = field(default_factory=list)  # headers of the requests

    def original(self, name: str = "rows.bz2", **known: Any) -> Original:
        return Original(name, f"{self.address}/{name}", **known)

    @property
    def starts(self) -> list[str | None]:
        return [headers.get("Range") for headers in self.asked]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    at: Server

    def log_message(self, *words: Any) -> None:
        pass

    def do_GET(self) -> None:
        at = self.at
        at.asked.append(dict(self.headers))
        if at.statuses:
            status, headers = at.statuses.pop(0)
            self.answer(status, headers, b"")
            return
        headers = {}
        if at.etag is not None:
            headers["ETag"] = at.etag
        if at.date is not None:
            headers["Last-Modified"] = at.date
        status, body = 200, at.content
        asked = self.headers.get("Range")
        same = not at.if_range or self.headers.get("If-Range") in (None, at.etag, at.date)
        if asked is not None and at.ranges and same:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= len(at.content):
                self.answer(416, {"Content-Range": f"bytes */{len(at.content)}"}, b"")
                return
            status, body = 206, at.content[start:]
            said = start + at.wrong_start
            headers["Content-Range"] = f"bytes {said}-{len(at.content) - 1}/{len(at.content)}"
        self.answer(status, headers, body)

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.at.lengths:
            self.send_header("Content-Length", str(len(body)))
        self.close_connection = True
        self.send_header("Connection", "close")
        self.end_headers()
        cut = self.at.cuts.pop(0) if body and self.at.cuts else len(body)
        with contextlib.suppress(ConnectionError):
            if self.at.stall is None:
                self.wfile.write(body[:cut])
                return
            self.wfile.write(body[: self.at.stall])
            self.at.end.wait()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    made = Server()
    handler = type("OneHandler", (Handler,), {"at": made})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        made.address = f"http://127.0.0.1:{listening.server_address[1]}"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield made
        made.end.set()
        listening.shutdown()
        thread.join()
