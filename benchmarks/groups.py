"""The AUC that learning in groups loses against learning in sequence, on one machine: what a cluster would give.

    python benchmarks/groups.py [--data-dir DIR] [--sets imdb,news20b] [--streams demo-2M] [--trials 2] [--seed 0]
        [--groups 4,16,64] [--rounds auto,16] [--learners dual-logistic,evidence,power,auto] [--json FILE]

Every file DIR/<set>.svm.bz2 is split by the protocol of the FTRL-AUC paper (seed 17, one permutation a trial: the first
4/6 are learned, the last 1/6 tested). Streams are those of streams.py, one trial each. The same rows are learned in
sequence, and by `rarestream.groups.fit_groups`, bit for bit as rarestream.spark learns them. Printed are the test AUC
in sequence, and for each number of groups and rounds the difference to it, both means over the trials.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

import streams
from rarestream import Block, Model, auc, read
from rarestream.blocks import concatenate
from rarestream.errors import DataError
from rarestream.groups import auto_rounds, fit_groups
from rarestream.learners import DualAveraging, Learner, make_learner
from rarestream.reproduce.protocol import splits

SETTINGS: dict[str, Learner] = {
    "power": DualAveraging(loss="logistic", power=0.5, proximal=0.5),
    "evidence": DualAveraging(loss="logistic", evidence=0.5, proximal=0.5),
}
TOGETHER = 8192  # rows of a block that is learned in sequence


def problems(args: argparse.Namespace) -> Iterator[tuple[str, list[Block], Block]]:
    """The name, the rows to learn and the rows to test of each trial."""
    for name in args.sets:
        rows = concatenate(read(args.data_dir / f"{name}.svm.bz2"))
        for split in splits(len(rows))[: args.trials]:
            train = rows.take(split.train)
            blocks = [train[at : at + TOGETHER] for at in range(0, len(train), TOGETHER)]
            yield name, blocks, rows.take(split.test)
    for name in args.streams:
        stream = streams.make(name, seed=args.seed)
        rows = concatenate(stream.blocks)
        test = rows[len(rows) - stream.test :]
        train = rows[: stream.learned]
        yield name, [train[at : at + TOGETHER] for at in range(0, len(train), TOGETHER)], test


def sequential(learner: Learner, blocks: list[Block]) -> Model:
    model = Model(learner)
    for block in blocks:
        model.learn(block)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = lambda text: [part for part in text.split(",") if part]  # noqa: E731
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--sets", type=listed, default=[])
    parser.add_argument("--streams", type=listed, default=[])
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--groups", type=listed, default=["4", "16", "64"])
    parser.add_argument("--rounds", type=listed, default=["auto"])
    parser.add_argument("--learners", type=listed, default=["dual-logistic", "evidence", "power", "auto"])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.sets and args.data_dir is None:
        parser.error("--sets needs --data-dir, the folder of the files")

    columns = [(int(groups), rounds) for groups in args.groups for rounds in args.rounds]
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name, blocks, test in problems(args):
        for word in args.learners:
            learner = SETTINGS.get(word) or make_learner(word)
            started = perf_counter()
            alone = auc(test.labels, sequential(learner, blocks).score(test))
            seconds = perf_counter() - started
            cells = found[name, word]
            cells["sequence"].append(alone)
            for groups, text in columns:
                rounds = auto_rounds(groups) if text == "auto" else int(text)
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    try:
                        model = fit_groups(blocks, learner, groups=groups, rounds=rounds)
                        cells[f"{groups} x {rounds}"].append(auc(test.labels, model.score(test)) - alone)
                    except DataError:  # too few rows for so many groups
                        cells[f"{groups} x {rounds}"].append(float("nan"))
                for warning in said:
                    print(f"  {name}, {word}, {groups} groups: {warning.message}", flush=True)
            shown = "  ".join(f"{key} {values[-1]:+.4f}" for key, values in list(cells.items())[1:])
            print(f"{name:12} {word:14} sequence {alone:.4f} ({seconds:.1f} s)  {shown}", flush=True)

    print("\nmeans over the trials: AUC in sequence, then what groups x rounds add to it")
    for (name, word), cells in found.items():
        shown = "  ".join(f"{key}: {np.mean(values):+.4f}" for key, values in list(cells.items())[1:])
        print(f"{name:12} {word:14} {np.mean(cells['sequence']):.4f}  {shown}")
    if args.json is not None:
        rows = [{"set": name, "learner": word, **cells} for (name, word), cells in found.items()]
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
