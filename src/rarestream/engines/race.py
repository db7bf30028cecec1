"""Race: many settings learn the first rows in lanes; then the best of them continues alone.

After 512, 1024, 2048, ... rows the race determines which setting leads (engines/choice.py); until the next time the
model scores with that one. After `plan.rows` rows the leading one continues as a Single. A race also ends before a row
with so many new features that the lanes would need more than a gigabyte, and when `finish_race` is called.

Only features that were seen have a coordinate in the lanes (engines/compact.py), however large their indices are.

A row that is too large for any of the lanes is refused, as a Single refuses it: no lane learns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import LARGEST_INDEX, Block
from rarestream.engines import arrays as file_arrays
from rarestream.engines.arrays import Arrays
from rarestream.engines.base import Engine, Learned, out_of_memory
from rarestream.engines.choice import MIN_CLASS_ROWS, Schedule, best_setting, warm_up
from rarestream.engines.compact import UNSEEN, CompactSlots
from rarestream.engines.lanes import LaneGroup, Lanes
from rarestream.engines.single import Single
from rarestream.learners import Learner, State
from rarestream.learners.auto import Auto
from rarestream.learners.base import RacePlan
from rarestream.learners.registry import make_learner
from rarestream.learners.state import SPARE, TALLY, zeros
from rarestream.metrics.paired import Standings
from rarestream.metrics.rows import ScoredRows

FIRST_LOOK, LOOK_FACTOR = 512, 2  # the default leads until the first look
MAX_BYTES = (1 << 30) + (1 << 16)  # of memory for the lanes: 32 of them with 2^22 hashed features, and the spare slot


class Race(Engine):
    """Many settings in lanes, of which the best will continue alone.

    Parameters
    ----------
    learner : Learner
        The learner as the user named it.
    plan : RacePlan
        The settings, the default first, and the number of rows to race them on.
    scale : str
        How rows are scaled.
    n_features : int
        The number of features to make room for.
    dtype : str
        The dtype that the winner continues in; lanes are float32.
    """

    def __init__(self, learner: Learner, plan: RacePlan, scale: str, n_features: int, dtype: str) -> None:
        super().__init__(learner, scale)
        self.candidates = list(plan.candidates)
        self._rows = plan.rows
        self._dtype = dtype
        self._slot_bytes = Lanes(self.candidates).bytes
        self.compact = CompactSlots(n_features + SPARE)
        self.group = LaneGroup.start(self.candidates, scale, slots=self._needed)
        self.raced = 0  # number of rows so far, without those of importance 0
        self.lead = 0  # the number of the leading candidate
        width = self.group.lanes.width
        self._scores = np.zeros((plan.rows, width), np.float32)  # of the raced rows under each setting
        self._labels = np.zeros(plan.rows, np.int8)
        self._importances = np.zeros(plan.rows)

    @property
    def leader(self) -> Learner:
        return self.candidates[self.lead]

    @property
    def tally(self) -> NDArray[np.float64]:
        state = self.group.state
        return np.array([*state.counts, *state.means[:, self.lead]])

    @property
    def largest(self) -> NDArray[np.float32] | None:
        return self._by_feature(self.group.state.largest)

    @property
    def slots(self) -> int:
        return self.compact.room

    @property
    def weight_dtype(self) -> np.dtype[Any]:
        return self.group.state.table.dtype

    @property
    def nbytes(self) -> int:
        arrays = [*self.group.state, self._scores, self._labels, self._importances]
        return self.compact.nbytes + sum(array.nbytes for array in arrays if array is not None)

    @property
    def _max_slots(self) -> int:
        return MAX_BYTES // self._slot_bytes

    @property
    def _needed(self) -> int:
        """The number of slots for all features that there is room for; those that are never seen cost no memory."""
        return min(UNSEEN + self.compact.room + SPARE, self._max_slots)

    def _by_feature(self, numbers: NDArray[Any] | None) -> NDArray[Any] | None:
        """Return the numbers of slots under the features that have these."""
        if numbers is None:
            return None
        found = zeros((self.slots,), numbers.dtype)
        found[self.compact.features] = numbers[UNSEEN : UNSEEN + self.compact.used]
        return found

    # -- learning and deciding

    def learn(self, block: Block, scores: NDArray[np.float64]) -> Learned:
        learned, history, since = 0, None, 0
        while True:
            rest = block[learned:]
            stop = self.rows_until_decision(rest)
            part = rest if stop is None else rest[:stop]
            count = self._learn(part, scores[learned : learned + len(part)])
            learned += count
            if stop is None or count < stop:
                return Learned(learned, self, history, since)
            engine, history, since = self.decide(block[learned:]), self._history(), learned
            if engine is not self:
                rows = engine.learn(block[learned:], scores[learned:]).rows
                return Learned(learned + rows, engine, history, since)

    def finish_race(self) -> Learned:
        return Learned(0, self.decide(None), self._history())

    def rows_until_decision(self, block: Block) -> int | None:
        """Return how many of these rows to learn before the next look; None if they do not reach it."""
        stop = _rows_up_to(block, self._schedule.after(self.raced) - self.raced)
        left = self._max_slots - UNSEEN - SPARE - self.compact.used  # features that there is memory for
        part = block if stop is None else block[:stop]
        if len(part.indices) > left:
            new = self.compact.new_features_in(part)
            if len(new) > left:
                stop = int(np.searchsorted(part.indptr, new[left], "right")) - 1
        return stop

    def decide(self, rest: Block | None) -> Engine:
        """Determine the leading setting; return it alone if the race is over, else this race.

        `rest` are the rows to come; with None the race ends here.
        """
        self.lead = self._find_leader()
        over = rest is None or self.raced == self._rows or self.rows_until_decision(rest) == 0
        return self._single() if over else self

    def _single(self) -> Single:
        """Return the leading setting alone, under the numbers of the features."""
        raced, used = self.group.state, slice(UNSEEN + self.compact.used)
        compact = self.group.lanes.state(self.lead, raced._replace(table=raced.table[used]), self._dtype)
        state = self.leader.start(self.slots, self._dtype)
        state.table[self.compact.features] = compact.table[UNSEEN:]
        state.tally[:] = compact.tally
        return Single(self.leader, self.scale, state._replace(largest=self.largest))

    @property
    def _schedule(self) -> Schedule:
        return Schedule(FIRST_LOOK, LOOK_FACTOR, self._rows)

    def _learn(self, block: Block, scores: NDArray[np.float64]) -> int:
        if block.width > self.slots:  # the width of the block that this is a part of
            block = replace(block, width=int(block.indices.max(initial=-1)) + 1)
        self.reserve(block.width)
        learned, lane_scores = self.group.learn(self.compact.added(block))
        done = block[:learned]
        assert done.labels is not None
        scores[:learned] = lane_scores[:learned, self.lead]
        counted = np.arange(learned) if done.importances is None else np.flatnonzero(done.importances)
        here = slice(self.raced, self.raced + len(counted))
        self._scores[here, : lane_scores.shape[1]] = lane_scores[counted]
        self._labels[here] = done.labels[counted]
        self._importances[here] = 1.0 if done.importances is None else done.importances[counted]
        self.raced = here.stop
        return learned

    def _history(self) -> ScoredRows:
        """Return the raced rows with the scores of the leading setting."""
        raced = self.raced
        scores = self._scores[:raced, self.lead].astype(np.float64)
        return ScoredRows(self._labels[:raced], scores, self._importances[:raced])

    def _find_leader(self) -> int:
        seen = slice(warm_up(self.raced), self.raced)
        labels, importances = self._labels[seen], self._importances[seen]
        positives = int((labels > 0).sum())
        if min(positives, len(labels) - positives) < MIN_CLASS_ROWS:
            return 0
        weights = None if (importances == 1).all() else importances
        return best_setting(Standings(labels, self._scores[seen, : len(self.candidates)], weights))

    # -- scoring

    def score(self, block: Block, scores: NDArray[np.float64]) -> int:
        return self.group.score_alone(self.lead, self.compact.known(block), scores)

    def weights(self, start: int, stop: int) -> NDArray[np.float32]:
        state, lanes = self.group.state, self.group.lanes
        slots = self.compact.slots_of(start, stop)
        table = np.ascontiguousarray(state.table[slots[:, np.newaxis], lanes.columns(self.lead)])
        alone = State(table, self.tally, None, {})
        weights: NDArray[np.float32] = self.leader.kernel().weights(alone, 0, alone.slots)
        return weights

    # -- state

    def reserve(self, n_features: int, exactly: bool = False) -> None:
        needed = n_features + SPARE
        try:
            self.compact.reserve(needed, needed if exactly else LARGEST_INDEX + 1)
            self.group.reserve(self._needed, self._needed, in_order=True)
        except MemoryError:
            raise out_of_memory(n_features - 1, self._needed * self.group.bytes) from None

    def header(self) -> dict[str, Any]:
        return {"candidates": [{"name": learner.name, "settings": learner.settings} for learner in self.candidates]}

    def dump(self, n_features: int) -> dict[str, NDArray[Any]]:
        state, raced = self.group.state, self.raced
        extra: dict[str, NDArray[Any]] = {
            "means": state.means,
            "scores": self._scores[:raced],
            "labels": self._labels[:raced],
            "importances": self._importances[:raced],
        }
        table = file_arrays.dump_table(state.table[: UNSEEN + self.compact.used], self.group.lanes.layout)
        features = self.compact.features[table.pop("index") - UNSEEN]
        order = np.argsort(features)
        return {
            "tally": np.array([*self.tally, raced, self.lead], np.float64),
            "index": features[order],
            **{name: column[order] for name, column in table.items()},
            **file_arrays.dump_extra(extra),
            **file_arrays.dump_largest(self.largest),
        }

    def load(self, arrays: Arrays, n_features: int) -> None:
        slots = min(n_features, self.slots)
        numbers = file_arrays.load_tally(arrays, 2)
        raced, lead = numbers[len(TALLY) :]
        if raced not in range(self._rows):
            raise ValueError(f"the number of raced rows is {raced}, not a whole number below {self._rows}")
        if lead not in range(len(self.candidates)):
            raise ValueError(f"the leading setting is {lead}, not a whole number below {len(self.candidates)}")
        self.raced, self.lead = int(raced), int(lead)
        arrays = self._with_slots(arrays, slots)
        state = self.group.state
        file_arrays.load_table(arrays, state.table, self.group.lanes.layout, self.group.slots)
        roots = [self.group.lanes.columns(lane)[1] for lane in range(len(self.candidates))]
        if (state.table[arrays["index"][:, np.newaxis], roots] < 0).any():  # all others are zero
            raise ValueError("a root is negative")
        state.counts[:] = numbers[:2]
        extra, rows = file_arrays.load_extra(arrays), slice(self.raced)
        for name, into in (
            ("means", state.means),
            ("scores", self._scores[rows]),
            ("labels", self._labels[rows]),
            ("importances", self._importances[rows]),
        ):
            if extra[name].dtype != into.dtype or extra[name].shape != into.shape:
                raise ValueError(f"array {name!r} is {extra[name].dtype}{list(extra[name].shape)}")
            into[...] = extra[name]
        if not np.isin(self._labels[rows], (-1, 1)).all() or (self._importances[rows] <= 0).any():
            raise ValueError("its rows have labels other than -1 and 1, or importances that are not positive")
        file_arrays.load_largest(arrays, state.largest, self.group.slots)

    def _with_slots(self, arrays: Arrays, slots: int) -> Arrays:
        """Give slots to the features of a file, and return its arrays with slots in place of features."""
        places = ["index"] if self.group.state.largest is None else ["index", "largest_index"]
        features = [file_arrays.checked_index(arrays, place, slots) for place in places]
        seen = np.unique(np.concatenate(features))
        if UNSEEN + len(seen) + SPARE > self._max_slots:
            raise ValueError(f"it has {len(seen)} features, more than can be raced")
        self.compact.load(seen)
        found = [UNSEEN + np.searchsorted(seen, part).astype(np.int32) for part in features]
        return {**arrays, **dict(zip(places, found, strict=True))}


def saved_candidates(header: Mapping[str, Any]) -> list[Learner]:
    """Return the settings that the file of a race lists; ValueError, KeyError or TypeError if they cannot race."""
    entries = header.get("candidates")
    if entries is None:  # the first version wrote no list
        return Auto.first_candidates()
    candidates = [make_learner(entry["name"], **entry["settings"]) for entry in entries]
    if not candidates or any(learner.lane() is None for learner in candidates):
        raise ValueError("its candidates cannot race")
    return candidates


def _rows_up_to(block: Block, wanted: int) -> int | None:
    """Return how many rows there are up to the `wanted`-th that counts; None if it is not among them."""
    if block.importances is None:
        return wanted if wanted <= len(block) else None
    count = np.cumsum(block.importances > 0)
    return int(np.searchsorted(count, wanted)) + 1 if len(count) and count[-1] >= wanted else None
