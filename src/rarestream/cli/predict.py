"""rarestream predict: rows to scores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from rarestream.cli import look, options, outputs

ModelPath = Annotated[Path, typer.Argument(help="A model file, as `train` writes it.", metavar="MODEL")]
Output = Annotated[
    Path | None, typer.Option("--output", "-p", "-o", help="Write scores here, not to standard output.", metavar="FILE")
]


def predict(
    model: ModelPath,
    data: options.Data,
    output: Output = None,
    overwrite: outputs.OverwriteAny = False,
    zero_based: options.ZeroBased = None,
    max_bad_rows: options.MaxBadRows = 0,
    format: options.Format = None,
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """Score rows, one score a line.

    In the order of the rows; larger means more likely positive. Rows need no labels; those they have are not looked at.
    """
    from rarestream.model import Model
    from rarestream.readers import read

    loaded = Model.load(model)
    options.check_paths(data)
    if str(output) in ("-", "/dev/stdout"):
        output = None
    whole = False
    if output is not None:
        whole = outputs.for_file(output, [model, *outputs.files_of(data)], overwrite)
    how = {**options.as_learned(loaded.source), **options.given(zero_based=zero_based, format=format)}
    how.pop("positive", None)
    stream = read(data, **how, labels="optional", max_bad_rows=max_bad_rows, threads=threads)
    row, beyond = 0, 0
    with _opened(output, whole) as write:
        for block in stream:
            scores = loaded.score(block).tolist()
            beyond = max(beyond, block.width)
            if json:
                lines = [f'{{"row": {row + i}, "score": {score!r}}}\n' for i, score in enumerate(scores)]
            else:
                lines = [f"{score!r}\n" for score in scores]
            write("".join(lines))
            row += len(scores)
    ink = look.stderr()
    if beyond > loaded.n_features:
        ink.line(
            f"{ink('warning:', 'yellow', 'bold')} some rows have columns beyond the {look.count(loaded.n_features)} "
            "that the model knows; they count for nothing. Check that data and model number columns alike."
        )
    options.tell_refused(stream.refused, stream.refusals)


@contextmanager
def _opened(output: Path | None, whole: bool) -> Iterator[Callable[[str], object]]:
    """What writes to standard output; to a file that is there once all scores are; or to a pipe and the like."""
    from rarestream import system

    if output is None:
        yield sys.stdout.write
        sys.stdout.flush()
    else:
        with system.whole(output) if whole else output.open("ab") as file:  # an open file may hold lines already
            yield lambda text: file.write(text.encode("ascii"))
