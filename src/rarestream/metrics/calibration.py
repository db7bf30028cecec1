"""Calibration: probabilities from the scores of a stream, fitted while it is learned.

With u the root mean square of the scores s, the log odds of a row are taken as

    log odds = slope s / u + intercept.

The two numbers are fitted to the scores that rows had before they were learned, by
Newton's method online [1]: with g the sum of the slopes of the logistic loss and A
that of its second derivatives, a step is -(A + 0.1)^-1 g. In A and u old rows fade:
after T rows, row t counts (t / T)^2, since a model gives other scores when it has
just begun. In a row that is far on the wrong side the second derivative is almost
zero; that of a parabola above the loss takes its place. A step is made after each of
the first 256 rows, then after 8, and after 2048 rows after 64. Beyond 8192 rows one
row in eight of the larger class is used, and counts eight times.

The variance of the log odds of a score is that of a logistic regression whose rows
have such weights, 0.6 x' A^-1 x with x = (s / u, 1), times 4/3: steps online are not
as exact as a fit.

[1] Platt. Probabilistic outputs for support vector machines. 1999.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics import student
from rarestream.metrics.estimate import checked_level
from rarestream.metrics.rows import ScoredRows, as_rows, raise_fault

NUMBERS = (  # as native/calibration_numbers.hpp has them
    "slope",
    "intercept",
    "unit",
    "all",
    "positives",
    "negatives",
    "weight",
    "positive_weight",
    "squares",
    "slope_slope",
    "slope_one",
    "one_one",
    "slope_error",
    "one_error",
    "unused",
    "waiting",
    *(f"score{i}" for i in range(8)),
    *(f"importance{i}" for i in range(8)),
)
PLACE = {name: place for place, name in enumerate(NUMBERS)}
PRIOR, FADED = 0.1, 0.8  # of the docstring above
LEAST_SLOPE = 1e-3  # for scores in units of their root mean square, so that a higher score is never less probable
MOST_ODDS = 30.0  # no probability is nearer to 0 or 1 than that of these log odds, 1e-13
ENOUGH = 10  # rows of each class
LARGEST = 1e60  # of scores: larger ones count as this, as in native/calibration.hpp


class Calibration:
    """Turns scores into probabilities. A model has one, which learns from every row before the model does.

    Add the scores of rows with their labels in the order of the stream; it takes the same short time for each. How rows
    are divided into blocks makes no difference.
    """

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers = np.zeros(len(NUMBERS))

    def add(self, labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None) -> None:
        """Add rows.

        Parameters
        ----------
        labels : array-like of shape (rows,)
            -1 and +1, 0 and 1, or booleans.
        scores : array-like of shape (rows,)
            Any numbers except nan.
        importances : array-like of shape (rows,), optional
            At least 0. A row of importance h counts as h rows; one of importance 0 is ignored. By default 1.

        Raises
        ------
        DataError
            If a row is invalid. No row is added then.
        """
        rows = as_rows("Calibration.add", labels, scores, importances)
        fault, row, _, _ = _native.survey_labels(*rows)
        if fault:
            raise_fault("Calibration.add", fault, row, labels, rows)
        self.count(rows)

    def count(self, rows: ScoredRows) -> None:
        """Add valid rows that are in the types of the core."""
        _native.calibrate(self._numbers, *rows)

    @property
    def numbers(self) -> NDArray[np.float64]:
        """All numbers, for the core, which changes them."""
        return self._numbers

    def _number(self, name: str) -> float:
        return float(self._numbers[PLACE[name]])

    @property
    def positives(self) -> int:
        """Number of positive rows."""
        return int(self._number("positives"))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._number("positives") + self._number("negatives"))

    @property
    def enough(self) -> bool:
        """Whether there were ten rows of each class, the least that probabilities can be based on."""
        return min(self.positives, self.rows - self.positives) >= ENOUGH

    @property
    def slope(self) -> float:
        """Log odds are slope * score + intercept; the slope is above 0."""
        return self._line()[0]

    @property
    def intercept(self) -> float:
        """Log odds are slope * score + intercept."""
        return self._line()[1]

    @property
    def middle(self) -> float:
        """The score whose probability is 1/2."""
        slope, intercept = self._line()
        return -intercept / slope

    def _line(self) -> tuple[float, float]:
        slope, intercept, unit = self._numbers[:3].tolist()
        if not unit > 0:  # all scores were zero
            return 1.0, intercept
        if slope > LEAST_SLOPE:
            return slope * unit, intercept
        weight, positive = self._number("weight"), self._number("positive_weight")
        return LEAST_SLOPE * unit, math.log((positive + 0.5) / (weight - positive + 0.5))

    def probability(self, scores: ArrayLike, negatives_kept: float = 1.0) -> NDArray[np.float64]:
        """Return the probability that rows with these scores are positive.

        Parameters
        ----------
        scores : array-like
            Scores of the model.
        negatives_kept : float, above 0 and at most 1, default 1
            Share of the negatives that the model has learned, if only a random part of them was kept; the
            probabilities are then those among all rows.

        Returns
        -------
        array of float64
            Between 1e-13 and 1 - 1e-13; 1/2 before the first row. A higher score never has a lower probability.

        Raises
        ------
        DataError
            If `negatives_kept` is not in its range.
        """
        slope, intercept = self._line()
        return _logistic(slope * _limited(scores) + (intercept + _shift(negatives_kept)))

    def probability_of(self, score: float, negatives_kept: float = 1.0) -> float:
        """Return what `probability` returns for one score, in a fraction of the time."""
        return probability_on(self.line(negatives_kept), score)

    def line(self, negatives_kept: float = 1.0) -> tuple[float, float]:
        """Return slope and intercept of the log odds, for `probability_on`; they change with every row."""
        slope, intercept = self._line()
        return slope, intercept + _shift(negatives_kept)

    def interval(
        self, scores: ArrayLike, level: float = 0.95, negatives_kept: float = 1.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of confidence intervals of probabilities.

        They say how sure the calibration is of the probability that rows of a score have on average; they are wide
        while a class has few rows.

        Parameters
        ----------
        scores, negatives_kept
            As for `probability`.
        level : float, between 0 and 1, default 0.95
            Confidence level.

        Returns
        -------
        low, high : arrays of float64
        """
        z = student.quantile((1 + checked_level(level)) / 2, math.inf)
        slope, intercept = self._line()
        given = _limited(scores)
        odds = slope * given + (intercept + _shift(negatives_kept))
        a, b, d = (self._number(name) for name in ("slope_slope", "slope_one", "one_one"))
        a, d = a + PRIOR, d + PRIOR
        x = given * self._number("unit")
        half = z * np.sqrt(FADED * np.maximum(d * x * x - 2 * b * x + a, 0) / (a * d - b * b))
        return _logistic(odds - half), _logistic(odds + half)

    def state(self) -> NDArray[np.float64]:
        """Return all numbers, for `from_state`.

        Returns
        -------
        array of float64
        """
        return self._numbers.copy()

    @classmethod
    def from_state(cls, state: ArrayLike) -> Calibration:
        """Return the Calibration with these numbers, bit for bit.

        Parameters
        ----------
        state : array-like
            What `state()` returned.

        Returns
        -------
        Calibration
            It continues as the original would.

        Raises
        ------
        DataError
            If the numbers are invalid.
        """
        numbers = np.array(state, np.float64)
        reason = _invalid(numbers)
        if reason:
            raise DataError(f"Calibration.from_state: {reason}. Pass what state() returned.")
        self = cls()
        self._numbers[:] = numbers
        return self

    def copy(self) -> Calibration:
        """Return a copy."""
        return self.from_state(self._numbers)

    def __getstate__(self) -> dict[str, NDArray[np.float64]]:
        return {"numbers": self.state()}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._numbers = type(self).from_state(state["numbers"])._numbers

    def __repr__(self) -> str:
        return (
            f"Calibration(slope={self.slope:.4g}, intercept={self.intercept:.4g}, rows={self.rows}, "
            f"positives={self.positives})"
        )


def probability_on(line: tuple[float, float], score: float) -> float:
    """Return the probability of a score, whose log odds are on a line: the bits of `Calibration.probability`."""
    odds = line[0] * (score if -LARGEST < score < LARGEST else math.copysign(LARGEST, score)) + line[1]
    # The exp of NumPy, which is not that of the C library in the last bit.
    return 1.0 / (1.0 + float(np.exp(-odds if -MOST_ODDS < odds < MOST_ODDS else math.copysign(MOST_ODDS, -odds))))


def checked_share(negatives_kept: float) -> float:
    """Return the share of negatives that were kept, or raise a DataError if it is not above 0 and at most 1."""
    if not 0 < negatives_kept <= 1:
        raise DataError(
            f"negatives_kept: must be above 0 and at most 1, got {negatives_kept}; 0.1 if every tenth was kept."
        )
    return float(negatives_kept)


def _shift(negatives_kept: float) -> float:
    # Among all negatives there are 1 / share times as many, so that odds are that much lower.
    return math.log(checked_share(negatives_kept))


def _limited(scores: ArrayLike) -> NDArray[np.float64]:
    limited: NDArray[np.float64] = np.clip(np.asarray(scores, np.float64), -LARGEST, LARGEST)
    return limited


def _logistic(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    limited = np.clip(odds, -MOST_ODDS, MOST_ODDS)
    probability: NDArray[np.float64] = 1 / (1 + np.exp(-limited))
    return probability


def _invalid(numbers: NDArray[np.float64]) -> str | None:
    """Return what is wrong with the numbers of a calibration; None if nothing is."""
    if numbers.shape != (len(NUMBERS),):
        return f"it has {numbers.size} numbers, not {len(NUMBERS)}"
    if not np.isfinite(numbers).all():
        return "a number is not finite"
    counts = {name: numbers[PLACE[name]] for name in ("positives", "negatives", "unused", "waiting")}
    for name, value in counts.items():
        if not (0 <= value < 2**53 and value == int(value)):
            return f"{name} is {value}, not a count"
    if counts["waiting"] >= 8:
        return f"{counts['waiting']} rows are waiting, but 8 make a step"
    sums = ("unit", "all", "weight", "positive_weight", "squares", "slope_slope", "one_one")
    if any(numbers[PLACE[name]] < 0 for name in sums):
        return "a sum is negative"
    a, b, d = (numbers[PLACE[name]] for name in ("slope_slope", "slope_one", "one_one"))
    if not (a + PRIOR) * (d + PRIOR) > b * b:
        return "its second derivatives are not those of a loss"
    if numbers[PLACE["positive_weight"]] > numbers[PLACE["weight"]] * (1 + 1e-9):
        return "positives weigh more than all rows"
    return None
