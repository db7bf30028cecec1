"""Times as whole numbers that can be compared, and the times that split rows into given shares.

A time is a date in ISO form, with or without a time of day and an offset from UTC (without, it is taken for UTC), or a
number, such as the seconds since 1970. Dates become microseconds since 1970; numbers become the whole numbers that are
in the same order.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]
NUMBER, DATE = "a number", "a date"
MOST_BUCKETS = 1 << 20
PENDING = 1 << 20  # times that wait to be counted

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def kind_of(text: str) -> str | None:
    """Return whether a text is a number or a date; None if it is neither."""
    for kind in (NUMBER, DATE):
        if parsed_one(text, kind) is not None:
            return kind
    return None


def parsed(texts: Sequence[str], kind: str) -> tuple[Times, NDArray[np.bool_]]:
    """Return times, and which of them are none."""
    bad = np.zeros(len(texts), bool)
    try:
        return _parsed_together(texts, kind), bad
    except ValueError:
        pass
    found = np.zeros(len(texts), np.int64)
    for row, text in enumerate(texts):
        one = parsed_one(text, kind)
        bad[row] = one is None
        found[row] = one or 0
    return found, bad


def _parsed_together(texts: Sequence[str], kind: str) -> Times:
    """Return times; ValueError if one is invalid, or not written as most are."""
    if kind == NUMBER:
        return _ordered(np.array(texts, "U").astype(np.float64))
    if not all(len(text) >= 10 and text[:4].isdecimal() and text[-1].isdecimal() and text[7] == "-" for text in texts):
        raise ValueError
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy warns of offsets from UTC, and would leave them out
        try:
            found = np.array(texts, "datetime64[us]")
        except Warning:
            raise ValueError from None
    return found.astype(np.int64)


def parsed_one(text: str, kind: str) -> int | None:
    """Return a time, or None if the text is none of this kind."""
    try:
        if kind == NUMBER:
            return int(_ordered(np.array([float(text)]))[0])
        when = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    since = when - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _ordered(numbers: NDArray[np.float64]) -> Times:
    """Return whole numbers in the order of these, which must be finite."""
    if not np.isfinite(numbers).all():
        raise ValueError
    bits = (numbers + 0.0).view(np.int64)  # no minus zero
    return np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)


def shown(time: int, kind: str) -> str:
    """Return a time as text, which gives the same time again."""
    if kind == NUMBER:
        bits = np.array([time if time >= 0 else time ^ 0x7FFF_FFFF_FFFF_FFFF], np.int64)
        number = float(bits.view(np.float64)[0])
        return str(int(number)) if number == int(number) and abs(number) < 2**53 else repr(number)
    text = str(np.datetime64(time, "us")).replace("T", " ")
    return text.removesuffix(".000000").removesuffix(" 00:00:00")


class TimeCounts:
    """Counts times in buckets, whose width grows with their number, so that memory stays bounded."""

    def __init__(self) -> None:
        self._shift = 0  # a bucket is 2^shift wide
        self._buckets = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._pending: list[Times] = []
        self._waiting = 0

    def add(self, times: Times) -> None:
        self._pending.append(times)
        self._waiting += len(times)
        if self._waiting >= PENDING:
            self._count()

    def _count(self) -> None:
        new = np.concatenate([*self._pending, np.zeros(0, np.int64)]) >> self._shift
        self._pending, self._waiting = [], 0
        self._merge(np.concatenate([self._buckets, new]), np.concatenate([self._counts, np.ones(len(new), np.int64)]))
        while len(self._buckets) > MOST_BUCKETS:
            self._shift += 1
            self._merge(self._buckets >> 1, self._counts)

    def _merge(self, buckets: Times, counts: NDArray[np.int64]) -> None:
        self._buckets, places = np.unique(buckets, return_inverse=True)
        self._counts = np.bincount(places, counts, len(self._buckets)).astype(np.int64)

    def cuts(self, shares: Sequence[float]) -> list[int]:
        """Return the times before which about these shares of all rows are. Each bucket is on one side."""
        self._count()
        before = np.concatenate([[0], np.cumsum(self._counts)])
        total = int(before[-1])
        found = []
        for share in shares:
            at = int(np.argmin(np.abs(before - share * total)))
            at = min(max(at, 1), len(self._buckets) - 1)  # no part is empty if there are two times at all
            found.append(int(self._buckets[at]) << self._shift)
        return found
