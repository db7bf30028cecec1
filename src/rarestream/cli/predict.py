"""rarestream predict: rows to scores."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

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
        whole = outputs.for_scores(output, [model, *outputs.files_of(data)], overwrite)
    how = {**options.as_learned(loaded.source), **options.given(zero_based=zero_based, format=format)}
    for word in ("positive", "classes"):
        how.pop(word, None)
    stream = read(data, **how, labels="optional", max_bad_rows=max_bad_rows, threads=threads)
    row, beyond = 0, 0
    with _opened(output, whole) as out:
        for block in stream:
            scores = loaded.score(block).tolist()
            beyond = max(beyond, block.width)
            if json:
                lines = [f'{{"row": {row + i}, "score": {score!r}}}\n' for i, score in enumerate(scores)]
            else:
                lines = [f"{score!r}\n" for score in scores]
            out.write("".join(lines))
            if not stream.replayable:  # whoever writes to a pipe may be waiting for an answer
                out.flush()
            row += len(scores)
        out.flush()
    ink = look.stderr()
    if beyond > loaded.n_features:
        ink.line(
            f"{ink('warning:', 'yellow', 'bold')} some rows have columns beyond the {look.count(loaded.n_features)} "
            "that the model knows; they count for nothing. Check that data and model number columns alike."
        )
    options.tell_refused(stream.refused, stream.refusals)


@contextmanager
def _opened(output: Path | None, whole: bool) -> Iterator[TextIO]:
    """Standard output; a file that is there once all scores are; or a pipe and the like."""
    from rarestream import system

    if output is None:
        yield sys.stdout
    elif not whole:
        with output.open("a", encoding="ascii") as out:  # a file that a shell has opened may hold lines already
            yield out
    else:
        with system.whole(output) as file:
            out = io.TextIOWrapper(file, encoding="ascii", write_through=True)
            yield out
            out.detach()  # the file is not to be closed yet
