"""Helpers of the reader tests: rows to svmlight text, text to Blocks, Blocks to plain rows."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from hypothesis import strategies as st

from rarestream import Block
from rarestream.blocks import concatenate
from rarestream.errors import DataError
from rarestream.readers.formats import find_format
from rarestream.readers.sources import expand
from rarestream.readers.stream import Stream

SIGNS = st.sampled_from([-1, 1])
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
INDICES = st.one_of(st.integers(1, 60), st.integers(1, 2**31 - 1))
ROW = st.tuples(SIGNS, st.dictionaries(INDICES, FLOATS, max_size=12))
ROWS = st.lists(ROW, min_size=1, max_size=30)


def text_of_value(value: float, style: int) -> str:
    """The same float32 in the ways files write it."""
    narrow = np.float32(value)
    return [str(narrow), f"{float(narrow):.9g}", repr(float(narrow)), f"{float(narrow):.17e}"][style % 4]


def text_of_rows(rows: list[tuple[int, dict[int, float]]], style: int = 0) -> bytes:
    lines = [
        " ".join([str(label), *(f"{j}:{text_of_value(x, style)}" for j, x in features.items())])
        for label, features in rows
    ]
    return ("\n".join(lines) + "\n").encode()


def stream_of(data: bytes, **options: Any) -> Stream:
    """A Stream over bytes."""
    return stream_over(io.BytesIO(data), **options)


def stream_over(source: Any, *, rows: int = 8192, **options: Any) -> Stream:
    """What `read` returns, with the sizes that only tests change: chunk and longest_line."""
    sources = expand(source)
    sizes = {word: options.pop(word) for word in ("chunk", "longest_line") if word in options}
    format = find_format(None, sources)
    return Stream(sources, format, format.make_options(**options), rows=rows, **sizes)


def until_error(stream: Stream) -> tuple[list[Block], str]:
    """The blocks that came before a DataError, and what it said."""
    blocks = []
    try:
        for block in stream:
            blocks.append(block)
    except DataError as error:
        return blocks, str(error)
    raise AssertionError("no DataError came")


def plain(blocks: list[Block]) -> list[Any]:
    """Blocks as lists that compare with ==, every field of every block."""
    fields = ("indptr", "indices", "values", "width", "labels", "importances", "tags")
    return [
        [value.tolist() if isinstance(value, np.ndarray) else value for value in (getattr(b, f) for f in fields)]
        for b in blocks
    ]


def same(left: list[Block], right: list[Block]) -> bool:
    """The same rows, wherever the blocks were cut."""
    return plain([concatenate(left)]) == plain([concatenate(right)])
