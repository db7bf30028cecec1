"""rarestream reproduce: what is missing is said, what is there is run, and files are written."""

from __future__ import annotations

import json
import signal

import pytest

from rarestream.cli.reproduce import NAMES
from rarestream.reproduce import output
from rarestream.reproduce.experiments import ALL, EXPERIMENTS
from tests.cli.conftest import run, started
from tests.reproduce.conftest import small as small  # the fixture
from tests.reproduce.conftest import write


def test_there_is_a_command_for_every_experiment():
    assert list(NAMES) == [*EXPERIMENTS, "all"]


def test_missing_data_are_named_with_their_place_and_the_rest_is_run(small, tmp_path):
    out = tmp_path / "out"
    done = run("reproduce", "table3", "--quick", "--data-dir", small, "--out", out, "--jobs", 1, "--trials", 1)
    assert done.exit_code == 0, done.stderr
    assert f"news20b: {small}/news20b.svm" in done.stderr
    assert "no data" in done.stdout
    assert {path.suffix for path in out.iterdir()} == {".jsonl", ".csv", ".md", ".tex"}


def test_no_data_at_all_is_a_failure(tmp_path):
    done = run("reproduce", "table2", "--data-dir", tmp_path, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "has none of the data sets" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [("--datasets", "farmads"), ("--methods", "ftrl")])
def test_unknown_names_are_wrong_usage(small, tmp_path, words):
    done = run("reproduce", "table2", "--data-dir", small, "--out", tmp_path / "out", *words)
    assert done.exit_code == 2
    assert words[1] in done.stderr


def test_rows_as_json(small, tmp_path):
    words = ("--quick", "--data-dir", small, "--out", tmp_path / "out", "--jobs", 1, "--json", "--datasets", "imdb")
    done = run("reproduce", "table2", *words, "--methods", "ftrl_auc,auto", "--as-published")
    assert done.exit_code == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["method"], row["mode"], row["trial"]) for row in rows] == [
        ("ftrl_auc", "published", 0),
        ("ftrl_auc", "published", 1),
    ]


def test_table1_says_what_the_folder_has(small, tmp_path):
    done = run("reproduce", "table1", "--data-dir", small, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert "own" in done.stdout and "no data" in done.stdout


def test_figures_are_drawn(small, tmp_path):
    pytest.importorskip("matplotlib")
    words = ("--quick", "--data-dir", small, "--out", tmp_path / "out", "--jobs", 1, "--rows", 2000)
    for name, files in (("lazy", {"figure2", "figure9"}), ("avazu", {"figure7"}), ("figure1", {"figure1"})):
        done = run("reproduce", name, *words)
        assert done.exit_code == 0, done.stderr
        assert {path.stem for path in (tmp_path / "out").glob("*.png")} >= files
    assert "generated stream of 2,000 rows" in run("reproduce", "figure7", *words).stderr


def test_a_part_of_one_class_is_said_in_the_table(tmp_path):
    write(tmp_path / "farm-ads.svm", 60, 1)
    words = ("--quick", "--data-dir", tmp_path, "--out", tmp_path / "out", "--jobs", 1)
    done = run("reproduce", "table2", *words, "--methods", "ftrl_auc")
    assert done.exit_code == 0, done.stderr
    assert "one class" in done.stdout


def test_all_of_it_with_a_report(small, tmp_path, monkeypatch):
    pytest.importorskip("bokeh")
    drawn: list[str] = []
    monkeypatch.setattr(output, "write_figures", lambda folder, names, rows: drawn.extend(names) or [])  # slow
    out = tmp_path / "out"
    words = ("--quick", "--trials", 1, "--data-dir", small, "--out", out, "--datasets", "farm-ads", "--jobs", 1)
    done = run("reproduce", "all", *words)
    assert done.exit_code == 0, done.stderr
    assert {"table1.csv", "table2.tex", "table3.md", "report.md", "report.html"} <= {
        path.name for path in out.iterdir()
    }
    assert drawn == ALL


def test_interrupted_it_says_where_it_will_go_on(small, tmp_path):
    out = tmp_path / "out"
    with started("reproduce", "table2", "--quick", "--data-dir", small, "--out", out) as process:
        assert any(line.startswith("3 of 48") for line in process.lines("stderr"))
        process.send_signal(signal.SIGINT)
        rest = "".join(process.lines("stderr"))
    assert process.returncode == 130
    assert f"trials are in {out}/results.jsonl. Rerun the same command to resume." in rest
    assert "Traceback" not in rest


def test_a_report_of_what_is_done_runs_nothing(small, tmp_path, monkeypatch):
    pytest.importorskip("bokeh")
    drawn: list[str] = []

    def draw(folder, names, rows, suffixes=("png",), dpi=200):  # the real one is slow
        drawn.extend(names)
        return [folder / "figure8.png"]

    monkeypatch.setattr(output, "write_figures", draw)
    out = tmp_path / "out"
    words = ("--data-dir", small, "--out", out)
    done = run("reproduce", "report", *words)
    assert done.exit_code == 1
    assert "results.jsonl: there are no trials" in done.stderr and "rarestream reproduce table2" in done.stderr
    assert not out.exists()
    some = ("--quick", "--jobs", 1, "--trials", 1, "--datasets", "imdb", "--methods", "ftrl_auc,auto")
    assert run("reproduce", "table2", *words, *some).exit_code == 0
    before = (out / "results.jsonl").read_bytes()
    done = run("reproduce", "report", *words, "--story", tmp_path / "docs")
    assert done.exit_code == 2 and "must end with .md" in done.stderr and not (tmp_path / "docs").exists()
    done = run("reproduce", "report", *words, "--story", tmp_path / "docs" / "again.md")
    assert done.exit_code == 0, done.stderr
    assert (out / "results.jsonl").read_bytes() == before
    for name in ("table1.csv", "table2.tex", "table3.md", "report.md", "report.html"):
        assert (out / name).stat().st_size
    assert drawn[-len(ALL) :] == ALL
    story = (out / "report.md").read_text("utf-8")
    assert "There are 2 trials on imdb" in story
    assert "![figure8](figure8.png)" in story
    assert (tmp_path / "docs" / "again.md").read_text("utf-8") == story.replace("(figure8.png", "(again/figure8.png")
    assert "not run" in story and "no data" in story  # those that were not asked for, those that are not there
