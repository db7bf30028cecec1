"""Whatever goes wrong has an exit code and a plain message; no traceback, no file half-written."""

from __future__ import annotations

import re
import resource
import sys

import pytest

from rarestream import modelfile
from rarestream.errors import for_command_line
from tests import children
from tests.cli.conftest import process, run


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "Usage"),
        (["fly"], 2, "fly"),
        (["train"], 2, "DATA"),
        (["train", "{events}"], 2, "-o MODEL"),
        (["train", "missing.svm", "-o", "{new}"], 1, "missing.svm: no such file"),
        (["train", "{folder}", "-o", "{new}"], 1, "is a directory"),
        (["train", "{folder}/*.nothing", "-o", "{new}"], 1, "no file matches"),
        (["predict", "{trained}", "{folder}/*.nothing"], 1, "no file matches"),
        (["evaluate", "{trained}", "{events}", "{folder}/[xyz].nothing"], 1, "no file matches"),
        (["train", "{events}", "-o", "{folder}"], 1, "is a directory"),
        (["train", "{events}", "-o", "{folder}/no/m.rare"], 1, "the folder {folder}/no does not exist"),
        (["train", "{events}", "-o", "{new}", "--learner", "dual-acu"], 2, "Did you mean dual-auc?"),
        (
            ["train", "{events}", "-o", "{new}", "-l", "spam", "--set", "l3=1"],
            2,
            "a setting of spam must be one of learning_rate",
        ),
        (["train", "{events}", "-o", "{new}", "--set", "l1=1"], 2, "auto chooses its settings itself, except for rows"),
        (["train", "{events}", "-o", "{new}", "--set", "l1"], 2, "NAME=VALUE"),
        (["train", "{events}", "-o", "{new}", "--budget", "0"], 2, "'--budget'"),
        (
            ["train", "{events}", "-o", "{new}", "-l", "dual-auc", "--budget", "9", "--set", "l1=1"],
            2,
            "budget and l1 cannot be combined",
        ),
        (
            ["train", "{events}", "-o", "{new}", "-l", "ftrl-auc", "--budget", "9"],
            2,
            "dual-auc and dual-logistic have one",
        ),
        (["train", "{events}", "-o", "{new}", "-l", "rda", "--set", "l1=-1"], 2, "l1 must be >= 0, got '-1'"),
        (["train", "{events}", "-o", "{new}", "-l", "rda", "--set", "l1=x"], 2, "l1 must be a number, got 'x'"),
        (["train", "{events}", "-o", "{new}", "--scale", "units"], 2, "Did you mean unit?"),
        (["train", "{events}", "-o", "{new}", "--dtype", "float16"], 2, "float32, float64"),
        (["train", "{events}", "-o", "{new}", "--passes", "0"], 2, "'--passes'"),
        (["train", "{events}", "-o", "{new}", "-P", "often"], 2, "a factor above 1"),
        (["train", "{events}", "-o", "{new}", "--format", "xml"], 2, "got 'xml'"),
        (["race", "{events}", "-o", "{new}", "--format", "xml"], 2, "got 'xml'"),
        (["predict", "{trained}", "{events}", "--format", "xml"], 2, "got 'xml'"),
        (["evaluate", "{trained}", "{events}", "--format", "svmligth"], 2, "Did you mean svmlight?"),
        (["train", "{events}", "--resume", "missing.rare"], 1, "missing.rare: cannot be read"),
        (["train", "{events}", "--resume", "{bad}"], 1, "not a rarestream model"),
        (["train", "{empty}", "-o", "{new}"], 3, "no rows"),
        (["train", "{junk}", "-o", "{new}"], 3, "junk.svm:1"),
        (["train", "{bad}", "-o", "{new}"], 3, "bad.svm:2:3"),
        (["train", "{bad}", "-o", "{new}", "--max-bad-rows", "1"], 3, "2 invalid rows"),
        (["train", "{events}", "-o", "{events}"], 2, "would be lost"),
        (["train", "{events}", "-o", "/dev/null"], 1, "is not a regular file, which a model could replace"),
        (["predict", "{trained}", "{events}", "-p", "{events}"], 2, "would be lost"),
        (["predict", "{trained}", "{events}", "-p", "{trained}"], 2, "would be lost"),
        (["predict", "missing.rare", "{events}"], 1, "missing.rare: cannot be read"),
        (["predict", "{trained}", "missing.svm"], 1, "no such file"),
        (["predict", "{trained}", "{bad}"], 3, "bad.svm:2:3"),
        (["predict", "{trained}", "{events}", "-p", "{folder}/no/s.txt"], 1, "does not exist"),
        (["evaluate", "{trained}"], 2, "DATA"),
        (["evaluate", "{trained}", "{one}"], 3, "all 2 rows are negative"),
        (["evaluate", "{trained}", "{events}", "--scores", "{events}"], 2, "cannot be combined with MODEL"),
        (["evaluate", "--scores", "missing.txt"], 1, "no such file"),
        (["evaluate", "--scores", "{mixed}"], 3, "mixed.svm:3: a third label, -1, after 0 and 1"),
        (["train", "{events}", "-o", "{new}", "--learner", "dual_auc"], 2, "Did you mean dual-auc?"),
        (["prune", "{trained}"], 2, "pass one of --nonzeros, --bytes and --auc-loss"),
        (["prune", "{trained}", "-o", "{new}", "--path", "--on", "{events}"], 2, "to say how much to prune"),
        (
            ["prune", "{trained}", "-o", "{new}", "--nonzeros", "9", "--bytes", "9"],
            2,
            "Only one of --nonzeros, --bytes and --auc-loss",
        ),
        (["prune", "{trained}", "-o", "{new}", "--nonzeros", "-1"], 2, "'--nonzeros'"),
        (["prune", "{trained}", "-o", "{new}", "--bytes", "-1"], 2, "'--bytes'"),
        (["prune", "{trained}", "-o", "{new}", "--bytes", "99"], 2, "must be at least"),
        (["prune", "{trained}", "-o", "{new}", "--auc-loss", "0.1"], 2, "--on DATA"),
        (["prune", "{trained}", "-o", "{new}", "--auc-loss", "-1", "--on", "{events}"], 2, "must be >= 0, got -1.0"),
        (["prune", "{trained}", "-o", "{new}", "--auc-loss", "nan", "--on", "{events}"], 2, "must be >= 0, got nan"),
        (["prune", "{trained}", "-o", "{new}", "--auc-loss", "0.1", "--on", "{one}"], 3, "all 2 rows are negative"),
        (["prune", "{trained}", "-o", "{new}", "--auc-loss", "0.1", "--on", "{bad}"], 3, "bad.svm:2:3"),
        (["prune", "{trained}", "-o", "{new}", "--auc-loss", "0.1", "--on", "missing.svm"], 1, "no such file"),
        (["prune", "{trained}", "--path"], 2, "--on DATA"),
        (["prune", "{trained}", "--nonzeros", "9", "--plot", "p.png"], 2, "--on DATA"),
        (
            ["prune", "{trained}", "--plot", "{folder}/p.pdf", "--on", "{events}"],
            2,
            "the file must end with .png or .svg",
        ),
        (["prune", "{trained}", "-o", "{trained}", "--nonzeros", "9"], 2, "would be lost"),
        (["prune", "{trained}", "-o", "{folder}/no/m.rare", "--nonzeros", "9"], 1, "does not exist"),
        (["prune", "missing.rare", "--nonzeros", "9"], 1, "missing.rare: cannot be read"),
        (["inspect", "{events}"], 1, "not a rarestream model"),
        (["inspect", "{trained}", "--diff", "missing.rare"], 1, "missing.rare"),
        (["demo", "--rows", "5"], 2, "'--rows'"),
    ],
)
def test_every_mistake_has_a_code_and_a_message(events, trained, tmp_path, words, code, said):
    names = {"folder": tmp_path, "events": events, "trained": trained, "new": tmp_path / "new.rare"}
    texts = {"empty": "", "junk": "\x00\x01\x02\n", "bad": "1 1:1\n1 x:1\n-1 y:1\n", "one": "-1 1:1\n-1 2:1\n"}
    texts["mixed"] = "0 0.5\n1 0.7\n-1 0.1\n"
    for name, text in texts.items():
        names[name] = tmp_path / f"{name}.svm"
        names[name].write_text(text)
    done = run(*(word.format(**names) for word in words))
    assert done.exit_code == code, done.stderr
    assert said.format(**names) in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stderr
    assert not names["new"].exists()
    assert not list(tmp_path.glob(".*"))  # nor anything half-written


@pytest.mark.parametrize(
    ("text", "words", "advice"),
    [
        ("1 1:1\n2:1\n", (), "to score them, use rarestream predict"),
        ("1 1:1\n-1 0:1\n", ("--one-based",), "--zero-based"),
        ("1 1:1\n-1 x\n-1 x\n", ("--max-bad-rows", 1), "more than --max-bad-rows 1 allows"),
        ("1 1:1\n-1 1:1\n0 1:1\n", (), "--positive VALUE"),
        ("1 1:1\n" * 500 + "-1 1:1\n" * 500, (), "pass --shuffle SEED"),
        ("1 1:3e38\n-1 1:3e38\n" * 50, ("--scale", "none", "-l", "ftrl-auc"), "--scale unit or max"),
    ],
)
def test_advice_names_options_and_only_while_a_command_runs(tmp_path, text, words, advice):
    data = tmp_path / "data.svm"
    data.write_text(text)
    done = run("train", data, "-o", tmp_path / "m.rare", *words)
    assert advice in done.stderr
    assert not re.search(r"(labels|zero_based|max_bad_rows|positive|shuffle|scale)=", done.stderr)
    assert not for_command_line()


def test_a_failed_training_leaves_the_old_model_as_it_was(trained, tmp_path):
    path, bad = tmp_path / "m.rare", tmp_path / "bad.svm"
    path.write_bytes(trained.read_bytes())
    bad.write_text("1 1:1\n-1 2:1\n1 x:1\n")
    done = run("train", bad, "-o", path)
    assert done.exit_code == 3
    assert "Nothing was saved" in done.stderr
    assert "--max-bad-rows" in done.stderr
    assert path.read_bytes() == trained.read_bytes()


def test_a_full_disk_while_saving_leaves_the_old_model_as_it_was(events, trained, tmp_path):
    path = tmp_path / "m.rare"
    path.write_bytes(trained.read_bytes())
    done = process(
        *("train", events, "-o", path),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
    )
    assert done.returncode == 1
    assert "could not be saved" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_bytes() == trained.read_bytes()
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.rare"]


def test_debug_shows_the_traceback(tmp_path, monkeypatch):
    words = ("inspect", tmp_path / "missing.rare")
    assert "Traceback" in process("--debug", *words).stderr
    monkeypatch.setenv("RARESTREAM_DEBUG", "1")
    assert "Traceback" in process(*words).stderr
    monkeypatch.setenv("RARESTREAM_DEBUG", "0")
    assert "Traceback" not in process(*words).stderr


def test_a_model_of_a_newer_format_names_the_format(trained, tmp_path):
    path = tmp_path / "newer.rare"
    header, arrays = modelfile.read(trained)
    modelfile.write(path, {**header, "format": 99}, arrays)
    done = run("inspect", path)
    assert done.exit_code == 1
    assert "format 99" in done.stderr


def test_version_and_help():
    from rarestream import __version__

    assert run("--version").stdout == f"rarestream {__version__}\n"
    for command in (
        "doctor",
        "train",
        "explain",
        "predict",
        "evaluate",
        "prune",
        "inspect",
        "datasets",
        "demo",
        "reproduce",
    ):
        assert command in run("--help").stdout
        assert "Usage" in run(command, "-h").stdout


def test_help_waits_for_nothing_heavy():
    code = (
        "import sys; sys.argv = ['rarestream', '--help']\n"
        "from rarestream.cli import main\n"
        "try: main()\nexcept SystemExit: print(*sys.modules)"
    )
    loaded = children.run([sys.executable, "-c", code]).stdout.split()
    assert not {"numpy", "scipy", "safetensors", "dataclasses", "rarestream.model"} & set(loaded)
