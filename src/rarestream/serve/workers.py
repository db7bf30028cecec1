"""Read-only services in several processes that share one port.

The parent only supervises: it opens the port, starts the processes, starts one again that dies, and passes on signals.
Each worker is an ordinary read-only service with an event loop of its own, started as a new program (nothing is
forked), with the socket inherited:

    python -m rarestream.serve.workers       what it needs comes as a line of JSON on standard input

A worker ends when that pipe is closed, so none is left if the parent is killed. It says on standard output that it is
ready, or why it cannot start.

On Linux each worker has a socket of its own on the port (SO_REUSEPORT), and the kernel spreads connections over them by
a hash of the addresses. With one socket for all, the worker that wakes first accepts everything that is waiting, and
under light load that is nearly always the same one. The parent keeps all sockets open: connections to a worker that has
died wait for its successor instead of being refused. Elsewhere, and for Unix sockets, the kernel does not spread over
several sockets, and all workers share one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict
from types import FrameType
from typing import Any

from rarestream.errors import RarestreamError
from rarestream.serve.http.counts import SharedCounts
from rarestream.serve.http.server import Runner, address_of, listening, tls_context
from rarestream.serve.http.settings import ServerError, Settings
from rarestream.serve.process import run_for_long
from rarestream.serve.replica import Replica
from rarestream.serve.rows import Limits

FAILED_STARTS = 5  # of a worker, one after the other, after which the service gives up
MEMORY = 60.0  # seconds for which a death counts when the next start is delayed
FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0  # seconds before a worker that died is started again
GRACE = 10.0  # seconds that a worker has to end, beyond those that its requests have
LOG_FORMAT = "%(asctime)s %(levelname)s worker %(process)d: %(message)s"

say = logging.getLogger("rarestream.serve")


def run_workers(
    dir: str | os.PathLike[str],
    limits: Limits,
    settings: Settings,
    workers: int,
    *,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve read-only in several processes until SIGTERM or SIGINT; returns when all have ended.

    Parameters
    ----------
    dir : path
        The state directory of a service that learns, or a copy that is kept up to date.
    limits : Limits
        Of requests.
    settings : Settings
        Address, TLS, token; limits of connections are those of each worker.
    workers : int
        Number of processes.
    announce : callable or None
        Takes the line that says where the service listens, once all workers do; None: printed to stdout.

    Raises
    ------
    ServerError
        If the address or the certificate cannot be used, or workers cannot start.
    """
    tls = tls_context(settings) is not None
    with listening(settings, workers) as listeners, tempfile.TemporaryDirectory(prefix="rarestream-") as counts:
        given = {"dir": os.fspath(dir), "limits": asdict(limits), "settings": _plain(settings), "counts": counts}
        address = address_of(settings, listeners[0], tls)
        Supervisor(given, listeners, address, announce or _print, settings.shutdown_timeout + GRACE).run()


class Supervisor:
    """Keeps workers running.

    Parameters
    ----------
    given : dict
        What each worker is told.
    listeners : list of socket
        One for each worker; all may be the same.
    address : str
        Where they listen, for people.
    announce : callable
        Takes the line that says so.
    patience : float
        Seconds that workers have to end.
    """

    def __init__(
        self,
        given: dict[str, Any],
        listeners: list[socket.socket],
        address: str,
        announce: Callable[[str], None],
        patience: float,
    ) -> None:
        self.address, self.announce, self.patience = address, announce, patience
        self.workers = [_Worker(given | {"place": place}, one) for place, one in enumerate(listeners)]
        self._signals: deque[int] = deque()
        self._stopping = 0.0  # when what still runs is killed; 0: not stopping
        self._announced = False

    def run(self) -> None:
        """Start the workers and keep them running until a signal."""
        with self._capture_signals() as wake, selectors.DefaultSelector() as selector:
            selector.register(wake, selectors.EVENT_READ)
            try:
                for worker in self.workers:
                    self._start(worker, selector)
                while not self._stopping or any(worker.process for worker in self.workers):
                    self._turn(selector, wake)
            finally:
                for worker in self.workers:
                    worker.kill()

    def _turn(self, selector: selectors.BaseSelector, wake: socket.socket) -> None:
        """Wait for something to happen, and see to it."""
        for key, _ in selector.select(self._until_next()):
            worker: _Worker | None = key.data
            if worker is None:
                wake.recv(4096)
            elif not worker.listen():
                selector.unregister(key.fileobj)
                self._ended(worker)
        while self._signals:
            self._pass_on(self._signals.popleft())
        now = time.monotonic()
        for worker in self.workers:
            if self._stopping and now > self._stopping:
                worker.kill()
            elif not self._stopping and worker.process is None and now >= worker.start_at:
                self._start(worker, selector)
        if not self._announced and all(worker.ready for worker in self.workers):
            self._announced = True
            self.announce(f"rarestream serves on {self.address} with {len(self.workers)} workers")

    def _start(self, worker: _Worker, selector: selectors.BaseSelector) -> None:
        worker.start()
        assert worker.process is not None and worker.process.stdout is not None
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)

    def _until_next(self) -> float | None:
        """Return the seconds until something is due; None: nothing is."""
        due = [self._stopping] if self._stopping else [w.start_at for w in self.workers if w.process is None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _ended(self, worker: _Worker) -> None:
        """Decide what becomes of a worker that has ended."""
        code, was_ready = worker.collect()
        if self._stopping:
            return
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        worker.failed_starts = 0 if was_ready else worker.failed_starts + 1
        # What is wrong with the directory is wrong for each of them; later on, those that run go on answering.
        if worker.reason and not self._announced:
            raise ServerError(worker.reason)
        if worker.failed_starts >= FAILED_STARTS:
            reason = worker.reason or f"it {how}; its messages say more."
            raise ServerError(f"A worker could not be started {FAILED_STARTS} times, one after the other: {reason}")
        delay = worker.delay()
        say.warning("a worker %s; another is started in %.1f s", how, delay)

    def _pass_on(self, number: int) -> None:
        """Tell the workers to end. Ctrl-C at a terminal reaches them too; only a second one may cut off requests."""
        if not self._stopping:
            self._stopping = time.monotonic() + self.patience
            number = signal.SIGTERM
        for worker in self.workers:
            worker.send(number)

    @contextlib.contextmanager
    def _capture_signals(self) -> Iterator[socket.socket]:
        """Collect SIGINT and SIGTERM; the socket wakes whoever waits for something to happen."""
        read, write = socket.socketpair()
        read.setblocking(False)
        write.setblocking(False)

        def note(number: int, frame: FrameType | None) -> None:
            self._signals.append(number)

        woken = signal.set_wakeup_fd(write.fileno(), warn_on_full_buffer=False)
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield read
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(woken)
            read.close()
            write.close()


class _Worker:
    """A place in the row of workers: a process, and the one that follows it if it dies."""

    def __init__(self, given: dict[str, Any], listener: socket.socket) -> None:
        self.given, self.listener = given, listener
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = False
        self.reason = ""  # why the last one could not start
        self.failed_starts = 0
        self.start_at = 0.0
        self._deaths: deque[float] = deque()
        self._said = b""

    def start(self) -> None:
        """Start a process."""
        self.ready, self.reason, self._said = False, "", b""
        number = self.listener.fileno()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rarestream.serve.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[number],
            bufsize=0,
        )
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died already
            self.process.stdin.write(json.dumps(self.given | {"listener": number}).encode() + b"\n")

    def listen(self) -> bool:
        """Take in what the process says; return False once it has ended."""
        assert self.process is not None and self.process.stdout is not None
        piece = self.process.stdout.read(4096)
        self._said += piece or b""
        *lines, self._said = self._said.split(b"\n")
        for line in lines:
            message = json.loads(line)
            self.ready = self.ready or message.get("ready", False)
            self.reason = message.get("error", self.reason)
        return bool(piece)

    def collect(self) -> tuple[int, bool]:
        """Return the exit code of a process that has ended, and whether it had been ready."""
        assert self.process is not None
        code, ready = self.process.wait(), self.ready
        self._close()
        return code, ready

    def delay(self) -> float:
        """Return the seconds until the next start, after a death now: longer each time."""
        now = time.monotonic()
        while self._deaths and now - self._deaths[0] > MEMORY:
            self._deaths.popleft()
        wait = min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** len(self._deaths))
        self._deaths.append(now)
        self.start_at = now + wait
        return wait

    def send(self, number: int) -> None:
        """Send a signal."""
        if self.process is not None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """End the process at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self._close()

    def _close(self) -> None:
        assert self.process is not None and self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process, self.ready = None, False


def _plain(settings: Settings) -> dict[str, Any]:
    """Return settings ready for JSON. The token is not among the arguments of a program, which anyone can see."""
    found = asdict(settings)
    return {name: value.decode("latin-1") if isinstance(value, bytes) else value for name, value in found.items()}


def _settings(found: dict[str, Any]) -> Settings:
    for name in ("token", "key_password"):
        if found[name] is not None:
            found[name] = found[name].encode("latin-1")
    return Settings(**found)


def _print(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    """Be a worker; return the exit code."""
    with os.fdopen(os.dup(0), "rb", buffering=0) as pipe:
        given = json.loads(pipe.readline())
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)

    def tell(message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(message), file=answers)

    # Until the server handles them, signals end the process: there is no request to finish.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=LOG_FORMAT)
    logging.captureWarnings(True)
    run_for_long()
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    settings = _settings(given["settings"])
    try:
        runner = Runner(
            Replica(given["dir"], Limits(**given["limits"])),
            settings,
            say=lambda line: tell({"ready": True}),
            listener=socket.socket(fileno=given["listener"]),
            shared_counts=SharedCounts(given["counts"], given["place"]),
        )
        threading.Thread(target=_end_with_the_parent, args=[runner, settings.shutdown_timeout], daemon=True).start()
        runner.run()
    except RarestreamError as error:
        tell({"error": str(error)})
        return 1
    return 0


def _end_with_the_parent(runner: Runner, patience: float) -> None:
    """End when the other end of standard input is closed: the parent has ended, whatever ended it."""
    while os.read(0, 4096):  # sys.stdin would be locked, and Python could not end
        pass
    runner.stop()
    time.sleep(patience + GRACE if runner.started else 0.0)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
