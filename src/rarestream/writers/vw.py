"""Writes rows as Vowpal Wabbit text: `[label [importance]] ['tag]|namespace name[:value] ...`, one row per line.

Hashed features are written by their names, so that they have the same slots again. A name that VW text cannot hold, for
a blank, a colon, a bar or a control character in it, or because it is empty, is written with _ in their place, and with
a few letters that give it the same slot; so is the slot of a name that is not known. Columns are written as their
numbers, without a namespace. The text is made by native/write_text.hpp; readers/formats/vw.py reads it.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import Block
from rarestream.errors import RowError, advice, plain
from rarestream.features import Hashed
from rarestream.writers.fields import importance_numbers, label_numbers, tag_texts

SEPARATOR = re.compile(r"[\x00-\x20|]")  # what a tag cannot have
USUAL_BITS = 22  # that a reader of VW text hashes to
NO_TEXT, NO_ENDS = np.zeros(0, np.uint8), np.zeros(0, np.int64)


class VwWriter:
    """Writes Blocks as VW text; a `rarestream.writers.registry.Writer`.

    Parameters
    ----------
    file : binary file
        Where the text goes.
    first : {0, 1}
        The number of the first column, for rows whose features are column numbers.
    """

    def __init__(self, file: BinaryIO, first: int = 1) -> None:
        self._file = file
        self._first = first
        self._space: Hashed | None = None
        self._core: _native.VwWriter | None = None

    def write(self, block: Block) -> None:
        if self._core is None or block.space is not self._space:
            self._space = block.space
            bits, names = (0, None) if block.space is None else (block.space.bits, block.space.names)
            self._core = _native.VwWriter(bits=bits, first=self._first, names=names)
        tags, ends = (NO_TEXT, NO_ENDS) if block.tags is None else _tags(block.tags)
        text = self._core.text(
            block.indptr,
            block.indices,
            block.values,
            label_numbers(block, "VW text"),
            importance_numbers(block),
            tags,
            ends,
        )
        self._file.write(text.data)

    def close(self) -> None:
        pass

    @property
    def notes(self) -> list[str]:
        core, space = self._core, self._space
        if core is None:
            return []
        found = []
        if space is None:
            found.append("Columns have no names: VW text has their numbers as names, which are hashed when it is read.")
        elif space.bits != USUAL_BITS:
            option = advice(f"bits={space.bits}", f"--bits {space.bits}")
            found.append(f"Features have {space.bits} bits: for the same slots, read the file with {option}.")
        if known := core.replaced - core.unknown:
            stored, written = (plain(name) for name in core.examples[0])
            names = "1 name has" if known == 1 else f"{known:,} names have"
            found.append(
                f"{names} characters that VW text cannot hold, or none, such as {stored}, written as {written}. "
                "The letters after ~ keep the slot of the feature."
            )
        if core.unknown:
            names = "name of 1 feature is" if core.unknown == 1 else f"names of {core.unknown:,} features are"
            found.append(f"The {names} not known: written is slot, its number, and after ~ letters that keep the slot.")
        if core.zeros:
            values = "1 value of 0 is" if core.zeros == 1 else f"{core.zeros:,} values of 0 are"
            found.append(f"{values} left out: VW text does not have them.")
        if core.dropped_importances:
            rows = core.dropped_importances
            found.append(
                f"The importance of {rows:,} row{'' if rows == 1 else 's'} without a label is left out: in VW text it "
                "comes after a label."
            )
        return found


def _tags(tags: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the text of all tags, one after the other, and where each ends."""
    texts = tag_texts(tags)
    if SEPARATOR.search("".join(texts)):
        row = next(number for number, tag in enumerate(texts) if SEPARATOR.search(tag))
        raise RowError(
            "convert",
            row,
            f"has the tag {texts[row]!r}, but a tag of VW text has no blank, bar or control character. "
            f"{advice('Leave out tag=', 'Drop --tag')}, or name a column without them.",
        )
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), ends
