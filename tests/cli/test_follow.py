"""`rarestream train --follow`: live sources, restarts with the same command, saves, heartbeats, dead letters, signals."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from rarestream import Model, read
from rarestream.cli import following
from rarestream.evaluate import train
from tests.children import Child
from tests.cli.conftest import run
from tests.readers.live.lines import rows

FLAGS = ("--follow", "--learner", "dual-auc", "--one-based")


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.svm"
    path.write_text("".join(rows(0, 2000)))
    return path


def expected(path):
    model = Model("dual-auc")
    train(model, read(path, zero_based=False))
    return model


def started(*words):
    return Child([sys.executable, "-m", "rarestream", "train", *words])


def add(path, start, stop):
    with path.open("a") as file:
        file.writelines(rows(start, stop))


def test_the_same_command_continues_where_the_model_file_says(log, tmp_path):
    path = tmp_path / "m.rare"
    command = ("train", log, *FLAGS, "-o", path, "--stop-after", "600ms")
    assert run(*command).exit_code == 0
    add(log, 2000, 2100)
    done = run(*command)
    assert done.exit_code == 0 and "Continuing after row 2,000." in done.stderr
    assert (Model.load(path).coef == expected(log).coef).all()


def test_restarting_needs_no_more_than_the_model(log, tmp_path):
    path = tmp_path / "m.rare"
    run("train", log, *FLAGS, "-o", path, "--stop-after", "600ms")
    add(log, 2000, 2100)
    done = run("train", "--follow", "--resume", path, "--stop-after", "600ms")
    assert done.exit_code == 0
    assert (Model.load(path).coef == expected(log).coef).all()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_gracefully(log, tmp_path, number):
    path = tmp_path / "m.rare"
    with started(log, *FLAGS, "-o", path, "--json", "--heartbeat", "100ms", "--save-every", "1h") as program:
        for line in program.lines():
            if json.loads(line).get("rows") == 2000:
                break
        program.send_signal(number)
        rest, told = program.communicate()
    assert program.returncode == 0, told
    assert json.loads(rest.splitlines()[-1])["interrupted"]
    assert (Model.load(path).coef == expected(log).coef).all()


def test_what_json_lines_tell(log, tmp_path):
    done = run(
        "train", log, *FLAGS, "-o", tmp_path / "m.rare", "--json", "--stop-after", "900ms", "--heartbeat", "200ms",
        "--save-every", "1500",
    )  # fmt: skip
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event["event"] for event in events]
    assert {"saved", "heartbeat", "progress"} <= set(kinds) and kinds[-1] == "done"
    beat = next(event for event in events if event["event"] == "heartbeat" and event["rows"])
    assert beat["rows"] == 2000 and beat["behind"] == "" and beat["unsaved"] == 0
    assert [event["rows"] for event in events if event["event"] == "saved"] == [0, 2000]


def test_the_heartbeat_is_a_line_of_80_columns(log, tmp_path):
    done = run(
        "train",
        log,
        *FLAGS,
        "-o",
        tmp_path / "m.rare",
        "--stop-after",
        "700ms",
        "--heartbeat",
        "300ms",
        "--save-every",
        100,
    )
    beats = [line for line in done.stderr.splitlines() if "/s, AUC" in line]
    assert beats and all(len(line) <= 80 for line in beats)
    assert ", up to date, saved 0 s ago" in beats[-1]


def test_invalid_rows_go_to_the_file_of_dead_letters(log, tmp_path):
    add_text = "nonsense\n"
    log.write_text(log.read_text() + add_text + "".join(rows(2000, 2010)))
    letters, path = tmp_path / "bad.jsonl", tmp_path / "m.rare"
    done = run("train", log, *FLAGS, "-o", path, "--stop-after", "600ms", "--dead-letters", letters)
    assert done.exit_code == 0 and "1 invalid row was skipped" in done.stderr
    assert json.loads(letters.read_text())["row"] == "nonsense"
    assert Model.load(path).rows == 2010


def test_an_invalid_row_ends_it_and_what_came_before_is_saved(log, tmp_path):
    log.write_text(log.read_text() + "nonsense\n")
    path = tmp_path / "m.rare"
    done = run("train", log, *FLAGS, "-o", path)
    assert done.exit_code == 3
    assert "log.svm:2001:1" in done.stderr and "The model file has the first 2,000 rows." in done.stderr
    assert Model.load(path).rows == 2000
    again = run("train", log, *FLAGS, "-o", path, "--max-bad-rows", 1, "--stop-after", "500ms")
    assert again.exit_code == 0 and Model.load(path).rows == 2000


def test_standard_input_until_its_end(log, tmp_path):
    path = tmp_path / "m.rare"
    words = [sys.executable, "-m", "rarestream", "train", "-", *FLAGS, "-o", path]
    with log.open("rb") as source, Child(words, stdin=source) as program:
        _, told = program.communicate()
    # A file as standard input is no pipe, but it ends like one.
    assert program.returncode == 0, told
    assert (Model.load(path).coef == expected(log).coef).all()


def test_a_folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.svm").write_text("".join(rows(500 * number, 500 * number + 500)))
    path = tmp_path / "m.rare"
    done = run("train", folder, *FLAGS, "-o", path, "--stop-after", "2s")
    assert done.exit_code == 0, done.stderr
    assert (Model.load(path).coef == expected([folder / f"{number}.svm" for number in range(3)]).coef).all()


def test_a_model_that_has_not_followed_the_source_is_not_touched(log, tmp_path):
    path = tmp_path / "m.rare"
    run("train", log, "--learner", "dual-auc", "-o", path)
    before = path.read_bytes()
    done = run("train", log, *FLAGS, "-o", path)
    assert done.exit_code == 2 and "has not followed" in done.stderr
    assert path.read_bytes() == before
    followed = tmp_path / "followed.rare"
    run("train", log, *FLAGS, "-o", followed, "--stop-after", "500ms")
    done = run("train", log, "--resume", followed)
    assert done.exit_code == 2 and "Pass --follow to continue there" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "words, said",
    [
        (["--passes", "2"], "cannot be combined with --follow"),
        (["--shuffle", "1"], "cannot be combined with --follow"),
        (["--classes", "all"], "cannot be combined with --follow"),
        (["--cache"], "cannot be combined with --follow"),
        (["--scoring-only"], "cannot be combined with --follow"),
        (["--save-every", "soon"], "a number of rows, such as 10000, or a time"),
        (["--save-every", "0"], "at least one row"),
        (["--heartbeat", "5"], "5 needs a unit: 5s"),
        (["other.svm"], "one source at a time"),
    ],
)
def test_options_that_do_not_fit(log, tmp_path, words, said):
    done = run("train", log, *FLAGS, "-o", tmp_path / "m.rare", *words)
    assert done.exit_code == 2 and said in " ".join(done.stderr.split())
    assert not (tmp_path / "m.rare").exists()


def test_options_of_live_sources_need_follow(log, tmp_path):
    done = run("train", log, "-o", tmp_path / "m.rare", "--heartbeat", "1s")
    assert done.exit_code == 2 and "pass --follow, too" in " ".join(done.stderr.split())
    done = run("train", "-o", tmp_path / "m.rare")
    assert done.exit_code == 2 and "Missing argument 'DATA'" in done.stderr
    done = run("train", "kafka://me:secret@localhost:9092/clicks", "-o", tmp_path / "m.rare")
    assert done.exit_code == 2 and "never ends: pass --follow" in done.stderr and "secret" not in done.stderr


def test_saves_without_follow_may_be_by_time_too(log, tmp_path):
    assert following.save_every("5m", False) == 300.0
    assert following.save_every("500", False) == 500
    assert following.save_every(None, False) is None and following.save_every(None, True) == 30.0
    assert run("train", log, "-o", tmp_path / "m.rare", "--save-every", "1ms", "-q").exit_code == 0
