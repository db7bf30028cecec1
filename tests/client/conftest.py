from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rarestream.client import AsyncClient, Client


class Awaited:
    """An object with methods to await, for a test that waits: they run in a loop of a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thing: Any) -> None:
        self._loop, self._thing = loop, thing

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._thing, name)
        if not callable(found):
            return found

        def call(*words: Any, **options: Any) -> Any:
            async def run() -> Any:
                result = found(*words, **options)
                if asyncio.iscoroutine(result):
                    return await result
                return Awaited(self._loop, result)

            return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

        return call

    def __enter__(self) -> Awaited:
        self._run(self._thing.__aenter__())
        return self

    def __exit__(self, *error: Any) -> None:
        self._run(self._thing.__aexit__(*error))

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture(params=["Client", "AsyncClient"])
def connect(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> Iterator[Any]:
    """Makes clients of each kind, with the same methods, that hardly pause between attempts."""
    made: list[Any] = []

    def make(address: str, **options: Any) -> Any:
        options = {"pause": 0.001, **options}
        if request.param == "Client":
            made.append(Client(address, **options))
        else:
            made.append(Awaited(loop, AsyncClient(address, **options)))
        return made[-1]

    yield make
    for client in made:
        client.close()
