"""The path: the AUC at many sizes in one pass, the same as that of each smaller model alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rarestream import Block, DataError, MissingExtraError, Model, StreamingAuc, _native, auc, pruning
from rarestream.evaluate import figure, path
from rarestream.pruning import Path, Ranked, spread
from tests.pruning.test_prune import SETTINGS, learned
from tests.strategies import block_of, blocks, random_block


def alone(model: Model, block: Block, size: int) -> float:
    return auc(block.labels, model.prune(nonzeros=size).score(block), block.importances)


@given(
    blocks(max_rows=40, features=40), blocks(max_rows=40, features=50, importances=True), SETTINGS, st.integers(1, 70)
)
def test_each_auc_is_that_of_the_smaller_model_alone(block, others, settings, sizes):
    living = others.labels[others.importances > 0]
    assume(0 < np.count_nonzero(living > 0) < len(living))
    model = learned(block, settings)
    found = path(model, others, list(range(sizes)))
    assert found.sizes == tuple(sorted({*range(min(sizes, model.nonzeros + 1)), model.nonzeros}))
    assert list(found.aucs) == [alone(model, others, size) for size in found.sizes]
    assert found.full == auc(others.labels, model.score(others), others.importances)
    assert (found.rows, found.positives, found.bound) == (len(living), int((living > 0).sum()), 0.0)


@pytest.mark.parametrize("isa", ["portable", "avx2"])
@pytest.mark.parametrize("settings", [("dual-auc", "float32", "unit"), ("dual-logistic", "float64", "max")])
def test_scores_at_every_size_are_bit_for_bit_those_of_the_smaller_model(isa, settings):
    before = _native.isa()
    try:
        _native.set_isa(isa)
    except ValueError:
        pytest.skip(f"no {isa} here")
    try:
        block = random_block(700, 400, 30)
        model = learned(block, settings)
        found = path(model, block, sizes=120)
        assert list(found.aucs) == [alone(model, block, size) for size in found.sizes]
    finally:
        _native.set_isa(before)


@given(blocks(features=40), SETTINGS, st.lists(st.integers(0, 45), min_size=1, unique=True).map(sorted))
def test_the_scores_of_every_row_at_every_size(block, settings, sizes):
    model = learned(block, settings)
    weights, order = model.weights(), Ranked(model.weights(), model.rank_keys(), 0).order
    ranks = np.full(weights.slots, 10**6)
    ranks[order] = np.arange(len(order))
    classes = np.searchsorted(sizes, ranks, side="right").astype(np.uint16)
    scores = np.empty((len(sizes), len(block)))
    scale = ("none", "unit", "max").index(model.scale)
    _native.score_path(weights.weight, classes, weights.largest, block, scale, scores)
    for size, row in zip(sizes, scores, strict=True):
        assert row.tolist() == model.prune(nonzeros=size).score(block).tolist()


def test_rows_too_large_for_squares_are_scaled_as_ever():
    block = block_of([{0: 1e30, 1: 2e30}, {0: 1e-30, 2: 1e-30}, {1: 1.0, 2: 3.0}, {0: 1.0}], [1, -1, 1, -1])
    model = learned(random_block(200, 3, 2))
    found = path(model, block, [0, 1, 2, 3])
    assert list(found.aucs) == [alone(model, block, size) for size in found.sizes]


def test_where_blocks_are_cut_does_not_matter():
    block = random_block(5000, 100, 6)
    model = learned(block[:2000])
    whole = path(model, block)
    assert path(model, [block[:10], block[10:3000], block[3000:]]) == whole
    assert path(model, iter([block[:4999], block[4999:]])) == whole


def test_columns_beyond_the_models_count_in_the_norm_alone():
    model = learned(random_block(500, 20, 5))
    block = block_of([{0: 1.0}, {0: 1.0, 90: 5.0}, {1: 1.0}, {1: 1.0, 99: 2.0}, {3: 1.0}], [1, -1, -1, 1, 1])
    found = path(model, [block[:1], block[1:]], [1, 5, 20])
    assert list(found.aucs) == [alone(model, block, size) for size in found.sizes]


def test_scores_that_cannot_all_be_kept_are_streamed(monkeypatch):
    block = random_block(6000, 100, 6)
    model = learned(block[:2000])
    exact = path(model, block, 5)
    monkeypatch.setattr(pruning, "MAX_SCORES", 5 * 3000)
    streamed = path(model, block, 5)
    assert streamed == exact  # as StreamingAuc is, with so few rows
    twice = path(model, [block, Block(**fields(block), importances=np.full(len(block), 2.0))], 5)
    for size, value in zip(twice.sizes, twice.aucs, strict=True):
        expected = StreamingAuc()
        scores = model.prune(nonzeros=size).score(block)
        expected.add(block.labels, scores)
        expected.add(block.labels, scores, np.full(len(block), 2.0))
        assert value == pytest.approx(float(expected.auc), abs=1e-12)


def fields(block: Block) -> dict:
    return {name: getattr(block, name) for name in ("indptr", "indices", "values", "width", "labels")}


def test_importances_count_where_only_some_blocks_have_them():
    block = random_block(400, 30, 5)
    model = learned(block)
    heavy = Block(**fields(block[200:]), importances=np.full(200, 3.0))
    found = path(model, [block[:200], heavy], [3, 10])
    weights = np.repeat([1.0, 3.0], 200)
    for size, value in zip(found.sizes, found.aucs, strict=True):
        assert value == auc(block.labels, model.prune(nonzeros=size).score(block), weights)


def test_sizes_grow_by_the_same_factor_from_ten_to_all():
    block = random_block(3000, 800, 20)
    model = learned(block)
    sizes = path(model, block).sizes
    assert (sizes[0], sizes[-1]) == (10, model.nonzeros)
    assert 40 <= len(sizes) <= 50
    steps = np.diff(np.log(sizes))
    assert steps[-1] == pytest.approx(np.log(model.nonzeros / 10) / 49, rel=0.1)
    assert path(model, block, 1).sizes == (model.nonzeros,)
    assert path(model, block, [3, 10**9]).sizes == (3, model.nonzeros)


@given(st.integers(0, 30), st.integers(0, 10_000), st.integers(1, 60))
def test_spread_ascends_to_its_end(first, more, count):
    sizes = spread(first + 1, first + more, count)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == first + more
    assert len(sizes) <= count
    assert sizes[0] >= min(first + 1, first + more)


@pytest.mark.parametrize(
    ("sizes", "rule"),
    [
        (0, "between 1 and 1000, got 0"),
        (-3, "between 1 and 1000, got -3"),
        (1001, "between 1 and 1000, got 1001"),
        (range(1001), "between 1 and 1000, got 1002"),
        ([-1, 3], "must be >= 0, got -1"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(sizes, rule):
    block = random_block(3000, 1500, 20)
    with pytest.raises(ValueError, match=rule):
        path(learned(block), block, sizes)


def test_a_model_that_has_learned_nothing_has_one_size():
    found = path(Model("dual-auc"), random_block(50, 10, 3))
    assert (found.sizes, found.aucs) == ((0,), (0.5,))
    assert Model("dual-auc").prune(auc_loss=0.1, on=random_block(50, 10, 3)).nonzeros == 0


def test_the_smallest_size_is_one_from_which_on_all_are_near():
    found = Path((1, 2, 4, 8, 16), (0.90, 0.95, 0.80, 0.94, 0.95), 10, 5, 0.0)
    assert found.smallest(0.0) == 16
    assert found.smallest(0.02) == 8  # 2 would do, but 4 would not
    assert found.smallest(0.2) == 1
    assert found.between(0.02) == [5, 6, 7]
    assert found.between(0.2) == [0]
    assert Path((0, 100, 101), (0.5, 0.5, 0.9), 10, 5, 0.0).between(0.1) == []
    assert (found.full, found[4]) == (0.95, 0.80)


def test_a_loss_that_is_allowed_refines_the_path():
    block = random_block(6000, 2000, 20)
    model = learned(block[:3000])
    valid = block[3000:]
    found = path(model, valid, 10, auc_loss=0.005)
    size = found.smallest(0.005)
    below = max(other for other in found.sizes if other < size)
    assert found.full - found[below] > 0.005
    assert size - below <= max(1, 0.01 * size)
    assert set(path(model, valid, 10).sizes) <= set(found.sizes)


def test_rows_without_labels_are_refused():
    with pytest.raises(DataError, match="no labels"):
        path(Model("dual-auc"), block_of([{0: 1.0}]))


def test_a_figure_shows_the_path_and_the_size_that_was_chosen():
    block = random_block(500, 40, 6)
    model = learned(block)
    found = path(model, block, [0, 3, 10])
    (axes,) = figure(found, 10).axes
    assert axes.lines[1].get_xdata().tolist() == [3, 10, model.nonzeros]
    assert axes.lines[1].get_ydata().tolist() == [found[3], found[10], found.full]
    assert "10 weights" in axes.get_legend().get_texts()[1].get_text()
    assert len(figure(found).axes[0].lines) == 2


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r'pip install "rarestream\[plot\]"'):
        figure(Path((1,), (0.5,), 2, 1, 0.0))
