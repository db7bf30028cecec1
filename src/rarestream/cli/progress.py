"""What `train` and `race` show while they run: a table, a live line under it, or JSON lines."""

from __future__ import annotations

import math
import time
from typing import Any

from rarestream.cli import failures, look
from rarestream.evaluate import Step, TrainingRun
from rarestream.metrics import Estimate, StreamingAuc

REDRAWN = 0.2  # seconds between live lines
HEADING = "       rows     AUC  95 % interval     since last  positive    weights  rows/s"


class ProgressBar:
    """Prints the progress of a run, step by step: a `table`, a `live` line under it, JSON `lines`."""

    def __init__(self, run: TrainingRun, *, table: bool, live: bool, lines: bool) -> None:
        self._run = run
        self._table = table
        self._live_line = look.LiveLine(live)
        self._lines = lines
        self._ink = look.stderr()
        self._doubted = run.model.order.suspicious  # an earlier run has said so
        self._since = StreamingAuc()
        self._began = self._moving = time.monotonic()
        self._marked_rows = 0
        self._drawn = 0.0
        self._started_at: float | None = None  # the fraction of the way that an earlier run had covered
        self._headed = False

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def looks_sorted(self) -> bool:
        return self._run.model.order.suspicious

    @property
    def pace(self) -> tuple[float, float]:
        """Rows and non-zeros per second since the first row was learned; a shuffle reads all rows before that."""
        elapsed = max(time.monotonic() - self._moving, 1e-6)
        return self._run.rows / elapsed, self._run.nonzeros / elapsed

    def start(self) -> None:
        """Before the first rows. A shuffle reads all of them first, which may take a while."""
        self._drawn = time.monotonic()
        what = "reading and shuffling" if self._run.stream.settings["shuffle"] is not None else "reading"
        self._live_line.draw(f"  {self._ink(what + ' ...', 'dim')}")

    def step(self, step: Step) -> None:
        """Print what is due after some rows."""
        labels = step.block.labels
        assert labels is not None
        if self._run.stream.settings["shuffle"] is not None and self._moving == self._began:
            self._moving = time.monotonic()
        if self.looks_sorted and not self._doubted:
            self._doubted = True
            self.warn(self._run.model.order.message)
        if self._table or self._lines:
            self._since.add(labels, step.scores, step.block.importances)
            if step.mark:
                self.mark()
        if self._live_line.shown:
            self._draw()

    def mark(self) -> None:
        """A line of the table, or a JSON line, for the rows since the one before."""
        model, since = self._run.model, self._since.auc
        rate = self.pace[0]
        if self._lines:
            emit(
                {
                    "event": "progress",
                    **counts(self._run),
                    "auc_since_last": number(since),
                    "rows_per_second": round(rate, 1),
                    "seconds": round(self.seconds, 3),
                }
            )
        if self._table:
            self.clear()
            if not self._headed:
                self._ink.line(self._ink(HEADING, "bold"))
                self._headed = True
            auc = model.progress.auc
            self._ink.line(
                f"{model.rows:>11,}  {self._ink(figure(auc), 'bold', 'cyan')}  {self._ink(interval(auc), 'dim'):<16}"
                f"  {figure(since):>10}  {look.share(model.positives, model.rows):>8}  {model.nonzeros:>9,}"
                f"  {look.short(rate):>6}"
            )
        self._since = StreamingAuc()
        self._marked_rows = self._run.rows

    def close(self) -> None:
        """Print a last mark, if there are rows since the one before, and clear the live line."""
        if self._run.rows > self._marked_rows and (self._table or self._lines):
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
        if now - self._drawn < REDRAWN:
            return
        self._drawn = now
        run, auc = self._run, self._run.model.progress.auc
        rows, nonzeros = self.pace
        parts = [
            f"{look.short(run.model.rows)} rows, {look.short(rows)}/s",
            f"{look.short(nonzeros)} non-zeros/s",
            f"AUC {figure(auc).strip()} ±{(auc.high - auc.low) / 2:.3f}",
        ]
        fraction = run.fraction
        if fraction is not None:
            if self._started_at is None:
                self._started_at = fraction if run.place.known else 0.0
            covered = fraction - self._started_at
            moving = now - self._moving
            left = look.duration(round(moving * (1 - fraction) / covered)) if covered > 0.01 and moving > 0.1 else ""
            parts.append(f"{left} left" if left else f"{100 * fraction:.0f} %")
        text = " · ".join(parts)
        if len(text) > look.width() - 3:
            text = " · ".join(parts[:1] + parts[2:])
        self._live_line.draw(f"  {self._ink(text, 'dim')}")

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


def number(value: float) -> float | None:
    """The value, or None for nan, which JSON cannot represent."""
    return None if math.isnan(value) else float(value)


def figure(auc: float) -> str:
    return "-".rjust(6) if math.isnan(auc) else f"{float(auc):.4f}"


def interval(auc: Estimate) -> str:
    return "-".ljust(16) if math.isnan(auc) else f"[{auc.low:.4f}, {auc.high:.4f}]"
