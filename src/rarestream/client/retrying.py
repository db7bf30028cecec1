"""When a request is sent again, and what is raised when it is not."""

from __future__ import annotations

import random
import time
from collections.abc import Collection
from typing import Any, NamedTuple, TypeVar

from rarestream.client.encoding import from_json
from rarestream.client.errors import ServiceError, ServiceUnavailableError
from rarestream.client.http import Answer
from rarestream.client.requests import Request
from rarestream.errors import DataError, plain

T = TypeVar("T")

RETRY_ON = (408, 429, 502, 503, 504)
REFUSED_UNREAD = (408, 429, 503)  # of these, the service says that it did nothing
LONGEST_PAUSE = 5.0  # seconds, of the growing ones; the service may ask for longer ones
SHOWN_ATTEMPTS = 10  # that an error lists


class Retries(NamedTuple):
    """How often a request is sent again, and when."""

    times: int = 5  # after the first attempt
    pause: float = 0.1  # seconds before the first retry; doubles each time
    max_wait: float = 30.0  # seconds that the service may ask to wait
    statuses: frozenset[int] = frozenset(RETRY_ON)
    give_up: float | None = None  # in place of `times`: seconds since the first failure


def checked_retries(retries: int, pause: float, max_wait: float, statuses: Collection[int]) -> Retries:
    if not isinstance(retries, int) or retries < 0:
        raise DataError(f"retries must be a whole number >= 0; got {retries!r:.80}.")
    for name, value in (("pause", pause), ("max_wait", max_wait)):
        if not 0 <= value < float("inf"):
            raise DataError(f"{name} must be a number of seconds >= 0; got {value!r:.80}.")
    return Retries(retries, pause, max_wait, frozenset(statuses))


class Attempts:
    """The attempts of one call that has not worked at once."""

    def __init__(self, request: Request[Any], retries: Retries, service: str) -> None:
        self.request, self.retries, self.service = request, retries, service
        self.began = time.monotonic()
        self.found: list[str] = []
        self.failures = 0
        self.uncertain = False

    def lost(self, error: OSError, sent: bool) -> float:
        """A connection failed: return the seconds to wait before the next attempt, or raise."""
        self.uncertain |= sent
        self._count(_words(error))
        if _hopeless(error) or (sent and not self.request.repeatable):
            self._give_up(error)
        return self._pause(0.0, error)

    def refused(self, answer: Answer) -> float:
        """An answer that is no success: return the seconds to wait before the next attempt, or raise."""
        status = answer.status
        error = service_error(answer, self.request)
        if status not in self.retries.statuses:
            raise error
        wait = retry_after(answer)
        if status not in REFUSED_UNREAD:
            self.uncertain = True
        asked = "" if wait is None else f", Retry-After {wait:g} s"
        self._count(f"status {status}{asked}: {error.message}")
        unsafe = not self.request.repeatable and status not in REFUSED_UNREAD
        if unsafe or (wait is not None and wait > self.retries.max_wait):
            self._give_up(error, status, wait)
        return self._pause(wait or 0.0, error, status, wait)

    def _count(self, words: str) -> None:
        self.failures += 1
        self.found.append(words)
        del self.found[1 : max(1, len(self.found) - SHOWN_ATTEMPTS + 1)]  # the first, and the last ones

    def _pause(self, least: float, error: Exception, status: int = 0, asked: float | None = None) -> float:
        retries = self.retries
        # Half of it is random, so that clients that failed together do not come back together.
        grown = min(LONGEST_PAUSE, retries.pause * 2.0 ** min(self.failures - 1, 30))
        pause = max(least, grown / 2) + random.random() * grown / 2
        if retries.give_up is None:
            over = self.failures > retries.times
        else:
            over = time.monotonic() - self.began + pause > retries.give_up
        if over:
            self._give_up(error, status, asked)
        return pause

    def _give_up(self, error: Exception, status: int = 0, asked: float | None = None) -> None:
        times = "once" if self.failures == 1 else f"{self.failures} times"
        method, path = self.request.line
        what = f"{method} {path.partition('?')[0]}"
        message = f"{self.service}: {what} was tried {times}, without success. Last: {self.found[-1].rstrip('.')}."
        if self.uncertain and self.request.key is not None:
            message += f" The service may have learned these rows; to send them again, pass key={self.request.key!r}."
        elif self.uncertain and not self.request.repeatable:
            message += " The service may have done it: look before you ask again."
        raise ServiceUnavailableError(
            message,
            status=status,
            code=error.code if isinstance(error, ServiceError) and error.code else "unavailable",
            key=self.request.key,
            attempts=self.found,
            uncertain=self.uncertain,
            retry_after=asked,
        ) from error


def _words(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return str(error) or "no answer in time"
    return plain(str(error) or type(error).__name__)


def _hopeless(error: OSError) -> bool:
    """Whether it will be the same next time: a certificate that is not trusted, a socket that may not be used."""
    return type(error).__name__ == "SSLCertVerificationError" or isinstance(error, PermissionError)


def service_error(answer: Answer, request: Request[Any]) -> ServiceError:
    """Return the error that an answer is about."""
    code, message, row = f"status_{answer.status}", "", None
    try:
        detail = from_json(answer.body)["error"]
        code, message, row = str(detail["code"]), str(detail["message"]), detail.get("row")
    except Exception:  # of a proxy, or of another program on this port: any text
        if 300 <= answer.status < 400:
            location = plain(answer.headers.get(b"location", b"?").decode("latin-1"))
            message = f"it redirects to {location}; use that address"
        else:
            message = plain(answer.body[:200].decode("utf-8", "replace").strip()) or "no message"
    return ServiceError(
        message, status=answer.status, code=code, row=row if isinstance(row, int) else None, key=request.key
    )


def read_answer(answer: Answer, request: Request[T], service: str) -> T:
    """Return what a successful answer says."""
    try:
        return request.read(answer)
    except Exception as error:
        raise bad_answer(
            request, service, f"the answer is not what this client expects ({plain(answer.body[:80])})"
        ) from error


def bad_answer(request: Request[Any], service: str, what: str = "the answer is not HTTP") -> ServiceError:
    """Return the error for an answer that makes no sense. It is not retried: another program answers there."""
    key = f" If rows were sent, they may have been learned; key={request.key!r}." if request.key else ""
    return ServiceError(
        f"{service}: {what}. Is this the address of `rarestream serve`, and is its version that of this client?{key}",
        code="bad_answer",
        key=request.key,
    )


def retry_after(answer: Answer) -> float | None:
    """Return the seconds that the service asks to wait."""
    text = answer.headers.get(b"retry-after", b"").decode("latin-1")
    if not text:
        return None
    if text.isdigit():
        return float(text[:9])
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None
