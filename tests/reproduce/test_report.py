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
from rarestream.reproduce.methods import TABLE2, TABLE3
from rarestream.reproduce.paper import numbers
from rarestream.study.page import bokeh_script
from rarestream.study.tables import Table
from tests import children
from tests.reproduce import made_up
from tests.reproduce.made_up import missing, row

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DOCS = Path(__file__).parents[2] / "docs"
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


def told(rows, title):
    """The parts of a passage."""
    passages = [*story.article(rows, numbers()), *story.appendix(rows, numbers())]
    return next(passage.parts for passage in passages if passage.title == title)


def lines(rows, title, place=0):
    """The lines of a table of a passage, by their names."""
    table = [part for part in told(rows, title) if isinstance(part, Table)][place]
    return {line.name: [cell.note for cell in line.cells] for line in table.sections[0].lines}


def test_without_rows_the_story_says_that_there_are_none():
    text = report.markdown([], numbers())
    assert "There are 0 trials on no data set." in text
    for passage in story.article([], numbers())[2:]:  # the paper itself needs none
        assert re.search("nothing to report", str(passage.parts[-1])), passage.title
    assert list(story.findings([], numbers())) == []


HEADING = re.compile(r"^(##+ .*)$", re.MULTILINE)


def test_the_page_of_the_documentation_is_such_an_article_and_its_figures_are_there():
    page = DOCS / "reproduction.md"
    text = page.read_text("utf-8")
    made = report.markdown(made_up.rows(), numbers(), pictures=[report.Picture("a.svg", "A", "Look.")])
    assert HEADING.findall(text) == HEADING.findall(made)
    shown = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert {DOCS / path for path in shown} == set((DOCS / "reproduction").glob("*.svg"))


def test_the_article_is_in_the_order_in_which_it_is_read():
    titles = HEADING.findall(report.markdown(made_up.rows(), numbers()))
    assert titles == [
        "## What was published",
        "## What is confirmed",
        "## What the bugs were and what they changed",
        "## What changes for a user of these methods",
        "### Small models",
        "### AUC loss and logistic loss",  # other pages link to it
        "### Lazy and exact class means",
        "## Table II",
        "## Table III",
        "## How it was run",
        "## All differences",
        "## All bugs",
    ]


def test_every_column_has_a_header_and_every_cell_text():
    text = report.markdown(made_up.rows(), numbers(), found={"imdb": {"n": 5, "data": "own", "note": "unknown rows"}})
    rows = [re.split(r"(?<!\\\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    assert rows and all(cell.strip() for row in rows for cell in row)
    assert max(map(len, rows)) <= 7


def test_what_is_confirmed_counts_the_cells_that_come_out_again():
    rows = [row(mode="published", trial=trial, auc=0.9429) for trial in (0, 1)]
    rows += [row("reviews", mode="published", trial=trial, auc=0.93 + 0.01 * trial) for trial in (0, 1)]
    assert lines(rows, "What is confirmed")["Table II, AUC"] == ["2", "1", "1"]
    assert lines(rows, "All differences")["FTRL-AUC"] == ["reviews", "0.91320", "0.93500", "not run", "none"]


def test_lines_of_figures_are_compared_at_the_same_rows():
    published = numbers()["figure8"]["farm-ads"]["spam_l1"]  # which the figure leaves out
    rows = [row(method="spam_l1", mode="published", trial=trial) for trial in range(10)]
    for one in rows:
        one["curve"] = {
            **published,
            "seconds": published["rows"],
            "test_auc": [auc + 1e-6 for auc in published["test_auc"]],
        }
    assert any(
        "1 can be compared; none differs by more than 1e-06" in str(part) for part in told(rows, "What is confirmed")
    )
    assert not any("can be compared" in str(part) for part in told(rows[:9], "What is confirmed"))
    assert lines(rows, "All differences", 1) == {"8": ["1", "1e-06"]}


def test_the_paper_is_held_against_itself():
    *_, text = told([], "What was published")
    assert "10 of 42 AUCs of Table II are more than 0.0005 from there, and 0 of 48 of Table III" in text
    (table,) = [part for part in told([], "All differences") if isinstance(part, Table)]
    found = [[line.name, *(cell.note for cell in line.cells)] for line in table.sections[0].lines]
    assert len(found) == 10 and ["FTRL-AUC", "reviews", "Table II", "0.9132", "0.8973"] in found


def test_what_was_published_is_told_in_a_line_per_set():
    found = lines([], "What was published")
    assert found["reviews"] == ["0.91320", "0.0006", "0.025", "0.93343 (SPAUC)", "22.9"]


def test_the_bugs_of_a_method_are_told_in_a_phrase_with_what_they_changed():
    rows = [
        row(mode=mode, trial=trial, auc=0.9429 + gain + 0.001 * trial)
        for mode, gain in (("published", 0), ("corrected", 0.02))
        for trial in range(3)
    ]
    assert lines(rows, "What the bugs were and what they changed") == {
        "FTRL-AUC": ["no soft-thresholding (B1)", "0.94390 → 0.96390", "1 of 1"]
    }
    assert set(errata.OF_METHODS) == {*TABLE2, *TABLE3}
    known = {erratum.name for erratum in errata.ERRATA}
    assert all(set(re.findall(r"B\d+", phrase)) <= known for phrase in errata.OF_METHODS.values())


def test_what_a_user_gains_is_measured_against_the_best_published():
    rows = [row(method="auto", grid="none", trial=trial, auc=0.96 + 0.001 * trial) for trial in (0, 1)]
    rows += [row("rcv1b", ratio=0.1, auc=0.98)]
    assert lines(rows, "What changes for a user of these methods") == {
        "farm-ads": ["0.95402 (SPAUC)", "not run", "0.96050"],
        "rcv1b at 0.1": ["other rows", "0.9800 (FTRL-AUC)", "not run"],
    }


def test_losses_are_compared_trial_by_trial():
    logistic = [row(method="dual_logistic", grid="none", trial=trial, auc=0.95 + 0.01 * trial) for trial in range(3)]
    tuned = [row(trial=trial, auc=0.94 + 0.01 * trial) for trial in range(3)]
    assert lines([*logistic, *tuned], "AUC loss and logistic loss") == {
        "DualAveraging logistic minus FTRL-AUC": ["1", "0", "0"]
    }


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
    (said,) = [part for part in told(rows, "What is confirmed") if "192 settings" in str(part)]
    assert re.search("by at most 1e-03 in test AUC and .* in sparse ratio", said)
    assert not any("192 settings" in str(part) for part in told(rows[:9], "What is confirmed"))


def test_the_opening_has_a_sentence_for_what_there_is_and_none_for_what_there_is_not():
    def opening(rows):
        return list(story.findings(rows, numbers()))

    exact = [row(mode="published", grid="full", trial=trial, auc=0.9429) for trial in range(2)]
    assert opening(exact) == [
        "**Confirmed:** with the bugs, on the paper's own rows, 1 of 1 published AUCs of tables II and III are "
        "reproduced to the last printed digit."
    ]
    off = [row("reviews", mode="published", grid="full", trial=trial, auc=0.8973) for trial in range(2)]
    assert opening(off)[0].endswith(
        "0 of 1 published AUCs of tables II and III are reproduced to the last printed digit; the other 1 also differ "
        "from the end of the authors' own curves."
    )
    cut = [row("reviews", mode="published", ratio=0.1, grid="full", trial=trial, auc=0.5) for trial in range(2)]
    assert opening(cut)[0].endswith("are reproduced to the last printed digit.")
    both = [*exact, *(row(grid="full", trial=trial, auc=0.95 + 0.001 * trial) for trial in range(2))]
    assert opening(both)[1].startswith("**Bugs:** with the bugs fixed, the AUCs of the same methods are higher in 1")
    assert "\n\n- **Confirmed:** with the bugs" in report.markdown(both, numbers())
    assert opening([row(method="auto", grid="none", auc=0.99)]) == [
        "**Untuned:** `auto`, which has nothing to tune, has a higher AUC than the best published method in 1 of 1 cells "
        "of Table II."
    ]


def test_the_story_is_of_these_rows_only_and_its_tables_have_one_number_per_cell():
    rows = [row(auc=0.91234), row(auc=0.92, trial=1), row("imdb", auc=0.9), missing("real-sim")]
    text = report.markdown(rows, numbers())
    assert "| AUC | farm-ads | imdb |\n|---|---|---|\n| FTRL-AUC | 0.91617 ±\u00a00.00383 | 0.90000¹ |" in text
    assert "\n¹ 1 trial.\n" in text and "imdb: rebuilt rows." in text
    assert "| 1 trial | FTRL-AUC on imdb |" in text


def test_a_figure_is_shown_with_its_caption():
    text = report.markdown(
        [row()], numbers(), pictures=[report.Picture("beside/figure8.svg", "Figure 8: rows", "Look.")]
    )
    assert "![Figure 8: rows](beside/figure8.svg)\n\n**Figure 8: rows.** Look.\n" in text


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


def test_the_page_tells_the_same_article(page):
    assert "<h3>What the bugs were and what they changed</h3>" in page and "<b>Confirmed:</b>" in page
    assert "<h3>Table II</h3>" not in page and "<h3>Table II: AUC methods, corrected</h3>" in page  # in full


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
