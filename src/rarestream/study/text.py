"""Lines of text that tables share: aligned columns, and a row of a Markdown table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def align(rows: Sequence[Sequence[str]], left: Collection[int] = ()) -> list[str]:
    """Return the rows as lines with aligned columns: right-aligned but for those in `left`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def piped(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
