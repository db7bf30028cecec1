"""Runs tasks on threads, a few ahead of the consumer, and yields their results in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from rarestream.readers.sources import StoppedError

Result = TypeVar("Result")

WAITING = 2  # finished results that may wait for the consumer, beyond one for each thread


class Prefetch(Generic[Result]):
    """Iterates over the results of tasks, in the order in which the tasks were taken.

    Each thread owns one buffer, so a task may use memory of that buffer until it is done. An exception is raised where
    the result of its task would have come.

    Parameters
    ----------
    take : callable
        `take(buffer)` returns the next task, or None after the last. It is called by one thread at a time; tasks may
        run in several threads at once.
    stop : callable
        Called when the consumer leaves. It must end a `take` that waits, with `StoppedError`.
    threads : int, >= 1
        Number of threads.
    """

    def __init__(
        self,
        take: Callable[[bytearray], Callable[[], Result] | None],
        stop: Callable[[], None],
        threads: int,
    ) -> None:
        self._take = take
        self._stop = stop
        self._take_lock = threading.Lock()
        self._slots = threading.Semaphore(threads + WAITING)  # limits how far ahead of the consumer threads run
        self._ready = threading.Condition()
        self._results: dict[int, Result | BaseException | None] = {}  # by number of the task; None ends the iteration
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
                self._slots.release()
                number += 1
                yield result
        finally:
            self._over = True
            self._stop()
            self._slots.release(len(self._threads))
            for thread in self._threads:
                thread.join()

    def _run(self) -> None:
        buffer = bytearray()
        try:
            while self._run_task(buffer):
                pass
        finally:
            self._slots.release()  # wakes another thread that waits for a slot, so that it ends too

    def _run_task(self, buffer: bytearray) -> bool:
        """Take a task and run it. Return whether there may be more."""
        self._slots.acquire()
        outcome: Result | BaseException | None = None
        with self._take_lock:
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
                self._over = True  # never set back to False: a consumer that leaves sets it from another thread
        if task is not None:
            try:
                outcome = task()
            except BaseException as error:
                outcome = error
        with self._ready:
            self._results[number] = outcome
            self._ready.notify_all()
        return task is not None
