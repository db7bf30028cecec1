"""Splits the pieces that a format yields into Blocks of a limited number of rows.

A Block ends where a piece ends: rows are never copied to fill one up. Where a block ends changes no weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rarestream.blocks import Block, no_tag


def split_blocks(pieces: Iterable[Block], rows: int, skip: int = 0, unknown: bool = False) -> Iterator[Block]:
    """Yield Blocks of at most `rows` rows, leaving out the first `skip` rows.

    With `unknown`, the label 0 stays for rows whose label is not known; else a Block with such rows has no labels.
    """
    for piece in pieces:
        dropped = min(skip, len(piece))
        skip -= dropped
        for start in range(dropped, len(piece), rows):
            block = piece if len(piece) <= rows and not dropped else piece[start : start + rows]
            yield _finished(block, piece, unknown)


def _finished(block: Block, piece: Block, unknown: bool) -> Block:
    """The block with its own width, and None in place of optional fields that hold only their default."""
    width = block.width
    if block is not piece:
        width = int(block.indices.max()) + 1 if block.nonzeros else 0
    return Block(
        block.indptr,
        block.indices,
        block.values,
        width,
        block.labels if block.labels is not None and (unknown or block.labels.all()) else None,
        block.importances if block.importances is not None and (block.importances != 1).any() else None,
        block.tags if block.tags is not None and (block.tags != no_tag(block.tags.dtype)).any() else None,
        block.own,
        block.space,
        block.classes,
    )
