"""Parquet files, read with pyarrow: the row groups one after the other, and only the columns that are needed."""

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

BUFFER = 1 << 20  # bytes of a column that are read at once, so that memory does not depend on the size of row groups
DICTIONARY = 3 << 19  # bytes of a dictionary, at most; writers give one up at 1 MB


@dataclass(frozen=True, kw_only=True)
class ParquetOptions(TableOptions):
    """The options of Parquet files."""


def read(reading: Reading) -> Iterator[Block]:
    """Yield the rows of Parquet files."""
    from rarestream.readers.batches import pyarrow, read_batches

    pyarrow("Parquet")
    return read_batches(reading, lambda source: ParquetTable(source, reading.threads > 0))


class ParquetTable:
    """An open Parquet file; a `rarestream.readers.batches.Table`."""

    def __init__(self, source: Source, threads: bool) -> None:
        import pyarrow.parquet

        from rarestream.errors import DataError

        if not source.replayable:
            raise DataError(f"{source.name}: Parquet cannot be read from a pipe. Save it to a file first.")
        self._source = source
        self._threads = threads
        if source.path is None:
            source.file.seek(source.start)
        self._metadata = pyarrow.parquet.read_metadata(self._place)
        self.names: Sequence[str] = self._metadata.schema.to_arrow_schema().names
        self._file: Any = None

    @property
    def _place(self) -> Any:
        return self._source.file if self._source.path is None else self._source.path

    def batches(self, wanted: Sequence[str]) -> Iterator[tuple[_native.ArrowBatch, int]]:
        import pyarrow.parquet

        from rarestream.readers.batches import exported, rows_at_once

        size = rows_at_once(len(wanted))
        self._file = pyarrow.parquet.ParquetFile(
            self._place, metadata=self._metadata, buffer_size=BUFFER, read_dictionary=self._dictionaries(set(wanted))
        )
        rows, total = 0, max(1, self._metadata.num_rows)
        for batch in self._file.iter_batches(size, columns=list(wanted), use_threads=self._threads):
            rows += batch.num_rows
            yield exported(batch), (self._source.size or 0) * rows // total

    def _dictionaries(self, wanted: set[str]) -> list[str]:
        """Return the columns of text that are stored as dictionaries: each of their texts is then read and hashed once.

        A writer that gave up its dictionary for being too large has stored most texts themselves. Only the size shows it.
        """
        if self._metadata.num_row_groups == 0:
            return []
        group = self._metadata.row_group(0)
        found = []
        for i in range(group.num_columns):
            column = group.column(i)
            small = column.total_uncompressed_size <= 4 * column.num_values + DICTIONARY
            if column.path_in_schema in wanted and column.physical_type == "BYTE_ARRAY" and column.has_dictionary_page:
                found += [column.path_in_schema] if small else []
        return found

    def close(self) -> None:
        if self._file is not None and self._source.path is not None:
            self._file.close()


FORMAT = Format("parquet", (".parquet", ".pq"), ParquetOptions, read, "Parquet files.")
