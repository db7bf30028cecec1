"""What a model looks at: its largest weights by name, and the share of each namespace in its scores.

The share of a namespace, such as a column of a table, is measured on rows: its contribution to the score of a row is
the sum of what its features add, and

    share = Var(contribution of the namespace) / sum of these variances of all namespaces.

Without rows nobody knows how often a feature occurs, and the share is that of the squared weights, which favours
namespaces with many rare features. Namespaces are correlated, so that the variances do not sum to that of the score.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError, plain
from rarestream.features import Hashed, described, namespace_of
from rarestream.model import Model

UNKNOWN = None  # the namespace of a slot whose name is not known


class Weight(NamedTuple):
    """A weight of a model; with `other`, beside that of another model."""

    feature: int  # index, from 0
    weight: float
    other: float | None = None

    @property
    def change(self) -> float:
        """The difference to the other model's."""
        return self.weight - (self.other or 0.0)


class NamespaceShare(NamedTuple):
    """A namespace and its part of the model.

    Attributes
    ----------
    namespace : str or None
        None: features whose names are not known.
    weights : int
        Number of its non-zero weights.
    share : float
        Of the variance of the scores' parts, or of the squared weights: see this module.
    """

    namespace: str | None
    weights: int
    share: float


class Namespaces:
    """Finds the namespaces of the features of a model, by their names.

    Parameters
    ----------
    model : Model
        A model with hashed features.
    """

    def __init__(self, model: Model) -> None:
        assert isinstance(model.features, Hashed)
        self._space = model.features
        plan = self._space.plan
        self._columns: Collection[str] = (
            set() if plan is None else {column.name for column in plan.columns} | set(plan.crosses)
        )
        self.names: list[str | None] = []
        self._numbers: dict[str | None, int] = {}

    def of(self, features: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the number of the namespace of each feature, a position in `names`."""
        table = self._space.names
        names = [None] * len(features) if table is None else table.names(np.ascontiguousarray(features, np.int32))
        found = np.empty(len(features), np.int64)
        for at, name in enumerate(names):
            namespace = UNKNOWN if name is None else namespace_of(name, self._columns)
            if namespace not in self._numbers:
                self._numbers[namespace] = len(self.names)
                self.names.append(namespace)
            found[at] = self._numbers[namespace]
        return found


def namespace_shares(model: Model, blocks: Iterable[Block] | None = None) -> list[NamespaceShare]:
    """Return the share of each namespace in the scores, the largest first; [] for a model of column numbers.

    Parameters
    ----------
    model : Model
        The model.
    blocks : iterable of Block, optional
        Rows to measure the shares on. By default they are those of the squared weights.

    Raises
    ------
    DataError
        If the rows have other features than the model.
    """
    if not isinstance(model.features, Hashed):
        return []
    namespaces = Namespaces(model)
    weights = model.coef
    living = np.flatnonzero(weights).astype(np.int32)
    of = namespaces.of(living)
    amounts: NDArray[Any]
    if blocks is None:
        amounts = np.bincount(of, np.square(weights[living], dtype=np.float64), len(namespaces.names))
    else:
        amounts = _variances(model, blocks, namespaces)
    counts = np.bincount(of, minlength=len(namespaces.names))
    whole = float(amounts.sum()) or 1.0
    shares = [
        NamespaceShare(name, int(counts[at]), float(amounts[at]) / whole) for at, name in enumerate(namespaces.names)
    ]
    return sorted(shares, key=lambda entry: (-entry.share, entry.namespace or ""))


def _variances(model: Model, blocks: Iterable[Block], namespaces: Namespaces) -> NDArray[np.float64]:
    """Return the variance of what each namespace adds to the scores of the rows."""
    sums, squares, rows = np.zeros(0), np.zeros(0), 0
    for block in blocks:
        features, places = np.unique(block.indices, return_inverse=True)
        of = namespaces.of(features)
        many = len(namespaces.names)
        row_of = np.repeat(np.arange(len(block)), np.diff(block.indptr))
        keys, parts = np.unique(row_of * many + of[places], return_inverse=True)
        added = np.bincount(parts, model.contributions(block), len(keys))
        sums = _widened(sums, many) + np.bincount(keys % many, added, many)
        squares = _widened(squares, many) + np.bincount(keys % many, np.square(added), many)
        rows += len(block)
    if not rows:
        raise DataError("namespace_shares: there are no rows.")
    many = len(namespaces.names)
    sums, squares = _widened(sums, many), _widened(squares, many)
    return np.maximum(0.0, squares / rows - np.square(sums / rows))


def _widened(array: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    return np.concatenate([array, np.zeros(size - len(array))])


def largest_weights(model: Model, top: int, namespace: str | None = None) -> list[Weight]:
    """Return the largest weights of a model, in absolute value.

    Parameters
    ----------
    model : Model
        The model.
    top : int
        How many.
    namespace : str, optional
        Only those of this namespace.

    Raises
    ------
    DataError
        If the model has no such namespace.
    """
    weights = model.coef
    living = _within(model, np.flatnonzero(weights), namespace)
    order = living[np.argsort(-np.abs(weights[living]), kind="stable")][:top]
    return [Weight(int(feature), float(weights[feature])) for feature in order]


def changed_weights(model: Model, other: Model, top: int, namespace: str | None = None) -> list[Weight]:
    """Return the weights of a model that differ most from those of another one; see `largest_weights`.

    Raises
    ------
    DataError
        If the models have different feature spaces, or the model no such namespace.
    """
    if model.features is not None and not model.features.compatible(other.features):
        raise DataError(
            f"diff: the models cannot be compared: one has {described(model.features)}, the other "
            f"{described(other.features)}. Compare models of the same features."
        )
    mine, theirs = np.zeros((2, max(model.n_features, other.n_features)))
    mine[: model.n_features] = model.coef
    theirs[: other.n_features] = other.coef
    moved = _within(model, np.flatnonzero(mine != theirs), namespace)
    order = moved[np.argsort(-np.abs(mine[moved] - theirs[moved]), kind="stable")][:top]
    return [Weight(int(feature), float(mine[feature]), float(theirs[feature])) for feature in order]


def _within(model: Model, features: NDArray[Any], namespace: str | None) -> NDArray[Any]:
    if namespace is None:
        return features
    if not isinstance(model.features, Hashed):
        raise DataError("inspect: the features of this model are column numbers, which have no namespaces.")
    namespaces = Namespaces(model)
    of = namespaces.of(features.astype(np.int32))
    if namespace not in namespaces.names:
        known = sorted(name for name in namespaces.names if name)
        listed = ", ".join(repr(plain(name)) for name in known[:12]) + (" and more" if len(known) > 12 else "")
        raise DataError(f"inspect: no feature with a weight is in the namespace {namespace!r}; there are {listed}.")
    within: NDArray[Any] = features[of == namespaces.names.index(namespace)]
    return within
