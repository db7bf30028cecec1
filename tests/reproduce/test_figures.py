"""Figures are functions of rows: the paper's panels, ours solid, the published dashed."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from rarestream.reproduce import figures
from rarestream.reproduce.methods import METHODS
from rarestream.reproduce.paper import numbers
from tests.reproduce import made_up
from tests.reproduce.made_up import missing


def lines(panel, dashed):
    return [line for line in panel.get_lines() if (line.get_linestyle() == "--") == dashed]


@pytest.mark.parametrize("number", figures.NUMBERS)
def test_every_figure_is_drawn_and_saved(number, tmp_path):
    file = tmp_path / ("figure.png" if number % 2 else "figure.svg")
    figures.figure(number, made_up.rows(), numbers()).savefig(file, dpi=40)
    assert file.stat().st_size > 2000


@pytest.mark.parametrize("number", figures.PLANS)
def test_without_rows_the_published_lines_stand_and_the_panels_say_why(number):
    page = figures.figure(number, [missing("imdb")], numbers())
    for panel, name in zip(page.axes, figures.PLANS[number].sets, strict=True):
        assert panel.get_title() == name
        assert [text.get_text() for text in panel.texts] == [f"ours: {'no data' if name == 'imdb' else 'not run'}"]
        assert bool(lines(panel, dashed=True)) == (number != 11)  # B12


def test_panels_stand_in_the_papers_order():
    order = ["real-sim", "farm-ads", "rcv1b (subset)", "imdb (rebuilt)", "reviews", "news20b"]
    assert [panel.get_title() for panel in figures.figure(3, made_up.rows(), numbers()).axes] == order


def test_ours_are_solid_and_the_published_dashed_on_top_in_a_darker_shade():
    from matplotlib.colors import to_rgb

    panel = figures.figure(8, made_up.rows(), numbers()).axes[1]
    solid, dashed = lines(panel, dashed=False), lines(panel, dashed=True)
    assert len(solid) == len(dashed) + 1 == 8  # with ours that the paper does not have
    shades = {tuple(0.6 * part for part in to_rgb(line.get_color())) for line in solid}
    assert {line.get_color() for line in dashed} < shades
    assert min(line.get_zorder() for line in dashed) > max(line.get_zorder() for line in solid)


def test_every_method_has_a_colour_of_its_own():
    assert set(figures.COLOURS) == set(METHODS)
    assert len(set(figures.COLOURS.values())) == len(METHODS)


def test_the_toy_classifier_has_as_many_labels_as_points():  # unlike the paper's (B11)
    plane, curve = figures.figure(1, [], None).axes
    _, positives, negatives = plane.get_lines()
    assert len(positives.get_xdata()) == len(negatives.get_xdata()) == 14
    assert curve.get_title().startswith("AUC = 0.")


def test_a_figure_that_the_paper_does_not_have_is_refused():
    with pytest.raises(ValueError, match="figure 12: the paper has figures 1 to 11"):
        figures.figure(12, [], None)
