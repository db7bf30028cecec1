"""Programs that tests start: their signals, their limit, their end."""

from __future__ import annotations

import signal
import sys

import pytest

from tests.children import Child, OutOfTimeError, end_all, run

SLEEPER = [sys.executable, "-c", "import time; print('awake', flush=True); time.sleep(3600)"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_program_takes_a_signal_that_the_test_run_ignores(number):
    ignored = signal.signal(number, signal.SIG_IGN)
    try:
        with Child(SLEEPER) as child:
            assert child.line() == "awake\n"
            child.send_signal(number)
            child.wait()
    finally:
        signal.signal(number, ignored)
    assert child.returncode == -number


def test_at_its_limit_a_program_is_killed_and_the_test_fails_with_what_it_wrote():
    child = Child(SLEEPER)
    assert child.line() == "awake\n"
    child._expire()  # the limit is here
    with pytest.raises(OutOfTimeError, match="(?s)still running after 900 seconds.*awake"):
        child.line()
    child.end()
    assert child.returncode == -signal.SIGKILL


def test_a_read_ends_at_the_limit():
    with pytest.raises(OutOfTimeError, match="still running after 0 seconds"):
        run(SLEEPER, limit=0.01)


def test_what_a_test_leaves_running_is_ended():
    child = Child(SLEEPER)
    end_all()
    assert child.returncode == -signal.SIGKILL
