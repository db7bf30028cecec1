"""Test AUC of what a race chooses in its one pass, against the best of its settings chosen with hindsight.

    python benchmarks/raced.py --data-dir DIR [--trials 4] [--sets imdb,reviews] [--ratios 0.1,0.05]

Every file DIR/<set>.svm.bz2, as it is and with positives cut down to a share of the negatives, by the protocol of the
FTRL-AUC paper: seed 17, one permutation a trial; the first 4/6 are learned, the last 1/6 tested, nothing else is used.

    dual-auc    the default settings, no choice at all
    auto        Model("auto"): races on the first 16,384 rows
    race        rarestream.race over all rows
    hindsight   the one of the race's settings that has the best mean test AUC over the trials of a problem

`loses` is what the race loses to hindsight; `of each` is what it loses to the best setting of every trial by itself,
which nobody could know and which is mostly luck where test positives are few.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rarestream import Block, Model, auc, read
from rarestream.blocks import concatenate
from rarestream.engines.lanes import LaneKernel, Lanes
from rarestream.learners.auto import Auto
from rarestream.race import Racing
from rarestream.reproduce.protocol import imbalanced, splits

UNIT = 1  # rows of norm 1
COLUMNS = ("dual-auc", "auto", "race")


class Trial(NamedTuple):
    chosen: dict[str, float]  # test AUC by column
    settings: list[float]  # test AUC of each of the race's settings


def problems(rows: Block, ratio: float | None, trials: int) -> Iterator[tuple[Block, Block]]:
    """Training and test rows of some trials."""
    assert rows.labels is not None
    kept = np.arange(len(rows))
    drawn = splits(len(rows))
    if ratio is not None:
        kept, drawn = imbalanced(rows.labels, ratio)
    for split in drawn[:trials]:
        yield rows.take(kept[split.train]), rows.take(kept[split.test])


def run(train: Block, test: Block) -> Trial:
    assert test.labels is not None
    chosen = {}
    for name in COLUMNS[:2]:
        model = Model(name)
        model.learn(train)
        model.finish_race()  # no more rows come
        chosen[name] = auc(test.labels, model.score(test))
    racing = Racing("auto")
    racing.learn(train)
    chosen["race"] = auc(test.labels, racing.finish().model.score(test))
    kernel = LaneKernel(Lanes(Auto.candidates()))
    state = kernel.lanes.start(max(train.width, test.width), largest=False)
    kernel.learn(state, train, UNIT)
    scores = kernel.score(state, test, UNIT)
    return Trial(chosen, [auc(test.labels, column) for column in scores.T])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--sets", help="default: all files of the folder")
    parser.add_argument("--ratios", default="none,0.1,0.05", help="positives to negatives; none: as they are")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = {path.name.removesuffix(".svm.bz2"): path for path in sorted(given.data_dir.glob("*.svm.bz2"))}
    names = given.sets.split(",") if given.sets else list(found)
    missing = [name for name in names if name not in found]
    if missing:
        raise SystemExit(f"raced: {given.data_dir} has no {', '.join(missing)}; it has {', '.join(found)}.")
    ratios = [None if text == "none" else float(text) for text in given.ratios.split(",")]
    heading = f"{'data set':20}{'ratio':>6}{'positives':>11}" + "".join(f"{name:>10}" for name in COLUMNS)
    print(heading + f"{'hindsight':>11}{'loses':>9}{'of each':>9}")
    results = []
    for name in names:
        rows = concatenate(read(found[name]))
        assert rows.labels is not None
        positives, negatives = int((rows.labels > 0).sum()), int((rows.labels < 0).sum())
        for ratio in ratios:
            if ratio is not None and positives <= int(ratio * negatives):
                continue  # it has no more of them
            pairs = list(problems(rows, ratio, given.trials))
            if any(len(np.unique(test.labels)) < 2 for _, test in pairs):
                print(f"{name:20}{ratio or '':>6}  a test part has one class only: left out")
                continue
            trials = [run(train, test) for train, test in pairs]
            learned = int(np.mean([(train.labels > 0).sum() for train, _ in pairs]))  # type: ignore[operator]
            means = {column: float(np.mean([one.chosen[column] for one in trials])) for column in COLUMNS}
            table = np.array([one.settings for one in trials])
            best, each = float(table.mean(0).max()), float(table.max(1).mean())
            results.append({"set": name, "ratio": ratio, **means, "hindsight": best, "each": each})
            cells = "".join(f"{means[column]:10.4f}" for column in COLUMNS)
            losses = f"{best - means['race']:9.4f}{each - means['race']:9.4f}"
            print(f"{name:20}{ratio or '':>6}{learned:>11,}{cells}{best:11.4f}{losses}", flush=True)
    for label, part in (
        ("as they are", [one for one in results if one["ratio"] is None]),
        ("imbalanced", [one for one in results if one["ratio"] is not None]),
    ):
        if part:
            mean = {column: np.mean([one[column] for one in part]) for column in (*COLUMNS, "hindsight", "each")}
            gaps = np.array([one["hindsight"] - one["race"] for one in part])
            cells = "".join(f"{mean[column]:10.4f}" for column in COLUMNS)
            error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else float("nan")
            losses = f"{gaps.mean():9.4f}{mean['each'] - mean['race']:9.4f}"
            print(f"mean of {len(part):2} {label:26}{cells}{mean['hindsight']:11.4f}{losses}   +- {error:.4f}")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
