"""How a race compares its settings, which of them it chooses, and how it mixes them.

Let A_j be the AUC of setting j on the rows compared, each scored before it was learned, and e_ij the standard error of
A_i - A_j (DeLong's, on the same rows). The setting b with the largest A_j - e_j0 leads, where 0 is the default, which
leads unless another one is clearly better. One rule for `auto` and for `rarestream race`.

A mixture scores with

    sum_j u_j (sd_b / sd_j) s_j / sum_j u_j,    u_j = max(0, 1 - t_j^2 / 8)^4,    t_j = max(A_b - A_j, 0) / e_jb

where sd_j is the standard deviation of the scores s_j. u is about exp(-t^2 / 2): settings that rank as well as the
leader, as far as the rows can tell, count as much as it does, and those three standard errors behind nothing. Scores
are of the size of the leader's, which can learn on from them; or, where several settings race to the end, of the
default's, sd_0 in place of sd_b, so that scores before and after a change of leader can be compared.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.metrics.paired import Standings

MIN_CLASS_ROWS = 30  # rows of the rarer class that a choice needs
FEW = 2  # settings that may still count when a race is decided
LITTLE = 0.0005  # of AUC


class Schedule(NamedTuple):
    """The numbers of rows after which a race compares its settings: first, first * factor, ..."""

    first: int
    factor: int

    def after(self, rows: int) -> int:
        """Return the next of these numbers beyond `rows`."""
        number = self.first
        while number <= rows:
            number *= self.factor
        return number


class Choice(NamedTuple):
    """Which settings lead, and how their scores are mixed."""

    leader: int
    shares: NDArray[np.float64]  # what the score of each setting is multiplied by in the mixture
    order: Sequence[int]  # the settings, the best first
    decided: bool = False  # whether at most FEW settings rank about as well as the leading one, itself included
    close: bool = False  # whether no setting is ahead of the leading one by LITTLE, even with one standard error more

    @classmethod
    def alone(cls, leader: int, settings: int) -> Choice:
        """Return the choice of one setting that scores alone."""
        shares = np.zeros(settings)
        shares[leader] = 1.0
        return cls(leader, shares, [leader, *(number for number in range(settings) if number != leader)])

    @property
    def is_mixture(self) -> bool:
        """Whether more than one setting scores."""
        return int(np.count_nonzero(self.shares)) > 1

    def best(self, number: int) -> list[int]:
        """Return the best settings, so many, in the order of their numbers; the default, which is 0, among them."""
        first = [one for one in self.order if one != 0]
        return sorted([0, *first[: number - 1]])

    def without(self, dropped: Container[int]) -> Choice:
        """Return the choice among the other settings; if the leader was dropped, the next one scores alone."""
        order = [number for number in self.order if number not in dropped]
        if self.leader in dropped:
            return Choice.alone(order[0], len(self.shares))._replace(order=order)
        left = np.array([number not in dropped for number in range(len(self.shares))])
        shares = np.where(left, self.shares, 0.0)
        return Choice(self.leader, shares * (self.shares.sum() / shares.sum()), order)

    def among(self, settings: Sequence[int]) -> Choice:
        """Return the choice among some of the settings, which are numbered anew; a second copy of one has no share."""
        choice = self.without(set(range(len(self.shares))) - set(settings))
        new: dict[int, int] = {}
        for number, old in enumerate(settings):
            new.setdefault(old, number)
        shares = np.zeros(len(settings))
        shares[list(new.values())] = choice.shares[list(new)]
        copies = [number for number in range(len(settings)) if number not in new.values()]
        return Choice(new[choice.leader], shares, [*(new[old] for old in choice.order), *copies])

    def mixed(self, numbers: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum of the last axis of some numbers, one of each setting, as the mixture weighs them."""
        if numbers.ndim == 2 and numbers.dtype == np.float32 and numbers.flags.c_contiguous:  # the same, more quickly
            return _native.mix(numbers, self.shares)
        total = np.zeros(numbers.shape[:-1])
        for setting in np.flatnonzero(self.shares):  # in this order, whatever the number of rows
            total += self.shares[setting] * numbers[..., setting]
        return total


def best_setting(standings: Standings, default: int = 0) -> int:
    """Return the number of the setting to choose: see the module."""
    return int(np.argmax(standings.aucs - standings.errors(default)))


def choose(standings: Standings, scores: NDArray[np.float32], like: int | None = None) -> Choice:
    """Return which settings lead on some rows, and their mixture.

    Parameters
    ----------
    standings : Standings
        The settings compared on the rows; the default is the first.
    scores : array of shape (rows, settings)
        Their scores of these rows.
    like : int, optional
        The setting whose scores those of the mixture are as large as; the leader if it is not given.
    """
    leader = best_setting(standings)
    spread = _native.column_spreads(scores)
    if not spread[leader] > 0:
        return Choice.alone(leader, len(spread))
    size = spread[leader] if like is None or not spread[like] > 0 else spread[like]
    behind, errors = np.maximum(standings.aucs[leader] - standings.aucs, 0), standings.errors(leader)
    apart = np.divide(behind, errors, out=np.where(behind > 0, 3.0, 0.0), where=errors > 0)
    counts = np.square(np.square(1 - np.minimum(np.square(apart), 8) / 8))  # u
    counts[leader] = 1.0
    counts[spread == 0] = 0.0
    factors = np.divide(size, spread, out=np.zeros(len(spread)), where=spread > 0)
    order = np.argsort(standings.errors(0) - standings.aucs, kind="stable")
    decided = int(np.count_nonzero(counts)) <= FEW
    close = bool((standings.aucs + errors < standings.aucs[leader] + LITTLE).all())
    return Choice(leader, counts / counts.sum() * factors, order.tolist(), decided, close)


def warm_up(rows: int) -> int:
    """Return how many of the first rows of a race do not count in a choice: all settings start knowing nothing."""
    return rows // 4
