"""Progress of training: a record of it for callbacks, what measures it, and what shows it.

train(model, stream, on_step=lambda progress: print(progress.rows, progress.auc))
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import MissingExtraError
from rarestream.evaluate.text import duration, share, short
from rarestream.metrics import Estimate, StreamingAuc

if TYPE_CHECKING:
    from rarestream.blocks import Block
    from rarestream.evaluate.training import Learning, TrainingRun

HEADING = "       rows     AUC  95 % interval     since last  positive    weights  rows/s"
REDRAWN = 0.2  # seconds between two states of a live line
BAR = 20  # columns of a bar
SHOWN = ("lines", "rich")  # ways to show progress


class StopTraining(Exception):  # noqa: N818  # as StopIteration: it is no error
    """Raised by a callback to end training. What was learned is kept."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far training has come.

    `str` of it is a line of a table whose heading is `rarestream.evaluate.progress.HEADING`.

    Attributes
    ----------
    rows : int
        Number of rows that the model has learned, those of earlier runs included.
    positives : int
        Number of them that are positive.
    auc : Estimate
        Progressive AUC: that of the scores that rows had before they were first learned, with its interval.
    auc_since_last : Estimate
        The same of the rows since the record before; nan while they are of one class.
    nonzeros : int
        Number of weights of the model that are not zero.
    n_features : int
        The largest feature index plus one.
    pass_number : int
        Number of the pass over the data, from 1.
    seconds : float
        Time since training began.
    rows_per_second : float
        Rows learned per second in this run.
    fraction : float or None
        Share of the run that is done, 0 to 1; None if it is not known.
    """

    rows: int
    positives: int
    auc: Estimate
    auc_since_last: Estimate
    nonzeros: int
    n_features: int
    pass_number: int
    seconds: float
    rows_per_second: float
    fraction: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON can hold it, with the keys of `rarestream train --json`; None for what is unknown.

        Returns
        -------
        dict of str to number or None
        """
        return {
            "rows": self.rows,
            "positives": self.positives,
            "progressive_auc": number(self.auc),
            "auc_low": number(self.auc.low),
            "auc_high": number(self.auc.high),
            "nonzeros": self.nonzeros,
            "n_features": self.n_features,
            "pass": self.pass_number,
            "auc_since_last": number(self.auc_since_last),
            "rows_per_second": round(self.rows_per_second, 1),
            "seconds": round(self.seconds, 3),
            "fraction": None if self.fraction is None else round(self.fraction, 4),
        }

    def line(self, emphasis: Callable[..., str] | None = None) -> str:
        """Return a line of the table. `emphasis`, if given, colours a text: it is called with it and its styles."""

        def ink(text: str, *styles: str) -> str:
            return text if emphasis is None else emphasis(text, *styles)

        return (
            f"{self.rows:>11,}  {ink(figure(self.auc), 'bold', 'cyan')}  {ink(interval(self.auc), 'dim'):<16}"
            f"  {figure(self.auc_since_last):>10}  {share(self.positives, self.rows):>8}  {self.nonzeros:>9,}"
            f"  {short(self.rows_per_second):>6}"
        )

    def __str__(self) -> str:
        return self.line()


Callback = Callable[[Progress], object]


class ProgressMeter:
    """Measures the progress of a model, or of a race, while it learns.

    Call `add` with all rows that were learned, and `record` whenever a record is wanted.

    Parameters
    ----------
    model : Model or Racing
        What learns.
    waits : bool, default False
        Whether rows come late, because they are shuffled first: rows per second count from the first of them.
    """

    def __init__(self, model: Learning, *, waits: bool = False) -> None:
        self._model = model
        self._waits = waits
        self._began = self._moving = time.monotonic()
        self._since = StreamingAuc()
        self._started_at: float | None = None  # the fraction of the way that an earlier run had covered
        self.rows = 0
        self.nonzeros = 0
        self.recorded_rows = 0

    @property
    def seconds(self) -> float:
        """Time since training began."""
        return time.monotonic() - self._began

    @property
    def pace(self) -> tuple[float, float]:
        """Rows and non-zeros per second."""
        elapsed = max(time.monotonic() - self._moving, 1e-6)
        return self.rows / elapsed, self.nonzeros / elapsed

    def add(self, block: Block, scores: NDArray[np.float64] | None) -> None:
        """Count rows that were learned. Without the scores they had before, `auc_since_last` is not known.

        Parameters
        ----------
        block : Block
            The rows, with labels.
        scores : array of float64 or None
            What `model.learn(block)` returned.
        """
        if self._waits and not self.rows:
            self._moving = time.monotonic()
        self.rows += len(block)
        self.nonzeros += block.nonzeros
        if scores is not None:
            assert block.labels is not None
            self._since.add(block.labels, scores, block.importances)

    def record(self, fraction: float | None = None, pass_number: int = 1) -> Progress:
        """Return the progress so far; the next record's `auc_since_last` begins here.

        Parameters
        ----------
        fraction : float, optional
            Share of the run that is done.
        pass_number : int, default 1
            Number of the pass over the data.
        """
        model, since = self._model, self._since.auc
        self._since = StreamingAuc()
        self.recorded_rows = self.rows
        return Progress(
            rows=model.rows,
            positives=model.positives,
            auc=model.progress.auc,
            auc_since_last=since,
            nonzeros=model.nonzeros,
            n_features=model.n_features,
            pass_number=pass_number,
            seconds=self.seconds,
            rows_per_second=self.pace[0],
            fraction=fraction,
        )

    def live(self, run: TrainingRun, columns: int, ended: bool = False) -> str:
        """Return a line on a run that is shown and replaced while it learns, in so many columns."""
        rows, nonzeros = self.pace
        auc = self._model.progress.auc
        parts = [
            f"{short(self._model.rows)} rows, {short(rows)}/s",
            f"{short(nonzeros)} non-zeros/s",
            f"AUC {figure(auc).strip()} ±{(auc.high - auc.low) / 2:.3f}",
        ]
        fraction = run.fraction
        if fraction is not None and not ended:
            if self._started_at is None:
                self._started_at = fraction if run.place.known else 0.0
            covered = fraction - self._started_at
            moving = time.monotonic() - self._moving
            left = duration(round(moving * (1 - fraction) / covered)) if covered > 0.01 and moving > 0.1 else ""
            parts.append(f"{left} left" if left else f"{100 * fraction:.0f} %")
        text = " · ".join(parts)
        return text if len(text) <= columns else " · ".join(parts[:1] + parts[2:])


def callbacks(on_step: Callback | Iterable[Callback] | None, where: str = "train") -> list[Callback]:
    """Return the callbacks that were given; TypeError, whose message starts with `where`, unless they are callables."""
    if on_step is None:
        return []
    found: list[Any] = [on_step] if callable(on_step) or not isinstance(on_step, Iterable) else list(on_step)
    if not all(map(callable, found)):
        raise TypeError(f"{where}: on_step must be a callable or a list of callables, got {on_step!r}.")
    return found


def wants_to_stop(some: Iterable[Callback], progress: Progress) -> bool:
    """Call all callbacks; return whether one returned True or raised StopTraining."""
    stop = False
    for callback in some:
        try:
            answer = callback(progress)
        except StopTraining:
            answer = True
        stop |= isinstance(answer, bool | np.bool_) and bool(answer)
    return stop


# -- what shows it


class Shown(Protocol):
    """What shows the progress of a run."""

    def step(self) -> None:
        """Some rows were learned."""

    def mark(self, progress: Progress) -> None:
        """A record was made."""

    def close(self) -> None:
        """The run has ended."""


def shown(how: str | None, run: TrainingRun, meter: ProgressMeter) -> Shown | None:
    """Return what shows the progress of a run: see `train`."""
    if how is None:
        return None
    if how not in SHOWN:
        raise ValueError(f"train: progress must be None or one of {', '.join(SHOWN)}, got {how!r}.")
    return Lines() if how == "lines" else RichBar(run, meter)


class Lines:
    """Prints a line for each record, under a heading."""

    def __init__(self) -> None:
        self._headed = False

    def step(self) -> None:
        pass

    def mark(self, progress: Progress) -> None:
        if not self._headed:
            print(HEADING)
            self._headed = True
        print(progress, flush=True)

    def close(self) -> None:
        pass


class RichBar:
    """A bar of the package rich, with rows, speed and AUC beside it, in a terminal or a notebook."""

    def __init__(self, run: TrainingRun, meter: ProgressMeter) -> None:
        try:
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bars
        except ImportError:
            raise MissingExtraError(
                'train: progress="rich" needs the package rich: pip install "rarestream[rich]"'
            ) from None
        self._run, self._meter = run, meter
        self._bars = Bars(BarColumn(BAR), TextColumn("{task.fields[text]}", markup=False))
        if self._bars.console.is_jupyter and importlib.util.find_spec("ipywidgets") is None:
            raise MissingExtraError(
                'train: progress="rich" in a notebook needs ipywidgets too: pip install "rarestream[notebook]"'
            )
        self._task = self._bars.add_task("", total=1.0 if run.fraction is not None else None, text="reading ...")
        self._drawn = -math.inf
        self._bars.start()

    def step(self) -> None:
        now = time.monotonic()
        if now - self._drawn >= REDRAWN:
            self._drawn = now
            self._draw(self._run.fraction)

    def mark(self, progress: Progress) -> None:
        pass

    def close(self) -> None:
        if self._meter.rows:
            # A bar of unknown length ends full; that of a run that was stopped stays where it is.
            self._draw(1.0 if self._run.fraction is None else self._run.fraction, ended=True)
        self._bars.stop()

    def _draw(self, fraction: float | None, ended: bool = False) -> None:
        text = self._meter.live(self._run, self._bars.console.width - BAR - 1, ended)
        self._bars.update(self._task, completed=fraction or 0.0, total=None if fraction is None else 1.0, text=text)


# -- numbers as text


def number(value: float) -> float | None:
    """The value, or None for nan, which JSON cannot represent."""
    return None if math.isnan(value) else float(value)


def figure(auc: float) -> str:
    return "-".rjust(6) if math.isnan(auc) else f"{float(auc):.4f}"


def interval(auc: Estimate) -> str:
    return "-".ljust(16) if math.isnan(auc) else f"[{auc.low:.4f}, {auc.high:.4f}]"
