"""A race whose rows are learned in groups: every lane is merged as a model of its own, and fewer and fewer go on."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Auto, Block, DataError, DualAveraging, FtrlProximal, Model, SettingsDroppedWarning, auc
from rarestream.blocks import concatenate
from rarestream.engines import race
from rarestream.engines.latest import LatestRows
from rarestream.engines.race import Race
from rarestream.engines.single import Single
from rarestream.groups import Part, fit_groups, merge, merge_features, train_group
from rarestream.groups.merging import adopt
from rarestream.groups.receipt import KEY
from rarestream.learners.base import RacePlan
from tests.engines.test_race import hasty, short_plan
from tests.groups.samples import LEARNERS, learn_round, parts_of, shares, weighted
from tests.strategies import FEATURES, block_of, blocks, examples, random_block

LANES = [learner for learner in LEARNERS if learner.lane() is not None]
ALL = np.arange(FEATURES, dtype=np.int32)
STREAM = random_block(2600, 60, 6, seed=4)
LARGE = block_of([{0: 1e5}], [1])  # which settings with evidence or a power cannot learn where rows are not scaled


def raced(learners, scale: str = "unit", dtype: str = "float32") -> Model:
    """A model that races these."""
    engine = Race(Auto(), RacePlan(learners, 2**18), scale, FEATURES, dtype)
    return Model.from_engine(engine, FEATURES)


def of_setting(model: Model, number: int) -> tuple[np.ndarray, np.ndarray]:
    """z and n of the features under a setting, and its numbers of TALLY."""
    engine, count = model._engine, len(model._engine.candidates)
    return engine.numbers_at(ALL)[:, [number, count + number]], engine.tallies[:, number]


def assert_lanes_agree(model: Model, models: list[Model]) -> None:
    for number, alone in enumerate(models):
        found, tally = of_setting(model, number)
        state = alone._engine.state
        size = 1 + abs(state.table[:FEATURES]).max()
        np.testing.assert_allclose(found, state.table[:FEATURES, :2], rtol=1e-4, atol=1e-5 * size)
        np.testing.assert_allclose(tally, state.tally, rtol=1e-4, atol=1e-4)
        if state.table.shape[1] > 2:
            having = model._engine.numbers_at(ALL)[:, 2 * len(models) :]
            np.testing.assert_allclose(having, state.table[:FEATURES, 2:], rtol=1e-6)


@pytest.mark.parametrize("scale, importances", [("unit", False), ("unit", True), ("max", True), ("none", False)])
def test_every_lane_agrees_with_a_model_of_its_learner_in_the_same_groups(scale, importances):
    rows = random_block(240, FEATURES, 4, seed=5)
    rows = weighted(rows) if importances else rows
    model, models = raced(LANES, scale), [Model(learner, scale=scale, n_features=FEATURES) for learner in LANES]
    for start, sizes in ((0, (1, 1)), (80, (3, 2, 5)), (160, (1, 1))):
        groups = shares(rows[start : start + 80], sizes)
        model, models = learn_round(model, groups), [learn_round(one, groups) for one in models]
        assert_lanes_agree(model, models)
        if scale == "max":
            assert np.array_equal(model._engine.largest_at(ALL), models[0]._engine.largest_at(ALL))
    assert model.rows == models[0].rows
    scores = model._engine._gathered().score(model._engine.compact.known(rows))
    for number, one in enumerate(models):
        np.testing.assert_allclose(scores[:, number], one.score(rows), rtol=1e-3, atol=1e-3)


@given(groups=st.lists(blocks(), min_size=2, max_size=3), data=st.data())
@settings(max_examples=examples(12))
def test_a_lane_is_merged_to_the_same_bits_whatever_lanes_stand_beside_it(groups, data):
    some = data.draw(st.lists(st.sampled_from(range(len(LANES))), min_size=1, unique=True))
    every = learn_round(raced(LANES), groups)
    fewer = learn_round(raced([LANES[number] for number in some]), groups)
    for place, number in enumerate(some):
        for one, other in zip(of_setting(fewer, place), of_setting(every, number), strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("cores", [1, 3])
def test_the_number_of_cores_changes_no_bit(monkeypatch, cores):
    def found() -> bytes:
        model = Model("auto")
        model.learn(STREAM[:600])
        return learn_round(model, shares(STREAM[600:900], (1, 2))).to_bytes()

    expected = found()
    monkeypatch.setattr(race, "cores", lambda: cores)
    assert found() == expected


def test_unused_lanes_repeat_the_first_so_that_they_never_overflow():
    model = learn_round(raced(LANES[:3]), shares(STREAM[:100], (1, 1)))
    group = model._engine._gathered()
    for lane in range(3, group.lanes.width):
        assert np.array_equal(
            group.state.table[:, group.lanes.columns(lane)], group.state.table[:, group.lanes.columns(0)]
        )
        assert np.array_equal(group.state.means[:, lane], group.state.means[:, 0])


# -- settings that drop out


@pytest.fixture
def dropping() -> tuple[bytes, list[Block]]:
    """A race whose rows are not scaled, and two groups: in the first most settings cannot learn a row."""
    model = Model("auto", scale="none")
    model.learn(STREAM[:500])
    return model.to_bytes(), [concatenate([STREAM[500:600], LARGE, STREAM[600:640]]), STREAM[640:800]]


def test_settings_that_overflow_in_one_group_drop_out_of_all(dropping):
    state, groups = dropping
    parts = parts_of(state, groups)
    left = parts[0].change.settings
    assert 0 < len(left) < len(parts[1].change.settings) == 24
    with pytest.warns(SettingsDroppedWarning, match=f"^auto: {24 - len(left)} of 24 settings dropped out, the others"):
        model = merge(Model.from_bytes(state), [Part.from_bytes(part.to_bytes()) for part in parts])
    before = Model.from_bytes(state)
    assert model.candidates == [before.candidates[number] for number in left]
    assert model.rows == 500 + sum(map(len, groups))
    # They are merged as if no other had ever been there.
    before._engine._continue_with(left.tolist())
    alone = learn_round(before, groups)
    features = np.arange(60, dtype=np.int32)
    assert alone._engine.numbers_at(features).tobytes() == model._engine.numbers_at(features).tobytes()
    assert alone._engine.tallies.tobytes() == model._engine.tallies.tobytes()
    assert np.isfinite(model.score(STREAM)).all()
    loaded = Model.from_bytes(model.to_bytes())
    assert np.array_equal(loaded.learn(STREAM[800:900]), model.learn(STREAM[800:900]))


def test_a_setting_whose_steps_are_too_long_for_so_many_groups_drops_out_unsaid():
    """Its weights grow by as much as there are groups; rows are scaled, so that no other rows would help."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit_groups([STREAM], "auto", groups=20, rounds=4, scale="unit")
    settings = [one["settings"] for one in model.source[KEY]["rounds"]]  # where it can be seen
    assert 20 < settings[-1] < settings[0] == 24
    assert DualAveraging(loss="auc", power=1.0, learning_rate=0.25) not in model.candidates


@pytest.mark.filterwarnings("ignore::rarestream.SettingsDroppedWarning")
def test_so_they_do_where_features_are_merged_in_ranges(dropping):
    state, groups = dropping
    for order in (groups, groups[::-1]):
        parts, model = parts_of(state, order), Model.from_bytes(state)
        ranges = [merge_features(model, parts, *two) for two in ((0, 20), (20, 1000))]
        assert adopt(model, ranges).to_bytes() == merge(Model.from_bytes(state), parts).to_bytes()


@pytest.mark.filterwarnings("ignore::rarestream.SettingsDroppedWarning")
def test_settings_with_evidence_keep_the_counts_when_others_drop_out():
    """The settings that are left need what the rows counted, also if lanes had to be moved."""
    learners = [DualAveraging(loss="logistic", evidence=0.5), DualAveraging(loss="logistic"), FtrlProximal()]
    model = raced(learners)
    state = model.to_bytes()
    parts = parts_of(state, shares(STREAM[:100], (1, 1)))
    change = parts[1].change
    fewer = change._replace(
        settings=change.settings[:1], numbers=change.numbers[:, [0, 3, 6, 7]].copy(), tally=change.tally[:, :1]
    )
    model = merge(Model.from_bytes(state), [parts[0], dataclasses.replace(parts[1], change=fewer)])
    alone = learn_round(Model(learners[0], n_features=FEATURES), shares(STREAM[:100], (1, 1)))
    assert model.candidates == learners[:1]
    assert_lanes_agree(model, [alone])


def test_groups_that_leave_no_setting_are_refused():
    state = raced(LANES[:2]).to_bytes()
    parts = []
    for number, part in enumerate(parts_of(state, shares(STREAM[:100], (1, 1)))):
        change = part.change
        columns = np.r_[[number, 2 + number], 4 : change.numbers.shape[1]]
        kept = {"numbers": change.numbers[:, columns].copy(), "tally": change.tally[:, [number]]}
        parts.append(dataclasses.replace(part, change=change._replace(settings=np.array([number], np.int32), **kept)))
    model = Model.from_bytes(state)
    with pytest.raises(
        DataError, match=r"^none of the 2 settings of 'auto' can learn the rows of all groups: .* Use scale="
    ):
        merge(model, parts)
    assert model.to_bytes() == state


def test_more_features_than_lanes_have_memory_for_are_refused(monkeypatch):
    monkeypatch.setattr(race, "MAX_BYTES", 40 * raced(Auto.candidates())._engine._lane_bytes)
    wide = [block_of([{start + j: 1.0 for j in range(30)}, {start: 1.0}], [1, -1]) for start in (0, 100)]
    with pytest.raises(
        DataError, match="the 24 settings of 'auto' need more than a gigabyte for the features of all groups"
    ):
        learn_round(Model("auto"), wide)
    with pytest.raises(DataError, match="need more than a gigabyte for the features of a round. Name a learner"):
        train_group(Model("auto"), wide, rows=4, of=8)


# -- fewer and fewer settings


def test_auto_in_groups_goes_on_with_fewer_settings_by_its_schedule():
    with hasty(), short_plan(cut=300):
        model = fit_groups([STREAM], Auto(rows=900), groups=2, rounds=8, block_rows=10)
    rounds = model.source[KEY]["rounds"]
    learned = np.cumsum([0, *(one["rows"] for one in rounds)])[:-1] // 2  # by one group, before each round
    assert [one["settings"] for one in rounds] == [24 if rows < 300 else 8 if rows < 900 else 1 for rows in learned]
    assert {24, 8, 1} == {one["settings"] for one in rounds}
    assert isinstance(model._engine, Single)
    assert model.chosen_by.name == "auto"
    assert model.learner in Auto.candidates()
    assert auc(STREAM.labels, model.score(STREAM)) > 0.9


def test_copies_that_fade_do_not_join_while_rows_are_learned_in_groups():
    with hasty(), short_plan(cut=300, half_lives=(64.0, 256.0)):
        model = fit_groups([STREAM], Auto(rows=10**6), groups=2, rounds=4, block_rows=10)
    assert all(not learner.settings["half_life"] for learner in model.candidates)
    assert len(model.candidates) == 8


def test_the_schedule_counts_rows_whatever_their_importance():
    for importance in (0.01, 3.0):
        rows = dataclasses.replace(STREAM, importances=np.full(len(STREAM), importance))
        model = fit_groups([rows], Auto(rows=2000), groups=2, rounds=4, block_rows=10)
        assert min(one["settings"] for one in model.source[KEY]["rounds"]) > 20
        assert len(model.candidates) > 20


def compare(model: Model, held_out: Block, groups: int = 2) -> np.ndarray:
    return model._compare(held_out, groups)


def test_settings_are_compared_on_all_rows_held_out_that_count():
    model = learn_round(Model("auto"), shares(STREAM[:1200], (1, 1)))
    held_out = weighted(STREAM[1200:2000])
    counted = held_out.take(np.flatnonzero(held_out.importances))
    models = [Model.from_bytes(model.to_bytes()) for _ in range(2)]
    compare(models[0], held_out)
    compare(models[1], counted)
    one, other = (found._engine for found in models)
    assert one.choice.order == other.choice.order
    assert np.array_equal(one.choice.shares, other.choice.shares)
    assert one.choice.is_mixture
    assert one.raced == model.rows // 2
    # The choice is that of `choose` on the scores of these rows.
    latest = LatestRows(24)
    latest.add_learned(counted, model._engine._gathered().score(model._engine.compact.known(counted)))
    expected = race.choose(*latest.compared(2 * len(counted)))
    assert expected.leader == one.choice.leader
    assert np.array_equal(expected.shares, one.choice.shares)


def test_rows_held_out_of_one_class_by_importance_leave_the_default_leading():
    model = learn_round(Model("auto"), shares(STREAM[:600], (1, 1)))
    rows = STREAM[600:1400]
    scores = compare(model, dataclasses.replace(rows, importances=np.where(rows.labels > 0, 0.0, 1.0)))
    assert len(scores) == len(rows)
    assert model.leader == Auto.candidates()[0]


def chosen() -> tuple[Model, Block]:
    """A race after a round of groups, whose leader is not the default, and rows to learn."""
    model = learn_round(Model("auto"), shares(STREAM[:1200], (1, 1)))
    compare(model, STREAM[1200:2000])
    assert model.leader != Auto.candidates()[0]
    return model, STREAM[2000:]


def test_the_scores_are_those_of_the_mixture_that_goes_on():
    model = learn_round(Model("auto"), shares(STREAM[:1200], (1, 1)))
    model.coef  # noqa: B018  # what was computed before is not used again
    scores = compare(model, STREAM[1200:2000])
    np.testing.assert_allclose(scores, model.score(STREAM[1200:2000]), rtol=1e-5, atol=1e-5)
    rows = STREAM[1200:1210]
    by_weights = np.add.reduceat(model.contributions(rows), rows.indptr[:-1])
    np.testing.assert_allclose(by_weights, model.score(rows), rtol=1e-4, atol=1e-5)


def test_a_race_that_ends_goes_on_with_what_was_best_on_the_rows_held_out():
    model, _ = chosen()
    leader = model.leader
    loaded = Model.from_bytes(model.to_bytes())
    for one in (model, loaded):
        before = one.score(STREAM)
        one.finish_race()
        assert one.learner == leader
        np.testing.assert_allclose(one.score(STREAM), before, rtol=1e-3, atol=1e-3)  # the weights of the mixture
    assert model.to_bytes() == loaded.to_bytes()


def test_too_few_rows_in_sequence_do_not_bring_the_default_back():
    model, rest = chosen()
    leader, order = model.leader, list(model._engine.choice.order)
    model._engine.raced = 1020  # so that settings are compared after four more rows
    model.learn(rest[:10])
    assert model._engine._latest.count == 10
    assert (model.leader, list(model._engine.choice.order)) == (leader, order)


def test_the_second_pass_has_one_setting():
    model = fit_groups([random_block(2600, 60, 6, seed=6)], "auto", groups=2, rounds=2, passes=2)
    assert [one["settings"] for one in model.source[KEY]["rounds"]] == [24, 24, 1, 1]
    assert model.learner != Auto.candidates()[0]  # which is not the best on these rows


def test_the_model_file_of_a_race_in_groups_loads_and_goes_on():
    model, rest = chosen()
    loaded = Model.from_bytes(model.to_bytes())
    assert loaded.to_bytes() == model.to_bytes()
    assert (loaded.leader, loaded.candidates, loaded._engine.raced) == (model.leader, model.candidates, 600)
    assert np.array_equal(loaded.score(rest), model.score(rest))
    groups = shares(rest[:400], (1, 1))
    model, loaded = learn_round(model, groups), learn_round(loaded, groups)
    assert model.to_bytes() == loaded.to_bytes()
    assert np.array_equal(compare(model, rest[400:]), compare(loaded, rest[400:]))
    assert np.array_equal(model.learn(rest), loaded.learn(rest))
    assert model.to_bytes() == loaded.to_bytes()


def test_a_race_that_began_in_sequence_goes_on_in_groups_and_back():
    model = Model("auto")
    model.learn(STREAM[:700])
    model = learn_round(model, shares(STREAM[700:1500], (1, 3)))
    compare(model, STREAM[1500:1900])
    assert model._engine.raced == 750
    model.learn(STREAM[1900:])
    assert model.rows == 1500 + 700
    assert auc(STREAM.labels, model.score(STREAM)) > 0.9
    assert Model.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
