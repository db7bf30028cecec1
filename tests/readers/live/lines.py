"""Rows for the tests of live sources, and a way to collect what a stream yields."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rarestream.readers.live.opening import open_live
from rarestream.readers.live.stream import LiveStream


def rows(start: int, stop: int) -> list[str]:
    """svmlight lines; the first column of row i is i + 1, so that every row is recognised."""
    return [f"{1 if i % 7 == 0 else -1} {i + 1}:1 {1_000_000 + i % 5}:0.5\n" for i in range(start, stop)]


def numbers(blocks: list[Any]) -> list[int]:
    """Which rows some blocks have, in order."""
    found: list[int] = []
    for block in blocks:
        if len(block):
            found += np.asarray(block.indices)[block.indptr[:-1]].tolist()
    return found


def follow(source: Any, **more: Any) -> LiveStream:
    """A stream that ends soon after the last row."""
    return open_live(source, **{"idle": 0.6, "zero_based": False, "format": "svmlight", **more})


def collect(stream: LiveStream) -> list[int]:
    return numbers(list(stream))


class Beside:
    """Runs a function in a thread beside a `with` block, and waits for its end."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._thread = threading.Thread(target=function)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join()


def soon(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until a condition holds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.005)


def blocks(stream: LiveStream) -> Iterator[Any]:
    for block in stream:
        if len(block):
            yield block
