"""Programs that tests start: with default signal handlers, with a limit, and never outliving their test.

A test run may itself be started with signals ignored (nohup, cron, a background job of a script). Children inherit
that, and would wait for ever where a test interrupts them: here they begin with the default handlers, in a session of
their own. The limit is far beyond what the slowest machine needs. It is no measure of speed, it ends a wait that
would never end, and then the test fails with what the program wrote so far.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

LIMIT = 900.0  # seconds
POSIX = os.name == "posix"  # elsewhere (Windows) a program is killed, but what it has started may outlive it

_running: set[Child] = set()


class OutOfTimeError(AssertionError):
    """A program was still running at its limit."""


def default_signals() -> None:
    """Undoes, in a child, what the process that started the tests ignored or blocked."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


class Child(subprocess.Popen[Any]):
    """A Popen that is killed, with all it started, at its limit and at the end of its `with` block or its test.

    Whoever reads from it then meets the end of the stream, so no read waits for ever. One that is for `several_tests`
    is ended by the fixture that has started it, not with the first of them.
    """

    def __init__(
        self, command: str | Sequence[object], *, limit: float = LIMIT, several_tests: bool = False, **options: Any
    ) -> None:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        words = command if isinstance(command, str) else [str(word) for word in command]
        prepare = options.pop("preexec_fn", None)
        self.limit = limit
        self.out_of_time = False
        self.seen = ""  # what was read by way of `line`, `lines` and `communicate`

        def begin() -> None:
            default_signals()
            if prepare is not None:
                prepare()

        session = {"preexec_fn": begin, "start_new_session": True} if POSIX else {}
        super().__init__(words, **{**session, **pipes, "text": True, **options})
        self._timer = threading.Timer(limit, self._expire)
        self._timer.daemon = True
        self._timer.start()
        if not several_tests:
            _running.add(self)

    def line(self, stream: str = "stdout") -> str:
        """The next line it writes; empty at the end."""
        line: str = getattr(self, stream).readline()
        self.seen += line
        self._check()
        return line

    def lines(self, stream: str = "stdout") -> Iterator[str]:
        """The lines it writes, as they come."""
        while line := self.line(stream):
            yield line

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        found = super().communicate(input, timeout)
        self.seen += "".join(part if isinstance(part, str) else repr(part) for part in found if part)
        self._check()
        return found

    def until(self, condition: Callable[[], object]) -> None:
        """Waits for something that happens while it runs."""
        while not condition():
            self._check()
            assert self.poll() is None, f"it ended with {self.returncode}, too early.{self._told()}"
            time.sleep(0.01)

    def until_read(self) -> None:
        """Waits until it has taken all that was written to it. For systems with POSIX pipes."""
        import fcntl
        import termios

        assert self.stdin is not None
        pipe = self.stdin
        pipe.flush()
        self.until(lambda: struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))) == (0,))

    def until_catching(self, number: signal.Signals) -> None:
        """Waits until it has a handler of its own for a signal. For Linux."""

        def caught() -> bool:
            with open(f"/proc/{self.pid}/status") as status:
                masks = [int(line.split()[1], 16) for line in status if line.startswith("SigCgt:")]
            return bool(masks[0] >> (number - 1) & 1)

        self.until(caught)

    def end(self) -> None:
        """Kills it and whatever it started, if anything still runs."""
        self._timer.cancel()
        _running.discard(self)
        self._kill()
        super().wait()

    def __exit__(self, *error: Any) -> None:
        try:
            self._check()
            if error[0] is not None:
                self._kill()
            super().__exit__(*error)  # closes the pipes and waits; the limit still holds
            self._check()
        finally:
            self.end()

    def _kill(self) -> None:
        if not POSIX:
            self.kill()
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _expire(self) -> None:
        self.out_of_time = True
        self._kill()

    def _check(self) -> None:
        if self.out_of_time:
            raise OutOfTimeError(f"still running after {self.limit:.0f} seconds.{self._told()}")

    def _told(self) -> str:
        with contextlib.suppress(ValueError, OSError, subprocess.TimeoutExpired):  # pipes that the test has closed
            self.seen += "".join(
                part if isinstance(part, str) else repr(part) for part in super().communicate(timeout=10) if part
            )
        return f" Command: {self.args!r}. It wrote:\n{self.seen[-8000:]}"


def run(
    command: str | Sequence[object], *, input: Any = None, check: bool = False, limit: float = LIMIT, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Runs a program to its end, as subprocess.run does; `check` fails the test with what the program wrote."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with Child(command, limit=limit, **options) as child:
        stdout, stderr = child.communicate(input)
    assert not check or child.returncode == 0, f"ended with {child.returncode}.{child._told()}"
    return subprocess.CompletedProcess(child.args, child.returncode, stdout, stderr)


def end_all() -> None:
    """Ends what a test has left running; fails the test if a limit had to."""
    for child in list(_running):
        child.__exit__(AssertionError, None, None)
