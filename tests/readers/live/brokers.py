"""Brokers on 127.0.0.1, started for tests: a real Redis, and the mock broker of librdkafka."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rarestream.readers.live.lines import JoinedLines, Lines, LineSource
from tests.children import Child

HOME = Path(__file__).parents[3]
ENOUGH = 60.0  # seconds: far beyond what anything here needs, it ends a wait that would never end


class Redis:
    """A Redis of its own, without a disk."""

    def __init__(self, folder: Path, *words: object, several_tests: bool = False, port: int = 0) -> None:
        self.port = port or free_port()
        self.socket = folder / "redis.sock"
        command = [shutil.which("redis-server") or "redis-server", "--bind", "127.0.0.1", "--port", self.port]
        command += [
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            folder,
            "--unixsocket",
            self.socket,
            "--loglevel",
            "warning",
        ]
        # Without the sanitizers that the tests may run under.
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self.child = Child(
            [*command, *words], several_tests=several_tests, stdout=subprocess.DEVNULL, stderr=None, env=environment
        )

    def client(self, **options: Any) -> Any:
        import redis

        found = redis.Redis(port=self.port, **options)
        self.child.until(lambda: answers(found))
        return found

    def address(self, stream: str, options: str = "") -> str:
        return f"redis://127.0.0.1:{self.port}/0/{stream}?{options}".rstrip("?")


class Kafka:
    """A mock broker in a process of its own."""

    def __init__(self, several_tests: bool = False) -> None:
        self.child = Child(
            [sys.executable, "-m", "tests.readers.live.kafka_broker"],
            several_tests=several_tests,
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=HOME,
        )
        self.host = self.child.line().strip()

    def tell(self, *words: object) -> None:
        self.child.stdin.write(" ".join(map(str, words)) + "\n")
        self.child.stdin.flush()
        assert self.child.line() == "0\n"

    def address(self, topic: str, options: str = "") -> str:
        return f"kafka://{self.host}/{topic}?{options}".rstrip("?")

    def write(self, topic: str, rows: Sequence[tuple[int, bytes | None]]) -> None:
        """Writes messages, each to its partition."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.host, "linger.ms": 0})
        failed: list[Any] = []
        for partition, row in rows:
            producer.produce(
                topic, row, partition=partition, on_delivery=lambda error, _: failed.append(error) if error else None
            )
            producer.poll(0)
        assert producer.flush(ENOUGH) == 0
        assert failed == []


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def answers(client: Any) -> bool:
    import redis

    try:
        return bool(client.ping())
    except redis.AuthenticationError:
        return True
    except redis.RedisError:
        return False


def require_redis() -> None:
    if shutil.which("redis-server") is None and "CI" not in os.environ:
        pytest.skip("redis-server is not installed: on Debian and Ubuntu, apt-get install redis-server")


def take(source: LineSource, count: int) -> tuple[list[bytes], list[Lines]]:
    """The next rows, at least so many, and the Lines that they came in."""
    rows: list[bytes] = []
    parts = []
    end = time.monotonic() + ENOUGH
    while len(rows) < count:
        assert time.monotonic() < end, f"{len(rows)} of {count} rows; {source.notes}"
        lines = source.take(1.0)
        if lines is not None:
            parts.append(lines)
            rows += lines.text.split(b"\n")[:-1]
    return rows, parts


def take_joined(source: LineSource, count: int) -> tuple[list[bytes], Lines]:
    """The next rows, at least so many, and their lines."""
    rows, parts = take(source, count)
    return rows, JoinedLines(parts)


def until_note(source: LineSource, word: str) -> str:
    """Takes, and expects no rows, until there is a note with a word."""
    end = time.monotonic() + ENOUGH
    while not any(word in note for note in source.notes):
        assert time.monotonic() < end, source.notes
        assert source.take(0.1) is None
    return next(note for note in source.notes if word in note)
