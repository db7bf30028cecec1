"""The state is a function of the log: of nothing else, wherever it is cut and however it is sliced."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Model
from rarestream.serve import entries
from rarestream.serve.log import Record
from rarestream.serve.rows import RowText
from tests.serve.states import applied, begun, continued, label, learn, named_model, records, row, store

SHADOW = named_model(20, seed=5).to_bytes()


def made_log(seed: int, count: int = 25) -> list[Record]:
    """A log of all kinds of entries, with times that pass the wait, and sometimes go back a little."""
    rng = random.Random(seed)
    made: list[tuple[entries.Entry, int]] = []
    time, stored = 1000.0, 0
    for number in range(count):
        time += rng.choice([0.0, 0.1, 1.0, 5.0, 30.0])
        at = time - rng.choice([0.0, 0.0, 0.001])
        what = rng.choice(["learn", "learn", "store", "store", "label", "label", "tick", "shadow", "promote", "rules"])
        rows = [row(rng) for _ in range(rng.choice([1, 3, 300]))]
        texts, labels = [one[0] for one in rows], [one[1] for one in rows]
        if what == "learn":
            weights = [rng.choice([0.0, 1.0, 3.0]) for _ in rows] if rng.random() < 0.3 else None
            key = f"k{number}" if rng.random() < 0.5 else None
            made.append((learn(at, texts, labels, key, importances=weights), len(rows)))
        elif what == "store":
            ids = [str(rng.randrange(max(0, stored - 3), stored + len(rows))) for _ in rows]
            stored += len(rows)
            made.append((store(at, texts, ids), len(rows)))
        elif what == "label":
            ids = [str(rng.randrange(stored + 3)) for _ in range(rng.choice([1, 20, 300]))]
            made.append((label(at, ids, [rng.choice([-1, 1]) for _ in ids], f"k{number}"), len(ids)))
        elif what == "tick":
            made.append((entries.Tick(at), 1))
        elif what == "shadow":
            made.append((entries.StartShadow(at, rng.choice([SHADOW, None]), "manual", 5, 0.1), 1))
        elif what == "promote":
            made.append((entries.Promote(at), 1))
        else:
            wait, window = rng.choice([2.0, 20.0, 100.0]), rng.choice([100, 200])
            made.append((entries.ChangeRules(at, wait, rng.choice(["drop", "negative"]), window), 1))
    return records(made)


def ended(steps: Generator[None, None, Any]) -> Any:
    """What a generator returns."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


@given(seed=st.integers(0, 2**32), slice_rows=st.integers(1, 400))
@settings(max_examples=15)
def test_slices_do_not_matter(seed, slice_rows):
    model = named_model()
    log = made_log(seed)
    whole, sliced = (
        begun(model, label_wait=10.0, unlabelled="negative"),
        begun(model, label_wait=10.0, unlabelled="negative"),
    )
    assert applied(whole, log, 8192) == applied(sliced, log, slice_rows)
    assert whole.files() == sliced.files()


@given(seed=st.integers(0, 2**32), weighted=st.booleans(), slice_rows=st.integers(1, 400))
@settings(max_examples=20)
def test_records_that_are_applied_together_are_as_one_by_one(seed, weighted, slice_rows):
    rng = random.Random(seed)
    made: list[tuple[entries.Entry, int]] = []
    for number in range(rng.randrange(2, 30)):
        rows = [row(rng) for _ in range(rng.choice([1, 1, 2, 40]))]
        texts, labels = [one[0] for one in rows], [one[1] for one in rows]
        weights = [rng.choice([0.0, 1.0, 3.0]) for _ in rows] if weighted else None
        made.append(
            (learn(1000.0 + number, texts, labels, rng.choice([f"k{number}", None]), importances=weights), len(rows))
        )
    log = records(made)
    singly, together = begun(named_model(), label_wait=10.0), begun(named_model(), label_wait=10.0)
    answers = applied(singly, log)
    learns = [entry for entry, _ in made]
    decoded = [together.decoder.decode(RowText("json", one.text, count), names=True) for one, count in made]
    together.slice_rows = slice_rows
    assert ended(together.apply_together(log, learns, decoded)) == answers
    assert together.files() == singly.files()


@given(seed=st.integers(0, 2**32), cut=st.integers(0, 25))
@settings(max_examples=25)
def test_a_snapshot_and_the_records_after_it_are_all_records(seed, cut):
    log = made_log(seed)
    whole = begun(named_model(), label_wait=10.0)
    applied(whole, log[:cut])
    files = whole.files()
    applied(whole, log[cut:])
    again = continued(files, log)
    assert again.files() == whole.files()
    assert again.waiting == whole.waiting


@given(slice_rows=st.integers(1, 700), cut=st.integers(0, 30))
@settings(max_examples=6)
def test_a_race_of_settings_may_end_on_the_way(slice_rows, cut):
    rng = random.Random(3)
    log = []
    for number in range(30):
        rows = [row(rng) for _ in range(rng.choice([1, 40, 150]))]
        log.append((learn(float(number), [one[0] for one in rows], [one[1] for one in rows]), len(rows)))
    model = named_model(10, "auto")
    whole, sliced = begun(model), begun(model)
    applied(whole, records(log), 8192)
    applied(sliced, records(log)[:cut], slice_rows)
    files = sliced.files()
    applied(sliced, records(log)[cut:], slice_rows)
    assert whole.files() == sliced.files() == continued(files, records(log)).files()


@pytest.mark.parametrize(
    ("format", "rows"),
    [("json", ["[[0,1],[3,0.5]]", "[[7,1e300],[3,1e300]]", "[[1,2]]"]), ("svmlight", ["1:1 4:0.5", "2:3", "8:1e300"])],
)
def test_column_numbers(format, rows):
    log = records([(learn(float(n), rows, [1, -1, 1], format=format), 3) for n in range(9)])
    model = Model("ftrl-auc", scale="none")
    whole, single = begun(model), begun(model)
    assert applied(whole, log) == applied(single, log, 1)
    assert whole.files() == single.files()


def test_vw_lines_bring_their_names():
    log = records([(learn(1.0, ["|site a.com b", "|ad x:2"], [1, -1], format="vw"), 2)])
    from rarestream import Hashed

    state = begun(Model("dual-auc", features=Hashed(bits=10)))
    applied(state, log)
    assert state.model.rows == 2
    assert continued(begun(Model("dual-auc", features=Hashed(bits=10))).files(), log).files() == state.files()


def test_rows_that_wait_longer_than_a_new_wait_are_decided_by_the_rule():
    rng = random.Random(1)
    for rule, learned in (("negative", 3), ("drop", 0)):
        state = begun(named_model(), label_wait=3600.0)
        texts = [row(rng)[0] for _ in range(4)]
        log = records(
            [
                (store(100.0, texts[:3], ["a", "b", "c"]), 3),
                (store(199.5, texts[3:], ["d"]), 1),
                (entries.ChangeRules(200.0, 1.0, rule, 10_000), 1),
                (label(200.2, ["a", "d"], [1, 1]), 2),
            ]
        )
        before = state.model.rows
        answers = applied(state, log)
        assert state.model.rows - before == learned + 1
        assert answers[-1].learned == 1 and answers[-1].unknown == ["a"]
        assert state.waiting == 0


def test_rows_stored_before_the_wait_was_lengthened_survive_a_restart():
    rng = random.Random(1)
    made = [(store(100.0 + n / 10, [row(rng)[0]], [f"a{n}"]), 1) for n in range(30)]
    made += [(entries.ChangeRules(103.0, 3600.0, "drop", 10_000), 1)]
    made += [(store(110.0 + n, [row(rng)[0]], [f"b{n}"]), 1) for n in range(60)]
    log = records(made)
    state = begun(named_model(), label_wait=1.0)
    applied(state, log)
    again = continued(state.files(), log)
    more = [Record(state.sequence + 1, 1, entries.LABEL, entries.encode(label(170.0, ["a29"], [1])))]
    assert applied(again, more) == applied(state, more)
    assert state.keys == again.keys and state.files() == again.files()


def test_a_half_life_that_the_model_cannot_have_is_no_obstacle_to_replay():
    log = records([(entries.HalfLife(1.0, 100.0), 1), (learn(2.0, ['{"site":"s1"}'], [1]), 1)])
    state = begun(named_model(learner="solam"))
    applied(state, log)
    assert state.sequence == 2


def test_labels_are_unknown_duplicate_or_late():
    state = begun(named_model(), label_wait=10.0)
    rows = ['{"site":"s1"}'] * 2
    log = records(
        [
            (store(100.0, rows, ["a", "b"]), 2),
            (label(101.0, ["a", "none"], [1, 1]), 2),
            (label(102.0, ["a"], [-1]), 1),
            (label(115.0, ["b"], [1]), 1),
        ]
    )
    answers = applied(state, log)
    assert (answers[1].learned, answers[1].unknown) == (1, ["none"])
    assert answers[2].duplicate == ["a"]
    assert answers[3].late == ["b"]


@given(seed=st.integers(0, 2**32), slice_rows=st.integers(1, 120))
@settings(max_examples=8)
def test_races_of_a_model_and_its_shadows_end_at_the_same_rows(seed, slice_rows):
    rng, made = random.Random(seed), []
    file = Model("auto").to_bytes()
    for number in range(25):
        what = rng.random()
        if what < 0.15:
            made.append((entries.StartShadow(float(number), file, "manual", 5, 0.1), 1))
        elif what < 0.25:
            made.append((entries.Promote(float(number)), 1))
        else:
            rows = [
                f"[[{rng.randrange(40)},1],[{50 + rng.randrange(12)},0.5]]" for _ in range(rng.choice([1, 60, 300]))
            ]
            made.append((learn(float(number), rows, [rng.choice([1, -1, -1]) for _ in rows]), len(rows)))
    log, cut = records(made), rng.randrange(25)
    whole, sliced = begun(Model("auto")), begun(Model("auto"))
    applied(whole, log, 8192)
    applied(sliced, log[:cut], slice_rows)
    files = sliced.files()
    applied(sliced, log[cut:], slice_rows)
    assert whole.files() == sliced.files() == continued(files, log).files()
