"""Model.prune: the largest weights stay as they are, the others are exactly zero."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from rarestream import Block, DataError, DualAveraging, Model, ModelFileError, auc, learner_names
from rarestream.evaluate import path
from tests.strategies import block_of, blocks, random_block

SETTINGS = st.tuples(
    st.sampled_from(learner_names()),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from(["unit", "max", "none"]),
)


def learned(block, settings=("dual-auc", "float32", "unit")) -> Model:
    learner, dtype, scale = settings
    model = Model(learner, dtype=dtype, scale=scale)
    try:
        model.learn(block)
    except DataError:  # rows that are not scaled may be too large for a learner's steps
        reject()
    return model


@pytest.fixture(scope="module")
def rows():
    return random_block(3000, 300, 12)


@pytest.fixture(scope="module")
def model(rows):
    return learned(rows[:2000])


def met(model: Model) -> np.ndarray:
    """The weights as scaled rows meet them."""
    return model.weights().weight[: model.n_features]


@given(blocks(), SETTINGS, st.integers(0, 15))
def test_the_largest_weights_stay_and_of_equal_ones_the_first(block, settings, size):
    model = learned(block, settings)
    weights, keys = met(model), abs(model.rank_keys())  # which are the weights unless the learner says otherwise
    ranks = sorted(np.flatnonzero(weights), key=lambda j: (-keys[j], j))
    small = model.prune(nonzeros=size)
    expected = np.zeros_like(weights)
    expected[ranks[:size]] = weights[ranks[:size]]
    assert met(small).tolist() == expected.tolist()
    assert small.nonzeros == min(size, model.nonzeros)
    assert small.coef.tolist() == np.where(expected != 0, model.coef, 0).tolist()


@given(blocks(), blocks(features=20), SETTINGS, st.integers(0, 15))
def test_scores_are_those_of_the_kept_weights(block, others, settings, size):
    model = learned(block, settings)
    small = model.prune(nonzeros=size)
    kept = np.zeros(20)
    kept[: model.n_features] = met(small)
    rows = others.to_csr(20).astype(float).toarray()
    if model.scale == "max":
        known = np.zeros(20)
        known[: model.n_features] = model.weights().largest[: model.n_features]
        most = np.maximum(np.abs(rows), known)
        rows = np.divide(rows, most, out=np.zeros_like(rows), where=most > 0)
    if model.scale != "none":
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    np.testing.assert_allclose(small.score(others), rows @ kept, rtol=1e-4, atol=1e-5)


@given(blocks(), SETTINGS, st.integers(0, 15))
def test_a_pruned_model_is_saved_and_loaded_as_any_other(block, settings, size):
    model = learned(block, settings)
    small = model.prune(nonzeros=size)
    again = Model.from_bytes(small.to_bytes("scoring"))
    assert again.to_bytes("scoring") == small.to_bytes("scoring")
    assert again.score(block).tolist() == small.score(block).tolist()
    assert again.pruned_from == small.pruned_from == (model.nonzeros if size < model.nonzeros else None)
    assert (again.rows, again.positives, again.class_means) == (model.rows, model.positives, model.class_means)
    assert (again.calibration is None) == (size < model.nonzeros)
    assert again.metrics == model.metrics


def test_the_model_itself_does_not_change(rows):
    model = learned(rows[:2000])
    before = model.to_bytes()
    small = model.prune(nonzeros=20)
    assert model.to_bytes() == before
    model.learn(rows[2000:])
    twin = learned(rows[:2000])
    twin.learn(rows[2000:])
    assert model.to_bytes() == twin.to_bytes()
    assert small.to_bytes("scoring") == learned(rows[:2000]).prune(nonzeros=20).to_bytes("scoring")


def test_a_pruned_model_of_scale_max_keeps_its_own_measures(rows):
    model = learned(rows[:2000], ("dual-auc", "float32", "max"))
    small = model.prune(nonzeros=20)
    before = small.score(rows)
    model.learn(block_of([{0: 1000.0, 5: 77.0}], [1]))
    assert small.score(rows).tolist() == before.tolist()


def test_a_pruned_model_scores_and_does_not_learn(model, rows):
    small = model.prune(nonzeros=20)
    assert small.kind == "scoring"
    with pytest.raises(ModelFileError, match="saved for scoring only"):
        small.learn(rows)


def test_pruning_twice_is_pruning_once(model):
    once = model.prune(nonzeros=20)
    assert model.prune(nonzeros=50).prune(nonzeros=20).to_bytes("scoring") == once.to_bytes("scoring")
    assert once.prune(nonzeros=10).pruned_from == model.nonzeros
    scoring = Model.from_bytes(model.to_bytes("scoring"))
    assert scoring.prune(nonzeros=20).to_bytes("scoring") == once.to_bytes("scoring")


def test_rows_wider_than_the_model_change_nothing(model, rows):
    wide = Model.from_bytes(model.to_bytes("scoring"))
    wide.score(block_of([{100_000: 1.0}]))
    assert wide.prune(nonzeros=20).to_bytes("scoring") == model.prune(nonzeros=20).to_bytes("scoring")
    assert wide.prune(nonzeros=20).n_features == model.n_features


def test_more_weights_than_there_are_leave_all_of_them(model, rows):
    whole = model.prune(nonzeros=10**9)
    assert whole.to_bytes("scoring") == model.to_bytes("scoring")
    assert whole.score(rows).tolist() == model.score(rows).tolist()
    assert whole.pruned_from is None


@given(st.integers(0, 4000), st.sampled_from(["float32", "float64"]), st.sampled_from(["unit", "max"]))
def test_a_file_of_so_many_bytes_is_filled_to_the_last_weight(extra, dtype, scale):
    rows = random_block(300, 150, 8)
    model = learned(rows, ("dual-auc", dtype, scale))
    room = len(model.prune(nonzeros=0).to_bytes("scoring")) + extra
    small = model.prune(bytes=room)
    assert len(small.to_bytes("scoring")) <= room
    if small.nonzeros < model.nonzeros:
        assert len(model.prune(nonzeros=small.nonzeros + 1).to_bytes("scoring")) > room
    else:
        assert small.score(rows).tolist() == model.score(rows).tolist()
        assert (small.calibration is None) == (len(model.to_bytes("scoring")) > room)


def test_fewer_bytes_than_an_empty_model_takes_are_refused(model):
    least = len(model.prune(nonzeros=0).to_bytes("scoring"))
    assert model.prune(bytes=least).nonzeros == 0
    with pytest.raises(ValueError, match=rf"bytes must be at least {least}, .* got {least - 1}\.$"):
        model.prune(bytes=least - 1)


@pytest.mark.parametrize("loss", [0.0, 0.0005, 0.002, 0.01, 0.1, 1.0])
def test_no_more_auc_is_lost_than_was_allowed(model, rows, loss):
    valid = rows[2000:]
    small = model.prune(auc_loss=loss, on=valid)
    full = auc(valid.labels, model.score(valid))
    assert full - auc(valid.labels, small.score(valid)) <= loss
    # Not every size is looked at, so a larger one that loses more may go unseen, but none is 1 % too large.
    assert 0.99 * small.nonzeros <= path(model, valid, range(model.nonzeros + 1)).smallest(loss)


@pytest.mark.parametrize("kind", ["block", "list", "iterator"])
def test_rows_may_come_in_any_way(model, rows, kind):
    valid = rows[2000:]
    parts = [valid[:300], valid[300:]]
    on = {"block": valid, "list": parts, "iterator": iter(parts)}[kind]
    assert model.prune(auc_loss=0.01, on=on).nonzeros == model.prune(auc_loss=0.01, on=valid).nonzeros


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ({}, "one of nonzeros, bytes and auc_loss"),
        ({"nonzeros": 3, "bytes": 4000}, "one of nonzeros, bytes and auc_loss"),
        ({"auc_loss": 0.1}, "auc_loss and on must be given together"),
        ({"nonzeros": 3, "on": []}, "auc_loss and on must be given together"),
        ({"nonzeros": -1}, "nonzeros must be >= 0, got -1"),
        ({"bytes": -1}, "bytes must be >= 0, got -1"),
        ({"auc_loss": -0.1, "on": []}, r"auc_loss must be >= 0, got -0\.1"),
        ({"auc_loss": float("nan"), "on": []}, "auc_loss must be >= 0, got nan"),
    ],
)
def test_wrong_words_are_refused(model, words, rule):
    with pytest.raises(ValueError, match=rule):
        model.prune(**words)


@pytest.mark.parametrize(
    ("on", "rule"),
    [
        ([], "there are no rows"),
        (block_of([{0: 1.0}, {1: 1.0}], [1, 1]), "all 2 rows are positive"),
        (block_of([{0: 1.0}, {1: 1.0}], [1, -1], [1.0, 0.0]), "all 1 rows are positive"),
        (block_of([{0: 1.0}]), "no labels"),
    ],
)
def test_rows_that_have_no_auc_are_refused(model, on, rule):
    with pytest.raises(DataError, match=rule):
        model.prune(auc_loss=0.1, on=on)


# -- refit


@pytest.mark.parametrize("scale", ["unit", "max", "none"])
def test_refitting_is_learning_the_kept_features_of_scaled_rows(scale):
    """Against a model of rows that were scaled and cut by hand."""
    block = random_block(400, 60, 8, share=0.4)
    model = Model(DualAveraging(loss="logistic"), scale=scale, dtype="float64")
    model.learn(block)
    small = model.prune(nonzeros=15, refit=block)
    kept = np.flatnonzero(model.prune(nonzeros=15).weights().weight)
    dense = np.zeros((len(block), 60))
    for i in range(len(block)):
        at = slice(block.indptr[i], block.indptr[i + 1])
        dense[i, block.indices[at]] = block.values[at]
    if scale == "max":
        dense /= np.maximum(abs(dense).max(axis=0), 1e-300)
    if scale != "none":
        dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    only = np.zeros_like(dense)
    only[:, kept] = dense[:, kept]
    twin = Model(DualAveraging(loss="logistic"), scale="none", dtype="float64")
    twin.learn(Block.of(only, block.labels))
    np.testing.assert_allclose(small.weights().weight[kept], twin.coef[kept], rtol=1e-5)
    assert set(np.flatnonzero(small.weights().weight)) <= set(kept)
    assert (small.kind, small.pruned_from, small.rows) == ("scoring", model.nonzeros, model.rows)
    assert small.intercept == pytest.approx(twin.intercept, rel=1e-5)
    again = Model.from_bytes(small.to_bytes("scoring"))
    assert np.array_equal(again.score(block), small.score(block))


def test_where_the_rows_to_refit_on_are_cut_does_not_matter_and_the_model_does_not_change():
    block = random_block(300, 60, 8, share=0.4)
    model = Model("dual-logistic")
    model.learn(block)
    before = model.to_bytes()
    whole = model.prune(nonzeros=10, refit=block)
    parts = model.prune(nonzeros=10, refit=iter([block[:1], block[1:120], block[120:]]))
    assert whole.to_bytes("scoring") == parts.to_bytes("scoring")
    assert model.to_bytes() == before


def test_refitting_keeps_all_features_and_all_weights_of_a_whole_model():
    block = random_block(300, 60, 8, share=0.4)
    model = Model(DualAveraging(loss="logistic"), dtype="float64")
    model.learn(block)
    same = model.prune(nonzeros=10**6, refit=block)
    np.testing.assert_allclose(same.coef, model.coef, rtol=1e-4, atol=1e-6)  # rows are rounded after they are scaled


def test_rows_that_cannot_be_refitted_on_are_refused():
    block = random_block(100, 60, 8, share=0.4)
    model = Model("dual-logistic")
    model.learn(block)
    with pytest.raises(DataError, match="refit on have no labels"):
        model.prune(nonzeros=5, refit=replace(block, labels=None))
    with pytest.raises(DataError, match="no rows to refit on"):
        model.prune(nonzeros=5, refit=[])
    with pytest.raises(DataError, match="Model.prune"):
        model.prune(nonzeros=5, refit=Block.of_dicts([{"a": "b"}], [1]))
    with pytest.raises(TypeError, match="Model.prune: takes a Block"):
        model.prune(nonzeros=5, refit=[np.zeros((3, 4))])
