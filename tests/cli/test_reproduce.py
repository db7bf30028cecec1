"""rarestream reproduce: what is missing is said, what is there is run, and files are written."""

from __future__ import annotations

import json
import signal

import pytest

from rarestream.cli.reproduce import NAMES
from rarestream.reproduce import output
from rarestream.reproduce.datasets import sources
from rarestream.reproduce.experiments import EXPERIMENTS
from rarestream.reproduce.figures import NUMBERS
from tests.cli.conftest import run, started
from tests.reproduce.conftest import small as small  # the fixture
from tests.reproduce.conftest import write
from tests.reproduce.made_up import row


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
    drawn: list[int] = []
    monkeypatch.setattr(output, "write_figures", lambda folder, numbers, rows: drawn.extend(numbers) or [])  # slow
    out = tmp_path / "out"
    words = ("--quick", "--trials", 1, "--data-dir", small, "--out", out, "--datasets", "farm-ads", "--jobs", 1)
    done = run("reproduce", "all", *words)
    assert done.exit_code == 0, done.stderr
    assert {"table1.csv", "table2.tex", "table3.md", "report.md", "report.html"} <= {
        path.name for path in out.iterdir()
    }
    assert drawn == list(NUMBERS)


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
    drawn: list[list[int]] = []

    def draw(folder, numbers, rows, suffixes=("png", "svg")):  # the real one is slow
        drawn.append(list(numbers))
        return [folder / "figure8.svg"]

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
    assert drawn[-2:] == [list(NUMBERS), [3, 4, 8]]  # beside the story only those that show trials
    story = (out / "report.md").read_text("utf-8")
    assert "There are 2 trials on imdb" in story
    assert "![Figure 8: AUC against rows](figure8.svg)" in story
    assert (tmp_path / "docs" / "again.md").read_text("utf-8") == story.replace("(figure8.svg", "(again/figure8.svg")
    assert "Not drawn, for want of trials: real-sim, farm-ads" in story


FOREIGN = {  # what is in the file, and what is said of it
    '{"clicks": 3}': "it has no field 'kind'",
    '{"kind": "trial", "dataset": "clicks.svm"}': 'dataset must be one of real-sim, farm-ads, rcv1b, imdb, reviews, news20b, avazu, got "clicks.svm"',
    '{"kind": "trial", "dataset": "imdb", "source": 7}': "source must be a string, got 7",
}


@pytest.mark.parametrize("line", FOREIGN)
@pytest.mark.parametrize("command", ["report", "table2"])
def test_a_results_file_of_something_else_is_an_error_with_its_place(small, tmp_path, line, command):
    (tmp_path / "results.jsonl").write_text(line + "\n")
    done = run("reproduce", command, "--data-dir", small, "--out", tmp_path)
    assert done.exit_code == 1
    said = f"{tmp_path}/results.jsonl:1: not a trial of `rarestream reproduce`: {FOREIGN[line]}."
    assert f"{said} Remove the line, or choose another folder with --out FOLDER." in done.stderr
    assert (tmp_path / "results.jsonl").read_text() == line + "\n"


def test_trials_of_other_rows_are_left_out_of_a_report_and_said(small, tmp_path):
    pytest.importorskip("bokeh")
    mine, others = row("imdb"), row("farm-ads")
    mine["source"], others["source"] = sources(small, ["imdb"])["imdb"].mark, "others"
    file = tmp_path / "results.jsonl"
    words = ("reproduce", "report", "--data-dir", small, "--out", tmp_path)
    file.write_text(json.dumps(others) + "\n")
    done = run(*words)
    assert done.exit_code == 1 and not (tmp_path / "report.md").exists()
    said = f"{file}: trials on farm-ads (1) are of other rows than those in {small}"
    assert f"{said}, and there are no others. Pass the folder of their data with --data-dir DIR." in done.stderr
    file.write_text(json.dumps(others) + "\n" + json.dumps(mine) + "\n")
    done = run(*words)
    assert done.exit_code == 0 and f"{said}; they are left out." in done.stderr
    assert "There is 1 trial on imdb" in (tmp_path / "report.md").read_text("utf-8")
