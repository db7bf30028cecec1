"""Which part a row belongs to: by its place in the data, at random, by the hash of a key, or by time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.errors import DataError, advice, quoted
from rarestream.readers.refusals import Refusals
from rarestream.readers.shuffle import keys
from rarestream.splitting.times import TimeCounts, Times, kind_of, parsed, shown

Parts = NDArray[np.int8]  # the number of a part for each row; -1: the row is left out
Place = Callable[[int], str]  # where a row is, for messages


class ByOrder:
    """The first rows to the first part, and so on; exact, as the number of rows is known."""

    def __init__(self, ends: Sequence[float], rows: int) -> None:
        self._cuts = [round(rows * end) for end in ends[:-1]]
        self._rows = 0

    def parts(self, count: int, texts: Sequence[str] | None, place: Place) -> Parts:
        rows = np.arange(self._rows, self._rows + count)
        self._rows += count
        return np.searchsorted(self._cuts, rows, "right").astype(np.int8)


class ByRandom:
    """By a random number that depends on the seed and the number of the row alone."""

    def __init__(self, ends: Sequence[float], seed: int) -> None:
        self._cuts = np.array(ends[:-1])
        self._seed = seed
        self._rows = 0

    def parts(self, count: int, texts: Sequence[str] | None, place: Place) -> Parts:
        drawn = keys(self._seed, self._rows, count) / 2.0**64
        self._rows += count
        return np.searchsorted(self._cuts, drawn, "right").astype(np.int8)


class ByKey:
    """By the hash of a text: murmur3_x86_32(text in UTF-8, seed) / 2^32. A row without one is placed at random.

    Attributes
    ----------
    keyed, unkeyed : int
        Number of rows with a key and without.
    """

    def __init__(self, ends: Sequence[float], seed: int) -> None:
        self._cuts = np.array(ends[:-1])
        self._seed = seed & 0xFFFF_FFFF
        self._at_random = ByRandom(ends, seed)
        self.keyed = self.unkeyed = 0

    def parts(self, count: int, texts: Sequence[str] | None, place: Place) -> Parts:
        found = self._at_random.parts(count, None, place)
        if texts is None:
            self.unkeyed += count
            return found
        have = np.array([bool(text) for text in texts])
        hashes = [_native.murmur3(text.encode(), self._seed) for text in texts]
        hashed = np.searchsorted(self._cuts, np.array(hashes, np.float64) / 2.0**32, "right")
        self.keyed += int(np.count_nonzero(have))
        self.unkeyed += int(np.count_nonzero(~have))
        return np.where(have, hashed, found).astype(np.int8)


class TimesOfRows:
    """The times of rows. What they are, numbers or dates, is decided by the first; others are invalid rows.

    Parameters
    ----------
    what : str
        What has the time, such as "column 'when'".
    refusals : Refusals
        Counts invalid rows.
    kind : str, optional
        What times are, if that is decided, and why: continues "must have a date, ".
    """

    def __init__(
        self, what: str, refusals: Refusals, kind: str | None = None, why: str = "as in the first rows"
    ) -> None:
        self._what = what
        self._refusals = refusals
        self.kind = kind
        self._why = why

    def of(self, texts: Sequence[str], place: Place) -> tuple[Times, NDArray[np.bool_]]:
        """Return the times of rows, and which rows have none and are left out."""
        if self.kind is None:
            self.kind = next((kind for text in texts if (kind := kind_of(text)) is not None), None)
        times, bad = (
            parsed(texts, self.kind)
            if self.kind is not None
            else (np.zeros(len(texts), np.int64), np.ones(len(texts), bool))
        )
        for row in np.flatnonzero(bad):
            text = texts[int(row)]
            wanted = f"{self.kind}, {self._why}" if self.kind else "a date, such as 2026-01-31 13:05, or a number"
            came = f"has {quoted(text.encode())}" if text else "is empty"
            error = self._refusals.add(f"{place(int(row))}: {self._what} must have {wanted}, but {came}.")
            if error is not None:
                raise error
        return times, bad


class ByTime:
    """By time: a row belongs to the first part whose end is after it."""

    def __init__(self, cuts: Sequence[int], times: TimesOfRows) -> None:
        self._cuts = np.array(cuts, np.int64)
        self._times = times

    def parts(self, count: int, texts: Sequence[str] | None, place: Place) -> Parts:
        times, bad = self._times.of([""] * count if texts is None else texts, place)
        found = np.searchsorted(self._cuts, times, "right").astype(np.int8)
        found[bad] = -1
        return found


class CountTimes:
    """The first of two passes by time: counts them, and places no row."""

    def __init__(self, times: TimesOfRows) -> None:
        self.times = times
        self.counts = TimeCounts()
        self.rows = 0

    def parts(self, count: int, texts: Sequence[str] | None, place: Place) -> Parts:
        times, bad = self.times.of([""] * count if texts is None else texts, place)
        self.counts.add(times[~bad])
        self.rows += int(np.count_nonzero(~bad))
        return np.full(count, -1, np.int8)


class CountRows:
    """The first of two passes by order: counts rows, and places none."""

    def __init__(self) -> None:
        self.rows = 0

    def parts(self, count: int, texts: Sequence[str] | None, place: Place) -> Parts:
        self.rows += count
        return np.full(count, -1, np.int8)


Rule = ByOrder | ByRandom | ByKey | ByTime | CountTimes | CountRows


def given_times(at: Sequence[str]) -> tuple[list[int], str]:
    """Return the times that separate parts, and what they are.

    Raises
    ------
    DataError
        If one is invalid, or they do not ascend.
    """
    option = advice("at", "--at")
    kind = kind_of(at[0])
    for text in at:
        if kind is None or kind_of(text) != kind:
            also = "" if kind is None or text == at[0] else f", {kind} as the first"
            raise DataError(f"split: {option} must be a date, such as 2026-01-31, or a number{also}, got {text!r}.")
    assert kind is not None
    found = parsed(list(at), kind)[0].tolist()
    for number in range(1, len(found)):
        if found[number - 1] >= found[number]:
            raise DataError(f"split: {option} must ascend, got {at[number - 1]!r} before {at[number]!r}.")
    return found, kind


def shown_times(cuts: Sequence[int], kind: str) -> list[str]:
    return [shown(cut, kind) for cut in cuts]
