"""What the commands that learn share: the output file, progress while they run, and signals that end them."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rarestream.cli import look, options, outputs
from rarestream.cli.parser import Option, UsageError

if TYPE_CHECKING:
    from rarestream.cli.columns import ColumnsShown
    from rarestream.cli.following import Heartbeat
    from rarestream.cli.progress import ProgressBar
    from rarestream.evaluate import Saving, TrainingRun
    from rarestream.monitor.dashboard import Dashboard

Pace = Annotated[
    str | None,
    Option(
        "--progress",
        "-P",
        metavar="N",
        help="Print a line every N rows; with a decimal point, each time the number of rows has grown by the factor N.",
        default="2.0 in a terminal",
    ),
]


def target(
    output: Path | None, resume: Path | None, data: list[str], overwrite: bool, live: bool = False
) -> outputs.ModelOutput:
    """The model file to write, checked before any row is learned. A live source need not be a file."""
    path = output or resume
    if path is None:
        raise UsageError("Missing option '--output': name the model file to write with -o MODEL.")
    if live:
        return outputs.for_model(path, [Path(name) for name in data], overwrite, resume)
    options.check_paths(data)
    return outputs.for_model(path, outputs.files_of(data), overwrite, resume)


def marks(pace: str | None) -> Iterator[int]:
    """The numbers of rows after which --progress prints a line."""
    from rarestream.evaluate import marks_every

    try:
        if pace is None or "." in pace or int(pace) >= 1:
            return marks_every(2.0 if pace is None else float(pace) if "." in pace else int(pace))
    except ValueError:
        pass
    raise UsageError(
        f"must be a number of rows, such as 10000, or a factor above 1, such as 2.0, got {pace!r}.", "--progress"
    )


def progress_bar(run: TrainingRun, pace: str | None, json: bool, quiet: bool) -> ProgressBar:
    """What the run shows: a table and a live line in a terminal, a table if --progress is given, JSON lines."""
    from rarestream.cli.progress import ProgressBar

    terminal = sys.stderr.isatty()
    table = not quiet and not json and (terminal or pace is not None)
    return ProgressBar(run, table=table, live=not quiet and terminal, lines=json)


def saving(
    run: TrainingRun,
    show: ProgressBar,
    path: Path,
    every: float | None,
    *,
    kind: str,
    json: bool = False,
    replaced: str | None = None,
) -> Saving:
    """What saves the model of a run: `replaced` is printed after the first save; JSON lines tell of each but the last.

    Parameters
    ----------
    every
        An int, for rows, or a float, for seconds, between two saves; None: only when `save` is called.
    """
    from rarestream.evaluate import Saving

    class Told(Saving):
        def save(self) -> None:
            super().save()
            nonlocal replaced
            if replaced is not None:
                show.note(replaced)
                replaced = None

        def step(self, rows: int) -> bool:
            saved = super().step(rows)
            if saved and json:
                from rarestream.cli.progress import emit

                emit({"event": "saved", "rows": run.model.rows, "rows_this_run": run.rows, "model": str(path)})
            return saved

    return Told(run.model, run.stream, path, every, kind)


def learn(
    run: TrainingRun,
    show: ProgressBar,
    columns: ColumnsShown,
    saving: Saving | None,
    quiet: bool,
    heartbeat: Heartbeat | None = None,
    dashboard: Dashboard | None = None,
) -> None:
    """Learn all rows of the run, and save the model when that is due; say what the first rows decided, unless quiet."""
    from rarestream.errors import DataError

    noted = 0
    try:
        show.start()
        with _warnings_shown(show):
            for step in run:
                columns.show(show)
                notes = run.stream.notes[noted:] if run.place.number == 1 and not quiet else []
                noted += len(notes)
                for note in notes:
                    show.note(note)
                show.step(step)
                if dashboard is not None:
                    dashboard.step(step)
                if saving is not None:
                    saving.step(len(step.block))
                if heartbeat is not None:
                    heartbeat.beat(show, quiet)
        show.close()
    except DataError as error:
        show.clear()
        if saving is not None and saving.unsaved and heartbeat is not None:
            saving.save()  # a live source continues there
        saved = 0 if saving is None else saving.rows
        kept = f"The model file has the first {look.counted(saved, 'row')}" if saved else "Nothing was saved"
        skip = " To skip invalid rows, pass --max-bad-rows N." if run.stream.refused == 1 else ""
        raise DataError(f"{error}\n{kept}.{skip}") from error
    except BaseException:
        show.clear()
        raise


@contextmanager
def _warnings_shown(show: ProgressBar) -> Iterator[None]:
    """Within it, a warning that settings dropped out is a line, as other warnings of the program are."""
    from rarestream.errors import SettingsDroppedWarning, SortedRowsWarning

    python = warnings.showwarning

    def shown(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, SettingsDroppedWarning):
            show.warn(str(message))
        else:
            python(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SortedRowsWarning)  # `show` prints it
        warnings.simplefilter("always", SettingsDroppedWarning)
        warnings.showwarning = shown
        try:
            yield
        finally:
            warnings.showwarning = python


def note_cache(run: TrainingRun, show: ProgressBar, quiet: bool) -> None:
    """Say what became of the cache, unless quiet."""
    for note in [] if quiet else run.stream.cache_notes:
        show.note(note)


def warn(run: TrainingRun, show: ProgressBar) -> None:
    """Warn of rows that were skipped, of a last line that was left out, of a single class, and of shared slots."""
    warn_of_rows(run, show)
    model = run.model
    if run.rows and model.positives in (0, model.rows):
        sign = "positive" if model.positives else "negative"
        rows = "the only row is" if model.rows == 1 else f"all {look.count(model.rows)} rows are"
        show.warn(
            f"{rows} {sign}, so there is nothing to rank yet. Check which label counts as positive (--positive VALUE)."
        )


def warn_of_rows(run: TrainingRun, show: ProgressBar) -> None:
    """Warn of rows that were skipped, of a last line that was left out, and of shared slots."""
    if run.refused:
        show.warn(look.refused(run.refused, run.refusals))
    if run.stream.unfinished is not None:
        show.warn(
            f"{run.stream.unfinished}: the last line has no line end, so it may still be incomplete; it was "
            "left out. If the file is complete, pass --finished."
        )
    from rarestream.features import Hashed, name_problem

    space = run.stream.features
    if run.rows and isinstance(space, Hashed) and (problem := name_problem(space)) is not None:
        show.warn(" ".join(problem))


@contextmanager
def stopped_by_signals(run: TrainingRun) -> Iterator[None]:
    """Within it, Ctrl-C and SIGTERM end the run, which is then saved like any other."""
    before = {number: signal.signal(number, lambda *_: run.interrupt()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
