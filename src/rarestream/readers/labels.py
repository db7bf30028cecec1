"""Maps the labels of a file, numbers or text, to -1 and +1.

With `positive`, that label is +1 and every other is -1. Text that is a number, such as "1.0", is that number.

Numbers: 1 is +1, and -1 or 0 (one of them, not both) is -1. If a file uses two other numbers, both must occur in its
first chunk, about 1 MB of text, because a stream may be readable only once: the larger is +1.

Text: one of 1, true and yes, in capitals or not, is +1; of two other texts, which must both occur in the first chunk,
the one that is rarer there is +1. A note says what was decided.

A third label is an error, except with classes="all": then every label is a class, a number where labels are numbers
(svmlight, VW), and else text as it is written.

`classes`, the two labels of an earlier stream, decide before the first row: a model that has learned the labels 1 and 2
must not take the 1 of a file without any 2 for +1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Labels
from rarestream.errors import advice
from rarestream.readers.options import Classes, Label, as_label, shown_label

YES, NO = ("1", "true", "yes"), ("-1", "0", "false", "no")


def positive_advice() -> str:
    """Return what to do about labels that this rule cannot map."""
    return f"pass {advice('positive=VALUE', '--positive VALUE')} to name the label that counts as +1"


def label_note(low: Label | None, high: Label | None) -> str | None:
    """Return what a user should know of two labels that the data decided; None of numbers, which explain themselves."""
    if low is None or high is None or not (isinstance(low, str) or isinstance(high, str)):
        return None
    return f"label {shown_label(low)} counts as -1 and {shown_label(high)} as +1"


class OneLabelError(Exception):
    """The first chunk has a single label, which does not tell whether it is positive."""

    def __init__(self, label: Label) -> None:
        super().__init__(label)
        self.label = label

    def message(self, rows: str) -> str:
        """Return what is wrong with these rows, such as "first 1 MB", and what to do."""
        two = "two texts" if isinstance(self.label, str) else "two numbers"
        return (
            f"the {rows} have only the label {shown_label(self.label)}; labels are -1 and +1, 0 and 1, or {two} that "
            f"both come early. Otherwise {positive_advice()}."
        )


class LabelRule:
    """The rule of this module, with the two labels once they are known.

    Labels are numbers, as written, with NaN for a row that has none. Where `texts` is given, they are positions in it.

    Parameters
    ----------
    positive : float, str or None
        The label that is +1; every other is -1.
    optional : bool
        Whether a label that cannot be mapped is 0, for 'unknown', instead of an error.
    classes : tuple or None
        The negative label, if known, and the positive one, of an earlier stream.
    earlier : bool
        Whether the classes are of rows learned before; False: of these rows, found by whoever looked at them first.

    Attributes
    ----------
    note : str or None
        What was decided about labels that are text, once both are known.
    """

    def __init__(
        self, positive: Label | None, optional: bool, classes: Classes | None = None, earlier: bool = True
    ) -> None:
        self._positive = positive
        self._optional = optional
        self._classes_given = classes is not None and earlier
        self._low: Label | None = None if classes is None else classes[0]
        self._high: Label | None = None if classes is None else classes[1]
        self.note: str | None = None

    @property
    def classes(self) -> Classes | None:
        """The two labels, as far as they are known; None before the first row, and if `positive` is given."""
        return None if self._positive is not None or self._high is None else (self._low, self._high)

    def undecided(self, raw: NDArray[np.float64], texts: Sequence[str] | None = None) -> bool:
        """Return whether these labels, if they are the first, do not decide which one is positive."""
        if self._positive is not None or self._high is not None or self._optional:
            return False
        seen, _ = _seen(raw, texts)
        return len(seen) == 0 or (len(seen) == 1 and not _is_one_of(seen[0], YES + NO))

    def signs(self, raw: NDArray[np.float64], texts: Sequence[str] | None = None) -> Labels:
        """Return -1 and +1, and 0 for a label that cannot be mapped or is missing."""
        if texts is not None:
            return self._signs_of_texts(raw, texts)
        if self._positive is not None:
            known = np.where(raw == self._positive, 1, -1).astype(np.int8)
            known[np.isnan(raw)] = 0
            return known
        if self._high is None:
            self._decide(raw, None)
        if self._low is None and self._high == 1:
            below = raw[(raw == -1) | (raw == 0)]
            self._low = float(below[0]) if len(below) else None
        elif None in (self._low, self._high):
            self._complete(_seen(raw, None)[0])
        return _equal(raw, self._high) - _equal(raw, self._low)

    def _signs_of_texts(self, raw: NDArray[np.float64], texts: Sequence[str]) -> Labels:
        if self._positive is None:
            if self._high is None:
                self._decide(raw, texts)
            if None in (self._low, self._high):
                self._complete(_seen(raw, texts)[0])
        table = np.zeros(len(texts) + 1, np.int8)
        for code, text in enumerate(texts):
            label = _label(text)
            if self._positive is not None:
                table[code] = 1 if label == self._positive else -1
            elif label in (self._low, self._high):
                table[code] = 1 if label == self._high else -1
        codes = np.where(np.isnan(raw), len(texts), raw).astype(np.int64)  # the last entry is 0: no label
        return table[codes]

    def error_message(self, raw: float, texts: Sequence[str] | None = None) -> str:
        """Return what is wrong with a label whose sign is 0."""
        label = shown_label(float(raw) if texts is None else _label(texts[int(raw)]))
        high = "" if self._high is None else shown_label(self._high)
        low = "" if self._low is None else shown_label(self._low)
        if self._classes_given:
            negative = f" and {low} as -1" if low else ""
            positive = advice(f"positive={high}", f"--positive {high}")
            return (
                f"label {label}, but {high} counts as +1{negative}, as in the data learned before. If every "
                f"other label is -1, pass {positive}; else change the labels of these data, or train a new model."
            )
        if not low or not high:
            return f"label {label}, after rows with only {high or low}. If that is right, {positive_advice()}."
        return (
            f"a third label, {label}, after {low} and {high}; two classes are learned. "
            f"If that is right, {positive_advice()}."
        )

    def _decide(self, raw: NDArray[np.float64], texts: Sequence[str] | None) -> None:
        """Decide which label is positive, by the labels of the first chunk."""
        seen, counts = _seen(raw, texts)
        if self._low is not None:  # a single negative label came before
            return
        if not seen:
            return
        if any(isinstance(label, str) for label in seen):
            self._decide_texts(seen, counts)
        elif set(seen) <= {-1, 0, 1} or (1 in seen and not {-1.0, 0.0}.isdisjoint(seen)):
            self._high = 1.0
        elif len(seen) > 1:
            self._low, self._high = sorted(seen[:2])
        elif self._optional:
            self._high = 1.0
        else:
            raise OneLabelError(seen[0])

    def _decide_texts(self, seen: list[Label], counts: list[int]) -> None:
        yes = [label for label in seen if _is_one_of(label, YES)]
        if len(yes) == 1:
            self._high = yes[0]
        elif len(seen) > 1:
            first, second = (count for count in counts[:2])
            rarer = seen[0] if first < second or (first == second and str(seen[0]) > str(seen[1])) else seen[1]
            self._low, self._high = next(label for label in seen[:2] if label != rarer), rarer
            self._tell()
        elif _is_one_of(seen[0], NO):
            self._low = seen[0]  # what is positive shows when it comes
        elif not self._optional:
            raise OneLabelError(seen[0])

    def _complete(self, seen: Sequence[Label]) -> None:
        """Take the first other label for the class that is not known yet."""
        if self._low is None and self._high is None:
            return
        known = self._low if self._high is None else self._high
        numbers = known in (-1, 0, 1) and not isinstance(known, str)
        other = next((label for label in seen if label != known and not (numbers and _too_far(label))), None)
        if other is None:
            return
        self._low, self._high = (other, self._high) if self._low is None else (self._low, other)
        self._tell()

    def _tell(self) -> None:
        self.note = label_note(self._low, self._high)


def class_labels(raw: NDArray[np.float64], texts: Sequence[str] | None = None) -> NDArray[Any]:
    """Return the labels of rows as classes: text, or whole numbers if all are; what a missing label becomes is open."""
    if texts is not None:
        return np.array([*texts, ""])[np.where(np.isnan(raw), len(texts), raw).astype(np.int64)]
    numbers = np.where(np.isnan(raw), 0.0, raw)
    whole = numbers.astype(np.int64, copy=False) if (abs(numbers) < 2**53).all() else numbers
    return whole if np.array_equal(whole, numbers) else numbers


def _too_far(label: Label) -> bool:
    """Whether a number cannot be the other class of -1, 0 or 1 without more being said."""
    return isinstance(label, float) and label not in (-1, 0, 1)


def _label(text: str) -> Label:
    try:
        return as_label(text)
    except ValueError:  # nan, inf: words like any other
        return text


def _equal(raw: NDArray[np.float64], label: Label | None) -> Labels:
    """Return 1 where a label is this number, else 0."""
    if not isinstance(label, float):
        return np.zeros(len(raw), np.int8)
    equal: Labels = (raw == label).view(np.int8)  # a boolean is a byte of 0 or 1
    return equal


def _seen(raw: NDArray[np.float64], texts: Sequence[str] | None) -> tuple[list[Label], list[int]]:
    """Return the different labels in the order in which they first come, and how often each does."""
    values, first, counts = np.unique(raw[~np.isnan(raw)], return_index=True, return_counts=True)
    found: dict[Label, int] = {}
    for at in np.argsort(first).tolist():
        label = float(values[at]) if texts is None else _label(texts[int(values[at])])
        found[label] = found.get(label, 0) + int(counts[at])
    return list(found), list(found.values())


def _is_one_of(label: Label, words: Sequence[str]) -> bool:
    return (label if isinstance(label, str) else f"{label:g}").lower() in words
