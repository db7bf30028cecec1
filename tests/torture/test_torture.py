"""A soak of random kills, damage, files, streams and settings, for half a minute.

`make check-native` runs it for two minutes, `make torture` for as long as you like.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests import children

ROOT = Path(__file__).parents[2]


def test_half_a_minute_of_torture_breaks_no_promise() -> None:
    made = children.run([sys.executable, "-m", "tests.torture", "--seconds", 30], cwd=ROOT, limit=3600)
    assert made.returncode == 0, (made.stdout + made.stderr)[-12_000:]
