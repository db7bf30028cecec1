"""rarestream convert: rows of any format to a file of another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from rarestream.cli import look, options, outputs
from rarestream.cli.parser import Argument, Option, UsageError
from rarestream.errors import plain


def _formats() -> Sequence[str]:
    from rarestream.writers.registry import FORMATS

    return list(FORMATS)


def _unlabelled() -> Sequence[str]:
    from rarestream.converting import UNLABELLED

    return list(UNLABELLED)


Out = Annotated[
    str, Argument("OUT", help="The file to write, or - for standard output; .gz .bz2 .xz .zst are compressed.")
]
To = Annotated[
    str | None,
    Option(
        "--to",
        metavar="FORMAT",
        help="Format of OUT: svmlight, vw or blocks.",
        choices=_formats,
        default="by the name of OUT: .svm .vw .blocks",
    ),
]
Unlabelled = Annotated[
    str,
    Option(
        "--unlabelled",
        metavar="HOW",
        help="Rows without a label: keep them so, drop them, or all: no row has a label, or it is not wanted.",
        choices=_unlabelled,
    ),
]

Classes = Annotated[
    str | None,
    Option(
        "--classes",
        metavar="all",
        help="Write every label as the number it is; there may be any number of classes.",
        choices=lambda: ("all",),
    ),
]


def convert(
    data: options.Data,
    out: Out,
    to: To = None,
    unlabelled: Unlabelled = "keep",
    classes: Classes = None,
    overwrite: outputs.OverwriteAny = False,
    json: options.Json = False,
    *,
    reading: options.ReadingLabelled,
) -> None:
    """Write rows of any format as svmlight or VW text, or as .blocks.

    Reading OUT gives the same rows, bit for bit. Memory stays constant; OUT is complete when it appears.
    """
    from rarestream.converting import convert as convert_rows
    from rarestream.writers.files import STDOUT
    from rarestream.writers.registry import output_format

    options.check_paths(data)
    out = STDOUT if out == "/dev/stdout" else out
    if out == STDOUT and json:
        raise UsageError("cannot be combined with - for standard output.", "--json")
    try:
        name: Any = output_format(to, out)
    except ValueError as error:
        raise UsageError(str(error).removeprefix("convert: "), "OUT") from None
    if out != STDOUT:
        outputs.for_file(Path(out), outputs.files_of(data), overwrite, "OUT")
    settings = reading.settings() | options.drop_none(classes=classes)
    how: Any = unlabelled
    with reading.reported():
        done = convert_rows(data, out, name, unlabelled=how, overwrite=True, **settings)
    if json:
        record = {"output": out, **done._asdict()}
        look.print_json({key: value for key, value in record.items() if key not in ("path", "refusals")})
        return
    ink = look.stderr() if out == STDOUT else look.stdout()
    counts = [look.counted(done.rows, "row")]
    if classes is None and unlabelled != "all":
        counts.append(f"{look.count(done.positives)} positive")
    if done.unlabelled:
        what = {"keep": "without a label", "drop": "without a label left out", "all": "without a label"}[unlabelled]
        counts.append(f"{look.count(done.unlabelled)} {what}")
    place = "standard output" if out == STDOUT else plain(out)
    ink.line(f"{ink(place, 'bold')} written: {done.to}, {look.size(done.bytes)}, {', '.join(counts)}")
    for note in done.notes:
        ink.message(note)
    options.warn_of_refused(done.refused, done.refusals)
