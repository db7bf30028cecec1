"""Test AUC of small models, cut afterwards or held to their size while they learn; protocol of the FTRL-AUC paper.

    python benchmarks/pruned.py --data-dir DIR [--trials 10] [--sets farm-ads,imdb] [--ratios 0.0006,0.013] [--l1 0.1,1]

The learners learn the training rows of each trial (rarestream.reproduce.protocol) in one pass, as they come, nothing
tuned. Pruned: no l1, then the largest weights stay, as many as the published FTRL-AUC models had on average (Table II:
its sparse ratio times d). Refitted: the training rows are learned once more with these features only. Budget: no more
than these at any time while learning. Published: FTRL-AUC, tuned on the validation rows, which are not used here. Means
of the trials, with the standard error; as made: with all weights.

dual-logistic * has power=1 and proximal=1/2. auto races settings, with a budget those of its size.

--ratios takes these shares of d in place of the published ones. --l1 trains with each of these l1, too: as made is that
model then, and the others have as many weights as it.
"""

from __future__ import annotations

import argparse
import json
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
LEARNERS: dict[str, tuple[str, dict[str, float]]] = {
    "dual-auc": ("dual-auc", {}),
    "dual-logistic": ("dual-logistic", {}),
    "dual-logistic *": ("dual-logistic", {"power": 1.0, "proximal": 0.5}),
    "auto": ("auto", {}),  # what train takes, with --budget and without
}
COLUMNS = ("weights", "pruned", "refitted", "budget", "as made")

Found = dict[str, list[tuple[float, ...]]]  # by learner, for each trial: the columns


def trials(rows: Block, size: int, count: int, l1: float = 0.0) -> Found:
    found: Found = {name: [] for name in LEARNERS}
    for split in protocol.splits(len(rows))[:count]:
        train, test = rows.take(split.train), rows.take(split.test)
        for name in LEARNERS:
            if l1 and name == "auto":
                continue  # it has no l1
            made = learned(train, name, **({"l1": l1} if l1 else {}))
            few = max(1, made.nonzeros) if l1 else size
            whole = learned(train, name) if l1 else made
            pruned, refitted = whole.prune(nonzeros=few), whole.prune(nonzeros=few, refit=train)
            models = (pruned, refitted, learned(train, name, budget=few), made)
            found[name].append((few, *(auc(test.labels, model.score(test)) for model in models)))
    return found


def learned(train: Block, name: str, **settings: float) -> Model:
    base, own = LEARNERS[name]
    model = Model(make_learner(base, **own, **settings))
    model.learn(train)
    model.finish_race()  # no more rows come
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--sets", default=",".join(PUBLISHED))
    parser.add_argument("--ratios", default="", help="shares of d to keep, such as 0.0006,0.013; else the published")
    parser.add_argument("--l1", default="", help="values of l1 to compare with, such as 0.1,1")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    columns = [f"{name} {what}" for name in LEARNERS for what in COLUMNS]
    print(f"{'data set':20}" + "".join(f"{column:>23}" for column in columns) + f"{'published':>11}")
    results: dict[str, Found] = {}
    for name in given.sets.split(","):
        rows = protocol.load(given.data_dir, name)
        block, d = Block.of(rows.X, rows.labels), rows.n_features
        for ratio in map(float, filter(None, given.ratios.split(","))):
            show(results, f"{name}, {ratio:g} d", trials(block, int(ratio * d), given.trials))
        if not given.ratios:
            ratio, published = PUBLISHED[name]
            show(results, name, trials(block, int(ratio * d), given.trials), f"{published:11.4f}")
        for l1 in filter(None, given.l1.split(",")):
            show(results, f"{name}, l1={l1}", trials(block, 0, given.trials, float(l1)))
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


def show(results: dict[str, Found], name: str, found: Found, end: str = "") -> None:
    results[name] = found
    cells = []
    for one in filter(None, found.values()):
        weights, *aucs = np.array(one).T
        cells += [f"{weights.mean():,.0f}", *map(cell, aucs)]
    print(f"{name:20}" + "".join(f"{one:>23}" for one in cells) + end, flush=True)


def cell(aucs: np.ndarray) -> str:
    error = aucs.std(ddof=1) / np.sqrt(len(aucs)) if len(aucs) > 1 else float("nan")
    return f"{aucs.mean():.4f} ± {error:.4f}"


if __name__ == "__main__":
    main()
