"""rarestream compare: a table for people, rows for programs, and a folder to go on from."""

import csv
import json
import re
import signal
import sys

import pytest

from tests.cli.conftest import run, started

FEW = ["--learners", "dual-auc,rda", "--trials", 2, "--settings", 2, "--jobs", 1, "--max-rows", 3000]


def test_the_table_has_the_best_first_and_says_what_its_numbers_are(events):
    result = run("compare", events, *FEW)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("events.svm: 3,000 rows, ") and "2,000 rows were learned, 500 tested." in lines[0]
    assert lines[2].split()[:3] == ["method", "AUC", "+-"]
    aucs = [float(line.split()[1]) for line in lines[3:5]]
    assert aucs == sorted(aucs, reverse=True) and {line.split()[0] for line in lines[3:5]} == {"dual-auc", "rda"}
    assert "standard error, over the same 2 trials" in lines[-1]
    assert "4 trials to run; about " in result.stderr


def test_json_has_a_line_a_result_and_a_line_a_method(events):
    result = run("compare", events, *FEW, "--json", "--quiet")
    assert result.stderr == ""
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [record["kind"] for record in records] == ["trial"] * 4 + ["standing"] * 2
    trial, standing = records[0], records[-2]
    assert trial["dataset"] == "events.svm" and trial["data"] == "own" and len(trial["points"]) == 2
    assert trial["curve"]["rows"][-1] == 2000 and trial["sizes"]["nonzeros"]
    assert standing["behind"] == 0 and standing["trials"] == 2 and standing["why"] == ""


def test_a_folder_keeps_everything_and_a_second_run_does_nothing_anew(events, tmp_path):
    out = tmp_path / "new" / "folder"
    first = run("compare", events, *FEW, "--out", out)
    assert first.exit_code == 0, first.stderr
    assert {"results.jsonl", "table.csv", "table.md"} <= {path.name for path in out.iterdir()}
    assert [one["method"] for one in csv.DictReader((out / "table.csv").open())] == [
        line.split()[1] for line in (out / "table.md").read_text().splitlines()[2:4]
    ]
    before = (out / "results.jsonl").read_bytes()
    again = run("compare", events, *FEW, "--out", out)
    assert again.stdout == first.stdout and (out / "results.jsonl").read_bytes() == before
    assert "4 of them finished before" in again.stderr


def test_rows_in_order_are_one_trial(events):
    result = run("compare", events, *FEW, "--in-order", "--json")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [record["split"] for record in records[:2]] == ["in order"] * 2
    assert all(record["error"] > 0 for record in records[2:])
    assert "over groups of the test rows" in run("compare", events, *FEW, "--in-order").stdout


def test_what_is_left_out_is_said(events):
    # 262,115 columns are far too many for covariances in full
    result = run("compare", events, "--trials", 1, "--settings", 1, "--jobs", 1, "--max-rows", 600)
    assert result.exit_code == 0, result.stderr
    assert "opauc-full: left out: slow here: " in result.stdout and "it runs if it is named" in result.stdout


def test_rows_from_standard_input(events):
    head = "".join(events.read_text().splitlines(keepends=True)[:2000])
    result = run("compare", "-", *FEW, stdin=head)
    assert result.exit_code == 0 and result.stdout.startswith("standard input: 2,000 rows")


@pytest.mark.parametrize(
    "words, code, says",
    [
        (["--learners", "dual-auc,rdo"], 2, "a method must be one of"),
        (["--learners", "rdo"], 2, "Did you mean rda?"),
        (["--trials", "0"], 2, "--trials"),
        (["--scale", "half"], 2, "must be one of none, unit, max, got 'half'"),
        (["--max-rows", "4"], 3, "compare: "),
        (["--positive", "7"], 3, "all 20,000 rows are negative"),
    ],
)
def test_wrong_words_end_it_at_once(events, words, code, says):
    result = run("compare", events, *words)
    assert result.exit_code == code and says in result.stderr


def test_bad_files_end_it_at_once(events, tmp_path):
    result = run("compare", tmp_path / "none.svm")
    assert result.exit_code == 1 and "none.svm: no such file" in result.stderr
    one = tmp_path / "one.svm"
    one.write_text("".join(line for line in events.read_text().splitlines(keepends=True)[:500] if line[0] == "-"))
    result = run("compare", one)
    assert result.exit_code == 3 and "rows are negative, but ranking needs both classes" in result.stderr
    empty = tmp_path / "empty.svm"
    empty.write_text("")
    result = run("compare", empty)
    assert result.exit_code == 3 and "no rows" in result.stderr
    unlabelled = tmp_path / "unlabelled.svm"
    unlabelled.write_text("1:2 3:4\n")
    assert run("compare", unlabelled).exit_code == 3
    result = run("compare", events, "--out", one)
    assert result.exit_code == 1 and "is not a folder" in result.stderr
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "results.jsonl").write_text("nonsense\n{}\n")
    result = run("compare", events, *FEW, "--out", broken)
    assert result.exit_code == 1 and "results.jsonl:1: not a row of results" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_says_where_the_results_are(events, tmp_path, number):
    out = tmp_path / "out"
    results = out / "results.jsonl"
    with started("compare", events, "--trials", 50, "--jobs", 2, "--out", out) as process:
        process.until(lambda: results.exists() and results.stat().st_size)
        process.send_signal(number)
        _, stderr = process.communicate()
    assert process.returncode == 130 and f"finished trials are in {out}: rerun the same command to resume." in stderr


def test_the_page_names_every_method_and_needs_no_network(events, tmp_path):
    pytest.importorskip("bokeh")
    run("compare", events, *FEW, "--out", tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "events.svm: learners compared" in page and "dual averaging, AUC" in page and "RDA" in page
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=.https?:", page)


def test_without_the_packages_that_draw_there_is_everything_but_the_page(events, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "bokeh.resources", None)
    result = run("compare", events, *FEW, "--out", tmp_path)
    assert result.exit_code == 0 and 'pip install "rarestream[report]"' in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.jsonl", "table.csv", "table.md"]
