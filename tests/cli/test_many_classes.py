"""train, evaluate and predict with many classes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rarestream import OneVsRest, read
from rarestream.metrics import pairwise_auc
from tests.program import run

TOPICS = ["art", "sport", "law", "food"]


@pytest.fixture
def table(tmp_path, monkeypatch) -> Path:
    """A CSV file of four topics, and an svmlight file of the same; two rows of the first have no topic."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 800)
    words = np.where(rng.random(800) < 0.7, codes, rng.integers(0, 9, 800))
    topics = [TOPICS[code] for code in codes]
    topics[5] = topics[70] = ""
    lines = [f"{topic},w{word},{rng.random():.2f}" for topic, word in zip(topics, words, strict=True)]
    Path("topics.csv").write_text("\n".join(["topic,word,x", *lines, ""]))
    Path("topics.svm").write_text(
        "".join(f"{code + 1} {word + 1}:1 20:1\n" for code, word in zip(codes, words, strict=True))
    )
    return tmp_path


def test_a_table_is_trained_evaluated_and_predicted(table):
    done = run("train", "topics.csv", "--label", "topic", "--classes", "all", "-o", "m.rare")
    assert done.exit_code == 0, done.stderr
    assert "progressive macro AUC 0." in done.stderr
    assert "of 4 classes" in done.stderr
    assert "2 rows without a label were not learned" in done.stderr
    model = OneVsRest.load("m.rare")
    assert sorted(model.classes) == sorted(TOPICS)
    assert model.rows == 798
    shown = run("evaluate", "m.rare", "topics.csv")
    assert shown.exit_code == 0, shown.stderr
    assert "macro AUC" in shown.stdout
    assert all(topic in shown.stdout for topic in TOPICS)
    assert max(map(len, shown.stdout.splitlines())) <= 80
    found = json.loads(run("evaluate", "m.rare", "topics.csv", "--json").stdout)
    assert found["rows"] == 798
    assert found["macro_auc"] > 0.8
    (block,) = read("topics.csv", label="topic", classes="all", features=model.features)
    codes = np.array([model.classes.index(one) for one in block.classes.tolist()])
    assert found["pairwise_auc"] == pytest.approx(float(pairwise_auc(codes, model.score(block), range(4))))
    assert "pairwise AUC" in shown.stdout
    assert found["accuracy"] > 0.6
    assert {one["class"] for one in found["classes"]} == set(TOPICS)
    predicted = run("predict", "m.rare", "topics.csv")
    assert predicted.exit_code == 0, predicted.stderr
    assert "counts as" not in predicted.stderr
    lines = predicted.stdout.splitlines()
    assert len(lines) == 800
    assert set(lines) <= set(TOPICS)
    label, chance = run("predict", "m.rare", "topics.csv", "--probability").stdout.splitlines()[0].split("\t")
    first = json.loads(run("predict", "m.rare", "topics.csv", "--probability", "--json").stdout.splitlines()[0])
    assert first == {"row": 0, "class": label, "probability": float(chance)}


def test_a_run_that_is_resumed_gives_the_same_file(table):
    assert run("train", "topics.svm", "--classes", "all", "-o", "whole.rare", "-q").exit_code == 0
    assert run("train", "topics.svm", "--classes", "all", "-o", "a.rare", "-q", "--max-rows", "300").exit_code == 0
    assert OneVsRest.load("a.rare").rows == 300
    assert run("train", "topics.svm", "--resume", "a.rare", "-q").exit_code == 0
    assert Path("a.rare").read_bytes() == Path("whole.rare").read_bytes()
    assert "Nothing new to learn" in run("train", "topics.svm", "--resume", "a.rare").stderr
    assert run("predict", "a.rare", "topics.svm").stdout.split()[0] in "1234"


def test_the_last_line_of_json(table):
    done = run("train", "topics.svm", "--classes", "all", "-o", "m.rare", "--json", "--learner", "dual-auc")
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["event"] == "done"
    assert found["rows"] == found["rows_this_run"] == 800
    assert sum(one["rows"] for one in found["classes"]) == 800
    assert found["model"] == "m.rare"


def test_settings_of_the_learner(table):
    words = ["train", "topics.svm", "--classes", "all", "-q"]
    assert run(*words, "-o", "a.rare", "--set", "l1=0.5", "--no-calibrate").exit_code == 0
    model = OneVsRest.load("a.rare")
    assert (model.learner.l1, model.learner.rate_power) == (0.5, 0.0)
    assert set(model.calibration.values()) == {None}
    assert run(*words, "-o", "b.rare", "--learner", "dual-logistic", "--scoring-only").exit_code == 0
    assert OneVsRest.load("b.rare").kind == "scoring"
    refused = run("train", "topics.svm", "--resume", "b.rare")
    assert "scoring only" in refused.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--classes", "some"], "must be one of all"),
        (["--classes", "all", "--positive", "art"], "cannot be combined"),
        (["--classes", "all", "--settle"], "cannot be combined with many classes"),
        (["--classes", "all", "--set", "l1=-1"], "l1 must be"),
    ],
)
def test_options_that_make_no_sense_are_refused(table, words, message):
    done = run("train", "topics.csv", "--label", "topic", *words, "-o", "m.rare")
    assert done.exit_code == 2
    assert message in done.stderr
    assert not Path("m.rare").exists()


def test_other_commands_say_what_the_file_is(table):
    run("train", "topics.svm", "--classes", "all", "-o", "m.rare", "-q")
    for words in (["explain", "m.rare", "topics.svm"], ["prune", "m.rare", "-o", "n.rare", "--nonzeros", "3"]):
        done = run(*words)
        assert done.exit_code != 0
        assert "a model for each of several classes" in done.stderr
    assert "Drop --scale" in run("train", "topics.svm", "--resume", "m.rare", "--scale", "max").stderr
    assert "many classes" in run("predict", "m.rare", "topics.svm", "--probability", "--interval").stderr


def test_a_class_is_inspected_explained_and_exported(table):
    assert run("train", "topics.csv", "--label", "topic", "--classes", "all", "-o", "m.rare").exit_code == 0
    shown = run("inspect", "m.rare")
    assert shown.exit_code == 0 and "of 4 classes" in shown.stdout and "--class LABEL" in shown.stdout
    assert all(topic in shown.stdout for topic in TOPICS)
    facts = json.loads(run("inspect", "m.rare", "--json").stdout)
    assert facts["rows"] == 798 and len(facts["classes"]) == 4 and facts["macro_auc"] > 0.8
    law = json.loads(run("inspect", "m.rare", "--class", "law", "--json").stdout)
    model = OneVsRest.load("m.rare").model("law")
    assert law["positives"] == model.positives and law["nonzeros"] == model.nonzeros
    assert law["metrics"]["progressive_auc"] == float(model.progress.auc)
    done = run("explain", "m.rare", "topics.csv", "--class", "law", "--json")
    assert done.exit_code == 0 and "counts as" not in done.stderr
    (block,) = read("topics.csv", label="topic", classes="all", features=model.features)
    assert json.loads(done.stdout)["score"] == pytest.approx(model.score(block[:1])[0])
    assert run("export", "m.rare", "--class", "law", "-o", "law.csv").exit_code == 0
    assert len(Path("law.csv").read_text().splitlines()) > model.nonzeros


@pytest.mark.parametrize("command", [["inspect", "m.rare"], ["explain", "m.rare", "topics.csv"]])
def test_a_class_that_is_none_is_refused(table, command):
    assert run("train", "topics.csv", "--label", "topic", "--classes", "all", "-o", "m.rare").exit_code == 0
    done = run(*command, "--class", "music")
    assert done.exit_code == 2 and "has no class 'music'; it has" in done.stderr
    assert run("train", "topics.csv", "--label", "topic", "--positive", "law", "-o", "m.rare").exit_code == 0
    done = run(*command, "--class", "law")
    assert done.exit_code == 2 and "has two classes" in done.stderr
