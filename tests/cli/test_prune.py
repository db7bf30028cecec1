"""`prune`: a model cut to size, and what that costs."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from rarestream import Model, auc, read
from rarestream.evaluate import path
from tests.cli.conftest import process, run


@pytest.fixture(scope="module")
def valid(events, tmp_path_factory):
    """The last 5,000 rows."""
    path = tmp_path_factory.mktemp("valid") / "valid.svm"
    path.write_text("".join(events.read_text().splitlines(keepends=True)[15_000:]))
    return path


def auc_on(model: Model, data) -> float:
    labels, scores = zip(*((block.labels, model.score(block)) for block in read(data)), strict=True)
    return auc(np.concatenate(labels), np.concatenate(scores))


def test_so_many_weights_stay(trained, tmp_path):
    small = tmp_path / "small.rare"
    done = run("prune", trained, "--nonzeros", 500, "-o", small, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {
        "nonzeros": 500,
        "bytes": small.stat().st_size,
        "auc": None,
        "auc_full": None,
    }
    assert Model.load(small).to_bytes("scoring") == Model.load(trained).prune(nonzeros=500).to_bytes("scoring")
    facts = json.loads(run("inspect", small, "--json").stdout)
    assert (facts["nonzeros"], facts["pruned_from"]) == (500, Model.load(trained).nonzeros)
    assert f"pruned from {Model.load(trained).nonzeros:,}" in run("inspect", small).stdout


def test_so_many_bytes_are_filled(trained, tmp_path):
    small = tmp_path / "small.rare"
    assert run("prune", trained, "--bytes", 10_000, "-o", small).exit_code == 0
    assert 9_980 < small.stat().st_size <= 10_000
    assert run("predict", small, "-", stdin="1 1:1\n").exit_code == 0


def test_no_more_auc_is_lost_than_was_allowed(trained, valid, tmp_path):
    small = tmp_path / "small.rare"
    done = run("prune", trained, "--auc-loss", 0.002, "--on", valid, "-o", small, "--json")
    record = json.loads(done.stdout)
    assert Model.load(small).nonzeros == record["nonzeros"] < Model.load(trained).nonzeros
    assert record["auc"] == auc_on(Model.load(small), valid)
    assert record["auc_full"] == auc_on(Model.load(trained), valid)
    assert record["auc_full"] - record["auc"] <= 0.002
    assert record["nonzeros"] == Model.load(trained).prune(auc_loss=0.002, on=read(valid)).nonzeros


def test_several_files_and_standard_input_are_measured_alike(trained, valid, tmp_path):
    lines = valid.read_text().splitlines(keepends=True)
    halves = [tmp_path / "a.svm", tmp_path / "b.svm"]
    halves[0].write_text("".join(lines[:2000]))
    halves[1].write_text("".join(lines[2000:]))
    one = run("prune", trained, "--auc-loss", 0.01, "--on", valid, "--json").stdout
    assert run("prune", trained, "--auc-loss", 0.01, "--on", halves[0], "--on", halves[1], "--json").stdout == one
    with valid.open() as file:
        assert process("prune", trained, "--auc-loss", 0.01, "--on", "-", "--json", stdin=file).stdout == one


def test_the_path_is_a_table_and_a_curve(trained, valid, tmp_path):
    before = trained.read_bytes()
    found = path(Model.load(trained), read(valid))
    shown = run("prune", trained, "--path", "--on", valid).stdout
    assert f"{found[10]:.4f}" in shown
    assert f"{found.full:.4f}" in shown
    assert "weights" in shown and "┤" in shown
    assert "kept" not in shown
    assert "\x1b" not in shown
    record = json.loads(run("prune", trained, "--path", "--on", valid, "--json").stdout)
    assert record["path"] == [
        {"nonzeros": size, "auc": value} for size, value in zip(found.sizes, found.aucs, strict=True)
    ]
    assert (record["nonzeros"], record["auc"]) == (Model.load(trained).nonzeros, found.full)
    assert "777  " in (kept := run("prune", trained, "--nonzeros", 777, "--path", "--on", valid).stdout)
    assert "kept" in kept
    assert list(tmp_path.iterdir()) == []
    assert trained.read_bytes() == before


@pytest.mark.parametrize(("name", "head"), [("p.png", b"\x89PNG"), ("p.SVG", b"<?xml")])
def test_the_path_is_drawn(trained, valid, tmp_path, name, head):
    drawn = tmp_path / name
    done = run("prune", trained, "--nonzeros", 300, "--on", valid, "--plot", drawn)
    assert done.exit_code == 0, done.stderr
    assert drawn.read_bytes().startswith(head)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_without_matplotlib_the_extra_is_named_and_nothing_written(trained, valid, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    words = ("--nonzeros", 300, "--on", valid, "-o", tmp_path / "s.rare", "--plot", tmp_path / "p.png")
    done = run("prune", trained, *words)
    assert done.exit_code == 1
    assert 'pip install "rarestream[plot]"' in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_more_weights_than_there_are_leave_all_and_it_is_said(trained, valid, tmp_path):
    same = tmp_path / "same.rare"
    done = run("prune", trained, "--nonzeros", 10**9, "--on", valid, "-o", same)
    assert done.exit_code == 0
    assert "nothing was pruned" in done.stdout
    assert same.read_bytes() == Model.load(trained).to_bytes("scoring")


def test_columns_count_as_they_did_in_training(tmp_path):
    data, model = tmp_path / "zero.svm", tmp_path / "m.rare"
    data.write_text("1 0:1 2:1\n-1 1:1\n" * 50)
    bare = tmp_path / "bare.svm"
    bare.write_text("1 2:1\n-1 1:1\n")  # nothing here tells that columns count from 0
    assert run("train", data, "-o", model).exit_code == 0
    assert json.loads(run("prune", model, "--nonzeros", 3, "--on", bare, "--json").stdout)["auc"] == 1.0
    told = run("prune", model, "--nonzeros", 3, "--on", bare, "--one-based", "--json")
    assert json.loads(told.stdout)["auc"] != 1.0


def test_rows_that_were_skipped_are_warned_of(trained, valid, tmp_path):
    bad = tmp_path / "bad.svm"
    bad.write_text(valid.read_text() + "1 x:1\n")
    done = run("prune", trained, "--nonzeros", 9, "--on", bad, "--max-bad-rows", 1)
    assert done.exit_code == 0
    assert "1 invalid row was skipped" in done.stderr


def test_rows_that_were_learned_are_warned_of(events, trained, tmp_path):
    other = tmp_path / "other.svm"
    other.write_text("".join(events.read_text().splitlines(keepends=True)[1:500]))
    warned = run("prune", trained, "--nonzeros", 100, "--on", events)
    assert warned.exit_code == 0
    assert "the model has learned rows of these files" in warned.stderr
    assert "warning" not in run("prune", trained, "--nonzeros", 100, "--on", other).stderr


def test_what_is_kept_is_refitted(trained, events, valid, tmp_path):
    small = tmp_path / "small.rare"
    words = ["prune", trained, "--nonzeros", 300, "--refit", events, "--on", valid]
    found = json.loads(run(*words, "-o", small, "--json").stdout)
    made = Model.load(small)
    assert found["nonzeros"] == made.nonzeros <= 300
    assert found["auc"] == pytest.approx(auc_on(made, valid), abs=1e-12)
    assert found["auc_before_refit"] == pytest.approx(auc_on(Model.load(trained).prune(nonzeros=300), valid), abs=1e-12)
    assert made.to_bytes("scoring") == Model.load(trained).prune(nonzeros=300, refit=read(events)).to_bytes("scoring")
    shown = run(*words).stdout
    assert f"{found['auc_before_refit']:.4f} before it was refitted" in shown


def test_refitting_needs_a_size(trained, events, valid):
    done = run("prune", trained, "--path", "--on", valid, "--refit", events)
    assert done.exit_code == 2
    assert "'--refit'" in done.stderr and "how much to prune" in done.stderr
