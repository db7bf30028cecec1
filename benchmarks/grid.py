"""The paper's grid of FTRL-AUC, 192 points, in one race, against 192 fits of scikit-learn's SGD with l1.

    python benchmarks/grid.py --data-dir DIR [--set imdb] [--rounds 3]

The training part of the first trial of the paper's protocol, in memory. Both sides may use every core and are timed by
the clock: the race by threads; scikit-learn by joblib, processes started before the clock, on a CSR matrix with the
indices it wants, in float64 and in float32, the faster counts. The race ends with all settings compared and the best of
them trained; the fits end with 192 classifiers that are still to be compared. A race retires settings that are clearly
beaten; one that lets all run to the end is timed too.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import SGDClassifier

from rarestream import read
from rarestream.blocks import concatenate
from rarestream.race import RaceResult, Racing, grid
from rarestream.reproduce.protocol import splits

GAMMAS = [1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5, 1.0, 5.0]
LAMBDAS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 1.0, 3.0, 5.0]
MUST, AIM = 20, 35
RACES = {False: "race of 192 settings, all to the end", True: "race of 192 settings"}
BLOCK = 8192


def fit(X: Any, y: Any, alpha: float, eta: float) -> None:
    warnings.simplefilter("ignore")  # one pass does not converge, and is not meant to
    SGDClassifier(
        loss="log_loss", penalty="l1", alpha=alpha, learning_rate="constant", eta0=eta, max_iter=1, tol=None
    ).fit(X, y)


def clocked(action: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = action()
    return time.perf_counter() - began, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--set", default="imdb")
    parser.add_argument("--rounds", type=int, default=3, help="of which the smallest time counts")
    given = parser.parse_args()
    rows = concatenate(read(given.data_dir / f"{given.set}.svm.bz2"))
    train = rows.take(splits(len(rows))[0].train)
    blocks = [train[start : start + BLOCK] for start in range(0, len(train), BLOCK)]
    cores = len(os.sched_getaffinity(0))
    print(f"{given.set}: {len(train):,} rows, {train.nonzeros:,} non-zeros, {rows.width:,} features; {cores} cores")
    points = grid("ftrl-auc", learning_rate=GAMMAS, l1=LAMBDAS)

    def race(retire: bool) -> RaceResult:
        racing = Racing(points, retire=retire)
        for block in blocks:
            racing.learn(block)
        return racing.finish()

    best: dict[str, float] = {}
    with Parallel(n_jobs=cores) as parallel:
        matrices = {kind.__name__: train.to_csr().astype(kind) for kind in (np.float64, np.float32)}
        for _ in range(given.rounds):
            for retire, name in RACES.items():
                seconds, found = clocked(lambda retire=retire: race(retire))
                best[name] = min(seconds, best.get(name, np.inf))
            for kind, X in matrices.items():
                parallel(delayed(fit)(X[:100], train.labels[:100], 1e-4, 0.1) for _ in range(cores))  # wake up
                seconds, _ = clocked(
                    lambda X=X: parallel(delayed(fit)(X, train.labels, a, e) for a in LAMBDAS for e in GAMMAS)
                )
                name = f"192 fits of SGD l1, {kind}"
                best[name] = min(seconds, best.get(name, np.inf))
    for name, seconds in best.items():
        print(f"{name:40}{seconds:9.2f} s{seconds / 192 * 1000:9.1f} ms a setting")
    theirs = min(seconds for name, seconds in best.items() if name.startswith("192"))
    print(f"best: {found.model.learner!r}, progressive AUC {found.model.progress.auc}")
    for name in RACES.values():
        print(f"{name}: {theirs / best[name]:.1f}x faster (must {MUST}, aim {AIM})")


if __name__ == "__main__":
    main()
