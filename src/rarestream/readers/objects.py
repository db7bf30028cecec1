"""What JSON lines and dicts share: rows whose columns are their keys, so that any row may have a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rarestream.readers.tables import (
    ColumnCounts,
    PlannedTable,
    TableOptions,
    hashed_space,
    no_such_column,
    plan_of,
    require_label,
)

if TYPE_CHECKING:
    from rarestream.readers.reading import Reading


class Survey(Protocol):
    """Returns the number of the first rows, and the counts of their columns."""

    def __call__(self, *, missing: list[str]) -> tuple[int, list[tuple[str, int, int, int, int, int, int]]]: ...


class ObjectPlanner:
    """Decides the plan of objects on the first rows, unless their feature space has one.

    Keys that come later count as what their values are, if the plan was decided here. In a plan that was decided by a
    table with fixed columns, they are ignored.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.space = hashed_space(reading)
        self._decides = self.space.plan is None

    def table(self, place: str, survey: Survey) -> PlannedTable:
        """Return the planned table. Called again with more rows, it decides again.

        Parameters
        ----------
        place : str
            The source, for messages.
        survey : Survey
            Of the first rows.
        """
        options: TableOptions = self.reading.options
        counts: list[ColumnCounts] = []
        rows = 0
        if self._decides:
            self.space.plan = None
            rows, found = survey(missing=list(options.missing))
            counts = [ColumnCounts(*column) for column in found]
        plan = plan_of(self.space, counts, options, open=True)
        names = [column.name for column in counts]
        require_label(place, plan, names, self.reading)
        if rows:
            self._check_names(place, names)
        return PlannedTable(self.space, plan)

    def _check_names(self, place: str, names: list[str]) -> None:
        """Raise DataError if no row has the label. Other columns that no row has may come later: a note says so."""
        options, known = self.reading.options, set(names)
        if options.label is not None and options.label not in known and not options.labels_optional:
            raise no_such_column("label", options.label, names)
        for word in ("importance", "tag", "numeric", "categorical", "text", "dates", "ignore"):
            value: Any = getattr(options, word)
            for name in (value,) if isinstance(value, str) else value or ():
                note = f"{place}: {word} names {name!r}, which none of the first rows has."
                if name not in known and note not in self.reading.notes:
                    self.reading.notes.append(note)
