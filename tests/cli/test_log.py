"""rarestream log: what is whole, torn or damaged is said; dump prints what can be read; repair moves the rest aside."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from rarestream.serve.log import StateLock
from rarestream.serve.snapshots import Snapshots
from tests.cli.conftest import run
from tests.cli.test_terminal import plain, seen
from tests.program import Result
from tests.serve.log.logs import contents, fill, flipped, segments

PAGE = Path(__file__).parent.parent.parent / "docs" / "serve-log.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state of a service: 60 entries, and two snapshots."""
    fill(tmp_path / "state" / "log", 60)
    snapshots = Snapshots(tmp_path / "state" / "snapshots")
    for sequence in (20, 40):
        snapshots.write(sequence, {"model.rare": b"model" * sequence})
    return tmp_path / "state"


def flip(path: Path, at: int) -> None:
    path.write_bytes(flipped(path.read_bytes(), at))


def lines(done: Result) -> list[dict]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_whole_state_is_said_to_be_whole_and_stays_as_it_is(state):
    before = contents(state)
    done = run("log", "verify", state)
    assert done.exit_code == 0 and done.stderr == ""
    assert "the log is whole, 60 entries" in done.stdout and "snapshot of entry 40: whole" in done.stdout
    (found,) = lines(run("log", "verify", state, "--json"))
    assert found["whole"] and (found["first"], found["next"]) == (1, 61) and found["damage"] is None
    assert len(found["segments"]) == len(segments(state / "log"))
    assert found["snapshots"] == [{"sequence": 20, "problem": None}, {"sequence": 40, "problem": None}]
    assert contents(state) == before


def test_a_torn_end_is_no_damage(state):
    with open(segments(state / "log")[-1], "ab") as file:
        file.write(b"torn")
    before = contents(state)
    done = run("log", "verify", state)
    assert done.exit_code == 0 and "Torn end" in done.stdout and "4 bytes at the end, after entry 60" in done.stdout
    done = run("log", "dump", state)
    assert done.exit_code == 0 and "4 bytes at the end" in done.stderr
    assert contents(state) == before
    done = run("log", "repair", state)
    assert done.exit_code == 0 and "Cut off: " in done.stdout and "no damage. The log ends with entry 60" in done.stdout
    assert "Torn end" not in run("log", "verify", state).stdout


def test_damage_has_its_place_and_exit_code_3(state):
    path = segments(state / "log")[2]
    flip(path, 50)
    for words in (["verify"], ["verify", "--json"], ["dump"]):
        done = run("log", words[0], state, *words[1:])
        assert done.exit_code == 3
        assert f"{path}: damaged at byte 40: " in done.stderr
        assert f"good up to entry {int(path.stem) - 1}. " in done.stderr and "rarestream log repair " in done.stderr
    (found,) = lines(run("log", "verify", state, "--json"))
    assert not found["whole"] and found["damage"]["offset"] == 40 and len(found["unread"]) > 2
    dumped = lines(run("log", "dump", state))
    assert dumped[-1]["sequence"] + dumped[-1]["count"] == int(path.stem)


def test_what_can_be_read_of_a_damaged_last_segment_is_dumped(state):
    path = segments(state / "log")[-1]
    flip(path, 41)
    done = run("log", "dump", state)
    assert done.exit_code == 3 and lines(done)[-1]["sequence"] < int(path.stem)


def test_a_damaged_snapshot_is_said_with_what_the_service_starts_from(state):
    flip(state / "snapshots" / f"{40:020}" / "model.rare", 3)
    done = run("log", "verify", state)
    assert done.exit_code == 3 and "snapshot of entry 40: model.rare is not as it was written" in done.stdout
    assert "the snapshot of entry 40 is damaged. The service starts from that of entry 20 and the log" in done.stderr
    flip(state / "snapshots" / f"{20:020}" / "model.rare", 3)
    done = run("log", "verify", state)
    assert "entries 20, 40 are damaged. The service starts from its model and the whole log" in done.stderr
    segments(state / "log")[0].unlink()
    assert "the state before it is lost" in run("log", "verify", state).stderr


def test_dump_prints_the_entries_asked_for(state):
    found = lines(run("log", "dump", state))
    assert sum(record["count"] for record in found) == 60
    assert set(found[0]) == {"sequence", "count", "kind", "bytes", "note"}  # no entries of a service
    some = lines(run("log", "dump", state, "--after", 30, "--until", 40))
    assert some == [one for one in found if one["sequence"] <= 40 and one["sequence"] + one["count"] - 1 > 30]
    done = run("log", "dump", state, "--after", 30, "--until", 30)
    assert done.exit_code == 2 and "must be above --after, which is 30" in done.stderr


def test_repair_without_a_snapshot_keeps_what_is_before_the_damage(state):
    for sequence in (20, 40):
        flip(state / "snapshots" / f"{sequence:020}" / "model.rare", 3)
    path = segments(state / "log")[2]
    flip(path, 50)
    last = int(path.stem) - 1
    done = run("log", "repair", state)
    assert done.exit_code == 0 and f"The log has entries 1 to {last}. It was damaged in" in done.stdout
    assert f"{path.name}, byte 40: " in done.stdout and f"{path.name}.from-40" in done.stdout
    assert f"The service has lost the entries after {last}." in done.stdout
    (found,) = lines(run("log", "verify", state, "--json"))
    assert found["damage"] is None and found["next"] == last + 1


def test_repair_with_a_snapshot_behind_the_damage_loses_nothing(state):
    flip(segments(state / "log")[1], 50)
    (done,) = lines(run("log", "repair", state, "--json"))
    assert done["last"] == 60 and done["first"] <= 41 and not done["shortened"] and done["snapshot"] == 40
    assert sorted(done["moved"]) == sorted(os.listdir(done["aside"]))
    assert run("log", "verify", state).exit_code == 0


def test_repair_with_a_snapshot_in_the_damaged_segment_says_what_is_lost(state):
    path = [one for one in segments(state / "log") if int(one.stem) <= 41][-1]
    flip(path, 50)
    done = run("log", "repair", state)
    assert "The service starts from the snapshot of entry 40. Those after it are lost." in done.stdout


def test_repair_refuses_while_a_service_runs(state):
    flip(segments(state / "log")[1], 50)
    before = contents(state)
    with StateLock(state):
        done = run("log", "repair", state)
        assert run("log", "dump", state, "--until", 3).exit_code == 0
    assert done.exit_code == 1 and f"is in use by process {os.getpid()}" in done.stderr
    (state / "lock").unlink()
    assert contents(state) == before


@pytest.mark.parametrize("command", ["verify", "dump", "repair"])
def test_a_directory_without_a_log_is_an_error_and_nothing_is_made(tmp_path, command):
    done = run("log", command, tmp_path / "no")
    assert done.exit_code == 1 and "there is no such directory. Pass the directory" in done.stderr
    done = run("log", command, tmp_path)
    assert done.exit_code == 1 and "it has no folder named log" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_log_without_segments_is_whole(tmp_path):
    (tmp_path / "log").mkdir()
    done = run("log", "verify", tmp_path)
    assert done.exit_code == 0 and "the log is whole, 0 entries" in done.stdout
    assert run("log", "repair", tmp_path).exit_code == 0 and run("log", "dump", tmp_path).stdout == ""


def test_it_fits_in_80_columns(state, monkeypatch):
    monkeypatch.chdir(state.parent)
    with open(segments(state / "log")[-1], "ab") as file:
        file.write(b"torn")
    shown = [seen(80, "log", "verify", "state")]
    flip(segments(state / "log")[1], 50)
    shown += [seen(80, "log", "verify", "state"), seen(80, "log", "repair", "state")]
    assert [code for code, _ in shown] == [0, 3, 0]
    assert max(len(line) for _, text in shown for line in plain(text).splitlines()) <= 80


def test_the_page_shows_what_the_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fences = FENCE.findall(PAGE.read_text("utf-8"))
    checked = 0
    for (language, code), (_, following) in zip(fences, [*fences[1:], ("", "")], strict=True):
        if language == "python":
            exec(code, {})
            printed = capsys.readouterr().out
            assert printed in ("", following)
        elif language == "sh" or code.startswith("$ rarestream "):
            command, _, shown = code.removeprefix("$ ").partition("\n")
            done = run(*command.split()[1:])
            assert done.stdout + done.stderr == (shown or following)
            checked += 1
    assert checked == 4
