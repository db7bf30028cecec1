"""Small files, a trained model, and two ways to run the program: in this process, and as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rarestream.evaluate.synthetic import Planted, write_svmlight
from tests import children
from tests.program import run as run

SHORT_RACE = ("--set", "rows=16384")
PROGRAM = [sys.executable, "-m", "rarestream"]


@pytest.fixture(scope="session")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20,000 rows of svmlight text."""
    path = tmp_path_factory.mktemp("events") / "events.svm"
    write_svmlight((part.block for part in Planted.plant(seed=3, positives=0.1).rows(20_000)), path)
    return path


@pytest.fixture(scope="session")
def trained(events: Path) -> Path:
    """A model of these rows whose race is over."""
    path = events.parent / "trained.rare"
    assert run("train", events, "-o", path, *SHORT_RACE).exit_code == 0
    return path


def process(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The program as a process of its own."""
    return children.run([*PROGRAM, *words], **options)


def started(*words: object, **options: Any) -> children.Child:
    """The same, while it runs: for a `with` block."""
    return children.Child([*PROGRAM, *words], **options)
