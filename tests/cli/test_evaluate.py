"""`evaluate`: groups, probabilities, plots and pages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rarestream import Model, read
from rarestream.metrics import group_auc, log_loss
from tests.cli.conftest import run


def table(path: Path, rows: int, seed: int) -> Path:
    """A table of clicks of users, who differ in how often they click."""
    rng = np.random.default_rng(seed)
    lines = ["clicked,user,site,age"]
    for _ in range(rows):
        user, site = int(rng.integers(40)), int(rng.integers(8))
        clicked = rng.random() < (0.1 + 0.6 * (user % 4 == 0)) * (0.3 + (site % 3) / 3)
        lines.append(f"{int(clicked)},u{user},s{site},{rng.integers(18, 80)}")
    path.write_text("\n".join([*lines, ""]))
    return path


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clicks")
    table(folder / "train.csv", 3000, 1)
    table(folder / "test.csv", 1200, 2)
    for name, more in (("with.rare", ()), ("without.rare", ("--ignore", "user"))):
        words = ("--label", "clicked", "-l", "ftrl-proximal", "-q", *more)
        assert run("train", folder / "train.csv", "-o", folder / name, *words).exit_code == 0
    return folder


def evaluated(*words):
    done = run("evaluate", *words, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def users_of(path):
    return [line.split(",")[1] for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize("name", ["with.rare", "without.rare"])
def test_the_auc_within_users_and_no_score_is_another(clicks, name):
    data = clicks / "test.csv"
    alone, found = evaluated(clicks / name, data), evaluated(clicks / name, data, "--group", "user")
    for key in alone:
        if not key.startswith("group"):
            assert found[key] == alone[key], key
    model = Model.load(clicks / name)
    blocks = list(read(str(data), label="clicked", features=model.features))
    labels = np.concatenate([block.labels for block in blocks])
    scores = np.concatenate([model.score(block) for block in blocks])
    expected = group_auc(labels, scores, users_of(data))
    assert found["group_auc"] == pytest.approx(expected.value, abs=1e-12)
    assert (found["groups"], found["groups_left_out"]) == (expected.groups, expected.left_out)
    assert (
        f"group AUC                 {expected.value:.4f}"
        in run("evaluate", clicks / name, data, "--group", "user").stdout
    )


def test_groups_of_other_formats(clicks, tmp_path):
    lines = [line.split(",") for line in (clicks / "test.csv").read_text().splitlines()[1:]]
    records = [dict(zip(("clicked", "user", "site", "age"), line, strict=True)) for line in lines]
    path = tmp_path / "test.jsonl"
    path.write_text("".join(json.dumps({**row, "age": int(row["age"])}) + "\n" for row in records))
    for name in ("with.rare", "without.rare"):
        found = evaluated(clicks / name, path, "--group", "user")["group_auc"]
        assert found == evaluated(clicks / name, clicks / "test.csv", "--group", "user")["group_auc"]
    rng = np.random.default_rng(0)
    rows = "".join(f"{rng.choice([-1, 1])} qid:{n % 9} {rng.integers(1, 9)}:1\n" for n in range(300))
    (tmp_path / "rows.svm").write_text(rows)
    assert run("train", tmp_path / "rows.svm", "-o", tmp_path / "m.rare", "-q").exit_code == 0
    assert evaluated(tmp_path / "m.rare", tmp_path / "rows.svm", "--group", "qid")["groups"] == 9
    done = run("evaluate", tmp_path / "m.rare", tmp_path / "rows.svm", "--group", "user")
    assert done.exit_code == 2
    assert "'--group': svmlight has no columns; the group of a row is its qid: pass 'qid', got 'user'" in done.stderr


def test_a_group_that_cannot_be_is_refused(clicks):
    data = clicks / "test.csv"
    done = run("evaluate", clicks / "without.rare", data, "--group", "usr")
    assert done.exit_code != 0
    assert "no row has a group. Check the name of the column, --group COLUMN" in done.stderr
    done = run("evaluate", clicks / "without.rare", data, "--group", "clicked")
    assert done.exit_code == 2
    assert "'--group': column 'clicked' is that of the label" in done.stderr


def test_a_column_that_is_also_a_feature_needs_a_file_without_invalid_rows(clicks, tmp_path, monkeypatch):
    path = tmp_path / "bad.csv"
    path.write_text((clicks / "test.csv").read_text() + "1,u1\n")
    words = (path, "--group", "user", "--max-bad-rows", 5)
    assert run("evaluate", clicks / "without.rare", *words).exit_code == 0
    done = run("evaluate", clicks / "with.rare", *words)
    assert done.exit_code != 0
    assert "rows must not be skipped" in done.stderr


def test_probabilities_in_a_file_of_scores_are_measured(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(2000).round(4)
    labels = (rng.random(2000) < p).astype(int)
    path = tmp_path / "scores.txt"
    path.write_text("".join(f"{label} {score}\n" for label, score in zip(labels.tolist(), p.tolist(), strict=True)))
    assert evaluated("--scores", path)["log_loss"] is None
    found = evaluated("--scores", path, "--probabilities")
    assert found["log_loss"] == pytest.approx(log_loss(labels, p))
    assert len(found["calibration_bins"]) == 15
    shown = run("evaluate", "--scores", path, "--probabilities").stdout
    assert f"{'calibration error':<24}{found['calibration_error']:>8.4f}  15 bins" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_plots_and_pages_are_written_whole_or_not_at_all(clicks, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("bokeh")
    png, svg, page = (tmp_path / name for name in ("c.png", "c.svg", "page.html"))
    words = (clicks / "with.rare", clicks / "test.csv")
    done = run("evaluate", *words, "--plot", png, "--report", page, "--group", "user")
    assert done.exit_code == 0, done.stderr
    assert png.read_bytes().startswith(b"\x89PNG")
    text = page.read_text("utf-8")
    assert "with.rare: evaluation" in text
    assert "ftrl-proximal" in text
    assert "<pre>rarestream" in text
    assert run("evaluate", *words, "--plot", svg).exit_code == 0
    assert b"<svg" in svg.read_bytes()
    before = page.read_bytes()
    done = run("evaluate", *words, "--report", page)
    assert done.exit_code == 2
    assert "exists, and is not replaced" in done.stderr
    assert page.read_bytes() == before
    assert run("evaluate", *words, "--report", page, "--overwrite").exit_code == 0
    assert page.read_bytes() != before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--plot", "c.pdf"), "'--plot': the file must end with .png or .svg"),
        (("--report", "c.txt"), "'--report': the file must end with .html"),
        (("--probabilities",), "'--probabilities': is for --scores FILE"),
    ],
)
def test_options_that_cannot_be(clicks, words, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = run("evaluate", clicks / "with.rare", clicks / "test.csv", *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_scores_has_no_groups(tmp_path):
    path = tmp_path / "scores.txt"
    path.write_text("1 0.5\n0 0.2\n")
    done = run("evaluate", "--scores", path, "--group", "user")
    assert done.exit_code == 2
    assert "'--group': cannot be combined with --scores" in done.stderr
