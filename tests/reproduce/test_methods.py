"""Grids: the paper's, in its order; the corrected ones as large; thin ones a part of them."""

from __future__ import annotations

import pytest

from rarestream.reproduce import published
from rarestream.reproduce.methods import (
    CORRECTED,
    FULL,
    METHODS,
    NONE,
    OURS,
    PUBLISHED,
    QUICK,
    TABLE2,
    TABLE3,
    TUNED_AFTER,
)
from rarestream.reproduce.paper import numbers

SIZES = {
    "ftrl_auc": 192,
    "spam_l1": 112,
    "spam_l2": 112,
    "spam_l1l2": 16,
    "solam": 84,
    "spauc": 160,
    "fsauc": 147,
    "rda_l1": 192,
    "adagrad": 160,
    "ftrl_proximal": 192,
}
TUNED = sorted({*TABLE2, *TABLE3})


@pytest.mark.parametrize("method", TUNED)
@pytest.mark.parametrize("mode", [PUBLISHED, CORRECTED])
def test_a_grid_has_as_many_settings_as_the_papers_and_the_thin_one_is_a_part_of_it(method, mode):
    full, quick = (METHODS[method].points(mode, grid) for grid in (FULL, QUICK))
    assert len(full) == SIZES[method]
    assert len({tuple(point.items()) for point in full}) == len(full)
    assert all(point in full for point in quick)
    assert 4 <= len(quick) <= 16


@pytest.mark.parametrize("method", TUNED)
def test_settings_go_by_the_names_of_the_published_code(method):
    needed = set(published.METHODS[method])
    if method in TUNED_AFTER:
        needed = {"l1"}
    for mode in (PUBLISHED, CORRECTED):
        assert all(set(point) == needed for point in METHODS[method].points(mode, FULL))


def test_the_order_is_the_papers():
    grid = numbers()["grids"]["farm-ads/ftrl_auc"]["rows"]
    assert [(row[0], row[1]) for row in grid] == [
        (point["gamma"], point["l1"]) for point in METHODS["ftrl_auc"].points(PUBLISHED, FULL)
    ]


@pytest.mark.parametrize("method", [name for name in TUNED if name not in TUNED_AFTER])
def test_every_corrected_setting_makes_a_learner(method):
    points = METHODS[method].points(CORRECTED, FULL)
    learners = {METHODS[method].learner(point, 100) for point in points}
    assert len(learners) == len(points)


def test_where_a_corrected_grid_is_another_it_says_so():
    for name in TUNED:
        method = METHODS[name]
        same = method.points(PUBLISHED, FULL) == method.points(CORRECTED, FULL)
        assert same or method.note, name


def test_ours_have_nothing_to_tune():
    assert [METHODS[name].points(CORRECTED, NONE) for name in OURS] == [({},)] * len(OURS)
