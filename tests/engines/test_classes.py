"""Classes in lanes: each learns as a model that tells its rows from all others, whichever instruction set is used."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Block, DualAveraging, FtrlAuc, FtrlProximal, Model
from rarestream.blocks import signs
from rarestream.engines import SCALES
from rarestream.engines.classes import MAX_GROUP, ClassLanes, can_share, have_equal_rates
from rarestream.engines.lanes import LaneKernel, Lanes
from tests.engines.test_lanes import ISAS, bits, lane_bits
from tests.strategies import FEATURES, block_of, blocks, examples, random_block

LEARNERS = [
    DualAveraging(loss="logistic"),
    DualAveraging(loss="auc"),
    DualAveraging(loss="logistic", l1=0.1, rate_power=0.7),
    DualAveraging(loss="auc", l1=0.1, beta=0.5),
    DualAveraging(loss="logistic", power=0.5, proximal=0.5),
    DualAveraging(loss="auc", power=1.0, l1=0.05),
    DualAveraging(loss="logistic", rate_power=0.0),
    DualAveraging(loss="logistic", rate_power=0.0, l1=0.2, beta=0.5, learning_rate=0.7),
    FtrlProximal(),
    FtrlProximal(l1=0.3, intercept=False),
    FtrlAuc(l1=0.1),
    FtrlAuc(l2=0.5, learning_rate=0.2),
]
SCALE = pytest.mark.parametrize("scale", ["unit", "max", "none"])
CLASSES = 11


def with_classes() -> st.SearchStrategy[tuple[Block, np.ndarray]]:
    """Rows and the class of each; some numbers are those of no lane."""
    return blocks(importances=True).flatmap(
        lambda block: st.tuples(
            st.just(block),
            st.lists(st.integers(-1, CLASSES + 1), min_size=len(block), max_size=len(block)).map(
                lambda codes: np.array(codes, np.int32)
            ),
        )
    )


def run(learner, block: Block, codes, scale: str = "unit", isa: str = "", count: int = CLASSES, state=None):
    lanes = Lanes([learner] * count, classes=True, equal_rates=have_equal_rates(learner))
    state = state or lanes.start(FEATURES, scale == "max")
    codes = np.where(codes < count, codes, -1).astype(np.int32)
    learned, scores = LaneKernel(lanes).learn(state, block, SCALES.index(scale), isa, codes)
    return lanes, state, scores[:learned]


@SCALE
@given(rows=with_classes(), learner=st.sampled_from(LEARNERS))
@settings(max_examples=examples(25))
def test_every_class_learns_what_a_model_of_its_labels_does(scale, rows, learner):
    block, codes = rows
    lanes, state, scores = run(learner, block, codes, scale)
    assert len(scores) == len(block) or scale == "none"
    block, codes = block[: len(scores)], codes[: len(scores)]
    for lane in range(CLASSES):
        model = Model(learner, scale=scale, n_features=FEATURES)
        expected = model.learn(dataclasses.replace(block, labels=signs(codes == lane)))
        size = 1 + abs(expected).max(initial=0)
        assert abs(scores[:, lane] - expected).max(initial=0) <= 1e-5 * size
        found = lanes.state(lane, state)
        weights = learner.kernel().weights(found, 0, FEATURES)
        assert np.allclose(weights, model.weights().weight, rtol=1e-5, atol=1e-5 * size)
        tally = model._engine.state.tally
        assert found.tally[:2].tobytes() == tally[:2].tobytes()
        assert np.allclose(found.tally, tally, rtol=1e-5, atol=1e-5 * size)
        if scale == "max":
            assert np.array_equal(found.largest, model._engine.state.largest[: len(found.largest)])


@SCALE
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: f"{learner.name}-{LEARNERS.index(learner)}")
def test_a_class_stays_with_its_model_over_many_rows(learner, scale):
    block = random_block(800, FEATURES, 5)
    codes = np.random.default_rng(1).integers(0, 4, len(block)).astype(np.int32)
    _, _, scores = run(learner, block, codes, scale, count=4)
    for lane in range(4):
        labelled = dataclasses.replace(block, labels=signs(codes == lane))
        assert np.allclose(scores[:, lane], Model(learner, scale=scale).learn(labelled), rtol=1e-4, atol=1e-4)


@SCALE
@given(rows=with_classes(), learner=st.sampled_from(LEARNERS), count=st.integers(1, 40))
@settings(max_examples=examples(20))
def test_a_class_gives_the_same_bits_whatever_stands_beside_it_on_every_machine(scale, rows, learner, count):
    block, codes = rows
    block = block[: len(run(learner, block, codes, scale, "portable", count)[2])]
    codes = codes[: len(block)]
    _, state, scores = run(learner, block, codes, scale, "portable", count)
    for isa in [*ISAS, ""]:
        lanes, found, found_scores = run(learner, block, codes, scale, isa, count)
        assert (found_scores.tobytes(), bits(found)) == (scores.tobytes(), bits(state)), isa
    number = min(count, CLASSES) - 1
    alone = np.where(codes == number, 0, -1)
    one, state, alone_scores = run(learner, block, alone, scale, "portable", 1)
    if len(alone_scores) == len(block):
        assert alone_scores[:, 0].tobytes() == scores[:, number].tobytes()
        assert lane_bits(one, state, 0) == lane_bits(lanes, found, number)


@SCALE
@given(rows=with_classes(), learner=st.sampled_from(LEARNERS), data=st.data())
@settings(max_examples=examples(15))
def test_where_a_block_is_cut_does_not_matter(scale, rows, learner, data):
    block, codes = rows
    _, whole, scores = run(learner, block, codes, scale)
    block = block[: len(scores)]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(block)), max_size=4)))
    state, pieces = None, []
    for a, b in zip([0, *cuts], [*cuts, len(block)], strict=True):
        _, state, found = run(learner, block[a:b], codes[a:b], scale, state=state)
        pieces.append(found)
    assert np.concatenate(pieces).tobytes() == scores.tobytes()
    assert bits(state) == bits(whole)


def test_two_classes_learn_as_the_two_signs_of_one_model():
    block = random_block(300, FEATURES, 4)
    learner = DualAveraging(loss="logistic")
    _, _, scores = run(learner, block, (block.labels < 0).astype(np.int32), count=2)
    assert np.allclose(scores[:, 0], -scores[:, 1], atol=1e-5)


@pytest.mark.parametrize("learner", [DualAveraging(evidence=0.5), DualAveraging(half_life=500.0)])
def test_lanes_that_are_classes_have_neither_evidence_nor_a_half_life(learner):
    assert not can_share(learner)
    with pytest.raises(ValueError, match="neither evidence nor a half-life"):
        run(learner, block_of([{0: 1.0}], [1]), np.zeros(1, np.int32))


def test_what_can_share_a_pass():
    assert all(can_share(learner) for learner in LEARNERS)
    assert not any(can_share(learner) for learner in (DualAveraging(budget=5), DualAveraging(power=0.3)))


def test_what_has_equal_rates():
    equal = DualAveraging(loss="logistic", rate_power=0.0)
    assert have_equal_rates(equal)
    assert have_equal_rates(dataclasses.replace(equal, l1=1.0, beta=2.0, learning_rate=3.0))
    for change in ({"loss": "auc"}, {"rate_power": 0.5}, {"power": 1.0}, {"proximal": 1.0}, {"half_life": 500.0}):
        assert not have_equal_rates(dataclasses.replace(equal, **change))
    assert not have_equal_rates(FtrlProximal())
    wrong = Lanes([FtrlProximal()], classes=True, equal_rates=True)
    with pytest.raises(ValueError, match="equal rates with the logistic loss"):
        LaneKernel(wrong).learn(wrong.start(3, False), block_of([{0: 1.0}]), 1, classes=np.zeros(1, np.int32))


@pytest.mark.parametrize("learner", [DualAveraging(loss="logistic"), DualAveraging(loss="logistic", rate_power=0.0)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_several_groups_learn_what_one_does(threads, learner):
    block = random_block(400, FEATURES, 5)
    count = 2 * MAX_GROUP + 5
    codes = np.random.default_rng(2).integers(0, count, len(block)).astype(np.int32)
    many = ClassLanes(learner, "max", count, FEATURES, threads)
    assert many.learn(block, codes)[0] == len(block)
    for number in (0, MAX_GROUP - 1, MAX_GROUP, 2 * MAX_GROUP + 4):
        one = ClassLanes(learner, "max", 1, FEATURES)
        one.learn(block, np.where(codes == number, 0, -1).astype(np.int32))
        assert many.score(block)[:, number].tobytes() == one.score(block)[:, 0].tobytes()
        single, expected = many.single(number).state, one.single(0).state
        assert single.table.tobytes() == expected.table.tobytes()
        assert single.tally.tobytes() == expected.tally.tobytes()


@pytest.mark.parametrize("seed", [12, 24, 38, 47])
def test_a_row_that_one_group_cannot_learn_is_learned_by_none(seed):
    count, rng = MAX_GROUP + 8, np.random.default_rng(seed)
    rows = [
        {int(j): float(rng.choice([1.0, -1e4, 1e7, -1e10])) for j in rng.choice(4, 2, replace=False)} for _ in range(10)
    ]
    codes = np.where(rng.random(10) < 0.5, count - 1, rng.integers(0, 2, 10)).astype(np.int32)
    block = block_of(rows, [1] * len(rows))
    learner = FtrlAuc()
    apart = ClassLanes(learner, "none", count, FEATURES)._learn_groups(block, codes)[0]
    assert len(set(apart)) == 2
    lanes = ClassLanes(learner, "none", count, FEATURES)
    learned, scores = lanes.learn(block, codes)
    assert learned == min(apart)
    assert scores.shape == (learned, count)
    expected = ClassLanes(learner, "none", count, FEATURES)
    expected.learn(block[:learned], codes[:learned])
    for number in range(count):
        found, wanted = lanes.single(number).state, expected.single(number).state
        assert found.table.tobytes() == wanted.table.tobytes()
        assert found.tally.tobytes() == wanted.tally.tobytes()


@pytest.mark.parametrize("learner", [FtrlProximal(), DualAveraging(loss="logistic", rate_power=0.0)])
@pytest.mark.parametrize("before", [1, 7, 8, MAX_GROUP - 1, MAX_GROUP, MAX_GROUP + 1])
def test_a_class_that_is_added_continues_from_the_last(before, learner):
    block = random_block(200, FEATURES, 5)
    codes = np.random.default_rng(3).integers(0, before + 3, len(block)).astype(np.int32)
    early = np.where(codes[:100] < before - 1, codes[:100], -1).astype(np.int32)  # the last has no rows so far
    lanes = ClassLanes(learner, "unit", before, FEATURES)
    lanes.learn(block[:100], early)
    lanes.add(3)
    lanes.learn(block[100:], codes[100:])
    known = ClassLanes(learner, "unit", before + 3, FEATURES)
    known.learn(block[:100], early)
    known.learn(block[100:], codes[100:])
    assert lanes.count == before + 3
    for number in range(before + 3):
        assert lanes.single(number).state.table.tobytes() == known.single(number).state.table.tobytes()
        assert lanes.tally(number).tobytes() == known.tally(number).tobytes()


@SCALE
@pytest.mark.parametrize("learner", [DualAveraging(), DualAveraging(loss="logistic", rate_power=0.0)])
def test_a_state_that_is_loaded_is_the_one_that_was_taken(scale, learner):
    block = random_block(200, FEATURES, 5)
    codes = np.random.default_rng(3).integers(0, 5, len(block)).astype(np.int32)
    lanes = ClassLanes(learner, scale, 5, FEATURES)
    lanes.learn(block, codes)
    other = ClassLanes(learner, scale, 5, FEATURES)
    for number in range(5):
        other.load(number, lanes.single(number))
    assert lanes.learn(block, codes)[1].tobytes() == other.learn(block, codes)[1].tobytes()
