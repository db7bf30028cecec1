"""What is written where: nothing is lost, nothing fails only at the end, and nothing is left half-written."""

from __future__ import annotations

import json
import os
import re
import shlex
import threading

import pytest

from rarestream import Model
from rarestream.modelfile import peek, to_bytes
from tests import children
from tests.cli.conftest import PROGRAM, process, run, started

ROWS = "1 1:1 2:1\n-1 3:1\n" * 60


@pytest.fixture
def model(tmp_path):
    """A small model and its data, and a folder with two files more."""
    (tmp_path / "data.svm").write_text(ROWS)
    assert run("train", tmp_path / "data.svm", "-o", tmp_path / "m.rare", "-l", "dual-auc").exit_code == 0
    (tmp_path / "gl").mkdir()
    (tmp_path / "gl" / "x.svm").write_text(ROWS)
    (tmp_path / "gl" / "y.svm").write_text(ROWS)
    return tmp_path / "m.rare"


def words_of(command, model, data, output):
    return {
        "train": ("train", data, "-o", output),
        "race": ("race", data, "-o", output),
        "prune": ("prune", model, "--on", data, "--nonzeros", 2, "-o", output),
        "plot": ("prune", model, "--on", data, "--nonzeros", 2, "--plot", output),
        "predict": ("predict", model, data, "-o", output),
    }[command]


@pytest.mark.parametrize("command", ["train", "race", "prune", "predict"])
@pytest.mark.parametrize("how", ["itself", "symbolic", "hard"])
@pytest.mark.parametrize("more", [(), ("--overwrite",)])
def test_what_is_read_is_never_written_even_through_globs_and_links(tmp_path, model, command, how, more):
    output = tmp_path / "gl" / "y.svm"
    if how == "symbolic":
        output = tmp_path / "link"
        output.symlink_to("gl/y.svm")
    elif how == "hard":
        output = tmp_path / "hard"
        os.link(tmp_path / "gl" / "y.svm", output)
    done = run(*words_of(command, model, tmp_path / "gl" / "*.svm", output), *more)
    assert done.exit_code == 2
    assert "would be lost" in " ".join(done.stderr.split())
    assert (tmp_path / "gl" / "y.svm").read_text() == ROWS
    assert not list(tmp_path.rglob("*.part"))


def test_the_file_behind_standard_input_is_not_written_either(tmp_path, model):
    data = tmp_path / "data.svm"
    for words in (("train", "-"), ("predict", model, "-"), ("predict", model, "/dev/stdin")):
        with data.open() as file:
            done = process(*words, "-o", data, "--overwrite", "--format", "svmlight", stdin=file)
        assert done.returncode == 2
        assert "would be lost" in done.stderr
    assert data.read_text() == ROWS


@pytest.mark.parametrize("command", ["train", "race", "prune", "plot", "predict"])
def test_a_file_that_is_no_model_is_kept_unless_overwriting_is_asked_for(tmp_path, model, command):
    output = tmp_path / "notes.svg"
    output.write_text("precious")
    words = words_of(command, model, tmp_path / "gl" / "x.svm", output)
    done = run(*words)
    assert done.exit_code == 2
    assert "--overwrite" in done.stderr
    assert output.read_text() == "precious"
    done = run(*words, "--overwrite")
    assert done.exit_code == 0, done.stderr
    assert "replaced" not in done.stderr
    assert output.read_bytes() != b"precious"


@pytest.mark.parametrize("name", ["old.rare", "old.txt"])
@pytest.mark.parametrize("command", ["train", "race", "prune"])
def test_that_a_model_is_replaced_is_said_in_a_line(tmp_path, model, command, name):
    output = tmp_path / name
    output.write_bytes(model.read_bytes())
    words = words_of(command, model, tmp_path / "gl" / "x.svm", output)
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    assert f"{output}: replaced the previous model (dual-auc, 120 rows)\n" in done.stderr
    assert "replaced the previous model" not in done.stdout
    if command != "prune":
        assert run(*words, "--quiet").stderr == ""
        lines = run(*words, "--json").stdout.splitlines()
        assert all(json.loads(line) for line in lines)


def test_the_model_that_is_resumed_is_replaced_without_a_word(tmp_path, model):
    more = tmp_path / "gl" / "x.svm"
    assert "replaced" not in run("train", more, "--resume", model).stderr
    assert "replaced" not in run("train", more, "--resume", model, "-o", model).stderr
    again = run("train", more, "--resume", model, "-o", tmp_path / "new.rare")
    assert "replaced" not in again.stderr
    again = run("train", more, "--resume", model, "-o", tmp_path / "new.rare", "--passes", 2)
    assert "new.rare: replaced the previous model (dual-auc, " in again.stderr


def test_saving_often_says_it_once(events, tmp_path, model):
    done = run("train", events, "-o", model, "--save-every", 5000)
    assert done.stderr.count("replaced the previous model") == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"\xff" * 100,
        (2).to_bytes(8, "little") + b"{}",
        (10**18).to_bytes(8, "little") + b"{}",
        (40).to_bytes(8, "little") + b'{"__metadata__":{"rarestream":"[1,2,3]"}}',
        (2000).to_bytes(8, "little") + b"[" * 2000,
    ],
)
def test_a_model_is_told_by_what_is_in_it(tmp_path, content):
    path = tmp_path / "m.rare"
    path.write_bytes(content)
    assert peek(path) is None
    assert peek(tmp_path) is None
    assert peek(tmp_path / "missing") is None
    path.write_bytes(to_bytes({"rows": 7}, {}))
    header = peek(path)
    assert header is not None and header["rows"] == 7


def test_scores_are_not_written_over_a_model(tmp_path, model):
    other = tmp_path / "other.rare"
    other.write_bytes(model.read_bytes())
    data = tmp_path / "data.svm"
    assert run("predict", model, data, "-o", other).exit_code == 2
    assert run("predict", model, data, "-o", model).exit_code == 2
    assert run("predict", model, data, "-o", model, "--overwrite").exit_code == 2
    assert other.read_bytes() == model.read_bytes()
    assert run("predict", model, data, "-o", other, "--overwrite").exit_code == 0
    assert other.read_text() == run("predict", model, data).stdout


def test_a_drawing_needs_a_file(tmp_path, model):
    fifo = tmp_path / "f.png"
    os.mkfifo(fifo)
    done = run("prune", model, "--on", tmp_path / "data.svm", "--nonzeros", 2, "--plot", fifo, "--overwrite")
    assert done.exit_code == 1
    assert "not a regular file" in done.stderr
    assert done.stdout == ""


def test_a_drawing_and_a_model_do_not_go_to_the_same_file(tmp_path, model):
    path = tmp_path / "a.svg"
    done = run("prune", model, "--on", tmp_path / "data.svm", "--nonzeros", 2, "-o", path, "--plot", path)
    assert done.exit_code == 2
    assert not path.exists()


def test_data_refused_half_way_leave_the_old_scores(tmp_path, model):
    bad, path, new = tmp_path / "bad.svm", tmp_path / "scores.txt", tmp_path / "new.txt"
    bad.write_text(ROWS * 5000 + "1 x:1\n")
    path.write_text("old")
    assert run("predict", model, bad, "-o", path, "--overwrite").exit_code == 3
    assert run("predict", model, bad, "-o", new).exit_code == 3
    assert path.read_text() == "old"
    assert not new.exists()
    assert not list(tmp_path.glob(".*"))


def test_scores_may_go_to_pipes_and_devices(tmp_path, model):
    data, fifo = tmp_path / "data.svm", tmp_path / "fifo"
    expected = run("predict", model, data).stdout
    assert run("predict", model, data, "-o", "/dev/null").exit_code == 0
    os.mkfifo(fifo)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()))
    reader.start()
    assert run("predict", model, data, "-o", fifo).exit_code == 0
    reader.join()
    assert got == [expected]
    assert fifo.is_fifo()
    assert process("predict", model, data, "-o", "/dev/stdout").stdout == expected
    assert process("predict", model, data, "-o", "-").stdout == expected
    command = f"{shlex.join([*PROGRAM, 'predict', str(model), str(data)])} -o /dev/fd/3 3>> {tmp_path / 'three'}"
    for _ in range(2):
        assert children.run(["bash", "-c", command]).returncode == 0
    assert (tmp_path / "three").read_text() == expected + expected
    with (tmp_path / "log").open("w+") as file:
        file.write("before\n")
        file.flush()
        assert process("predict", model, data, "-o", "/dev/stdout", stdout=file).returncode == 0
    assert (tmp_path / "log").read_text() == "before\n" + expected


@pytest.mark.parametrize("command", ["train", "race", "prune", "predict"])
def test_a_link_stays_and_what_it_points_to_is_written(tmp_path, model, command):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to("there/out")
    done = run(*words_of(command, model, tmp_path / "data.svm", link))
    assert done.exit_code == 0, done.stderr
    assert link.is_symlink()
    assert (tmp_path / "there" / "out").stat().st_size
    link.unlink()
    link.symlink_to("nowhere/out")
    assert "does not exist" in run(*words_of(command, model, tmp_path / "data.svm", link)).stderr


@pytest.mark.parametrize("command", ["train", "race", "prune", "predict"])
def test_a_name_too_long_is_known_before_any_work(tmp_path, model, command):
    slow = tmp_path / "slow.fifo"
    os.mkfifo(slow)  # that nobody writes to: reading it would never end
    done = process(*words_of(command, model, slow, tmp_path / ("x" * 300)))
    assert done.returncode == 1
    assert "cannot be written (File name too long)" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_a_killed_run_left_goes_with_the_next(events, tmp_path):
    fifo, out = tmp_path / "rows.fifo", tmp_path / "scores.txt"
    os.mkfifo(fifo)
    (tmp_path / "data.svm").write_text(ROWS)
    assert run("train", tmp_path / "data.svm", "-o", tmp_path / "m.rare").exit_code == 0
    words = ["predict", tmp_path / "m.rare", fifo, "-o", out]
    with started(*words) as program, fifo.open("w") as file:
        file.write(ROWS)
        file.flush()
        program.until(lambda: list(tmp_path.glob(".scores*.part")))
        program.kill()
        program.wait()
    assert list(tmp_path.glob(".scores*.part"))
    assert run("predict", tmp_path / "m.rare", tmp_path / "data.svm", "-o", out).exit_code == 0
    assert not list(tmp_path.glob(".*"))


def test_results_of_a_comparison_do_not_replace_files_of_somebody_else(events, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "table.csv").write_text("precious")
    words = ("compare", events, "--out", out, "-l", "dual-auc", "--trials", 1, "--settings", 1, "--jobs", 1)
    done = run(*words)
    assert done.exit_code == 1
    assert "table.csv: exists, but the folder has no results.jsonl" in done.stderr
    assert (out / "table.csv").read_text() == "precious"
    (out / "table.csv").unlink()
    (out / "results.jsonl").write_text("notes of mine")
    assert run(*words).exit_code == 1
    assert (out / "results.jsonl").read_text() == "notes of mine"
    (out / "results.jsonl").unlink()
    assert run(*words).exit_code == 0
    assert run(*words).exit_code == 0


def test_the_size_says_what_scoring_alone_would_take(tmp_path, model):
    small = len(Model.load(model).to_bytes("scoring"))
    data = tmp_path / "data.svm"
    told = run("train", data, "-o", tmp_path / "a.rare", "-l", "dual-auc").stderr
    about = re.search(r"resumable\n  for scoring only about (.*) kB: --scoring-only or rarestream prune", told)
    assert about and abs(1000 * float(about[1]) - small) < 500
    assert "for scoring only" in run("race", data, "-o", tmp_path / "b.rare").stderr
    assert "for scoring only" not in run("train", data, "-o", tmp_path / "a.rare", "--scoring-only").stderr
    assert f"for scoring only {small / 1000:.2f} kB" in run("inspect", model).stdout
    assert json.loads(run("inspect", model, "--json").stdout)["scoring_bytes"] == small
    assert "now, resumable" in run("prune", model, "--nonzeros", 1).stdout
    assert run("prune", model, "--nonzeros", 9, "-o", tmp_path / "c.rare").exit_code == 0
    assert "for scoring only" not in run("inspect", tmp_path / "c.rare").stdout


def test_evaluating_on_learned_rows_is_warned_of(tmp_path, model):
    data, copied, grown, fresh = (tmp_path / name for name in ("data.svm", "copy.svm", "grown.svm", "fresh.svm"))
    copied.write_text(ROWS)
    grown.write_text(ROWS + "1 1:1\n-1 2:1\n")
    fresh.write_text("-1 2:1\n" + ROWS)
    for path, learned in ((data, True), (copied, True), (grown, True), (fresh, False)):
        done = run("evaluate", model, path, "--json")
        assert json.loads(done.stdout)["learned"] is learned
        assert ("has learned rows of these files" in done.stderr) is learned
        assert ("warning" in run("prune", model, "--nonzeros", 1, "--on", path).stderr) is learned
    assert json.loads(run("evaluate", model, "-", "--json", stdin=ROWS).stdout)["learned"] is False


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "| true"])
def test_notes_and_warnings_do_no_harm_when_nobody_can_read_them(tmp_path, model, closed):
    """Replaced models, learned rows: with standard error or output closed, or read by nobody."""
    for words in (("train", "data.svm", "-o", "m.rare"), ("evaluate", "m.rare", "data.svm"), ("inspect", "m.rare")):
        command = f"set -o pipefail; {shlex.join([*PROGRAM, *words])} {closed}"
        done = children.run(["bash", "-c", command], cwd=tmp_path)
        assert done.returncode in (0, 141), done.stderr
        assert "Traceback" not in done.stderr
