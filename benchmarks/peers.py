"""The peers: scikit-learn, Vowpal Wabbit, River. Each is given its data the way it likes them best."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarestream import Block
from timing import Contestant, command, run, timed, touch

RIVER_ROWS = 2000
LOAD_NONZEROS = 600_000  # of the slice that load_svmlight_file is timed on


def csr(block: Block, d: int, dtype: DTypeLike) -> Any:
    """The matrix scikit-learn takes without a copy: 32-bit indices, values of `dtype`."""
    from scipy.sparse import csr_matrix

    arrays = (block.values.astype(dtype), block.indices, block.indptr.astype(np.int32))
    return csr_matrix(arrays, shape=(len(block), d))


def sgd(penalty: str, *, shuffle: bool) -> Any:
    """SGDClassifier for exactly one epoch. As it comes it shuffles the rows first."""
    from sklearn.linear_model import SGDClassifier

    settings = {"loss": "log_loss", "max_iter": 1, "tol": None, "random_state": 0}
    return SGDClassifier(penalty=penalty, shuffle=shuffle, **settings)


def one_vs_rest(**settings: Any) -> Any:
    """One-vs-rest of SGDClassifier, rows in order."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.multiclass import OneVsRestClassifier

    return OneVsRestClassifier(SGDClassifier(penalty="l1", shuffle=False, random_state=0, **settings))


def sgd_fit(X: Any, y: NDArray[np.int8], penalty: str, *, shuffle: bool) -> Contestant:
    def prepare() -> Callable[[], Any]:
        model = sgd(penalty, shuffle=shuffle)
        touch(X.indices, X.data)
        return lambda: model.fit(X, y)

    return timed(prepare)


def sgd_scores(train: Any, y: NDArray[np.int8], test: Any, penalty: str) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = sgd(penalty, shuffle=False).fit(train, y).decision_function(test)
    return scores


def load(path: Path, d: int) -> Contestant:
    """An svmlight file to the matrix that SGDClassifier takes; it refuses the 64-bit indices of the loader."""
    from sklearn.datasets import load_svmlight_file

    def action() -> None:
        X, _ = load_svmlight_file(str(path), n_features=d, zero_based=False)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)

    return timed(lambda: action)


def river_learn(block: Block) -> Contestant:
    """River's FTRL-Proximal on dicts, made outside the clock."""
    from river import linear_model, optim

    assert block.labels is not None
    rows = []
    for i in range(len(block)):
        part = slice(block.indptr[i], block.indptr[i + 1])
        rows.append(
            (dict(zip(block.indices[part].tolist(), block.values[part].tolist(), strict=True)), block.labels[i] > 0)
        )

    def prepare() -> Callable[[], Any]:
        model = linear_model.LogisticRegression(optimizer=optim.FTRLProximal())

        def action() -> None:
            for x, y in rows:
                model.learn_one(x, y)

        return action

    return timed(prepare)


def vw_words(d: int, *more: str | Path) -> list[str]:
    bits = max(18, (d - 1).bit_length())
    words = ["--ftrl", "--loss_function", "logistic", "-b", str(bits), "--holdout_off", "--quiet", *map(str, more)]
    return [sys.executable, "-m", "vowpalwabbit", *words]


def vw_contestants(text: Path, d: int, scratch: Path) -> dict[str, Contestant]:
    """One pass from text and from its cache, model saved; and what starting up costs with nothing to learn."""
    empty, model, cache = scratch / "empty.vw", scratch / "vw.model", scratch / "vw.cache"
    empty.write_text("")
    run(*vw_words(d, "-d", text, "--cache_file", cache, "-k", "-f", model))
    return {
        "VW start-up": command(*vw_words(d, "-d", empty, "-f", model)),
        "VW text": command(*vw_words(d, "-d", text, "-f", model)),
        "VW cache": command(*vw_words(d, "-d", text, "--cache_file", cache, "-f", model)),
        "VW text, all cores": command(*vw_words(d, "-d", text, "-f", model), cores=2),
    }


def vw_scores(text: Path, test: Path, d: int, scratch: Path) -> NDArray[np.float64]:
    model, out = scratch / "scored.model", scratch / "scored.txt"
    run(*vw_words(d, "-d", text, "-f", model))
    words = ["-t", "--quiet", "-d", test, "-i", model, "-p", out]
    run(sys.executable, "-m", "vowpalwabbit", *map(str, words))
    return np.loadtxt(out)


def quiet() -> None:
    warnings.filterwarnings("ignore", category=UserWarning)
    warnings.filterwarnings("ignore", message=".*(ConvergenceWarning|Maximum number of iteration).*")
