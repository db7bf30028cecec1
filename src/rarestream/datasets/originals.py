"""The files of a data set: which of them a folder has, and their rows.

A folder may have a data set in one of three forms, which are looked for in this order:

    rows       NAME.svm, svmlight text with labels -1 and +1 and columns from 1, such as files for the reproduction
    prepared   prepared/NAME.svm.gz, which preparing.py writes
    originals  the files of its publisher, as they are downloaded, decompressed, or unpacked

Rows are read from whichever is there, a block at a time. As the authors of the paper did it:

    labels     imdb: positive if the rating is above 5; the others: if the label is above 0
    columns    count from 0, as those of imdb do; for the others one is subtracted. The words of reviews are numbered
               in order of first appearance, all positive reviews before the negative ones
    values     are left as they are; `unit` divides a row by its L2 norm

Their program read files of its own, one per data set, and does not say how they were joined. Here rcv1b is its
training rows, then the test rows; imdb likewise; avazu is "tr", then "val"; the domains of reviews are in
alphabetical order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block, signs
from rarestream.datasets.catalogue import (
    CUT,
    DATA_SETS,
    FOLDER,
    NAMED,
    OTHER_ORIGINALS,
    OTHER_SVM,
    ZERO_BASED,
    Original,
)
from rarestream.errors import DataError, plain, quoted
from rarestream.readers import read

ROWS, PREPARED, ORIGINALS = "rows", "prepared", "originals"
SUFFIXES = (".bz2", ".gz", ".xz", "")
COMPRESSED = tuple(suffix for suffix in SUFFIXES if suffix)
REVIEW_ROWS = 1024  # of reviews in a Block
LONGEST_LINE = 1 << 24  # bytes of a review; the longest is far below


@dataclass(frozen=True)
class Found:
    """The files of a data set in a folder."""

    name: str
    form: str  # ROWS, PREPARED or ORIGINALS
    files: tuple[Path, ...]  # in the order of their rows
    originals: tuple[Original, ...] = ()  # those that the files are, one each; empty if they are unpacked members

    @property
    def scaled(self) -> bool:
        """Whether every row of the files has been divided by its norm."""
        return self.form == PREPARED and DATA_SETS[self.name].scaled


def find(folder: Path, name: str, forms: tuple[str, ...] = (ROWS, PREPARED, ORIGINALS)) -> Found | None:
    """Return the files of a data set that a folder has, in the first of these forms; None if it has none.

    Parameters
    ----------
    folder : Path
        The folder of the data.
    name : str
        A name of the catalogue, or that of any other file `<name>.svm`.
    forms : tuple of str
        The forms to look for, in this order.
    """
    look = {ROWS: _rows, PREPARED: _prepared, ORIGINALS: _originals}
    return next((found for form in forms if (found := look[form](folder, name)) is not None), None)


def _rows(folder: Path, name: str) -> Found | None:
    for stem in (name, *OTHER_SVM.get(name, ())):
        path = _compressed_or_not(folder / f"{stem}.svm")
        if path is not None:
            return Found(name, ROWS, (path,))
    return None


def _prepared(folder: Path, name: str) -> Found | None:
    path = prepared_path(folder, name) if name in DATA_SETS else None
    return Found(name, PREPARED, (path,)) if path is not None and path.is_file() else None


def _originals(folder: Path, name: str) -> Found | None:
    if name not in DATA_SETS or DATA_SETS[name].packaged:
        return None
    usual = DATA_SETS[name].originals
    for originals in (usual, *((other,) for other in OTHER_ORIGINALS.get(name, ()))):
        files = [_original(folder, original) for original in originals]
        if all(files):
            return Found(name, ORIGINALS, tuple(file for file in files if file), originals)
    members = [folder / member for original in usual for member in original.members]
    unpacked = [_compressed_or_not(member) for member in members]
    if members and all(unpacked):
        return Found(name, ORIGINALS, tuple(file for file in unpacked if file))
    return None


def _original(folder: Path, original: Original) -> Path | None:
    """Return the file as it is published; if it is not an archive, also decompressed or compressed otherwise."""
    path = folder / original.name
    if path.is_file():
        return path
    if original.members or path.suffix not in COMPRESSED:
        return None
    return _compressed_or_not(path.with_suffix(""))


def _compressed_or_not(path: Path) -> Path | None:
    paths = [path.with_name(path.name + suffix) for suffix in SUFFIXES]
    return next((one for one in paths if one.is_file()), None)


def prepared_path(folder: Path, name: str) -> Path:
    """Return where the prepared file of a data set is, or will be."""
    return folder / FOLDER / DATA_SETS[name].file


def blocks(found: Found) -> Iterator[Block]:
    """Yield the rows of a data set, with labels, their values as they are in the files.

    Raises
    ------
    DataError
        If a file cannot be read, or is damaged; the message names it.
    """
    if found.form != ORIGINALS:
        yield from read(found.files)
    elif found.name in NAMED:
        yield from _word_rows(found)
    else:
        cut = CUT.get(found.name, 0.0)
        for file in _files(found):
            opened = read(file, "svmlight", classes="all", zero_based=found.name in ZERO_BASED)
            for block in opened:
                assert block.classes is not None
                yield _labelled(block, block.classes > cut)


def unit(block: Block) -> Block:
    """Return every row divided by its L2 norm; rows without features stay as they are."""
    values = block.values.astype(np.float64)
    filled = np.diff(block.indptr) > 0
    squares = np.ones(len(block))
    squares[filled] = np.add.reduceat(values**2, block.indptr[:-1][filled])
    norms = np.sqrt(np.where(squares > 0, squares, 1.0))
    scaled = (values / np.repeat(norms, np.diff(block.indptr))).astype(np.float32)
    return Block.of((block.indptr, block.indices, scaled), block.labels)


def _labelled(block: Block, positive: NDArray[np.bool_]) -> Block:
    return Block(block.indptr, block.indices, block.values, block.width, signs(positive), own=block.own)


def _files(found: Found) -> Iterator[Path | BinaryIO]:
    """Yield what to read, in order: a path, or a member of an archive that is open until the next one is asked for."""
    if not found.originals:
        yield from found.files
        return
    for path, original in zip(found.files, found.originals, strict=True):
        if not original.members:
            yield path
            continue
        for member in original.members:
            with _read_errors(path), _member(path, member) as file:
                yield file


@contextlib.contextmanager
def _member(path: Path, member: str) -> Iterator[BinaryIO]:
    """Open a file of an archive for reading, without unpacking it: its name is never taken for a place on the disk."""
    if path.suffix == ".zip":
        import zipfile

        with zipfile.ZipFile(path) as archive:
            name = next((one for one in archive.namelist() if _matches(one, member)), None)
            if name is None:
                raise _no_member(path, member)
            with archive.open(name) as opened:
                yield _Guarded(opened, path, member)  # type: ignore[misc]
        return
    import tarfile

    with tarfile.open(path, "r|*") as archive:  # a pass from front to back: an index would hold every name
        for one in archive:
            if one.isfile() and _matches(one.name, member):
                extracted = archive.extractfile(one)
                assert extracted is not None
                yield _Guarded(extracted, path, member)  # type: ignore[misc]
                return
            archive.members = []  # type: ignore[attr-defined]  # tarfile remembers all that it has passed
    raise _no_member(path, member)


def _matches(name: str, member: str) -> bool:
    return name.removeprefix("./") == member or name.endswith(f"/{member}")


def _no_member(path: Path, member: str) -> DataError:
    return DataError(f"{plain(path)}: has no file {member}. Fetch it again, or move it elsewhere.")


class _Guarded:
    """A file in an archive: the many errors of damaged archives become DataError, in whatever thread reads it."""

    def __init__(self, file: Any, path: Path, member: str) -> None:
        self._file, self._path = file, path
        self.name = f"{path}/{member}"

    def read(self, size: int = -1) -> bytes:
        with _read_errors(self._path):
            data: bytes = self._file.read(size)
            return data

    def readline(self, size: int = -1) -> bytes:
        with _read_errors(self._path):
            data: bytes = self._file.readline(size)
            return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


@contextlib.contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    import lzma
    import tarfile
    import zipfile
    import zlib

    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError) as error:
        raise DataError(f"{plain(path)}: is damaged, or cannot be read ({error}). Fetch it again.") from None


def _word_rows(found: Found) -> Iterator[Block]:
    """Yield rows whose features are words: `word:count ... #label#:positive`, one row per line."""
    numbers: dict[bytes, int] = {}  # of words, in order of first appearance
    most = DATA_SETS[found.name].features or 0
    for file in _files(found):
        opened = file.open("rb") if isinstance(file, Path) else contextlib.nullcontext(file)
        with opened as lines:
            name = str(getattr(lines, "name", file))
            yield from _blocks_of_words(lines, name, numbers, most)


def _blocks_of_words(lines: Any, name: str, numbers: dict[bytes, int], most: int) -> Iterator[Block]:
    starts, indices, values, positive = [0], [], [], []
    for at, line in enumerate(iter(lambda: lines.readline(LONGEST_LINE), b""), 1):
        words = line.split()
        if not words:
            continue
        tag, _, label = words[-1].rpartition(b":")
        if tag != b"#label#" or label not in (b"positive", b"negative"):
            raise DataError(
                f"{plain(name)}:{at}: a review ends with #label#:positive or #label#:negative, "
                f"but this one with {quoted(words[-1])}."
            )
        for word in words[:-1]:
            feature, _, count = word.rpartition(b":")
            try:
                value = float(count)
            except ValueError:
                raise DataError(f"{plain(name)}:{at}: a feature is word:count, got {quoted(word)}.") from None
            indices.append(numbers.setdefault(feature, len(numbers)))
            values.append(value)
        if len(numbers) > most:
            raise DataError(f"{plain(name)}:{at}: more than {most:,} different words; the paper's data have no more.")
        starts.append(len(indices))
        positive.append(label == b"positive")
        if len(positive) == REVIEW_ROWS:
            yield _block_of(starts, indices, values, positive)
            starts, indices, values, positive = [0], [], [], []
    if positive:
        yield _block_of(starts, indices, values, positive)


def _block_of(starts: list[int], indices: list[int], values: list[float], positive: list[bool]) -> Block:
    rows = (np.array(starts, np.int64), np.array(indices, np.int32), np.array(values, np.float32))
    return Block.of(rows, np.array(positive))
