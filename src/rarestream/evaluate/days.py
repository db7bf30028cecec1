"""How many days rows cover, by a time that each of them has."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError, quoted

DAY = 86_400.0  # seconds
LARGEST = 1e11  # seconds: the year 5138. Larger numbers are milliseconds


def days_covered(blocks: Iterable[Block], column: str) -> float:
    """Return the number of days from the first to the last time of some rows, which is their tag.

    Times that are dates only count as whole days, the last one included.

    Parameters
    ----------
    blocks : iterable of Block
        Rows whose tags are times, such as `read(..., tag=column)`: ISO dates, with a time or without, or seconds
        since 1970.
    column : str
        Name of the column, for error messages.

    Returns
    -------
    float

    Raises
    ------
    DataError
        If a row has no such time, or all have the same.
    """
    first, last, whole, before = np.inf, -np.inf, True, 0
    for block in blocks:
        if not len(block):
            continue
        if block.tags is None:
            raise DataError(f"{column}: row {before + 1} has no time.")
        seconds = _seconds(block.tags, column, before)
        first, last = min(first, float(seconds.min())), max(last, float(seconds.max()))
        whole = whole and not (seconds % DAY).any()
        before += len(block)
    days = (last - first) / DAY + whole
    if not days > 0:
        raise DataError(f"{column}: {'all rows have the same time' if before else 'there are no rows'}.")
    return float(days)


def _seconds(times: NDArray[np.generic], column: str, before: int) -> NDArray[np.float64]:
    """Return times as seconds since 1970."""
    found = np.empty(len(times))
    for row, time in enumerate(times.tolist()):
        try:
            found[row] = _second(time)
        except ValueError:
            raise DataError(
                f"{column}: row {before + row + 1} has {quoted(str(time).encode())}; times are ISO dates such as "
                "2026-01-31 or 2026-01-31T08:15, or seconds since 1970."
            ) from None
    return found


def _second(time: str | float) -> float:
    text = str(time)
    try:
        number = float(text)
    except ValueError:
        number = None
    if number is not None and not (len(text) == 8 and text.isdigit()):  # 20260131 is a date
        if not abs(number) < LARGEST:
            raise ValueError(text)
        return number
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
