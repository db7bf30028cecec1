"""Every row is in exactly one part, as it was written; a key is in one part only; what cannot be split is refused."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rarestream import DataError, OutputError, _native, read, split
from rarestream.splitting import SplitResult
from tests.strategies import examples

UNPACK = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


def put(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def texts(done: SplitResult) -> list[bytes]:
    return [Path(part.path).read_bytes() for part in done.parts]


def rows(count: int, users: int = 40) -> list[dict[str, Any]]:
    rng = np.random.default_rng(count)
    return [
        {
            "user": f"u{int(rng.integers(users))}",
            "n": number,
            "when": f"2026-{1 + number % 12:02}-{1 + number % 28:02}T{number % 24:02}:00:00",
            "y": int(rng.random() < 0.2),
        }
        for number in range(count)
    ]


def as_csv(table: list[dict[str, Any]], **dialect: Any) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(table[0]), lineterminator="\n", **dialect)
    writer.writeheader()
    writer.writerows(table)
    return out.getvalue()


def write(path: Path, table: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        return put(path, "".join(json.dumps(row) + "\n" for row in table))
    if path.suffix in (".parquet", ".arrow", ".feather", ".arrows"):
        pyarrow = pytest.importorskip("pyarrow")
        made = pyarrow.Table.from_pylist(table)
        if path.suffix == ".parquet":
            pytest.importorskip("pyarrow.parquet").write_table(made, path, compression="gzip")
        else:
            opener = pyarrow.ipc.new_stream if path.suffix == ".arrows" else pyarrow.ipc.new_file
            with opener(str(path), made.schema) as writer:
                writer.write_table(made, max_chunksize=100)
        return path
    return put(path, as_csv(table, delimiter="\t" if path.suffix == ".tsv" else ","))


def load(path: str) -> list[dict[str, Any]]:
    """The rows of a part, as other programs read them; numbers as numbers."""
    file = Path(path)
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_text().splitlines()]
    if file.suffix in (".parquet", ".arrow", ".feather", ".arrows"):
        pyarrow = pytest.importorskip("pyarrow")
        if file.suffix == ".parquet":
            return pytest.importorskip("pyarrow.parquet").read_table(file).to_pylist()
        opener = pyarrow.ipc.open_stream if file.suffix == ".arrows" else pyarrow.ipc.open_file
        return opener(file.read_bytes()).read_all().to_pylist()
    with file.open(newline="") as text:
        found = list(csv.DictReader(text, delimiter="\t" if file.suffix == ".tsv" else ","))
    return [{**row, "n": int(row["n"]), "y": int(row["y"])} for row in found]


FORMATS = [".csv", ".tsv", ".jsonl", ".parquet", ".arrow", ".arrows", ".feather"]


# -- every row once


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cells=st.lists(st.text("ab,\"\n\r é'", max_size=6), min_size=1, max_size=30),
    crlf=st.booleans(),
    blank=st.sets(st.integers(0, 29)),
    ended=st.booleans(),
    by=st.sampled_from(["random", "order", "key"]),
    seed=st.integers(-(2**63), 2**63),
)
def test_rows_of_csv_are_copied_as_they_are_written(tmp_path, cells, crlf, blank, ended, by, seed):
    end = "\r\n" if crlf else "\n"
    written = []
    for number, text in enumerate(cells):  # no two rows are alike
        out = io.StringIO()
        csv.writer(out, lineterminator=end, quoting=csv.QUOTE_NONNUMERIC).writerow([text, number])
        written.append(out.getvalue())
    text = f'"name",number{end}' + "".join((end if row in blank else "") + line for row, line in enumerate(written))
    source = put(tmp_path / "t.csv", text if ended else text.removesuffix(end))
    column = "number" if by == "key" else None
    done = split(source, "a=0.5,b=0.3,c=0.2", by=by, seed=seed, overwrite=True, column=column)
    found = texts(done)
    assert all(part.startswith(f'"name",number{end}'.encode()) for part in found)
    bodies = [part[len(f'"name",number{end}') :].decode() for part in found]
    if not ended:
        written[-1] = written[-1].removesuffix(end) + "\n"
    assert sorted("".join(bodies)) == sorted("".join(written))
    assert [part.rows for part in done.parts] == [
        len(list(csv.reader(io.StringIO(body, newline="")))) for body in bodies
    ]
    rest = list(bodies)
    for line in written:  # in order, each at the start of what is left of one part
        at = next(number for number, body in enumerate(rest) if body.startswith(line))
        rest[at] = rest[at][len(line) :]
    assert not any(rest)
    if by == "order":
        assert "".join(bodies) == "".join(written)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("by", ["random", "order", "key", "time"])
def test_every_row_is_in_one_part_in_its_order(tmp_path, suffix, by):
    table = rows(1000)
    column = {"key": "user", "time": "when"}.get(by)
    done = split(
        write(tmp_path / f"t{suffix}", table),
        {"train": 0.6, "valid": 0.2, "test": 0.2},
        by=by,
        column=column,
        label="y",
    )
    assert [Path(part.path).name for part in done.parts] == [f"t.{name}{suffix}" for name in ("train", "valid", "test")]
    found = [load(part.path) for part in done.parts]
    assert [len(part) for part in found] == [part.rows for part in done.parts]
    assert done.rows == 1000
    assert sorted((row for part in found for row in part), key=lambda row: row["n"]) == table
    assert all([row["n"] for row in part] == sorted(row["n"] for row in part) for part in found)
    assert [part.positives for part in done.parts] == [sum(row["y"] for row in part) for part in found]
    if by == "order":
        assert [part.rows for part in done.parts] == [600, 200, 200]


@pytest.mark.parametrize("suffix", ["", *UNPACK])
def test_large_text_is_split_across_chunks_and_compressed_as_it_was(tmp_path, suffix):
    lines = [f"{1 if row % 10 == 0 else -1} qid:{row // 7} {row % 1000 + 1}:0.5 2000:1\n" for row in range(150_000)]
    text = "# a comment\n\n" + "".join(lines)
    pack = {
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.ZstdCompressor().compress,
    }
    source = tmp_path / f"t.svm{suffix}"
    source.write_bytes(pack.get(suffix, bytes)(text.encode()))
    done = split(source, by="key", threads=2)
    assert [Path(part.path).name for part in done.parts] == [f"t.train.svm{suffix}", f"t.test.svm{suffix}"]
    parts = [UNPACK.get(suffix, bytes)(part).decode().splitlines(keepends=True) for part in texts(done)]
    assert sorted(parts[0] + parts[1]) == sorted(lines)
    keys = [{line.split()[1] for line in part} for part in parts]
    assert not keys[0] & keys[1]
    for part, kept in zip(parts, keys, strict=True):
        assert part == [line for line in lines if line.split()[1] in kept]
    assert [part.positives for part in done.parts] == [sum(line.startswith("1") for line in part) for part in parts]
    assert abs(len(parts[0]) / 150_000 - 0.8) < 0.02


def test_vw_text_labelled_text_and_lines_without_a_last_line_end(tmp_path):
    vw = "".join(f"{row % 2} 'u{row % 5}|a x{row} y:0.5\n" for row in range(50)) + "1 'u3|a z"
    done = split(put(tmp_path / "t.vw", vw), by="key")
    parts = [part.decode().splitlines() for part in texts(done)]
    assert sorted(parts[0] + parts[1]) == sorted(vw.splitlines())
    assert not {line[2:5] for line in parts[0]} & {line[2:5] for line in parts[1]}
    text = "spam\tbuy now\n\nham\thello\n\tno label\nham\tlast"
    done = split(put(tmp_path / "t.text", text), by="order", into="a=0.5,b")
    assert texts(done) == [b"spam\tbuy now\nham\thello\n", b"\tno label\nham\tlast\n"]


def test_several_files_make_one_split(tmp_path):
    table = rows(90)
    names = [write(tmp_path / f"{number}.csv", table[30 * number : 30 * number + 30]) for number in range(3)]
    done = split(names, by="order", into="a=0.5,b=0.5")
    assert [Path(part.path).name for part in done.parts] == ["0.a.csv", "0.b.csv"]
    assert load(done.parts[0].path) + load(done.parts[1].path) == table
    put(tmp_path / "2.csv", "n,user,when,y\n1,2,3,4\n")
    with pytest.raises(DataError, match=r"2\.csv: its columns are not those of .*0\.csv, in the same order"):
        split(str(tmp_path / "[0-2].csv"), overwrite=True)
    write(tmp_path / "0.parquet", table)
    write(tmp_path / "1.parquet", [{"user": 3}])
    with pytest.raises(DataError, match="with the same types and in the same order"):
        split([tmp_path / "0.parquet", tmp_path / "1.parquet"])
    assert not list(tmp_path.glob("0.*.parquet"))


# -- which part


def test_a_key_is_on_the_same_side_in_every_format_file_and_order(tmp_path):
    table = rows(600)
    sides: dict[str, str] = {}
    for suffix in FORMATS:
        part_of: dict[str, str] = {}
        for number, some in enumerate((table, table[::-1][:300])):
            done = split(write(tmp_path / f"t{number}{suffix}", some), by="key", column="user")
            for part in done.parts:
                for row in load(part.path):
                    assert part_of.setdefault(row["user"], part.name) == part.name
        sides = sides or part_of
        assert part_of == sides, suffix
    lines = "".join(f"0 '{row['user']}|a x\n" for row in table)
    done = split(put(tmp_path / "t.vw", lines), by="key")
    for part in done.parts:
        assert {sides[line[3:].partition("|")[0]] for line in Path(part.path).read_text().splitlines()} == {part.name}
    for user, side in sides.items():  # the rule of the docs
        assert side == ("train" if _native.murmur3(user.encode(), 0) / 2**32 < 0.8 else "test")


def test_whole_numbers_are_the_same_keys_as_text_and_as_numbers(tmp_path):
    table = [{"user": row % 50, "n": row, "y": 0} for row in range(300)]
    sides = []
    for suffix in (".csv", ".jsonl", ".parquet"):
        done = split(write(tmp_path / f"t{suffix}", table), by="key", column="user")
        sides.append([{int(row["user"]) for row in load(part.path)} for part in done.parts])
    lines = "".join(f"0 qid:{row['user']} 1:1\n" for row in table)
    done = split(put(tmp_path / "t.svm", lines), by="key")
    sides.append([{int(line.split()[1][4:]) for line in part.decode().splitlines()} for part in texts(done)])
    assert all(side == sides[0] for side in sides)


def test_another_seed_gives_another_split_and_the_same_seed_the_same(tmp_path):
    source = write(tmp_path / "t.csv", rows(500, users=200))
    for by, column in (("random", None), ("key", "user")):
        found = [texts(split(source, by=by, column=column, seed=seed, overwrite=True)) for seed in (0, 1, 0)]
        assert found[0] == found[2] != found[1]
    parquet = write(tmp_path / "t.parquet", rows(500, users=200))
    one, other = split(source, overwrite=True), split(parquet)
    assert [load(part.path) for part in one.parts] == [load(part.path) for part in other.parts]


def test_rows_without_a_key_are_placed_at_random_and_counted(tmp_path):
    source = put(tmp_path / "t.csv", "user,n\n" + "".join(f"{'' if row % 2 else 'a'},{row}\n" for row in range(2000)))
    done = split(source, by="key", column="user")
    assert done.without_key == 1000 and done.rows == 2000
    keyed = [part.count(b"a,") for part in texts(done)]
    assert sorted(keyed) == [0, 1000] and abs(done.parts[0].rows - keyed[0] - 800) < 60


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_times_are_cut_at_the_share_whatever_the_order_of_rows(tmp_path, suffix):
    table = rows(1000)
    done = split(write(tmp_path / f"t{suffix}", table), by="time", column="when")
    early, late = ([row["when"] for row in load(part.path)] for part in done.parts)
    assert max(early) < min(late) == done.cuts[0].replace(" ", "T")
    assert abs(len(early) - 800) <= 12
    done = split(tmp_path / f"t{suffix}", by="time", column="when", at="2026-03-01, 2026-07-15 12:00", overwrite=True)
    assert [part.name for part in done.parts] == ["train", "valid", "test"]
    assert done.cuts == ["2026-03-01", "2026-07-15 12:00:00"]
    parts = [[row["when"] for row in load(part.path)] for part in done.parts]
    assert max(parts[0]) < "2026-03-01" <= min(parts[1]) and max(parts[1]) < "2026-07-15T12" <= min(parts[2])


def test_times_may_be_numbers_dates_with_offsets_and_timestamps(tmp_path):
    numbers = [1.5, 1e9, -3, 1767225600, 1767225600.25, 0]
    source = put(tmp_path / "n.csv", "t\n" + "".join(f"{number}\n" for number in numbers))
    done = split(source, by="time", column="t", at=1767225600)
    assert texts(done) == [b"t\n1.5\n1000000000.0\n-3\n0\n", b"t\n1767225600\n1767225600.25\n"]
    assert done.cuts == ["1767225600"]
    offsets = ["2026-01-01T00:30:00+02:00", "2025-12-31T23:00:00Z", "2026-01-01", "2026-01-01 00:00:00.5"]
    done = split(put(tmp_path / "d.csv", "t\n" + "\n".join(offsets)), by="time", column="t", at="2026-01-01")
    assert texts(done)[0].decode().split("\n")[1:3] == offsets[:2] and done.parts[1].rows == 2
    pyarrow = pytest.importorskip("pyarrow")
    stamps = pyarrow.table({"t": pyarrow.array([0, 86_400_000_000, 3], pyarrow.timestamp("us"))})
    pytest.importorskip("pyarrow.parquet").write_table(stamps, tmp_path / "s.parquet")
    done = split(tmp_path / "s.parquet", by="time", column="t", at="1970-01-02")
    assert [part.rows for part in done.parts] == [2, 1]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-5, 5).map(float)), min_size=2))
def test_numbers_as_times_are_in_order_and_are_shown_as_they_are_read(numbers):
    from rarestream.splitting.times import NUMBER, parsed, parsed_one, shown

    times, bad = parsed([repr(number) for number in numbers], NUMBER)
    assert not bad.any()
    for one, other in itertools.pairwise(numbers):
        a, b = times[numbers.index(one)], times[numbers.index(other)]
        assert (a < b) == (one < other) and (a == b) == (one == other)
    assert [parsed_one(shown(int(time), NUMBER), NUMBER) for time in times] == times.tolist()


def test_the_time_of_a_share_is_found_in_bounded_memory(monkeypatch):
    from rarestream.splitting import times

    monkeypatch.setattr(times, "MOST_BUCKETS", 64)
    monkeypatch.setattr(times, "PENDING", 1000)
    counts = times.TimeCounts()
    drawn = np.random.default_rng(0).integers(0, 10**15, 50_000)
    for start in range(0, len(drawn), 777):
        counts.add(drawn[start : start + 777])
    assert len(counts._buckets) <= 64
    (cut,) = counts.cuts([0.8])
    assert abs((drawn < cut).mean() - 0.8) < 1 / 32


# -- what is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"into": "a=0.5,b=0.6"}, "the shares add up to 1.1, and not to 1"),
        ({"into": "a=0.5,b,c"}, "b and c have no share"),
        ({"into": "a=1.5,b"}, "the share of a must be above 0 and below 1, got 1.5"),
        ({"into": "a=x,b"}, "a share must be a number"),
        ({"into": "a=1"}, "there must be 2 to 100 parts, got 1"),
        ({"into": "a=0.5,a=0.5"}, "two parts are named a"),
        ({"into": "../a=0.5,b=0.5"}, "the name of a part is made of letters"),
        ({"into": "a=0.9,b=0.1,c"}, "nothing is left for c"),
        ({"by": "stratified"}, "by must be one of random, order, key, time"),
        ({"by": "key"}, "which column is the key"),
        ({"by": "random", "column": "user"}, "a column is for by="),
        ({"by": "key", "column": "usr"}, "'usr', which is not there. Did you mean 'user'?"),
        ({"by": "time", "column": "when", "at": "soon"}, "at must be a date, such as 2026-01-31, or a number, got 'soon'"),
        ({"by": "time", "column": "when", "at": "2026-02-01,2026-01-01"}, "at must ascend"),
        ({"by": "time", "column": "when", "at": "2026-01-01", "into": "a=0.5,b=0.5"}, "times separate the parts"),
        ({"by": "time", "column": "when", "at": "2026-01-01", "into": "a,b,c"}, "1 time make 2 parts, and 3 are named"),
        ({"by": "order", "at": "2026-01-01"}, "at is for by=time"),
        ({"by": "time", "column": "user"}, "t.csv:2: column 'user' must have a date"),
        ({"by": "time", "column": "when", "at": 17}, "must have a number, as at is, but has '2026-01-01T00:00:00'"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"by": "key", "column": "y", "label": "y"}, "is the column of the label"),
        ({"colum": "user"}, "has no option colum"),
    ],
)  # fmt: skip
def test_what_cannot_be_split_is_refused_and_leaves_nothing(tmp_path, arguments, message):
    source = write(tmp_path / "t.csv", rows(100))
    with pytest.raises(DataError) as refused:
        split(source, **arguments)
    assert message in str(refused.value)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    ("name", "text", "arguments", "message"),
    [
        ("t.svm", "1 1:1\n0 2:1\n", {"by": "key"}, "no row has a qid"),
        ("t.vw", "1 |a x\n", {"by": "key"}, "no row has a tag"),
        ("t.svm", "1 1:1\n", {"by": "key", "column": "user"}, "svmlight has no columns; the key is the qid"),
        ("t.text", "a\tb\n", {"by": "key"}, "text has no columns, and so no key"),
        ("t.jsonl", '{"user": 1}\n', {"by": "key", "column": "usr"}, "Did you mean 'user'?"),
        ("t.csv", "a,b\n1,2\n3\n", {}, "t.csv:3:1: this row has 1 cell"),
        ("t.csv", "a,when\n1,2026-01-01\n2,\n", {"by": "time", "column": "when"}, "t.csv:3: column 'when' must have a date, as in the first rows, but is empty"),
        ("t.csv", "a,when\n1,2026-01-01\n2,3.5\n", {"by": "time", "column": "when"}, "t.csv:3: column 'when' must have a date, as in the first rows, but has '3.5'"),
        ("t.csv", "a,b\n", {}, "no rows"),
        ("t.csv", "", {}, "no rows"),
        ("t.parquet", "no parquet", {}, "t.parquet: cannot be read"),
    ],
)  # fmt: skip
def test_bad_data_are_refused_with_their_place_and_leave_nothing(tmp_path, name, text, arguments, message):
    source = put(tmp_path / name, text)
    with pytest.raises(DataError) as refused:
        split(source, **arguments)
    assert message in str(refused.value)
    assert list(tmp_path.iterdir()) == [source]


def test_invalid_rows_can_be_skipped_and_are_counted(tmp_path):
    source = put(tmp_path / "t.csv", "a,when\n1,2026-01-01\n\n9\n2,\n3,2026-01-03\n")
    done = split(source, by="time", column="when", at="2026-01-02", max_bad_rows=2)
    assert texts(done) == [b"a,when\n1,2026-01-01\n", b"a,when\n3,2026-01-03\n"]
    assert done.refused == 2 and "t.csv:4" in done.refusals[0] and "t.csv:5" in done.refusals[1]


def test_a_failure_in_the_middle_leaves_the_files_that_were_there(tmp_path):
    lines = [f"{row},x{row % 9}\n" for row in range(300_000)]
    source = put(tmp_path / "t.csv", "n,user\n" + "".join(lines) + "1\n")
    before = put(tmp_path / "t.train.csv", "before")
    with pytest.raises(DataError, match="t.csv:300002:1"):
        split(source, by="key", column="user", overwrite=True)
    assert before.read_text() == "before" and sorted(tmp_path.iterdir()) == [source, before]


def test_files_that_exist_and_inputs_are_not_replaced(tmp_path):
    source = write(tmp_path / "t.csv", rows(100))
    other = put(tmp_path / "t.test.csv", "before")
    with pytest.raises(OutputError, match=r"t\.test\.csv: exists, and is not replaced"):
        split(source)
    with pytest.raises(DataError, match="is also an input file"):
        split([source, other], overwrite=True)
    with pytest.raises(OutputError, match="the folder .* does not exist"):
        split(source, output_dir=tmp_path / "parts")
    assert other.read_text() == "before" and len(list(tmp_path.iterdir())) == 2
    (tmp_path / "parts").mkdir()
    done = split(source, output_dir=tmp_path / "parts")
    assert [Path(part.path).parent.name for part in done.parts] == ["parts", "parts"]


def test_an_open_file_and_a_pipe_are_split_in_one_pass_only(tmp_path):
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    text = as_csv(rows(100)).encode()
    done = split(Pipe(text), by="key", column="user", format="csv", output_dir=tmp_path)
    assert [Path(part.path).name for part in done.parts] == ["stdin.train.csv", "stdin.test.csv"] and done.rows == 100
    for arguments in ({"by": "order"}, {"by": "time", "column": "when"}):
        with pytest.raises(DataError, match="can be read only once, and a split by"):
            split(Pipe(text), format="csv", output_dir=tmp_path, overwrite=True, **arguments)
    done = split(
        Pipe(text), by="time", column="when", at="2026-05-01", format="csv", output_dir=tmp_path, overwrite=True
    )
    assert done.rows == 100
    with pytest.raises(DataError, match="rows in memory have no file to split"):
        split([{"a": 1}])


def test_parts_of_a_file_are_learned_like_any_other(tmp_path):
    source = write(tmp_path / "t.csv", rows(500))
    done = split(source, by="key", column="user", label="y")
    assert sum(len(block) for part in done.parts for block in read(part.path, label="y")) == 500


def test_parquet_keeps_its_types_and_compression(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table(
        {
            "user": pyarrow.array(["a", "b", None] * 50).dictionary_encode(),
            "list": [[1, 2]] * 150,
            "when": pyarrow.array(range(150), pyarrow.timestamp("ms", "UTC")),
        }
    ).replace_schema_metadata({"who": "us"})
    parquet.write_table(table, tmp_path / "t.parquet", compression="zstd")
    done = split(tmp_path / "t.parquet", by="key", column="user")
    for part in done.parts:
        found = parquet.ParquetFile(part.path)
        assert found.schema_arrow.equals(table.schema) and found.schema_arrow.metadata[b"who"] == b"us"
        if part.rows:
            assert found.metadata.row_group(0).column(0).compression == "ZSTD"
    assert done.without_key == 50 and done.rows == 150
