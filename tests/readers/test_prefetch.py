"""Threads that work ahead end when whoever wants the results has gone, whatever they are doing at that moment."""

from __future__ import annotations

import threading

from rarestream.readers.prefetch import Prefetch


def test_leaving_while_a_task_is_being_taken_ends_the_threads():
    taking, stopped = threading.Event(), threading.Event()
    taken = 0

    def take(buffer):
        nonlocal taken
        taken += 1
        if taken == 4:
            taking.set()
            stopped.wait(30)  # the consumer leaves now; then a task is found all the same
        return lambda: 1

    prefetch = Prefetch(take, stopped.set, threads=2)
    results = iter(prefetch)
    assert next(results) == 1
    assert taking.wait(30)
    closing = threading.Thread(target=results.close, daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()
