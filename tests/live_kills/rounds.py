"""The sources of the kill test: how rows get into each, and what the model must be in the end."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rarestream import Model, read
from rarestream.evaluate import train
from tests.children import Child
from tests.readers.live.brokers import Kafka, Redis

FIRST = 1500  # rows that are there from the start: they decide what the first rows decide
PIECE = 40  # rows that are written at once, at most
PAUSE = 0.02  # seconds between two pieces, at most
OWN = 1000  # the first column that belongs to one row only
LEARNER = ("--learner", "dual-logistic", "--set", "l1=0")  # the slope of this loss is never 0


class Outcome(NamedTuple):
    """What a source went through."""

    kills: int
    saved: int  # kills that came when the model file had changed since the start
    rows: int
    wrong: list[str]


class Feed:
    """Writes rows to a source, in a thread, until it is told to stop."""

    def __init__(self, rng: random.Random, write: Callable[[list[str]], object]) -> None:
        self.lines: list[str] = []
        self._rng, self._write = rng, write
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Feed:
        self.put(FIRST)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Write no more."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            self.put(self._rng.randint(1, PIECE))
            self._over.wait(self._rng.uniform(0, PAUSE))

    def put(self, number: int) -> None:
        made = []
        for _ in range(number):
            shared = sorted(self._rng.sample(range(1, 100), 4))
            label = 1 if sum(shared) + self._rng.gauss(0, 60) > 260 else -1
            made.append(f"{label} {' '.join(f'{j}:1' for j in shared)} {OWN + len(self.lines) + len(made)}:0.5\n")
        self.lines += made
        self._write(made)


class Place(NamedTuple):
    """A source: what the program follows, how rows get there, and whether their order is fixed."""

    data: str
    write: Callable[[list[str]], object]
    flags: tuple[str, ...] = ()
    ordered: bool = True


@contextmanager
def file(rng: random.Random, folder: Path) -> Iterator[Place]:
    """A log, which is rotated now and then."""
    log, turns = folder / "log.svm", [0]

    def write(lines: list[str]) -> None:
        text = "".join(lines)
        cut = rng.randrange(len(text))  # a line may be half there for a moment
        for part in (text[:cut], text[cut:]):
            with log.open("a") as out:
                out.write(part)
        if rng.random() < 0.02 and (folder / "m.rare").exists():  # before, nobody has begun to follow it
            turns[0] += 1
            log.rename(folder / f"log.svm.{turns[0]}")
            log.touch()

    yield Place(str(log), write)


@contextmanager
def folder_of_files(rng: random.Random, folder: Path) -> Iterator[Place]:
    """A folder that files are moved to."""
    into, names = folder / "in", iter(range(10**9))
    into.mkdir()
    waiting: list[str] = []

    def write(lines: list[str]) -> None:
        waiting.extend(lines)
        if len(waiting) >= FIRST or rng.random() < 0.1:
            name = f"{next(names):09}.svm"
            (into / f".{name}").write_text("".join(waiting))
            (into / f".{name}").rename(into / name)
            waiting.clear()

    yield Place(str(into), write, ("--format", "svmlight"))


@contextmanager
def redis_stream(rng: random.Random, folder: Path) -> Iterator[Place]:
    """A stream of a real Redis."""
    server = Redis(folder)
    try:
        client = server.client()

        def write(lines: list[str]) -> None:
            with client.pipeline(transaction=False) as sending:
                for line in lines:
                    sending.xadd("rows", {"row": line.rstrip("\n")})
                sending.execute()

        yield Place(server.address("rows", "field=row"), write, ("--format", "svmlight"))
    finally:
        server.child.end()


@contextmanager
def kafka_topic(rng: random.Random, folder: Path, partitions: int = 1) -> Iterator[Place]:
    """A topic of the mock broker of librdkafka."""
    broker = Kafka()
    try:
        broker.tell("create", "rows", partitions)

        def write(lines: list[str]) -> None:
            broker.write("rows", [(rng.randrange(partitions), line.rstrip("\n").encode()) for line in lines])

        yield Place(broker.address("rows"), write, ("--format", "svmlight"), ordered=partitions == 1)
    finally:
        broker.child.end()


SOURCES: dict[str, Callable[[random.Random, Path], AbstractContextManager[Place]]] = {
    "file": file,
    "folder": folder_of_files,
    "pipe": file,  # run by `_run_pipe`
    "redis": redis_stream,
    "kafka": kafka_topic,
    "kafka-3": lambda rng, folder: kafka_topic(rng, folder, 3),
}


def run_source(name: str, rng: random.Random, folder: Path, kills: int) -> Outcome:
    """Follow a source, be killed so often, and compare."""
    if name == "pipe":
        return _run_pipe(rng, folder, kills)
    model = folder / "m.rare"
    saved = 0
    with SOURCES[name](rng, folder) as place:
        command = [*_program(), place.data, "--follow", "-o", model, "--one-based", *LEARNER, *place.flags]
        with Feed(rng, place.write) as feed:
            for _ in range(kills):
                saved += _killed(rng, [*command, "--save-every", rng.choice(["50ms", "20", "200"])], model)
            feed.stop()
        with Child([*command, "--stop-after", "4s"]) as program:
            told = program.communicate()
        if program.returncode:
            return Outcome(kills, saved, 0, [f"the last run failed: {told[1][-2000:]}"])
        lines = feed.lines
        if name == "folder":
            lines = [line for path in sorted((folder / "in").iterdir()) for line in path.open()]
        return _compared(kills, saved, folder, model, lines, place.ordered)


def _program() -> list[object]:
    return [sys.executable, "-m", "rarestream", "train"]


def _killed(rng: random.Random, command: list[object], model: Path) -> bool:
    """Run a program and kill it; return whether it has saved its model before."""
    before = _stamp(model)
    with Child(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as program:
        _wait(rng, program, model)
        assert program.poll() is None, f"it ended: {program.communicate()[1][-2000:]}"
        program.send_signal(signal.SIGKILL)
        program.wait()
    return _stamp(model) != before


def _wait(rng: random.Random, program: Child, model: Path) -> None:
    """Some time after the start, after some saves, or in the middle of one."""
    how = rng.choice(["time", "saves", "saves", "within a save"])
    if how == "time":
        time.sleep(rng.uniform(0, 1.0))
        return
    for _ in range(rng.randint(1, 4)):
        before = _stamp(model)
        while program.poll() is None and _stamp(model) == before:
            time.sleep(0.001)
    if how == "within a save":
        until = time.monotonic() + 1.0
        while program.poll() is None and not list(model.parent.glob(".*.part")) and time.monotonic() < until:
            pass
    else:
        time.sleep(rng.uniform(0, 0.02))


def _stamp(path: Path) -> object:
    try:
        return path.stat().st_ino, path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _compared(kills: int, saved: int, folder: Path, path: Path, lines: list[str], ordered: bool) -> Outcome:
    """Compare the model with that of the same rows, learned without a break."""
    model, wrong = Model.load(path), []
    if model.rows != len(lines):
        wrong.append(f"{model.rows:,} rows learned of {len(lines):,}")
    own = [int(line.split()[-1].partition(":")[0]) - 1 for line in lines]
    weights = np.zeros(max(own) + 1)
    weights[: len(model.coef)] = model.coef[: len(weights)]
    if never := int(np.count_nonzero(weights[own] == 0)):
        wrong.append(f"{never:,} rows never learned")
    if ordered:
        plain = folder / "plain.svm"
        plain.write_text("".join(lines))
        expected = _expected(plain)
        if len(expected.coef) != len(model.coef) or (expected.coef != model.coef).any():
            wrong.append("other weights than without a break")
        if float(expected.progress.auc) != float(model.progress.auc):
            wrong.append("another AUC than without a break")
    return Outcome(kills, saved, len(lines), wrong)


def _expected(data: Path) -> Model:
    from rarestream import DualAveraging

    model = Model(DualAveraging(loss="logistic", l1=0.0))
    train(model, read(data, zero_based=False))
    return model


def _run_pipe(rng: random.Random, folder: Path, kills: int) -> Outcome:
    """Whoever writes to a pipe continues after the rows that the model file has: nobody else can know them."""
    model, lines, saved = folder / "m.rare", [], 0
    command = [*_program(), "-", "--follow", "-o", model, "--format", "svmlight", "--one-based", *LEARNER]
    made = Feed(rng, lines.extend)
    made.put(FIRST + 1000 * kills)
    for number in range(kills + 1):
        learned = Model.load(model).rows if model.exists() else 0
        before = _stamp(model)
        every = ["--save-every", rng.choice(["50ms", "20", "200"])]
        with Child([*command, *every], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as program:
            feeder = threading.Thread(target=_feed, args=(program, lines[learned:], number == kills))
            feeder.start()
            if number < kills:
                _wait_pipe(rng, program, model)
                program.send_signal(signal.SIGKILL)
                program.wait()
                saved += _stamp(model) != before
            feeder.join()
            program.wait()
    return _compared(kills, saved, folder, model, lines, True)


def _wait_pipe(rng: random.Random, program: Child, model: Path) -> None:
    if rng.random() < 0.5:
        time.sleep(rng.uniform(0, 1.0))
    else:
        before = _stamp(model)
        while program.poll() is None and _stamp(model) == before:
            time.sleep(0.001)


def _feed(program: Child, lines: list[str], whole: bool) -> None:
    """Write rows until the program is gone; slowly, and without an end, unless it is the last run."""
    assert program.stdin is not None
    try:
        for start in range(0, len(lines), PIECE):
            program.stdin.write("".join(lines[start : start + PIECE]))
            program.stdin.flush()
            if not whole:
                time.sleep(0.01)
        while not whole and program.poll() is None:
            time.sleep(0.01)
        program.stdin.close()
    except OSError:
        program.stdin = None  # it was killed, with what it had not read
