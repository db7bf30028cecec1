"""Whether plots can be drawn."""

from __future__ import annotations

from typing import Any

from rarestream.errors import MissingExtraError


def can_draw() -> Any:
    """Return the class matplotlib.figure.Figure, or raise MissingExtraError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError('Drawing needs the package matplotlib: pip install "rarestream[plot]"') from None
    return Figure
