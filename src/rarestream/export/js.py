"""JavaScript: an ES module that scores rows, hashing of names included. Its code is templates/scorer.mjs."""

from __future__ import annotations

import base64
import json
from typing import Any

from numpy.typing import NDArray

from rarestream.export.linear import Linear
from rarestream.export.text import SCALE_RULES, example_row, filled, template

SUFFIXES = (".mjs", ".js")
OPTIONS = ("file",)
PROBABILITY = True


def exported(linear: Linear, file: str) -> tuple[bytes, list[str]]:
    """Return the file."""
    sections = {"columns" if linear.space is None else "hashed"}
    if linear.largest is not None:
        sections.add("max")
    if linear.slope is not None:
        sections.add("probability")
    values: dict[str, str] = {
        "about": linear.about,
        "file": file,
        "scale": json.dumps(linear.scale),
        "scale_rule": SCALE_RULES[linear.scale],
        "slope": repr(linear.slope),
        "intercept": repr(linear.intercept),
        "array": "Float64Array" if linear.double else "Float32Array",
        "index": _base64(linear.index, "<i4"),
        "weight": _base64(linear.weight, "<f8" if linear.double else "<f4"),
    }
    if linear.largest is not None:
        values["largest"] = _base64(linear.largest, "<f4")
    if linear.space is not None:
        values["bits"] = str(linear.space.bits)
        values["plan"] = json.dumps(_plan(linear), ensure_ascii=False)
        values["example"] = json.dumps(example_row(linear.plan), ensure_ascii=False)
    return filled(template("scorer.mjs", sections), values).encode(), []


def usage(linear: Linear, file: str) -> str:
    """Return how the file is used."""
    if linear.space is None:
        return f'import {{ scoreSparse }} from "./{file}"; scoreSparse([3, 17], [1, 0.5])'
    example = json.dumps(example_row(linear.plan), ensure_ascii=False)
    return f'import {{ score }} from "./{file}"; score({example})'


def _plan(linear: Linear) -> dict[str, Any]:
    """Return what the module needs of the plan: a label, an importance or a tag is no feature."""
    plan = linear.plan
    kinds = {column.name: column.kinds for column in plan.columns}
    kinds |= {name: 0 for name in (plan.label, plan.importance, plan.tag) if name is not None}
    settings = plan.settings()
    return {
        "columns": list(kinds.items()),
        **{name: settings[name] for name in ("numbers", "ngrams", "counts", "crosses", "missing", "open")},
    }


def _base64(array: NDArray[Any], dtype: str) -> str:
    return json.dumps(base64.b64encode(array.astype(dtype).tobytes()).decode())
