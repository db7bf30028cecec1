"""The formats that can be read: each is a module of this package with a `FORMAT`.

To add a text format, such as tab, touch these files:

    readers/formats/tab.py   its options, its `FORMAT`, and a Parser with the messages for bad rows
    native/tab.hpp           the parser, which returns what svmlight's does; and its binding in bind_readers.cpp and
                             signature in _native.pyi. A parser may also be in Python
    tests/readers/, docs/    its tests and its page

Modules are found when they are needed, so there is no list of them. A module is imported by every command that reads
data, for the options it declares: apart from these it should import what it needs within its functions.

`readers/text.py` does the rest of a text format: chunks of whole rows, threads, order, labels, `max_bad_rows`, and
file, line and column in messages. A format that is not text yields Blocks itself; `readers/rows.py` makes them of rows.
In pieces the label 0 means 'unknown'; `split_blocks` makes Blocks of them that a learner accepts.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rarestream.errors import DataError
from rarestream.readers.options import FormatOptions, OptionInfo, options_of, unknown_option

if TYPE_CHECKING:
    from rarestream.blocks import Block
    from rarestream.readers.parser import Parser
    from rarestream.readers.reading import Reading
    from rarestream.readers.sources import Source

DEFAULT = "svmlight"


@dataclass(frozen=True)
class Format:
    """A format: how files of it are named, and how they are read."""

    name: str
    suffixes: tuple[str, ...]  # of files, in lower case, with the dot
    options: type[FormatOptions]
    read: Callable[[Reading], Iterator[Block]]  # yields pieces: Blocks of any size, in order
    about: str  # one line
    files: bool = True  # whether it is a format of files, which commands can read
    parser: Callable[[Reading], Parser] | None = None  # of a text format; None: it is not text

    def make_options(self, **given: Any) -> Any:
        """Return the options with these values; OptionError if one is unknown, or its value is not allowed."""
        known = options_of(self.options)
        for name in given:
            if name not in known:
                others = [other.name for other in all_formats() if name in options_of(other.options)]
                raise unknown_option(self.name, name, known, others)
        return self.options(**given)


def text_format(
    name: str,
    suffixes: tuple[str, ...],
    options: type[FormatOptions],
    parser: Callable[[Reading], Parser],
    about: str,
) -> Format:
    """Return a format of text, whose rows `parser` makes of chunks."""

    def read(reading: Reading) -> Iterator[Block]:
        from rarestream.readers.text import read_text

        return read_text(reading, parser(reading))

    return Format(name, suffixes, options, read, about, parser=parser)


def module_names() -> list[str]:
    """Return the names of the modules of this package, sorted; each is the name of its format."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load_format(name: str) -> Format:
    """Return the format of a module of this package, which is imported now."""
    format: Format = import_module(f"{__name__}.{name}").FORMAT
    return format


def all_formats() -> list[Format]:
    """Return all formats, by name."""
    return [load_format(name) for name in module_names()]


def format_names() -> list[str]:
    """Return the names of all formats of files, sorted."""
    return [format.name for format in all_formats() if format.files]


def find_format(name: str | None, sources: Sequence[Source]) -> Format:
    """Return the format of that name; with None, the one of the first source's suffix, by default svmlight."""
    memory = sources[0].format if sources else None
    if any(source.format != memory for source in sources):
        raise DataError("read: files, frames and dicts cannot be mixed. Read one after the other.")
    if memory is not None:
        if name not in (None, memory):
            raise DataError(f"read: format must be {memory!r} for rows in memory, or left out, got {name!r}.")
        return load_format(memory)
    if name is None:
        return format_of_suffix(sources[0].name) or load_format(DEFAULT)
    if name not in module_names() or not load_format(name).files:
        raise DataError(f"read: format must be one of {', '.join(format_names())}, got {name!r}.")
    return load_format(name)


def format_of_suffix(file: str) -> Format | None:
    """Return the format that the suffix of a file names, if any.

    A module that has the name of the suffix, and the default, are tried first: the others are then not imported.
    """
    from rarestream.readers.compression import METHODS

    stem = file.lower()
    for suffix in METHODS:
        stem = stem.removesuffix(suffix)
    names = module_names()
    likely = [name for name in (DEFAULT, stem.rpartition(".")[2]) if name in names]
    for name in [*likely, *(name for name in names if name not in likely)]:
        format = load_format(name)
        if format.suffixes and stem.endswith(format.suffixes):
            return format
    return None


def options_of_formats(formats: Sequence[Format] | None = None) -> dict[str, tuple[OptionInfo, list[str]]]:
    """Return every option of every format of files by name, with the names of the formats that have it."""
    found: dict[str, tuple[OptionInfo, list[str]]] = {}
    for format in all_formats() if formats is None else formats:
        if format.files:
            for name, info in options_of(format.options).items():
                found.setdefault(name, (info, []))[1].append(format.name)
    return found
