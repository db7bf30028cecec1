"""Work done on threads a few items ahead of whoever wants the results, which come in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from rarestream.readers.sources import StoppedError

Result = TypeVar("Result")

WAITING = 2  # results that may lie ready beyond one for each thread


class Ahead(Generic[Result]):
    """Iterates over the results of tasks, in the order the tasks were taken.

    `take(buffer)` gives the next task or None, one thread at a time; tasks may run in several at once. Each
    thread owns one buffer, so a task may borrow from it until it is done. An exception comes out where its
    result would have. `stop()` must make a `take` that waits give up.
    """

    def __init__(
        self,
        take: Callable[[bytearray], Callable[[], Result] | None],
        stop: Callable[[], None],
        threads: int,
    ) -> None:
        self._take = take
        self._stop = stop
        self._turn = threading.Lock()  # whose turn it is to take
        self._room = threading.Semaphore(threads + WAITING)
        self._ready = threading.Condition()
        self._results: dict[int, Result | BaseException | None] = {}  # None: there are no more
        self._taken = 0
        self._over = False
        self._threads = [
            threading.Thread(target=self._run, name=f"rarestream-reader-{i}", daemon=True) for i in range(threads)
        ]

    def __iter__(self) -> Iterator[Result]:
        for thread in self._threads:
            thread.start()
        try:
            number = 0
            while True:
                with self._ready:
                    while number not in self._results:
                        self._ready.wait()
                    result = self._results.pop(number)
                if isinstance(result, BaseException):
                    raise result
                if result is None:
                    return
                self._room.release()
                number += 1
                yield result
        finally:
            self._over = True
            self._stop()
            self._room.release(len(self._threads))
            for thread in self._threads:
                thread.join()

    def _run(self) -> None:
        buffer = bytearray()
        try:
            while self._one(buffer):
                pass
        finally:
            self._room.release()  # passes the word on to a thread that waits for room

    def _one(self, buffer: bytearray) -> bool:
        """Takes a task and does it; whether there may be more."""
        self._room.acquire()
        outcome: Result | BaseException | None = None
        with self._turn:
            if self._over:
                return False
            number, self._taken = self._taken, self._taken + 1
            try:
                task = self._take(buffer)
            except StoppedError:
                return False
            except BaseException as error:
                task, outcome = None, error
            if task is None:
                self._over = True  # never back to False: whoever leaves early says so from another thread
        if task is not None:
            try:
                outcome = task()
            except BaseException as error:
                outcome = error
        with self._ready:
            self._results[number] = outcome
            self._ready.notify_all()
        return task is not None
