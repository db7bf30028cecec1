"""How things are timed: turn and turn about in the same run, and the smallest of the rounds counts.

What runs on one core is pinned to it and reported in CPU seconds (children included): on an idle machine that is the
time on the clock, on a busy one it is what the clock would have said. What may use every core is reported by the clock.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

CORES = os.sched_getaffinity(0)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have their byte code

# A small process in between: a child's peak memory starts at that of the process that started it.
LAUNCHER = """
import json, resource, subprocess, sys
ended = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([ended.returncode, used.ru_maxrss * 1024, ended.stderr.decode(errors="replace")[-2000:]]))
"""


@dataclass(frozen=True)
class Cost:
    cpu: float
    wall: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.cpu + other.cpu, self.wall + other.wall)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(max(self.cpu - other.cpu, 1e-9), max(self.wall - other.wall, 1e-9))

    def __mul__(self, factor: float) -> Cost:
        return Cost(self.cpu * factor, self.wall * factor)


Contestant = Callable[[], Cost]


@contextmanager
def one_core() -> Iterator[None]:
    os.sched_setaffinity(0, {max(CORES)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, CORES)


def timed(prepare: Callable[[], Callable[[], Any]], *, cores: int = 1) -> Contestant:
    """Runs what `prepare` returns and times that alone. `cores` is 1, or more for all there are."""

    def contest() -> Cost:
        action = prepare()
        if cores > 1:
            return _clocked(action, _own)
        with one_core():
            return _clocked(action, _own)

    return contest


def touch(*arrays: Any) -> None:
    """Reads arrays through, untimed: nobody pays for what the one before pushed out of the caches."""
    for array in arrays:
        array.max()


def command(*words: str | os.PathLike[str], cores: int = 1, before: Callable[[], Any] = lambda: None) -> Contestant:
    """A program of its own, start-up and all."""

    def contest() -> Cost:
        before()
        if cores > 1:
            return _clocked(lambda: run(*words), _children)
        with one_core():
            return _clocked(lambda: run(*words), _children)

    return contest


def run(*words: str | os.PathLike[str]) -> None:
    ended = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if ended.returncode:
        raise SystemExit(f"bench: {' '.join(map(str, words))} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")


@cache
def rarestream_command() -> str | None:
    """The installed command of the package."""
    found = shutil.which("rarestream", path=str(Path(sys.executable).parent))
    works = found and subprocess.run([found, "train", "--help"], capture_output=True).returncode == 0
    return found if works else None


def peak_memory(*words: str | os.PathLike[str]) -> int:
    """The largest resident size of a program, in bytes."""
    given = [sys.executable, "-S", "-c", LAUNCHER, *map(str, words)]
    code, peak, said = json.loads(subprocess.run(given, capture_output=True, check=True).stdout)
    if code:
        raise SystemExit(f"bench: {' '.join(map(str, words))} ended with {code}:\n{said}")
    return int(peak)


def interleaved(contestants: Mapping[str, Contestant], rounds: int, seldom: Sequence[str] = ()) -> dict[str, Cost]:
    """The smallest cost of each over the rounds; those named in `seldom` are slow and sit out after the second.

    Every round has an order of its own: who comes after whom matters to caches and to the memory allocator.
    """
    best: dict[str, Cost] = {}
    for turn in range(rounds):
        for name, contest in random.Random(turn).sample(list(contestants.items()), len(contestants)):
            if turn >= 2 and name in seldom:
                continue
            cost = contest()
            past = best.get(name, cost)
            best[name] = Cost(min(cost.cpu, past.cpu), min(cost.wall, past.wall))
    return {name: best[name] for name in contestants}


def _own() -> float:
    return time.process_time()


def _children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _clocked(action: Callable[[], Any], cpu: Callable[[], float]) -> Cost:
    before, start = cpu(), time.perf_counter()
    action()
    end, after = time.perf_counter(), cpu()
    return Cost(after - before, end - start)
