"""Writes rows as a `.blocks` file of their own, with the names of their features, and what labels and columns are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from rarestream import _native
from rarestream.blocks import Block
from rarestream.writers.blocks import BlocksWriter


class NamedBlocksWriter:
    """Writes Blocks of one feature space; a `rarestream.writers.registry.Writer`.

    Parameters
    ----------
    file : binary file
        It stays open.
    settings : callable
        Returns the arguments of `read` that give the same rows again, as far as they are known: whoever reads the file
        learns from them which label was positive, and whether columns counted from 0.
    """

    notes: tuple[str, ...] = ()  # the format can hold everything

    def __init__(self, file: BinaryIO, settings: Callable[[], Mapping[str, Any]]) -> None:
        self._file, self._settings = file, settings
        self._writer: BlocksWriter | None = None
        self._names: _native.NameTable | None = None  # those that the file has
        self._taken = 0  # names of the space of the rows that are among them

    def write(self, block: Block) -> None:
        """Write the rows of a Block."""
        space = block.space
        if self._writer is None:
            columns = ["importance", "tag"]
            if space is not None and space.names is not None:
                columns.append("names")
                self._names = _native.NameTable(space.bits, space.name_bytes, recording=True)
            about = {
                "space": None if space is None else space.settings(),
                "asked": {"options": {"positive": self._settings().get("positive")}},
            }
            self._writer = BlocksWriter(self._file, about, columns)
        names = None
        if self._names is not None and space is not None and space.names is not None:
            self._taken = self._names.merge(space.names, self._taken)
            names = self._names.take_changes()
        self._writer.write(block, names=names)

    def close(self) -> None:
        """Write the end of the file, which stays open."""
        assert self._writer is not None
        settings = self._settings()
        zero_based = settings.get("zero_based")
        found = {} if zero_based is None else {"zero_based": zero_based}
        self._writer.close({"found": found, "classes": settings.get("classes")})
