"""The benchmark of learning runs from rows to tables, with whatever peers are installed, on tiny problems."""

from __future__ import annotations

import bz2
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rarestream.blocks import concatenate
from rarestream.evaluate.synthetic import Planted, write_svmlight

HERE = Path(__file__).parents[2] / "benchmarks"
FEWER_SETTINGS = """
import contenders, quality
for grid, size in (("SGD_GRID", 24), ("VW_GRID", 24), ("BATCH_GRID", 6)):
    assert len(getattr(contenders, grid)) == size
    setattr(contenders, grid, getattr(contenders, grid)[::11])
quality.main()
"""
FEW = ("--jobs", "1", "--stream-scale", "0.01", "--streams", "demo-300k", "--trials", "2")


@pytest.fixture
def quality(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    import quality

    return quality


@pytest.fixture
def folder(tmp_path):
    plain = tmp_path / "rows.svm"
    write_svmlight([concatenate(part.block for part in Planted.plant(1, positives=0.2).rows(1500))], plain)
    (tmp_path / "made.svm.bz2").write_bytes(bz2.compress(plain.read_bytes()))
    return tmp_path


def test_sets_and_streams_become_tables_and_files(quality, folder, capsys):
    names = "auto,race,dual-auc,best-of-24*"
    files = ("--json", str(folder / "now.json"), "--markdown", str(folder / "now.md"))
    words = ("--data-dir", str(folder), "--sets", "made,none", "--ratios", "asis,.1,.9", "--contestants", names)
    results = quality.main([*FEW, *words, *files])
    assert [(one.problem, one.kind) for one in results] == [
        ("made", "asis"),
        ("made .1", ".1"),
        ("demo-300k", "stream"),
    ]
    printed = capsys.readouterr().out
    assert "none.svm.bz2 is missing; left out" in printed
    assert "made .9: it has no more positives than that; left out" in printed
    assert max(map(len, printed.splitlines())) <= 120
    assert "| problem | auto |" in (folder / "now.md").read_text()
    for one in results:
        assert set(names.split(",")) <= one.trials[0]["auc"].keys() | {"best-of-24*"}
        assert np.mean(one.aucs("best-of-24*")) >= np.mean(one.aucs("dual-auc")) - 1e-6  # it is one of the 24
    assert results[-1].trials[0]["auc"]["possible*"] > results[-1].aucs("auto")[0]
    assert results[-1].trials[0]["price"]["chosen"] > 0
    saved = json.loads((folder / "now.json").read_text())
    assert len(saved["problems"][0]["trials"]) == 2
    assert np.float64(5e-324) * np.float64(1) > 0  # nothing that was loaded has switched denormal numbers off


def test_two_runs_are_compared(quality, folder, capsys):
    words = ("--data-dir", str(folder), "--parts", "sets", "--contestants", "auto", *FEW)
    before = folder / "before.json"
    quality.main([*words, "--json", str(before)])
    saved = json.loads(before.read_text())
    for trial in saved["problems"][0]["trials"]:
        trial["auc"]["auto"] -= 0.01
    before.write_text(json.dumps(saved))
    capsys.readouterr()
    quality.main([*words, "--baseline", str(before)])
    printed = capsys.readouterr().out
    assert "Auto since the baseline" in printed
    line = next(line for line in printed.splitlines() if line.startswith("made  ") and "+0.0100" in line)
    assert line.split()[-1] == "0.0000"
    assert "+0.0100 made" in printed
    saved["problems"][0]["trials"][1]["rows"] += 1
    before.write_text(json.dumps(saved))
    quality.main([*words, "--baseline", str(before)])
    assert "made: the baseline has other rows; not compared" in capsys.readouterr().out


@pytest.mark.parametrize(
    "package, names",
    [("sklearn", ["sgd-tuned", "batch-logreg*"]), ("vowpalwabbit", ["vw", "vw-tuned"]), ("river", ["river"])],
)
def test_peers_learn_the_same_rows(quality, folder, package, names):
    """In a process of their own: what peers change in theirs, such as how floats are rounded, is not ours."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    words = ("--data-dir", folder, "--ratios", "asis", "--contestants", ",".join(["auto", *names]), *FEW)
    results = folder / "peers.json"
    done = subprocess.run(
        [sys.executable, "-c", FEWER_SETTINGS, *words, "--json", results], cwd=HERE, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    made, stream = quality.read_results(results)
    for name in names:
        assert np.mean(made.aucs(name)) > 0.55
        assert name.endswith("*") or stream.aucs(name)[0] > 0.55


def test_an_unknown_contestant_is_refused(quality, capsys):
    with pytest.raises(SystemExit):
        quality.main(["--contestants", "auto,nobody"])
    assert "no nobody" in capsys.readouterr().err


def test_settings_are_selected_on_validation_rows(quality):
    import contenders

    rows = concatenate(part.block for part in Planted.plant(1, positives=0.2).rows(3000))
    problem = contenders.Problem([rows], 1000, 1000, 1000, progressive=False)
    assert (problem.labels == rows.labels[1000:]).all()
    assert len(problem.train) == 1000
    assert (problem.rest.indices == rows[1000:].indices).all()
    raced, _ = contenders.lanes(problem)
    trial = quality.run(problem, ["race"], Path())
    best = max(raced, key=lambda one: quality.auc(problem.labels[:1000], one.scores[:1000]))
    assert trial["chosen"]["race"] == best.setting
    assert trial["auc"]["race"] == pytest.approx(quality.auc(problem.labels[1000:], best.scores[1000:]), abs=1e-6)
