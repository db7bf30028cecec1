"""The figure and the page of an evaluation show its numbers and curves."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from rarestream.errors import DataError, MissingExtraError
from rarestream.evaluate import Evaluator, figure, figure_bytes
from rarestream.study.evaluated import report
from rarestream.study.page import bokeh_script


def evaluated(curves=True, probabilities=True, groups=False, kept=10**6):
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(3000) < 0.1, 1, -1)
    scores = 0.1 + 0.2 * rng.random(3000) + 0.1 * (labels > 0)
    evaluator = Evaluator(kept=kept, probability=np.asarray if probabilities else None, groups=groups, curves=curves)
    evaluator.add(labels, scores, groups=[f"<user {n}>" for n in rng.integers(0, 90, 3000)] if groups else None)
    return evaluator.result()


def test_the_figure_has_a_panel_for_each_curve():
    pytest.importorskip("matplotlib")
    drawn = figure(evaluated())
    assert [panel.get_title() for panel in drawn.axes] == [
        "ROC",
        "Precision and recall",
        "Lift",
        "Reliability",
        "Scores",
        "",
    ]
    assert figure_bytes(drawn, ".png").startswith(b"\x89PNG")
    assert b"<svg" in figure_bytes(drawn, ".SVG")


def test_without_probabilities_the_figure_says_so():
    pytest.importorskip("matplotlib")
    panel = figure(evaluated(probabilities=False)).axes[3]
    assert "not calibrated" in panel.texts[0].get_text()


def test_without_curves_there_is_no_figure():
    pytest.importorskip("matplotlib")
    for found in (evaluated(curves=False), evaluated(kept=100)):
        with pytest.raises(DataError, match="the evaluation has no curves. Pass curves=True"):
            figure(found)


def plots_of(page):
    return json.loads(re.search(r'id="plots">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_has_the_numbers_the_curves_and_the_bins():
    pytest.importorskip("bokeh")
    found = evaluated(groups=True)
    page = report(found, title="m.rare: <evaluation>", facts={"data": "a&b.csv"}, rerun=["rarestream evaluate x"])
    for text in (f"{float(found.auc):.4f}", f"{found.log_loss:.4f}", f"{found.group_auc.value:.4f}", "a&amp;b.csv"):
        assert text in page
    assert "&lt;evaluation&gt;" in page
    assert "<evaluation>" not in page
    assert "&lt;user" in page
    assert "<user" not in page
    drawn = plots_of(page)
    assert len(drawn["kinds"]) == len(drawn["plots"]) == 5
    for plot in drawn["plots"].values():
        for line in plot["lines"]:
            assert len(line["x"]) == len(line["y"]) <= 500
    roc = drawn["plots"]["plot-0"]["lines"][1]
    assert (roc["x"][0], roc["y"][0], roc["x"][-1], roc["y"][-1]) == (0, 0, 1, 1)
    assert not re.search(r'(src|href)="(?!#|data:)', page.replace(bokeh_script(), ""))


def test_a_page_without_curves_has_numbers():
    pytest.importorskip("bokeh")
    page = report(evaluated(kept=100, probabilities=False), title="many rows")
    assert plots_of(page) == {"kinds": [], "plots": {}}


def test_what_draws_may_be_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    monkeypatch.setitem(__import__("sys").modules, "bokeh.resources", None)
    with pytest.raises(MissingExtraError, match=r"rarestream\[plot\]"):
        figure(evaluated())
    with pytest.raises(MissingExtraError, match=r"rarestream\[report\]"):
        report(evaluated(), title="x")
