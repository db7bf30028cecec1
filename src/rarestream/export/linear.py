"""Linear: what a format needs of a model. Whatever its learner, a model scores with one weight per feature:

score = sum of weight times value over the features of a row that is scaled as the model says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream._version import __version__
from rarestream.errors import ExportError, advice
from rarestream.features import Hashed, TablePlan
from rarestream.features.rows import BY_VALUE
from rarestream.model import Model


@dataclass(frozen=True)
class Linear:
    """The weights of a model and how it scales rows.

    Attributes
    ----------
    index : array of int32
        Features, ascending, from 0: those whose weight is not zero; with `scale` "max" also those that have a largest
        value.
    weight : array of float32 or float64
        The weight of each, for scaled rows.
    largest : array of float32 or None
        The largest absolute value of each; None unless `scale` is "max".
    scale : {"unit", "max", "none"}
        How rows are scaled.
    space : Hashed or None
        The space of hashed features; None for column numbers.
    slope, intercept : float or None
        log odds = slope * score + intercept; None without probabilities.
    about : str
        The model in a few words, for comments.
    """

    index: NDArray[np.int32]
    weight: NDArray[np.floating]
    largest: NDArray[np.float32] | None
    scale: str
    space: Hashed | None
    slope: float | None
    intercept: float | None
    about: str

    @classmethod
    def of(cls, model: Model, probability: bool | None = None) -> Linear:
        """Return what a model scores with now: during a race of settings, the weights of their mixture.

        Parameters
        ----------
        model : Model
            The model. It does not change.
        probability : bool, optional
            Whether probabilities are wanted. By default they are if the model is calibrated.

        Raises
        ------
        NotCalibratedError
            If probabilities are wanted of a model that has none.
        """
        weight, _, largest = model.weights()
        kept = weight != 0
        if largest is not None:
            kept |= largest > 0
        index = np.flatnonzero(kept).astype(np.int32)
        space = model.features if isinstance(model.features, Hashed) else None
        slope, intercept = _log_odds(model, probability)
        nonzeros = int(np.count_nonzero(weight))
        words = "weight" if nonzeros == 1 else "weights"
        return cls(
            index=index,
            weight=weight[index],
            largest=None if largest is None else largest[index],
            scale=model.scale,
            space=space,
            slope=slope,
            intercept=intercept,
            about=f"{model.leader.name} after {model.rows:,} rows, {nonzeros:,} {words}; rarestream {__version__}",
        )

    @property
    def nonzeros(self) -> int:
        """Number of weights that are not zero."""
        return int(np.count_nonzero(self.weight))

    @property
    def double(self) -> bool:
        """Whether the weights are float64."""
        return self.weight.dtype == np.float64

    @property
    def plan(self) -> TablePlan:
        """How the columns of rows become features; without a table, each value counts as what it is."""
        return BY_VALUE if self.space is None or self.space.plan is None else self.space.plan

    @cached_property
    def known_names(self) -> list[tuple[str, str] | None]:
        """Namespace and name of each feature in `index`; None if it is not known in full."""
        if self.space is None or self.space.names is None:
            return [None] * len(self.index)
        mask = self.space.slots - 1
        named = zip(self.index.tolist(), self.space.names.names(self.index), strict=True)
        return [None if name is None else _split(name, slot, mask) for slot, name in named]

    def by_name(self, inputs: str | None) -> bool:
        """Return whether features are looked up by name, as `inputs` says: by default if the model remembers names."""
        if inputs == "names" and self.space is None:
            slots = advice('inputs="indices"', "--inputs indices")
            raise ExportError(f"export: the features of this model are column numbers and have no names. Use {slots}.")
        if inputs is None:
            return self.space is not None and self.space.names is not None
        return inputs == "names"

    def names(self, notes: list[str]) -> list[str]:
        """Return the names of all features, `namespace^name`; ExportError if some are not known.

        Parameters
        ----------
        notes : list of str
            A note is added if there are names that share a slot with one of these.
        """
        assert self.space is not None
        slots = advice('inputs="indices"', "--inputs indices")
        if self.space.names is None:
            raise ExportError(
                f"export: the model remembers no names. Use {slots}: the features of rows are then slots."
            )
        found = [name for name in self.known_names if name is not None]
        if len(found) < len(self.index):
            unknown = len(self.index) - len(found)
            raise ExportError(
                f"export: features are looked up by name, but the names of {unknown:,} of {len(self.index):,} features "
                "are not known in full: the memory for names was full, a name is longer than 255 bytes, or the model "
                f"has scale max and was saved for scoring only. Use {slots}: the features of rows are then slots."
            )
        if shared := self.space.names.collisions:
            formats = advice('to="c" or to="js"', "--to c or --to js")
            notes.append(
                f"{shared:,} names share the slot of another and so its weight; they are not in the file, and have no "
                f"weight there. Use {slots}, or {formats}, which hash names, if that matters."
            )
        return ["^".join(name) for name in found]


def _split(name: str, slot: int, mask: int) -> tuple[str, str] | None:
    """Return namespace and name of `namespace^name`, where the hash says that it is all of it."""
    for caret in _carets(name):
        space, rest = name[:caret], name[caret + 1 :]
        encoded = space.encode()
        if _native.feature_hash(encoded, rest.encode()) & mask == slot:
            return space, rest
        if re.fullmatch(r":[0-9]{1,9}", rest) and (_native.feature_hash(b"", encoded) + int(rest[1:])) & mask == slot:
            return space, rest  # a feature without a name in VW text
    return None


def _carets(name: str) -> Iterator[int]:
    at = name.find("^")
    while at >= 0:
        yield at
        at = name.find("^", at + 1)


def _log_odds(model: Model, wanted: bool | None) -> tuple[float | None, float | None]:
    """Return slope and intercept of the log odds among all rows, also those negatives that the model was not given."""
    known = model.calibration
    if known is None and wanted:
        known = model.known_calibration("export")  # which raises
    if known is None or wanted is False or not (known.rows or wanted):
        return None, None
    return known.slope, known.intercept + math.log(model.negatives_kept)
