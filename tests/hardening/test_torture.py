"""A soak of random kills, damage, files, streams and settings, for two minutes; `make torture` runs it for longer."""

from __future__ import annotations

import sys
from pathlib import Path

from tests import children

ROOT = Path(__file__).parents[2]


def test_two_minutes_of_torture_breaks_no_promise() -> None:
    made = children.run([sys.executable, "-m", "tests.torture", "--seconds", 120], cwd=ROOT, limit=3600)
    assert made.returncode == 0, (made.stdout + made.stderr)[-12_000:]
