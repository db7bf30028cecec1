"""rarestream predict: rows to scores."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from rarestream.cli import look, options, outputs
from rarestream.cli.parser import Option, UsageError
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.blocks import Block
    from rarestream.model import Model

Output = Annotated[
    Path | None,
    Option("--output", "-p", "-o", metavar="FILE", help="The file to write scores to.", default="standard output"),
]
Probability = Annotated[
    bool, Option("--probability", help="Write the probability that each row is positive, in place of its score.")
]
Interval = Annotated[
    bool, Option("--interval", help="With --probability: also its 95 % interval, as three columns with tabs between.")
]


def predict(
    model: options.ModelPath,
    data: options.Data,
    output: Output = None,
    probability: Probability = False,
    interval: Interval = False,
    negatives_kept: options.NegativesKept = None,
    overwrite: outputs.OverwriteAny = False,
    json: options.Json = False,
    *,
    reading: options.Reading,
) -> None:
    """Score rows, one score per line.

    The scores are in the order of the rows; larger means more likely positive. Labels are not needed and are ignored.
    With --probability they are probabilities, as the rows that were learned have calibrated them. With a model of
    many classes, a line has the class that is most probable, and with --probability its probability.
    """
    from rarestream.cli import many_classes
    from rarestream.model import Model
    from rarestream.one_vs_rest import OneVsRest

    if not probability:
        for given, option in ((interval, "--interval"), (negatives_kept is not None, "--negatives-kept")):
            if given:
                raise UsageError("needs --probability.", option)
    options.check_share(negatives_kept)
    loaded: Any
    if many_classes.is_file_of(model):
        if interval or negatives_kept is not None:
            option = "--interval" if interval else "--negatives-kept"
            raise UsageError("cannot be used with a model of many classes.", option)
        loaded = OneVsRest.load(model)
        answers = many_classes.answers(loaded, probability)
    else:
        loaded = Model.load(model)
        answers = _probabilities(loaded, interval, negatives_kept) if probability else _scores(loaded)
    options.check_paths(data)
    if str(output) in ("-", "/dev/stdout"):
        output = None
    whole = False
    if output is not None:
        whole = outputs.for_scores(output, [model, *outputs.files_of(data)], overwrite)
    settings = reading.settings_for(loaded, data)
    settings = {name: value for name, value in settings.items() if name not in ("positive", "classes")}
    if isinstance(loaded, OneVsRest):
        settings["classes"] = "all"
    stream = reading.open(data, {**settings, "labels": "optional"})
    row, beyond = 0, 0
    with _opened(output, whole) as out:
        for block in stream:
            columns = answers(block)
            beyond = max(beyond, block.width)
            rows = zip(*columns.values(), strict=True)
            if json:
                shape = ", ".join(f'"{name}": {{}}' for name in ("row", *columns))
                lines = [f"{{{shape.format(row + i, *map(_in_json, found))}}}\n" for i, found in enumerate(rows)]
            elif len(columns) == 1:
                lines = [f"{_shown(found)}\n" for (found,) in rows]
            else:
                lines = ["\t".join(map(_shown, found)) + "\n" for found in rows]
            out.write("".join(lines))
            if not stream.replayable:  # whoever writes to a pipe may be waiting for an answer
                out.flush()
            row += len(block)
        out.flush()
    if beyond > loaded.n_features:
        look.warn(
            f"some rows have columns beyond the {look.count(loaded.n_features)} that the model knows; they are "
            "ignored. Check that data and model number columns alike."
        )
    options.print_notes(stream)
    options.warn_of_refused(stream.refused, stream.refusals)


Answers = Callable[["Block"], dict[str, list[Any]]]  # what is written of rows: columns by name


def _shown(value: float | str) -> str:
    """A number or a class, in one column of a line."""
    return plain(value) if isinstance(value, str) else repr(value)


def _in_json(value: float | str) -> str:
    import json

    return json.dumps(value) if isinstance(value, str) else repr(value)


def _scores(model: Model) -> Answers:
    return lambda block: {"score": model.score(block).tolist()}


def _probabilities(model: Model, interval: bool, negatives_kept: float | None) -> Answers:
    calibration = options.calibration_of(model)
    share = model.negatives_kept if negatives_kept is None else negatives_kept

    def answers(block: Block) -> dict[str, list[float]]:
        scores = model.score(block)
        found = {"probability": calibration.probability(scores, share).tolist()}
        if interval:
            low, high = calibration.interval(scores, negatives_kept=share)
            found |= {"low": low.tolist(), "high": high.tolist()}
        return found

    return answers


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
