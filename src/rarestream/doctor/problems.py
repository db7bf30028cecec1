"""What a user should do about data: each problem with its weight, what is the case, and a way on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rarestream.doctor.columns import Column
from rarestream.features import Kind

LEVELS = ("error", "warning", "note")
LEAK = 0.99  # AUC of a single column above which it probably holds the answer
NEARLY_ALL = 0.9  # share of different values, or of numbers, from which a column is treated as if all were
SORTED = 0.999  # share of neighbouring rows in ascending order
FEW_POSITIVES = 20
ENOUGH_CELLS = 50  # below which nothing is concluded from the values of a column
WORDS_OF_TEXT = 3.5  # mean number of words from which a column looks like free text
MANY_DUPLICATES = 0.1
LONGEST_NAME = 40  # characters of a column's name in a sentence
LISTED = 8  # columns that one problem names


class Problem(NamedTuple):
    """Something that a user should know of the data.

    Attributes
    ----------
    level : {"error", "warning", "note"}
        An error: nothing can be learned like this. A warning: what is learned may be of no use. Else a note.
    what : str
        What is the case; a sentence.
    way_on : str
        What to do; empty if there is nothing to do.
    options : tuple of (str, str)
        Options of `read` that do it, and their values: part of the command that is suggested.
    details : tuple of str
        Messages of the reader.
    """

    level: str
    what: str
    way_on: str = ""
    options: tuple[tuple[str, str], ...] = ()
    details: tuple[str, ...] = ()


def ranked(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems, errors first."""
    return sorted(problems, key=lambda problem: LEVELS.index(problem.level))


def shown(name: str) -> str:
    """Return the name of a column as a sentence has it: in quotes, and cut if it is long."""
    return repr(name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…")


def column_problems(columns: Sequence[Column], rows: int) -> Iterator[Problem]:
    """Yield what the columns of a table show."""
    features = [column for column in columns if column.role == "feature" and column.kinds]
    for column in features:
        if column.auc is not None and column.auc > LEAK:
            yield leak(f"column {shown(column.name)}", column.auc, (("ignore", column.name),))
    leaks = {column.name for column in features if column.auc is not None and column.auc > LEAK}
    features = [column for column in features if column.name not in leaks]
    yield from _heading(columns)
    yield from _mixed(features)
    features = [column for column in features if not _is_mixed(column)]
    yield from _texts(features)
    yield from _ids(features, rows)
    yield from _orders(features)
    yield from _useless(features, rows)


def _heading(columns: Sequence[Column]) -> Iterator[Problem]:
    """Yield whether the names of the columns look like data: a number, or a value that the column has, too."""
    odd = [column for column in columns if column.named_like_value and column.distinct > 0]
    if odd:
        yield Problem(
            "warning",
            f"the first row looks like data: {shown(odd[0].name)} is the name of a column, and looks like its values.",
            "If the file has no heading, name the columns: --columns NAMES.",
        )


def leak(what: str, auc: float, options: tuple[tuple[str, str], ...]) -> Problem:
    """Return the warning of a column or feature that alone ranks the rows."""
    way_on = "Would it be known when new rows are scored? If not, leave it out"
    way_on += ": --ignore." if options else "."
    return Problem("warning", f"{what} alone has an AUC of {auc:.4f}: it may hold the answer.", way_on, options)


def _mixed(columns: Sequence[Column]) -> Iterator[Problem]:
    for column in columns:
        if _is_mixed(column):
            words = ", ".join(shown(word) for word in column.words)
            yield Problem(
                "warning",
                f"column {shown(column.name)} is a category because of {words}; its other values are numbers.",
                "If that means a missing value, pass --missing.",
                tuple(("missing", word) for word in column.words),
            )


def _is_mixed(column: Column) -> bool:
    return column.kinds == Kind.CATEGORY and NEARLY_ALL <= column.numbers < 1 and 0 < len(column.words) <= 3


def _is_text(column: Column) -> bool:
    return column.kinds == Kind.CATEGORY and column.length >= WORDS_OF_TEXT and _all_different(column, 0.5)


def _all_different(column: Column, share: float, rows: int | None = None) -> bool:
    cells = column.distinct if rows is None else rows - column.missing
    # Values that occur once are what counts; the most frequent one may be a default.
    return cells >= ENOUGH_CELLS and column.distinct >= share * cells


def _texts(columns: Sequence[Column]) -> Iterator[Problem]:
    for column in columns:
        if _is_text(column):
            yield Problem(
                "warning",
                f"column {shown(column.name)} looks like free text: {column.distinct:,} different values, "
                f"{column.length:.0f} words each.",
                "To learn its words, pass --text.",
                (("text", column.name),),
            )


def _ids(columns: Sequence[Column], rows: int) -> Iterator[Problem]:
    for column in columns:
        if not column.kinds & Kind.CATEGORY or _is_text(column) or not _all_different(column, NEARLY_ALL, rows):
            continue
        what = (
            f"column {shown(column.name)} has {column.distinct:,} different values in {rows - column.missing:,} rows: "
            "as a category it says nothing of new rows."
        )
        if column.kinds & Kind.NUMBER and (column.ascending or 0) < SORTED:
            way_on = "If its size matters, pass --numeric; if it identifies rows, --ignore."
            yield Problem("warning", what, way_on, (("numeric", column.name),))
        else:
            yield Problem("warning", what, "If it identifies rows, pass --ignore.", (("ignore", column.name),))


def _orders(columns: Sequence[Column]) -> Iterator[Problem]:
    for column in columns:
        if column.ascending is None or column.distinct < 10:
            continue
        date = bool(column.kinds & Kind.DATE)
        if column.ascending >= SORTED:
            time = "in order of time" if date else "sorted"
            way_on = "That is the right order to learn them in: do not shuffle." if date else ""
            yield Problem("note", f"the rows are {time}, by column {shown(column.name)}.", way_on)
        elif date and column.ascending <= 1 - SORTED:
            yield Problem(
                "warning",
                f"the rows are in order of time by column {shown(column.name)}, the newest first.",
                "Sort them by time, so that the model learns from the past and is measured on what follows.",
            )


def _useless(columns: Sequence[Column], rows: int) -> Iterator[Problem]:
    empty = [column.name for column in columns if column.distinct == 0]
    same = [column.name for column in columns if column.distinct == 1 and not column.missing]
    for names, what in ((empty, "empty"), (same, "the same in every row")):
        if names and rows > 1:
            listed = ", ".join(shown(name) for name in names[:LISTED])
            more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
            columns_are = f"columns {listed}{more} are" if len(names) > 1 else f"column {listed} is"
            yield Problem("note", f"{columns_are} {what}.", "To leave out what says nothing, pass --ignore.")
