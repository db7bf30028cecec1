"""Parts of generated text that several formats share."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream.features import Kind, TablePlan

_SECTION = re.compile(r"^[ \t]*// begin (\w+)\n(.*?)^[ \t]*// end \1\n", re.MULTILINE | re.DOTALL)


def template(name: str, sections: Collection[str]) -> str:
    """Return a file of templates/ with only some of the sections between `// begin NAME` and `// end NAME`."""
    text = files("rarestream.export").joinpath("templates", name).read_text("utf-8")
    while _SECTION.search(text):
        text = _SECTION.sub(lambda found: found[2] if found[1] in sections else "", text)
    return text


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a template with values in place of their names between @ signs."""
    return re.sub(r"@(\w+)@", lambda found: values[found[1]], text)


def digits(numbers: NDArray[Any]) -> list[str]:
    """Return numbers as text that gives the same float32 or float64 again."""
    return [f"{number:.17g}" if numbers.dtype == np.float64 else f"{number:.9g}" for number in numbers.tolist()]


def wrapped(words: Iterable[str], indent: str = "  ", width: int = 118) -> str:
    """Return words with commas, in lines."""
    lines, line = [], indent
    for word in words:
        if len(line) + len(word) + 2 > width:
            lines.append(line.rstrip())
            line = indent
        line += f"{word}, "
    return "\n".join([*lines, line.rstrip()])


SCALE_RULES = {
    "unit": "divided by its Euclidean norm",
    "max": "each value divided by the largest of its feature, then the row by its Euclidean norm",
    "none": "not at all",
}


def example_row(plan: TablePlan) -> dict[str, Any]:
    """Return a row with some of the columns of a plan."""
    samples = {Kind.TEXT: "some words", Kind.DATE: "2026-01-31T12:00", Kind.NUMBER: 3.5, Kind.CATEGORY: "a"}
    row: dict[str, Any] = {}
    roles = {plan.label, plan.importance, plan.tag}
    for column in plan.columns:
        if column.name in roles or not column.kinds or len(row) == 3:
            continue
        both = column.kinds & Kind.NUMBER and column.kinds & Kind.CATEGORY
        row[column.name] = 3 if both else next((samples[k] for k in samples if column.kinds & k), "a")
    return row or {"site": "a.com", "price": 3.5}
