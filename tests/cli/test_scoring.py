"""`predict`, `evaluate` and `inspect`."""

from __future__ import annotations

import json
import subprocess

import numpy as np

from rarestream import Model, auc, read
from tests.cli.conftest import process, run, started


def scores_of(trained, data):
    model = Model.load(trained)
    return np.concatenate([model.score(block) for block in read(data, labels="optional")])


def test_scores_come_one_a_line_in_full_precision(events, trained):
    done = run("predict", trained, events)
    assert done.exit_code == 0
    assert done.stderr == ""
    assert [float(line) for line in done.stdout.splitlines()] == scores_of(trained, events).tolist()


def test_scores_may_go_to_a_file_or_be_json(events, trained, tmp_path):
    path = tmp_path / "scores.txt"
    assert run("predict", trained, events, "-p", path).stdout == ""
    assert path.read_text() == run("predict", trained, events).stdout
    lines = run("predict", trained, events, "--json").stdout.splitlines()
    assert json.loads(lines[7]) == {"row": 7, "score": scores_of(trained, events)[7]}


def test_rows_without_labels_are_scored_alike(events, trained, tmp_path):
    path = tmp_path / "bare.svm"
    path.write_text("".join(line.split(" ", 1)[1] for line in events.read_text().splitlines(keepends=True)))
    assert run("predict", trained, path).stdout == run("predict", trained, events).stdout


def test_a_pipe_is_answered_line_by_line(events, trained):
    expected = scores_of(trained, events)[:5].tolist()
    lines = events.read_text().splitlines(keepends=True)[:5]
    with started("predict", trained, "-", stdin=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for line, score in zip(lines, expected, strict=True):
            program.stdin.write(line)
            program.stdin.flush()
            assert float(program.stdout.readline()) == score  # before the next line is written
        program.stdin.close()
        assert program.wait(timeout=60) == 0


def test_standard_input_is_scored_and_a_reader_that_leaves_is_no_error(events, trained):
    with events.open() as file:
        assert process("predict", trained, "-", stdin=file).stdout == run("predict", trained, events).stdout
    with started("predict", trained, events, events, events, events) as program:
        assert program.stdout is not None
        program.line()
        program.stdout.close()
        assert program.line("stderr") == ""
    assert program.returncode == 141


def test_columns_beyond_the_models_are_warned_of(trained, tmp_path):
    path = tmp_path / "wide.svm"
    path.write_text("1 9999999:1\n")
    done = run("predict", trained, path)
    assert (done.exit_code, done.stdout) == (0, "0.0\n")
    assert "columns beyond" in done.stderr


def test_the_models_base_is_that_of_the_rows_it_scores(tmp_path):
    data, bare = tmp_path / "zero.svm", tmp_path / "bare.svm"
    data.write_text("1 0:1 2:1\n-1 1:1\n" * 50)
    bare.write_text("1 2:1\n")  # nothing here tells that columns count from 0
    assert run("train", data, "-o", tmp_path / "m.rare").exit_code == 0
    score = float(run("predict", tmp_path / "m.rare", bare).stdout)
    assert score == Model.load(tmp_path / "m.rare").score_one([2], [1.0])
    told = float(run("predict", tmp_path / "m.rare", bare, "--one-based").stdout)
    assert told == Model.load(tmp_path / "m.rare").score_one([1], [1.0])


def test_evaluate_prints_the_auc_of_the_scores(events, trained):
    labels = np.concatenate([block.labels for block in read(events)])
    record = json.loads(run("evaluate", trained, events, "--json").stdout)
    assert record["auc"] == auc(labels, scores_of(trained, events))
    assert record["rows"] == 20_000
    shown = run("evaluate", trained, events).stdout
    assert f"{record['auc']:.4f}" in shown
    assert "recall at 0.1 % FPR" in shown
    assert "\x1b" not in shown


def test_a_file_of_scores_is_evaluated_alike(events, trained, tmp_path):
    path = tmp_path / "scores.txt"
    labels = np.concatenate([block.labels for block in read(events)]).tolist()
    scores = run("predict", trained, events).stdout.splitlines()
    path.write_text("".join(f"{label},{score}\n" for label, score in zip(labels, scores, strict=True)))
    of_scores = json.loads(run("evaluate", "--scores", path, "--json").stdout)
    of_model = json.loads(run("evaluate", trained, events, "--json").stdout)
    assert of_scores.keys() == of_model.keys()
    probabilities = ("log_loss", "brier_score", "normalised_entropy", "calibration_error", "calibration_bins")
    assert of_scores == {**of_model, "learned": None, **dict.fromkeys(probabilities)}
    with path.open() as file:
        assert process("evaluate", "--scores", "-", stdin=file).stdout == run("evaluate", "--scores", path).stdout


def test_inspect_tells_what_the_model_is(events, trained):
    model = Model.load(trained)
    facts = json.loads(run("inspect", trained, "--top", 5, "--json").stdout)
    assert facts["learner"] == facts["leader"] == {"name": model.learner.name, "settings": model.learner.settings}
    assert facts["chosen_by"] == {"name": "auto", "rows": 16_384}
    assert (facts["rows"], facts["nonzeros"], facts["n_features"]) == (model.rows, model.nonzeros, model.n_features)
    assert facts["bytes"] == trained.stat().st_size
    assert facts["source"] == model.source
    weights = np.abs(model.coef)
    assert [row["column"] for row in facts["top"]] == (np.argsort(-weights)[:5] + 1).tolist()
    assert [row["weight"] for row in facts["top"]] == [float(model.coef[row["column"] - 1]) for row in facts["top"]]
    shown = run("inspect", trained, "--top", 5).stdout
    assert "columns count from 1, as in the data" in shown
    assert "events.svm" in shown
    assert "auto after 16,384 rows" in shown


def test_inspect_of_a_model_that_still_races_tells_who_leads(events, tmp_path):
    path = tmp_path / "m.rare"
    assert run("train", events, "-o", path, "--max-rows", 5000).exit_code == 0
    model = Model.load(path)
    facts = json.loads(run("inspect", path, "--json").stdout)
    assert facts["learner"] == {"name": "auto", "settings": {"rows": 2**18, "keep": 1, "budget": 0}}
    assert facts["leader"] == {"name": model.leader.name, "settings": model.leader.settings}
    assert facts["chosen_by"] is None
    assert f"leader      {model.leader.name}" in run("inspect", path).stdout


def test_inspect_of_a_scoring_only_model_still_knows_its_auc(events, trained, tmp_path):
    path = tmp_path / "small.rare"
    Model.load(trained).save(path, "scoring")
    shown = run("inspect", path).stdout
    assert "scoring" in shown
    assert f"{float(Model.load(trained).progress.auc):.4f}" in shown


def test_inspect_counts_from_0_where_the_file_does_and_where_there_was_none(tmp_path):
    data, path = tmp_path / "zero.svm", tmp_path / "m.rare"
    data.write_text("1 0:1\n-1 1:1\n" * 50)
    assert run("train", data, "-o", path).exit_code == 0
    assert "count from 0, as in the data" in run("inspect", path).stdout
    model = Model("dual-auc")
    model.learn_one([0], [1.0], 1)
    model.learn_one([1], [1.0], -1)
    model.save(path)
    assert "columns count from 0\n" in run("inspect", path).stdout


def test_diff_shows_the_weights_that_changed_most(events, trained, tmp_path):
    path = tmp_path / "again.rare"
    assert run("train", events, "--resume", trained, "--passes", 2, "-o", path).exit_code == 0
    facts = json.loads(run("inspect", path, "--diff", trained, "--top", 3, "--json").stdout)
    mine, theirs = Model.load(path).coef, Model.load(trained).coef
    moved = np.abs(mine.astype(float) - theirs)
    assert [row["column"] for row in facts["top"]] == (np.argsort(-moved, kind="stable")[:3] + 1).tolist()
    assert "largest differences from" in run("inspect", path, "--diff", trained).stdout


def test_every_command_ends_quietly_when_nobody_reads(trained):
    with started("inspect", trained) as program:
        assert program.stdout is not None
        program.stdout.close()
        assert "Traceback" not in "".join(program.lines("stderr"))
