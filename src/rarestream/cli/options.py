"""Options that several commands share, and the words on them."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarestream.cli import failures
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.model import Model


def _known_format(name: str | None) -> str | None:
    if name is not None:
        from rarestream.readers.formats import format_names

        among("--format", name, format_names())
    return name


DATA_HELP = "Files, globs, or - for standard input; .gz .bz2 .xz .zst are read through."

Data = Annotated[list[str], typer.Argument(help=DATA_HELP, metavar="DATA", show_default=False)]
Format = Annotated[
    str | None,
    typer.Option("--format", help="Format of DATA; else by the file's suffix.", metavar="NAME", callback=_known_format),
]
ZeroBased = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="Whether columns count from 0 or 1; else it is told from the data, or from the model.",
        show_default=False,
    ),
]
Positive = Annotated[
    float | None, typer.Option(help="The label that counts as positive, against all others.", metavar="VALUE")
]
MaxBadRows = Annotated[
    int, typer.Option(help="Rows that break a rule to skip and count before giving up.", min=0, metavar="N")
]
Threads = Annotated[
    int | None, typer.Option(help="Threads that parse ahead; 0: none.", min=0, metavar="N", show_default=False)
]
Finished = Annotated[
    bool,
    typer.Option(
        "--finished", help="Learn a last line without a line end too; else it is left out, as it may still be written."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON on standard output, one object a line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but warnings and errors.")]


def given(**settings: Any) -> dict[str, Any]:
    """Those that a user gave."""
    return {name: value for name, value in settings.items() if value is not None}


def as_learned(source: Mapping[str, Any]) -> dict[str, Any]:
    """How a model's data were read, as far as other data should be read alike: the base and the labels."""
    from rarestream.evaluate import remembered

    kept = remembered(source)
    if kept is None:
        return {}
    settings = kept[1].settings
    classes = settings["classes"]
    if classes is not None and classes[1] == 1 and classes[0] in (-1, 0):
        classes = [None, classes[1]]  # whether -1 or 0 is the negative label is a matter of the file
    return given(zero_based=settings["zero_based"], positive=settings["positive"], classes=classes)


def check_paths(data: Sequence[str]) -> None:
    """A name that is no file ends the program at once, and as a failure: no data were refused."""
    for name in data:
        path = Path(name)
        if name == "-" or path.is_file():
            continue
        if glob.has_magic(name) and not os.path.lexists(name):
            if not any(not Path(match).is_dir() for match in glob.iglob(name, recursive=True)):
                from rarestream.readers.sources import NO_MATCH

                failures.say(f"{plain(name)}: {NO_MATCH}", failures.FAILED)
            continue
        if path.is_dir():
            failures.say(
                f"{plain(name)}: is a directory. Name the files in it: {plain(path / '*.svm')}", failures.FAILED
            )
        if not path.exists():
            failures.say(f"{plain(name)}: no such file.", failures.FAILED)


def warn_if_learned(model: Model, data: Sequence[str], so: str = "") -> bool:
    """A warning, if the model has learned rows of these files; and whether it has."""
    from rarestream.cli import look
    from rarestream.evaluate import has_learned
    from rarestream.readers.sources import expand

    learned = has_learned(model.source, expand(list(data)))
    if learned:
        ink = look.stderr()
        ink.line(
            f"{ink('warning:', 'yellow', 'bold')} the model has learned rows of these files, so the AUC is flattered"
            f"{', ' + so if so else ''}. Measure on rows kept apart."
        )
    return learned


def tell_refused(refused: int, first: Sequence[str]) -> None:
    """A warning, if rows were skipped."""
    from rarestream.cli import look

    if refused:
        ink = look.stderr()
        listed = "".join(f"\n  {one}" for one in first)
        ink.line(
            f"{ink('warning:', 'yellow', 'bold')} {look.count(refused)} rows broke a rule and were skipped. "
            f"The first:{listed}"
        )


def setting(name: str, text: str) -> tuple[str, Any]:
    """A NAME=VALUE as the learner expects it."""
    import dataclasses

    from rarestream.learners.base import learner_class, learner_names, parse_setting

    word, equals, value = text.partition("=")
    word = word.strip().replace("-", "_")
    if not equals:
        raise typer.BadParameter(f"a setting is NAME=VALUE, such as l1=0.1, got {text!r}.", param_hint="'--set'")

    def words(learner: str) -> list[str]:
        return [field.name for field in dataclasses.fields(learner_class(learner)[0])]

    known = words(name)
    if word == "budget" and word not in known:
        having = " and ".join(learner for learner in learner_names() if word in words(learner))
        raise typer.BadParameter(
            f"{name} holds no budget while it learns; {having} do. Or cut the model afterwards: rarestream prune.",
            param_hint="'--budget'",
        )
    if name == "auto" and word not in known:
        raise typer.BadParameter(
            f"auto chooses its settings itself, but for {', '.join(known)}. To set {plain(word)}, name the learner it "
            "belongs to: --learner NAME.",
            param_hint="'--set'",
        )
    among("--set", word, known, f"setting of {name}")
    try:
        return word, parse_setting(name, word, value.strip())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--set'") from None


def among(option: str, value: str | None, known: Any, what: str | None = None) -> None:
    """A word that must be one of a few; the nearest one is suggested."""
    from rarestream.learners.base import nearest

    if value is None or value in known:
        return
    near = nearest(value, known)
    hint = f" Did you mean {near}?" if near else ""
    raise typer.BadParameter(
        f"no {what or option.lstrip('-')} is called {value!r}; there are {', '.join(known)}.{hint}",
        param_hint=f"'{option}'",
    )
