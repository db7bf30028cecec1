"""The rows of each trial, as the authors' program drew them."""

from __future__ import annotations

import bz2

import numpy as np
import pytest

from rarestream.reproduce import protocol


def drawn_globally(*sizes: int) -> list[list[np.ndarray]]:
    """As their program did it: one global seed, then ten permutations a size."""
    np.random.seed(17)  # noqa: NPY002
    return [[np.random.permutation(n) for _ in range(10)] for n in sizes]  # noqa: NPY002


def test_splits_are_ten_permutations_cut_at_four_and_five_sixths():
    (orders,) = drawn_globally(4143)
    found = protocol.splits(4143)
    assert len(found) == 10
    for order, split in zip(orders, found, strict=True):
        assert [len(part) for part in split] == [2762, 690, 691]
        assert (np.concatenate(split) == order).all()
    assert protocol.splits(13)[0].train.tolist() == [2, 3, 12, 8, 7, 4, 10, 5]


@pytest.mark.parametrize(("ratio", "positives"), [(0.1, 6), (0.05, 3)])
def test_imbalance_keeps_the_first_positives_and_draws_anew(ratio, positives):
    labels = np.where(np.arange(100) % 3 == 0, 1, -1).astype(np.int8)  # 34 positives, 66 negatives
    kept, found = protocol.imbalanced(labels, ratio)
    assert kept[labels[kept] > 0].tolist() == [3 * i for i in range(positives)]
    assert (labels[kept] < 0).sum() == 66
    assert (np.diff(kept) > 0).all()
    _, orders = drawn_globally(100, len(kept))
    for order, split in zip(orders, found, strict=True):
        assert (np.concatenate(split) == order).all()


def test_a_data_set_is_found_compressed_or_not_and_scaled_where_the_authors_did(tmp_path):
    text = b"1 1:3 3:4\n-1 2:2\n"
    (tmp_path / "farm-ads.svm.bz2").write_bytes(bz2.compress(text))
    (tmp_path / "rcv1b.svm").write_bytes(text)
    assert protocol.load(tmp_path, "farm-ads").X.toarray().tolist() == [[3 / 5, 0, 4 / 5], [0, 1, 0]]
    assert protocol.load(tmp_path, "rcv1b").X.toarray().tolist() == [[3, 0, 4], [0, 2, 0]]
    with pytest.raises(protocol.DataSetError, match=r"imdb.svm: no such file, nor with .bz2, .gz, .xz. Put the imdb"):
        protocol.load(tmp_path, "imdb")
