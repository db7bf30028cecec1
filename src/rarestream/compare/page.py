"""The page of a comparison: tables that sort, curves that zoom, in one file that needs no network."""

from __future__ import annotations

from rarestream.compare.comparing import Comparison
from rarestream.compare.methods import METHODS
from rarestream.reproduce import report
from rarestream.trials import Row


def page(found: Comparison, command: str) -> str:
    """HTML; `command` is what made the comparison. MissingExtraError without the packages that draw."""
    rows = [*found.rows, *(_left_out(found.rows[0], name, why) for name, why in found.left_out.items())]
    title = f"{found.rows[0]['dataset']}: learners compared"
    return report.html(rows, {}, report.environment(), title=title, rerun=[command])


def _left_out(like: Row, name: str, why: str) -> Row:
    """A row that says why there is none, among those of the same data."""
    nothing: Row = {"points": [], "chosen": None, "curve": None, "sizes": None, "error": f"left out: {why}"}
    return {**like, **nothing, "method": METHODS[name].word, "label": METHODS[name].label}
