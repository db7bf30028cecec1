"""A stream sorted by label is noticed; a mixed one never is, however rare its positives."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream.metrics import SortedCheck


def messages(labels: np.ndarray, rows: int = 1000) -> list[str]:
    check = SortedCheck()
    said = [check.add(labels[start : start + rows]) for start in range(0, len(labels), rows)]
    return [message for message in said if message is not None]


@pytest.mark.parametrize("rows", [1, 37, 8192])
@pytest.mark.parametrize("positives", [20, 400, 4000, 7980])
@pytest.mark.parametrize("first", [-1, 1])
def test_a_sorted_stream_is_noticed_once(rows: int, positives: int, first: int) -> None:
    labels = np.repeat([1, -1], [positives, 8000 - positives])[::first].astype(np.int8)
    (message,) = messages(labels, rows)
    assert "look sorted by label" in message
    assert "shuffle=SEED" in message
    assert "change label once; about" in message


def test_it_is_noticed_soon_after_the_second_class_begins() -> None:
    check = SortedCheck()
    assert check.add(np.ones(4000, np.int8)) is None
    assert check.add(-np.ones(10, np.int8)) is not None


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01, 0.001])
@pytest.mark.parametrize("rows", [1, 100, 8192])
def test_a_mixed_stream_is_never_called_sorted(share: float, rows: int) -> None:
    for seed in range(20 if rows > 1 else 2):
        labels = np.where(np.random.default_rng(seed).random(40_000) < share, 1, -1).astype(np.int8)
        assert messages(labels, rows) == []


def test_one_class_or_nothing_at_all_says_nothing() -> None:
    assert messages(np.ones(10_000, np.int8)) == []
    assert SortedCheck().add(np.zeros(0, np.int8)) is None
    assert SortedCheck().expected == 0
