"""Sizes as options have them: 500M, 4G."""

from __future__ import annotations

from rarestream.cli.parser import UsageError

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size_in_bytes(text: str, option: str) -> int:
    """Return the number of bytes of a size such as 500M; UsageError if it is none."""
    number, unit = (text[:-1], text[-1].upper()) if text and text[-1].upper() in UNITS else (text, "")
    try:
        size = float(number) * UNITS.get(unit, 1)
    except ValueError:
        size = 0
    if not 1 <= size < 1 << 60:
        raise UsageError(f"must be a size, such as 500M or 4G, got {text!r}.", option)
    return int(size)
