"""Frames of pandas, Polars, DuckDB and pyarrow have the rows of the same table, and none of these is imported for it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rarestream import DataError, Model, read
from tests.readers.arrow_rows import named, rows_of, same, together

TABLE = pa.table(
    {
        "y": [1, 0, 0, 1, 0, 0, 0, 1],
        "site": ["a.com", "b.com", None, "a.com", "", "Grüße", "b.com", "a.com"],
        "price": [1.5, None, 0.0, 2.25, 1e6, -3.5, 1.5, 2.0],
        "n": [1, 2, 3, 4, 5, 6, 7, 7],
        "ok": [True, False, True, True, False, True, False, False],
        "when": pa.array(np.arange(8) * 7_777_777, pa.timestamp("s")).cast(pa.timestamp("us")),
    }
)
EXPECTED = rows_of(TABLE.to_pylist(), label="y")

FRAMES: dict[str, Callable[[], Any]] = {
    "pyarrow table": lambda: TABLE,
    "pyarrow batch": lambda: TABLE.to_batches()[0],
    "pyarrow reader": lambda: TABLE.to_reader(max_chunksize=3),
    "pyarrow reader of a generator": lambda: pa.RecordBatchReader.from_batches(TABLE.schema, _generated()),
    "pandas": TABLE.to_pandas,
    "pandas with arrow types": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas with categories": lambda: TABLE.to_pandas().astype({"site": "category"}),
    "polars": lambda: pl.from_arrow(TABLE),
    "polars with categories": lambda: pl.from_arrow(TABLE).with_columns(pl.col("site").cast(pl.Categorical)),
    "polars in chunks": lambda: pl.concat([pl.from_arrow(TABLE.slice(0, 3)), pl.from_arrow(TABLE.slice(3))], rechunk=False),
    "duckdb relation": lambda: duckdb.from_arrow(TABLE),
    "duckdb query": lambda: duckdb.sql("SELECT * FROM rows", connection=_connection()),
}  # fmt: skip


def _generated() -> Iterator[pa.RecordBatch]:
    yield from TABLE.to_batches(max_chunksize=3)


def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("rows", TABLE)
    return connection


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("threads", [0, 2])
def test_a_frame_has_the_rows_of_its_table(name: str, threads: int) -> None:
    same(rows_of(FRAMES[name](), label="y", threads=threads), EXPECTED)


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_read_again_if_it_can_be(name: str) -> None:
    stream = read(FRAMES[name](), label="y")
    same(together(stream), EXPECTED)
    if "reader" in name:
        assert not stream.replayable
        with pytest.raises(DataError, match="<frame>: can be read only once"):
            iter(stream)
        return
    assert stream.replayable
    same(together(stream), EXPECTED)


def test_rows_of_a_frame_are_located_skipped_and_counted() -> None:
    stream = read(TABLE, label="y", rows=3)
    blocks = iter(stream)
    next(blocks)
    next(blocks)
    assert stream.where(1) == "<frame>: row 4"
    assert stream.fraction == 1.0
    assert stream.size == 8
    later = read(TABLE, label="y", features=EXPECTED.space).skip(5)
    assert len(together(later)) == 3
    assert read(duckdb.from_arrow(TABLE), label="y").fraction is None


def test_a_model_learns_a_frame_and_scores_dicts() -> None:
    model = Model("ftrl-auc")
    for _ in range(3):
        for block in read(TABLE, label="y", features=model.features):
            model.learn(block)
    scores = model.score(rows_of(TABLE, features=model.features))
    assert scores.tobytes() == model.score(rows_of(TABLE.to_pylist(), features=model.features)).tobytes()


def test_several_frames_are_one_stream() -> None:
    frames = [TABLE.slice(0, 3).to_pandas(), TABLE.slice(3, 2), pl.from_arrow(TABLE.slice(5))]
    found = rows_of(frames, label="y", numeric=["price", "n"], categorical=["site", "ok"], dates=["when"])
    assert len(found) == 8
    with pytest.raises(DataError, match="files, frames and dicts cannot be mixed"):
        read([TABLE, [{"y": 1}]], label="y")


def test_a_list_of_frames_with_other_columns_is_refused() -> None:
    with pytest.raises(DataError, match="<frame>: the column 'site' is missing"):
        rows_of([TABLE, TABLE.drop_columns("site")], label="y")


@pytest.mark.parametrize("name", ["pandas", "pandas with categories"])
def test_the_index_is_no_feature(name: str) -> None:
    frame = FRAMES[name]()
    frame.index = pd.Index([f"row {i}" for i in range(8)], name="id")
    same(rows_of(frame, label="y"), EXPECTED)
    same(rows_of(frame.rename_axis(None), label="y"), EXPECTED)


def test_columns_that_are_numbers_have_their_digits_as_names() -> None:
    frame = pd.DataFrame({0: [1, 0], 1: ["a", "b"]})
    assert named(rows_of(frame, label="0")) == [{"1 = a": 1.0}, {"1 = b": 1.0}]


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(DataError, match=r"<frame>: cannot be read: a table has columns, but this is a single column"):
        rows_of(pl.Series([1, 2]), label="y")
    with pytest.raises(DataError, match=r"read: data comes from .* a frame, or dicts, got LazyFrame"):
        read(pl.LazyFrame({"y": [1]}), label="y")
    with pytest.raises(DataError, match="format must be 'frame'"):
        read(TABLE, "csv", label="y")
    with pytest.raises(DataError, match="<frame>: no rows"):
        list(read(TABLE.slice(0, 0), label="y"))
    with pytest.raises(DataError, match=r"<frame>: which column is the label\?"):
        list(read(TABLE))


def test_an_error_of_the_producer_is_an_error_of_the_data() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise RuntimeError("the lake is closed")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, broken())
    with pytest.raises(DataError, match="<frame>: cannot be read: .*the lake is closed"):
        list(read(reader, label="y"))


def test_a_query_that_reads_a_pandas_frame_while_it_is_read() -> None:
    frame = pd.DataFrame({"y": [i % 3 == 0 for i in range(20_000)], "s": pd.Series([f"v{i % 100}" for i in range(20_000)], dtype=object)})
    connection = duckdb.connect()
    connection.register("frame", frame)
    found = rows_of(connection.sql("SELECT y, s || 'x' AS s FROM frame"), label="y")
    same(found, rows_of(frame.assign(s=frame["s"] + "x"), label="y"))


def test_no_library_of_frames_is_imported() -> None:
    code = (
        "import sys, rarestream\n"
        "class Frame:\n"
        "    def __arrow_c_stream__(self, requested_schema=None): raise ImportError('nothing')\n"
        "try: list(rarestream.read(Frame(), label='y'))\n"
        "except rarestream.DataError as error: assert 'nothing' in str(error)\n"
        "assert not {'pandas', 'polars', 'pyarrow', 'duckdb'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- without pyarrow


@pytest.fixture
def without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Any, requested_schema: object = None) -> Any:
        raise ImportError("pyarrow is required")

    monkeypatch.setattr(pd.DataFrame, "__arrow_c_stream__", missing)


@pytest.mark.usefixtures("without_pyarrow")
class TestInterchange:
    @pytest.mark.parametrize("strings", ["str", "object", "category", "string"])
    def test_pandas_without_pyarrow_has_the_same_rows(self, strings: str) -> None:
        frame = TABLE.to_pandas()
        texts = frame["site"].astype(object).where(frame["site"].notna(), None)
        frame["site"] = texts.astype(strings) if strings != "str" else texts.astype(pd.StringDtype("python", na_value=np.nan))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same(rows_of(frame, label="y"), EXPECTED)

    @pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
    def test_columns_with_masks(self, dtype: str) -> None:
        values = [1, None, 0, 1]
        frame = pd.DataFrame({"y": [1, 0, 0, 1], "x": pd.array(values, dtype=dtype)})
        kind = {"Int64": int, "Float64": float, "boolean": bool}[dtype]
        rows = [{"y": y, "x": None if x is None else kind(x)} for y, x in zip([1, 0, 0, 1], values, strict=True)]
        same(rows_of(frame, label="y"), rows_of(rows, label="y"))

    @pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "float32", "bool"])
    def test_numbers_of_all_widths(self, dtype: str) -> None:
        frame = pd.DataFrame({"y": [1, 0, 0, 1], "x": np.array([1, 0, 5, 100], dtype)})
        rows = [{"y": y, "x": x} for y, x in zip([1, 0, 0, 1], frame["x"].tolist(), strict=True)]
        same(rows_of(frame, label="y"), rows_of(rows, label="y"))

    def test_columns_that_are_slices(self) -> None:
        frame = pd.concat([TABLE.to_pandas()] * 2)
        same(rows_of(frame.iloc[8:], label="y"), EXPECTED)
        same(rows_of(frame.iloc[::2], label="y", features=EXPECTED.space), rows_of(pa.concat_tables([TABLE, TABLE]).take(pa.array(range(0, 16, 2))), label="y", features=EXPECTED.space))

    def test_dates_with_a_zone_are_in_utc(self) -> None:
        moments = pd.date_range("2024-01-01 23:30", periods=4, freq="h", tz="Europe/Berlin")
        frame = pd.DataFrame({"y": [1, 0, 0, 1], "x": moments})
        rows = [{"y": y, "x": x.to_pydatetime()} for y, x in zip([1, 0, 0, 1], moments, strict=True)]
        same(rows_of(frame, label="y"), rows_of(rows, label="y"))

    def test_a_column_that_cannot_be_read_is_named(self) -> None:
        frame = pd.DataFrame({"y": [1, 0], "x": pd.Series([1, "a"], dtype=object)})
        with pytest.raises(DataError, match=r"<frame>: column 'x' cannot be read: .* astype\(str\), or install pyarrow"):
            rows_of(frame, label="y")
        assert len(rows_of(frame, label="y", ignore=["x"])) == 2

    def test_it_can_be_read_again_and_large(self) -> None:
        frame = pd.DataFrame({"y": [True, False] * 40_000, "x": [f"v{i % 97}" for i in range(80_000)]})
        stream = read(frame, label="y")
        first = together(stream)
        same(first, together(stream))
        same(first, rows_of(pa.table({"y": frame["y"].to_numpy(), "x": frame["x"].tolist()}), label="y"))
