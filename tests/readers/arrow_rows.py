"""Helpers of the tests of Arrow tables: rows of a table through one way and another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rarestream import Block, read
from rarestream.blocks import concatenate


def rows_of(source: Any, **options: Any) -> Block:
    """All rows of a source as one Block; labels are 0 where there is none."""
    return together(read(source, **{"labels": "optional", **options}))


def together(stream: Iterable[Block]) -> Block:
    blocks = list(stream)
    labelled = all(block.labels is not None for block in blocks)
    return concatenate(blocks if labelled else [replace(block, labels=None) for block in blocks])


def same(one: Block, other: Block) -> None:
    """Check that two Blocks have the same rows, bit for bit, and that their spaces have the same names."""
    for field in ("indptr", "indices", "values", "labels", "importances"):
        first, second = getattr(one, field), getattr(other, field)
        assert (first is None) == (second is None), field
        assert first is None or first.tobytes() == second.tobytes(), field
    assert named(one) == named(other)


def named(block: Block) -> list[dict[str, float]]:
    """The rows with the names of their features."""
    assert block.space is not None
    names = block.space.shown(block.indices)
    return [
        dict(zip(names[a:b], block.values[a:b].tolist(), strict=True))
        for a, b in zip(block.indptr[:-1].tolist(), block.indptr[1:].tolist(), strict=True)
    ]
