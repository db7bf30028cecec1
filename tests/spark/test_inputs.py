"""What columns become: every kind of features gives the rows that the same data has on one machine."""

from __future__ import annotations

import decimal
import pickle
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream import Block, DataError, FtrlAuc, Hashed, Model, read
from rarestream.blocks import concatenate
from rarestream.spark.errors import readable_errors
from rarestream.spark.inputs import Inputs, resolve, space_from_json, space_to_json
from rarestream.spark.packing import add_names, blocks_of, pack, packed_classes, packed_space
from rarestream.spark.rows import RowReader
from tests.strategies import same_rows

PAIR = Inputs(kind="pair", columns=("i", "v"))
MAP = Inputs(kind="map", columns=("m",))
VECTOR = Inputs(kind="vector", columns=("x",))
ARRAY = Inputs(kind="array", columns=("a",))
VECTOR_TYPE = pa.struct(
    [("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32())), ("values", pa.list_(pa.float64()))]
)


def with_labels(inputs: Inputs, **changes: Any) -> Inputs:
    from dataclasses import replace

    return replace(inputs, label="y", classes=(0.0, 1.0), **changes)


def pairs(rows: list[list[tuple[int, float]] | None], **others: Any) -> pa.RecordBatch:
    """Rows as a batch with the columns i, v, m and others."""
    i = pa.array([None if row is None else [j for j, _ in row] for row in rows], pa.list_(pa.int64()))
    v = pa.array([None if row is None else [x for _, x in row] for row in rows], pa.list_(pa.float64()))
    m = pa.array(rows, pa.map_(pa.int32(), pa.float64()))
    return pa.RecordBatch.from_pydict({"i": i, "v": v, "m": m, **others})


def sparse(size: int, row: dict[int, float]) -> dict[str, Any]:
    return {"type": 0, "size": size, "indices": list(row), "values": list(row.values())}


def dense(row: list[float]) -> dict[str, Any]:
    return {"type": 1, "size": None, "indices": None, "values": row}


def vectors(rows: list[dict[str, Any] | None], **others: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"x": pa.array(rows, VECTOR_TYPE), **others})


def arrays(rows: list[list[float] | None], **others: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"a": pa.array(rows, pa.list_(pa.float64())), **others})


def all_of(inputs: Inputs, *batches: pa.RecordBatch) -> Block:
    reader = RowReader(pickle.loads(pickle.dumps(inputs)), "partition 3")
    before = [0, *np.cumsum([len(batch) for batch in batches]).tolist()]
    return concatenate([reader.read(batch, start).block for batch, start in zip(batches, before, strict=False)])


def message(inputs: Inputs, *batches: pa.RecordBatch) -> str:
    with pytest.raises(DataError) as caught:
        all_of(inputs, *batches)
    return str(caught.value)


ROWS = st.lists(
    st.dictionaries(st.integers(0, 30), st.floats(-1e6, 1e6, width=32), max_size=6).map(lambda row: list(row.items())),
    min_size=1,
    max_size=12,
)


@given(rows=ROWS, start=st.integers(0, 3), cut=st.integers(0, 12))
def test_pairs_and_maps_are_the_rows_of_a_sparse_matrix_however_batches_are_sliced(
    rows: list[list[tuple[int, float]]], start: int, cut: int
) -> None:
    wanted = rows[start:]
    sizes = np.cumsum([0, *(len(row) for row in wanted)])
    flat = [entry for row in wanted for entry in row]
    expected = Block.of((sizes, np.array([j for j, _ in flat], int), np.array([x for _, x in flat], float)))
    batch = pairs(rows).slice(start)
    for inputs in (PAIR, MAP):
        same_rows(all_of(inputs, batch.slice(0, cut), batch.slice(cut)), expected)


@given(rows=st.lists(st.lists(st.sampled_from([0.0, 1.5, -2.0]), min_size=4, max_size=4), min_size=1), data=st.data())
def test_sparse_and_dense_vectors_are_the_same_rows(rows: list[list[float]], data: st.DataObject) -> None:
    as_sparse = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    cells = [
        sparse(4, {j: x for j, x in enumerate(row) if x}) if one else dense(row)
        for row, one in zip(rows, as_sparse, strict=True)
    ]
    start = data.draw(st.integers(0, len(rows) - 1))
    expected = Block.of(np.array(rows[start:]))
    same_rows(all_of(VECTOR, vectors(cells).slice(start)), expected)
    same_rows(all_of(ARRAY, arrays(rows).slice(start)), expected)


def test_indices_in_any_order_are_sorted_and_duplicates_summed() -> None:
    block = all_of(PAIR, pairs([[(5, 1.0), (2, 2.0), (5, 0.5)]]))
    assert (block.indices.tolist(), block.values.tolist()) == ([2, 5], [2.0, 1.5])
    assert block.sealed


def test_batches_without_rows_give_no_rows() -> None:
    for inputs, batch in ((PAIR, pairs([])), (MAP, pairs([])), (VECTOR, vectors([])), (ARRAY, arrays([]))):
        assert len(all_of(inputs, batch)) == 0


NULLS: list[tuple[Inputs, pa.RecordBatch]] = [
    (PAIR, pairs([[(1, 1.0)], None, [(2, 1.0)]], y=[1.0, 0.0, 0.0])),
    (MAP, pairs([[(1, 1.0)], None, [(2, 1.0)]], y=[1.0, 0.0, 0.0])),
    (VECTOR, vectors([sparse(3, {1: 1.0}), None, dense([0, 0, 1.0])], y=[1.0, 0.0, 0.0])),
    (ARRAY, arrays([[0, 1.0, 0], None, [0, 0, 1.0]], y=[1.0, 0.0, 0.0])),
]


@pytest.mark.parametrize("inputs, batch", NULLS)
def test_null_features_are_an_error_or_skipped_and_counted(inputs: Inputs, batch: pa.RecordBatch) -> None:
    said = message(with_labels(inputs), batch)
    name = inputs.columns[0]
    assert said == (
        f"partition 3: row 1: the features (column {name!r}) are null; it is the only such row in rows 0 to 2 of the "
        'partition. Fill it, or pass nulls="skip" to leave such rows out and count them.'
    )
    reader = RowReader(with_labels(inputs, nulls="skip"), "partition 3")
    rows = reader.read(batch, 0)
    assert rows.present is not None and rows.present.tolist() == [True, False, True]
    assert (reader.skipped, rows.block.indices.tolist()) == (1, [1, 2])
    assert rows.block.labels is not None and rows.block.labels.tolist() == [1, -1]


def test_null_labels_are_an_error_or_skipped_and_counted() -> None:
    batch = pairs([[(1, 1.0)], [(2, 1.0)], [(3, 1.0)], None], y=[1.0, None, None, None]).slice(1)
    reader = RowReader(with_labels(PAIR, nulls="skip"), "partition 3")
    assert (len(reader.read(batch, 1).block), reader.skipped) == (0, 3)
    assert message(with_labels(PAIR), batch.slice(0, 2)) == (
        "partition 3: row 0: the label (column 'y') is null; it is the first of 2 such rows in rows 0 to 1 of the "
        'partition. Fill it, or pass nulls="skip" to leave such rows out and count them.'
    )


def test_a_null_within_a_row_is_an_error() -> None:
    batch = pa.RecordBatch.from_pydict({"i": [[1], [2, None]], "v": [[1.0], [1.0, 2.0]]})
    assert message(PAIR, batch) == (
        "partition 3: row 1: column 'i' has a null at position 1; leave it out, or fill it with a number."
    )


def test_ragged_pairs_are_an_error() -> None:
    batch = pa.RecordBatch.from_pydict({"i": [[1], [2, 3]], "v": [[1.0], [1.0]]})
    assert message(PAIR, pairs([[]]), batch) == (
        "partition 3: row 2: column 'i' has 2 elements, but column 'v' has 1; there must be one value for each index."
    )


def test_vectors_of_different_sizes_are_an_error() -> None:
    rule = "its size is 4, but other vectors of this column have 3. All must be alike."
    assert message(VECTOR, vectors([sparse(3, {}), sparse(4, {})])) == f"partition 3: row 1: {rule}"
    assert message(VECTOR, vectors([sparse(3, {}), dense([0.0] * 4)])) == f"partition 3: row 1: {rule}"
    assert message(VECTOR, vectors([dense([0.0] * 3)]), vectors([dense([0.0] * 4)])) == f"partition 3: row 1: {rule}"
    assert message(ARRAY, arrays([[0.0] * 3, [1.0]])) == (
        "partition 3: row 1: its size is 1, but other arrays of this column have 3. All must be alike."
    )


def test_indices_out_of_range_are_an_error() -> None:
    for index in (-1, 2**31 - 1, 2**40):
        assert message(PAIR, pairs([[(0, 1.0)]]), pa.RecordBatch.from_pydict({"i": [[index]], "v": [[1.0]]})) == (
            f"partition 3: row 1: feature index {index}; indices run from 0 to 2147483646. Hash or renumber larger ones."
        )
    assert message(VECTOR, vectors([sparse(3, {1: 1.0}), dense([0.0] * 3), sparse(3, {3: 1.0})])) == (
        "partition 3: row 2: feature index 3 of a vector of size 3; indices are below the size."
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_values_that_are_no_numbers_are_an_error(value: float) -> None:
    rule = (
        f"feature 7 has the value {value}; values must be finite and fit in float32. NaN and infinity have no place in a "
        "dot product: drop or impute them."
    )
    assert message(PAIR, pairs([[], [(7, value)]])) == f"partition 3: row 1: {rule}"
    assert message(MAP, pairs([[], [(7, value)]])) == f"partition 3: row 1: {rule}"
    assert message(VECTOR, vectors([dense([0.0] * 8), dense([0.0] * 7 + [value])])) == f"partition 3: row 1: {rule}"
    skipped = with_labels(PAIR, nulls="skip")
    assert message(skipped, pairs([None, [], [(7, value)]], y=[1, 1, 0])) == f"partition 3: row 2: {rule}"


def test_a_third_label_is_an_error_with_its_place() -> None:
    batch = pairs([[], [], []], y=[1.0, 0.0, 2.0])
    assert message(with_labels(PAIR), batch) == (
        "partition 3: row 2: a third label, 2, after 0 and 1; two classes are learned. If that is right, pass "
        "positive=VALUE to name the label that counts as +1."
    )
    assert "as in the data learned before" in message(with_labels(PAIR, earlier=True), batch)
    labels = all_of(Inputs(kind="pair", columns=("i", "v"), label="y", positive=2.0), batch).labels
    assert labels is not None and labels.tolist() == [-1, -1, 1]


def test_importances_are_read_and_checked() -> None:
    inputs = with_labels(PAIR, importance="w")
    block = all_of(inputs, pairs([[], []], y=[1, 0], w=[2, 0.5]))
    assert block.importances is not None and block.importances.tolist() == [2.0, 0.5]
    assert message(inputs, pairs([[], []], y=[1, 0], w=[2, -1.0])) == (
        "partition 3: row 1: column 'w': an importance must be 0 or a number between 1e-100 and 1e12, got '-1'."
    )


# -- with Spark


def packed_rows(packed: Any) -> list[Any]:
    with readable_errors():
        return sorted(packed.collect(), key=lambda row: (row["part"], row["block"]))


def one_block(rows: list[Any]) -> Block:
    space = packed_space(rows[0]["space"])
    if space is not None:
        add_names(space, rows)
    return concatenate(blocks_of(rows, space))


D = decimal.Decimal
MOMENTS = [datetime(2026, 1, 2, 10, 30), None, datetime(2025, 12, 31, 23, 59, 59), datetime(1999, 7, 4), None, None]
CELLS = {
    "clicked": pa.array(["no", "yes", "no", "no", None, "yes"]),
    "weight": pa.array([1.0, 2.5, 1.0, 0.5, 1.0, 3.0]),
    "int8": pa.array([1, None, 0, 5, -7, 5], pa.int8()),
    "int64": pa.array([2**62, None, -(2**63), 0, 5, 7], pa.int64()),
    "float": pa.array([1.5, None, 0.0, -0.25, 2.0, float("nan")], pa.float32()),
    "double": pa.array([1.5, None, 0.1, -0.25, 1e300, 5e-324]),
    "bool": pa.array([True, None, False, True, True, False]),
    "text": pa.array(["a", None, "", "Grüße", "a longer text than twelve bytes", "a"]),
    "words of text": pa.array(["Hello, world", None, 'say "hi"', "hello hello", "", "b"]),
    "bytes": pa.array([b"a", None, "Grüße".encode(), b"", b"b", b"c"]),
    "date": pa.array([date(2024, 2, 29), None, date(1969, 12, 31), date(2000, 1, 1), None, date(2026, 1, 1)]),
    "moment": pa.array([moment and moment.replace(tzinfo=UTC) for moment in MOMENTS], pa.timestamp("us", "UTC")),
    "local moment": pa.array(MOMENTS, pa.timestamp("us")),
    "decimal": pa.array([D("1.50"), None, D("0.00"), D("-3.00"), D("12345678.25"), D("7.00")]),
    "a.list `of` texts": pa.array([["a", "b", "a"], None, [], [None, ""], ["c"], ["a"]]),
    "numbers": pa.array([[1, 2, 2], None, [], [None, 3], [4], [1]], pa.list_(pa.int64())),
    "map": pa.array([[("k", 1.5), ("l", 2.0)], None, [], [("k", None)], [("m", -1.0)], [("k", 0.0)]], pa.map_(pa.string(), pa.float64())),
    "map of texts": pa.array([[("k", "x")], None, [], [("k", None)], [("m", "y")], [("k", "z")]], pa.map_(pa.string(), pa.string())),
    "struct": pa.array([{"p": 1, "q": "x"}, None, {"p": None, "q": "y"}, {"p": 2, "q": None}, {"p": 3, "q": "z"}, {"p": 1, "q": "x"}]),
    "nested": pa.array([{"s": {"t": [1, 2]}}, None, {"s": None}, {"s": {"t": None}}, {"s": {"t": []}}, {"s": {"t": [3]}}]),
    "unused": pa.array(["u"] * 6),
}  # fmt: skip
OPTIONS: dict[str, Any] = {
    "importance": "weight",
    "text": ["words of text"],
    "crosses": ["text*bool"],
    "missing": ["b"],
    "categorical": ["int8"],
    "ngrams": "words:1-2",
    "counts": True,
    "ignore": ["unused"],
}


def test_all_kinds_of_cells_have_the_slots_and_names_that_they_have_on_one_machine(spark: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.table(CELLS), tmp_path / "cells.parquet")
    here = list(read(pq.read_table(tmp_path / "cells.parquet"), label="clicked", bits=18, **OPTIONS))
    df = spark.read.parquet(str(tmp_path / "cells.parquet"))
    packed = pack(df, label="clicked", nulls="skip", bits=18, block_rows=2, **OPTIONS)
    rows = packed_rows(packed)
    block = one_block(rows)
    same_rows(block, here[0])
    assert [(row["rows"], row["skipped"]) for row in rows] == [(2, 0), (2, 0), (1, 1)]
    assert packed_classes(rows[0]["classes"]) == ("no", "yes")
    assert block.space is not None and here[0].space is not None
    assert block.space.plan == here[0].space.plan
    assert block.space.shown(block.indices) == here[0].space.shown(block.indices)
    assert block.space.names is not None and here[0].space.names is not None
    assert len(block.space.names) == len(here[0].space.names)
    # A map of texts alone is the same features; a null there is a row without features.
    one = one_block(packed_rows(pack(df, label="clicked", features="map of texts", nulls="skip", positive="yes")))
    table = pa.table({name: CELLS[name] for name in ("clicked", "map of texts")})
    same_rows(one, next(iter(read(table, label="clicked", positive="yes"))).take(np.array([0, 2, 3, 4])))
    # A model that has learned the table on one machine says what its columns are.
    model = Model(FtrlAuc())
    model.learn(here[0])
    model.source = {"settings": {"classes": ["no", "yes"]}}
    like = packed_rows(pack(df.drop("unused"), label="clicked", importance="weight", nulls="skip", like=model))
    same_rows(
        concatenate(blocks_of(like)),
        Block(*[getattr(here[0], name) for name in ("indptr", "indices", "values", "width", "labels", "importances")]),
    )
    assert packed_classes(like[0]["classes"]) == ("no", "yes")


def test_names_are_merged_in_the_order_of_partitions_and_blocks(spark: Any) -> None:
    from pyspark.sql import functions

    ids = spark.range(0, 600, 1, 3)
    df = ids.select(
        (functions.col("id") % 5 == 0).alias("y"),
        functions.concat(functions.lit("site "), functions.col("id") % 97).alias("site"),
        "id",
    )
    table = pa.table({name: [row[name] for row in df.collect()] for name in ("y", "site", "id")})
    here = read(table, label="y", bits=9)  # many names collide
    blocks = list(here)
    rows = packed_rows(pack(df, label="y", bits=9, block_rows=64))
    assert [(row["part"], row["rows"]) for row in rows] == [
        (part, size) for part in range(3) for size in (64, 64, 64, 8)
    ]
    space = packed_space(rows[0]["space"])
    assert space is not None and space.names is not None
    add_names(space, reversed(rows))
    same_rows(concatenate(blocks_of(rows, space)), concatenate(blocks))
    assert isinstance(here.features, Hashed) and here.features.names is not None
    assert space.all_shown() == here.features.all_shown()
    assert space.names.collisions == here.features.names.collisions > 0


def test_vectors_and_labels_of_spark_become_rows(spark: Any) -> None:
    from pyspark.ml.linalg import Vectors

    rows = [(False, Vectors.sparse(4, [1, 3], [1.0, 2.0])), (True, Vectors.dense([0.0, 5.0, 0.0, 1.0])), (None, None)]
    df = spark.createDataFrame(rows, ["y", "x"]).coalesce(1)
    block = one_block(packed_rows(pack(df, label="y", nulls="skip")))
    assert block.to_csr().toarray().tolist() == [[0, 1, 0, 2], [0, 5, 0, 1]]
    assert block.labels is not None and block.labels.tolist() == [-1, 1]


def test_one_label_in_the_first_rows_is_completed_by_the_others(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import functions

    from rarestream.spark import inputs

    monkeypatch.setattr(inputs, "FIRST", 10)
    ids = spark.range(0, 100, 1, 1)
    late = ids.select(functions.when(functions.col("id") < 90, "maybe").otherwise("never").alias("y"), "id")
    found = resolve(late, label="y", features=["id"])
    assert (found.classes, found.notes) == (("maybe", "never"), ("label 'maybe' counts as -1 and 'never' as +1",))
    with pytest.raises(DataError, match="spark: the frame has no rows, so nothing can be learned"):
        resolve(late.where("id < 0"), label="y")


@pytest.mark.parametrize(
    "first, more, nulls, expected",
    [
        ([0.0, 0.0], None, "error", (0.0, 1.0)),
        ([1.0, 1.0], [0.0], "error", (0.0, 1.0)),
        ([1, 1], [], "error", (None, 1.0)),
        ([2, 2, None], [7], "error", (2.0, 7.0)),
        (["no"], ["spam"], "error", ("no", "spam")),
        ([True, False], None, "error", ("false", "true")),
        ([None, None], [1.0, 0.0], "skip", (0.0, 1.0)),
        ([None], None, "error", "column 'y' is null in all of the first 1 rows. Rows that are learned need labels: name another column, or pass nulls=\"skip\" to leave such rows out and count them."),
        ([None], [], "skip", "column 'y' is null in every row. Name the column of the labels."),
        ([3, 3], [], "error", "column 'y': the rows have only the label 3; labels are -1 and +1, 0 and 1, or two numbers that both occur. Otherwise pass positive=VALUE to name the label that counts as +1."),
    ],
)  # fmt: skip
def test_the_first_labels_decide_which_is_positive(
    monkeypatch: pytest.MonkeyPatch, first: list[Any], more: list[Any] | None, nulls: str, expected: Any
) -> None:
    from rarestream.spark import inputs

    kind = pa.array(first).type if any(label is not None for label in first) else pa.float64()

    def more_labels(*_: Any) -> pa.Array:
        assert more is not None, "no second look is needed"
        return pa.array(more, kind)

    monkeypatch.setattr(inputs, "_more_labels", more_labels)
    labelled = Inputs(kind="map", columns=("m",), label="y", nulls=nulls)  # type: ignore[arg-type]
    table = pa.table({"label": pa.array(first, kind)})
    if isinstance(expected, tuple):
        assert inputs._decide_labels(None, labelled, table).classes == expected
    else:
        with pytest.raises(DataError) as caught:
            inputs._decide_labels(None, labelled, table)
        assert str(caught.value) == f"spark: {expected}"


def test_arguments_that_do_not_fit_the_frame_are_errors(spark: Any) -> None:
    schema = (
        "label int, site string, i array<int>, v array<double>, t array<string>, m map<int, string>, n map<int, float>"
    )
    df = spark.createDataFrame([], schema)
    hashed, columns = Model(FtrlAuc()), Model(FtrlAuc())
    hashed.learn(next(iter(read([{"label": 1, "site": "a"}, {"label": 0, "site": "b"}], label="label", bits=20))))
    columns.learn(Block.of(np.ones((2, 1)), [0, 1]))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"label": "lable"}, "label names the column 'lable', which is not there. Did you mean 'label'? The columns are 'label', 'site', 'i', 'v', 't', 'm', 'n'."),
        ({"features": ["sight"]}, "features names the column 'sight', which is not there. Did you mean 'site'?"),
        ({"features": ("i", "t")}, "a pair of columns must be (indices array<int>, values array<double>), but 'i' is array<int> and 't' is array<string>. If these are columns of a table, pass a list: features=['i', 't']."),
        ({"features": "m"}, "column 'm' is map<int,string>; a map with column numbers must have numbers as values."),
        ({"features": 3}, "features must be the name of a column, a pair of columns (indices, values), or a list of columns, got 3."),
        ({"features": []}, "features names no column."),
        ({"features": ["site", "label"]}, "column 'label' is named by both label and features. Name it once."),
        ({"features": ("i", "v"), "text": ["site"]}, "text is an option of tables, whose features have names; 'i', 'v', a pair of arrays, has column numbers. Drop it."),
        ({"features": ["site"], "txt": ["site"]}, "there is no option txt. Did you mean text?"),
        ({"features": ["site"], "numbers": "hard"}, "numbers must be 'soft' or 'raw', got 'hard'."),
        ({"features": ["site"], "nulls": "drop"}, 'nulls must be "error" or "skip", got \'drop\'.'),
        ({"features": "n", "like": hashed}, "the rows have column numbers, but the model has hashed features with 20 bits."),
        ({"features": ["site"], "like": columns}, "'site' have named features, which are hashed, but the model has column numbers."),
        ({"features": ["site"], "like": hashed, "bits": 22}, "bits must be 20, as in the model, got 22. Drop it, or train a new model."),
    ]  # fmt: skip
    for arguments, said in wrong:
        with pytest.raises(DataError) as caught:
            resolve(df, **{"label": "label", **arguments})
        assert str(caught.value).startswith(f"spark: {said}"), str(caught.value)
    with pytest.raises(DataError, match="the column 'site' is missing, which the model has learned"):
        resolve(df.drop("site"), label="label", like=hashed)


def test_a_space_as_text_is_the_same_space() -> None:
    space = Hashed(12)
    list(read([{"y": 1, "a": "x"}, {"y": 0, "a": "z"}], label="y", features=space))
    text = space_to_json(space)
    again = space_from_json(text)
    assert again is not None and again.fingerprint == space.fingerprint and again.plan == space.plan
    assert text is not None
    for damaged in ("{}", text.replace('"bits": 12', '"bits": 13'), text.replace('"bits": 12', '"bits": 99')):
        with pytest.raises(DataError, match="Pack them again"):
            space_from_json(damaged)
