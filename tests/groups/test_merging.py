"""train_group and merge: what does not depend on how rows are divided, sent and merged."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Block, DataError, Model, RowError, make_learner
from rarestream._native import isa, set_isa
from rarestream.errors import ModelFileError
from rarestream.groups import Part, fit_groups, merge, merge_features, train_group
from rarestream.groups.merging import adopt
from rarestream.groups.receipt import KEY
from rarestream.learners.state import TALLY
from tests.groups.samples import IDS, LEARNERS, learn_round, parts_of, shares
from tests.strategies import FEATURES, block_of, blocks, examples, hashed_block, random_block

EVERY = pytest.mark.parametrize("learner", LEARNERS, ids=IDS)
ANY = st.sampled_from(LEARNERS)
SCALES = st.sampled_from(["unit", "max"])
GROUPS = st.lists(blocks(importances=True), min_size=2, max_size=4)
DTYPES = st.sampled_from(["float32", "float64"])


def started(learner, first: Block, dtype: str = "float64", scale: str = "unit") -> bytes:
    """A model that has learned some rows, as bytes."""
    model = Model(learner, dtype=dtype, scale=scale, n_features=FEATURES)
    model.learn(first)
    return model.to_bytes()


def of_round(state: bytes, groups, strength: float = 1.0) -> Model:
    return merge(Model.from_bytes(state), parts_of(state, groups, strength))


def numbers(model: Model) -> tuple[np.ndarray, np.ndarray]:
    return model._engine.numbers_at(np.arange(FEATURES, dtype=np.int32)), model._engine.tallies[:, 0]


@given(learner=ANY, first=blocks(), block=blocks(), scale=SCALES, count=st.sampled_from([2, 4, 8]))
@settings(max_examples=examples(40))
def test_equal_groups_give_the_state_of_each_of_them_with_counts_and_score_sums_of_all(
    learner, first, block, scale, count
):
    state = started(learner, first, scale=scale)
    before, (base_numbers, base_tally) = Model.from_bytes(state), numbers(Model.from_bytes(state))
    parts = parts_of(state, [block] * count)
    part, found = parts[0].change, merge(before, parts)
    merged, tally = numbers(found)
    np.testing.assert_allclose(merged[part.features, :2], part.numbers[:, :2], rtol=1e-9, atol=1e-12)
    grown = base_numbers[part.features, 2:] + count * (part.numbers[:, 2:] - base_numbers[part.features, 2:])
    np.testing.assert_allclose(merged[part.features, 2:], grown, rtol=1e-12)
    rows = dict(zip(TALLY, (base_tally + count * (part.tally[:, 0] - base_tally)).tolist(), strict=True))
    assert tally[:2].tolist() == [rows["n_pos"], rows["n_neg"]]
    for count_of, mean in (("n_pos", "a"), ("n_neg", "b")):
        n, m = TALLY.index(count_of), TALLY.index(mean)
        base, one = base_tally[n] * base_tally[m], part.tally[n, 0] * part.tally[m, 0]
        assert tally[n] * tally[m] == pytest.approx(base + count * (one - base), rel=1e-9, abs=1e-12)
    assert tally[TALLY.index("w0")] == pytest.approx(part.tally[TALLY.index("w0"), 0], rel=1e-12, abs=1e-12)
    assert found.rows == len(first) + count * len(block)


@given(learner=ANY, first=blocks(importances=True), groups=GROUPS, scale=SCALES, seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(40))
def test_numbering_features_anew_numbers_the_model_anew(learner, first, groups, scale, seed):
    order = np.random.default_rng(seed).permutation(FEATURES).astype(np.int32)

    def renumbered(block: Block) -> Block:  # each row in the order it had: scores are sums
        return Block.of((block.indptr, order[block.indices], block.values), block.labels, block.importances)

    one = of_round(started(learner, first, scale=scale), groups)
    other = of_round(started(learner, renumbered(first), scale=scale), [renumbered(block) for block in groups])
    np.testing.assert_allclose(numbers(other)[0][order], numbers(one)[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(numbers(other)[1], numbers(one)[1], rtol=1e-9, atol=1e-9)


@EVERY
@given(first=blocks(), groups=st.lists(blocks(), min_size=2, max_size=3))
@settings(max_examples=examples(4))
def test_swapping_the_classes_negates_the_weights(learner, first, groups):
    def swapped(block: Block) -> Block:
        return dataclasses.replace(block, labels=-block.labels)

    one = of_round(started(learner, first), groups)
    other = of_round(started(learner, swapped(first)), [swapped(block) for block in groups])
    np.testing.assert_allclose(other.coef, -one.coef, rtol=1e-7, atol=1e-7)
    assert (one.rows, one.positives) == (other.rows, other.rows - other.positives)


@pytest.mark.parametrize("name", ["ftrl-auc", "dual-logistic", "evidence", "auto"])
@given(
    first=blocks(importances=True),
    groups=GROUPS,
    scale=SCALES,
    dtype=DTYPES,
    cuts=st.lists(st.integers(0, FEATURES + 3)),
)
@settings(max_examples=examples(12))
def test_merging_ranges_of_features_apart_gives_the_same_bits(name, first, groups, scale, dtype, cuts):
    learner = LEARNERS[IDS.index("dual-logistic-25")] if name == "evidence" else make_learner(name)
    state = started(learner, first, dtype, scale)
    parts = parts_of(state, groups)
    ends = [0, *sorted(cuts), 2**31 - 1]
    model = Model.from_bytes(state)
    ranges = [merge_features(model, parts, *two) for two in itertools.pairwise(ends)]
    assert model.to_bytes() == state  # nothing has changed yet
    sent = [Part.from_bytes(part.to_bytes()) for part in ranges]
    assert adopt(model, sent).to_bytes() == merge(Model.from_bytes(state), parts).to_bytes()


def equal(one: Part, other: Part) -> bool:
    def fields(part: Part) -> list:
        arrays = [] if part.change is None else [part.change.rows, *part.change[1:]]
        return [part.rows, part.positives, part.whole, *arrays]

    return all(
        (a is None and b is None) or (np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b))
        for a, b in zip(fields(one), fields(other), strict=True)
    )


@given(learner=st.sampled_from([*LEARNERS, make_learner("auto")]), groups=GROUPS, scale=SCALES, dtype=DTYPES)
@settings(max_examples=examples(30))
def test_a_part_comes_back_from_bytes_as_it_was(learner, groups, scale, dtype):
    state = Model(learner, scale=scale, dtype=dtype).to_bytes()
    parts = parts_of(state, groups)
    sent = [Part.from_bytes(part.to_bytes()) for part in parts]
    assert all(map(equal, parts, sent))
    assert merge(Model.from_bytes(state), sent).to_bytes() == merge(Model.from_bytes(state), parts).to_bytes()


@given(learner=ANY, first=blocks(), groups=GROUPS, scale=SCALES)
@settings(max_examples=examples(30))
def test_a_feature_that_one_group_has_changes_by_its_share_of_that_group(learner, first, groups, scale):
    """Groups that have no feature in common do not touch each other's numbers."""
    apart = [
        Block.of((block.indptr, block.indices + FEATURES * (1 + number), block.values), block.labels, block.importances)
        for number, block in enumerate(groups)
    ]
    state = started(learner, first, scale=scale)
    parts, model = parts_of(state, apart), merge(Model.from_bytes(state), parts_of(state, apart))
    total = sum(part.rows for part in parts)
    assert np.array_equal(numbers(model)[0], numbers(Model.from_bytes(state))[0])  # those of the rows before
    for part in parts:
        share, change = part.rows / total, part.change
        found = model._engine.numbers_at(change.features)
        np.testing.assert_allclose(found[:, 0], share * change.numbers[:, 0], rtol=1e-12)
        np.testing.assert_allclose(found[:, 1], np.sqrt(share) * change.numbers[:, 1], rtol=1e-12)
        assert np.array_equal(found[:, 2:], change.numbers[:, 2:])
        if scale == "max":
            assert np.array_equal(model._engine.largest_at(change.features), change.largest)


@pytest.mark.parametrize("name", ["ftrl-auc", "dual-logistic", "evidence", "auto"])
@pytest.mark.parametrize("scale", ["unit", "max"])
def test_a_model_resumed_from_bytes_between_rounds_gives_the_same_bits(name, scale):
    learner = LEARNERS[IDS.index("dual-logistic-25")] if name == "evidence" else make_learner(name)
    rows = random_block(300, 40, 4)
    going, stopped = Model(learner, scale=scale), Model(learner, scale=scale)
    for start in (0, 100, 200):
        groups = shares(rows[start : start + 100], (2, 1, 1))
        going = learn_round(going, groups)
        stopped = Model.from_bytes(learn_round(Model.from_bytes(stopped.to_bytes()), groups).to_bytes())
        assert going.to_bytes() == stopped.to_bytes()


@pytest.mark.parametrize("learner", [*LEARNERS, make_learner("auto")], ids=[*IDS, "auto"])
def test_a_merged_model_learns_on_in_sequence_as_its_file_does(learner):
    rows, more = random_block(200, 40, 4), random_block(100, 60, 4, seed=1)
    model, row = Model(learner), (more.indices[:3], more.values[:3])
    model.learn(rows[:100])
    before = model.coef, model.score_one(*row)
    model = learn_round(model, [rows[100:], more])
    loaded = Model.from_bytes(model.to_bytes())
    assert model.score_one(*row) == loaded.score_one(*row) != before[1]  # nothing computed before is used again
    assert np.array_equal(model.coef, loaded.coef)
    assert len(model.coef) > len(before[0])
    assert np.array_equal(model.score(more), loaded.score(more))
    assert model.learn_one(*row, 1) == loaded.learn_one(*row, 1)
    assert np.array_equal(model.learn(more), loaded.learn(more))
    assert model.to_bytes() == loaded.to_bytes()
    assert model.rows == 401


@given(
    learner=st.sampled_from([*LEARNERS, make_learner("auto")]),
    first=blocks(),
    groups=GROUPS,
    scale=SCALES,
    dtype=DTYPES,
)
@settings(max_examples=examples(30))
def test_every_machine_gives_the_same_bits(learner, first, groups, scale, dtype):
    chosen, found = isa(), []
    try:
        for path in sorted({"portable", chosen}):
            set_isa(path)
            found.append(of_round(started(learner, first, dtype, scale), groups).to_bytes())
    finally:
        set_isa(chosen)
    assert all(one == found[0] for one in found)


def test_where_the_blocks_of_a_group_are_cut_does_not_matter():
    rows = random_block(300, 40, 4)
    for learner in (*LEARNERS, make_learner("auto")):
        state = started(learner, rows[:100], "float32")
        whole = train_group(Model.from_bytes(state), [rows[100:200]], rows=100, of=200)
        cut = [rows[100:101], rows[101:150], rows[150:150], rows[150:200]]
        assert equal(whole, train_group(Model.from_bytes(state), iter(cut), rows=100, of=200))


def test_features_beyond_those_of_the_model_and_of_other_groups():
    near, far = block_of([{0: 1.0}, {1: 1.0}], [1, -1]), block_of([{5_000: 1.0}, {70_000: 2.0}], [-1, 1])
    for name in ("dual-logistic", "auto"):
        model = learn_round(Model(name, scale="max"), [near, far])
        assert model.n_features == 70_001
        assert model.rows == 4
        assert Model.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
        assert set(np.flatnonzero(model.coef)) <= {0, 1, 5_000, 70_000}
    assert np.count_nonzero(learn_round(Model("dual-logistic"), [near, far]).coef) == 4


def test_hashed_rows_are_learned_in_groups():
    rows = hashed_block(400, 8)
    model = fit_groups([rows], "dual-logistic", groups=2, rounds=2)
    assert model.features == rows.space
    assert model.n_features == 256
    assert model.feature_names(rows.indices[:3]) == Model.from_bytes(model.to_bytes()).feature_names(rows.indices[:3])
    assert all(name.startswith("site") for name in model.feature_names(rows.indices[:20]))
    other = dataclasses.replace(hashed_block(10, 9))
    with pytest.raises(DataError, match="hashed features with 9 bits, but the model has hashed features with 8 bits"):
        train_group(model, [other], rows=10, of=20)
    wide = dataclasses.replace(block_of([{300: 1.0}], [1]), space=rows.space)
    with pytest.raises(DataError, match="train_group: a row has slot 300"):
        train_group(model, [wide], rows=1, of=20)


# -- what is refused


NO_RULES = ["opauc", "spam", "oam", "solam", "fsauc", "spauc", "adaoam", "rda", "adagrad"]


@pytest.mark.parametrize(
    "learner",
    [
        *map(make_learner, NO_RULES),
        make_learner("dual-logistic", budget=5),
        make_learner("dual-auc", half_life=100),
        make_learner("ftrl-auc", means="exact"),
        make_learner("ftrl-auc", half_life=100),
        make_learner("ftrl-proximal", half_life=100),
        make_learner("auto", budget=5),
    ],
    ids=lambda learner: learner.name,
)
def test_a_learner_without_rules_is_refused_by_name_with_the_ways_on(learner):
    block = random_block(100, 20, 4)
    model = Model(learner)
    before = model.to_bytes()
    tries = (
        lambda: train_group(model, [block], rows=100, of=200),
        lambda: fit_groups([block], learner, groups=2),
        lambda: merge(model, [train_group(Model("dual-auc"), [block], rows=100, of=200)] * 2),
    )
    for one in tries:
        with pytest.raises(ValueError, match="cannot be learned in groups") as caught:
            one()
        said = str(caught.value)
        assert said.startswith((type(learner).__name__, "DualAveraging"))  # auto names a setting it races
        assert "DualAveraging without budget and half_life" in said and said.endswith("or use one group.")
        assert model.to_bytes() == before


def test_a_race_whose_settings_fade_is_refused():
    model = Model("auto")
    model.learn(random_block(600, 20, 4))
    model._engine._cut(8)  # the last two are copies of the leader in which rows fade
    with pytest.raises(ValueError, match=r"half_life=65536\.0\) cannot be learned in groups"):
        train_group(model, [random_block(10, 20, 4)], rows=10, of=20)


def test_a_model_for_scoring_only_is_refused():
    block = random_block(100, 20, 4)
    model = Model("dual-auc")
    model.learn(block)
    frozen = Model.from_bytes(model.to_bytes("scoring"))
    with pytest.raises(ModelFileError, match="train_group: this model was saved for scoring only"):
        train_group(frozen, [block], rows=100, of=200)


@pytest.mark.parametrize("rows, of", [(0, 5), (-1, 5), (6, 5), (1, 0), (-1, -1)])
def test_an_empty_group_or_one_with_more_rows_than_the_round_is_refused(rows, of):
    model = Model("dual-auc")
    with pytest.raises(ValueError, match=f"1 to all rows of its round, got rows={rows} and of={of}"):
        train_group(model, [], rows=rows, of=of)


@pytest.mark.parametrize("strength", [0.0, -1.0, 1.5, float("nan")])
def test_another_strength_is_refused(strength):
    with pytest.raises(ValueError, match="strength must be above 0 and at most 1"):
        train_group(Model("dual-auc"), [], rows=1, of=2, strength=strength)


@pytest.mark.parametrize("rows", [9, 11])
@pytest.mark.parametrize("of", [20, "rows"])
def test_another_number_of_rows_is_refused(rows, of):
    with pytest.raises(DataError, match=f"train_group: the group has 10 rows, but {rows} were expected"):
        train_group(Model("dual-auc"), [random_block(10, 5, 3)], rows=rows, of=rows if of == "rows" else of)


def test_rows_without_labels_are_refused():
    unlabelled = dataclasses.replace(random_block(10, 5, 3), labels=None)
    with pytest.raises(DataError, match="train_group: the block has no labels"):
        train_group(Model("dual-auc"), [unlabelled], rows=10, of=20)
    with pytest.raises(DataError, match="fit_groups: a block has no labels"):
        fit_groups([random_block(100, 5, 3), unlabelled], "dual-auc", groups=2)
    with pytest.raises(TypeError, match="train_group: takes a Block, got list"):
        train_group(Model("dual-auc"), [[1, 2]], rows=10, of=20)


def test_a_row_too_large_to_learn_is_refused_with_its_place():
    rows = block_of([{0: 1.0}, {0: -1.0, 1: 2.0}, {0: 1e30}, {1: 1.0}], [1, -1, 1, -1])
    for name in ("dual-auc", "auto"):
        with pytest.raises(RowError, match="train_group: row 2 of the block has values so large"):
            train_group(Model(name, scale="none"), [rows], rows=4, of=8)


def test_more_than_a_million_groups_are_refused():
    with pytest.raises(ValueError, match="rows are repeated 1 to 1e6 times"):
        train_group(Model("dual-auc"), [random_block(1, 5, 3)], rows=1, of=1_000_001)


def test_no_parts_are_refused():
    for function in (merge, adopt):
        with pytest.raises(ValueError, match="there are no parts"):
            function(Model("dual-auc"), [])


def test_parts_of_another_dtype_are_refused_and_change_nothing():
    block = random_block(100, 20, 4)
    model = Model("dual-auc", dtype="float64")
    model.learn(block)
    before, part = model.to_bytes(), train_group(Model("dual-auc"), [block], rows=100, of=200)
    with pytest.raises(TypeError):
        merge(model, [part, part])
    assert model.to_bytes() == before


def test_the_receipt_is_all_that_a_fit_adds_to_the_source():
    assert set(fit_groups([random_block(200, 20, 4)], "dual-auc", groups=2, rounds=1).source) == {KEY}
