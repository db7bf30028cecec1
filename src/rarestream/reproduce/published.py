"""What the C code of the FTRL-AUC paper computed, with the authors' bugs: from its settings to its numbers.

The arithmetic is in native/published/, in double precision, and agrees with the
authors' program to rounding; docs/published.md lists the errata. It is here to
explain published numbers and shares nothing with `rarestream.learners`, which is
what to learn with.

Methods and settings have the names of the authors' program:

    ftrl_auc, ftrl_auc_non_lazy, ftrl_proximal    l1 (lambda), l2, beta, gamma
    spam_l1, spam_l2, spam_l1l2                   xi, l1, l2
    spauc                                         mu, l1
    solam                                         xi, r
    fsauc                                         r, g
    rda_l1                                        lambda, gamma, rho
    adagrad                                       lambda, eta, epsilon
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics.rows import valid_rows
from rarestream.reproduce.rows import Rows

_FTRL = ("l1", "l2", "beta", "gamma")
_SPAM = ("xi", "l1", "l2")
METHODS: dict[str, tuple[str, ...]] = {
    "ftrl_auc": _FTRL,
    "ftrl_auc_non_lazy": _FTRL,
    "ftrl_proximal": _FTRL,
    "spam_l1": _SPAM,
    "spam_l2": _SPAM,
    "spam_l1l2": _SPAM,
    "spauc": ("mu", "l1"),
    "solam": ("xi", "r"),
    "fsauc": ("r", "g"),
    "rda_l1": ("lambda", "gamma", "rho"),
    "adagrad": ("lambda", "eta", "epsilon"),
}
NOT_ZERO = {"gamma", "xi", "r", "g", "eta", "epsilon"}  # rates, radii, and what is divided by; the others may be 0
FSAUC_LEAST = 44  # with fewer rows the number of its stages is not positive: the authors' program divides by it


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A published method after some rows of a stream.

    Attributes
    ----------
    rows : int
        Number of rows learned so far.
    weights : array of shape (n_features,)
        Weights of the model that the authors evaluated; there is no intercept.
    online_scores : array of shape (rows,)
        The score that each row had before it was learned.
    """

    rows: int
    weights: NDArray[np.float64]
    online_scores: NDArray[np.float64]

    @property
    def nonzeros(self) -> int:
        """The number of weights that are not zero."""
        return int(np.count_nonzero(self.weights))


def run(method: str, rows: Rows, params: Mapping[str, float]) -> Run:
    """Run a published method: one pass over the rows, in their order.

    Parameters
    ----------
    method : str
        A name of `METHODS`.
    rows : Rows
        The training rows.
    params : mapping of str to float
        The settings, by the names that `METHODS` lists.

    Returns
    -------
    Run
        The method after the last row.

    Raises
    ------
    ValueError
        If the method or a setting is unknown, missing or out of range.
    DataError
        If there are too few rows.
    """
    (end,) = runs(method, rows, params, [len(rows)])
    return end


def runs(method: str, rows: Rows, params: Mapping[str, float], checkpoints: Iterable[int]) -> Iterator[Run]:
    """Run a published method, and yield it at checkpoints.

    Parameters
    ----------
    method, rows, params
        As for `run`.
    checkpoints : iterable of int
        Numbers of rows, ascending, from 1 to the number of training rows.

    Yields
    ------
    Run
        The method after each of these numbers of rows.

    Raises
    ------
    ValueError
        If the method, a setting or a checkpoint is wrong.
    DataError
        If there are too few rows.
    """
    kernel = _native.PublishedMethod(method, _settings(method, rows, params), rows.n_features, len(rows))
    starts, columns = rows.X.indptr.astype(np.int64), rows.X.indices.astype(np.int32, copy=False)
    scores = np.zeros(len(rows))
    done = 0
    for stop in checkpoints:
        if not done < stop <= len(rows):
            raise ValueError(f"{method}: checkpoints must ascend from 1 to {len(rows)} rows, got {stop} after {done}.")
        kernel.learn(starts[done : stop + 1], columns, rows.X.data, rows.labels[done:stop], scores[done:stop])
        done = stop
        yield Run(done, kernel.weights(), scores[:done])


def _settings(method: str, rows: Rows, params: Mapping[str, float]) -> list[float]:
    """Return the settings in the order of METHODS, checked."""
    if method not in METHODS:
        raise ValueError(f"no published method is called {method!r}; there are {', '.join(METHODS)}.")
    names = METHODS[method]
    for name in params:
        if name not in names:
            raise ValueError(f"{method}: no setting is called {name!r}; there are {', '.join(names)}.")
    missing = [name for name in names if name not in params]
    if missing:
        raise ValueError(f"{method}: needs {', '.join(names)}; {', '.join(missing)} was not given.")
    for name in names:
        value, zero = params[name], name not in NOT_ZERO
        if not (math.isfinite(value) and (value > 0 or (zero and value == 0))):
            raise ValueError(f"{method}: {name} must be {'>= 0' if zero else '> 0'} and finite, got {value!r}.")
    least = FSAUC_LEAST if method == "fsauc" else 1
    if len(rows) < least:
        raise DataError(f"{method}: needs at least {least} rows, got {len(rows)}.")
    return [float(params[name]) for name in names]


def published_auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Compute the AUC as the authors' routine does: ties are broken by row order, and the last-ranked row is omitted.

    It is low by 1 / n_neg whenever a negative ranks last. `rarestream.auc` is the exact one.

    Parameters
    ----------
    labels : array-like of shape (rows,)
        -1 or +1.
    scores : array-like of shape (rows,)
        One per label.

    Returns
    -------
    float
        The AUC of the authors' routine.

    Raises
    ------
    DataError
        If labels and scores do not fit together, or there is only one class.
    """
    rows = valid_rows("published_auc", labels, scores, None)
    positive = rows.labels > 0
    ranked = positive[np.argsort(-rows.scores, kind="stable")][:-1]
    above = np.cumsum(ranked)[~ranked]  # positives above each negative
    n_pos = int(np.count_nonzero(positive))
    return int(above.sum()) / (n_pos * (len(positive) - n_pos))
