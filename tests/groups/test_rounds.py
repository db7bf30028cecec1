"""The rounds of a fit: what is learned when, what a collapse does, and that a fit goes on where it stopped."""

from __future__ import annotations

import dataclasses
import itertools
import warnings

import numpy as np
import pytest

from rarestream import Block, Model, auc, make_learner
from rarestream.blocks import concatenate
from rarestream.errors import DataError, RoundsStoppedWarning
from rarestream.groups import Receipt, RoundsFit, divide, fit_groups, merge, merge_features
from rarestream.groups.fitting import ATTEMPTS, Trained, cut, piece_rows, receipt_of
from rarestream.groups.receipt import KEY
from tests.groups.samples import learn_round, parts_of, weighted
from tests.strategies import random_block

GROUPS, ROUNDS = 3, 4
ROWS = random_block(2400, 60, 6, seed=2)


class Fit:
    """A fit in rounds, of which each call to train is recorded, and may return what `spoil` makes of its parts."""

    def __init__(self, learner="dual-logistic", rows: Block = ROWS, passes: int = 1, spoil=None, scale="unit") -> None:
        self.pieces = cut([rows], 40)
        sizes = np.array([len(piece) for piece in self.pieces])
        positives = np.array([np.count_nonzero(piece.labels > 0) for piece in self.pieces])
        self.division = divide(sizes, positives, GROUPS, ROUNDS, race=learner == "auto")
        self.held_out = concatenate([self.pieces[at] for at in self.division.held_out])
        self.rounds = RoundsFit(Model(learner, scale=scale), self.division, self.held_out, passes)
        self.calls: list[tuple[bytes, int, float, bool]] = []
        self.spoil = spoil or (lambda parts, fit: parts)

    def groups(self, number: int) -> list[Block]:
        return [concatenate([self.pieces[at] for at in self.division.blocks(number, group)]) for group in range(GROUPS)]

    def train(self, state: bytes, number: int, strength: float, again: bool) -> Trained:
        self.calls.append((state, number, strength, again))
        return Trained(self.spoil(parts_of(state, self.groups(number), strength), self), 10)

    def run(self, after_round=None) -> Model:
        return self.rounds.run(self.train, after_round)

    @property
    def strengths(self) -> list[tuple[int, float]]:
        return [(number, strength) for _, number, strength, _ in self.calls]


def negated(parts):
    """Parts whose sums have the other sign: a model of these ranks rows the wrong way round."""
    changes = [part.change._replace(numbers=part.change.numbers * [-1, 1]) for part in parts]
    changes = [change._replace(numbers=change.numbers.astype(np.float32)) for change in changes]
    return [dataclasses.replace(part, change=change) for part, change in zip(parts, changes, strict=True)]


def spoiled(number: int, times: int):
    """Spoils the parts of a round, so many times."""

    def spoil(parts, fit: Fit):
        return (
            negated(parts)
            if [call[1] for call in fit.calls].count(number) <= times and fit.calls[-1][1] == number
            else parts
        )

    return spoil


def test_a_fit_learns_all_rounds_then_the_rows_held_out():
    fit, expected = Fit(), Model("dual-logistic")
    model = fit.run()
    for number in range(ROUNDS):
        expected = learn_round(expected, fit.groups(number))
    expected.learn(fit.held_out)
    assert model.to_bytes() == expected.to_bytes()
    assert model.rows == len(ROWS)
    assert model.positives == np.count_nonzero(ROWS.labels > 0)
    assert fit.strengths == [(number, 1.0) for number in range(ROUNDS)]
    assert [one.rows for one in fit.rounds.rounds] == [fit.division.group_rows(number).sum() for number in range(4)]
    assert model.progress.n_pos + model.progress.n_neg == len(
        fit.held_out
    )  # only these were scored before they were learned


def test_fit_groups_is_the_same_fit():
    model = fit_groups([ROWS], "dual-logistic", groups=GROUPS, rounds=ROUNDS, block_rows=40)
    receipt = Receipt.from_record(model.source.pop(KEY))
    assert model.to_bytes() == Fit().run().to_bytes()
    assert (receipt.groups, receipt.rows, len(receipt.rounds)) == (GROUPS, len(ROWS), ROUNDS)
    assert auc(ROWS.labels, model.score(ROWS)) > 0.9


def test_further_passes_learn_the_same_rows_again():
    fit, expected = Fit(passes=2), Model("dual-logistic")
    model = fit.run()
    for number in (*range(ROUNDS), *range(ROUNDS)):
        expected = learn_round(expected, fit.groups(number))
    expected.learn(fit.held_out)
    expected.learn(fit.held_out, again=True)
    assert model.to_bytes() == expected.to_bytes()
    assert [again for *_, again in fit.calls] == [False] * ROUNDS + [True] * ROUNDS
    assert model.rows == 2 * len(ROWS)
    assert model.progress.n_pos + model.progress.n_neg == len(fit.held_out)


def test_parts_may_come_merged_by_ranges_of_features():
    class Ranges(Fit):
        def train(self, state, number, strength, again):
            trained, model = super().train(state, number, strength, again), Model.from_bytes(state)
            ends = (0, 7, 7, 30, 1000)
            ranges = [merge_features(model, trained.parts, *two) for two in itertools.pairwise(ends)]
            return Trained(ranges, 10, merged=True)

    assert Ranges().run().to_bytes() == Fit().run().to_bytes()


@pytest.mark.parametrize("done", range(1, ROUNDS + 1))
@pytest.mark.parametrize("name", ["dual-logistic", "auto"])
def test_a_fit_goes_on_where_it_stopped_with_the_same_bits(name, done):
    whole, first = Fit(name), Fit(name)
    expected, saved = whole.run(), []

    def save(rounds: RoundsFit) -> None:
        saved.append((rounds.model.to_bytes(), rounds.done, rounds.strength, list(rounds.rounds)))

    first.run(save)
    data, *others = saved[done - 1]
    second = Fit(name)
    second.rounds.resume(Model.from_bytes(data), *others)
    assert second.run().to_bytes() == expected.to_bytes()
    assert len(second.calls) == ROUNDS - done
    assert [(one.rows, one.auc) for one in second.rounds.rounds] == [(one.rows, one.auc) for one in whole.rounds.rounds]


def test_the_auc_on_the_rows_held_out_is_that_of_the_merged_model():
    fit, found = Fit(), []
    fit.run(lambda rounds: found.append(auc(fit.held_out.labels, rounds.model.score(fit.held_out))))
    assert [one.auc for one in fit.rounds.rounds] == pytest.approx(found, abs=1e-12)


# -- the guard


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_round_that_collapses_is_learned_again_from_the_state_before_it_with_half_of_the_strength(times):
    fit = Fit(spoil=spoiled(2, times))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit.run()
    least = 0.5**times
    halved = [(2, 0.5**attempt) for attempt in range(times + 1)]
    assert fit.strengths == [(0, 1.0), (1, 1.0), *halved, (3, least)]  # later rounds keep it
    assert len({state for state, number, *_ in fit.calls if number == 2}) == 1
    expected = Model("dual-logistic")
    for number in range(ROUNDS):
        expected = learn_round(expected, fit.groups(number), 1.0 if number < 2 else least)
    expected.learn(fit.held_out)
    assert model.to_bytes() == expected.to_bytes()
    assert [one.strength for one in fit.rounds.rounds] == [1.0, 1.0, least, least]
    assert fit.rounds.stopped is None
    assert min(one.auc for one in fit.rounds.rounds) > 0.8


def test_a_fit_whose_rounds_go_on_collapsing_ends_with_the_model_of_the_round_before():
    fit, states = Fit(spoil=spoiled(2, 99)), []
    with pytest.warns(
        RoundsStoppedWarning, match=r"^in round 3 of 4 the AUC .* fell to 0\.\d+, also with shorter steps"
    ):
        model = fit.run(lambda rounds: states.append(rounds.model.to_bytes()))
    assert fit.strengths == [(0, 1.0), (1, 1.0), *[(2, 0.5**attempt) for attempt in range(ATTEMPTS + 1)]]
    assert states[1] == states[2]
    expected = Model.from_bytes(states[1])
    expected.learn(fit.held_out)
    assert model.to_bytes() == expected.to_bytes()
    receipt = receipt_of(fit.rounds, len(ROWS), 1)
    assert receipt.stopped == fit.rounds.stopped
    assert "3 groups do not merge well here. The model is that of the round before." in receipt.stopped
    assert receipt.auc == pytest.approx(receipt.rounds[1].auc)  # that of the model which is the result
    assert receipt.rounds[2].auc < 0.5


def test_scores_that_are_not_finite_are_a_collapse_also_in_the_first_round():
    def endless(parts, fit: Fit):
        changes = [part.change._replace(numbers=np.full_like(part.change.numbers, np.nan)) for part in parts]
        return [dataclasses.replace(part, change=change) for part, change in zip(parts, changes, strict=True)]

    fit = Fit(spoil=endless)
    with pytest.warns(RoundsStoppedWarning, match="in round 1 of 4 the AUC on the rows held out fell to 0.0000"):
        model = fit.run()
    expected = Model("dual-logistic")
    expected.learn(fit.held_out)
    assert model.to_bytes() == expected.to_bytes()
    assert receipt_of(fit.rounds, len(ROWS), 1).auc is None


def test_a_collapse_in_a_later_pass_is_found_too():
    fit = Fit(passes=2, spoil=lambda parts, fit: negated(parts) if len(fit.calls) == ROUNDS + 2 else parts)
    fit.run()
    assert [strength for _, strength in fit.strengths] == [1.0] * (ROUNDS + 2) + [0.5] * (ROUNDS - 1)


def test_a_collapse_right_after_a_fit_went_on_is_found_too():
    first, second = Fit(), Fit(spoil=spoiled(2, 1))
    saved = []
    first.run(lambda rounds: saved.append((rounds.model.to_bytes(), rounds.done, rounds.strength, list(rounds.rounds))))
    data, *others = saved[1]
    second.rounds.resume(Model.from_bytes(data), *others)
    second.run()
    assert second.strengths == [(2, 1.0), (2, 0.5), (3, 0.5)]


def test_rows_that_contradict_those_before_stop_a_fit():
    """From the second round on labels are the other way round, except in the rows held out."""

    class Contradicting(Fit):
        def groups(self, number):
            groups = super().groups(number)
            if not number:
                return groups
            return [
                dataclasses.replace(block, labels=-block.labels, importances=np.full(len(block), 20.0))
                for block in groups
            ]

    fit = Contradicting()
    with pytest.warns(RoundsStoppedWarning, match="in round 2 of 4"):
        model = fit.run()
    assert fit.strengths == [(0, 1.0), *[(1, 0.5**attempt) for attempt in range(ATTEMPTS + 1)]]
    assert auc(ROWS.labels, model.score(ROWS)) > 0.85


@pytest.mark.parametrize(
    "rows, wrong, fallen",
    [
        (4000, 100, True),  # an AUC of 1, then of 0.95
        (4000, 16, False),  # of 0.992: less than 0.01 is none, however sure
        (40, 4, False),  # of 0.80: but with so few rows it may be chance
        (40, 20, True),
    ],
)
def test_a_fall_that_is_small_or_may_be_chance_is_none(monkeypatch, rows, wrong, fallen):
    labels = np.tile(np.array([1, -1], np.int8), rows // 2)
    held_out = Block.of((np.arange(rows + 1), np.zeros(rows, int), np.ones(rows)), labels)
    fit = RoundsFit(Model("dual-auc"), Fit().division, held_out)
    noise = np.random.default_rng(0).random(rows)
    scores = [labels + noise, labels + noise]
    scores[1][np.flatnonzero(labels > 0)[:wrong]] -= 4.0  # each is now below all negatives
    monkeypatch.setattr(Model, "_compare", lambda model, block, groups: scores.pop(0))
    assert fit._measured() == (1.0, False)
    assert fit._measured() == (pytest.approx(1 - wrong / (rows / 2)), fallen)


def test_a_collapse_of_a_race_takes_its_settings_back():
    def spoil(parts, fit: Fit):
        if len(fit.calls) != 3:
            return parts
        changes = [part.change._replace(numbers=part.change.numbers.copy()) for part in parts]
        for change in changes:
            change.numbers[:, :24] *= -1
        return [dataclasses.replace(part, change=change) for part, change in zip(parts, changes, strict=True)]

    fit = Fit("auto", spoil=spoil)
    model = fit.run()
    assert fit.strengths == [(0, 1.0), (1, 1.0), (2, 1.0), (2, 0.5), (3, 0.5)]
    assert len(model.candidates) == 24
    assert [one.settings for one in fit.rounds.rounds] == [24] * ROUNDS


# -- rows held out


def test_rows_held_out_that_have_no_auc_are_learned_all_the_same():
    rows = weighted(ROWS)
    importances = np.where(rows.labels > 0, 0.0, 1.0)
    pieces = cut([rows], 40)
    positives = np.array([np.count_nonzero(piece.labels > 0) for piece in pieces])
    held_out = set(divide(np.array([len(piece) for piece in pieces]), positives, GROUPS, ROUNDS).held_out.tolist())
    for at in range(len(pieces)):
        if at not in held_out:
            importances[40 * at : 40 * (at + 1)] = 1.0
    fit = Fit(rows=Block.of((rows.indptr, rows.indices, rows.values), rows.labels, importances))
    model = fit.run()
    assert [one.auc for one in fit.rounds.rounds] == [None] * ROUNDS
    assert receipt_of(fit.rounds, len(ROWS), 1).auc is None
    assert model.rows == len(ROWS)


@pytest.mark.parametrize("name", ["groups", "rounds", "passes", "block_rows"])
@pytest.mark.parametrize("number", [0, -3])
def test_wrong_numbers_are_refused_by_name(name, number):
    with pytest.raises(ValueError, match=f"fit_groups: {name} must be at least 1, got {number}"):
        fit_groups([ROWS], "dual-logistic", **{"groups": 2, name: number})


def test_what_cannot_be_divided_is_refused():
    with pytest.raises(DataError, match="there are no rows to learn"):
        fit_groups([], "dual-logistic", groups=2)
    with pytest.raises(DataError, match="all 10 rows are positive"):
        fit_groups([dataclasses.replace(ROWS[:10], labels=np.ones(10, np.int8))], "dual-logistic", groups=2)
    with pytest.raises(DataError, match="has blocks for 1 of 2 groups only"):
        fit_groups([ROWS[:50]], "dual-logistic", groups=2, rounds=1, block_rows=25)
    in_order = ROWS.take(np.argsort(ROWS.labels))
    with pytest.raises(DataError, match="rows of round 1 of 4 are negative: .* put the rows into random order once"):
        fit_groups([in_order], "dual-logistic", groups=2)


def test_groups_get_several_pieces_in_a_round_if_there_are_enough_rows():
    assert piece_rows(10**9, 64, 16) == 1024
    assert piece_rows(6400, 4, 4) == 100
    assert piece_rows(10, 4, 4) == 1
    assert [len(piece) for piece in cut([ROWS[:50], ROWS[:20], ROWS[:0]], 30)] == [30, 20, 20]
    assert merge(Model("dual-auc"), parts_of(Model("dual-auc").to_bytes(), [ROWS[:10], ROWS[10:20]])).rows == 20


def test_a_learner_by_name_or_with_settings():
    for learner in ("dual-auc", make_learner("dual-auc", l1=0.1)):
        model = fit_groups([ROWS], learner, groups=2, rounds=2, scale="max", dtype="float64")
        assert (model.scale, model.dtype) == ("max", "float64")
        assert model.learner == (make_learner(learner) if isinstance(learner, str) else learner)
