"""Who learns in quality.py: the learners of the package and those of other libraries, all on the same rows.

A problem has rows to learn, then validation rows, then test rows. Held out: the last two are scored by the model of the
rows to learn. Progressive: all are learned in one pass, and a row's score is the one it had before. Contestants return
the scores of the validation and test rows under each of their settings; one is selected by the AUC on the
validation rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import machine
import peers
from rarestream import Block, Model, make_learner
from rarestream.blocks import concatenate
from rarestream.learners import Learner, learner_names
from rarestream.learners.auto import Auto
from rarestream.learners.dual_averaging import DualAveraging
from rarestream.learners.registry import learner_class
from rarestream.race.entrants import entrants
from rarestream.race.fitting import ManyFits

Scores = NDArray[np.float64]
Map = Callable[..., Any]  # builtin map, or that of a pool

BATCH = 1000  # rows that SGD scores before it learns them
PIECE = 65536  # rows that it learns at a time where no scores are needed
RIVER_NONZEROS = 4_000_000  # more take River too long
BATCH_ROWS = 200_000  # more take a batch solver too long

VW_GRID = [
    ("--ftrl_alpha", str(alpha), "--ftrl_beta", str(beta), "--l1", str(l1))
    for alpha in (0.005, 0.02, 0.08, 0.3, 1.2, 5.0)
    for beta in (0.1, 1.0)
    for l1 in (0.0, 0.3)
]
SGD_RATES: list[dict[str, Any]] = [
    {"learning_rate": "optimal"},
    *({"learning_rate": "invscaling", "eta0": eta0, "power_t": 0.25} for eta0 in (0.5, 4.0, 20.0)),
]
SGD_GRID: list[dict[str, Any]] = [
    {"alpha": alpha, "penalty": penalty, **rate}
    for alpha in (1e-6, 1e-5, 1e-4)
    for penalty in ("l2", "elasticnet")
    for rate in SGD_RATES
]
BATCH_GRID = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)  # C


VARIANTS: dict[str, Learner] = {  # of the learners as they come
    "auto-keep8": Auto(keep=8),
    "logistic-proximal": DualAveraging(loss="logistic", proximal=0.5),
    "logistic-evidence": DualAveraging(loss="logistic", evidence=0.5, proximal=0.5),
    "auc-evidence": DualAveraging(loss="auc", evidence=0.5),
}


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows in their order: to learn, for validation, for the test."""

    blocks: list[Block]
    learned: int
    validation: int
    test: int
    progressive: bool

    @cached_property
    def labels(self) -> NDArray[np.int8]:
        """Of the validation and test rows."""
        blocks = [block.labels for block in self.blocks if block.labels is not None]
        return np.concatenate(blocks)[self.learned :]

    @property
    def d(self) -> int:
        return max(block.width for block in self.blocks)

    @property
    def nonzeros(self) -> int:
        return sum(len(block.indices) for block in self.blocks)

    @cached_property
    def train(self) -> Block:
        return concatenate(self.between(0, self.learned))

    @cached_property
    def rest(self) -> Block:
        return concatenate(self.between(self.learned, self.learned + self.validation + self.test))

    def between(self, first: int, last: int) -> Iterator[Block]:
        at = 0
        for block in self.blocks:
            piece = block[max(0, first - at) : max(0, last - at)]
            if len(piece):
                yield piece
            at += len(block)


class Tried(NamedTuple):
    """A setting, and the scores of the validation and test rows."""

    setting: str
    scores: Scores


def untuned_names(slow: bool = False) -> list[str]:
    """The learners that cost O(k) per row, or all; without auto."""
    names = [name for name in learner_names() if name != "auto"]
    return [*VARIANTS] + [name for name in names if slow or learner_class(name)[0].about.cost.split(";")[0] == "O(k)"]


def learner(problem: Problem, name: str) -> list[Tried]:
    """A learner of the package as it comes, or a variant; auto ends its race where no more rows come."""
    model = Model(VARIANTS.get(name) or make_learner(name))
    if problem.progressive:
        scores = np.concatenate([model.learn(block) for block in problem.blocks])[problem.learned :]
    else:
        model.learn(problem.train)
        model.finish_race()
        scores = model.score(problem.rest)
    return [Tried(_described(model.leader), scores)]


def lanes(problem: Problem) -> tuple[list[Tried], list[Tried]]:
    """The settings that a race tries, and the 24 of the first version, in one pass."""
    raced, first = entrants("auto"), Auto.first_candidates()
    both = list(dict.fromkeys([*raced, *first]))
    fits = ManyFits(both)
    fits.reserve(problem.d)
    found: list[NDArray[np.floating]] = []
    if problem.progressive:
        at = 0
        for block in problem.blocks:
            scores = fits.learn(block)
            at += len(block)
            if at > problem.learned:
                found.append(scores[max(0, len(block) - (at - problem.learned)) :])
    else:
        fits.learn(problem.train)
        found.append(fits.score(problem.rest))
    table = np.nan_to_num(np.concatenate(found).astype(np.float64))  # NaN: weights that grew beyond float32
    tried = {one: Tried(_described(one), table[:, number]) for number, one in enumerate(both)}
    return [tried[one] for one in raced], [tried[one] for one in first]


def _described(chosen: Learner) -> str:
    settings = ", ".join(f"{word}={value}" for word, value in chosen.settings.items())
    return f"{chosen.name}({settings})"


class VowpalWabbit:
    """VW's FTRL-Proximal. Rows are parsed once, into its caches; it continues where scores are needed.

    It writes every score as it comes, which takes longer than learning: so the rows to learn are learned without, and
    the saved model, with all its state, scores the others; and learns them, too, if progressive.
    """

    def __init__(self, problem: Problem, scratch: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=scratch)
        folder = Path(self._folder.name)
        bits = max(18, problem.d.bit_length())
        words = ["--ftrl", "--loss_function", "logistic", "-b", str(bits)]
        for name, blocks in (("train", problem.between(0, problem.learned)), ("rest", [problem.rest])):
            for number, block in enumerate(blocks):
                machine.write_text(folder / f"{name}.vw", block, vw=True, append=number > 0)
        self._run = VwRun(folder, words, problem.progressive)

    def default(self) -> list[Tried]:
        return [Tried("default", self._run(()))]

    def tuned(self, run: Map = map) -> list[Tried]:
        """After `default`, which has made the caches."""
        return [Tried(" ".join(words), scores) for words, scores in zip(VW_GRID, run(self._run, VW_GRID), strict=True)]

    def close(self) -> None:
        self._folder.cleanup()


class VwRun(NamedTuple):
    """One pass of VW with some options; it returns the scores of the validation and test rows."""

    folder: Path
    words: list[str]
    progressive: bool

    def __call__(self, setting: Sequence[str]) -> Scores:
        from vowpalwabbit import Workspace

        model, out = (self.folder / f"{'-'.join(setting)}.{end}" for end in ("model", "scores"))
        first = [*self.words, *setting, *self._data("train"), "--save_resume", "-f", str(model)]
        Workspace(arg_list=first).finish()
        then = [*self.words, *setting, "-i", str(model), *self._data("rest"), "-p", str(out), "--save_resume"]
        Workspace(arg_list=then if self.progressive else [*then, "-t"]).finish()
        scores = np.nan_to_num(np.fromfile(out, sep="\n"))
        model.unlink()
        out.unlink()
        return scores

    def _data(self, name: str) -> list[str]:
        path = self.folder / f"{name}.vw"
        return ["-d", str(path), "--cache_file", f"{path}.cache", "--holdout_off", "--quiet"]


def sgd(problem: Problem) -> list[Tried]:
    """SGDClassifier(loss="log_loss") under the settings of its grid: one epoch in the order of the rows."""
    from sklearn.linear_model import SGDClassifier

    models = [SGDClassifier(loss="log_loss", shuffle=False, random_state=0, **setting) for setting in SGD_GRID]
    scores = np.empty((len(SGD_GRID), problem.validation + problem.test))
    starts = range(0, scores.shape[1], BATCH)
    for part in _pieces(problem.train, PIECE):
        X = peers.csr(part, problem.d, np.float64)
        for model in models:
            model.partial_fit(X, part.labels, classes=[-1, 1])
    rest = peers.csr(problem.rest, problem.d, np.float64)
    if not problem.progressive:
        for number, model in enumerate(models):
            scores[number] = model.decision_function(rest)
    else:
        for start in starts:
            rows = slice(start, start + BATCH)
            for number, model in enumerate(models):
                scores[number, rows] = model.decision_function(rest[rows])
                model.partial_fit(rest[rows], problem.labels[rows])
    words = [", ".join(f"{word}={value}" for word, value in setting.items()) for setting in SGD_GRID]
    return [Tried(setting, one) for setting, one in zip(words, np.nan_to_num(scores), strict=True)]


def _pieces(block: Block, rows: int) -> Iterator[Block]:
    for start in range(0, len(block), rows):
        yield block[start : start + rows]


def river(problem: Problem) -> list[Tried] | None:
    """River's FTRL-Proximal for the logistic loss as it comes; None if the rows are too many for it."""
    from river import linear_model, optim

    if problem.nonzeros > RIVER_NONZEROS:
        return None
    model: Any = linear_model.LogisticRegression(optimizer=optim.FTRLProximal())
    scores = []
    for x, y in _dicts(problem.train):
        model.learn_one(x, y)
    for x, y in _dicts(problem.rest):
        scores.append(model.predict_proba_one(x)[True])
        if problem.progressive:
            model.learn_one(x, y)
    return [Tried("default", np.array(scores, dtype=np.float64))]


def _dicts(block: Block) -> Iterator[tuple[dict[int, float], bool]]:
    assert block.labels is not None
    indptr, indices, values = block.indptr.tolist(), block.indices.tolist(), block.values.tolist()
    for i, label in enumerate(block.labels.tolist()):
        row = slice(indptr[i], indptr[i + 1])
        yield dict(zip(indices[row], values[row], strict=True)), label > 0


def batch(problem: Problem) -> list[Tried] | None:
    """LogisticRegression at each C, on all training rows at once; None on streams and on very many rows."""
    from sklearn.linear_model import LogisticRegression

    if problem.progressive or problem.learned > BATCH_ROWS:
        return None
    train, rest = (peers.csr(block, problem.d, np.float64) for block in (problem.train, problem.rest))
    tried = []
    for C in BATCH_GRID:
        # Not lbfgs: at a tolerance that it reaches in this time it is far from the optimum, and its AUC is lower.
        model = LogisticRegression(C=C, solver="liblinear", dual=True, tol=1e-2, max_iter=300, random_state=0)
        model.fit(train, problem.train.labels)
        tried.append(Tried(f"C={C:g}", model.decision_function(rest)))
    return tried
