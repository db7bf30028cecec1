"""Rows and labels to JSON, and back: with msgspec where it is installed, with the same result.

msgspec writes more types than JSON has: bytes, decimals, NaN as null. So it gets only rows of plain values; all others
go to `json`, which refuses what the service would not understand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

from rarestream.client.errors import Row
from rarestream.errors import DataError

_PLAIN = frozenset((str, int, float, bool, type(None)))
_STR = frozenset((str,))
_LABELS = {-1: -1, 0: 0, 1: 1}


def _number(value: Any) -> Any:
    """Return a NumPy number or array as Python has it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__} ({value!r:.80}) is no JSON")


_to_text = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_number).encode


def _checked(value: object) -> bytes:
    return _to_text(value).encode("ascii")


@cache
def _codec() -> tuple[Callable[[object], bytes], Callable[[bytes], Any]]:
    """Return what encodes plain values, and what decodes. Imported when first used: that takes a while."""
    try:
        import msgspec
    except ImportError:
        return _checked, json.loads
    return msgspec.json.encode, msgspec.json.decode


def from_json(text: bytes) -> Any:
    """Return what JSON says."""
    return _codec()[1](text)


def encoded_row(row: Row, number: int | None = None) -> bytes:
    """Return a row as JSON; `number` is that of a row among several, for the message."""
    try:
        if isinstance(row, Mapping):
            if _STR.issuperset(map(type, row)) and _PLAIN.issuperset(map(type, row.values())):
                text = _codec()[0](row)
                if b"null" not in text:  # which may have been NaN
                    return text
            return _checked(row if type(row) is dict else dict(row))
        if isinstance(row, str | bytes):
            raise TypeError(f"got {row!r:.80}")
        pairs = [tuple(pair) for pair in row]
        if any(len(pair) != 2 for pair in pairs):
            raise TypeError(f"got {row!r:.80}")
        if _PLAIN.issuperset(map(type, chain.from_iterable(pairs))):
            text = _codec()[0](pairs)
            if b"null" not in text:
                return text
        return _checked(pairs)
    except (TypeError, ValueError, RecursionError) as error:
        where = "The row" if number is None else f"Row {number}"
        what = "a number is NaN or infinite; a missing value is None" if "JSON compliant" in str(error) else str(error)
        raise DataError(
            f"{where} cannot be sent: {what}. A row is a dict of names and values, or a list of (index, value)."
        ) from error


def encoded_rows(rows: Iterable[Row]) -> list[bytes]:
    """Return rows as JSON."""
    if isinstance(rows, Mapping | str | bytes):
        raise DataError(
            "Several rows are expected, such as a list of dicts; there are other methods, with _one, for a single row."
        )
    return [encoded_row(row, number) for number, row in enumerate(rows)]


def checked_label(label: Any) -> int:
    """Return a label as -1, 0 or 1."""
    try:
        return _LABELS[label]
    except (KeyError, TypeError):
        raise DataError(
            f"A label must be 1 for a positive row, 0 or -1 for a negative one; got {label!r:.80}."
        ) from None


def checked_importance(importance: Any) -> float:
    """Return an importance as a number."""
    try:
        value = float(importance)
    except (TypeError, ValueError):
        value = -1.0
    if not 0 <= value <= 1e12:
        raise DataError(f"An importance must be a number from 0 to 1e12; got {importance!r:.80}.")
    return value


def checked_id(id: Any) -> str:
    """Return an id."""
    if not isinstance(id, str) or not 1 <= len(id) <= 256:
        raise DataError(f"An id must be a text of 1 to 256 characters; got {id!r:.80}.")
    return id


def json_list(values: Sequence[object]) -> bytes:
    """Return checked numbers or ids as JSON."""
    return _checked(values)
