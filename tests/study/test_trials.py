"""Trials: done once each, on all cores, with a file that a kill cannot spoil."""

import json
import os
import signal
import sys
from functools import partial

import pytest

from rarestream.errors import DataError
from rarestream.study.store import Store, TrialsError, read_rows
from rarestream.study.trials import run
from tests import children

UNITS = [{"method": method, "trial": trial} for method in ("one", "two") for trial in range(3)]


def square(unit):
    return {"value": (unit["trial"] + 1) ** 2, "process": os.getpid()}


def refuse(unit):
    raise DataError(f"trial {unit['trial']} is refused.")


def die(unit):
    os.kill(os.getpid(), signal.SIGKILL)


def refuse_from(first, unit):
    return refuse(unit) if unit["trial"] >= first else square(unit)


@pytest.mark.parametrize("processes", [1, 2])
def test_every_unit_gets_a_row_that_says_what_it_was_and_what_came_of_it(tmp_path, processes):
    with Store(tmp_path / "results.jsonl") as store:
        rows = run(UNITS, square, store, processes=processes)
    assert [{word: row[word] for word in ("method", "trial")} for row in rows] == UNITS
    assert [row["value"] for row in rows] == [1, 4, 9] * 2
    assert sorted(map(str, read_rows(tmp_path / "results.jsonl"))) == sorted(map(str, rows))
    here = {row["process"] == os.getpid() for row in rows}
    assert here == {processes == 1}


def test_units_that_have_a_row_are_not_done_again(tmp_path):
    path = tmp_path / "results.jsonl"
    with Store(path) as store:
        run(UNITS[:2], square, store, processes=1)
    before = path.read_bytes()
    with Store(path) as store:
        with pytest.raises(DataError):
            run(UNITS, refuse, store, processes=1)
        assert len(run(UNITS[:2], refuse, store, processes=1)) == 2
    assert path.read_bytes() == before


def test_a_unit_with_another_word_is_another_unit(tmp_path):
    with Store(tmp_path / "results.jsonl") as store:
        run([{"method": "one", "ratio": None}], lambda unit: {"value": 1}, store, processes=1)
        assert store.find([{"method": "one", "ratio": 0.1}, {"method": "one", "size": None}]) == [None, None]


@pytest.mark.parametrize("tail", [b'{"method": "tw', b"\0\0\0\n", b"{}x\n", b"7\n"])
def test_a_torn_last_line_is_dropped_and_the_next_row_stands_on_a_line_of_its_own(tmp_path, tail):
    path = tmp_path / "results.jsonl"
    with Store(path) as store:
        run(UNITS[:2], square, store, processes=1)
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    assert len(read_rows(path)) == 2
    assert path.read_bytes() == whole + tail
    with Store(path) as store:
        assert path.read_bytes() == whole
        assert len(run(UNITS, square, store, processes=1)) == len(UNITS)
    assert [json.loads(line)["method"] for line in path.read_bytes().splitlines()] == [unit["method"] for unit in UNITS]


def test_a_line_in_the_middle_that_is_no_row_is_refused_by_its_number(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"method": "one"}\nnonsense\n{"method": "two"}\n')
    with pytest.raises(TrialsError, match=r"results.jsonl:2: not a row"):
        Store(path)


def test_two_runs_do_not_write_one_file(tmp_path):
    with Store(tmp_path / "results.jsonl"), pytest.raises(TrialsError, match="another run writes"):
        Store(tmp_path / "results.jsonl")
    Store(tmp_path / "results.jsonl").close()


def test_a_full_disk_leaves_whole_lines(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"
    with Store(path) as store:
        run(UNITS[:1], square, store, processes=1)
        whole = path.read_bytes()

        class Full:
            def __init__(self, file):
                self.file = file

            def __getattr__(self, name):
                return getattr(self.file, name)

            def write(self, line):  # takes five bytes more in all
                if len(line) <= 5 or self.file.tell() > len(whole):
                    raise OSError(28, "No space left on device")
                return self.file.write(line[:5])

        monkeypatch.setattr(store, "_file", Full(store._file))
        with pytest.raises(
            TrialsError, match="no space left on device. Rows written before are safe: 1. Rerun to resume"
        ):
            store.append({"method": "two", "trial": 7})
        assert path.read_bytes() == whole


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_of_the_work_ends_the_run_and_what_was_done_stays(tmp_path, processes):
    with Store(tmp_path / "results.jsonl") as store:
        with pytest.raises(DataError, match="trial 2 is refused"):
            run(UNITS[:3], partial(refuse_from, 2), store, processes=processes)
        assert {row["trial"] for row in store.rows} <= {0, 1}
        assert [row["value"] for row in run(UNITS[:3], square, store, processes=1)] == [1, 4, 9]


def test_a_process_that_dies_is_named_by_its_unit(tmp_path):
    with Store(tmp_path / "results.jsonl") as store, pytest.raises(TrialsError, match="method=one trial=. ended .* -9"):
        run(UNITS, die, store, processes=2)


def test_progress_is_told_before_the_first_unit_and_after_each(tmp_path):
    told = []
    with Store(tmp_path / "results.jsonl") as store:
        run(UNITS[:2], square, store, processes=1)
        run(UNITS, square, store, processes=1, cost=lambda unit: 10.0, report=told.append)
    assert [one.done for one in told] == [2, 3, 4, 5, 6] and {one.total for one in told} == {6}
    assert told[0].left == 40.0 and told[0].row is None
    assert told[-1].left == 0.0 and told[-1].row["trial"] == 2
    assert told[1].left < 10.0  # a unit took less than thought, so the others will


SCRIPT = """
import sys, time
from rarestream.study.store import Store
from rarestream.study.trials import run

def work(unit):
    if unit["trial"] == 2:
        print("at it", flush=True)
        time.sleep(600)
    return {"value": unit["trial"]}

if __name__ == "__main__":
    with Store(sys.argv[1]) as store:
        run([{"trial": trial} for trial in range(4)], work, store, processes=int(sys.argv[2]))
"""


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_after_a_kill_a_run_goes_on_where_it_was(tmp_path, processes, number):
    path, script = tmp_path / "results.jsonl", tmp_path / "script.py"
    script.write_text(SCRIPT)
    with children.Child([sys.executable, script, path, processes]) as run_of_it:
        assert run_of_it.line() == "at it\n"
        run_of_it.until(lambda: len(read_rows(path)) >= 2)
        run_of_it.send_signal(number)
    before = read_rows(path)
    assert {row["trial"] for row in before} >= {0, 1} and 2 not in {row["trial"] for row in before}
    with Store(path) as store:
        rows = run([{"trial": trial} for trial in range(4)], lambda unit: {"value": unit["trial"]}, store, processes=1)
    assert [row["value"] for row in rows] == [0, 1, 2, 3] and all(row in rows for row in before)
