"""rarestream split: files to parts, such as train and test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from rarestream.cli import look, options, outputs
from rarestream.cli.parser import Option, UsageError
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.cli.parser import Parameter
    from rarestream.splitting import SplitResult


def _by() -> Sequence[str]:
    from rarestream.splitting.splitting import BY

    return BY


Into = Annotated[
    str | None,
    Option(
        "--into",
        metavar="PARTS",
        help="Names and shares of the parts, such as train=0.7,valid=0.1,test=0.2; with --at, their names alone.",
        default="train=0.8,test=0.2",
    ),
]
By = Annotated[
    str,
    Option(
        "--by",
        metavar="HOW",
        help="random; order: the first rows to the first part; key: all rows of a key, such as a user, to one part; "
        "time: the earliest rows to the first part.",
        choices=_by,
    ),
]
Column = Annotated[
    str | None,
    Option(
        "--column",
        metavar="COLUMN",
        help="The column of the key or the time.",
        default="the qid of svmlight, the tag of VW text",
    ),
]
At = Annotated[
    str | None,
    Option(
        "--at",
        metavar="TIMES",
        help="With --by time: the first time of each part but the first, such as 2026-01-31; comma-separated.",
        default="by the shares",
    ),
]
Seed = Annotated[int, Option("--seed", metavar="N", help="With --by random and --by key: another split for each.")]
OutputDir = Annotated[
    Path | None,
    Option("--output-dir", "-d", metavar="DIR", help="Where the parts are written.", default="beside the first file"),
]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace files that exist.")]


class Reading(options.ReadingLabelled):
    """What is needed to find rows, a column and the label."""

    only: ClassVar[tuple[str, ...]] = (
        *("format", "config", "max_bad_rows", "threads", "label", "positive"),
        *("delimiter", "columns", "quoting", "missing"),
    )

    @classmethod
    def parameters(cls, group: str) -> list[Parameter]:
        return [parameter for parameter in super().parameters(group) if parameter.name in cls.only]

    @classmethod
    def usual_parameters(cls, group: str) -> list[Parameter]:
        return [parameter for parameter in super().usual_parameters(group) if parameter.name in cls.only]

    def settings(self) -> dict[str, Any]:
        return {name: value for name, value in super().settings().items() if name in self.only}


def split(
    data: options.Data,
    into: Into = None,
    by: By = "random",
    column: Column = None,
    at: At = None,
    seed: Seed = 0,
    output_dir: OutputDir = None,
    overwrite: Overwrite = False,
    json: options.Json = False,
    *,
    reading: Reading,
) -> None:
    """Split files into parts, such as train and test.

    Rows are copied as they are, to files such as clicks.train.csv and clicks.test.csv, which appear together. Memory
    stays constant. Several files make one split.
    """
    from rarestream.splitting import split as split_rows
    from rarestream.splitting.splitting import part_paths

    options.check_paths(data)
    how: Any = by
    settings = reading.settings()
    try:
        for path in part_paths(data, into, at=at, output_dir=output_dir, format=settings.get("format")):
            outputs.for_file(Path(path), outputs.files_of(data), overwrite, "--output-dir")
        with reading.reported():
            done = split_rows(
                data,
                into,
                by=how,
                column=column,
                at=at,
                seed=seed,
                output_dir=output_dir,
                overwrite=True,
                **settings,
            )
    except ValueError as error:
        if str(error).startswith("split: ") and not str(error).startswith("split: no row"):
            raise UsageError(str(error).removeprefix("split: ")) from None
        raise
    if json:
        look.print_json(_record(done))
    else:
        _show(done, seed)
    for part in done.parts:
        if not part.rows:
            look.warn(f"{plain(part.name)} has no row: there are only {look.counted(done.rows, 'row')}.")
    if done.without_key:
        rows = look.counted(done.without_key, "row")
        look.warn(f"{rows} without a key {'was' if done.without_key == 1 else 'were'} placed at random.")
    options.warn_of_refused(done.refused, done.refusals)


def _record(done: SplitResult) -> dict[str, Any]:
    parts = [{**part._asdict(), "share": part.rows / done.rows} for part in done.parts]
    record = {**done._asdict(), "rows": done.rows, "parts": parts}
    return {name: value for name, value in record.items() if name != "refusals"}


def _show(done: SplitResult, seed: int) -> None:
    ink = look.stdout()
    labelled = all(part.positives is not None for part in done.parts)
    heading = ["part", "rows", "share", *(["positives"] if labelled else []), "file"]
    rows = [
        [
            plain(part.name),
            look.count(part.rows),
            look.share(part.rows, done.rows),
            *([look.count(part.positives or 0)] if labelled else []),
            plain(part.path),
        ]
        for part in done.parts
    ]
    lines = look.table(rows, heading, left=(0, len(heading) - 1), columns=look.width())
    ink.line(ink(lines[0].rstrip(), "bold"))
    for line in lines[1:]:
        ink.line(line.rstrip())
    if done.by in ("random", "key"):
        ink.message(f"Split by {done.by}, seed {seed}: the same seed and shares give the same split again.")
    for part, cut in zip(done.parts[1:], done.cuts, strict=False):
        ink.message(f"{plain(part.name)} starts at {cut}.")
