"""Parquet and Arrow files: the rows of the same table, several files, what is said of files that are wrong, resuming."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from rarestream import DataError, Model, read
from rarestream.errors import MissingExtraError
from rarestream.features import Hashed
from rarestream.readers import batches
from tests.program import run
from tests.readers.arrow_rows import named, rows_of, same, together

Writer = Callable[[pa.Table, Path], None]


def clicks(rows: int = 300, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "clicked": rng.random(rows) < 0.3,
            "site": [f"s{i}.com" for i in rng.zipf(1.5, rows) % 50],
            "price": np.where(rng.random(rows) < 0.1, np.nan, np.round(rng.lognormal(size=rows), 2)),
            "user": rng.integers(40, size=rows),
            "words": [[f"w{j}" for j in rng.integers(9, size=rng.integers(4))] for _ in range(rows)],
            "where": [{"lat": float(i), "zone": "a" if i % 2 else None} for i in range(rows)],
        }
    )


def write_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as out:
        out.write_table(table, max_chunksize=64)


def write_file(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as out:
        out.write_table(table, max_chunksize=64)


WRITERS: dict[str, Writer] = {
    "t.parquet": lambda table, path: pa.parquet.write_table(table, path),
    "groups.parquet": lambda table, path: pa.parquet.write_table(table, path, row_group_size=37),
    "plain.pq": lambda table, path: pa.parquet.write_table(table, path, use_dictionary=False, compression="zstd"),
    "old.parquet": lambda table, path: pa.parquet.write_table(table, path, version="1.0", data_page_version="2.0"),
    "t.feather": lambda table, path: pyarrow.feather.write_feather(table, path),
    "plain.feather": lambda table, path: pyarrow.feather.write_feather(table, path, compression="uncompressed"),
    "file.arrow": write_file,
    "stream.arrow": write_stream,
    "stream.ipc": write_stream,
}
FORMATS = ["t.parquet", "file.arrow", "stream.arrow"]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("threads", [0, 2])
def test_a_file_has_the_rows_of_its_table(tmp_path: Path, name: str, threads: int) -> None:
    table = clicks()
    WRITERS[name](table, tmp_path / name)
    expected = rows_of(table.to_pylist(), label="clicked")
    same(rows_of(tmp_path / name, label="clicked", threads=threads), expected)
    same(rows_of(str(tmp_path / name), label="clicked", labels="required", rows=7), expected)
    with (tmp_path / name).open("rb") as file:
        format = "parquet" if name.endswith((".parquet", ".pq")) else "arrow"
        same(rows_of(file, format=format, label="clicked"), expected)


def test_categories_of_a_frame_are_still_categories_in_a_file(tmp_path: Path) -> None:
    table = clicks()
    encoded = table.set_column(1, "site", table["site"].dictionary_encode())
    for name, write in WRITERS.items():
        write(encoded, tmp_path / name)
        same(rows_of(tmp_path / name, label="clicked"), rows_of(table, label="clicked"))


def test_text_that_is_mostly_different_is_not_read_as_a_dictionary(tmp_path: Path) -> None:
    table = pa.table(
        {"y": [i % 2 for i in range(150_000)], "id": [f"some long id {i:012d}" for i in range(150_000)], "a": ["x", "y", "z"] * 50_000}
    )
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    from rarestream.readers.formats.parquet import ParquetTable
    from rarestream.readers.sources import expand

    opened = ParquetTable(expand(tmp_path / "t.parquet")[0], threads=False)
    assert opened._dictionaries({"y", "id", "a"}) == ["a"]
    assert opened._dictionaries({"id"}) == []
    opened.close()
    same(rows_of(tmp_path / "t.parquet", label="y"), rows_of(table, label="y"))


@pytest.mark.parametrize("name", FORMATS)
def test_several_files_are_one_stream(tmp_path: Path, name: str) -> None:
    table = clicks()
    for i, start in enumerate((0, 0, 100, 150)):
        WRITERS[name](table.slice(start, (0, 100, 50, 150)[i]), tmp_path / f"{i}{name}")
    stream = read(str(tmp_path / f"*{name}"), label="clicked")
    assert len(stream.sources) == 4
    same(together(stream), rows_of(table, label="clicked"))
    assert stream.fraction == 1.0
    same(together(stream), rows_of(table, label="clicked"))


@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_skipped_located_and_shuffled(tmp_path: Path, name: str) -> None:
    table = clicks()
    WRITERS[name](table.slice(0, 100), tmp_path / f"0{name}")
    WRITERS[name](table.slice(100), tmp_path / f"1{name}")
    paths = [tmp_path / f"0{name}", tmp_path / f"1{name}"]
    space = rows_of(table, label="clicked").space
    stream = read(paths, label="clicked", rows=32, features=space).skip(130)
    blocks = iter(stream)
    assert len(next(blocks)) > 0
    assert stream.where(0) == f"{paths[1]}: row 30"
    assert 0 < (stream.fraction or 0) <= 1
    same(together(read(paths, label="clicked", features=space).skip(130)), rows_of(table.slice(130), label="clicked", features=space))
    shuffled = read(paths, label="clicked", shuffle=3, features=space, tag="user")
    found = together(shuffled)
    assert len(found) == 300 and found.indices.tobytes() != rows_of(table, label="clicked", tag="user", features=space).indices.tobytes()
    with pytest.raises(DataError, match=r"cannot continue after row 400: there are only 300 rows"):
        list(read(paths, label="clicked", features=space).skip(400))


def test_only_the_columns_that_are_needed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = clicks()
    asked: list[list[str]] = []
    original = pa.parquet.ParquetFile.iter_batches

    def spy(self: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(options["columns"])
        return original(self, *arguments, **options)

    monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", spy)
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    ignore = ["price", "where", "words"]
    first = rows_of(tmp_path / "t.parquet", label="clicked", ignore=ignore)
    again = rows_of(tmp_path / "t.parquet", features=first.space)
    assert asked == [["clicked", "site", "user"]] * 2
    same(first, again)
    same(first, rows_of(table.drop_columns(ignore), label="clicked"))


# -- columns that differ


def test_the_label_must_be_named_and_be_there(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(clicks(), path)
    with pytest.raises(DataError, match=r"t.parquet: which column is the label\? Pass label=COLUMN; the columns are 'clicked', 'site'"):
        list(read(path))
    with pytest.raises(DataError, match=r"read: label names the column 'clickd', which is not there. Did you mean 'clicked'\?"):
        list(read(path, label="clickd"))
    with pytest.raises(DataError, match=r"numeric names the column 'cost'"):
        list(read(path, label="clicked", numeric=["cost"]))


def test_a_missing_column_is_an_error_and_a_new_one_is_said_once(tmp_path: Path) -> None:
    table = clicks()
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    more = table.append_column("new", pa.array(range(300)))
    for name in ("b", "c"):
        pa.parquet.write_table(more, tmp_path / f"{name}.parquet")
    stream = read([tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "b.parquet"], label="clicked")
    same(together(stream), rows_of(pa.concat_tables([table] * 3), label="clicked"))
    assert [note for note in stream.notes if "new" in note] == [f"{tmp_path}/b.parquet: the new column 'new' is ignored."]
    pa.parquet.write_table(table.drop_columns("site"), tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"d.parquet: the column 'site' is missing"):
        list(read([tmp_path / "a.parquet", tmp_path / "d.parquet"], label="clicked"))


def test_columns_may_come_in_another_order_and_type(tmp_path: Path) -> None:
    table = clicks()
    space = rows_of(table, label="clicked").space
    other = table.select(["where", "words", "user", "price", "site", "clicked"])
    prices = pa.array(other["price"].to_numpy(), from_pandas=True).cast(pa.decimal128(20, 2))
    other = other.set_column(2, "user", other["user"].cast(pa.string())).set_column(3, "price", prices)
    pa.parquet.write_table(other, tmp_path / "t.parquet")
    found = rows_of(tmp_path / "t.parquet", features=space)
    expected = rows_of(table, features=space)
    assert [dict(sorted(row.items())) for row in named(found)] == [dict(sorted(row.items())) for row in named(expected)]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.table([pa.array([1, 0]), pa.array(["a", "b"]), pa.array(["c", "d"])], names=["y", "x", "x"])
    write_file(table, tmp_path / "t.arrow")
    with pytest.raises(DataError, match=r"t.arrow: two columns are named 'x'. Rename one."):
        list(read(tmp_path / "t.arrow", label="y"))


def test_a_row_that_is_wrong_is_named_with_its_file_and_number(tmp_path: Path) -> None:
    table = pa.table({"y": [1, 0] * 50, "x": [1.5] * 90 + [float("inf")] + [2.5] * 9})
    pa.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=40)
    with pytest.raises(DataError, match=r"t.parquet: row 90: column 'x' must have finite numbers, got 'inf'"):
        list(read(tmp_path / "t.parquet", label="y"))
    stream = read(tmp_path / "t.parquet", label="y", max_bad_rows=1)
    assert len(together(stream)) == 99
    assert stream.refusals[0].startswith(f"{tmp_path}/t.parquet: row 90: ")


# -- labels


def test_the_rarer_of_two_texts_is_positive_however_small_the_batches_are(tmp_path: Path) -> None:
    labels = ["spam" if i % 7 == 3 else "ham" for i in range(2000)]
    table = pa.table({"y": labels, "x": [f"v{i % 11}" for i in range(2000)]})
    with pa.ipc.new_stream(tmp_path / "t.arrow", table.schema) as out:
        out.write_table(table, max_chunksize=2)
    stream = read(tmp_path / "t.arrow", label="y")
    block = together(stream)
    assert block.labels is not None
    assert (block.labels == 1).tolist() == [label == "spam" for label in labels]
    assert stream.notes == ["label 'ham' counts as -1 and 'spam' as +1"]


def test_rows_without_label_are_left_out_and_counted(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"y": [1, None, 0, None, 0], "x": list("abcde")}), tmp_path / "t.parquet")
    stream = read(tmp_path / "t.parquet", label="y")
    assert len(together(stream)) == 3 and stream.unlabelled == 2


def test_one_label_is_refused_with_the_rows_that_were_looked_at(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"y": ["a", "a"], "x": ["u", "v"]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"t.parquet: row 0: the first 50,000 rows have only the label 'a'"):
        list(read(tmp_path / "t.parquet", label="y"))


# -- files that are wrong


def test_what_is_not_such_a_file_is_said(tmp_path: Path) -> None:
    for name in ("t.parquet", "t.arrow", "empty.parquet", "empty.arrow"):
        (tmp_path / name).write_bytes(b"" if "empty" in name else b"this is no table at all" * 10)
        with pytest.raises(DataError, match=rf"{name}: cannot be read: "):
            list(read(tmp_path / name, label="y"))
    (tmp_path / "one.feather").write_bytes(b"FEA1 and so on")
    with pytest.raises(DataError, match=r"one.feather: is Feather of version 1"):
        list(read(tmp_path / "one.feather", label="y"))


def test_a_damaged_file_is_an_error_of_data(tmp_path: Path) -> None:
    pa.parquet.write_table(clicks(3000), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    for size in (10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.parquet").write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"cut.parquet: cannot be read: "):
            list(read(tmp_path / "cut.parquet", label="clicked"))
    middle = bytearray(whole)
    middle[200:3000] = b"\xa5" * 2800
    (tmp_path / "bad.parquet").write_bytes(middle)
    with pytest.raises(DataError, match=r"bad.parquet: "):
        list(read(tmp_path / "bad.parquet", label="clicked"))
    write_stream(clicks(), tmp_path / "t.arrow")
    (tmp_path / "cut.arrow").write_bytes((tmp_path / "t.arrow").read_bytes()[:9000])
    with pytest.raises(DataError, match=r"cut.arrow: cannot be read: "):
        list(read(tmp_path / "cut.arrow", label="clicked"))


def test_a_table_without_rows_or_columns_has_no_rows(tmp_path: Path) -> None:
    for name in FORMATS:
        WRITERS[name](clicks().slice(0, 0), tmp_path / name)
        with pytest.raises(DataError, match=rf"{name}: no rows."):
            list(read(tmp_path / name, label="clicked"))
    write_file(pa.table({}), tmp_path / "none.arrow")
    with pytest.raises(DataError, match=r"none.arrow: no rows."):
        list(read(tmp_path / "none.arrow", label="clicked"))


class Pipe(io.RawIOBase):
    """A file that cannot be rewound."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)
        self.name = "pipe"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._data.readinto(buffer)


def test_a_pipe_may_hold_an_arrow_stream_but_no_parquet(tmp_path: Path) -> None:
    table = clicks()
    write_stream(table, tmp_path / "t.arrow")
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    piped = Pipe((tmp_path / "t.arrow").read_bytes())
    same(rows_of(piped, format="arrow", label="clicked"), rows_of(table, label="clicked"))
    with pytest.raises(DataError, match="pipe: Parquet cannot be read from a pipe. Save it to a file first."):
        rows_of(Pipe((tmp_path / "t.parquet").read_bytes()), format="parquet", label="clicked")


@pytest.mark.parametrize(("name", "what"), [("t.parquet", "Parquet"), ("t.arrow", "Arrow files")])
def test_without_pyarrow_the_message_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, what: str
) -> None:
    (tmp_path / name).write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = f'Reading {what} needs the package pyarrow: pip install "rarestream[arrow]"'
    with pytest.raises(MissingExtraError) as raised:
        list(read(tmp_path / name, label="y"))
    assert str(raised.value) == message


# -- models


def test_training_resumes_where_it_stopped(tmp_path: Path) -> None:
    table = clicks(2000)
    for i in range(2):
        pa.parquet.write_table(table.slice(1000 * i, 1000), tmp_path / f"{i}.parquet", row_group_size=300)
    paths = [tmp_path / f"{i}.parquet" for i in range(2)]
    whole, half = Model("ftrl-auc"), Model("ftrl-auc")
    for block in read(paths, label="clicked", rows=128):
        whole.learn(block)
    stream = read(paths, label="clicked", rows=128)
    learned = 0
    for block in stream:
        half.learn(block)
        learned += len(block)
        if learned > 700:
            break
    half.save(tmp_path / "half.rare")
    resumed = Model.load(tmp_path / "half.rare")
    assert isinstance(resumed.features, Hashed)
    for block in read(paths, label="clicked", rows=128, features=resumed.features).skip(learned):
        resumed.learn(block)
    scored = rows_of(paths, label="clicked", features=whole.features)
    assert resumed.score(scored).tobytes() == whole.score(scored).tobytes()


def test_commands_read_parquet_and_a_model_remembers_its_columns(tmp_path: Path) -> None:
    pa.parquet.write_table(clicks(2000), tmp_path / "t.parquet")
    pa.parquet.write_table(clicks(100, seed=1).drop_columns("clicked"), tmp_path / "new.parquet")
    model = tmp_path / "m.rare"
    trained = run("train", tmp_path / "t.parquet", "--label", "clicked", "-o", model)
    assert trained.exit_code == 0, trained.stderr
    scored = run("predict", model, tmp_path / "new.parquet")
    assert scored.exit_code == 0, scored.stderr
    assert len(scored.stdout.splitlines()) == 100


# -- memory


def test_batches_are_freed_as_they_are_read() -> None:
    table = pa.table({"y": [1, 0] * 5000, "x": [f"v{i}" for i in range(10_000)], "n": np.linspace(0.5, 1, 10_000)})
    used: list[int] = []

    def made() -> Iterator[pa.RecordBatch]:
        for _ in range(200):
            batch = pa.record_batch([column.combine_chunks().take(pa.array(range(10_000))) for column in table.columns], names=table.column_names)
            used.append(pa.total_allocated_bytes())
            yield batch

    reader = pa.RecordBatchReader.from_batches(table.schema, made())
    assert sum(len(block) for block in read(reader, label="y")) == 2_000_000
    one = used[1] - used[0]
    assert one > 0
    assert max(used) - used[0] < 20 * one


def test_a_wide_table_is_encoded_in_fewer_rows_at_once() -> None:
    assert batches.rows_at_once(20) == 32_768
    assert batches.rows_at_once(1000) == 1048
    assert batches.rows_at_once(10**6) == 64
