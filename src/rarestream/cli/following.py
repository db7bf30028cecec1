"""`train --follow`: which live source, which model continues with it, and what is told while it runs."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rarestream.cli import failures, look
from rarestream.cli.durations import seconds
from rarestream.cli.parser import Option, UsageError
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.cli.progress import ProgressBar
    from rarestream.evaluate import Saving, TrainingRun
    from rarestream.readers.live.stream import LiveStream

HEARTBEAT = "1m"  # by default
SAVE_EVERY = "30s"  # likewise

Follow = Annotated[
    bool,
    Option(
        "--follow",
        help="Go on as rows come: DATA is a growing file, a folder that files are added to, - or an address such as "
        "kafka://HOST:PORT/TOPIC or redis://HOST:PORT/DB/STREAM.",
    ),
]
Beat = Annotated[
    str | None,
    Option(
        "--heartbeat",
        metavar="TIME",
        help="With --follow: how often to print a line on what was learned, such as 30s.",
        default=HEARTBEAT,
    ),
]
DeadLetters = Annotated[
    Path | None,
    Option(
        "--dead-letters",
        metavar="FILE",
        help="With --follow: add invalid rows to this file, as JSON lines; up to 1000, or --max-bad-rows.",
    ),
]
Idle = Annotated[
    str | None,
    Option("--stop-after", metavar="TIME", help="With --follow: end after so long without rows, such as 10m."),
]
Lost = Annotated[
    bool, Option("--lost", help="With --follow: go on where rows are gone, such as a log that was deleted.")
]


def refuse(**given: object) -> None:
    """Raise UsageError if an option is given that a live source cannot have."""
    for name, value in given.items():
        if value:
            option = "--" + name.replace("_", "-")
            raise UsageError("cannot be combined with --follow: rows of a live source come once, in order.", option)


def refuse_without(**given: object) -> None:
    """Raise UsageError if an option is given that only a live source has."""
    for name, value in given.items():
        if value:
            raise UsageError("is for live sources: pass --follow, too.", "--" + name.replace("_", "-"))


def refuse_live(data: list[str]) -> None:
    """Raise UsageError if a source that never ends is to be read to its end."""
    for name in data:
        if "://" in name:
            raise UsageError(f"{plain(name.partition('?')[0].rpartition('@')[2])} never ends: pass --follow.")


def save_every(text: str | None, follow: bool) -> float | None:
    """What --save-every says: an int for rows, a float for seconds; None: only at the end."""
    if text is None:
        return seconds(SAVE_EVERY, "--save-every") if follow else None
    if text.isdigit():
        if int(text) < 1:
            raise UsageError(f"must be at least one row, got {text}.", "--save-every")
        return int(text)
    try:
        return seconds(text, "--save-every")
    except UsageError:
        raise UsageError(
            f"must be a number of rows, such as 10000, or a time, such as 30s or 5m, got {text!r}.", "--save-every"
        ) from None


def source_of(data: list[str], source: Mapping[str, Any] | None) -> str:
    """The live source: the one that is named, or else that of the model that continues."""
    if len(data) > 1:
        raise UsageError("Follow one source at a time: a file, a folder, a pattern in quotes, - or an address.")
    if data:
        return data[0]
    known = {} if source is None else source.get("live") or {}
    if len(known) == 1:
        (entry,) = known.values()
        return str(entry["address"])
    if known:
        listed = "".join(f"\n  {plain(entry['address'])}" for entry in known.values())
        raise UsageError(f"Missing argument 'DATA': the model has followed several sources. Name one of them:{listed}")
    raise UsageError("Missing argument 'DATA'.")


def resumed(output: Path | None, data: list[str], overwrite: bool) -> Path | None:
    """The model that continues though nobody said so: the output, if it has followed the source before.

    So the same command, run again after a crash, goes on where the file says.
    """
    if output is None or overwrite or not output.exists():
        return None
    from rarestream.model import Model
    from rarestream.readers.live.opening import key_of

    name = source_of(data, None)
    if key_of(name) in (Model.load(output).source.get("live") or {}):
        return output
    raise UsageError(
        f"{plain(output)} exists and has not followed {plain(name)}. To let it learn this source too, pass --resume "
        f"{plain(output)}; to replace it, pass --overwrite.",
        "--output",
    )


def refuse_followed(source: Mapping[str, Any], data: list[str]) -> None:
    """Raise UsageError if a file that the model follows is to be learned from its start."""
    for name in data:
        if os.path.abspath(name) in (source.get("live") or {}):
            raise UsageError(
                f"the model has followed {plain(name)} up to a row in it, and would learn its rows again. Pass "
                "--follow to continue there.",
                "--resume",
            )


class Heartbeat:
    """Prints a line now and then, whether rows come or not; and what the source has to tell."""

    def __init__(self, run: TrainingRun, stream: LiveStream, saving: Saving, every: str | None, json: bool) -> None:
        self._run, self._stream, self._saving, self._json = run, stream, saving, json
        self._every = seconds(every or HEARTBEAT, "--heartbeat")
        self._at = time.monotonic()
        self._rows = 0

    def beat(self, show: ProgressBar, quiet: bool) -> None:
        """Print what is due."""
        for note in self._stream.take_notes():
            show.note(note)
        now = time.monotonic()
        if now - self._at < self._every:
            return
        rows, passed = self._run.rows - self._rows, now - self._at
        self._at, self._rows = now, self._run.rows
        if self._json:
            from rarestream.cli.progress import counts, emit

            emit(
                {
                    "event": "heartbeat",
                    **counts(self._run),
                    "rows_this_run": self._run.rows,
                    "rows_per_second": round(rows / passed, 1),
                    "refused": self._run.refused,
                    "unlabelled": self._run.unlabelled,
                    "unsaved": self._saving.unsaved,
                    "behind": self._stream.behind(),
                }
            )
        elif not quiet:
            show.note(self._line(rows / passed, now))

    def _line(self, pace: float, now: float) -> str:
        auc = self._run.model.progress.auc
        known = "" if auc != auc else f", AUC {float(auc):.4f} ±{(auc.high - auc.low) / 2:.3f}"
        behind = self._stream.behind() or "up to date"
        saved = f", saved {look.duration(int(now - self._saving.at))} ago" if self._saving.rows else ", not saved yet"
        rows = look.counted(self._run.model.rows, "row")
        return f"{time.strftime('%H:%M:%S')}  {rows}, {look.short(pace)}/s{known}, {behind}{saved}"


def end(run: TrainingRun, show: ProgressBar, target: Path, again: str) -> None:
    """Say how the stream ended, and how to continue."""
    why = "Stopped." if run.interrupted else "The source has ended." if not run.stream.replayable else "Ended."
    if run.rows == 0 and not target.exists():
        failures.exit_with("no row came; nothing was saved.", failures.FAILED if run.interrupted else failures.REFUSED)
    show.note(f"{why} {again}")
