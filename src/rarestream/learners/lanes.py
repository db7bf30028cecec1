"""Lanes: many settings of the FTRL and dual-averaging learners side by side, in one pass over the rows.

A coordinate holds z and n of every lane, in float32; the rows are decoded once for all. A lane learns
what a Model of its learner would learn in float32, but for the order in which a row's score is summed,
and whatever lanes stand beside it. With scale="none" a row may be too large to learn: where it is so for
one lane, no lane learns it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rarestream import _native
from rarestream.blocks import Block
from rarestream.learners.base import TALLY, Layout, Learner, State, copy_touched, padded, zeros
from rarestream.learners.dual_averaging import DualAveraging
from rarestream.learners.ftrl_auc import FtrlAuc
from rarestream.learners.ftrl_proximal import FtrlProximal
from rarestream.metrics.paired import Standings

MOST, WIDTH = 64, 8  # lanes of one kernel, which come in so many: native/race.hpp
GROUP = 16  # lanes whose numbers stand together: native/race_body.hpp
LINE = 64  # bytes of a cache line
RUN = 4096  # coordinates
PAIRS, HINGE, LOGISTIC = 0, 1, 2
LEAST = 30  # rows of the rarer class that a choice needs

Setting = tuple[int, bool, float, float, float, float, float, bool]  # as native/bind_race.cpp reads it


def lane_of(learner: Learner) -> Setting | None:
    """A learner as the kernel takes it, or None if it has no lane."""
    if isinstance(learner, DualAveraging) and not learner.budget:
        loss = LOGISTIC if learner.loss_is_logistic else HINGE
        return loss, False, learner.learning_rate, learner.l1, 0.0, learner.beta, learner.rate_power, True
    if isinstance(learner, FtrlAuc) and learner.means == "lazy":
        return PAIRS, True, learner.learning_rate, learner.l1, learner.l2, learner.beta, 2.0, False
    if isinstance(learner, FtrlProximal):
        return LOGISTIC, True, learner.learning_rate, learner.l1, learner.l2, learner.beta, 2.0, learner.intercept
    return None


class LaneState(NamedTuple):
    """What the lanes know of their rows."""

    table: NDArray[np.float32]  # (slots, 2 width)
    counts: NDArray[np.float64]  # of positives and negatives
    means: NDArray[np.float64]  # (4, width): a, b, w0, n0, as in TALLY
    largest: NDArray[np.float32] | None


class Lanes:
    """Some settings side by side, and how what they know is laid out. Owns no state."""

    def __init__(self, learners: Sequence[Learner]) -> None:
        self.learners = list(learners)
        self.width = -(-len(self.learners) // WIDTH) * WIDTH  # lanes with those to spare

    @property
    def bytes(self) -> int:
        """Of a coordinate."""
        return 8 * self.width

    @property
    def layout(self) -> Layout:
        """z and n of each group of lanes."""
        groups = [(first, min(GROUP, self.width - first)) for first in range(0, self.width, GROUP)]
        return Layout({f"{word}{first}": size for first, size in groups for word in "zn"}, ("raced", "lead"))

    def columns(self, lane: int) -> list[int]:
        """Where z and n of a lane stand in a coordinate."""
        first = lane // GROUP * GROUP
        z = first + lane
        return [z, z + min(GROUP, self.width - first)]

    def table(self, slots: int) -> NDArray[np.float32]:
        """A table of zeros that starts on a cache line: half as many lines to touch."""
        size = slots * 2 * self.width
        room = zeros((size + LINE // 4,), np.float32)
        skip = -room.ctypes.data % LINE // 4
        return room[skip : skip + size].reshape(slots, 2 * self.width)

    def start(self, slots: int, largest: bool) -> LaneState:
        kept = zeros((slots,), np.float32) if largest else None
        return LaneState(self.table(slots), np.zeros(2), np.zeros((4, self.width)), kept)

    def grown(self, state: LaneState, slots: int) -> LaneState:
        """The same with room for more coordinates."""
        table = self.table(slots)
        copy_touched(state.table, table)
        return state._replace(table=table, largest=padded(state.largest, slots))

    def state(self, lane: int, state: LaneState, dtype: DTypeLike = np.float32) -> State:
        """The state of one lane, as that of a Model of its learner."""
        found = self.learners[lane].start(len(state.table), dtype)
        _move([state.table], self.columns(lane), found.table)
        found.tally[: len(TALLY)] = [*state.counts, *state.means[:, lane]]
        return found._replace(largest=_copied(state.largest))

    @classmethod
    def picked(cls, parts: Sequence[tuple[Lanes, LaneState, int]]) -> tuple[Lanes, LaneState]:
        """Some lanes out of others, with what they know; all have learned the same rows, and have as much room."""
        found = cls([lanes.learners[lane] for lanes, _, lane in parts])
        parts = [*parts, *[parts[0]] * (found.width - len(parts))]
        first = parts[0][1]
        table, means = found.table(len(first.table)), np.zeros((4, found.width))
        state = LaneState(table, first.counts.copy(), means, _copied(first.largest))
        tables = {id(known.table): known.table for _, known, _ in parts}
        first_of = dict(zip(tables, np.cumsum([0] + [table.shape[1] for table in tables.values()]), strict=False))
        columns = np.zeros(2 * found.width, np.intp)  # where each stands if all tables are put side by side
        for to, (lanes, known, lane) in enumerate(parts):
            state.means[:, to] = known.means[:, lane]
            columns[found.columns(to)] = first_of[id(known.table)] + np.array(lanes.columns(lane))
        _move(list(tables.values()), columns, state.table)
        return found, state


def _move(tables: Sequence[NDArray[np.float32]], columns: ArrayLike, into: NDArray[Any]) -> None:
    """Copies columns of tables side by side, a run of coordinates at a time; those no row has touched cost nothing."""
    wanted = np.asarray(columns, np.intp)
    for start in range(0, len(into), RUN):
        runs = [table[start : start + RUN] for table in tables]
        if any(run.view(np.bool_).any() for run in runs):  # of bytes: it ends at the first that is not zero
            beside = runs[0] if len(runs) == 1 else np.concatenate(runs, axis=1)
            place = into[start : start + RUN]
            if into.dtype == beside.dtype:
                np.take(beside, wanted, axis=1, out=place, mode="clip")
            else:
                place[:] = np.take(beside, wanted, axis=1, mode="clip")


class LaneKernel:
    """What lanes do with rows, on a state that it borrows for the length of a call."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        settings = [lane_of(learner) for learner in lanes.learners]
        self._core = _native.RaceKernel([setting for setting in settings if setting is not None])
        assert None not in settings and self._core.lanes == lanes.width

    def learn(self, state: LaneState, block: Block, scale: int, isa: str = "") -> tuple[int, NDArray[np.float32]]:
        """How many rows were learned, and the score of each under each lane before it was.

        Rows of importance 0 are scored and leave no trace.
        """
        scores = np.empty((len(block), self.lanes.width), np.float32)
        learned = self._core.learn(
            state.table,
            state.counts,
            state.means,
            state.largest,
            *block.rows,
            block.labels,
            block.importances,
            scale,
            scores,
            isa,
        )
        return learned, scores[:, : len(self.lanes.learners)]

    def score_alone(self, state: LaneState, lane: int, block: Block, scale: int, scores: NDArray[np.float64]) -> int:
        """Writes the rows' scores as a Model of one lane's `state` does, to the bit; the first that is none, or -1."""
        return self._core.score(state.table, state.largest, lane, *block.rows, scale, scores)

    def score(self, state: LaneState, block: Block, scale: int) -> NDArray[np.float32]:
        """The score of each row under each lane."""
        rows = len(block)
        unlearned = dataclasses.replace(block, labels=np.ones(rows, np.int8), importances=np.zeros(rows))
        return self.learn(state, unlearned, scale)[1]


def _copied(array: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    return None if array is None else array.copy()


def auto_learners() -> list[Learner]:
    """The settings that `auto` and `race` try, the default first.

    Learning rates around the defaults of both losses, further up for long streams; and the accumulators of AdaGrad,
    which large vocabularies want.
    """
    factors = (1.0, 0.25, 0.4, 0.6, 0.8, 1.3, 1.7, 2.5, 4.0, 6.0)
    found: list[Learner] = [DualAveraging(loss="auc", learning_rate=round(0.25 * factor, 4)) for factor in factors]
    found += [DualAveraging(loss="logistic", learning_rate=round(1.3 * factor, 4)) for factor in factors]
    found += [
        DualAveraging(loss="logistic", learning_rate=rate, rate_power=2.0, beta=1e-8) for rate in (0.5, 1.0, 2.0, 4.0)
    ]
    return found


def choice(standings: Standings, default: int = 0) -> int:
    """Which scorer to keep: that whose AUC is furthest above the default's once a standard error of the difference
    is taken off. So the default stays unless the rows speak against it."""
    return int(np.argmax(standings.aucs - standings.errors(default)))


def judged(rows: int) -> int:
    """How many of the first of `rows` rows do not count in a choice: all lanes start alike, knowing nothing."""
    return rows // 4
