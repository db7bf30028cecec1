"""What Model.with_half_life promises: the same model, whose rows fade from now on at another rate."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream import DualAveraging, FtrlAuc, FtrlProximal, Model, Spam, auc
from rarestream.errors import ModelFileError
from rarestream.evaluate.synthetic import Planted

LEARNERS = [
    DualAveraging(),
    DualAveraging(loss="logistic", power=0.5, half_life=300),
    DualAveraging(evidence=0.5, half_life=1000),
    FtrlAuc(half_life=20_000),
    FtrlProximal(),
]


def blocks(seed=0, rows=12_000):
    return [part.block for part in Planted.plant(seed, positives=0.1).rows(rows)]


def learned(learner, rows, **settings):
    model = Model(learner, **settings)
    for block in rows:
        model.learn(block)
    return model


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_copy_has_the_same_scores_up_to_rounding(learner, dtype):
    rows = blocks()
    model = learned(learner, rows, dtype=dtype, scale="max")
    before, file = model.score(rows[0]), model.to_bytes()
    for half_life in (100, 777.5, 5000, 1e6, 0):
        copy = model.with_half_life(half_life)
        assert copy.learner.settings == {**learner.settings, "half_life": half_life}
        np.testing.assert_allclose(copy.score(rows[0]), before, atol=1e-6 * np.abs(before).max())
        assert (copy.rows, copy.positives, copy.progress.auc) == (model.rows, model.positives, model.progress.auc)
        assert copy.features is model.features
    assert model.to_bytes() == file  # it does not change


def test_the_same_half_life_changes_nothing():
    rows = blocks()
    model = learned(DualAveraging(half_life=700), rows)
    copy = model.with_half_life(700)
    assert copy.to_bytes() == model.to_bytes()
    assert np.array_equal(copy.learn(rows[0]), model.learn(rows[0]))


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_save_load_continue_equals_continue(learner):
    rows = blocks()
    copy = learned(learner, rows).with_half_life(400)
    again = Model.from_bytes(copy.to_bytes())
    for block in rows:
        assert np.array_equal(copy.learn(block), again.learn(block))
    assert copy.to_bytes() == again.to_bytes()


def test_a_model_begun_with_a_half_life_is_what_one_without_rows_becomes():
    rows = blocks()
    late = Model(FtrlProximal()).with_half_life(500)
    for block in rows:
        late.learn(block)
    assert np.array_equal(late.coef, learned(FtrlProximal(half_life=500), rows).coef)


def test_it_follows_a_stream_that_drifts():
    rows = [part.block for part in Planted.plant(0, positives=0.1, drift=40_000).rows(131_072)]
    model = learned(DualAveraging(), rows[:8])
    faster = model.with_half_life(5000)
    scores = {name: [one.learn(block) for block in rows[8:]] for name, one in (("slow", model), ("fast", faster))}
    labels = np.concatenate([block.labels for block in rows[8:]])
    assert auc(labels, np.concatenate(scores["fast"])) > auc(labels, np.concatenate(scores["slow"])) + 0.02


def test_memory_that_no_row_has_touched_stays_so():
    model = Model(DualAveraging(), n_features=1 << 20)
    model.learn_one([5], [1.0], 1)
    model.learn_one([6], [1.0], -1)
    assert np.flatnonzero(model.with_half_life(100).coef).tolist() == np.flatnonzero(model.coef).tolist()


def test_models_without_a_half_life_are_refused():
    rows = blocks(rows=500)
    for learner, message in (
        (Spam(), "spam has no half_life; dual-auc"),
        (DualAveraging(budget=10), "budget and half_life cannot be combined"),
        (FtrlAuc(means="exact"), "cannot be combined"),
        ("auto", r"auto still compares settings.*finish_race\(\) first"),
    ):
        model = learned(learner, rows)
        file = model.to_bytes()
        with pytest.raises(ValueError, match=message):
            model.with_half_life(1000)
        assert model.to_bytes() == file
    with pytest.raises(ValueError, match="half_life must be 0 or between 100 and"):
        learned(DualAveraging(), rows).with_half_life(-1)
    frozen = Model.from_bytes(learned(DualAveraging(), rows).to_bytes("scoring"))
    with pytest.raises(ModelFileError, match=r"Model\.with_half_life: this model was saved for scoring only"):
        frozen.with_half_life(1000)


def test_auto_has_a_half_life_once_it_has_chosen():
    rows = blocks(rows=3000)
    model = learned("auto", rows)
    model.finish_race()
    assert model.with_half_life(1000).learner.settings["half_life"] == 1000
