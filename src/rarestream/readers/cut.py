"""Pieces of any size to Blocks of exactly so many rows.

Where the pieces were cut leaves no trace in the Blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block, Importances, concatenate
from rarestream.errors import DataError

NO_TAG = -1  # in a numeric field of tags, a row that has none


def cut(pieces: Iterable[Block], rows: int, skip: int = 0) -> Iterator[Block]:
    """Blocks of `rows` rows, the last maybe shorter, without the first `skip` rows.

    If the pieces end in an error, the rows before it come first, in a block that may be short.
    """
    waiting: list[Block] = []
    size = 0
    try:
        for piece in pieces:
            if skip:
                dropped = min(skip, len(piece))
                piece, skip = piece[dropped:], skip - dropped
            start = 0
            while size + len(piece) - start >= rows:
                stop = start + rows - size
                yield joined([*waiting, piece[start:stop]])
                waiting, size, start = [], 0, stop
            if start < len(piece):
                waiting.append(piece[start:])
                size += len(piece) - start
    except DataError:
        if waiting:
            yield joined(waiting)
        raise
    if waiting:
        yield joined(waiting)


def joined(pieces: list[Block]) -> Block:
    """The pieces as one Block, with its own width, and with a field only where it says something."""
    block = merged(pieces)
    width = int(block.indices.max()) + 1 if block.nonzeros else 0
    return Block(
        block.indptr,
        block.indices,
        block.values,
        width,
        block.labels if block.labels is not None and block.labels.all() else None,
        block.importances if block.importances is not None and (block.importances != 1).any() else None,
        block.tags if block.tags is not None and (block.tags != NO_TAG).any() else None,
    )


def merged(pieces: list[Block]) -> Block:
    """The pieces as one piece; a field that only some have is filled up in the others."""
    importances = any(piece.importances is not None for piece in pieces)
    tags = any(piece.tags is not None for piece in pieces)
    return concatenate([_filled(piece, importances, tags) for piece in pieces])


def _filled(piece: Block, importances: bool, tags: bool) -> Block:
    n = len(piece)
    weight: Importances | None = piece.importances
    if importances and weight is None:
        weight = np.ones(n)
    tag: NDArray[Any] | None = piece.tags
    if tags and tag is None:
        tag = np.full(n, NO_TAG, np.int64)
    return Block(piece.indptr, piece.indices, piece.values, piece.width, piece.labels, weight, tag)
