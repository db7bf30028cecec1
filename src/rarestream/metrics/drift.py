"""DriftDetector: raises an alarm when the AUC of a stream falls, with a stated rate of false alarms.

Rows are cut into groups: some rows of one class, then one of the other, which ends
the group. The placement x of a group is the share of its pairs in which the
positive has the higher score, a tie counting one half. Its mean is the AUC,
whatever the share of positives, and no row is in two groups; so as long as the
AUC stays, placements are independent numbers between 0 and 1 with that mean.
Only rows that were scored close to one another are compared: scores may move as
the model learns.

The reference m is a lower bound of the AUC before. For any slope g in (0, 1),

    (x_1 + .. + x_n) / n - (c + (-log(1 - g) - g) V) / (g n),
    V = sum_i (x_i - (1/2 + x_1 + .. + x_(i-1)) / i)^2,

is below the mean for all n at once, except with probability exp(-c) [1, 2]. The
largest of those for slopes 0.8 / 2^j is taken, j = 0, 1, .., with exp(-c) =
1 / ((j + 2) (j + 3)). The reference is the largest such bound so far, of all
placements since the latest alarm, and of each of the stretches of 64, 128, 256, ..
into which they are cut; for stretch i = 0, 1, .. exp(-c) is divided by (i + 1) (i + 2).
So it follows an AUC that rises, and never falls.

Against it we bet that placements are lower. With a bet b in (0, 1) the factor

    1 + b (m - x) / (1 - m)

is positive, and at most 1 on average while the AUC is m or more, however
placements are distributed. Eight bets b = 0.64 / 2^k begin anew at every group:

    R_k <- (R_k + 1/8) (1 + b_k (m - x) / (1 - m)),        R = sum_k R_k.

R minus the number of groups then falls or stays on average, so the mean number of
groups until R reaches a limit A is at least A [3]: the rate of false alarms. A
group has at least one row of each class.

R also grows, if slowly, where placements hardly vary and nothing falls. So an alarm
needs a gain, too: the best bet, that of the largest R_k, must have made 8 of 1,

    G_k <- max(G_k, 1) (1 + b_k (m - x) / (1 - m)).

Where G_k last was at most 1, the fall is said to have begun.

What is not exact: the reference may by chance be above the AUC. How often an
alarm follows from that was simulated: benchmarks/drift_alarms.py, docs/drift.md.

[1] Howard, Ramdas, McAuliffe, Sekhon. Time-uniform, nonparametric, nonasymptotic
    confidence sequences. Annals of Statistics 49, 2021.
[2] Waudby-Smith, Ramdas. Estimating means of bounded random variables by betting.
    JRSS B 86, 2024.
[3] Shin, Ramdas, Rinaldo. E-detectors: a nonparametric framework for sequential
    change detection. New England Journal of Statistics in Data Science 2, 2024.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics.estimate import Estimate, Placements, interval
from rarestream.metrics.rows import ScoredRows, as_rows, raise_fault

State = dict[str, NDArray[Any]]
ALARMS_KEPT = 100
_INT8, _FLOAT64 = np.dtype(np.int8), np.dtype(np.float64)


class Alarm(NamedTuple):
    """The AUC of a stream has fallen.

    Attributes
    ----------
    row : int
        Number of the row, from 1, at which the alarm was raised.
    begin : int
        Number of the row at which the fall began, as estimated.
    before : Estimate
        AUC before, with its 95 % interval: that of the rows that the reference is from. As these were chosen for a high
        AUC, it is a little too high on average.
    after : Estimate
        AUC from `begin` to `row`, with its 95 % interval.
    """

    row: int
    begin: int
    before: Estimate
    after: Estimate


class DriftDetector:
    """Raises an alarm when the AUC of a stream falls.

    `count` the scores that rows had before they were learned. The AUC is compared with the best since the latest alarm,
    or the first row; one that rises raises no alarm. After an alarm the detector starts anew: the next alarm means that
    the AUC has fallen once more. How rows are divided into blocks makes no difference. It needs a few kilobytes.

    Parameters
    ----------
    positives_between_false_alarms : float, between 10 and 1e15, default 100_000
        Mean number of positives between two false alarms, at least, while the AUC does not fall; of negatives, if these
        are fewer. The delay until a fall is found grows with its logarithm only.
    tolerance : float, >= 0 and below 1, default 0
        By how much the AUC may fall without an alarm. Above 0 for streams whose AUC goes up and down by itself.
    window : int, >= 1, default 1000
        Maximum number of rows of one class, the latest, that a row of the other class is compared with.

    Raises
    ------
    DataError
        If an argument is out of range.
    """

    __slots__ = ("_alarms", "_core", "positives_between_false_alarms", "tolerance", "window")

    def __init__(
        self, positives_between_false_alarms: float = 100_000, *, tolerance: float = 0.0, window: int = 1000
    ) -> None:
        if not 10 <= positives_between_false_alarms <= 1e15:
            raise DataError(
                "DriftDetector: positives_between_false_alarms must be between 10 and 1e15, got "
                f"{positives_between_false_alarms}."
            )
        if not 0 <= tolerance < 1:
            raise DataError(f"DriftDetector: tolerance must be >= 0 and below 1, got {tolerance}.")
        if not 1 <= window <= 2**31 or window != int(window):
            raise DataError(f"DriftDetector: window must be a whole number of rows, at least 1, got {window}.")
        self.positives_between_false_alarms = float(positives_between_false_alarms)
        self.tolerance = float(tolerance)
        self.window = int(window)
        self._core = _native.DriftDetector(self.positives_between_false_alarms, self.tolerance, self.window)
        self._alarms: list[tuple[float, ...]] = []

    def count(self, labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None) -> bool:
        """Count rows in the order in which they were learned.

        Parameters
        ----------
        labels : array-like of shape (rows,)
            -1 and +1, 0 and 1, or booleans.
        scores : array-like of shape (rows,)
            Any numbers except nan: the score of each row before it was learned.
        importances : array-like of shape (rows,), optional
            Finite and >= 0. A row of importance 0 is not compared with others; all others count alike.

        Returns
        -------
        bool
            Whether an alarm was raised at one of these rows; `alarms` has it.

        Raises
        ------
        DataError
            If a row is invalid. No row is counted then.
        """
        # Rows from a model have the types of the core; of one row, the conversion would take most of the time.
        if importances is None and _is(labels, _INT8) and _is(scores, _FLOAT64) and len(labels) == len(scores):
            rows = ScoredRows(labels, scores, None)
        else:
            rows = as_rows("DriftDetector.count", labels, scores, importances)
        fault, row, raised = self._core.count(*rows)
        if fault:
            raise_fault("DriftDetector.count", fault, row, labels, rows)
        if not raised:
            return False
        self._alarms = [*self._alarms, *raised][-ALARMS_KEPT:]
        return True

    @property
    def rows(self) -> int:
        """Number of rows counted."""
        return int(self._core.rows)

    @property
    def positives(self) -> int:
        """Number of positives counted; rows of importance 0 aside."""
        return int(self._core.positives)

    @property
    def alarm_count(self) -> int:
        """Number of alarms since the first row."""
        return int(self._core.alarms)

    @property
    def alarms(self) -> list[Alarm]:
        """The latest alarms, oldest first; at most 100 are kept."""
        return [_alarm(*numbers) for numbers in self._alarms]

    @property
    def alarm(self) -> Alarm | None:
        """The latest alarm; None if there was none."""
        return _alarm(*self._alarms[-1]) if self._alarms else None

    @property
    def reference(self) -> float:
        """Lower bound of the best AUC since the latest alarm: an alarm means that the AUC is below it."""
        return self._core.reference

    @property
    def statistic(self) -> float:
        """How much speaks for a fall, from 0: an alarm is raised when it reaches `limit`, and it is then 0 again."""
        return math.log1p(self._core.statistic)

    @property
    def limit(self) -> float:
        """The `statistic` at which an alarm is raised."""
        return math.log1p(self.positives_between_false_alarms)

    def state(self) -> State:
        """Return the state, for `from_state`.

        Returns
        -------
        dict of str to array
            Named arrays.
        """
        settings = [self.positives_between_false_alarms, self.tolerance, float(self.window)]
        return {
            "settings": np.array(settings),
            **self._core.state(),
            "alarms": np.array(self._alarms, np.float64).reshape(-1, 8),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> DriftDetector:
        """Return the DriftDetector with this state.

        Parameters
        ----------
        state : mapping of str to array
            What `state()` returned; DataError if it is invalid.

        Returns
        -------
        DriftDetector
            It continues as the original would.
        """
        where, way_on = "DriftDetector.from_state", "Pass what state() returned."
        missing = {"settings", "numbers", "scores", "alarms"} - set(state)
        if missing:
            raise DataError(f"{where}: needs {', '.join(sorted(missing))}. {way_on}")
        arrays = {name: np.ascontiguousarray(state[name]) for name in ("settings", "numbers", "scores", "alarms")}
        for name, array in arrays.items():
            if array.dtype != _FLOAT64:
                raise DataError(f"{where}: {name} must be of dtype float64, got {array.dtype}. {way_on}")
        settings, alarms = arrays["settings"], arrays["alarms"]
        if settings.shape != (3,) or not np.isfinite(settings).all():
            raise DataError(f"{where}: settings must be three finite numbers. {way_on}")
        if alarms.ndim != 2 or alarms.shape[1] != 8 or len(alarms) > ALARMS_KEPT or not np.isfinite(alarms).all():
            raise DataError(f"{where}: alarms must be at most {ALARMS_KEPT} times eight finite numbers. {way_on}")
        self = cls(float(settings[0]), tolerance=float(settings[1]), window=settings[2])
        try:
            self._core.load({"numbers": arrays["numbers"], "scores": arrays["scores"]})
        except ValueError as error:
            raise DataError(f"{where}: {error}. {way_on}") from None
        self._alarms = [tuple(numbers) for numbers in alarms.tolist()]
        return self

    def __getstate__(self) -> State:
        return self.state()

    def __setstate__(self, state: State) -> None:
        restored = type(self).from_state(state)
        for name in DriftDetector.__slots__:
            setattr(self, name, getattr(restored, name))

    def __repr__(self) -> str:
        return (
            f"DriftDetector(positives_between_false_alarms={self.positives_between_false_alarms:g}, "
            f"tolerance={self.tolerance:g}, window={self.window}, rows={self.rows}, alarms={self.alarm_count}, "
            f"statistic={self.statistic:.2f} of {self.limit:.2f})"
        )


def _is(array: object, dtype: np.dtype[Any]) -> TypeGuard[NDArray[Any]]:
    return type(array) is np.ndarray and array.dtype is dtype and array.ndim == 1 and array.flags.c_contiguous


def _alarm(row: float, begin: float, *placed: float) -> Alarm:
    return Alarm(int(row), int(begin), _estimate(*placed[:3]), _estimate(*placed[3:]))


def _estimate(n: float, mean: float, spread: float) -> Estimate:
    """Return the AUC of `n` groups, whose placements are independent: the pairs of a group are in its spread."""
    return interval(Placements(mean, spread, 0.0, n, math.inf), 0.95)
