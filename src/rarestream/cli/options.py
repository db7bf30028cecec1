"""Options that several commands share, and checks of what they name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from rarestream.cli import failures
from rarestream.cli.parser import Argument, Option, Options, Parameter, UsageError, require_choice
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.metrics import Calibration
    from rarestream.model import Model
    from rarestream.readers import Stream
    from rarestream.readers.options import OptionInfo


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
OfClass = Annotated[
    str | None,
    Option("--class", metavar="LABEL", help="Of a model of many classes: the one of this class against all others."),
]
NegativesKept = Annotated[
    float | None,
    Option(
        "--negatives-kept",
        metavar="SHARE",
        help="Share of the negatives that the rows learned have, if the others were left out at random, such as 0.1: "
        "probabilities are then those among all rows.",
    ),
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print only warnings and errors.")]


class Reading(Options):
    """How rows are read, with labels or without. The options are those that the formats declare."""

    title = "Reading DATA"
    commands: ClassVar[tuple[str, ...]] = ("all",)  # of the options that are declared for some commands only
    defaults: ClassVar[Mapping[str, str]] = {}  # what the help page says of some defaults, in place of the usual

    format: Annotated[
        str | None,
        Option("--format", metavar="NAME", help="Format of DATA.", choices=_formats, default="by the file's suffix"),
    ] = None
    config: Annotated[
        Path | None,
        Option(
            "--config",
            metavar="FILE",
            help="A TOML file with options for reading; those of the command line come first.",
        ),
    ] = None

    @classmethod
    def parameters(cls, group: str) -> list[Parameter]:
        from rarestream.readers.formats import options_of_formats
        from rarestream.readers.options import FormatOptions, options_of

        common = options_of(FormatOptions)
        found = super().usual_parameters(group)
        for name, (info, formats) in options_of_formats().items():
            if info.commands in cls.commands:
                title = cls.title if name in common else f"Reading {', '.join(formats)}"
                found.append(_parameter(info, cls.defaults.get(name, info.default_text), group, title))
        return sorted(found, key=lambda parameter: parameter.title != cls.title)

    @classmethod
    def usual_parameters(cls, group: str) -> list[Parameter]:
        """The options that all formats have."""
        from rarestream.readers.options import FormatOptions, options_of

        found = super().usual_parameters(group)
        for name, info in options_of(FormatOptions).items():
            if info.commands in cls.commands:
                found.append(_parameter(info, cls.defaults.get(name, info.default_text), group, cls.title))
        return found

    def settings(self) -> dict[str, Any]:
        """The arguments of `read` that were given: on the command line, or else in the file of --config."""
        infos = self._infos()
        found = {
            name: value
            for name, value in self._configured().items()
            if name not in infos or infos[name].commands in self.commands
        }
        for name, value in vars(self).items():
            if name not in infos:
                if name != "config" and value is not None:
                    found[name] = value
            elif value is not None and (value != infos[name].not_given or name not in found):
                with self.reported():
                    found[name] = infos[name].checked(value)
        return found

    def _infos(self) -> Mapping[str, OptionInfo]:
        """The options that may have been given, by name."""
        from rarestream.readers.options import FormatOptions, options_of

        common = options_of(FormatOptions)
        if self.config is None and all(name in common or name in ("format", "config") for name in vars(self)):
            return common
        from rarestream.readers.formats import options_of_formats

        return {name: info for name, (info, _) in options_of_formats().items()}

    def settings_for(self, model: Model, data: Sequence[str]) -> dict[str, Any]:
        """The arguments of `read` for data that a model scores: those given, and what it remembers for the others."""
        from rarestream.evaluate import reading_settings
        from rarestream.readers.sources import expand

        given = self.settings()
        remembered = reading_settings(model.source, expand(list(data)), given.get("format"))
        return {**remembered, **given, "features": model.features}

    def open(self, data: Sequence[str], settings: Mapping[str, Any]) -> Stream:
        """Open the data; UsageError if an option is not one of their format."""
        from rarestream.readers import read

        with self.reported():
            return read(data, **settings)

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Context in which an option that is not allowed is a UsageError that names it as the user wrote it."""
        from rarestream.readers.options import OptionError

        try:
            yield
        except OptionError as error:
            raise UsageError(error.reason, self._written(error.option)) from None

    def _written(self, name: str) -> str:
        """An option as the user wrote it."""
        from rarestream.readers.formats import options_of_formats

        info = options_of_formats()[name][0]
        value = getattr(self, name, None)
        if self.config is not None and (value is None or value == info.not_given):
            return f"{plain(self.config)}: {name}"
        return info.off if info.off is not None and value is False else info.flags[0]

    def _configured(self) -> dict[str, Any]:
        from rarestream.cli.config import read_config

        return {} if self.config is None else read_config(self.config)


def _parameter(info: OptionInfo, default: str | None, group: str, title: str) -> Parameter:
    repeated = info.kind is tuple
    kind = str if repeated or (info.check is not None and info.kind is not bool) else info.kind
    help = f"{info.help.removesuffix('.')}; comma-separated, or repeated." if repeated else info.help
    option = Option(
        *info.flags,
        help=help,
        metavar=info.metavar,
        off=info.off,
        min=info.min,
        max=info.max,
        choices=(lambda: info.choices) if info.choices else None,
        default=default,
        split=repeated,
    )
    return Parameter(info.name, kind, repeated, False, info.not_given, option, group, title)


class ReadingLabelled(Reading):
    """How rows with labels are read."""

    commands: ClassVar[tuple[str, ...]] = ("all", "labels")


class ReadingAgain(ReadingLabelled):
    """How rows with labels are read that may be kept in a cache."""

    commands: ClassVar[tuple[str, ...]] = ("all", "labels", "again")


class ReadingToLearn(ReadingLabelled):
    """How rows are read that are to be learned: in which order, and up to which line, too."""

    commands: ClassVar[tuple[str, ...]] = ("all", "labels", "learning", "again")


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


def check_share(negatives_kept: float | None) -> None:
    """Raise UsageError unless --negatives-kept is a share."""
    if negatives_kept is not None and not 0 < negatives_kept <= 1:
        raise UsageError(f"must be above 0 and at most 1, got {negatives_kept}.", "--negatives-kept")


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


def load_model(path: Path, of_class: str | None) -> Model:
    """Return the model of a file; of one of many classes, that of a class."""
    from rarestream.cli import many_classes
    from rarestream.model import Model

    if of_class is None:
        return Model.load(path)
    if not many_classes.is_file_of(path):
        raise UsageError(f"{plain(path)} has two classes, and one model.", "--class")
    return many_classes.model_of(path, of_class)


def calibration_of(model: Model) -> Calibration:
    """Return what makes probabilities of a model's scores, with a warning if it is based on very few rows."""
    import warnings

    from rarestream.cli import look

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        calibration = model.known_calibration("predict")
    for warning in said:
        look.warn(str(warning.message))
    return calibration


def warn_of_refused(refused: int, first: Sequence[str]) -> None:
    """Warn if invalid rows were skipped."""
    from rarestream.cli import look

    if refused:
        look.warn(look.refused(refused, first))


def print_notes(stream: Stream) -> None:
    """Print what the data showed and a user should know, such as columns that the model does not have."""
    from rarestream.cli import look

    for note in [*stream.notes, *stream.cache_notes]:
        look.stderr().message(note)
    if stream.unlabelled:
        rows = look.counted(stream.unlabelled, "row")
        look.stderr().message(f"{rows} without a label {'was' if stream.unlabelled == 1 else 'were'} left out.")


def unlabelled(rows: int) -> str:
    """What is said of rows that have no label."""
    from rarestream.cli import look

    return f"{look.counted(rows, 'row')} without a label {'was' if rows == 1 else 'were'} not learned."


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
