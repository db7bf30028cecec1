"""The real service, as a program of its own that tests can kill and start again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from rarestream import Model
from rarestream.client import Client
from tests.children import Child
from tests.readers.live.brokers import free_port


def row(number: int) -> dict[str, Any]:
    return {"site": f"s{number % 7}.com", "price": number % 13 / 4, "user": f"u{number % 101}"}


def label(number: int) -> int:
    return int(number % 7 < 2 and number % 3 > 0)


def small_model(rows: int = 500) -> Model:
    model = Model()
    for number in range(rows):
        model.learn_one(row(number), label(number))
    return model


class Served:
    """`rarestream serve` on 127.0.0.1, always on the same port."""

    def __init__(self, folder: Path, *options: object) -> None:
        self.folder, self.options = folder, options
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.file = folder / "model.rare"
        small_model().save(self.file)
        self.child: Child | None = None
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "rarestream", "serve", self.file, "--dir", self.folder / "state"]
        self.child = Child(
            [*command, "--port", self.port, *self.options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        assert self.child is not None
        self.child.end()

    def client(self, **options: Any) -> Client:
        client = Client(self.address, **options)
        assert client.ready(wait=60.0)
        return client
