"""Shuffles rows into an order that depends only on a seed.

Row i gets a 64-bit key computed from (seed, i), and rows are sorted by key: in memory if they fit, otherwise with
temporary files, one for each range of keys, each small enough to be sorted in memory. Both give the same order. No two
rows have the same key, because the key is a bijection of i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rarestream.blocks import Block, concatenate
from rarestream.errors import DataError, advice
from rarestream.features import Hashed
from rarestream.system import free_memory

if TYPE_CHECKING:
    from pathlib import Path

Keys = NDArray[np.uint64]
Spaces = list[Hashed | None]  # of the blocks in temporary files, which hold only their numbers

LEAST = 1 << 20  # bytes; less would need too many files
BITS = 6  # of the key that choose the file: 64 files per round
OUT = 8192  # rows per shuffled piece

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15  # odd, so that multiples of it run through all 64-bit numbers
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def keys(seed: int, first: int, count: int) -> Keys:
    """Return the keys of rows first, first + 1, ... They are SplitMix64's numbers, which can start anywhere."""
    start = _mixed(np.array([seed & _MASK], np.uint64))[0]
    rows = np.arange(first, first + count, dtype=np.uint64)
    return _mixed(start + (rows + np.uint64(1)) * np.uint64(_STEP))


def _mixed(x: Keys) -> Keys:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_SECOND)
    return x ^ (x >> np.uint64(31))


def row_of(seed: int, key: int) -> int:
    """Return the number of the row that has this key: the inverse of `keys`."""
    x = _unshifted(key, 31) * pow(_SECOND, -1, 1 << 64) & _MASK
    x = _unshifted(x, 27) * pow(_FIRST, -1, 1 << 64) & _MASK
    start = int(_mixed(np.array([seed & _MASK], np.uint64))[0])
    return ((_unshifted(x, 30) - start) * pow(_STEP, -1, 1 << 64) - 1) & _MASK


def _unshifted(x: int, by: int) -> int:
    """Return the y with y ^ (y >> by) = x."""
    higher = x
    while higher := higher >> by:
        x ^= higher
    return x


def shuffled(
    blocks: Iterator[Block],
    seed: int,
    memory: int,
    total: Callable[[int], None] | None = None,
    coming: Callable[[Keys], None] | None = None,
) -> Iterator[Block]:
    """Yield the rows of all blocks in the order of their keys, using about `memory` bytes.

    `total` is called with the number of rows as soon as it is known, which is before the first piece is yielded;
    `coming` is called with the keys of each piece before it is yielded.
    """
    for block, key in _shuffled(blocks, seed, memory, total):
        if coming is not None:
            coming(key)
        yield block


def _shuffled(
    blocks: Iterator[Block], seed: int, memory: int, total: Callable[[int], None] | None
) -> Iterator[tuple[Block, Keys]]:
    waiting: list[Block] = []
    held = rows = 0
    for block in blocks:
        waiting.append(block)
        held += _bytes(block)
        rows += len(block)
        if 2 * held > memory:  # sorting needs a copy
            break
    else:
        if total is not None:
            total(rows)
        if waiting:
            yield from _in_order(waiting, keys(seed, 0, rows))
        return
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="rarestream-shuffle-") as folder:
        keyed = _keyed(chain(waiting, blocks), seed, total)
        waiting = []
        yield from _through_files(keyed, Path(folder), 64 - BITS, memory)


def _keyed(blocks: Iterator[Block], seed: int, total: Callable[[int], None] | None) -> Iterator[tuple[Block, Keys]]:
    rows = 0
    for block in blocks:
        yield block, keys(seed, rows, len(block))
        rows += len(block)
    if total is not None:
        total(rows)


def _in_order(blocks: list[Block], key: Keys) -> Iterator[tuple[Block, Keys]]:
    block = concatenate(blocks)
    blocks.clear()
    order = np.argsort(key)
    for start in range(0, len(order), OUT):
        some = order[start : start + OUT]
        yield block.take(some), key[some]


def _through_files(
    keyed: Iterator[tuple[Block, Keys]], folder: Path, shift: int, memory: int, spaces: Spaces | None = None
) -> Iterator[tuple[Block, Keys]]:
    """Split rows into files by the bits of their keys from `shift` on, then sort file by file."""
    spaces = [] if spaces is None else spaces
    for file, held, rows in _split(keyed, folder, shift, memory, spaces):
        if 2 * held > memory and rows > 1 and shift > 0:
            inner = folder / f"{file.name}.d"
            inner.mkdir()
            yield from _through_files(_pieces(file, spaces), inner, max(0, shift - BITS), memory, spaces)
        else:
            pieces = list(_pieces(file, spaces))
            yield from _in_order([block for block, _ in pieces], np.concatenate([key for _, key in pieces]))
        file.unlink()


def _split(
    keyed: Iterator[tuple[Block, Keys]], folder: Path, shift: int, memory: int, spaces: Spaces
) -> list[tuple[Path, int, int]]:
    """Write the rows to files, one for every value of the bits. Returns the files in order, with bytes and rows."""
    count = 1 << BITS
    held, rows = [0] * count, [0] * count
    paths = [folder / f"{bucket:02}" for bucket in range(count)]
    files: dict[int, BinaryIO] = {}
    with ExitStack() as stack:
        for block, key in _grouped(keyed, memory // 4):
            bucket = (key >> np.uint64(shift)).astype(np.int64) % count
            order = np.argsort(bucket, kind="stable")
            bounds = np.searchsorted(bucket[order], np.arange(count + 1))
            for i in np.flatnonzero(np.diff(bounds)).tolist():
                some = order[bounds[i] : bounds[i + 1]]
                piece = block.take(some)
                held[i] += _bytes(piece)
                rows[i] += len(piece)
                try:
                    if i not in files:
                        files[i] = stack.enter_context(paths[i].open("wb"))
                    _write(files[i], piece, key[some], spaces)
                    files[i].flush()
                except OSError as error:
                    raise _unwritable(folder, error) from None
    return [(paths[i], held[i], rows[i]) for i in range(count) if rows[i]]


def _grouped(keyed: Iterator[tuple[Block, Keys]], size: int) -> Iterator[tuple[Block, Keys]]:
    """Join blocks until they hold about `size` bytes, so that writes are not too small."""
    blocks: list[Block] = []
    some_keys: list[Keys] = []
    held = 0
    for block, key in keyed:
        blocks.append(block)
        some_keys.append(key)
        held += _bytes(block)
        if held >= size:
            yield concatenate(blocks), np.concatenate(some_keys)
            blocks, some_keys, held = [], [], 0
    if blocks:
        yield concatenate(blocks), np.concatenate(some_keys)


def _write(file: BinaryIO, block: Block, key: Keys, spaces: Spaces) -> None:
    optional = (block.labels, block.importances, block.tags, block.classes)
    if block.space not in spaces:
        spaces.append(block.space)
    there = np.array([*(field is not None for field in optional), spaces.index(block.space)])
    required = (key, there, block.indptr, block.indices, block.values)
    for array in (*required, *(field for field in optional if field is not None)):
        npy.write_array(file, np.ascontiguousarray(array), allow_pickle=False)


def _pieces(path: Path, spaces: Spaces) -> Iterator[tuple[Block, Keys]]:
    with path.open("rb") as file:
        while file.peek(1):
            key, there, indptr, indices, values = (npy.read_array(file) for _ in range(5))
            optional = [npy.read_array(file) if field else None for field in there[:-1]]
            labels, importances, tags, classes = optional
            width = int(indices.max()) + 1 if len(indices) else 0
            space = spaces[there[-1]]
            yield Block(indptr, indices, values, width, labels, importances, tags, space=space, classes=classes), key


def _bytes(block: Block) -> int:
    """Bytes of a block and its keys in memory."""
    fields: list[NDArray[Any] | None] = [block.labels, block.importances, block.tags, block.classes]
    return 16 * len(block) + 8 * block.nonzeros + sum(field.nbytes for field in fields if field is not None)


def _unwritable(folder: Path, error: OSError) -> DataError:
    return DataError(
        f"shuffle: cannot write temporary files to {folder}: {error.strerror or error}. The rows do not "
        "fit in the memory allowed. Free some space there, "
        + advice(
            "set TMPDIR to a disk with more space, or pass a larger memory=.",
            "or set TMPDIR to a disk with more space.",
        )
    )


def default_memory() -> int:
    """Return a quarter of the free memory, and at least 64 MiB."""
    return max(free_memory() // 4, 64 << 20)
