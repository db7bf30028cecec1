"""The rows of a comparison: read, identified, split, scaled, and shared between processes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block, concatenate
from rarestream.errors import DataError, advice, plain
from rarestream.readers import read
from rarestream.study.splits import PART_NAMES, Split, TrialBlocks, cut

ARRAYS = ("indptr", "indices", "values", "labels", "importances")


class LoadedRows(NamedTuple):
    """Rows in memory, and those that were refused."""

    block: Block
    refused: int
    refusals: Sequence[str]  # the first of them
    unlabelled: int = 0  # rows left out because they have no label
    notes: Sequence[str] = ()  # what the first rows decided, and what became of a cache


def load_rows(data: list[str], max_rows: int | None = None, **how: Any) -> LoadedRows:
    """Read the first rows of files into memory; `how` as for `read`."""
    stream, blocks, rows = read(data, **how), [], 0
    for block in stream:
        blocks.append(block)
        rows += len(block)
        if max_rows is not None and rows >= max_rows:
            break
    block = compact(concatenate(blocks)[:max_rows])
    notes = [*stream.notes, *stream.cache_notes]
    return LoadedRows(block, stream.refused, stream.refusals, stream.unlabelled, notes)


def compact(block: Block) -> Block:
    """Return rows of hashed features as columns numbered without gaps, in the order of their slots.

    Methods learn the same from them, in the memory of the features that occur, not of all slots.
    """
    if block.space is None:
        return block
    slots, columns = np.unique(block.indices, return_inverse=True)
    return Block(
        block.indptr,
        columns.astype(np.int32),
        block.values,
        len(slots),
        block.labels,
        block.importances,
        block.tags,
    )


def data_name(data: Sequence[str]) -> str:
    """Return the name of some files in the results."""
    first = "standard input" if data[0] == "-" else plain(Path(data[0]).name)
    return first if len(data) == 1 else f"{first} and {len(data) - 1} more"


def fingerprint(block: Block) -> str:
    """Return a checksum of the rows: results of other rows are not mixed with these."""
    crc = 0
    for name in ARRAYS:
        part = getattr(block, name)
        if part is not None:
            crc = zlib.crc32(np.ascontiguousarray(part).data, crc)
    return f"{crc:08x}"


def split(n: int, trial: int, seed: int | None) -> Split:
    """Split n rows for a trial: permuted with the seed, or in order if it is None."""
    return cut(np.arange(n) if seed is None else np.random.default_rng([seed, trial]).permutation(n))


def trial_blocks(block: Block, trial: int, seed: int | None) -> TrialBlocks:
    """Return the rows of a trial."""
    return TrialBlocks(*(block.take(rows) for rows in split(len(block), trial, seed)))


def check(block: Block, trials: Iterable[int], seed: int | None) -> None:
    """Raise DataError unless every part of every trial has rows of both classes."""
    if not len(block):
        raise DataError("compare: there are no rows.")
    if block.labels is None:
        raise DataError("compare: the rows have no labels, and methods are compared by them.")
    positives = int(np.count_nonzero(block.labels > 0))
    if positives in (0, len(block)):
        one = "positive" if positives else "negative"
        raise DataError(
            f"compare: all {len(block):,} rows are {one}, but ranking needs both classes. Which label is positive?"
        )
    for trial in trials:
        for part, rows in split(len(block), trial, seed)._asdict().items():
            here = int(np.count_nonzero(block.labels[rows] > 0))
            if here in (0, len(rows)):
                missing = "negative" if here else "positive"
                way_on = "try another seed" if seed is not None else f"drop {advice('in_order', '--in-order')}"
                raise DataError(
                    f"compare: the {PART_NAMES[part]} part of trial {trial} has no {missing} row: {positives:,} "
                    f"positives among {len(block):,} rows are too few to be learned, tuned and tested with, or are "
                    f"next to one another. Use more rows, or {way_on}."
                )


# -- shared between processes: one file per array, mapped into memory


def save_block(block: Block, folder: str) -> None:
    """Save the rows to a folder."""
    for name in ARRAYS:
        if getattr(block, name) is not None:
            np.save(Path(folder) / name, getattr(block, name))


def load_block(folder: str) -> Block:
    """Load the rows of a folder; they are read from the disk as they are needed."""
    arrays = {
        name: np.load(place, mmap_mode="r") for name in ARRAYS if (place := Path(folder) / f"{name}.npy").exists()
    }
    return Block(**arrays, width=int(arrays["indices"].max(initial=-1)) + 1)


# -- scaled as a Model scales them, for methods that do not


def scaled(rows: TrialBlocks, scale: str) -> TrialBlocks:
    """Return the rows as a Model of that scale sees them; "max" divides by the largest values of the training rows."""
    if scale == "none":
        return rows
    largest = None
    if scale == "max":
        largest = np.zeros(rows.train.width, np.float32)
        np.maximum.at(largest, rows.train.indices, np.abs(rows.train.values))
        largest[largest == 0] = np.inf  # columns that no training row has
    return TrialBlocks(*(_unit(block, largest) for block in rows))


def _unit(block: Block, largest: NDArray[np.float32] | None) -> Block:
    values = block.values if largest is None else block.values / largest[block.indices]
    row_of = np.repeat(np.arange(len(block)), np.diff(block.indptr))
    norms = np.sqrt(np.bincount(row_of, np.square(values, dtype=np.float64), len(block)))
    norms[norms == 0] = 1
    return Block(
        block.indptr,
        block.indices,
        (values / norms[row_of]).astype(np.float32),
        block.width,
        block.labels,
        block.importances,
    )
