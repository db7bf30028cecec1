"""Frames in memory: what exports its columns through the Arrow PyCapsule interface, or through `__dataframe__`.

pandas, Polars, DuckDB and pyarrow do, and none of them is imported here: the first interface is read by
native/arrow/rows.hpp, without copying; the second, for pandas without pyarrow, by interchange.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rarestream.readers.formats import Format
from rarestream.readers.tables import TableOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rarestream import _native
    from rarestream.blocks import Block
    from rarestream.readers.reading import Reading
    from rarestream.readers.sources import Source


@dataclass(frozen=True, kw_only=True)
class FrameOptions(TableOptions):
    """The options of frames."""


def read(reading: Reading) -> Iterator[Block]:
    """Yield the rows of frames."""
    from rarestream.readers.batches import read_batches

    return read_batches(reading, FrameTable)


class FrameTable:
    """A frame; a `rarestream.readers.batches.Table`."""

    def __init__(self, source: Source) -> None:
        from rarestream import _native
        from rarestream.readers.interchange import Interchange

        frame = source.data
        self._stream: _native.ArrowStream | None = None
        self._batch: _native.ArrowBatch | None = None
        self._frame: Interchange | None = None
        if hasattr(frame, "__arrow_c_stream__"):
            try:
                self._stream = _native.ArrowStream(frame.__arrow_c_stream__())
            except ImportError:  # of pandas without pyarrow
                if not hasattr(frame, "__dataframe__"):
                    raise
        elif hasattr(frame, "__arrow_c_array__"):
            self._batch = _native.ArrowBatch(*frame.__arrow_c_array__())
        opened = self._stream or self._batch
        if opened is not None:
            self.names: Sequence[str] = _own_columns(frame, [name for name, _ in opened.columns])
        else:
            self._frame = Interchange(frame)
            self.names = self._frame.names

    def batches(self, wanted: Sequence[str]) -> Iterator[tuple[_native.ArrowBatch, int]]:
        rows = 0
        for batch in self._all(wanted):
            rows += len(batch)
            yield batch, rows

    def _all(self, wanted: Sequence[str]) -> Iterator[_native.ArrowBatch]:
        if self._batch is not None:
            yield self._batch
        elif self._frame is not None:
            yield from self._frame.batches(wanted)
        while self._stream is not None and (batch := self._stream.next()) is not None:
            yield batch

    def close(self) -> None:
        self._stream = self._batch = self._frame = None


def _own_columns(frame: Any, names: list[str]) -> list[str]:
    """Return the columns without those of the index, which pandas exports too."""
    if not hasattr(frame, "iloc"):
        return names
    own = {str(name) for name in frame.columns}
    return [name for name in names if name in own]


FORMAT = Format("frame", (), FrameOptions, read, "Frames in memory: pandas, Polars, DuckDB, pyarrow.", files=False)
