"""Merging: one state of those that groups of rows have made, each by itself, of the state that all started from.

The mathematics is in rarestream/groups/merging.py. An engine says what numbers its features have and how each is merged
(`GroupEngine.merge_rules`); this module merges them, whatever they are. It is the same for some of the features at a
time, so that several machines can merge a large state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.learners import Learner
from rarestream.learners.state import MERGE_RULES, TALLY

if TYPE_CHECKING:
    from rarestream.engines.base import GroupEngine

MEAN, ROOT, SUM = range(len(MERGE_RULES))
FAR_APART = 16  # features from one that groups have to the next, above which sorting them is quicker than marking


class Change(NamedTuple):
    """What a group has made of a state: the numbers of the features that its rows have."""

    rows: int  # that the group has learned
    features: NDArray[np.int32]  # ascending
    numbers: NDArray[Any]  # (features, columns)
    tally: NDArray[np.float64]  # (len(TALLY), settings)
    largest: NDArray[np.float32] | None  # of these features, with scale="max"
    settings: NDArray[np.int32]  # the settings that could learn all rows; [0] if it is no race

    def between(self, first: int, stop: int) -> Change:
        """Return the same for some features only."""
        low, high = np.searchsorted(self.features, (first, stop))
        largest = None if self.largest is None else self.largest[low:high]
        return self._replace(features=self.features[low:high], numbers=self.numbers[low:high], largest=largest)


def rules_of(learners: Sequence[Learner]) -> NDArray[np.int8]:
    """Return the rule of each column: z of all settings, n of all, and the counts of features if there are such.

    ValueError, with the name of the learner, if one has no rules.
    """
    counted = False
    for learner in learners:
        if learner.layout.merge is None:
            raise ValueError(no_rules(learner))
        counted = counted or "positives" in learner.layout.merge
    rules = [MEAN] * len(learners) + [ROOT] * len(learners) + [SUM, SUM] * counted
    return np.array(rules, np.int8)


def no_rules(learner: Learner) -> str:
    """Return the reason why a learner cannot be learned in groups, and what to do about it."""
    return (
        f"{learner!r} cannot be learned in groups: its state has no rules to merge it. DualAveraging without budget "
        "and half_life, FtrlProximal without half_life, FtrlAuc with means='lazy' and without half_life, and auto "
        "without budget can; or use one group."
    )


def merged(engine: GroupEngine, changes: Sequence[Change]) -> Change:
    """Return one change for those of all groups of a round, in the order of the groups, which the result depends on.

    The engine has the state that all groups started from, and does not change.
    """
    rows = sum(change.rows for change in changes)
    index, places = _union([change.features for change in changes])
    settings = changes[0].settings
    for change in changes[1:]:
        settings = np.intersect1d(settings, change.settings)
    if not len(settings):
        raise DataError(
            f"none of the {len(engine.candidates)} settings of {engine.learner.name!r} can learn the rows of all "
            "groups: in some group each has a row whose step overflows float32. Use scale='unit' or 'max', or name "
            "a learner."
        )
    engine.merge_rules()  # those of all settings, if they have any
    rules = rules_of([engine.candidates[setting] for setting in settings])
    shared = int(np.count_nonzero(rules == SUM))
    base = _of_settings(engine.numbers_at(index), engine_settings(engine), settings, shared)
    parts = [_of_settings(change.numbers, change.settings, settings, shared) for change in changes]
    largest = engine.largest_at(index)
    if largest is not None:
        before = largest.copy()
        for place, change in zip(places, changes, strict=True):
            assert change.largest is not None
            largest[place] = np.maximum(largest[place], change.largest)
        scaled = rules != SUM  # z and n are in units of the largest value
        _rescale(base, scaled, before, largest)
        parts = [part.copy() for part in parts]
        for part, place, change in zip(parts, places, changes, strict=True):
            assert change.largest is not None
            _rescale(part, scaled, change.largest, largest[place])
    shares = [change.rows / rows for change in changes]
    _native.merge_tables(base, rules, list(zip(places, parts, shares, strict=True)))
    tallies = [_columns(change.tally, change.settings, settings) for change in changes]
    tally = _merged_tally(_columns(engine.tallies, engine_settings(engine), settings), tallies, shares)
    return Change(rows, index, base, tally, largest, settings)


def engine_settings(engine: GroupEngine) -> NDArray[np.int32]:
    """Return the numbers of the settings of an engine."""
    return np.arange(len(engine.candidates), dtype=np.int32)


def joined(changes: Sequence[Change]) -> Change:
    """Return the changes of parts of the features, in ascending order, as one."""
    first = changes[0]
    largest = None
    if first.largest is not None:
        largest = np.concatenate([change.largest for change in changes if change.largest is not None])
    index = np.concatenate([change.features for change in changes])
    return first._replace(
        features=index, numbers=np.concatenate([change.numbers for change in changes]), largest=largest
    )


def _union(features: Sequence[NDArray[np.int32]]) -> tuple[NDArray[np.int32], list[NDArray[np.int32]]]:
    """Return all features of several parts, each of which ascends, in ascending order, and the places of each part."""
    count = sum(map(len, features))
    first = min((int(part[0]) for part in features if len(part)), default=0)
    stop = max((int(part[-1]) + 1 for part in features if len(part)), default=0)
    if stop - first > FAR_APART * count:
        found = np.concatenate(features)
        found.sort(kind="stable")  # which merges parts that ascend
        index = found[np.append(True, found[1:] != found[:-1])] if count else found
        return index, [np.searchsorted(index, part).astype(np.int32) for part in features]
    marks = np.zeros(stop - first, np.bool_)
    for part in features:
        marks[part - first] = True
    place_of = np.cumsum(marks, dtype=np.int32) - np.int32(1)
    return (np.flatnonzero(marks) + first).astype(np.int32), [place_of[part - first] for part in features]


def _columns(array: NDArray[Any], known: NDArray[np.int32], wanted: NDArray[np.int32]) -> NDArray[Any]:
    """Return the columns of some settings."""
    return array if len(known) == len(wanted) else array[:, np.searchsorted(known, wanted)]


def _of_settings(
    numbers: NDArray[Any], known: NDArray[np.int32], wanted: NDArray[np.int32], shared: int
) -> NDArray[Any]:
    """Return the columns of some settings, and the `shared` ones that these need."""
    if len(known) == len(wanted):
        return np.ascontiguousarray(numbers)
    z = np.searchsorted(known, wanted)
    last = np.arange(2 * len(known), 2 * len(known) + shared)
    return np.ascontiguousarray(numbers[:, np.concatenate([z, len(known) + z, last])])


def _rescale(
    numbers: NDArray[Any], columns: NDArray[np.bool_], largest: NDArray[np.float32], new: NDArray[np.float32]
) -> None:
    """Bring numbers that are in units of one largest value to those of a new one."""
    factors = np.divide(largest, new, out=np.ones(len(new)), where=new > 0, dtype=np.float64)
    numbers[:, columns] *= factors[:, np.newaxis].astype(numbers.dtype)


def _merged_tally(
    base: NDArray[np.float64], parts: Sequence[NDArray[np.float64]], shares: Sequence[float]
) -> NDArray[np.float64]:
    """Return the merged numbers of TALLY: counts and sums of scores add up, and so do the intercept's squares."""
    at = {name: row for row, name in enumerate(TALLY)}
    merged = base.copy()
    for count, mean in (("n_pos", "a"), ("n_neg", "b")):
        n, m = at[count], at[mean]
        rows, scores = base[n].copy(), base[n] * base[m]
        for part in parts:
            rows += part[n] - base[n]
            scores += part[n] * part[m] - base[n] * base[m]
        merged[n] = rows
        merged[m] = np.divide(scores, rows, out=np.zeros_like(scores), where=rows > 0)
    w0, n0 = at["w0"], at["n0"]
    squares = np.square(base[n0])
    for part, share in zip(parts, shares, strict=True):
        merged[w0] += share * (part[w0] - base[w0])
        squares += np.square(part[n0]) - np.square(base[n0])
    merged[n0] = np.sqrt(np.maximum(squares, 0))
    return merged
