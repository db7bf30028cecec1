"""The files of a comparison: its table as CSV and Markdown, and a page with plots, each written whole or not at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rarestream.compare.comparing import Comparison
from rarestream.compare.standings import TIE, Standing, csv, markdown, standings
from rarestream.errors import MissingExtraError
from rarestream.study.page import environment, html
from rarestream.study.results import Results, extent
from rarestream.study.tables import Cell, Line, Section, Table
from rarestream.system import write_whole

FILES = ("table.csv", "table.md", "report.html")
COLUMNS = ("AUC", "behind", "non-zeros", "µs per row", "memory, kB")


def write(folder: Path, found: Comparison, command: str) -> str | None:
    """Write the table and the page of a comparison to a folder.

    Parameters
    ----------
    folder : Path
        An existing folder.
    found : Comparison
        What `compare` returned.
    command : str
        The command that made the comparison, shown as how to rerun it.

    Returns
    -------
    str or None
        Why there is no page; None if there is one.
    """
    table = standings(found.rows, found.left_out)
    table_csv, table_md, report = (folder / name for name in FILES)
    write_whole(table_csv, csv(table).encode())
    write_whole(table_md, markdown(table).encode())
    try:
        text = page(found, command)
    except MissingExtraError as error:
        return str(error)
    write_whole(report, text.encode())
    return None


def page(found: Comparison, command: str) -> str:
    """Return the page of a comparison: a table that sorts and plots that zoom, in one file that needs no network.

    Parameters
    ----------
    found, command
        As for `write`.

    Returns
    -------
    str
        HTML.

    Raises
    ------
    MissingExtraError
        If the package that draws is not installed.
    """
    name = found.rows[0]["dataset"]
    table = _table(name, standings(found.rows, found.left_out))
    return html(
        Results(found.rows),
        [table],
        title=f"{name}: learners compared",
        lead=extent(found.rows),
        rerun=[command],
        environment=environment(),
    )


def _table(name: str, table: Sequence[Standing]) -> Table:
    trials = max(one.trials for one in table)
    over = f"over the same {trials} trials" if trials > 1 else "over groups of the test rows"
    note = (
        f"± is a standard error, {over}. Behind: the mean difference to the best; a tie is within {TIE:g} of its "
        "errors. Time is that of one core to learn a row, memory what is held once all rows are learned."
    )
    lines = tuple(_line(one, best=place == 0) for place, one in enumerate(table))
    return Table("Methods compared", note, "method", COLUMNS, (Section(name, ".4f", lines),))


def _line(one: Standing, best: bool) -> Line:
    nothing = Cell(note="-")
    if not one.trials:
        return Line(one.label, (Cell(note=one.why), *[nothing] * (len(COLUMNS) - 1)))
    behind = Cell(one.behind, _known(one.behind_error), note="tie" if one.close else "")
    return Line(
        one.label,
        (
            Cell(one.auc, _known(one.error), one.trials, note=", ".join(filter(None, (one.note, one.why)))),
            nothing if best else behind,
            Cell(one.nonzeros, form=",.0f"),
            Cell(one.microseconds, form=".3g"),
            Cell(one.state_bytes / 1000, form=",.4g"),
        ),
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
