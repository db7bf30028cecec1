"""HTTP/1.1 as a client needs it, without input and output: text of requests, answers from bytes as they come."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from rarestream._version import __version__
from rarestream.errors import DataError

LONGEST_HEAD = 1 << 16  # bytes
HEAD_END = b"\r\n\r\n"


class Address(NamedTuple):
    """Where the service is."""

    host: str
    port: int
    prefix: str  # of paths, without a slash at its end
    tls: bool
    socket: str | None  # the path of a Unix socket
    shown: str  # for people


def parse_address(url: str) -> Address:
    """Return the parts of http://HOST:PORT/PREFIX, https://..., http+unix:///PATH/OF/SOCKET."""
    problem = ""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        problem = str(error)
    else:
        if parts.scheme == "http+unix" and parts.path:
            path = unquote(parts.netloc + parts.path)
            return Address("localhost", 0, "", False, path, url)
        if parts.scheme not in ("http", "https"):
            problem = "it must begin with http://, https:// or http+unix://"
        elif not parts.hostname:
            problem = "it has no host"
        elif parts.username or parts.password:
            problem = "user and password are not used; pass token="
        elif parts.query or parts.fragment:
            problem = "it must end before '?' and '#'"
        elif any(not "!" <= letter <= "~" for letter in url):
            problem = "only printable ASCII characters are allowed"
        else:
            tls = parts.scheme == "https"
            prefix = parts.path.rstrip("/")
            return Address(parts.hostname, port or (443 if tls else 80), prefix, tls, None, url.rstrip("/"))
    raise DataError(f"The address {url!r} is invalid: {problem}. An example: http://localhost:8080.")


def common_head(address: Address, token: str | None) -> bytes:
    """Return the lines that all requests of a client have."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    if address.socket is None and address.port != (443 if address.tls else 80):
        host = f"{host}:{address.port}"
    lines = [f"Host: {host}", f"User-Agent: rarestream/{__version__}", "Accept-Encoding: identity"]
    if token is not None:
        if not token or any(not "!" <= letter <= "~" for letter in token):
            raise DataError(
                "token must be printable ASCII characters without spaces; this one has others, or is empty."
            )
        lines.append(f"Authorization: Bearer {token}")
    return "".join(f"{line}\r\n" for line in lines).encode("ascii")


class BadAnswerError(Exception):
    """What came is not HTTP."""


class LostConnectionError(ConnectionError):
    """The connection ended before the answer did."""

    def __init__(self, begun: bool) -> None:
        super().__init__("the connection was closed " + ("within an answer" if begun else "before an answer came"))
        self.begun = begun


class Answer:
    """An answer: status, headers with names in lower case, body."""

    __slots__ = ("body", "headers", "keep", "status")

    def __init__(self, status: int, headers: dict[bytes, bytes], keep: bool) -> None:
        self.status, self.headers, self.keep = status, headers, keep  # keep: whether the connection can be used again
        self.body = b""


class AnswerParser:
    """Makes one answer of bytes as they come."""

    __slots__ = ("_answer", "_buffer", "_chunked", "_missing")

    def __init__(self) -> None:
        self._answer: Answer | None = None
        self._buffer = bytearray()  # of the head; then of the body
        self._missing: int | None = None  # bytes of the body, if its length is known
        self._chunked: _Chunks | None = None

    @property
    def begun(self) -> bool:
        """Whether anything has come."""
        return self._answer is not None or bool(self._buffer)

    def feed(self, data: bytes) -> Answer | None:
        """Take bytes; return the answer if it is complete."""
        if self._answer is None:
            if self._buffer:
                data = bytes(self._buffer) + data
                self._buffer.clear()
            while True:
                end = data.find(HEAD_END)
                if end < 0:
                    if len(data) > LONGEST_HEAD or not b"HTTP/1."[: len(data)] == data[:7]:
                        raise BadAnswerError
                    self._buffer += data
                    return None
                answer = _head(data[:end])
                data = data[end + 4 :]
                if answer.status >= 200:
                    break
                if answer.status == 101:
                    raise BadAnswerError
            self._answer = answer
            self._begin_body(answer)
        answer = self._answer
        if self._chunked is not None:
            if (rest := self._chunked.feed(data)) is None:
                return None
            answer.body = bytes(self._chunked.body)
            answer.keep &= not rest
            return answer
        if self._missing is None:  # until the connection ends
            self._buffer += data
            return None
        if not self._buffer and len(data) == self._missing:
            answer.body = data
            return answer
        self._buffer += data
        if len(self._buffer) < self._missing:
            return None
        if len(self._buffer) > self._missing:  # nobody asked for more
            answer.keep = False
            del self._buffer[self._missing :]
        answer.body = bytes(self._buffer)
        return answer

    def end(self) -> Answer:
        """The connection ended: return the answer, if that is how it ends."""
        answer = self._answer
        if answer is None or self._chunked is not None or self._missing is not None:
            raise LostConnectionError(self.begun)
        answer.body = bytes(self._buffer)
        return answer

    def _begin_body(self, answer: Answer) -> None:
        headers = answer.headers
        length = headers.get(b"content-length")
        if answer.status in (204, 304):
            self._missing = 0
        elif b"transfer-encoding" in headers:
            if headers[b"transfer-encoding"].lower() != b"chunked":
                raise BadAnswerError
            self._chunked = _Chunks()
        elif length is not None:
            if not length.isdigit():
                raise BadAnswerError
            self._missing = int(length)
        else:
            answer.keep = False


def _head(head: bytes) -> Answer:
    first, *lines = head.split(b"\r\n")
    if first[:7] != b"HTTP/1." or first[8:9] != b" " or not first[9:12].isdigit() or first[12:13] not in (b"", b" "):
        raise BadAnswerError
    headers = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or len(head) > LONGEST_HEAD:
            raise BadAnswerError
        headers[name.lower()] = value.strip()
    connection = headers.get(b"connection", b"").lower()
    keep = b"keep-alive" in connection if first[7:8] == b"0" else b"close" not in connection
    return Answer(int(first[9:12]), headers, keep)


class _Chunks:
    """A body in chunks."""

    __slots__ = ("_buffer", "_last", "body")

    def __init__(self) -> None:
        self.body = bytearray()
        self._buffer = bytearray()
        self._last = False

    def feed(self, data: bytes) -> bytes | None:
        """Take bytes; return those after the last chunk once it has come."""
        buffer = self._buffer
        buffer += data
        begin = 0
        while True:
            end = buffer.find(b"\r\n", begin)
            if end < 0:
                if len(buffer) - begin > LONGEST_HEAD:
                    raise BadAnswerError
                break
            if self._last:  # trailers, until an empty line
                if end == begin:
                    return bytes(buffer[end + 2 :])
                begin = end + 2
                continue
            digits = bytes(buffer[begin:end]).partition(b";")[0].strip()
            if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
                raise BadAnswerError
            size = int(digits, 16)
            if size == 0:
                self._last = True
                begin = end + 2
                continue
            if len(buffer) < end + 2 + size + 2:
                break
            if buffer[end + 2 + size : end + 4 + size] != b"\r\n":
                raise BadAnswerError
            self.body += memoryview(buffer)[end + 2 : end + 2 + size]
            begin = end + 4 + size
        del buffer[:begin]
        return None
