"""WindowedAuc: the exact AUC of the most recent rows of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarestream import _native
from rarestream.errors import DataError
from rarestream.metrics.estimate import Estimate, checked_level, unknown
from rarestream.metrics.exact import auc_interval
from rarestream.metrics.rows import as_rows, raise_fault

State = dict[str, NDArray[Any]]


class WindowedAuc:
    """Exact AUC of the last rows of a stream, a tie counting one half.

    It is computed from the rows of the window when `auc` is read. Rows of importance 0 are ignored. Each row of the
    window needs 17 bytes.

    Parameters
    ----------
    window : int, >= 2
        Number of rows in the window.

    Raises
    ------
    DataError
        If `window` is less than 2.
    """

    __slots__ = ("_at", "_count", "_importances", "_labels", "_scores", "window")

    def __init__(self, window: int) -> None:
        if window < 2:
            raise DataError(f"WindowedAuc: window must be at least 2 rows, got {window}.")
        self.window = int(window)
        self._labels = np.zeros(self.window, np.int8)
        self._scores = np.zeros(self.window, np.float64)
        self._importances = np.ones(self.window, np.float64)
        self._at = 0  # position of the next row
        self._count = 0

    def add(self, labels: ArrayLike, scores: ArrayLike, importances: ArrayLike | None = None) -> None:
        """Add rows; they replace the oldest ones.

        Parameters
        ----------
        labels, scores, importances : array-like
            As for `auc`.

        Raises
        ------
        DataError
            If a row is invalid. No row is added then.
        """
        rows = as_rows("WindowedAuc.add", labels, scores, importances)
        fault, row, _, _ = _native.survey_labels(*rows)
        if fault:
            raise_fault("WindowedAuc.add", fault, row, labels, rows)
        y = np.where(rows.labels > 0, 1, -1).astype(np.int8)
        s, h = rows.scores, rows.importances
        if h is not None:
            y, s, h = y[h > 0], s[h > 0], h[h > 0]
        y, s = y[-self.window :], s[-self.window :]
        places = (self._at + np.arange(len(y))) % self.window
        self._labels[places] = y
        self._scores[places] = s
        self._importances[places] = 1.0 if h is None else h[-self.window :]
        self._at = (self._at + len(y)) % self.window
        self._count = min(self.window, self._count + len(y))

    def __len__(self) -> int:
        """Return the current number of rows in the window."""
        return self._count

    @property
    def auc(self) -> Estimate:
        """Exact AUC of the window, with its 95 % interval; nan, with the interval [0, 1], while a class is missing."""
        return self.estimate()

    def estimate(self, level: float = 0.95) -> Estimate:
        """Return the AUC of the window with a confidence interval, as `auc_interval` does.

        Parameters
        ----------
        level : float, between 0 and 1, default 0.95
            Confidence level; DataError if it is not in this range.

        Returns
        -------
        Estimate
            nan, with the interval [0, 1], while a class is missing.
        """
        checked_level(level)
        now = self.state()
        if len(np.unique(now["labels"])) < 2:
            return unknown(level)
        plain = bool((now["importances"] == 1).all())
        return auc_interval(now["labels"], now["scores"], None if plain else now["importances"], level)

    def state(self) -> State:
        """Return the window, for `from_state`.

        Returns
        -------
        dict of str to array
            Named arrays, oldest row first.
        """
        order = (self._at - self._count + np.arange(self._count)) % self.window
        return {
            "window": np.array([self.window], np.int64),
            "labels": self._labels[order],
            "scores": self._scores[order],
            "importances": self._importances[order],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> WindowedAuc:
        """Return the WindowedAuc with this state.

        Parameters
        ----------
        state : mapping of str to array
            What `state()` returned; DataError if it is invalid.

        Returns
        -------
        WindowedAuc
            It continues as the original would.
        """
        where = "WindowedAuc.from_state"
        missing = {"window", "labels", "scores", "importances"} - set(state)
        if missing:
            raise DataError(f"{where}: needs {', '.join(sorted(missing))}. Pass what state() returned.")
        window = np.asarray(state["window"])
        if window.shape != (1,) or window.dtype.kind not in "iu":
            raise DataError(f"{where}: window must be one whole number. Pass what state() returned.")
        if window[0] < np.size(state["labels"]):
            raise DataError(f"{where}: the window is smaller than its rows. Pass what state() returned.")
        self = cls(int(window[0]))
        self.add(state["labels"], state["scores"], state["importances"])
        return self

    def __getstate__(self) -> State:
        return self.state()

    def __setstate__(self, state: State) -> None:
        restored = type(self).from_state(state)
        for name in WindowedAuc.__slots__:
            setattr(self, name, getattr(restored, name))

    def __repr__(self) -> str:
        return f"WindowedAuc(window={self.window}, auc={self.auc}, rows={len(self)})"
