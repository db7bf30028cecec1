"""Test AUC of untuned models cut to the size of the published ones, by the protocol of the FTRL-AUC paper.

    python benchmarks/pruned.py --data-dir DIR [--trials 4] [--sets farm-ads,imdb,news20b,reviews] [--l1 0.1,1]

The learners learn the training rows of each trial (rarestream.reproduce.protocol) in one pass, as they come, nothing
tuned and no l1; then the largest weights stay, as many as the published FTRL-AUC models had on average (Table II: its
sparse ratio times d). Published: FTRL-AUC, tuned on the validation rows, which are not used here. Means of the trials,
with the standard error; all weights for comparison.

--l1 VALUES trains with each of these l1, too, and cuts the model without l1 to as many weights as that left.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rarestream import Block, Model, auc, make_learner
from rarestream.reproduce import protocol

PUBLISHED = {  # sparse ratio, AUC of FTRL-AUC
    "farm-ads": (0.013, 0.9429),
    "imdb": (0.032, 0.9461),
    "news20b": (0.0016, 0.9743),
    "reviews": (0.0006, 0.9132),
}
LEARNERS = ["dual-auc", "dual-logistic"]


Found = dict[str, list[tuple[float, float, float]]]  # by learner, for each trial


def trials(rows: Block, size: int, count: int) -> Found:
    """The weights kept, the test AUC of the pruned model and of the full one."""
    found: Found = {name: [] for name in LEARNERS}
    for train, test in parted(rows, count):
        for name in LEARNERS:
            model = Model(name)
            model.learn(train)
            found[name].append((size, tested(model.prune(nonzeros=size), test), tested(model, test)))
    return found


def against_l1(rows: Block, l1: float, count: int) -> Found:
    """The weights that l1 left, the test AUC of a model pruned to as many and of the one that l1 made."""
    found: Found = {name: [] for name in LEARNERS}
    for train, test in parted(rows, count):
        for name in LEARNERS:
            sparse, model = Model(make_learner(name, l1=l1)), Model(name)
            sparse.learn(train)
            model.learn(train)
            small = model.prune(nonzeros=sparse.nonzeros)
            found[name].append((sparse.nonzeros, tested(small, test), tested(sparse, test)))
    return found


def parted(rows: Block, count: int) -> Iterator[tuple[Block, Block]]:
    for split in protocol.splits(len(rows))[:count]:
        yield rows.take(split.train), rows.take(split.test)


def tested(model: Model, test: Block) -> float:
    return auc(test.labels, model.score(test))


def cell(aucs: np.ndarray) -> str:
    error = aucs.std(ddof=1) / np.sqrt(len(aucs)) if len(aucs) > 1 else float("nan")
    return f"{aucs.mean():.4f} ± {error:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--sets", default=",".join(PUBLISHED))
    parser.add_argument("--l1", default="", help="values of l1 to compare with, such as 0.1,1")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    columns = [f"{name}{what}" for name in LEARNERS for what in (" weights", " pruned", " as made")]
    print(f"{'data set':20}" + "".join(f"{column:>23}" for column in columns) + f"{'published':>11}")
    results: dict[str, Found] = {}
    for name in given.sets.split(","):
        ratio, published = PUBLISHED[name]
        rows = protocol.load(given.data_dir, name)
        block, size = Block.of(rows.X, rows.labels), int(ratio * rows.n_features)
        show(results, name, trials(block, size, given.trials), f"{published:11.4f}")
        for l1 in filter(None, given.l1.split(",")):
            show(results, f"{name}, l1={l1}", against_l1(block, float(l1), given.trials))
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


def show(results: dict[str, Found], name: str, found: Found, end: str = "") -> None:
    results[name] = found
    cells = []
    for one in found.values():
        weights, pruned, made = np.array(one).T
        cells += [f"{weights.mean():,.0f}", cell(pruned), cell(made)]
    print(f"{name:20}" + "".join(f"{one:>23}" for one in cells) + end, flush=True)


if __name__ == "__main__":
    main()
