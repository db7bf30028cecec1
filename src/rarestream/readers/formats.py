"""The registry of formats. A format is a function from a Reading to pieces: Blocks of any size, in order.

To add one, write a module in this package with a function under `@register(name, suffixes)`, and import it in
`__init__`. In pieces the label 0 means 'unknown'; `split_blocks` makes Blocks of them that a learner can take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rarestream.blocks import Block
from rarestream.errors import DataError
from rarestream.readers.chunks import CHUNK, LONGEST_LINE
from rarestream.readers.compression import METHODS
from rarestream.readers.locations import PieceLines
from rarestream.readers.refusals import Refusals
from rarestream.readers.sources import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The arguments of `read`, checked."""

    zero_based: bool | None = None
    positive: float | None = None
    classes: tuple[float | None, float] | None = None  # the negative label, if known, and the positive one
    finished: bool = True  # False: a last line without line end is left out
    labels_optional: bool = False
    threads: int = 1  # 0: parse in the thread that consumes the rows
    chunk: int = CHUNK
    longest_line: int = LONGEST_LINE


@dataclass(slots=True)
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

_FORMATS: dict[str, Format] = {}
_SUFFIXES: dict[str, str] = {}


def register(name: str, suffixes: Sequence[str]) -> Callable[[Format], Format]:
    """Register a format under a name and the suffixes of its files."""

    def add(format: Format) -> Format:
        _FORMATS[name] = format
        _SUFFIXES.update(dict.fromkeys(suffixes, name))
        return format

    return add


def format_names() -> list[str]:
    """Return the names of all formats, sorted."""
    return sorted(_FORMATS)


def find_format(name: str | None, sources: Sequence[Source]) -> Format:
    """Return the format of that name; with None, the one of the first source's suffix, by default svmlight."""
    if name is None:
        stem = sources[0].name.lower()
        for suffix in METHODS:
            stem = stem.removesuffix(suffix)
        name = next((known for suffix, known in _SUFFIXES.items() if stem.endswith(suffix)), "svmlight")
    if name not in _FORMATS:
        raise DataError(f"read: format must be one of {', '.join(format_names())}, got {name!r}.")
    return _FORMATS[name]
