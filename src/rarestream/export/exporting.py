"""export: writes a model in one of the formats. Each format is a module of this package with these names:

- SUFFIXES: the endings of its files, the usual one first.
- OPTIONS: which of the options `name` and `inputs` it takes; `file` is the name of the file.
- PROBABILITY: whether it can compute probabilities.
- exported(linear, **options): the bytes of the file, and notes for the user.
- usage(linear, file, **options): how the file is used, in one line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from rarestream.errors import advice, nearest, plain
from rarestream.export.linear import Linear
from rarestream.model import Model
from rarestream.system import write_whole

FORMATS = {  # in words
    "onnx": "ONNX",
    "sql": "SQL script",
    "c": "C header",
    "js": "JavaScript module",
    "vw": "VW text",
    "csv": "CSV of weights",
}
INPUTS = ("indices", "names")


class Exported(NamedTuple):
    """What was exported.

    Attributes
    ----------
    path : Path
        The file.
    to : str
        Its format.
    bytes : int
        Its size.
    weights : int
        Number of weights that are not zero.
    probability : bool
        Whether it computes probabilities.
    notes : list of str
        What to know about this file, as sentences; mostly none.
    usage : str
        How it is used, in one line.
    """

    path: Path
    to: str
    bytes: int
    weights: int
    probability: bool
    notes: list[str]
    usage: str


def format_names() -> Sequence[str]:
    """Return the names of all formats."""
    return tuple(FORMATS)


def export(
    model: Model,
    path: str | os.PathLike[str],
    to: str | None = None,
    *,
    probability: bool | None = None,
    name: str | None = None,
    inputs: str | None = None,
) -> Exported:
    """Write a model for scoring where Python is not. It scores as the model does, to the rounding of float32.

    A model that still races settings is exported with the weights of their mixture: those that it scores with now.

    Parameters
    ----------
    model : Model
        The model. It does not change.
    path : str or path
        The file; an existing one is replaced. It is written completely or not at all.
    to : {"onnx", "sql", "c", "js", "vw", "csv"}, optional
        The format. By default the one that the name of the file ends with: .onnx, .sql, .h, .mjs, .js, .vw, .csv.
    probability : bool, optional
        Whether the file computes probabilities, too. By default it does if the model is calibrated. The weights alone,
        "vw" and "csv", have none.
    name : str, optional
        With "c" and "sql", what the names of functions or tables start with. By default the name of the file.
    inputs : {"indices", "names"}, optional
        With "onnx" and "sql", how the features of rows are given: as indices, or by their names. By default by their
        names, if the model remembers names.

    Returns
    -------
    Exported
        Size, notes, and how to use the file.

    Raises
    ------
    ExportError
        If the format cannot hold the model.
    ValueError
        If an argument is invalid.
    NotCalibratedError
        If probabilities are asked for, but the model is not calibrated.
    MissingExtraError
        If ONNX is asked for and not installed.
    OutputError
        If the file cannot be written.
    """
    path = Path(path)
    to = _format_of(path) if to is None else to
    if to not in FORMATS:
        near = nearest(to, FORMATS)
        hint = f" Did you mean {near}?" if near else ""
        raise ValueError(f"export: to must be one of {', '.join(FORMATS)}, got {to!r}.{hint}")
    module = import_module(f"rarestream.export.{to}")
    options: dict[str, Any] = {}
    for option, value in (("name", name), ("inputs", inputs)):
        if option in module.OPTIONS:
            options[option] = value
        elif value is not None:
            takers = " or ".join(_takers(option))
            raise ValueError(f"export: {advice(option, f'--{option}')} is an option of {takers}, not of {to}.")
    if "file" in module.OPTIONS:
        options["file"] = plain(path.name)
    if "name" in options:
        options["name"] = _identifier(path, name)
    if inputs is not None and inputs not in INPUTS:
        raise ValueError(f"export: inputs must be one of {', '.join(INPUTS)}, got {inputs!r}.")
    linear = Linear.of(model, probability)
    data, notes = module.exported(linear, **options)
    if len(model.candidates) > 1:
        notes.append(
            f"The model still compares {len(model.candidates)} settings: the file has the mixture that it scores with "
            "now. Export it again when it has learned more."
        )
    has_probability = module.PROBABILITY and linear.slope is not None
    known = model.calibration
    if has_probability and known is not None and not known.enough:
        few = f"{known.positives:,} positive and {known.rows - known.positives:,} negative rows"
        notes.append(f"Probabilities are based on {few}: too few to say anything.")
    write_whole(path, data)
    usage = module.usage(linear, **{**options, "file": plain(path.name)})
    return Exported(path, to, len(data), linear.nonzeros, has_probability, notes, usage)


def _takers(option: str) -> list[str]:
    return [to for to in FORMATS if option in import_module(f"rarestream.export.{to}").OPTIONS]


def _format_of(path: Path) -> str:
    suffix = path.suffix.lower()
    for to in FORMATS:
        if suffix in import_module(f"rarestream.export.{to}").SUFFIXES:
            return to
    raise ValueError(
        f"export: the format of {plain(path.name)} is not known by its name. Pass "
        f"{advice('to=', '--to ')}one of {', '.join(FORMATS)}."
    )


def _identifier(path: Path, name: str | None) -> str:
    """Return what names in the file start with."""
    if name is None:
        found = re.sub(r"\W+", "_", path.name.partition(".")[0], flags=re.ASCII).strip("_")
        return f"model_{found}" if not found or found[0].isdigit() else found
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(
            f"export: name must be made of letters, digits and _, and not start with a digit, got {name!r}."
        )
    return name
