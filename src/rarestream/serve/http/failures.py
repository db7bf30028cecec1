"""Answers to requests that failed: always JSON, with a code for programs and a sentence for people."""

from __future__ import annotations

import http
import logging
import re
import secrets

import msgspec

from rarestream.serve.errors import RequestError
from rarestream.serve.messages import ErrorDetail, ErrorOut

log = logging.getLogger("rarestream.serve")

Headers = list[tuple[bytes, bytes]]

encode = msgspec.json.Encoder().encode
_SANE_ID = re.compile(rb"[A-Za-z0-9._:+/=-]{1,128}")


def request_id(headers: dict[bytes, bytes]) -> bytes | None:
    """The id that the client gave its request, if it is one that can be repeated in an answer and a log."""
    given = headers.get(b"x-request-id")
    return given if given is not None and _SANE_ID.fullmatch(given) else None


def new_id() -> bytes:
    """Return an id for a request that has none."""
    return secrets.token_hex(8).encode()


def failure(error: RequestError, headers: dict[bytes, bytes]) -> tuple[bytes, Headers]:
    """The body and headers of the answer to a request that failed."""
    body = encode(ErrorOut(ErrorDetail(error.code, str(error), error.row)))
    answer: Headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", request_id(headers) or new_id()),
    ]
    if error.retry_after is not None:
        answer.append((b"retry-after", b"%d" % error.retry_after))
    if error.status == 401:
        answer.append((b"www-authenticate", b'Bearer realm="rarestream"'))
    return body, answer


def unexpected(exception: BaseException, headers: dict[bytes, bytes]) -> tuple[RequestError, dict[bytes, bytes]]:
    """An error of ours: the log has the traceback, the client the id under which it stands there."""
    name = request_id(headers) or new_id()
    shown = name.decode()
    log.error("Request %s failed.", shown, exc_info=exception)
    message = f"The service failed to answer this request; the reason is in the service's log under the id {shown}."
    return RequestError(500, "internal", message), {b"x-request-id": name}


def raw_failure(status: int, code: str, message: str, *, retry_after: int | None = None) -> bytes:
    """A whole answer, with its status line, for a connection that is closed after it."""
    error = RequestError(status, code, message, retry_after=retry_after)
    body, headers = failure(error, {})
    lines = [b"HTTP/1.1 %d %s" % (status, http.HTTPStatus(status).phrase.encode())]
    lines += [name + b": " + value for name, value in [*headers, (b"connection", b"close")]]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
