"""Starts the service, lets clients at it, kills it, and compares what is left with what they were told."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rarestream import FtrlAuc, Model, read
from rarestream.serve.log import StateLock
from rarestream.serve.recovery import snapshots_of
from tests.children import Child
from tests.serve_kills.checks import Replayed
from tests.serve_kills.load import Load

CLIENTS = 3
PATIENCE = 60.0  # seconds for a start, or for what was killed to be gone


class Outcome(NamedTuple):
    """What a service went through."""

    kills: int
    moments: dict[str, int]  # kills by when
    acknowledged: int  # requests
    entries: int
    version: int  # of the model in the end: one more than swaps
    compared: int  # answers, scores and models
    snapshots: int  # snapshots from which the log was replayed
    wrong: list[str]


def named(rng: random.Random) -> Model:
    """A model of named features."""
    model = Model(FtrlAuc(), dtype=rng.choice(["float32", "float64"]))
    rows = [{"site": f"s{rng.randrange(40)}", "ad": f"a{rng.randrange(12)}", "n": 1.0} for _ in range(200)]
    for block in read([row | {"y": int(rng.random() < 0.2)} for row in rows], label="y", bits=10):
        model.learn(block)
    return model


def columns(rng: random.Random) -> Model:
    """A model of column numbers."""
    return Model("dual-logistic", scale="max")


def racing(rng: random.Random) -> Model:
    """A model that begins as a race of settings, which ends on the way."""
    return Model("auto")


MODELS: dict[str, Callable[[random.Random], Model]] = {"named": named, "columns": columns, "racing": racing}


def run_model(name: str, rng: random.Random, folder: Path, kills: int) -> Outcome:
    """Serve a model, be killed so often, and compare each time."""
    model, state = folder / "m.rare", folder / "state"
    MODELS[name](rng).save(model)
    shadows = [MODELS[name](random.Random(number)).to_bytes() for number in range(3)]
    moments: dict[str, int] = {}
    replayed: Replayed | None = None
    with Load(rng, name != "named", shadows, CLIENTS) as load:
        for _ in range(kills):
            moment = rng.choice(MOMENTS) if replayed is not None else "load"
            program = _started(rng, model, state)
            try:
                if moment == "start":
                    time.sleep(rng.uniform(0, 1.0))
                    program.send_signal(signal.SIGKILL)
                else:
                    port = _port(program)
                    if replayed is None:
                        replayed = Replayed(state, snapshots_of(state).load(0))
                    load.open(port)
                    _kill(rng, moment, program, state, load)
                program.wait()
                load.close()
                moments[moment] = moments.get(moment, 0) + 1
                if rng.random() < 0.5 or moment == "stop":
                    _gone(program, replayed)
                replayed.check(load.take())
            finally:
                program.end()
            if replayed.wrong:
                break
    assert replayed is not None
    replayed.check_from_scratch()
    with StateLock(state):
        pass
    return Outcome(
        sum(moments.values()),
        moments,
        load.acknowledged,
        replayed.state.sequence,
        replayed.state.version,
        replayed.compared,
        replayed.snapshots,
        replayed.wrong,
    )


MOMENTS = ["load", "load", "load", "start", "snapshot", "snapshot", "snapshot process", "stop", "while it stops"]


def _started(rng: random.Random, model: Path, state: Path) -> Child:
    rules = ["--label-wait", rng.choice(["200ms", "1s", "3s"]), "--unlabelled", rng.choice(["drop", "negative"])]
    if rng.random() < 0.5:
        rules = ["--window", rng.choice(["100", "1000"])]
    server = [sys.executable, "-m", "tests.serve_kills.server", "serve"]
    kept = [
        "--keep-log",
        "all",
        "--snapshot-every",
        rng.choice(["500ms", "2s"]),
        "--queue",
        rng.choice(["300", "10000"]),
    ]
    return Child([*server, model, "--dir", state, "--port", "0", *kept, *rules], stderr=subprocess.STDOUT)


def _port(program: Child) -> int:
    """Wait for the service to be ready."""
    for line in program.lines():
        if line.startswith("rarestream serves on"):
            threading.Thread(target=_drain, args=(program,), daemon=True).start()
            return int(line.rsplit(":", 1)[1])
    raise AssertionError(f"the service did not start: {program.seen[-3000:]}")


def _drain(program: Child) -> None:
    try:
        for _ in program.lines():
            pass
    except (ValueError, AssertionError):
        pass  # it was closed


def _kill(rng: random.Random, moment: str, program: Child, state: Path, load: Load) -> None:
    """Kill the service at some moment under load."""
    before = load.acknowledged
    time.sleep(rng.uniform(0, 1.2))
    until = time.monotonic() + PATIENCE
    if moment == "load":
        while load.acknowledged < before + rng.randrange(30) and program.poll() is None and time.monotonic() < until:
            pass
    if moment == "snapshot":  # while a snapshot is being written, or replaces one
        until = time.monotonic() + 3
        while not _unfinished(state) and time.monotonic() < until:
            time.sleep(0.0005)
        time.sleep(rng.choice([0, 0.001, 0.01, 0.1]))
    if moment == "snapshot process":
        until = time.monotonic() + 3
        while not (others := _others(program)) and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.4))
        for process in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(rng.uniform(0, 0.5))
    assert program.poll() is None, f"the service ended: {program.seen[-3000:]}"
    if moment in ("stop", "while it stops"):
        program.send_signal(signal.SIGTERM)
        if moment == "stop":
            program.wait()
            assert program.returncode == 0, f"it ended with {program.returncode}: {program.seen[-3000:]}"
            return
        time.sleep(rng.uniform(0, 0.3))
    program.send_signal(signal.SIGKILL)


def _unfinished(state: Path) -> bool:
    try:
        return any(name.startswith(".") for name in os.listdir(state / "snapshots"))
    except FileNotFoundError:
        return False


def _others(program: Child) -> list[int]:
    """Processes that the service has started: they are of its group."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != program.pid:
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == program.pid and fields[0] != "Z":
                found.append(int(name))
    return found


def _gone(program: Child, replayed: Replayed) -> None:
    """Wait until nothing of the service runs."""
    until = time.monotonic() + PATIENCE
    while others := _others(program):
        if time.monotonic() > until:
            replayed.say(f"processes {others} of the service have outlived it")
            return
        time.sleep(0.01)
