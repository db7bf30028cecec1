"""The service as people run it: `rarestream serve` in a process of its own, on 127.0.0.1 and a free port."""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.children import Child, run
from tests.serve.http.serving import Answer

RARESTREAM = [sys.executable, "-m", "rarestream"]
LIMIT = 60.0  # seconds; ends a wait that would never end


def named_rows(count: int = 300, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of named values with a label, 1 or 0, that depends on them."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        site, price = int(generator.integers(20)), round(float(generator.lognormal()), 3)
        label = int(generator.random() < (0.5 if site < 4 else 0.1))
        found.append({"label": label, "site": f"s{site}.com", "price": price, "new": bool(generator.integers(2))})
    return found


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def named_model(folder: Path, *words: object) -> Path:
    """The file of a model of named values that has learned a few hundred rows; `words` are more options of train."""
    rows = write_rows(folder / "rows.jsonl", named_rows())
    path = folder / "model.rare"
    run([*RARESTREAM, "train", rows, "--label", "label", "--learner", "ftrl-auc", *words, "-o", path], check=True)
    return path


class Program:
    """A service that runs."""

    def __init__(self, child: Child, address: str) -> None:
        self.child, self.address = child, address
        self.port = int(address.rsplit(":", 1)[1]) if address.startswith("http") else 0

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def workers(self) -> list[int]:
        """Its child processes. For Linux."""
        tasks = Path(f"/proc/{self.child.pid}/task").glob("*/children")
        return sorted(int(word) for task in tasks for word in task.read_text().split())


@contextmanager
def serving(*words: object, limit: float = LIMIT, **options: Any) -> Iterator[Program]:
    """`rarestream serve` with some words, once it says that it listens; at the end it is asked to stop, and must."""
    command = [*RARESTREAM, "serve", *words, *([] if "--socket" in words else ["--port", 0])]
    with Child(command, limit=limit, **options) as child:
        said = child.line()
        assert said.startswith("rarestream serves on "), said + child.communicate()[1]
        yield Program(child, said.split()[3])
        if child.poll() is None:
            child.terminate()
            child.communicate()
            assert child.returncode == 0, child.seen


def until(condition: Any, limit: float = LIMIT) -> Any:
    """Waits for something that happens elsewhere; returns what it is."""
    end = time.monotonic() + limit
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


def alive(number: int) -> bool:
    """Whether a process runs, and has not ended unnoticed. For Linux."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more}
