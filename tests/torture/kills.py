"""Training that is killed at random moments, and resumed until it is done: the file ends as if nothing had happened."""

from __future__ import annotations

import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from rarestream import Model, learner_names
from tests.children import Child
from tests.program import run

KILLS = 4  # in a row, at most
SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM]


def run_round(rng: random.Random, folder: Path) -> int:
    data, path = folder / "rows.svm", folder / "m.rare"
    write_rows(data, rng)
    flags = some_flags(rng)
    uninterrupted = folder / "uninterrupted.rare"
    done = run("train", data, "-o", uninterrupted, "--quiet", *flags)
    if done.exit_code == 3 and "this row" in done.stderr:
        return 0  # with rows that are not scaled, the steps of some learners grow without bound, which is refused
    assert done.exit_code == 0, (flags, done.stderr)
    saving = ["--save-every", str(rng.choice([100, 500])), "-P", "100", "--threads", str(rng.choice([0, 1]))]
    kills = 0
    for _ in range(rng.randint(1, KILLS)):
        with Child(command(data, path, flags) + saving) as program:
            wait_for_a_moment(rng, program, path)
            program.send_signal(rng.choice(SIGNALS))
            program.communicate()
        kills += program.returncode != 0
        check(path)
    with Child(command(data, path, flags) + saving) as program:
        told = program.communicate()
    assert program.returncode == 0, (flags, told)
    assert path.read_bytes() == uninterrupted.read_bytes(), f"{flags}, killed {kills} times: the file differs"
    left = sorted(part.name for part in folder.iterdir() if part.name.endswith(".part"))
    assert not left, f"left behind: {left}"
    return kills


def write_rows(path: Path, rng: random.Random) -> None:
    numbers = np.random.default_rng(rng.getrandbits(32))
    features = rng.choice([40, 3000])
    truth = numbers.normal(size=features)
    lines = []
    for _ in range(rng.choice([1000, 3000, 6000])):
        columns = np.unique(numbers.integers(0, features, 8))
        label = 1 if truth[columns].sum() + numbers.normal() > 2 else -1
        lines.append(f"{label} " + " ".join(f"{j + 1}:{numbers.choice([0.5, 1.0, 2.0])}" for j in columns))
    path.write_text("\n".join(lines) + "\n")


def some_flags(rng: random.Random) -> list[str]:
    flags = ["--learner", rng.choice(learner_names())]
    flags += ["--scale", rng.choice(["unit", "max", "none"]), "--dtype", rng.choice(["float32", "float64"])]
    if flags[1].startswith("dual-") and rng.random() < 0.3:
        flags += ["--budget", "30"]
    if flags[1] == "auto":
        flags += ["--set", f"rows={rng.choice([500, 16384])}"]
    if rng.random() < 0.3:
        flags += ["--shuffle", "5"]
    if rng.random() < 0.3:
        flags += ["--passes", "2"]
    return flags


def command(data: Path, path: Path, flags: list[str]) -> list[object]:
    how: list[object] = ["--resume", path] if path.exists() else ["-o", path, *flags]
    return [sys.executable, "-m", "rarestream", "train", data, *how]


def wait_for_a_moment(rng: random.Random, program: Child, path: Path) -> None:
    """Some time after the start, after some saves, or within one; or its end, if that comes first."""
    how = rng.choice(["time", "saves", "saves", "within a save", "within a save"])
    seconds = rng.uniform(0, 1.5) if how == "time" else rng.choice([0, 0, rng.uniform(0, 0.01)])
    if how == "saves":
        for _ in range(rng.randint(1, 8)):
            before = stamp(path)
            while program.poll() is None and stamp(path) == before:
                check(path)
                time.sleep(0.002)
    elif how == "within a save":
        while program.poll() is None and not list(path.parent.glob(f".*{program.pid}*.part")):
            pass
    time.sleep(seconds)
    check(path)


def stamp(path: Path) -> object:
    return (path.stat().st_ino, path.stat().st_mtime_ns) if path.exists() else None


def check(path: Path) -> None:
    """Whenever one looks, the model is absent or whole."""
    if path.exists():
        Model.load(path)
