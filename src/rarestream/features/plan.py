"""TablePlan: how each column of a table becomes features. It is decided once and is part of the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rarestream import _native

NUMBERS = ("soft", "raw")  # how numbers become features
NGRAMS = r"(words|chars):([1-9][0-9]?)(-([1-9][0-9]?))?"
LONGEST_NGRAM = 16


class Kind:  # plain numbers: an enum takes a millisecond to make, at every start of the program
    """What the cells of a column are: flags, as a column may be several kinds at once."""

    CATEGORY = 1
    NUMBER = 2
    TEXT = 4
    DATE = 8
    AUTO = 16  # decided for each value


ALL_KINDS = Kind.CATEGORY | Kind.NUMBER | Kind.TEXT | Kind.DATE | Kind.AUTO


class ColumnPlan(NamedTuple):
    """A column and what its cells are: flags of `Kind`; 0 if the column is ignored."""

    name: str
    kinds: int


@dataclass(frozen=True, slots=True)
class TablePlan:
    """How the columns of a table become features.

    Attributes
    ----------
    columns : tuple of ColumnPlan
        The columns, in the order of the table.
    numbers : {"soft", "raw"}
        Whether numbers become soft buckets, or features with the number as their value.
    ngrams : str
        What text columns are split into, such as "words:1-2" or "chars:3-5".
    counts : bool
        Whether repeated words and list elements are counted.
    crosses : tuple of str
        Crosses of columns, such as "site*device".
    missing : tuple of str
        Texts that stand for a missing value.
    label, importance, tag : str or None
        The columns that hold these.
    open : bool
        Whether columns that are not listed are features too: those of rows without a fixed set of columns.
    """

    columns: tuple[ColumnPlan, ...] = ()
    numbers: str = "soft"
    ngrams: str = "words:1"
    counts: bool = False
    crosses: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    label: str | None = None
    importance: str | None = None
    tag: str | None = None
    open: bool = False

    def __post_init__(self) -> None:
        names = [_text(column.name, "a column") for column in self.columns]
        for column in self.columns:
            kinds = column.kinds
            if type(kinds) is bool or not isinstance(kinds, int) or not 0 <= kinds <= ALL_KINDS:
                raise ValueError(f"plan: column {column.name!r} has the kinds {kinds!r}, not 0 to {ALL_KINDS}")
        if len(set(names)) < len(names):
            raise ValueError("plan: two columns have the same name")
        if self.numbers not in NUMBERS:
            raise ValueError(f"plan: numbers must be one of {', '.join(NUMBERS)}, got {self.numbers!r}")
        try:
            ngram_sizes(self.ngrams)
        except ValueError as error:
            raise ValueError(f"plan: ngrams must be {error}, got {self.ngrams!r}") from None
        for cross in self.crosses:
            if len(_text(cross, "a cross").split("*")) < 2:
                raise ValueError(f"plan: a cross must be such as 'site*device', got {cross!r}")
        for word in self.missing:
            _text(word, "a missing value")
        for name, value in (("label", self.label), ("importance", self.importance), ("tag", self.tag)):
            if value is not None:
                _text(value, name)
        for name, flag in (("counts", self.counts), ("open", self.open)):
            if type(flag) is not bool:
                raise ValueError(f"plan: {name} must be true or false, got {flag!r}")

    def settings(self) -> dict[str, Any]:
        """Return the plan as JSON can hold it; `plan_from_settings` gives it back."""
        return {
            "columns": [[column.name, int(column.kinds)] for column in self.columns],
            "numbers": self.numbers,
            "ngrams": self.ngrams,
            "counts": self.counts,
            "crosses": list(self.crosses),
            "missing": list(self.missing),
            "label": self.label,
            "importance": self.importance,
            "tag": self.tag,
            "open": self.open,
        }

    @classmethod
    def from_settings(cls, settings: Any) -> TablePlan:
        """Return the plan of `settings()`; ValueError if it is none."""
        if not isinstance(settings, Mapping) or settings.keys() != cls().settings().keys():
            raise ValueError("plan: its entries are not those of a plan")
        lists = {name: settings[name] for name in ("columns", "crosses", "missing")}
        for name, entries in lists.items():
            if not isinstance(entries, list):
                raise ValueError(f"plan: {name} is no list")
        columns = []
        for column in lists["columns"]:
            if not isinstance(column, list) or len(column) != 2:
                raise ValueError("plan: a column is not a name and its kinds")
            columns.append(ColumnPlan(*column))
        return cls(
            **{
                **settings,
                "columns": tuple(columns),
                "crosses": tuple(lists["crosses"]),
                "missing": tuple(lists["missing"]),
            }
        )


class NgramSizes(NamedTuple):
    """What a text is split into."""

    characters: bool  # else words
    shortest: int
    longest: int


FEATURE, LABEL, IMPORTANCE, TAG, IGNORED = range(5)  # features::Role


class RequestLimits(NamedTuple):
    """What the rows of a request may have."""

    features: int  # of a row
    name_bytes: int  # of a name or a namespace


def table_parser(
    plan: TablePlan, bits: int, names: bool, request: RequestLimits | None = None
) -> tuple[_native.TableParser, dict[str, int]]:
    """Return the native parser that follows a plan, and its numbers of the columns.

    Parameters
    ----------
    plan : TablePlan
        The plan of the table's columns.
    bits : int
        Base-2 logarithm of the number of slots.
    names : bool
        Whether the parser collects names.
    request : RequestLimits, optional
        For a parser of requests: what their rows may have. It collects all names of a text, whatever it met before.
    """
    roles = {plan.label: LABEL, plan.importance: IMPORTANCE, plan.tag: TAG}
    roles.pop(None, None)
    columns = [
        (column.name, column.kinds or 1, FEATURE if column.kinds else IGNORED)
        for column in plan.columns
        if column.name not in roles
    ]
    columns += [(name, 1, role) for name, role in roles.items() if name is not None]
    numbers = {name: number for number, (name, _, _) in enumerate(columns)}
    characters, shortest, longest = ngram_sizes(plan.ngrams)
    parser = _native.TableParser(
        bits=bits,
        names=names,
        columns=columns,
        crosses=[(cross, [numbers[name] for name in cross.split("*")]) for cross in plan.crosses],
        missing=list(plan.missing),
        raw=plan.numbers == "raw",
        counts=plan.counts,
        open=plan.open,
        characters=characters,
        shortest=shortest,
        longest=longest,
        request=request,
    )
    return parser, numbers


def ngram_sizes(text: Any) -> NgramSizes:
    """Return what "words:1-2" or "chars:3-5" means; ValueError, whose text continues "must be", for anything else."""
    sizes = re.fullmatch(NGRAMS, text, re.ASCII) if isinstance(text, str) else None
    if sizes is not None:
        shortest, longest = int(sizes[2]), int(sizes[4] or sizes[2])
        if shortest <= longest <= LONGEST_NGRAM:
            return NgramSizes(sizes[1] == "chars", shortest, longest)
    raise ValueError(f"such as words:1, words:1-2 or chars:3-5, with sizes from 1 to {LONGEST_NGRAM}")


def plan_from_settings(settings: Any) -> TablePlan:
    """Return the plan that a model file holds; ValueError if it is invalid."""
    return TablePlan.from_settings(settings)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"plan: {what} must be text, got {value!r}")
    return value
