"""rarestream compare: every learner, and outside rivals, on a user's rows."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarestream.cli import failures, look, options, outputs
from rarestream.cli.train import Scale
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.blocks import Block
    from rarestream.compare import Comparison, Standing
    from rarestream.trials import Progress

WRITTEN = ("table.csv", "table.md", "report.html")  # to --out

Learners = Annotated[
    str | None,
    typer.Option("--learners", "-l", help="Only these, set apart by commas, however slow.", metavar="NAMES"),
]
Batch = Annotated[bool, typer.Option("--batch", help="Also scikit-learn's batch logistic regression: many passes.")]
Trials = Annotated[int, typer.Option(help="Permutations of the rows to learn, tune and test with.", min=1)]
Settings = Annotated[int, typer.Option(help="Settings that each method is tuned over.", min=1, max=64)]
InOrder = Annotated[
    bool,
    typer.Option("--in-order", help="Keep the rows in order: learn the first, test on the last; one trial."),
]
Seed = Annotated[int, typer.Option(help="Of the permutations.", min=0)]
MaxRows = Annotated[int | None, typer.Option(help="Take the first rows only.", min=1, metavar="N")]
Out = Annotated[
    Path | None,
    typer.Option(help="Keep results here: tables, a page, and every row; run again, it goes on.", metavar="FOLDER"),
]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Processes; else one a core.", min=1, metavar="N")]


def compare(
    data: options.Data,
    learners: Learners = None,
    batch: Batch = False,
    trials: Trials = 5,
    settings: Settings = 8,
    in_order: InOrder = False,
    scale: Scale = None,
    seed: Seed = 17,
    max_rows: MaxRows = None,
    out: Out = None,
    jobs: Jobs = None,
    zero_based: options.ZeroBased = None,
    positive: options.Positive = None,
    max_bad_rows: options.MaxBadRows = 0,
    format: options.Format = None,
    threads: options.Threads = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare every learner, and outside rivals, on DATA: same splits, same tuning effort.

    4/6 of the rows are learned, 1/6 choose the settings, 1/6 test. DATA is kept in memory.
    """
    from rarestream.compare import METHODS, standings
    from rarestream.compare import compare as compared
    from rarestream.model import SCALES

    options.among("--scale", scale, SCALES)
    names = [name.strip() for name in learners.split(",")] if learners is not None else None
    for name in names or ():
        options.among("--learners", name, METHODS, "method")
    options.check_paths(data)
    if out is not None:
        outputs.for_folder(out, WRITTEN, outputs.files_of(data))
    show = _Show(live=not quiet and sys.stderr.isatty(), quiet=quiet)
    chosen = options.given(zero_based=zero_based, positive=positive, format=format)
    block = _read(data, max_rows, **chosen, max_bad_rows=max_bad_rows, threads=threads)
    try:
        with _ended_by_term():
            found = compared(
                block,
                _name(data),
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
        kept = "nothing was kept, as it is with --out"
        if out is not None:
            kept = f"what was done is in {plain(out)}: run it again to go on"
        failures.say(f"interrupted; {kept}.", failures.INTERRUPTED)
    show.clear()
    table = standings(found.rows, found.left_out)
    missing = _write(out, table, found) if out is not None else None
    if json:
        _emit(found, table)
    else:
        _tell(table, block, found)
    if out is not None and not quiet:
        if missing:
            show.note(missing)
        show.note(f"{plain(out)}: {', '.join(sorted(path.name for path in out.iterdir()))}")


class _Show:
    """How far it is: a line before the start, and in a terminal one that moves."""

    def __init__(self, live: bool, quiet: bool) -> None:
        self._ink = look.stderr()
        self._live, self._quiet = live, quiet

    def progress(self, at: Progress) -> None:
        left = "" if at.left is None else look.duration(round(at.left))
        if at.row is None and not self._quiet:
            done = f", {at.done} of them done before" if at.done else ""
            about = f": about {left}" if left and at.done < at.total else ""
            self._ink.line(f"{at.total} trials of methods{done}{about}")
        if self._live:
            now = f"{at.done} of {at.total}" + (f" · {at.row['label']}" if at.row else "")
            print(f"\r\x1b[K  {self._ink(f'{now} · {left} left', 'dim')}", end="", file=sys.stderr, flush=True)

    def note(self, message: str) -> None:
        self._ink.line(message)

    def clear(self) -> None:
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def _ended_by_term() -> Iterator[None]:
    """SIGTERM ends a comparison as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _read(data: list[str], max_rows: int | None, **how: Any) -> Block:
    from rarestream.blocks import concatenate
    from rarestream.readers import read

    stream, blocks, rows = read(data, **how), [], 0
    for block in stream:
        blocks.append(block)
        rows += len(block)
        if max_rows is not None and rows >= max_rows:
            break
    options.tell_refused(stream.refused, stream.refusals)
    return concatenate(blocks)[:max_rows]


def _name(data: list[str]) -> str:
    """Of the data, in the results."""
    first = "standard input" if data[0] == "-" else plain(Path(data[0]).name)
    return first if len(data) == 1 else f"{first} and {len(data) - 1} more"


def _tell(table: Sequence[Standing], block: Block, found: Comparison) -> None:
    import numpy as np

    from rarestream.compare.standings import COLUMNS, cells, remarks

    ink = look.stdout()
    first = found.rows[0]
    positives = int(np.count_nonzero(block.labels == 1))
    ink.line(
        f"{first['dataset']}: {look.count(len(block))} rows, {look.share(positives, len(block))} positive, "
        f"{look.count(block.width)} columns. {look.count(first['n_train'])} rows were learned, "
        f"{look.count(first['n_test'])} tested."
    )
    ink.line()
    for number, line in enumerate(look.table(cells(table), COLUMNS, left=(0, len(COLUMNS) - 1))):
        ink.line(ink(line, "bold") if number < 2 else line)
    for remark in remarks(table):
        ink.line(remark)
    ink.line()
    trials = max(one.trials for one in table)
    over = f"the same {trials} trials" if trials > 1 else "groups of the test rows"
    ink.line(f"+- is a standard error, over {over}; behind: the mean difference to the best; tie: within two +-.")


def _emit(found: Comparison, table: Sequence[Standing]) -> None:
    """The rows, then the table."""
    import dataclasses

    from rarestream.cli.progress import emit, number

    for row in found.rows:
        emit(row)
    for one in table:
        told = dataclasses.asdict(one).items()
        values = {word: number(value) if isinstance(value, float) else value for word, value in told}
        emit({"kind": "standing", **values, "close": one.close})


def _write(out: Path, table: Sequence[Standing], found: Comparison) -> str | None:
    """Tables and the page; why there is no page, if there is none."""
    from rarestream.compare import csv, markdown, page
    from rarestream.errors import MissingExtraError
    from rarestream.system import write_whole

    table_csv, table_md, report = (out / name for name in WRITTEN)
    write_whole(table_csv, csv(table).encode())
    write_whole(table_md, markdown(table).encode())
    try:
        text = page(found, look.quoted(["rarestream", *sys.argv[1:]]))
    except MissingExtraError as error:
        return str(error)
    write_whole(report, text.encode())
    return None
