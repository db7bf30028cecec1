"""Comparing: the same splits and the same tuning effort for every method, on rows of one's own.

    trials     the rows are permuted with a seed; 4/6 are learned in that order, 1/6 choose settings, 1/6 test
    in order   the same three parts by position, the oldest rows first: one trial
    tuning     every method has as many settings (methods.py), chosen by the AUC on the validation part alone

Results are rows of a file (trials.py): a comparison that was stopped goes on where it was, and one over more methods,
trials or settings does only what is new.
"""

from __future__ import annotations

import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rarestream._version import __version__
from rarestream.blocks import Block, concatenate
from rarestream.compare import work
from rarestream.compare.methods import METHODS, Method, Size
from rarestream.errors import DataError, advice
from rarestream.learners.lanes import MOST
from rarestream.model import SCALES
from rarestream.trials import Progress, Row, Store, Unit, run

BATCH = "batch-logistic"
RESULTS = "results.jsonl"
SLICE = 1000  # rows that tell how long a method takes
SHORT = 3.0  # seconds of work that are not worth starting processes for
CURVE = 60  # points of a curve, about


@dataclass(frozen=True)
class Comparison:
    """What came of it."""

    rows: list[Row]  # one for each method in each trial
    left_out: dict[str, str]  # methods that were not run, and why


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
    """Has methods learn labelled rows, and tells how each did.

    rows       a Block, or several, such as a stream of them; they are held in memory
    name       of the data, in the results
    methods    by name; None: all that are quick enough at this size
    batch      also logistic regression by scikit-learn's liblinear, which makes many passes
    trials     how many permutations
    settings   how many each method is tuned over
    scale      of the rows, as that of a Model
    in_order   the rows come in order of time, and keep it: one trial
    folder     where results are kept, to go on from; None: they are not
    processes  None: one a core, or this one alone if there is little to do
    report     is told before the first trial of a method and after each
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
    _check(block, trials, order)
    size = work.Parts(*(block.take(rows) for rows in work.split(len(block), 0, order))).size
    taken, left_out = chosen(methods, batch, size)
    what = {
        "kind": "trial",
        "dataset": name,
        "source": fingerprint(block),
        "ratio": None,
        "mode": "corrected",
        "split": "in order" if in_order else f"seed {seed}",
        "scale": scale,
        "version": __version__,  # another may be tuned over other settings
    }
    units: list[Unit] = [
        {**what, "method": method.word, "grid": f"{settings} settings" if method.tuned else "none", "trial": trial}
        for trial in range(trials)
        for method in taken
    ]
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="rarestream-"))
        store = stack.enter_context(Store(Path(folder or place) / RESULTS))
        work.put(block, place)
        to_do = {unit["method"] for unit, row in zip(units, store.found(units), strict=True) if row is None}
        costs = {one.word: _cost(one, block, settings, scale) for one in taken if one.word in to_do}
        if processes is None and sum(costs.values()) * trials < SHORT:
            processes = 1
        results = run(
            units,
            work.Work(place, settings, scale, order),
            store,
            processes=processes,
            cost=lambda unit: costs[unit["method"]],
            report=report,
        )
    return Comparison(results, left_out)


def chosen(names: Sequence[str] | None, batch: bool, size: Size) -> tuple[list[Method], dict[str, str]]:
    """The methods that run, and why others do not."""
    for name in names or ():
        if name not in METHODS:
            raise ValueError(f"compare: no method is called {name!r}; there are {', '.join(METHODS)}.")
    usual = [name for name in METHODS if name != BATCH]
    wanted = [METHODS[name] for name in dict.fromkeys([*(names or usual), *([BATCH] if batch else [])])]
    refusals = {method.name: method.refusal(size, named=bool(names)) for method in wanted}
    taken = [method for method in wanted if refusals[method.name] is None]
    if not taken:
        raise DataError(f"compare: nothing is left to run: {'; '.join(f'{k}: {v}' for k, v in refusals.items())}.")
    return taken, {name: why for name, why in refusals.items() if why is not None}


def fingerprint(block: Block) -> str:
    """Of the rows: results of others are not mixed with theirs."""
    crc = 0
    for name in work.ARRAYS:
        part = getattr(block, name)
        if part is not None:
            crc = zlib.crc32(np.ascontiguousarray(part).data, crc)
    return f"{crc:08x}"


def _check(block: Block, trials: int, seed: int | None) -> None:
    """Every part of every trial needs rows of both classes."""
    if not len(block):
        raise DataError("compare: there are no rows.")
    if block.labels is None:
        raise DataError("compare: the rows have no labels, and methods are compared by them.")
    positives = int(np.count_nonzero(block.labels > 0))
    if positives in (0, len(block)):
        one = "positive" if positives else "negative"
        raise DataError(
            f"compare: all {len(block):,} rows are {one}, but ranking needs both classes. Which label is positive?"
        )
    for trial in range(trials):
        for part, rows in work.split(len(block), trial, seed)._asdict().items():
            here = int(np.count_nonzero(block.labels[rows] > 0))
            if here in (0, len(rows)):
                missing = "negative" if here else "positive"
                way_on = "try another seed" if seed is not None else f"leave out {advice('in_order', '--in-order')}"
                raise DataError(
                    f"compare: the {WORDS[part]} part of trial {trial} has no {missing} row: {positives:,} positives "
                    f"among {len(block):,} rows are too few to be learned, tuned and tested with, or stand together. "
                    f"Bring more rows, or {way_on}."
                )


WORDS = {"train": "training", "valid": "validation", "test": "test"}


def _cost(method: Method, block: Block, settings: int, scale: str) -> float:
    """About how many seconds a trial takes, from a few rows learned with the default settings."""
    few = block[: min(SLICE, len(block) // 3)]
    size = Size(len(few), few.width, few.nonzeros)
    try:
        scorer = method.scorer(method.settings(1, size)[0], scale, size)
        start = time.perf_counter()
        scorer.learn(few)
        learned = time.perf_counter()
        scorer.score(few)
        scored = time.perf_counter()
    except work.FAILURES:
        return 0.0  # its trials will say why
    tried = settings if method.tuned else 0
    passes = (tried + 2) * (learned - start) * 2 / 3  # all settings, and the chosen one twice
    tests = (tried / 3 + CURVE / 6) * (scored - learned)
    return (passes + tests) * len(block) / len(few)
