"""How long requests take: percentiles of the last minute, in fixed memory; and rows per second of the last seconds."""

from __future__ import annotations

import math
import time
from collections import deque

import numpy as np

PER_OCTAVE = 8  # buckets of a doubling: a percentile is at most 1 / 8 of an octave, 9 %, too high
SMALLEST = 2.0**-20  # seconds; the first bucket has everything below
BUCKETS = 27 * PER_OCTAVE  # up to 128 seconds
PERIOD = 10.0  # seconds that are counted together
PERIODS = 6  # that percentiles are of: the current one, which is not over, and those before


class Latencies:
    """Counts how long something takes, in buckets that grow by an eighth of an octave each.

    Its memory does not grow. It belongs to one thread; another may read `percentiles`.
    """

    __slots__ = ("_counts", "_periods", "_until", "total")

    def __init__(self) -> None:
        self.total = 0  # of all time
        self._counts = [0] * BUCKETS
        self._periods: deque[tuple[float, list[int]]] = deque(maxlen=PERIODS - 1)  # when each ended
        self._until = 0.0

    def add(self, seconds: float, count: int = 1, now: float | None = None) -> None:
        """Count that something took so many seconds, `count` times. `now` is `time.monotonic()`, if it is known."""
        if now is None:
            now = time.monotonic()
        if now >= self._until:
            self._turn(now)
        at = int(math.log2(seconds / SMALLEST) * PER_OCTAVE) + 1 if seconds > SMALLEST else 0
        self._counts[at if at < BUCKETS else BUCKETS - 1] += count
        self.total += count

    def _turn(self, now: float) -> None:
        """Begin a period."""
        if any(self._counts):
            self._periods.append((self._until, self._counts))
            self._counts = [0] * BUCKETS
        self._until = now + PERIOD

    def percentiles(self, now: float | None = None) -> dict[str, float | int] | None:
        """Return the latencies in seconds that 50, 90, 99 and 99.9 % do not exceed; None if there were none of late.

        Returns
        -------
        dict or None
            Keys `p50`, `p90`, `p99`, `p999`, and `count`, how many there were.
        """
        if now is None:
            now = time.monotonic()
        recent = [counts for ended, counts in list(self._periods) if ended > now - PERIOD * (PERIODS - 1)]
        if self._until > now - PERIOD * (PERIODS - 1):
            recent.append(self._counts)
        if not recent:
            return None
        sums = np.cumsum(np.sum(np.array(recent, np.int64), axis=0))
        count = int(sums[-1])
        if not count:
            return None
        ranks = np.ceil(np.array([0.5, 0.9, 0.99, 0.999]) * count)
        ends = SMALLEST * 2.0 ** (np.searchsorted(sums, ranks) / PER_OCTAVE)
        return {**dict(zip(("p50", "p90", "p99", "p999"), ends.tolist(), strict=True)), "count": count}


class Rate:
    """How fast a counter grows, over the last seconds."""

    __slots__ = ("_samples", "_seconds")

    def __init__(self, seconds: float = 5.0) -> None:
        self._seconds = seconds
        self._samples: deque[tuple[float, int]] = deque(maxlen=256)

    def sample(self, counter: int, now: float) -> None:
        """Note the counter; about once a second."""
        samples = self._samples
        if samples and now - samples[-1][0] < 0.05:  # as if it were the same moment
            return
        while len(samples) > 1 and samples[1][0] <= now - self._seconds:
            samples.popleft()
        samples.append((now, counter))

    @property
    def per_second(self) -> float | None:
        """Growth per second; None before the second sample."""
        if len(self._samples) < 2:
            return None
        (start, before), (end, after) = self._samples[0], self._samples[-1]
        return max(0.0, (after - before) / (end - start))
