"""Feature spaces, the plan of a table, and names as people read them."""

from __future__ import annotations

import copy
import gc
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream import Columns, Hashed, _native
from rarestream.features import ColumnPlan, Kind, TablePlan, display, plan_from_settings
from tests.strategies import hashed_block

PLAN = TablePlan(
    columns=(ColumnPlan("site", Kind.CATEGORY), ColumnPlan("price", 3), ColumnPlan("when", 8), ColumnPlan("x", 0)),
    numbers="raw",
    ngrams="chars:3-5",
    counts=True,
    crosses=("site*when",),
    missing=("", "NA"),
    label="clicked",
    importance="w",
    open=True,
)


def test_columns_are_compatible_with_columns_and_hashed_features_with_the_same_bits():
    assert Columns().compatible(Columns(1))
    assert Columns().compatible(None)
    assert not Columns().compatible(Hashed())
    assert Hashed().compatible(Hashed(22, names=False))
    assert not Hashed().compatible(Hashed(21))
    assert not Hashed().compatible(None)
    assert not Hashed().compatible(Columns())


def test_spaces_say_what_they_are():
    assert Columns().describe() == "column numbers"
    assert Hashed(18).describe() == "hashed features with 18 bits"
    assert repr(Hashed(18)) == "Hashed(bits=18)"
    assert repr(Hashed(names=False, name_bytes=9)) == "Hashed(bits=22, names=False, name_bytes=9)"
    assert repr(Columns(1)) == "Columns(first=1)"


@pytest.mark.parametrize("bits", [0, 31, -1, 2.0, True, "22", None])
def test_bits_are_a_whole_number_from_1_to_30(bits):
    with pytest.raises(
        ValueError, match=r"Hashed: bits must be a whole number between 1 and 30, got .*22 bits have 4,194,304"
    ):
        Hashed(bits)


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Columns(2), "Columns: first must be 0 or 1, got 2"),
        (lambda: Columns(True), "Columns: first must be 0 or 1, got True"),
        (lambda: Hashed(names=1), "Hashed: names must be True or False, got 1"),
        (lambda: Hashed(name_bytes=-1), "Hashed: name_bytes must be .* got -1"),
        (lambda: Hashed(name_bytes=1e6), "Hashed: name_bytes must be .* got 1000000.0"),
    ],
)
def test_other_arguments_are_checked(make, rule):
    with pytest.raises(ValueError, match=rule):
        make()


@given(st.text(max_size=20), st.text(max_size=20), st.integers(1, 30))
def test_a_slot_is_the_hash_modulo_the_number_of_slots(namespace, name, bits):
    full = _native.murmur3(name.encode(), _native.murmur3(namespace.encode(), 0))
    assert Hashed(bits).slot(namespace, name) == full % 2**bits


def test_the_fingerprint_tells_what_decides_slots_and_nothing_else():
    space = Hashed()
    assert space.fingerprint == Hashed(names=False, name_bytes=5).fingerprint
    assert space.fingerprint != Hashed(21).fingerprint
    before = space.fingerprint
    space.plan = PLAN
    assert space.fingerprint != before
    assert Columns().fingerprint == Columns(1).fingerprint == "columns"


def test_a_space_is_copied_and_pickled_with_its_names_and_its_plan():
    space = hashed_block(20, 5).space
    space.plan = PLAN
    slots = np.arange(32, dtype=np.int32)
    for again in (copy.deepcopy(space), copy.copy(space), pickle.loads(pickle.dumps(space))):
        assert again is not space
        assert again.names.names(slots) == space.names.names(slots)
        assert again.names.collisions == space.names.collisions
        assert (again.bits, again.plan) == (5, PLAN)
    assert pickle.loads(pickle.dumps(Hashed(names=False))).names is None
    assert space.fresh().plan is PLAN
    assert len(space.fresh().names) == 0


def test_names_of_another_space_are_taken_once_and_it_may_go():
    mine, other = Hashed(5), hashed_block(20, 5).space
    mine.take_names(other)
    size = len(mine.names)
    mine.take_names(other)
    assert len(mine.names) == size == len(other.names)
    del other
    gc.collect()
    assert len(mine._taken) == 0
    mine.take_names(mine)
    Hashed(5, names=False).take_names(mine)
    mine.take_names(Hashed(5, names=False))
    assert len(mine.names) == size


def test_a_plan_is_what_its_settings_say():
    settings = json.loads(json.dumps(PLAN.settings()))
    assert plan_from_settings(settings) == PLAN
    assert plan_from_settings(TablePlan().settings()) == TablePlan()


@pytest.mark.parametrize(
    "change",
    [
        {"columns": "site"},
        {"columns": [["site"]]},
        {"columns": [["site", 32]]},
        {"columns": [["site", -1]]},
        {"columns": [["site", True]]},
        {"columns": [["site", 1.0]]},
        {"columns": [[5, 1]]},
        {"columns": [["site", 1], ["site", 2]]},
        {"columns": {"site": 1}},
        {"numbers": "hard"},
        {"numbers": ["soft"]},
        {"ngrams": "words"},
        {"ngrams": "words:0"},
        {"ngrams": "words:3-2"},
        {"ngrams": 5},
        {"counts": 1},
        {"crosses": ["site"]},
        {"crosses": "a*b"},
        {"crosses": [5]},
        {"missing": [None]},
        {"label": 5},
        {"tag": []},
        {"open": None},
        {"more": 1},
    ],
)
def test_settings_of_no_plan_are_refused(change):
    with pytest.raises(ValueError, match=r"^plan: "):
        plan_from_settings({**PLAN.settings(), **change})


@pytest.mark.parametrize("settings", [None, 5, [], {}, "plan"])
def test_what_is_no_settings_is_refused(settings):
    with pytest.raises(ValueError, match=r"^plan: "):
        plan_from_settings(settings)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("site^a.com", "site = a.com"),
        ("site^a^b", "site = a^b"),
        ("price^", "price"),
        ("price^~2^1.5", "price ≈ 2.83"),
        ("price^~-2^-3", "price ≈ -0.125"),
        ("price^~2^10", "price ≈ 1020"),
        ("price^~2^9999", "price ≈ inf"),
        ("price^~0", "price ≈ 0"),
        ("price^~2^x", "price = ~2^x"),
        ("a*b^x\x1fy", "a*b = x, y"),
        ("a*b^x\x1f~2^0.5", "a*b = x, ≈1.41"),
        ("when^hour=3", "when hour = 3"),
        ("when^weekday=0", "when weekday = 0"),
        ("when^hour=late", "when = hour=late"),
        ("^word", "word"),
        ("word", "word"),
        ("site^\x1b[31m\n", r"site = \x1b[31m\n"),
        ("\u202ea^b", r"\u202ea = b"),
    ],
)
def test_names_are_shown_as_people_read_them(name, shown):
    assert display(name) == shown
