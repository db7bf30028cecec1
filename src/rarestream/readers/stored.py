"""Reads `.blocks` files as data of their own, one after the other. As caches they are read by cache.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rarestream.blocks import Block
from rarestream.errors import DataError, advice
from rarestream.features import Hashed
from rarestream.readers.blocksfile import BlocksFile, Piece
from rarestream.readers.labels import label_note
from rarestream.readers.options import Classes, Label, shown_label
from rarestream.readers.reading import Reading
from rarestream.readers.sources import Source


def read_stored(reading: Reading) -> Iterator[Block]:
    """Yield the rows of `.blocks` files."""
    before = 0
    for source in reading.sources:
        with closing(_opened(source)) as file:
            space = _space(file, reading)
            file.guarded(partial(_check_labels, file, reading))
            file.guarded(partial(_check_base, file, reading))
            for piece in file.pieces(space, reading.threads):
                if reading.stopped:
                    return
                file.add_names(space, piece)
                reading.position = before + piece.position
                block = _labelled(file, piece, reading)
                if len(block):
                    yield block
        before += source.size or 0
        reading.position = before


def _opened(source: Source) -> BlocksFile:
    from rarestream.readers.compression import METHODS

    if source.path is None or source.size is None:
        raise DataError(f"{source.name}: .blocks are read from files, which can be mapped into memory. Save it to one.")
    if source.path.lower().endswith(tuple(METHODS)):
        raise DataError(f"{source.name}: a .blocks file cannot be compressed. Decompress it first.")
    return BlocksFile(source.path, source.name)


def _space(file: BlocksFile, reading: Reading) -> Hashed | None:
    """Return the feature space of the rows: the one that is wanted, if they are of it."""
    own, wanted = file.space(), reading.features
    if own is None:
        return None
    if not isinstance(wanted, Hashed):
        if wanted is None:
            reading.features = own
        return own  # a model of column numbers refuses it
    if wanted.bits != own.bits:
        raise DataError(
            f"{file.name}: has rows of {own.describe()}, but {wanted.describe()} are wanted. Make it again from its "
            f"source with {advice('bits', '--bits')}, or train a new model."
        )
    if wanted.plan is None:
        wanted.plan = own.plan
    elif own.plan is not None and wanted.plan.settings() != own.plan.settings():
        raise DataError(
            f"{file.name}: its rows were made by another plan of the columns than that of the model or of the files "
            "before it. Use the data that it was made of, or train a new model."
        )
    return wanted


def _check_labels(file: BlocksFile, reading: Reading) -> None:
    """Raise DataError if labels are asked for that the file does not have; else tell the pass what they were."""
    options, asked, end = reading.options, file.about.get("asked") or {}, file.end
    positive: Label | None = (asked.get("options") or {}).get("positive")
    kept: Any = end.get("classes") if asked else [-1.0, 1.0]
    low, high = (None, positive) if positive is not None else kept or (None, None)
    if file.has_classes != options.all_classes and not options.labels_optional:
        way = advice("classes='all'", "--classes all")
        raise DataError(
            f"{file.name}: its labels are classes, of which there may be many; pass {way}."
            if file.has_classes
            else f"{file.name}: has two classes; drop {way}."
        )
    if options.all_classes or options.labels_optional:
        return
    given: Classes | None = (None, options.positive) if options.positive is not None else options.classes
    if given is not None and high is not None:
        lower = low if high != 1 or low not in (-1, 0) else None  # which of them is negative depends on the file
        if given[1] != high or (None not in (given[0], lower) and given[0] != low):
            raise DataError(
                f"{file.name}: label {shown_label(high)} counts as +1, which is in the file, but "
                f"{shown_label(given[1])} is wanted. Make it again from its source."
            )
    before = reading.classes
    if positive is not None:
        reading.found["positive"] = positive
    elif high is not None:
        reading.classes = (low, high)
        if before is not None and before[1] != high:
            raise DataError(
                f"{file.name}: label {shown_label(high)} counts as +1, but {shown_label(before[1])} does in the files "
                "before it. Make them again from their sources."
            )
        note = label_note(low, high)
        if note is not None and given is None and note not in reading.notes:
            reading.notes.append(note)


def _check_base(file: BlocksFile, reading: Reading) -> None:
    zero_based = (file.end.get("found") or {}).get("zero_based")
    given = reading.options.zero_based
    if given is not None and zero_based is not None and given != zero_based:
        base = "0" if zero_based else "1"
        raise DataError(
            f"{file.name}: was made of columns that count from {base}. Drop "
            f"{advice('zero_based', '--zero-based' if given else '--one-based')}, or make it again from its source."
        )
    if zero_based is not None or file.space() is None:
        reading.found["zero_based"] = given if zero_based is None else zero_based


def _labelled(file: BlocksFile, piece: Piece, reading: Reading) -> Block:
    """Return the rows of a piece that can be used: without labels, only if these are optional."""
    block, lines = piece.block, piece.lines
    reading.piece = lines
    if reading.options.labels != "required" or reading.options.all_classes:
        return block
    kept = np.zeros(len(block), bool) if block.labels is None else block.labels != 0
    if kept.all():
        return block
    reading.unlabelled += int(np.count_nonzero(~kept))
    reading.piece = lines._replace(lines=lines.lines[kept])
    labels = np.zeros(len(block), np.int8) if block.labels is None else block.labels
    return replace(block, labels=labels).take(np.flatnonzero(kept))
