"""Options that several commands share, and checks of what they name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rarestream.cli import failures
from rarestream.cli.parser import Argument, Option, Options, UsageError, require_choice
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.model import Model


def learners() -> Sequence[str]:
    from rarestream.learners import learner_names

    return learner_names()


def _formats() -> Sequence[str]:
    from rarestream.readers.formats import format_names

    return format_names()


def _scales() -> Sequence[str]:
    from rarestream.engines import SCALES

    return SCALES


def learner_option(help: str, choices: Callable[[], Sequence[str]], default: str) -> Option:
    """The option that names a learner."""
    return Option("--learner", "-l", metavar="NAME", help=help, choices=choices, default=default)


DATA_HELP = "Files, globs, or - for standard input; .gz .bz2 .xz .zst are decompressed automatically."

Data = Annotated[list[str], Argument("DATA", help=DATA_HELP)]
ModelPath = Annotated[Path, Argument("MODEL", help="A model file, as written by train.")]
Scale = Annotated[
    str | None,
    Option(
        "--scale",
        metavar="NAME",
        help="How rows are scaled: unit (to norm 1), max (each column by its largest value, then to norm 1) or none.",
        choices=_scales,
        default="unit",
    ),
]
MaxRows = Annotated[int | None, Option("--max-rows", metavar="N", help="Maximum number of rows to learn.", min=1)]
Json = Annotated[bool, Option("--json", help="Print JSON on standard output, one object per line.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print only warnings and errors.")]


class Reading(Options):
    """How rows are read, with labels or without."""

    title = "Reading DATA"

    format: Annotated[
        str | None,
        Option("--format", metavar="NAME", help="Format of DATA.", choices=_formats, default="by the file's suffix"),
    ] = None
    zero_based: Annotated[
        bool | None,
        Option(
            "--zero-based",
            off="--one-based",
            help="Whether columns count from 0 or from 1.",
            default="as in the model, else detected",
        ),
    ] = None
    max_bad_rows: Annotated[
        int | None,
        Option("--max-bad-rows", metavar="N", help="Maximum number of invalid rows to skip.", min=0, default="0"),
    ] = None
    threads: Annotated[
        int | None,
        Option(
            "--threads",
            metavar="N",
            help="Number of threads that parse ahead; 0 for none.",
            min=0,
            default="by the number of cores",
        ),
    ] = None

    def settings(self) -> dict[str, Any]:
        """The arguments of `read` that were given."""
        return drop_none(**vars(self))


class ReadingLabelled(Reading):
    """How rows with labels are read."""

    positive: Annotated[
        float | None,
        Option(
            "--positive",
            metavar="VALUE",
            help="The label that counts as positive, against all others.",
            default="the larger of two labels",
        ),
    ] = None


class ReadingToLearn(ReadingLabelled):
    """How rows are read that are to be learned: in which order, and up to which line."""

    shuffle: Annotated[
        int | None, Option("--shuffle", metavar="SEED", help="Learn rows in a random order drawn with this seed.")
    ] = None
    finished: Annotated[
        bool,
        Option(
            "--finished",
            help="Learn a last line without a line end too. By default it is left out, as it may be incomplete.",
        ),
    ] = False


def drop_none(**settings: Any) -> dict[str, Any]:
    """The settings that are not None."""
    return {name: value for name, value in settings.items() if value is not None}


def check_paths(data: Sequence[str]) -> None:
    """End the program if a name is not a file. That is a failure and not data that were refused."""
    for name in data:
        path = Path(name)
        if name == "-" or path.is_file():
            continue
        import glob

        if glob.has_magic(name) and not os.path.lexists(name):
            if not any(not Path(match).is_dir() for match in glob.iglob(name, recursive=True)):
                from rarestream.readers.sources import NO_MATCH

                failures.exit_with(f"{plain(name)}: {NO_MATCH}", failures.FAILED)
            continue
        if path.is_dir():
            failures.exit_with(
                f"{plain(name)}: is a directory. Name the files in it, such as {plain(path / '*.svm')}", failures.FAILED
            )
        if not path.exists():
            failures.exit_with(f"{plain(name)}: no such file. Check the name.", failures.FAILED)


def check_passes(passes: int, size: int | None) -> None:
    """Raise UsageError if rows of a pipe, whose size is not known, are to be read more than once."""
    if passes > 1 and size is None:
        raise UsageError("must be 1 for a pipe, which can be read only once. Save it to a file first.", "--passes")


def warn_if_learned(model: Model, data: Sequence[str], consequence: str = "") -> bool:
    """Warn if the model has learned rows of these files; return whether it has."""
    from rarestream.cli import look
    from rarestream.evaluate import has_learned
    from rarestream.readers.sources import expand

    learned = has_learned(model.source, expand(list(data)))
    if learned:
        look.warn(
            "the model has learned rows of these files, so the AUC is too high"
            f"{', ' + consequence if consequence else ''}. Use rows that were not learned."
        )
    return learned


def warn_of_refused(refused: int, first: Sequence[str]) -> None:
    """Warn if invalid rows were skipped."""
    from rarestream.cli import look

    if refused:
        look.warn(look.refused(refused, first))


def parse_setting(learner: str, text: str) -> tuple[str, Any]:
    """The name and value of a NAME=VALUE, converted as the learner expects it."""
    import dataclasses

    from rarestream.learners.registry import learner_class, learner_names
    from rarestream.learners.registry import parse_setting as parse

    name, equals, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        raise UsageError(f"a setting is NAME=VALUE, such as l1=0.1, got {text!r}.", "--set")

    def names(learner: str) -> list[str]:
        return [field.name for field in dataclasses.fields(learner_class(learner)[0])]

    known = names(learner)
    if name == "budget" and name not in known:
        with_budget = " and ".join(other for other in learner_names() if name in names(other))
        raise UsageError(
            f"{learner} has no budget; {with_budget} have one. Or prune the model afterwards: rarestream prune.",
            "--budget",
        )
    if learner == "auto" and name not in known:
        raise UsageError(
            f"auto chooses its settings itself, except for {', '.join(known)}. To set {plain(name)}, name the learner "
            "it belongs to: --learner NAME.",
            "--set",
        )
    require_choice("--set", name, known, f"a setting of {learner}")
    try:
        return name, parse(learner, name, value.strip())
    except ValueError as error:
        raise UsageError(str(error), "--set") from None
