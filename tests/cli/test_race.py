"""`rarestream race`: what it says before, while and after it races, what it saves, and what it refuses."""

from __future__ import annotations

import json
import re
import signal
import subprocess

import numpy as np
import pytest

from rarestream import Auto, Model, read
from rarestream.race import race
from tests.cli.conftest import process, run, started

DONE = ["event", "winner", "clear", "enough", "settings", "rows", "positives", "judged", "nonzeros", "n_features"]


@pytest.fixture(scope="module")
def winner(events):
    path = events.parent / "raced.rare"
    done = run("race", events, "-o", path)
    assert done.exit_code == 0
    return path, done.stderr


def test_the_file_is_that_of_the_same_race_in_python(events, winner):
    assert winner[0].read_bytes() == race(read(events)).model.to_bytes()


def test_it_says_before_what_it_takes_and_after_who_won(winner):
    lines = winner[1].splitlines()
    assert lines[0].startswith("24 settings, 200 bytes per feature: up to ")
    assert lines[1].split() == ["AUC", "behind", "+-", "retired", "learner", "settings"]
    assert lines[2].startswith("*  0.") and "  dual-" in lines[2]
    assert all(re.match(r"   0\..*  (dual-auc|dual-logistic|ftrl-proximal)  ", line) for line in lines[3:26])
    assert lines[26].startswith("AUC of ")
    told = winner[1]
    model = Model.load(winner[0])
    assert f"winner: {model.learner.name}" in told
    assert f"{float(model.progress.auc):.4f}" in told
    assert model.chosen_by is not None and model.chosen_by.name == "race"


def test_the_model_of_the_winner_is_resumed_by_train(events, winner, tmp_path):
    half, whole = tmp_path / "half.rare", Model.load(winner[0])
    name, settings = (
        whole.learner.name,
        [f"{word}={value}" for word, value in whole.learner.settings.items() if word != "loss"],
    )
    words = [word for text in settings for word in ("--set", text)]
    assert run("race", events, "-o", half, "-l", name, *words, "--max-rows", 9000).exit_code == 0
    assert run("train", events, "--resume", half).exit_code == 0
    model = Model.load(half)
    assert model.rows == 20_000
    np.testing.assert_allclose(model.coef, whole.coef, rtol=1e-3, atol=1e-3)


def test_json_ends_with_the_winner_and_all_settings(events, tmp_path):
    path = tmp_path / "m.rare"
    done = run("race", events, "-o", path, "--json")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    last = records[-1]
    assert [word for word in last if word in DONE] == DONE
    assert set(last["winner"]) == {"learner", "settings", "progressive_auc", "auc_low", "auc_high"}
    assert len(last["settings"]) == 24
    assert last["settings"][0]["learner"] == last["winner"]["learner"]
    assert last["settings"][0]["settings"] == last["winner"]["settings"] == Model.load(path).learner.settings
    assert {record["event"] for record in records[:-1]} == {"progress"}
    assert last["rows"] == 20_000


def test_a_grid_of_a_learner_is_raced(events, tmp_path):
    words = ["-l", "ftrl-auc", "--set", "learning-rate=0.1,1", "--set", "l1=0,0.5"]
    done = run("race", events, "-o", tmp_path / "m.rare", "--json", *words)
    last = json.loads(done.stdout.splitlines()[-1])
    raced = {(one["settings"]["learning_rate"], one["settings"]["l1"]) for one in last["settings"]}
    assert raced == {(0.1, 0.0), (0.1, 0.5), (1.0, 0.0), (1.0, 0.5)}


def test_rivals_race_too(events, tmp_path):
    done = run("race", events, "-o", tmp_path / "m.rare", "--json", "--rivals", "--max-rows", 3000)
    last = json.loads(done.stdout.splitlines()[-1])
    assert {one["learner"] for one in last["settings"]} == {"dual-auc", "dual-logistic", "ftrl-auc", "ftrl-proximal"}
    assert len(last["settings"]) == 40


def test_learners_without_lanes_are_named(events, tmp_path):
    words = ["-l", "rda", "--set", "gamma=0.01,0.1", "--max-rows", 2000]
    done = run("race", events, "-o", tmp_path / "m.rare", *words)
    assert "rda: these settings cannot share a pass; each learns separately" in done.stderr
    assert Model.load(tmp_path / "m.rare").learner.name == "rda"


def test_a_pipe_is_raced(events, winner, tmp_path):
    path = tmp_path / "m.rare"
    done = process("race", "-", "-o", path, "-q", input=events.read_text())
    assert (done.returncode, done.stderr) == (0, "")
    model, other = Model.load(path), Model.load(winner[0])
    assert model.learner == other.learner
    np.testing.assert_array_equal(model.coef, other.coef)


def test_held_out_rows_and_more_passes(events, tmp_path):
    done = run("race", events, "-o", tmp_path / "m.rare", "--json", "--holdout", 0.1, "--passes", 2)
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["judged"] == 2000
    assert last["rows"] == 2 * 18_000


def test_too_few_rows_to_choose_are_said(events, tmp_path):
    done = run("race", events, "-o", tmp_path / "m.rare", "--max-rows", 200)
    assert done.exit_code == 0
    assert "fewer than 30 rows of a class: too few to compare settings, so the default is kept" in done.stderr
    assert Model.load(tmp_path / "m.rare").learner == Auto.candidates()[0]


def test_no_clear_winner_is_said(events, tmp_path):
    words = ["-l", "dual-auc", "--set", "learning_rate=0.25,0.2500001"]
    done = run("race", events, "-o", tmp_path / "m.rare", *words)
    assert "No clear winner: 1 other setting is within two standard errors" in done.stderr


@pytest.mark.parametrize(
    "words, code, says",
    [
        (["--memory", "1000"], 3, "need .* for 24 settings"),
        (["--memory", "lots"], 2, "must be a size, such as 500M or 4G, got 'lots'"),
        (["--set", "l1=1"], 2, "name it with --learner"),
        (["-l", "auto"], 2, "got 'auto'"),
        (["-l", "dual-auc", "--set", "nothing=1"], 2, "a setting of dual-auc must be one of"),
        (["-l", "dual-auc", "--set", "l1=1,-1"], 2, "l1 must be >= 0, got '-1'"),
        (["-l", "dual-auc", "--set", "l1"], 2, "a setting is NAME=VALUE"),
        (["--scale", "big"], 2, "must be one of none, unit, max, got 'big'"),
        (["--positive", "7"], 3, "all 20,000 rows are negative"),
        (["--holdout", "0.9"], 2, "'--holdout'"),
    ],
)
def test_what_cannot_be_raced_is_refused_and_nothing_is_written(events, tmp_path, words, code, says):
    path = tmp_path / "m.rare"
    done = run("race", events, "-o", path, *words)
    assert done.exit_code == code
    assert re.search(says, re.sub(r"[\s│]+", " ", done.stderr))
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_has_one_pass(tmp_path):
    done = run("race", "-", "-o", tmp_path / "m.rare", "--passes", 2, stdin="1 1:1\n")
    assert done.exit_code == 2
    assert "must be 1 for a pipe, which can be read only once" in done.stderr


def test_interrupted_it_saves_who_leads(events, tmp_path):
    path = tmp_path / "m.rare"
    # The lines fill the pipe that nobody reads: the program cannot finish before the signal is there.
    with started("race", events, "-o", path, "--json", "-P", 10) as program:
        for _ in range(100):  # enough rows for some of each class
            program.line()
        program.send_signal(signal.SIGINT)
        stdout, stderr = program.communicate()
    assert program.returncode == 130
    assert "interrupted; the leading settings so far are in" in stderr
    assert json.loads(stdout.splitlines()[-1])["interrupted"]
    assert Model.load(path).chosen_by is not None


def test_interrupted_before_the_first_row_it_saves_nothing(tmp_path):
    path = tmp_path / "m.rare"
    with started("race", "-", "-o", path, stdin=subprocess.PIPE) as program:
        assert program.stdin is not None
        program.stdin.write("1 1:1\n")
        program.line("stderr")  # what it takes: said before the first row
        program.until_read()  # now it waits for more
        program.send_signal(signal.SIGINT)
        _, stderr = program.communicate()
    assert program.returncode == 130
    assert "nothing was saved" in stderr
    assert not path.exists()
