"""With one group nothing is merged: the model is that of learning in sequence, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from rarestream import DualAveraging, FtrlAuc, FtrlProximal, Model, learner_names, make_learner
from rarestream.groups import Part, fit_groups, merge, train_group
from rarestream.groups.receipt import KEY
from rarestream.learners.auto import Auto
from tests.groups.samples import weighted
from tests.strategies import hashed_block, random_block

ALL = [
    *(make_learner(name) for name in learner_names()),
    DualAveraging(loss="logistic", budget=5),
    DualAveraging(loss="auc", half_life=100),
    DualAveraging(loss="logistic", evidence=0.5, proximal=0.5),
    FtrlAuc(means="exact"),
    FtrlProximal(half_life=100, intercept=False),
    Auto(budget=5),
    Auto(rows=100),
]
EVERY = pytest.mark.parametrize("learner", ALL, ids=[f"{learner.name}-{at}" for at, learner in enumerate(ALL)])


def without_receipt(model: Model) -> bytes:
    del model.source[KEY]
    return model.to_bytes()


def in_sequence(learner, blocks, passes: int = 1, **settings) -> Model:
    model = Model(learner, **settings)
    for number in range(passes):
        for block in blocks:
            model.learn(block, again=number > 0)
    return model


@EVERY
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rounds, passes", [(1, 1), (3, 2)])
def test_one_group_gives_the_bytes_of_learning_in_sequence(learner, dtype, rounds, passes):
    blocks = [random_block(150, 20, 4), random_block(50, 25, 4, seed=1)]
    model = fit_groups(blocks, learner, groups=1, rounds=rounds, passes=passes, dtype=dtype)
    assert without_receipt(model) == in_sequence(learner, blocks, passes, dtype=dtype).to_bytes()


@pytest.mark.filterwarnings("ignore::rarestream.SettingsDroppedWarning")
@pytest.mark.parametrize("scale", ["none", "max"])
def test_so_it_is_with_every_scale_and_importances(scale):
    block = weighted(random_block(200, 20, 4))
    for name in ("dual-logistic", "opauc", "auto"):
        model = fit_groups([block], name, groups=1, rounds=2, scale=scale)
        assert without_receipt(model) == in_sequence(name, [block], scale=scale).to_bytes()


def test_so_it_is_with_hashed_rows_and_their_names():
    block = hashed_block(200, 8)
    model = fit_groups([block], "dual-auc", groups=1, rounds=2)
    assert without_receipt(model) == in_sequence("dual-auc", [block]).to_bytes()


def test_more_rounds_than_blocks_leave_some_without_rows():
    block = random_block(100, 20, 4)
    model = fit_groups([block], "dual-auc", groups=1, rounds=5, block_rows=50)
    assert [one["rows"] for one in model.source[KEY]["rounds"]].count(0) == 3
    assert without_receipt(model) == in_sequence("dual-auc", [block]).to_bytes()


def test_the_part_of_a_group_that_has_all_rows_is_a_whole_model():
    block = random_block(100, 20, 4)
    part = train_group(Model("opauc"), [block[:60], block[60:]], rows=100, of=100)
    assert part.change is None
    assert (part.rows, part.positives) == (100, int(np.count_nonzero(block.labels > 0)))
    sent = Part.from_bytes(part.to_bytes())
    assert sent == part
    assert merge(Model("opauc"), [sent]).to_bytes() == in_sequence("opauc", [block]).to_bytes()


def test_a_group_that_has_all_rows_is_not_merged_with_others():
    block = random_block(100, 20, 4)
    whole = train_group(Model("dual-auc"), [block], rows=100, of=100)
    some = train_group(Model("dual-auc"), [block], rows=100, of=200)
    for parts in ([whole, some], [some, whole], [whole, whole]):
        model = Model("dual-auc")
        before = model.to_bytes()
        with pytest.raises(ValueError, match="all rows of a round is merged with others"):
            merge(model, parts)
        assert model.to_bytes() == before
