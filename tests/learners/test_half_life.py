"""Half-lives: old rows fade as the textbook says, whatever period of the stored numbers a row falls into."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rarestream import Block, DualAveraging, FtrlAuc, FtrlProximal, Learner, Model, auc
from rarestream._native import isa, set_isa
from rarestream.engines import SCALES
from rarestream.engines.lanes import LaneKernel, Lanes
from tests.learners.textbook import textbook
from tests.strategies import FEATURES, block_of, blocks, examples, random_block

PERIOD = 16  # half-lives, after which all stored numbers are divided: native/half_life.hpp
LEARNERS = [
    DualAveraging(half_life=100),
    DualAveraging(half_life=137.5, l1=0.05, rate_power=1.3),
    DualAveraging(loss="logistic", half_life=100, l1=0.02),
    DualAveraging(loss="logistic", half_life=300, power=0.5, proximal=0.5),
    DualAveraging(half_life=100, power=1.0, learning_rate=1e-3),
    FtrlAuc(half_life=100, l1=0.05, l2=0.3),
    FtrlProximal(half_life=100, l1=0.05, l2=0.3),
    FtrlProximal(half_life=250, intercept=False),
]
EVERY = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: f"{learner.name}-{LEARNERS.index(learner)}")
SCALE = pytest.mark.parametrize("scale", ["unit", "max", "none"])
DTYPE = pytest.mark.parametrize("dtype", ["float32", "float64"])


@st.composite
def long_streams(draw) -> Block:
    """Few rows that take long: their importances are of up to several periods."""
    block = draw(blocks(importances=True))
    factor = draw(st.sampled_from([50.0, 300.0, 1600.0, 1e4]))
    rare = np.random.default_rng(len(block)).random(len(block)) < draw(st.sampled_from([0.1, 0.5, 1.0]))
    return replace(block, importances=block.importances * np.where(rare, factor, 1.0))


def drifting(rows: int, features: int = 40, seed: int = 3) -> Block:
    """Rows whose weights change their sign after half of them."""
    early, late = random_block(rows // 2, features, 6, seed=seed), random_block(rows // 2, features, 6, seed=seed + 1)
    weights = np.random.default_rng(seed).normal(size=features)

    def labelled(block: Block, sign: float) -> np.ndarray:
        margins = np.add.reduceat(sign * weights[block.indices] * block.values, block.indptr[:-1])
        return np.where(margins > np.quantile(margins, 0.7), 1, -1)

    indptr = np.concatenate([early.indptr, late.indptr[1:] + early.indptr[-1]])
    indices, values = (np.concatenate([getattr(early, name), getattr(late, name)]) for name in ("indices", "values"))
    return Block.of((indptr, indices, values), np.concatenate([labelled(early, 1), labelled(late, -1)]))


def test_two_rows_by_hand():
    half_life = 100.0
    learner = DualAveraging(loss="logistic", learning_rate=1.0, beta=1.0, rate_power=2.0, half_life=half_life)
    model = Model(learner, dtype="float64", scale="none")
    model.learn(block_of([{0: 1.0}], [1], [50.0]))
    # c = -1/2, 50 times: z = -25, v = 50/4; half a half-life later, both are the 2^(1/2)th part of that.
    left = 2**-0.5
    w = 25 * left / (1 + math.sqrt(12.5 * left))
    np.testing.assert_allclose(model.coef, [w], rtol=1e-14)
    w0 = 25 / (1 + math.sqrt(12.5))
    assert model.intercept == pytest.approx(w0, rel=1e-14)
    assert model.learn(block_of([{0: 1.0}], [-1], [1.0]))[0] == pytest.approx(w, rel=1e-14)
    c, next_left = 1 / (1 + math.exp(-w - w0)), 2**-0.01
    z, v = next_left * (c - 25 * left), next_left * (12.5 * left + c * c)
    np.testing.assert_allclose(model.coef, [-z / (1 + math.sqrt(v))], rtol=1e-13)
    v0 = 12.5 * next_left + c * c
    assert model.intercept == pytest.approx(w0 - c / (1 + math.sqrt(v0)), rel=1e-13)


@EVERY
@SCALE
@given(block=long_streams())
@settings(max_examples=examples(40), deadline=None)
def test_agrees_with_the_textbook_over_many_periods(learner, scale, block):
    model = Model(learner, dtype="float64", scale=scale)
    scores = model.learn(block)
    expected, weights, intercept, largest = textbook(learner, block, FEATURES, scale)
    if scale == "max":
        weights = np.divide(weights, largest, out=np.zeros_like(weights), where=largest > 0)
    coef = np.zeros(FEATURES)
    coef[: model.n_features] = model.coef
    reach = 1 + max(abs(expected).max(), abs(weights).max())
    assert abs(scores - expected).max() <= 1e-9 * reach
    assert abs(coef - weights).max() <= 1e-9 * reach
    assert abs(model.intercept - intercept) <= 1e-9 * (1 + abs(intercept))


@EVERY
@SCALE
def test_agrees_with_the_textbook_row_by_row(learner, scale):
    block = random_block(3500, FEATURES, 5)  # more than two periods of the shortest
    model = Model(learner, dtype="float64", scale=scale)
    scores = model.learn(block)
    expected, *_ = textbook(learner, block, FEATURES, scale)
    assert abs(scores - expected).max() <= 1e-9 * (1 + abs(expected).max())
    single = Model(learner, scale=scale).learn(block)
    assert np.allclose(single, expected, rtol=2e-4, atol=2e-4)


@EVERY
@DTYPE
@pytest.mark.parametrize("scale", ["unit", "max"])
@given(block=long_streams(), data=st.data())
@settings(max_examples=examples(20), deadline=None)
def test_where_a_block_is_cut_and_saved_does_not_matter(learner, dtype, scale, block, data):
    whole, parts = (Model(learner, dtype=dtype, scale=scale) for _ in range(2))
    scores = whole.learn(block)
    cut = data.draw(st.integers(0, len(block)))
    first = parts.learn(block[:cut])
    parts = Model.from_bytes(parts.to_bytes())
    if cut < len(block):
        next_row = block[cut : cut + 1]
        before = parts.to_bytes()
        assert parts.score(next_row)[0] == scores[cut]
        assert parts.to_bytes() == before
    singly = [parts.learn(block[i : i + 1]) for i in range(cut, len(block))]
    assert np.array_equal(scores, np.concatenate([first, *singly]))
    assert whole.to_bytes() == parts.to_bytes()


@EVERY
@DTYPE
@pytest.mark.parametrize("rows", [PERIOD * 100 - 1, PERIOD * 100, PERIOD * 100 + 1])
def test_a_model_can_be_resumed_where_a_period_ends(learner, dtype, rows):
    block = random_block(PERIOD * 100 + 200, 40, 6)
    whole, parts = Model(learner, dtype=dtype), Model(learner, dtype=dtype)
    whole.learn(block)
    parts.learn(block[:rows])
    parts = Model.from_bytes(parts.to_bytes())
    parts.learn(block[rows:])
    assert whole.to_bytes() == parts.to_bytes()


@EVERY
@DTYPE
@given(block=long_streams())
@settings(max_examples=examples(20), deadline=None)
def test_every_machine_gives_the_same_bits(learner, dtype, block):
    chosen, found = isa(), []
    try:
        for path in {"portable", chosen}:
            set_isa(path)
            model = Model(learner, dtype=dtype, scale="max")
            found.append((model.learn(block).tobytes(), model.score(block).tobytes(), model.to_bytes()))
    finally:
        set_isa(chosen)
    assert all(one == found[0] for one in found)


@SCALE
@given(block=long_streams(), unseen=blocks())
@settings(max_examples=examples(20), deadline=None)
def test_lanes_learn_what_models_do(scale, block, unseen):
    lanes = Lanes([*LEARNERS, *(replace(learner, half_life=0.0) for learner in LEARNERS)])
    kernel, code = LaneKernel(lanes), SCALES.index(scale)
    state = lanes.start(FEATURES, scale == "max")
    learned, scores = kernel.learn(state, block, code)
    assume(learned)  # rows of such importances can be too large for a lane with a power
    block, scores = block[:learned], scores[:learned]
    for lane, learner in enumerate(lanes.learners):
        model = Model(learner, scale=scale, n_features=FEATURES)
        expected = model.learn(block)
        size = 1 + abs(expected).max()
        assert np.allclose(scores[:, lane], expected, rtol=1e-4, atol=1e-4 * size), learner
        alone, beside = np.empty(len(unseen)), np.empty(len(unseen))
        learner.kernel().score(lanes.state(lane, state), unseen, code, alone)
        kernel.score_alone(state, lane, unseen, code, beside)
        assert alone.tobytes() == beside.tobytes()
        weights = learner.kernel().weights(lanes.state(lane, state), 0, FEATURES)
        size += abs(weights).sum() * abs(unseen.values).max(initial=0.0)  # terms of a score that may cancel
        assert np.allclose(alone, kernel.score(state, unseen, code)[:, lane], rtol=1e-5, atol=1e-5 * size)


@given(block=long_streams(), data=st.data())
@settings(max_examples=examples(20), deadline=None)
def test_where_a_block_is_cut_does_not_matter_to_lanes(block, data):
    lanes = Lanes(LEARNERS)
    kernel, code = LaneKernel(lanes), SCALES.index("max")
    whole, parts = lanes.start(FEATURES, True), lanes.start(FEATURES, True)
    kernel.learn(whole, block, code, "portable")
    cut = data.draw(st.integers(0, len(block)))
    for part in (block[:cut], block[cut:]):
        kernel.learn(parts, part, code)
    pairs = zip(whole, parts, strict=True)
    assert all(one.tobytes() == other.tobytes() for one, other in pairs if one is not None)


@EVERY
def test_unseen_features_and_room_change_nothing(learner):
    block = random_block(1700, 40, 6)
    grown, roomy = Model(learner), Model(learner, n_features=5000)
    assert np.array_equal(grown.learn(block), roomy.learn(block))
    assert np.array_equal(grown.coef, roomy.coef[: grown.n_features])
    grown.learn(block_of([{5000: 1.0}, {4999: 1.0}], [1, -1]))
    assert grown.n_features == 5001


@EVERY
def test_within_a_period_a_row_changes_only_its_own_coordinates(learner):
    model = Model(learner)
    model.learn(random_block(500, 40, 6))
    before = model._engine.state.table.copy()
    model.learn(block_of([{3: 1.0, 7: -1.0}], [1]))
    assert set(np.flatnonzero((model._engine.state.table != before).any(axis=1))) <= {3, 7}


@EVERY
def test_what_has_not_been_seen_for_long_is_forgotten(learner):
    model = Model(learner)
    model.learn(block_of([{0: 1.0, 1: 1.0}, {0: 1.0, 2: 1.0}] * 20, [1, -1] * 20))
    assert np.count_nonzero(model._engine.state.table) > 0
    model.learn(block_of([{3: 1.0}] * 20, [1, -1] * 10, [2 * PERIOD * learner.half_life] * 20))
    assert not model._engine.state.table[:3].any()  # smaller than float32 can tell from 0
    assert not model.coef[:3].any()
    assert len(model._engine.dump(model.n_features)["index"]) == 1  # a file keeps no more of them
    assert Model.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


@EVERY
def test_a_half_life_far_beyond_the_rows_changes_little(learner):
    block = random_block(1000, 40, 6)
    plain, fading = (Model(replace(learner, half_life=h), dtype="float64") for h in (0.0, 1e12))
    np.testing.assert_allclose(fading.learn(block), plain.learn(block), rtol=1e-5, atol=1e-7)


@EVERY
def test_smaller_models_keep_the_largest_weights(learner):
    model = Model(learner)
    model.learn(random_block(1700, 60, 6))
    small = model.prune(nonzeros=10)
    kept = np.flatnonzero(small.coef)
    assert np.array_equal(kept, np.sort(np.argsort(-abs(model.rank_keys()), kind="stable")[:10]))
    assert np.array_equal(small.coef[kept], model.coef[kept])
    scoring = Model.from_bytes(model.to_bytes("scoring"))
    assert np.array_equal(scoring.coef, model.coef)


@EVERY
@DTYPE
def test_numbers_stay_finite_at_the_limits(learner, dtype):
    """Rows that are as large as a model takes, just before a period ends, where stored numbers are largest."""
    model = Model(learner, dtype=dtype, scale="none")
    model.learn(block_of([{0: 1.0}, {0: -1.0}] * 4, [1, -1] * 4, [PERIOD * learner.half_life / 8 - 1] * 8))
    learned = 0
    for size in 10.0 ** np.arange(38):
        try:
            model.learn(block_of([{0: size, 1: -size}, {0: -size}], [1, -1], [0.1, 0.1]))
        except ValueError:
            continue
        learned += 1
        assert np.isfinite(model._engine.state.table).all()
        assert np.isfinite(model.score(block_of([{0: 1.0, 1: 1.0}]))).all()
    assert learned > 2


def progressive_auc(learner: Learner, block: Block, rows: slice) -> float:
    """The AUC of some rows, each scored before it was learned."""
    return float(auc(block.labels[rows], Model(learner).learn(block)[rows]))


@pytest.mark.parametrize(
    "learner",
    [DualAveraging(), DualAveraging(loss="logistic"), DualAveraging(power=0.5), FtrlAuc(), FtrlProximal()],
    ids=lambda learner: f"{learner.title} {learner.settings.get('power')}",
)
def test_it_helps_where_weights_change(learner):
    block = drifting(10_000)
    plain, fading = (progressive_auc(replace(learner, half_life=h), block, slice(5000, 6500)) for h in (0.0, 300.0))
    assert fading > plain + 0.01
    assert fading > 0.85


@pytest.mark.parametrize("learner", [DualAveraging, FtrlAuc, FtrlProximal])
@pytest.mark.parametrize("value", [-1, 1, 99, 1e13, math.nan, math.inf, "long"])
def test_a_half_life_is_0_or_at_least_100_rows(learner, value):
    rule = "a number" if value == "long" else r"0 or between 100 and 1e\+12"
    with pytest.raises(ValueError, match=f"{learner.__name__}: half_life must be {rule}, got"):
        learner(half_life=value)


def test_what_it_cannot_be_combined_with():
    with pytest.raises(ValueError, match=r"budget and half_life cannot be combined.* got budget=10 and half_life=100"):
        DualAveraging(budget=10, half_life=100)
    with pytest.raises(ValueError, match=r"means='exact' and half_life cannot be combined.* half_life=100"):
        FtrlAuc(means="exact", half_life=100)
