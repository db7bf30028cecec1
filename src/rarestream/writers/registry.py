"""The formats that rows can be written in: how files of them are named, and which class writes them.

A writer is made of an open binary file. `write` takes Blocks, in which the label 0 means 'unknown'; `close` writes what
is left, and leaves the file open. `notes` are sentences on what the format could not hold as it was.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

from rarestream.errors import DataError, advice, nearest, plain
from rarestream.writers.compression import SUFFIXES

if TYPE_CHECKING:
    from rarestream.blocks import Block


class Writer(Protocol):
    """Writes Blocks to a file."""

    def write(self, block: Block) -> None:
        """Write the rows of a Block. RowError if the format cannot hold one of them."""

    def close(self) -> None:
        """Write what is left. The file stays open."""

    @property
    def notes(self) -> list[str]:
        """What a user should know of the rows written so far, a sentence each."""


class OutputFormat(NamedTuple):
    """A format of output files."""

    module: str
    writer: str  # its class
    suffixes: tuple[str, ...]  # of files, in lower case; the first is the usual one
    text: bool  # whether it can go to standard output, and be compressed as a whole

    def make(self, file: BinaryIO, **options: Any) -> Writer:
        """Return a writer to an open file."""
        writer: Writer = getattr(import_module(self.module), self.writer)(file, **options)
        return writer


FORMATS = {
    "svmlight": OutputFormat(
        "rarestream.writers.svmlight", "SvmlightWriter", (".svm", ".svmlight", ".libsvm"), text=True
    ),
    "vw": OutputFormat("rarestream.writers.vw", "VwWriter", (".vw",), text=True),
    "blocks": OutputFormat("rarestream.writers.named_blocks", "NamedBlocksWriter", (".blocks",), text=False),
}


def output_format(name: str | None, path: str) -> str:
    """Return the name of the format of an output file: the one given, or that of its suffix.

    Raises
    ------
    DataError
        If there is no such format, the suffix does not tell it, or it cannot be compressed.
    """
    if name is not None and name not in FORMATS:
        near = nearest(name, FORMATS)
        hint = f" Did you mean {near!r}?" if near else ""
        raise DataError(f"convert: to must be one of {', '.join(FORMATS)}, got {name!r}.{hint}")
    stem = path.lower()
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    if name is None:
        name = next((known for known, format in FORMATS.items() if stem.endswith(format.suffixes)), None)
    if name is None:
        known = " ".join(format.suffixes[0] for format in FORMATS.values())
        option = advice(f"to={'|'.join(FORMATS)}", f"--to {'|'.join(FORMATS)}")
        raise DataError(f"{plain(path)}: the name does not tell the format, as {known} do. Pass {option}.")
    if not FORMATS[name].text and (path == "-" or stem != path.lower()):
        what = "standard output" if path == "-" else "a compressed file"
        raise DataError(f"{plain(path)}: {name} cannot be written to {what}. Name a file, such as rows.{name}")
    return name
