"""The data and splits of the paper's experiments, as they were coded.

    splits     a generator is seeded with 17 when a data set is loaded, then draws ten permutations of its n rows:
               trial j learns the first int(4 n / 6) rows of the j-th in that order, chooses settings on those up to
               int(5 n / 6), and is tested on the rest
    imbalance  of the whole file, in its order, all negatives and the first int(ratio n_neg) positives stay; the same
               generator then draws ten more permutations, of these rows. So validation and test are imbalanced too

NumPy has kept the stream of RandomState, so the rows of a trial are the authors' own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import concatenate
from rarestream.datasets.catalogue import DATA_SETS
from rarestream.datasets.originals import COMPRESSED, Found, blocks, find
from rarestream.errors import RarestreamError
from rarestream.reproduce.rows import Rows
from rarestream.study.splits import Split, cut

SEED, TRIALS = 17, 10


class DataSetError(RarestreamError):
    """A data set of the paper that is missing, or differs from the paper's."""


def load(folder: Path, name: str) -> Rows:
    """Load the rows of a data set in the order of its files; DataSetError if there are none."""
    found = find(folder, name)
    if found is None:
        raise DataSetError(
            f"{folder / name}.svm: no such file, nor with {', '.join(COMPRESSED)}. Put the {name} data there in "
            "svmlight format, or pass the folder that has them."
        )
    return load_files(found)


def load_files(found: Found) -> Rows:
    """Load the rows of some files, divided by their norms where the authors did it; others came that way."""
    rows = Rows.of(concatenate(blocks(found)))
    return rows.unit() if found.name in DATA_SETS and DATA_SETS[found.name].scaled else rows


def splits(n: int) -> list[Split]:
    """Return the ten trials of a data set of n rows."""
    return _drawn(np.random.RandomState(SEED), n)


def imbalanced(labels: NDArray[np.int8], ratio: float) -> tuple[NDArray[np.int64], list[Split]]:
    """Return the rows that stay at a positive:negative ratio, and the ten trials of these rows."""
    generator = np.random.RandomState(SEED)
    _drawn(generator, len(labels))  # loading the data set had drawn them
    positive = labels > 0
    kept = ~positive | (np.cumsum(positive) <= int(ratio * np.count_nonzero(~positive)))
    return np.flatnonzero(kept), _drawn(generator, int(np.count_nonzero(kept)))


def _drawn(generator: np.random.RandomState, n: int) -> list[Split]:
    return [cut(generator.permutation(n)) for _ in range(TRIALS)]


def trials(rows: Rows, ratio: float | None) -> tuple[Rows, list[Split]]:
    """Return the rows of an experiment, all or at a positive:negative ratio, and its ten trials."""
    if ratio is None:
        return rows, splits(len(rows))
    kept, found = imbalanced(rows.labels, ratio)
    return rows.take(kept), found
