"""Requests that fail, with the status and the words of the answer."""

from __future__ import annotations

from rarestream.errors import RarestreamError


class RequestError(RarestreamError):
    """A request that fails. The message goes to the caller: it has no path and nothing of the machine.

    Attributes
    ----------
    status : int
        Of HTTP.
    code : str
        The kind of failure, for programs.
    row : int or None
        The row to blame, from 0.
    retry_after : int or None
        Seconds after which to try again.
    """

    def __init__(
        self, status: int, code: str, message: str, *, row: int | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.row, self.retry_after = status, code, row, retry_after
