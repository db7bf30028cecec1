"""What each feature of a row adds to its score.

A score is <w, x> of the row as the model scales it. With x as given, the scale is a factor f per feature:

    none: f = 1        unit: f = 1 / |x|        max: f = 1 / m_j / |x / m|,    m_j the largest |x_j| so far or here

so a feature adds x_j times w_j f_j: its value as given times a weight that holds for this row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block

F64 = NDArray[np.float64]


class Term(NamedTuple):
    """What one feature adds to the score of a row.

    Attributes
    ----------
    name : str
        The feature: its name, "slot 123" if that is unknown, or the number of its column.
    value : float
        Its value in the row, as given.
    weight : float
        What a value of 1 adds in this row: the model's weight, divided by what the row is scaled by.
    contribution : float
        What it adds to the score: value times weight.
    """

    name: str
    value: float
    weight: float
    contribution: float


class Explanation(NamedTuple):
    """The score of a row, and what each of its features adds to it.

    Attributes
    ----------
    score : float
        The score. The contributions sum to it, up to rounding.
    terms : tuple of Term
        The features of the row, those with the largest absolute contributions first.
    """

    score: float
    terms: tuple[Term, ...]


def row_weights(block: Block, scale: str, weights: F64, largest: F64 | None) -> F64:
    """Return the weights of all entries of a block, for values as given.

    `weights` and `largest` are those of the entries, `largest` with scale="max".
    """
    values = block.values.astype(np.float64)
    factors = np.ones(len(values))
    if largest is not None:
        maxima = np.maximum(np.abs(values), largest)
        factors = np.divide(1.0, maxima, out=np.zeros(len(values)), where=maxima > 0)
    if scale != "none":
        row_of = np.repeat(np.arange(len(block)), np.diff(block.indptr))
        norms = np.sqrt(np.bincount(row_of, np.square(values * factors), len(block)))
        factors *= np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)[row_of]
    return weights * factors


def explanations(block: Block, names: list[str], weights: F64, scores: F64) -> list[Explanation]:
    """Return what the entries of each row add to its score; `weights` are those for values as given."""
    values = block.values.astype(np.float64)
    contributions = values * weights
    found = []
    for row, score in enumerate(scores.tolist()):
        start, stop = int(block.indptr[row]), int(block.indptr[row + 1])
        order = start + np.argsort(-np.abs(contributions[start:stop]), kind="stable")
        terms = (
            Term(names[at], float(values[at]), float(weights[at]), float(contributions[at])) for at in order.tolist()
        )
        found.append(Explanation(score, tuple(terms)))
    return found
