"""The live page over HTTP: the page itself, its numbers once, and as server-sent events.

The page has no numbers, so that it may be shown to everyone; whoever mounts the routes guards the other two.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import time
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rarestream.errors import MissingExtraError

try:
    import msgspec
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError:
    raise MissingExtraError('The live page needs the packages of [serve]: pip install "rarestream[serve]"') from None

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

EVERY = 1.0  # seconds between two messages
CLIENTS = 64  # that are sent events at the same time
PATIENCE = 20.0  # seconds that a client may take to accept a message
JSON = "application/json"


@cache
def page() -> tuple[bytes, dict[str, str]]:
    """Return the page and its headers. The browser runs nothing but what the page has, and asks no other server."""
    text = files("rarestream.monitor").joinpath("page/index.html").read_bytes()

    def allowed(tag: bytes) -> str:
        inside = re.findall(rb"<%b>(.*?)</%b>" % (tag, tag), text, re.DOTALL)
        return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(part).digest()).decode()}'" for part in inside)

    policy = (
        f"default-src 'none'; script-src {allowed(b'script')}; style-src {allowed(b'style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text, {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }


class LivePage:
    """The routes of the page: `/`, `/statistics` and `/events`.

    A message is made at most once in `every` seconds, however many watch, and only while someone does. Everything
    happens in the thread of the event loop.

    Parameters
    ----------
    message : callable
        Returns what `Monitor.message` does. What it raises is left to the application, and ends the events.
    every : float, default 1.0
        Seconds between two messages.
    clients : int, default 64
        Number of clients that are sent events at the same time; more are asked to come back.
    """

    def __init__(self, message: Callable[[], dict[str, Any]], *, every: float = EVERY, clients: int = CLIENTS) -> None:
        self._message, self._every, self._most = message, every, clients
        self._made = -1e9
        self._text = b""
        self._clients: set[asyncio.Event] = set()
        self._closed = False

    @property
    def clients(self) -> int:
        """Number of clients that are sent events."""
        return len(self._clients)

    def routes(self) -> list[Route]:
        """Return the routes, for an application to mount."""
        return [
            Route("/", self._page, include_in_schema=False),
            Route("/statistics", self._statistics),
            Route("/events", self._events),
        ]

    def close(self) -> None:
        """End all streams of events: a server that stops would wait for them."""
        self._closed = True
        for leaving in self._clients:
            leaving.set()

    def latest(self) -> bytes:
        """Return the message as JSON, not older than `every` seconds."""
        now = time.monotonic()
        if now - self._made >= self._every * 0.9:
            self._text = msgspec.json.encode(self._message())
            self._made = now
        return self._text

    async def _page(self, request: Request) -> Response:
        text, headers = page()
        return Response(text, media_type="text/html", headers=headers)

    async def _statistics(self, request: Request) -> Response:
        return Response(self.latest(), media_type=JSON, headers={"Cache-Control": "no-store"})

    async def _events(self, request: Request) -> Response:
        if self._closed or len(self._clients) >= self._most:
            why = "the server is stopping" if self._closed else f"{self._most} clients watch already"
            text = msgspec.json.encode({"error": {"code": "busy", "message": f"{why}. Try again later."}})
            return Response(text, 503, media_type=JSON, headers={"Retry-After": "5"})
        return _Events(self, self.latest())


class _Events(Response):
    """An answer that goes on: a message now and then, until the client goes away or the page is closed."""

    def __init__(self, live: LivePage, first: bytes) -> None:
        super().__init__(
            media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        del self.headers["content-length"]
        self._live, self._first = live, first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.Event()
        self._live._clients.add(leaving)
        gone = asyncio.create_task(_until_gone(receive, leaving))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            text, sent = self._first, b""
            while not leaving.is_set():
                # A comment says that the connection works, though there is nothing new.
                body = b"data: " + text + b"\n\n" if text != sent else b": nothing new\n\n"
                # A client that accepts nothing would keep its place for ever.
                await asyncio.wait_for(
                    send({"type": "http.response.body", "body": body, "more_body": True}), timeout=PATIENCE
                )
                sent = text
                try:
                    await asyncio.wait_for(leaving.wait(), self._live._every)
                except TimeoutError:
                    text = self._live.latest()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (TimeoutError, OSError):
            return  # it is forgotten
        finally:
            self._live._clients.discard(leaving)
            gone.cancel()


async def _until_gone(receive: Receive, leaving: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    leaving.set()
