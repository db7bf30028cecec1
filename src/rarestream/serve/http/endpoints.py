"""The endpoints that are asked now and then: the model, its shadow, health, numbers, pages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from rarestream.serve.errors import RequestError
from rarestream.serve.http.failures import encode
from rarestream.serve.messages import Health, ModelOut

if TYPE_CHECKING:
    from rarestream.serve.http.application import Application, RequestEndpoint

# The page needs nothing from elsewhere, runs nothing, and no other site may frame it.
PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


def request_endpoints(app: Application) -> list[tuple[str, str, RequestEndpoint, bool]]:
    """Method, path, endpoint, and whether it needs the token."""
    own = Endpoints(app)
    table: list[tuple[str, str, RequestEndpoint, bool]] = [
        ("GET", "/model", own.model, True),
        ("GET", "/model/file", own.model_file, True),
        ("POST", "/snapshot", own.snapshot, True),
        ("GET", "/shadow", own.shadow, True),
        ("POST", "/shadow", own.start_shadow, True),
        ("DELETE", "/shadow", own.stop_shadow, True),
        ("POST", "/shadow/promote", own.promote, True),
        ("GET", "/metrics", own.metrics, True),
        ("GET", "/healthz", own.health, False),
        ("GET", "/readyz", own.readiness, False),
        ("GET", "/openapi.json", own.openapi, False),
        ("GET", "/docs", own.docs, False),
    ]
    # The page itself has no numbers: it asks for them, with the token.
    table += [("GET", route.path, route.endpoint, route.path != "/") for route in app.live.routes()]
    return table


class Endpoints:
    """The endpoints, for one application."""

    def __init__(self, app: Application) -> None:
        self.app = app
        self._openapi: bytes | None = None
        self._docs: bytes | None = None
        self._metrics: Any = None

    # -- the model

    async def model(self, request: Request) -> Response:
        """The model that answers."""
        return _json(self.app.service.model())

    async def model_file(self, request: Request) -> Response:
        """The model file of the newest snapshot."""
        file = self.app.service.model_file()
        return Response(
            file,
            media_type="application/octet-stream",
            headers={"content-disposition": 'attachment; filename="model.rare"'},
        )

    async def snapshot(self, request: Request) -> Response:
        """Write a snapshot now."""
        return _json({"sequence": await self.app.service.snapshot()})

    async def shadow(self, request: Request) -> Response:
        """The shadow model."""
        return _json(await self.app.service.shadow())

    async def start_shadow(self, request: Request) -> Response:
        """Start a shadow model from a model file."""
        known = {"promote", "positives", "margin"}
        query = request.query_params
        for name in query:
            if name not in known:
                raise _bad(f"Unknown parameter {name[:60]!r}; they are promote, positives and margin.")
        promote = query.get("promote", "manual")
        if promote not in ("auto", "manual"):
            raise _bad(f"promote must be auto or manual, not {promote[:60]!r}.")
        positives = _whole(query.get("positives", "100"), "positives", 1, 10**9)
        margin = _number(query.get("margin", "0"), "margin", 0.0, 0.5)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/octet-stream":
            raise RequestError(415, "media_type", "Content-Type must be application/octet-stream: a model file.")
        file = await self._body(request)
        if not file:
            raise _bad("The body is empty; a model file (.rare) is needed.")
        return _json(await self.app.service.start_shadow(file, promote, positives, margin), 201)

    async def stop_shadow(self, request: Request) -> Response:
        """Drop the shadow model."""
        await self.app.service.stop_shadow()
        return Response(status_code=204)

    async def promote(self, request: Request) -> Response:
        """Let the shadow model answer from now on, if the gate lets it."""
        model: ModelOut = await self.app.service.promote()
        return _json(model)

    async def _body(self, request: Request) -> bytes:
        limit = self.app.service.limits.body
        too_large = RequestError(413, "too_large", f"The body is larger than {limit} bytes, the limit.")
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            raise too_large
        pieces, total = [], 0
        try:
            async for piece in request.stream():
                total += len(piece)
                if total > limit:
                    raise too_large
                pieces.append(piece)
        except ClientDisconnect:
            raise RequestError(400, "disconnected", "The client went away before its body had come.") from None
        return b"".join(pieces)

    # -- health and numbers

    async def health(self, request: Request) -> Response:
        """The process answers."""
        return _json(Health("ok"))

    async def readiness(self, request: Request) -> Response:
        """Whether requests should be sent here."""
        if self.app.stopping:
            return _json(Health("stopping", "The service is stopping."), 503, {"retry-after": "5"})
        if not self.app.service.ready:
            return _json(Health("starting", "The service replays its log."), 503, {"retry-after": "1"})
        return _json(Health("ready"))

    async def metrics(self, request: Request) -> Response:
        """The numbers of the service for Prometheus."""
        if self._metrics is None:
            from rarestream.serve.http.metrics import Metrics

            self._metrics = Metrics(self.app)
        text, kind = self._metrics.text(request.headers.get("accept", ""))
        return Response(text, headers={"content-type": kind})

    # -- pages

    async def openapi(self, request: Request) -> Response:
        """What this interface is, for programs."""
        if self._openapi is None:
            from rarestream.serve.http.openapi import document

            self._openapi = encode(document(self.app.service.limits, token=self.app.settings.token is not None))
        return Response(self._openapi, media_type="application/json")

    async def docs(self, request: Request) -> Response:
        """What this interface is, for people."""
        if self._docs is None:
            from rarestream.serve.http.docs_page import page
            from rarestream.serve.http.openapi import document

            self._docs = page(document(self.app.service.limits, token=self.app.settings.token is not None))
        return Response(self._docs, media_type="text/html; charset=utf-8", headers=PAGE_HEADERS)


def _json(message: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(encode(message), status, headers, "application/json")


def _bad(message: str) -> RequestError:
    return RequestError(422, "bad_request", message)


def _whole(text: str, name: str, low: int, high: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18 or not low <= int(text) <= high:
        raise _bad(f"{name} must be a whole number from {low} to {high}, not {text[:60]!r}.")
    return int(text)


def _number(text: str, name: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise _bad(f"{name} must be a number from {low:g} to {high:g}, not {text[:60]!r}.")
    return value
