"""How often DriftDetector raises a false alarm, and how soon it finds that the AUC has fallen, in simulations.

    python benchmarks/drift_alarms.py [--only alarms|learning|delay|peers] [--scale 1] [--json FILE]

alarms    Rows of the rarer class per alarm, on streams whose AUC stays, against what was stated. Scores are N(0, 1) of
          negatives, and moved to give the AUC for positives; or skewed (exponential), rounded to whole numbers, or
          wandering: an AR(1) process that forgets in 20 rows is added to all scores. Bursts: the share of positives
          goes up and down between a tenth and twice the mean.
learning  The same of models that learn: the scores of `rarestream demo`'s stream before each row was learned.
delay     Positives between a sudden fall of the AUC and the alarm: median and 90th percentile.
peers     Both, for other detectors that are given the same placements: River's ADWIN and PageHinkley, and a CUSUM of
          standardised placements, each set to about the same rate of false alarms at AUC 0.8. Needs river.

All seeds are fixed. It takes about a minute; --scale 0.1 makes the streams shorter.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream import Model
from rarestream.evaluate.synthetic import Planted
from rarestream.metrics import DriftDetector

Rows = tuple[NDArray[np.int8], NDArray[np.float64]]
STATED = 10_000
BLOCK = 1_000_000
LEARNERS = ("dual-auc", "dual-logistic", "ftrl-proximal", "auto")
DROPS = (0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Stream:
    """Rows whose scores have a given AUC."""

    auc: float = 0.8
    negatives: float = 20.0  # per positive
    kind: str = "normal"

    def __str__(self) -> str:
        kind = "" if self.kind == "normal" else f", {self.kind}"
        return f"AUC {self.auc:g}, 1:{self.negatives:g}{kind}"

    def rows(self, rng: np.random.Generator, n: int) -> Rows:
        share: Any = 1 / (1 + self.negatives)
        if self.kind == "bursts":
            share = share * np.where(np.sin(np.arange(n) / (50 * self.negatives)) > 0, 1.9, 0.1)
        positive = rng.random(n) < share
        if self.kind == "skewed":  # P(E' + shift > E) = 1 - exp(-shift) / 2
            scores = rng.standard_exponential(n) + positive * -math.log(2 * (1 - self.auc))
        else:
            scores = rng.standard_normal(n) + positive * (math.sqrt(2) * NormalDist().inv_cdf(self.auc))
        if self.kind == "rounded":
            scores = np.round(scores)
        if self.kind == "wandering":
            from scipy.signal import lfilter

            scores += 0.3 * lfilter([1.0], [1.0, -0.95], rng.standard_normal(n))
        return np.where(positive, 1, -1).astype(np.int8), scores

    def blocks(self, positives: float, seed: int) -> Iterator[Rows]:
        rng, left = np.random.default_rng(seed), int(positives * (1 + self.negatives))
        while left > 0:
            yield self.rows(rng, min(left, BLOCK))
            left -= BLOCK


def measured_alarms(stream: Stream, stated: float, multiple: float, seed: int = 0) -> tuple[int, float]:
    """The number of alarms in `multiple` times the stated positives, and how many of the rarer class there were."""
    detector = DriftDetector(stated)
    for labels, scores in stream.blocks(stated * multiple, seed):
        detector.count(labels, scores)
    return detector.alarm_count, min(detector.positives, detector.rows - detector.positives)


def alarms(scale: float) -> list[dict[str, Any]]:
    print(f"\n| stream | rarer class | stated: one alarm in | alarms | found: one in | found / stated |\n|{'---|' * 6}")
    streams = [(Stream(auc, negatives), STATED, 100.0) for negatives in (2, 20) for auc in (0.6, 0.8, 0.95, 0.99)]
    streams += [(Stream(auc, 1000), 1_000, 40.0) for auc in (0.6, 0.8, 0.95, 0.99)]
    streams += [(Stream(0.8, 2), 100_000, 60.0), (Stream(0.99, 2), 100_000, 60.0), (Stream(0.8, 0.1), STATED, 1000.0)]
    streams += [(Stream(0.8, 2, kind), STATED, 200.0) for kind in ("skewed", "rounded", "bursts", "wandering")]
    found = []
    for stream, stated, multiple in streams:
        count, positives = measured_alarms(stream, stated, multiple * scale)
        found.append({"stream": str(stream), "stated": stated, "alarms": count, "positives": positives})
        _print_rate(found[-1])
    return found


def _print_rate(one: dict[str, Any]) -> None:
    mean = one["positives"] / max(one["alarms"], 1)
    more = "" if one["alarms"] else "> "
    print(
        f"| {one['stream']} | {one['positives']:,} | {one['stated']:,} | {one['alarms']} | {more}{mean:,.0f} | "
        f"{more}{mean / one['stated']:.1f} |",
        flush=True,
    )


def learned(name: str, seed: int, rows: int, positives: float, drift: int = 0) -> Iterator[Rows]:
    """The progressive scores of a model."""
    model = Model(name)
    for part in Planted.plant(seed, positives=positives, drift=drift).rows(rows):
        scores = model.learn(part.block)
        assert part.block.labels is not None
        yield part.block.labels, scores


def learning(scale: float) -> list[dict[str, Any]]:
    found = []
    rows, stated = int(400_000 * scale), 1_000
    print("\n| model that learns | positives | stated: one alarm in | alarms | found: one in | found / stated |")
    print("|" + "---|" * 6)
    for name in LEARNERS:
        for share in (0.02, 0.2):
            count = positives = 0
            for seed in range(2):
                detector = DriftDetector(stated)
                for labels, scores in learned(name, seed, rows, share):
                    detector.count(labels, scores)
                count, positives = count + detector.alarm_count, positives + detector.positives
            stream = f"{name}, {share:.0%} positives"
            found.append({"stream": stream, "stated": stated, "alarms": count, "positives": positives})
            _print_rate(found[-1])
    return found


def delays(before: Stream, drop: float, reference: float, stated: float, streams: int) -> list[float]:
    """Positives from the fall of the AUC to the first alarm after it, in each of some streams."""
    found = []
    for seed in range(streams):
        rng, detector = np.random.default_rng([seed, 1]), DriftDetector(stated)
        per_positive = 1 + before.negatives
        detector.count(*before.rows(rng, int(reference * per_positive)))
        start, alarms_before = detector.positives, detector.alarm_count
        after = replace(before, auc=before.auc - drop)
        while detector.alarm_count == alarms_before and detector.positives - start < 50_000:
            labels, scores = after.rows(rng, int(2_000 * per_positive))
            known, positives = detector.alarm_count, detector.positives
            detector.count(labels, scores)
            if detector.alarm_count > known:
                row = detector.alarms[known - detector.alarm_count].row - (detector.rows - len(labels))
                found.append(positives - start + float(np.count_nonzero(labels[:row] > 0)))
                break
        else:
            found.append(math.inf)
    return found


def delay(scale: float) -> list[dict[str, Any]]:
    streams, found = max(5, int(40 * scale)), []
    print("\nPositives until the alarm, median (90th percentile); stated: one false alarm in 100,000 positives")
    print("\n| AUC before | positives before | " + " | ".join(f"falls by {drop:g}" for drop in DROPS) + " |")
    print("|" + "---|" * (2 + len(DROPS)))
    for auc in (0.7, 0.8, 0.95, 0.99):
        for reference in (1_000, 10_000):
            cells = []
            for drop in DROPS:
                found_here = delays(Stream(auc), drop, reference, 100_000, streams)
                middle, late = np.quantile(found_here, [0.5, 0.9], method="higher")
                found.append({"auc": auc, "reference": reference, "drop": drop, "median": middle, "late": late})
                cells.append(f"{_many(middle)} ({_many(late)})")
            print(f"| {auc:g} | {reference:,} | " + " | ".join(cells) + " |", flush=True)
    return found


def _many(number: float) -> str:
    return f"{number:,.0f}" if number < math.inf else "never"


# -- other detectors, on the same placements


def placements(labels: NDArray[np.int8], scores: NDArray[np.float64]) -> list[float]:
    """The placement of each group of rows, as rarestream.metrics.drift defines them."""
    found, start = [], 0
    for end in (np.flatnonzero(np.diff(labels)) + 1).tolist():
        if end <= start:  # this row has ended the group before
            continue
        run = scores[start:end]
        share = (np.count_nonzero(run < scores[end]) + 0.5 * np.count_nonzero(run == scores[end])) / len(run)
        found.append(share if labels[start] < 0 else 1 - share)
        start = end + 1
    return found


def adwin(delta: float) -> Callable[[], Callable[[float], bool]]:
    from river.drift import ADWIN

    def make() -> Callable[[float], bool]:
        detector = ADWIN(delta=delta)

        def update(x: float) -> bool:
            before = detector.estimation
            detector.update(x)
            return bool(detector.drift_detected and detector.estimation < before)  # falls only

        return update

    return make


def page_hinkley(threshold: float) -> Callable[[], Callable[[float], bool]]:
    from river.drift import PageHinkley

    def make() -> Callable[[float], bool]:
        detector = PageHinkley(threshold=threshold, delta=0.005, alpha=1.0, mode="down")

        def update(x: float) -> bool:
            detector.update(x)
            return bool(detector.drift_detected)

        return update

    return make


def cusum(limit: float) -> Callable[[], Callable[[float], bool]]:
    """A CUSUM of placements, standardised with mean and variance of all since the latest alarm; after 500 of them."""

    def make() -> Callable[[float], bool]:
        n = mean = squares = total = 0.0

        def update(x: float) -> bool:
            nonlocal n, mean, squares, total
            if n >= 500:
                deviation = math.sqrt(max(squares / n - mean * mean, 1e-6))
                total = max(0.0, total + (mean - x) / deviation - 0.1)
            n += 1
            mean += (x - mean) / n
            squares += x * x
            if total < limit:
                return False
            n = mean = squares = total = 0.0
            return True

        return update

    return make


def peers(scale: float) -> list[dict[str, Any]]:
    methods = {
        f"DriftDetector({STATED})": None,
        "CUSUM of standardised placements, limit 31": cusum(31.0),
        "ADWIN, delta 0.5": adwin(0.5),
        "PageHinkley, threshold 20": page_hinkley(20.0),
    }
    aucs, falls = (0.6, 0.8, 0.99), ((0.8, 0.05), (0.8, 0.1), (0.99, 0.02))
    stay = {auc: Stream(auc).rows(np.random.default_rng(7), int(21 * 500_000 * scale)) for auc in aucs}
    placed = {auc: placements(*rows) for auc, rows in stay.items()}
    fallen = {
        (auc, drop): [
            [placements(*Stream(auc - d).rows(np.random.default_rng([seed, 2]), 105_000)) for d in (0, drop)]
            for seed in range(20)
        ]
        for auc, drop in falls
    }
    heads = [*(f"false alarms at AUC {auc:g}: one in" for auc in aucs), *(f"{a:g} falls by {d:g}" for a, d in falls)]
    print("\n| detector | " + " | ".join(heads) + " |\n" + "|---" * (1 + len(heads)) + "|")
    found = []
    for name, make in methods.items():
        rates, late = [], []
        for auc in aucs:
            if make is None:
                detector = DriftDetector(STATED)
                detector.count(*stay[auc])
                count = detector.alarm_count
            else:
                count = sum(map(make(), placed[auc]))
            rates.append(len(placed[auc]) / max(count, 1))
        for auc, drop in falls:
            if make is None:
                late.append(float(np.median(delays(Stream(auc), drop, 5_000, STATED, 20))))
                continue
            waits = []
            for before, after in fallen[auc, drop]:
                update = make()
                for x in before:
                    update(x)
                waits.append(next((i for i, x in enumerate(after, 1) if update(x)), math.inf))
            late.append(float(np.median(waits)))
        found.append({"detector": name, "rates": rates, "delays": late})
        print(f"| {name} | " + " | ".join(_many(number) for number in (*rates, *late)) + " |", flush=True)
    return found


PARTS: dict[str, Callable[[float], list[dict[str, Any]]]] = {
    "alarms": alarms,
    "learning": learning,
    "delay": delay,
    "peers": peers,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="length of the streams, as a share")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results = {name: part(given.scale) for name, part in PARTS.items() if given.only in (None, name)}
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
