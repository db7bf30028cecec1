"""rarestream predict: rows to scores."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from rarestream.cli import look, options, outputs
from rarestream.cli.parser import Option
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.model import Model

Output = Annotated[
    Path | None,
    Option("--output", "-p", "-o", metavar="FILE", help="The file to write scores to.", default="standard output"),
]
Label = Annotated[bool, Option("--label", help="Write labels instead of scores, by the threshold of the model.")]


def predict(
    model: options.ModelPath,
    data: options.Data,
    output: Output = None,
    overwrite: outputs.OverwriteAny = False,
    label: Label = False,
    json: options.Json = False,
    *,
    reading: options.Reading,
) -> None:
    """Score rows, one score per line.

    The scores are in the order of the rows; larger means more likely positive. Labels are not needed and are ignored.
    With --label, rows are called positive or negative by the threshold that `rarestream threshold --save` has stored,
    with the labels of the data that were learned.
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
    words = _label_words(loaded, json) if label else None
    if label:
        _tell_threshold(loaded)
    row, beyond = 0, 0
    with _opened(output, whole) as out:
        for block in stream:
            scores = loaded.score(block).tolist()
            beyond = max(beyond, block.width)
            out.write("".join(_lines(scores, row, json, words, loaded.label_threshold)))
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


def _label_words(model: Model, json: bool) -> tuple[str, str]:
    """The negative and the positive label as they are written."""
    from json import dumps

    from rarestream.evaluate import class_labels

    low, high = (dumps(one) if json else plain(one) for one in class_labels(model.source))
    return low, high


def _tell_threshold(model: Model) -> None:
    """Say on standard error which threshold rows are labelled by, if that is not a matter of course."""
    decision = model.decision
    if decision is None:
        look.stderr().message(
            f"No threshold is stored in the model; rows are called positive from the score {model.label_threshold:.6g} "
            "on. To choose one: rarestream threshold MODEL DATA --save"
        )
    elif decision.after_rows is not None and model.rows > decision.after_rows:
        since = look.counted(model.rows - decision.after_rows, "row")
        look.warn(
            f"the model has learned {since} since its threshold was chosen, and its scores have changed. Choose it "
            "again: rarestream threshold MODEL DATA --save"
        )


def _lines(scores: list[float], first: int, json: bool, words: tuple[str, str] | None, threshold: float) -> list[str]:
    """The lines of some rows, the first of which has this number; `words`: the negative and the positive label."""
    if words is None:
        if json:
            return [f'{{"row": {first + i}, "score": {score!r}}}\n' for i, score in enumerate(scores)]
        return [f"{score!r}\n" for score in scores]
    labels = [words[score >= threshold] for score in scores]
    if json:
        rows = enumerate(zip(scores, labels, strict=True), first)
        return [f'{{"row": {row}, "score": {score!r}, "label": {label}}}\n' for row, (score, label) in rows]
    return [f"{label}\n" for label in labels]


@contextmanager
def _opened(output: Path | None, whole: bool) -> Iterator[TextIO]:
    """Standard output, a file that appears once all scores are written, or a pipe or device."""
    from rarestream import system

    if output is None:
        yield sys.stdout
    elif not whole:
        with output.open("a", encoding="utf-8") as out:  # a file that a shell has opened may hold lines already
            yield out
    else:
        with system.whole(output) as file:
            out = io.TextIOWrapper(file, encoding="utf-8", write_through=True)
            yield out
            out.detach()  # the file is not to be closed yet
