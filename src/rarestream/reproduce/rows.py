"""Rows: labelled rows in double precision, as the published code holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Labelled rows in double precision."""

    X: Any  # scipy.sparse.csr_array of float64, its indices sorted and unique within a row
    labels: NDArray[np.int8]  # -1 or +1

    @classmethod
    def of(cls, block: Block, n_features: int | None = None) -> Rows:
        """Return the labelled rows of a Block; values that were rounded to float32 stay so."""
        if block.labels is None:
            raise DataError("Rows: the rows of a Block need labels.")
        return cls(block.to_csr(n_features).astype(np.float64), block.labels)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    def take(self, rows: NDArray[np.integer[Any]]) -> Rows:
        """Return the given rows, in the given order."""
        return Rows(self.X[rows], self.labels[rows])

    def unit(self) -> Rows:
        """Return every row divided by its norm; empty rows stay as they are."""
        squares = self.X.power(2).sum(axis=1)
        norms = np.sqrt(np.where(squares > 0, squares, 1.0))
        X = self.X.copy()
        X.data /= np.repeat(norms, np.diff(X.indptr))
        return Rows(X, self.labels)

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the score of each row."""
        scores: NDArray[np.float64] = self.X @ weights
        return scores
