"""rarestream log replay and dump, on the directory of a service that has run."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from rarestream import Model
from rarestream.serve.snapshots import Snapshots
from tests.cli.conftest import run
from tests.serve.log.logs import contents
from tests.serve.programs import named_model, named_rows, serving


def learn(program, rows, **more):
    body = {"rows": [{name: row[name] for name in ("site", "price", "new")} for row in rows]}
    answer = program.ask("POST", "/learn", {**body, "labels": [row["label"] for row in rows], **more})
    assert answer.status == 200, answer
    return answer.json["sequence"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A directory with two snapshots: one made while the service ran, and that of entry 95, made when it stopped."""
    folder = tmp_path_factory.mktemp("served")
    rows = named_rows(80, seed=1)
    with serving(named_model(folder), "--dir", folder / "state") as program:
        learn(program, rows[:30])
        ids = [f"r{number}" for number in range(15)]
        program.ask("POST", "/predict", {"rows": [{"site": "s1.com"}] * 15, "ids": ids})
        assert program.ask("POST", "/snapshot").json["sequence"] in (30, 45)  # stored rows are applied a moment later
        learn(program, rows[30:75], importances=[2.0] * 45)
        last = program.ask("POST", "/label", {"labels": [{"id": one, "label": 1} for one in ids[:5]]}).json["sequence"]
        assert last == 95
        replayed = run("log", "replay", folder / "state", "--json")  # beside the service
        assert json.loads(replayed.stdout)["sequence"] == 95
    return folder / "state"


def test_the_log_gives_the_bits_of_the_snapshots_and_nothing_is_changed(served):
    before = contents(served)
    done = run("log", "replay", served)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "\nsnapshot 95: same bits\n380 rows learned, " in done.stdout
    assert "progressive AUC 0." in done.stdout
    assert contents(served) == before


def test_the_model_that_is_written_is_that_of_the_snapshot(served, tmp_path):
    target = tmp_path / "out.rare"
    done = run("log", "replay", served, "-o", target, "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert (found["sequence"], found["rows"], found["version"]) == (95, 300 + 75 + 5, 1)
    assert [one["sequence"] for one in found["snapshots"] if not one["differs"]][-1] == 95
    assert Model.load(target).to_bytes() == Snapshots(served / "snapshots").file(95, "model.rare")


def test_the_state_of_an_entry_in_between_can_be_had(served, tmp_path):
    found = json.loads(run("log", "replay", served, "--until", 90, "-o", tmp_path / "m.rare", "--json").stdout)
    assert (found["sequence"], found["rows"]) == (90, 375)
    assert Model.load(tmp_path / "m.rare").rows == 375
    said = run("log", "replay", served, "--until", 93).stdout
    assert "entry 93 is inside a record" in said


def test_entries_that_are_not_there_are_refused_and_nothing_is_written(served, tmp_path):
    done = run("log", "replay", served, "--until", 96, "-o", tmp_path / "m.rare")
    assert done.exit_code == 2 and "the log ends with entry 95" in done.stderr
    assert not (tmp_path / "m.rare").exists()
    oldest = Snapshots(served / "snapshots").sequences()[0]
    if oldest:
        done = run("log", "replay", served, "--until", oldest - 1)
        assert done.exit_code == 3 and f"is that of entry {oldest}" in done.stderr


def test_a_snapshot_with_other_bits_is_named_with_exit_code_3(served, tmp_path):
    state = Path(copytree(served, tmp_path / "state"))
    snapshots = Snapshots(state / "snapshots")
    files = dict(snapshots.load(95).files)
    facts = json.loads(files["state.json"])
    facts["version"] = 7
    files["state.json"] = json.dumps(facts).encode()
    for name in (state / "snapshots" / f"{95:020}").iterdir():
        name.unlink()
    snapshots.write(95, files)  # whole, with CRCs that are right: only a replay can tell
    done = run("log", "replay", state)
    assert done.exit_code == 3
    assert "snapshot 95: differs in state.json" in done.stdout and "entry 95 in state.json" in done.stderr
    assert run("log", "replay", state, "--no-check").exit_code == 0


def test_what_is_no_state_directory_is_said(tmp_path):
    done = run("log", "replay", tmp_path)
    assert done.exit_code == 1 and "it has no folder named log" in done.stderr


def test_dump_shows_rows_ids_and_labels(served):
    found = [json.loads(line) for line in run("log", "dump", served).stdout.splitlines()]
    kinds = [one["kind"] for one in found]
    assert [kind for kind in kinds if kind != "tick"] == ["learn", "store", "learn", "label"]
    learned = found[kinds.index("learn")]
    assert (learned["count"], len(learned["rows"]), len(learned["labels"])) == (30, 30, 30)
    assert json.loads(learned["rows"][0])["site"].endswith(".com")
    label = found[kinds.index("label")]
    assert (label["ids"], label["labels"]) == ([f"r{number}" for number in range(5)], [1] * 5)
