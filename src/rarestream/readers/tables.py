"""What all table formats share: their options, how the plan of the columns is made, and messages for invalid cells.

The plan says what the cells of each column become (features/plan.py). It follows from the options; what they leave
open is decided on the first rows, by a rule that looks at values and not at names:

    any text             a category
    only dates           hour, weekday and month
    any decimal          a number
    only whole numbers   both, a category and a number, so that nobody has to say which ids are ids
    only missing cells   each later cell by what it is

The plan belongs to the feature space, which a model keeps: files read later follow it, and need no options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rarestream.errors import DataError, advice
from rarestream.readers.options import FormatOptions, option

if TYPE_CHECKING:
    from rarestream.features import Hashed, TablePlan
    from rarestream.readers.parser import BadRow
    from rarestream.readers.reading import Reading

MOST_COLUMNS = 100_000  # of a table with a heading; more is a matrix, not a table
MOST_KEYS = 1024  # of objects that get a plan; with more, each value counts as what it is


def _check_ngrams(value: Any) -> str:
    from rarestream.features.plan import ngram_sizes

    ngram_sizes(value)
    return str(value)


@dataclass(frozen=True, kw_only=True)
class HashedOptions(FormatOptions):
    """The options of formats whose features have names."""

    bits: int | None = option(
        None,
        metavar="N",
        flags=("--bits", "-b"),
        help="Hash names to 2^N slots.",
        min=1,
        max=30,
        cli_default="as in the model, else 22",
    )
    names: bool = option(
        True, off="--no-names", help="Remember the names of features.", cli_default="on", remembered="never"
    )


def ngrams_option() -> Any:
    """Declare the option `ngrams`."""
    return option(
        "words:1",
        metavar="SIZES",
        help="What text is split into: words:1, words:1-2, chars:3-5.",
        check=_check_ngrams,
    )


def counts_option() -> Any:
    """Declare the option `counts`."""
    return option(False, help="Count repeated words and list elements, instead of their presence.", off=None)


@dataclass(frozen=True, kw_only=True)
class TableOptions(HashedOptions):
    """The options of all formats that have named columns."""

    label: str | None = option(None, metavar="COLUMN", help="The column of the label.")
    importance: str | None = option(None, metavar="COLUMN", help="The column of the importance of rows.")
    tag: str | None = option(None, metavar="COLUMN", help="The column that identifies rows.")
    numeric: tuple[str, ...] = option((), metavar="COLUMNS", help="Columns that are numbers.")
    categorical: tuple[str, ...] = option((), metavar="COLUMNS", help="Columns that are categories.")
    text: tuple[str, ...] = option((), metavar="COLUMNS", help="Columns of free text, to be split into words.")
    dates: tuple[str, ...] = option((), metavar="COLUMNS", help="Columns of dates, such as 2026-01-31 13:05.")
    ignore: tuple[str, ...] = option((), metavar="COLUMNS", help="Columns to leave out.")
    crosses: tuple[str, ...] = option((), metavar="A*B", help="Pairs of columns whose combinations are features too.")
    numbers: Literal["soft", "raw"] = option(
        "soft", metavar="HOW", help="Numbers as soft buckets of their logarithm, or raw: as they are."
    )
    missing: tuple[str, ...] = option((), metavar="TEXTS", help="Texts that mean a missing value, such as NA.")
    ngrams: str = ngrams_option()
    counts: bool = counts_option()

    @property
    def roles(self) -> dict[str, str]:
        """The columns that are no features, by role."""
        roles = {"label": self.label, "importance": self.importance, "tag": self.tag}
        return {role: name for role, name in roles.items() if name is not None}


class ColumnCounts(NamedTuple):
    """How many cells of each kind a column has; all others are missing."""

    name: str
    whole: int
    decimal: int
    date: int
    text: int
    list: int
    map: int


def hashed_space(reading: Reading) -> Hashed:
    """Return the feature space of a pass: the one that rows are wanted in, else a new one, which later passes share."""
    from rarestream.features import Hashed

    options, wanted = reading.options, reading.features
    if wanted is None:
        reading.features = Hashed(22 if options.bits is None else options.bits, names=options.names)
    elif not isinstance(wanted, Hashed):
        raise DataError(
            f"read: these rows have named features, which are hashed, but {wanted.describe()} are wanted. Use a model "
            "that was trained on named features, or data with column numbers, such as svmlight."
        )
    elif options.bits is not None and options.bits != wanted.bits:
        raise DataError(
            f"read: bits must be {wanted.bits}, as in the model, got {options.bits}. "
            f"Drop {advice('bits', '--bits')}, or train a new model."
        )
    return reading.features  # type: ignore[no-any-return]


def make_plan(columns: Sequence[ColumnCounts], options: TableOptions, *, open: bool = False) -> TablePlan:
    """Return the plan of a table.

    Parameters
    ----------
    columns : sequence of ColumnCounts
        The columns, in order, as a survey of the first rows found them.
    options : TableOptions
        What was said of them.
    open : bool
        Whether columns may come that are not in the plan: those of objects, which have no heading.
    """
    from rarestream.features.plan import ColumnPlan, TablePlan

    names = [column.name for column in columns]
    _check_columns(names, options, open)
    roles = set(options.roles.values())
    planned = [
        ColumnPlan(column.name, _kinds(column, options))
        for column in columns
        if column.name not in roles and (not open or len(columns) <= MOST_KEYS or column.name in _named(options))
    ]
    present = {column.name for column in planned}
    for name in dict.fromkeys(_named(options)):  # of objects: keys that the first rows do not have
        if name not in present and name not in roles:
            planned.append(ColumnPlan(name, _kinds(ColumnCounts(name, 0, 0, 0, 0, 0, 0), options)))
    return TablePlan(
        columns=tuple(planned),
        numbers=options.numbers,
        ngrams=options.ngrams,
        counts=options.counts,
        crosses=options.crosses,
        missing=options.missing,
        open=open,
        **options.roles,
    )


def _named(options: TableOptions) -> list[str]:
    """Return the columns that the options name as features, or to be ignored."""
    crossed = [name for cross in options.crosses for name in cross.split("*")]
    return [*options.numeric, *options.categorical, *options.text, *options.dates, *options.ignore, *crossed]


_KINDS_SAID = (("numeric", 2), ("categorical", 1), ("text", 4), ("dates", 8))  # options, and their features.plan.Kind


def _kinds(column: ColumnCounts, options: TableOptions) -> int:
    from rarestream.features.plan import Kind

    if column.name in options.ignore:
        return 0
    kinds = sum(kind for word, kind in _KINDS_SAID if column.name in getattr(options, word))
    if kinds:
        return int(kinds)
    numbers = column.whole + column.decimal
    if column.text or (column.date and numbers):
        return Kind.CATEGORY
    if column.date:
        return Kind.DATE
    if column.decimal:
        return Kind.NUMBER
    return Kind.CATEGORY | Kind.NUMBER if column.whole else Kind.AUTO


def _check_columns(names: Sequence[str], options: TableOptions, open: bool) -> None:
    """Raise DataError if an option names a column that is not there, or that another option names too."""
    if not open:
        known = set(names)
        for word in ("label", "importance", "tag", "numeric", "categorical", "text", "dates", "ignore"):
            value = getattr(options, word)
            for name in (value,) if isinstance(value, str) else value or ():
                if name not in known:
                    raise no_such_column(word, name, names)
        for cross in options.crosses:
            for name in cross.split("*"):
                if name not in known:
                    raise no_such_column("crosses", name, names)
    uses: dict[str, str] = {}
    for word in ("label", "importance", "tag", "ignore", "text", "dates"):
        value = getattr(options, word)
        for name in (value,) if isinstance(value, str) else value or ():
            if uses.setdefault(name, word) != word:
                raise DataError(f"read: column {name!r} is named by both {uses[name]} and {word}. Name it once.")
    for word in ("numeric", "categorical"):
        for name in getattr(options, word):
            if name in uses:
                raise DataError(f"read: column {name!r} is named by both {uses[name]} and {word}. Name it once.")
    for cross in options.crosses:
        parts = cross.split("*")
        if not 2 <= len(set(parts)) == len(parts) <= 8:
            raise DataError(
                f"read: a cross must be two to eight different columns, such as site*device, got {cross!r}."
            )
        for name in parts:
            if uses.get(name) in ("label", "importance", "tag", "ignore"):
                raise DataError(f"read: column {name!r} is named by both {uses[name]} and crosses. Name it once.")


def no_such_column(word: str, name: str, names: Sequence[str]) -> DataError:
    """Return the error for an option that names a column which is not there."""
    from rarestream.errors import nearest

    near = nearest(name, names)
    shown = ", ".join(repr(known) for known in names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    hint = f"Did you mean {near!r}? " if near else ""
    return DataError(f"read: {word} names the column {name!r}, which is not there. {hint}The columns are {shown}.")


def plan_of(space: Hashed, columns: Sequence[ColumnCounts], options: TableOptions, *, open: bool = False) -> TablePlan:
    """Return the plan for a table: that of its space, if there is one, else one made of the first rows and kept there.

    The label, importance and tag may be other columns than before; all other options must agree with an existing plan.
    """
    if space.plan is None:
        space.plan = make_plan(columns, options, open=open)
        return space.plan
    plan = space.plan
    _check_agreement(plan, options)
    roles = {role: getattr(plan, role) for role in ("label", "importance", "tag")} | options.roles
    return plan if all(getattr(plan, role) == name for role, name in roles.items()) else replace(plan, **roles)


def _check_agreement(plan: TablePlan, options: TableOptions) -> None:
    def disagree(word: str, kept: object) -> DataError:
        return DataError(
            f"read: {word} must be {kept}, as in the model, whose columns were decided when it was first trained. "
            f"Drop {advice(word, '--' + word)}, or train a new model."
        )

    defaults = TableOptions()
    for word in ("numbers", "ngrams", "counts", "crosses", "missing"):
        given, kept = getattr(options, word), getattr(plan, word)
        if given != getattr(defaults, word) and given != kept:
            raise disagree(word, repr(kept))
    kinds = {column.name: column.kinds for column in plan.columns}
    for word, kind in _KINDS_SAID:
        for name in getattr(options, word):
            if not kinds.get(name, 0) & kind:
                raise disagree(word, repr([known for known, has in kinds.items() if has & kind]))
    for name in options.ignore:
        if kinds.get(name, 0):
            raise disagree("ignore", repr([known for known, has in kinds.items() if not has]))


class PlannedTable:
    """A plan with the native parser that follows it.

    Parameters
    ----------
    space : Hashed
        The feature space of the rows.
    plan : TablePlan
        The plan of the table's columns.
    names : bool
        Whether the parser collects names. A model that only scores needs none.
    """

    def __init__(self, space: Hashed, plan: TablePlan, names: bool = True) -> None:
        from rarestream.features.plan import table_parser

        self.space, self.plan = space, plan
        # `numbers`: of the columns, by name
        self.parser, self.numbers = table_parser(plan, space.bits, names and space.names is not None)

    def columns_of(self, place: str, names: Sequence[str], reading: Reading) -> list[int]:
        """Return the parser's number of each column of a file; -1: the plan does not have it, so it is ignored.

        Parameters
        ----------
        place : str
            The file, for messages.
        names : sequence of str
            Its columns.
        reading : Reading
            The pass; whether rows need labels decides if the label's column may be missing.
        """
        optional = reading.options.labels_optional
        require_columns(place, self.plan, names, (self.plan.importance, None if optional else self.plan.label))
        new = [name for name in names if name not in self.numbers]
        if new:
            shown = ", ".join(repr(name) for name in new[:5]) + (" and more" if len(new) > 5 else "")
            columns = f"columns {shown} are" if len(new) > 1 else f"column {shown} is"
            note = f"{place}: the new {columns} ignored."
            if note not in reading.notes:
                reading.notes.append(note)
        return [self.numbers.get(name, -1) for name in names]


def require_columns(place: str, plan: TablePlan, names: Sequence[str], roles: Sequence[str | None] = ()) -> None:
    """Raise DataError if a column is missing that has features, or one of those that are no features.

    Parameters
    ----------
    place : str
        The file, for messages.
    plan : TablePlan
        The plan of the table's columns.
    names : sequence of str
        The columns that there are.
    roles : sequence of str or None
        Columns that are no features and that must be there as well; None is none.
    """
    known = set(names)
    wanted = [column.name for column in plan.columns if column.kinds] + [name for name in roles if name is not None]
    absent = [name for name in wanted if name not in known]
    if absent:
        shown = ", ".join(repr(name) for name in absent[:5]) + (" and more" if len(absent) > 5 else "")
        columns = f"columns {shown} are" if len(absent) > 1 else f"column {shown} is"
        raise DataError(
            f"{place}: the {columns} missing, which the first rows or the model had. Use data with the same "
            "columns, or train a new model."
        )


def require_label(place: str, plan: TablePlan, names: Sequence[str], reading: Reading) -> None:
    """Raise DataError if rows need labels and nobody has said which column holds them."""
    if plan.label is None and not reading.options.labels_optional:
        shown = ", ".join(repr(name) for name in names[:12]) + (" and more" if len(names) > 12 else "")
        option = advice("label=COLUMN", "--label COLUMN")
        raise DataError(f"{place}: which column is the label? Pass {option}; the columns are {shown}.")


def table_message(bad: BadRow) -> str | None:
    """Return what is wrong with a row that breaks a rule of all tables; None for rules of the format's own."""
    from rarestream.features.faults import cell_message

    return cell_message(bad.rule, bad.field, bad.token)


def as_config(plan: TablePlan) -> list[str]:
    """Return the plan as the lines of a `[columns]` table, which `--config` reads."""
    import json

    from rarestream.features.plan import Kind

    def listed(kind: int) -> list[str]:
        return [column.name for column in plan.columns if column.kinds & kind]

    entries: Mapping[str, Any] = {
        "label": plan.label,
        "importance": plan.importance,
        "tag": plan.tag,
        "numeric": listed(Kind.NUMBER),
        "categorical": listed(Kind.CATEGORY),
        "text": listed(Kind.TEXT),
        "dates": listed(Kind.DATE),
        "ignore": [column.name for column in plan.columns if not column.kinds],
        "crosses": list(plan.crosses),
        "missing": list(plan.missing),
        "numbers": None if plan.numbers == "soft" else plan.numbers,
        "ngrams": None if plan.ngrams == "words:1" else plan.ngrams,
        "counts": plan.counts or None,
    }
    lines = [
        f"{word} = {json.dumps(value, ensure_ascii=False)}"
        for word, value in entries.items()
        if value not in (None, [])
    ]
    return ["[columns]", *lines]
