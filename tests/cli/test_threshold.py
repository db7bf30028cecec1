"""`threshold`, and what `predict --label` and `inspect` make of it."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from rarestream import Model, read
from rarestream.metrics import choose_threshold
from tests.cli.conftest import process, run

KEYS = {
    *("threshold", "rule", "target", "rows", "positives", "level", "after_rows", "learned", "saved", "rows_per_day"),
    *("cost_false_positive", "cost_missed"),
    *(
        f"{name}{end}"
        for name in ("fpr", "recall", "precision", "share", "alerts_per_day", "cost")
        for end in ("", "_low", "_high")
    ),
}


@pytest.fixture
def model(trained, tmp_path):
    return shutil.copy(trained, tmp_path / "m.rare")


@pytest.fixture
def fresh(events, tmp_path):
    """Rows that the model has not learned, as far as it can tell."""
    path = tmp_path / "fresh.svm"
    lines = events.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[5000:9000]))
    return path


def labels_and_scores(model, data):
    loaded, blocks = Model.load(model), list(read(data))
    return np.concatenate([block.labels for block in blocks]), np.concatenate([loaded.score(one) for one in blocks])


def test_it_is_that_of_the_scores_and_all_figures_are_shown(model, fresh):
    done = run("threshold", model, fresh, "--fpr", 0.01, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    record = json.loads(done.stdout)
    assert record.keys() == KEYS
    expected = choose_threshold(*labels_and_scores(model, fresh), fpr=0.01)
    assert record == {**expected.record(), "after_rows": 20_000, "learned": False, "saved": False}
    shown = run("threshold", model, fresh, "--fpr", 0.01).stdout
    assert f"threshold {expected.threshold:.6g}: false-positive rate of at most 0.01" in shown
    assert "95 % interval on new rows" in shown
    for word in ("false-positive rate", "recall", "precision", "rows called positive"):
        assert f"\n{word} " in shown
    assert "Nothing was saved" in shown
    assert "alerts a day" not in shown
    assert max(map(len, shown.splitlines()[:-1])) <= 80
    assert Model.load(model).decision is None


@pytest.mark.parametrize(
    "words, rule",
    [
        (["--precision", 0.5], {"precision": 0.5}),
        (["--recall", 0.5], {"recall": 0.5}),
        (["--share", 0.05], {"share": 0.05}),
        (["--alerts-per-day", 10, "--rows-per-day", 200], {"alerts_per_day": 10, "rows_per_day": 200}),
        (["--alerts-per-day", 10, "--days", 20], {"alerts_per_day": 10, "days": 20}),
        (["--cost-false-positive", 1, "--cost-missed", 9], {"costs": (1, 9)}),
    ],
)
def test_every_rule(model, fresh, words, rule):
    record = json.loads(run("threshold", model, fresh, *words, "--json").stdout)
    expected = choose_threshold(*labels_and_scores(model, fresh), **rule).record()
    assert {**record, "after_rows": None} == {**expected, "learned": False, "saved": False}
    shown = run("threshold", model, fresh, *words).stdout
    assert ("alerts a day" in shown) == ("alerts_per_day" in rule)
    assert ("cost per 1,000 rows" in shown) == ("costs" in rule)


def test_a_saved_threshold_labels_rows(model, fresh):
    done = run("threshold", model, fresh, "--share", 0.1, "--save")
    assert done.exit_code == 0
    assert "Saved. To label rows with it: rarestream predict" in done.stdout
    decision = Model.load(model).decision
    assert decision.rule == "share"
    _, scores = labels_and_scores(model, fresh)
    labels = run("predict", model, fresh, "--label")
    assert labels.stderr == ""
    assert labels.stdout.split() == ["1" if score >= decision.threshold else "-1" for score in scores]
    lines = run("predict", model, fresh, "--label", "--json").stdout.splitlines()
    assert json.loads(lines[3]) == {"row": 3, "score": scores[3], "label": 1 if scores[3] >= decision.threshold else -1}
    facts = json.loads(run("inspect", model, "--json").stdout)
    assert facts["decision"] == decision.record()
    shown = run("inspect", model).stdout
    assert f"threshold   {decision.threshold:.6g}, stored: share of rows of at most 0.1" in shown
    assert "chosen on 4,000 rows" in shown
    explained = run("explain", model, fresh).stdout
    assert f"the threshold {decision.threshold:+.4g}" in explained


def test_saving_changes_nothing_else(model, trained, fresh):
    assert run("threshold", model, fresh, "--share", 0.1, "--save").exit_code == 0
    before, after = Model.load(trained), Model.load(model)
    after.decision = None
    assert after.to_bytes() == before.to_bytes()


def test_a_model_that_has_learned_since_is_told_of(model, fresh):
    assert run("threshold", model, fresh, "--share", 0.1, "--save").exit_code == 0
    assert run("train", fresh, "--resume", model, "-q").exit_code == 0
    done = run("predict", model, fresh, "--label")
    assert done.exit_code == 0
    assert "the model has learned 4,000 rows since its threshold was chosen" in done.stderr


def test_without_a_stored_threshold_labels_are_by_the_models_own(trained, fresh):
    done = run("predict", trained, fresh, "--label")
    own = Model.load(trained).label_threshold
    assert f"called positive from the score {own:.6g} on" in done.stderr
    _, scores = labels_and_scores(trained, fresh)
    assert done.stdout.split() == ["1" if score >= own else "-1" for score in scores]


def test_labels_and_probabilities_are_two_answers(trained, fresh):
    done = run("predict", trained, fresh, "--label", "--probability")
    assert (done.exit_code, "'--label': cannot be combined with --probability" in done.stderr) == (2, True)


def test_rows_that_were_learned_are_warned_of(model, events):
    done = run("threshold", model, events, "--fpr", 0.01, "--json")
    assert "the model has learned rows of these files" in done.stderr
    assert json.loads(done.stdout)["learned"] is True


def test_a_file_of_scores_is_enough(model, fresh, tmp_path):
    labels, scores = labels_and_scores(model, fresh)
    path = tmp_path / "scores.txt"
    path.write_text("".join(f"{label} {score!r}\n" for label, score in zip(labels, scores.tolist(), strict=True)))
    record = json.loads(run("threshold", "--scores", path, "--fpr", 0.01, "--json").stdout)
    of_model = json.loads(run("threshold", model, fresh, "--fpr", 0.01, "--json").stdout)
    assert record == {**of_model, "after_rows": None, "learned": None}
    with path.open() as file:
        shown = process("threshold", "--scores", "-", "--fpr", "0.01", stdin=file).stdout
    assert shown == run("threshold", "--scores", path, "--fpr", 0.01).stdout
    assert f"Call a row positive when its score is at least {record['threshold']!r}." in shown


@pytest.fixture
def table(tmp_path):
    """A model of a table with times, and rows of ten days."""
    rng = np.random.default_rng(0)
    lines = []
    for number in range(2400):
        site, when = int(rng.integers(6)), f"2026-01-{1 + number % 2400 // 80:02}T{number % 24:02}:00"
        lines.append(f"{'spam' if rng.random() < 0.1 + 0.1 * site else 'häm'},{when},s{site},{rng.integers(90)}\n")
    heading = "label,when,site,size\n"
    (tmp_path / "a.csv").write_text(heading + "".join(lines[:1600]), "utf-8")
    (tmp_path / "b.csv").write_text(heading + "".join(lines[1600:]), "utf-8")
    assert run("train", tmp_path / "a.csv", "-o", tmp_path / "t.rare", "--label", "label").exit_code == 0
    return tmp_path / "t.rare", tmp_path / "b.csv"


def test_days_may_be_counted_by_a_column_which_is_a_feature_too(table):
    model, data = table
    record = json.loads(
        run("threshold", model, data, "--alerts-per-day", 8, "--time", "when", "--save", "--json").stdout
    )
    hours = 9 * 24 + 23  # from 2026-01-21T00:00 to 2026-01-30T23:00
    assert record["rows_per_day"] == pytest.approx(800 / (hours / 24))
    assert record["alerts_per_day"] <= 8
    labels = run("predict", model, data, "--label").stdout.split()
    assert set(labels) == {"spam", "häm"}  # as in the data
    assert labels.count("häm" if record["share"] > 0.5 else "spam") == round(record["share"] * 800)
    record = json.loads(run("predict", model, data, "--label", "--json").stdout.splitlines()[0])
    assert record["label"] in ("spam", "häm")


def test_times_that_cannot_be_had(table, model, fresh):
    of_table, data = table
    done = run("threshold", of_table, data, "--alerts-per-day", 8, "--time", "site")
    assert (done.exit_code, "site: row 1 has 's" in done.stderr) == (3, True)
    done = run("threshold", model, fresh, "--alerts-per-day", 8, "--time", "when")
    assert (done.exit_code, "only tables have columns" in done.stderr) == (2, True)
    with data.open() as file:
        done = process(
            "threshold", of_table, "-", "--format", "csv", "--alerts-per-day", "8", "--time", "when", stdin=file
        )
    assert (done.returncode, "read twice" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "words, code, said",
    [
        ([], 2, "Pass exactly one rule"),
        (["--fpr", 0.1, "--recall", 0.5], 2, "got --fpr and --recall"),
        (["--fpr", 1.5], 2, "'--fpr': must be above 0 and below 1"),
        (["--recall", 0], 2, "'--recall': must be above 0 and at most 1"),
        (["--alerts-per-day", 5], 2, "needs the rows a day"),
        (["--alerts-per-day", 0, "--days", 5], 2, "'--alerts-per-day': must be a number above 0"),
        (["--alerts-per-day", 5, "--days", 5, "--rows-per-day", 2], 2, "cannot be combined with --days"),
        (["--cost-missed", 5], 2, "needs --cost-false-positive too"),
        (["--cost-missed", 5, "--cost-false-positive", -1], 2, "must be a number above 0, got -1"),
        (["--fpr", 1e-6], 3, "threshold: a false-positive rate of at most 1e-06 needs at least 1,000,000 negatives"),
        (["--alerts-per-day", 5, "--days", 5000], 3, "no fewer than the 0.8 rows a day"),
    ],
)
def test_what_cannot_be_chosen_is_an_error_and_nothing_is_saved(model, fresh, words, code, said):
    done = run("threshold", model, fresh, *words, "--save")
    assert done.exit_code == code
    assert said in done.stderr
    assert done.stdout == ""
    assert Model.load(model).decision is None


def test_arguments_that_do_not_go_together(model, fresh, tmp_path):
    for words, said in (
        (["--fpr", 0.1], "Missing arguments: MODEL and DATA, or --scores FILE"),
        (["--fpr", 0.1, model], "Missing arguments"),
        (["--fpr", 0.1, model, fresh, "--scores", fresh], "cannot be combined with MODEL and DATA"),
        (["--fpr", 0.1, "--scores", fresh, "--save"], "'--save': needs MODEL and DATA"),
        (["--alerts-per-day", 1, "--scores", fresh, "--time", "x"], "'--time': needs MODEL and DATA"),
    ):
        done = run("threshold", *words)
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    one = tmp_path / "one.svm"
    one.write_text("-1 3:1\n-1 4:1\n")
    done = run("threshold", model, one, "--fpr", 0.1)
    assert (done.exit_code, "needs rows of both classes" in done.stderr) == (3, True)
