"""`predict --probability`, `calibrate`, and what `train` and `prune` have to do with them."""

from __future__ import annotations

import json

import pytest

from rarestream import Model, read
from tests.cli.conftest import run


def done_ok(*words):
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    return done


@pytest.fixture
def learned(tmp_path):
    rows = [f"{1 if i % 7 == 0 else -1} {1 + (i % 7)}:1 {10 + i % 3}:1\n" for i in range(700)]
    (tmp_path / "a.svm").write_text("".join(rows))
    done_ok("train", tmp_path / "a.svm", "-o", tmp_path / "m.rare", "--learner", "dual-auc")
    return tmp_path


def test_predict_writes_probabilities(learned):
    model = Model.load(learned / "m.rare")
    (block,) = read(learned / "a.svm")
    out = done_ok("predict", learned / "m.rare", learned / "a.svm", "--probability").stdout
    assert [float(line) for line in out.split()] == model.probability(block).tolist()
    out = done_ok("predict", learned / "m.rare", learned / "a.svm", "--probability", "--interval").stdout
    low, high = model.probability_interval(block)
    assert out.splitlines()[0] == f"{float(model.probability(block)[0])!r}\t{float(low[0])!r}\t{float(high[0])!r}"
    out = done_ok(
        "predict", learned / "m.rare", learned / "a.svm", "--probability", "--negatives-kept", ".1", "--json"
    ).stdout
    first = json.loads(out.splitlines()[0])
    assert first == {"row": 0, "probability": model.probability(block, negatives_kept=0.1)[0]}


def test_the_share_of_negatives_is_part_of_a_model(learned):
    done_ok("train", learned / "a.svm", "-o", learned / "s.rare", "--learner", "dual-auc", "--negatives-kept", "0.5")
    assert Model.load(learned / "s.rare").negatives_kept == 0.5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--interval"], "'--interval': needs --probability"),
        (["--negatives-kept", ".5"], "'--negatives-kept': needs --probability"),
        (["--probability", "--negatives-kept", "2"], "must be above 0 and at most 1, got 2.0"),
    ],
)
def test_options_of_probabilities_are_checked(learned, words, said):
    done = run("predict", learned / "m.rare", learned / "a.svm", *words)
    assert done.exit_code == 2 and said in done.stderr and not done.stdout


def test_a_model_without_probabilities_says_how_to_get_them(learned):
    done_ok("train", learned / "a.svm", "-o", learned / "n.rare", "--no-calibrate")
    done = run("predict", learned / "n.rare", learned / "a.svm", "--probability")
    assert done.exit_code == 1 and "made with --no-calibrate" in done.stderr
    assert "rarestream calibrate MODEL DATA" in done.stderr and not done.stdout
    done = done_ok("calibrate", learned / "n.rare", learned / "a.svm", "-o", learned / "c.rare")
    assert "log odds = " in done.stdout and "the model has learned rows of these files" in done.stderr
    done_ok("predict", learned / "c.rare", learned / "a.svm", "--probability")
    done = done_ok("calibrate", learned / "n.rare", learned / "a.svm", "--json")  # in place
    assert json.loads(done.stdout)["positives"] == 100


def test_a_model_of_few_positives_says_so(learned):
    (learned / "few.svm").write_text("".join((learned / "a.svm").open().readlines()[:30]))
    done_ok("train", learned / "few.svm", "-o", learned / "f.rare")
    done = done_ok("predict", learned / "f.rare", learned / "a.svm", "--probability")
    assert "5 positive and 25 negative rows" in done.stderr and "--interval" in done.stderr


def test_a_pruned_model_is_calibrated_on_the_rows_it_is_measured_on(learned):
    done_ok("prune", learned / "m.rare", "--nonzeros", 3, "-o", learned / "p.rare", "--on", learned / "a.svm")
    done_ok("predict", learned / "p.rare", learned / "a.svm", "--probability")
    done_ok("prune", learned / "m.rare", "--nonzeros", 3, "-o", learned / "q.rare")
    assert "was pruned" in run("predict", learned / "q.rare", learned / "a.svm", "--probability").stderr


def test_inspect_shows_the_calibration(learned):
    done_ok("train", learned / "a.svm", "-o", learned / "s.rare", "--learner", "dual-auc", "--negatives-kept", "0.5")
    done_ok("train", learned / "a.svm", "-o", learned / "n.rare", "--no-calibrate")
    shown = done_ok("inspect", learned / "s.rare").stdout
    assert "calibration log odds = " in shown and "50.0 % of the negatives were kept" in shown
    assert ", where the probability is 1/2" in shown
    found = json.loads(done_ok("inspect", learned / "s.rare", "--json").stdout)["calibration"]
    model = Model.load(learned / "s.rare")
    assert found["slope"] == model.calibration.slope and found["rows"] == 700 and found["negatives_kept"] == 0.5
    shown = done_ok("inspect", learned / "n.rare").stdout
    assert "calibration none: rarestream calibrate" in shown and "probability" not in shown
