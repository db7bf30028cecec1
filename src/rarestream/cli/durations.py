"""Durations as words of the command line: 30s, 30m, 12h, 7d."""

from __future__ import annotations

import re

from rarestream.cli.parser import UsageError

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: str, option: str) -> float:
    """Return the seconds of a duration, such as 30m; UsageError, which names the option, if it is none."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text.strip().lower())
    value = 0.0 if found is None else float(found[1]) * UNITS[found[2]]
    if value <= 0:
        raise UsageError(f"must be a duration, such as 30s, 30m, 12h or 7d, got {text!r}.", option)
    return value
