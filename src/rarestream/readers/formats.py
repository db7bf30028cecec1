"""The formats that can be read. A format is a function from a Reading to pieces: Blocks of any size, in order.

To add a text format, such as tsv, touch five files:

    readers/formats.py       its name and suffixes, in FORMATS below
    readers/tsv.py           the function `tsv`, which calls `read_text` with a Parser, and the messages for bad rows
    native/tsv.hpp           the parser, which returns what svmlight's does
    native/bind_readers.cpp  its binding
    _native.pyi              and the signature of that

`readers/text.py` does the rest: chunks of whole lines, threads, order, labels, `max_bad_rows`, and file, line and
column in messages. A parser in Python needs the first two files only. A format that is not text yields Blocks itself.
In pieces the label 0 means 'unknown'; `split_blocks` makes Blocks of them that a learner accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import NamedTuple

from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.readers.chunks import CHUNK, LONGEST_LINE
from rarestream.readers.compression import METHODS
from rarestream.readers.locations import PieceLines
from rarestream.readers.refusals import Refusals
from rarestream.readers.sources import Source


class Options(NamedTuple):
    """The arguments of `read`, checked."""

    zero_based: bool | None = None
    positive: float | None = None
    classes: tuple[float | None, float] | None = None  # the negative label, if known, and the positive one
    finished: bool = True  # False: a last line without line end is left out
    labels_optional: bool = False
    threads: int = 1  # 0: parse in the thread that consumes the rows
    chunk: int = CHUNK
    longest_line: int = LONGEST_LINE


@dataclass
class Reading:
    """One pass over the sources: what to read, how, and what was found so far."""

    sources: Sequence[Source]
    options: Options
    refusals: Refusals
    position: int = field(default=0)  # stored bytes of the pieces yielded so far
    zero_based: bool | None = None  # as given, or as found by the format
    classes: tuple[float | None, float] | None = None  # likewise
    unfinished: str | None = None  # file and line of a last line that was left out, having no line end
    piece: PieceLines | None = None  # the lines of the piece yielded last
    stopped: bool = False
    _end: Callable[[], None] | None = None

    def stop(self) -> None:
        """Stop reading. Safe to call from a signal handler."""
        self.stopped = True
        if self._end is not None:
            self._end()

    def when_stopped(self, end: Callable[[], None]) -> None:
        """Register what the format does on `stop`; it is done at once if `stop` was called before."""
        self._end = end
        if self.stopped:
            end()


Format = Callable[[Reading], Iterator[Block]]

# The suffixes of each format. The module of the same name, imported when needed, has a function of the same name.
FORMATS = {"svmlight": (".svm", ".svmlight", ".libsvm")}
DEFAULT = "svmlight"


def format_names() -> list[str]:
    """Return the names of all formats, sorted."""
    return sorted(FORMATS)


def find_format(name: str | None, sources: Sequence[Source]) -> Format:
    """Return the format of that name; with None, the one of the first source's suffix, by default svmlight."""
    if name is None:
        stem = sources[0].name.lower()
        for suffix in METHODS:
            stem = stem.removesuffix(suffix)
        name = next((known for known, suffixes in FORMATS.items() if stem.endswith(suffixes)), DEFAULT)
    if name not in FORMATS:
        raise DataError(f"read: format must be one of {', '.join(format_names())}, got {name!r}.")
    format: Format = getattr(import_module(f"rarestream.readers.{name}"), name)
    return format
