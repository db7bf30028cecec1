"""The table: means, paired differences and their errors, worked by hand."""

import csv as commas
import io
import math

import numpy as np
import pytest

from rarestream import auc
from rarestream.compare import compare, csv, markdown, standings
from rarestream.compare.standings import cells, remarks
from rarestream.metrics.paired import Standings


def row(method, trial, test_auc, error=None, without=None):
    point = {"params": {}, "valid_auc": 0.5, "test_auc": test_auc, "nonzeros": 10, "seconds": 2e-3}
    return {
        "method": method,
        "label": method.upper(),
        "trial": trial,
        "points": [point],
        "chosen": None if error else 0,
        "error": error,
        "n_train": 1000,
        "state_bytes": 2500,
        "without": without,
    }


ROWS = [row("rda", 0, 0.8), row("rda", 1, 0.9), row("dual_auc", 0, 0.84), row("dual_auc", 1, 0.92)]


def test_means_and_paired_differences_are_over_the_trials():
    best, other = standings(ROWS)
    assert (best.method, other.method) == ("dual-auc", "rda")
    assert best.auc == pytest.approx(0.88) and best.behind == 0 and best.behind_error == 0
    assert other.auc == pytest.approx(0.85) and other.error == pytest.approx(0.05)
    assert other.behind == pytest.approx(0.03) and other.behind_error == pytest.approx(0.01)
    assert not other.close and best.close
    assert other.microseconds == pytest.approx(2.0) and other.nonzeros == 10 and other.state_bytes == 2500


def test_less_than_two_standard_errors_behind_is_a_tie():
    tied = standings([*ROWS[:2], row("dual_auc", 0, 0.84), row("dual_auc", 1, 0.90)])
    assert tied[1].behind == pytest.approx(0.02) and tied[1].behind_error == pytest.approx(0.02) and tied[1].close
    assert cells(tied)[1][5] == "yes" and cells(tied)[0][5] == ""


def test_a_method_that_failed_now_and_then_is_not_the_best_and_says_so():
    table = standings([*ROWS, row("spam", 0, 0.99), row("spam", 1, None, error="too large")])
    assert table[0].method == "spam" and table[0].trials == 1  # it stands where its AUC puts it
    assert table[0].behind < 0 and table[1].behind == 0  # but is compared with the best that came through all
    assert remarks(table) == ["spam: failed in 1 of 2 trials: too large"]


def test_methods_without_a_number_come_last_and_say_why():
    table = standings([row("spam", 0, None, error="too large"), ROWS[0]], {"oam": "slow here"})
    assert [one.method for one in table] == ["rda", "spam", "oam"]
    assert remarks(table) == ["spam: failed in 1 of 1 trials: too large", "oam: left out: slow here"]
    assert len(cells(table)) == 1 and math.isnan(table[1].auc)


def test_the_error_of_one_trial_is_near_that_of_delong(block):
    found = compare(block, methods=["dual-auc", "rda"], trials=1, settings=1, processes=1)
    best, other = standings(found.rows)
    assert 0.3 < best.error / 0.02 < 3 and other.behind_error > 0  # 150 rows
    assert other.behind == pytest.approx(best.auc - other.auc)


def test_the_jackknife_agrees_with_delong_on_many_rows():
    draw = np.random.default_rng(0)
    labels = np.where(draw.random(4000) < 0.3, 1, -1).astype(np.int8)
    shared = labels + draw.normal(size=4000)
    scores = np.stack([shared + draw.normal(size=4000) * noise for noise in (0.5, 1.0)], axis=1)
    groups = np.array_split(np.arange(4000), 20)
    rows = [
        row(
            name,
            0,
            auc(labels, scores[:, at]),
            without=[auc(np.delete(labels, gone), np.delete(scores[:, at], gone)) for gone in groups],
        )
        for at, name in enumerate(["dual_auc", "rda"])
    ]
    _, other = standings(rows)
    known = Standings(labels, scores)
    assert other.behind == pytest.approx(known.aucs[0] - known.aucs[1])
    assert other.behind_error == pytest.approx(known.errors(0)[1], rel=0.4)


def test_the_table_as_text():
    table = standings(ROWS, {"oam": "slow here"})
    lines = markdown(table).splitlines()
    assert lines[2] == "| dual-auc | 0.8800 | 0.0400 |  |  |  | 10 | 2.00 | 2.5 kB |  |"
    assert lines[3] == "| rda | 0.8500 | 0.0500 | 0.0300 | 0.0100 |  | 10 | 2.00 | 2.5 kB |  |"
    assert lines[-1] == "- oam: left out: slow here"
    read = list(commas.DictReader(io.StringIO(csv(table))))
    assert [one["method"] for one in read] == ["dual-auc", "rda", "oam"]
    assert (
        float(read[1]["behind"]) == table[1].behind and read[2]["auc"] == "" and read[2]["why"] == "left out: slow here"
    )
