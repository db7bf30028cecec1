"""svmlight text as its documentation describes it, in plain Python: slow, and written only to be read.

`label [qid:N] [cost:W] index:value ...  # comment`, one row a line. See rarestream.readers.formats.svmlight and rarestream.readers.labels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rarestream.blocks import LARGEST_IMPORTANCE, SMALLEST_IMPORTANCE

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Row(NamedTuple):
    place: str  # file:line
    label: float  # as written
    features: tuple[tuple[int, float], ...]  # index from 0, value in float32; ascending
    importance: float = 1.0
    tag: int = -1
    sign: int = 0  # -1 or +1 once the label rule has spoken


class Refused(Exception):  # noqa: N818
    """A line that breaks a rule."""


class ZeroIndex(Exception):  # noqa: N818
    """An index 0 where indices count from 1."""


class File(NamedTuple):
    rows: list[Row]  # and those that only their labels may make bad
    bad: list[str]  # places of lines that break a rule of the format
    places: list[str]  # of rows and bad lines, in order


def parse(files: Sequence[tuple[str, bytes]], zero_based: bool | None) -> File:
    """All lines of all files; `None`: they count from 0 if an index is 0 anywhere."""
    first = 0 if zero_based else 1
    rows: list[Row] = []
    bad: list[str] = []
    places: list[str] = []
    for name, text in files:
        for number, line in enumerate(text.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
            place = f"{name}:{number}"
            try:
                row = parse_line(line, first, place)
            except ZeroIndex:
                if zero_based is None:
                    return parse(files, True)
                bad.append(place)
            except Refused:
                bad.append(place)
            else:
                if row is None:
                    continue
                rows.append(row)
            places.append(place)
    return File(rows, bad, places)


@np.errstate(over="ignore")  # what is beyond float32 is refused
def parse_line(line: bytes, first: int, place: str) -> Row | None:
    """The row of a line, None for a blank one; Refused if it breaks a rule, ZeroIndex if by an index 0."""
    text = line.partition(b"#")[0]
    if CONTROL.search(text):
        raise Refused
    words = re.findall(rb"[^ \t\r]+", text)
    if not words:
        return None
    label = finite(words[0])
    importance, tag = 1.0, -1
    sums: dict[int, float] = {}  # of float32 numbers, rounded once
    for word in words[1:]:
        index, colon, value = word.partition(b":")
        if not colon:
            raise Refused
        if index == b"cost":
            importance = finite(value)
            if not (importance == 0 or SMALLEST_IMPORTANCE <= importance <= LARGEST_IMPORTANCE):
                raise Refused
        elif index == b"qid":
            tag = whole(value, 2**63 - 1)
        else:
            column = whole(index, 2**31 - 2 + first)
            number = np.float32(finite(value))
            sums[column - first] = sums.get(column - first, 0.0) + float(number)
            if not np.isfinite(number):
                raise Refused
    features = {column: np.float32(total) for column, total in sums.items()}
    if not all(np.isfinite(value) for value in features.values()):
        raise Refused
    if -1 in features:  # in a line that is sound but for this: a broken one decides nothing
        raise ZeroIndex
    return Row(place, label, tuple((j, float(features[j]) + 0.0) for j in sorted(features)), importance, tag)


def finite(word: bytes) -> float:
    if not NUMBER.fullmatch(word) or not math.isfinite(float(word)):
        raise Refused
    return float(word) + 0.0  # -0 is 0


def whole(word: bytes, most: int) -> int:
    if not re.fullmatch(rb"\d+", word) or int(word) > most:
        raise Refused
    return int(word)


class Signed(NamedTuple):
    rows: list[Row]
    bad: list[str]  # places whose label the rule refuses
    hopeless: bool  # one label only, and neither -1, 0 nor 1: nothing can be read


def signs(rows: Sequence[Row], positive: float | None) -> Signed:
    """Labels to -1 and +1."""
    if positive is not None:
        return Signed([row._replace(sign=1 if row.label == positive else -1) for row in rows], [], False)
    seen = list(dict.fromkeys(row.label for row in rows))
    if set(seen) <= {-1, 0, 1} or (1 in seen and {-1, 0} & set(seen)):
        high, low = 1.0, next((label for label in seen if label in (-1, 0)), None)
    elif len(seen) > 1:
        low, high = sorted(seen[:2])
    else:
        return Signed([], [], True)
    known = {high: 1} if low is None else {low: -1, high: 1}
    good = [row._replace(sign=known[row.label]) for row in rows if row.label in known]
    return Signed(good, [row.place for row in rows if row.label not in known], False)
