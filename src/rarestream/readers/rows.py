"""Parsed rows to Blocks: labels are mapped to -1 and +1, and invalid rows skipped and counted.

All that does not depend on the format is here; `readers/text.py` adds the framing of text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.features import Columns
from rarestream.readers.labels import LabelRule, OneLabelError, class_labels
from rarestream.readers.locations import PieceLines
from rarestream.readers.parser import ParsedRows, RowRules
from rarestream.readers.reading import Reading


class RowsToBlocks:
    """Makes Blocks of parsed rows, in the order of the stream.

    Parameters
    ----------
    reading : Reading
        The pass that the rows belong to; it learns the labels found, and how many rows have none.
    rules : RowRules
        What the format knows of its rows.
    between : str
        What stands between the name of a source and the number of a row: ":" for the lines of a file.
    first : str
        What the first chunk is called. By default it is so many bytes.
    """

    def __init__(self, reading: Reading, rules: RowRules, between: str = ":", first: str = "") -> None:
        self.reading = reading
        self.rules = rules
        self.between = between
        self.first = first or f"first {in_bytes(reading.chunk)}"
        options = reading.options
        self.all_classes: bool = options.all_classes
        classes = None if self.all_classes else options.classes
        self.rule = LabelRule(options.positive, options.labels_optional, classes)

    @property
    def _space(self) -> Any:
        """The feature space of the rows as a Block has it: None for column numbers."""
        return None if isinstance(self.rules.space, Columns) else self.rules.space

    def add_names(self, rows: ParsedRows) -> None:
        """Add the names that came with these rows to their space. A name comes once, whatever becomes of the row."""
        space = self._space
        if space is not None and space.names is not None and rows.names is not None:
            space.names.add(rows.names)
            if self.reading.on_names is not None:
                self.reading.on_names(rows.names)

    def undecided(self, rows: ParsedRows) -> bool:
        """Return whether these rows, if they are the first, do not decide which label is positive."""
        if self.all_classes or len(rows.bad) > self.reading.refusals.allowed:
            return False
        return len(rows.labels) == 0 or self.rule.undecided(rows.labels, rows.label_texts)

    def block(
        self, name: str, before: int, rows: ParsedRows, where: Callable[[int], str] | None = None
    ) -> tuple[Block, DataError | None]:
        """Return the valid rows of a chunk with their labels, and the error that ends the stream, if any.

        With an error, the rows are those before the row that caused it.

        Parameters
        ----------
        name : str
            Of the source.
        before : int
            Lines of the source before the chunk.
        rows : ParsedRows
            The chunk's.
        where : callable, optional
            Returns where a line of the chunk is, for messages. By default it is in a file of that name.
        """
        self.add_names(rows)
        optional = self.reading.options.labels_optional
        place = partial(self._place, name, before, where)
        bad = [(row.line, f"{place(row.line, row.column)}: {self.rules.message(row)}") for row in rows.bad]
        keep_missing = self.reading.options.labels_missing
        block = Block(*rows[:4], None, rows.importances, _tags(rows.tags), True, self._space)
        if self.all_classes:
            signs = np.where(np.isnan(rows.labels), 0, 1).astype(np.int8)  # whether there is a class
            block = replace(block, classes=None if optional else class_labels(rows.labels, rows.label_texts))
        else:
            try:
                signs = self.rule.signs(rows.labels, rows.label_texts)
            except OneLabelError as error:
                return block[:0], self._one_label(error, place, rows, bad)
            self.reading.classes = self.rule.classes
            if self.rule.note is not None and self.rule.note not in self.reading.notes:
                self.reading.notes.append(self.rule.note)
            block = replace(block, labels=signs)
        kept = np.ones(len(signs), bool)
        if not optional and not signs.all():
            kept = signs != 0
            missing = np.isnan(rows.labels)
            if keep_missing:
                kept |= missing
            else:
                self.reading.unlabelled += int(np.count_nonzero(missing))
            for row in np.flatnonzero(~(kept | missing)):
                line = int(rows.lines[row])
                message = self.rule.error_message(float(rows.labels[row]), rows.label_texts)
                bad.append((line, f"{place(line, int(rows.columns[row]))}: {message}"))
            bad.sort()
        limit_error = None
        for line, message in bad:
            limit_error = self.reading.refusals.add(message, line)
            if limit_error is not None:
                kept &= rows.lines < line
                break
        if kept.all():
            self.reading.piece = PieceLines(name, before, rows.lines, self.between)
            return block, limit_error
        self.reading.piece = PieceLines(name, before, rows.lines[kept], self.between)
        return block.take(np.flatnonzero(kept)), limit_error

    def _one_label(
        self, error: OneLabelError, place: Callable[[int, int], str], rows: ParsedRows, bad: list[tuple[int, str]]
    ) -> DataError | None:
        if self.reading.stopped:  # stopped before both labels occurred: nothing can be learned
            return None
        for line, message in bad:
            limit_error = self.reading.refusals.add(message, line)
            if limit_error is not None:  # the rest of the chunk was not parsed, and may have held the other label
                return limit_error
        first = int(np.flatnonzero(~np.isnan(rows.labels))[0])
        at = place(int(rows.lines[first]), int(rows.columns[first]))
        return DataError(f"{at}: {error.message(self.first)}")

    def _place(self, name: str, before: int, where: Callable[[int], str] | None, line: int, column: int) -> str:
        """Return where a line of the chunk is; a column of 0: in no text."""
        at = f"{name}{self.between}{before + line}" if where is None else where(line)
        return at + (f":{column}" if column else "")


def _tags(tags: NDArray[np.int64] | list[str] | None) -> NDArray[Any] | None:
    if isinstance(tags, list):
        return np.array(tags) if any(tags) else None
    return tags


def in_bytes(size: int) -> str:
    """Return a number of bytes as messages show it."""
    return f"{size >> 20} MB" if size >> 20 else f"{size} bytes"
