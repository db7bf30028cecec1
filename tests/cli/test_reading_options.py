"""The options of reading on the command line and in a --config file: those that the formats declare."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from rarestream import Model
from tests.cli.conftest import run


def table(path: Path, first: int = 0, last: int = 200, yes: str = "spam", no: str = "ham") -> Path:
    """A file of the tab format; its label is in the second column."""
    draw = random.Random(first)
    rows = [(i % 5, yes if draw.random() < 0.3 else no, i % 7, i) for i in range(first, last)]
    path.write_text("a\tkind\tb\tnumber\n" + "".join("\t".join(map(str, row)) + "\n" for row in rows))
    return path


@pytest.fixture
def clicks(tab_format: str, tmp_path: Path) -> Path:
    return table(tmp_path / "clicks.tab")


@pytest.mark.parametrize("command", ["train", "race", "compare", "predict", "evaluate", "prune"])
def test_every_command_that_reads_data_has_the_options_of_all_formats(tab_format, command):
    page = run(command, "-h").stdout
    reading, tab = page.partition("Reading DATA:")[2].split("Reading blocks, svmlight:")
    assert "--format NAME" in reading and "--config FILE" in reading and "--max-bad-rows N" in reading
    assert ("--positive VALUE" in reading) == (command != "predict")
    assert ("--shuffle SEED" in reading) == (command in ("train", "race"))
    assert ("--cache-dir FOLDER" in reading) == (command in ("train", "race", "compare", "evaluate"))
    assert "--zero-based / --one-based" in tab.partition("Reading tab:")[0]
    own = tab.partition("Reading tab:")[2]
    for words in ("--target COLUMN", "--drop COLUMNS", "--base N", "default: 0; range: 0", "--strict / --no-strict"):
        assert words in own
    assert "--classes" not in page.partition("Reading DATA:")[2]


@pytest.mark.parametrize("drop", [["--drop", "number,a"], ["--drop", "number", "--drop=a"]])
def test_a_list_may_be_written_in_one_word_or_in_several(clicks, tmp_path, drop):
    path = tmp_path / "m.rare"
    done = run("train", clicks, "--target", "kind", *drop, "-o", path)
    assert done.exit_code == 0, done.stderr
    assert Model.load(path).source["settings"]["drop"] == ["number", "a"]
    assert Model.load(path).n_features == 3


def test_what_was_decided_about_labels_is_said(clicks, tmp_path):
    path = tmp_path / "m.rare"
    done = run("train", clicks, "--target", "kind", "-o", path)
    assert "label 'ham' counts as -1 and 'spam' as +1" in done.stderr
    assert Model.load(path).source["settings"]["classes"] == ["ham", "spam"]
    assert "counts as" not in run("train", clicks, "--target", "kind", "-o", path, "-q").stderr
    assert "counts as" not in run("train", clicks, "--target", "kind", "--positive", "spam", "-o", path).stderr
    raced = run("race", clicks, "--target", "kind", "--learner", "dual-auc", "-o", path)
    assert raced.exit_code == 0 and "label 'ham' counts as -1 and 'spam' as +1" in raced.stderr


def test_rows_without_a_label_are_counted(clicks, tmp_path):
    clicks.write_text(clicks.read_text() + "1\t\t2\t3\n" * 3)
    done = run("train", clicks, "--target", "kind", "--json", "-o", tmp_path / "m.rare")
    assert done.exit_code == 0 and "3 rows without a label were not learned." in done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["rows"], last["unlabelled"]) == (200, 3)
    words = ["--learner", "dual-auc", "--json", "-o", tmp_path / "r.rare", "--overwrite"]
    raced = run("race", clicks, "--target", "kind", *words)
    assert "3 rows without a label were not learned." in raced.stderr
    assert json.loads(raced.stdout.splitlines()[-1])["unlabelled"] == 3


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--target", "kind"], "--target"),
        (["--drop", "a", "--drop", "b"], "--drop"),
        (["--no-strict"], "--no-strict"),
        (["--base=3"], "--base"),
    ],
)
def test_an_option_that_the_format_does_not_have_is_named_as_it_was_written(
    tab_format, events, tmp_path, words, option
):
    for command in (["train", events, "-o", tmp_path / "m.rare"], ["compare", events]):
        done = run(*command, *words)
        assert done.exit_code == 2
        assert f"'{option}': svmlight has no such option; tab has it." in done.stderr
        assert "pass --format NAME" in done.stderr
    assert not (tmp_path / "m.rare").exists()


def test_a_flag_that_turns_an_option_off_is_named_as_it_was_written(clicks, tmp_path):
    done = run("train", clicks, "--one-based", "-o", tmp_path / "m.rare")
    assert done.exit_code == 2
    assert "'--one-based': tab has no such option; blocks, svmlight have it." in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--base", "12"], "'--base': must be between 0 and 9, got 12."),
        (["--positive", ""], "'--positive': must be a label in the file, got ''."),
        (["--format", "svmlight", "--positive", "spam"], "'--positive': must be a finite number that is a label"),
    ],
)
def test_a_value_that_is_not_allowed_is_wrong_usage(clicks, tmp_path, words, says):
    done = run("train", clicks, *words, "-o", tmp_path / "m.rare")
    assert done.exit_code == 2 and says in done.stderr


def test_resuming_and_scoring_need_no_option_again(clicks, tmp_path):
    path, whole, part = tmp_path / "m.rare", tmp_path / "whole.rare", tmp_path / "part.rare"
    how = ["--target", "kind", "--drop", "number"]
    assert run("train", clicks, *how, "-o", whole).exit_code == 0
    assert run("train", clicks, *how, "-o", part, "--max-rows", 50).exit_code == 0
    assert run("train", clicks, "--resume", part).exit_code == 0
    assert part.read_bytes() == whole.read_bytes()
    changed = run("train", clicks, "--resume", whole, "--drop", "a,b")
    assert changed.exit_code == 2 and "with drop=['number'] and must continue so" in changed.stderr
    assert run("train", clicks, "--resume", whole, "--drop", "number", "--passes", 2).exit_code == 0

    other = table(tmp_path / "other.tab", 1000, 1100)
    scores = run("predict", whole, other).stdout.split()
    assert len(scores) == 100
    assert run("predict", whole, "-", stdin=other.read_text()).stdout.split() == scores  # in the format of the model
    evaluated = run("evaluate", whole, other, "--json")
    assert json.loads(evaluated.stdout)["rows"] == 100
    assert run("prune", whole, "--nonzeros", 2, "--on", other).exit_code == 0
    assert run("train", other, "--resume", whole, "-o", path).exit_code == 0
    refused = run("train", other, "--resume", whole, "--positive", "ham", "-o", path)
    assert refused.exit_code == 2 and "has learned 'spam' as the positive label, got 'ham'" in refused.stderr


def test_a_model_of_text_labels_reads_labels_of_numbers_by_the_usual_rule(clicks, events, tmp_path):
    path = tmp_path / "m.rare"
    assert run("train", clicks, "--target", "kind", "-o", path).exit_code == 0
    assert run("evaluate", path, events).exit_code == 0


# -- --config

CONFIG = """
format = "tab"
positive = "ham"

[columns]
target = "kind"
drop = ["number", "a"]

[read]
max-bad-rows = 3
threads = 0
shuffle = 4
"""


def test_a_config_file_has_the_words_of_the_command_line(clicks, tmp_path):
    config = tmp_path / "clicks.toml"
    config.write_text(CONFIG)
    by_file, by_words = tmp_path / "file.rare", tmp_path / "words.rare"
    assert run("train", clicks, "--config", config, "-o", by_file).exit_code == 0
    words = ["--format", "tab", "--target", "kind", "--drop", "number,a", "--positive", "ham", "--max-bad-rows", 3]
    assert run("train", clicks, *words, "--shuffle", 4, "-o", by_words).exit_code == 0
    assert by_file.read_bytes() == by_words.read_bytes()
    assert run("predict", by_file, clicks, "--config", config).exit_code == 0  # which has no --positive, no --shuffle
    for command in (["evaluate", by_file, clicks], ["prune", by_file, "--nonzeros", 1, "--on", clicks]):
        assert run(*command, "--config", config).exit_code == 0
    assert run("compare", clicks, "--learners", "dual-auc", "--trials", 1, "--config", config).exit_code == 0


def test_the_command_line_wins_over_the_config_file(clicks, tmp_path):
    config, path = tmp_path / "clicks.toml", tmp_path / "m.rare"
    config.write_text(CONFIG)
    words = ["--config", config, "--drop", "number", "--positive", "spam"]
    assert run("train", clicks, *words, "-o", path).exit_code == 0
    settings = Model.load(path).source["settings"]
    assert (settings["drop"], settings["positive"], settings["max_bad_rows"]) == (["number"], "spam", 3)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tarket = 'kind'", "clicks.toml: tarket: no option for reading has this name. Did you mean target?"),
        ("[columns]\ntarket = 'kind'", "clicks.toml: [columns] tarket: no option for reading has this name."),
        (
            "[colums]\ntarget = 'kind'",
            "clicks.toml: colums: no option for reading has this name. Did you mean columns?",
        ),
        ("target = 'kind'\n[read]\ntarget = 'kind'", "clicks.toml: [read] target: is given twice in this file."),
        ("base = 'x'", "clicks.toml: base: must be between 0 and 9, got 'x'."),
        ("format = 'tabs'", "got 'tabs'. Did you mean tab?"),
        ("target = ", "clicks.toml: is not valid TOML:"),
        ("zero-based = true", "'{}: zero_based': tab has no such option; blocks, svmlight have it."),
    ],
)
def test_a_mistake_in_a_config_file_is_named_with_the_file_and_the_key(clicks, tmp_path, text, says):
    config = tmp_path / "clicks.toml"
    config.write_text(text)
    done = run("train", clicks, "--config", config, "-o", tmp_path / "m.rare")
    assert done.exit_code == 2
    assert says.format(config) in " ".join(done.stderr.split())


def test_a_config_file_that_cannot_be_read_is_a_failure(clicks, tmp_path):
    done = run("train", clicks, "--config", tmp_path / "none.toml", "-o", tmp_path / "m.rare")
    assert done.exit_code == 1 and "none.toml: cannot be read: no such file" in done.stderr


def test_a_format_that_was_named_is_that_of_other_files_with_the_suffix(tmp_path):
    text = "spam\twin a prize\nham\tsee you\n" * 30
    for name in ("messages.tsv", "new.tsv"):
        (tmp_path / name).write_text(text)
    run("train", tmp_path / "messages.tsv", "--format", "text", "-o", tmp_path / "m.rare")
    done = run("evaluate", tmp_path / "m.rare", tmp_path / "new.tsv")
    assert done.exit_code == 0, done.stderr
    (tmp_path / "table.csv").write_text("label,text\n" + text.replace("\t", ","))
    done = run("evaluate", tmp_path / "m.rare", tmp_path / "table.csv", "--format", "csv")
    assert done.exit_code == 0, done.stderr
