"""Rows that can be told apart, a little."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream.blocks import Block


@pytest.fixture(scope="session")
def block() -> Block:
    """900 rows of 60 columns, about 8 of them in a row; a fifth of the rows are positive."""
    draw = np.random.default_rng(5)
    X = draw.normal(size=(900, 60)) * (draw.random((900, 60)) < 0.13)
    score = X @ draw.normal(size=60) + draw.normal(size=900)
    return Block.of(X, score > np.quantile(score, 0.8))
