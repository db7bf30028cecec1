"""Rows in memory: a list or another iterable of dicts, whose keys are the columns of a table.

Values are text, numbers, booleans, dates, None, and lists and dicts of these, also those of NumPy and pandas. They
become the same features as the same values in JSON lines. The encoder is native/dicts.hpp.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from rarestream.readers.formats import Format
from rarestream.readers.tables import TableOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rarestream.blocks import Block
    from rarestream.readers.parser import BadRow
    from rarestream.readers.reading import Reading

FIRST = 10_000  # rows that decide the plan, and which label is positive


def read(reading: Reading) -> Iterator[Block]:
    """Yield the rows of dicts in memory. Of an iterator, at most FIRST rows are held at once."""
    from rarestream import _native
    from rarestream.readers.objects import ObjectPlanner
    from rarestream.readers.parser import parsed_rows
    from rarestream.readers.rows import RowsToBlocks

    source = reading.sources[0]
    planner = ObjectPlanner(reading)
    blocks = RowsToBlocks(reading, DictRules(planner.space), between=": row ", first=f"first {FIRST:,} rows")
    items = iter(source.data)
    # An iterator may wait for each row: no more are taken before the first Block than it needs, or its labels do.
    batch = list(islice(items, FIRST if source.replayable else min(reading.rows, FIRST)))
    table = None
    before = 0
    while batch:
        if table is None:
            table = planner.table(source.name, partial(_native.survey_dicts, batch))
        rows = parsed_rows(table.parser.encode_dicts(batch, stop_after=reading.refusals.stop_after))
        if before == 0 and len(batch) < FIRST and blocks.undecided(rows):
            more = list(islice(items, min(len(batch), FIRST - len(batch))))
            if more:
                batch, table = batch + more, None
                continue
        block, error = blocks.block(source.name, before, rows)
        before += len(batch)
        reading.position = before
        if len(block):
            yield block
        if error is not None:
            raise error
        if reading.stopped:
            return
        batch = list(islice(items, reading.rows))


class DictRules:
    """What is known of the rows; a `rarestream.readers.parser.RowRules`."""

    def __init__(self, space: Any) -> None:
        self.space = space

    def message(self, bad: BadRow) -> str:
        from rarestream.features.faults import dict_message

        return dict_message(bad.rule, bad.field, bad.token)


FORMAT = Format("rows", (), TableOptions, read, "Rows in memory: dicts.", files=False)
