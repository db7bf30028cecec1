"""The rows of Parquet and Arrow files, with the text or time of a column. They are read and written with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from rarestream.errors import DataError, RarestreamError, advice, plain
from rarestream.features import Hashed
from rarestream.features.faults import cell_message
from rarestream.features.plan import TablePlan
from rarestream.readers.batches import exported, pyarrow, rows_at_once
from rarestream.readers.formats.arrow import ArrowTable
from rarestream.readers.labels import LabelRule
from rarestream.readers.parser import ParsedRows, parsed_rows
from rarestream.readers.refusals import Refusals
from rarestream.readers.sources import Source
from rarestream.readers.tables import PlannedTable, TableOptions, no_such_column
from rarestream.splitting.rules import Parts
from rarestream.splitting.text_rows import Piece
from rarestream.writers.files import whole_together

GROUP_ROWS, GROUP_BYTES = 1 << 20, 32 << 20  # of a row group that is written


class BatchRows:
    """One pass over the rows of Parquet or Arrow files; as `TextRows`."""

    def __init__(self, sources: Sequence[Source], format: str, options: TableOptions, column: str | None) -> None:
        pyarrow("Parquet" if format == "parquet" else "Arrow files")
        self._sources, self._format, self._column = sources, format, column
        self.refusals = Refusals(options.max_bad_rows)
        self._wanted = [name for name in (options.label, options.tag) if name is not None]
        plan = TablePlan(missing=options.missing, label=options.label, tag=options.tag)
        self._table = PlannedTable(Hashed(1, names=False), plan) if self._wanted else None
        self._rule = LabelRule(options.positive, optional=True)
        self._labelled = options.label is not None
        self.schema: Any = None
        self.codec = "none"  # of Parquet
        self.stream = False  # of Arrow
        self.keyed = False

    def pieces(self) -> Iterator[Piece]:
        """Yield all rows, in order."""
        for source in self._sources:
            before = 0
            for batch in self._batches(source):
                parsed = self._parsed(source.name, before, batch)
                texts = None if parsed is None or not parsed.tags else list(map(str, parsed.tags))
                labels = None
                if parsed is not None and self._labelled:
                    labels = self._rule.signs(parsed.labels, parsed.label_texts)
                self.keyed |= texts is not None
                yield Piece(batch.num_rows, texts, labels, partial(_place, source.name, before), partial(_split, batch))
                before += batch.num_rows
        if self._column is not None and not self.keyed:
            raise DataError(f"split: no row has anything in the column {self._column!r}.")

    def _batches(self, source: Source) -> Iterator[Any]:
        try:
            yield from self._parquet(source) if self._format == "parquet" else self._arrow(source)
        except RarestreamError:
            raise
        except Exception as error:
            reason = plain(str(error).strip().split("\n")[0].rstrip(".")) or type(error).__name__
            raise DataError(f"{source.name}: cannot be read: {reason}.") from None

    def _parquet(self, source: Source) -> Iterator[Any]:
        import pyarrow.parquet

        if not source.replayable:
            raise DataError(f"{source.name}: Parquet cannot be read from a pipe. Save it to a file first.")
        with pyarrow.parquet.ParquetFile(source.path or source.file) as file:
            self._check(source, file.schema_arrow)
            if file.metadata.num_row_groups and file.metadata.num_columns:
                self.codec = file.metadata.row_group(0).column(0).compression.lower()
            yield from file.iter_batches(rows_at_once(len(self.schema.names)))

    def _arrow(self, source: Source) -> Iterator[Any]:
        with closing(ArrowTable(source, threads=True)) as table:
            self._check(source, table.schema)
            self.stream = not table.is_file
            size = rows_at_once(len(self.schema.names))
            for batch in table.record_batches():
                for start in range(0, batch.num_rows, size):
                    yield batch.slice(start, size)

    def _check(self, source: Source, schema: Any) -> None:
        for name in self._wanted:
            if name not in schema.names:
                raise no_such_column(
                    advice("column", "--column") if name == self._column else "label", name, schema.names
                )
        if self.schema is None:
            self.schema = schema
        elif not schema.equals(self.schema):
            raise DataError(
                f"{source.name}: its columns are not those of {self._sources[0].name}, with the same types and in the "
                "same order, so the rows of both do not fit in one file. Split the files apart."
            )

    def _parsed(self, name: str, before: int, batch: Any) -> ParsedRows | None:
        if self._table is None:
            return None
        wanted = batch.select(self._wanted)
        rows = parsed_rows(
            self._table.parser.parse_arrow(
                exported(wanted),
                columns=[self._table.numbers[column] for column in self._wanted],
                start=0,
                stop=batch.num_rows,
                stop_after=1,
            )
        )
        for bad in rows.bad:
            raise DataError(f"{_place(name, before, bad.line)}: {cell_message(bad.rule, bad.field, bad.token)}")
        return rows


def _place(name: str, before: int, row: int) -> str:
    return f"{name}: row {before + row}"


def _split(batch: Any, parts: Parts, count: int) -> list[Any]:
    return [batch.take(np.flatnonzero(parts == part)) for part in range(count)]


@contextmanager
def batch_outputs(names: Sequence[str], format: str) -> Iterator[list[BatchOutput]]:
    """Open files for the parts, which appear together at the end."""
    with whole_together(names) as files:
        outputs = [BatchOutput(file, format, name) for file, name in zip(files, names, strict=True)]
        try:
            yield outputs
        except BaseException:
            for output in outputs:
                output.abandon()
            raise


class BatchOutput:
    """The file of a part. Rows are collected until they make a row group."""

    def __init__(self, file: BinaryIO, format: str, name: str) -> None:
        self._file, self._format, self._name = file, format, name
        self._writer: Any = None
        self._batches: list[Any] = []

    def start(self, rows: BatchRows) -> None:
        if self._format == "parquet":
            import pyarrow.parquet

            codec = {"uncompressed": "none"}.get(rows.codec, rows.codec)
            self._writer = pyarrow.parquet.ParquetWriter(self._file, rows.schema, compression=codec)
        else:
            import pyarrow.ipc

            packed = self._name.lower().endswith(".feather")  # as pyarrow packs them by default
            options = pyarrow.ipc.IpcWriteOptions(compression="lz4" if packed else None)
            opener = pyarrow.ipc.new_stream if rows.stream else pyarrow.ipc.new_file
            self._writer = opener(self._file, rows.schema, options=options)

    def write(self, batch: Any) -> None:
        if batch.num_rows:
            self._batches.append(batch)
        if (
            sum(one.num_rows for one in self._batches) >= GROUP_ROWS
            or sum(one.nbytes for one in self._batches) >= GROUP_BYTES
        ):
            self._flush()

    def _flush(self) -> None:
        import pyarrow

        if self._batches:
            table = pyarrow.Table.from_batches(self._batches)
            self._batches = []
            try:
                self._writer.write_table(table)
            except pyarrow.ArrowInvalid as error:
                raise DataError(f"{plain(self._name)}: cannot be written: {plain(error)}.") from None

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Close the writer, which would write to its file later, when that is closed; the file will be removed."""
        with suppress(Exception):
            if self._writer is not None:
                self._writer.close()
