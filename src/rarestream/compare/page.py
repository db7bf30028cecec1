"""The page of a comparison: its table, that sorts, and curves that zoom, in one file that needs no network."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rarestream.compare.comparing import Comparison
from rarestream.compare.standings import TIE, Standing, standings
from rarestream.reproduce import report
from rarestream.reproduce.tables import Cell, Line, Section, Table

COLUMNS = ("AUC", "behind", "non-zeros", "µs a row", "memory, kB")


def page(found: Comparison, command: str) -> str:
    """HTML; `command` is what made the comparison. MissingExtraError without the packages that draw."""
    name = found.rows[0]["dataset"]
    table = _table(name, standings(found.rows, found.left_out))
    title = f"{name}: learners compared"
    return report.html(found.rows, {}, report.environment(), title=title, rerun=[command], own=[table])


def _table(name: str, table: Sequence[Standing]) -> Table:
    trials = max(one.trials for one in table)
    over = f"over the same {trials} trials" if trials > 1 else "over runs of the test rows"
    note = (
        f"± is a standard error, {over}. Behind: the mean difference to the best; a tie is within {TIE:g} of its "
        "errors. Time is that of one core to learn a row, memory what is held once all is learned."
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
