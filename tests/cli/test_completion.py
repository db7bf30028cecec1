"""Shell completion: the candidates, and the script of each shell that is installed, run by that shell."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from rarestream import learner_names
from tests import children
from tests.cli.conftest import run


def offered(*words: str) -> list[str]:
    done = run("--complete", *words)
    assert done.exit_code == 0 and done.stderr == ""
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def test_commands():
    assert (
        offered("")
        == offered()
        == [
            *[
                "doctor",
                "join",
                "train",
                "race",
                "compare",
                "predict",
                "evaluate",
                "threshold",
                "explain",
                "inspect",
                "prune",
            ],
            *["calibrate", "serve", "export", "convert", "split", "log", "datasets", "demo", "reproduce"],
        ]
    )
    assert offered("pr") == ["predict", "prune"]
    assert offered("reproduce", "table") == ["table1", "table2", "table3"]
    assert offered("--debug", "tr") == ["train"]
    assert offered("nonsense", "") == []


def test_options_and_their_values():
    assert offered("--") == ["--version", "--debug", "--show-completion", "--help"]
    assert offered("--show-completion", "") == ["bash", "zsh", "fish"]
    own = ["--set", "--scale", "--scoring-only", "--settle", "--save-every", "--stop-after", "--show-config"]
    assert offered("train", "--s") == [*own, "--shuffle"]
    assert offered("train", "data.svm", "--one") == ["--one-based"]
    assert offered("train", "--scale", "") == ["none", "unit", "max"]
    assert offered("train", "--scale=u") == ["--scale=unit"]
    assert offered("train", "--scale", "=", "u") == ["unit"]  # as bash splits it
    assert offered("train", "--scale", "=") == ["none", "unit", "max"]
    assert offered("train", "-l", "") == list(learner_names())


def test_files_are_left_to_the_shell():
    assert offered("train", "") == offered("train", "da") == offered("train", "-o", "") == []
    assert offered("train", "--", "--s") == []


def test_candidates_come_with_their_help():
    lines = run("--complete", "train", "--scoring").stdout.splitlines()
    assert lines == ["--scoring-only\tSave weights only: a small file that cannot be resumed."]


def test_the_scripts_are_named_by_their_shell():
    assert "complete -o default -F _rarestream rarestream" in run("--show-completion", "bash").stdout
    assert run("--show-completion", "zsh").stdout.startswith("#compdef rarestream\n")
    assert "complete -c rarestream" in run("--show-completion", "fish").stdout
    assert run("--show-completion=fish") == run("--show-completion", "fish")
    for words in ([], ["tcsh"], ["fihs"]):
        assert run("--show-completion", *words).exit_code == 2


def program(folder: Path) -> None:
    """The program, as a file of that name in a folder."""
    path = folder / "rarestream"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rarestream "$@"\n')
    path.chmod(0o755)


CASES = [
    (["pr"], ["predict", "prune"]),
    (["train", "--scale", "u"], ["unit"]),
    (["train", "--o"], ["--output", "--overwrite", "--one-based"]),
]


def test_bash(tmp_path, monkeypatch):
    program(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for words, expected in CASES:
        code = (
            'eval "$(rarestream --show-completion bash)"\n'
            f"COMP_WORDS=(rarestream {' '.join(words)}); COMP_CWORD={len(words)}\n"
            '_rarestream rarestream; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = children.run(["bash", "-c", code])
        assert sorted(done.stdout.split()) == sorted(expected), done.stderr


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh(tmp_path, monkeypatch):
    program(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for words, expected in CASES:
        code = (
            "compdef() { :; }; _describe() { print -rl -- ${(P)2} }; _files() { :; }\n"
            'eval "$(rarestream --show-completion zsh)"\n'
            f"words=(rarestream {' '.join(words)}); CURRENT={len(words) + 1}\n"
            "_rarestream"
        )
        done = children.run(["zsh", "-fc", code])
        assert [line.split(":")[0] for line in done.stdout.splitlines()] == expected, done.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish(tmp_path, monkeypatch):
    program(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for words, expected in CASES:
        code = f"rarestream --show-completion fish | source; complete -C 'rarestream {' '.join(words)}'"
        done = children.run(["fish", "--no-config", "-c", code])
        assert sorted(line.split("\t")[0] for line in done.stdout.splitlines()) == sorted(expected), done.stderr
