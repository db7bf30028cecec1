"""Small tables with known faults."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

ROWS = 400


def write_table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def clicks(folder: Path, name: str = "clicks.csv", rows: int = ROWS) -> Path:
    """A table without faults: site, price, age with missing cells, and clicked with a fifth of ones, in random order."""
    draw = random.Random(5)
    table = [
        (
            f"s{draw.randint(0, 9)}.com",
            f"{draw.random() * 90:.2f}",
            draw.randint(18, 60) if draw.random() < 0.75 else "",
            int(draw.random() < 0.2),
        )
        for _ in range(rows)
    ]
    return write_table(folder / name, ["site", "price", "age", "clicked"], table)


def with_column(source: Path, name: str, values: Sequence[object]) -> Path:
    """The table with another column, its first."""
    lines = source.read_text().splitlines()
    cells = [name, *map(str, values)]
    source.write_text("".join(f"{cell},{line}\n" for cell, line in zip(cells, lines, strict=True)))
    return source


def labels(source: Path) -> list[int]:
    return [int(line.rpartition(",")[2]) for line in source.read_text().splitlines()[1:]]
