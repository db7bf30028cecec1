"""Threads for what can be done with several settings at once. They are kept: starting one for a block takes longer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from rarestream.system import cores

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")

_kept: list[ThreadPoolExecutor] = []  # one, once it was needed
_here = threading.local()  # `kept`: whether this thread is one of these, which must not wait for the others


def run_all(function: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """Return what a function returns for each item, in their order; on several threads, this one included."""
    threads = min(threads, len(items))
    if threads < 2 or _is_kept():
        return [function(item) for item in items]
    from concurrent.futures import wait  # not above: many programs never need it

    def run(first: int) -> list[Result]:
        return [function(item) for item in items[first::threads]]

    others = [_pool().submit(run, first) for first in range(1, threads)]
    try:
        own = run(0)
    finally:
        wait(others)  # they change what the caller owns
    shares = [own, *(other.result() for other in others)]
    return [shares[number % threads][number // threads] for number in range(len(items))]


def run_beside(function: Callable[[], None]) -> Callable[[], None]:
    """Run a function beside what this thread does, if there are several cores; return a function that waits for it.

    Functions run in the order in which they were started, before those that `run_all` is given later.
    """
    if cores() > 1 and not _is_kept():
        return _pool().submit(function).result
    function()
    return lambda: None


def _pool() -> ThreadPoolExecutor:
    if not _kept:
        from concurrent.futures import ThreadPoolExecutor

        _kept.append(ThreadPoolExecutor(max(1, cores() - 1), "rarestream", _keep))
    return _kept[0]


def _keep() -> None:
    _here.kept = True


def _is_kept() -> bool:
    return getattr(_here, "kept", False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_kept.clear)  # a child has none of its parent's threads
