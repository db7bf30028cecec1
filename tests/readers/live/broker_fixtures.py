"""Fixtures for tests with brokers: a plugin of pytest, which `pytest_plugins` names in the tests that need one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rarestream.readers.live.addresses import open_broker
from rarestream.readers.live.lines import LineSource
from tests.readers.live.brokers import Kafka, Redis, require_redis


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """A Redis for all tests that leave it as it is."""
    require_redis()
    server = Redis(tmp_path_factory.mktemp("redis"), several_tests=True)
    try:
        yield server
    finally:
        server.child.end()


@pytest.fixture
def new_redis(tmp_path: Path) -> Callable[..., Redis]:
    """Starts a Redis for one test."""
    require_redis()
    return lambda *words, **options: Redis(tmp_path, *words, **options)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """A broker for all tests that leave it as it is."""
    broker = Kafka(several_tests=True)
    try:
        yield broker
    finally:
        broker.child.end()


@pytest.fixture
def new_kafka() -> Callable[[], Kafka]:
    """Starts a broker for one test."""
    return Kafka


@pytest.fixture
def opened() -> Iterator[Callable[..., LineSource]]:
    """Opens sources, at a position, and closes them after the test; with `begins`, they first tell where they start."""
    sources: list[Any] = []

    def open_source(
        address: str, position: dict[str, Any] | None = None, lost: bool = False, begins: bool = False
    ) -> LineSource:
        sources.append(open_broker(address, lost))
        sources[-1].start(position or {})
        sources[-1]._begins &= begins
        return sources[-1]

    yield open_source
    for source in sources:
        source.close()
