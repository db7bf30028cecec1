"""What goes wrong between a client and the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rarestream.errors import RarestreamError

Row = Mapping[str, Any] | Sequence[tuple[int, float]]


class ServiceError(RarestreamError):
    """The service refused a request, or its answer makes no sense. Sending the same again would not help.

    Attributes
    ----------
    message : str
        What is wrong, in the words of the service.
    status : int
        Of HTTP; 0 if there was no answer.
    code : str
        The kind of failure, for programs: "bad_rows", "unauthorized", "disk_full", ...
    row : int or None
        The row to blame, from 0.
    key : str or None
        The idempotency key of the request. A later call with the same rows and this key learns nothing twice.
    """

    def __init__(
        self, message: str, *, status: int = 0, code: str = "", row: int | None = None, key: str | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.code, self.row, self.key = message, status, code, row, key

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


class ServiceUnavailableError(ServiceError):
    """The service could not be reached, or was busy or not ready, and the last retry is over.

    Attributes
    ----------
    attempts : list of str
        What came of each attempt.
    uncertain : bool
        Whether the service may have carried out the request: it was sent, and no answer came. Whoever sends it again
        should pass the same `key`.
    retry_after : float or None
        Seconds that the service asked to wait.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = "unavailable",
        key: str | None = None,
        attempts: Sequence[str] = (),
        uncertain: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, status=status, code=code, key=key)
        self.attempts, self.uncertain, self.retry_after = list(attempts), uncertain, retry_after


class FailedRow(NamedTuple):
    """A row or a label of a batch that was not learned."""

    number: int  # counts the calls of learn_one and label_one of the batch, from 0
    row: Row | None  # None: it was a label
    id: str | None  # None: it was a row
    label: int
    importance: float | None
    code: str  # "refused", "unknown", "duplicate", "late", or the code of `error`
    reason: str
    error: ServiceError | None  # of the request; None if the service took it, and refused this row
    uncertain: bool  # whether the service may have learned it: no answer came


class BatchError(RarestreamError):
    """Rows or labels of a batch were not learned.

    Attributes
    ----------
    failed : list of FailedRow
        All that failed since the last time this was raised.
    """

    def __init__(self, message: str, failed: Sequence[FailedRow]) -> None:
        super().__init__(message)
        self.failed = list(failed)

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchError, (str(self), self.failed)


class QueueFullError(RarestreamError):
    """The queue of a batch is full, and the batch was made with full="raise". The row was not taken."""


def _restored(cls: type[ServiceError], args: tuple[Any, ...], values: dict[str, Any]) -> ServiceError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(values)
    return error
