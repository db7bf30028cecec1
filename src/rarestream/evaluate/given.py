"""Blocks that a program has made itself, as a stream: what training asks of one that `read` has opened.

Such a model keeps no position in its data: there are no files to find again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rarestream.blocks import Block


class GivenBlocks:
    """An iterable of Blocks, such as a list, a generator, or `make_rare_stream`.

    Parameters
    ----------
    blocks : iterable of Block
        Labelled rows.
    """

    fraction: float | None = None  # how many will come is not known
    refused = unlabelled = 0
    unfinished = None
    features = None  # each Block has its own
    sources: Sequence[Any] = ()
    settings: Mapping[str, Any] = {"shuffle": None}

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._blocks = blocks
        self._skip = 0
        self._stopped = False
        self.refusals: list[str] = []
        self.notes: list[str] = []
        self.cache_notes: list[str] = []
        self.replayable = not isinstance(blocks, Iterator)

    def skip(self, rows: int) -> None:
        """Leave out so many rows of the next pass."""
        self._skip = rows

    def stop(self) -> None:
        """End the pass after the rows that have come."""
        self._stopped = True

    def where(self, row: int) -> None:
        """Return where a row of the last Block stands: in no file."""

    def __iter__(self) -> Iterator[Block]:
        left, self._skip, self._stopped = self._skip, 0, False
        for block in self._blocks:
            if not isinstance(block, Block):
                raise TypeError(
                    f"Training needs Blocks of rows, got {type(block).__name__}. Blocks are what rarestream.read and "
                    "Block.of return."
                )
            rest = block[left:]
            left = max(0, left - len(block))
            if len(rest):
                yield rest
            if self._stopped:
                return


def as_stream(data: GivenBlocks | Iterable[Block], passes: int = 1) -> GivenBlocks:
    """Return Blocks as a stream; `passes`: how often it will be read.

    Raises
    ------
    TypeError
        If these are no rows.
    ValueError
        If they can be read only once.
    """
    if isinstance(data, GivenBlocks):
        return data
    if isinstance(data, Block):
        data = [data]
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise TypeError(
            f"Training needs a stream or Blocks of rows, got {data!r:.60}. Open files with rarestream.read(...)."
        )
    given = GivenBlocks(data)
    if passes > 1 and not given.replayable:
        raise ValueError(
            f"passes={passes} needs Blocks that can be read again, but {type(data).__name__} ends after one pass. Pass "
            "a list, or what rarestream.read returns."
        )
    return given
