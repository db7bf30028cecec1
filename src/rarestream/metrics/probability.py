"""Measures of probabilities: log loss, Brier score, calibration error and normalised entropy.

With p the probability of a row, y = 1 for a positive and 0 for a negative, and means weighted by importance:

    log loss            mean of -log p for positives and -log(1 - p) for negatives
    Brier score         mean of (p - y)^2
    normalised entropy  log loss / log loss of the share of positives as everybody's probability [1]
    calibration error   mean over bins of |mean p - share of positives| [2]

[1] He et al. Practical lessons from predicting clicks on ads at Facebook. ADKDD 2014.
[2] Naeini, Cooper, Hauskrecht. Obtaining well calibrated probabilities using Bayesian binning. AAAI 2015.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics import student
from rarestream.metrics.estimate import checked_level
from rarestream.metrics.rows import ScoredRows, as_rows, raise_fault, raise_one_class

Floats = NDArray[np.float64]
BinsBy = Literal["rows", "width"]

SMALLEST = float(np.finfo(np.float64).eps)  # what a probability of 0 counts as in a logarithm, as in scikit-learn
BINS = 15  # as in Guo, Pleiss, Sun, Weinberger. On calibration of modern neural networks. ICML 2017


def log_loss(labels: ArrayLike, probabilities: ArrayLike, importances: ArrayLike | None = None) -> float:
    """Compute the log loss: the mean of -log of the probability that was given to what happened.

    Parameters
    ----------
    labels : array-like of shape (rows,)
        -1 and +1, 0 and 1, or booleans.
    probabilities : array-like of shape (rows,)
        Of a positive, between 0 and 1. 0 and 1 count as if they were 2.2e-16 away, so that no row costs more than 36.
    importances : array-like of shape (rows,), optional
        Finite and >= 0. A row of importance h counts as h rows. By default 1.

    Returns
    -------
    float
        The log loss, in nats; 0 is best.

    Raises
    ------
    DataError
        If a row is invalid, or there is none.
    """
    return _losses(_rows("log_loss", labels, probabilities, importances)).log_loss


def brier_score(labels: ArrayLike, probabilities: ArrayLike, importances: ArrayLike | None = None) -> float:
    """Compute the Brier score: the mean squared difference of probability and outcome.

    Parameters
    ----------
    labels, probabilities, importances : array-like
        As for `log_loss`.

    Returns
    -------
    float
        The Brier score, between 0 and 1; 0 is best.

    Raises
    ------
    DataError
        If a row is invalid, or there is none.
    """
    return _losses(_rows("brier_score", labels, probabilities, importances)).brier_score


def normalised_entropy(labels: ArrayLike, probabilities: ArrayLike, importances: ArrayLike | None = None) -> float:
    """Compute the log loss as a share of that of one probability for all rows, the share of positives.

    Parameters
    ----------
    labels, probabilities, importances : array-like
        As for `log_loss`.

    Returns
    -------
    float
        The normalised entropy: 0 is best, and 1 is no better than knowing the share of positives.

    Raises
    ------
    DataError
        If a row is invalid, or a class is missing.
    """
    rows = _rows("normalised_entropy", labels, probabilities, importances)
    sums = _losses(rows)
    if not 0 < sums.positive < sums.weight:
        _, _, n_pos, n_neg = _native.survey_labels(*rows)
        raise_one_class("normalised_entropy", n_pos, n_neg)
    return sums.normalised_entropy


@dataclass(frozen=True, eq=False)
class Reliability:
    """The result of `reliability`: bins of rows with similar probabilities, as arrays of equal length.

    Attributes
    ----------
    low, high : array
        Smallest and largest probability in a bin; with equal widths, the edges of the bin.
    rows : array of int
        Number of rows in a bin.
    weight : array
        Their importance, which is their number if there are none.
    probability : array
        Mean probability.
    share : array
        Share of positives: what the mean probability should be.
    share_low, share_high : array
        Wilson's interval of the share.
    by : {"rows", "width"}
        Whether bins have about as many rows each, or are of equal width.
    level : float
        Confidence level of the intervals.
    """

    low: Floats
    high: Floats
    rows: NDArray[np.int64]
    weight: Floats
    probability: Floats
    share: Floats
    share_low: Floats
    share_high: Floats
    by: BinsBy
    level: float

    @property
    def error(self) -> float:
        """Expected calibration error: the mean distance of probability and share, by importance."""
        shares = self.weight / self.weight.max()
        return float((np.abs(self.probability - self.share) * shares).sum() / shares.sum())

    @property
    def largest_error(self) -> float:
        """Maximum calibration error: the largest distance of probability and share in a bin."""
        return float(np.abs(self.probability - self.share).max())

    def __len__(self) -> int:
        return len(self.rows)

    def records(self) -> list[dict[str, Any]]:
        """Return the bins as dicts, ready for JSON."""
        names = ("low", "high", "rows", "weight", "probability", "share", "share_low", "share_high")
        columns = [getattr(self, name).tolist() for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def reliability(
    labels: ArrayLike,
    probabilities: ArrayLike,
    importances: ArrayLike | None = None,
    *,
    bins: int = BINS,
    by: BinsBy = "rows",
    level: float = 0.95,
) -> Reliability:
    """Compare probabilities with the shares of positives, in bins of rows with similar probabilities.

    Parameters
    ----------
    labels, probabilities, importances : array-like
        As for `log_loss`.
    bins : int, >= 1, default 15
        Number of bins, at most. Bins without rows are left out.
    by : {"rows", "width"}
        "rows": bins of about equal importance, which is the default, as the probabilities of rare events are all
        small; equal probabilities are in the same bin. "width": bins of equal width from 0 to 1.
    level : float, between 0 and 1, default 0.95
        Confidence level of the intervals.

    Returns
    -------
    Reliability
        The bins, and the calibration error.

    Raises
    ------
    DataError
        If a row or an option is invalid, or there is no row.
    """
    checked_level(level)
    if by not in get_args(BinsBy):
        raise DataError(f"reliability: by must be 'rows' or 'width', got {by!r}.")
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise DataError(f"reliability: bins must be a whole number >= 1, got {bins!r}.")
    rows = _rows("reliability", labels, probabilities, importances)
    values, at = np.unique(rows.scores, return_inverse=True)
    at = at.reshape(-1)
    scale = 1.0 if rows.importances is None else _scale(rows.importances)
    h = np.ones(len(at)) if rows.importances is None else rows.importances / scale
    weight, positive = np.bincount(at, h), np.bincount(at, h * (rows.labels > 0))
    if by == "width":
        place = np.minimum((values * bins).astype(np.int64), bins - 1)
    else:
        middle = np.cumsum(weight) - weight / 2
        place = np.minimum((bins * (middle / float(weight.sum()))).astype(np.int64), bins - 1)
    used, bin_of = np.unique(place, return_inverse=True)
    n = len(used)
    first = np.searchsorted(bin_of, np.arange(n))
    smallest, largest = values[first], values[np.append(first[1:], len(values)) - 1]
    total = np.bincount(bin_of, weight, n)
    share = np.bincount(bin_of, positive, n) / total
    squares = np.bincount(bin_of, np.bincount(at, h * h), n)
    low, high = _wilson(share, total * total / squares, level)
    return Reliability(
        used / bins if by == "width" else smallest,
        (used + 1) / bins if by == "width" else largest,
        np.bincount(bin_of[at], minlength=n),
        np.multiply(total, scale, dtype=np.float64),
        np.clip(np.bincount(bin_of, weight * values, n) / total, smallest, largest),  # rounding aside it is there
        share,
        low,
        high,
        by,
        level,
    )


def calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    importances: ArrayLike | None = None,
    *,
    bins: int = BINS,
    by: BinsBy = "rows",
) -> float:
    """Compute the expected calibration error: how far probabilities are from shares of positives, on average.

    Parameters
    ----------
    labels, probabilities, importances, bins, by
        As for `reliability`, which has the bins too.

    Returns
    -------
    float
        The calibration error, between 0 and 1; 0 is best.

    Raises
    ------
    DataError
        As for `reliability`.
    """
    return reliability(labels, probabilities, importances, bins=bins, by=by).error


class Losses:
    """Sums of the losses of rows, added a batch at a time."""

    def __init__(self) -> None:
        self.weight = self.positive = 0.0  # importance of all rows, and of the positive ones
        self._log = self._squares = 0.0

    def add(self, rows: ScoredRows) -> None:
        """Add rows whose scores are probabilities."""
        positive, p = rows.labels > 0, rows.scores
        right = np.clip(np.where(positive, p, 1 - p), SMALLEST, 1 - SMALLEST)
        losses, squares = -np.log(right), (p - positive) ** 2
        if rows.importances is None:
            self.weight += len(p)
            self.positive += int(np.count_nonzero(positive))
        else:
            h = rows.importances
            self.weight += float(h.sum())
            self.positive += float(h[positive].sum())
            losses, squares = h * losses, h * squares
        self._log += float(losses.sum())
        self._squares += float(squares.sum())

    @property
    def log_loss(self) -> float:
        """Mean log loss."""
        return self._log / self.weight

    @property
    def brier_score(self) -> float:
        """Mean squared error."""
        return self._squares / self.weight

    @property
    def normalised_entropy(self) -> float:
        """Log loss as a share of that of the share of positives. Both classes must be there."""
        share = self.positive / self.weight
        return self.log_loss / -(share * math.log(share) + (1 - share) * math.log1p(-share))


def _losses(rows: ScoredRows) -> Losses:
    sums = Losses()
    if rows.importances is not None:  # the sum of large ones could overflow
        rows = rows._replace(importances=rows.importances / _scale(rows.importances))
    sums.add(rows)
    return sums


def _rows(where: str, labels: ArrayLike, probabilities: ArrayLike, importances: ArrayLike | None) -> ScoredRows:
    """Return the rows that count, or raise a DataError."""
    rows = as_rows(where, labels, probabilities, importances)
    check_probabilities(where, rows.scores)
    fault, row, _, _ = _native.survey_labels(*rows)
    if fault:
        raise_fault(where, fault, row, labels, rows)
    if rows.importances is not None:
        counted = rows.importances > 0
        rows = ScoredRows(rows.labels[counted], rows.scores[counted], rows.importances[counted])
    if not len(rows.labels):
        raise DataError(f"{where}: there are no rows (those of importance 0 aside). Pass some.")
    return rows


def check_probabilities(where: str, probabilities: Floats, first: int = 0) -> None:
    """Raise a DataError if a number is not between 0 and 1. Rows count from `first` in the message."""
    wrong = np.flatnonzero(~((probabilities >= 0) & (probabilities <= 1)))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{where}: row {first + row} has the probability {probabilities[row]}; probabilities lie between 0 and 1. "
            "Scores of a ranking are none: calibrate them first."
        )


def _scale(importances: Floats) -> float:
    """Return a number to divide importances by: a power of two, so that whole numbers still add up exactly."""
    return math.ldexp(1.0, math.frexp(float(importances.max()))[1] - 1)


def _wilson(share: Floats, trials: Floats, level: float) -> tuple[Floats, Floats]:
    """Return Wilson's interval of shares of so many trials each."""
    z = student.quantile((1 + level) / 2, math.inf)
    shrink = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / shrink
    half = z * np.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2) / shrink
    return np.clip(np.minimum(share, centre - half), 0, 1), np.clip(np.maximum(share, centre + half), 0, 1)
