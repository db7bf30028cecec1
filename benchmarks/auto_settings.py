"""How the settings that `auto` races were chosen: what each list of them gives on validation rows.

    python benchmarks/auto_settings.py --data-dir DIR [--trials 3] [--swaps 4] [--seeds 11,12] [--tables] [--jobs N]

All settings of a pool learn every problem once, in lanes. What a race between some of them would have chosen, and how
its mixture ranks the validation rows, follows from their scores, so that any list is tried in a moment.

Problems: every DIR/<name>.svm.bz2 as quality.py divides it, as it is and at two ratios; and generated streams of
streams.py's families with other seeds, where the best settings go on after 16,384 rows and one mixture of these is
found after 262,144. Half-lives, which join a race later, are left out. No test row takes part.

Lists are improved by swaps: the setting of the pool that adds most comes in, then the one that is missed least goes.
What a list gains is .8 times the mean over the sets and .2 times that over the streams, of which drifting ones count a
fifth. The same swaps chosen on one half of the sets are also tried on the other half: that is the gain to expect
elsewhere. --tables: `auto` with either list learns the tables of real_tables.py, which have no part in the choice.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import shapes
import streams
from machine import CACHE
from quality import ASIS, EXAMPLE, set_problem
from rarestream import Auto, Block, Learner, Model, auc, read
from rarestream.blocks import concatenate
from rarestream.engines.choice import MIN_CLASS_ROWS, warm_up
from rarestream.engines.latest import WINDOW, _thinned
from rarestream.engines.race import Race
from rarestream.learners.dual_averaging import DualAveraging
from rarestream.learners.ftrl_proximal import FtrlProximal
from rarestream.metrics.paired import Standings
from rarestream.race.fitting import ManyFits
from real_tables import LABEL, TABLES, frame

RATIOS = (ASIS, ".1", ".05")
FAMILIES = (("demo", 300_000), ("avazu", 300_000), ("ctr", 300_000), ("drift", 300_000))
FAMILIES += (("ctr", 1_500_000), ("demo", 1_000_000), ("avazu", 1_000_000))
CUT, LAST, KEPT = 1 << 14, 1 << 18, 6  # of the eight that go on, two are copies with half-lives
VALIDATION = 60_000  # rows of a stream
MOST = 4_000  # validation rows of a class that count
DRIFT = 0.2  # what a drifting stream counts
SETS = 0.8  # what all sets count; streams the rest
LEARNED = 0.7  # of the rows of a table
TOO_BAD = 0.12  # AUC: settings that are so much worse than the default anywhere are not proposed

Numbers = NDArray[Any]
Chosen = Sequence[int]  # settings of the pool, the default first


def pool() -> list[Learner]:
    """The settings to choose from; first those that `auto` races."""
    rates = {
        ("logistic", 0.5): (0.3, 0.6, 1.3, 2.6),
        ("logistic", 1.0): (0.25, 0.5, 1.0, 2.0),
        ("logistic", 2.0): (0.12, 0.25, 0.5, 1.0, 2.0),
        ("auc", 0.5): (0.06, 0.12, 0.25, 0.5),
        ("auc", 1.0): (0.12, 0.25, 0.5, 1.0),
        ("auc", 2.0): (0.03, 0.06, 0.12, 0.25, 0.5),
    }
    found: list[Learner] = [*Auto.candidates(), *former()]
    for (loss, rate_power), some in rates.items():
        make = partial(DualAveraging, loss=loss, rate_power=rate_power, beta=1e-4 if rate_power == 2 else 0.03)
        found += [
            make(learning_rate=rate, evidence=evidence, proximal=proximal, power=power)
            for evidence in (0.0, 0.5, 1.0)
            for proximal in (0.0, 0.5, 1.0)
            for power in (0.0, 1.0)
            for rate in some
        ]
    pairs = ((0.1, 0.03), (0.3, 0.1), (0.6, 0.3), (1.0, 1.0), (2.0, 0.3), (4.0, 1.0), (10.0, 1.0), (10.0, 3.0))
    found += [FtrlProximal(learning_rate=rate, beta=beta) for rate, beta in pairs]
    return list(dict.fromkeys(found))


def former() -> list[Learner]:
    """The list that the swaps began with."""
    logistic, auc_loss = partial(DualAveraging, loss="logistic"), partial(DualAveraging, loss="auc")
    even = partial(logistic, evidence=0.5)
    return [
        *(even(proximal=0.5, learning_rate=rate) for rate in (1.3, 0.6, 2.6)),
        even(proximal=1.0, learning_rate=2.6),
        even(proximal=0.5, learning_rate=1.0, rate_power=1.0),
        *(even(learning_rate=rate, rate_power=2.0, beta=1e-4) for rate in (0.5, 1.0, 2.0)),
        logistic(evidence=1.0, learning_rate=0.5, rate_power=2.0, beta=1e-4),
        logistic(evidence=1.0, proximal=0.5, learning_rate=1.3),
        *(auc_loss(evidence=0.5, learning_rate=rate) for rate in (0.25, 0.5)),
        logistic(power=0.5, proximal=0.5, learning_rate=1.3),
        *(logistic(power=1.0, proximal=0.5, learning_rate=rate) for rate in (1.3, 2.6)),
        logistic(proximal=1.0, learning_rate=2.6),
        auc_loss(power=1.0, learning_rate=0.25),
        *(FtrlProximal(learning_rate=rate, beta=beta) for rate, beta in ((0.3, 0.1), (4.0, 1.0), (1.0, 1.0))),
        logistic(learning_rate=2.21),
        logistic(learning_rate=1.0, rate_power=2.0, beta=1e-8),
        *(auc_loss(learning_rate=rate) for rate in (0.25, 0.1)),
    ]


# -- what a race would choose


class Look(NamedTuple):
    """The settings of the pool compared on some rows."""

    aucs: Numbers
    covariance: Numbers  # of the AUCs
    spread: Numbers  # of the scores

    def errors(self, chosen: Chosen, other: int) -> Numbers:
        """The standard errors of the differences of some AUCs from one of them."""
        variances = np.diag(self.covariance)[list(chosen)]
        both = self.covariance[chosen[other], list(chosen)]
        return np.sqrt(np.maximum(variances + variances[other] - 2 * both, 0))

    def shares(self, chosen: Chosen) -> Numbers:
        """What the scores of some settings are multiplied by in their mixture, as in rarestream.engines.choice."""
        aucs, spread = self.aucs[list(chosen)], self.spread[list(chosen)]
        leader = int(np.argmax(aucs - self.errors(chosen, 0)))
        behind, errors = np.maximum(aucs[leader] - aucs, 0), self.errors(chosen, leader)
        apart = np.divide(behind, errors, out=np.where(behind > 0, 3.0, 0.0), where=errors > 1e-12)
        counts = np.square(np.square(1 - np.minimum(np.square(apart), 8) / 8))
        counts[leader] = 1
        return counts / counts.sum() * np.divide(1, spread, out=np.zeros(len(spread)), where=spread > 0)

    def best(self, chosen: Chosen, number: int) -> list[int]:
        order = np.argsort(self.errors(chosen, 0) - self.aucs[list(chosen)], kind="stable")
        return [chosen[0], *[chosen[one] for one in order if one != 0][: number - 1]]


def look(labels: Numbers, scores: Numbers) -> Look | None:
    """None if a class has too few rows, as in a race."""
    at = _thinned(labels)
    if min(np.count_nonzero(labels[at] > 0), np.count_nonzero(labels[at] < 0)) < MIN_CLASS_ROWS:
        return None
    found = Standings(labels[at], scores[at])

    def covariance(placed: Numbers) -> Numbers:
        gaps = placed - placed.mean(axis=1, keepdims=True)
        return gaps @ gaps.T / (gaps.shape[1] - 1) / gaps.shape[1]

    placed, positives = found._placed, found._positives
    both = covariance(placed[:, :positives]) + covariance(placed[:, positives:])
    return Look(found.aucs, both, scores[at].std(axis=0, dtype=np.float64))


class Problem(NamedTuple):
    name: str
    kind: str  # the set, or the family of streams
    weight: float
    cut: Look | None
    last: Look | None
    labels: Numbers
    scores: Numbers  # of the validation rows under all settings

    def auc(self, chosen: Chosen) -> float:
        """What a race between some settings gives on the validation rows."""
        if self.last is None:
            return auc(self.labels, self.scores[:, chosen[0]].astype(np.float64))
        left = chosen if self.cut is None else self.cut.best(chosen, KEPT)
        shares = self.last.shares(left)
        on = np.flatnonzero(shares)
        return auc(self.labels, self.scores[:, [left[one] for one in on]].astype(np.float64) @ shares[on])


def some_rows(labels: Numbers) -> Numbers:
    """Rows to compute an AUC on: at most MOST of each class."""
    classes = [np.flatnonzero(labels > 0), np.flatnonzero(labels <= 0)]
    return np.sort(np.concatenate([one[:: -(-len(one) // MOST)] for one in classes]))


def learn(fits: ManyFits, block: Block) -> Numbers:
    return np.nan_to_num(np.asarray(fits.learn(block), np.float32))


def of_set(folder: Path, trials: int, name: str) -> list[Problem]:
    found: list[Problem] = []
    for ratio in RATIOS:
        for trial in range(trials):
            problem = set_problem(folder, name, ratio, trial)
            if isinstance(problem, str):
                continue
            fits = ManyFits(pool())
            fits.reserve(problem.d)
            scores, labels = learn(fits, problem.train), problem.train.labels
            assert labels is not None
            first = max(0, len(labels) - WINDOW, warm_up(len(labels)))
            at = some_rows(problem.labels[: problem.validation])
            rest = np.nan_to_num(np.asarray(fits.score(problem.rest[: problem.validation]), np.float32))
            last = look(labels[first:], scores[first:])
            found.append(Problem(f"{name} {ratio}", name, 1.0, None, last, problem.labels[at], rest[at]))
    return [one._replace(weight=1 / sum(one.name == other.name for other in found)) for one in found]


def of_stream(job: tuple[str, int, int]) -> list[Problem]:
    family, rows, seed = job
    fits = ManyFits(pool())
    parts: dict[str, list[tuple[Numbers, Numbers]]] = {"cut": [], "last": [], "validation": []}
    end, at = min(rows, LAST), 0
    spans = {"cut": (warm_up(CUT), CUT), "last": (end - WINDOW, end), "validation": (rows, rows + VALIDATION)}
    for block in stream_blocks(family, rows, seed):
        assert block.labels is not None
        fits.reserve(block.width)
        scores, numbers = learn(fits, block), np.arange(at, at + len(block))
        for part, (first, stop) in spans.items():
            inside = (first <= numbers) & (numbers < stop)
            if inside.any():
                parts[part].append((block.labels[inside], scores[inside]))
        at += len(block)
    joined = {part: tuple(map(np.concatenate, zip(*pairs, strict=True))) for part, pairs in parts.items()}
    labels, scores = joined["validation"]
    rows_counted = some_rows(labels)
    weight = DRIFT if family == "drift" else 1.0
    looks = look(*joined["cut"]), look(*joined["last"])
    return [Problem(f"{family} {rows} {seed}", "", weight, *looks, labels[rows_counted], scores[rows_counted])]


def stream_blocks(family: str, rows: int, seed: int) -> Iterator[Block]:
    if family == "avazu":
        yield from streams.cut(shapes.rows(streams.AVAZU, rows + VALIDATION, shapes.SEED + seed))
    else:
        yield from (part.block for part in streams.planted(family, rows, seed).rows(rows + VALIDATION))


# -- lists


class Problems:
    """All problems, or those of some sets, and what a list gains on them."""

    def __init__(self, problems: Sequence[Problem], base: Chosen) -> None:
        self._sets, self._streams = ([one for one in problems if bool(one.kind) is kind] for kind in (True, False))
        self._base = [[one.auc(base) for one in some] for some in (self._sets, self._streams)]

    def gains(self, chosen: Chosen) -> tuple[float, float]:
        """The mean gain over sets and over streams, against the list that the swaps began with."""
        found = []
        for some, base in zip((self._sets, self._streams), self._base, strict=True):
            gaps = [one.auc(chosen) - before for one, before in zip(some, base, strict=True)]
            found.append(float(np.average(gaps, weights=[one.weight for one in some])) if some else 0.0)
        return found[0], found[1]

    def gain(self, chosen: Chosen) -> float:
        sets, streams_ = self.gains(chosen)
        return SETS * sets + (1 - SETS) * streams_


_here: Problems  # in each process of the pool


def _gain(chosen: Chosen) -> float:
    return _here.gain(chosen)


def swap(problems: Problems, chosen: Chosen, proposed: Chosen, jobs: int) -> tuple[list[int], int, int]:
    """The list after the best swap, the setting that came and the one that went."""
    global _here
    _here = problems
    with ProcessPoolExecutor(jobs) as runner:  # forked, so it has the problems
        new = [one for one in proposed if one not in chosen]
        gains = list(runner.map(_gain, [[*chosen, one] for one in new], chunksize=8))
        more = [*chosen, new[int(np.argmax(gains))]]
        gains = list(runner.map(_gain, [[one for one in more if one != gone] for gone in more[1:]]))
        gone = more[1 + int(np.argmax(gains))]
    return [one for one in more if one != gone], more[-1], gone


# -- tables


def of_table(trials: int, name: str) -> tuple[str, int, list[float]]:
    """The mean test AUC of `auto` with the list that the swaps began with, and with its own."""
    rows, cut = frame(name), int(len(frame(name)) * LEARNED)
    found: list[list[float]] = []
    for trial in range(1 if TABLES[name].in_order else trials):
        if not TABLES[name].in_order:
            rows = rows.iloc[np.random.default_rng(trial).permutation(len(rows))].reset_index(drop=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        path = CACHE / f"{name}-{trial}.csv"
        rows.to_csv(path, index=False, lineterminator="\n")
        whole = concatenate(list(read(path, label=LABEL, positive="yes")))
        path.unlink()
        block = Block.of((whole.indptr, whole.indices, whole.values), whole.labels)
        found.append([test_auc(some, block[:cut], block[cut:]) for some in (former(), Auto.candidates())])
    return name, len(rows), list(np.mean(found, axis=0))


def test_auc(settings: Sequence[Learner], train: Block, test: Block) -> float:
    learner = Auto()
    plan = learner.race_plan()._replace(candidates=settings)
    model = Model.from_engine(Race(learner, plan, "unit", train.width, "float32"), train.width)
    model.learn(train)
    model.finish_race()
    assert test.labels is not None
    return auc(test.labels, model.score(test))


def print_tables(trials: int, jobs: int) -> None:
    print("\ntest AUC of auto on tables, with the list that the swaps began with and with its own")
    gains = []
    with ProcessPoolExecutor(jobs) as runner:
        for name, count, (then, now) in runner.map(partial(of_table, trials), TABLES):
            print(f"{name:15s}{count:9,d}{then:9.4f}{now:9.4f}{now - then:+9.4f}", flush=True)
            gains.append(now - then)
    print(f"{'mean':42s}{np.mean(gains):+9.4f}, standard error {np.std(gains, ddof=1) / len(gains) ** 0.5:.4f}")


def described(learner: Learner) -> str:
    plain = type(learner)().settings
    words = [f"{word}={value:g}" for word, value in learner.settings.items() if word != "loss" and value != plain[word]]
    return " ".join([learner.name, *words])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--swaps", type=int, default=4)
    parser.add_argument("--seeds", type=lambda text: [int(one) for one in text.split(",")], default=[11, 12])
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = sorted(path.name.split(".")[0] for path in options.data_dir.glob("*.svm.bz2") if EXAMPLE not in path.name)
    settings = pool()
    numbers = {one: number for number, one in enumerate(settings)}
    then, now = ([numbers[one] for one in some] for some in (former(), Auto.candidates()))
    with ProcessPoolExecutor(options.jobs) as runner:
        jobs = [(*family, seed) for family in FAMILIES for seed in options.seeds]
        make: Callable[[str], list[Problem]] = partial(of_set, options.data_dir, options.trials)
        parts = [*runner.map(make, names), *runner.map(of_stream, jobs)]
    problems = [one for part in parts for one in part]
    print(f"{len(settings)} settings, {len({one.name for one in problems})} problems of validation rows\n")
    everything = Problems(problems, then)
    print("against the list that the swaps began with:   sets    streams")
    for text, chosen in (("the list of auto", now), ("all settings at once", list(range(len(settings))))):
        print(
            f"{text:40s}" + "".join(f"{gain:+10.5f}" for gain in everything.gains([now[0], *(set(chosen) - {now[0]})]))
        )
    default = numbers[Auto.candidates()[0]]
    rank = [auc(one.labels, one.scores[:, default].astype(np.float64)) for one in problems]
    proposed = [
        number
        for number in range(len(settings))
        if all(
            auc(one.labels, one.scores[:, number].astype(np.float64)) > least - TOO_BAD
            for one, least in zip(problems, rank, strict=True)
        )
    ]
    halves = [set(names[::2]), set(names[1::2])]
    on_halves = [Problems([one for one in problems if one.kind in half], then) for half in halves]
    with_streams = [
        Problems([one for one in problems if not one.kind or one.kind in half], then) for half in [*halves, set(names)]
    ]
    for text, chooser, start in (
        ("\nswaps from that list, chosen on one half of the sets", with_streams[0], then),
        ("\nswaps from that list, chosen on the other half", with_streams[1], then),
        ("\nswaps from the list of auto, chosen on all", with_streams[2], now),
    ):
        print(f"{text}: gains on the one half, on the other, on streams")
        chosen: Chosen = start
        for _ in range(options.swaps):
            chosen, new, gone = swap(chooser, chosen, proposed, options.jobs)
            if new == gone:
                break
            gains = [on_halves[0].gains(chosen)[0], on_halves[1].gains(chosen)[0], everything.gains(chosen)[1]]
            line = "".join(f"{gain:+10.5f}" for gain in gains)
            print(f"{line}  {described(settings[new])} for {described(settings[gone])}", flush=True)
    if options.tables:
        print_tables(options.trials, options.jobs)


if __name__ == "__main__":
    main()
