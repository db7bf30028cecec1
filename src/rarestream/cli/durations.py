"""Lengths of time as options have them: 30s, 30m, 12h, 7d."""

from __future__ import annotations

import math

from rarestream.cli.parser import UsageError

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def seconds(text: str, option: str | None = None, zero: bool = False) -> float:
    """Return a length of time in seconds.

    Parameters
    ----------
    text : str
        A number and its unit: ms, s, m, h, d or w.
    option : str, optional
        The option that it is the value of, for messages.
    zero : bool, default False
        Whether 0 is allowed; it needs no unit.

    Raises
    ------
    UsageError
        If it is anything else.
    """
    text = text.strip()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(number) :]
    try:
        count = float(number)
    except ValueError:
        count = math.nan
    if unit == "" and count == 0:
        unit = "s"
    if unit == "" and count > 0:
        raise UsageError(f"{text} needs a unit: {text}s, {text}m, {text}h or {text}d.", option)
    length = count * UNITS.get(unit, math.nan)
    if not (math.isfinite(length) and (length > 0 or (zero and length == 0))):
        raise UsageError(f"must be a length of time, such as 30s, 30m, 12h or 7d, got {text!r}.", option)
    return length
