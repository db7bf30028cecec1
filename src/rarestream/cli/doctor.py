"""rarestream doctor: what the data are, and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rarestream.cli import look, options
from rarestream.cli.parser import Option
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.doctor import Column, Problem, Report

Rows = Annotated[
    int, Option("--rows", metavar="N", help="Maximum number of rows to examine, the first.", min=1, default="200000")
]

MOST_COLUMNS = 30  # in the table
WIDEST_NAME, WIDEST_EXAMPLE = 24, 20  # characters
STYLES = {"error": ("red", "bold"), "warning": ("yellow", "bold"), "note": ("cyan",)}
DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "space"}


def doctor(
    data: options.Data, rows: Rows = 200_000, json: options.Json = False, *, reading: options.ReadingLabelled
) -> None:
    """Examine data before learning from them.

    Shows their format, classes and columns; what is wrong with them, such as columns that give the answer away,
    copies of rows and an order by label; and the command to train with.
    """
    from rarestream.doctor import examine

    options.check_paths(data)
    with reading.reported():
        report = examine(data, rows=rows, **reading.settings())
    if json:
        look.print_json(report.record())
    else:
        _show(report)


def _show(report: Report) -> None:
    ink = look.stdout()
    names = ", ".join(map(plain, report.data[:3])) + (
        f" and {len(report.data) - 3} more" if len(report.data) > 3 else ""
    )
    ink.line(ink(names, "bold"))
    facts = [
        ("format", f"{report.format}, {report.recognised}{_storage(report)}"),
        ("rows", _rows(report)),
        *_label(report),
        *_features(report),
    ]
    for word, text in facts:
        for number, part in enumerate(look.wrap(text, look.width() - 14)):
            ink.line(f"  {'' if number else word:<12}{part}")
    if report.columns:
        _show_columns(report)
    _show_problems(report.problems)
    if report.command:
        ink.line()
        ink.line("To learn these data:" if report.label is not None else "To learn these data, name their label:")
        ink.line(f"  {look.quoted(report.command)}")


def _storage(report: Report) -> str:
    delimiter = "" if report.delimiter is None else DELIMITERS.get(report.delimiter, repr(report.delimiter))
    return (f", {delimiter}-separated" if delimiter else "") + (
        f", {report.compression}" if report.compression is not None else ""
    )


def _rows(report: Report) -> str:
    if report.complete:
        return look.count(report.rows)
    about = "" if report.about is None else f"; about {look.short(report.about)} in all"
    return f"the first {look.count(report.rows)}{about}"


def _label(report: Report) -> list[tuple[str, str]]:
    label = report.label
    if label is None:
        if not report.columns:
            return []
        found = ", ".join(plain(name) for name in report.candidates[:10])
        return [("label", f"not named; columns with two values: {found}" if found else "not named")]
    where = "" if label.column is None else f"{plain(label.column)}: "
    classes = ", ".join(
        f"{plain(look.cut(entry.label, WIDEST_EXAMPLE))} {look.count(entry.rows)}" for entry in label.classes[:6]
    )
    lines = [("label", where + classes + (", ..." if len(label.classes) > 6 else ""))]
    if label.positive is not None and label.rows:
        share = look.share(label.positives, label.rows)
        lines.append(("", f"positive is {plain(label.positive)}: {look.count(label.positives)} rows, {share}"))
    return lines


def _features(report: Report) -> list[tuple[str, str]]:
    found = report.features
    if found is None:
        return []
    return [
        (
            "features",
            f"{look.count(found.distinct)} different; {found.mean:.3g} per row, from {look.count(found.fewest)} to "
            f"{look.count(found.most)}",
        ),
        ("values", f"from {found.smallest:.4g} to {found.largest:.4g}"),
    ]


def _show_columns(report: Report) -> None:
    from rarestream.features import kind_name

    ink = look.stdout()
    table = report.features is None
    shown = report.columns[:MOST_COLUMNS]
    cells = [
        [
            plain(look.cut(column.name, WIDEST_NAME)) or "(none)",
            *([column.role if column.role != "feature" else kind_name(column.kinds)] if table else []),
            look.count(column.distinct) if column.kinds else "",
            look.share(column.missing, report.rows) if column.missing else "",
            _examples(column),
        ]
        for column in shown
    ]
    heading = ["column", "kind", "distinct", "missing", "values"]
    if not table:
        heading = ["namespace", "distinct", "missing", "names"]
    lines = look.table(cells, heading, left=(0, 1, 4) if table else (0, 3))
    ink.line()
    ink.line("  " + ink(lines[0].rstrip(), "bold"))
    for line in lines[1:]:
        ink.line("  " + look.cut(line.rstrip(), look.width() - 2))
    if len(report.columns) > len(shown):
        ink.line(f"  and {look.count(len(report.columns) - len(shown))} more; --json has all of them")


def _examples(column: Column) -> str:
    values = [plain(look.cut(value, WIDEST_EXAMPLE)) for value in column.examples]
    if column.ascending is not None and len(values) == 2:
        if column.numbers == 1.0:
            values = [value if len(value) < 10 else f"{float(value):.6g}" for value in column.examples]
        return f"{values[0]} to {values[1]}"
    more = ", ..." if column.distinct > len(values) else ""
    return ", ".join(values) + more


def _show_problems(problems: list[Problem]) -> None:
    ink = look.stdout()
    ink.line()
    if not problems:
        ink.line(f"{ink('No problems found.', 'green', 'bold')}")
        return
    for problem in problems:
        what = problem.what[:1].upper() + problem.what[1:]
        lines = look.wrap(what if problem.details else f"{what} {problem.way_on}".rstrip(), look.width() - 11)
        for detail in problem.details:
            lines += [f"  {part}" for part in look.wrap(plain(detail), look.width() - 13)]
        if problem.details and problem.way_on:
            lines += look.wrap(problem.way_on, look.width() - 11)
        for number, line in enumerate(lines):
            level = "" if number else problem.level
            ink.line(f"{ink(f'{level:<9}', *STYLES[problem.level])}{line}")
