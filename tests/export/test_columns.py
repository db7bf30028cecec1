"""Models of column numbers: every format scores 100,000 rows as the model does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rarestream import Auto, Block, Model
from rarestream.export import export
from tests.export import scorers
from tests.export.conftest import learned

SCALES = ("unit", "max", "none")


def agree(found, expected) -> None:
    """Equal to the rounding of float32 sums."""
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6 * np.abs(expected).max(initial=1e-300))


@pytest.fixture(scope="session", params=SCALES)
def model(request: pytest.FixtureRequest, block: Block) -> Model:
    return learned(block, scale=request.param)


def test_csv(model: Model, block: Block, tmp_path: Path):
    export(model, tmp_path / "model.csv")
    agree(scorers.csv_scores(tmp_path / "model.csv", block, model.scale), model.score(block))


def test_onnx(model: Model, block: Block, tmp_path: Path):
    export(model, tmp_path / "model.onnx")
    agree(scorers.onnx_run(tmp_path / "model.onnx", block)[0], model.score(block))


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_sql(model: Model, block: Block, tmp_path: Path, engine: str):
    export(model, tmp_path / "model.sql")
    agree(scorers.sql_scores(tmp_path / "model.sql", block, block.indices, engine), model.score(block))


@scorers.needs_compiler
def test_c(model: Model, block: Block, tmp_path: Path):
    export(model, tmp_path / "model.h")
    agree(scorers.c_scores(tmp_path, block), model.score(block))


def test_javascript(model: Model, block: Block, tmp_path: Path):
    export(model, tmp_path / "model.mjs")
    agree(scorers.js_scores(tmp_path, block), model.score(block))


def test_vw(block: Block, tmp_path: Path):
    for scale in ("unit", "none"):
        model = learned(block, scale=scale)
        export(model, tmp_path / "model.vw")
        weights = scorers.vw_weights(tmp_path / "model.vw")
        agree(scorers.scores_of_weights(block, weights, scale, {}), model.score(block))


def models(block: Block) -> dict[str, Model]:
    """Other kinds of models, among them one without any weight."""
    racing = learned(block, "auto")
    assert len(racing.candidates) > 1
    raced = learned(block, Auto(rows=2048))
    assert len(raced.candidates) == 1
    whole = learned(block, dtype="float64")
    return {
        "float64": whole,
        "racing": racing,
        "racing with a budget": learned(block, Auto(budget=50)),
        "raced": raced,
        "pruned": whole.prune(nonzeros=100),
        "pruned, max": learned(block, scale="max").prune(nonzeros=100),
        "pruned to one": whole.prune(nonzeros=1),
        "empty": whole.prune(nonzeros=0),
        "new": Model("dual-auc"),
        "of many features": learned(block, "opauc"),
    }


def test_all_kinds_of_models(block: Block, tmp_path: Path):
    rows = block[:2000]
    for kind, model in models(block).items():
        expected = model.score(rows)
        name = tmp_path / "model"
        found = {}
        for to in (".onnx", ".sql", ".h", ".mjs", ".csv"):
            notes = export(model, name.with_suffix(to)).notes
            assert bool(notes) == kind.startswith("racing")
        found["csv"] = scorers.csv_scores(name.with_suffix(".csv"), rows, model.scale)
        found["onnx"] = scorers.onnx_run(name.with_suffix(".onnx"), rows)[0]
        found["sqlite"] = scorers.sql_scores(name.with_suffix(".sql"), rows, rows.indices, "sqlite")
        found["duckdb"] = scorers.sql_scores(name.with_suffix(".sql"), rows, rows.indices, "duckdb")
        found["js"] = scorers.js_scores(tmp_path, rows)
        if scorers.CC is not None:
            found["c"] = scorers.c_scores(tmp_path, rows)
        for to, scores in found.items():
            tolerance = 1e-12 if model.dtype == "float64" and "racing" not in kind else 2e-6
            np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance, err_msg=f"{kind}, {to}")


def test_duplicates_and_order_of_a_row(block: Block, tmp_path: Path):
    model = learned(block)
    export(model, tmp_path / "model.mjs")
    export(model, tmp_path / "model.sql")
    indices, values = [900, 4, 900, 1], [1.5, 2.0, -0.25, 1.0]
    expected = model.score_one(indices, values)
    code = f'import {{ scoreSparse }} from "./model.mjs"; console.log(scoreSparse({indices}, {values}));'
    assert scorers.javascript(tmp_path, code) == pytest.approx(expected, rel=1e-6)
    columns = {"row_id": [7] * 4, "feature": indices, "value": values}
    for engine in ("sqlite", "duckdb"):
        ((row, score, _),) = scorers.sql_rows(tmp_path / "model.sql", "model_rows", columns, "model_scores", engine)
        assert row == 7 and score == pytest.approx(expected, rel=1e-6)
    if scorers.CC is not None:
        export(model, tmp_path / "model.h")
        rows = Block(
            np.array([0, 4]), np.array([1, 4, 900, 900], np.int32), np.array([1, 2, 1.5, -0.25], np.float32), 901
        )
        assert scorers.c_scores(tmp_path, rows)[0] == pytest.approx(expected, rel=1e-6)


@scorers.needs_compiler
def test_the_header_is_valid_cpp(block: Block, tmp_path: Path):
    model = learned(block, scale="max")
    export(model, tmp_path / "model.h")
    agree(scorers.c_scores(tmp_path, block[:100], "cpp"), model.score(block[:100]))


def test_a_wrong_row_is_refused_in_javascript(block: Block, tmp_path: Path):
    export(learned(block), tmp_path / "model.mjs")
    code = """
    import { scoreSparse } from "./model.mjs";
    const said = [[[1], []], [[-1], [1]], [[0.5], [1]], [[1], [NaN]], [[1], [1e39]]].map(([indices, values]) => {
      try { scoreSparse(indices, values); return null; } catch (error) { return error.message; }
    });
    console.log(JSON.stringify(said));
    """
    assert scorers.javascript(tmp_path, code) == [
        "scoreSparse: 1 indices, but 0 values.",
        "scoreSparse: an index must be a whole number >= 0, got -1.",
        "scoreSparse: an index must be a whole number >= 0, got 0.5.",
        "scoreSparse: a value must be a finite float32, got NaN.",
        "scoreSparse: a value must be a finite float32, got 1e+39.",
    ]


def test_vowpal_wabbit_scores_with_the_weights(block: Block, tmp_path: Path):
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    model = learned(block, scale="none")
    export(model, tmp_path / "model.vw")
    text = (tmp_path / "model.vw").read_text()
    bits = next(line for line in text.splitlines() if line.startswith("bits:"))[5:]
    limits = "--min_prediction=-1e30 --max_prediction=1e30"
    workspace = vowpalwabbit.Workspace(f"--quiet --noconstant -b {bits} {limits}")
    for index, weight in scorers.vw_weights(tmp_path / "model.vw").items():
        workspace.set_weight(index, 0, weight)
    rows = block[:200]
    found = []
    for i in range(200):
        begin, end = rows.indptr[i : i + 2]
        pairs = zip(rows.indices[begin:end].tolist(), rows.values[begin:end].tolist(), strict=True)
        found.append(workspace.predict("| " + " ".join(f"{index}:{value!r}" for index, value in pairs)))
    workspace.finish()
    agree(found, model.score(rows))
