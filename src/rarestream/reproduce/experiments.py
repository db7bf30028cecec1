"""The experiments of the paper, by the name of the table or figure that shows them, as units of work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rarestream.reproduce import protocol
from rarestream.reproduce.datasets import AVAZU, NAMES, Source
from rarestream.reproduce.methods import (
    FULL,
    LEARNED_LAZILY,
    NONE,
    OURS,
    PUBLISHED,
    QUICK,
    TABLE2,
    TABLE3,
    TUNED_AFTER,
)
from rarestream.reproduce.trials import Estimate, Work, choices
from rarestream.trials import Progress, Row, Store, cores, run

Unit = dict[str, Any]
QUICK_TRIALS = 2


@dataclass(frozen=True)
class Experiment:
    """What is run for a table or a figure."""

    methods: tuple[str, ...] = ()
    names: tuple[str, ...] = NAMES
    ratios: tuple[float | None, ...] = (None,)
    tuned: bool = True  # else each method has the one setting of figures 2 and 9
    tables: tuple[int, ...] = ()  # that show it
    figures: tuple[int, ...] = ()


_ZEROS = ("ftrl_auc", "spam_l1", "spam_l1l2", "spauc")  # methods of Table II that make some
_CLICKS = ("ftrl_auc", "ftrl_proximal", "auto")
_LAZY2, _LAZY9 = ("imdb", "real-sim", "farm-ads"), ("news20b", "rcv1b", "reviews")
EXPERIMENTS: dict[str, Experiment] = {
    "table1": Experiment(tables=(1,)),
    "table2": Experiment(TABLE2 + OURS, tables=(2,)),
    "table3": Experiment(TABLE3 + OURS, ratios=(0.1, 0.05), tables=(3,)),
    "figure1": Experiment(names=(), figures=(1,)),
    "figure2": Experiment(LEARNED_LAZILY, _LAZY2, tuned=False, figures=(2,)),
    "figure3": Experiment(TABLE2 + OURS, figures=(3,)),
    "figure4": Experiment(_ZEROS, figures=(4,)),
    "figure5": Experiment(TABLE3 + OURS, ratios=(0.1,), figures=(5,)),
    "figure6": Experiment(TABLE3, ratios=(0.1,), figures=(6,)),
    "figure7": Experiment(_CLICKS, (AVAZU,), figures=(7,)),
    "figure8": Experiment(TABLE2 + OURS, figures=(8,)),
    "figure9": Experiment(LEARNED_LAZILY, _LAZY9, tuned=False, figures=(9,)),
    "figure10": Experiment(TABLE3 + OURS, ratios=(0.05,), figures=(10,)),
    "figure11": Experiment(TABLE3, ratios=(0.05,), figures=(11,)),
    "lazy": Experiment(LEARNED_LAZILY, tuned=False, figures=(2, 9)),
    "avazu": Experiment(_CLICKS, (AVAZU,), figures=(7,)),
}
ALL = [name for name in EXPERIMENTS if name not in ("lazy", "avazu")]  # these are figures under another name


@dataclass(frozen=True)
class Plan:
    """How much of an experiment is run."""

    mode: str
    quick: bool
    trials: int | None = None  # None: ten, or two
    names: Collection[str] | None = None  # data sets; None: all
    methods: Collection[str] | None = None

    def units(self, experiment: str, sources: Mapping[str, Source]) -> Iterator[Unit]:
        """The units of an experiment on the data sets that are there; those of one trial's rows stand together."""
        one = EXPERIMENTS[experiment]
        wanted = [method for method in one.methods if self.methods is None or method in self.methods]
        if self.mode == PUBLISHED:
            wanted = [method for method in wanted if method not in OURS]
        wanted += [needed for method, needed in TUNED_AFTER.items() if method in wanted and needed not in wanted]
        for name in self.wanted(one.names):
            if name not in sources:
                continue
            for ratio in one.ratios:
                for trial in range(self.trials or (QUICK_TRIALS if self.quick else protocol.TRIALS)):
                    for method in wanted:
                        yield {
                            "kind": "trial",
                            "dataset": name,
                            "ratio": ratio,
                            "method": method,
                            "mode": self.mode,
                            "grid": self._grid(one, method),
                            "trial": trial,
                            "source": sources[name].mark,
                        }

    def wanted(self, names: Collection[str]) -> list[str]:
        """Those of the data sets that were asked for."""
        return [name for name in names if self.names is None or name in self.names]

    def _grid(self, experiment: Experiment, method: str) -> str:
        if method in OURS or not experiment.tuned:
            return NONE
        return QUICK if self.quick else FULL


def units_of(experiments: Iterable[str], plan: Plan, sources: Mapping[str, Source]) -> list[Unit]:
    """The units of several experiments, each once, those of a data set together."""
    units = [unit for experiment in experiments for unit in plan.units(experiment, sources)]
    order = {name: place for place, name in enumerate(sources)}
    units.sort(key=lambda unit: (order[unit["dataset"]], unit["ratio"] or 1.0, unit["trial"]))
    return [unit for place, unit in enumerate(units) if unit not in units[:place]]


def carry_out(
    units: list[Unit],
    sources: Mapping[str, Source],
    store: Store,
    *,
    processes: int | None = None,
    report: Callable[[Progress], object] | None = None,
) -> list[Row]:
    """Does the units that have no row yet, those tuned after others last. The rows of all."""
    cost = Estimate(sources)
    left = [unit for unit, row in zip(units, store.found(units), strict=True) if row is None]
    costs = [(cost(unit), unit["method"] in TUNED_AFTER) for unit in left]  # in this order each set is read once
    later = sum(seconds for seconds, after in costs if after) / (processes or cores())
    waves = [[unit for unit in units if (unit["method"] in TUNED_AFTER) is after] for after in (False, True)]
    last_done = len(waves[1]) - sum(after for _, after in costs)
    rows: list[Row] = []
    for place, wave in enumerate(waves):
        others, after = (last_done, later) if place == 0 else (len(waves[0]), 0.0)  # of the other wave

        def told(now: Progress, others: int = others, after: float = after) -> None:
            if report is not None:
                seconds = None if now.left is None else now.left + after
                report(now._replace(done=now.done + others, total=len(units), left=seconds))

        work = Work(sources, choices(rows))
        rows += run(wave, work, store, processes=processes, cost=cost, report=told)
    return rows
