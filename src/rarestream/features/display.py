"""Names of features as people read them."""

from __future__ import annotations

import re
from collections.abc import Collection

from rarestream.errors import plain
from rarestream.features.plan import Kind, TablePlan

SEPARATOR = "\x1f"  # between the names of a cross
_BUCKET = re.compile(r"~(?:(0)|(-?)2\^(-?[0-9]+(?:\.5)?))", re.ASCII)
_DATE = re.compile(r"(hour|weekday|month)=([0-9]{1,2})", re.ASCII)


def display(name: str) -> str:
    """Return the name of a feature, `namespace^name`, for people: "site = a.com", "price ≈ 2.83".

    Control characters are escaped, so that it is safe to print.
    """
    column, _, rest = name.partition("^")  # a cell may have the character too
    if not column:
        return plain(rest)
    if SEPARATOR in rest:
        return plain(f"{column} = {', '.join(_part(part) for part in rest.split(SEPARATOR))}")
    if not rest:
        return plain(column)
    if bucket := _BUCKET.fullmatch(rest):
        return plain(f"{column} ≈ {_number(bucket)}")
    if date := _DATE.fullmatch(rest):
        return plain(f"{column} {date[1]} = {date[2]}")
    return plain(f"{column} = {rest}")


def _part(name: str) -> str:
    """Return one of the names of a cross."""
    bucket = _BUCKET.fullmatch(name)
    return f"≈{_number(bucket)}" if bucket else name


def _number(bucket: re.Match[str]) -> str:
    if bucket[1]:
        return "0"
    power = float(bucket[3])
    size = 2.0**power if abs(power) < 1000 else float("inf" if power > 0 else 0)
    return f"{bucket[2]}{float(f'{size:.3g}'):g}"


def namespace_of(name: str, known: Collection[str] = ()) -> str:
    """Return the namespace of a feature, `namespace^name`. A column may have the character ^ in its name, too.

    Parameters
    ----------
    name : str
        The feature.
    known : collection of str
        The namespaces that are known, such as the columns of a table.
    """
    first, _, rest = name.partition("^")
    found = first
    while found not in known and "^" in rest:
        more, _, rest = rest.partition("^")
        found = f"{found}^{more}"
    return found if found in known else first


_KINDS = {Kind.TEXT: "text", Kind.DATE: "date", Kind.CATEGORY: "category", Kind.NUMBER: "number"}


def kind_name(kinds: int) -> str:
    """Return what the cells of a column are, in words: "category and number", "ignored"."""
    words = [word for kind, word in _KINDS.items() if kinds & kind]
    return " and ".join(words) or ("any" if kinds else "ignored")


def column_kinds(plan: TablePlan) -> list[tuple[str, str]]:
    """Return the columns of a table with what each is: its role first, then the features."""
    roles = [(name, role) for role in ("label", "importance", "tag") if (name := getattr(plan, role)) is not None]
    taken = {name for name, _ in roles}
    return roles + [(column.name, kind_name(column.kinds)) for column in plan.columns if column.name not in taken]
