"""The parts that rows are split into: their names and shares."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rarestream.errors import DataError

USUAL_NAMES = {2: ("train", "test"), 3: ("train", "valid", "test")}
USUAL_SHARES = "train=0.8,test=0.2"
MOST_PARTS = 100
ROUNDING = 1e-6  # by which a sum of shares may differ from 1
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)


class Shares(NamedTuple):
    """The parts, in order."""

    names: tuple[str, ...]
    ends: tuple[float, ...]  # the shares of each part and all before it, up to 1; empty if times decide


def shares_of(into: str | Mapping[str, float] | None, cuts: int | None = None) -> Shares:
    """Return the parts that a user asks for.

    Parameters
    ----------
    into : str or mapping, optional
        Names and shares, such as "train=0.8,test=0.2"; the share of one part may be left out. Names alone, if `cuts` is
        given. By default train and test, 0.8 and 0.2.
    cuts : int, optional
        Number of times that separate the parts, instead of shares.

    Raises
    ------
    DataError
        If names or shares are invalid.
    """
    given = _pairs(USUAL_SHARES if into is None and cuts is None else into)
    if cuts is not None:
        return Shares(_names_between(given, cuts), ())
    names = [name for name, _ in given]
    _check_names(names)
    missing = [name for name, share in given if share is None]
    if len(missing) > 1:
        example = ",".join(f"{name}={1 / len(names):.3g}" for name in names)
        raise DataError(f"split: {' and '.join(missing)} have no share. Write, for example, {example}.")
    total = math.fsum(share for _, share in given if share is not None)
    for name, share in given:
        if share is not None and not 0 < share < 1:
            raise DataError(f"split: the share of {name} must be above 0 and below 1, got {share:g}.")
    if missing and not total < 1:
        raise DataError(f"split: the shares add up to {total:g}; nothing is left for {missing[0]}.")
    if not missing and abs(total - 1) > ROUNDING:
        raise DataError(f"split: the shares add up to {total:g}, and not to 1. The share of one part may be left out.")
    ends: list[float] = []
    for _, share in given:
        ends.append(math.fsum([*ends[-1:], 1 - total if share is None else share]))
    ends[-1] = 1.0
    return Shares(tuple(names), tuple(ends))


def _pairs(into: str | Mapping[str, float] | None) -> list[tuple[str, float | None]]:
    if into is None:
        return []
    if isinstance(into, Mapping):
        return [(str(name), None if share is None else float(share)) for name, share in into.items()]
    found: list[tuple[str, float | None]] = []
    for word in into.split(","):
        name, equals, text = (part.strip() for part in word.partition("="))
        share = None
        if equals:
            try:
                share = float(text)
            except ValueError:
                raise DataError(f"split: a share must be a number, such as {name}=0.2, got {text!r}.") from None
        found.append((name, share))
    return found


def _names_between(given: list[tuple[str, float | None]], cuts: int) -> tuple[str, ...]:
    """Return the names of parts that times separate."""
    for name, share in given:
        if share is not None:
            raise DataError(f"split: times separate the parts, so {name} has no share. Write its name alone.")
    names = tuple(name for name, _ in given) or USUAL_NAMES.get(cuts + 1, ())
    if len(names) != cuts + 1:
        raise DataError(
            f"split: {cuts} time{'' if cuts == 1 else 's'} make {cuts + 1} parts, and {len(names)} are named. "
            "Name as many, such as train,valid,test for two times."
        )
    _check_names(names)
    return names


def _check_names(names: Sequence[str]) -> None:
    if not 2 <= len(names) <= MOST_PARTS:
        raise DataError(f"split: there must be 2 to {MOST_PARTS} parts, got {len(names)}.")
    for number, name in enumerate(names):
        if not _NAME.fullmatch(name):
            raise DataError(f"split: the name of a part is made of letters, digits, _, - and dots, got {name!r}.")
        if name in names[:number]:
            raise DataError(f"split: two parts are named {name}.")
