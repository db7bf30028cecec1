"""Nothing from outside reaches a terminal raw: file names, and whatever a model file says."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from rarestream import Model, modelfile
from rarestream.cli import look
from tests import children
from tests.cli.conftest import PROGRAM, run
from tests.cli.test_terminal import seen

ROWS = "1 1:1 2:1\n-1 3:1\n" * 60
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
EVIL = "evil\x1b[2J\x9b31m\u202e"
SHOWN = r"evil\x1b[2J\x9b31m\u202e"


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A file with an evil name; the program runs in its folder."""
    monkeypatch.chdir(tmp_path)
    Path(f"{EVIL}.svm").write_text(ROWS)
    assert run("train", f"{EVIL}.svm", "-o", f"{EVIL}.rare", "-l", "dual-auc").exit_code == 0
    Path(f"{EVIL}.state/log").mkdir(parents=True)
    Path(f"{EVIL}.state/log/00000000000000000001.log").write_text("hello")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["train", "{e}.svm", "-o", "{e}.rare"], 0),
        (["train", "{e}.svm", "--resume", "{e}.rare"], 0),
        (["train", "{e}.svm", "-o", "{e}.other", "--max-rows", "20"], 0),
        (["train", "{e}.svm", "-o", "{e}.svm"], 2),
        (["train", "{e}.no", "-o", "m.rare"], (1, 3)),
        (["train", "*{e}.no", "-o", "m.rare"], (1, 3)),
        (["train", "{e}.bad", "-o", "m.rare"], 3),
        (["train", "{e}.bad", "{e}.svm", "-o", "m.rare", "--max-bad-rows", "1"], 0),
        (["train", "{e}.svm", "-o", "{e}/m.rare"], 1),
        (["train", "{e}.svm", "-o", "m.rare", "-l", "{e}"], 2),
        (["train", "{e}.svm", "-o", "m.rare", "--set", "{e}=1"], 2),
        (["train", "{e}.svm", "-o", "m.rare", "--passes", "{e}"], 2),
        (["race", "{e}.svm", "-o", "{e}.race"], 0),
        (["predict", "{e}.rare", "{e}.svm"], 0),
        (["predict", "{e}.rare", "{e}.svm", "-o", "{e}.rare"], 2),
        (["predict", "{e}.svm", "{e}.svm"], 1),
        (["predict", "{e}.rare", "{e}.bad"], 3),
        (["evaluate", "{e}.rare", "{e}.svm"], 0),
        (["evaluate", "--scores", "{e}.svm"], 3),
        (["threshold", "{e}.rare", "{e}.svm", "--recall", "0.5", "--save"], 0),
        (["threshold", "{e}.rare", "{e}.svm", "--alerts-per-day", "1", "--time", "{e}"], 2),
        (["threshold", "--scores", "{e}.svm", "--recall", "0.5"], 3),
        (["predict", "{e}.rare", "{e}.svm", "--label"], 0),
        (["inspect", "{e}.rare"], 0),
        (["inspect", "{e}.rare", "--diff", "{e}.rare"], 0),
        (["inspect", "{e}.svm"], 1),
        (["inspect", "{e}.no"], 1),
        (["prune", "{e}.rare", "--nonzeros", "1", "--on", "{e}.svm", "-o", "{e}.small"], 0),
        (["prune", "{e}.rare", "--nonzeros", "1", "--on", "{e}.svm", "--plot", "{e}"], 2),
        (["compare", "{e}.svm", "--out", "{e}.d", "--trials", "1", "-l", "dual-auc", "--settings", "1", "-j", "1"], 0),
        (["compare", "{e}.svm", "--out", "{e}.svm"], 1),
        (["reproduce", "report", "--out", "{e}.d2"], 1),
        (["log", "verify", "{e}.state"], 3),
        (["log", "dump", "{e}.state"], 3),
        (["log", "repair", "{e}.state"], 0),
        (["log", "verify", "{e}.no"], 1),
        (["{e}"], 2),
        (["train", "--{e}"], 2),
    ],
)
def test_names_of_files_are_shown_without_what_moves_a_terminal(evil, words, code):
    Path(f"{EVIL}.bad").write_text(f"1 {EVIL}:1\n")
    done = run(*(word.replace("{e}", EVIL) for word in words))
    assert done.exit_code in (code if isinstance(code, tuple) else (code,)), done.stderr
    assert not RAW.search(done.stdout + done.stderr)
    assert "Traceback" not in done.stderr
    page = Path(f"{EVIL}.d/report.html")
    if page.exists():
        assert not RAW.search(re.sub(r"<script.*?</script>", "", page.read_text(), flags=re.S))


@pytest.mark.parametrize("name", ["a\x1b[31mb\x1b[8m.svm", "<b>&amp;</script>.svm"])
def test_a_page_escapes_names(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    data = Path(name.replace("/", ""))
    data.write_text(ROWS)
    done = run("compare", data, "--out", "d", "--trials", 1, "-l", "dual-auc", "--settings", 1, "-j", 1)
    assert done.exit_code == 0
    page = (tmp_path / "d" / "report.html").read_text()
    assert "<b>&" not in page and "a\x1b" not in page


def test_in_a_terminal_only_our_own_colours_are_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "a\x1b[31mb\x1b[8m\x1b[2J"
    Path(name).write_text(ROWS)
    for words in (
        ("train", name, "-o", f"{name}.rare", "--format", "svmlight", "--max-rows", 20),
        ("train", name, "-o", f"{name}.rare", "--format", "svmlight"),
        ("inspect", f"{name}.rare"),
        ("evaluate", f"{name}.rare", name, "--format", "svmlight"),
        ("predict", f"{name}.rare", f"{name}.no"),
        ("prune", f"{name}.rare", "--nonzeros", 1, "-o", f"{name}.small"),
    ):
        text = seen(80, *words)[1]
        assert "a\x1b" not in text and "b\x1b" not in text
        assert not RAW.search(re.sub(r"\x1b\[([0-9;]*m|K)|\r", "", text))


def test_the_command_to_go_on_with_can_be_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (f"{EVIL}.svm", "it's a \\ \n'x.svm", os.fsdecode(b"raw\xff'.svm")):
        Path(name).write_text(ROWS)
        done = run("train", name, "-o", f"{name}.rare", "--max-rows", 20)
        command = done.stderr.split("To continue:\n", 1)[1].strip()
        assert not RAW.search(command) and "\n" not in command
        program = f'rarestream() {{ {" ".join(PROGRAM)} "$@"; }}; {command}'
        again = children.run(["bash", "-c", program])
        assert again.returncode == 0, again.stderr
        assert Model.load(f"{name}.rare").rows == 120
    assert look.quoted(["plain", "two words"]) == "plain 'two words'"


def crafted(path: Path, change) -> None:
    """A model file with a sound checksum, and whatever in it."""
    model = Model("dual-auc")
    model.learn_one([0], [1.0], 1)
    model.learn_one([1], [1.0], -1)
    header, arrays = modelfile.from_bytes(model.to_bytes())
    change(header, arrays)
    path.write_bytes(modelfile.to_bytes(header, arrays))


SOURCE = {
    "files": [{"name": EVIL, "size": 10, "crc32": 1}],
    "settings": {"format": EVIL, "zero_based": None, "positive": None, "shuffle": None},
    "passes": 1,
    "pass": 1,
    "rows": 2,
    "complete": True,
}


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header.update(rarestream=EVIL, chosen_by={"name": EVIL, "rows": 1}, source=SOURCE),
        lambda header, arrays: header.update(metrics={EVIL: 0.5}),
        lambda header, arrays: header.update(learner={"name": EVIL, "settings": {}}),
        lambda header, arrays: header["learner"]["settings"].update({EVIL: 1}),
        lambda header, arrays: header["learner"]["settings"].update(loss=EVIL),
        lambda header, arrays: header["learner"]["settings"].update(l1=EVIL),
        lambda header, arrays: header.update(dtype=EVIL),
        lambda header, arrays: header.update(scale=EVIL),
        lambda header, arrays: header.update(kind=EVIL),
        lambda header, arrays: header.update(rows=EVIL),
        lambda header, arrays: header.update(source=EVIL),
        lambda header, arrays: header.update(features={"space": EVIL, "count": 2}),
        lambda header, arrays: header.update(decision={"rule": EVIL}),
        lambda header, arrays: header.update(decision={"level": 0.95, "rule": EVIL}),
        lambda header, arrays: arrays.update({EVIL: np.zeros(3)}),
        lambda header, arrays: arrays.update({f"more.{EVIL}": np.full(3, np.nan)}),
        lambda header, arrays: arrays.update({f"progress.{EVIL}": np.zeros(3)}),
    ],
)
def test_what_a_model_file_says_is_shown_the_same_way(tmp_path, change):
    path, data = tmp_path / "m.rare", tmp_path / "x.svm"
    data.write_text(ROWS)
    crafted(path, change)
    for words in (
        ("inspect", path),
        ("inspect", path, "--json"),
        ("evaluate", path, data),
        ("predict", path, data),
        ("predict", path, data, "--label"),
        ("threshold", path, data, "--recall", 0.5),
        ("prune", path, "--nonzeros", 1),
        ("train", data, "--resume", path),
    ):
        done = run(*words)
        assert not RAW.search(done.stdout + done.stderr)
        assert "Traceback" not in done.stderr
        assert done.exit_code in (0, 1), done.stderr
        crafted(path, change)
    done = run("train", data, "-o", path)
    assert not RAW.search(done.stderr)


def test_the_strings_of_a_model_file_are_still_there_to_read(tmp_path):
    path = tmp_path / "m.rare"
    crafted(path, lambda header, _: header.update(rarestream=EVIL, chosen_by={"name": EVIL, "rows": 1}, source=SOURCE))
    shown = run("inspect", path).stdout
    assert shown.count(SHOWN) == 3
