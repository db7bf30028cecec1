"""SPAM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream.learners.base import TALLY, About, Learner, State, non_negative, one_of, padded, positive, register


@register("spam")
@dataclass(frozen=True, kw_only=True)
class Spam(Learner):
    """SPAM of Natole, Ying and Lyu (ICML 2018): proximal steps on the square loss of pairs, O(k) a row."""

    learning_rate: float = positive(1.0, "Length of the first step: xi, of steps xi / sqrt(t).")
    penalty: str = one_of("l2", "Which of the two strengths below count.", "l1", "l2", "elasticnet")
    l1: float = non_negative(1e-4, "Strength of the penalty that makes weights exactly zero.")
    l2: float = non_negative(1e-4, "Strength of the penalty that shrinks weights.")
    gradient: str = one_of("sparse", "", "sparse", "full")

    columns: ClassVar[Mapping[str, int]] = MappingProxyType({"u": 1, "s_pos": 1, "s_neg": 1})
    numbers: ClassVar[tuple[str, ...]] = ("sigma", "level", "living", "bound", "u_pos", "u_neg", "q_pos", "q_neg")
    about: ClassVar[About] = About(
        objective="square loss on pairs",
        cost="O(k)",
        published="O(d)",
        sparse="exact zeros with `l1`",
        returns="last iterate",
        paper="Natole, Ying, Lyu 2018, Algorithm 1",
    )

    @property
    def name(self) -> str:
        return "spam"

    @property
    def strengths(self) -> tuple[float, float]:
        """l1 and l2 as the penalty counts them."""
        return (0.0 if self.penalty == "l2" else self.l1), (0.0 if self.penalty == "l1" else self.l2)

    def kernel_settings(self) -> list[float]:
        return [self.learning_rate, *self.strengths]

    def start(self, slots: int, dtype: DTypeLike, largest: bool = False) -> State:
        state = super().start(slots, dtype, largest)
        state.tally[len(TALLY)] = 1.0  # sigma
        return state

    def more(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        if self.strengths[0] == 0:
            return {}
        return {
            "heap": np.zeros(slots, np.int32),
            "level": np.zeros(slots, dtype),
            "place": np.zeros(slots, np.int32),
        }

    def grown(self, state: State, slots: int) -> State:
        wider = state.grown(slots)
        return wider._replace(more={name: padded(part, slots) for name, part in state.more.items()})

    def kept(self, state: State, d: int) -> Mapping[str, NDArray[Any]]:
        living = int(state.tally[len(TALLY) + 2])
        return {"heap": state.more["heap"][:living]} if state.more else {}

    def taken(self, state: State, kept: Mapping[str, NDArray[Any]]) -> State:
        if state.more:
            heap = kept["heap"]
            n = len(heap)
            state.more["heap"][:n] = heap
            state.more["level"][:n] = abs(state.table[heap, 0])
            state.more["place"][heap] = np.arange(1, n + 1)
        return state
