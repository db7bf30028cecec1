"""Auto: who leads, who stays, and that a race is one stream however it is cut, saved and resumed."""

from __future__ import annotations

import dataclasses
import pickle
import re
from contextlib import ExitStack, contextmanager, suppress
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import (
    Auto,
    Block,
    DataError,
    DualAveraging,
    FtrlAuc,
    Model,
    ModelBusyError,
    ModelFileError,
    SettingsDroppedWarning,
    auc,
    make_learner,
    modelfile,
)
from rarestream._native import isa, set_isa
from rarestream.blocks import concatenate
from rarestream.engines import SCALES, latest, race, separate
from rarestream.engines.choice import LITTLE, Choice, Schedule, choose
from rarestream.engines.compact import UNSEEN
from rarestream.engines.lanes import LaneKernel, Lanes
from rarestream.engines.latest import _thinned
from rarestream.learners import TALLY
from rarestream.learners.base import RacePlan
from rarestream.learners.state import SPARE
from rarestream.metrics.paired import Standings
from rarestream.modelfile.codec import ChosenBy
from tests.strategies import block_of, blocks, examples, random_block

CANDIDATES = Auto.candidates()
DEFAULT = CANDIDATES[0]


@contextmanager
def hasty(**changes):
    """Short races: they look at who leads after eight rows, and three of a class are enough to say."""
    changes = {"FIRST_LOOK": Schedule(8, 2), "MIN_CLASS_ROWS": 3, **changes}
    with ExitStack() as stack:
        for module in (race, latest, separate):
            here = {name: value for name, value in changes.items() if hasattr(module, name)}
            if here:
                stack.enter_context(patch.multiple(module, **here))
        yield


def short_plan(cut: int, **more):
    """Races that go on with fewer settings after so many rows."""
    return patch.object(
        Auto, "race_plan", lambda self: RacePlan(Auto.candidates(), self.rows, self.keep, cut=cut, **more)
    )


def same(one: Model, other: Model) -> bool:
    return one.to_bytes() == other.to_bytes()


def lane(learner, block: Block, scale: str = "unit", slots: int = 0):
    """A lane alone: its state after the rows, and their scores before."""
    lanes = Lanes([learner])
    state = lanes.start(max(block.width, slots), scale == "max")
    learned, scores = LaneKernel(lanes).learn(state, block, SCALES.index(scale))
    assert learned == len(block)
    return lanes.state(0, state), scores[:, 0].astype(np.float64)


def placements(labels, scores):
    """Of each row: the share of the other class that it beats, a tie counting half."""
    beats = (np.sign(scores[:, None] - scores[None, :]) + 1) / 2
    positive = labels > 0
    return np.where(positive, beats[:, ~positive].mean(axis=1), 1 - beats[:, positive].mean(axis=1))


def compared(labels, columns):
    """The AUC of each scorer on all rows but the first quarter, and how to get the error of a difference of two."""
    first = len(labels) // 4
    labels, columns = labels[first:], [column[first:] for column in columns]
    classes = [labels > 0, labels < 0]
    if min(mine.sum() for mine in classes) < 30:
        return None
    placed = [placements(labels, column) for column in columns]

    def error(i, j):
        gap = placed[i] - placed[j]
        return np.sqrt(sum(gap[mine].var(ddof=1) / mine.sum() for mine in classes))

    return np.array([one[classes[0]].mean() for one in placed]), error


def rule(labels, columns):
    """Of the scorers of the first rows, who leads, and by how much; as docs/learners/auto.md says it."""
    found = compared(labels, columns)
    if found is None:
        return 0, np.inf
    aucs, error = found
    worth = [one - error(i, 0) for i, one in enumerate(aucs)]
    order = np.argsort(worth)
    return int(order[-1]), worth[order[-1]] - worth[order[-2]]


def mixture(labels, columns):
    """By what the score of each scorer is multiplied, as docs/learners/auto.md says it."""
    leader, _ = rule(labels, columns)
    found, counts = compared(labels, columns), np.zeros(len(columns))
    counts[leader] = 1
    if found is None:
        return counts
    aucs, error = found
    for i, one in enumerate(aucs):
        if i != leader:
            behind = max(aucs[leader] - one, 0) / error(i, leader)
            counts[i] = max(0, 1 - behind**2 / 8) ** 4
    spread = np.array([column[len(labels) // 4 :].std() for column in columns])
    return counts / counts.sum() * spread[leader] / spread


def mixed(labels, columns, rows):
    """The scores of all rows under the mixture that is found on the first of them."""
    shares = mixture(labels[:rows], [column[:rows] for column in columns])
    return sum(share * column for share, column in zip(shares, columns, strict=True))


@pytest.fixture(scope="module")
def stream():
    """Rows on which the logistic loss ranks better, with ever shorter steps."""
    return random_block(2600, 2000, 10)


@pytest.fixture(scope="module")
def found(stream):
    """The scores of every setting's own Model."""
    return [Model(learner).learn(stream) for learner in CANDIDATES]


# -- the rule


def test_until_the_first_look_it_scores_as_the_default(stream, found):
    m = Model("auto")
    scores = m.learn(stream[:511])
    assert np.allclose(scores, found[0][:511], rtol=1e-5, atol=1e-5)
    assert m.leader == DEFAULT
    assert m.learner == Auto()
    assert m.chosen_by is None
    assert m.progress.auc == auc(stream.labels[:511], scores)


@pytest.mark.parametrize("rows", [512, 1024, 2048])
def test_after_512_rows_and_twice_as_many_each_time_it_compares_and_mixes_its_settings(stream, found, rows):
    expected, margin = rule(stream.labels[:rows], [column[:rows] for column in found])
    assert margin > 2e-6  # more than rounding can change
    m = Model("auto")
    m.learn(stream[: rows - 1])
    before = m.leader
    m.learn(stream[rows - 1 : rows])
    assert m.leader == CANDIDATES[expected]
    assert m.learner == Auto()
    shares = mixture(stream.labels[:rows], [column[:rows] for column in found])
    assert np.count_nonzero(shares) > 1
    assert np.allclose(m._engine.choice.shares, shares, atol=1e-3)
    scores = m.learn(stream[rows : rows + 300])  # nothing changes between two looks
    assert np.allclose(scores, mixed(stream.labels, found, rows)[rows : rows + 300], rtol=1e-3, atol=1e-3)
    assert m.leader == CANDIDATES[expected]
    last = rows // 2 if rows > 512 else 0  # when it looked before
    assert before == CANDIDATES[rule(stream.labels[:last], [column[:last] for column in found])[0]]


@pytest.mark.parametrize("rows", [700, 1024, 2048])
def test_after_its_rows_it_is_the_winner_with_the_weights_of_the_mixture(stream, found, rows):
    expected, margin = rule(stream.labels[:rows], [column[:rows] for column in found])
    assert margin > 2e-6
    m = Model(Auto(rows=rows))
    m.learn(stream[:rows])
    winner = CANDIDATES[expected]
    assert m.learner == m.leader == winner
    assert m.chosen_by == ChosenBy("auto", rows)
    state, _ = lane(winner, stream[:rows], slots=m._engine.state.slots)
    assert np.array_equal(m._engine.state.table[:, 1:], state.table[:, 1:])  # the roots and counts of its lane
    assert np.array_equal(m._engine.state.tally[:2], state.tally[:2])
    scores = mixed(stream.labels, found, rows)
    assert m.progress.auc == pytest.approx(auc(stream.labels[:rows], scores[:rows]), abs=1e-4)
    # Only features that both classes have alike may have a smaller weight than in the mixture: evidence.
    assert np.corrcoef(m.score(stream[rows:]), scored_by_all(stream, rows, stream[rows:]))[0, 1] > 0.999


def scored_by_all(stream, rows, others):
    """The scores that the mixture after the first rows gives to other rows."""
    models = [Model(learner) for learner in CANDIDATES]
    columns = [model.learn(stream[:rows]) for model in models]
    shares = mixture(stream.labels[:rows], columns)
    return sum(share * model.score(others) for share, model in zip(shares, models, strict=True))


def test_fewer_settings_continue_and_then_one(stream):
    with hasty(), short_plan(cut=64):
        m = Model(Auto(rows=300))
        m.learn(stream[:63])
        assert len(m._engine.candidates) == len(CANDIDATES)
        m.learn(stream[63:64])
        assert len(m._engine.candidates) == 8
        assert m._engine.candidates[0] == DEFAULT
        assert set(m._engine.candidates) <= set(CANDIDATES)
        assert m.leader in m._engine.candidates
        before = m.progress.auc
        m.learn(stream[64:299])
        assert m.learner == Auto(rows=300)
        m.learn(stream[299:300])
        assert m.learner in CANDIDATES
        assert m.chosen_by == ChosenBy("auto", 300)
        assert before != m.progress.auc


@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize(("keep", "kept"), [(1, 8), (3, 8), (8, 8), (12, 12)])
def test_some_of_the_settings_that_continue_have_a_half_life(stream, keep, kept, evidence):
    """The best one without evidence, whose counts do not fade, has both; the leader, if it has evidence, the shorter."""
    plan = RacePlan(CANDIDATES, 300, keep, cut=64, half_lives=(2.0**16, 2.0**18))
    order = sorted(range(len(CANDIDATES)), key=lambda i: bool(CANDIDATES[i].settings.get("evidence")) != evidence)
    chosen = Choice.alone(order[0], len(CANDIDATES))._replace(order=order)
    with hasty(WINDOW=64), patch.object(Auto, "race_plan", lambda self: plan):
        m = Model(Auto(rows=300, keep=keep))
        with patch.object(race, "choose", lambda *_: chosen):
            m.learn(stream[:64])
        best = [one for one in m._engine.candidates if not one.settings.get("half_life")]
        copies = [one for one in m._engine.candidates if one not in best]
        assert len(best) == kept - (3 if evidence else 2)
        assert best[0] == DEFAULT
        copied = next(CANDIDATES[i] for i in order if not CANDIDATES[i].settings.get("evidence"))
        expected = [(copied, 2.0**16), (copied, 2.0**18), *([(CANDIDATES[order[0]], 2.0**16)] if evidence else [])]
        assert copies == [dataclasses.replace(one, half_life=rows) for one, rows in expected]
        again = Model.from_bytes(m.to_bytes())
        for one in (m, again):
            one.learn(stream[64:600])
        assert same(m, again)
        assert len(m._engine.candidates) == keep
        if keep >= 8:  # they go on, and no others join them
            assert m._engine.candidates[-len(copies) :] == copies
        else:
            m.finish_race()
            assert m.learner.name in ("dual-auc", "dual-logistic", "ftrl-proximal")


def test_with_keep_scores_have_the_spread_of_the_defaults():
    """So that scores before and after a change of leader can be compared."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(4000) < 0.5, 1, -1).astype(np.int8)
    scores = (labels[:, None] + rng.normal(size=(4000, 3))) * np.array([1.0, 20.0, 0.05])
    scores[:, 0] += 2 * rng.normal(size=4000)  # the default ranks worst
    scores = scores.astype(np.float32)
    standings = Standings(labels, scores)
    own, other = choose(standings, scores), choose(standings, scores, 0)
    assert own.leader == other.leader != 0
    spread = scores.std(axis=0)
    np.testing.assert_allclose(own.shares, other.shares * spread[own.leader] / spread[0], rtol=1e-5)
    with hasty(), patch.object(race, "choose", wraps=choose) as called:
        rows = random_block(200, 40, 4)
        for keep, like in ((1, None), (3, 0)):
            m = Model(Auto(rows=10_000, keep=keep))
            m.learn(rows)
            assert {call.args[2] for call in called.call_args_list} == {like}
            called.reset_mock()
            m.finish_race()  # the leader goes on alone, and with scores of its own size
            assert [call.args[2] for call in called.call_args_list] == [None]
            called.reset_mock()


LOOKS = {"FIRST_LOOK": Schedule(512, 2), "LATER_LOOK": Schedule(512, 2), "MIN_CLASS_ROWS": 30}


def test_a_race_that_is_decided_ends_early(stream):
    decided = [one.decided for one in _choices(stream, 2048)]
    with hasty(**LOOKS), short_plan(cut=512, early=512):
        m = Model(Auto(rows=2048))
        m.learn(stream[:2048])
    ends = [rows for rows, ready in zip((512, 1024, 2048), decided, strict=True) if ready or rows == 2048]
    assert m.chosen_by == ChosenBy("auto", ends[0])
    with (
        hasty(**LOOKS),
        short_plan(cut=512, early=512),
        patch.object(race, "choose", lambda *found: _decided(choose(*found))),
    ):
        m = Model(Auto(rows=2048))
        m.learn(stream[:2048])
        assert m.chosen_by == ChosenBy("auto", 512)
        m = Model(Auto(rows=2048, keep=3))  # which never ends
        m.learn(stream[:2048])
        assert m.chosen_by is None


def _choices(stream, rows):
    """What a race that does not end early chooses at each comparison."""
    found = []

    def chosen(*compared):
        found.append(choose(*compared))
        return found[-1]

    with hasty(**LOOKS), short_plan(cut=512), patch.object(race, "choose", chosen):
        Model(Auto(rows=rows)).learn(stream[:rows])
    return found


def _decided(choice: Choice) -> Choice:
    return choice._replace(decided=True)


def test_a_choice_is_decided_where_at_most_two_settings_are_close(found, stream):
    for choice in _choices(stream, 2048):
        assert choice.decided == (np.count_nonzero(choice.shares) <= 2)
    assert not Choice.alone(0, 24).decided  # which is also the choice where a class has too few rows


@pytest.mark.parametrize(("features", "kept_after"), [(10, 16), (200, 32), (2000, 512)])
def test_many_features_cut_the_number_of_settings_sooner(stream, features, kept_after):
    """At the first comparison from row 16 on at which there are more than so many; without many, at row 512."""
    with hasty(MANY_FEATURES=features), short_plan(cut=512, cut_wide=16):
        m = Model("auto")
        while len(m._engine.candidates) == 24:
            m.learn(stream[m.rows : m.rows + 1])
            if m.rows == 10:
                m = Model.from_bytes(m.to_bytes())
    assert m.rows == kept_after
    assert len(m._engine.candidates) == 8


@pytest.mark.parametrize("close", [False, True])
def test_with_many_features_a_race_ends_where_no_setting_is_likely_to_be_much_better(stream, close):
    with (
        hasty(MANY_FEATURES=10),
        short_plan(cut=512, cut_wide=16),
        patch.object(race, "choose", lambda *found: choose(*found)._replace(close=close)),
    ):
        m, kept = Model("auto"), Model(Auto(keep=3))
        for one in (m, kept):
            one.learn(stream[:100])
        assert m.chosen_by == (ChosenBy("auto", 16) if close else None)
        assert len(kept._engine.candidates) == 8  # which never ends
    everything_close = patch.object(race, "choose", lambda *found: choose(*found)._replace(close=True))
    with hasty(), short_plan(cut=512, cut_wide=16), everything_close:
        m = Model("auto")
        m.learn(stream[:100])  # whose features are not many
        assert m.chosen_by is None


def test_a_choice_is_close_where_no_other_setting_is_likely_to_rank_much_better():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(4000) < 0.5, 1, -1).astype(np.int8)
    good = (labels + rng.normal(size=4000)).astype(np.float32)
    worse, other = (good + rng.normal(size=4000) * noise for noise in (2, 0.5))
    for columns in [(good, worse), (good, other), (other, good), (worse, good), (good, -worse)]:
        scores = np.column_stack(columns).astype(np.float32)
        standings = Standings(labels, scores)
        choice = choose(standings, scores)
        ahead = standings.aucs - standings.aucs[choice.leader] + standings.errors(choice.leader)
        assert choice.close == (ahead < LITTLE).all()
    assert not Choice.alone(0, 24).close


def test_the_settings_that_are_kept_are_the_best(stream, found):
    rows = 1024
    aucs, error = compared(stream.labels[:rows], [column[:rows] for column in found])
    worth = np.array([one - error(i, 0) for i, one in enumerate(aucs)])
    others = [i for i in np.argsort(-worth) if i != 0][:7]
    with short_plan(cut=rows):
        m = Model("auto")
        m.learn(stream[:rows])
    assert m._engine.candidates == [CANDIDATES[i] for i in sorted([0, *others])]


def test_with_keep_the_race_never_ends_and_follows_the_latest_rows(stream):
    with hasty(WINDOW=128), short_plan(cut=64):
        m = Model(Auto(rows=300, keep=3))
        leaders = []
        for start in range(0, 2600, 100):
            m.learn(stream[start : start + 100])
            leaders.append(m.leader)
        assert len(m._engine.candidates) == 3
        assert m.learner == Auto(rows=300, keep=3)
        assert m.chosen_by is None
        assert 128 <= m._engine._latest.count <= 256
        assert m.progress.n_pos + m.progress.n_neg <= 128 + 100 + 128
        whole = Model(Auto(rows=300, keep=3))
        whole.learn(stream)  # the rows that are kept are replaced many times meanwhile
        assert same(m, whole)
        again = Model.from_bytes(m.to_bytes())
        for one in (m, again):
            one.learn(stream[:500])
        assert same(m, again)
        m.finish_race()
    assert m.learner in CANDIDATES
    assert len(set(leaders)) > 1


def test_rows_of_the_larger_class_are_thinned_before_settings_are_compared():
    labels = np.full(10_000, -1, np.int8)
    labels[::100] = 1
    for sign in (1, -1):
        at = _thinned(labels * np.int8(sign))
        assert np.count_nonzero(labels[at] == 1) == 100
        assert 400 <= np.count_nonzero(labels[at] == -1) <= 500
        assert (np.diff(at) > 0).all()
    assert len(_thinned(np.tile(np.int8([1, -1]), 40_000))) == 1 << 15  # the latest
    assert len(_thinned(np.zeros(0, np.int8))) == 0


def test_the_winner_ranks_better_than_the_default_on_rows_that_were_not_raced():
    """In the mean over streams: on one of them it is a matter of chance, too."""
    ahead = []
    for seed in range(1, 5):
        few = random_block(2600, 40, 4, seed=seed, share=0.5)  # features, all of them seen often
        auto, default = Model(Auto(rows=1024)), Model(DEFAULT)
        for model in (auto, default):
            model.learn(few[:1024])
        scores = [auc(few.labels[1024:], model.learn(few[1024:])) for model in (auto, default)]
        assert auto.learner != DEFAULT
        ahead.append(scores[0] - scores[1])
    assert np.mean(ahead) > 0.0005


@pytest.mark.parametrize(("count", "kept"), [(29, 0), (30, 5)])
def test_fewer_than_thirty_rows_of_a_class_keep_the_default(stream, count, kept):
    """Those of the first quarter do not count."""
    labels = stream.labels[:1024].copy()
    late = np.flatnonzero(labels[256:] > 0) + 256
    labels[late[count:]] = -1
    for swap in (1, -1):
        m = Model(Auto(rows=1024))
        with patch("rarestream.engines.race.choose", lambda *_: Choice.alone(5, 24)):
            m.learn(dataclasses.replace(stream[:1024], labels=labels * np.int8(swap)))
        assert m.learner == CANDIDATES[kept]
        assert m.chosen_by == ChosenBy("auto", 1024)


def test_rows_that_say_nothing_keep_the_default():
    m = Model(Auto(rows=512))
    m.learn(block_of([{}] * 512, [1, -1] * 256))
    assert m.learner == DEFAULT  # all rank alike
    m = Model("auto")
    m.learn(block_of([{}] * 600, [1, -1] * 300))
    assert m.leader == DEFAULT
    assert not m.score(block_of([{3: 1.0}])).any()


def test_progress_is_that_of_the_mixture(stream, found):
    m, last = Model("auto"), 0
    for stop in (100, 512, 700, 1024, 1500):
        m.learn(stream[m.rows : stop])
        last = stop if stop in (512, 1024) else last
        shares = m._engine.choice.shares
        scores = sum(share * column[:stop] for share, column in zip(shares, found, strict=True))
        assert m.progress.auc == pytest.approx(auc(stream.labels[:stop], scores), abs=1e-4)
        assert m.progress.n_pos + m.progress.n_neg == stop


@pytest.mark.parametrize(("scale", "logistic"), [("unit", True), ("max", False)])
def test_what_it_says_of_itself_is_of_the_mixture(stream, scale, logistic):
    m = Model("auto", scale=scale, calibrate=False)
    with patch("rarestream.engines.race.choose", lambda *found: mixture_of(0 if logistic else 10)):
        m.learn(stream[:600])
    assert m.leader.loss_is_logistic == logistic
    states = [lane(learner, stream[:600], scale)[0] for learner in CANDIDATES]
    shares = m._engine.choice.shares
    tallies = [learner.tally(state) for learner, state in zip(CANDIDATES, states, strict=True)]

    def mix(numbers):
        return sum(share * number for share, number in zip(shares, numbers, strict=True))

    thresholds = [learner.threshold(tally) for learner, tally in zip(CANDIDATES, tallies, strict=True)]
    means = (mix([tally["b"] for tally in tallies]), mix([tally["a"] for tally in tallies]))
    assert m.class_means == pytest.approx(means)
    assert m.threshold == pytest.approx(mix(thresholds) if logistic else sum(means) / 2)
    assert m.intercept == pytest.approx(-mix(thresholds) if logistic else 0)
    weights = [
        learner.kernel().weights(state, 0, stream.width) for learner, state in zip(CANDIDATES, states, strict=True)
    ]
    assert np.allclose(m.weights().weight, mix(weights), rtol=1e-6, atol=1e-7)
    assert np.array_equal(m.weights().largest, states[0].largest) or scale == "unit"


def mixture_of(leader):
    """A mixture of all settings, in different shares."""
    return Choice(leader, np.linspace(0.01, 0.09, 24), [leader, *(i for i in range(24) if i != leader)])


def test_it_scores_as_its_weights_say(stream):
    """Bit for bit what it says when the row is learned; to rounding what its weights say."""
    for scale in SCALES:
        m = Model("auto", scale=scale)
        m.learn(stream[:600])
        assert m._engine.choice.is_mixture
        scores = m.score(stream[600:])
        again = Model.from_bytes(m.to_bytes())
        assert np.array_equal(again.score(stream[600:]), scores)
        assert np.array_equal(m.score(stream[1000:1001]), scores[400:401])
        slim = Model.from_bytes(m.to_bytes("scoring"))
        assert np.allclose(slim.score(stream[600:]), scores, rtol=1e-4, atol=1e-4)
        assert m.learn(stream[600:601])[0] == scores[0]


def test_a_leader_alone_scores_as_its_model(stream):
    for scale in SCALES:
        m = Model("auto", scale=scale)
        with patch("rarestream.engines.race.choose", lambda *_: Choice.alone(5, 24)):
            m.learn(stream[:600])
        assert m.leader == CANDIDATES[5]
        state, _ = lane(m.leader, stream[:600], scale)
        expected = np.empty(2000)
        m.leader.kernel().score(state, stream[600:], SCALES.index(scale), expected)
        assert np.array_equal(m.score(stream[600:]), expected)


# -- one stream, however it comes


any_race = given(
    block=blocks(max_rows=60, importances=True),
    rows=st.integers(1, 60),
    keep=st.sampled_from([1, 1, 5, 8]),
    scale=st.sampled_from(SCALES[1:]),
    dtype=st.sampled_from(["float32", "float64"]),
    data=st.data(),
)


@any_race
@settings(max_examples=examples(60))
def test_where_a_block_is_cut_does_not_matter(block, rows, keep, scale, dtype, data):
    limits = {"WINDOW": 16, "MANY_FEATURES": data.draw(st.sampled_from([10, 1 << 18]))}
    limits["THREAD_NUMBERS"] = data.draw(st.sampled_from([0, 1 << 19]))
    with hasty(**limits), short_plan(cut=20, cut_wide=8, early=24):
        whole, parts, singly = (Model(Auto(rows=rows, keep=keep), dtype=dtype, scale=scale) for _ in range(3))
        scores = whole.learn(block)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(block)), max_size=4)))
        pieces = [parts.learn(block[a:b]) for a, b in zip([0, *cuts], [*cuts, len(block)], strict=True)]
        found = []
        for i in range(len(block)):
            at = slice(block.indptr[i], block.indptr[i + 1])
            label, importance = int(block.labels[i]), block.importances[i]
            found.append(singly.learn_one(block.indices[at], block.values[at], label, importance))
        assert np.array_equal(scores, np.concatenate(pieces))
        assert np.array_equal(scores, found)
        assert same(whole, parts)
        assert same(whole, singly)


@any_race
@settings(max_examples=examples(60))
def test_save_load_continue_equals_continue(block, rows, keep, scale, dtype, data):
    cut = data.draw(st.integers(0, len(block)))
    limits = {"WINDOW": 16, "MANY_FEATURES": data.draw(st.sampled_from([10, 1 << 18]))}
    with hasty(**limits), short_plan(cut=20, cut_wide=8, early=24):
        going, stopped = (Model(Auto(rows=rows, keep=keep), dtype=dtype, scale=scale) for _ in range(2))
        going.learn(block)
        stopped.learn(block[:cut])
        saved = stopped.to_bytes()
        stopped = pickle.loads(pickle.dumps(Model.from_bytes(saved)))
        assert stopped.to_bytes() == saved
        stopped.learn(block[cut:])
        assert same(going, stopped)


def test_whether_all_settings_would_take_much_memory_is_as_before_in_a_race_that_was_loaded_after_its_cut():
    with hasty(MANY_FEATURES=10), short_plan(cut=20, cut_wide=8):
        model = Model("auto")
        model.learn(random_block(10, 40, 5))
        assert len(model.candidates) == 8
        assert model._engine._is_wide
        assert Model.from_bytes(model.to_bytes())._engine._is_wide


@given(block=blocks(max_rows=60, importances=True), rows=st.integers(1, 40))
@settings(max_examples=examples(40))
def test_a_row_of_importance_zero_is_absent(block, rows):
    with hasty():
        weighted, kept = Model(Auto(rows=rows), scale="max"), Model(Auto(rows=rows), scale="max")
        weighted.learn(block)
        kept.learn(block.take(np.flatnonzero(block.importances)))
    assert (weighted.learner, weighted.leader) == (kept.learner, kept.leader)
    assert np.array_equal(weighted.coef, kept.coef)
    assert np.array_equal(weighted._engine.tally, kept._engine.tally)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(weighted.progress.state().values(), kept.progress.state().values(), strict=False)
    )


@pytest.mark.filterwarnings("ignore::rarestream.SettingsDroppedWarning")  # where rows are not scaled, they may
@given(block=blocks(max_rows=40, importances=True), scale=st.sampled_from(SCALES))
@settings(max_examples=examples(25))
def test_every_machine_gives_the_same_bits(block, scale):
    chosen, found = isa(), []
    try:
        for path in {"portable", chosen}:
            set_isa(path)
            with hasty(), short_plan(cut=16):
                m = Model(Auto(rows=30), scale=scale)
                found.append((m.learn(block).tobytes(), m.score(block).tobytes(), m.to_bytes()))
    finally:
        set_isa(chosen)
    assert all(one == found[0] for one in found)


def test_score_changes_nothing(stream):
    m = Model("auto")
    m.learn(stream[:600])
    before = m.to_bytes()
    m.score(stream)
    m.score(block_of([{50_000_000: 1.0}]))  # a feature too far to be raced
    assert m.to_bytes() == before


def test_settings_that_cannot_learn_a_row_drop_out_and_the_others_continue(stream):
    """Without a power or evidence, larger steps fit: such settings learn the row, most others cannot."""
    m, twin = (Model("auto", scale="none") for _ in range(2))
    m.learn(stream[:500])
    twin.learn(stream[:500])
    large = block_of([{0: 1e5}], [1])
    with pytest.warns(
        SettingsDroppedWarning, match=r"^auto: \d+ of 24 settings dropped out, the others continue: a row"
    ):
        m.learn(concatenate([stream[500:520], large, stream[520:540]]))
    assert 1 < len(m._engine.candidates) < 24
    assert {learner for learner in CANDIDATES if learner.name == "ftrl-proximal"} <= set(m._engine.candidates)
    assert m.rows == 541
    twin.learn(stream[500:520])
    with pytest.warns(SettingsDroppedWarning):
        twin.learn(large)
    twin.learn(stream[520:540])
    assert same(m, twin)
    again = Model.from_bytes(m.to_bytes())
    for one in (m, again):
        one.learn(stream[540:700])
    assert same(m, again)
    m.finish_race()
    assert m.rows == 701


@pytest.mark.filterwarnings("ignore::rarestream.SettingsDroppedWarning")
@given(
    block=blocks(max_rows=40, importances=True),
    large=st.dictionaries(st.integers(0, 39), st.sampled_from([1e4, 1e5, 1e7, 1e30]), max_size=4),
    sealed=st.booleans(),
)
@settings(max_examples=examples(60))
def test_a_row_that_some_or_all_settings_refuse_leaves_no_trace_in_these(block, large, sealed):
    """Though rows after it were counted by then, beside those that were learned."""
    values = block.values.copy()
    for row, size in large.items():
        if row < len(block) and block.indptr[row + 1] > block.indptr[row]:
            values[block.indptr[row]] = size
    together = Block.of((block.indptr, block.indices.copy(), values), block.labels, block.importances)
    if not sealed:
        together = Block.of((block.indptr.copy(), block.indices.copy(), values), block.labels, block.importances)
        together = dataclasses.replace(together, indices=together.indices.copy())
    assert together.sealed == sealed
    # Of the width of all rows from the start: what a refused row would have added does not count.
    at_once, singly = (Model(Auto(rows=1000), scale="none", n_features=together.width) for _ in range(2))
    with hasty(THREAD_NUMBERS=0):
        first = 0
        while first < len(together):
            try:
                at_once.learn(together[first:])
                break
            except DataError as error:
                first += int(re.search(r"row (\d+) of the block", str(error))[1]) + 1
        for row in range(len(together)):
            with suppress(DataError):
                singly.learn(together[row : row + 1])
    assert same(at_once, singly)


def test_where_the_leader_drops_out_the_next_best_leads_also_after_a_file(stream):
    m = Model("auto", scale="none")
    m.learn(stream[:600])
    order = [m._engine.candidates[number] for number in m._engine.choice.order]
    assert order[0] == m.leader
    again = Model.from_bytes(m.to_bytes())
    for one in (m, again):
        with pytest.warns(SettingsDroppedWarning):
            one.learn(block_of([{0: 1e5}], [1]))
        assert order[0] not in one.candidates
        assert one.leader == next(learner for learner in order if learner in one.candidates)
    assert same(m, again)


def test_a_row_too_large_to_learn_is_named_and_the_race_goes_on(stream):
    m, twin = Model("auto", scale="none"), Model("auto", scale="none")
    m.learn(stream[:500])
    twin.learn(stream[:500])
    mixed = concatenate([stream[500:520], block_of([{0: 1e30}], [1]), stream[520:540]])
    with pytest.raises(DataError, match=r"row 20 of the block.*The 20 rows before it were learned"):
        m.learn(mixed)
    twin.learn(stream[500:520])
    assert same(m, twin)
    for one in (m, twin):
        one.learn(stream[520:540])
    assert same(m, twin)


# -- ends before its time


def test_finish_race_chooses_the_best_so_far(stream, found):
    expected, margin = rule(stream.labels[:900], [column[:900] for column in found])
    assert margin > 2e-6
    m = Model("auto")
    m.learn(stream[:900])
    m.finish_race()
    assert m.learner == CANDIDATES[expected]
    assert m.chosen_by == ChosenBy("auto", 900)
    assert m.progress.n_pos + m.progress.n_neg == 900
    before = m.to_bytes()
    m.finish_race()
    assert m.to_bytes() == before
    assert Model.from_bytes(before).chosen_by == m.chosen_by


def test_finish_race_changes_nothing_where_nothing_is_raced(stream):
    m = Model("dual-logistic")
    m.learn(stream[:100])
    slim = Model.from_bytes(m.to_bytes("scoring"))
    for one, kind in ((m, "resumable"), (slim, "scoring")):
        before = one.to_bytes(kind)
        one.finish_race()
        assert one.to_bytes(kind) == before
        assert one.chosen_by is None


def test_rows_that_come_again_are_not_raced(stream):
    m, twin = Model("auto"), Model("auto")
    for one in (m, twin):
        one.learn(stream[:900])
    m.learn(stream[:900], again=True)
    twin.finish_race()
    twin.learn(stream[:900], again=True)
    assert same(m, twin)
    assert m.chosen_by == ChosenBy("auto", 900)
    assert m.progress.n_pos + m.progress.n_neg == 900


@given(
    block=blocks(max_rows=40, importances=True),
    most=st.integers(0, 20),
    scale=st.sampled_from(SCALES[1:]),
    dtype=st.sampled_from(["float32", "float64"]),
    data=st.data(),
)
@settings(max_examples=examples(40))
def test_more_features_than_can_be_raced_end_the_race_before_their_row(block, most, scale, dtype, data):
    seen: set[int] = set()
    row = len(block)
    for i, (features, _) in enumerate(_rows(block)):
        seen |= set(features)
        if len(seen) > most:
            row = i
            break
    whole, parts, expected = (Model("auto", dtype=dtype, scale=scale) for _ in range(3))
    with hasty(MAX_BYTES=200 * (UNSEEN + most + SPARE), WIDTH=24):  # no cut to eight on the way
        scores = whole.learn(block)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(block)), max_size=3)))
        for a, b in zip([0, *cuts], [*cuts, len(block)], strict=True):
            parts.learn(block[a:b])  # as wide as the whole, whatever its rows hold
    with hasty():
        before = expected.learn(block[:row])
        if row < len(block):
            expected.finish_race()
        after = expected.learn(block[row:])
        assert np.array_equal(scores, np.concatenate([before, after]))
        assert same(whole, parts)
        assert same(whole, expected)
    assert whole.chosen_by == (ChosenBy("auto", row) if row < len(block) else None)


def test_where_memory_ends_fewer_settings_continue(stream):
    m = Model("auto")
    with hasty(MAX_BYTES=200 * (UNSEEN + 500 + SPARE)):  # 24 settings of 500 features, or eight of more
        m.learn(stream[:5])
        assert len(m._engine.candidates) == 24
        while len(m._engine.candidates) == 24:
            m.learn(stream[m.rows : m.rows + 1])
        assert len(m._engine.candidates) == 8
        assert m._engine.compact.used > 490
        while m.learner == Auto():
            m.learn(stream[m.rows : m.rows + 1])
        assert m._engine.state.table.any(axis=1).sum() > 1300


def test_features_are_raced_however_large_their_indices_are(stream):
    """Only features that were seen have a coordinate: the race is that of the same rows with small indices."""
    far = np.sort(np.random.default_rng(3).choice(2**30, stream.width, replace=False)).astype(np.int32)
    wide = Block.of((stream.indptr, far[stream.indices], stream.values), stream.labels)
    near, there = Model("auto"), Model("auto")
    assert np.array_equal(near.learn(stream[:1500]), there.learn(wide[:1500]))
    again = Model.from_bytes(there.to_bytes())
    assert near.leader == there.leader == again.leader
    assert np.array_equal(near.score(stream), again.score(wide))
    assert len(there.to_bytes()) < 1.1 * len(near.to_bytes())


def test_a_file_with_more_features_than_can_be_raced_is_refused(stream):
    m = Model("auto")
    m.learn(stream[:600])
    saved = m.to_bytes()
    with hasty(MAX_BYTES=200 * 100), pytest.raises(ModelFileError, match="more than can be raced"):
        Model.from_bytes(saved, "many.rare")


def _rows(block):
    for i in range(len(block)):
        at = slice(block.indptr[i], block.indptr[i + 1])
        yield block.indices[at].tolist(), block.values[at].tolist()


@pytest.mark.parametrize("scale", ["unit", "max"])
def test_room_for_more_features_than_can_be_raced_changes_nothing(scale, stream):
    plain = Model("auto", scale=scale)
    with hasty(MAX_BYTES=200 * 2100):
        roomy = Model("auto", scale=scale, n_features=5000)
        wide = block_of([{0: 1.0, 4999: 1.0, 2450: 3.0}, {5: 2.0}])
        for m in (plain, roomy):
            m.learn(stream[:700])
        assert all(group.slots <= 2100 for group in roomy._engine._groups)
        assert roomy.leader == plain.leader
        assert np.array_equal(roomy.score(wide), plain.score(wide))
        assert np.array_equal(roomy.coef[:2000], plain.coef)
        assert not roomy.coef[2000:].any()
        again = Model.from_bytes(roomy.to_bytes())
        assert same(again, roomy)
        slim = Model.from_bytes(roomy.to_bytes("scoring"))
        assert np.allclose(slim.score(wide), roomy.score(wide), rtol=1e-5)
        for m in (plain, roomy, again):
            m.finish_race()
            m.learn(stream[700:])
    assert same(again, roomy)
    assert np.array_equal(roomy.coef[:2000], plain.coef)
    assert len(roomy.coef) == 5000


# -- files


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_file_for_scoring_is_that_of_the_leader(stream, scale, dtype):
    m = Model("auto", scale=scale, dtype=dtype)
    m.learn(stream[:600])
    slim = Model.from_bytes(m.to_bytes("scoring"))
    assert slim.learner == slim.leader == m.leader
    assert slim.chosen_by == ChosenBy("auto", 600)
    assert np.allclose(slim.score(stream), m.score(stream), rtol=1e-4, atol=1e-4)
    assert (slim.threshold, slim.intercept, slim.metrics) == (m.threshold, m.intercept, m.metrics)
    assert m.chosen_by is None  # which goes on
    assert m.learner == Auto()


def test_a_racing_model_is_cut_to_size(stream):
    m = Model("auto")
    m.learn(stream[:600])
    small = m.prune(nonzeros=20)
    assert (small.nonzeros, small.kind, small.pruned_from) == (20, "scoring", m.nonzeros)
    assert small.learner == m.leader
    assert small.chosen_by == ChosenBy("auto", 600)
    kept = np.flatnonzero(small.coef)
    assert np.array_equal(small.coef[kept], m.coef[kept])
    lossy = m.prune(auc_loss=0.02, on=stream[600:1200])
    assert lossy.nonzeros < m.nonzeros


HOSTILE = {
    "NaN": lambda h, a: a["z0"].__setitem__((0, 3), np.nan),
    "negative root": lambda h, a: a["n16"].__setitem__((0, 7), -1),
    "too few lanes": lambda h, a: a.update(z16=a["z16"][:, :4].copy()),
    "lanes of float64": lambda h, a: a.update(z0=a["z0"].astype(np.float64)),
    "missing lanes": lambda h, a: a.pop("n0"),
    "lanes in a line": lambda h, a: a.update(z0=a["z0"].ravel()),
    "more rows than are raced": lambda h, a: h["learner"]["settings"].update(rows=500),
    "as many rows as are raced": lambda h, a: h["learner"]["settings"].update(rows=600),
    "negative rows raced": lambda h, a: a["tally"].__setitem__(len(TALLY), -1.0),
    "half a row raced": lambda h, a: a["tally"].__setitem__(len(TALLY), 599.5),
    "fewer rows raced than kept": lambda h, a: a["tally"].__setitem__(len(TALLY), 599.0),
    "no such leader": lambda h, a: a["tally"].__setitem__(len(TALLY) + 1, 24.0),
    "half a leader": lambda h, a: a["tally"].__setitem__(len(TALLY) + 1, 0.5),
    "negative leader": lambda h, a: a["tally"].__setitem__(len(TALLY) + 1, -1.0),
    "short tally": lambda h, a: a.update(tally=a["tally"][: len(TALLY)].copy()),
    "negative counts": lambda h, a: a["positives"].__setitem__(3, -1.0),
    "missing counts": lambda h, a: a.pop("negatives"),
    "shares of fewer settings": lambda h, a: a.update({"more.shares": a["more.shares"][:8].copy()}),
    "a negative share": lambda h, a: a["more.shares"].__setitem__(1, -0.5),
    "a leader without a share": lambda h, a: a["more.shares"].__setitem__(slice(None), 0.0),
    "an order of fewer settings": lambda h, a: a.update({"more.order": a["more.order"][:8].copy()}),
    "an order with a setting twice": lambda h, a: a["more.order"].__setitem__(-1, a["more.order"][-2]),
    "an order without the leader first": lambda h, a: a.update({"more.order": a["more.order"][::-1].copy()}),
    "a mixture without an order": lambda h, a: a.pop("more.order"),
    "short means": lambda h, a: a.update({"more.means": a["more.means"][:3].copy()}),
    "infinite means": lambda h, a: a["more.means"].__setitem__((0, 0), np.inf),
    "missing scores": lambda h, a: a.pop("more.scores"),
    "NaN scores": lambda h, a: a["more.scores"].__setitem__((5, 5), np.nan),
    "scores of float64": lambda h, a: a.update({"more.scores": a["more.scores"].astype(np.float64)}),
    "scores of fewer lanes": lambda h, a: a.update({"more.scores": a["more.scores"][:, :8].copy()}),
    "scores of fewer rows": lambda h, a: a.update({"more.scores": a["more.scores"][1:].copy()}),
    "a label of zero": lambda h, a: a["more.labels"].__setitem__(0, 0),
    "labels of int64": lambda h, a: a.update({"more.labels": a["more.labels"].astype(np.int64)}),
    "an importance of zero": lambda h, a: a["more.importances"].__setitem__(0, 0.0),
    "a negative importance": lambda h, a: a["more.importances"].__setitem__(0, -1.0),
    "a race of nothing": lambda h, a: h["learner"]["settings"].update(rows=0),
    "a race without end": lambda h, a: h["learner"]["settings"].update(rows=2**41),
    "a race that keeps none": lambda h, a: h["learner"]["settings"].update(keep=0),
    "a feature that comes twice": lambda h, a: a["index"].__setitem__(1, a["index"][0]),
    "features that do not ascend": lambda h, a: a["index"].__setitem__(0, a["index"][1] + 1),
    "a race for scoring only": lambda h, a: (
        h.update(kind="scoring"),
        a.update(weight=a["z0"][:, 0].copy(), tally=a["tally"][: len(TALLY)].copy()),
    ),
    "candidates that cannot race": lambda h, a: h.update(candidates=[{"name": "spam", "settings": {}}]),
    "candidates that are no learners": lambda h, a: h.update(candidates=[{"name": "nobody", "settings": {}}]),
    "no candidates": lambda h, a: h.update(candidates=[]),
    "other candidates than lanes": lambda h, a: h.update(candidates=h["candidates"][:3]),
    "candidates that are a number": lambda h, a: h.update(candidates=7),
    "chosen by nobody": lambda h, a: h.update(chosen_by={}),
    "chosen on fewer than no rows": lambda h, a: h.update(chosen_by={"name": "auto", "rows": -1}),
    "chosen by a number": lambda h, a: h.update(chosen_by=3),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_with_a_right_checksum_is_refused(what, stream):
    m = Model("auto")
    m.learn(stream[:600])
    header, arrays = modelfile.from_bytes(m.to_bytes())
    arrays = {name: array.copy() for name, array in arrays.items()}
    HOSTILE[what](header, arrays)
    with pytest.raises(ModelFileError, match="evil.rare: "):
        Model.from_bytes(modelfile.to_bytes(header, arrays), "evil.rare")


# -- the rest


def test_one_thread_learns_or_many_score(stream):
    m = Model("auto")
    m.learn(stream[:100])
    assert m._gate.begin_scoring()
    try:
        m.score(stream[:10])
        for busy in (lambda: m.learn(stream[:10]), m.finish_race):
            with pytest.raises(ModelBusyError):
                busy()
    finally:
        m._gate.end_scoring()
    m.finish_race()
    assert m.rows == 100


def test_a_table_starts_on_a_cache_line(stream):
    m = Model("auto")
    for stop in (1, 20, 300):
        m.learn(stream[m.rows : stop])
        assert all(group.state.table.ctypes.data % 64 == 0 for group in m._engine._groups)


@pytest.mark.parametrize("keep", [0, 17, 1.5])
def test_how_many_settings_are_kept_is_checked(keep):
    with pytest.raises(ValueError, match="Auto: keep must be a"):
        Auto(keep=keep)


@pytest.mark.parametrize("rows", [0, -1, 2.5, 2**41, "many"])
def test_how_many_rows_are_raced_is_checked(rows):
    with pytest.raises(ValueError, match="Auto: rows must be a"):
        Auto(rows=rows)


def test_a_learner_that_races_nothing_has_no_race_to_finish(stream):
    for learner in (DEFAULT, FtrlAuc(), make_learner("spauc")):
        m = Model(learner)
        m.learn(stream[:50])
        before = m.to_bytes()
        m.finish_race()
        assert m.leader == m.learner == learner
        assert m.to_bytes() == before


# -- the settings that race stand in the file


def test_a_file_names_the_settings_that_race(stream):
    m = Model("auto")
    m.learn(stream[:600])
    header, _ = modelfile.from_bytes(m.to_bytes())
    assert [make_learner(one["name"], **one["settings"]) for one in header["candidates"]] == CANDIDATES
    m.finish_race()
    assert "candidates" not in modelfile.from_bytes(m.to_bytes())[0]


def test_a_race_goes_on_with_the_settings_of_its_file_whatever_this_version_races(stream):
    whole = Model("auto")
    whole.learn(stream[:600])
    data = whole.to_bytes()
    whole.learn(stream[600:])
    whole.finish_race()
    others = [DualAveraging(learning_rate=0.01), FtrlAuc(learning_rate=0.5)]
    with patch.object(Auto, "candidates", staticmethod(lambda: others)):
        new = Model("auto")
        new.learn(stream[:600])
        assert new.leader in others
        again = Model.from_bytes(data)
        again.learn(stream[600:])
        again.finish_race()
    assert same(again, whole)
    resumed = Model.from_bytes(new.to_bytes())  # by a version that knows nothing of these settings
    assert resumed.leader == new.leader
    resumed.learn(stream[600:])
    new.learn(stream[600:])
    assert same(resumed, new)


def test_files_of_the_first_version_are_read(stream):
    """They name no settings, mix none and end after 16,384 rows."""
    with patch.object(Auto, "candidates", staticmethod(Auto.first_candidates)):
        m = Model(Auto(rows=16384))
        m.learn(stream[:600])
    header, arrays = modelfile.from_bytes(m.to_bytes())
    del header["candidates"], arrays["more.shares"], arrays["more.order"], header["learner"]["settings"]["keep"]
    old = Model.from_bytes(modelfile.to_bytes(header, arrays))
    assert old._engine.candidates == Auto.first_candidates()
    assert old.learner == Auto(rows=16384)
    assert old.leader == m.leader
    assert not old._engine.choice.is_mixture
    for one in (old, m):
        one.learn(stream[600:])  # it looks again, and mixes
    assert same(old, m)


# -- with a budget


def test_with_a_budget_the_race_is_of_settings_that_have_it(stream):
    m, alone = Model(Auto(budget=30, rows=1024)), [Model(learner) for learner in Auto.small_candidates(30)]
    scores = m.learn(stream[:511])
    columns = [model.learn(stream[:1024]) for model in alone]
    assert np.array_equal(scores, columns[0][:511])
    assert m.leader == Auto.small_candidates(30)[0]
    m.learn(stream[511:1024])
    expected, margin = rule(stream.labels[:1024], columns)
    assert margin > 2e-6
    assert m.learner == Auto.small_candidates(30)[expected]
    assert m.chosen_by == ChosenBy("auto", 1024)
    assert m.nonzeros <= 30
    assert m._engine.state.table.tobytes() == alone[expected]._engine.state.table.tobytes()
    assert m.progress.auc == pytest.approx(auc(stream.labels[:1024], columns[expected]), abs=1e-6)


@given(
    block=blocks(max_rows=60, importances=True),
    rows=st.integers(1, 60),
    scale=st.sampled_from(SCALES[1:]),
    dtype=st.sampled_from(["float32", "float64"]),
    cut=st.integers(0, 60),
)
@settings(max_examples=examples(40))
def test_a_race_with_a_budget_is_one_stream_however_it_is_cut_saved_and_resumed(block, rows, scale, dtype, cut):
    with hasty():
        whole, parts = (Model(Auto(rows=rows, budget=4), dtype=dtype, scale=scale) for _ in range(2))
        scores = whole.learn(block)
        first = parts.learn(block[:cut])
        saved = parts.to_bytes()
        parts = Model.from_bytes(saved)
        assert parts.to_bytes() == saved
        assert np.array_equal(np.concatenate([first, parts.learn(block[cut:])]), scores)
        assert same(whole, parts)
        assert whole.nonzeros <= 4
        slim = Model.from_bytes(whole.to_bytes("scoring"))
        assert np.array_equal(slim.score(block), whole.score(block))


def test_with_a_budget_too_settings_drop_out_that_cannot_learn_a_row(stream):
    m, twin = (Model(Auto(budget=30), scale="none") for _ in range(2))
    for one in (m, twin):
        one.learn(stream[:500])
    with pytest.warns(SettingsDroppedWarning, match="of 6 settings dropped out"):
        m.learn(concatenate([stream[500:520], block_of([{0: 3e7}], [1]), stream[520:540]]))
    assert 1 <= len(m._engine.candidates) < 6
    assert m.rows == 541
    with pytest.raises(DataError, match="row 20 of the block"):
        twin.learn(concatenate([stream[500:520], block_of([{0: 1e30}], [1])]))
    assert len(twin._engine.candidates) == 6
    assert twin.rows == 520


@pytest.mark.parametrize(
    "change",
    [
        lambda h, a: a.pop("2.z"),
        lambda h, a: a["3.n"].__setitem__(0, -1.0),
        lambda h, a: a["tally"].__setitem__(len(TALLY) + 1, 6.0),
        lambda h, a: a["tally"].__setitem__(len(TALLY), 2.0**30),
        lambda h, a: a.pop("more.labels"),
        lambda h, a: h.update(candidates=[*h["candidates"][:5], {"name": "spam", "settings": {}}]),
    ],
)
def test_a_hostile_file_of_a_race_with_a_budget_is_refused(stream, change):
    m = Model(Auto(budget=30))
    m.learn(stream[:600])
    header, arrays = modelfile.from_bytes(m.to_bytes())
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    with pytest.raises(ModelFileError, match="evil.rare: "):
        Model.from_bytes(modelfile.to_bytes(header, arrays), "evil.rare")


def test_budget_and_keep_cannot_be_combined():
    with pytest.raises(ValueError, match="Auto: budget and keep cannot be combined"):
        Auto(budget=5, keep=8)
