"""A comparison of methods on a user's rows: the same splits and the same tuning effort for all.

    trials     the rows are permuted with a seed; 4/6 are learned in that order, 1/6 choose settings, 1/6 test
    in order   the same three parts by position, the oldest rows first: one trial
    tuning     every method has as many settings (methods.py), chosen by the AUC on the validation part alone

Results are rows of a file (study/store.py): rerun a comparison to resume it; with more methods, trials or settings,
only what is new is run.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rarestream._version import __version__
from rarestream.blocks import Block, concatenate
from rarestream.compare.data import check, fingerprint, save_block, trial_blocks
from rarestream.compare.methods import METHODS, Method, Size
from rarestream.compare.trials import FAILURES, Work
from rarestream.engines import SCALES
from rarestream.engines.lanes import MOST
from rarestream.errors import DataError
from rarestream.study.rows import CORRECTED, NONE, TRIAL, TrialRow, trial_rows
from rarestream.study.store import RESULTS, Store, Unit
from rarestream.study.trials import Progress, run

BATCH = "batch-logistic"
SLICE = 1000  # rows that a method is timed on
SHORT = 3.0  # seconds of work for which starting processes does not pay
CURVE = 60  # points of a curve, about


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    Attributes
    ----------
    rows : list of TrialRow
        One for each method in each trial.
    left_out : dict of str to str
        Methods that were not run, and why.
    """

    rows: list[TrialRow]
    left_out: dict[str, str]


def compare(
    rows: Block | Iterable[Block],
    name: str = "rows",
    *,
    methods: Sequence[str] | None = None,
    batch: bool = False,
    trials: int = 5,
    settings: int = 8,
    scale: str = "unit",
    in_order: bool = False,
    seed: int = 17,
    folder: str | Path | None = None,
    processes: int | None = None,
    report: Callable[[Progress], object] | None = None,
) -> Comparison:
    """Compare methods on labelled rows.

    Parameters
    ----------
    rows : Block or iterable of Block
        Labelled rows, such as a stream; they are held in memory.
    name : str, default "rows"
        Name of the data in the results.
    methods : sequence of str, optional
        Names of methods, the keys of `METHODS`. By default all that are quick enough at this size.
    batch : bool, default False
        Whether to compare also logistic regression by scikit-learn's liblinear, which makes many passes.
    trials : int, >= 1, default 5
        Number of trials, each with another permutation of the rows.
    settings : int, between 1 and 64, default 8
        Number of settings that each method is tuned over.
    scale : {"unit", "max", "none"}, default "unit"
        How rows are scaled, as for a Model.
    in_order : bool, default False
        Whether the rows are in order of time and stay in it: one trial, tested on the latest rows.
    seed : int, default 17
        Seed of the permutations.
    folder : str or path, optional
        Folder of the results file, to resume from. By default results are not stored.
    processes : int, >= 1, optional
        Number of processes. By default one per core, or this one alone if there is little to do.
    report : callable, optional
        Called with a Progress before the first trial of a method and after each.

    Returns
    -------
    Comparison
        A row for each method in each trial; `standings` ranks the methods.

    Raises
    ------
    ValueError
        If an argument is out of range, or a method is unknown.
    DataError
        If there are no rows, no labels, or a part of a trial without rows of both classes.
    TrialsError
        If a process dies, or a row cannot be written.
    """
    if trials < 1:
        raise ValueError(f"compare: trials must be >= 1, got {trials}.")
    if not 1 <= settings <= MOST:
        raise ValueError(f"compare: settings must be between 1 and {MOST}, got {settings}.")
    if scale not in SCALES:
        raise ValueError(f"compare: scale must be one of {', '.join(SCALES)}, got {scale!r}.")
    block = rows if isinstance(rows, Block) else concatenate(rows)
    trials = 1 if in_order else trials
    order = None if in_order else seed
    check(block, range(trials), order)
    selected, left_out = select(methods, batch, Size.of(trial_blocks(block, 0, order).train))
    common = {
        "kind": TRIAL,
        "dataset": name,
        "source": fingerprint(block),
        "ratio": None,
        "mode": CORRECTED,
        "split": "in order" if in_order else f"seed {seed}",
        "scale": scale,
        "version": __version__,  # another may be tuned over other settings
    }
    units: list[Unit] = [
        {**common, "method": method.word, "grid": f"{settings} settings" if method.tuned else NONE, "trial": trial}
        for trial in range(trials)
        for method in selected
    ]
    with ExitStack() as stack:
        # Windows removes no file that is still mapped into memory.
        shared = stack.enter_context(tempfile.TemporaryDirectory(prefix="rarestream-", ignore_cleanup_errors=True))
        store = stack.enter_context(Store(Path(folder or shared) / RESULTS))
        save_block(block, shared)
        to_do = {unit["method"] for unit, row in zip(units, store.find(units), strict=True) if row is None}
        costs = {method.word: _cost(method, block, settings, scale) for method in selected if method.word in to_do}
        if processes is None and sum(costs.values()) * trials < SHORT:
            processes = 1
        results = run(
            units,
            Work(shared, settings, scale, order),
            store,
            processes=processes,
            cost=lambda unit: costs[unit["method"]],
            report=report,
        )
    return Comparison(trial_rows(results), left_out)


def select(names: Sequence[str] | None, batch: bool, size: Size) -> tuple[list[Method], dict[str, str]]:
    """Return the methods that run, and why others do not."""
    for name in names or ():
        if name not in METHODS:
            raise ValueError(f"compare: no method is called {name!r}; there are {', '.join(METHODS)}.")
    usual = [name for name in METHODS if name != BATCH]
    wanted = [METHODS[name] for name in dict.fromkeys([*(names or usual), *([BATCH] if batch else [])])]
    refusals = {method.name: method.refusal(size, named=bool(names)) for method in wanted}
    selected = [method for method in wanted if refusals[method.name] is None]
    if not selected:
        raise DataError(f"compare: nothing is left to run: {'; '.join(f'{k}: {v}' for k, v in refusals.items())}.")
    return selected, {name: why for name, why in refusals.items() if why is not None}


def _cost(method: Method, block: Block, settings: int, scale: str) -> float:
    """Return about how many seconds a trial takes, from a few rows learned with the default settings."""
    few = block[: min(SLICE, len(block) // 3)]
    size = Size.of(few)
    try:
        scorer = method.scorer(method.settings(1, size)[0], scale, size)
        start = time.perf_counter()
        scorer.learn(few)
        learned = time.perf_counter()
        scorer.score(few)
        scored = time.perf_counter()
    except FAILURES:
        return 0.0  # its trials will give the reason
    tried = settings if method.tuned else 0
    passes = (tried + 2) * (learned - start) * 2 / 3  # all settings, and the chosen one twice
    tests = (tried / 3 + CURVE / 6) * (scored - learned)
    return (passes + tests) * len(block) / len(few)
