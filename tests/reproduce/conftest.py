"""Small made-up data sets under the names of the paper's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


def write(path: Path, rows: int, positives: int, seed: int = 0, features: int = 60) -> None:
    """Rows of ones: features below 20 speak for a positive, those from 20 to 39 against it."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(rows):
        own = rng.integers(0, 20, 4) + (0 if i < positives else 20)
        columns = np.unique(np.concatenate([own, rng.integers(0, features, 6)])) + 1
        lines.append(f"{1 if i < positives else -1} " + " ".join(f"{j}:1" for j in columns))
    path.write_text("\n".join([*lines, ""]))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two data sets."""
    folder = tmp_path_factory.mktemp("small")
    write(folder / "farm-ads.svm", 240, 120)
    write(folder / "imdb.svm", 180, 90, seed=1)
    return folder
