"""SPAM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream.learners.base import TALLY, About, Learner, State, non_negative, one_of, padded, positive, register
from rarestream.learners.span import SPAN


SCALED = ("sigma", "u_neg", "u_pos", "level", "q_neg", "q_pos", "living", "bound")


@register("spam")
@dataclass(frozen=True, kw_only=True)
class Spam(Learner):
    """SPAM of Natole, Ying and Lyu (ICML 2018): proximal steps on the square loss of pairs, O(k) a row."""

    learning_rate: float = positive(1.0, "Length of the first step: xi, of steps xi / sqrt(t).")
    penalty: str = one_of("l2", "Which of the two strengths below count.", "l1", "l2", "elasticnet")
    l1: float = non_negative(1e-4, "Strength of the penalty that makes weights exactly zero.")
    l2: float = non_negative(1e-4, "Strength of the penalty that shrinks weights.")
    gradient: str = one_of("sparse", "", "sparse", "full")

    about: ClassVar[About] = About(
        objective="square loss on pairs",
        cost="O(k)",
        published="O(d)",
        sparse="exact zeros with `l1`",
        returns="last iterate",
        paper="Natole, Ying, Lyu 2018, Algorithm 1",
    )
    columns: ClassVar[Mapping[str, int]] = MappingProxyType({"u": 1, "sum_neg": 1, "sum_pos": 1})

    @property
    def numbers(self) -> tuple[str, ...]:  # type: ignore[override]
        return SPAN if self.gradient == "full" else SCALED

    @property
    def stacked(self) -> bool:  # type: ignore[override]
        return self.gradient == "full" and self.strengths[0] > 0

    @property
    def native(self) -> str:
        return "SpamFull" if self.gradient == "full" else "Spam"

    @property
    def name(self) -> str:
        return "spam"

    @property
    def strengths(self) -> tuple[float, float]:
        """l1 and l2 as the penalty counts them."""
        return (0.0 if self.penalty == "l2" else self.l1), (0.0 if self.penalty == "l1" else self.l2)

    def kernel_settings(self) -> list[float]:
        return [self.learning_rate, *self.strengths]

    def more(self, slots: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
        if self.gradient == "full" or self.strengths[0] == 0:
            return {}
        return {
            "heap": np.zeros(slots, np.int32),
            "level": np.zeros(slots, dtype),
            "place": np.zeros(slots, np.int32),
        }

    def grown(self, state: State, slots: int) -> State:
        wider = super().grown(state, slots)
        return wider._replace(more={name: padded(part, slots) for name, part in state.more.items()})

    def kept(self, state: State, d: int) -> Mapping[str, NDArray[Any]]:
        living = int(state.tally[len(TALLY) + SCALED.index("living")])
        return {"heap": state.more["heap"][:living]} if state.more else {}

    def taken(self, state: State, kept: Mapping[str, NDArray[Any]]) -> State:
        if state.more:
            heap = kept["heap"]
            n = len(heap)
            state.more["heap"][:n] = heap
            state.more["level"][:n] = abs(state.table[heap, 0])
            state.more["place"][heap] = np.arange(1, n + 1)
        return state
