"""From scores to decisions: a threshold that follows a rule, and what rates it then has.

A row is called positive when its score >= threshold, and a threshold is always one of
the scores it is chosen on, so equal scores are called alike. Of the thresholds that
follow a rule, the one with the largest recall is chosen; for a recall that is
at least so large, the one with the fewest alerts.

The intervals are of the true rates of the chosen threshold, on new rows of the
same kind. That it was chosen on the same rows matters in one place. Under the
k-th largest of n negatives the true false-positive rate is Beta(k, n + 1 - k),
whatever the distribution of the scores, because it is an order statistic.
Positives are drawn independently of negatives, so of P of them the number above
this threshold is binomial, given the threshold. Jeffreys' interval for c of n is
the middle of

    Beta(c + 1/2, n - c + 1/2).

The two agree if the row whose score is the threshold counts one half: it is the
boundary itself, and neither above nor below. This is done for all rules. If several rows
share that score, the threshold is a point of probability: they count whole, and the
rate that the rule limits has Clopper and Pearson's interval, half a row wider on both
sides, because of two such points the rule prefers the one with the luckier rows.
If no row of n is above, the interval starts at 0; if all are, it ends at 1.

Precision: of the alerts c are positive, which is binomial too. Rows of unequal
importance count as n = (sum h)^2 / sum h^2 rows, in each class (Kish). The cheapest
threshold is partly luck, and so is the last one that is precise enough: their
worse ends are moved by half of that (`_optimism`).

docs/decisions.md has the measured coverage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream.errors import DataError, advice
from rarestream.metrics import beta
from rarestream.metrics.estimate import Estimate, checked_level
from rarestream.metrics.exact import effective_rows
from rarestream.metrics.rows import ScoredRows, valid_rows

RULES = ("fpr", "precision", "recall", "share", "alerts_per_day", "costs")
_WORDS = {
    "fpr": "false-positive rate",
    "precision": "precision",
    "recall": "recall",
    "share": "share of rows",
    "alerts_per_day": "alerts a day",
}
_RATES = ("fpr", "recall", "precision", "share")
FOLDS = 10
ONE = 1 - 1e-9  # a row, where effective rows are multiplied by a rate that may have been rounded


class Costs(NamedTuple):
    """What the two kinds of errors cost, in any unit."""

    false_positive: float
    missed: float


@dataclass(frozen=True)
class Decision:
    """A threshold, the rule it follows, and what rates it has.

    A row is called positive when its score >= `threshold`. All figures have the interval of the true rate of this
    threshold on new rows.

    Attributes
    ----------
    threshold : float
        The lowest score that is called positive.
    rule : {"fpr", "precision", "recall", "share", "alerts_per_day", "costs"}
        What it was chosen by.
    target : float or None
        The limit of that rule; None for "costs".
    rows, positives : int
        Number of rows that it was chosen on, and of those that are positive. Rows of importance 0 do not count.
    fpr : Estimate
        False-positive rate: the share of negatives that are called positive.
    recall : Estimate
        Share of positives that are called positive.
    precision : Estimate
        Share of positives among the rows that are called positive.
    share : Estimate
        Share of all rows that are called positive.
    rows_per_day : float or None
        Number of rows a day, if it was given.
    costs : Costs or None
        Costs of a false positive and of a missed positive, if they were given.
    cost : Estimate or None
        Expected cost per row, if costs were given.
    after_rows : int or None
        Number of rows that the model had learned by then; None if the scores are not those of a model.
    """

    threshold: float
    rule: str
    target: float | None
    rows: int
    positives: int
    fpr: Estimate
    recall: Estimate
    precision: Estimate
    share: Estimate
    rows_per_day: float | None = None
    costs: Costs | None = None
    cost: Estimate | None = None
    after_rows: int | None = None

    @property
    def alerts_per_day(self) -> Estimate | None:
        """Expected number of rows called positive a day, if the rows a day are known."""
        share, daily = self.share, self.rows_per_day
        if daily is None:
            return None
        return Estimate(share * daily, share.low * daily, share.high * daily, level=share.level)

    def __str__(self) -> str:
        return f"score >= {self.threshold:.6g} ({self.wording})"

    @property
    def wording(self) -> str:
        """The rule in words, such as "false-positive rate of at most 0.01"."""
        if self.costs is not None and self.rule == "costs":
            return f"costs of {self.costs.false_positive:g} per false positive and {self.costs.missed:g} per missed one"
        bound = "at least" if self.rule in ("precision", "recall") else "at most"
        if self.rule == "alerts_per_day":
            return f"{bound} {self.target:g} alerts a day"
        return f"{_WORDS[self.rule]} of {bound} {self.target:g}"

    def record(self) -> dict[str, Any]:
        """Return the decision as a dict of numbers and texts, as `rarestream threshold --json` prints it."""
        found: dict[str, Any] = {
            "threshold": self.threshold,
            "rule": self.rule,
            "target": self.target,
            "rows": self.rows,
            "positives": self.positives,
        }
        for name in _RATES:
            found |= _numbers(name, getattr(self, name))
        found |= {"rows_per_day": self.rows_per_day, **_numbers("alerts_per_day", self.alerts_per_day)}
        found["cost_false_positive"] = None if self.costs is None else self.costs.false_positive
        found["cost_missed"] = None if self.costs is None else self.costs.missed
        return {**found, **_numbers("cost", self.cost), "level": self.share.level, "after_rows": self.after_rows}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Decision:
        """Return the decision of a record.

        Parameters
        ----------
        record : mapping
            What `record()` returned.

        Returns
        -------
        Decision

        Raises
        ------
        KeyError, ValueError
            If something is missing or impossible.
        """
        level = _number(record, "level", 0, 1)
        rule, costs = record["rule"], None
        if rule not in RULES:
            raise ValueError(f"the rule of its decision is {rule!r}")
        if record["cost_false_positive"] is not None or rule == "costs":
            costs = Costs(_number(record, "cost_false_positive", 0), _number(record, "cost_missed", 0))
        rows, positives = _count(record, "rows"), _count(record, "positives")
        if not 0 < positives < rows:
            raise ValueError(f"its decision has {positives} positives of {rows} rows")
        return cls(
            _number(record, "threshold"),
            rule,
            None if rule == "costs" else _number(record, "target", 0),
            rows,
            positives,
            fpr=_estimate(record, "fpr", level, 1.0),
            recall=_estimate(record, "recall", level, 1.0),
            precision=_estimate(record, "precision", level, 1.0),
            share=_estimate(record, "share", level, 1.0),
            rows_per_day=None if record["rows_per_day"] is None else _number(record, "rows_per_day", 0),
            costs=costs,
            cost=None if costs is None else _estimate(record, "cost", level, math.inf),
            after_rows=None if record["after_rows"] is None else _count(record, "after_rows"),
        )


def choose_threshold(
    labels: ArrayLike,
    scores: ArrayLike,
    importances: ArrayLike | None = None,
    *,
    fpr: float | None = None,
    precision: float | None = None,
    recall: float | None = None,
    share: float | None = None,
    alerts_per_day: float | None = None,
    rows_per_day: float | None = None,
    days: float | None = None,
    costs: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Decision:
    """Choose a threshold on labelled scores: rows with a score >= threshold are called positive.

    Exactly one rule is needed: `fpr`, `precision`, `recall`, `share`, `alerts_per_day` or `costs`; costs may also be
    given beside another rule, to know what it costs.

    Parameters
    ----------
    labels, scores, importances : array-like
        As for `auc`; scores must be finite. A row of importance h counts as h rows.
    fpr : float, between 0 and 1, optional
        Maximum false-positive rate.
    precision : float, between 0 and 1, optional
        Minimum precision.
    recall : float, between 0 and 1, optional
        Minimum recall.
    share : float, between 0 and 1, optional
        Maximum share of rows to call positive.
    alerts_per_day : float, > 0, optional
        Maximum number of rows a day to call positive. Needs `rows_per_day` or `days`.
    rows_per_day : float, > 0, optional
        Number of rows to be scored a day.
    days : float, > 0, optional
        Number of days that these rows cover, instead of `rows_per_day`.
    costs : tuple of two float, > 0, optional
        Cost of a false positive, and of a missed positive: the threshold with the lowest total cost is chosen.
    level : float, between 0 and 1, default 0.95
        Confidence level of the intervals.

    Returns
    -------
    Decision
        The threshold, and its rates with intervals.

    Raises
    ------
    DataError
        If a row or an argument is invalid, a class is missing, or no threshold follows the rule; the message then names
        the best there is.
    """
    wanted = Wanted.of(
        "choose_threshold",
        fpr=fpr,
        precision=precision,
        recall=recall,
        share=share,
        alerts_per_day=alerts_per_day,
        rows_per_day=rows_per_day,
        days=days,
        costs=costs,
    )
    return wanted.decide(labels, scores, importances, level)


@dataclass(frozen=True)
class Wanted:
    """A rule to choose a threshold by, checked. `where` is what error messages start with."""

    where: str
    rule: str
    target: float | None
    rows_per_day: float | None
    days: float | None
    costs: Costs | None

    @classmethod
    def of(
        cls,
        where: str,
        *,
        rows_per_day: float | None = None,
        days: float | None = None,
        costs: tuple[float, float] | None = None,
        **targets: float | None,
    ) -> Wanted:
        """Return the rule of these arguments, those of `choose_threshold`; DataError if they are invalid."""
        given = [name for name in RULES if targets.get(name) is not None]
        if len(given) > 1 or not (given or costs is not None):
            found = f"got {' and '.join(given)}" if given else "got none"
            raise DataError(f"{where}: pass exactly one of {', '.join(RULES[:-1])} and {RULES[-1]}; {found}.")
        rule = given[0] if given else "costs"
        target = targets.get(rule)
        if target is not None:
            _check_target(where, rule, target)
        for name, value in (("rows_per_day", rows_per_day), ("days", days)):
            if value is not None and not 0 < value < math.inf:
                raise DataError(f"{where}: {name} must be a number above 0, got {value}.")
        if rows_per_day is not None and days is not None:
            raise DataError(f"{where}: pass rows_per_day or days, not both.")
        if rule == "alerts_per_day" and rows_per_day is None and days is None:
            raise DataError(
                f"{where}: alerts_per_day needs rows_per_day, the number of rows a day, or days, the number of days "
                "that these rows cover."
            )
        prices = None
        if costs is not None:
            if len(costs) == 2:
                prices = Costs(*(float(cost) for cost in costs))
            if prices is None or not all(0 < cost < math.inf for cost in prices):
                raise DataError(
                    f"{where}: costs must be two numbers above 0, of a false positive and of a missed positive, got "
                    f"{tuple(costs)}."
                )
        return cls(where, rule, None if target is None else float(target), rows_per_day, days, prices)

    def decide(
        self, labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None, level: float = 0.95
    ) -> Decision:
        """Return the decision on these rows; DataError if a row is invalid or no threshold follows the rule."""
        checked_level(level)
        rows = valid_rows(self.where, labels, scores, importances)
        wrong = np.flatnonzero(~np.isfinite(rows.scores))
        if len(wrong):
            raise DataError(
                f"{self.where}: row {wrong[0]} has the score {rows.scores[wrong[0]]}; thresholds need finite scores."
            )
        cuts = _Cuts.of(rows)
        if not math.isfinite(cuts.total):
            raise DataError(f"{self.where}: the sum of the importances is not finite. Divide them by the same number.")
        daily = self.rows_per_day if self.days is None else cuts.total / self.days
        at = self._choose(cuts, daily)
        return _measured(self, cuts, at, daily, level)

    def _choose(self, cuts: _Cuts, daily: float | None) -> int:
        """Return the number of the threshold, of those from the highest down."""
        if self.rule == "costs":
            return self._cheapest(cuts)
        assert self.target is not None
        if self.rule == "recall":
            return int(np.argmax(cuts.recall >= self.target))  # the first
        if self.rule == "precision":
            return self._last(cuts, cuts.precision, cuts.precision >= self.target, int(np.argmax(cuts.precision)))
        if self.rule == "fpr":
            first = int(np.argmax(cuts.false > 0))
            if cuts.n_neg * self.target < ONE:
                self._too_few(cuts, "negatives", cuts.n_neg, cuts.fpr[first], first)
            return self._last(cuts, cuts.fpr, cuts.fpr <= self.target, 0)
        share = self.target
        if self.rule == "alerts_per_day":
            assert daily is not None
            if self.target >= daily:
                raise DataError(
                    f"{self.where}: {self.target:g} alerts a day are no fewer than the {daily:g} rows a day; no "
                    "threshold is needed for that."
                )
            share = self.target / daily
        if cuts.n * share < ONE:
            self._too_few(cuts, "rows", cuts.n, cuts.share[0], 0, share)
        return self._last(cuts, cuts.share, cuts.share <= share, 0)

    def _last(self, cuts: _Cuts, rate: NDArray[np.float64], follows: NDArray[np.bool_], best: int) -> int:
        """Return the lowest threshold that follows the rule; DataError, with the best there is, if none does."""
        found = np.flatnonzero(follows)
        if len(found):
            return int(found[-1])
        value = rate[best]
        if self.rule == "precision":
            raise DataError(
                f"{self.where}: no threshold has a precision of {self.target:g}; the best is {value:.4g}, at the "
                f"threshold {cuts.scores[best]:.6g}, with a recall of {cuts.recall[best]:.4g}."
            )
        what = "negatives" if self.rule == "fpr" else "rows"
        tied = f"{cuts.sizes[0]:,} rows share the highest score, {cuts.scores[0]:.6g}"
        least = f"{value:.4g} of the {what}"
        raise DataError(
            f"{self.where}: no threshold has {self._asked()}: {tied}, so at least {least} are called positive, or none."
        )

    def _asked(self) -> str:
        if self.rule == "alerts_per_day":
            return f"at most {self.target:g} alerts a day"
        return f"a {_WORDS[self.rule]} of at most {self.target:g}"

    def _too_few(
        self, cuts: _Cuts, what: str, rows: float, least: float, best: int, share: float | None = None
    ) -> NoReturn:
        limit = self.target if share is None else share
        assert limit is not None
        raise DataError(
            f"{self.where}: {self._asked()} needs at least {math.ceil(1 / limit):,} {what}, got {rows:,.6g}: one of "
            f"them is more than that. The smallest that these rows can show is {least:.4g} of the {what}, at the "
            f"threshold {cuts.scores[best]:.6g}. Use more rows."
        )

    def _cheapest(self, cuts: _Cuts) -> int:
        assert self.costs is not None
        cost = self.costs.false_positive * cuts.false + self.costs.missed * (cuts.positives - cuts.true)
        best = int(np.argmin(cost))
        nothing = self.costs.missed * cuts.positives
        if cost[best] >= nothing:
            raise DataError(
                f"{self.where}: with these costs no threshold is better than to call no row positive, which costs "
                f"{nothing / cuts.total:.4g} per row; the best threshold, {cuts.scores[best]:.6g}, costs "
                f"{cost[best] / cuts.total:.4g}. "
                + advice("Check the order of costs: (false positive, missed positive).", "Check the costs.")
            )
        return best


class _Cuts(NamedTuple):
    """What is called positive at each threshold: the distinct scores, from the highest down."""

    scores: NDArray[np.float64]
    sizes: NDArray[np.int64]  # rows with this score
    true: NDArray[np.float64]  # weight of positives with this score or a higher one
    false: NDArray[np.float64]
    n_pos: float  # effective rows
    n_neg: float
    signed: NDArray[np.float64]  # the weight of each row, from the highest score down; below zero: a negative

    @classmethod
    def of(cls, rows: ScoredRows) -> _Cuts:
        if rows.importances is not None:
            counts = rows.importances > 0
            rows = ScoredRows(rows.labels[counts], rows.scores[counts], rows.importances[counts])
        order = np.argsort(rows.scores)
        if (np.diff(rows.scores[order]) == 0).any():
            # Equal scores in an order of their own, so that the order in which rows came does not matter.
            weights = () if rows.importances is None else (rows.importances,)
            order = np.lexsort((*weights, rows.labels, rows.scores))
        order = order[::-1]
        scores = rows.scores[order].astype(np.float64)
        signed = np.where(rows.labels[order] > 0, 1.0, -1.0)
        if rows.importances is not None:
            signed *= rows.importances[order]
        last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))
        with np.errstate(over="ignore"):  # the caller looks at the total
            true, false = (np.cumsum(np.maximum(sign * signed, 0.0))[last] for sign in (1, -1))
        return cls(scores[last], np.diff(last, prepend=-1), true, false, *effective_rows(rows), signed)

    @property
    def positives(self) -> float:
        return float(self.true[-1])

    @property
    def negatives(self) -> float:
        return float(self.false[-1])

    @property
    def total(self) -> float:
        return self.positives + self.negatives

    @property
    def n(self) -> float:
        """Effective number of all rows."""
        return 1 / ((self.positives / self.total) ** 2 / self.n_pos + (self.negatives / self.total) ** 2 / self.n_neg)

    @property
    def fpr(self) -> NDArray[np.float64]:
        return self.false / self.negatives

    @property
    def recall(self) -> NDArray[np.float64]:
        return self.true / self.positives

    @property
    def precision(self) -> NDArray[np.float64]:
        return self.true / (self.true + self.false)

    @property
    def share(self) -> NDArray[np.float64]:
        return (self.true + self.false) / self.total


def _measured(wanted: Wanted, cuts: _Cuts, at: int, daily: float | None, level: float) -> Decision:
    """Return the decision for the threshold of this number."""
    true, false = float(cuts.true[at]), float(cuts.false[at])
    half_true = half_false = 0.0  # of the row at the threshold, if it is alone
    if cuts.sizes[at] == 1:
        half_true = (true - (float(cuts.true[at - 1]) if at else 0.0)) / 2
        half_false = (false - (float(cuts.false[at - 1]) if at else 0.0)) / 2
    unit_pos, unit_neg = cuts.positives / cuts.n_pos, cuts.negatives / cuts.n_neg  # weight of an effective row
    unit = cuts.total / cuts.n
    lucky = _optimism(wanted, cuts, at) / 2
    good, bad = (true - half_true) / unit_pos, (false - half_false) / unit_neg  # effective rows above the threshold
    # Half a row to both sides of the rate that the rule limits, if rows tie at the threshold: Clopper and Pearson's.
    tied = 0.5 if cuts.sizes[at] > 1 else 0.0
    slack_pos, slack_neg = tied * (wanted.rule == "recall"), tied * (wanted.rule == "fpr")
    slack = tied * (wanted.rule in ("share", "alerts_per_day"))

    def estimate(value: float, low: float, high: float) -> Estimate:
        low, high = 0.0 if value == 0 else low, 1.0 if value == 1 else high
        return Estimate(value, min(low, value), max(high, value), level=level)

    def true_share(share: float) -> float:
        return share * unit_pos / (share * unit_pos + (1 - share) * unit_neg)

    low, high = (1 - level) / 2, (1 + level) / 2
    every_pos, every_neg = cuts.n_pos * cuts.total / cuts.positives, cuts.n_neg * cuts.total / cuts.negatives
    above = (true + false - half_true - half_false) / unit
    cost = None
    if wanted.costs is not None:
        missed, lost = cuts.positives - true, cuts.n_pos - good
        cost = _sum(
            wanted.costs,
            estimate(false / cuts.total, _jeffreys(bad, every_neg, low), _jeffreys(bad + lucky, every_neg, high)),
            estimate(missed / cuts.total, _jeffreys(lost, every_pos, low), _jeffreys(lost + lucky, every_pos, high)),
        )
    return Decision(
        threshold=float(cuts.scores[at]),
        rule=wanted.rule,
        target=wanted.target,
        rows=len(cuts.signed),
        positives=int(np.count_nonzero(cuts.signed > 0)),
        fpr=estimate(
            false / cuts.negatives,
            _jeffreys(bad - slack_neg, cuts.n_neg, low),
            _jeffreys(bad + slack_neg + lucky, cuts.n_neg, high),
        ),
        recall=estimate(
            true / cuts.positives,
            _jeffreys(good - slack_pos - lucky, cuts.n_pos, low),
            _jeffreys(good + slack_pos, cuts.n_pos, high),
        ),
        precision=estimate(
            true / (true + false),
            true_share(_jeffreys(good - slack_pos - slack_neg - lucky, good + bad, low)),
            true_share(_jeffreys(good + slack_pos + slack_neg, good + bad, high)),
        ),
        share=estimate(
            (true + false) / cuts.total,
            _jeffreys(above - slack, cuts.n, low),
            _jeffreys(above + slack, cuts.n, high),
        ),
        rows_per_day=daily,
        costs=wanted.costs,
        cost=cost,
    )


def _jeffreys(part: float, whole: float, p: float) -> float:
    """Return a quantile of the rate that `part` of `whole` effective rows show."""
    part = min(max(part, 0.0), whole)
    return beta.quantile(p, part + 0.5, whole - part + 0.5)


def _optimism(wanted: Wanted, cuts: _Cuts, at: int) -> float:
    """Return how many rows of each class the threshold owes to luck, by cross-validation; 0 for most rules.

    The cheapest threshold, and the last one that is precise enough, is one where positives happen to lie just above it
    and negatives just below. With what a positive above it gains and a negative loses, what is gained on a tenth of the
    rows by this threshold rather than by that of the other nine tenths, summed over all tenths, is what was gained by
    chance.
    """
    if wanted.rule == "costs":
        assert wanted.costs is not None
        loss, gain = wanted.costs
    elif wanted.rule == "precision":
        assert wanted.target is not None
        loss, gain = wanted.target, 1 - wanted.target
    else:
        return 0.0
    gains = np.where(cuts.signed > 0, gain, loss) * cuts.signed
    last = np.cumsum(cuts.sizes) - 1
    folds = np.random.default_rng(0).integers(FOLDS, size=len(gains), dtype=np.int8)
    lucky = 0.0
    for fold in range(FOLDS):
        mine = folds == fold
        apart = np.cumsum(np.where(mine, gains, 0.0))[last]
        others = np.cumsum(np.where(mine, 0.0, gains))[last]
        if wanted.rule == "costs":
            chosen = np.flatnonzero((others == others.max()) & (others > 0))[:1]
        else:
            chosen = np.flatnonzero((others >= 0) & (np.cumsum(~mine)[last] > 0))[-1:]
        lucky += float(apart[at]) - float(apart[chosen].sum())  # if none is chosen, no row is called positive
    unit_pos, unit_neg = cuts.positives / cuts.n_pos, cuts.negatives / cuts.n_neg
    return max(0.0, lucky / (gain * unit_pos + loss * unit_neg))


def _sum(costs: Costs, wrong: Estimate, missed: Estimate) -> Estimate:
    """Return the cost of both errors; the interval of a sum from those of its parts (Zou and Donner, 2008)."""
    value = costs.false_positive * wrong + costs.missed * missed
    below = math.hypot(costs.false_positive * (wrong - wrong.low), costs.missed * (missed - missed.low))
    above = math.hypot(costs.false_positive * (wrong.high - wrong), costs.missed * (missed.high - missed))
    return Estimate(value, max(0.0, value - below), value + above, level=wrong.level)


def _check_target(where: str, rule: str, target: float) -> None:
    if rule == "alerts_per_day":
        if not 0 < target < math.inf:
            raise DataError(f"{where}: alerts_per_day must be a number above 0, got {target}.")
        return
    included = rule in ("precision", "recall")
    if not (0 < target < 1 or (included and target == 1)):
        allowed = "above 0 and at most 1" if included else "between 0 and 1"
        raise DataError(f"{where}: {rule} must be {allowed}, such as 0.01 for one per cent, got {target}.")


def _numbers(name: str, value: Estimate | None) -> dict[str, float | None]:
    if value is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: float(value), f"{name}_low": value.low, f"{name}_high": value.high}


def _number(record: Mapping[str, Any], name: str, low: float = -math.inf, high: float = math.inf) -> float:
    value = record[name]
    if type(value) not in (int, float) or not math.isfinite(value) or not low <= value <= high:
        raise ValueError(f"{name} of its decision is {value!r}")
    return float(value)


def _count(record: Mapping[str, Any], name: str) -> int:
    value = record[name]
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} of its decision is {value!r}")
    return value


def _estimate(record: Mapping[str, Any], name: str, level: float, largest: float) -> Estimate:
    value, low, high = (_number(record, key, 0, largest) for key in (name, f"{name}_low", f"{name}_high"))
    if not low <= value <= high:
        raise ValueError(f"{name} of its decision is {value!r}, outside of its interval")
    return Estimate(value, low, high, level=level)
