"""Trials: units of work done once each, on all cores, with a JSON line for each that is done.

    with Store("results.jsonl") as store:
        rows = run(units, work, store)

A unit is a small dict of JSON values that says what to do, such as {"method": "ftrl_auc", "trial": 3}. `work(unit)`
returns what came of it, another dict; the row is both. Rows are appended as units are done, each written, flushed and
synced before the next, so a kill or a full disk leaves a sound file: at worst a line is torn, and it is dropped when
the file is read again. Units that have a row are not done again.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple

from rarestream.errors import RarestreamError, for_command_line, worded_for_command_line

Unit = Mapping[str, Any]
Row = dict[str, Any]


class TrialsError(RarestreamError):
    """Trials that cannot go on, or a results file that is not one."""


class Progress(NamedTuple):
    """How far the units are, told before the first and after each."""

    done: int  # with those of earlier runs
    total: int
    seconds: float  # since this run began
    left: float | None  # seconds, as far as anybody can tell; None: nobody can
    row: Row | None  # of the unit just done


class Store:
    """The rows in a file, and room for more. One process writes a file at a time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file = io.FileIO(self.path, "a+")
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise TrialsError(f"{self.path}: another run writes to it. Wait for that, or name another.") from None
            self._file.seek(0)
            self.rows, self._end = _parsed(self._file.read(), self.path)
            self._file.truncate(self._end)  # a torn line would spoil the one that follows
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Row) -> None:
        """The row, safe on the disk when this returns."""
        line = json.dumps(row, allow_nan=False).encode() + b"\n"
        try:
            written = self._file.write(line)
            if written != len(line):  # a nearly full disk takes a part; asking for the rest says why
                self._file.write(line[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(self._end)
            raise TrialsError(
                f"{self.path}: {(error.strerror or str(error)).lower()}. The {len(self.rows)} rows before are safe; "
                "run it again to go on."
            ) from error
        self._end += len(line)
        self.rows.append(row)

    def found(self, units: Iterable[Unit]) -> list[Row | None]:
        """The row of each unit; None for those not done."""
        return [next((row for row in self.rows if _is_of(row, unit)), None) for unit in units]

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    """The rows of a results file, but for a torn last line. Changes nothing."""
    return _parsed(Path(path).read_bytes(), Path(path))[0]


def _parsed(content: bytes, path: Path) -> tuple[list[Row], int]:
    """The rows, and where the last sound line ends."""
    rows: list[Row] = []
    end = 0
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line) if line.endswith(b"\n") else None
        except ValueError:
            row = None
        if not isinstance(row, dict):
            if number == len(lines) and (rows or line[:1] in (b"{", b"\0")):  # else it was never a file of ours
                break
            raise TrialsError(f"{path}:{number}: not a row of results. Mend or remove the line, or name another file.")
        rows.append(row)
        end += len(line)
    return rows, end


def _is_of(row: Row, unit: Unit) -> bool:
    return all(word in row and row[word] == value for word, value in unit.items())


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0))


def run(
    units: Sequence[Unit],
    work: Callable[[Unit], Row],
    store: Store,
    *,
    processes: int | None = None,
    cost: Callable[[Unit], float] | None = None,
    report: Callable[[Progress], object] | None = None,
) -> list[Row]:
    """Does the units that have no row yet, and returns the rows of all, in the order of the units.

    work       is pickled, once for each process, so what it keeps between units is kept in each
    processes  None: as many as there are cores; 1: this one
    cost       about how many seconds a unit takes: how long is left is told from the first on, and from then on by how
               long those done took beside it
    report     is told before the first unit and after each

    An error of `work` ends the run; rows of units done stay.
    """
    known = store.found(units)
    left = [unit for unit, row in zip(units, known, strict=True) if row is None]
    count = min(processes or cores(), len(left))
    clock = _Clock(len(units) - len(left), left, count, cost)
    if report is not None:
        report(clock.told(None))

    def done(unit: Unit, came: Row) -> None:
        row = {**unit, **came}
        store.append(row)
        clock.count(unit)
        if report is not None:
            report(clock.told(row))

    if count > 1:
        _in_processes(left, work, done, count)
    else:
        for unit in left:
            done(unit, work(unit))
    return [row for row in store.found(units) if row is not None]


class _Clock:
    """How long is left: what is left to do costs as much more or less than thought as what is done did.

    So that the first few, which wait for processes to start and data to be read, do not speak for all, what was thought
    counts as much as a tenth of the work would.
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

    def told(self, row: Row | None) -> Progress:
        seconds = time.monotonic() - self._start
        left: float | None = None
        prior = self._total / 10 if self._known else 0.0
        if self._spent + prior > 0:
            took = self._count * seconds if self._done else 0.0
            more = (took + prior) / (self._spent + prior)
            left = more * (self._total - self._spent) / self._count
        return Progress(self._before + self._done, self._before + self._units, seconds, left, row)


def _in_processes(
    units: Sequence[Unit], work: Callable[[Unit], Row], done: Callable[[Unit, Row], None], count: int
) -> None:
    """Each process gets a unit when it has done the one before; one that dies is known by its closed pipe."""
    # Threads of ours may be running: a fork of this process could wait for ever for a lock that one of them holds.
    context = get_context("spawn")
    waiting = list(reversed(units))
    at: dict[Any, Unit] = {}
    workers: dict[Any, SpawnProcess] = {}
    try:
        for _ in range(count):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_serve, args=(theirs, pickle.dumps(work), for_command_line()), daemon=True)
            worker.start()
            theirs.close()
            workers[ours] = worker
            at[ours] = waiting.pop()
            ours.send(at[ours])
        while at:
            ready: list[Any] = connection.wait(list(at))
            for pipe in ready:
                unit = at.pop(pipe)
                try:
                    came = pipe.recv()
                except EOFError:
                    workers[pipe].join()
                    raise TrialsError(
                        f"the process of {_told(unit)} ended with exit code {workers[pipe].exitcode}; -9 is often "
                        "want of memory. What was done is kept: run it again, with fewer processes."
                    ) from None
                if isinstance(came, BaseException):
                    raise came
                if waiting:
                    at[pipe] = waiting.pop()
                    pipe.send(at[pipe])
                done(unit, came)
    finally:
        for pipe, worker in workers.items():
            worker.terminate()
            worker.join()
            pipe.close()


def _serve(pipe: connection.Connection, pickled: bytes, for_command_line: bool) -> None:
    """A process of its own: units in, rows or errors out, these worded as in the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the one that started them ends them
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work = pickle.loads(pickled)
    with worded_for_command_line(for_command_line):
        while True:
            try:
                unit = pipe.recv()
            except EOFError:
                return
            try:
                came = work(unit)
            except Exception as error:
                came = _portable(error)
            pipe.send(came)


def _end_with_parent() -> None:
    """A kill of the process that started this one ends this one too, in the middle of a unit."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _portable(error: Exception) -> Exception:
    """The error if it can be sent; else what it said."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(text)
    error.add_note(f"In a process of its own:\n{text}")
    return error


def _told(unit: Unit) -> str:
    return " ".join(f"{word}={value}" for word, value in unit.items())
