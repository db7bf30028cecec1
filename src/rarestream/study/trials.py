"""Trials: units of work, each run once, on all cores, with a row of results for each.

    with Store("results.jsonl") as store:
        rows = run(units, work, store)

A unit is a small dict of JSON values that says what to do, such as {"method": "ftrl_auc", "trial": 3}. `work(unit)`
returns the result, another dict; the row is both. Rows are appended as units finish, so that a run that was stopped
resumes where it was: units that have a row are not run again.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple

from rarestream.errors import for_command_line, worded_for_command_line
from rarestream.study.store import Row, Store, TrialsError, Unit
from rarestream.system import cores

Work = Callable[[Unit], Mapping[str, Any]]


class Progress(NamedTuple):
    """How many units are finished; reported before the first and after each."""

    done: int  # earlier runs included
    total: int
    seconds: float  # since this run began
    left: float | None  # estimated seconds; None: unknown
    row: Row | None  # of the unit just finished


def run(
    units: Sequence[Unit],
    work: Work,
    store: Store,
    *,
    processes: int | None = None,
    cost: Callable[[Unit], float] | None = None,
    report: Callable[[Progress], object] | None = None,
) -> list[Row]:
    """Run the units that have no row yet, and return the rows of all, in the order of the units.

    Parameters
    ----------
    units : sequence of dict
        What to do, one dict of JSON values each.
    work : callable
        Given a unit, runs it and returns the result, a dict of JSON values. It is pickled once per process, so what it
        caches between units is cached in each.
    store : Store
        The results file.
    processes : int, >= 1, optional
        Number of processes; with 1, this one. By default one per core.
    cost : callable, optional
        Given a unit, returns about how many seconds it takes. The remaining time is estimated from it, and corrected
        by the time that finished units took.
    report : callable, optional
        Called with a Progress before the first unit and after each.

    Returns
    -------
    list of dict
        One row per unit.

    Raises
    ------
    TrialsError
        If a process dies, or a row cannot be written.
    Exception
        Whatever `work` raises ends the run; the rows of finished units stay in the file.
    """
    known = store.find(units)
    left = [unit for unit, row in zip(units, known, strict=True) if row is None]
    count = min(processes or cores(), len(left))
    clock = _Clock(len(units) - len(left), left, count, cost)
    if report is not None:
        report(clock.progress(None))

    def record(unit: Unit, result: Mapping[str, Any]) -> None:
        row = {**unit, **result}
        store.append(row)
        clock.count(unit)
        if report is not None:
            report(clock.progress(row))

    if count > 1:
        _in_processes(left, work, record, count)
    else:
        for unit in left:
            record(unit, work(unit))
    return [row for row in store.find(units) if row is not None]


class _Clock:
    """Estimates the remaining time: `cost`, times the ratio of time to cost of the finished units.

    The first units wait for processes to start and for data to be read. So that they do not dominate, `cost` counts as
    much as a tenth of the work would.
    """

    def __init__(self, before: int, units: Sequence[Unit], count: int, cost: Callable[[Unit], float] | None) -> None:
        self._cost = cost or (lambda unit: 1.0)
        self._known = cost is not None
        self._total = sum(self._cost(unit) for unit in units)
        self._spent = 0.0
        self._count = max(1, count)
        self._start = time.monotonic()
        self._before, self._done, self._units = before, 0, len(units)

    def count(self, unit: Unit) -> None:
        self._done += 1
        self._spent += self._cost(unit)

    def progress(self, row: Row | None) -> Progress:
        seconds = time.monotonic() - self._start
        left: float | None = None
        prior = self._total / 10 if self._known else 0.0
        if self._spent + prior > 0:
            took = self._count * seconds if self._done else 0.0
            more = (took + prior) / (self._spent + prior)
            left = more * (self._total - self._spent) / self._count
        return Progress(self._before + self._done, self._before + self._units, seconds, left, row)


def _in_processes(
    units: Sequence[Unit], work: Work, record: Callable[[Unit, Mapping[str, Any]], None], count: int
) -> None:
    """Give each process a unit when it has finished the one before; a process that dies is known by its closed pipe."""
    # Threads may be running here: a fork of this process could wait for ever for a lock that one of them holds.
    context = get_context("spawn")
    waiting = list(reversed(units))
    running: dict[Any, Unit] = {}  # by the pipe of its process
    workers: dict[Any, SpawnProcess] = {}
    try:
        for _ in range(count):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_serve, args=(theirs, pickle.dumps(work), for_command_line()), daemon=True)
            worker.start()
            theirs.close()
            workers[ours] = worker
            running[ours] = waiting.pop()
            ours.send(running[ours])
        while running:
            ready: list[Any] = connection.wait(list(running))
            for pipe in ready:
                unit = running.pop(pipe)
                try:
                    result = pipe.recv()
                except EOFError:
                    workers[pipe].join()
                    raise TrialsError(
                        f"the process of {_words(unit)} ended with exit code {workers[pipe].exitcode}; -9 often means "
                        "out of memory. Finished trials are kept: rerun with fewer processes to resume."
                    ) from None
                if isinstance(result, BaseException):
                    raise result
                if waiting:
                    running[pipe] = waiting.pop()
                    pipe.send(running[pipe])
                record(unit, result)
    finally:
        for pipe, worker in workers.items():
            worker.terminate()
            worker.join()
            pipe.close()


def _serve(pipe: connection.Connection, pickled: bytes, for_command_line: bool) -> None:
    """Run units in a process of their own; errors are worded as in the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the one that started them ends them
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work = pickle.loads(pickled)
    with worded_for_command_line(for_command_line):
        while True:
            try:
                unit = pipe.recv()
            except EOFError:
                return
            try:
                result = work(unit)
            except Exception as error:
                result = _portable(error)
            pipe.send(result)


def _end_with_parent() -> None:
    """End this process, even in the middle of a unit, when the one that started it is killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _portable(error: Exception) -> Exception:
    """Return the error if it can be pickled, else one with its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(text)
    error.add_note(f"In a worker process:\n{text}")
    return error


def _words(unit: Unit) -> str:
    return " ".join(f"{word}={value}" for word, value in unit.items())
