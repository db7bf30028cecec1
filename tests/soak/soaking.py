"""Full load on a service, and samples of what its process holds."""

from __future__ import annotations

import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rarestream import Model, read
from tests.children import Child

WARM_UP = 0.25  # share of the time
SAMPLES = 400  # of memory, at most
SITES, ADS = 200, 50


class Soaked(NamedTuple):
    """What a service went through. Pairs are of the first and of the last quarter after the warm-up: lower quartiles.

    For half of the time there is a shadow, which takes memory of its own. So the median may be with or without one.
    """

    requests: int
    rows_learned: int
    rows_scored: int
    labels: int
    messages: int
    shadows: int
    before: float  # bytes of memory
    after: float
    files: tuple[float, float]
    threads: tuple[float, float]
    wrong: list[str]

    @property
    def growth(self) -> float:
        """Of memory, after the warm-up."""
        return self.after / self.before - 1


class Sample(NamedTuple):
    memory: int
    files: int
    threads: int


class Clients:
    """Threads that ask for all they can get."""

    def __init__(self, port: int, rng: random.Random, model: bytes) -> None:
        self.port, self.model = port, model
        self.over = threading.Event()
        self.counts = {"requests": 0, "learned": 0, "scored": 0, "labels": 0, "messages": 0, "shadows": 0}
        self.wrong: list[str] = []
        self._lock = threading.Lock()
        rows = [_row(rng) for _ in range(5000)]
        self._learn = [_learn_body(rng, rows, count) for count in (1, 10, 200, 1000) for _ in range(10)]
        self._predict = [_predict_body(rng, rows, count) for count in (1, 1, 1, 20, 1000) for _ in range(10)]
        self._rows = [json.dumps(row) for row in rows]
        work = [self._learning, self._learning, self._predicting, self._predicting, self._labelling, self._watching]
        self._threads = [
            threading.Thread(target=self._run, args=(one, random.Random(rng.random())), daemon=True)
            for one in [*work, self._page]
        ]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, work: Callable[[http.client.HTTPConnection, random.Random], None], rng: random.Random) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            while not self.over.is_set():
                work(connection, rng)
        except Exception as error:
            self.wrong.append(f"{work.__name__}: {error!r}")
        finally:
            connection.close()

    def _count(self, **numbers: int) -> None:
        with self._lock:
            for name, number in numbers.items():
                self.counts[name] += number

    def _ask(self, connection: http.client.HTTPConnection, method: str, path: str, body: object = None) -> int:
        kind = "application/octet-stream" if path.startswith("/shadow") else "application/json"
        connection.request(method, path, body, {"Content-Type": kind})  # type: ignore[arg-type]
        response = connection.getresponse()
        text = response.read()
        if response.status >= 400 and response.status not in (404, 409, 429):
            self.wrong.append(f"{method} {path}: {response.status} {text[:200]!r}")
        self._count(requests=1)
        return response.status

    def _learning(self, connection: http.client.HTTPConnection, rng: random.Random) -> None:
        count, body = rng.choice(self._learn)
        if self._ask(connection, "POST", "/learn", body) == 200:
            self._count(learned=count)
        else:
            time.sleep(0.05)  # 429

    def _predicting(self, connection: http.client.HTTPConnection, rng: random.Random) -> None:
        count, body = rng.choice(self._predict)
        if self._ask(connection, "POST", "/predict", body) == 200:
            self._count(scored=count)

    def _labelling(self, connection: http.client.HTTPConnection, rng: random.Random) -> None:
        """Store rows, and label most of them."""
        names = [f"{rng.getrandbits(80):x}" for _ in range(20)]
        rows = ",".join(rng.choice(self._rows) for _ in names)
        if self._ask(connection, "POST", "/predict", f'{{"ids":{json.dumps(names)},"rows":[{rows}]}}') == 200:
            self._count(scored=len(names))
        labels = [{"id": name, "label": int(rng.random() < 0.1)} for name in names[:15]]
        if self._ask(connection, "POST", "/label", json.dumps({"labels": labels})) == 200:
            self._count(labels=len(labels))

    def _watching(self, connection: http.client.HTTPConnection, rng: random.Random) -> None:
        """What is asked now and then, and a shadow for half of the time."""
        for path in ("/metrics", "/model", "/statistics"):
            self._ask(connection, "GET", path)
        if rng.random() < 0.2:
            if self._ask(connection, "POST", "/shadow?promote=manual&positives=100", self.model) == 201:
                self._count(shadows=1)
        elif rng.random() < 0.2:
            self._ask(connection, "DELETE", "/shadow")
        self.over.wait(0.5)

    def _page(self, connection: http.client.HTTPConnection, rng: random.Random) -> None:
        """A live page that is open for some seconds, then reloaded."""
        connection.close()
        connection.request("GET", "/events")
        response = connection.getresponse()
        for _ in range(10):
            if self.over.is_set():
                break
            while response.readline().strip():
                pass
            self._count(messages=1)
        connection.close()


def soak(
    folder: Path, seconds: float, rng: random.Random, say: Callable[[str], object], rows_before: int = 5000
) -> Soaked:
    """Serve at full load for so long, a model that has learned so many rows, of which each had one of 5000 forms.

    The scores behind the progressive AUC grow with the logarithm of the number of rows, without end: by a megabyte or
    two from the first million rows to the twentieth. A service that has run for days has them.
    """
    model = Model("dual-auc")
    blocks = list(read([_row(rng) | {"y": int(rng.random() < 0.1)} for _ in range(5000)], label="y", bits=16))
    shadow = b""
    while model.rows < rows_before:
        for block in blocks:
            model.learn(block)
        shadow = shadow or model.to_bytes()
    model.save(folder / "m.rare")
    command = [sys.executable, "-m", "rarestream", "serve", folder / "m.rare", "--dir", folder / "state", "--port", "0"]
    rules = ["--label-wait", "1s", "--unlabelled", "negative", "--snapshot-every", "15s", "--keep-log", "20M"]
    with Child([*command, *rules], limit=seconds + 300, stderr=subprocess.DEVNULL) as program:
        line = program.line()
        assert "serves on" in line, line
        samples: list[Sample] = []
        with Clients(int(line.rsplit(":", 1)[1]), rng, shadow) as clients:
            begun = said = time.monotonic()
            while (now := time.monotonic()) < begun + seconds and program.poll() is None and not clients.wrong:
                if now >= begun + WARM_UP * seconds:
                    samples.append(_sample(program.pid))
                if now >= said + 30:
                    said = now
                    say(f"{now - begun:5.0f} s: {_sample(program.pid).memory / 1e6:.1f} MB, {clients.counts}")
                time.sleep(seconds / SAMPLES)
            if program.poll() is not None:
                clients.wrong.append(f"the service ended with {program.returncode}")
        program.terminate()
        program.wait()
    quarter = max(1, len(samples) // 4)

    def quartiles(number: int) -> tuple[float, float]:
        values = [sample[number] for sample in samples] or [1]
        return lower_quartile(values[:quarter]), lower_quartile(values[-quarter:])

    counts = clients.counts
    return Soaked(
        counts["requests"],
        counts["learned"],
        counts["scored"],
        counts["labels"],
        counts["messages"],
        counts["shadows"],
        *quartiles(0),
        quartiles(1),
        quartiles(2),
        clients.wrong,
    )


def _sample(process: int) -> Sample:
    with open(f"/proc/{process}/status") as file:
        found = dict(line.split(":", 1) for line in file)
    memory = int(found["VmRSS"].split()[0]) * 1024
    return Sample(memory, len(os.listdir(f"/proc/{process}/fd")), int(found["Threads"]))


def _row(rng: random.Random) -> dict[str, object]:
    shared = {f"f{number}": rng.randrange(20) for number in rng.sample(range(40), 10)}
    return {"site": f"s{rng.randrange(SITES)}", "ad": f"a{rng.randrange(ADS)}", "price": rng.randrange(100), **shared}


def _learn_body(rng: random.Random, rows: list[dict[str, object]], count: int) -> tuple[int, str]:
    chosen = rng.choices(rows, k=count)
    return count, json.dumps({"rows": chosen, "labels": [int(rng.random() < 0.1) for _ in chosen]})


def _predict_body(rng: random.Random, rows: list[dict[str, object]], count: int) -> tuple[int, str]:
    chosen = rng.choices(rows, k=count)
    return count, json.dumps({"rows": chosen} if count > 1 else {"row": chosen[0]})


def lower_quartile(values: list[int]) -> float:
    return float(sorted(values)[len(values) // 4])
