"""rarestream predict: rows to scores."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

from rarestream.cli import look, options, outputs
from rarestream.cli.parser import Option

Output = Annotated[
    Path | None,
    Option("--output", "-p", "-o", metavar="FILE", help="The file to write scores to.", default="standard output"),
]


def predict(
    model: options.ModelPath,
    data: options.Data,
    output: Output = None,
    overwrite: outputs.OverwriteAny = False,
    json: options.Json = False,
    *,
    reading: options.Reading,
) -> None:
    """Score rows, one score per line.

    The scores are in the order of the rows; larger means more likely positive. Labels are not needed and are ignored.
    """
    from rarestream.model import Model

    loaded = Model.load(model)
    options.check_paths(data)
    if str(output) in ("-", "/dev/stdout"):
        output = None
    whole = False
    if output is not None:
        whole = outputs.for_scores(output, [model, *outputs.files_of(data)], overwrite)
    settings = reading.settings_for(loaded, data)
    settings = {name: value for name, value in settings.items() if name not in ("positive", "classes")}
    stream = reading.open(data, {**settings, "labels": "optional"})
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
    if beyond > loaded.n_features:
        look.warn(
            f"some rows have columns beyond the {look.count(loaded.n_features)} that the model knows; they are "
            "ignored. Check that data and model number columns alike."
        )
    options.print_notes(stream)
    options.warn_of_refused(stream.refused, stream.refusals)


@contextmanager
def _opened(output: Path | None, whole: bool) -> Iterator[TextIO]:
    """Standard output, a file that appears once all scores are written, or a pipe or device."""
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
