"""C: one header that scores rows, hashing of names included. Its code is templates/scorer.h."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import ExportError, advice
from rarestream.export.linear import Linear
from rarestream.export.text import SCALE_RULES, digits, example_row, filled, template, wrapped
from rarestream.features import TablePlan
from rarestream.features.plan import ngram_sizes

SUFFIXES = (".h",)
OPTIONS = ("name",)
PROBABILITY = True
MOST_FEATURES = 20_000_000  # a compiler takes minutes, and gigabytes, for as many


def exported(linear: Linear, name: str) -> tuple[bytes, list[str]]:
    """Return the header; ExportError if no compiler could be expected to take it."""
    count = len(linear.index)
    if count > MOST_FEATURES:
        raise ExportError(
            f"export: a C header holds at most {MOST_FEATURES:,} features, the model has {count:,}. Prune it first: "
            f"{advice('model.prune(nonzeros=...)', 'rarestream prune MODEL --nonzeros N')}."
        )
    sections = {"columns" if linear.space is None else "hashed", "none" if linear.scale == "none" else "norm"}
    values = {
        "about": linear.about,
        "guard": f"RARESTREAM_{name.upper()}_H",
        "scale_rule": SCALE_RULES[linear.scale],
        "count": str(count),
        "real": "double" if linear.double else "float",
        "index": wrapped(map(str, linear.index.tolist() or [0])),
        "weight": wrapped(_numbers(linear.weight)),
        "example": "",
    }
    if linear.largest is not None:
        sections.add("max")
        values["largest"] = wrapped(_numbers(linear.largest))
    if linear.slope is not None:
        sections.add("probability")
        values |= {"slope": repr(linear.slope), "intercept": repr(linear.intercept)}
    if linear.space is not None:
        values |= {"bits": str(linear.space.bits), **_plan_values(linear.plan), "example": _example(linear.plan, name)}
    text = re.sub(r"\bNAME_", f"{name}_", template("scorer.h", sections))
    return filled(text, values).encode(), []


def usage(linear: Linear, file: str, name: str) -> str:
    """Return how the file is used."""
    if linear.space is None:
        return f'#include "{file}", then {name}_score(indices, values, n)'
    return f'#include "{file}", then {name}_row_text(&row, "column", "text"), {name}_row_score(&row)'


def _numbers(numbers: NDArray[Any]) -> list[str]:
    suffix = "" if numbers.dtype == np.float64 else "f"
    return [f"{_decimal(text)}{suffix}" for text in digits(numbers)] or [f"0.0{suffix}"]


def _decimal(text: str) -> str:
    """Return the digits of a number as C writes those that are not whole."""
    return text if "." in text or "e" in text else f"{text}.0"


def _plan_values(plan: TablePlan) -> dict[str, str]:
    roles = [name for name in (plan.label, plan.importance, plan.tag) if name is not None]
    kinds = {column.name: column.kinds for column in plan.columns} | dict.fromkeys(roles, 0)
    places = {column: place for place, column in enumerate(kinds)}
    crossed = {column for cross in plan.crosses for column in cross.split("*")}
    characters, shortest, longest = ngram_sizes(plan.ngrams)
    columns = [f"    {{{_text(column)}, {kinds[column]}, {int(column in crossed)}}}," for column in kinds]
    crosses = []
    for cross in plan.crosses:
        parts = [str(places[column]) for column in cross.split("*")]
        if len(parts) > 8:
            raise ExportError(f"export: the cross {cross} has more than eight columns.")
        crosses.append(f"    {{{_text(cross)}, {{{', '.join([*parts, '-1'][:8])}}}}},")
    flags = {"open": plan.open, "raw": plan.numbers == "raw", "counts": plan.counts, "characters": characters}
    return {
        **{name: str(int(flag)) for name, flag in flags.items()},
        "shortest": str(shortest),
        "longest": str(longest),
        "columns": "".join(f"{line}\n" for line in columns),
        "crosses": "".join(f"{line}\n" for line in crosses),
        "missing": "".join(f"{_text(text)}, " for text in plan.missing),
    }


def _example(plan: TablePlan, name: str) -> str:
    lines = []
    for column, value in example_row(plan).items():
        kind, shown = ("text", _text(value)) if isinstance(value, str) else ("number", str(value))
        lines.append(f"//   {name}_row_{kind}(&row, {_text(column)}, {shown});")
    return "\n".join(lines)


def _text(text: str) -> str:
    """Return text as a literal of C, in ASCII."""
    shown = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode()
    )
    return f'"{shown}"'
