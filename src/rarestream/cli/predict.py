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
    import numpy as np
    from numpy.typing import NDArray

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
Label = Annotated[bool, Option("--label", help="Write labels instead of scores, by the threshold of the model.")]


def predict(
    model: options.ModelPath,
    data: options.Data,
    output: Output = None,
    label: Label = False,
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
    With --probability they are probabilities, as the rows that were learned have calibrated them.
    With --label, rows are called positive or negative by the threshold that `rarestream threshold --save` has stored,
    with the labels of the data that were learned.
    With a model of many classes, a line has the class that is most probable, and with --probability its probability.
    """
    from rarestream.cli import many_classes
    from rarestream.model import Model
    from rarestream.one_vs_rest import OneVsRest

    if probability and label:
        raise UsageError("cannot be combined with --probability.", "--label")
    if not probability:
        for given, option in ((interval, "--interval"), (negatives_kept is not None, "--negatives-kept")):
            if given:
                raise UsageError("needs --probability.", option)
    options.check_share(negatives_kept)
    loaded: Any
    if many_classes.is_file_of(model):
        for given, option in (
            (interval, "--interval"),
            (negatives_kept is not None, "--negatives-kept"),
            (label, "--label"),
        ):
            if given:
                raise UsageError("cannot be used with a model of many classes.", option)
        loaded = OneVsRest.load(model)
        answers = many_classes.answers(loaded, probability, json)
    else:
        loaded = Model.load(model)
        if probability:
            answers = _probabilities(loaded, interval, negatives_kept)
        elif label:
            answers = _labels(loaded, json)
            _tell_threshold(loaded)
        else:
            answers = _scores(loaded)
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
                lines = [f"{{{shape.format(row + i, *found)}}}\n" for i, found in enumerate(rows)]
            else:
                lines = ["\t".join(found) + "\n" for found in rows]
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


Answers = Callable[["Block"], dict[str, list[str]]]  # what is written of rows: columns by name


def _scores(model: Model) -> Answers:
    return lambda block: {"score": _shown(model.score(block))}


def _labels(model: Model, json: bool) -> Answers:
    words = _label_words(model, json)
    threshold = model.label_threshold

    def answers(block: Block) -> dict[str, list[str]]:
        scores = model.score(block)
        labels = [words[positive] for positive in (scores >= threshold).tolist()]
        return {"score": _shown(scores), "label": labels} if json else {"label": labels}

    return answers


def _probabilities(model: Model, interval: bool, negatives_kept: float | None) -> Answers:
    calibration = options.calibration_of(model)
    share = model.negatives_kept if negatives_kept is None else negatives_kept

    def answers(block: Block) -> dict[str, list[str]]:
        scores = model.score(block)
        found = {"probability": _shown(calibration.probability(scores, share))}
        if interval:
            low, high = calibration.interval(scores, negatives_kept=share)
            found |= {"low": _shown(low), "high": _shown(high)}
        return found

    return answers


def _shown(numbers: NDArray[np.float64]) -> list[str]:
    """Numbers in full precision."""
    return list(map(repr, numbers.tolist()))


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
