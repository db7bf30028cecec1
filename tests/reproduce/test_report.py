"""The report: one page that needs no network and does what it promises in a browser; the same story as Markdown."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from rarestream.reproduce import errata, report, story
from rarestream.reproduce.paper import numbers
from rarestream.study.page import bokeh_script
from tests import children
from tests.reproduce import made_up
from tests.reproduce.made_up import missing, row

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ERRATA = (Path(__file__).parent / "test_errata.py").read_text("utf-8")


@pytest.fixture(scope="module")
def page():
    pytest.importorskip("bokeh")
    return report.html(made_up.rows(), numbers(), {"machine": "made <up>"})


# -- the story


@pytest.mark.parametrize("erratum", errata.ERRATA, ids=lambda erratum: erratum.name)
def test_every_erratum_names_its_test(erratum):
    assert f"def {erratum.test}(" in ERRATA
    assert erratum.test.startswith(f"test_{erratum.name.lower()}_")


def test_errata_are_numbered_without_gaps():
    assert [erratum.name for erratum in errata.ERRATA] == [f"B{number}" for number in range(1, 13)]


def test_without_rows_the_story_says_that_there_are_none():
    text = report.markdown([], numbers())
    assert "There are 0 trials on no data set." in text
    for finding in story.findings([], numbers()):
        if finding.title == "Contradictions within the paper":  # needs none
            continue
        assert all(re.search("nothing to report|no rows", line) for line, _ in finding.lines)


def said(rows, title):
    return next(finding.lines for finding in story.findings(rows, numbers()) if finding.title == title)


def test_what_is_confirmed_counts_the_cells_that_come_out_again():
    rows = [row(mode="published", trial=trial, auc=0.9429) for trial in (0, 1)]
    rows += [row("reviews", mode="published", trial=trial, auc=0.93 + 0.01 * trial) for trial in (0, 1)]
    found = next(one for one in said(rows, "What is confirmed") if one.line.startswith("Table II, AUC"))
    assert found.line.endswith("1 of 2 are reproduced to the last printed digit, 1 within two standard errors.")
    assert found.details == "Not reproduced: FTRL-AUC on reviews (+0.0218)."


def test_lines_of_figures_are_compared_at_the_same_rows():
    published = numbers()["figure8"]["farm-ads"]["ftrl_auc"]
    rows = [row(mode="published", trial=trial) for trial in range(10)]
    for one in rows:
        one["curve"] = {
            **published,
            "seconds": published["rows"],
            "test_auc": [auc + 1e-6 for auc in published["test_auc"]],
        }
    found = next(one for one in said(rows, "What is confirmed") if one.line.startswith("Figure 8"))
    assert not any(one.line.startswith("Figure 8") for one in said(rows[:9], "What is confirmed"))
    assert found.line == "Figure 8: 1 line with the paper's own rows; the largest difference in AUC is 1e-06."


def test_the_paper_is_held_against_itself():
    two, *three = said([], "Contradictions within the paper")
    assert two.line.startswith("Table II: 10 of 42 numbers are more than 0.0005 from the end")
    assert "FTRL-AUC on reviews 0.9132, curve 0.8973" in two.details
    assert [one.details for one in three] == ["", ""]


def test_what_our_learners_reach_is_measured_against_the_best_published():
    rows = [row(method="auto", grid="none", trial=trial, auc=0.96 + 0.001 * trial) for trial in (0, 1)]
    lines = said(rows, "What our learners reach")
    assert lines[0].line == "auto, not tuned, has a higher AUC than the best published method in 1 of 1 cells."
    assert lines[0].details == "farm-ads 0.9605 ± 0.0005 against 0.9540 (SPAUC)."
    assert lines[2].line == "race against the best published method: no rows."


def test_losses_are_compared_trial_by_trial():
    logistic = [row(method="dual_logistic", grid="none", trial=trial, auc=0.95 + 0.01 * trial) for trial in range(3)]
    tuned = [row(trial=trial, auc=0.94 + 0.01 * trial) for trial in range(3)]
    (line,) = said([*logistic, *tuned], "AUC loss and logistic loss")
    assert (
        line.line == "DualAveraging logistic minus FTRL-AUC: higher in 1, lower in 0, within two standard errors in 0."
    )


def test_every_setting_tried_is_held_against_the_authors():
    grid = numbers()["grids"]["farm-ads/ftrl_auc"]
    at = {word: place for place, word in enumerate(grid["columns"])}
    rows = [row(mode="published", grid="full", trial=trial) for trial in range(10)]
    for one in rows:
        one["points"] = [
            {
                **one["points"][0],
                "test_auc": line[at["test_auc"]] + (1e-3 if number == 7 else 0),
                "nonzeros": line[at["sparse_ratio"]] * one["n_features"],
            }
            for number, line in enumerate(grid["rows"])
        ]
    (said,) = [line.line for line in story.findings(rows, numbers())[0].lines if "192 settings" in line.line]
    assert "in test AUC by at most 1e-03 and sparse ratio by at most" in said
    few = story.findings(rows[:9], numbers())[0].lines
    assert not any("192 settings" in line.line for line in few)


def test_the_summary_has_a_sentence_for_what_there_is_and_none_for_what_there_is_not():
    assert story.summary([], numbers()) == []
    exact = [row(mode="published", grid="full", trial=trial, auc=0.9429) for trial in range(2)]
    assert story.summary(exact, numbers()) == [
        "With the authors' bugs, on the paper's own rows, 1 of 1 published AUCs of tables II and III are reproduced to "
        "the last printed digit."
    ]
    off = [row("reviews", mode="published", grid="full", trial=trial, auc=0.8973) for trial in range(2)]
    assert story.summary(off, numbers())[0].endswith(
        "0 of 1 published AUCs of tables II and III are reproduced to the last printed digit; the other 1 also differ "
        "from the end of the authors' own curves."
    )
    cut = [row("reviews", mode="published", ratio=0.1, grid="full", trial=trial, auc=0.5) for trial in range(2)]
    assert story.summary(cut, numbers())[0].endswith(
        "0 of 1 published AUCs of tables II and III are reproduced to the last printed digit."
    )
    both = [*exact, *(row(grid="full", trial=trial, auc=0.95 + 0.001 * trial) for trial in range(2))]
    assert story.summary(both, numbers())[1].startswith(
        "With the bugs fixed, the AUCs of the same methods are higher in 1"
    )
    assert "## Summary\n\n- With the authors' bugs" in report.markdown(both, numbers())
    auto = story.summary([row(method="auto", grid="none", auc=0.99)], numbers())
    assert auto == ["auto, not tuned, has a higher AUC than the best published method in 1 of 1 cells."]


def test_the_story_is_of_these_rows_only():
    text = report.markdown([row(auc=0.91234), missing("real-sim")], numbers())
    assert "0.91234" in text
    assert "FTRL-AUC | no data (0.99226) | 0.91234 (0.94290, -0.03056)" in text


# -- the page


def test_the_page_is_small_and_asks_nobody_for_anything(page):
    assert len(page.encode()) < 2_000_000
    ours = page.replace(bokeh_script(), "")
    assert set(re.findall(r"(?:src|href)=[\"']?(#|data:,|.)", ours)) == {"#", "data:,"}
    assert "url(" not in ours and "@import" not in ours


def test_the_page_takes_any_text():
    pytest.importorskip("bokeh")
    evil = "</script><script>alert(1)</script>"
    text = report.html([row(evil, evil, grid="none"), row(method="solam", error=evil)], None, {evil: evil})
    assert "<script>alert" not in text


def test_a_page_of_no_rows_is_a_page():
    pytest.importorskip("bokeh")
    assert "No curves in these rows." in report.html([], numbers())


PROBE = """
<script>
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
addEventListener("unhandledrejection", (event) => errors.push(String(event.reason)));
addEventListener("load", async () => {
  const wait = (test) => new Promise((done) => { const look = () => test() ? done() : setTimeout(look, 50); look(); });
  const table = [...document.querySelectorAll("table")].find((one) => one.tHead.rows[0].cells[0].textContent === "AUC");
  const column = [...table.tHead.rows[0].cells].findIndex((one) => one.textContent === "imdb");
  const heading = table.tHead.rows[0].cells[column];
  const values = () => [...table.tBodies[0].rows].map((one) => one.cells[column].dataset.value ?? null);
  const found = { before: values() };
  heading.querySelector("button").click();
  found.descending = values();
  found.aria = heading.getAttribute("aria-sort");
  heading.querySelector("button").click();
  found.ascending = values();
  dispatchEvent(new Event("beforeprint"));
  const plots = () => Object.values(Bokeh.index).concat([...(Bokeh.index.roots ?? [])]).filter((one) => one?.model?.renderers);
  const places = document.querySelectorAll(".plot").length;
  await wait(() => errors.length || [...document.querySelectorAll(".plot")].every((one) => one.children.length));
  await wait(() => errors.length || plots().every((one) => one.model.renderers.length));
  await new Promise((done) => setTimeout(done, 200));
  const plot = plots()[0].model;
  found.places = places;
  found.background = plot.background_fill_color;
  document.getElementById("theme").click();
  found.turned = plot.background_fill_color;
  const chip = document.querySelector(".chips button");
  chip.click();
  found.hidden = plot.renderers.filter((one) => !one.visible).map((one) => one.name);
  found.requests = performance.getEntriesByType("resource").map((one) => one.name);
  found.errors = errors;
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
});
</script></head>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.skipif("RARESTREAM_NATIVE" in os.environ, reason="a browser does not run with the sanitizers' library")
def test_in_a_browser_tables_sort_plots_draw_and_the_look_turns(tmp_path):
    pytest.importorskip("bokeh")
    rows = [one for one in made_up.rows() if one["dataset"] in ("farm-ads", "imdb") and one["ratio"] is None]
    file = tmp_path / "page.html"
    file.write_text(report.html(rows, numbers()).replace("</head>", PROBE, 1), "utf-8")
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    words += ["--virtual-time-budget=60000", "--dump-dom", file.as_uri()]
    done = children.run([CHROMIUM, *words])
    match = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match, done.stderr[-2000:]
    found = json.loads(html.unescape(match[1]))
    assert found["errors"] == [] and found["requests"] == []
    known = [float(value) for value in found["before"] if value is not None]
    missing = [None] * (len(found["before"]) - len(known))
    assert missing  # FSAUC failed: it stays last whichever way the rest is sorted
    assert [value and float(value) for value in found["descending"]] == [*sorted(known, reverse=True), *missing]
    assert [value and float(value) for value in found["ascending"]] == [*sorted(known), *missing]
    assert found["aria"] == "descending"
    assert found["places"] == 8
    assert {found["background"], found["turned"]} == {"#ffffff", "#1b1f23"}
    assert found["hidden"] and all(name.startswith("FTRL-AUC") for name in found["hidden"])
