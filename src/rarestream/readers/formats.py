"""The formats `read` knows. A format is a function from a Reading to pieces: Blocks of any size, in order.

A new one is a file in this folder with a function under `@register(name, suffixes)`, imported in `__init__`.
Pieces may use the label 0 for 'unknown'; `cut` turns them into Blocks a learner may see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.readers.chunks import CHUNK, LONGEST_LINE
from rarestream.readers.compression import METHODS
from rarestream.readers.places import Piece
from rarestream.readers.refusals import Refusals
from rarestream.readers.sources import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `read` was asked for, checked."""

    zero_based: bool | None = None
    positive: float | None = None
    classes: tuple[float | None, float] | None = None  # the negative label, if it is known, and the positive one
    finished: bool = True  # else a last line without line end is left out
    labels_optional: bool = False
    threads: int = 1  # 0: parse where the rows are consumed
    chunk: int = CHUNK
    longest_line: int = LONGEST_LINE


@dataclass(slots=True)
class Reading:
    """One pass over the sources: what to read and how, and what has come of it so far."""

    sources: Sequence[Source]
    options: Options
    refusals: Refusals
    position: int = field(default=0)  # stored bytes behind the pieces given out
    zero_based: bool | None = None  # as the format found, or was told
    classes: tuple[float | None, float] | None = None  # likewise
    unfinished: str | None = None  # where a last line without line end stands that was left out
    piece: Piece | None = None  # where the rows of the piece given out last stand
    stopped: bool = False
    _end: Callable[[], None] | None = None

    def stop(self) -> None:
        """Nothing more is to be read. Any signal handler may call it."""
        self.stopped = True
        if self._end is not None:
            self._end()

    def when_stopped(self, end: Callable[[], None]) -> None:
        """What a format does on `stop`, now or later."""
        self._end = end
        if self.stopped:
            end()


Format = Callable[[Reading], Iterator[Block]]

_FORMATS: dict[str, Format] = {}
_SUFFIXES: dict[str, str] = {}


def register(name: str, suffixes: Sequence[str]) -> Callable[[Format], Format]:
    def add(format: Format) -> Format:
        _FORMATS[name] = format
        _SUFFIXES.update(dict.fromkeys(suffixes, name))
        return format

    return add


def format_names() -> list[str]:
    return sorted(_FORMATS)


def chosen(name: str | None, sources: Sequence[Source]) -> Format:
    """The format of that name; without one, by the first source's suffix, and svmlight if it says nothing."""
    if name is None:
        stem = sources[0].name.lower()
        for suffix in METHODS:
            stem = stem.removesuffix(suffix)
        name = next((known for suffix, known in _SUFFIXES.items() if stem.endswith(suffix)), "svmlight")
    if name not in _FORMATS:
        raise DataError(f"read: format must be one of {', '.join(format_names())}, got {name!r}.")
    return _FORMATS[name]
