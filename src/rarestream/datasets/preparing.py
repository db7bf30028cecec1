"""Prepares a data set once: its rows as svmlight text that `read` and other programs read without options.

`prepared/NAME.svm.gz` has labels -1 and +1, columns from 1 and, where the paper scaled the rows, rows of unit norm, to
the nine digits of a float32. `prepared/NAME.json` beside it, the receipt, says which files it was made of and what it
holds: a prepared file is used as long as these files stay as they were, and is prepared again otherwise.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rarestream.blocks import Block
from rarestream.datasets.catalogue import DATA_SETS, DataSet
from rarestream.datasets.originals import ORIGINALS, Found, blocks, prepared_path, unit
from rarestream.errors import DataError, OutputError, plain
from rarestream.system import write_whole

FORMAT = 1  # of prepared files: those of another one are prepared again
PIECE = 1 << 20  # bytes
FIXED_WIDTH = {"avazu"}  # whose number of features is that of the columns there could be

Report = Callable[[int], object]  # called with the number of rows written so far


class Counts:
    """Counts what a stream of blocks holds, as they pass."""

    def __init__(self) -> None:
        self.rows = self.positives = self.nonzeros = self.width = 0
        self._seen = np.zeros(0, bool)  # of every column

    def watch(self, rows: Iterable[Block], report: Report | None) -> Iterator[Block]:
        """Yield the blocks, counted."""
        for block in rows:
            assert block.labels is not None
            self.rows += len(block)
            self.positives += int(np.count_nonzero(block.labels > 0))
            self.nonzeros += block.nonzeros
            self.width = max(self.width, block.width)
            if block.width > len(self._seen):
                self._seen = np.concatenate([self._seen, np.zeros(max(block.width, 2 * len(self._seen)), bool)])
            self._seen[block.indices] = True
            if report is not None:
                report(self.rows)
            yield block

    @property
    def columns(self) -> int:
        """The number of columns that occur."""
        return int(np.count_nonzero(self._seen))

    def right_features(self, known: DataSet) -> bool:
        """Whether the number of features is that of the paper, which counts columns that occur for some sets, and for
        others those from the first to the last, or those that there could be."""
        first = int(np.argmax(self._seen)) if self._seen.any() else 0
        counts = {self.columns, self.width - first, self.width}
        return known.features in counts or (known.name in FIXED_WIDTH and self.width <= (known.features or 0))


def prepared(folder: Path, name: str, found: Found | None) -> Path | None:
    """Return the prepared file of a data set, if it is there and was made of these files.

    Parameters
    ----------
    folder : Path
        The folder of the data.
    name : str
        The data set.
    found : Found or None
        The files that it would be prepared from; None: there are none, and the prepared file is all there is.
    """
    path = prepared_path(folder, name)
    try:
        receipt = json.loads(_receipt(path).read_text("utf-8"))
        valid = receipt["format"] == FORMAT and receipt["bytes"] == path.stat().st_size
        made_of = {one["file"]: one["bytes"] for one in receipt["files"]}
    except (OSError, ValueError, KeyError, TypeError):  # there is none, or it cannot be trusted
        return None
    if not valid:
        return None
    if found is not None and made_of != {_shown(folder, file): file.stat().st_size for file in found.files}:
        return None
    return path


def prepare(folder: Path, found: Found, report: Report | None = None) -> Path:
    """Write the prepared file of a data set, atomically, and return its path.

    Raises
    ------
    DataError
        If a file is damaged, or an original holds other rows than it should. Nothing is written then.
    OutputError
        If the file cannot be written.
    """
    from rarestream.evaluate.synthetic import write_svmlight

    known = DATA_SETS[found.name]
    path = prepared_path(folder, found.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{plain(path.parent)}: cannot be made ({error.strerror}). Prepared files are written there: copy the "
            "files to a folder that can be written."
        ) from None
    counts = Counts()
    rows = counts.watch(blocks(found), report)

    def checked() -> Iterator[Block]:
        yield from (unit(block) for block in rows) if known.scaled else rows
        _check(known, found, counts)  # before the file has its name

    write_svmlight(checked(), path)
    receipt = {
        "format": FORMAT,
        "name": found.name,
        "rows": counts.rows,
        "positives": counts.positives,
        "nonzeros": counts.nonzeros,
        "columns": counts.columns,
        "width": counts.width,
        "scaled": known.scaled,
        "bytes": path.stat().st_size,
        "files": [_file(folder, file) for file in found.files],
    }
    write_whole(_receipt(path), (json.dumps(receipt, indent=1) + "\n").encode())
    return path


def _check(known: DataSet, found: Found, counts: Counts) -> None:
    """Compare what was counted with what is published."""
    files = ", ".join(plain(file) for file in found.files)
    if (counts.rows, counts.positives) != (known.rows, known.positives):
        message = (
            f"{files}: {counts.rows:,} rows, {counts.positives:,} of them positive; {known.name} has {known.rows:,}, "
            f"{known.positives:,} of them positive."
        )
        if found.form == ORIGINALS:
            raise DataError(f"{message} Fetch the files again, or check that they are those of {known.name}.")
        warnings.warn(f"{message} They are used as they are.", stacklevel=2)
    elif not counts.right_features(known):
        warnings.warn(
            f"{files}: {counts.columns:,} columns occur, the last is {counts.width:,}; the paper gives {known.name} "
            f"{known.features:,} features. The rows are used as they are.",
            stacklevel=2,
        )


def _receipt(path: Path) -> Path:
    return path.with_name(path.name.partition(".")[0] + ".json")


def _file(folder: Path, file: Path) -> dict[str, Any]:
    return {"file": _shown(folder, file), "bytes": file.stat().st_size, "sha256": sha256_of(file)}


def _shown(folder: Path, file: Path) -> str:
    return file.relative_to(folder).as_posix()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()
