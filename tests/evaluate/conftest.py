"""Small files of rare events for the tests of this package."""

from __future__ import annotations

from pathlib import Path

import pytest

from rarestream.evaluate.synthetic import Planted, write_svmlight


@pytest.fixture(scope="session")
def planted() -> Planted:
    return Planted.plant(seed=3, positives=0.1)


@pytest.fixture(scope="session")
def events(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20,000 rows of svmlight text."""
    path = tmp_path_factory.mktemp("events") / "events.svm"
    write_svmlight((part.block for part in planted.rows(20_000)), path)
    return path
