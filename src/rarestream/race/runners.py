"""Runners: what carries settings over the rows. Many in lanes, or one in a Model."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.errors import DataError, RowError, advice
from rarestream.learners import Learner
from rarestream.learners.lanes import WIDTH, LaneKernel, Lanes, LaneState, lane_of
from rarestream.model import SCALES, Model

HEAT, LEAST_HEAT = 32, 16  # lanes of a kernel: with more a coordinate is too large; fewer are not worth a thread

Scores = NDArray[np.float32]


class LaneRunner:
    """Settings side by side. `numbers` are those that still race."""

    def __init__(self, numbers: Sequence[int], lanes: Lanes, state: LaneState, scale: str) -> None:
        self.numbers = list(numbers)
        self._lane_of = list(range(len(self.numbers)))  # of each number
        self._kernel = LaneKernel(lanes)
        self._state = state
        self._scale = scale

    @classmethod
    def new(cls, numbers: Sequence[int], learners: Sequence[Learner], scale: str) -> LaneRunner:
        """Before the first row."""
        lanes = Lanes(learners)
        return cls(numbers, lanes, lanes.start(0, largest=scale == "max"), scale)

    @property
    def bytes(self) -> int:
        """Of a feature."""
        return self._kernel.lanes.bytes

    def room(self, width: int, most: int) -> None:
        """Makes room for so many features, and for more, but not for more than `most`."""
        slots = len(self._state.table)
        if width > slots:
            slots = min(max(width + width // 4, slots + slots // 2), most)
            self._state = self._kernel.lanes.grown(self._state, slots)

    def learn(self, block: Block) -> Scores:
        """The score of each row under each setting before it was learned."""
        learned, scores = self._kernel.learn(self._state, block, SCALES.index(self._scale))
        if learned < len(block):
            scale = advice("scale='none'", "--scale none")
            way_on = advice("scale='unit' or 'max'", "--scale unit or max")
            says = f"has values so large that steps overflow float32 with {scale}. Use {way_on}."
            if broken := block.broken():
                says = f"or one after it breaks a rule: its arrays have changed since it was made. {broken}"
            elif self._scale != "none":
                says = (
                    "cannot be learned: the weights of a setting have grown beyond float32. Use smaller learning rates."
                )
            raise RowError("race", learned, says)
        return scores[:, self._lane_of]

    def score(self, block: Block) -> Scores:
        """The score of each row under each setting. Changes nothing."""
        return self._kernel.score(self._state, block, SCALES.index(self._scale))[:, self._lane_of]

    def part(self, number: int) -> tuple[Lanes, LaneState, int]:
        """Where a setting stands."""
        return self._kernel.lanes, self._state, self._lane_of[self.numbers.index(number)]

    def leave(self, beaten: Container[int]) -> None:
        """Goes on without some settings. Their lanes stay, and are not looked at."""
        left = [pair for pair in zip(self.numbers, self._lane_of, strict=True) if pair[0] not in beaten]
        self.numbers, self._lane_of = [number for number, _ in left], [lane for _, lane in left]

    def model(self, number: int, n_features: int) -> Model:
        lanes, state, lane = self.part(number)
        return Model.from_state(
            lanes.learners[lane], lanes.state(lane, state), scale=self._scale, n_features=n_features
        )


class ModelRunner:
    """A setting that has no lane."""

    def __init__(self, number: int, learner: Learner, scale: str) -> None:
        self.numbers = [number]
        self._model = Model(learner, scale=scale)
        self.bytes = sum(learner.layout.columns.values()) * 4

    def room(self, width: int, most: int) -> None:
        """A Model makes its own."""

    def learn(self, block: Block) -> Scores | None:
        """As in lanes; None if its weights grow beyond float32, and it can go no further."""
        try:
            return self._model.learn(block, again=True)[:, np.newaxis].astype(np.float32)
        except DataError:
            return None

    def model(self, number: int, n_features: int) -> Model:
        return self._model


Runner = LaneRunner | ModelRunner


def runners_of(learners: Sequence[Learner], scale: str, threads: int) -> list[Runner]:
    """Heats of settings that have lanes, about as many in each, and a runner for every other setting."""
    in_lanes = [number for number, learner in enumerate(learners) if lane_of(learner) is not None]
    found: list[Runner] = []
    for numbers in _heats(in_lanes, threads):
        found.append(LaneRunner.new(numbers, [learners[number] for number in numbers], scale))
    alone = [number for number in range(len(learners)) if number not in in_lanes]
    return found + [ModelRunner(number, learners[number], scale) for number in alone]


def without(runners: Sequence[Runner], beaten: Container[int], scale: str, threads: int) -> list[Runner]:
    """The runners of the settings that are left, in fewer lanes as soon as a register of them is free."""
    heats = [runner for runner in runners if isinstance(runner, LaneRunner)]
    alone = [runner for runner in runners if not isinstance(runner, LaneRunner) and runner.numbers[0] not in beaten]
    for runner in heats:
        runner.leave(beaten)
    left = {number: runner for runner in heats for number in runner.numbers}
    needed = _heats(list(left), threads)
    if sum(math.ceil(len(numbers) / WIDTH) * WIDTH * 8 for numbers in needed) == sum(one.bytes for one in heats):
        return [*heats, *alone]
    fewer: list[Runner] = []
    for numbers in needed:
        lanes, state = Lanes.picked([left[number].part(number) for number in numbers])
        fewer.append(LaneRunner(numbers, lanes, state, scale))
    return fewer + alone


def _heats(numbers: list[int], threads: int) -> list[list[int]]:
    """Settings dealt to kernels, about as many to each."""
    if not numbers:
        return []
    count = len(numbers)
    heats = max(math.ceil(count / HEAT), min(threads, math.ceil(count / LEAST_HEAT)))
    size = math.ceil(count / heats / WIDTH) * WIDTH
    return [numbers[first : first + size] for first in range(0, count, size)]
