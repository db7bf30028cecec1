"""Threads for what a race does with several settings at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_all(function: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """Return what a function returns for each item, in their order; on several threads if that is worth it."""
    if threads < 2 or len(items) < 2:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # not above: many programs never need it

    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        return list(pool.map(function, items))
