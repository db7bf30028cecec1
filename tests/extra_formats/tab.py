"""A small format that only tests have: tab-separated text whose heading names the columns.

A cell in double quotes may hold line ends. Every other column is a number; an empty cell is none. All that the package
knows of it is this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rarestream.blocks import Block, seal
from rarestream.errors import DataError
from rarestream.readers.chunks import Chunk
from rarestream.readers.formats import Format
from rarestream.readers.options import FormatOptions, option
from rarestream.readers.parser import BadRow, LineParser, ParsedRows, quoted
from rarestream.readers.reading import Reading
from rarestream.readers.text import read_text


@dataclass(frozen=True, kw_only=True)
class TabOptions(FormatOptions):
    target: str | None = option(None, metavar="COLUMN", help="The column of the label.", cli_default="the first")
    row_id: str | None = option(None, metavar="COLUMN", help="The column of the tag.")
    drop: tuple[str, ...] = option((), metavar="COLUMNS", help="Columns to leave out.")
    base: int = option(0, metavar="N", help="The number of the first column.", min=0, max=9)
    strict: bool = option(False, help="Refuse empty cells.")


class TabParser(LineParser):
    name = "tab"

    def __init__(self, reading: Reading) -> None:
        self.options: TabOptions = reading.options
        self.space = reading.features

    def start(self, chunk: Chunk) -> list[str]:
        heading = chunk.text.tobytes().split(b"\n", 1)[0].decode().split("\t")
        label = self.options.target
        if label is not None and label not in heading:
            raise DataError(f"{chunk.name}:1: no column is called {label!r}; there are {', '.join(heading)}.")
        return heading

    def parse(self, chunk: Chunk, context: Any) -> ParsedRows:
        heading: list[str] = context
        options, texts = self.options, {}
        label_at = 0 if options.target is None else heading.index(options.target)
        rows, labels, tags, lines, bad = [], [], [], [], []
        line = 1
        for number, text in enumerate(_rows(chunk.text.tobytes())):
            cells, first = text.rstrip(b"\n").split(b"\t"), line
            line += max(1, text.count(b"\n"))
            if chunk.begins and number == 0:
                continue
            row = []
            for at, (name, cell) in enumerate(zip(heading, cells, strict=True)):
                if (
                    at == label_at
                    or name == options.row_id
                    or name in options.drop
                    or (not cell and not options.strict)
                ):
                    continue
                try:
                    row.append((at + options.base, float(cell.strip(b'"'))))
                except ValueError:
                    bad.append(BadRow(first, 1, 1, cell, name))
                    break
            else:
                rows.append(row)
                lines.append(first)
                label = cells[label_at].decode()
                labels.append(texts.setdefault(label, len(texts)) if label else np.nan)
                tags.append(cells[heading.index(options.row_id)].decode() if options.row_id else "")
        flat = [pair for row in rows for pair in row]
        return ParsedRows(
            indptr=seal(np.cumsum([0, *map(len, rows)], dtype=np.int64)),
            indices=seal(np.array([at for at, _ in flat], np.int32)),
            values=seal(np.array([value for _, value in flat], np.float32)),
            width=max((at + 1 for at, _ in flat), default=0),
            labels=np.array(labels, np.float64),
            importances=None,
            tags=tags,
            lines=np.array(lines, np.int64),
            columns=np.ones(len(rows), np.int32),
            lines_read=line - 1,
            bad=bad,
            label_texts=list(texts),
            names=list(texts) if self.space is not None else None,
        )

    def message(self, bad: BadRow) -> str:
        return f"column {bad.field!r} must be a number, got {quoted(bad.token)}."

    def row_end(self, buffer: bytearray, filled: int) -> int:
        quotes, end = 0, 0
        for at, char in enumerate(buffer[:filled]):
            quotes += char == ord('"')
            end = at + 1 if char == ord("\n") and quotes % 2 == 0 else end
        return end

    def too_long(self, text: bytes, line: int, limit: str) -> str:
        opened = line + text[: text.index(b'"')].count(b"\n")
        return f"the quote that opens at line {opened} is not closed within {limit}."


def _rows(text: bytes) -> Iterator[bytes]:
    start, quotes = 0, 0
    for at, char in enumerate(text):
        quotes += char == ord('"')
        if char == ord("\n") and quotes % 2 == 0:
            yield text[start : at + 1]
            start = at + 1
    if start < len(text):
        yield text[start:]


def read(reading: Reading) -> Iterator[Block]:
    return read_text(reading, TabParser(reading))


FORMAT = Format("tab", (".tab", ".tabbed"), TabOptions, read, "a heading, then tab-separated cells")
