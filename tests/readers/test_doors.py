"""One table of truth: the same rows through every door give the same Blocks, the same names and the same model file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarestream import Block, Hashed, Model, read
from rarestream.blocks import concatenate

# Text with delimiters, quotes, line ends and UTF-8; whole numbers, decimals, dates, missing cells; a text label.
HEADING = ["clicked", "site", "age", "price", "when", "title", "weight"]
ROWS: list[list[Any]] = [
    ["no", "a.com", 31, 3.5, "2026-01-02T10:00:00", "Hello, world", 1.0],
    ["yes", "café.fr", None, -0.125, "2026-02-28T23:59:00", 'say "hi"', 2.5],
    ["no", "b.com", 0, 4.0, "2025-12-31T00:00:00", "two\nlines", 1.0],
    ["no", None, -7, None, None, None, 0.5],
    ["no", "a.com", 123456789, 1e-3, "2024-02-29T12:30:00", "hello hello", 1.0],
    ["yes", "漢字", 31, 1234567.25, "2026-01-02T10:00:00", "b", 1.0],
]  # fmt: skip
OPTIONS = {"label": "clicked", "text": ["title"], "crosses": ["site*age"], "importance": "weight"}

Door = Callable[[Path], tuple[Any, dict[str, Any]]]  # the source, and options besides OPTIONS


def cell(value: Any) -> str:
    return "" if value is None else str(value)


def as_dicts() -> list[dict[str, Any]]:
    return [{key: value for key, value in zip(HEADING, row, strict=True) if value is not None} for row in ROWS]


def write_csv(path: Path, **dialect: Any) -> Path:
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, **dialect)
        writer.writerow(HEADING)
        writer.writerows([cell(value) for value in row] for row in ROWS)
    return path


def csv_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    return write_csv(folder / "t.csv"), {}


def tsv_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    return write_csv(folder / "t.tsv", delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n"), {}


def jsonl_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in as_dicts()))
    return path, {}


def nulls_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    path = folder / "nulls.jsonl"
    lines = [json.dumps(dict(zip(HEADING, row, strict=True)), ensure_ascii=False) for row in ROWS]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path, {}


def dicts_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    return as_dicts(), {}


def generator_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    return (row for row in as_dicts()), {}


def arrow_table() -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    columns = dict(zip(HEADING, zip(*ROWS, strict=True), strict=True))
    table = {name: pyarrow.array(list(values)) for name, values in columns.items() if name != "when"}
    seconds = [None if value is None else int(np.datetime64(value, "s").astype(np.int64)) for value in columns["when"]]
    table["when"] = pyarrow.array(seconds, pyarrow.timestamp("s"))
    return pyarrow.table({name: table[name] for name in HEADING})


def pyarrow_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    return arrow_table(), {}


def parquet_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    table = arrow_table()
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, folder / "t.parquet", row_group_size=4)
    return folder / "t.parquet", {}


def feather_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    table = arrow_table()
    import pyarrow.feather

    pyarrow.feather.write_feather(table, str(folder / "t.feather"))
    return folder / "t.feather", {}


def ipc_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    table = arrow_table()
    import pyarrow

    with pyarrow.OSFile(str(folder / "t.arrow"), "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return folder / "t.arrow", {}


def pandas_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(dict(zip(HEADING, zip(*ROWS, strict=True), strict=True)))
    frame["when"] = pandas.to_datetime(frame["when"])
    return frame, {}  # age, which has a missing value, is a column of floats here


def polars_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(dict(zip(HEADING, map(list, zip(*ROWS, strict=True)), strict=True)))
    return frame.with_columns(polars.col("when").str.to_datetime()), {}


def duckdb_door(folder: Path) -> tuple[Any, dict[str, Any]]:
    duckdb = pytest.importorskip("duckdb")
    table = arrow_table()
    connection = duckdb.connect()
    connection.register("rows", table)
    return connection.sql("select * from rows"), {}


DOORS: list[Door] = [
    csv_door, tsv_door, jsonl_door, nulls_door, dicts_door, generator_door, pyarrow_door, parquet_door, feather_door,
    ipc_door, pandas_door, polars_door, duckdb_door,
]  # fmt: skip


def learned(source: Any, options: dict[str, Any]) -> tuple[Block, Model]:
    model = Model("dual-auc")
    blocks = []
    for block in read(source, **options):
        model.learn(block)
        blocks.append(block)
    return concatenate(blocks), model


def file_of(model: Model) -> bytes:
    model.source = {}
    return model.to_bytes()


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> tuple[Block, Model]:
    source, more = csv_door(tmp_path_factory.mktemp("truth"))
    return learned(source, OPTIONS | more)


def same_rows(block: Block, expected: Block) -> None:
    for field in ("indptr", "indices", "values", "labels", "importances"):
        mine, theirs = getattr(block, field), getattr(expected, field)
        assert mine.dtype == theirs.dtype
        assert mine.tobytes() == theirs.tobytes(), field


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__.removesuffix("_door"))
def test_every_door_gives_the_same_model(door: Door, tmp_path: Path, truth: tuple[Block, Model]) -> None:
    source, more = door(tmp_path)
    block, model = learned(source, OPTIONS | more)
    same_rows(block, truth[0])
    assert isinstance(model.features, Hashed) and isinstance(truth[1].features, Hashed)
    assert model.features.plan is not None and truth[1].features.plan is not None
    plan = replace(model.features.plan, open=False, columns=tuple(sorted(model.features.plan.columns, key=str)))
    theirs = truth[1].features.plan
    assert plan == replace(theirs, columns=tuple(sorted(theirs.columns, key=str)))
    model.features.plan = theirs  # the order of the columns, and whether others may come, differ
    assert file_of(model) == file_of(truth[1])


def test_one_row_at_a_time_is_another_door(truth: tuple[Block, Model]) -> None:
    model = Model("dual-auc", features=Hashed())
    assert isinstance(model.features, Hashed) and isinstance(truth[1].features, Hashed)
    model.features.plan = truth[1].features.plan
    for row in as_dicts():
        features = {key: value for key, value in row.items() if key not in ("clicked", "weight")}
        model.learn_one(features, 1 if row["clicked"] == "yes" else 0, row["weight"])
    assert np.array_equal(model.coef, truth[1].coef)
    assert model.feature_names(np.flatnonzero(model.coef)) == truth[1].feature_names(np.flatnonzero(model.coef))


def test_slots_are_another_door(truth: tuple[Block, Model]) -> None:
    """A matrix of slots, as a cache or a cluster has them, made by the same space."""
    block = truth[0]
    again = Block.of((block.indptr, block.indices, block.values), block.labels, block.importances)
    model = Model("dual-auc", features=block.space)
    model.learn(replace(again, space=block.space))
    assert np.array_equal(model.coef, truth[1].coef)


def test_vw_text_gives_the_slots_of_categories(tmp_path: Path) -> None:
    rows = [("yes", "a.com", "31"), ("no", "café.fr", "7"), ("no", "漢字", "31")]
    text = "".join(f"{1 if y == 'yes' else -1} |site {site} |device {device}\n" for y, site, device in rows)
    (tmp_path / "t.vw").write_text(text, encoding="utf-8")
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([("y", "site", "device"), *rows])
    from_vw, model = learned(tmp_path / "t.vw", {})
    from_csv, other = learned(tmp_path / "t.csv", {"label": "y", "categorical": ["site", "device"]})
    for field in ("indptr", "indices", "values", "labels"):
        assert getattr(from_vw, field).tobytes() == getattr(from_csv, field).tobytes(), field
    assert isinstance(model.features, Hashed) and isinstance(other.features, Hashed)
    model.features.plan = other.features.plan = None
    assert file_of(model) == file_of(other)
