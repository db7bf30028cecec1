"""Rows of 20 fields from brokers on this machine: Redis Streams, and the mock broker of librdkafka.

    python benchmarks/live.py [--rows 300000] [--rounds 3]

All rows wait in the broker when reading starts. The broker, the client and the learner share the cores of this
machine. Timed by the clock, from the start to the last row: the source alone; the source followed and learned, as
`train --follow` does it; and for comparison the same lines in memory, parsed, and parsed and learned. The mock broker
keeps 5 MB of each partition, so its topic has many.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import named
from rarestream import Model, follow, read
from rarestream.evaluate import train
from rarestream.readers.live.addresses import open_broker

OURS = "dual-auc"
TO_MODEL = "to a model"
MOCK_BROKER = Path(__file__).parents[1] / "tests" / "readers" / "live" / "kafka_broker.py"
KEPT = 4 << 20  # bytes of a partition; a little less than the mock broker keeps


def rows_of(count: int) -> tuple[list[list[bytes]], list[bytes]]:
    """The click log of `named`: the fields and texts of each row, and its JSON object."""
    columns = {name: [str(cell) for cell in cells] for name, cells in named.table(count).items()}
    names = list(columns)
    flat, objects = [], []
    for cells in zip(*columns.values(), strict=True):
        flat.append([part.encode() for pair in zip(names, cells, strict=True) for part in pair])
        row = {"clicked": int(cells[0]), **dict(zip(names[1:], cells[1:], strict=True))}
        objects.append(json.dumps(row, separators=(",", ":")).encode())
    return flat, objects


@contextlib.contextmanager
def redis_server() -> Iterator[int]:
    """A Redis on a free port, without a disk."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([*words, "--dir", folder], stdout=subprocess.DEVNULL)
        try:
            yield port
        finally:
            server.terminate()
            server.wait()


def fill_redis(port: int, flat: list[list[bytes]], objects: list[bytes]) -> None:
    import redis
    from redis.backoff import ConstantBackoff
    from redis.retry import Retry

    with redis.Redis(port=port, retry=Retry(ConstantBackoff(0.1), 100)) as client:
        for start in range(0, len(flat), 1000):
            with client.pipeline(transaction=False) as sending:
                for row, line in zip(flat[start : start + 1000], objects[start : start + 1000], strict=True):
                    sending.execute_command("XADD", "flat", "*", *row)
                    sending.execute_command("XADD", "json", "*", "row", line)
                sending.execute()


@contextlib.contextmanager
def kafka_broker(partitions: int) -> Iterator[str]:
    """The mock broker with a topic; returns its host and port."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, MOCK_BROKER], text=True, **pipes) as broker:
        assert broker.stdin is not None and broker.stdout is not None
        host = broker.stdout.readline().strip()
        broker.stdin.write(f"create clicks {partitions}\n")
        broker.stdin.flush()
        broker.stdout.readline()
        yield host
        broker.kill()


def fill_kafka(host: str, partitions: int, objects: list[bytes]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": host, "queue.buffering.max.messages": 2_000_000, "linger.ms": 50})
    for number, line in enumerate(objects):
        producer.produce("clicks", line, partition=number % partitions)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def read_all(address: str, rows: int) -> float:
    """Return the rows per second of a source, from its start to its last row."""
    source = open_broker(address)
    start = time.perf_counter()
    source.start({})
    left = rows
    while left:
        lines = source.take(60.0)
        assert lines is not None, f"{left} rows did not come; {source.notes}"
        left -= lines.text.count(b"\n")
    seconds = time.perf_counter() - start
    source.close()
    return rows / seconds


def learn_all(address: str, rows: int) -> float:
    """Return the rows per second of a source that is followed and learned."""
    model = Model(OURS)
    start = time.perf_counter()
    train(model, follow(address, label="clicked", positive="1"), max_rows=rows)
    seconds = time.perf_counter() - start
    assert model.rows == rows
    return rows / seconds


def in_memory(text: bytes, rows: int, learn: bool) -> float:
    """Return the rows per second of the same lines without a broker."""
    start = time.perf_counter()
    model = Model(OURS)
    for block in read(io.BytesIO(text), "jsonl", label="clicked", positive="1"):
        if learn:
            model.learn(block)
    return rows / (time.perf_counter() - start)


def measure(rows: int, rounds: int) -> dict[str, float]:
    """Return the rows per second of each way, the best of some rounds; Redis only where its server is installed."""
    flat, objects = rows_of(rows)
    text = b"\n".join(objects) + b"\n"
    partitions = len(text) // KEPT + 1
    ways: dict[str, Callable[[], float]] = {
        "jsonl in memory, parsed": lambda: in_memory(text, rows, False),
        "jsonl in memory, parsed and learned": lambda: in_memory(text, rows, True),
    }
    addresses: dict[str, str] = {}
    with contextlib.ExitStack() as brokers:
        if shutil.which("redis-server"):
            port = brokers.enter_context(redis_server())
            fill_redis(port, flat, objects)
            addresses["redis, a field of JSON"] = f"redis://127.0.0.1:{port}/0/json?field=row"
            addresses["redis, 20 fields"] = f"redis://127.0.0.1:{port}/0/flat"
        host = brokers.enter_context(kafka_broker(partitions))
        fill_kafka(host, partitions, objects)
        del flat, objects  # millions of objects, which the garbage collector would visit again and again
        addresses["kafka (mock), JSON"] = f"kafka://{host}/clicks"
        for name, address in addresses.items():
            ways[f"{name}, read"] = partial(read_all, address, rows)
            ways[f"{name}, {TO_MODEL}"] = partial(learn_all, address, rows)
        found: dict[str, float] = {}
        for _ in range(rounds):
            for name, way in ways.items():
                found[name] = max(found.get(name, 0.0), way())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for name, speed in measure(given.rows, given.rounds).items():
        print(f"{name:<40}{speed:>12,.0f} rows/s")


if __name__ == "__main__":
    main()
