"""What rows of a table become, in plain Python: written only to be read, and to be compared with the core.

A row is a dict of cells as a CSV file has them: text. The result is {(namespace, name): value}; `slots` hashes it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product

import numpy as np

Features = dict[tuple[str, str], float]

WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.0*)?", re.ASCII)
DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
ID = re.compile(r"-?0[0-9]+", re.ASCII)  # digits that start with a zero are an id
DATE = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:([T ])(\d\d:\d\d)(:\d\d)?([.,]\d+)?(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)


def murmur3(text: str, seed: int) -> int:
    data = text.encode()

    def scrambled(block: int) -> int:
        block = block * 0xCC9E2D51 & 0xFFFFFFFF
        return (block << 15 | block >> 17) * 0x1B873593 & 0xFFFFFFFF

    h = seed
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        h ^= scrambled(int.from_bytes(data[at : at + 4], "little"))
        h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & 0xFFFFFFFF
    if data[whole:]:
        h ^= scrambled(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def slot(namespace: str, name: str, bits: int) -> int:
    return murmur3(name, murmur3(namespace, 0)) & (1 << bits) - 1


def slots(features: Features, bits: int) -> dict[int, float]:
    """The row as a Block has it: features that share a slot are summed."""
    found: dict[int, float] = {}
    for (namespace, name), value in features.items():
        at = slot(namespace, name, bits)
        found[at] = float(np.float32(found.get(at, 0.0) + np.float32(value)))
    return dict(sorted(found.items()))


def whole_name(cell: str) -> str | None:
    """The integer of a whole number; None for any other text."""
    if not WHOLE.fullmatch(cell):
        return None
    digits = cell.partition(".")[0]
    return "0" if digits == "-0" else digits


def is_decimal(cell: str) -> bool:
    return bool(DECIMAL.fullmatch(cell)) and whole_name(cell) is None and not ID.fullmatch(cell)


def number_features(column: str, x: float, numbers: str = "soft") -> Features:
    if numbers == "raw":
        return {(column, ""): x} if x else {}
    if x == 0:
        return {(column, "~0"): 1.0}
    u = 2 * math.log2(abs(x))
    k = math.floor(u)
    t = u - k
    buckets = {bucket_name(k, x): 1 - t, bucket_name(k + 1, x): t}
    return {(column, name): value for name, value in buckets.items() if value}


def bucket_name(k: int, x: float) -> str:
    exponent = f"{'-' if k < 0 else ''}{abs(k) // 2}{'.5' if k % 2 else ''}"
    return f"~{'-' if x < 0 else ''}2^{exponent}"


def date_features(column: str, cell: str) -> Features | None:
    """Hour, weekday and month of a date; None if the text is none."""
    found = DATE.fullmatch(cell)
    if found is None or (found[5] and not found[4]):
        return None
    day, time, zone = found[1], found[3], found[6]
    try:
        when = datetime.fromisoformat(day + (f"T{time}" if time else ""))
        if zone:
            offset = "+00:00" if zone == "Z" else zone
            when = datetime.fromisoformat(f"{day}T{time}{offset}").astimezone(UTC)
    except ValueError:
        return None
    names = ([f"hour={when.hour}"] if time else []) + [f"weekday={when.weekday()}", f"month={when.month}"]
    return {(column, name): 1.0 for name in names}


def words(text: str, ngrams: str) -> Iterator[str]:
    kind, _, sizes = ngrams.partition(":")
    shortest, _, longest = sizes.partition("-")
    lowered = "".join(c.lower() if c.isascii() else c for c in text)
    if kind == "words":
        parts: Sequence[str] = re.findall(r"(?:[a-z0-9]|[^\x00-\x7f])+", lowered)
        joint = " "
    else:
        parts, joint = " ".join(re.findall(r"[^\x00-\x20]+", lowered)), ""
    for start in range(len(parts)):
        for size in range(int(shortest), int(longest or shortest) + 1):
            if start + size <= len(parts):
                yield joint.join(parts[start : start + size])


def cell_features(
    column: str,
    cell: str,
    kinds: Sequence[str],
    numbers: str = "soft",
    ngrams: str = "words:1",
    counts: bool = False,
) -> Features:
    """The features of a cell; `kinds` are some of category, number, text, date."""
    if cell == "":
        return {}
    found: Features = {}
    if "text" in kinds:
        for word in words(cell, ngrams):
            found[column, word] = found.get((column, word), 0.0) + 1 if counts else 1.0
        return found
    if "date" in kinds:
        dates = date_features(column, cell)
        assert dates is not None, cell
        return dates
    name = whole_name(cell)
    if "number" not in kinds:
        return {(column, cell): 1.0}
    if "category" in kinds and name is not None:
        found[column, name] = 1.0
    return found | number_features(column, float(cell), numbers)


def crossed(name: str, parts: Sequence[Features]) -> Features:
    found: Features = {}
    for some in product(*(part.items() for part in parts)):
        names = "\x1f".join(feature for (_, feature), _ in some)
        found[name, names] = math.prod(value for _, value in some)
    return found


def row_features(
    row: Mapping[str, str],
    kinds: Mapping[str, Sequence[str]],
    numbers: str = "soft",
    ngrams: str = "words:1",
    counts: bool = False,
    crosses: Sequence[str] = (),
) -> Features:
    """The features of a row: those of its cells, then the crosses."""
    found: Features = {}
    by_column = {}
    for column, cell in row.items():
        if column not in kinds:
            continue
        mine = cell_features(column, cell, kinds[column], numbers, ngrams, counts)
        found |= mine
        both = {"category", "number"} <= set(kinds[column])
        if both and whole_name(cell) is not None:  # of a column that is both, the category takes part in crosses
            mine = {(column, whole_name(cell) or ""): 1.0}
        by_column[column] = mine
    for cross in crosses:
        found |= crossed(cross, [by_column.get(column, {}) for column in cross.split("*")])
    return found
