"""Figures are functions of rows: what was published beside ours, on one axis, and lines that can be told apart."""

from __future__ import annotations

import itertools
import re

import pytest

pytest.importorskip("matplotlib")

from rarestream.reproduce import figures
from rarestream.reproduce.methods import METHODS
from rarestream.reproduce.paper import numbers
from rarestream.study.figures import COLOURS, LOOKS, SPARE
from tests.reproduce import made_up
from tests.reproduce.made_up import missing, row

MOST = 7  # lines in a panel


@pytest.mark.parametrize("number", figures.NUMBERS)
def test_every_figure_is_drawn_and_saved(number):
    figure = figures.figure(number, made_up.rows(), numbers())
    assert len(figures.drawn(figure, "svg")) > 2000


def test_an_svg_has_text_and_the_same_bytes_each_time():
    first, second = (figures.drawn(figures.figure(9, made_up.rows(), numbers()), "svg") for _ in range(2))
    assert first == second and re.search(rb"<text[^>]*>reviews, as published</text>", first)


@pytest.mark.parametrize("number", figures.PLANS)
def test_without_rows_the_published_lines_stand_and_the_panels_say_why(number):
    page = figures.figure(number, [missing("imdb")], numbers())
    pairs = 1 if number == 11 else 2  # B12
    for place, name in enumerate(figures.PLANS[number].sets):
        *published, ours = page.axes[pairs * place : pairs * (place + 1)]
        assert ours.get_title() == f"{name}, corrected" and not ours.get_lines()
        assert [text.get_text() for text in ours.texts] == ["no data" if name == "imdb" else "not run"]
        assert all(panel.get_title() == f"{name}, as published" and panel.get_lines() for panel in published)
    assert not figures.has_lines(number, [missing("imdb")])


def test_panels_stand_in_the_papers_order_those_without_trials_left_out():
    titles = [panel.get_title() for panel in figures.figure(3, made_up.rows(), numbers()).axes]
    assert titles == [
        "farm-ads, as published",
        "farm-ads, corrected, 2 trials",
        "rcv1b, as published (other rows)",
        "rcv1b, corrected, 2 trials (subset)",
        "imdb, as published",
        "imdb, corrected, 2 trials (rebuilt)",
        "reviews, as published",
        "reviews, corrected, 2 trials",
    ]


@pytest.mark.parametrize("number", figures.PLANS)
def test_lines_of_a_panel_are_few_and_differ_in_colour_dashes_and_marker(number):
    for panel in figures.figure(number, made_up.rows(), numbers()).axes:
        lines = panel.get_lines()
        assert len(lines) <= MOST
        assert len({line.get_color() for line in lines}) == len(lines)
        # What is left in grey.
        assert len({line.get_marker() for line in lines}) == len(lines)
        dashes = [str(line._dash_pattern) for line in lines if line.get_color() != COLOURS["auto"]]  # solid, but wider
        assert len(set(dashes)) == len(dashes)


def contrast(one, other):
    """The contrast of two colours, as WCAG defines it."""

    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", [*COLOURS.values(), *SPARE])
def test_colours_stand_out_on_white_and_on_the_dark_page(colour):
    assert contrast(colour, "#ffffff") >= 3 and contrast(colour, "#1b1f23") >= 3


def test_both_panels_of_a_set_have_the_same_axis_fitted_to_what_follows_the_first_rows():
    slow = [row(trial=trial, auc=0.95) for trial in range(2)]
    for one in slow:
        one["curve"] = {"rows": [1, 50, 500, 1000], "seconds": [1, 2, 3, 4], "test_auc": [0.2, 0.3, 0.94, 0.95]}
    published, ours = figures.figure(8, slow, numbers()).axes
    assert published.get_ylim() == ours.get_ylim()
    low, high = ours.get_ylim()
    assert 0.6 < low < 0.94 and 0.95 < high < 1


def test_the_names_of_curves_stand_beside_their_ends_and_do_not_overlap():
    panel = figures.figure(8, made_up.rows(), numbers()).axes[1]
    names = {text.get_text(): text.get_position()[1] for text in panel.texts}
    assert set(names) == {METHODS[method].label for method in figures.PLANS[8].methods}
    places = sorted(names.values())
    assert all(high - low >= figures.GAP - 1e-9 for low, high in itertools.pairwise(places))
    ends = {line.get_marker(): line.get_ydata()[-1] for line in panel.get_lines()}
    by_end = sorted(figures.PLANS[8].methods, key=lambda method: ends[LOOKS[method].marker])
    assert [METHODS[method].label for method in by_end] == sorted(names, key=lambda name: names[name])


def test_a_panel_names_the_methods_that_were_not_run():
    panel = figures.figure(4, [row()], numbers()).axes[1]
    assert "not run: SPAM-l1, SPAM-l1/l2, SPAUC" in [text.get_text() for text in panel.texts]


def test_a_caption_says_what_to_see_and_which_sets_are_not_drawn():
    rows = [row(auc=0.95), row(method="auto", grid="none", auc=0.96), row("reviews", auc=0.9)]
    text = figures.caption(8, rows)
    assert "Highest at the end, corrected: auto on 1, FTRL-AUC on 1 of 2." in text
    assert "Fewer than ten trials: farm-ads 1 trial, reviews 1 trial." in text
    assert text.endswith("Not drawn, for want of trials: real-sim, rcv1b, imdb, news20b.")
    assert "Fewer" not in figures.caption(8, [row(trial=trial) for trial in range(10)])


def test_every_method_has_a_colour_of_its_own_and_every_drawn_one_a_look():
    assert set(COLOURS) == set(METHODS)
    assert len(set(COLOURS.values())) == len(METHODS)
    assert {method for plan in figures.PLANS.values() for method in plan.methods} <= set(LOOKS)


def test_the_toy_classifier_has_as_many_labels_as_points():  # unlike the paper's (B11)
    plane, curve = figures.figure(1, [], None).axes
    _, positives, negatives = plane.get_lines()
    assert len(positives.get_xdata()) == len(negatives.get_xdata()) == 14
    assert curve.get_title().startswith("AUC = 0.")


def test_a_figure_that_the_paper_does_not_have_is_refused():
    with pytest.raises(ValueError, match="figure 12: the paper has figures 1 to 11"):
        figures.figure(12, [], None)
