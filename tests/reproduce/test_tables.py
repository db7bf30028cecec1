"""Tables are functions of rows: what a cell says, what it says when there is nothing to say, and how it is printed."""

from __future__ import annotations

import csv
import io
import itertools
import math

import pytest

from rarestream.reproduce import tables
from rarestream.reproduce.paper import numbers
from rarestream.study import tables as printing
from rarestream.study.results import Results
from tests.reproduce import made_up
from tests.reproduce.made_up import missing, row


def cell(table, section, line, column):
    for part, names, found in table.cells():
        if (part.name, *names) == (section, line, column):
            return found
    raise KeyError((section, line, column))


def test_a_cell_is_the_mean_of_the_chosen_points_beside_the_paper():
    table = tables.table2([row(auc=0.94, trial=0), row(auc=0.96, trial=1)], numbers())
    found = cell(table, "AUC", "FTRL-AUC", "farm-ads")
    assert (found.ours, found.published, found.trials) == (pytest.approx(0.95), 0.9429, 2)
    assert found.error == pytest.approx(0.01)  # 0.02 / sqrt 2 is the deviation, of two trials
    assert found.difference == pytest.approx(0.0071)


def test_a_missing_number_says_why():
    rows = [row(auc=0.9), row(method="solam", error="one class among the test rows"), missing("real-sim")]
    table = tables.table2(rows, numbers())
    assert cell(table, "AUC", "SOLAM", "farm-ads").note == "failed: one class among the test rows"
    assert cell(table, "AUC", "SPAUC", "farm-ads").note == "not run"
    assert cell(table, "AUC", "SPAUC", "real-sim").note == "no data"
    assert cell(table, "AUC", "SPAUC", "imdb").note == "not run"
    for part, names, found in table.cells():
        assert found.ours is not None or found.note, (part.name, names)


def test_rows_that_are_not_the_papers_are_marked():
    table = tables.table2([row("rcv1b")], numbers())
    assert cell(table, "AUC", "FTRL-AUC", "rcv1b").data == "subset"
    assert "[1] subset" in printing.terminal(table)


def test_an_auc_that_is_no_number_is_a_failure():
    bad = row(auc=math.nan)
    assert cell(tables.table2([bad], numbers()), "AUC", "FTRL-AUC", "farm-ads").note.startswith("failed")


def test_the_last_row_of_a_trial_counts():
    table = tables.table2([row(auc=0.5), row(auc=0.9)], numbers())
    assert cell(table, "AUC", "FTRL-AUC", "farm-ads").ours == pytest.approx(0.9)


def test_a_full_search_counts_before_a_thin_one_and_the_lazy_pair_not_at_all():
    rows = [row(auc=0.5), row(auc=0.9, grid="full"), row(auc=0.1, grid="none")]
    for order in itertools.permutations(rows):
        assert cell(tables.table2(order, numbers()), "AUC", "FTRL-AUC", "farm-ads").ours == pytest.approx(0.9)


def test_modes_do_not_mix():
    rows = [row(auc=0.9), row(auc=0.8, mode="published")]
    for mode, value in ((None, 0.9), ("corrected", 0.9), ("published", 0.8)):
        assert cell(tables.table2(rows, numbers(), mode), "AUC", "FTRL-AUC", "farm-ads").ours == pytest.approx(value)
    assert cell(tables.table2(rows[1:], numbers()), "AUC", "FTRL-AUC", "farm-ads").ours == pytest.approx(0.8)


def test_table3_has_both_ratios():
    rows = [row(ratio=0.1, auc=0.9), row(ratio=0.05, auc=0.8)]
    table = tables.table3(rows, numbers())
    assert [section.name for section in table.sections] == [
        "AUC, positive:negative ratio 0.1",
        "AUC, positive:negative ratio 0.05",
    ]
    assert cell(table, "AUC, positive:negative ratio 0.1", "FTRL-AUC", "farm-ads").published == 0.887
    assert cell(table, "AUC, positive:negative ratio 0.05", "FTRL-AUC", "farm-ads").ours == pytest.approx(0.8)


def test_table1_sets_what_was_found_beside_the_paper():
    shape = {
        "n": 4143,
        "n_pos": 2210,
        "n_neg": 1933,
        "d": 54877,
        "k": 197.2,
        "data": "exact",
        "note": "the paper's rows",
    }
    table = tables.table1({"farm-ads": shape}, numbers())
    assert cell(table, "Rows and features", "farm-ads", "d").difference == 1
    assert cell(table, "Rows and features", "farm-ads", "the rows").note == "exact: the paper's rows"
    assert cell(table, "Rows and features", "avazu", "n").note == "no data"
    table = tables.table1({"farm-ads": shape}, numbers(), missing=["imdb"])
    assert cell(table, "Rows and features", "imdb", "n").note == "no data"
    assert cell(table, "Rows and features", "avazu", "n").note == "left out"


def test_a_method_that_only_another_set_has_gets_no_line():
    table = tables.table2([row(), row("avazu", "ftrl_proximal")], numbers())
    assert "FTRL-Pro" not in [line.name for line in table.sections[0].lines]


def test_cells_for_which_less_was_done_say_so():
    rows = [row(trial=trial, grid="full") for trial in range(3)]
    rows += [row(method="spauc", trial=trial, grid="quick") for trial in range(3)]
    rows += [row(method="solam", grid="full"), row(method="fsauc", grid="quick")]
    rows += [row(method="auto", trial=trial, grid="none") for trial in range(2)]
    table = tables.table2(rows, numbers())
    names = {
        "FTRL-AUC": "",
        "SPAUC": "thin grid",
        "SOLAM": "1 trial",
        "FSAUC": "thin grid, 1 trial",
        "auto": "2 trials",
    }
    assert {name: cell(table, "AUC", name, "farm-ads").remark for name in names} == names
    thin = tables.table2([row(grid="quick"), row(method="auto", grid="none")], numbers())
    assert cell(thin, "AUC", "FTRL-AUC", "farm-ads").remark == ""


def test_paired_differences_are_over_shared_trials():
    ours = [row(method="auto", grid="none", trial=trial, auc=0.95 + 0.01 * trial) for trial in range(3)]
    theirs = [row(trial=trial, auc=0.94 + 0.01 * trial) for trial in (0, 1, 7)]
    found = cell(tables.paired([*ours, *theirs]), "all rows", "auto", "farm-ads")
    assert (found.ours, found.trials, found.note) == (pytest.approx(0.01), 2, "2 of 2")
    assert found.error == pytest.approx(0, abs=1e-12)  # what the trials share cancels


def test_every_cell_of_every_printing_has_text():
    for table in (tables.table2(made_up.rows(), numbers()), tables.paired(made_up.rows())):
        body = [line for line in printing.markdown(table).splitlines() if line.startswith("| ")]
        assert all(text.strip() for line in body for text in line.strip("|").split("|"))
        lines = list(csv.DictReader(io.StringIO(printing.csv(table))))
        assert len(lines) == sum(1 for _ in table.cells())
        assert all(line["ours"] or line["note"] for line in lines)
        text = printing.latex(table)
        assert text.count(r"\begin{") == text.count(r"\end{") == 2
        assert max(map(len, printing.terminal(table).splitlines())) < 160


def test_latex_takes_any_text():
    table = tables.table2([row(error="50% of a_b & c\\d {x}")], None)
    assert r"failed: 50\% of a\_b \& c\textbackslash{}d \{x\}" in printing.latex(table)


def test_a_curve_is_the_mean_where_all_trials_have_a_point():
    first, second = row(trial=0), row(trial=1)
    first["curve"] = {"rows": [1, 51, 100], "seconds": [1, 2, 3], "test_auc": [0.5, 0.6, 0.7]}
    second["curve"] = {"rows": [1, 100], "seconds": [3, 5], "test_auc": [0.7, 0.9]}
    curve = Results([first, second]).get("farm-ads", "ftrl_auc").curve()
    assert curve.rows.tolist() == [1, 100] and curve.seconds.tolist() == [2, 4]
    assert curve.test_auc.tolist() == pytest.approx([0.6, 0.8])


def test_sparsity_keeps_the_other_settings_as_chosen():
    found = Results([row(trial=0), row(trial=1)]).get("farm-ads", "ftrl_auc").sparsity()
    assert [value for value, _, _ in found] == list(made_up.LAMBDAS)
    assert [ratio for _, _, ratio in found] == sorted((ratio for _, _, ratio in found), reverse=True)


def test_a_model_cut_to_the_published_size_stands_beside_the_papers():
    rows = [row(method="auto", grid="none", trial=trial, auc=0.96) for trial in (0, 1)]
    for one in rows:
        one["points"][0]["at_published_size"] = {"nonzeros": 713, "pruned_test_auc": 0.95}
    table = tables.at_published_size(rows, numbers())
    (line,) = table.sections[0].lines
    assert line.name == "auto, pruned"
    found = cell(table, "AUC at the published size", "auto, pruned", "farm-ads")
    assert (found.ours, found.published, found.trials) == (pytest.approx(0.95), 0.9429, 2)
    assert cell(table, "AUC at the published size", "auto, pruned", "imdb").note == "not run"
