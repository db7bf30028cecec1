"""Decompresses sources, a bounded amount at a time.

The compression is recognised by the suffix of the name, and by the first bytes if the name has none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

from rarestream.errors import DataError, MissingExtraError
from rarestream.readers.sources import Raw

INPUT = 1 << 16  # compressed bytes read at once
OUTPUT = 1 << 18  # bytes decompressed at once: keeps memory bounded on decompression bombs
DICTIONARY = 1 << 29  # bytes that an .xz file may need for its dictionary; xz -9 needs 2^26


class ByteReader(Protocol):
    """Decompressed bytes; `readinto` returns 0 at the end."""

    def readinto(self, view: memoryview) -> int: ...


class _Inflate(Protocol):
    """The common interface of the decompressors, each of one member (frame, stream) of a file."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


class _Zlib:
    """zlib's decompressor leaves unused input to its caller; this one keeps it, as the other decompressors do."""

    def __init__(self) -> None:
        import zlib

        self._inside = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inside.eof

    @property
    def unused_data(self) -> bytes:
        return self._inside.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inside.unconsumed_tail

    def decompress(self, data: bytes, max_length: int = OUTPUT) -> bytes:
        return self._inside.decompress(self._inside.unconsumed_tail + data, max_length)


class _Zstandard:
    """The `zstandard` package cannot stop in the middle of its input, so it is fed in small pieces.

    A block of 4 bytes can stand for 128 KiB, so 1 KiB of input is at most 32 MiB of output.
    """

    def __init__(self, package: Any) -> None:
        self._inside = package.ZstdDecompressor().decompressobj()
        self._input = b""

    @property
    def eof(self) -> bool:
        return bool(self._inside.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._inside.unused_data) + self._input

    @property
    def needs_input(self) -> bool:
        return not self._input

    def decompress(self, data: bytes, max_length: int = OUTPUT) -> bytes:
        data = self._input + data
        pieces, made, size = [], 0, 0
        while size < len(data) and made < max_length and not self._inside.eof:
            pieces.append(self._inside.decompress(data[size : size + 1024]))
            made += len(pieces[-1])
            size += 1024
        self._input = data[size:]
        return b"".join(pieces)


def _zstd() -> Callable[[], _Inflate]:
    try:
        return importlib.import_module("compression.zstd").ZstdDecompressor  # type: ignore[no-any-return]
    except ImportError:
        pass
    try:
        package = importlib.import_module("zstandard")
    except ImportError:
        raise MissingExtraError('Reading .zst needs the package zstandard: pip install "rarestream[zstd]"') from None
    return lambda: _Zstandard(package)


def _gzip() -> Callable[[], _Inflate]:
    return _Zlib


def _bzip2() -> Callable[[], _Inflate]:
    import bz2

    return bz2.BZ2Decompressor


def _xz() -> Callable[[], _Inflate]:
    import lzma

    return lambda: lzma.LZMADecompressor(memlimit=DICTIONARY)


# A zstd file may also start with a skippable frame, whose first byte is one of sixteen.
ZSTD = (b"\x28\xb5\x2f\xfd", *(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60)))

# By suffix: the first bytes, the decompressor of one member (imported when needed), and the name of the method.
METHODS: dict[str, tuple[tuple[bytes, ...], Callable[[], Callable[[], _Inflate]], str]] = {
    ".gz": ((b"\x1f\x8b",), _gzip, "gzip"),
    ".bz2": ((b"BZh",), _bzip2, "bzip2"),
    ".xz": ((b"\xfd7zXZ\x00",), _xz, "xz"),
    ".zst": (ZSTD, _zstd, "zstd"),
}
MAGICS = [magic for magics, _, _ in METHODS.values() for magic in magics]


class Decompressed:
    """The bytes of a compressed source, one member after the other."""

    def __init__(self, raw: Raw, suffix: str, head: bytes) -> None:
        magics, make, self._method = METHODS[suffix]
        self._raw = raw
        self._make = make()
        self._input = head
        if head and not head.startswith(magics):
            raise DataError(
                f"{raw.source.name}: named {suffix}, but its first bytes are not {self._method}'s. "
                "Rename it if it is not compressed; otherwise fetch it again."
            )
        self._member: _Inflate | None = None  # between members
        self._text = memoryview(b"")  # decompressed and not yet returned

    def readinto(self, view: memoryview) -> int:
        # A pipe may have nothing yet and is read again later, so an exception must leave the state unchanged.
        while not self._text:
            if self._member is None:
                if not self._more_members():
                    return 0
                self._member = self._make()
            data = b""
            if self._member.needs_input:
                data, self._input = self._input or self._raw.read(INPUT), b""
                if not data:
                    raise self._damaged("are truncated")
            try:
                self._text = memoryview(self._member.decompress(data, OUTPUT))
            except Exception as error:  # each method has its own class for it
                if isinstance(error, MemoryError):
                    raise
                raise self._damaged(f"are damaged ({error})") from None
            if self._member.eof:
                self._input, self._member = self._member.unused_data, None
        size = min(len(self._text), len(view))
        view[:size], self._text = self._text[:size], self._text[size:]
        return size

    def _more_members(self) -> bool:
        # Tapes and block devices pad with zeros, which gzip ignores too.
        while not (rest := self._input.lstrip(b"\0")):
            self._input = b""
            self._input = self._raw.read(INPUT)
            if not self._input:
                return False
        self._input = rest
        return True

    def _damaged(self, how: str) -> DataError:
        return DataError(
            f"{self._raw.source.name}: the {self._method} data {how} near byte {self._raw.position:,}. "
            f"Fetch the file again, or check it with `{self._method} -t`."
        )


class Plain:
    """Uncompressed bytes, of which the first few have been read already."""

    def __init__(self, raw: Raw, head: bytes) -> None:
        self._raw, self._head = raw, head

    def readinto(self, view: memoryview) -> int:
        if self._head:
            size = min(len(self._head), len(view))
            view[:size], self._head = self._head[:size], self._head[size:]
            return size
        return self._raw.readinto(view)


def open_text(raw: Raw) -> ByteReader:
    """Return the bytes of a source, decompressed if its name or its first bytes say that it is compressed."""
    head = b""
    while any(len(head) < len(magic) and magic.startswith(head) for magic in MAGICS):
        if not (more := raw.read(INPUT)):
            break
        head += more
    for suffix in METHODS:
        if raw.source.name.lower().endswith(suffix):
            return Decompressed(raw, suffix, head)
    for suffix, (magics, _, _) in METHODS.items():
        if head.startswith(magics):
            return Decompressed(raw, suffix, head)
    return Plain(raw, head)
