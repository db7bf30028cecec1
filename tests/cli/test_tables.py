"""The commands on tables: the plan of the columns, models that need no options, resuming."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rarestream import Model
from tests.cli.conftest import run
from tests.cli.tables import clicks

LEARNER = ("--learner", "dual-auc")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clicks(tmp_path_factory.mktemp("tables") / "clicks.csv")


@pytest.fixture(scope="module")
def later(table: Path) -> Path:
    """Other rows of the same columns."""
    return clicks(table.parent / "later.csv", seed=2, count=1000)


@pytest.fixture(scope="module")
def model(table: Path) -> Path:
    path = table.parent / "clicks.rare"
    done = run("train", table, "--label", "clicked", *LEARNER, "-o", path)
    assert done.exit_code == 0, done.stderr
    return path


def test_train_shows_how_the_columns_are_read(table, tmp_path):
    done = run("train", table, "--label", "clicked", *LEARNER, "-o", tmp_path / "m.rare")
    lines = done.stderr.splitlines()
    assert lines[:6] == [
        "columns, as the options and the first rows decide:",
        "  label                        clicked",
        "  category                     site",
        "  number                       price",
        "  category, number             age",
        "  date (hour, weekday, month)  when",
    ]
    assert done.stdout == ""
    assert "hashed features (22 bits)" in done.stderr


def test_a_quiet_run_shows_nothing_and_json_has_an_event(table, tmp_path):
    words = ("train", table, "--label", "clicked", "--ignore", "when", *LEARNER, "-o", tmp_path / "m.rare", "-q")
    assert run(*words).stderr == ""
    first, *_, last = map(json.loads, run(*words, "--json").stdout.splitlines())
    assert first["event"] == "columns"
    assert {"name": "when", "kind": "ignored"} in first["columns"]
    assert {"name": "age", "kind": "category and number"} in first["columns"]
    assert first["config"].startswith('[columns]\nlabel = "clicked"')
    assert last["features"]["bits"] == 22 and last["features"]["collisions"] == 0


def test_the_plan_can_be_pasted_into_a_config_file(table, model, tmp_path):
    config = tmp_path / "columns.toml"
    done = run("train", table, "--label", "clicked", *LEARNER, "--show-config", "-o", tmp_path / "a.rare")
    config.write_text(done.stdout)
    again = run("train", table, "--config", config, *LEARNER, "-o", tmp_path / "b.rare")
    assert again.exit_code == 0, again.stderr
    first, second = Model.load(model), Model.load(tmp_path / "b.rare")
    assert first.features.plan == second.features.plan
    assert (first.coef == second.coef).all()


def test_many_columns_take_a_few_lines(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"column{i}" for i in range(500)]
    path.write_text(",".join([*names, "y"]) + "\n" + "".join(f"{','.join('x' * 500)},{i % 2}\n" for i in range(20)))
    done = run("train", path, "--label", "y", *LEARNER, "-o", tmp_path / "m.rare")
    lines = done.stderr.splitlines()[:5]
    assert all(len(line) <= 80 for line in lines)
    assert lines[4].endswith("more") and "and 4" in lines[4]


def test_shared_slots_are_told(table, tmp_path):
    done = run("train", table, "--label", "clicked", *LEARNER, "--bits", 6, "-o", tmp_path / "m.rare")
    assert "share a slot with another one" in done.stderr and "--bits 1" in done.stderr
    shown = run("inspect", tmp_path / "m.rare").stdout
    assert "hashed to 64 slots (6 bits)" in shown and "Use more slots: --bits" in shown


@pytest.mark.parametrize("bits", [22, 7])
def test_resuming_gives_the_same_file(table, tmp_path, bits):
    words = ("train", table, "--label", "clicked", "--bits", bits)
    whole, half = tmp_path / "whole.rare", tmp_path / "half.rare"
    assert run(*words, "-o", whole).exit_code == 0
    assert run(*words, "-o", half, "--max-rows", 1300).exit_code == 0
    assert run("train", table, "--resume", half).exit_code == 0
    assert whole.read_bytes() == half.read_bytes()


def test_options_given_again_must_agree(table, later, tmp_path):
    path = tmp_path / "m.rare"
    run("train", table, "--label", "clicked", *LEARNER, "-o", path, "--max-rows", 500)
    assert run("train", table, "--resume", path, "--label", "clicked", "--max-rows", 500).exit_code == 0
    other = run("train", table, "--resume", path, "--label", "site")
    assert other.exit_code == 2 and "learned these data with label=clicked" in other.stderr
    for words in (["--numeric", "site"], ["--ignore", "age"], ["--bits", 18], ["--numbers", "raw"]):
        refused = run("train", later, "--resume", path, *words)
        assert refused.exit_code == 3 and "as in the model" in refused.stderr, words
    assert run("train", later, "--resume", path).exit_code == 0


def test_the_plan_is_not_shown_again(table, later, tmp_path):
    path = tmp_path / "m.rare"
    run("train", table, "--label", "clicked", *LEARNER, "-o", path)
    assert "columns, as" not in run("train", later, "--resume", path).stderr


def test_a_model_reads_other_data_as_it_learned(model, later, tmp_path):
    """Ages that are all decimals would be numbers only; the model has learned them as categories, too."""
    scores = run("predict", model, later).stdout
    head, *rows = later.read_text().splitlines()
    cells = [row.split(",") for row in rows]
    decimal = tmp_path / "decimal.csv"
    decimal.write_text("\n".join([head, *(",".join([*c[:2], f"{c[2]}.0" if c[2] else "", *c[3:]]) for c in cells)]))
    assert run("predict", model, decimal).stdout == scores
    turned = tmp_path / "turned.csv"
    turned.write_text(
        "\n".join(",".join([*row.split(",")[3::-1], "new"]) for row in [head, *rows]).replace("new", "z", 1)
    )
    done = run("predict", model, turned)
    assert done.stdout == scores and "the new column 'z' is ignored" in done.stderr


def test_a_missing_column_is_an_error(model, later, tmp_path):
    path = tmp_path / "fewer.csv"
    path.write_text("".join(line.split(",", 1)[1] + "\n" for line in later.read_text().splitlines()))
    done = run("predict", model, path)
    assert done.exit_code == 3 and "the column 'site' is missing" in done.stderr


def test_evaluate_and_prune_need_no_options(model, later):
    shown = run("evaluate", model, later)
    assert shown.exit_code == 0 and "1,000 rows" in shown.stdout
    pruned = run("prune", model, "--nonzeros", 20, "--on", later)
    assert pruned.exit_code == 0, pruned.stderr


def test_race_and_compare_read_tables(table, tmp_path):
    words = (table, "--label", "clicked")
    raced = run("race", *words, *LEARNER, "--set", "l1=0,0.01", "-o", tmp_path / "r.rare")
    assert raced.exit_code == 0, raced.stderr
    assert "columns, as the options" in raced.stderr and "hashed features (22 bits)" in raced.stderr
    assert "site = s" in run("inspect", tmp_path / "r.rare").stdout
    compared = run("compare", *words, "--learners", "dual-auc,rda", "--trials", 1, "--json")
    assert compared.exit_code == 0, compared.stderr


def test_a_model_of_column_numbers_refuses_tables(events, trained, table, model):
    done = run("predict", trained, table)
    assert done.exit_code == 3 and "column numbers are wanted" in done.stderr
    done = run("predict", model, events)
    assert done.exit_code == 3 and "hashed features with 22 bits" in done.stderr


# -- explain


def test_explain_shows_terms_that_sum_to_the_score(model, later):
    score = float(run("predict", model, later).stdout.splitlines()[0])
    found = json.loads(run("explain", model, later, "--json").stdout)
    assert found["row"] == 1 and found["score"] == score and found["other_terms"] == 0
    assert sum(term["contribution"] for term in found["terms"]) == pytest.approx(score)
    for term in found["terms"]:
        assert term["value"] * term["weight"] == pytest.approx(term["contribution"])
    sizes = [abs(term["contribution"]) for term in found["terms"]]
    assert sizes == sorted(sizes, reverse=True)
    site = later.read_text().splitlines()[1].partition(",")[0]
    assert f"site = {site}" in {term["name"] for term in found["terms"]}


def test_explain_has_a_line_for_the_other_terms(model, later):
    found = json.loads(run("explain", model, later, "--top", 2, "--json").stdout)
    assert len(found["terms"]) == 2 and found["other_terms"] >= 5
    rest = found["other_contribution"]
    assert sum(term["contribution"] for term in found["terms"]) + rest == pytest.approx(found["score"])
    shown = run("explain", model, later, "--top", 2).stdout
    assert f"({found['other_terms']} other terms)" in shown
    assert f"{found['score']:+.4f}" in shown.splitlines()[-1] and "sum: the score" in shown
    assert all(len(line) <= 80 for line in shown.splitlines()[1:])


def test_explain_takes_rows_by_number(model, later):
    scores = [float(line) for line in run("predict", model, later).stdout.splitlines()]
    lines = run("explain", model, later, "--row", 7, "--row", 400, "--json").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [one["row"] for one in found] == [7, 400]
    assert [one["score"] for one in found] == [scores[6], scores[399]]
    assert found[1]["place"].endswith("later.csv:401")
    yes = later.read_text().splitlines()[400].endswith("yes")
    assert found[1]["label"] == (1 if yes else -1)
    done = run("explain", model, later, "--row", 1001)
    assert done.exit_code == 3 and "the data have 1,000 rows" in done.stderr


def test_explain_needs_no_labels(model, later, tmp_path):
    path = tmp_path / "unlabelled.csv"
    path.write_text("".join(line.rpartition(",")[0] + "\n" for line in later.read_text().splitlines()))
    found = json.loads(run("explain", model, path, "--json").stdout)
    assert (
        found["label"] is None and found["score"] == json.loads(run("explain", model, later, "--json").stdout)["score"]
    )
    assert ", labelled" not in run("explain", model, path).stdout


def test_explain_names_columns_as_in_the_data(events, trained):
    found = json.loads(run("explain", trained, events, "--top", 1000, "--json").stdout)
    columns = {f"column {pair.partition(':')[0]}" for pair in events.read_text().split("\n")[0].split()[1:]}
    assert {term["name"] for term in found["terms"]} == columns


# -- inspect


def test_inspect_speaks_of_names(model):
    facts = json.loads(run("inspect", model, "--top", 4, "--json").stdout)
    loaded = Model.load(model)
    for row in facts["top"]:
        assert row["weight"] == loaded.coef[row["slot"]]
        assert loaded.feature_names([row["slot"]]) == [row["name"]]
    assert facts["features"]["bits"] == 22 and facts["features"]["plan"]["label"] == "clicked"
    shown = run("inspect", model, "--top", 4).stdout
    assert "4 largest weights\n" in shown and facts["top"][0]["name"] in shown
    assert "hashed to 4,194,304 slots (22 bits)" in shown
    assert all(len(line) <= 80 for line in shown.splitlines()[1:])


def test_inspect_shows_one_namespace(model):
    facts = json.loads(run("inspect", model, "--namespace", "when", "--json").stdout)
    assert facts["top"] and all(row["name"].startswith("when ") for row in facts["top"])
    done = run("inspect", model, "--namespace", "whn")
    assert done.exit_code == 3 and "'when'" in done.stderr


def test_shares_of_namespaces_are_of_squared_weights_or_of_variance(model, later):
    facts = json.loads(run("inspect", model, "--json").stdout)
    assert facts["shares_of"] == "squared weights"
    assert {row["namespace"] for row in facts["namespaces"]} == {"site", "price", "age", "when"}
    assert sum(row["share"] for row in facts["namespaces"]) == pytest.approx(1)
    measured = json.loads(run("inspect", model, "--on", later, "--json").stdout)
    assert measured["shares_of"] == "variance" and measured["namespaces"][0]["namespace"] == "site"
    assert "of the squared weights" in run("inspect", model).stdout
    assert "measured on these rows" in run("inspect", model, "--on", later).stdout


def test_diff_is_by_name_and_needs_the_same_features(table, model, trained, tmp_path):
    short = tmp_path / "short.rare"
    run("train", table, "--label", "clicked", *LEARNER, "--max-rows", 1000, "-o", short)
    facts = json.loads(run("inspect", model, "--diff", short, "--top", 3, "--json").stdout)
    for row in facts["top"]:
        assert row["change"] == row["weight"] - row["other"]
        assert "=" in row["name"] or "≈" in row["name"]
    assert "3 largest differences from" in run("inspect", model, "--diff", short, "--top", 3).stdout
    assert f"The weights are those of {model}." in run("inspect", model, "--diff", model).stdout
    done = run("inspect", model, "--diff", trained)
    assert done.exit_code == 3 and "one has hashed features with 22 bits, the other column numbers" in done.stderr


def test_column_numbers_have_no_namespaces(events, trained):
    assert json.loads(run("inspect", trained, "--json").stdout)["features"] is None
    assert run("inspect", trained, "--on", events).exit_code == 2
    assert run("inspect", trained, "--namespace", "a").exit_code == 3
