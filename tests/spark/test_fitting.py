"""fit: the rounds on a cluster give what the same groups give in one process, bit for bit, and tell what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rarestream import Block, DataError, Model, RarestreamError, make_learner, read
from rarestream.groups import fit_groups
from rarestream.groups.fitting import cut, piece_rows
from rarestream.spark import fit, fitting, pack, receipt
from rarestream.spark.packing import block_to_bytes
from tests.strategies import random_block

ROWS = random_block(3000, 400, 12, seed=3)
PAIR = ("indices", "values")


def frame(spark: Any, rows: Block) -> Any:
    """Rows as a frame with arrays, in one partition: the order is kept."""
    values, starts = rows.values.tolist(), rows.indptr.tolist()
    indices, labels = rows.indices.tolist(), rows.labels.tolist()
    pieces = [(label, indices[a:b], values[a:b]) for label, a, b in zip(labels, starts[:-1], starts[1:], strict=True)]
    return spark.createDataFrame(pieces, "label int, indices array<int>, values array<float>").coalesce(1)


def without_source(model: Model) -> bytes:
    model.source = {}
    return model.to_bytes()


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("rows") / "rows.parquet")
    frame(spark, ROWS).write.parquet(path)
    return spark.read.parquet(path)


@pytest.mark.parametrize("learner", ["dual-logistic", "auto", "opauc"])
def test_one_group_gives_the_bytes_of_the_sequential_learner(rows, learner):
    made = make_learner(learner)
    alone = Model(made)
    alone.learn(ROWS)
    model = fit(rows, label="label", features=PAIR, learner=made, groups=1, rounds=3)
    assert without_source(model) == without_source(alone)


@pytest.mark.parametrize("learner", ["dual-auc", "auto"])
def test_groups_give_the_bytes_of_the_same_groups_in_one_process(rows, learner, monkeypatch):
    blocks = cut([ROWS], fitting.BLOCK_ROWS)
    here = without_source(fit_groups(blocks, learner, groups=3, rounds=2, block_rows=piece_rows(3000, 3, 2)))
    model = fit(rows, label="label", features=PAIR, learner=learner, groups=3, rounds=2)
    told = receipt(model)
    assert (told.groups, len(told.rounds), told.rows) == (3, 2, 3000)
    assert told.auc is not None and told.prices[0].groups == 3
    assert "AUC lost against learning in sequence" in str(told)
    assert without_source(model) == here
    # The same where tasks merge, each some of the features.
    monkeypatch.setattr(fitting, "ON_DRIVER", 0)
    monkeypatch.setattr(fitting, "SHARD", 100)
    shared = fit(rows, label="label", features=PAIR, learner=learner, groups=3, rounds=2, price=False)
    assert receipt(shared).prices == []
    assert without_source(shared) == here


def test_packed_rows_passes_and_connect_give_the_same_model(rows, tmp_path, request):
    settings: dict[str, Any] = {"learner": "ftrl-proximal", "groups": 2, "rounds": 2, "passes": 2, "price": False}
    model = without_source(fit(rows, label="label", features=PAIR, **settings))
    path = str(tmp_path / "packed")
    pack(rows, label="label", features=PAIR, block_rows=fitting.BLOCK_ROWS).write.parquet(path)
    assert without_source(fit(rows.sparkSession.read.parquet(path), **settings)) == model
    connect = request.getfixturevalue("connect")  # from here on functions are those of Spark Connect
    assert without_source(fit(connect.read.parquet(path), **settings)) == model


def test_a_table_has_the_features_and_names_of_one_machine(spark, tmp_path):
    number = np.random.default_rng(0)
    table = pa.table(
        {
            "clicked": pa.array(["yes" if chance < 0.3 else "no" for chance in number.random(600)]),
            "site": pa.array([f"s{site}.com" for site in number.integers(0, 30, 600)]),
            "price": pa.array(number.random(600)),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    alone = Model("dual-logistic")
    for block in read(table, label="clicked"):
        alone.learn(block)
    model = fit(spark.read.parquet(str(tmp_path / "rows.parquet")), label="clicked", learner="dual-logistic", groups=1)
    assert model.source["settings"]["classes"] == ["no", "yes"]
    assert without_source(model) == without_source(alone)
    assert model.score_one({"site": "s3.com", "price": 0.5}) == alone.score_one({"site": "s3.com", "price": 0.5})
    several = fit(spark.read.parquet(str(tmp_path / "rows.parquet")), label="clicked", groups=2, price=False)
    slots = [alone.features.slot("site", f"s{site}.com") for site in range(30)]
    assert several.feature_names(slots) == alone.feature_names(slots)


def test_what_cannot_be_fitted_is_told(spark, rows):
    known: dict[str, Any] = {"label": "label", "features": PAIR}
    for arguments, message in (
        ({"groups": 0}, 'groups must be a whole number from 1 to 4,096 or "auto", got 0'),
        ({"rounds": 1.5}, 'rounds must be a whole number .* or "auto", got 1.5'),
        ({"passes": True}, "passes must be a whole number .*, got True"),
        ({"label": None}, "label must be the column of the label; there are label, indices, values"),
        ({"learner": "opauc", "groups": 2}, r"Opauc\(.*\) cannot be learned in groups"),
        ({"learner": "dual-auc", "groups": 1500}, "Use fewer groups or rounds"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(rows, **{**known, **arguments})
    with pytest.raises(DataError, match="all 3,000 rows are positive; learning needs both classes"):
        fit(rows.selectExpr("1 as label", "indices", "values"), **known, groups=1)
    with pytest.raises(DataError, match="a third label, 2"):
        fit(rows.selectExpr("if(rand(1) < 0.01, 2, label) as label", "indices", "values"), **known, groups=1)
    with pytest.raises(DataError, match="the rows are packed already, so label must be left out"):
        fit(pack(rows, **known), label="label")
    half = ROWS.take(np.argsort(ROWS.labels, kind="stable"))
    with pytest.raises(DataError, match="rows of round 1 of 4 are negative: .* sorted by label"):
        fit(frame(spark, half), **known, learner="dual-auc", groups=2)


def test_a_task_refuses_other_blocks_than_were_divided_and_other_versions():
    data = block_to_bytes(ROWS[:10])
    batch = pa.RecordBatch.from_pylist([{"at": 0, "group": 0, "check": 5, "data": data}])
    right = fitting._digest(np.array([0]), np.array([5]))
    state = Model("dual-auc").to_bytes()
    parts = list(fitting._Trainer(state, 0, [10, 10], [right, 0], 1.0, False).train([batch]))
    assert len(parts) == 1
    assert list(fitting._Trainer(state, 0, [10, 10], [right, 0], 1.0, False).train([])) == []
    with pytest.raises(DataError, match="other rows, or another order of them, when a part of it was read again"):
        list(fitting._Trainer(state, 0, [10, 10], [right + 1, 0], 1.0, False).train([batch]))
    with pytest.raises(DataError, match="the group has 10 rows, but 9 were expected"):
        list(fitting._Trainer(state, 0, [9, 10], [right, 0], 1.0, False).train([batch]))
    with pytest.raises(RarestreamError, match="but the driver has 0.0"):
        list(fitting._Trainer(state, 0, [10, 10], [right, 0], 1.0, False, version="0.0").train([batch]))
