"""`split`: words, messages and exit codes. Which rows are where is tested in tests/splitting."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import children
from tests.cli.conftest import run, started
from tests.cli.tables import COLUMNS, clicks, rows


def test_split_prints_a_table_in_80_columns(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    clicks(Path("clicks.csv"), count=1000)
    done = run("split", "clicks.csv", "--into", "train=0.7,valid=0.1,test", "--by", "order", "--label", "clicked")
    assert done.exit_code == 0 and not done.stderr
    heading, *lines = done.stdout.splitlines()
    assert heading == "part   rows   share  positives  file"
    assert [line.split()[:4] for line in lines] == [
        ["train", "700", "70.0", "%"],
        ["valid", "100", "10.0", "%"],
        ["test", "200", "20.0", "%"],
    ]
    assert lines[0].endswith("clicks.train.csv")
    done = run("split", "clicks.csv", "--overwrite")
    assert "Split by random, seed 0: the same seed and shares give the same split again." in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    long = tmp_path / ("a" * 40) / ("b" * 40)
    long.mkdir(parents=True)
    assert all(len(line) <= 80 or "/" in line for line in run("split", "clicks.csv", "-d", long).stdout.splitlines())


def test_split_by_time_says_where(tmp_path):
    path = clicks(tmp_path / "clicks.csv", count=1000)
    done = run("split", path, "--by", "time", "--column", "when")
    assert "test starts at 2026-02-2" in done.stdout
    done = run("split", path, "--by", "time", "--column", "when", "--at", "2026-02-10,2026-02-20", "--overwrite")
    assert "valid starts at 2026-02-10.\ntest starts at 2026-02-20.\n" in done.stdout


def test_split_as_json(tmp_path):
    path = clicks(tmp_path / "clicks.csv", count=1000)
    found = json.loads(run("split", path, "--by", "key", "--column", "site", "--label", "clicked", "--json").stdout)
    assert list(found) == ["parts", "by", "cuts", "without_key", "refused", "rows"]
    assert [part["name"] for part in found["parts"]] == ["train", "test"] and found["rows"] == 1000
    assert sum(part["share"] for part in found["parts"]) == pytest.approx(1) and found["parts"][0]["positives"] > 0


def test_what_a_user_should_know_is_a_warning(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("user,n\na,1\n,2\n3\n")
    done = run("split", path, "--by", "key", "--column", "user", "--max-bad-rows", "1", "--into", "a=0.5,b=0.3,c=0.2")
    assert done.exit_code == 0
    assert "has no row: there are only 2 rows." in done.stderr
    assert "1 row without a key was placed at random." in done.stderr
    assert "1 invalid row was skipped" in done.stderr and "t.csv:4:1: this row has 1 cell" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--into", "a=0.5,b=0.6"], 2, "the shares add up to 1.1"),
        (["--by", "keys"], 2, "must be one of random, order, key, time, got 'keys'. Did you mean key?"),
        (["--by", "key"], 2, "which column is the key? Pass --column COLUMN"),
        (["--by", "key", "--column", "sit"], 3, "Did you mean 'site'?"),
        (["--by", "time", "--column", "site"], 3, "clicks.csv:2: column 'site' must have a date"),
        (["--by", "time", "--column", "when", "--at", "noon"], 2, "--at must be a date"),
        (["--numeric", "age"], 2, "No such option: --numeric"),
        (["--output-dir", "nowhere"], 1, "does not exist. Create it first"),
        (["--seed", "x"], 2, "must be a whole number"),
    ],
)
def test_what_is_wrong_is_said_with_its_exit_code(tmp_path, monkeypatch, words, code, message):
    monkeypatch.chdir(tmp_path)
    clicks(Path("clicks.csv"), count=100)
    done = run("split", "clicks.csv", *words)
    assert done.exit_code == code and message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["clicks.csv"]


def test_existing_files_are_replaced_only_if_asked(tmp_path):
    path = clicks(tmp_path / "clicks.csv", count=100)
    (tmp_path / "clicks.test.csv").write_text("before")
    done = run("split", path)
    assert done.exit_code == 2 and "clicks.test.csv exists, and is not replaced" in done.stderr
    assert (tmp_path / "clicks.test.csv").read_text() == "before" and not (tmp_path / "clicks.train.csv").exists()
    assert run("split", path, "--overwrite").exit_code == 0


def test_standard_input_is_split_in_one_pass(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "\n".join([COLUMNS, *rows(1, 50)]) + "\n"
    done = run("split", "-", "--format", "csv", "--by", "key", "--column", "site", stdin=text)
    assert done.exit_code == 0 and sorted(path.name for path in tmp_path.iterdir()) == [
        "stdin.test.csv",
        "stdin.train.csv",
    ]
    done = run("split", "-", "--format", "csv", "--by", "order", "--overwrite", stdin=text)
    assert done.exit_code == 3 and "can be read only once" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_split_that_is_ended_leaves_no_part(tmp_path, number):
    """Rows come through a pipe that stays open, so the program is in the middle of its work."""
    words = ["split", "-", "--format", "csv", "--by", "key", "--column", "site", "-d", tmp_path]
    with started(*words, stdin=subprocess.PIPE) as program:
        program.stdin.write("\n".join([COLUMNS, *rows(1, 30_000)]) + "\n")
        program.stdin.flush()
        while not list(tmp_path.glob(".stdin.*.part")) and program.poll() is None:
            pass
        program.send_signal(number)
        program.wait()
    assert program.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    left = [path.name for path in tmp_path.iterdir()]
    assert not [name for name in left if not name.startswith(".")]
    assert number == signal.SIGKILL or not left
    text = "\n".join([COLUMNS, *rows(1, 50)]) + "\n"
    run("split", "-", "--format", "csv", "--by", "key", "--column", "site", "-d", tmp_path, stdin=text)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stdin.test.csv", "stdin.train.csv"]


@pytest.mark.parametrize("words", [["split", "--by", "order"], ["convert", "out.vw", "--label", "clicked"]])
def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch, words):
    """A limit on the size of files stands for a disk without space."""
    monkeypatch.chdir(tmp_path)
    clicks(Path("clicks.csv"), count=30_000)
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000)); "
    code = f"{limited}from rarestream.cli import main; main()"
    done = children.run([sys.executable, "-c", code, words[0], "clicks.csv", *words[1:]])
    assert done.returncode == 1 and "could not be saved (File too large); the file was not made" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["clicks.csv"]
