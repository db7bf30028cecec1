"""What `train` and `race` show while they run: a table, a live line under it, or JSON lines."""

from __future__ import annotations

import time
from typing import Any

from rarestream.cli import failures, look
from rarestream.evaluate import Step, TrainingRun
from rarestream.evaluate.progress import HEADING, REDRAWN, ProgressMeter
from rarestream.evaluate.progress import number as number


class ProgressBar:
    """Prints the progress of a run, step by step: a `table`, a `live` line under it, JSON `lines`."""

    def __init__(self, run: TrainingRun, *, table: bool, live: bool, lines: bool) -> None:
        self._run = run
        self._table = table
        self._live_line = look.LiveLine(live)
        self._lines = lines
        self._ink = look.stderr()
        self._doubted = run.model.order.suspicious  # an earlier run has said so
        self._meter = ProgressMeter(run.model, waits=run.stream.settings["shuffle"] is not None)
        self._drawn = 0.0
        self._headed = False

    @property
    def seconds(self) -> float:
        return self._meter.seconds

    @property
    def looks_sorted(self) -> bool:
        return self._run.model.order.suspicious

    @property
    def pace(self) -> tuple[float, float]:
        """Rows and non-zeros per second since the first row was learned; a shuffle reads all rows before that."""
        return self._meter.pace

    def start(self) -> None:
        """Before the first rows. A shuffle reads all of them first, which may take a while."""
        self._drawn = time.monotonic()
        what = "reading and shuffling" if self._run.stream.settings["shuffle"] is not None else "reading"
        self._live_line.draw(f"  {self._ink(what + ' ...', 'dim')}")

    def step(self, step: Step) -> None:
        """Print what is due after some rows; of a live stream, maybe none."""
        if not len(step.block):
            if self._live_line.shown and self._meter.rows:
                self._draw()
            return
        recorded = self._table or self._lines
        self._meter.add(step.block, step.scores if recorded else None)
        if self.looks_sorted and not self._doubted:
            self._doubted = True
            self.warn(self._run.model.order.message)
        if recorded and step.mark:
            self.mark()
        if self._live_line.shown:
            self._draw()

    def mark(self) -> None:
        """A line of the table, or a JSON line, for the rows since the one before."""
        progress = self._meter.record(self._run.fraction, self._run.place.number)
        if self._lines:
            emit({"event": "progress", **progress.as_dict()})
        if self._table:
            self.clear()
            if not self._headed:
                self._ink.line(self._ink(HEADING, "bold"))
                self._headed = True
            self._ink.line(progress.line(self._ink))

    def close(self) -> None:
        """Print a last mark, if there are rows since the one before, and clear the live line."""
        if self._meter.rows > self._meter.recorded_rows and (self._table or self._lines):
            self.mark()
        self.clear()

    def warn(self, message: str) -> None:
        self.clear()
        look.warn(message)

    def note(self, message: str) -> None:
        self.clear()
        self._ink.message(message)

    def _draw(self) -> None:
        now = time.monotonic()
        if now - self._drawn >= REDRAWN:
            self._drawn = now
            self._live_line.draw(f"  {self._ink(self._meter.live(self._run, look.width() - 3), 'dim')}")

    def clear(self) -> None:
        self._live_line.clear()


def counts(run: TrainingRun) -> dict[str, Any]:
    """The keys that every JSON line of `train` has."""
    model, auc = run.model, run.model.progress.auc
    return {
        "rows": model.rows,
        "positives": model.positives,
        "progressive_auc": number(auc),
        "auc_low": number(auc.low),
        "auc_high": number(auc.high),
        "nonzeros": model.nonzeros,
        "n_features": model.n_features,
        "pass": run.place.number,
    }


def names(run: TrainingRun) -> dict[str, Any]:
    """The key for hashed features of the last JSON line: how many were seen, and how many share a slot."""
    from rarestream.features import Hashed

    space = run.stream.features
    if not isinstance(space, Hashed):
        return {}
    table = space.names
    found = {"bits": space.bits}
    if table is not None:
        found |= {"names": len(table), "collisions": table.collisions, "names_lost": table.lost}
    return {"features": found}


def emit(record: dict[str, Any]) -> None:
    """Print a JSON line. If its reader has gone, training continues: the model is still wanted."""
    import json

    try:
        print(json.dumps(record, allow_nan=False), flush=True)
    except BrokenPipeError:
        failures.discard_stdout()
