"""Rows of results that nobody measured: shaped like those of real runs, for tables, figures and reports to be tried on."""

from __future__ import annotations

from functools import cache

import numpy as np

from rarestream.reproduce.methods import METHODS, OURS, TABLE2, TABLE3
from rarestream.study.splits import checkpoints

SHAPES = {  # rows that are learned, features, how near to the paper's
    "farm-ads": (2762, 54877, "exact"),
    "reviews": (5333, 473856, "exact"),
    "imdb": (33333, 89527, "rebuilt"),
    "rcv1b": (15843, 47236, "subset"),
}
LAMBDAS = (1e-8, 1e-4, 0.01, 0.3, 1.0)


def row(
    dataset="farm-ads", method="ftrl_auc", *, ratio=None, mode="corrected", grid="quick", trial=0, auc=None, error=None
):
    """One trial, the same for the same words."""
    generator = np.random.default_rng([len(dataset), sum(map(ord, method)), trial, int(100 * (ratio or 0))])
    n, d, data = SHAPES.get(dataset, (1000, 500, "own"))
    height = auc if auc is not None else 0.93 + 0.002 * (len(method) % 5) + 0.005 * float(generator.normal())
    settings = LAMBDAS if grid != "none" else (0.5,)
    name = "lambda" if method in ("rda_l1", "adagrad") else "l1"
    points = [
        {
            "params": {name: value, "gamma": gamma} if grid != "none" or not _untuned(method) else {},
            "valid_auc": height - 0.01 * abs(np.log10(value) + 1) - (0.02 if gamma == 5 else 0),
            "test_auc": height - 0.008 * abs(np.log10(value) + 1) - (0.02 if gamma == 5 else 0),
            "nonzeros": int(d * 0.4 / (1 + 40 * value)),
            "seconds": 0.02 + 1e-6 * n,
        }
        for gamma in ((1, 5) if grid != "none" else (1,))
        for value in settings
    ]
    best = int(np.argmax([point["valid_auc"] for point in points]))
    if auc is not None:
        points[best]["test_auc"] = auc
    rows = checkpoints(n)
    end = points[best]["test_auc"]
    curve = [0.5 + (end - 0.5) * (1 - np.exp(-4 * at / n)) / (1 - np.exp(-4)) for at in rows]
    return {
        "kind": "trial",
        "dataset": dataset,
        "ratio": ratio,
        "method": method,
        "mode": mode,
        "grid": grid,
        "trial": trial,
        "points": [] if error else points,
        "chosen": None if error else best,
        "curve": None if error else {"rows": rows, "seconds": [1e-5 * at for at in rows], "test_auc": curve},
        "n_train": n,
        "n_features": d,
        "data": data,
        "error": error,
        "version": "0",
    }


def _untuned(method):
    return method in OURS or method not in METHODS


def missing(dataset):
    """That a data set was looked for in vain."""
    return {"kind": "missing", "dataset": dataset}


@cache
def rows(trials=2):
    """All methods on four of the six sets, both ratios, the lazy pair; one unit that failed."""
    found = []
    for trial in range(trials):
        for dataset in SHAPES:
            for method in (*TABLE2, *OURS):
                grid = "none" if method in OURS else "quick"
                if (dataset, method) == ("imdb", "fsauc"):
                    found.append(row(dataset, method, grid=grid, trial=trial, error="every setting diverged"))
                else:
                    found.append(row(dataset, method, grid=grid, trial=trial))
            for ratio in (0.1, 0.05):
                for method in (*TABLE3, *OURS):
                    found.append(
                        row(dataset, method, ratio=ratio, grid="none" if method in OURS else "quick", trial=trial)
                    )
            for method in ("ftrl_auc", "ftrl_auc_non_lazy"):
                found.append(row(dataset, method, grid="none", trial=trial))
            found.append(row(dataset, mode="published", trial=trial))
    return found
