"""The function `export` and its errors; probabilities; what the command prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from rarestream import Block, ExportError, MissingExtraError, Model
from rarestream.errors import NotCalibratedError
from rarestream.export import export, format_names
from tests import children
from tests.export import scorers
from tests.export.conftest import learned
from tests.export.test_columns import agree
from tests.program import run


@pytest.fixture(scope="session")
def model(block: Block) -> Model:
    return learned(block)


@pytest.mark.parametrize("to", format_names())
def test_a_file_is_the_same_each_time(model: Model, tmp_path: Path, to: str):
    done = export(model, tmp_path / "a", to)
    export(
        Model.from_bytes(model.to_bytes("scoring")), tmp_path / "b", to, **({"name": "a"} if to in ("c", "sql") else {})
    )
    first = (tmp_path / "a").read_bytes()
    assert first == (tmp_path / "b").read_bytes().replace(b"./b", b"./a")
    assert (done.path, done.to, done.bytes, done.weights) == (tmp_path / "a", to, len(first), model.nonzeros)
    assert done.usage
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_the_name_of_the_file_says_the_format(model: Model, tmp_path: Path):
    formats = {".onnx": "onnx", ".sql": "sql", ".h": "c", ".mjs": "js", ".js": "js", ".vw": "vw", ".CSV": "csv"}
    assert {suffix: export(model, tmp_path / f"m{suffix}").to for suffix in formats} == formats
    with pytest.raises(ValueError, match=r"the format of model.txt is not known by its name. Pass to=one of onnx, sql"):
        export(model, tmp_path / "model.txt")


def test_arguments_are_checked_before_anything_is_written(model: Model, tmp_path: Path):
    for path, options, message in [
        ("a", {"to": "pmml"}, "to must be one of onnx, sql, c, js, vw, csv, got 'pmml'"),
        ("a", {"to": "jss"}, "Did you mean js"),
        ("a.h", {"inputs": "names"}, "inputs is an option of onnx or sql, not of c"),
        ("a.csv", {"name": "x"}, "name is an option of sql or c, not of csv"),
        ("a.h", {"name": "1x"}, "name must be made of letters, digits and _, and not start with a digit, got '1x'"),
        ("a.onnx", {"inputs": "slots"}, "inputs must be one of indices, names, got 'slots'"),
        ("a.onnx", {"inputs": "names"}, "the features of this model are column numbers and have no names"),
    ]:
        with pytest.raises(ValueError, match=message):
            export(model, tmp_path / path, **options)
    with pytest.raises(ExportError, match="the model has scale max, and divides each value"):
        export(Model("dual-auc", scale="max"), tmp_path / "a.vw")
    assert list(tmp_path.iterdir()) == []


def test_names_of_files_become_identifiers(model: Model, tmp_path: Path):
    for file, name in [("my model-2.h", "my_model_2"), ("2.h", "model_2"), ("é.h", "model_"), ("a.b.h", "a")]:
        export(model, tmp_path / file)
        assert f"double {name}_score(" in (tmp_path / file).read_text("utf-8")


def test_too_many_weights_for_a_file(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rarestream.export.onnx.LARGEST_FILE", 1000)
    with pytest.raises(ExportError, match=r"smaller than 2 GB, .* Prune the model first: model.prune\(nonzeros=62\)"):
        export(model, tmp_path / "a.onnx")
    assert export(model.prune(nonzeros=62), tmp_path / "a.onnx").weights == 62
    monkeypatch.setattr("rarestream.export.c.MOST_FEATURES", 10)
    with pytest.raises(ExportError, match="a C header holds at most 10 features, the model has"):
        export(model, tmp_path / "a.h")


def test_onnx_is_an_extra(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r'pip install "rarestream\[onnx\]"'):
        export(model, tmp_path / "a.onnx")
    assert list(tmp_path.iterdir()) == []


# -- probabilities


def test_probabilities_in_all_formats(block: Block, tmp_path: Path):
    rows = block[:1000]
    calibrated = learned(block, negatives_kept=0.1)
    expected = calibrated.probability(rows)
    assert expected.max() > 2 * expected.min()
    for to in (".onnx", ".sql", ".h", ".mjs"):
        assert export(calibrated, tmp_path / f"model{to}").probability
    agree(scorers.onnx_run(tmp_path / "model.onnx", rows)[1], expected)
    lines = np.repeat(np.arange(1000), np.diff(rows.indptr))
    columns = {"row_id": lines, "feature": rows.indices, "value": rows.values.astype(float)}
    for engine in ("sqlite", "duckdb"):
        found = scorers.sql_rows(tmp_path / "model.sql", "model_rows", columns, "model_scores", engine)
        agree([probability for _, _, probability in found], expected[np.unique(lines)])
    scores = calibrated.score(rows).tolist()
    code = f'import {{ probability }} from "./model.mjs"; console.log(JSON.stringify({scores}.map(probability)));'
    agree(scorers.javascript(tmp_path, code), expected)
    if scorers.CC is not None:
        calls = "".join(f'printf("%.17g\\n", model_probability({score!r}));' for score in scores)
        program = scorers.compiled(
            tmp_path, f'#include <stdio.h>\n#include "model.h"\nint main(void) {{ {calls} return 0; }}'
        )
        agree([float(line) for line in children.run([program], check=True).stdout.split()], expected)


def test_extreme_probabilities_in_sql(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No overflow where the probability is as good as 0 or 1."""
    monkeypatch.setattr("rarestream.export.linear._log_odds", lambda *_: (1e6, 0.0))
    export(model, tmp_path / "model.sql")
    index = int(np.flatnonzero(model.coef)[0])
    columns = {"row_id": [0, 1], "feature": [index, index], "value": [1.0, -1.0]}
    for engine in ("sqlite", "duckdb"):
        found = scorers.sql_rows(tmp_path / "model.sql", "model_rows", columns, "model_scores", engine)
        assert sorted(probability for _, _, probability in found) == [0, 1]


def test_probabilities_are_left_out_if_asked(model: Model, tmp_path: Path):
    done = export(model, tmp_path / "model.mjs", probability=False)
    assert not done.probability and "probability" not in (tmp_path / "model.mjs").read_text("utf-8")


def test_a_model_without_calibration(block: Block, tmp_path: Path):
    for model in (learned(block, calibrate=False), learned(block).prune(nonzeros=50)):
        assert not export(model, tmp_path / "a.h").probability
        with pytest.raises(NotCalibratedError, match=r"export: the model was .* model.calibrate_on"):
            export(model, tmp_path / "b.h", probability=True)
    assert not export(Model("dual-auc"), tmp_path / "a.h").probability
    assert [path.name for path in tmp_path.iterdir()] == ["a.h"]


def test_probabilities_of_few_rows_are_noted(block: Block, tmp_path: Path):
    model = Model("dual-auc")
    model.learn(block[:12])
    assert any("too few to say anything" in note for note in export(model, tmp_path / "a.h").notes)
    assert export(model, tmp_path / "a.csv").notes == []


# -- the command


@pytest.fixture
def saved(model: Model, tmp_path: Path) -> Path:
    model.save(tmp_path / "clicks.rare")
    return tmp_path / "clicks.rare"


def test_the_command_says_what_it_wrote_and_how_to_use_it(saved: Path):
    out = saved.with_suffix(".h")
    done = run("export", saved, "-o", out)
    assert done.exit_code == 0
    first, second = done.stdout.splitlines()
    assert first.startswith(f"{out} written: C header, ") and first.endswith(" weights")
    assert second == '#include "clicks.h", then clicks_score(indices, values, n)'


def test_the_command_prints_json(saved: Path):
    done = run("export", saved, "-o", saved.with_name("a.txt"), "--to", "csv", "--json")
    record = json.loads(done.stdout)
    assert list(record) == ["output", "to", "bytes", "weights", "probability", "notes", "usage"]
    assert record["to"] == "csv" and record["bytes"] == saved.with_name("a.txt").stat().st_size


def test_the_command_replaces_no_file_unless_asked(saved: Path):
    out = saved.with_suffix(".csv")
    out.write_text("mine")
    done = run("export", saved, "-o", out)
    assert done.exit_code == 2 and "exists, and is not replaced" in done.stderr and out.read_text() == "mine"
    assert run("export", saved, "-o", out, "--overwrite").exit_code == 0
    assert run("export", saved, "-o", saved, "--to", "csv", "--overwrite").exit_code == 2  # the model itself


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["-o", "a.txt"], 2, "the format of a.txt is not known by its name. Pass --to one of onnx"),
        (["-o", "a.h", "--inputs", "names"], 2, "--inputs is an option of onnx or sql, not of c."),
        (["-o", "a.h", "--to", "cc"], 2, "must be one of onnx, sql, c, js, vw, csv, got 'cc'"),
        (["-o", "a.onnx", "--inputs", "names"], 1, "have no names"),
        (["-o", "-", "--to", "csv"], 2, "must be a file, not standard output"),
        ([], 2, "Missing option '--output' / '-o'"),
    ],
)
def test_wrong_use_of_the_command(
    saved: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, message: str
):
    monkeypatch.chdir(saved.parent)
    done = run("export", saved, *words)
    assert done.exit_code == code and message in done.stderr
    assert [path.name for path in saved.parent.iterdir()] == ["clicks.rare"]
