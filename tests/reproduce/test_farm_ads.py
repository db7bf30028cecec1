"""The check on farm-ads, as far as it goes without the data: it must refuse other rows, and notice other numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rarestream.reproduce import farm_ads
from tests.cli.conftest import run

ROWS, POSITIVES, FEATURES = 4143, 2210, 54877  # of farm-ads


@pytest.fixture(scope="module")
def pretended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random rows of the shape of farm-ads."""
    generator = np.random.default_rng(0)
    lines = []
    for i in range(ROWS):
        columns = np.unique(generator.integers(1, 200, size=8))
        last = f" {FEATURES}:1" if i == 0 else ""
        lines.append(f"{1 if i < POSITIVES else -1} " + " ".join(f"{j}:1" for j in columns) + last)
    folder = tmp_path_factory.mktemp("data")
    (folder / "farm-ads.svm").write_text("\n".join([*lines, ""]))
    return folder


def test_missing_data_are_named_with_their_place(tmp_path):
    done = run("reproduce", "farm-ads", "--data-dir", tmp_path)
    assert done.exit_code == 1
    assert f"{tmp_path}/farm-ads.svm: no such file, nor with .bz2, .gz, .xz" in done.stderr
    assert "Traceback" not in done.stderr


def test_data_of_another_shape_are_refused(tmp_path):
    (tmp_path / "farm-ads.svm").write_text("1 1:1\n-1 2:1\n")
    done = run("reproduce", "farm-ads", "--data-dir", tmp_path)
    assert done.exit_code == 1
    assert "does not match the paper's data: 2 rows, 1 of them positive, with 2 features; the paper's" in done.stderr


def test_other_numbers_than_the_published_ones_are_a_mismatch(pretended):
    done = run("reproduce", "farm-ads", "--data-dir", pretended)
    assert done.exit_code == 1
    assert "0.9411182" in done.stdout  # published
    end = done.stdout.splitlines()[-1]
    assert end == "Mismatch: 0 of 10 FTRL-AUC trials as published; 0 of 50 in the other runs."


def test_the_same_as_json(pretended):
    done = run("reproduce", "farm-ads", "--data-dir", pretended, "--json")
    assert done.exit_code == 1
    *trials, end = (json.loads(line) for line in done.stdout.splitlines())
    assert len(trials) == 60
    assert trials[0]["published"] == {"nonzeros": 800, "valid_auc": 0.9391238095238091, "test_auc": 0.9411182333792}
    assert trials[0]["params"] == {"gamma": 0.5, "l1": 0.7, "l2": 0.0, "beta": 1.0}
    assert not any(trial["matches"] for trial in trials)
    assert (end["event"], end["trials"], end["matched"], end["matches"]) == ("done", 60, 0, False)


def test_numbers_that_are_the_same_match():
    said = farm_ads.Numbers(800, 0.93, 0.94)
    same = farm_ads.Trial({}, said, said._replace(test_auc=0.940009))
    assert same.matches
    others = {"nonzeros": 801, "valid_auc": 0.93002, "test_auc": 0.93998}
    apart = [farm_ads.Trial({}, said, said._replace(**{name: value})) for name, value in others.items()]
    assert not any(trial.matches for trial in apart)
    assert farm_ads.Experiment("ftrl_auc", None, [same, same], 1e-6).matches
    assert not farm_ads.Experiment("ftrl_auc", None, [same, same], 1e-4).matches
    assert not farm_ads.Experiment("ftrl_auc", None, [same, apart[0]], 1e-6).matches
