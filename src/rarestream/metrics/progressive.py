"""ProgressiveScores: the AUC, and the calibration, of the scores that rows had before they were learned."""

from __future__ import annotations

from _thread import allocate_lock  # what threading.Lock is, without the rest of that module

from rarestream.metrics.calibration import Calibration
from rarestream.metrics.rows import ScoredRows
from rarestream.metrics.streaming import StreamingAuc

MOST_ROWS, MOST_PARTS = 1 << 18, 1 << 8  # that wait


class ProgressiveScores:
    """Counts the scores that rows had before they were learned.

    While several settings race, rows wait until somebody asks for the AUC or the calibration: when the settings are
    compared, the latest rows are counted anew under another mixture, and what was counted before would be in vain.
    One thread counts; any may ask.

    Parameters
    ----------
    auc : StreamingAuc
    calibration : Calibration or None
        None: the scores are not calibrated.
    """

    __slots__ = ("_auc", "_calibration", "_held", "_waiting", "_waiting_rows")

    def __init__(self, auc: StreamingAuc, calibration: Calibration | None) -> None:
        self._auc, self._calibration = auc, calibration
        self._waiting: list[ScoredRows] = []
        self._waiting_rows = 0
        self._held = allocate_lock()

    @property
    def auc(self) -> StreamingAuc:
        """The AUC of all rows that count."""
        self._count_waiting()
        return self._auc

    @property
    def calibration(self) -> Calibration | None:
        """What turns scores into probabilities."""
        self._count_waiting()
        return self._calibration

    def count(self, rows: ScoredRows, wait: bool = False) -> None:
        """Add rows; with `wait` they may wait, and are copied."""
        if not wait:
            self._count_waiting()
            self._count(rows)
            return
        labels, scores, importances = rows
        self._wait(ScoredRows(labels.copy(), scores.copy(), None if importances is None else importances.copy()))

    def restart(self, rows: ScoredRows, wait: bool = False) -> None:
        """Forget all rows, and count others; with `wait` they may wait, and must not change."""
        with self._held:
            self._waiting.clear()
            self._waiting_rows = 0
            self._auc = StreamingAuc()
            if self._calibration is not None:
                self._calibration = Calibration()
        if wait:
            self._wait(rows)
        else:
            self._count(rows)

    def _wait(self, rows: ScoredRows) -> None:
        with self._held:
            self._waiting.append(rows)
            self._waiting_rows += len(rows.labels)
        if len(self._waiting) > MOST_PARTS or self._waiting_rows > MOST_ROWS:
            self._count_waiting()

    def _count_waiting(self) -> None:
        if not self._waiting:
            return
        with self._held:
            for rows in self._waiting:
                self._count(rows)
            self._waiting.clear()
            self._waiting_rows = 0

    def _count(self, rows: ScoredRows) -> None:
        self._auc.count(rows)
        if self._calibration is not None:
            self._calibration.count(rows)
