"""The planted stream: always the same, as rare as it was asked to be, and its truth is the best ranking."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream import Block, Model, auc, read
from rarestream.blocks import concatenate
from rarestream.evaluate import evaluate, train
from rarestream.evaluate.synthetic import FIELDS, Planted, write_svmlight


def test_the_seed_decides_everything():
    first, second, other = (list(Planted.plant(seed).rows(9000)) for seed in (4, 4, 5))
    for one, same in zip(first, second, strict=True):
        assert (one.block.indices == same.block.indices).all()
        assert (one.block.labels == same.block.labels).all()
    assert (first[0].block.indices != other[0].block.indices).any()


def test_more_rows_begin_with_the_same_rows():
    stream = Planted.plant(1)
    (few,), many = stream.rows(100), list(stream.rows(20_000))
    assert (few.block.indices == many[0].block[:100].indices).all()
    assert (few.block.labels == many[0].block[:100].labels).all()


def test_the_share_of_positives_is_as_asked():
    labels = np.concatenate([part.block.labels for part in Planted.plant(2, positives=0.05).rows(60_000)])
    assert abs((labels > 0).mean() - 0.05) < 0.004


def test_rows_are_sorted_and_without_duplicates(planted):
    (part,) = planted.rows(500)
    columns = part.block.indices.reshape(500, FIELDS)
    assert (np.diff(columns, axis=1) > 0).all()


def test_written_and_read_they_are_the_same_rows(planted, tmp_path):
    for name in ("rows.svm", "rows.svm.gz"):
        path = tmp_path / name
        size = write_svmlight((part.block for part in planted.rows(9000)), path)
        if path.suffix == ".svm":
            assert path.stat().st_size == size
        block, made = concatenate(read(path)), concatenate(part.block for part in planted.rows(9000))
        assert (block.indices == made.indices).all()
        assert (block.values == 1).all()
        assert (block.labels == made.labels).all()


def test_only_ones_can_be_written(tmp_path):
    with pytest.raises(ValueError, match="all values must be 1"):
        write_svmlight([Block.of(np.full((1, 2), 2.0), [1])], tmp_path / "rows.svm")


def test_a_learner_comes_close_to_the_truth_and_not_beyond(planted, events):
    model = Model("dual-auc")
    train(model, read(events))
    parts = list(planted.rows(20_000, part=1))
    labels = np.concatenate([part.block.labels for part in parts])
    best = auc(labels, np.concatenate([part.log_odds for part in parts]))
    found = evaluate(model, [part.block for part in parts])
    assert 0.75 < found.auc < best < 0.99
