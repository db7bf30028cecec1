"""Probabilities of a model: from rows that were learned, through files, races and pruning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from rarestream import Block, Model, learner_names
from rarestream.errors import DataError, FewRowsWarning, NotCalibratedError
from rarestream.features import Hashed
from rarestream.metrics import Calibration
from tests.model.write_golden import FOLDER
from tests.strategies import random_block


@pytest.fixture(scope="module")
def block() -> Block:
    return random_block(1200, 60, 8, seed=3, share=0.2)


def twin(labels, scores, importances=None) -> bytes:
    known = Calibration()
    known.add(labels, scores, importances)
    return known.state().tobytes()


@pytest.mark.parametrize("name", [name for name in learner_names() if name != "auto"])
def test_it_learns_from_the_scores_before_each_row(block, name):
    model = Model(name)
    scores = np.concatenate([model.learn(block[:500]), model.learn(block[500:])])
    model.learn(block, again=True)  # scores of rows it has learned tell nothing
    assert model.calibration.state().tobytes() == twin(block.labels, scores)
    assert model.probability(block).tolist() == model.calibration.probability(model.score(block)).tolist()
    assert np.array_equal(np.argsort(model.probability(block)), np.argsort(model.score(block)))


def test_rows_alone_and_in_blocks_give_the_same_bits(block):
    whole, alone = Model("dual-auc"), Model("dual-auc")
    whole.learn(block)
    for i, label in enumerate(block.labels.tolist()):
        part = slice(block.indptr[i], block.indptr[i + 1])
        alone.learn_one(block.indices[part].tolist(), block.values[part].tolist(), label)
    assert whole.to_bytes() == alone.to_bytes()
    first = slice(block.indptr[0], block.indptr[1])
    assert alone.probability_one(block.indices[first], block.values[first]) == whole.probability(block[:1])[0]


def test_dicts_have_probabilities():
    model = Model("dual-logistic", features=Hashed())
    for i in range(200):
        model.learn_one({"site": f"s{i % 7}"}, int(i % 7 == 0))
    assert model.probability_one({"site": "s0"}) > 0.9 > 0.1 > model.probability_one({"site": "s1"})


@pytest.mark.parametrize("name", ["auto", "dual-auc", "spauc"])
def test_saving_and_resuming_changes_no_bit(block, name):
    going, stopped = Model(name), Model(name)
    for start in range(0, len(block), 100):
        going.learn(block[start : start + 100])
        stopped.learn(block[start : start + 100])
        stopped = Model.from_bytes(stopped.to_bytes())
    assert going.to_bytes() == stopped.to_bytes()
    scoring = Model.from_bytes(going.to_bytes("scoring"))
    assert scoring.probability(block) == pytest.approx(going.probability(block), abs=1e-6)


def test_after_a_race_it_is_that_of_the_winner(block):
    model = Model("auto")
    model.learn(block)
    model.finish_race()
    assert model.calibration.rows == len(block)
    truth = block.labels > 0
    p = model.probability(block)
    assert p.mean() == pytest.approx(truth.mean(), abs=0.1)


def test_importances_count(block):
    weights = np.where(block.labels > 0, 5.0, 1.0)
    plain, heavy = Model("dual-auc"), Model("dual-auc")
    plain.learn(block)
    heavy.learn(Block(block.indptr, block.indices, block.values, block.width, block.labels, weights))
    assert heavy.probability(block).mean() > plain.probability(block).mean() + 0.1


def test_it_can_be_switched_off(block):
    model = Model("dual-auc", calibrate=False)
    model.learn(block)
    assert model.calibration is None
    plain = Model("dual-auc")
    plain.learn(block)
    assert model.score(block).tolist() == plain.score(block).tolist()
    for again in (model, Model.from_bytes(model.to_bytes()), Model.from_bytes(model.to_bytes("scoring"))):
        with pytest.raises(NotCalibratedError, match=r"made with calibrate=False.*calibrate_on"):
            again.probability(block)
        assert again.threshold == model.leader.threshold(model._tally)


def test_sampled_negatives_are_part_of_the_file(block):
    model = Model("dual-auc", negatives_kept=0.1)
    model.learn(block)
    again = Model.from_bytes(model.to_bytes("scoring"))
    assert again.negatives_kept == 0.1
    odds = [p / (1 - p) for p in (again.probability(block), again.probability(block, negatives_kept=1))]
    assert odds[0] == pytest.approx(odds[1] / 10)
    low, high = again.probability_interval(block)
    assert (low < again.probability(block)).all() and (again.probability(block) < high).all()
    with pytest.raises(DataError, match="negatives_kept"):
        Model(negatives_kept=0)


def test_few_rows_of_a_class_are_said(block):
    model = Model("dual-auc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.probability(block[:2]).tolist() == [0.5, 0.5]  # nothing learned yet
    model.learn(block.take(np.flatnonzero(block.labels < 0)[:50]))
    with pytest.warns(FewRowsWarning, match="0 positive and 50 negative rows"):
        p = model.probability(block[:2])
    assert (p < 0.1).all()
    _, high = model.calibration.interval(model.score(block[:2]))
    assert (high > 0.05).all()


@pytest.mark.parametrize("kind", ["resumable", "scoring"])
def test_files_of_earlier_versions_say_what_to_do(kind, block):
    model = Model.load(FOLDER / f"format1-dual-auc-{kind}.rare")
    rows = Block.of((block.indptr, block.indices, block.values), block.labels)
    assert model.calibration is None
    with pytest.raises(NotCalibratedError, match=r"a version that did not calibrate.*calibrate_on"):
        model.probability(rows)
    model.calibrate_on(rows)
    assert 0 < model.probability(rows).mean() < 1
    if kind == "resumable":
        model = Model.load(FOLDER / f"format1-dual-auc-{kind}.rare")
        model.learn(rows)
        assert model.calibration.rows == len(rows)


def test_calibrating_on_other_rows(block):
    model = Model("dual-auc")
    model.learn(block[:600])
    scores = model.score(block).tolist()
    model.calibrate_on([block[600:900], block[900:]])
    assert model.score(block).tolist() == scores
    assert model.calibration.state().tobytes() == twin(block.labels[600:], np.array(scores[600:]))
    before = model.calibration
    ones = block.take(np.flatnonzero(block.labels > 0))
    for rows, match in (
        (ones, "all .* rows are positive"),
        (Block.of((ones.indptr, ones.indices, ones.values)), "no labels"),
    ):
        with pytest.raises(DataError, match=match):
            model.calibrate_on(rows)
    assert model.calibration is before


def test_a_pruned_model_is_calibrated_on_the_rows_given(block):
    model = Model("dual-auc")
    model.learn(block[:900])
    assert model.prune(nonzeros=10**6).probability(block).tolist() == model.probability(block).tolist()
    small = model.prune(nonzeros=10)
    with pytest.raises(NotCalibratedError, match="was pruned"):
        small.probability(block)
    refitted = model.prune(nonzeros=10, refit=iter([block[:900]]))
    assert refitted.calibration.rows == 900
    chosen = model.prune(auc_loss=0.05, on=iter([block[900:]]))
    assert chosen.calibration.rows == 300
    size = len(refitted.to_bytes("scoring"))
    assert len(model.prune(bytes=size, refit=block[:900]).to_bytes("scoring")) <= size
