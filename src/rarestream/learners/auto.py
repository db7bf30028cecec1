"""Auto: races many settings on the first rows, then goes on as the best of them.

The settings are learning rates around the defaults of both losses of DualAveraging, and the
accumulators of AdaGrad (`auto_learners` in lanes.py). Each learns every row in a lane of its own. Once
`rows` rows have been learned, one stays and becomes the model's learner; the others are dropped. With
A the AUC of the scores that the rows but the first quarter had before they were learned, and e the
standard error of its difference from that of the default, DualAveraging(loss="auc"), the one with the
largest A - e stays. With fewer than 30 of those rows in a class the default does.

Until then the model scores as the lane in the lead, found by the same rule after 512, 1024, 2048, ...
rows; before, as the default. The model's progressive AUC is that of the lane in the lead, and at last
that of the settings kept.

The race also ends before a row with so large an index that the lanes would need more than a gigabyte,
and before rows that come a second time: their scores would say nothing about new ones. Lanes are float32,
whatever the model is after. A row of importance h counts as h rows learned at one score, in the AUC too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream.blocks import Block
from rarestream.learners.base import TALLY, About, Kernel, Layout, Learner, State, Turn, register, whole, zeros
from rarestream.learners.lanes import LEAST, LaneKernel, Lanes, LaneState, auto_learners, choice, judged
from rarestream.metrics.paired import Standings
from rarestream.metrics.rows import Rows

FIRST_LOOK = 512  # rows before which nobody leads but the default
MOST_BYTES = 1 << 30
RACED, LEAD = len(TALLY), len(TALLY) + 1  # where the tally keeps the rows raced, and the lane in the lead


@cache
def _lanes() -> Lanes:
    return Lanes(auto_learners())


@register("auto")
@dataclass(frozen=True, kw_only=True)
class Auto(Learner):
    """Races settings on the first rows and goes on with the best of them: nothing to tune."""

    rows: int = whole(16384, "How many rows are raced before one of the settings is kept.", least=1, most=2**20)

    about: ClassVar[About] = About(
        objective="that of the settings it keeps",
        cost="O(k); several times as much while it races",
        published="ours",
        sparse="no; prune afterwards",
        returns="last iterate",
        paper="ours",
    )

    @property
    def name(self) -> str:
        return "auto"

    @property
    def layout(self) -> Layout:
        return _lanes().layout

    def kernel_settings(self) -> list[float]:
        return []

    def kernel(self) -> Kernel:
        return AutoKernel()

    @property
    def widest(self) -> int:
        return MOST_BYTES // _lanes().bytes

    # -- state

    def start(self, slots: int, dtype: DTypeLike, largest: bool = False) -> State:
        slots = min(slots, self.widest)
        tally = np.zeros(len(TALLY) + len(self.layout.numbers))
        known = zeros((slots,), np.float32) if largest else None
        return State(_lanes().table(slots), tally, known, self.more(slots, dtype))

    def more(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        return {
            "means": np.zeros((4, _lanes().width)),
            "scores": np.zeros((self.rows, _lanes().width), np.float32),
            "labels": np.zeros(self.rows, np.int8),
            "importances": np.zeros(self.rows),
        }

    def grown(self, state: State, slots: int) -> State:
        wider = _lanes().grown(_lane_state(state), slots)
        return state._replace(table=wider.table, largest=wider.largest)

    def kept(self, state: State, d: int) -> Mapping[str, NDArray[Any]]:
        raced = int(state.tally[RACED])
        return {name: part if name == "means" else part[:raced] for name, part in state.more.items()}

    def taken(self, state: State, kept: Mapping[str, NDArray[Any]]) -> State:
        raced, lead = state.tally[[RACED, LEAD]]
        if raced not in range(self.rows) or lead not in range(len(_lanes().learners)):
            raise ValueError(f"it has raced {raced} rows and lane {lead} leads")
        for name, array in state.more.items():
            part = array if name == "means" else array[: int(raced)]
            if kept[name].dtype != part.dtype or kept[name].shape != part.shape:
                raise ValueError(f"array {name!r} is {kept[name].dtype}{list(kept[name].shape)}")
            part[...] = kept[name]
        if not np.isin(kept["labels"], (-1, 1)).all() or (kept["importances"] <= 0).any():
            raise ValueError("its rows have strange labels or importances")
        return state

    def check(self, state: State) -> None:
        lanes = _lanes()
        roots = [lanes.columns(lane)[1] for lane in range(len(lanes.learners))]
        if (state.table[:, roots] < 0).any():
            raise ValueError("a root is negative")

    # -- the race

    def threshold(self, tally: NDArray[np.float64]) -> float:
        return _lanes().learners[int(tally[LEAD])].threshold(tally)

    def pause(self, state: State, block: Block) -> int | None:
        """Up to the next look at who leads, or to the first row that is too wide to race."""
        stop = _after(block, self._next_look(int(state.tally[RACED])) - int(state.tally[RACED]))
        most = self.widest - 1  # a slot stays that no row touches: Model.score
        if block.width > most:
            wide = np.flatnonzero(block.indices >= most)
            if len(wide):
                row = int(np.searchsorted(block.indptr, wide[0], "right")) - 1
                stop = row if stop is None else min(stop, row)
        return stop

    def turn(self, state: State, rest: Block | None, dtype: DTypeLike) -> Turn:
        """Looks who leads, and ends the race if it is time: `rest` are the rows to come, None that it is."""
        raced, lead = int(state.tally[RACED]), self._leader(state)
        scores = state.more["scores"][:raced, lead].astype(np.float64)
        rows = Rows(state.more["labels"][:raced], scores, state.more["importances"][:raced])
        if rest is None or raced == self.rows or self.pause(state, rest) == 0:
            return Turn(_lanes().learners[lead], _lanes().state(lead, _lane_state(state), dtype), rows)
        state.tally[LEAD] = lead
        _report(state)
        return Turn(self, state, rows)

    def leader(self, state: State) -> Learner:
        return _lanes().learners[int(state.tally[LEAD])]

    def _next_look(self, raced: int) -> int:
        look = FIRST_LOOK
        while look <= raced:
            look *= 2
        return min(look, self.rows)

    def _leader(self, state: State) -> int:
        raced = int(state.tally[RACED])
        seen = slice(judged(raced), raced)
        labels, importances = state.more["labels"][seen], state.more["importances"][seen]
        positives = int((labels > 0).sum())
        if min(positives, len(labels) - positives) < LEAST:
            return 0
        weights = None if (importances == 1).all() else importances
        scores = state.more["scores"][seen, : len(_lanes().learners)]
        return choice(Standings(labels, scores, weights))


class AutoKernel(Kernel):
    """Learns all lanes, and scores as the one in the lead."""

    def __init__(self) -> None:
        self._lanes = LaneKernel(_lanes())

    def learn(self, state: State, block: Block, scale: int, scores: NDArray[np.float64]) -> int:
        learned, found = self._lanes.learn(_lane_state(state), block, scale)
        done = block[:learned]
        assert done.labels is not None
        scores[:learned] = found[:learned, int(state.tally[LEAD])]
        counted = np.arange(learned) if done.importances is None else np.flatnonzero(done.importances)
        raced = int(state.tally[RACED])
        here = slice(raced, raced + len(counted))
        state.more["scores"][here, : found.shape[1]] = found[counted]
        state.more["labels"][here] = done.labels[counted]
        state.more["importances"][here] = 1.0 if done.importances is None else done.importances[counted]
        state.tally[RACED] = here.stop
        _report(state)
        return learned

    def score(self, state: State, block: Block, scale: int, scores: NDArray[np.float64]) -> int:
        """Bit for bit as a model made of the lane in the lead does."""
        return self._lanes.score_alone(_lane_state(state), int(state.tally[LEAD]), block, scale, scores)

    def weights(self, state: State, start: int, stop: int) -> NDArray[np.float32]:
        lead = int(state.tally[LEAD])
        table = np.ascontiguousarray(state.table[start:stop, _lanes().columns(lead)])
        alone = State(table, state.tally[: len(TALLY)], None, {})
        found: NDArray[np.float32] = _lanes().learners[lead].kernel().weights(alone, 0, alone.slots)
        return found


def _lane_state(state: State) -> LaneState:
    return LaneState(state.table, state.tally[:2], state.more["means"], state.largest)


def _report(state: State) -> None:
    """Puts what the lane in the lead knows of the classes where a model looks for it."""
    state.tally[2 : len(TALLY)] = state.more["means"][:, int(state.tally[LEAD])]


def _after(block: Block, wanted: int) -> int | None:
    """How many rows there are up to the `wanted`-th that counts; None if it is not among them."""
    if block.importances is None:
        return wanted if wanted <= len(block) else None
    count = np.cumsum(block.importances > 0)
    return int(np.searchsorted(count, wanted)) + 1 if len(count) and count[-1] >= wanted else None
