"""The data sets of the paper's Table I: which of them a folder has, and how close they are to the paper's.

A data set is the file `<name>.svm` of the folder, compressed or not, what `rarestream.datasets.load` has prepared
there, or the files of its publisher. Its rows are identified by a checksum:

    exact      the paper's rows
    rebuilt    made from the same texts, by rules worked out from known rows
    subset     some rows of the paper's set
    generated  a synthetic stream of the data set's shape, in place of it
    own        unknown rows
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rarestream.blocks import concatenate
from rarestream.datasets.catalogue import DATA_SETS
from rarestream.datasets.originals import Found, find
from rarestream.evaluate.synthetic import Planted
from rarestream.reproduce import protocol
from rarestream.reproduce.paper import numbers
from rarestream.reproduce.rows import Rows

NAMES = ("real-sim", "farm-ads", "rcv1b", "imdb", "reviews", "news20b")  # in the order of the paper's panels
AVAZU = "avazu"
EXACT, REBUILT, SUBSET, GENERATED, OWN = "exact", "rebuilt", "subset", "generated", "own"
OTHER_ROWS = (SUBSET, GENERATED)  # not comparable with published numbers
KNOWN = {  # by the checksum of indices and labels
    "41256753": (EXACT, "the published runs on it are reproduced, non-zero for non-zero"),
    "e5ede7e7": (EXACT, "the original files"),
    "d3dfa702": (REBUILT, "the same reviews and vocabulary; 30 of 148,498 entries that could be compared differ"),
    "3d8b940e": (REBUILT, "the same posts in another order; all 100 rows that could be compared are identical"),
    "8c271471": (SUBSET, "23,765 of the 697,641 documents: not comparable with the published numbers"),
}
PIECE = 1 << 24  # bytes


@dataclass(frozen=True)
class Source:
    """Where the rows of a data set come from."""

    name: str  # the paper's
    mark: str  # a checksum: results of other rows are not mixed with these
    found: Found | None  # its files; None for a generated stream
    generated: int = 0  # rows of a generated stream


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set in memory."""

    name: str
    rows: Rows
    data: str  # exact, rebuilt, subset, generated or own
    note: str

    @property
    def shape(self) -> dict[str, Any]:
        """A line of Table I, with what is known of the rows."""
        n, positives = len(self.rows), int(np.count_nonzero(self.rows.labels > 0))
        return {
            "n": n,
            "n_pos": positives,
            "n_neg": n - positives,
            "d": self.rows.n_features,
            "k": self.rows.X.nnz / max(n, 1),
            "data": self.data,
            "note": self.note,
        }


def sources(folder: Path, names: Iterable[str]) -> dict[str, Source]:
    """Return the data sets that the folder has, by name."""
    found = {name: find(folder, name) for name in names}
    return {name: Source(name, f"{_sum_of(one.files):08x}", one) for name, one in found.items() if one is not None}


def stream(rows: int) -> Source:
    """Return a synthetic stream of click events in place of avazu."""
    return Source(AVAZU, f"{GENERATED}-{rows}", None, rows)


def streamed(mark: str) -> int:
    """Return how many rows the stream of that mark has; 0: it is not a stream."""
    return int(mark.removeprefix(f"{GENERATED}-")) if mark.startswith(f"{GENERATED}-") else 0


def places(folder: Path, names: Iterable[str]) -> list[str]:
    """Return one line per data set: where its file is looked for."""
    published = numbers()["table1"]
    return [
        f"{name}: {folder / name}.svm, plain or .bz2, .gz, .xz: {published[name]['n']:,} rows in svmlight format; "
        f"or {' and '.join(one.name for one in DATA_SETS[name].originals)}"
        for name in names
    ]


def load(source: Source) -> DataSet:
    """Load the rows, scaled as the paper scaled them."""
    if source.found is None:
        parts = Planted.plant(seed=protocol.SEED, positives=_avazu_share()).rows(source.generated)
        rows = Rows.of(concatenate(part.block for part in parts)).unit()
        note = f"a synthetic stream of {source.generated:,} rows in place of avazu, which is missing"
        return DataSet(source.name, rows, GENERATED, note)
    rows = protocol.load_files(source.found)
    data, note = KNOWN.get(checksum(rows), (OWN, "unknown rows"))
    return DataSet(source.name, rows, data, note)


def checksum(rows: Rows) -> str:
    """Return a checksum of the rows' indices and labels, in their order."""
    return f"{zlib.crc32(rows.labels.tobytes(), zlib.crc32(rows.X.indices.astype(np.int32).tobytes())):08x}"


def _avazu_share() -> float:
    avazu = numbers()["table1"][AVAZU]
    return float(avazu["n_pos"] / avazu["n"])


def _sum_of(paths: Iterable[Path]) -> int:
    crc = 0
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                crc = zlib.crc32(piece, crc)
    return crc
