"""Test AUC of the learners as they come, nothing tuned, by the protocol of the FTRL-AUC paper.

    python benchmarks/untuned.py --data-dir DIR [--trials 4] [--sets farm-ads,reviews,imdb,news20b]

The files DIR/<set>.svm.bz2 are permuted by the paper's own generator (NumPy's legacy one, seed 17, one permutation a
trial); the first 4/6 are learned in one pass, the last 1/6 tested, the 1/6 between them (the paper's validation part)
is not used: nothing is selected. Published: the paper's Table II, FTRL-AUC and the best online method, tuned there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from rarestream import Block, Model, auc, make_learner, read

PUBLISHED = {  # FTRL-AUC, best of the table
    "farm-ads": (0.9429, 0.9540),
    "reviews": (0.9132, 0.9334),
    "imdb": (0.9461, 0.9498),
    "news20b": (0.9743, 0.9924),
}
LEARNERS = ["auto", "dual-auc", "dual-logistic", "ftrl-auc", "ftrl-proximal"]


def load(path: Path) -> Block:
    from rarestream.blocks import concatenate

    return concatenate(read(path))


def trials(rows: Block, count: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in LEARNERS}
    generator = np.random.RandomState(17)
    for _ in range(count):
        order = generator.permutation(len(rows))
        train, test = rows.take(order[: len(rows) * 4 // 6]), rows.take(order[len(rows) * 5 // 6 :])
        for name in LEARNERS:
            model = Model(make_learner(name))
            model.learn(train)
            model.finish_race()  # no more rows come: auto keeps the settings in the lead
            found[name].append(auc(test.labels, model.score(test)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--sets", default=",".join(PUBLISHED))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(f"{'data set':10}" + "".join(f"{name:>20}" for name in LEARNERS) + f"{'published: FTRL-AUC':>21}{'best':>8}")
    results = {}
    for name in given.sets.split(","):
        path = given.data_dir / f"{name}.svm.bz2"
        if not path.exists():
            print(f"{name:10} {path} is missing: put it there, or leave the set out with --sets")
            continue
        found = trials(load(path), given.trials)
        results[name] = found
        cells = (f"{np.mean(a):.4f} ± {np.std(a, ddof=1) / np.sqrt(len(a)):.4f}" for a in found.values())
        first, best = PUBLISHED.get(name, (float("nan"), float("nan")))
        print(f"{name:10}" + "".join(f"{cell:>20}" for cell in cells) + f"{first:21.4f}{best:8.4f}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
