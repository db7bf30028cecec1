"""One process per state directory; the message names the other one."""

from __future__ import annotations

import os
import sys

import pytest

from rarestream.serve.log import StateLock, StateLockedError
from rarestream.serve.log import lock as module
from tests import children

HOLD = """
import sys
from rarestream.serve.log import StateLock
lock = StateLock(sys.argv[1])
print("locked", flush=True)
sys.stdin.read()
"""


def test_the_directory_of_another_process_is_refused_until_it_ends(tmp_path):
    state = tmp_path / "state"
    with children.Child([sys.executable, "-c", HOLD, state], stdin=-1) as other:
        assert other.line() == "locked\n"
        with pytest.raises(StateLockedError) as error:
            StateLock(state)
        assert str(error.value).startswith(f"{state}: is in use by process {other.pid}. ")
        other.kill()  # as with kill -9: the system releases it
        other.wait()
    with StateLock(state):
        assert (state / "lock").read_text() == f"{os.getpid()}\n"


def test_two_locks_in_one_process_are_refused_too(tmp_path):
    with StateLock(tmp_path) as lock:
        with pytest.raises(StateLockedError, match=f"process {os.getpid()}"):
            StateLock(tmp_path)
        lock.release()
        lock.release()
        StateLock(tmp_path).release()


def test_a_process_that_has_not_written_its_number_is_another_process(tmp_path):
    with StateLock(tmp_path):
        for text in ("", "hello\n", "12 34", "9" * 100):
            (tmp_path / "lock").write_text(text)
            with pytest.raises(StateLockedError, match="is in use by (another process|process 9{20})\\. "):
                StateLock(tmp_path)


def test_a_lock_file_that_is_removed_while_it_is_locked_is_locked_anew(tmp_path, monkeypatch):
    lock_file = module.lock_file
    path = tmp_path / "lock"

    def removed(file: int) -> None:
        lock_file(file)
        if not path.read_bytes():
            path.unlink()
            path.write_text("another\n")

    monkeypatch.setattr(module, "lock_file", removed)
    with StateLock(tmp_path):
        monkeypatch.undo()
        with pytest.raises(StateLockedError):
            StateLock(tmp_path)


def test_a_file_system_without_locks_is_refused(tmp_path, monkeypatch):
    def fail(file: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(module, "lock_file", fail)
    with pytest.raises(StateLockedError, match="has no locks"):
        StateLock(tmp_path)
