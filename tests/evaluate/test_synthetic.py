"""The planted stream: always the same, as rare as it was asked to be, and its truth is the best ranking."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from rarestream import Model, auc, read
from rarestream.blocks import Block, concatenate
from rarestream.evaluate import evaluate, train
from rarestream.evaluate.synthetic import BLOCK, FIELDS, Planted, write_svmlight


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


def test_a_file_is_there_complete_or_not_at_all(planted, tmp_path):
    def broken():
        yield from (part.block for part in planted.rows(100))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_svmlight(broken(), tmp_path / "rows.svm")
    assert list(tmp_path.iterdir()) == []


def test_the_streams_of_earlier_versions_keep_their_bits():
    digest = hashlib.sha256()
    for stream in (Planted.plant(3), Planted.plant(3, drift=9000)):
        for part in stream.rows(20_000):
            digest.update(part.block.indices.tobytes() + part.block.labels.tobytes())
    assert digest.hexdigest() == "775642e1e367fe88f53853ed9425f67af14461575f33faf00e7c527224a22b24"


def test_noise_keeps_the_rows_the_share_of_positives_and_the_order():
    def measured(noise: float) -> tuple[float, float]:
        parts = list(Planted.plant(4, positives=0.05, noise=noise).rows(80_000))
        assert all((one.log_odds == other.log_odds).all() for one, other in zip(parts, quiet, strict=True))
        labels = np.concatenate([part.block.labels for part in parts])
        return (labels > 0).mean(), auc(labels, np.concatenate([part.log_odds for part in parts]))

    quiet = list(Planted.plant(4, positives=0.05).rows(80_000))
    (share, best), (half_share, half), (full_share, full) = (measured(noise) for noise in (0.0, 0.5, 1.0))
    assert max(abs(one - 0.05) for one in (share, half_share, full_share)) < 0.003
    assert abs(full - 0.5) < 0.015
    assert abs(half - (best + 0.5) / 2) < 0.02  # half of the positives are drawn from all rows


def test_fields_are_as_many_and_as_large_as_asked():
    assert Planted.plant(1).sizes.tolist() == Planted.plant(1, fields=FIELDS).sizes.tolist()
    assert len(Planted.plant(1, fields=5).sizes) == 5
    stream = Planted.plant(1, fields=[3, 300_000, 1])  # more values than columns before
    assert stream.sizes.tolist() == [3, 300_000, 1]
    values, (part,) = next(stream.values(1000)), stream.rows(1000)
    assert (values.max(axis=0) < [3, 300_000, 1]).all() and part.block.nonzeros == 3000
    assert len(stream.weights) == 2**19


def test_a_file_of_rows_has_the_usual_signs_and_numbers(tmp_path):
    size = write_svmlight([Block.of(np.array([[1, 0, 2.5], [0, 1, 0]]), [1, 0])], tmp_path / "rows.svm")
    assert (tmp_path / "rows.svm").read_text() == "+1 1:1 3:2.5\n-1 2:1\n" and size == 20


def test_a_learner_comes_close_to_the_truth_and_not_beyond(planted, events):
    model = Model("dual-auc")
    train(model, read(events))
    parts = list(planted.rows(20_000, part=1))
    labels = np.concatenate([part.block.labels for part in parts])
    best = auc(labels, np.concatenate([part.log_odds for part in parts]))
    found = evaluate(model, [part.block for part in parts])
    assert 0.75 < found.auc < best < 0.99


def test_rare_columns_can_be_planted():
    frequent, rare = (Planted.plant(3, planted=10**6, rarest=rarest) for rarest in (1e-3, 1e-5))
    assert np.count_nonzero(frequent.weights) < 2000 < np.count_nonzero(rare.weights)
    assert frequent.shows[frequent.weights != 0].min() > 1e-3 > rare.shows[rare.weights != 0].min() > 1e-5


def test_a_stream_without_drift_keeps_its_truth(planted):
    weights, intercept = planted.truth(10**9)
    assert weights is planted.weights
    assert intercept == planted.intercept


def test_drifting_weights_turn_over_and_keep_their_size():
    drift = 16 * BLOCK
    stream = Planted.plant(5, planted=2000, strength=0.7, drift=drift)
    planted = stream.weights != 0
    start = stream.weights[planted]

    def turned(row: int) -> np.ndarray:
        weights, _ = stream.truth(row)
        assert (weights[~planted] == 0).all()
        return weights[planted]

    assert len(start) > 1000
    assert np.corrcoef(start, turned(BLOCK))[0, 1] > 0.95  # a sixteenth of the way
    assert 0.2 < np.corrcoef(start, turned(drift // 2))[0, 1] < 0.6
    assert abs(np.corrcoef(start, turned(7 * drift))[0, 1]) < 0.1
    course = np.array([turned(row) for row in range(0, drift + 1, BLOCK)])
    assert abs(np.corrcoef(course[0], course[-1])[0, 1]) < 0.1
    assert (np.abs(course.std(axis=1) - 0.7) < 0.05).all()
    assert np.abs(np.diff(course, axis=0)).max() < 1  # nothing jumps where one number follows another


def test_a_drifting_stream_has_the_truth_of_its_rows_and_the_same_rows_otherwise():
    still, moving = Planted.plant(6), Planted.plant(6, drift=2 * BLOCK)
    pairs = zip(still.rows(3 * BLOCK), moving.rows(3 * BLOCK), strict=True)
    for number, (one, other) in enumerate(pairs):
        assert (one.block.indices == other.block.indices).all()
        weights, intercept = moving.truth(number * BLOCK + 5)  # of the block that the row is in
        columns = other.block.indices.reshape(-1, FIELDS)
        np.testing.assert_array_equal(other.log_odds, intercept + weights[columns].sum(axis=1))
    again = list(Planted.plant(6, drift=2 * BLOCK).rows(3 * BLOCK))[-1]
    assert (again.block.labels == other.block.labels).all()
    assert (again.log_odds == other.log_odds).all()
    few = list(moving.rows(2 * BLOCK + 10))[-1]
    assert (few.block.labels == other.block.labels[:10]).all()


def test_the_share_of_positives_stays_while_the_weights_drift():
    stream = Planted.plant(2, positives=0.05, drift=4 * BLOCK)
    labels = np.concatenate([part.block.labels for part in stream.rows(16 * BLOCK)])
    for piece in np.split(labels, 4):
        assert abs((piece > 0).mean() - 0.05) < 0.006


def test_a_negative_drift_is_refused():
    with pytest.raises(ValueError, match="drift must be >= 0"):
        Planted.plant(drift=-1)
