"""Counts of requests, cheap enough to be kept for every one of them."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from typing import Any

from rarestream.monitor import Latencies

# Seconds. A prediction takes tens of microseconds, a durable learn a few milliseconds, a large batch up to a second.
BOUNDS = [5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]


class RouteCounts:
    """Answers of one method of one path, by status, and how long they took."""

    def __init__(self, recent: Latencies | None = None) -> None:
        self.recent = recent  # also told how long answers take
        self.statuses: dict[int, int] = {}
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, status: int, seconds: float) -> None:
        """Count an answer."""
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds
        if self.recent is not None:
            self.recent.add(seconds)

    def merge(self, other: RouteCounts) -> None:
        """Add the counts of another process."""
        for status, number in other.statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + number
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, other.buckets, strict=True)]
        self.seconds += other.seconds


class Counts:
    """What the application counts: answers by route, and rows."""

    def __init__(self) -> None:
        self.routes: dict[tuple[str, str], RouteCounts] = {}
        self.refused: dict[int, int] = {}  # by status: requests that no route saw
        self.predicted = 0
        self.learned = 0
        self.labelled = 0

    def refuse(self, status: int) -> None:
        """Count a request that no route saw: an unknown path, a connection too many, what is not HTTP."""
        self.refused[status] = self.refused.get(status, 0) + 1

    def merge(self, other: Counts) -> None:
        """Add the counts of another process."""
        for route, counts in other.routes.items():
            self.routes.setdefault(route, RouteCounts()).merge(counts)
        for status, number in other.refused.items():
            self.refused[status] = self.refused.get(status, 0) + number
        self.predicted += other.predicted
        self.learned += other.learned
        self.labelled += other.labelled

    def dump(self) -> dict[str, Any]:
        """Return the counts ready for JSON; `load` reads them."""
        return {
            "routes": [
                [*route, list(counts.statuses.items()), counts.buckets, counts.seconds]
                for route, counts in self.routes.items()
                if counts.statuses
            ],
            "refused": list(self.refused.items()),
            "rows": [self.predicted, self.learned, self.labelled],
        }

    @classmethod
    def load(cls, found: dict[str, Any]) -> Counts:
        """Return counts of which `dump` was made."""
        self = cls()
        for method, path, statuses, buckets, seconds in found["routes"]:
            counts = self.routes[method, path] = RouteCounts()
            counts.statuses, counts.buckets, counts.seconds = dict(statuses), buckets, seconds
        self.refused = dict(found["refused"])
        self.predicted, self.learned, self.labelled = found["rows"]
        return self


class SharedCounts:
    """Counts of the processes that share a port: a small file of each, in a folder that is theirs.

    Parameters
    ----------
    folder : str
        The folder.
    place : int
        Number of this process. One that replaces another goes on with its counts, so that a counter never goes back.
    """

    def __init__(self, folder: str, place: int) -> None:
        self._folder, self._mine = folder, f"{place}.json"
        self._before = self._load(self._mine)

    def publish(self, counts: Counts) -> None:
        """Tell the others."""
        path = os.path.join(self._folder, self._mine)
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump(self._with_before(counts).dump(), file)
        os.replace(f"{path}.part", path)

    def total(self, counts: Counts) -> Counts:
        """Return the counts of all: this process as it is now, the others as they were a second ago."""
        found = self._with_before(counts)
        for name in os.listdir(self._folder):
            if name.endswith(".json") and name != self._mine:
                found.merge(self._load(name))
        return found

    def _with_before(self, counts: Counts) -> Counts:
        found = Counts.load(counts.dump())
        found.merge(self._before)
        return found

    def _load(self, name: str) -> Counts:
        try:
            with open(os.path.join(self._folder, name), encoding="utf-8") as file:
                return Counts.load(json.load(file))
        except (OSError, ValueError):  # it has nothing to tell yet
            return Counts()
