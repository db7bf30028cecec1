"""Arrow IPC files and streams, also called Feather, read with pyarrow; files are memory-mapped."""

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

FILE, FEATHER_1 = b"ARROW1", b"FEA1"  # first bytes


@dataclass(frozen=True, kw_only=True)
class ArrowOptions(TableOptions):
    """The options of Arrow files."""


def read(reading: Reading) -> Iterator[Block]:
    """Yield the rows of Arrow files and streams."""
    from rarestream.readers.batches import pyarrow, read_batches

    pyarrow("Arrow files")
    return read_batches(reading, lambda source: ArrowTable(source, reading.threads > 0))


class ArrowTable:
    """An open Arrow file or stream; a `rarestream.readers.batches.Table`."""

    def __init__(self, source: Source, threads: bool) -> None:
        import pyarrow

        from rarestream.errors import DataError

        self._source = source
        self._threads = threads
        self._own = source.path is not None
        if source.path is None:
            if source.start is not None:
                source.file.seek(source.start)
            self._file: Any = pyarrow.PythonFile(source.file, mode="r")
        elif source.replayable:
            self._file = pyarrow.memory_map(source.path) if source.size else pyarrow.OSFile(source.path)
        else:
            self._file = pyarrow.OSFile(source.path)
        head = self._file.read(len(FILE)) if source.replayable else b""
        if source.replayable:
            self._file.seek(source.start or 0)
        if head.startswith(FEATHER_1):
            raise DataError(
                f"{source.name}: is Feather of version 1, which is no longer written. Convert it: "
                "pandas.read_feather(...).to_feather(...)."
            )
        self.is_file = head == FILE  # else a stream
        self._reader = self._opened(None)
        self.schema: Any = self._reader.schema
        self.names: Sequence[str] = self.schema.names

    def _opened(self, wanted: Sequence[str] | None) -> Any:
        import pyarrow.ipc

        fields = None if wanted is None else [i for i, name in enumerate(self.names) if name in wanted]
        options = pyarrow.ipc.IpcReadOptions(included_fields=fields, use_threads=self._threads)
        opener = pyarrow.ipc.open_file if self.is_file else pyarrow.ipc.open_stream
        return opener(self._file, options=options)

    def batches(self, wanted: Sequence[str]) -> Iterator[tuple[_native.ArrowBatch, int]]:
        from rarestream.readers.batches import exported

        size = self._source.size or 0
        if self.is_file:
            reader = self._opened(wanted) if len(wanted) < len(self.names) else self._reader
            for i in range(reader.num_record_batches):
                yield exported(reader.get_batch(i)), size * (i + 1) // reader.num_record_batches
            return
        for batch in self._reader:  # a stream may come from a pipe: it is not read again for fewer columns
            yield exported(batch), self._file.tell() if self._source.replayable else 0

    def record_batches(self) -> Iterator[Any]:
        """Yield the batches as pyarrow has them, with all columns."""
        if self.is_file:
            for i in range(self._reader.num_record_batches):
                yield self._reader.get_batch(i)
        else:
            yield from self._reader

    def close(self) -> None:
        if self._own:
            self._file.close()


FORMAT = Format("arrow", (".arrow", ".feather", ".ipc", ".arrows"), ArrowOptions, read, "Arrow IPC and Feather files.")
