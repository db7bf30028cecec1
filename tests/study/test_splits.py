"""Splits: every row once, at 4/6 and 5/6; a curve has points ever further apart."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream.study.splits import checkpoints, cut


@pytest.mark.parametrize("n", [0, 1, 5, 6, 7, 601, 4143, 10**6 + 1])
def test_rows_are_cut_at_four_and_five_sixths_in_their_order(n):
    order = np.random.default_rng(n).permutation(n)
    parts = cut(order)
    assert [len(part) for part in parts] == [int(n * 4 / 6), int(n * 5 / 6) - int(n * 4 / 6), n - int(n * 5 / 6)]
    assert (np.concatenate(parts) == order).all()


def test_checkpoints_stand_ever_wider_apart():
    close = [*range(1, 1100, 50), *range(1501, 11100, 500)]
    assert checkpoints(2762) == [*close[:22], 1501, 2001, 2501, 2762]
    assert checkpoints(12_000) == [*close, 12_000]
    assert checkpoints(120_000) == [*close, *range(15_001, 111_100, 5000), 120_000]
    assert checkpoints(1) == [1]
    assert checkpoints(51) == [1, 51]
