"""Blocks as `--cache` and `convert` keep them: rows that are parsed already, with their labels and names.

The labels of the file are -1 and +1, and its features have their numbers, so no option can change them. The file is
mapped into memory; its format is explained in writers/blocks.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rarestream.readers.formats import Format
from rarestream.readers.formats.svmlight import zero_based_option
from rarestream.readers.options import FormatOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rarestream.blocks import Block
    from rarestream.readers.reading import Reading


@dataclass(frozen=True, kw_only=True)
class BlocksOptions(FormatOptions):
    """The options of .blocks files."""

    zero_based: bool | None = zero_based_option()


def read(reading: Reading) -> Iterator[Block]:
    """Yield the rows of .blocks files."""
    from rarestream.readers.stored import read_stored

    return read_stored(reading)


FORMAT = Format("blocks", (".blocks",), BlocksOptions, read, "Rows that are parsed already, as --cache keeps them.")
