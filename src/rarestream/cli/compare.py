"""rarestream compare: every learner, and outside rivals, on a user's rows."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rarestream.cli import failures, look, options, outputs
from rarestream.cli.parser import Option, require_choice
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.blocks import Block
    from rarestream.compare import Comparison, Standing
    from rarestream.study.trials import Progress

Learners = Annotated[
    str | None,
    Option(
        "--learners",
        "-l",
        metavar="NAMES",
        help="Only these methods, comma-separated, however slow.",
        default="all that are fast enough",
    ),
]
Batch = Annotated[bool, Option("--batch", help="Also run scikit-learn's batch logistic regression: many passes.")]
Trials = Annotated[
    int, Option("--trials", metavar="N", help="Number of permutations of the rows to train, tune and test on.", min=1)
]
Settings = Annotated[
    int, Option("--settings", metavar="N", help="Number of settings to tune each method over.", min=1, max=64)
]
InOrder = Annotated[
    bool, Option("--in-order", help="Keep the order of the rows: learn the first, test on the last; one trial.")
]
Seed = Annotated[int, Option("--seed", metavar="N", help="Seed of the permutations.", min=0)]
Out = Annotated[
    Path | None,
    Option("--out", metavar="FOLDER", help="Save results, tables and a page here; rerun to resume."),
]
Jobs = Annotated[
    int | None, Option("--jobs", "-j", metavar="N", help="Number of processes.", min=1, default="one per core")
]


def compare(
    data: options.Data,
    learners: Learners = None,
    batch: Batch = False,
    trials: Trials = 5,
    settings: Settings = 8,
    in_order: InOrder = False,
    scale: options.Scale = None,
    seed: Seed = 17,
    max_rows: options.MaxRows = None,
    out: Out = None,
    jobs: Jobs = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    *,
    reading: options.ReadingAgain,
) -> None:
    """Compare every learner, and other packages, on DATA: same splits, same tuning effort.

    4/6 of the rows are for learning, 1/6 for choosing settings, 1/6 for testing. DATA is kept in memory.
    """
    from rarestream.compare import METHODS, standings
    from rarestream.compare import compare as compared
    from rarestream.compare.data import data_name, load_rows
    from rarestream.compare.page import FILES, write

    names = [name.strip() for name in learners.split(",")] if learners is not None else None
    for name in names or ():
        require_choice("--learners", name, METHODS, "a method")
    options.check_paths(data)
    if out is not None:
        outputs.for_folder(out, FILES, outputs.files_of(data))
    show = _Show(live=not quiet and sys.stderr.isatty(), quiet=quiet)
    with reading.reported():
        loaded = load_rows(data, max_rows, **reading.settings())
    options.warn_of_refused(loaded.refused, loaded.refusals)
    if not quiet:
        for note in loaded.notes:
            show.note(note)
        if loaded.unlabelled:
            show.note(options.unlabelled(loaded.unlabelled))
    try:
        with _ended_by_term():
            comparison = compared(
                loaded.block,
                data_name(data),
                methods=names,
                batch=batch,
                trials=trials,
                settings=settings,
                scale=scale or "unit",
                in_order=in_order,
                seed=seed,
                folder=out,
                processes=jobs,
                report=show.progress,
            )
    except KeyboardInterrupt:
        show.clear()
        kept = "no results were kept; to keep them, pass --out"
        if out is not None:
            kept = f"finished trials are in {plain(out)}: rerun the same command to resume"
        failures.exit_with(f"interrupted; {kept}.", failures.INTERRUPTED)
    show.clear()
    table = standings(comparison.rows, comparison.left_out)
    missing = write(out, comparison, look.quoted(["rarestream", *sys.argv[1:]])) if out is not None else None
    if json:
        _emit(comparison, table)
    else:
        _print_table(table, loaded.block, comparison)
    if out is not None and not quiet:
        if missing:
            show.note(missing)
        show.note(f"{plain(out)}: {', '.join(sorted(path.name for path in out.iterdir()))}")


class _Show:
    """Shows how many trials are finished: a line before the start, and in a terminal one that is redrawn."""

    def __init__(self, live: bool, quiet: bool) -> None:
        self._ink = look.stderr()
        self._live_line = look.LiveLine(live)
        self._quiet = quiet

    def progress(self, at: Progress) -> None:
        left = "" if at.left is None else look.duration(round(at.left))
        if at.row is None and not self._quiet:
            finished = f", {at.done} of them finished before" if at.done else ""
            time = f"; about {left} left" if left and at.done < at.total else ""
            self._ink.line(f"{look.counted(at.total, 'trial')} to run{finished}{time}.")
        now = f"{at.done} of {at.total}" + (f" · {at.row['label']}" if at.row else "")
        self._live_line.draw(f"  {self._ink(f'{now} · {left} left', 'dim')}")

    def note(self, message: str) -> None:
        self._ink.message(message)

    def clear(self) -> None:
        self._live_line.clear()


@contextmanager
def _ended_by_term() -> Iterator[None]:
    """Let SIGTERM end a comparison as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _print_table(table: Sequence[Standing], block: Block, comparison: Comparison) -> None:
    import numpy as np

    from rarestream.compare.standings import COLUMNS, cells, remarks

    ink = look.stdout()
    first = comparison.rows[0]
    positives = int(np.count_nonzero(block.labels == 1))
    ink.message(
        f"{first['dataset']}: {look.count(len(block))} rows, {look.share(positives, len(block))} positive, "
        f"{look.count(block.width)} columns. {look.count(first['n_train'])} rows were learned, "
        f"{look.count(first['n_test'])} tested."
    )
    ink.line()
    columns = look.width() if ink.terminal else None
    for number, line in enumerate(look.table(cells(table), COLUMNS, left=(0, len(COLUMNS) - 1), columns=columns)):
        ink.line(ink(line, "bold") if number < 2 else line)
    for remark in remarks(table):
        ink.message(remark)
    ink.line()
    trials = max(standing.trials for standing in table)
    over = f"the same {trials} trials" if trials > 1 else "groups of the test rows"
    ink.message(f"+- is a standard error, over {over}; behind: the mean difference to the best; tie: within two +-.")


def _emit(comparison: Comparison, table: Sequence[Standing]) -> None:
    """Print the rows, then the table, as JSON lines."""
    from rarestream.cli.progress import emit

    for row in comparison.rows:
        emit({**row})
    for standing in table:
        emit(standing.record())
