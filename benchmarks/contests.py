"""What is measured on each shape: learning in memory, and from a text file to a saved model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import machine
import peers
from rarestream import Block, Model, auc, read
from rarestream.learners.state import zeros
from shapes import Data
from timing import Contestant, Cost, command, interleaved, rarestream_command, timed, touch

OURS = "dual-auc"  # where auto starts from: the bars are held against it
OTHERS = ("dual-logistic", "ftrl-auc", "ftrl-proximal")  # the fast ones; all of them: learners.py
SKLEARN = "sklearn load + fit l1"
LIMIT = "limit: random read-modify-write"


def in_memory(data: Data, rounds: int, chosen: set[str]) -> dict[str, float]:
    """ns per non-zero of one pass over rows in memory, on one core; conversions are outside the clock for everyone."""
    train, d = data.train, data.shape.d
    assert train.labels is not None
    labels = train.labels
    contestants: dict[str, Contestant] = {name: _learn(name, train) for name in [OURS, *OTHERS]}
    contestants[f"{OURS}, float64"] = _learn(OURS, train, dtype="float64")
    model = Model(OURS)
    model.learn(train)
    contestants["score"] = timed(lambda: lambda: model.score(train))
    single = peers.csr(train, d, np.float32)
    contestants["Block.of(csr, labels)"] = timed(lambda: lambda: Block.of(single, labels))
    if "sklearn" in chosen:
        double = peers.csr(train, d, np.float64)
        for penalty in ("l1", "l2"):
            for X, dtype, shuffle in (
                (double, "float64", True),
                (double, "float64", False),
                (single, "float32", False),
            ):
                name = f"SGD {penalty} {dtype}" + ("" if shuffle else ", rows in order")
                contestants[name] = peers.sgd_fit(X, labels, penalty, shuffle=shuffle)
    if "river" in chosen:
        part = train[: peers.RIVER_ROWS]
        contestants["River FTRL"] = _scaled(peers.river_learn(part), train.nonzeros / part.nonzeros)
    for ahead in machine.AHEAD:
        contestants[f"{LIMIT} {ahead}"] = _limit(train, ahead)
    contestants["limit: streaming read"] = timed(lambda: lambda: machine.streaming_read(train.indices, train.values))
    best = interleaved(contestants, rounds, seldom=["River FTRL"])
    found = {name: cost.cpu / train.nonzeros * 1e9 for name, cost in best.items()}
    found[LIMIT] = min(found.pop(f"{LIMIT} {ahead}") for ahead in machine.AHEAD)
    return found


def _limit(block: Block, ahead: int) -> Contestant:
    """Takes its memory within the clock, as a model does and in the same way: the first touch of a page costs both."""

    def prepare() -> Callable[[], Any]:
        touch(block.indices, block.values)
        return lambda: machine.read_modify_write(
            block.indices, zeros((block.width, 2), np.dtype(np.float32)).view(np.uint64), ahead
        )

    return timed(prepare)


def _learn(name: str, block: Block, dtype: str = "float32") -> Contestant:
    def prepare() -> Callable[[], Any]:
        model = Model(name, dtype=dtype)
        touch(block.indices, block.values)
        return lambda: model.learn(block)

    return timed(prepare)


def _scaled(contest: Contestant, factor: float) -> Contestant:
    return lambda: contest() * factor


def from_text(data: Data, rounds: int, chosen: set[str]) -> dict[str, float]:
    """Seconds from a text file to a saved model. One core: CPU seconds; all cores: by the clock."""
    train, d = data.train, data.shape.d
    assert train.labels is not None
    with tempfile.TemporaryDirectory(dir=machine.CACHE) as folder:
        scratch = Path(folder)
        saved = scratch / "ours.rare"
        learned = Model(OURS)
        learned.learn(train)
        contestants = {
            "ours": timed(lambda: lambda: _text_to_model(data.svmlight, saved, 0)),
            "ours, all cores": timed(lambda: lambda: _text_to_model(data.svmlight, saved, None), cores=2),
            "of it read": timed(lambda: lambda: [None for _ in read(data.svmlight, threads=0)]),
            "of it save": timed(lambda: lambda: learned.save(saved)),
        }
        if cli := rarestream_command():
            tiny = scratch / "tiny.svm"
            machine.write_text(tiny, train[:64])
            words = [cli, "train", "--quiet", "-o", saved]
            contestants["rarestream train, start-up"] = command(*words, "--threads", "0", tiny)
            contestants["rarestream train"] = command(*words, "--threads", "0", data.svmlight)
            contestants["rarestream train, all cores"] = command(*words, data.svmlight, cores=2)
        if "vw" in chosen:
            contestants |= peers.vw_contestants(data.vw, d, scratch)
        if "sklearn" in chosen:
            rows = max(200, int(peers.LOAD_NONZEROS / train.nonzeros * len(train)))
            part = train[:rows]
            machine.write_text(scratch / "slice.svm", part)
            load = peers.load(scratch / "slice.svm", d)
            contestants["sklearn load"] = _scaled(load, train.nonzeros / part.nonzeros)
            contestants["sklearn fit"] = peers.sgd_fit(peers.csr(train, d, float), train.labels, "l1", shuffle=False)
        best = interleaved(contestants, rounds, seldom=["sklearn load"])
    if "VW start-up" in best:
        for name in ("VW text", "VW cache"):
            best[f"{name}, start-up deducted"] = best[name] - best["VW start-up"]
        best["VW text, start-up deducted, all cores"] = best["VW text, all cores"] - best["VW start-up"]
    if "sklearn load" in best:
        both = best.pop("sklearn load") + best.pop("sklearn fit")
        # It runs on one core whatever there is: CPU seconds are its time on an idle machine.
        best |= {SKLEARN: both, f"{SKLEARN}, all cores": Cost(both.cpu, both.cpu)}
    return {name: _seconds(name, cost) for name, cost in best.items()}


def _seconds(name: str, cost: Cost) -> float:
    return cost.wall if "all cores" in name else cost.cpu


def _text_to_model(source: Path, target: Path, threads: int | None) -> None:
    model = Model(OURS)
    for block in read(source, threads=threads):
        model.learn(block)
    model.save(target)


def accuracy(data: Data, chosen: set[str]) -> dict[str, float]:
    """Test AUC of everyone's defaults after one pass. A check that all learn something; it ranks nobody."""
    train, test, d = data.train, data.test, data.shape.d
    assert train.labels is not None and test.labels is not None
    found = {}
    for name in [OURS, *OTHERS]:
        model = Model(name)
        model.learn(train)
        found[name] = auc(test.labels, model.score(test))
    if "sklearn" in chosen:
        X, Z = peers.csr(train, d, np.float64), peers.csr(test, d, np.float64)
        for penalty in ("l1", "l2"):
            found[f"SGD {penalty}"] = auc(test.labels, peers.sgd_scores(X, train.labels, Z, penalty))
    if "vw" in chosen:
        with tempfile.TemporaryDirectory(dir=machine.CACHE) as folder:
            scratch = Path(folder)
            machine.write_text(scratch / "test.vw", test, vw=True)
            found["VW --ftrl"] = auc(test.labels, peers.vw_scores(data.vw, scratch / "test.vw", d, scratch))
    return found
