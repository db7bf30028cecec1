"""Compresses output files, by the suffix of their names, as readers/compression.py decompresses them."""

from __future__ import annotations

import importlib
from typing import Any, BinaryIO

from rarestream.errors import MissingExtraError

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")


def suffix_of(name: str) -> str:
    """Return the suffix of a compressed file, as it is written; empty for any other."""
    found = next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), "")
    return name[len(name) - len(found) :] if found else ""


def compressed(file: BinaryIO, name: str, level: int | None = None) -> BinaryIO:
    """Return a file that compresses what is written to it, if the name says so; else the file itself.

    Parameters
    ----------
    file : binary file
        Where the compressed bytes go. Closing what is returned leaves it open.
    name : str
        Of the file.
    level : int, optional
        How much gzip compresses, 1 to 9. By default 6, as its own program.

    Raises
    ------
    MissingExtraError
        If the name ends in .zst and zstandard is not installed.
    """
    made: Any = file
    match suffix_of(name).lower():
        case ".gz":
            import gzip

            # No name and no time in the header: the same rows give the same bytes.
            made = gzip.GzipFile(filename="", mode="wb", compresslevel=level or 6, fileobj=file, mtime=0)
        case ".bz2":
            import bz2

            made = bz2.BZ2File(file, "wb")
        case ".xz":
            import lzma

            made = lzma.LZMAFile(file, "wb")  # noqa: SIM115  closed by whoever opened the file
        case ".zst":
            made = _zstd(file)
    return made  # type: ignore[no-any-return]


def _zstd(file: BinaryIO) -> Any:
    try:
        return importlib.import_module("compression.zstd").ZstdFile(file, "wb")
    except ImportError:
        pass
    try:
        package = importlib.import_module("zstandard")
    except ImportError:
        raise MissingExtraError('Writing .zst needs the package zstandard: pip install "rarestream[zstd]"') from None
    return package.ZstdCompressor().stream_writer(file, closefd=False)
