"""What users call, beside what they would call instead: whole calls, with all checks and conversions in the clock."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import machine
import peers
from rarestream import Block, Model
from shapes import SHAPES, make, rows
from small import microseconds
from timing import Contestant, command, interleaved, one_core, rarestream_command, timed, touch

OURS = "dual-auc"
SHORT = replace(SHAPES["rcv1b"], name="rcv1b, 21 per row", k=21)
SHORT_ROWS = 50_000
DENSE = (20_000, 100)
WHOLE_ROWS = 50_000  # of the file that whole programs learn
RACED_ROWS = 1 << 14
NARROW, WIDE = 10**5, 2**24
LISTED, NAMED = 50, 40  # features of a row that comes as lists, and as a dict
ALONE = 2000  # of such rows


class Line(NamedTuple):
    """A call and what it is held against; how many times faster, or slower, it must and should be."""

    what: str
    ours: str
    other: str
    must: float
    aim: float
    slower: bool = False  # the bar says how much slower it may be


LEARN, FIT = "Model.learn", "DualAveragingClassifier.fit, csr"
CALIBRATED, UNCALIBRATED = "Model.learn, avazu", "Model(calibrate=False).learn, avazu"
SPARSE, SPARSE_SGD = f"fit, {SHORT.name}", f"SGD fit, {SHORT.name}"
ARRAY, ARRAY_SGD = "fit, dense 20,000 x 100", "SGD fit, dense 20,000 x 100"
TRAIN, TRAIN_AUTO, VW = (
    "rarestream train --learner dual-auc, 50,000 rows",
    "rarestream train, 50,000 rows",
    "vw, 50,000 rows",
)
LISTS, ASARRAY = "learn_one, two lists of 50", "numpy.asarray, two lists of 50"
DICT, LOADS = "learn_one, a dict of 40", "json.loads, a row of 40"
RIVER_RAW, RIVER_SOFT, RIVER = (
    "rarestream.river.FtrlProximal, raw numbers, a dict of 40",
    "rarestream.river.FtrlProximal, a dict of 40",
    "River LogisticRegression, FTRLProximal, a dict of 40",
)
SINGLE = {LISTS, ASARRAY, DICT, LOADS, RIVER_RAW, RIVER_SOFT, RIVER}  # in microseconds a row
RACE_WIDE, RACE_NARROW = "auto, 16,384 rows, d = 2^24", "auto, 16,384 rows, d = 10^5"

LINES = (
    Line("fit on CSR vs Model.learn, rcv1b", FIT, LEARN, 1.5, 1.3, slower=True),
    Line("learning with calibration vs without it, avazu", CALIBRATED, UNCALIBRATED, 1.2, 1.1, slower=True),
    Line("fit on CSR vs SGD l1 fit (shuffle=False), 21 non-zeros a row", SPARSE, SPARSE_SGD, 4.5, 6),
    Line("fit on dense 20,000 x 100 vs SGD l1 fit (shuffle=False)", ARRAY, ARRAY_SGD, 2, 3),
    Line("train --learner dual-auc vs vw, programs, 50,000 rows", TRAIN, VW, 1, 1.5),
    Line("train (auto, which races) vs vw, programs, 50,000 rows", TRAIN_AUTO, VW, 1, 1.5),
    Line("learn_one of two lists of 50 vs numpy.asarray of them", LISTS, ASARRAY, 1, 0.3, slower=True),
    Line("learn_one of a dict of 40 names vs json.loads of the row", DICT, LOADS, 1, 0.5, slower=True),
    Line("River: learn_one of 40 raw numbers vs its own FTRL", RIVER_RAW, RIVER, 15, 30),
    Line("River: learn_one of 40 numbers in soft buckets vs its own FTRL", RIVER_SOFT, RIVER, 7, 10),
    Line("auto on 16,384 rows, d = 2^24 vs d = 10^5", RACE_WIDE, RACE_NARROW, 1.6, 1.3, slower=True),
)


def measure(rounds: int, chosen: set[str]) -> dict[str, float]:
    """Seconds of each call; of rows that come alone, microseconds a row."""
    found: dict[str, float] = {}
    best = interleaved({**fitting(chosen), **racing()}, rounds)
    found |= {name: cost.cpu for name, cost in best.items()}
    with tempfile.TemporaryDirectory(dir=machine.CACHE) as folder:
        best = interleaved(programs(Path(folder), chosen), rounds)
        found |= {name: cost.wall for name, cost in best.items()}
    return found | alone(rounds, chosen)


def fitting(chosen: set[str]) -> dict[str, Contestant]:
    """`fit` as a user of scikit-learn calls it, with the input that SGDClassifier takes without a copy too."""
    try:
        from rarestream.sklearn import DualAveragingClassifier
    except ImportError:
        return {}

    def fit(X: Any, y: Any) -> Contestant:
        return _ready(lambda: DualAveragingClassifier(loss="auc"), X, lambda model: model.fit(X, y))

    shape = SHAPES["rcv1b"]
    data = make(shape, 0.5).train
    short = rows(SHORT, SHORT_ROWS)
    dense, labels = dense_rows()
    X, narrow = peers.csr(data, shape.d, np.float32), peers.csr(short, SHORT.d, np.float64)
    avazu = make(SHAPES["avazu"], 0.5).train

    def learning(calibrate: bool) -> Contestant:
        d = SHAPES["avazu"].d
        return _ready(lambda: Model(OURS, n_features=d, calibrate=calibrate), avazu, lambda model: model.learn(avazu))

    contestants = {
        CALIBRATED: learning(True),
        UNCALIBRATED: learning(False),
        LEARN: _ready(lambda: Model(OURS, n_features=shape.d), X, lambda model: model.learn(data)),
        FIT: fit(X, data.labels),
        SPARSE: fit(narrow, short.labels),
        ARRAY: fit(dense, labels),
    }
    if "sklearn" in chosen:

        def sgd(X: Any, y: Any) -> Contestant:
            return _ready(lambda: peers.sgd("l1", shuffle=False), X, lambda model: model.fit(X, y))

        contestants |= {SPARSE_SGD: sgd(narrow, short.labels), ARRAY_SGD: sgd(dense, labels)}
    return contestants


def dense_rows() -> tuple[Any, Any]:
    """Numbers without zeros, with a planted signal."""
    generator = np.random.default_rng(5)
    X = generator.normal(size=DENSE)
    chance = X @ generator.normal(size=DENSE[1]) / 4 - 1.5 + generator.logistic(size=DENSE[0])
    return X, np.where(chance > 0, 1, -1)


def _ready(make_model: Callable[[], Any], X: Any, act: Callable[[Any], Any]) -> Contestant:
    """The model is made, and the rows are in the caches as far as they fit, before the clock starts."""

    def prepare() -> Callable[[], Any]:
        model = make_model()
        touch(*((X,) if isinstance(X, np.ndarray) else (X.indices, X.values if isinstance(X, Block) else X.data)))
        return lambda: act(model)

    return timed(prepare)


def racing() -> dict[str, Contestant]:
    """`auto` over the same rows, whose columns are close together or far apart."""
    near = rows(replace(SHAPES["avazu"], d=NARROW), RACED_ROWS)
    far = spread(near, WIDE // NARROW)
    return {
        RACE_NARROW: timed(lambda: lambda: Model("auto").learn(near)),
        RACE_WIDE: timed(lambda: lambda: Model("auto").learn(far)),
    }


def spread(block: Block, factor: int) -> Block:
    """The rows with every column's number multiplied."""
    return Block.of((block.indptr, block.indices * np.int32(factor), block.values), block.labels)


def programs(folder: Path, chosen: set[str]) -> dict[str, Contestant]:
    """Whole programs, start-up and all, from the same rows as text to a saved model."""
    shape = SHAPES["rcv1b"]
    data = make(shape, WHOLE_ROWS / shape.n)
    contestants: dict[str, Contestant] = {}
    if cli := rarestream_command():
        words = [cli, "train", "--quiet", "-o", folder / "ours.rare", data.svmlight]
        contestants[TRAIN] = command(*words, "--learner", OURS, cores=2)
        contestants[TRAIN_AUTO] = command(*words, cores=2)
    if "vw" in chosen:
        contestants[VW] = command(*peers.vw_words(shape.d, "-d", data.vw, "-f", folder / "vw.model"), cores=2)
    return contestants


def alone(rounds: int, chosen: set[str]) -> dict[str, float]:
    """Microseconds a row, for rows that come as Python objects, one at a time."""
    lists, names = listed_rows(), named_rows()
    texts = [json.dumps(row) for row, _ in names]
    listed, named = Model(OURS, n_features=10**6), Model(OURS)
    actions: dict[str, Callable[[], Any]] = {
        LISTS: lambda: [listed.learn_one(*row) for row in lists],
        ASARRAY: lambda: [(np.asarray(indices), np.asarray(values)) for indices, values, _ in lists],
        DICT: lambda: [named.learn_one(*row) for row in names],
        LOADS: lambda: [json.loads(text) for text in texts],
    }
    if "river" in chosen:
        actions |= of_river()
    found: dict[str, float] = {}
    for _ in range(4 * rounds):
        for name, action in actions.items():
            with one_core():
                spent = microseconds(action, ALONE)
            found[name] = min(spent, found.get(name, sys.float_info.max))
    return found


def of_river() -> dict[str, Callable[[], Any]]:
    """`learn_one` of River's interface: the same algorithm on the same rows."""
    from river import linear_model, optim

    from rarestream.river import FtrlProximal

    rows = number_rows()
    models = {
        RIVER_RAW: FtrlProximal(numbers="raw"),
        RIVER_SOFT: FtrlProximal(),
        RIVER: linear_model.LogisticRegression(optimizer=optim.FTRLProximal()),
    }
    return {name: partial(_learn_all, model, rows) for name, model in models.items()}


def _learn_all(model: Any, rows: list[tuple[dict[str, float], bool]]) -> None:
    for row in rows:
        model.learn_one(*row)


def number_rows() -> list[tuple[dict[str, float], bool]]:
    generator = np.random.default_rng(17)
    names = [f"field{i}" for i in range(NAMED)]
    labels = generator.random(ALONE) < 0.3
    return [
        (dict(zip(names, generator.normal(size=NAMED).tolist(), strict=True)), bool(label)) for label in labels.tolist()
    ]


def listed_rows() -> list[tuple[list[int], list[float], int]]:
    generator = np.random.default_rng(11)
    found = []
    for _ in range(ALONE):
        indices = np.sort(generator.choice(10**6, LISTED, replace=False))
        found.append((indices.tolist(), generator.random(len(indices)).tolist(), int(generator.choice([-1, 1]))))
    return found


def named_rows() -> list[tuple[dict[str, Any], int]]:
    """Rows of a click log: some columns are numbers, most are text."""
    generator = np.random.default_rng(13)
    found = []
    for _ in range(ALONE):
        ids = generator.integers(0, 5000, NAMED).tolist()
        row: dict[str, Any] = {f"field{i}": f"value{value:x}" for i, value in enumerate(ids)}
        row |= {f"field{i}": float(generator.random()) for i in range(0, NAMED, 5)}
        found.append((row, int(generator.choice([-1, 1]))))
    return found
