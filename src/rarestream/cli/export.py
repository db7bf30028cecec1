"""rarestream export: a model for scoring where Python is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rarestream.cli import look, options, outputs
from rarestream.cli.parser import Option, UsageError
from rarestream.errors import plain


def _formats() -> Sequence[str]:
    from rarestream.export import format_names

    return format_names()


def _inputs() -> Sequence[str]:
    from rarestream.export.exporting import INPUTS

    return INPUTS


To = Annotated[
    str | None,
    Option(
        "--to",
        metavar="FORMAT",
        help="Format: onnx, sql, c, js, vw or csv.",
        choices=_formats,
        default="by the name of FILE: .onnx .sql .h .mjs .js .vw .csv",
    ),
]
Output = Annotated[Path, Option("--output", "-o", metavar="FILE", help="The file to write.")]
Probability = Annotated[
    bool | None,
    Option(
        "--probability",
        off="--no-probability",
        help="Compute probabilities, too, or scores only.",
        default="if the model is calibrated",
    ),
]
Name = Annotated[
    str | None,
    Option(
        "--name",
        metavar="NAME",
        help="With c and sql: what functions and tables are called.",
        default="the name of FILE",
    ),
]
Inputs = Annotated[
    str | None,
    Option(
        "--inputs",
        metavar="KIND",
        help="With onnx and sql: features are given as names or indices.",
        choices=_inputs,
        default="names if they are known",
    ),
]


def export(
    model: options.ModelPath,
    output: Output,
    to: To = None,
    overwrite: outputs.OverwriteAny = False,
    probability: Probability = None,
    name: Name = None,
    inputs: Inputs = None,
    of_class: options.OfClass = None,
    json: options.Json = False,
) -> None:
    """Write a model for scoring where Python is not.

    ONNX for runtimes of many languages, SQL for SQLite and DuckDB, a C header, a JavaScript module, and the weights as
    VW text or CSV. The file scores as the model does, to the rounding of float32.
    """
    from rarestream.export import export as export_model
    from rarestream.export.exporting import FORMATS

    loaded = options.load_model(model, of_class)
    if str(output) == "-":
        raise UsageError("must be a file, not standard output.", "--output")
    outputs.for_file(output, [model], overwrite, "--output")
    try:
        done = export_model(loaded, output, to, probability=probability, name=name, inputs=inputs)
    except ValueError as error:
        if str(error).startswith("export: ") and type(error) is ValueError:
            raise UsageError(str(error).removeprefix("export: ")) from None
        raise
    if json:
        record = {"output": str(done.path), **done._asdict()}
        look.print_json({key: value for key, value in record.items() if key != "path"})
        return
    ink = look.stdout()
    weights = look.counted(done.weights, "weight")
    ink.line(f"{ink(plain(done.path), 'bold')} written: {FORMATS[done.to]}, {look.size(done.bytes)}, {weights}")
    ink.message(done.usage)
    for note in done.notes:
        ink.message(note)
