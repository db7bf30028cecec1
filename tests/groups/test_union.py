"""The features that any group has, and where those of each group are among them."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream.engines.merging import FAR_APART, _union


@pytest.mark.parametrize("span", [50, 1000, 100 * FAR_APART, 2**31 - 1])
@pytest.mark.parametrize("sizes", [(20, 30, 1), (0, 40, 0), (0, 0), (1,)])
def test_all_features_ascend_and_places_find_them(span, sizes):
    generator = np.random.default_rng(span)
    parts = [np.unique(generator.integers(0, span, size)).astype(np.int32) for size in sizes]
    index, places = _union(parts)
    assert index.dtype == np.int32
    assert index.tolist() == sorted(set(np.concatenate(parts).tolist()))
    for part, place in zip(parts, places, strict=True):
        assert place.dtype == np.int32
        assert index[place].tolist() == part.tolist()
