"""Maps the numbers used as labels in a file to -1 and +1.

With `positive`, that number is +1 and every other is -1. Without it, 1 is +1, and -1 or 0 (one of them, not both) is
-1. If a file uses two other numbers, both must occur in its first chunk, about 1 MB of text, because a stream may be
readable only once: the larger is +1. A third number is an error.

`classes`, the two labels of an earlier stream, decide before the first row: a model that has learned the labels 1 and 2
must not take the 1 of a file without any 2 for +1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Labels
from rarestream.errors import DataError, advice


def positive_advice() -> str:
    """Return what to do about labels that this rule cannot map."""
    return f"pass {advice('positive=VALUE', '--positive VALUE')} to name the label that counts as +1"


class OneLabelError(Exception):
    """The first chunk has a single label, and it is none of -1, 0, 1."""

    def __init__(self, label: float) -> None:
        super().__init__(label)
        self.label = label

    def message(self, rows: str) -> str:
        """Return what is wrong with these rows, such as "first 1 MB", and what to do."""
        return (
            f"the {rows} have only the label {self.label:g}; labels are -1 and +1, 0 and 1, or two numbers that both "
            f"come early. Otherwise {positive_advice()}."
        )


class LabelRule:
    """The rule of this module, with the two labels once they are known.

    Parameters
    ----------
    positive : float or None
        The number that is +1; every other is -1.
    optional : bool
        Whether a label that cannot be mapped is 0, for 'unknown', instead of an error.
    classes : tuple or None
        The negative label, if known, and the positive one, of an earlier stream.
    """

    def __init__(
        self, positive: float | None, optional: bool, classes: tuple[float | None, float] | None = None
    ) -> None:
        self._positive = positive
        self._optional = optional
        self._classes_given = classes is not None
        self._low: float | None = None if classes is None else classes[0]
        self._high: float | None = None if classes is None else classes[1]

    @property
    def classes(self) -> tuple[float | None, float] | None:
        """The two labels, as far as they are known; None before the first row, and if `positive` is given."""
        return None if self._positive is not None or self._high is None else (self._low, self._high)

    def undecided(self, raw: NDArray[np.float64]) -> bool:
        """Return whether these labels, if they are the first, do not decide which one is positive."""
        if self._positive is not None or self._high is not None or self._optional:
            return False
        seen = np.unique(raw)
        return len(seen) == 0 or (len(seen) == 1 and float(seen[0]) not in (-1, 0, 1))

    def signs(self, raw: NDArray[np.float64]) -> Labels:
        """Return -1 and +1, and 0 for a label that cannot be mapped. NaN means that a row has no label."""
        if self._positive is not None:
            known = np.where(raw == self._positive, 1, -1).astype(np.int8)
            known[np.isnan(raw)] = 0
            return known
        if self._high is None:
            self._decide(raw)
        if self._high == 1 and self._low is None:
            below = raw[(raw == -1) | (raw == 0)]
            self._low = float(below[0]) if len(below) else None
        signs = np.zeros(len(raw), np.int8)
        signs[raw == self._high] = 1
        if self._low is not None:
            signs[raw == self._low] = -1
        return signs

    def error_message(self, raw: float) -> str:
        """Return what is wrong with a label whose sign is 0."""
        if self._classes_given:
            negative = "" if self._low is None else f" and {self._low:g} as -1"
            positive = advice(f"positive={self._high:g}", f"--positive {self._high:g}")
            return (
                f"label {raw:g}, but {self._high:g} counts as +1{negative}, as in the data learned before. If every "
                f"other label is -1, pass {positive}; else change the labels of these data, or train a new model."
            )
        if self._low is None:
            return f"label {raw:g}, after rows with only {self._high:g}. If that is right, {positive_advice()}."
        return (
            f"a third label, {raw:g}, after {self._low:g} and {self._high:g}; two classes are learned. "
            f"If that is right, {positive_advice()}."
        )

    def _decide(self, raw: NDArray[np.float64]) -> None:
        values, first = np.unique(raw[~np.isnan(raw)], return_index=True)
        seen = [float(value) for value in values[np.argsort(first)]]
        if not seen:
            return
        if set(seen) <= {-1, 0, 1} or (1 in seen and not {-1.0, 0.0}.isdisjoint(seen)):
            self._high = 1.0
        elif len(seen) > 1:
            self._low, self._high = sorted(seen[:2])
        elif self._optional:
            self._high = 1.0
        else:
            raise OneLabelError(seen[0])


def check_classes(classes: Sequence[float | None] | None) -> tuple[float | None, float] | None:
    """Return `classes` as two numbers, or raise a DataError."""
    if classes is None:
        return None
    pair = tuple(classes)
    if len(pair) == 2:
        low, high = pair
        if isinstance(high, float | int) and np.isfinite(high):
            if low is None:
                return None, float(high)
            if isinstance(low, float | int) and np.isfinite(low) and low != high:
                return float(low), float(high)
    raise DataError(f"read: classes must be two different labels, (negative or None, positive), got {classes!r}.")


def check_positive(positive: float | str | None) -> float | None:
    """Return `positive` as a finite number, or raise a DataError."""
    if positive is None:
        return None
    try:
        number = float(positive)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise DataError(f"read: positive must be a finite number that is a label in the file, got {positive!r}.")
    return number
