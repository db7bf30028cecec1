"""Pieces of any size to Blocks of exactly so many rows.

Where the pieces were cut leaves no trace in the Blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import Block
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
    if len(pieces) == 1:
        return pieces[0]
    rows = [len(piece) for piece in pieces]
    nonzeros = [piece.nonzeros for piece in pieces]
    starts = [np.zeros(1, np.int64)]
    for piece, before in zip(pieces, accumulate(nonzeros, initial=0), strict=False):
        starts.append(piece.indptr[1:] + before)
    return Block(
        np.concatenate(starts),
        np.concatenate([piece.indices for piece in pieces], out=_native.pooled_int32(sum(nonzeros))),
        np.concatenate([piece.values for piece in pieces], out=_native.pooled_float32(sum(nonzeros))),
        max(piece.width for piece in pieces),
        _filled([piece.labels for piece in pieces], rows, 0),
        _filled([piece.importances for piece in pieces], rows, 1.0),
        _filled([piece.tags for piece in pieces], rows, NO_TAG),
    )


def _filled(parts: list[NDArray[Any] | None], rows: list[int], default: float) -> NDArray[Any] | None:
    dtype = next((part.dtype for part in parts if part is not None), None)
    if dtype is None:
        return None
    return np.concatenate(
        [np.full(n, default, dtype) if part is None else part for part, n in zip(parts, rows, strict=True)]
    )
