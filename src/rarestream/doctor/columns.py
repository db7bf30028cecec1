"""What the columns of a table hold: values, missing cells, and how well each alone predicts the label."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.features import Hashed, Kind, namespace_of
from rarestream.metrics import auc

FOLDS = 5
SHOWN_VALUES = 3  # examples of a column
ENOUGH_ROWS = 10  # of each class, to measure how a column predicts the label
_NUMBERS = (*"+-.0123456789",)  # how they start
NO_COLUMN = -1
FEW_DOUBLES = 0.01  # share of rows with two cells up to which a column does not hold lists
BATCH = 100_000  # names that are Python strings at once

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


class Column(NamedTuple):
    """A column of a table, or a namespace.

    Attributes
    ----------
    name : str
        Its name.
    role : str
        "feature", "label", "importance" or "tag".
    kinds : int
        What its cells become: flags of `Kind`.
    distinct : int
        Number of different values.
    missing : int
        Number of rows without a value.
    examples : tuple of str
        The most frequent values; of numbers and dates the smallest and the largest.
    auc : float or None
        AUC of this column alone; None if it cannot be measured.
    numbers : float
        Share of the cells that are numbers.
    words : list of str
        The values that are no numbers, if there are few of them.
    length : float
        Mean number of words of a value.
    largest : int
        Number of rows with the most frequent value.
    ascending : float or None
        Share of the neighbouring rows whose values do not descend, of numbers and dates.
    named_like_value : bool
        Whether the name is one of the values, or both are numbers.
    """

    name: str
    role: str
    kinds: int
    distinct: int
    missing: int
    examples: tuple[str, ...]
    auc: float | None
    numbers: float
    words: tuple[str, ...]
    length: float
    largest: int
    ascending: float | None = None
    named_like_value: bool = False


class Cells(NamedTuple):
    """The cells of one column: the row of each, and the number of its value, from 0."""

    rows: I64
    values: I64
    slots: NDArray[np.int32]  # of the values


class Table:
    """The cells of a sample, by column.

    Parameters
    ----------
    block : Block
        The rows; each cell is a feature with its column as namespace.
    space : Hashed
        The space of the rows, which knows the texts of the cells.
    columns : sequence of str
        The columns, in order. Namespaces that are not among them are added.
    single : bool
        Whether each feature is a cell of a column, and not of a namespace with any number of them.
    """

    def __init__(self, block: Block, space: Hashed, columns: Sequence[str], *, single: bool) -> None:
        assert space.names is not None
        self.rows = len(block)
        self._names = space.names
        self.columns = list(columns)
        slots, values = np.unique(block.indices, return_inverse=True)
        numbers = {name: number for number, name in enumerate(self.columns)}
        column_of = np.full(len(slots), NO_COLUMN, np.int32)
        for start in range(0, len(slots), BATCH):
            for at, name in enumerate(self._names.names(slots[start : start + BATCH]), start):
                if name is None:
                    continue
                column = namespace_of(name, numbers)
                if column not in numbers:
                    numbers[column] = len(self.columns)
                    self.columns.append(column)
                column_of[at] = numbers[column]
        self.column_of_entry = column_of[values]
        self._row_of = np.repeat(np.arange(self.rows, dtype=np.int32), np.diff(block.indptr))
        self._values, self._slots = values.astype(np.int32), slots
        del values
        self.unknown = np.zeros(len(self.columns), np.int64)  # cells of each column whose value is not known
        self._cells = self._by_column()
        if single and self._drop_shared(block):
            self._cells = self._by_column()

    def _by_column(self) -> list[NDArray[np.int32]]:
        order = np.argsort(self.column_of_entry, kind="stable").astype(np.int32)
        ends = np.cumsum(np.bincount(self.column_of_entry + 1, minlength=len(self.columns) + 1))
        return np.split(order, ends[:-1])[1:]

    def _drop_shared(self, block: Block) -> bool:
        """Take cells out of columns that they are not of; return whether there are any.

        A few cells in a million have the slot of another one, and so the name of that: a row then seems to have two
        cells in one column, and none in another.
        """
        frequency = np.bincount(self._values)
        filled = [len(cells) for cells in self._cells]
        fullest = sorted(range(len(filled)), key=lambda column: -filled[column])
        dropped: list[int] = []
        for cells in self._cells:
            rows = self._row_of[cells]
            double = np.flatnonzero(rows[1:] == rows[:-1])
            if len(double) <= FEW_DOUBLES * len(rows):  # more: a column of lists
                pairs = np.stack([cells[double], cells[double + 1]])
                dropped += pairs[np.argmax(frequency[self._values[pairs]], 0), np.arange(len(double))].tolist()
        twice = np.flatnonzero(block.values > 1)  # two cells of a row in one slot: one of them is right
        present: dict[int, set[int]] = {}  # columns, by row
        for row in self._row_of[[*dropped, *twice.tolist()]].tolist():
            here = present.get(row)
            if here is None:
                here = present[row] = set(self.column_of_entry[block.indptr[row] : block.indptr[row + 1]].tolist())
            absent = next((column for column in fullest if column not in here), None)
            if absent is not None:
                here.add(absent)
                self.unknown[absent] += 1
        self.column_of_entry[dropped] = NO_COLUMN
        return bool(dropped)

    def cells(self, column: str) -> Cells:
        """Return the cells of a column, but for those whose value is not known."""
        chosen = self._cells[self.columns.index(column)]
        used, values = np.unique(self._values[chosen], return_inverse=True)
        return Cells(self._row_of[chosen].astype(np.int64), values.astype(np.int64), self._slots[used])

    def texts(self, column: str, slots: NDArray[np.int32]) -> Iterator[str]:
        """Yield the values of these slots."""
        for start in range(0, len(slots), BATCH):
            for name in self._names.names(np.ascontiguousarray(slots[start : start + BATCH])):
                yield "" if name is None else name[len(column) + 1 :]


def describe(table: Table, name: str, role: str, kinds: int, labels: NDArray[np.int8] | None) -> Column:
    """Return what a column holds. `labels` are -1, +1, and 0 for rows that have none; None: unknown."""
    cells = table.cells(name)
    counts = np.bincount(cells.values, minlength=len(cells.slots))
    filled = _different(cells.rows) + int(table.unknown[table.columns.index(name)])
    numbers, words, length, alike = _texts(table, name, cells)
    dated = kinds & Kind.DATE and len(cells.slots) > 0
    times = _times(table, name, cells) if dated else None
    measured = None
    if role == "feature" and kinds and labels is not None:
        measured = predictive(cells, labels, numbers if kinds & Kind.NUMBER else times)
    share = float(counts[np.isfinite(numbers)].sum() / counts.sum()) if len(counts) else 0.0
    order = numbers if share == 1.0 else times
    return Column(
        name,
        role,
        kinds,
        len(cells.slots),
        table.rows - filled,
        _examples(table, name, cells, counts, order),
        measured,
        share,
        tuple(words),
        float((length * counts).sum() / counts.sum()) if len(counts) else 0.0,
        int(counts.max()) if len(counts) else 0,
        _ascending(cells, order),
        alike,
    )


def _different(rows: I64) -> int:
    """Return how many different rows there are; they ascend."""
    return int(np.count_nonzero(np.diff(rows))) + 1 if len(rows) else 0


def _texts(table: Table, name: str, cells: Cells) -> tuple[F64, list[str], F64, bool]:
    """Return of each value its number, NaN if it is none, a few that are no numbers, and of each its number of words;
    and whether the column's name could be one of them."""
    alike = False
    numbers = np.full(len(cells.slots), np.nan)
    length = np.empty(len(cells.slots))
    words: list[str] = []
    for at, text in enumerate(table.texts(name, cells.slots)):
        length[at] = 1 + text.count(" ")
        numbers[at] = _number(text)
        alike = alike or text == name
        if len(words) <= SHOWN_VALUES and not math.isfinite(numbers[at]):
            words.append(text)
    return numbers, words, length, alike or (math.isfinite(_number(name)) and bool(np.isfinite(numbers).all()))


def _number(text: str) -> float:
    """Return the number that a text is; NaN if it is none."""
    try:
        return float(text) if text.startswith(_NUMBERS) else math.nan
    except ValueError:
        return math.nan


def _times(table: Table, name: str, cells: Cells) -> F64 | None:
    """Return the dates as seconds; None if some are none."""
    found = np.empty(len(cells.slots))
    try:
        for at, text in enumerate(table.texts(name, cells.slots)):
            time = datetime.fromisoformat(text)
            found[at] = (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return found


def _examples(table: Table, name: str, cells: Cells, counts: I64, order: F64 | None) -> tuple[str, ...]:
    if not len(counts):
        return ()
    if order is not None:
        chosen = [int(np.argmin(order)), int(np.argmax(order))][: len(counts)]
    else:
        chosen = np.argsort(-counts, kind="stable")[:SHOWN_VALUES].tolist()
    return tuple(table.texts(name, cells.slots[chosen]))


def _ascending(cells: Cells, order: F64 | None) -> float | None:
    if order is None or len(cells.rows) < 2:
        return None
    return float(np.mean(np.diff(order[cells.values]) >= 0))


def predictive(cells: Cells, labels: NDArray[np.int8], numbers: F64 | None) -> float | None:
    """Return the AUC of a column alone; None if there are too few rows with labels.

    The score of a row is the share of positives among the other rows with the same value: rows are put in five groups,
    and a value's share is that of the other four, so that a column of ids, which are all different, predicts nothing.
    A missing cell is a value like any other. Numbers are ranked by size, too, in both directions.
    """
    known = labels != 0
    positives = int(np.count_nonzero(labels > 0))
    if min(positives, int(np.count_nonzero(known)) - positives) < ENOUGH_ROWS:
        return None
    rows = len(labels)
    present = np.bincount(cells.rows, minlength=rows)
    absent = np.flatnonzero(present == 0)
    row_of = np.concatenate([cells.rows, absent])
    value_of = np.concatenate([cells.values, np.full(len(absent), len(cells.slots), np.int64)])
    label_of = labels[row_of]
    group = (np.arange(rows) * 2_654_435_761 >> 16) % FOLDS  # spread, but the same in every run
    size = len(cells.slots) + 1
    places = value_of * FOLDS + group[row_of]
    ones = np.bincount(places, label_of > 0, size * FOLDS).reshape(size, FOLDS)
    seen = np.bincount(places, label_of != 0, size * FOLDS).reshape(size, FOLDS)
    prior = positives / np.count_nonzero(known)
    ones, seen = ones.sum(1, keepdims=True) - ones, seen.sum(1, keepdims=True) - seen
    share = ((ones + prior) / (seen + 1)).ravel()[places]
    score = np.bincount(row_of, share, rows) / np.maximum(1, present)  # the mean, of a cell with several values
    found = float(auc(labels[known], score[known]))
    if numbers is not None and np.isfinite(numbers).any():
        value = numbers[cells.values]
        value[~np.isfinite(value)] = np.nan
        by_row = np.full(rows, float(np.nanmedian(value)))
        finite = np.isfinite(value)
        by_row[cells.rows[finite]] = value[finite]
        ranked = float(auc(labels[known], by_row[known]))
        found = max(found, ranked, 1 - ranked)
    return found


class Single(NamedTuple):
    """A feature that alone predicts the label."""

    feature: int
    auc: float


def single_features(block: Block, above: float) -> list[Single]:
    """Return the features whose presence alone, or whose value, has an AUC above this, the best first."""
    labels = block.labels
    assert labels is not None
    positives = int(np.count_nonzero(labels > 0))
    negatives = len(labels) - positives
    if min(positives, negatives) < ENOUGH_ROWS or not block.nonzeros:
        return []
    features, places, counts = np.unique(block.indices, return_inverse=True, return_counts=True)
    label_of = np.repeat(labels, np.diff(block.indptr))
    with_it = np.bincount(places, label_of > 0, len(features))
    gap = with_it / positives - (counts - with_it) / negatives
    best = 0.5 + np.abs(gap) / 2
    dense = np.flatnonzero(counts >= len(labels) / 2)[:100]  # their values may tell what their presence does not
    if len(dense):
        order = np.argsort(places, kind="stable")
        ends = np.cumsum(counts)
        row_of = np.repeat(np.arange(len(labels)), np.diff(block.indptr))
        for feature in dense.tolist():
            entries = order[ends[feature] - counts[feature] : ends[feature]]
            values = np.zeros(len(labels))
            values[row_of[entries]] = block.values[entries]
            ranked = float(auc(labels, values))
            best[feature] = max(best[feature], ranked, 1 - ranked)
    found = np.flatnonzero(best > above)
    return [Single(int(features[at]), float(best[at])) for at in found[np.argsort(-best[found], kind="stable")]]


def as_record(column: Column, kind: str, rows: int) -> dict[str, Any]:
    """Return a column for JSON."""
    return {
        "name": column.name,
        "role": column.role,
        "kind": kind,
        "distinct": column.distinct,
        "missing": column.missing,
        "missing_share": column.missing / rows if rows else 0.0,
        "examples": list(column.examples),
        "auc": column.auc,
    }
