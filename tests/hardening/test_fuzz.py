"""Each parser under a fuzzer and sanitizers; `make fuzz` runs it for longer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import children

ROOT = Path(__file__).parents[2]


PARSERS = sorted(path.stem for path in (ROOT / "fuzz").glob("*.cpp") if path.stem != "replay")
SECONDS = 60 // len(PARSERS)


@pytest.mark.skipif(not (shutil.which("clang++") or shutil.which("g++")), reason="needs a C++ compiler")
@pytest.mark.parametrize("parser", PARSERS)
def test_a_minute_of_fuzzing_breaks_no_promise_of_the_parsers(parser: str, tmp_path: Path) -> None:
    made = children.run([ROOT / "fuzz" / "run.sh", parser, SECONDS, tmp_path], limit=3600)
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-4000:]
    assert "Done" in made.stdout + made.stderr
