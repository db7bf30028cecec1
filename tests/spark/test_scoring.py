"""Scores on Spark are those of the model on one machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rarestream import Auto, Block, DataError, FtrlAuc, Model, NotCalibratedError, OneVsRest, read
from rarestream.spark import scoring
from rarestream.spark.errors import readable_errors
from rarestream.spark.inputs import Inputs
from rarestream.spark.scoring import Scorer, loaded, score
from tests.strategies import random_block

SITES = pa.table(
    {
        "clicked": [i % 5 == 0 for i in range(200)],
        "site": [f"site {i % 13}" for i in range(200)],
        "price": [i / 7 for i in range(200)],
    }
)


def of_columns(learner: Any = None) -> Model:
    model = Model(learner or FtrlAuc())
    model.learn(random_block(300, 12, 4))
    return model


def of_sites() -> Model:
    model = Model(FtrlAuc())
    for block in read(SITES, label="clicked"):
        model.learn(block)
    return model


def batch_of(block: Block) -> pa.RecordBatch:
    """Rows as columns, as a Scorer receives them."""
    starts = pa.array(block.indptr, pa.int32())
    indices = pa.ListArray.from_arrays(starts, pa.array(block.indices))
    return pa.RecordBatch.from_arrays([indices, pa.ListArray.from_arrays(starts, pa.array(block.values))], ["c0", "c1"])


PAIR = Inputs(kind="pair", columns=("i", "v"), nulls="skip")


@pytest.mark.parametrize("learner", [FtrlAuc(), Auto()], ids=["one learner", "a race"])
def test_scores_and_probabilities_are_those_of_the_model(learner: Any) -> None:
    model = of_columns(learner)
    rows = random_block(50, 40, 4, seed=1)  # with features that the model does not have
    scorer = Scorer(PAIR, "this one" + learner.name, model.to_bytes("scoring"), True, True)
    cells = batch_of(rows)
    parts = [scorer.of_cells(*cells.slice(0, 20).columns), scorer.of_cells(*cells.slice(20).columns)]
    found = pa.chunked_array(parts).combine_chunks()
    here = Model.from_bytes(model.to_bytes("scoring"))
    assert found.field("c0").to_numpy().tolist() == here.score(rows).tolist()
    assert found.field("c1").to_numpy().tolist() == here.probability(rows).tolist()
    assert np.allclose(here.score(rows), model.score(rows), atol=1e-6)


def test_a_worker_decodes_a_model_once_and_keeps_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    data = of_columns().to_bytes("scoring")
    scoring._loaded.clear()
    models = [loaded(str(number), data) for number in range(scoring.MOST_MODELS)]
    monkeypatch.setattr(Model, "from_bytes", None)
    assert all(loaded(str(number), data) is model for number, model in enumerate(models))
    monkeypatch.undo()
    loaded("another", data)
    assert list(scoring._loaded) == ["1", "2", "3", "another"]


def rows_with_nulls(spark: Any) -> Any:
    from pyspark.ml.linalg import Vectors

    rows = [
        (1, Vectors.sparse(12, [1, 3], [1.0, 2.0]), "a", [1, 3], [1.0, 2.0]),
        (2, None, None, None, [1.0]),
        (3, Vectors.dense([0.0] * 11 + [5.0]), "c", [11], [5.0]),
    ]
    return spark.createDataFrame(rows, ["a.b", "x", "s", "i", "v"])


@pytest.mark.parametrize("by_column", [True, False])
def test_columns_are_kept_and_null_features_have_no_score(
    spark: Any,
    monkeypatch: pytest.MonkeyPatch,
    by_column: bool,
) -> None:
    """Both ways: that of Spark with `arrow_udf`, and that of older versions."""
    if not by_column:
        monkeypatch.setattr(scoring, "_has_arrow_udf", lambda: False)
    elif not scoring._has_arrow_udf():
        pytest.skip("this Spark has no arrow_udf")
    model = of_columns()
    df = rows_with_nulls(spark).coalesce(1)
    expected = model.score(Block.of(([0, 2, 3], [1, 3, 11], [1.0, 2.0, 5.0]))).tolist()
    scored = score(df, model, features="x", score="s1", probability="p1")
    assert scored.columns == [*df.columns, "s1", "p1"]
    assert [field.dataType for field in scored.schema.fields[:5]] == [field.dataType for field in df.schema.fields]
    both = score(scored, model, features=("i", "v"), score="s2")
    with readable_errors():
        found = both.collect()
    assert [row["s1"] for row in found] == [row["s2"] for row in found] == [expected[0], None, expected[1]]
    assert [row["p1"] is None for row in found] == [False, True, False]
    assert [row[:5] for row in found] == [row[:5] for row in df.collect()]


def test_a_table_is_scored_by_the_plan_of_the_model(spark: Any) -> None:
    model = of_sites()
    table = SITES.append_column("more", pa.array(["x"] * 200))
    df = spark.createDataFrame([tuple(row.values()) for row in table.to_pylist()], table.column_names).coalesce(1)
    with readable_errors():
        found = [row["score"] for row in score(df, model).collect()]
    here = np.concatenate([model.score(block) for block in read(SITES, label="clicked", features=model.features)])
    assert found == here.tolist()
    with pytest.raises(DataError, match="the column 'price' is missing, which the model has learned"):
        score(df.drop("price"), model)
    wrong = df.withColumn("price", df["site"])
    with pytest.raises(DataError, match="partition 0: row 0: column 'price' has numbers in the first rows, got 'site 0'"), readable_errors():  # fmt: skip
        score(wrong, model).collect()


def test_arguments_that_do_not_fit_are_errors(spark: Any) -> None:
    df = spark.createDataFrame([], "label int, i array<int>, v array<double>, s string")
    model = of_columns()
    with pytest.raises(TypeError, match="spark: score takes a Model, got OneVsRest"):
        score(df, OneVsRest(FtrlAuc()), features=("i", "v"))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="the model does not know the columns of its features. Name them with features"):
        score(df, model)
    with pytest.raises(DataError, match="the frame has a column 'Label' already. Drop it, or choose another name"):
        score(df, model, features=("i", "v"), score="Label")
    with pytest.raises(DataError, match="score and probability name the same new column, 'p'"):
        score(df, model, features=("i", "v"), score="p", probability="p")
    with pytest.raises(DataError, match="'s' have named features, which are hashed, but the model has column numbers"):
        score(df, model, features=["s"])
    with pytest.raises(NotCalibratedError, match="spark: score: the model was made with calibrate=False"):
        score(df, Model(FtrlAuc(), calibrate=False), features=("i", "v"), probability="p")
    assert score(df, model, features=("i", "v"), score=None).columns == df.columns
