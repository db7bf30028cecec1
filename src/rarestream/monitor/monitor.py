"""Monitor: what people watch while a model learns, in bounded memory.

Rows are handed over by `count`, which only keeps them; `work` takes them in: the progressive AUC of all rows, the rows
of the window, and the points of the curves, which lie at fixed numbers of rows. So the state is a function of the rows
and their order, however they are divided, whenever anyone looks; what depends on the clock is kept apart.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import DataError
from rarestream.features.space import described
from rarestream.metrics import Estimate, StreamingAuc, WindowedAuc
from rarestream.metrics.drift import DriftDetector
from rarestream.metrics.rows import ScoredRows
from rarestream.model import Model
from rarestream.monitor.latencies import Latencies, Rate
from rarestream.monitor.weights import PARTS, LargestWeights

State = dict[str, NDArray[Any]]
Floats = NDArray[np.float64]

WINDOW = 10_000  # rows
WAITING = 1 << 16  # rows that may wait for `work`; then `count` does it
SINGLES = 1 << 12  # calls of `count` that may wait
FIRST_STEP = 200  # rows between the first points of the history
GROWTH = 16  # then each is after 1 / 16 more rows
POINTS = 400  # of the history
RECENT = 200  # windows that are kept, one after the other
SHOWN_ALARMS = 20
FRESH = 10  # windows: so long an alarm is shown as one
BINS = 12  # of the calibration


class _Rows(NamedTuple):
    labels: NDArray[np.int8]
    scores: Floats
    probabilities: Floats | None
    importances: Floats | None

    def alike(self, other: _Rows) -> bool:
        """Return whether both have probabilities, and importances, or both have not."""
        return [part is None for part in self] == [part is None for part in other]

    @classmethod
    def joined(cls, rows: list[_Rows]) -> _Rows:
        """Return rows that are alike as one."""
        if len(rows) == 1:
            return rows[0]
        joined: Any = (None if parts[0] is None else np.concatenate(parts) for parts in zip(*rows, strict=True))
        return cls(*joined)


class Monitor:
    """The numbers of a model that learns, over time.

    Give every row that was learned to `count`, and read `message` now and then. `state` has what a restart needs.

    `count` belongs to one thread. `work`, which takes some milliseconds, may be called in another one at the same time;
    then `message(model, work=False)` takes about one. `message` and `look` read the model, which must not learn then.

    Parameters
    ----------
    window : int, >= 2, default 10,000
        Number of rows that windowed AUC, histogram and calibration are of.
    progress : StreamingAuc, optional
        The progressive AUC of earlier rows. It is copied.
    rows, positives : int
        Number of earlier rows.
    drift : DriftDetector, optional
        What watches for a fall of the AUC; it is given every row. By default a new one.
    parts : int, default 4
        How much of the weights `look` reads at once: so many times 65,536.

    Attributes
    ----------
    predict, learn : Latencies
        For the service to fill: how long requests take.
    predicted : int
        For the service to fill: rows that were scored.
    """

    NAMES: ClassVar = ("rows", "auc", "low", "high", "window", "window_low", "window_high")

    def __init__(
        self,
        window: int = WINDOW,
        *,
        progress: StreamingAuc | None = None,
        rows: int = 0,
        positives: int = 0,
        drift: DriftDetector | None = None,
        parts: int = PARTS,
    ) -> None:
        self.window = int(window)
        self.rows, self.positives = rows, positives  # that were taken in
        self.drift = DriftDetector() if drift is None else drift
        self._progress = StreamingAuc() if progress is None else StreamingAuc.from_state(progress.state())
        self._windowed = WindowedAuc(self.window)
        self._probabilities = np.full(self.window, np.nan)
        self._at = 0  # position of the next probability
        self._history: list[tuple[float, ...]] = []  # NAMES
        self._recent: list[tuple[float, ...]] = []  # rows, AUC of the window that ends there, low, high
        self._next_point = rows + FIRST_STEP
        self._next_window = rows + self.window
        self._waiting: deque[tuple[float, ...] | _Rows] = deque()
        self._given = self._taken = 0  # rows of this process: each number has one writer
        self._lock = threading.Lock()
        self._summary: dict[str, Any] = {}
        self._summary_of = -1
        # What depends on the clock:
        self.predict, self.learn = Latencies(), Latencies()
        self.predicted = 0
        self.weights = LargestWeights()
        self._parts = parts
        self._learning, self._predicting = Rate(), Rate()

    @classmethod
    def of(
        cls, model: Model, window: int = WINDOW, *, drift: DriftDetector | None = None, parts: int = PARTS
    ) -> Monitor:
        """Return a monitor of a model from here on. Its progressive AUC includes the rows learned before."""
        return cls(
            window, progress=model.progress, rows=model.rows, positives=model.positives, drift=drift, parts=parts
        )

    # -- rows

    def count(
        self,
        labels: NDArray[np.int8],
        scores: Floats,
        probabilities: Floats | None = None,
        importances: Floats | None = None,
    ) -> None:
        """Count rows that were just learned.

        Parameters
        ----------
        labels : array of int8
            -1 and +1.
        scores : array of float64
            The score that each row had before it was learned.
        probabilities : array of float64, optional
            The probabilities of these scores, from before the rows were learned. By default there are none.
        importances : array of float64, optional
            By default 1 each.
        """
        n = len(labels)
        if n == 1:
            self.count_one(
                labels.item(),
                scores.item(),
                math.nan if probabilities is None else probabilities.item(),
                1.0 if importances is None else importances.item(),
            )
            return
        if not n:
            return
        self._waiting.append(
            _Rows(
                np.array(labels, np.int8),
                np.array(scores, np.float64),
                None if probabilities is None else np.array(probabilities, np.float64),
                None if importances is None else np.array(importances, np.float64),
            )
        )
        self._given += n
        if self._given - self._taken > WAITING:
            self.take_in()

    def count_one(self, label: int, score: float, probability: float = math.nan, importance: float = 1.0) -> None:
        """Count a row that was just learned; see `count`."""
        self._waiting.append((label, score, probability, importance))
        self._given += 1
        if len(self._waiting) > SINGLES:
            self.take_in()

    def adopt(self, progress: StreamingAuc) -> None:
        """Continue with another progressive AUC: that of a model whose race of settings has ended.

        From then on a model counts the scores of the winner, of earlier rows too.
        """
        self.take_in()
        with self._lock:
            self._progress = StreamingAuc.from_state(progress.state())
            self._summary_of = -1

    def take_in(self) -> None:
        """Take in the rows that were counted and wait: what is shown, and the drift detector, has them then."""
        with self._lock:
            while self._waiting:
                first = self._waiting.popleft()
                if isinstance(first, _Rows):
                    # Many small blocks as one: that is quicker, and keeps other threads waiting for less long.
                    alike = [first]
                    while self._waiting and isinstance(self._waiting[0], _Rows) and self._waiting[0].alike(first):
                        alike.append(self._waiting.popleft())  # type: ignore[arg-type]
                    self._add(_Rows.joined(alike))
                    continue
                singles = [first]
                while self._waiting and len(singles) < SINGLES and not isinstance(self._waiting[0], _Rows):
                    singles.append(self._waiting.popleft())  # type: ignore[arg-type]
                table = np.array(singles)
                self._add(
                    _Rows(
                        table[:, 0].astype(np.int8),
                        np.ascontiguousarray(table[:, 1]),
                        np.ascontiguousarray(table[:, 2]),
                        np.ascontiguousarray(table[:, 3]),
                    )
                )

    def _add(self, rows: _Rows) -> None:
        start, n = 0, len(rows.labels)
        while start < n:
            stop = min(n, start + min(self._next_point, self._next_window) - self.rows)
            self._add_piece(*(None if part is None else part[start:stop] for part in rows))  # type: ignore[arg-type]
            start = stop
            if self.rows == self._next_window:
                auc = self._windowed.auc
                self._recent = [*self._recent[-(RECENT - 1) :], (self.rows, float(auc), auc.low, auc.high)]
                self._next_window += self.window
            if self.rows == self._next_point:
                self._mark()
        self._taken += n

    def _add_piece(
        self, labels: NDArray[np.int8], scores: Floats, probabilities: Floats | None, importances: Floats | None
    ) -> None:
        self._progress.count(ScoredRows(labels, scores, importances))
        self._windowed.add(labels, scores, importances)
        self.drift.count(labels, scores, importances)
        self.rows += len(labels)
        self.positives += int(np.count_nonzero(labels > 0))
        if importances is not None:  # the window has no rows of importance 0
            counted = importances > 0
            labels, probabilities = labels[counted], None if probabilities is None else probabilities[counted]
        n = min(len(labels), self.window)
        places = (self._at + np.arange(n)) % self.window
        self._probabilities[places] = np.nan if probabilities is None else probabilities[len(labels) - n :]
        self._at = (self._at + n) % self.window

    def _mark(self) -> None:
        auc, window = self._progress.auc, self._windowed.auc
        self._history.append(
            (self.rows, float(auc), auc.low, auc.high, float(window), window.low, window.high),
        )
        if len(self._history) > POINTS:  # every second one of the older half goes
            self._history = self._history[: POINTS // 2 : 2] + self._history[POINTS // 2 :]
        self._next_point = self.rows + max(FIRST_STEP, self.rows // GROWTH)

    # -- what is shown

    def work(self) -> None:
        """Take in all rows, and compute what `message` shows of them, if there are new ones.

        This takes some milliseconds, and may run in another thread than `count`: most of it releases the interpreter.
        """
        self.take_in()
        with self._lock:
            if self._summary_of != self.rows:
                self._summary = self._summarise()
                self._summary_of = self.rows

    def _summarise(self) -> dict[str, Any]:
        from rarestream.metrics.plots import score_histogram
        from rarestream.metrics.probability import reliability

        window = self._windowed.state()
        labels, scores, importances = window["labels"], window["scores"], window["importances"]
        auc, windowed = self._progress.auc, self._windowed.auc
        last = (self.rows, float(auc), auc.low, auc.high, float(windowed), windowed.low, windowed.high)
        points = self._history if self._history and self._history[-1][0] == self.rows else [*self._history, last]
        positives = int(np.count_nonzero(labels > 0))
        histogram = calibration = None
        if 0 < positives < len(labels):
            found = score_histogram(labels, scores, importances, bins=40)
            histogram = {
                "edges": found.edges.tolist(),
                "positives": found.positives.tolist(),
                "negatives": found.negatives.tolist(),
                "n_positives": positives,
                "n_negatives": len(labels) - positives,
            }
        order = (self._at - len(labels) + np.arange(len(labels))) % self.window
        probabilities = self._probabilities[order]
        known = ~np.isnan(probabilities)
        if positives and known.any():
            bins = reliability(labels[known], probabilities[known], importances[known], bins=BINS)
            calibration = {
                "error": bins.error,
                "predicted": bins.probability.tolist(),
                "observed": bins.share.tolist(),
                "low": bins.share_low.tolist(),
                "high": bins.share_high.tolist(),
                "rows": bins.rows.tolist(),
            }
        return {
            "counted": self.rows,
            "auc": _estimate(auc),
            "window_auc": {**_estimate(windowed), "rows": len(labels), "positives": positives, "window": self.window},
            "history": _columns(self.NAMES, points),
            "recent": _columns(("rows", "auc", "low", "high"), self._recent),
            "scores": histogram,
            "calibration": calibration,
            "drift": self._drift(),
        }

    def _drift(self) -> dict[str, Any]:
        drift, earlier = self.drift, self.rows - self.drift.rows  # rows before those that it was given
        alarms = [
            {
                "rows": earlier + alarm.row,
                "begin": earlier + alarm.begin,
                "before": _estimate(alarm.before),
                "after": _estimate(alarm.after),
            }
            for alarm in drift.alarms[-SHOWN_ALARMS:]
        ]
        latest = drift.alarm
        return {
            # The detector begins anew after an alarm; people should still see it for a while.
            "alarm": latest is not None and drift.rows - latest.row < FRESH * self.window,
            "alarms": alarms,
            "count": drift.alarm_count,
            "statistic": drift.statistic,
            "limit": drift.limit,
            "reference": drift.reference,
        }

    def look(self, model: Model) -> None:
        """Read some of the weights of a model: for about half a millisecond, and at most 1 % of the time."""
        self.weights.look(model, self._parts)

    def tick(self, rows: int, now: float | None = None) -> None:
        """Note how many rows were learned, for the rows per second; about once a second."""
        now = time.monotonic() if now is None else now
        self._learning.sample(rows, now)
        self._predicting.sample(self.predicted, now)

    def message(self, model: Model, *, work: bool = True, look: bool = True) -> dict[str, Any]:
        """Return what the page shows, ready for JSON.

        Parameters
        ----------
        model : Model
            The model that learns. It must not learn meanwhile.
        work : bool, default True
            Whether to call `work` first. False: what it computed the last time is shown.
        look : bool, default True
            Whether to call `look`, too. False: the weights that were read the last time are shown.

        Returns
        -------
        dict
            docs/live-page.md lists its keys. Those of a service are None, for the service to replace.
        """
        if work or not self._summary:
            self.work()
        self.tick(model.rows)
        if look:
            self.look(model)
        weights, leader = self.weights, model.leader
        return {
            "time": time.time(),
            "learner": leader.name,
            "settings": {name: _plain(value) for name, value in leader.settings.items()},
            "racing": len(model.candidates) if len(model.candidates) > 1 else None,
            "features": described(model.features),
            "rows": model.rows,
            "positives": model.positives,
            "n_features": model.n_features,
            "nonzeros": weights.nonzeros,
            "state_bytes": model.state_bytes,
            "version": None,
            "sequence": None,
            **self._summary,
            "rates": {"learned": self._learning.per_second, "predicted": self._predicting.per_second},
            "latency": {"predict": self.predict.percentiles(), "learn": self.learn.percentiles()},
            "nonzeros_history": _columns(("rows", "nonzeros"), weights.history),
            "top": [weight._asdict() for weight in weights.top],
            "top_seconds": weights.since,
            "training": None,
            "labels": None,
            "queue": None,
            "shadow": None,
            "disk": None,
        }

    # -- state

    def state(self) -> State:
        """Return the state, a function of the rows alone: for `from_state`, bit for bit.

        Returns
        -------
        dict of str to array
            Named arrays, a few megabytes at most. Rows per second, latencies and weights are no part of it.
        """
        self.take_in()
        with self._lock:
            found: State = {
                "counts": np.array(
                    [self.rows, self.positives, self._next_point, self._next_window, self._at], np.int64
                ),
                "history": np.array(self._history, np.float64).reshape(-1, len(self.NAMES)),
                "recent": np.array(self._recent, np.float64).reshape(-1, 4),
                "probabilities": self._probabilities.copy(),
            }
            parts: dict[str, Any] = {"progress": self._progress, "window": self._windowed, "drift": self.drift}
            for name, part in parts.items():
                found |= {f"{name}.{key}": value for key, value in part.state().items()}
            return found

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> Monitor:
        """Return the Monitor with this state.

        Parameters
        ----------
        state : mapping of str to array
            What `state()` returned.

        Returns
        -------
        Monitor
            It continues as the original would.

        Raises
        ------
        DataError
            If the state is invalid.
        """
        parts: dict[str, State] = {}
        for name, array in state.items():
            part, _, key = name.rpartition(".")
            parts.setdefault(part, {})[key] = np.asarray(array)
        mine = parts.get("", {})
        windowed = WindowedAuc.from_state(parts.get("window", {}))
        self = cls(windowed.window, drift=DriftDetector.from_state(parts.get("drift", {})))
        shapes: dict[str, tuple[int, ...]] = {"counts": (5,), "probabilities": (windowed.window,)}
        for name, columns in (("history", len(cls.NAMES)), ("recent", 4)):
            shapes[name] = (mine[name].shape[0] if name in mine and mine[name].ndim == 2 else -1, columns)
        for name, shape in shapes.items():
            if name not in mine or mine[name].shape != shape:
                raise DataError(
                    f"Monitor.from_state: {name} is missing or has another shape. Pass what state() returned."
                )
        counts = [int(number) for number in mine["counts"].tolist()]
        self.rows, self.positives, self._next_point, self._next_window, self._at = counts
        ahead = min(self._next_point, self._next_window) > self.rows >= self.positives >= 0
        if not ahead or not 0 <= self._at < windowed.window:
            raise DataError("Monitor.from_state: the counts contradict each other. Pass what state() returned.")
        self._progress = StreamingAuc.from_state(parts.get("progress", {}))
        self._windowed = windowed
        self._probabilities = mine["probabilities"].astype(np.float64)
        self._history = [tuple(row) for row in mine["history"].tolist()]
        self._recent = [tuple(row) for row in mine["recent"].tolist()]
        return self


def _estimate(auc: Estimate) -> dict[str, Any]:
    return {"value": _number(auc), "low": auc.low, "high": auc.high}


def _number(value: float) -> float | None:
    """Return a number as JSON can hold it."""
    return float(value) if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    return _number(value) if isinstance(value, float) else value if isinstance(value, int | str | None) else str(value)


def _columns(names: tuple[str, ...], points: list[tuple[Any, ...]]) -> dict[str, list[float | None]]:
    """Return points as a list for each coordinate."""
    columns = list(zip(*points, strict=True)) or [()] * len(names)
    return {name: [_number(value) for value in column] for name, column in zip(names, columns, strict=True)}
