"""The race: who wins, what the winner knows, and what does not matter."""

from __future__ import annotations

import re
from unittest.mock import patch

import numpy as np
import pytest

from rarestream import DataError, DualAveraging, FtrlAuc, FtrlProximal, Model, Rda, Spam, auc
from rarestream.learners.auto import Auto
from rarestream.race import Racing, fitting, grid, racing, rivals
from tests.strategies import block_of, random_block

ROWS = random_block(3000, 60, 8, seed=4)
FEW = [DualAveraging(loss="auc"), DualAveraging(loss="logistic"), FtrlAuc(l1=0.0), FtrlProximal(learning_rate=2.0)]


def raced(settings="auto", rows=ROWS, cuts=(), passes=1, **options):
    """A race over rows, cut into blocks at some places."""
    running = Racing(settings, **options)
    for turn in range(passes):
        for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            running.learn(rows[start:stop], again=turn > 0)
    return running.finish()


def trained(learner, rows=ROWS, passes=1):
    model = Model(learner)
    scores = [model.learn(rows, again=turn > 0) for turn in range(passes)]
    return model, scores[0]


def alike(model, other):
    """The same up to the order in which a score is summed."""
    assert model.learner == other.learner
    np.testing.assert_allclose(model.coef, other.coef, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(model.score(ROWS), other.score(ROWS), rtol=2e-4, atol=2e-5)


def test_the_winner_is_the_model_of_its_settings():
    found = raced(FEW)
    alone, _ = trained(found.model.learner)
    alike(found.model, alone)
    assert (found.model.rows, found.model.positives) == (alone.rows, alone.positives)
    assert found.model.n_features == alone.n_features
    assert float(found.model.progress.auc) == pytest.approx(float(alone.progress.auc), abs=1e-5)
    assert found.model.chosen_by == ("race", 3000)


def test_a_list_is_won_by_the_largest_auc_of_all_but_the_first_quarter():
    found = raced(FEW)
    aucs = {learner: auc(ROWS.labels[750:], trained(learner)[1][750:]) for learner in FEW}
    assert found.winner.learner == max(aucs, key=lambda learner: aucs[learner])
    assert [one.learner for one in found.entrants] == sorted(FEW, key=lambda learner: -aucs[learner])
    for one in found.entrants:
        assert one.auc == pytest.approx(aucs[one.learner], abs=1e-5)
        assert one.behind == pytest.approx(found.winner.auc - one.auc)
    assert found.judged == 2250
    assert not found.thinned
    assert found.enough


def test_auto_keeps_the_default_unless_another_is_ahead_by_a_standard_error():
    found = raced("auto")
    default = next(one for one in found.entrants if one.learner == Auto.candidates()[0])
    assert default.retired_after is None, "the default is never retired"
    if found.winner is not default:
        assert default.behind > 0


def test_the_winner_goes_on_as_any_model():
    half = raced(FEW, ROWS[:1500])
    half.model.learn(ROWS[1500:])
    alone, _ = trained(half.model.learner)
    alike(half.model, alone)
    again = Model.from_bytes(half.model.to_bytes())
    assert again.to_bytes() == half.model.to_bytes()
    assert again.chosen_by == half.model.chosen_by


@pytest.mark.parametrize("options", [{}, {"holdout": 0.25}, {"scale": "max"}])
def test_where_a_block_is_cut_does_not_matter(options):
    whole, cut = raced("auto", **options), raced("auto", cuts=(1, 700, 701, 2048, 2500), **options)
    assert whole.model.to_bytes() == cut.model.to_bytes()
    assert [(one.learner, one.auc, one.error) for one in whole.entrants[:5]] == [
        (one.learner, one.auc, one.error) for one in cut.entrants[:5]
    ]


def test_the_number_of_threads_does_not_matter():
    settings = [*Auto.candidates(), *rivals()]
    assert raced(settings, threads=1).model.to_bytes() == raced(settings, threads=4).model.to_bytes()


def test_retiring_changes_nothing_for_those_who_stay():
    with_retired = raced("auto")
    assert any(one.retired_after == 2048 for one in with_retired.entrants)
    all_the_way = raced("auto", retire=False)
    assert not any(one.retired_after for one in all_the_way.entrants)
    assert with_retired.model.to_bytes() == all_the_way.model.to_bytes()
    kept = {one.learner: one.auc for one in all_the_way.entrants}
    for one in with_retired.entrants:
        if one.retired_after is None:
            assert one.auc == kept[one.learner]


def test_lanes_are_dropped_when_settings_retire(monkeypatch):
    monkeypatch.setattr(racing, "RETIRE", 0.5)
    running = Racing("auto", threads=1)
    before = running.bytes
    running.learn(ROWS)
    assert running.bytes < before == 24 * 8 + 8  # z and n of each, and counts of both classes for all


def test_settings_without_lanes_learn_alone_in_the_same_pass():
    settings = [Rda(), DualAveraging(loss="auc", learning_rate=1e-4), Spam()]
    running = Racing(settings)
    assert running.without_lanes == [Rda(), Spam()]
    running.learn(ROWS)
    found = running.finish()
    assert found.winner.learner == Spam()
    assert not found.winner.in_lane
    alone, _ = trained(Spam())
    np.testing.assert_array_equal(found.model.coef, alone.coef)
    assert float(found.model.progress.auc) == pytest.approx(float(alone.progress.auc), abs=1e-5)


def test_a_setting_whose_weights_grow_beyond_float32_is_retired():
    far = Spam(learning_rate=1e30)
    with pytest.raises(DataError):
        Model(far).learn(ROWS)
    found = raced([far, DualAveraging()])
    assert found.model.learner == DualAveraging()
    assert [(one.learner, one.retired_after, np.isnan(one.auc)) for one in found.entrants[1:]] == [(far, 0, True)]
    with pytest.raises(DataError, match="have grown beyond float32"):
        raced([far])


def test_held_out_rows_are_judged_and_never_learned():
    found = raced(FEW, holdout=0.2)
    held = np.arange(len(ROWS)) % 5 == 0
    assert found.judged == held.sum()
    alone, _ = trained(found.model.learner, ROWS.take(np.flatnonzero(~held)))
    alike(found.model, alone)
    assert found.model.rows == (~held).sum()
    assert found.model.progress.n_pos + found.model.progress.n_neg == held.sum()


def test_without_held_out_rows_only_the_winner_makes_more_passes():
    found = raced(FEW, passes=3)
    assert found.model.learner == raced(FEW).model.learner
    alone, _ = trained(found.model.learner, passes=3)
    alike(found.model, alone)
    assert found.model.rows == 9000
    assert found.winner.auc == raced(FEW).winner.auc


def test_held_out_rows_are_judged_by_the_last_pass():
    once, twice = raced(FEW, holdout=0.2), raced(FEW, holdout=0.2, passes=2)
    assert once.judged == twice.judged
    held = np.arange(len(ROWS)) % 5 == 0
    learned = ROWS.take(np.flatnonzero(~held))
    alone = Model(twice.model.learner)
    alone.learn(learned)
    alone.learn(learned, again=True)
    alike(twice.model, alone)
    assert {one.learner: one.auc for one in once.entrants} != {one.learner: one.auc for one in twice.entrants}


def test_rows_of_no_importance_are_as_absent():
    rng = np.random.default_rng(0)
    weights = rng.choice([0.0, 1.0, 2.0], len(ROWS))
    weighed = type(ROWS)(ROWS.indptr, ROWS.indices, ROWS.values, ROWS.width, ROWS.labels, weights)
    present = weighed.take(np.flatnonzero(weights))
    with_zeros, without = raced(FEW, weighed), raced(FEW, present)
    assert with_zeros.model.learner == without.model.learner
    np.testing.assert_array_equal(with_zeros.model.coef, without.model.coef)


# -- what cannot be told, and what cannot be done


def test_with_few_of_a_class_the_default_of_auto_stays():
    positive = np.flatnonzero(ROWS.labels > 0)[::40]
    rows = ROWS.take(np.sort(np.concatenate([positive, np.flatnonzero(ROWS.labels < 0)])))
    found = raced("auto", rows)
    assert not found.enough
    assert found.model.learner == Auto.candidates()[0]


def test_a_winner_that_is_not_clear_is_told():
    twins = [DualAveraging(learning_rate=0.25), DualAveraging(learning_rate=0.2500001), FtrlAuc(learning_rate=1e-4)]
    found = raced(twins)
    assert [one.learner for one in found.close] == [one for one in twins[:2] if one != found.winner.learner]
    assert not raced(twins[1:]).close


@pytest.mark.parametrize("label, word", [(1, "positive"), (-1, "negative")])
def test_one_class_only_is_refused(label, word):
    with pytest.raises(DataError, match=f"race: all .* rows are {word}; AUC compares"):
        raced("auto", ROWS.take(np.flatnonzero(ROWS.labels == label)))


def test_no_rows_are_refused():
    with pytest.raises(DataError, match="race: there are no rows"):
        Racing("auto").finish()


def test_rows_without_labels_are_refused():
    rows = type(ROWS)(ROWS.indptr, ROWS.indices, ROWS.values, ROWS.width)
    with pytest.raises(DataError, match="no labels"):
        Racing("auto").learn(rows)


def test_what_does_not_fit_in_memory_is_refused_before_anything_is_learned():
    running = Racing("auto", memory=30 * 200, threads=1)
    assert running.most_features == 30
    with pytest.raises(DataError, match=r"60 features need .* 200 bytes per feature for 24 settings.*fewer settings"):
        running.learn(ROWS)
    assert running.rows == 0


def test_values_too_large_to_learn_are_refused():
    rows = type(ROWS)(ROWS.indptr, ROWS.indices, np.full_like(ROWS.values, 3e38), ROWS.width, ROWS.labels)
    with pytest.raises(DataError, match="overflows float32 with scale='none'"):
        Racing(FEW, scale="none").learn(rows)


@pytest.mark.parametrize(
    "settings, error, says",
    [
        ([], ValueError, "there are no settings to race"),
        ("spam", ValueError, '"auto" or a list of learners'),
        (["nobody"], ValueError, "no learner is called 'nobody'"),
        (["auto"], ValueError, "auto is a race itself"),
        ([3], TypeError, "settings are learners"),
        (grid("dual-auc", learning_rate=list(np.linspace(0.1, 1, 1025))), ValueError, "at most 1024 settings"),
    ],
)
def test_settings_that_make_no_race_are_refused(settings, error, says):
    with pytest.raises(error, match=re.escape(says)):
        Racing(settings)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"scale": "big"}, "scale must be one of"),
        ({"holdout": 0.7}, "between 0 and 0.5, got 0.7"),
        ({"memory": 0}, "memory must be a number of bytes >= 1, got 0"),
        ({"threads": 0}, "threads must be >= 1, got 0"),
    ],
)
def test_options_are_checked(options, says):
    with pytest.raises(ValueError, match=says):
        Racing("auto", **options)


# -- who races


def test_the_same_settings_race_once():
    assert Racing(["dual-auc", DualAveraging(), "dual-logistic"]).learners == [
        DualAveraging(),
        DualAveraging(loss="logistic"),
    ]


def test_a_grid_is_every_combination():
    found = grid("ftrl-auc", learning_rate=[0.1, 1.0], l1=[0.0, 0.5], l2=2)
    assert found == [FtrlAuc(learning_rate=rate, l1=l1, l2=2.0) for rate in (0.1, 1.0) for l1 in (0.0, 0.5)]


def test_many_settings_race_in_heats():
    settings = grid("ftrl-auc", learning_rate=list(np.geomspace(0.01, 5, 20)), l1=[0.0, 0.1, 0.5, 1.0])
    found = raced(settings)
    assert len(found.entrants) == 80
    alone, scores = trained(found.model.learner)
    alike(found.model, alone)
    assert found.winner.auc == pytest.approx(auc(ROWS.labels[750:], scores[750:]), abs=1e-5)


def test_the_settings_in_the_lead_can_score_while_the_race_goes_on():
    running = Racing(FEW)
    running.learn(ROWS[:2500])
    alone, _ = trained(running.leader, ROWS[:2500])
    alike(running.model, alone)
    before = running.model.score(ROWS)
    running.learn(ROWS[2500:])
    found = running.finish()
    assert running.model is found.model
    assert not np.array_equal(found.model.score(ROWS), before)


# -- lanes that would be very wide


@pytest.mark.parametrize("scale", ["unit", "max", "none"])
@pytest.mark.parametrize("wide", [0, 60 * 200 * 10, 1 << 40])
def test_a_race_of_few_features_with_large_numbers_is_that_of_the_same_features(scale, wide):
    """With wide lanes from the first rows on, from later ones on, or never."""
    far = np.sort(np.random.default_rng(4).choice(3000, ROWS.width, replace=False)).astype(np.int32)
    far[-1] = 2999
    rows = type(ROWS)(ROWS.indptr, far[ROWS.indices], ROWS.values, 3000, ROWS.labels)
    parts = [(one[:100], one[100:]) for one in (ROWS, rows)]
    near, there = (Racing(FEW, scale=scale, threads=1) for _ in range(2))
    for part in parts[0]:
        near.learn(part)
    with patch.object(fitting, "WIDE_BYTES", wide):
        scores = [there.learn(part) for part in parts[1]]
    expected, found = near.finish(), there.finish()
    assert [entrant.learner for entrant in found.entrants] == [entrant.learner for entrant in expected.entrants]
    assert [entrant.auc for entrant in found.entrants] == [entrant.auc for entrant in expected.entrants]
    assert np.array_equal(found.model.coef[far], expected.model.coef)
    assert np.array_equal(found.model.score(rows), expected.model.score(ROWS))
    assert len(np.concatenate(scores)) == len(ROWS)
    found.model.learn(rows)  # it is a model as any other
    expected.model.learn(ROWS)
    assert np.array_equal(found.model.coef[far], expected.model.coef)


def test_memory_is_for_features_that_rows_have_shown():
    far = (np.arange(ROWS.width, dtype=np.int64) * 30_000_000).astype(np.int32)
    rows = type(ROWS)(ROWS.indptr, far[ROWS.indices], ROWS.values, int(far[-1]) + 1, ROWS.labels)
    running = Racing("auto", memory=100 * 200, threads=1)
    running.learn(rows)
    assert running.rows == len(rows)
    with pytest.raises(DataError, match=r"161 features need .* GB"):
        running.learn(block_of([{j * 7: 1.0 for j in range(1, 102)}], [1]))
    assert running.rows == len(rows)
    running.learn(rows)
