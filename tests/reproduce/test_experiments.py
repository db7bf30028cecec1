"""Experiments: which trials they need, that each is done once, and that a kill loses none that was done."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from rarestream.reproduce import datasets
from rarestream.reproduce.experiments import ALL, EXPERIMENTS, FoundData, Plan, run_experiments, units_of
from rarestream.reproduce.methods import CORRECTED, METHODS, OURS, PUBLISHED, TABLE2
from rarestream.study.store import read_rows
from tests import children

QUICKLY = Plan(CORRECTED, quick=True, trials=1)


@pytest.fixture(scope="module")
def found(small):
    return datasets.sources(small, datasets.NAMES)


def test_data_sets_are_found_by_name_and_known_by_their_rows(small, found):
    assert list(found) == ["farm-ads", "imdb"]
    data = datasets.load(found["farm-ads"])
    assert data.data == "own"
    assert (data.shape["n"], data.shape["n_pos"], data.shape["d"]) == (240, 120, 60)
    (line,) = datasets.places(small, ["real-sim"])
    assert line.startswith(f"real-sim: {small}/real-sim.svm") and "72,309 rows" in line


def test_other_rows_have_another_mark(small, tmp_path):
    text = (small / "farm-ads.svm").read_text()
    (tmp_path / "farm-ads.svm").write_text(text)
    same = datasets.sources(tmp_path, ["farm-ads"])["farm-ads"].mark
    (tmp_path / "farm-ads.svm").write_text(text + "1 1:1\n")
    other = datasets.sources(tmp_path, ["farm-ads"])["farm-ads"].mark
    assert datasets.sources(small, ["farm-ads"])["farm-ads"].mark == same != other


@pytest.mark.parametrize("mode", [CORRECTED, PUBLISHED])
def test_the_units_of_all_are_those_of_each_and_have_their_settings(found, mode):
    plan = Plan(mode, quick=False)
    units = units_of(ALL, plan, found)
    assert len({json.dumps(unit) for unit in units}) == len(units)
    for name in EXPERIMENTS:
        for unit in plan.units(name, found):
            assert unit in units
            assert METHODS[unit["method"]].points(unit["mode"], unit["grid"])
            assert mode == CORRECTED or unit["method"] not in OURS
    ten = [unit for unit in units if unit["method"] == "spauc" and unit["dataset"] == "imdb"]
    assert [unit["trial"] for unit in ten] == list(range(10))


def test_what_a_method_is_tuned_after_is_run_too(found):
    plan = Plan(CORRECTED, quick=True, names=["imdb"], methods=["spam_l1l2"])
    assert {unit["method"] for unit in plan.units("table2", found)} == {"spam_l1l2", "spam_l2"}
    assert {unit["trial"] for unit in plan.units("table2", found)} == {0, 1}


def test_every_trial_is_done_once_and_told(small, found, tmp_path):
    names, plan, data = ["table2", "figure4"], Plan(CORRECTED, True, 1, ["farm-ads"]), FoundData(small, found, [])
    told = []
    rows, every = run_experiments(names, plan, data, tmp_path, processes=1, report=told.append)
    assert rows and sorted(map(json.dumps, rows)) == sorted(map(json.dumps, every))
    assert len(rows) == len(units_of(names, plan, found)) == len(TABLE2 + OURS)
    assert not any(row["error"] for row in rows)
    assert [one.done for one in told if one.row] == list(range(1, len(rows) + 1))
    assert (told[0].done, told[0].left, told[0].row) == (0, None, None)  # before the methods are timed
    assert {one.total for one in told} == {len(TABLE2 + OURS)}
    before = (tmp_path / "results.jsonl").read_bytes()
    assert run_experiments(names, plan, data, tmp_path, processes=1) == (rows, every)
    assert (tmp_path / "results.jsonl").read_bytes() == before


def _without_time(rows: list[dict]) -> list[str]:
    for row in rows:
        for point in row["points"]:
            point.pop("seconds")
        if row["curve"]:
            row["curve"].pop("seconds")
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_killed_in_the_middle_and_run_again_the_rows_are_the_same(small, tmp_path):
    def command(out: Path) -> list[str]:
        words = ["reproduce", "table2", "--quick", "--data-dir", small, "--out", out, "--jobs", "2"]
        return [sys.executable, "-m", "rarestream", *map(str, words)]

    once, twice = tmp_path / "once", tmp_path / "twice"
    children.run(command(once), check=True)
    with children.Child(command(twice)) as killed:
        assert any(line.startswith("7 of 48") for line in killed.lines("stderr"))
        killed.send_signal(signal.SIGKILL)
    done = read_rows(twice / "results.jsonl")
    assert 7 <= len(done) < 48
    with open(twice / "results.jsonl", "ab") as file:
        file.write(b'{"kind": "trial", "dataset": "im')  # as if the kill had come within a line
    children.run(command(twice), check=True)
    again = read_rows(twice / "results.jsonl")
    assert again[: len(done)] == done
    assert _without_time(again) == _without_time(read_rows(once / "results.jsonl"))
    assert (once / "table2.csv").is_file()
