"""Frames through `__dataframe__`, the interchange protocol, as batches in Arrow's layout.

pandas without pyarrow has no other interface. Columns of numbers, booleans, text, categories and dates are read; their
memory is used as it is, but masks are packed into bits.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.errors import DataError, plain

# Of the protocol: kinds of columns, and how they mark missing values.
BOOLEAN, STRING, CATEGORICAL = 20, 21, 23
NOT_NULLABLE, NAN, SENTINEL, BITS, BYTES = range(5)

Bytes = NDArray[np.uint8]


class Interchange:
    """A frame as batches, one for each of its chunks."""

    def __init__(self, frame: Any) -> None:
        with warnings.catch_warnings():  # pandas calls the protocol deprecated: users cannot do anything about it
            warnings.simplefilter("ignore")
            self._frame = frame.__dataframe__()
        self.names = [str(name) for name in self._frame.column_names()]

    def batches(self, wanted: Sequence[str]) -> Iterator[_native.ArrowBatch]:
        """Yield batches of the wanted columns."""
        for chunk in self._frame.get_chunks():
            columns = [_column(name, chunk.get_column(i)) for i, name in enumerate(self.names) if name in wanted]
            yield _native.ArrowBatch.of_buffers(columns, chunk.num_rows())


def _column(name: str, column: Any) -> tuple[Any, ...]:
    """Return name, Arrow format, buffers and dictionary of a column."""
    try:
        if column.dtype[0] == CATEGORICAL:
            return _categories(name, column)
        format, buffers = _values(column)
    except (NotImplementedError, TypeError, ValueError) as error:
        reason = plain(str(error).split("\n")[0].rstrip("."))
        raise DataError(
            f"<frame>: column {plain(name)!r} cannot be read: {reason}. Convert it, for example with astype(str), or "
            "install pyarrow."
        ) from None
    return name, format, buffers, None


def _values(column: Any) -> tuple[str, list[Bytes | None]]:
    kind, bits, format, _ = column.dtype
    size, buffers = column.size(), column.get_buffers()
    data, _ = buffers["data"]
    validity = _validity(column, buffers)
    if kind == STRING:
        offsets, (_, offset_bits, *_) = buffers["offsets"]
        begin, end = column.offset * offset_bits // 8, (column.offset + size + 1) * offset_bits // 8
        return "U" if offset_bits == 64 else "u", [validity, _memory(offsets)[begin:end], _memory(data)]
    if kind == BOOLEAN and bits == 8:
        return "b", [validity, np.packbits(_memory(data)[column.offset : column.offset + size] != 0, bitorder="little")]
    if bits == 1:
        found = np.unpackbits(_memory(data), bitorder="little")[column.offset : column.offset + size]
        return "b", [validity, np.packbits(found, bitorder="little")]
    width = bits // 8
    return format, [validity, _memory(data)[column.offset * width : (column.offset + size) * width]]


def _categories(name: str, column: Any) -> tuple[Any, ...]:
    categories = column.describe_categorical["categories"]
    if categories is None:
        raise ValueError("its categories are not a column")
    its_format, buffers = _values(column)
    entry_format, entries = _values(categories)
    return name, its_format, buffers, (entry_format, categories.size(), entries)


def _validity(column: Any, buffers: dict[str, Any]) -> Bytes | None:
    """Return the bits of values that are not missing; None if all are there, or NaN marks those that are not."""
    how, mark = column.describe_null
    size, first = column.size(), column.offset
    if how in (NOT_NULLABLE, NAN):
        return None
    if how == SENTINEL:
        data, (_, bits, *_) = buffers["data"]
        values = _memory(data).view(f"i{bits // 8}")[first : first + size]
        return np.packbits(values != mark, bitorder="little")
    if buffers["validity"] is None:
        return None
    memory = _memory(buffers["validity"][0])
    found = np.unpackbits(memory, bitorder="little") if how == BITS else memory
    return np.packbits(found[first : first + size] != mark, bitorder="little")


def _memory(buffer: Any) -> Bytes:
    """Return the memory of a buffer, which is kept as long as the array is."""
    if buffer.bufsize == 0:
        return np.zeros(1, np.uint8)
    holder = (ctypes.c_uint8 * buffer.bufsize).from_address(buffer.ptr)
    holder.owner = buffer
    return np.frombuffer(holder, np.uint8)
