"""VW: the weights in the layout of `vw --readable_model`, lines of index:weight after a header.

Vowpal Wabbit writes such files and reads only binary ones: docs/export.md shows how to put these weights into it.
"""

from __future__ import annotations

from rarestream.errors import ExportError, advice
from rarestream.export.linear import Linear
from rarestream.export.text import digits

SUFFIXES = (".vw",)
OPTIONS = ()
PROBABILITY = False
LARGEST_SCORE = "1e+30"  # VW cuts its predictions off at the smallest and the largest label


def exported(linear: Linear) -> tuple[bytes, list[str]]:
    """Return the file; ExportError if VW could not score as the model does."""
    if linear.largest is not None:
        other = advice('to="csv"', "--to csv")
        raise ExportError(
            "export: the model has scale max, and divides each value by the largest of its feature, which VW has no "
            f"place for. Use {other}, or train a model with another scale."
        )
    if linear.space is None:
        last = int(linear.index[-1]) if len(linear.index) else 0
        bits, options = max(1, last.bit_length()), "--noconstant"
    else:
        bits, options = linear.space.bits, "--hash all --noconstant"
    lines = [
        "Version 9.11.0",
        f"Id {linear.about}",
        f"Min label:-{LARGEST_SCORE}",
        f"Max label:{LARGEST_SCORE}",
        f"bits:{bits}",
        "lda:0",
        "0 ngram:",
        "0 skip:",
        f"options: {options}",
        ":0",
        *(f"{index}:{weight}" for index, weight in zip(linear.index.tolist(), digits(linear.weight), strict=True)),
        "",
    ]
    notes = []
    if linear.scale == "unit":
        notes.append("VW does not scale rows: divide its prediction by the Euclidean norm of the row.")
    return "\n".join(lines).encode(), notes


def usage(linear: Linear, file: str) -> str:
    """Return how the file is used."""
    return "Weights in the layout of vw --readable_model; docs/export.md shows how VW scores with them."
