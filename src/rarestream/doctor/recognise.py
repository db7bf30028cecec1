"""How data are stored: their format, by name or by their first bytes, and their compression.

`read` goes by the suffix alone, so that the same file is never read in two ways. Here the first lines are looked at
too, to advise on files whose name says nothing.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from rarestream.errors import DataError
from rarestream.readers.compression import METHODS, open_text
from rarestream.readers.fingerprints import first_text
from rarestream.readers.formats import DEFAULT, find_format, format_of_suffix, module_names
from rarestream.readers.sources import Source, SourceLike, expand

HEAD = 1 << 16  # bytes of text that are looked at
COPIED = 1 << 28  # bytes of a pipe that are kept, in a temporary file

_SVMLIGHT = re.compile(rb"[-+0-9.eE]+(\s+(qid|cost|[0-9]+):\S+)*\s*(#.*)?")
_VW = re.compile(rb"[^|,\t]*\|\S*( .*)?")


class Recognised(NamedTuple):
    """The format of data."""

    format: str
    how: str  # it was recognised: "by the suffix .csv"
    needed: bool  # whether other commands need --format


def recognise(sources: Sequence[Source], given: str | None) -> Recognised:
    """Return the format of the first source: as given, by its suffix, or else by its first lines."""
    if given is not None:
        return Recognised(find_format(given, sources).name, "as given", False)
    format = format_of_suffix(sources[0].name)
    if format is not None:
        return Recognised(format.name, "by its suffix", False)
    found = format_of_text(first_text(sources[0], HEAD))
    if found is None or found not in module_names():
        return Recognised(DEFAULT, "the default", False)
    return Recognised(found, "by its first lines", found != DEFAULT)


def format_of_text(head: bytes) -> str | None:
    """Return the name of the format that the first bytes look like; None if they look like nothing known."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    lines = [line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:20]]
    lines = [line for line in lines[: len(lines) - (len(lines) > 1)] if line and not line.startswith(b"#")]
    if not lines:
        return None
    if all(line.startswith(b"{") for line in lines):
        return "jsonl"
    if all(_SVMLIGHT.fullmatch(line) for line in lines):
        return "svmlight"
    if all(_VW.fullmatch(line) for line in lines):
        return "vw"
    cells = [line.split(b"\t") for line in lines]
    if len(cells) >= 5 and all(map(_is_labelled_text, cells)) and len({first for first, *_ in cells}) <= 3:
        return "text"
    if any(len({line.count(delimiter) for line in lines} - {0}) == 1 for delimiter in (b",", b"\t", b";", b"|")):
        return "csv"
    return None


def _is_labelled_text(cells: list[bytes]) -> bool:
    """Return whether the cells of a line are a word and a text."""
    return len(cells) == 2 and b" " not in cells[0] and b" " in cells[1]


def compression(source: Source) -> str | None:
    """Return how a source is compressed, by its name or else its first bytes; None if it is not."""
    with closing(source.open()) as raw:
        head = raw.read(16)
    for suffix, (magics, _, name) in METHODS.items():
        if source.name.lower().endswith(suffix) or head.startswith(magics):
            return name
    return None


class Replayable(NamedTuple):
    """Data that can be read several times."""

    data: list[SourceLike]
    cut: bool  # whether a pipe had more


@contextlib.contextmanager
def replayable(data: Sequence[SourceLike]) -> Iterator[Replayable]:
    """Context with data that can be read several times: of a pipe, its first 256 MB of text are copied to a file."""
    with contextlib.ExitStack() as stack:
        found: list[SourceLike] = []
        cut = False
        for item in data:
            for source in expand(item):
                if source.replayable:
                    found.append(source.path if source.path is not None else source.file)
                else:
                    file, more = _copied(source)
                    found.append(stack.enter_context(file))
                    cut = cut or more
        yield Replayable(found, cut)


def _copied(source: Source) -> tuple[Any, bool]:
    """Return a temporary file with the text of a pipe, and whether there was more than it holds."""
    file: Any = tempfile.NamedTemporaryFile("w+b")  # noqa: SIM115  the caller closes it
    buffer = memoryview(bytearray(1 << 18))
    copied = 0
    with closing(source.open()) as raw:
        text = open_text(raw)
        while copied < COPIED and (count := text.readinto(buffer)):
            file.write(buffer[:count])
            copied += count
    more = copied >= COPIED
    if more:  # the last line may be incomplete
        file.seek(-len(buffer), io.SEEK_CUR)
        tail = file.read()
        file.truncate(copied - len(tail) + tail.rfind(b"\n") + 1)
    if not copied:
        raise DataError(f"{source.name}: no rows.")
    file.seek(0)
    file.name = source.name  # messages name the pipe
    return file, more
