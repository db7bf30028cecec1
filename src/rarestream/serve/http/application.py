"""The ASGI application: one table of routes, and as little as possible between a request and the service.

All paths are fixed, so finding an endpoint is one lookup. The endpoints that carry the load (predict, learn, label)
take the bytes of a body and return those of an answer; all others take a Request and return a Response of Starlette.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from rarestream.monitor.web import LivePage
from rarestream.serve.errors import RequestError
from rarestream.serve.http import bodies
from rarestream.serve.http.counts import Counts, RouteCounts, SharedCounts
from rarestream.serve.http.failures import Headers, encode, failure, log, new_id, request_id, unexpected
from rarestream.serve.http.service import Service
from rarestream.serve.http.settings import Settings
from rarestream.serve.messages import IdLabel, Learned
from rarestream.serve.rows import RowDecoder, RowText
from rarestream.serve.scoring import AT_ONCE

JSON = b"application/json"
LINES = b"application/x-ndjson"
ARROW = b"application/vnd.apache.arrow.stream"
FILE = b"application/octet-stream"

HeaderDict = dict[bytes, bytes]
# Takes body, headers and query; returns the body of a JSON answer, or body and headers of another answer.
BodyAnswer = bytes | tuple[bytes, Headers]
BodyEndpoint = Callable[[bytes, HeaderDict, bytes], "BodyAnswer | Awaitable[BodyAnswer]"]
RequestEndpoint = Callable[[Request], Awaitable[Response]]

LINGER = 2.0  # seconds that an oversized body is read and dropped, so that its sender sees the answer


class Endpoint:
    """What answers a method of a path."""

    __slots__ = ("counts", "media", "needs_token", "takes_body", "takes_request")

    def __init__(
        self,
        counts: RouteCounts,
        *,
        takes_body: BodyEndpoint | None = None,
        takes_request: RequestEndpoint | None = None,
        needs_token: bool = True,
        media: frozenset[bytes] = frozenset(),
    ) -> None:
        self.counts, self.takes_body, self.takes_request = counts, takes_body, takes_request
        self.needs_token, self.media = needs_token, media


class Application:
    """Answers HTTP requests with what a service says.

    Parameters
    ----------
    service : Service
        The service.
    settings : Settings
        The token, among others.
    """

    def __init__(self, service: Service, settings: Settings) -> None:
        # Endpoints other than those for rows are in a module of their own, which needs this class.
        from rarestream.serve.http.endpoints import request_endpoints

        self.service, self.settings = service, settings
        self.counts = Counts()
        self.shared_counts: SharedCounts | None = None  # of several processes on one port
        self.stopping = False
        self._large_bodies = asyncio.Lock()
        self.live = LivePage(service.statistics, clients=settings.live_pages)
        self.endpoints: dict[tuple[str, str], Endpoint] = {}
        json_or_more = frozenset([JSON, LINES, ARROW])
        self._add("POST", "/predict", takes_body=self._predict, media=json_or_more)
        self._add("POST", "/learn", takes_body=self._learn, media=json_or_more)
        self._add("POST", "/label", takes_body=self._label, media=frozenset([JSON, LINES]))
        for method, path, endpoint, needs_token in request_endpoints(self):
            self._add(method, path, takes_request=endpoint, needs_token=needs_token)
        self.methods: dict[str, list[str]] = {}
        for method, path in self.endpoints:
            self.methods.setdefault(path, []).append(method)

    def stop(self) -> None:
        """Say 503 at /readyz and end the streams of /events."""
        self.stopping = True
        self.live.close()

    def total_counts(self) -> Counts:
        """Return the counts of all processes that share the port."""
        return self.counts if self.shared_counts is None else self.shared_counts.total(self.counts)

    async def publish_counts(self) -> None:
        """Tell the other processes on the port the counts of this one, every second."""
        while self.shared_counts is not None:
            try:
                self.shared_counts.publish(self.counts)
            except OSError as error:  # such as a full disk: numbers of the others are missing, nothing else
                log.warning("counts for /metrics are not shared: %s", error.strerror)
            await asyncio.sleep(1.0)

    def _add(self, method: str, path: str, **options: Any) -> None:
        told = {"/predict": self.service.predict_seconds, "/learn": self.service.learn_seconds}
        counts = self.counts.routes[method, path] = RouteCounts(told.get(path))
        endpoint = self.endpoints[method, path] = Endpoint(counts, **options)
        if method == "GET":
            self.endpoints["HEAD", path] = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        begin = perf_counter()
        endpoint = self.endpoints.get((scope["method"], scope["path"]))
        headers: HeaderDict = dict(scope["headers"])
        try:
            if endpoint is None:
                raise self._no_endpoint(scope)
            if endpoint.needs_token and self.settings.token is not None:
                self._check_token(self.settings.token, headers)
            answer_to = endpoint.takes_body
            if answer_to is None:
                status = await self._answer_request(endpoint, scope, receive, send, headers)
                endpoint.counts.add(status, perf_counter() - begin)
                return
            # The body: nearly always in one piece, which is then not copied.
            limit = self.service.limits.body
            length = headers.get(b"content-length")
            if length is not None and int(length) > limit:
                raise _too_large(limit)
            message = await receive()
            body = message.get("body")
            if body is None:
                return  # the client has gone
            if message.get("more_body"):
                body = await _whole_body(receive, body, limit)
                if body is None:
                    return
            if len(body) > limit:
                raise _too_large(limit)
            if len(body) > AT_ONCE:
                await self._in_turn()
            answer: Any = answer_to(body, headers, scope["query_string"])
            kind = type(answer)
            if kind is not bytes:
                if kind is not tuple:
                    answer = await answer
                if type(answer) is tuple:
                    answer, answer_headers = answer
                else:
                    answer_headers = [(b"content-type", JSON)]
            else:
                answer_headers = [(b"content-type", JSON)]
            answer_headers.append((b"content-length", b"%d" % len(answer)))
            if b"x-request-id" in headers and (name := request_id(headers)) is not None:
                answer_headers.append((b"x-request-id", name))
            endpoint.counts.add(200, perf_counter() - begin)
            await send({"type": "http.response.start", "status": 200, "headers": answer_headers})
            await send({"type": "http.response.body", "body": answer})
        except RequestError as error:
            await self._fail(error, endpoint, headers, scope, receive, send, begin)
        except Exception as exception:
            internal, headers = unexpected(exception, headers)
            await self._fail(internal, endpoint, headers, scope, receive, send, begin)

    async def _in_turn(self) -> None:
        """Let one large body after the other be decoded, and quick requests be answered between two of them.

        Else those that come together, say after a flush that took long, would be decoded in one go.
        """
        async with self._large_bodies:
            await asyncio.sleep(0)

    # -- failures

    def _no_endpoint(self, scope: Scope) -> RequestError:
        if scope["path"] in self.methods:
            allowed = ", ".join(self._allowed(scope["path"]))
            return RequestError(405, "method", f"{scope['path']} takes {allowed}, not {scope['method']}.")
        return RequestError(404, "not_found", "There is nothing at this path. /docs lists what there is.")

    def _allowed(self, path: str) -> list[str]:
        return self.methods.get(path, [])

    def _check_token(self, token: bytes, headers: HeaderDict) -> None:
        given = headers.get(b"authorization", b"")
        if given[:7].lower() != b"bearer " or not hmac.compare_digest(given[7:].strip(), token):
            came = "a wrong one" if given else "none"
            message = f"This needs the service's token, as 'Authorization: Bearer TOKEN'; the request has {came}."
            raise RequestError(401, "unauthorized", message)

    async def _fail(
        self,
        error: RequestError,
        endpoint: Endpoint | None,
        headers: HeaderDict,
        scope: Scope,
        receive: Receive,
        send: Send,
        begin: float,
    ) -> None:
        if endpoint is None:
            self.counts.refuse(error.status)
        else:
            endpoint.counts.add(error.status, perf_counter() - begin)
        body, answer = failure(error, headers)
        if error.status == 405:
            answer.append((b"allow", ", ".join(self._allowed(scope["path"])).encode()))
        close = error.status == 413
        if close:
            answer.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": error.status, "headers": answer})
        await send({"type": "http.response.body", "body": body, "more_body": close})
        if close:
            # To close at once, with unread bytes, would reset the connection: the client might never see the answer.
            try:
                async with asyncio.timeout(LINGER):
                    while (await receive()).get("more_body"):
                        pass
            except TimeoutError:
                pass
            await send({"type": "http.response.body", "body": b""})

    # -- endpoints that take a Request

    async def _answer_request(
        self, endpoint: Endpoint, scope: Scope, receive: Receive, send: Send, headers: HeaderDict
    ) -> int:
        changes = scope["method"] not in ("GET", "HEAD")
        if changes and headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            # A page of another site can make a browser send this; it cannot hide where it comes from.
            raise RequestError(403, "cross_site", "Pages of other sites must not call this.")
        assert endpoint.takes_request is not None
        response = await endpoint.takes_request(Request(scope, receive))
        if response.status_code >= 400:
            response.headers["x-request-id"] = (request_id(headers) or new_id()).decode()
        elif (given := request_id(headers)) is not None:
            response.headers["x-request-id"] = given.decode()
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await response(scope, receive, sending)
        except RequestError:
            if not started:
                raise
            await send({"type": "http.response.body", "body": b""})  # events, of a service that is stopping
        return response.status_code

    # -- rows

    def _predict(self, body: bytes, headers: HeaderDict, query: bytes) -> BodyAnswer | Awaitable[BodyAnswer]:
        kind = headers.get(b"content-type", b"")
        if kind != JSON and (kind := _media(kind)) != JSON:
            return self._predict_rows(self._row_text(kind, body), None, False, arrow=kind == ARROW)
        answer = self.service.answer_one(body)
        if answer is not None:
            self.counts.predicted += 1
            return answer
        try:
            one = bodies.predict_one(body)
        except bodies.DECODING_ERRORS:
            many = bodies.predict_many(body)
            bodies.same_length("ids", many.ids, len(many.rows))
            return self._predict_rows(self._joined(many.rows), many.ids, many.remember)
        if one.id is not None or one.remember:
            return self._predict_rows(RowDecoder.joined([one.row]), None if one.id is None else [one.id], one.remember)
        prediction = self.service.predict_one(one)
        self.counts.predicted += 1
        return encode(prediction)

    async def _predict_rows(
        self, rows: RowText, ids: list[str] | None, remember: bool, arrow: bool = False
    ) -> BodyAnswer:
        prediction = await self.service.predict(rows, ids, remember)
        self.counts.predicted += len(prediction.scores)
        if not arrow:
            return encode(prediction)
        from rarestream.serve.http.arrow import arrow_answer

        return arrow_answer(prediction)

    async def _learn(self, body: bytes, headers: HeaderDict, query: bytes) -> BodyAnswer:
        key = _key(headers)
        kind = _media(headers.get(b"content-type", b""))
        columns = _columns(query) if query else {}
        if columns and kind != ARROW:
            message = (
                f"The parameter {next(iter(columns))} names a column of an Arrow body, but this is {kind.decode()}."
            )
            raise RequestError(422, "bad_request", message)
        labels: list[int] | None
        if kind == ARROW:
            rows = self._arrow(body, columns.get("label"), columns.get("importance"))
            return self._learned(await self.service.learn(rows, None, None, key))
        if kind == LINES:
            lines = bodies.learn_lines(body)
            rows = self._joined([line.row for line in lines])
            labels = [line.label for line in lines]
            given = [line.importance for line in lines]
            importances = None if all(h is None for h in given) else [1.0 if h is None else h for h in given]
            return self._learned(await self.service.learn(rows, labels, importances, key))
        try:
            one = bodies.learn_one(body)
        except bodies.DECODING_ERRORS:
            many = bodies.learn_many(body)
            bodies.same_length("labels", many.labels, len(many.rows))
            bodies.same_length("importances", many.importances, len(many.rows))
            labels = list(many.labels)
            return self._learned(await self.service.learn(self._joined(many.rows), labels, many.importances, key))
        importances = None if one.importance is None else [one.importance]
        return self._learned(await self.service.learn(RowDecoder.joined([one.row]), [one.label], importances, key))

    def _learned(self, learned: Learned) -> bytes:
        if not learned.repeated:
            self.counts.learned += learned.learned
        return encode(learned)

    async def _label(self, body: bytes, headers: HeaderDict, query: bytes) -> BodyAnswer:
        key = _key(headers)
        labels: list[IdLabel]
        if _media(headers.get(b"content-type", b""), arrow=False) == LINES:
            labels = bodies.label_lines(body)
        else:
            try:
                labels = [bodies.label_one(body)]
            except bodies.DECODING_ERRORS:
                labels = bodies.label_many(body).labels
        self._check_rows(len(labels), "labels")
        labelled = await self.service.label(labels, key)
        if not labelled.repeated:
            self.counts.labelled += labelled.learned
        return encode(labelled)

    def _joined(self, rows: list[Any]) -> RowText:
        self._check_rows(len(rows), "rows")
        return RowDecoder.joined(rows)

    def _row_text(self, kind: bytes, body: bytes) -> RowText:
        rows = self._arrow(body) if kind == ARROW else RowDecoder.lines("json", body)
        self._check_rows(rows.rows, "rows")
        return rows

    def _arrow(self, body: bytes, label: str | None = None, importance: str | None = None) -> RowText:
        rows = RowDecoder(None, self.service.limits).arrow(body, label, importance)
        self._check_rows(rows.rows, "rows")
        return rows

    def _check_rows(self, number: int, name: str) -> None:
        if number == 0:
            raise RequestError(422, "bad_request", f"The request has no {name}; it needs at least one.")
        if number > self.service.limits.rows:
            message = f"The request has {number} {name}; at most {self.service.limits.rows} are allowed. Send several."
            raise RequestError(413, "too_large", message)


def _media(kind: bytes, arrow: bool = True) -> bytes:
    """The media type of a body, without its parameters."""
    media, _, parameters = kind.partition(b";")
    media = media.strip().lower()
    if media == b"application/ndjson" or media == b"application/jsonl":
        media = LINES
    charset = parameters.lower().replace(b" ", b"").replace(b'"', b"").partition(b"charset=")[2]
    if charset and charset.partition(b";")[0] not in (b"utf-8", b"utf8", b"us-ascii"):
        raise RequestError(415, "media_type", "The charset of a body must be UTF-8.")
    allowed = [JSON, LINES, ARROW] if arrow else [JSON, LINES]
    if media not in allowed:
        names = " or ".join(name.decode() for name in allowed)
        came = f"not {media.decode('ascii', 'backslashreplace')[:100]}" if media else "and is missing"
        raise RequestError(415, "media_type", f"Content-Type must be {names}, {came}.")
    return media


def _columns(query: bytes) -> dict[str, str]:
    """The columns of an Arrow table that the query of a request names."""
    found = dict(parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True))
    for name, column in found.items():
        if name not in ("label", "importance"):
            raise RequestError(422, "bad_request", f"Unknown parameter {name[:60]!r}; they are label and importance.")
        if not column:
            raise RequestError(
                422, "bad_request", f"The parameter {name} is empty; it names a column of an Arrow body."
            )
    return found


def _key(headers: HeaderDict) -> str | None:
    key = headers.get(b"idempotency-key")
    if key is None:
        return None
    if not 1 <= len(key) <= 255 or not key.isascii() or not key.decode().isprintable():
        message = f"Idempotency-Key must be 1 to 255 printable ASCII characters, not {len(key)} bytes such as these."
        raise RequestError(422, "bad_request", message)
    return key.decode()


def _too_large(limit: int) -> RequestError:
    return RequestError(413, "too_large", f"The body is larger than {limit} bytes, the limit. Send several requests.")


async def _whole_body(receive: Receive, first: bytes, limit: int) -> bytes | None:
    """The pieces of a body, joined; None if the client has gone."""
    pieces, total, more = [first], len(first), True
    while more:
        if total > limit:
            raise _too_large(limit)
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        piece = message.get("body", b"")
        pieces.append(piece)
        total += len(piece)
        more = message.get("more_body", False)
    return b"".join(pieces)
