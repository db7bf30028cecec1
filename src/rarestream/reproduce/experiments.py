"""The experiments of the paper, by the table or figure that shows them: from a plan to the rows of its trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rarestream.errors import advice
from rarestream.reproduce import datasets, protocol
from rarestream.reproduce.datasets import AVAZU, NAMES, Source
from rarestream.reproduce.methods import LEARNED_LAZILY, METHODS, OURS, TABLE2, TABLE3, TUNED_AFTER
from rarestream.reproduce.trials import Estimate, Work, choices
from rarestream.study.rows import (
    CORRECTED,
    FULL,
    MISSING,
    NONE,
    PUBLISHED,
    QUICK,
    TRIAL,
    TrialRow,
    trial_rows,
    why_no_trial,
)
from rarestream.study.store import RESULTS, Row, Store, TrialsError, read_rows
from rarestream.study.trials import Progress, run
from rarestream.system import cores

Unit = dict[str, Any]
QUICK_TRIALS = 2
STREAM, QUICK_STREAM = 2_000_000, 200_000  # rows of the synthetic stream in place of avazu


@dataclass(frozen=True)
class Experiment:
    """What is run for a table or a figure."""

    methods: tuple[str, ...] = ()
    names: tuple[str, ...] = NAMES
    ratios: tuple[float | None, ...] = (None,)
    tuned: bool = True  # False: each method has the one setting of figures 2 and 9
    tables: tuple[int, ...] = ()  # that show it
    figures: tuple[int, ...] = ()


_ZEROS = ("ftrl_auc", "spam_l1", "spam_l1l2", "spauc")  # methods of Table II that make weights zero
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
ALL = [name for name in EXPERIMENTS if name not in ("lazy", "avazu")]  # these two are figures under another name


@dataclass(frozen=True)
class Plan:
    """How much of an experiment is run."""

    mode: str
    quick: bool
    trials: int | None = None  # None: ten, or two if quick
    names: Collection[str] | None = None  # data sets; None: all
    methods: Collection[str] | None = None  # None: all
    stream: int | None = None  # rows of the stream in place of avazu; None: many, or fewer if quick

    def units(self, experiment: str, sources: Mapping[str, Source]) -> Iterator[Unit]:
        """Yield the units of an experiment on the data sets that were found, those of one trial together."""
        chosen = EXPERIMENTS[experiment]
        wanted = [method for method in chosen.methods if self.methods is None or method in self.methods]
        if self.mode == PUBLISHED:
            wanted = [method for method in wanted if method not in OURS]
        wanted += [needed for method, needed in TUNED_AFTER.items() if method in wanted and needed not in wanted]
        for name in self.wanted(chosen.names):
            if name not in sources:
                continue
            for ratio in chosen.ratios:
                for trial in range(self.trials or (QUICK_TRIALS if self.quick else protocol.TRIALS)):
                    for method in wanted:
                        yield {
                            "kind": "trial",
                            "dataset": name,
                            "ratio": ratio,
                            "method": method,
                            "mode": self.mode,
                            "grid": self._grid(chosen, method),
                            "trial": trial,
                            "source": sources[name].mark,
                        }

    def wanted(self, names: Collection[str]) -> list[str]:
        """Return the data sets among `names` that were asked for."""
        return [name for name in names if self.names is None or name in self.names]

    def _grid(self, experiment: Experiment, method: str) -> str:
        if method in OURS or not experiment.tuned:
            return NONE
        return QUICK if self.quick else FULL


# -- the data


@dataclass(frozen=True)
class FoundData:
    """The data sets of some experiments in a folder."""

    folder: Path
    sources: dict[str, Source]
    missing: list[str]

    @property
    def stream(self) -> int:
        """Rows of the stream in place of avazu; 0 if there is none."""
        return self.sources[AVAZU].generated if AVAZU in self.sources else 0

    def current(self, rows: Iterable[Row]) -> list[TrialRow]:
        """Return the rows that are of the data as it is now."""
        marks = {name: source.mark for name, source in self.sources.items()}
        return trial_rows(row for row in rows if marks.get(row["dataset"]) == row["source"])

    def of_other_rows(self, rows: Iterable[Row]) -> dict[str, int]:
        """Return how many trials are of other rows than the data has now, by data set."""
        marks = {name: source.mark for name, source in self.sources.items()}
        return dict(Counter(row["dataset"] for row in rows if marks.get(row["dataset"]) != row["source"]))

    def missing_rows(self) -> list[TrialRow]:
        """Return rows of kind "missing" for the data sets that were not found."""
        return [{"kind": MISSING, "dataset": name} for name in self.missing]

    def shapes(self) -> dict[str, dict[str, Any]]:
        """Load each data set, and return its line of Table I."""
        return {name: datasets.load(source).shape for name, source in self.sources.items()}


def find_data(names: Sequence[str], plan: Plan, folder: Path) -> FoundData:
    """Find the data sets of some experiments; a synthetic stream takes the place of avazu if that is missing.

    Parameters
    ----------
    names : sequence of str
        Names of experiments, the keys of `EXPERIMENTS`.
    plan : Plan
        Which data sets are wanted, and how long the stream is.
    folder : Path
        The folder of `farm-ads.svm`, `imdb.svm` and so on, compressed or not.

    Returns
    -------
    FoundData
        What was found, and what is missing.

    Raises
    ------
    DataSetError
        If nothing was found.
    """
    wanted = plan.wanted(list(dict.fromkeys(name for experiment in names for name in EXPERIMENTS[experiment].names)))
    found = datasets.sources(folder, wanted)
    rows = (QUICK_STREAM if plan.quick else STREAM) if plan.stream is None else plan.stream
    if rows and AVAZU in wanted and AVAZU not in found:
        found[AVAZU] = datasets.stream(rows)
    missing = [name for name in wanted if name not in found]
    if wanted and not found:
        lines = "".join(f"\n  {line}" for line in datasets.places(folder, missing))
        raise protocol.DataSetError(
            f"{folder}: has none of the data sets. Pass the folder that has them as "
            f"{advice('folder', '--data-dir DIR')}. These files are looked for:{lines}"
        )
    return FoundData(folder, found, missing)


# -- the trials


class FinishedRows(NamedTuple):
    """Rows of the results file, of the data as it is now."""

    asked: list[TrialRow]  # of the experiments that were asked for
    every: list[TrialRow]  # of any experiment, in both modes


def run_experiments(
    names: Sequence[str],
    plan: Plan,
    data: FoundData,
    folder: Path,
    *,
    processes: int | None = None,
    report: Callable[[Progress], object] | None = None,
) -> FinishedRows:
    """Run the trials of some experiments that have no row in the folder's results file yet.

    Parameters
    ----------
    names : sequence of str
        Names of experiments, the keys of `EXPERIMENTS`.
    plan : Plan
        How much of them to run.
    data : FoundData
        What `find_data` returned.
    folder : Path
        The folder of the results file.
    processes : int, >= 1, optional
        Number of processes. By default one per core.
    report : callable, optional
        Called with a Progress before the methods are timed, before the first trial and after each.

    Returns
    -------
    FinishedRows
        The rows of these experiments, and of all.

    Raises
    ------
    TrialsError
        If a process dies, or a row cannot be written. The rows of finished trials stay: rerun to resume. Also if a
        line of the results file is not a trial of these experiments.
    """
    units = units_of(names, plan, data.sources)
    # Those that are tuned after others come last.
    waves = [[unit for unit in units if (unit["method"] in TUNED_AFTER) is after] for after in (False, True)]
    asked: list[TrialRow] = []
    with Store(folder / RESULTS) as store:
        check_trials(store.rows, store.path)
        left = [unit for unit, row in zip(units, store.find(units), strict=True) if row is None]
        if left and report is not None:  # timing the methods takes a while
            report(Progress(len(units) - len(left), len(units), 0.0, None, None))
        cost = Estimate(data.sources)
        costs = [(cost(unit), unit["method"] in TUNED_AFTER) for unit in left]  # in this order each file is read once
        later = sum(seconds for seconds, last in costs if last) / (processes or cores())
        done_last = len(waves[1]) - sum(last for _, last in costs)
        others = ((done_last, later), (len(waves[0]), 0.0))  # what is done and left of the other wave
        for wave, (done, seconds) in zip(waves, others, strict=True):

            def report_both(now: Progress, done: int = done, seconds: float = seconds) -> None:
                if report is not None:
                    both = None if now.left is None else now.left + seconds
                    report(now._replace(done=now.done + done, total=len(units), left=both))

            work = Work(data.sources, choices(asked))
            asked += trial_rows(run(wave, work, store, processes=processes, cost=cost, report=report_both))
        return FinishedRows(asked, data.current(store.rows))


def finished_experiments(plan: Plan, data: FoundData, rows: Sequence[Row]) -> FinishedRows:
    """Return the rows of a results file that a report shows."""
    every = data.current(rows)
    return FinishedRows([row for row in every if row["mode"] == plan.mode], every)


def finished_trials(folder: Path) -> list[Row]:
    """Return the rows of the folder's results file; none if there is no file. They are checked."""
    path = folder / RESULTS
    rows = read_rows(path) if path.exists() else []
    check_trials(rows, path)
    return rows


def check_trials(rows: Sequence[Row], path: Path) -> None:
    """Raise TrialsError if a row is not a trial of the paper's experiments."""
    known = {"kind": (TRIAL,), "dataset": (*NAMES, AVAZU), "method": tuple(METHODS), "mode": (CORRECTED, PUBLISHED)}
    for number, row in enumerate(rows, 1):
        if problem := why_no_trial(row, known):
            raise TrialsError(
                f"{path}:{number}: not a trial of `rarestream reproduce`: {problem}. Remove the line, or "
                f"{advice('pass another folder', 'choose another folder with --out FOLDER')}."
            )


def stream_of(rows: Sequence[Row]) -> int:
    """Return how many rows the last stream in place of avazu had; 0 if there was none."""
    return next((count for row in reversed(rows) if (count := datasets.streamed(row["source"]))), 0)


def units_of(experiments: Iterable[str], plan: Plan, sources: Mapping[str, Source]) -> list[Unit]:
    """Return the units of several experiments, each once, those of a data set together."""
    units = [unit for experiment in experiments for unit in plan.units(experiment, sources)]
    order = {name: place for place, name in enumerate(sources)}
    units.sort(key=lambda unit: (order[unit["dataset"]], unit["ratio"] or 1.0, unit["trial"]))
    return [unit for place, unit in enumerate(units) if unit not in units[:place]]
