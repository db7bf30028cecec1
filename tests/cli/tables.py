"""Tables for the commands."""

from __future__ import annotations

import random
from pathlib import Path

COLUMNS = "site,price,age,when,clicked"


def rows(seed: int, count: int) -> list[str]:
    """Rows in which the site and the age say something of the label; no two files have the same."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        site, age = draw.randint(0, 30), draw.randint(18, 70)
        odds = 0.02 + 0.6 * (site < 3) + 0.1 * (age > 50)
        cells = f"s{site}.com", f"{draw.random() * 50:.2f}", age if draw.random() < 0.9 else ""
        day = f"2026-02-{draw.randint(1, 28):02d} {draw.randint(0, 23):02d}:15"
        found.append(",".join(map(str, (*cells, day, "yes" if draw.random() < odds else "no"))))
    return found


def clicks(path: Path, seed: int = 1, count: int = 3000) -> Path:
    path.write_text("\n".join([COLUMNS, *rows(seed, count)]) + "\n")
    return path
