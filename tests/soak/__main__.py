from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.soak.soaking import Soaked, soak

MOST = 0.02  # of growth


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Serve at full load, and watch memory.")
    parser.add_argument("--seconds", type=float, default=600, help="default: 600")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows-before", type=int, default=20_000_000, help="rows learned before; default: 20,000,000")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="rarestream-soak-") as folder:
        found = soak(Path(folder), given.seconds, random.Random(given.seed), print, given.rows_before)
    print(told(found), flush=True)
    return int(found.growth > MOST or bool(found.wrong))


def told(found: Soaked) -> str:
    """What was found, for people."""
    lines = [
        f"{found.requests:,} requests, {found.rows_learned:,} rows learned, {found.rows_scored:,} scored, "
        f"{found.labels:,} labels, {found.messages:,} messages of the live page, {found.shadows} shadows",
        f"memory after the warm-up {found.before / 1e6:.1f} MB, at the end {found.after / 1e6:.1f} MB: "
        f"growth {found.growth:+.2%} (at most {MOST:.0%} may be)",
        f"open files {found.files[0]} and {found.files[1]}, threads {found.threads[0]} and {found.threads[1]}",
        *found.wrong,
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
