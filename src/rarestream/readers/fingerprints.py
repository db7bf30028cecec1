"""What a model keeps about its data to recognise them: name, size, and a checksum of the first text.

The checksum is of text, not of stored bytes, so that a compressed file that has grown is recognised even if it was
compressed again.
"""

from __future__ import annotations

import zlib
from contextlib import closing
from typing import NotRequired, TypedDict

from rarestream.errors import DataError, MissingExtraError
from rarestream.readers.compression import Decompressed, open_text
from rarestream.readers.sources import Source

HEAD = 1 << 16  # bytes of text that the checksum covers, at most


class Fingerprint(TypedDict):
    """What a model keeps about one input."""

    name: str
    size: int | None  # bytes, as stored; None if it is not known, as for standard input
    crc32: int | None  # of the first bytes of its text
    text: NotRequired[int | None]  # how many bytes of text; without it, crc32 is of the first 64 KiB as stored


def fingerprint(source: Source) -> Fingerprint:
    """Return what to keep about a source. A file that cannot be read is no error here, only when it is read."""
    if source.size is None or source.data is not None:
        return Fingerprint(name=source.base, size=None, crc32=None)
    head = first_text(source, HEAD)
    if head or source.size == 0:
        return Fingerprint(name=source.base, size=source.size, crc32=zlib.crc32(head), text=len(head))
    return Fingerprint(name=source.base, size=source.size, crc32=zlib.crc32(_stored(source, HEAD)))


def is_same_file(entry: Fingerprint, source: Source) -> bool:
    """Return whether a source has the name and the first text of the fingerprint. It may have grown."""
    return entry["name"] == source.base and starts_alike(entry, source)


def starts_alike(entry: Fingerprint, source: Source) -> bool:
    """Return whether a source starts with the text of the fingerprint, whatever its name."""
    if entry["size"] is None or entry["crc32"] is None or source.size is None or source.data is not None:
        return False
    covered = entry.get("text")
    if covered is None:
        covered = min(entry["size"], HEAD)
        head = _stored(source, covered)
    else:
        head = first_text(source, covered)
    return len(head) == covered and zlib.crc32(head) == entry["crc32"]


def first_text(source: Source, size: int) -> bytes:
    """Return the first bytes of text; fewer where the data end, or are damaged."""
    view = memoryview(bytearray(size))
    filled = 0
    try:
        with closing(source.open()) as raw:
            text = open_text(raw)
            if not isinstance(text, Decompressed):  # the file may have grown since its size was taken
                view = view[: source.size]
            while filled < len(view) and (count := text.readinto(view[filled:])):
                filled += count
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
