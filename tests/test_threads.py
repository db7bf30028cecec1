"""Threads that are kept: what runs on them, in which order, and that none waits for itself."""

from __future__ import annotations

import threading
from unittest.mock import patch

import pytest

from rarestream import threads
from rarestream.threads import run_all, run_beside


@pytest.fixture(autouse=True)
def two_cores():
    with patch.object(threads, "cores", lambda: 2):
        yield


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_come_in_the_order_of_the_items(count):
    assert run_all(lambda item: item * item, range(7), count) == [0, 1, 4, 9, 16, 25, 36]
    assert run_all(lambda item: item, [], count) == []


def test_an_error_on_any_thread_is_raised_once_all_have_ended():
    ended = []

    def act(item: int) -> None:
        if item == 1:
            raise ValueError("one")
        ended.append(item)

    with pytest.raises(ValueError, match="one"):
        run_all(act, range(4), 2)
    assert set(ended) >= {0, 2}


def test_what_runs_beside_runs_on_another_thread_and_is_waited_for():
    begun, names = threading.Event(), []

    def act() -> None:
        names.append(threading.current_thread().name)
        begun.set()

    finish = run_beside(act)
    assert begun.wait(60)
    finish()
    finish()  # as often as wanted
    assert names != [threading.current_thread().name]


def test_an_error_beside_is_raised_by_waiting():
    def act() -> None:
        raise ValueError("beside")

    finish = run_beside(act)
    with pytest.raises(ValueError, match="beside"):
        finish()


def test_on_a_kept_thread_nothing_waits_for_another():
    """There may be no other: it would wait for itself."""
    found: list[list[str]] = []

    def act() -> None:
        names = run_all(lambda _: threading.current_thread().name, range(4), 2)
        run_beside(lambda: names.append(threading.current_thread().name))()
        found.append(names)

    run_beside(act)()
    assert len(found[0]) == 5
    assert len(set(found[0])) == 1


def test_with_one_core_all_runs_here():
    names: list[str] = []
    with patch.object(threads, "cores", lambda: 1):
        run_beside(lambda: names.append(threading.current_thread().name))()
    assert names == [threading.current_thread().name]
