"""The svmlight format: `label [qid:N] [cost:W] index:value ...  # comment`, one row per line.

Blank lines, comment lines and a byte order mark are ignored. Fields are separated by spaces or tabs; lines may end in
CR LF. `qid` becomes the tag of a row, `cost` its importance. Indices may be in any order; duplicates are summed. Labels
are explained in labels.py.

Indices count from 1, as in svmlight. With `zero_based=None`, an index 0 in the first chunk (about 1 MB of the first
file; of a pipe, the rows that arrive first) makes the whole stream zero-based; an index 0 that comes later is an error.
The parser is native/svmlight.hpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import (
    LARGEST_IMPORTANCE,
    LARGEST_INDEX,
    SMALLEST_IMPORTANCE,
    Block,
    Importances,
    Indices,
    Indptr,
    Values,
)
from rarestream.errors import DataError, advice
from rarestream.readers.chunks import Chunk, Chunks, NextLine, TooLongLineError
from rarestream.readers.formats import Reading, register
from rarestream.readers.labels import LabelRule, OneLabelError, positive_advice
from rarestream.readers.locations import PieceLines
from rarestream.readers.prefetch import Prefetch

NO_LABEL, ZERO_INDEX = 1, 7
MANY = 1 << 62

# Messages for the numbers of svmlight::Rule. {0} is the text that breaks the rule; `_remedy` adds what to do.
RULES = {
    NO_LABEL: "a row starts with its label, but this one starts with {0}.",
    2: "the label must be a number, got {0}.",
    3: "the label must be a finite number, got {0}.",
    4: "a feature is index:value, but {0} has no colon.",
    5: "a feature index must be a whole number, got {0}. Names must be hashed or numbered first.",
    6: "a feature index must not be negative, got {0}.",
    ZERO_INDEX: "feature index 0, but svmlight counts from 1.",
    8: f"feature index {{0}} is too large; the largest is {LARGEST_INDEX + 1:,} "
    "(one less when counting from 0). Hash or renumber larger ones.",
    9: "a feature value must be a number, got {0}.",
    10: "a feature value must be finite, got {0}. "
    "NaN and infinity have no place in a dot product: drop or impute them.",
    11: "a feature value must fit in float32 (up to 3.4e38), got {0}. Scale the values down.",
    12: f"cost must be a number between {SMALLEST_IMPORTANCE:g} and {LARGEST_IMPORTANCE:g}, or 0, which skips a row, "
    "got {0}.",
    13: "qid must be a whole number from 0 to 2^63 - 1, got {0}.",
    14: "control character {0} in the text; this looks like binary data, not svmlight.",
    15: "duplicate features of this row sum to a value beyond float32. Scale the values down.",
}


class Parsed(NamedTuple):
    """The result of the native parser for a chunk. Lines and columns count from 1, lines within the chunk."""

    indptr: Indptr
    indices: Indices
    values: Values
    width: int
    labels: NDArray[np.float64]  # as written; NaN where there is none
    importances: Importances | None
    tags: NDArray[np.int64] | None
    lines: NDArray[np.int64]
    columns: NDArray[np.int32]
    lines_read: int
    bad: list[tuple[int, int, int, bytes]]  # line, column, rule, the text that breaks it


class Located(NamedTuple):
    """A parsed chunk and its position in the sources."""

    name: str
    begins: bool
    position: int
    parsed: Parsed


@register("svmlight", [".svm", ".svmlight", ".libsvm"])
def svmlight(reading: Reading) -> Iterator[Block]:
    """Yield the rows of svmlight text, one Block for each chunk."""
    return _Svmlight(reading).pieces()


class _Svmlight:
    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.options = reading.options
        self.rule = LabelRule(self.options.positive, self.options.labels_optional, self.options.classes)
        self.first_index = 0 if self.options.zero_based else 1
        self.lines = 0  # of the current source, before the current chunk

    def pieces(self) -> Iterator[Block]:
        options = self.options
        with closing(Chunks(self.reading.sources, options.chunk, options.longest_line, options.finished)) as chunks:
            self.reading.when_stopped(chunks.end)
            try:
                for located in self._parsed(chunks):
                    block, error = self._labelled(located)
                    self.reading.position = located.position
                    if len(block):
                        yield block
                    if error is not None:
                        raise error
            except TooLongLineError as error:
                raise DataError(
                    f"{self._place(error.line)}: line longer than {_size(options.longest_line)}; a row must fit in "
                    "that. Check that the file has line ends, and is svmlight text."
                ) from None

            if chunks.unfinished_line is not None:
                self.reading.unfinished = self._place(chunks.unfinished_line)

    def _place(self, line: NextLine) -> str:
        return f"{line.name}:{1 if line.begins else self.lines + 1}"

    def _parsed(self, chunks: Chunks) -> Iterator[Located]:
        # The first chunk decides where indices and labels start, so it is parsed before the others.
        buffer = bytearray()
        first = chunks.take(buffer)
        if first is None:
            return
        parsed = self._parse(first)
        while chunks.may_grow and len(first.text) < self.options.chunk and self._too_early(parsed):
            chunks.put_back(first)
            del first  # releases the buffer, which is about to be filled again
            first = chunks.take(buffer)
            assert first is not None
            parsed = self._parse(first)
        if self.options.zero_based is None and any(rule == ZERO_INDEX for _, _, rule, _ in parsed.bad):
            self.first_index = 0
            parsed = self._parse(first)
        self.reading.zero_based = self.first_index == 0
        yield Located(first.name, first.begins, first.position, parsed)
        del first

        def take(buffer: bytearray) -> Callable[[], Located] | None:
            chunk = chunks.take(buffer)
            if chunk is None:
                return None
            return lambda: Located(chunk.name, chunk.begins, chunk.position, self._parse(chunk))

        if self.options.threads and not chunks.exhausted:
            yield from Prefetch(take, chunks.stop, self.options.threads)
        else:
            while (task := take(buffer)) is not None:
                located = task()
                del task
                yield located

    def _too_early(self, parsed: Parsed) -> bool:
        """Return whether the first lines of a pipe do not yet decide which label is positive."""
        if len(parsed.bad) > self.reading.refusals.allowed:
            return False
        return len(parsed.labels) == 0 or self.rule.undecided(parsed.labels)

    def _parse(self, chunk: Chunk) -> Parsed:
        return Parsed(
            *_native.parse_svmlight(
                chunk.text,
                first_index=self.first_index,
                label_required=not self.options.labels_optional,
                stop_after=min(self.reading.refusals.allowed, MANY) + 1,
            )
        )

    def _labelled(self, located: Located) -> tuple[Block, DataError | None]:
        """Return the valid rows of a chunk with their labels, and the error that ends the stream, if any.

        With an error, the rows are those before the row that caused it.
        """
        name, begins, _, parsed = located
        before = 0 if begins else self.lines
        self.lines = before + parsed.lines_read
        bad = [
            (line, f"{name}:{before + line}:{column}: {RULES[rule].format(_shown(token))}{_remedy(rule)}")
            for line, column, rule, token in parsed.bad
        ]
        block = Block(*parsed[:4], None, parsed.importances, parsed.tags, own=True)
        try:
            signs = self.rule.signs(parsed.labels)
        except OneLabelError as error:
            if self.reading.stopped:  # stopped before both labels occurred: nothing can be learned
                return block[:0], None
            for _, message in bad:
                error_now = self.reading.refusals.add(message)
                if error_now is not None:  # the rest of the chunk was not parsed, and may have held the other label
                    return block[:0], error_now
            line, column = before + int(parsed.lines[0]), parsed.columns[0]
            return block[:0], DataError(
                f"{name}:{line}:{column}: the first {_size(self.options.chunk)} have only the label {error}; "
                f"labels are -1 and +1, 0 and 1, or two numbers that both come early. "
                f"Otherwise {positive_advice()}."
            )
        self.reading.classes = self.rule.classes
        block = _with_labels(block, signs)
        if not self.options.labels_optional and not signs.all():
            for row in np.flatnonzero(signs == 0):
                place = f"{name}:{before + parsed.lines[row]}:{parsed.columns[row]}"
                bad.append((int(parsed.lines[row]), f"{place}: {self.rule.error_message(float(parsed.labels[row]))}"))
            bad.sort()
        self.reading.piece = PieceLines(name, before, parsed.lines)
        if not bad:
            return block, None
        kept = signs != 0 if not self.options.labels_optional else np.ones(len(signs), bool)
        for line, message in bad:
            error_now = self.reading.refusals.add(message)
            if error_now is not None:
                kept &= parsed.lines < line
                break
        self.reading.piece = PieceLines(name, before, parsed.lines[kept])
        return block.take(np.flatnonzero(kept)), error_now


def _remedy(rule: int) -> str:
    if rule == NO_LABEL:
        return " " + advice(
            "To score rows without labels, pass labels='optional'.", "Rows without labels can be scored: predict."
        )
    if rule == ZERO_INDEX:
        return f" If this file counts from 0, pass {advice('zero_based=True', '--zero-based')}."
    return ""


def _with_labels(block: Block, signs: NDArray[np.int8]) -> Block:
    return replace(block, labels=signs)


def _size(size: int) -> str:
    return f"{size >> 20} MB" if size >> 20 else f"{size} bytes"


def _shown(token: bytes) -> str:
    """The text, shortened and safe to print."""
    text = repr(token[:40])[1:]
    return text + ("..." if len(token) > 40 else "")
