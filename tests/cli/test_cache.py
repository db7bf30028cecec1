"""`--cache`: train, race, compare and evaluate make a cache beside the data, use it, and say so."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from rarestream import Model
from tests.cli.conftest import run, started

pytest.importorskip("pyarrow")


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    path = tmp_path / "clicks.csv"
    rows = [f"{'yes' if row % 11 == 0 else 'no'},site{row % 50}.com,{row % 23},{row / 7:.2f}\n" for row in range(3000)]
    path.write_text("clicked,site,age,price\n" + "".join(rows))
    return path


def caches(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.blocks"))


def test_train_makes_a_cache_and_uses_it(clicks, tmp_path):
    words = ["train", clicks, "--label", "clicked", "-l", "dual-auc"]
    assert run(*words, "-o", tmp_path / "plain.rare").exit_code == 0
    first = run(*words, "-o", tmp_path / "a.rare", "--cache")
    (made,) = caches(tmp_path)
    assert made.startswith("clicks.csv-")
    said = " ".join(first.stderr.split())
    assert f"{made}: cache made, " in said and "kB; it is read the next time." in said
    second = run(*words, "-o", tmp_path / "b.rare", "--cache")
    assert f"{made}: the rows were read from this cache." in " ".join(second.stderr.split())
    third = run("train", tmp_path / "clicks.csv-*.blocks", "-l", "dual-auc", "-o", tmp_path / "c.rare", "--json")
    assert json.loads(third.stdout.splitlines()[-1])["rows"] == 3000
    files = [(tmp_path / name).read_bytes() for name in ("plain.rare", "a.rare", "b.rare")]
    assert len(set(files)) == 1
    assert Model.load(tmp_path / "c.rare").source["settings"]["classes"] == ["no", "yes"]
    assert "cache" not in run(*words, "-o", tmp_path / "d.rare", "--cache", "-q").stderr


def test_the_cache_of_training_serves_other_commands(clicks, tmp_path):
    model = tmp_path / "m.rare"
    run("train", clicks, "--label", "clicked", "-o", model, "--cache", "-l", "dual-auc")
    used = "the rows were read from this cache"
    plain, cached = run("evaluate", model, clicks), run("evaluate", model, clicks, "--cache")
    assert plain.stdout == cached.stdout
    assert used in " ".join(cached.stderr.split()) and "counts as" not in cached.stderr
    raced = run("race", clicks, "--label", "clicked", "-l", "dual-auc", "-o", tmp_path / "r.rare", "--cache")
    assert raced.exit_code == 0 and used in " ".join(raced.stderr.split())
    resumed = run("train", clicks, "--resume", model, "--passes", 2, "--cache")
    assert resumed.exit_code == 0 and used in " ".join(resumed.stderr.split())
    assert len(caches(tmp_path)) == 1
    other = tmp_path / "other.rare"
    run("train", clicks, "--label", "clicked", "-o", other, "-l", "dual-auc")
    run("train", clicks, "--resume", other, "--passes", 2)
    assert other.read_bytes() == model.read_bytes()


def test_compare_uses_a_cache(clicks, tmp_path):
    words = ["compare", clicks, "--label", "clicked", "-l", "dual-auc", "--trials", 1, "--settings", 1, "--json"]
    kept = ("auc", "n_train", "data")
    answers = [run(*words, *more) for more in ([], ["--cache"], ["--cache"])]
    assert [one.exit_code for one in answers] == [0, 0, 0]
    assert "cache made" in answers[1].stderr and "read from this cache" in " ".join(answers[2].stderr.split())
    rows = [json.loads(one.stdout.splitlines()[0]) for one in answers]
    assert all({word: row.get(word) for word in kept} == {word: rows[0].get(word) for word in kept} for row in rows)


def test_many_classes_are_cached(tmp_path):
    path, model = tmp_path / "t.svm", tmp_path / "m.rare"
    path.write_text("".join(f"{row % 3} {row % 3 + 1}:1 {row % 7 + 5}:1\n" for row in range(300)))
    plain = run("train", path, "--classes", "all", "-o", tmp_path / "plain.rare")
    assert plain.exit_code == 0
    for turn in ("cache made", "read from this cache"):
        done = run("train", path, "--classes", "all", "-o", model, "--overwrite", "--cache")
        assert done.exit_code == 0 and turn in " ".join(done.stderr.split())
        assert model.read_bytes() == (tmp_path / "plain.rare").read_bytes()
    assert "read from this cache" in " ".join(run("evaluate", model, path, "--cache").stderr.split())


def test_the_folder_may_be_chosen_and_configured(clicks, tmp_path):
    config = tmp_path / "how.toml"
    config.write_text(f'label = "clicked"\n[read]\ncache-dir = "{tmp_path / "kept"}"\n')
    for turn in ("cache made", "read from this cache"):
        done = run("train", clicks, "--config", config, "-o", tmp_path / "m.rare", "--overwrite", "-l", "dual-auc")
        assert done.exit_code == 0 and turn in " ".join(done.stderr.split())
    assert caches(tmp_path) == [] and len(caches(tmp_path / "kept")) == 1
    scored = run("predict", tmp_path / "m.rare", clicks, "--config", config)  # which keeps no cache
    assert scored.exit_code == 0 and "cache" not in scored.stderr


def test_a_stale_cache_is_told_in_a_line(clicks, tmp_path):
    words = [
        "train",
        clicks,
        "--label",
        "clicked",
        "-l",
        "dual-auc",
        "--overwrite",
        "-o",
        tmp_path / "m.rare",
        "--cache",
    ]
    run(*words)
    with clicks.open("a") as out:
        out.write("yes,new.com,3,4\n")
    said = " ".join(run(*words).stderr.split())
    assert "clicks.csv has changed since it was made (its size is another). It is made again." in said
    assert "3,001 rows" in said


def test_standard_input_cannot_be_cached(clicks, tmp_path):
    done = run("train", "-", "--format", "csv", "--label", "clicked", "-o", tmp_path / "m.rare", "--cache")
    assert done.exit_code == 3
    assert "-: cannot be cached: standard input and pipes are not recognised" in " ".join(done.stderr.split())
    assert "drop --cache" in done.stderr


def test_an_interrupted_run_leaves_no_cache(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("".join(f"{row % 2} {row % 9 + 1}:1\n" for row in range(2_000_000)))
    words = ["train", path, "-o", tmp_path / "m.rare", "--cache", "--json", "-P", "1000"]
    with started(*words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # some rows have been learned
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait() == 130
    assert [entry.name for entry in tmp_path.iterdir() if "blocks" in entry.name or entry.name.endswith(".part")] == []
