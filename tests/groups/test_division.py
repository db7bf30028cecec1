"""Division: which blocks are learned in which round by which group, and what cannot be divided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rarestream import DataError
from rarestream.groups import auto_groups, auto_rounds, divide
from rarestream.groups.division import (
    ENOUGH_HELD_OUT,
    GROUP_POSITIVES,
    GROUP_ROWS,
    HELD_OUT,
    LARGEST_SHARE,
    MOST_HELD_OUT,
    SMALLEST_SHARE,
)
from tests.strategies import examples


@st.composite
def sizes(draw) -> tuple[np.ndarray, np.ndarray]:
    """Rows and positives of many blocks, some of them short, as the last of a partition is."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = rng.choice([1, 7, 50, 50, 50], draw(st.integers(1, 300)))
    return rows, np.minimum(rng.integers(0, 10, len(rows)), rows)


@given(
    sizes=sizes(),
    groups=st.integers(1, 12),
    rounds=st.integers(1, 6),
    race=st.booleans(),
    first=st.lists(st.integers(1, 400)),
)
@settings(max_examples=examples(150))
def test_every_block_is_learned_once_in_the_order_of_rounds_by_groups_in_turn(sizes, groups, rounds, race, first):
    rows, positives = sizes
    try:
        found = divide(rows, positives, groups, rounds, first, race)
    except DataError:
        assume(False)
    learned = found.round_of != HELD_OUT
    pieces = [found.blocks(number, group) for number in range(found.rounds) for group in range(groups)]
    assert sorted([*np.concatenate(pieces), *found.held_out]) == list(range(len(rows)))
    assert (np.diff(found.round_of[learned]) >= 0).all()
    for number in range(found.rounds):
        in_round = np.flatnonzero(found.round_of == number)
        assert found.group_of[in_round].tolist() == [at % groups for at in range(len(in_round))]
        of_groups = [int(rows[found.blocks(number, group)].sum()) for group in range(groups)]
        assert found.group_rows(number).tolist() == of_groups
        assert groups == 1 or min(of_groups) > 0
    total = sum(int(found.group_rows(number).sum()) for number in range(found.rounds))
    assert total + int(rows[found.held_out].sum()) == rows.sum()
    assert (found.groups, len(found.held_out) > 0) == (groups, groups > 1)


@given(sizes=sizes(), groups=st.integers(2, 4), race=st.booleans())
@settings(max_examples=examples(60))
def test_blocks_held_out_are_spread_over_all_rows_and_bounded(sizes, groups, race):
    rows, positives = sizes
    try:
        held_out = divide(rows, positives, groups, 1, race=race).held_out
    except DataError:
        assume(False)
    count, blocks = len(held_out), len(rows)
    assert SMALLEST_SHARE * blocks - 1 <= count <= max(1, LARGEST_SHARE * blocks + 1)
    for number, at in enumerate(held_out):  # one in the middle of each of as many equal parts
        assert abs(at + 0.5 - (number + 0.5) * blocks / count) <= 0.5
    if race:
        assert count == max(1, round(LARGEST_SHARE * blocks))


def test_as_many_rows_are_held_out_as_the_rarer_class_needs_and_never_very_many():
    def held_out(blocks: int, positives: int, race: bool = False) -> int:
        rows = np.full(blocks, 1000)
        return int(rows[divide(rows, np.full(blocks, positives), 4, 4, race=race).held_out].sum())

    assert held_out(1000, 500) == SMALLEST_SHARE * 1_000_000
    assert held_out(1000, 5) == ENOUGH_HELD_OUT / 5_000 * 1_000_000
    assert held_out(1000, 995) == held_out(1000, 5)
    assert held_out(100, 1) == LARGEST_SHARE * 100_000
    assert held_out(100, 500, race=True) == LARGEST_SHARE * 100_000
    for race in (False, True):
        assert held_out(100_000, 1 if race else 500, race) == pytest.approx(MOST_HELD_OUT, abs=1000)


def test_with_one_group_nothing_is_held_out_and_one_class_in_a_round_is_allowed():
    found = divide(np.array([10, 10]), np.array([10, 0]), 1, 2)
    assert found.round_of.tolist() == [0, 1]
    assert not len(found.held_out)


def test_rounds_have_about_as_many_rows_each_after_short_ones():
    rows, positives = np.full(1000, 100), np.full(1000, 10)
    found = divide(rows, positives, 4, 5)
    of_rounds = [int(found.group_rows(number).sum()) for number in range(5)]
    assert max(of_rounds) - min(of_rounds) <= 100
    found = divide(rows, positives, 4, 5, first_rounds=[4000, 1000, 1000, 10**6])
    assert found.rounds == 7
    ends = np.cumsum([found.group_rows(number).sum() for number in range(7)])
    assert ends[:2].tolist() == [1000, 4000]  # one that is longer than a round is none
    assert max(np.diff(ends[1:])) - min(np.diff(ends[1:])) <= 200
    assert divide(rows, positives, 1, 5, first_rounds=[1000]).rounds == 5


def test_what_is_automatic():
    assert [auto_rounds(groups) for groups in (1, 2, 16, 17, 64)] == [1, 4, 4, 5, 16]
    assert auto_groups(8, 10**6, 10**5) == 8
    assert auto_groups(1000, 10**9, 10**7) == 64
    assert auto_groups(8, 3 * GROUP_ROWS, 10**4) == 3
    assert auto_groups(8, 10**6, 2 * GROUP_POSITIVES) == 2
    assert auto_groups(8, 10**6, 10**6 - 2 * GROUP_POSITIVES) == 2
    assert auto_groups(8, 100, 50) == auto_groups(8, 10**6, 0) == auto_groups(1, 10**9, 10**6) == 1


# -- what is refused


@pytest.mark.parametrize("groups", [1, 3])
def test_no_rows_and_one_class_are_refused(groups):
    nothing = np.zeros(0, int)
    for rows in (nothing, np.zeros(3, int)):
        with pytest.raises(DataError, match="there are no rows to learn"):
            divide(rows, rows, groups, 1)
    rows = np.full(10, 200)
    with pytest.raises(DataError, match="all 2,000 rows are negative; learning needs both classes"):
        divide(rows, 0 * rows, groups, 1)
    with pytest.raises(DataError, match="all 2,000 rows are positive; learning needs both classes"):
        divide(rows, rows, groups, 1)


@pytest.mark.parametrize("blocks, rounds, has", [(1, 1, 0), (4, 1, 3), (9, 2, 4)])
def test_too_few_blocks_for_the_groups_are_refused(blocks, rounds, has):
    rows = np.full(blocks, 100)
    said = rf"^round 1 of {rounds} has blocks for {has} of 5 groups only. Use fewer groups or rounds\.$"
    with pytest.raises(DataError, match=said):
        divide(rows, rows // 2, 5, rounds)


def test_a_group_of_one_class_is_refused():
    rows = np.full(40, 100)
    first = divide(rows, rows // 2, 2, 1, race=True)
    positives = np.where((first.group_of == 1) & (first.round_of != HELD_OUT), 50, 0)
    said = (
        r"^all 1,800 rows of group 1 of 2 are negative: 2 groups in 1 round are too many for so few rows of the other"
    )
    with pytest.raises(DataError, match=said) as caught:
        divide(rows, positives, 2, 1, race=True)
    assert "Use fewer groups, or put the rows into random order once" in str(caught.value)


@pytest.mark.parametrize("last, kind", [(0, "negative"), (100, "positive")])
def test_a_round_of_one_class_is_refused(last, kind):
    rows, positives = np.full(40, 100), np.full(40, 30)
    positives[20:] = last
    with pytest.raises(DataError, match=rf"^all [\d,]+ rows of round 2 of 2 are {kind}: .* sorted by label"):
        divide(rows, positives, 4, 2)
