"""CSV of weights: one line for each feature."""

from __future__ import annotations

import csv
import io

from rarestream.export.linear import Linear
from rarestream.export.text import digits

SUFFIXES = (".csv",)
OPTIONS = ()
PROBABILITY = False


def exported(linear: Linear) -> tuple[bytes, list[str]]:
    """Return the file: index, with hashed features namespace and name, weight, with scale="max" the largest value."""
    columns: dict[str, list[str]] = {"index": [str(index) for index in linear.index.tolist()]}
    if linear.space is not None:
        known = linear.known_names
        columns["namespace"] = ["" if name is None else name[0] for name in known]
        columns["name"] = ["" if name is None else name[1] for name in known]
    columns["weight"] = digits(linear.weight)
    if linear.largest is not None:
        columns["largest"] = digits(linear.largest)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue().encode(), []


def usage(linear: Linear, file: str) -> str:
    """Return how the file is used."""
    how = {
        "unit": "divided by the row's Euclidean norm",
        "max": "each value divided by max(largest, |value|), then by the row's Euclidean norm",
        "none": "as they are",
    }
    return f"score = sum of weight * value over the features of a row, values {how[linear.scale]}."
