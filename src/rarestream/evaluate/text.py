"""Readable numbers: counts with a unit, durations, shares. They are imported by all that shows progress."""

from __future__ import annotations


def short(number: float) -> str:
    """Three digits and a unit: 812, 8.12 k, 81.2 M."""
    for unit in ("", " k", " M", " G"):
        if abs(number) < 999.5:
            digits = 0 if unit == "" or abs(number) >= 99.95 else 1 if abs(number) >= 9.995 else 2
            return f"{number:.{digits}f}{unit}"
        number /= 1000
    return f"{number:.1f} T"


def duration(seconds: float) -> str:
    """A time in its usual unit: 12 ms, 3.4 s, 2 min 05 s."""
    if isinstance(seconds, int) and seconds < 60:
        return f"{seconds} s"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def share(part: float, whole: float) -> str:
    """A share in per cent, with three digits: 51.0 %, 2.04 %, 0.0123 %."""
    return f"{100 * part / whole:#.3g}".rstrip(".") + " %" if whole else "-"
