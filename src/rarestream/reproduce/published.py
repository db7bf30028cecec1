"""What the C code of the FTRL-AUC paper computed, slips included: the way from its settings to its numbers.

The arithmetic stands in native/published/, in double precision, and agrees with
the authors' program to rounding; docs/published.md lists the slips. It is here to
explain published numbers and shares nothing with `rarestream.learners`, which is
what to learn with.

Methods and settings go by the names of the authors' program:

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
from rarestream.metrics.rows import surveyed
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
    """A method after some rows of a stream."""

    rows: int  # learned so far
    weights: NDArray[np.float64]  # of the model that was evaluated, one to a feature; no intercept
    online_scores: NDArray[np.float64]  # of each row so far, before it was learned

    @property
    def nonzeros(self) -> int:
        return int(np.count_nonzero(self.weights))


def run(method: str, rows: Rows, params: Mapping[str, float]) -> Run:
    """The method after one pass over the rows, in their order."""
    (end,) = runs(method, rows, params, [len(rows)])
    return end


def runs(method: str, rows: Rows, params: Mapping[str, float], checkpoints: Iterable[int]) -> Iterator[Run]:
    """The same pass, stopped to look at it: after each number of rows in `checkpoints`, which ascend from 1."""
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
    """The settings in the order of METHODS, checked."""
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
    """The AUC of the authors' routine: ties go by the order of the rows, and the row that ranks last is left out.

    It is low by 1 / n_neg whenever a negative ranks last. `rarestream.auc` is the right one.
    """
    rows = surveyed("published_auc", labels, scores, None)
    positive = rows.labels > 0
    ranked = positive[np.argsort(-rows.scores, kind="stable")][:-1]
    above = np.cumsum(ranked)[~ranked]  # positives above each negative
    n_pos = int(np.count_nonzero(positive))
    return int(above.sum()) / (n_pos * (len(positive) - n_pos))
