"""When a race compares its settings, and which of them it chooses: one rule for `auto` and for `rarestream race`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rarestream.metrics.paired import Standings

MIN_CLASS_ROWS = 30  # rows of the rarer class that a choice needs


class Schedule(NamedTuple):
    """The numbers of rows after which a race compares its settings: first, first * factor, ... and last."""

    first: int
    factor: int
    last: int | None = None

    def after(self, rows: int) -> int:
        """Return the next of these numbers beyond `rows`."""
        number = self.first
        while number <= rows:
            number *= self.factor
        return number if self.last is None else min(number, self.last)


def best_setting(standings: Standings, default: int = 0) -> int:
    """Return the number of the setting to choose.

    It is the one whose AUC, minus the standard error of its difference from the default's, is largest. So the default
    is chosen unless another one is clearly better.
    """
    return int(np.argmax(standings.aucs - standings.errors(default)))


def warm_up(rows: int) -> int:
    """Return how many of the first rows of a race do not count in a choice: all settings start knowing nothing."""
    return rows // 4
