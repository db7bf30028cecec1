"""`train` and `race` take Blocks that a program has made itself."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream import Block, Model
from rarestream.datasets import make_rare_stream
from rarestream.evaluate import TrainingRun, train
from rarestream.evaluate.given import GivenBlocks
from rarestream.race import race

STREAM = make_rare_stream(12_000, positives=0.2, seed=3)


def weights(data, **options) -> np.ndarray:
    model = Model("dual-logistic")
    train(model, data, **options)
    return model.coef


def test_any_iterable_of_blocks_is_learned_as_its_blocks_are():
    expected = Model("dual-logistic")
    for block in STREAM:
        expected.learn(block)
    for data in (STREAM, list(STREAM), iter(list(STREAM)), (block for block in STREAM)):
        assert np.array_equal(weights(data), expected.coef)
    first = next(iter(STREAM))
    assert np.array_equal(weights(first), weights([first]))


def test_passes_maximum_and_an_interrupted_run():
    twice = Model("dual-logistic")
    for again in (False, True):
        for block in STREAM:
            twice.learn(block, again=again)
    assert np.array_equal(weights(STREAM, passes=2), twice.coef)
    model = Model("dual-logistic")
    assert train(model, STREAM, max_rows=9000).rows == model.rows == 9000
    run = TrainingRun(Model("dual-logistic"), STREAM)
    for _ in run:
        run.interrupt()
    assert run.rows == 8192 and run.interrupted
    left = GivenBlocks(STREAM)
    left.skip(8200)
    assert [len(block) for block in left] == [12_000 - 8200]


def test_the_model_can_be_saved_meanwhile(tmp_path):
    model = Model("dual-logistic")
    train(model, STREAM, save=tmp_path / "m.rare", save_every=5000)
    saved = Model.load(tmp_path / "m.rare")
    assert saved.rows == 12_000 and np.array_equal(saved.coef, model.coef)
    assert saved.source["files"] == []


def test_a_race_of_a_generated_stream():
    found = race(STREAM)
    assert found.model.rows == 12_000
    assert float(found.winner.auc) > 0.6


def test_what_is_no_block_is_refused():
    model = Model("dual-logistic")
    with pytest.raises(TypeError, match=r"got 'clicks.svm'. Open files with rarestream.read"):
        train(model, "clicks.svm")
    with pytest.raises(TypeError, match="got 5"):
        train(model, 5)
    with pytest.raises(TypeError, match="needs Blocks of rows, got tuple"):
        train(model, [(np.zeros((1, 2)), [1])])
    with pytest.raises(ValueError, match="passes=2 needs Blocks that can be read again"):
        train(model, iter(list(STREAM)), passes=2)
    assert model.rows == 0
    with pytest.raises(ValueError, match="passes"):
        race((block for block in STREAM), passes=2)
    unlabelled = Block.of(np.eye(3, dtype=np.float32))
    with pytest.raises(ValueError, match="label"):
        train(model, [unlabelled])
