"""Sixteen settings in one pass, against one setting in one pass, on rows in memory and on one core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rarestream import Block, DualAveraging, Learner, Model
from rarestream.engines.lanes import LaneKernel, Lanes
from rarestream.race import Racing
from shapes import SHAPES, make
from timing import Contestant, interleaved, timed, touch

SINGLE, IN_LANES, RACED = "one setting", "16 settings, learned", "16 settings, raced"
BARS = {"rcv1b": (6, 4), "avazu": (5, 2.5)}  # times one pass: must, aim
FACTORS = (1, 0.25, 0.4, 0.6, 0.8, 1.3, 1.7, 2.5)
BLOCK = 8192  # rows, as a reader gives them
UNIT = 1


def settings() -> list[Learner]:
    return [DualAveraging(loss="auc", learning_rate=0.25 * factor) for factor in FACTORS] + [
        DualAveraging(loss="logistic", learning_rate=1.3 * factor) for factor in FACTORS
    ]


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """ns per non-zero. One setting: the mean of both losses. Learned: all scores, no comparison. Raced: the AUC of each
    setting kept up, settings compared and retired, the winner's model at the end."""
    found = {}
    for name in BARS:
        rows = make(SHAPES[name], 1.0).train
        blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
        contestants = {
            f"{SINGLE}, {loss}": _contest(rows, _single, blocks, f"dual-{loss}") for loss in ("auc", "logistic")
        }
        contestants |= {IN_LANES: _contest(rows, _in_lanes, blocks), RACED: _contest(rows, _raced, blocks)}
        best = interleaved(contestants, rounds)
        times = {what: cost.cpu / rows.nonzeros * 1e9 for what, cost in best.items()}
        times[SINGLE] = (times[f"{SINGLE}, auc"] + times[f"{SINGLE}, logistic"]) / 2
        found[name] = times
    return found


def _contest(rows: Block, prepare: Callable[..., Callable[[], Any]], *arguments: Any) -> Contestant:
    def ready() -> Callable[[], Any]:
        action = prepare(*arguments)
        touch(rows.indices, rows.values)
        return action

    return timed(ready)


def _single(blocks: list[Block], name: str) -> Callable[[], Any]:
    model = Model(name)
    return lambda: [model.learn(block) for block in blocks]


def _in_lanes(blocks: list[Block]) -> Callable[[], Any]:
    kernel = LaneKernel(Lanes(settings()))
    width = max(block.width for block in blocks)
    return lambda: _learn(kernel, width, blocks)


def _learn(kernel: LaneKernel, width: int, blocks: list[Block]) -> None:
    state = kernel.lanes.start(width, largest=False)
    for block in blocks:
        kernel.learn(state, block, UNIT)


def _raced(blocks: list[Block]) -> Callable[[], Any]:
    racing = Racing(settings(), threads=1)

    def run() -> None:
        for block in blocks:
            racing.learn(block)
        racing.finish()

    return run
