"""Writes rows as svmlight text: `label [qid:N] [cost:W] index:value ...`, one row per line, indices from 1.

Importances are written as `cost`, and tags that are whole numbers as `qid`. The slots of hashed features are written as
column numbers: their names are gone. The text is made by native/write_text.hpp; readers/formats/svmlight.py reads it.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import Block
from rarestream.errors import RowError, advice
from rarestream.writers.fields import importance_numbers, label_numbers, tag_texts

NO_QIDS = np.zeros(0, np.int64)


class SvmlightWriter:
    """Writes Blocks as svmlight text; a `rarestream.writers.registry.Writer`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hashed = False

    def write(self, block: Block) -> None:
        labels = label_numbers(block, "svmlight")
        if np.isnan(labels).any():
            row = int(np.flatnonzero(np.isnan(labels))[0])
            drop = advice('unlabelled="drop"', "--unlabelled drop")
            raise RowError(
                "convert",
                row,
                f"has no label, which svmlight needs. To leave such rows out, pass {drop}; VW text can hold them.",
            )
        self._hashed |= block.space is not None
        text = _native.svmlight_text(
            block.indptr,
            block.indices,
            block.values,
            labels,
            importance_numbers(block),
            NO_QIDS if block.tags is None else _qids(block.tags),
            block.classes is None,
        )
        self._file.write(text.data)

    def close(self) -> None:
        pass

    @property
    def notes(self) -> list[str]:
        if not self._hashed:
            return []
        return ["The names of features are gone: svmlight has the numbers of their slots as columns, from 1."]


def _qids(tags: NDArray[Any]) -> NDArray[np.int64]:
    """Return tags as whole numbers, -1 where there is none."""
    if tags.dtype.kind in "iu":
        return np.ascontiguousarray(tags, np.int64)
    found = np.full(len(tags), -1, np.int64)
    for row, tag in enumerate(tag_texts(tags)):
        if not tag:
            continue
        whole = tag.isascii() and tag.isdigit() and (tag == "0" or not tag.startswith("0")) and len(tag) < 20
        if not whole or int(tag) > np.iinfo(np.int64).max:
            raise RowError(
                "convert",
                row,
                f"has the tag {tag!r}, but the qid of svmlight is a whole number. "
                f"{advice('Leave out tag=', 'Drop --tag')}, or write VW text.",
            )
        found[row] = int(tag)
    return found
