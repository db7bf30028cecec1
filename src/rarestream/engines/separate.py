"""SeparateRace: a race of settings that cannot share a pass, such as those with a budget of weights.

Each setting learns every row as a Single. After 512, 1024, 2048, ... rows the race determines which setting leads
(engines/choice.py), and until the next time the model scores with that one; after `plan.rows` rows it continues alone.
Nothing is mixed: the sum of two models of few weights has more of them.

A setting that cannot learn a row that others can drops out with a warning; a row that none can learn is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.blocks import Block
from rarestream.engines import arrays as file_arrays
from rarestream.engines.arrays import Arrays
from rarestream.engines.base import Engine, Learned, overflow
from rarestream.engines.choice import Choice, best_setting
from rarestream.engines.latest import FIRST_LOOK, LatestRows, dropped_out, rows_up_to
from rarestream.engines.single import Single
from rarestream.learners import Learner
from rarestream.learners.base import RacePlan
from rarestream.system import cores
from rarestream.threads import run_all

THREAD_NONZEROS = 1 << 14  # of a block: for less, a thread is not worth it


class SeparateRace(Engine):
    """Several settings, each as a Single, of which the best will continue.

    Parameters
    ----------
    learner : Learner
        The learner as the user named it.
    plan : RacePlan
        The settings, the default first, and the number of rows after which the best continues.
    scale : str
        How rows are scaled.
    n_features : int
        The number of features to make room for.
    dtype : str
        The dtype of the states.
    """

    def __init__(self, learner: Learner, plan: RacePlan, scale: str, n_features: int, dtype: str) -> None:
        super().__init__(learner, scale)
        self.candidates = list(plan.candidates)
        self._plan = plan
        self._dtype = dtype
        self.singles = [Single.start(candidate, scale, n_features, dtype) for candidate in plan.candidates]
        self.raced = 0  # number of rows so far, without those of importance 0
        self.lead = 0  # the number of the leading setting
        self._latest = LatestRows(len(self.singles))

    @property
    def leader(self) -> Learner:
        return self._leading.learner

    @property
    def _leading(self) -> Single:
        return self.singles[self.lead]

    @property
    def tally(self) -> NDArray[np.float64]:
        return self._leading.tally

    @property
    def largest(self) -> NDArray[np.float32] | None:
        return self._leading.largest

    @property
    def slots(self) -> int:
        return self._leading.slots

    @property
    def weight_dtype(self) -> np.dtype[Any]:
        return self._leading.weight_dtype

    @property
    def nbytes(self) -> int:
        return self._latest.nbytes + sum(single.nbytes for single in self.singles)

    # -- learning and deciding

    def learn(self, block: Block, scores: NDArray[np.float64]) -> Learned:
        learned, history, since, warning = 0, None, 0, None
        while True:
            rest = block[learned:]
            stop = rows_up_to(rest, min(FIRST_LOOK.after(self.raced), self._plan.rows) - self.raced)
            part = rest if stop is None else rest[:stop]
            count, dropped = self._learn(part, scores[learned : learned + len(part)])
            learned, warning = learned + count, warning or dropped
            if stop is None or count < stop:
                return Learned(learned, self, history, since, warning)
            engine: Engine = self._decide()
            history, since = self._latest.rows(Choice.alone(self.lead, len(self.singles))), learned
            if self.raced >= self._plan.rows:
                rows = engine.learn(block[learned:], scores[learned:]).rows
                return Learned(learned + rows, engine, history, since, warning)

    def finish_race(self) -> Learned:
        single = self._decide()
        return Learned(0, single, self._latest.rows(Choice.alone(self.lead, len(self.singles))))

    def _decide(self) -> Single:
        """Determine which setting leads, and return it."""
        compared = self._latest.compared(self.raced)
        self.lead = 0 if compared is None else best_setting(compared[0])
        return self._leading

    def _learn(self, block: Block, scores: NDArray[np.float64]) -> tuple[int, str | None]:
        """Learn rows up to one that no setting can; return how many, and a warning if settings had to drop out."""
        found = np.zeros((len(self.singles), len(block)))

        def learn(number: int) -> int:
            return self.singles[number].learn(block, found[number]).rows

        numbers = range(len(self.singles))
        rows = run_all(learn, numbers, cores() if len(block.indices) > THREAD_NONZEROS else 1)
        learned, warning = max(rows), None
        scores[:learned] = found[self.lead, :learned]  # one that drops out here has not scored all of them
        left = [number for number in numbers if rows[number] == learned]
        if len(left) < len(rows):
            reasons = {n: overflow(self.candidates[n], self.scale, self._dtype) for n in numbers if n not in left}
            warning = dropped_out(len(rows), reasons)
            first = min(rows[self.lead], learned)
            self.lead = left.index(self.lead) if self.lead in left else 0
            scores[first:learned] = found[left[self.lead], first:learned]
            self.candidates = [self.candidates[number] for number in left]
            self.singles = [self.singles[number] for number in left]
            self._latest.keep(left)
        done = block[:learned]
        self.raced += self._latest.add_learned(done, found[left][:, :learned].T.astype(np.float32))
        return learned, warning

    # -- scoring

    def score(self, block: Block, scores: NDArray[np.float64]) -> int:
        return self._leading.score(block, scores)

    def weights(self, start: int, stop: int) -> NDArray[Any]:
        return self._leading.weights(start, stop)

    def rank_keys(self, start: int, stop: int) -> NDArray[Any]:
        return self._leading.rank_keys(start, stop)

    # -- state

    def reserve(self, n_features: int, exactly: bool = False) -> None:
        for single in self.singles:
            single.reserve(n_features, exactly)

    def header(self) -> dict[str, Any]:
        return {"candidates": [{"name": one.name, "settings": one.settings} for one in self.candidates]}

    def dump(self, n_features: int) -> dict[str, NDArray[Any]]:
        numbers = np.array([*self.tally, self.raced, self.lead], np.float64)
        dumped = [single.dump(n_features) for single in self.singles]
        index = np.unique(np.concatenate([arrays["index"] for arrays in dumped]))
        found = {"tally": numbers, "index": index, **file_arrays.dump_extra(self._latest.dump())}
        for number, arrays in enumerate(dumped):
            found |= {f"{number}.{name}": array for name, array in arrays.items()}
        return found

    def load(self, arrays: Arrays, n_features: int) -> None:
        self.raced, self.lead = file_arrays.load_race(arrays, len(self.singles), self._plan.rows)
        file_arrays.checked_index(arrays, "index", n_features)
        for number, single in enumerate(self.singles):
            start = f"{number}."
            single.load({name[len(start) :]: one for name, one in arrays.items() if name.startswith(start)}, n_features)
        self._latest.load(file_arrays.load_extra(arrays), self.raced)
