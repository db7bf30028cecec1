"""What commands that learn share: where the model goes, when to tell, and how a run ends."""

from __future__ import annotations

import itertools
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rarestream.cli import look, options, outputs

if TYPE_CHECKING:
    from rarestream.cli.progress import Progress
    from rarestream.evaluate import Run


def target(output: Path | None, resume: Path | None, data: list[str], overwrite: bool) -> outputs.ModelOutput:
    """Where the model goes. Checked now, not after an hour of training."""
    path = output or resume
    if path is None:
        raise typer.BadParameter("where to save the model is missing: -o MODEL.", param_hint="'--output' / '-o'")
    options.check_paths(data)
    return outputs.for_model(path, outputs.files_of(data), overwrite, resume)


def marks(pace: str | None) -> Iterator[int]:
    from rarestream.evaluate import doubling

    if pace is None:
        return doubling()
    try:
        if "." not in pace and int(pace) >= 1:
            return itertools.count(int(pace), int(pace))
        if float(pace) > 1:
            return doubling(factor=float(pace))
    except ValueError:
        pass
    raise typer.BadParameter(
        f"{pace!r} is neither a number of rows, such as 10000, nor a factor above 1, such as 2.0.",
        param_hint="'--progress' / '-P'",
    )


def learn(run: Run, show: Progress, save: Callable[[], None], save_every: int | None) -> None:
    from rarestream.errors import DataError, SortedRowsWarning

    saved = 0
    try:
        show.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SortedRowsWarning)  # `show` says it in its own way
            for step in run:
                show.step(step)
                if save_every and run.rows - saved >= save_every:
                    save()
                    saved = run.rows
        show.close()
    except DataError as error:
        show.clear()
        kept = f"The model file has the first {look.count(saved)} rows" if saved else "Nothing was saved"
        skip = " To skip and count rows that break a rule: --max-bad-rows N." if run.stream.refused == 1 else ""
        raise DataError(f"{error}\n{kept}.{skip}") from error
    except BaseException:
        show.clear()
        raise


def warn(run: Run, show: Progress) -> None:
    if run.refused:
        listed = "".join(f"\n  {one}" for one in run.refusals)
        show.warn(f"{look.count(run.refused)} rows broke a rule and were skipped. The first:{listed}")
    if run.stream.unfinished is not None:
        show.warn(
            f"{run.stream.unfinished}: the last line has no line end, so it may still be being written; it was "
            "left out. If the file is complete, pass --finished."
        )
    model = run.model
    if run.rows and model.positives in (0, model.rows):
        one = "positive" if model.positives else "negative"
        show.warn(
            f"all {look.count(model.rows)} rows are {one}, so there is nothing to rank yet. "
            "Check which label counts as positive (--positive VALUE)."
        )


@contextmanager
def stopped_by_signals(run: Run) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the run, which is then saved as any other."""
    before = {number: signal.signal(number, lambda *_: run.interrupt()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
