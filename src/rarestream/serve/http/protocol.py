"""HTTP/1.1 connections that may be slow, idle, too many or wrong, but not for long.

uvicorn's protocol waits for ever for headers and bodies. This one has a timer for each, which runs only while a request
is incomplete: a request that comes in one piece costs nothing more. It also words its own refusals as JSON.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rarestream.serve.http.failures import raw_failure
from rarestream.serve.http.settings import Settings


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on time, size of headers, and number of connections."""

    settings: Settings
    count: Callable[[int], None]  # a refusal that no endpoint sees, by its status

    _timer: asyncio.TimerHandle | None = None
    _begun = False  # a request whose headers are incomplete
    _in_body = False
    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time that the first request has, or refuse the connection."""
        super().connection_made(transport)
        if len(self.connections) > self.settings.connections:
            message = f"The service has {self.settings.connections} connections open, which is its limit. Try again."
            self._refuse(503, "busy", message, retry_after=1)
        else:
            self._timer = self.loop.call_later(self.settings.header_timeout, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came, and see to it that a request that is incomplete does not stay so."""
        if self.parser is None or self.transport.is_closing():
            return
        super().data_received(data)
        if self._in_body:
            if self._timer is None:
                self._timer = self.loop.call_later(self.settings.body_timeout, self._late)
            return
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:  # a whole request is being answered
            if self._timer is not None:
                self._stop_timer()
            return
        self._header_bytes += len(data)
        if self._header_bytes > self.settings.header_bytes:
            limit = self.settings.header_bytes
            self._refuse(431, "too_large", f"The request line and headers are longer than {limit} bytes.")
        elif self._timer is None and self.timeout_keep_alive_task is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(self.settings.header_timeout, self._late)

    def on_message_begin(self) -> None:
        """Note that a request has begun."""
        self._begun = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin the request, whose body has its own time."""
        super().on_headers_complete()
        self._begun = False
        self._in_body = True
        self._header_bytes = 0
        if self._timer is not None:
            self._stop_timer()

    def on_message_complete(self) -> None:
        """Hand over the end of the body."""
        self._in_body = False
        if self._timer is not None:
            self._stop_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, which may have begun to arrive while this one was answered."""
        super().on_response_complete()
        if self._begun and self._timer is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(self.settings.header_timeout, self._late)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        if self.cycle is not None and not self.cycle.response_complete and self.cycle.response_started:
            self.transport.close()  # in the middle of an answer there is no place for another
        else:
            self._refuse(400, "bad_http", "This is not a valid HTTP/1.1 request.")

    def _late(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._in_body:
            if self.pipeline or self.cycle.response_complete or self.cycle.response_started:
                # Answered already, or behind another request, whose answer must come first.
                self.transport.close()
                return
            seconds = self.settings.body_timeout
            self._refuse(408, "timeout", f"The body of the request did not arrive within {seconds:g} seconds.")
        elif self._begun:
            seconds = self.settings.header_timeout
            self._refuse(408, "timeout", f"The headers of the request did not arrive within {seconds:g} seconds.")
        else:
            self.transport.close()

    def _refuse(self, status: int, code: str, message: str, *, retry_after: int | None = None) -> None:
        self._stop_timer()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # whatever the application answers is not sent
            self.cycle.message_event.set()
        self.transport.write(raw_failure(status, code, message, retry_after=retry_after))
        self.transport.close()
        self.count(status)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def protocol_for(settings: Settings, count: Callable[[int], None]) -> type[PatientProtocol]:
    """Return the protocol with these settings, as uvicorn wants it: a class."""
    fields: dict[str, Any] = {"settings": settings, "count": staticmethod(count)}
    return type("Protocol", (PatientProtocol,), fields)
