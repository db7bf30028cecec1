"""Lanes: each learns as a model of its own, whatever the other lanes are and whichever instruction set is used."""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import AdaGrad, Block, DataError, DualAveraging, FtrlAuc, FtrlProximal, Model, make_learner
from rarestream.engines import SCALES
from rarestream.engines.compact import CompactSlots
from rarestream.engines.lanes import MOST, LaneKernel, Lanes, LaneState
from rarestream.learners import TALLY
from rarestream.learners.auto import Auto
from tests.strategies import FEATURES, block_of, blocks, examples, random_block

LEARNERS = [
    *(
        DualAveraging(loss=loss, rate_power=power)
        for loss in ("auc", "logistic")
        for power in (0.5, 0.0, 1.0, 2.0, 0.7)
    ),
    DualAveraging(loss="auc", l1=0.3, beta=0.5, learning_rate=0.6),
    DualAveraging(loss="logistic", l1=0.3, beta=0.2),
    FtrlAuc(),
    FtrlAuc(l1=0.2, beta=0.5),
    FtrlAuc(l2=0.5, learning_rate=0.2),
    FtrlProximal(),
    FtrlProximal(l1=0.4, intercept=False),
    FtrlProximal(l2=0.3, beta=0.5, learning_rate=1.0),
    DualAveraging(loss="logistic", rate_power=2.0, beta=1e-8, learning_rate=1.0),
    DualAveraging(loss="logistic", power=0.5, proximal=0.5),
    DualAveraging(loss="logistic", power=1.0, proximal=0.5, l1=0.1),
    DualAveraging(loss="auc", power=1.0),
    DualAveraging(loss="auc", proximal=1.0, rate_power=1.0),
    DualAveraging(loss="logistic", proximal=1.0, learning_rate=2.6),
    DualAveraging(loss="logistic", evidence=0.5, proximal=0.5),
    DualAveraging(loss="logistic", evidence=1.0, l1=0.1),
    DualAveraging(loss="auc", evidence=0.5, power=0.5),
    DualAveraging(loss="logistic", evidence=0.5, half_life=140.0),
    DualAveraging(loss="auc", half_life=100.0),
    DualAveraging(loss="logistic", half_life=100.0, l1=0.1, rate_power=0.7),
    DualAveraging(loss="logistic", half_life=170.0, power=0.5, proximal=0.5),
    DualAveraging(loss="auc", half_life=1000.0, power=1.0),
    FtrlAuc(half_life=100.0, l1=0.2, l2=0.1),
    FtrlProximal(half_life=130.0, l2=0.3),
]
SCALE = pytest.mark.parametrize("scale", ["unit", "max", "none"])


def run(learners, block: Block, scale: str = "unit", isa: str = "", state: LaneState | None = None):
    """Return the lanes, their state after the block, and the scores its rows had before."""
    lanes = Lanes(learners)
    state = state or lanes.start(FEATURES, scale == "max")
    learned, scores = LaneKernel(lanes).learn(state, block, SCALES.index(scale), isa)
    return lanes, state, scores[:learned]


def learnable(learners, block: Block, scale: str) -> Block:
    """The rows before one that is too large for some lane; only where they are not scaled there may be one."""
    learned = len(run(learners, block, scale)[2])
    assert learned == len(block) or scale == "none"
    return block[:learned]


def lane_bits(lanes: Lanes, state: LaneState, lane: int) -> tuple[bytes, ...]:
    """Return the state of one lane as bytes."""
    found = lanes.state(lane, state)
    return found.table.tobytes(), found.tally.tobytes(), b"" if found.largest is None else found.largest.tobytes()


def bits(state: LaneState) -> list[bytes]:
    return [b"" if part is None else part.tobytes() for part in state]


def isa_available(isa: str) -> bool:
    try:
        run(LEARNERS[:1], block_of([{0: 1.0}], [1]), isa=isa)
    except ValueError:
        return False
    return True


ISAS = [isa for isa in ("portable", "avx2", "avx512") if isa_available(isa)]  # of this machine


@SCALE
@given(block=blocks(importances=True))
@settings(max_examples=examples(15))
def test_every_lane_learns_what_a_model_of_its_learner_does(scale, block):
    lanes, state, scores = run(LEARNERS, block, scale)
    if len(scores) < len(block):  # a row is too large for some lane: for its model too
        assert scale == "none"
        learned = [Model(learner, scale=scale)._engine.learn(block, np.empty(len(block))).rows for learner in LEARNERS]
        assert len(scores) == min(learned)
        block = block[: len(scores)]
    for lane, learner in enumerate(LEARNERS):
        model = Model(learner, scale=scale, n_features=FEATURES)
        expected = model.learn(block)
        size = 1 + abs(expected).max()
        near = 1e-4 if scale == "none" else 1e-5  # long rows make what rounding changed larger, row by row
        assert abs(scores[:, lane] - expected).max() <= near * size, learner
        found = lanes.state(lane, state)
        weights = learner.kernel().weights(found, 0, FEATURES)
        assert np.allclose(weights, model.weights().weight, rtol=near, atol=near * size), learner
        assert np.allclose(found.tally, model._engine.state.tally, rtol=near, atol=near * size), learner
        if scale == "max":
            assert np.array_equal(found.largest, model._engine.state.largest[: len(found.largest)])


@SCALE
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: f"{learner.name}-{LEARNERS.index(learner)}")
def test_a_lane_stays_with_its_model_over_many_rows(learner, scale):
    block = random_block(800, FEATURES, 5)
    growing = Block.of((block.indptr, block.indices, block.values * np.linspace(0.1, 2, block.nonzeros)), block.labels)
    _, _, scores = run([learner], growing, scale)
    expected = Model(learner, scale=scale).learn(growing)
    assert np.allclose(scores[:, 0], expected, rtol=1e-4, atol=1e-4)


@SCALE
@given(block=blocks(importances=True), others=st.lists(st.sampled_from(LEARNERS), max_size=MOST - 1), data=st.data())
@settings(max_examples=examples(15))
def test_a_lane_gives_the_same_bits_whatever_stands_beside_it_on_every_machine(scale, block, others, data):
    learner = data.draw(st.sampled_from(LEARNERS))
    place = data.draw(st.integers(0, len(others)))
    block = learnable([*others, learner], block, scale)
    lanes, state, scores = run([learner], block, scale, "portable")
    expected = scores[:, 0].tobytes(), lane_bits(lanes, state, 0)
    for isa in [*ISAS, ""]:
        lanes, state, scores = run([*others[:place], learner, *others[place:]], block, scale, isa)
        assert (scores[:, place].tobytes(), lane_bits(lanes, state, place)) == expected, isa


def test_an_instruction_set_the_machine_lacks_is_refused():
    with pytest.raises(ValueError, match="no instruction set called 'mmx'"):
        run(LEARNERS, block_of([{0: 1.0}], [1]), isa="mmx")


@SCALE
@given(block=blocks(importances=True), data=st.data())
@settings(max_examples=examples(15))
def test_where_a_block_is_cut_does_not_matter(scale, block, data):
    block = learnable(LEARNERS, block, scale)
    _, whole, scores = run(LEARNERS, block, scale)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(block)), max_size=4)))
    state, pieces = None, []
    for a, b in zip([0, *cuts], [*cuts, len(block)], strict=True):
        _, state, found = run(LEARNERS, block[a:b], scale, state=state)
        pieces.append(found)
    assert np.concatenate(pieces).tobytes() == scores.tobytes()
    assert bits(state) == bits(whole)


@SCALE
@given(block=blocks(importances=True), data=st.data())
@settings(max_examples=examples(15))
def test_lanes_that_stay_keep_their_bits_when_others_go(scale, block, data):
    block = learnable(LEARNERS, block, scale)
    stay = data.draw(st.lists(st.sampled_from(range(len(LEARNERS))), min_size=1, unique=True))
    cut = data.draw(st.integers(0, len(block)))
    every, whole, scores = run(LEARNERS, block, scale)
    lanes, old, _ = run(LEARNERS, block[:cut], scale)
    before = bits(old)
    fewer, state = Lanes.picked([(lanes, old, lane) for lane in stay])
    assert fewer.learners == [LEARNERS[lane] for lane in stay]
    _, state, found = run(fewer.learners, block[cut:], scale, state=state)
    for place, lane in enumerate(stay):
        assert lane_bits(fewer, state, place) == lane_bits(every, whole, lane)
        assert found[:, place].tobytes() == scores[cut:, lane].tobytes()
    assert bits(old) == before  # they share nothing with what they were taken from


def test_a_row_too_large_to_learn_is_not_learned_and_changes_nothing():
    block = block_of([{0: 1.0}, {0: -1.0, 1: 2.0}, {0: 1e30, 2: 1.0}], [1, -1, 1])
    _, state, scores = run(LEARNERS, block, "none")
    _, expected, _ = run(LEARNERS, block[:2], "none")
    assert len(scores) == 2
    assert bits(state) == bits(expected)


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.integers(0, 3), st.sampled_from([1.0, -3.0, 1e4, 1e8, -1e8, 1e12, 1e16])),
            st.sampled_from([-1, 1]),
        ),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=examples(40))
def test_a_row_is_refused_when_the_model_of_some_lane_refuses_it_and_numbers_stay_finite(rows):
    block = block_of([row for row, _ in rows], [label for _, label in rows])
    _, state, scores = run(LEARNERS, block, "none")
    learned = []
    for learner in LEARNERS:
        model = Model(learner, scale="none")
        with contextlib.suppress(DataError):
            model.learn(block)
        learned.append(model.rows)
    assert len(scores) == min(learned)
    assert np.isfinite(state.table).all()
    assert np.isfinite(state.means).all()


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize("size", [1e5, 1e7, 1e9, 1e12, 1e14, 1e16])
def test_a_lane_refuses_the_rows_that_its_model_refuses(learner, size):
    block = block_of([{0: 1.0}, {0: size}], [1, -1])
    model = Model(learner, scale="none")
    with contextlib.suppress(DataError):
        model.learn(block)
    assert len(run([learner], block, "none")[2]) == model.rows


@SCALE
@given(block=blocks(importances=True), unseen=blocks())
@settings(max_examples=examples(15))
def test_score_changes_nothing_and_equals_the_score_before_learning(scale, block, unseen):
    lanes, state, _ = run(LEARNERS, block, scale)
    before = bits(state)
    scores = LaneKernel(lanes).score(state, unseen, SCALES.index(scale))
    assert bits(state) == before
    first = unseen[:1]
    learned, found = LaneKernel(lanes).learn(state, first, SCALES.index(scale))
    assert learned == 1 or scale == "none"  # a row too large to learn has a score, too
    assert scores[:1].tobytes() == found.tobytes()


@given(block=blocks(importances=True))
@settings(max_examples=examples(15))
def test_a_row_of_importance_zero_leaves_no_trace(block):
    _, weighted, _ = run(LEARNERS, block, "max")
    _, kept, _ = run(LEARNERS, block.take(np.flatnonzero(block.importances)), "max")
    assert bits(weighted) == bits(kept)


@pytest.mark.parametrize("count", [1, 8, 9, 16, 17, 24, 33, 64])
def test_a_table_starts_on_a_cache_line_and_is_of_whole_registers(count):
    lanes = Lanes((LEARNERS * 4)[:count])
    state = lanes.start(5, largest=True)
    grown = lanes.grown(state, 11)
    fewer, kept = Lanes.picked([(lanes, grown, 0)])
    for one, found in ((lanes, state), (lanes, grown), (fewer, kept)):
        assert found.table.ctypes.data % 64 == 0
        counts = 0 if found.having is None else found.having[0].nbytes  # of positives and negatives, for all lanes
        assert counts == 8 * any(learner.layout.columns.keys() > {"z", "n"} for learner in one.learners)
        assert one.bytes == found.table[0].nbytes + counts == 8 * one.width + counts
        assert found.table[0].nbytes % 64 == 0
    columns = [column for lane in range(lanes.width) for column in lanes.columns(lane)]
    assert sorted(columns) == list(range(2 * lanes.width))  # each number of each lane has its place
    assert sum(lanes.layout.columns.values()) == 2 * lanes.width


@SCALE
@given(block=blocks(importances=True))
@settings(max_examples=examples(15))
def test_unused_slots_change_nothing(scale, block):
    lanes, state, _ = run(LEARNERS, block, scale)
    grown = lanes.grown(state, 40)
    assert np.array_equal(grown.table[:FEATURES], state.table)
    assert not grown.table[FEATURES:].any()
    before, after = (LaneKernel(lanes).score(one, block, SCALES.index(scale)) for one in (state, grown))
    assert before.tobytes() == after.tobytes()


@given(block=blocks(importances=True))
@settings(max_examples=examples(15))
def test_a_model_goes_on_from_the_state_of_a_lane(block):
    """Also in float64; and what it learns is its own."""
    lanes, state, _ = run(LEARNERS, block, "max")
    before = bits(state)
    for lane, learner in enumerate(LEARNERS):
        for dtype in ("float32", "float64"):
            found = lanes.state(lane, state, dtype)
            assert found.table.dtype == dtype
            assert found.tally.shape == (len(TALLY),)
            learner.kernel().learn(found, block, SCALES.index("max"), np.empty(len(block)))
    assert bits(state) == before


@SCALE
@given(block=blocks(importances=True), unseen=blocks())
@settings(max_examples=examples(15))
def test_a_lane_can_be_scored_bit_for_bit_as_a_model_of_its_state(scale, block, unseen):
    lanes, state, _ = run(LEARNERS, block, scale)
    before = bits(state)
    for lane, learner in enumerate(LEARNERS):
        expected, scores = np.empty(len(unseen)), np.empty(len(unseen))
        learner.kernel().score(lanes.state(lane, state), unseen, SCALES.index(scale), expected)
        LaneKernel(lanes).score_alone(state, lane, unseen, SCALES.index(scale), scores)
        assert scores.tobytes() == expected.tobytes()
    assert bits(state) == before


@given(block=blocks(importances=True), first=st.integers(0, FEATURES), data=st.data())
@settings(max_examples=examples(15))
def test_weights_of_lanes_are_added_bit_for_bit_as_those_of_models(block, first, data):
    lanes, state, _ = run(LEARNERS, block)
    count = data.draw(st.integers(0, FEATURES - first))
    shares = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.3, 1.7]), min_size=len(LEARNERS))))[: len(LEARNERS)]
    total, expected = np.zeros(count), np.zeros(count)
    LaneKernel(lanes).add_weights(state, shares, first, total)
    for lane in np.flatnonzero(shares):
        weights = LEARNERS[lane].kernel().weights(lanes.state(int(lane), state), first, first + count)
        expected += shares[lane] * weights.astype(np.float64)
    assert total.tobytes() == expected.tobytes()


@given(block=blocks(importances=True), seed=st.integers(0, 99), dtype=st.sampled_from(["float32", "float64"]))
@settings(max_examples=examples(15))
def test_a_lane_alone_is_written_under_other_numbers(block, seed, dtype):
    """With weights of a mixture in place of its own, it has these, unless evidence keeps them small."""
    lanes, state, _ = run(LEARNERS, block)
    rng = np.random.default_rng(seed)
    features = rng.permutation(2 * FEATURES)[: FEATURES - 2].astype(np.int32)
    for lane, learner in enumerate(LEARNERS):
        alone = learner.start(2 * FEATURES, dtype)
        alone.tally[: len(TALLY)] = state.tally(lane)
        LaneKernel(lanes).write_alone(state, lane, 2, features, None, alone.table)
        expected = np.zeros_like(alone.table)
        expected[features] = lanes.state(lane, state, dtype).table[2:]
        assert alone.table.tobytes() == expected.tobytes()
        weights = rng.normal(size=len(features)) * rng.integers(0, 2, len(features))
        LaneKernel(lanes).write_alone(state, lane, 2, features, weights, alone.table)
        assert np.array_equal(alone.table[:, 1:], expected[:, 1:])  # only z differs
        found = learner.kernel().weights(alone, 0, 2 * FEATURES)[features]
        if not learner.settings.get("evidence"):
            assert np.allclose(found, weights, rtol=1e-4, atol=1e-5), learner
        assert (np.abs(found) <= np.abs(weights) * 1.0001 + 1e-5).all(), learner


@SCALE
@given(block=blocks(max_rows=40, importances=True), first=st.integers(0, 40), isa=st.sampled_from(ISAS))
@settings(max_examples=examples(15))
def test_rows_that_are_prepared_are_learned_bit_for_bit_as_others(scale, block, first, isa):
    """Also in two parts; and rows that were counted can be taken back, and counted again."""
    lanes, kernel = Lanes(LEARNERS), LaneKernel(Lanes(LEARNERS))
    block = learnable(LEARNERS, block, scale)
    first = min(first, len(block))
    slots, expected = CompactSlots(FEATURES), lanes.start(FEATURES + 2, scale == "max")
    _, scores = kernel.learn(expected, slots.added(block), SCALES.index(scale), isa)
    state, compact = lanes.start(FEATURES + 2, scale == "max"), CompactSlots(FEATURES)
    prepared = compact.prepared(block, FEATURES + 2, state.having, state.counts)
    prepared.prepare([state.table])
    assert prepared.used == slots.used
    assert np.array_equal(state.having, expected.having)
    prepared.take_back(first)
    part = compact.known(block[:first])
    twin = lanes.start(FEATURES + 2, False)
    kernel.learn(twin, part, SCALES.index("unit"), isa)
    assert np.array_equal(state.having, twin.having)
    prepared.count_again(first)
    assert np.array_equal(state.having, expected.having)
    found = np.zeros_like(scores)
    for start, stop in ((0, first), (first, len(block))):
        learned = kernel.learn_prepared(state, prepared, start, SCALES.index(scale), found[start:stop], isa)
        assert learned == stop - start
    assert found.tobytes() == scores.tobytes()
    assert bits(state) == bits(expected)


def test_rows_with_a_feature_beyond_the_block_are_not_prepared():
    """Only rows that others can write to have one; they are left out, and so are those that follow."""
    block = block_of([{0: 1.0}, {3: 1.0}, {1: 1.0}, {2: 1.0}], [1, -1, 1, -1])
    open_block = dataclasses.replace(block, indices=block.indices.copy())
    lanes, compact = Lanes(LEARNERS), CompactSlots(FEATURES)
    state, scores = lanes.start(FEATURES, False), np.zeros((4, len(LEARNERS)), np.float32)
    prepared = compact.prepared(open_block, FEATURES, state.having, state.counts)
    open_block.indices[2] = FEATURES + 5
    prepared.prepare([state.table])
    assert LaneKernel(lanes).learn_prepared(state, prepared, 0, SCALES.index("unit"), scores) == 2
    assert (prepared.used, state.having.sum(), state.counts.sum()) == (2, 2, 2)


def test_rows_prepared_for_other_lanes_are_refused():
    block, compact = block_of([{0: 1.0}], [1]), CompactSlots(FEATURES)
    lanes, scores = Lanes(LEARNERS), np.zeros((1, len(LEARNERS)), np.float32)
    state, unit = lanes.start(FEATURES, False), SCALES.index("unit")
    for slots, having in ((FEATURES + 1, np.zeros((FEATURES + 1, 2), np.float32)), (FEATURES, None)):
        prepared = compact.prepared(block, slots, having, state.counts)
        prepared.prepare([state.table])
        with pytest.raises(ValueError, match="prepared for others"):
            LaneKernel(lanes).learn_prepared(state, prepared, 0, unit, scores)
    with pytest.raises(ValueError, match="shapes"):
        compact.prepared(block, FEATURES + 1, state.having, state.counts)


def test_what_does_not_fit_the_lanes_is_refused():
    lanes, state, _ = run(LEARNERS[:3], block_of([{0: 1.0}], [1]))
    kernel, table = LaneKernel(lanes), LEARNERS[0].start(FEATURES, "float32").table
    shares, one = np.ones(3), np.zeros(1, np.int32)
    for first, count in ((FEATURES, 1), (0, FEATURES + 1)):
        with pytest.raises(ValueError, match="shapes"):
            kernel.add_weights(state, shares, first, np.zeros(count))
        with pytest.raises(ValueError, match="shapes"):
            kernel.write_alone(state, 0, first, np.zeros(count, np.int32), None, table)
    with pytest.raises(ValueError, match="shapes"):
        kernel.write_alone(state, 0, 0, one, np.zeros(2), table)
    with pytest.raises(ValueError, match="a feature has no place"):
        kernel.write_alone(state, 0, 0, one + FEATURES, None, table)


def test_learners_of_other_families_have_no_lane():
    assert FtrlAuc(means="exact").lane() is None
    assert AdaGrad().lane() is None
    assert all(learner.lane() for learner in LEARNERS)


def test_there_are_one_to_sixty_four_lanes():
    for count in (0, MOST + 1):
        with pytest.raises(ValueError, match="1 to 64 lanes"):
            LaneKernel(Lanes([DualAveraging()] * count))


def test_what_the_first_version_raced_is_part_of_its_files():
    """Files of the first version name no settings, only their lanes: those of other ones, or another order, are wrong."""
    auc = [0.25, 0.0625, 0.1, 0.15, 0.2, 0.325, 0.425, 0.625, 1.0, 1.5]
    logistic = [1.3, 0.325, 0.52, 0.78, 1.04, 1.69, 2.21, 3.25, 5.2, 7.8]
    assert Auto.first_candidates() == [
        *(DualAveraging(loss="auc", learning_rate=rate, beta=0.03, rate_power=0.5) for rate in auc),
        *(DualAveraging(loss="logistic", learning_rate=rate, beta=0.03, rate_power=0.5) for rate in logistic),
        *(
            DualAveraging(loss="logistic", learning_rate=rate, beta=1e-8, rate_power=2.0)
            for rate in (0.5, 1.0, 2.0, 4.0)
        ),
    ]
    assert Auto.first_candidates()[0] == make_learner("dual-auc")
