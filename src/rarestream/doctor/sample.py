"""The first rows of data, read twice: as `train` reads them, and with every cell of a table as a category.

The second pass gives each cell a slot of its own, so that the values of all columns can be counted, in every format.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rarestream.blocks import Block, concatenate
from rarestream.errors import DataError
from rarestream.features import Hashed, Kind, TablePlan
from rarestream.readers import Stream, read
from rarestream.readers.formats import load_format
from rarestream.readers.options import options_of
from rarestream.readers.sources import SourceLike
from rarestream.readers.tables import TableOptions

MOST_CELLS = 8_000_000  # of a sample
NAME_BYTES = 96 << 20  # memory for the texts of cells
ANY_NUMBER = 1 << 40  # of invalid rows
FEW_ROWS = 1 << 14  # in a Block
KEPT_FOR_CELLS = ("delimiter", "columns", "quoting", "missing", "ignore", "threads")


@dataclass
class Sample:
    """The first rows of data, and how reading them went."""

    blocks: list[Block] = field(default_factory=list)
    rows: int = 0
    complete: bool = False  # whether there are no more
    error: DataError | None = None  # that ended it

    def join(self) -> Block:
        """Return all rows, which are then no longer here."""
        block = concatenate(self.blocks)
        self.blocks.clear()
        return block


def _opened(data: Sequence[SourceLike], rows: int, **settings: Any) -> Stream:
    for item in data:
        if not isinstance(item, str | os.PathLike):
            item.seek(0)  # a copy of a pipe, which an earlier pass has read
    return read(data, rows=min(rows, FEW_ROWS), **settings)


def take(stream: Stream, rows: int, *, keep: bool, labelled: bool) -> Sample:
    """Return the first rows of a stream; a sample also ends where it gets too large to keep in memory."""
    sample = Sample()
    cells = 0
    try:
        with closing(_generator(stream)) as blocks:
            for block in blocks:
                if sample.rows >= rows:
                    return sample
                space = block.space
                if keep and sample.rows and space is not None and space.names is not None and space.names.full:
                    return sample
                part = block[: rows - sample.rows]
                sample.rows += len(part)
                if keep:
                    labels = part.labels if labelled else None
                    sample.blocks.append(replace(part, labels=labels, importances=None, tags=None))
                cells += part.nonzeros
                if len(part) < len(block) or (keep and cells >= MOST_CELLS):
                    return sample
            sample.complete = True
    except DataError as error:
        sample.error = error
    return sample


def _generator(stream: Stream) -> Any:
    return iter(stream)  # a generator: closing it stops its threads and closes its files


def is_table(format: str) -> bool:
    """Return whether a format has named columns."""
    return issubclass(load_format(format).options, TableOptions)


def as_trained(data: Sequence[SourceLike], format: str, given: Mapping[str, Any], rows: int) -> tuple[Stream, Sample]:
    """Return the rows as `train` reads them, but for invalid ones, which are counted. Those of tables are not kept."""
    table = is_table(format)
    labelled = not table or given.get("label") is not None
    settings = {**given, "format": format, "max_bad_rows": ANY_NUMBER}
    if not labelled:
        settings["labels"] = "optional"
    stream = _opened(data, rows, **settings)
    return stream, take(stream, rows, keep=not table, labelled=labelled)


def without_labels(data: Sequence[SourceLike], format: str, given: Mapping[str, Any], rows: int) -> Sample:
    """Return the rows whatever their labels are."""
    settings = {**given, "format": format, "max_bad_rows": ANY_NUMBER, "labels": "optional"}
    settings.pop("positive", None)
    return take(_opened(data, rows, **settings), rows, keep=True, labelled=False)


def cells(
    data: Sequence[SourceLike], format: str, given: Mapping[str, Any], plan: TablePlan, rows: int
) -> tuple[Hashed, Sample]:
    """Return the rows of a table with each cell as a category, its label too."""
    space = Hashed(30, name_bytes=NAME_BYTES)
    known = options_of(load_format(format).options)
    settings = {word: value for word, value in given.items() if word in KEPT_FOR_CELLS and word in known}
    ignored = settings.get("ignore", ())
    columns = [column.name for column in plan.columns if column.kinds and not column.kinds & Kind.AUTO]
    columns += [name for name in (plan.label, plan.importance, plan.tag) if name is not None]
    stream = _opened(
        data,
        rows,
        format=format,
        features=space,
        labels="optional",
        max_bad_rows=ANY_NUMBER,
        categorical=tuple(name for name in dict.fromkeys(columns) if name not in ignored),
        **settings,
    )
    sample = take(stream, rows, keep=True, labelled=False)
    return space, sample


def row_hashes(block: Block, without: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
    """Return a 64-bit hash of the features of each row, but for the entries that are True in `without`."""
    mixed = block.indices.astype(np.uint64) << np.uint64(32) | block.values.view(np.uint32)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # the mixer of SplitMix64
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    if without is not None:
        mixed[without] = 0
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    hashes: np.ndarray[Any, Any] = sums[block.indptr[1:]] - sums[block.indptr[:-1]]
    return hashes
