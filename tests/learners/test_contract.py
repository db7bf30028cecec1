"""Every registered learner, every promise it makes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Block, DataError, DualAveraging, Learner, Model, learner_names, make_learner
from rarestream._native import isa, set_isa
from tests.learners.textbook import TWINS, Twin, textbook
from tests.strategies import FEATURES, block_of, blocks, examples, random_block

SCALES = ["unit", "max", "none"]
# Every name with its defaults, and every variant that the learner's twin names. Auto has no twin: it becomes one of the
# others, by the rule that tests/engines/test_race.py tests. It keeps all promises that need no twin, or says there how.
NAMED = [make_learner(name) for name in learner_names()]
LEARNERS = [learner for learner in NAMED if type(learner) in TWINS]
VARIANTS = [cls(**settings) for cls, twin in TWINS.items() for settings in twin.variants]


def told(learner: Learner) -> str:
    changed = {k: v for k, v in learner.settings.items() if v != make_learner(learner.name).settings[k]}
    return "-".join([learner.name, *(f"{name}={value}" for name, value in changed.items())])


EVERY = pytest.mark.parametrize("learner", NAMED, ids=told)
ALL = pytest.mark.parametrize("learner", LEARNERS + VARIANTS, ids=told)


def those(promise: str):
    """The learners and variants that make a promise."""
    kept = [learner for learner in LEARNERS + VARIANTS if TWINS[type(learner)].promises(promise, learner)]
    return pytest.mark.parametrize("learner", kept, ids=told)


def model(learner: Learner, dtype="float64", scale="unit") -> Model:
    return Model(learner, dtype=dtype, scale=scale)


def same(one: Model, other: Model) -> bool:
    """Equal to the last bit, progress included: the bytes of their files."""
    return one.to_bytes() == other.to_bytes()


@EVERY
def test_names_the_setting_that_is_tuned(learner):
    if learner.tuning is None:
        assert learner.race_plan() is not None
        return
    setting, low, high = learner.tuning
    default = learner.settings[setting]
    for value in (low or default / 10, high or default * 10):
        assert make_learner(learner.name, **{setting: value}).settings[setting] == value
    assert low is None or low < default
    assert high is None or high > default


@ALL
@pytest.mark.parametrize("scale", SCALES)
@given(block=blocks(importances=True))
@settings(max_examples=examples(40), deadline=None)
def test_agrees_with_the_textbook(learner, scale, block):
    m = model(learner, scale=scale)
    try:
        scores = m.learn(block)
    except DataError:  # the steps of a stream that is not scaled may grow without bound
        assert scale == "none"
        return
    expected, weights, intercept, largest = textbook(m.learner, block, FEATURES, scale)
    if scale == "max":
        weights = np.divide(weights, largest, out=np.zeros_like(weights), where=largest > 0)
    coef = np.zeros(FEATURES)
    coef[: m.n_features] = m.coef
    reach = 1 + max(abs(expected).max(), abs(weights).max())
    assert abs(scores - expected).max() <= 1e-9 * reach
    assert abs(coef - weights).max() <= 1e-9 * reach
    assert abs(m.intercept - intercept) <= 1e-9 * (1 + abs(intercept))


@pytest.mark.parametrize("loss", ["auc", "logistic"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("power", [0.0, 0.3, 0.5, 1.0, 1.7, 2.0])
def test_every_rate_power_agrees_with_the_textbook(loss, scale, power):
    block = random_block(300, FEATURES, 5)
    growing = Block.of((block.indptr, block.indices, block.values * np.linspace(0.1, 2, block.nonzeros)), block.labels)
    m = model(DualAveraging(loss=loss, rate_power=power), scale=scale)
    scores = m.learn(growing)
    expected, _, intercept, _ = textbook(m.learner, growing, FEATURES, scale)
    assert abs(scores - expected).max() < 1e-9 * (1 + abs(expected).max())
    assert abs(m.intercept - intercept) < 1e-9


@ALL
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", ["unit", "max"])
@given(block=blocks(importances=True), data=st.data())
@settings(max_examples=examples(15), deadline=None)
def test_where_a_block_is_cut_does_not_matter(learner, dtype, scale, block, data):
    whole, parts, rows = (model(learner, dtype, scale) for _ in range(3))
    scores = whole.learn(block)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(block)), max_size=4)))
    pieces = [parts.learn(block[a:b]) for a, b in zip([0, *cuts], [*cuts, len(block)], strict=True)]
    singly = []
    for i in range(len(block)):
        at = slice(block.indptr[i], block.indptr[i + 1])
        singly.append(rows.learn_one(block.indices[at], block.values[at], int(block.labels[i]), block.importances[i]))
    assert np.array_equal(scores, np.concatenate(pieces))
    assert np.array_equal(scores, singly)
    assert same(whole, parts)
    assert same(whole, rows)


@ALL
@given(block=blocks(max_rows=60, importances=True), data=st.data())
@settings(max_examples=examples(25), deadline=None)
def test_save_load_continue_equals_continue(learner, block, data):
    cut = data.draw(st.integers(0, len(block)))
    scale = data.draw(st.sampled_from(["unit", "max"]))
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    going, stopped = model(learner, dtype, scale), model(learner, dtype, scale)
    going.learn(block)
    stopped.learn(block[:cut])
    stopped = Model.from_bytes(stopped.to_bytes())
    stopped.learn(block[cut:])
    assert same(going, stopped)


@those("swaps")
@pytest.mark.parametrize("scale", ["unit", "max"])
@given(block=blocks(importances=True))
@settings(max_examples=examples(20), deadline=None)
def test_swapping_the_classes_negates_the_model(learner, scale, block):
    one, other = model(learner, scale=scale), model(learner, scale=scale)
    scores = one.learn(block)
    swapped = Block(
        block.indptr,
        block.indices,
        block.values,
        block.width,
        (-block.labels).astype(np.int8),
        block.importances,
    )
    assert np.allclose(scores, -other.learn(swapped), rtol=0, atol=1e-9 * (1 + abs(scores).max()))
    assert np.allclose(one.coef, -other.coef, rtol=0, atol=1e-9 * (1 + abs(one.coef).max(initial=0)))
    assert abs(one.intercept + other.intercept) < 1e-9


@those("steps_in_the_row")
@given(block=blocks(max_rows=8))
@settings(max_examples=examples(40), deadline=None)
def test_only_the_rows_coordinates_change(learner, block):
    """O(k) without a clock: a row writes its own coordinates and nothing else."""
    m = model(learner, "float32")
    m.learn(random_block(50, 40, 6))
    for i in range(len(block)):
        before = m._engine.state.table.copy()
        m.learn(block[i : i + 1])
        moved = np.flatnonzero((m._engine.state.table != before).any(axis=1))
        row = block.indices[block.indptr[i] : block.indptr[i + 1]]
        assert set(moved) <= set(row)


@ALL
@pytest.mark.parametrize("scale", ["unit", "max"])
@given(block=blocks())
@settings(max_examples=examples(15), deadline=None)
def test_score_changes_nothing_and_equals_the_score_before_learning(learner, scale, block):
    m = model(learner, "float32", scale)
    m.learn(random_block(40, 10, 4))
    before = m.to_bytes()
    scores = m.score(block)
    assert m.to_bytes() == before
    assert scores[0] == m.learn(block)[0]


@ALL
@pytest.mark.parametrize("scale", ["unit", "max"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(block=blocks(max_rows=50, features=40, importances=True))
@settings(max_examples=examples(15), deadline=None)
def test_every_machine_gives_the_same_bits(learner, scale, dtype, block):
    chosen = isa()
    try:
        found = []
        for path in {"portable", chosen}:
            set_isa(path)
            m = model(learner, dtype, scale)
            found.append((m.learn(block).tobytes(), m.score(block).tobytes(), m.to_bytes()))
    finally:
        set_isa(chosen)
    assert all(one == found[0] for one in found)


@EVERY
@given(block=blocks(max_rows=20))
@settings(max_examples=examples(25), deadline=None)
def test_unseen_features_and_room_change_nothing(learner, block):
    grown, roomy = model(learner), Model(learner, dtype="float64", n_features=5000)
    assert np.array_equal(grown.learn(block), roomy.learn(block))
    assert np.array_equal(grown.coef, roomy.coef[: grown.n_features])
    assert not roomy.coef[grown.n_features :].any()


@ALL
def test_one_feature_of_a_state_with_room_to_spare_is_saved_as_it_is(learner):
    m = Model(learner)
    m.learn(block_of([{0: 1.0}, {0: -1.0}, {0: 0.5}] * 4, [1, -1, 1] * 4))
    roomy = Model.from_bytes(m.to_bytes())
    roomy.score(block_of([{5000: 1.0}]))  # makes room, and changes nothing
    assert same(m, roomy)
    assert same(m, Model.from_bytes(roomy.to_bytes()))
    assert np.array_equal(m.coef, roomy.coef)


@EVERY
def test_the_state_grows_with_the_largest_index(learner):
    m = model(learner, "float32")
    m.learn(block_of([{0: 1.0}, {3: 1.0}], [1, -1]))
    assert m.n_features == 4
    m.learn(block_of([{0: 1.0, 10_000_000: 1.0}], [1]))
    assert m.n_features == 10_000_001
    assert len(m.coef) == 10_000_001


@EVERY
def test_a_row_of_importance_zero_leaves_no_trace(learner):
    block = random_block(60, 12, 4)
    importances = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    weighted = model(learner)
    weighted.learn(Block(block.indptr, block.indices, block.values, block.width, block.labels, importances))
    kept = model(learner)
    kept.learn(block.take(np.flatnonzero(importances)))
    assert np.array_equal(weighted.coef, kept.coef)
    assert weighted.intercept == kept.intercept
    assert weighted.progress.auc == kept.progress.auc


@EVERY
def test_importances_of_one_change_nothing(learner):
    block = random_block(60, 12, 4)
    plain, weighted = model(learner), model(learner)
    plain.learn(block)
    ones = Block(block.indptr, block.indices, block.values, block.width, block.labels, np.ones(60))
    weighted.learn(ones)
    assert np.array_equal(plain.coef, weighted.coef)


@those("waits")
def test_nothing_is_learned_while_one_class_was_seen(learner):
    m = model(learner)
    assert not m.learn(block_of([{0: 1.0, 1: 2.0}] * 5, [1] * 5)).any()
    assert not m.coef.any()
    assert m.rows == 5
    assert np.isnan(m.progress.auc)


@EVERY
def test_empty_rows_score_zero_and_still_count(learner):
    m = model(learner)
    scores = m.learn(block_of([{}, {0: 1.0}, {}, {0: 1.0}], [1, -1, -1, 1]))
    assert scores[0] == scores[2] == 0
    assert m.rows == 4
    assert m.positives == 2


@pytest.mark.parametrize("name", ["dual-auc", "dual-logistic", "ftrl-auc", "ftrl-proximal"])
def test_l1_zeroes_what_it_should(name):
    block = random_block(300, 40, 6)
    dense, sparse = model(make_learner(name)), model(make_learner(name, l1=2.0))
    dense.learn(block)
    sparse.learn(block)
    assert 0 < sparse.nonzeros < dense.nonzeros
    z = sparse._engine.state.table[: sparse.n_features, 0]
    assert np.array_equal(sparse.coef != 0, abs(z) > 2.0)
    assert not np.signbit(sparse.coef[sparse.coef == 0]).any()


@EVERY
def test_float32_ranks_as_float64_does(learner):
    block = random_block(2000, 60, 8)
    single, double = model(learner, "float32"), model(learner, "float64")
    assert np.allclose(single.learn(block), double.learn(block), atol=2e-4)
    assert abs(single.progress.auc - double.progress.auc) < 1e-4


@EVERY
@pytest.mark.parametrize("name_of_scale", ["unit", "max"])
def test_multiplying_a_row_changes_nothing_when_rows_are_scaled(learner, name_of_scale):
    block = random_block(100, 12, 4)
    huge, tiny = block.values.astype(np.float64) * 1e30, block.values.astype(np.float64) * 1e-30
    scores = [
        model(learner, scale=name_of_scale).learn(Block.of((block.indptr, block.indices, x), block.labels))
        for x in (block.values, huge, tiny)
    ]
    assert np.allclose(scores[0], scores[1], atol=1e-5)
    assert np.allclose(scores[0], scores[2], atol=1e-5)


@EVERY
def test_scale_max_does_not_mind_the_scale_of_columns(learner):
    block = random_block(300, 12, 5)
    stretch = 10.0 ** np.random.default_rng(3).uniform(-2, 2, size=12)
    stretched = Block.of(
        (block.indptr, block.indices, block.values.astype(np.float64) * stretch[block.indices]), block.labels
    )
    assert np.allclose(
        model(learner, scale="max").learn(block), model(learner, scale="max").learn(stretched), atol=1e-4
    )


@EVERY
def test_it_learns(learner):
    m = model(learner, "float32")
    m.learn(random_block(3000, 60, 8))
    assert m.progress.auc > (TWINS[type(learner)].reaches if type(learner) in TWINS else Twin.reaches)
    assert m.progress.auc.low < m.progress.auc < m.progress.auc.high


@ALL
def test_settings_make_the_same_learner_again(learner):
    assert make_learner(learner.name, **learner.settings) == learner


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@EVERY
def test_values_too_large_for_unscaled_rows_are_refused_and_not_learned(learner, dtype):
    big = 1e30 if dtype == "float32" else 3e38
    block = block_of([{0: 1.0}, {0: -1.0}, {0: big}], [1, -1, 1])
    if dtype == "float64":  # no row that was checked is too large for it
        block = dataclasses.replace(block, importances=np.array([1.0, 1.0, 1e200]))
    m = model(learner, dtype, "none")
    with pytest.raises(ValueError, match=r"row 2 of the block.*scale='unit'"):
        m.learn(block)
    twin = model(learner, dtype, "none")
    twin.learn(block[:2])
    assert same(m, twin)
    assert np.isfinite(m.coef).all()
