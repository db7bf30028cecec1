"""What a model keeps of its data, to know them again: name, size, and a checksum of the first text.

The checksum is of text, not of stored bytes, so that a compressed file that has grown is known again, however it was
compressed anew.
"""

from __future__ import annotations

import zlib
from contextlib import closing
from typing import NotRequired, TypedDict

from rarestream.errors import DataError, MissingExtraError
from rarestream.readers.compression import Decompressed, text_of
from rarestream.readers.sources import Source

HEAD = 1 << 16  # bytes of text that the checksum covers, at most


class Described(TypedDict):
    """What a model keeps of an input."""

    name: str
    size: int | None  # bytes, as stored; None where nobody can know, as on standard input
    crc32: int | None  # of the first bytes of its text
    text: NotRequired[int | None]  # how many bytes of text; without it, crc32 is of the first 64 KiB as stored


def described(source: Source) -> Described:
    """What to keep of a source. A file that cannot be read, or is damaged, says so when it is read, not here."""
    if source.size is None:
        return Described(name=source.base, size=None, crc32=None)
    head = _text(source, HEAD)
    if head or source.size == 0:
        return Described(name=source.base, size=source.size, crc32=zlib.crc32(head), text=len(head))
    return Described(name=source.base, size=source.size, crc32=zlib.crc32(_stored(source, HEAD)))


def recognised(entry: Described, source: Source) -> bool:
    """Whether the source is what the entry describes, as far as its name and head go. It may have grown."""
    return entry["name"] == source.base and begins_alike(entry, source)


def begins_alike(entry: Described, source: Source) -> bool:
    """Whether the source begins as what the entry describes, whatever it is called."""
    if entry["size"] is None or entry["crc32"] is None or source.size is None:
        return False
    covered = entry.get("text")
    if covered is None:
        covered = min(entry["size"], HEAD)
        head = _stored(source, covered)
    else:
        head = _text(source, covered)
    return len(head) == covered and zlib.crc32(head) == entry["crc32"]


def _text(source: Source, size: int) -> bytes:
    """The first bytes of text; fewer where the data end, or are damaged."""
    view = memoryview(bytearray(size))
    filled = 0
    try:
        with closing(source.open()) as raw:
            text = text_of(raw)
            if not isinstance(text, Decompressed):  # it may have grown since it was looked at
                view = view[: source.size]
            while filled < len(view) and (got := text.readinto(view[filled:])):
                filled += got
    except (DataError, MissingExtraError):
        pass
    return bytes(view[:filled])


def _stored(source: Source, size: int) -> bytes:
    data = b""
    try:
        with closing(source.open()) as raw:
            while len(data) < size and (more := raw.read(size - len(data))):
                data += more
    except DataError:
        pass
    return data
