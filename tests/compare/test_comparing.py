"""A comparison: who runs, who is left out and why, and what is kept."""

import dataclasses
import json
import signal
import sys

import numpy as np
import pytest

from rarestream import DataError
from rarestream.blocks import Block
from rarestream.compare import METHODS, compare, methods, page, standings
from rarestream.compare.data import fingerprint, save_block
from rarestream.study.store import read_rows
from tests import children

FEW = ["dual-auc", "rda"]


def numbers(rows):
    """What does not depend on how quick the machine is."""
    return [
        (row["method"], row["trial"], row["chosen"], [(point["params"], point["test_auc"]) for point in row["points"]])
        for row in rows
    ]


def test_every_method_meets_the_same_trials(block):
    found = compare(block, "made up", methods=FEW, trials=2, settings=3, processes=1)
    assert [(row["method"], row["trial"]) for row in found.rows] == [
        ("dual_auc", 0),
        ("rda", 0),
        ("dual_auc", 1),
        ("rda", 1),
    ]
    assert {row["dataset"] for row in found.rows} == {"made up"} and {row["data"] for row in found.rows} == {"own"}
    assert all(len(row["points"]) == 3 and row["n_train"] == 600 and row["n_test"] == 150 for row in found.rows)
    json.dumps(found.rows, allow_nan=False)


def test_processes_do_not_change_a_number(block):
    alone = compare(block, methods=FEW, trials=2, settings=2, processes=1)
    spread = compare(block, methods=FEW, trials=2, settings=2, processes=2)
    assert numbers(alone.rows) == numbers(spread.rows)


def test_results_that_are_kept_are_not_made_again(block, tmp_path, monkeypatch):
    first = compare(block, methods=["dual-auc"], trials=2, settings=2, folder=tmp_path, processes=1)
    made = []
    monkeypatch.setattr(
        "rarestream.compare.trials.run_trial", lambda method, *_: made.append(method.name) or {"label": "x"}
    )
    again = compare(block, methods=["dual-auc"], trials=2, settings=2, folder=tmp_path, processes=1)
    assert again.rows == first.rows and not made
    compare(block, methods=FEW, trials=2, settings=2, folder=tmp_path, processes=1)
    assert made == ["rda", "rda"]


@pytest.mark.parametrize("other", [{"settings": 3}, {"seed": 1}, {"scale": "none"}, {"in_order": True}])
def test_results_of_another_question_are_not_taken_for_answers(block, tmp_path, other):
    compare(block, methods=["dual-auc"], trials=1, settings=2, folder=tmp_path, processes=1)
    compare(block, **{"methods": ["dual-auc"], "trials": 1, "settings": 2, "folder": tmp_path, "processes": 1, **other})
    assert len(read_rows(tmp_path / "results.jsonl")) == 2


def test_results_of_other_rows_are_not_taken_for_answers(block, tmp_path):
    for rows in (block, dataclasses.replace(block, labels=-block.labels)):
        compare(rows, methods=["dual-auc"], trials=1, settings=2, folder=tmp_path, processes=1)
    assert len(read_rows(tmp_path / "results.jsonl")) == 2
    assert fingerprint(block) != fingerprint(dataclasses.replace(block, importances=np.ones(len(block))))


def test_slow_methods_are_left_out_and_it_is_said_but_run_if_named(block, monkeypatch):
    monkeypatch.setattr(methods, "MOST_MULTIPLICATIONS", 1e5)
    monkeypatch.setattr("rarestream.compare.trials.run_trial", lambda *_: {"label": "x"})
    found = compare(block, trials=1, processes=1)
    ran = {row["method"] for row in found.rows}
    assert set(found.left_out) == {"oam", "opauc", "opauc-full", "adaoam"} and not ran & {"oam", "opauc", "adaoam"}
    assert "multiplications per pass" in found.left_out["oam"] and "batch_logistic" not in ran
    named = compare(block, methods=["oam"], trials=1, processes=1)
    assert [row["method"] for row in named.rows] == ["oam"] and not named.left_out


def test_without_scikit_learn_the_rest_runs_and_it_is_said(block, monkeypatch):
    monkeypatch.setattr(methods, "has_sklearn", lambda: False)
    found = compare(block, methods=["sgd", "rda"], trials=1, settings=1, processes=1)
    assert [row["method"] for row in found.rows] == ["rda"] and "rarestream[sklearn]" in found.left_out["sgd"]
    with pytest.raises(DataError, match="nothing is left to run: sgd: needs scikit-learn"):
        compare(block, methods=["sgd"], trials=1, processes=1)


def test_a_method_that_cannot_learn_these_rows_says_so_and_the_others_go_on(block):
    far = dataclasses.replace(block, indices=block.indices + np.int32(6000), width=block.width + 6000)
    found = compare(far, methods=["opauc-full", "rda"], trials=1, settings=2, processes=1)
    table = standings(found.rows)
    assert [one.method for one in table] == ["rda", "opauc-full"]
    assert "failed in 1 of 1 trials: Opauc: rank=0 stores" in table[1].why


def test_batch_logistic_runs_on_request(block):
    pytest.importorskip("sklearn")
    found = compare(block, methods=["rda"], batch=True, trials=1, settings=1, processes=1)
    assert [row["method"] for row in found.rows] == ["rda", "batch_logistic"]
    assert METHODS["batch-logistic"].note == "many passes"


def test_every_part_needs_both_classes(block):
    for rows, says in [
        (Block.of(np.zeros((0, 3))), "there are no rows"),
        (dataclasses.replace(block, labels=None), "have no labels"),
        (dataclasses.replace(block, labels=np.ones(len(block), np.int8)), "all 900 rows are positive"),
        (dataclasses.replace(block, labels=-np.ones(len(block), np.int8)), "all 900 rows are negative"),
        (block.take(np.argsort(-block.labels)[[0, -1, -2]]), "part of trial 0 has no"),
    ]:
        with pytest.raises(DataError, match=says):
            compare(rows, processes=1)
    first = block.take(np.argsort(-block.labels, kind="stable"))
    with pytest.raises(DataError, match="validation part of trial 0 has no positive row.*drop in_order"):
        compare(first, in_order=True, processes=1)
    rare = dataclasses.replace(block, labels=np.where(np.arange(len(block)) < 2, 1, -1).astype(np.int8))
    with pytest.raises(DataError, match="2 positives among 900 rows are too few"):
        compare(rare, processes=1)


def test_arguments_are_checked(block):
    with pytest.raises(ValueError, match="no method is called 'nonsense'; there are auto, race"):
        compare(block, methods=["nonsense"])
    with pytest.raises(ValueError, match="trials must be >= 1, got 0"):
        compare(block, trials=0)
    with pytest.raises(ValueError, match="settings must be between 1 and 64, got 65"):
        compare(block, settings=65)
    with pytest.raises(ValueError, match="scale must be one of"):
        compare(block, scale="half")


SCRIPT = """
import sys, time
from rarestream.compare import compare, trials
from rarestream.compare.data import load_block

run_trial = trials.run_trial
def slow(method, *more):
    if method.name == "spauc":
        print("at it", flush=True)
        time.sleep(600)
    return run_trial(method, *more)

if __name__ == "__main__":
    block = load_block(sys.argv[1])
    trials.run_trial = slow
    compare(block, methods=["rda", "spauc"], trials=1, settings=2, folder=sys.argv[2], processes=1)
"""


def test_after_a_kill_a_comparison_goes_on_and_ends_as_if_nothing_had_happened(block, tmp_path):
    script, out, rows = tmp_path / "script.py", tmp_path / "out", tmp_path / "rows"
    script.write_text(SCRIPT)
    out.mkdir()
    rows.mkdir()
    save_block(block, str(rows))
    with children.Child([sys.executable, script, rows, out]) as process:
        assert process.line() == "at it\n"
        process.send_signal(signal.SIGKILL)
    before = read_rows(out / "results.jsonl")
    assert [row["method"] for row in before] == ["rda"]
    found = compare(block, methods=["rda", "spauc"], trials=1, settings=2, folder=out, processes=1)
    assert found.rows[0] == before[0]
    assert numbers(found.rows) == numbers(
        compare(block, methods=["rda", "spauc"], trials=1, settings=2, processes=1).rows
    )


def test_the_page_says_who_was_left_out_and_why(block):
    pytest.importorskip("bokeh")
    found = compare(block, "made up", methods=FEW, trials=2, settings=2, processes=1)
    told = page(dataclasses.replace(found, left_out={"oam": "slow here"}), "rarestream compare made-up.svm")
    assert "left out: slow here" in told and "rarestream compare made-up.svm" in told and "OAM" in told


@pytest.mark.parametrize("trials", [1, 2])
def test_the_page_has_the_numbers_of_the_table(block, trials):
    pytest.importorskip("bokeh")
    found = compare(block, "made up", methods=FEW, trials=trials, settings=2, processes=1)
    told = page(found, "rarestream compare made-up.svm")
    for one in standings(found.rows):
        assert f'data-value="{one.auc!r}"' in told and f'data-value="{one.nonzeros!r}"' in told
        assert f'data-value="{one.microseconds!r}"' in told and f'data-value="{one.state_bytes / 1000!r}"' in told
        assert f"± {one.error:.2g}" in told
