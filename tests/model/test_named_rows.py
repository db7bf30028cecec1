"""Rows given by names: learned, scored and explained one at a time."""

from __future__ import annotations

import pytest

from rarestream import Block, DataError, Hashed, Model

ROWS = [{"site": f"w{i % 7}", "device": "phone" if i % 3 else "tablet"} for i in range(40)]
LABELS = [1 if i % 7 < 2 else -1 for i in range(40)]


def test_rows_by_name_are_learned_one_by_one_as_in_a_block():
    one, block = Model("dual-auc", features=Hashed(12)), Model("dual-auc", features=Hashed(12))
    scores = [one.learn_one(row, label) for row, label in zip(ROWS, LABELS, strict=True)]
    assert scores == block.learn(Block.of_dicts(ROWS, LABELS, features=block.features)).tolist()
    assert one.to_bytes() == block.to_bytes()
    assert [one.score_one(row) for row in ROWS] == block.score(Block.of_dicts(ROWS, features=block.features)).tolist()


def test_a_fresh_model_takes_hashed_features():
    model = Model("dual-auc")
    assert model.score_one(ROWS[0]) == 0
    assert model.features is None
    model.learn_one(ROWS[0], 1)
    assert isinstance(model.features, Hashed)
    assert model.features.bits == 22
    slots = [model.features.slot("site", "w0"), model.features.slot("device", "tablet")]
    assert model.feature_names(slots) == ["site = w0", "device = tablet"]


def test_label_and_importance_by_position_and_by_name():
    models = [Model("dual-auc") for _ in range(4)]
    for label in (1, -1, 1):
        models[0].learn_one(ROWS[0], label, 2.0)
        models[1].learn_one(ROWS[0], label=label, importance=2.0)
        models[2].learn_one(ROWS[0], label, importance=2.0)
        models[3].learn_one(ROWS[0], label)
    assert models[0].to_bytes() == models[1].to_bytes() == models[2].to_bytes() != models[3].to_bytes()
    for call in (lambda: models[0].learn_one(ROWS[0]), lambda: models[0].learn_one(ROWS[0], 5)):
        with pytest.raises(DataError, match=r"Model.learn_one: labels are -1 and \+1, or 0 and 1, got"):
            call()
    with pytest.raises(DataError, match="has the importance -1"):
        models[0].learn_one(ROWS[0], 1, -1)


def test_scoring_and_explaining_change_nothing():
    model = Model("dual-auc")
    model.learn_one(ROWS[0], 1)
    model.learn_one(ROWS[3], -1)
    names, before = len(model.features.names), model.to_bytes()
    model.score_one({"site": "new"})
    explanation = model.explain_one({"site": "new", "device": "tablet"})
    assert {term.name for term in explanation.terms} == {"site = new", "device = tablet"}
    assert sum(term.contribution for term in explanation.terms) == pytest.approx(explanation.score)
    assert (len(model.features.names), model.to_bytes()) == (names, before)


def test_a_block_of_dicts_checks_labels_and_importances():
    with pytest.raises(DataError, match="need labels of shape"):
        Block.of_dicts(ROWS, [1, -1])
    block = Block.of_dicts(ROWS, LABELS, [2.0] * 40)
    assert block.space.bits == 22
    assert block.labels.tolist() == LABELS
    assert block.importances.tolist() == [2.0] * 40
