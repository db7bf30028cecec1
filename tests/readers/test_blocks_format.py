"""`.blocks` files as data: `read("x.blocks")` gives the rows of the source, and nothing in a file can do harm."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Block, DataError, Hashed, Model, RarestreamError, read
from rarestream.blocks import concatenate
from rarestream.evaluate import reading_settings, train
from rarestream.readers import blocksfile
from rarestream.readers.sources import expand
from rarestream.writers.blocks import KEY, BlocksWriter
from tests.readers.test_cache import DOORS, Door, caches, csv, rows_of, svmlight, vw, zero_based
from tests.strategies import examples, random_block, same_rows

pyarrow = pytest.importorskip("pyarrow")


def stored(paths: list[Path], **options: Any) -> Path:
    """The cache of some files."""
    rows_of(read([str(path) for path in paths], cache=True, **options))
    return caches(paths[0].parent)[-1]


def trained(source: Any, **options: Any) -> Model:
    model = Model("dual-auc")
    train(model, read(source, **options))
    return model


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_stored_file_gives_the_model_of_its_source(door: Door, tmp_path: Path) -> None:
    paths, options = door(tmp_path)
    truth, model = trained([str(path) for path in paths], **options), trained(stored(paths, **options))
    settings = dict(truth.source["settings"])
    for word in ("classes", "positive", "zero_based"):
        assert model.source["settings"].get(word) == settings.get(word)
    assert model.source["files"][0]["name"].endswith(".blocks")
    truth.source = model.source = {}
    assert model.to_bytes() == truth.to_bytes()


@pytest.mark.parametrize("door", [csv, vw, svmlight, zero_based], ids=lambda door: door.__name__)
def test_a_model_of_the_source_scores_a_stored_file(door: Door, tmp_path: Path) -> None:
    paths, options = door(tmp_path)
    model, file = trained([str(path) for path in paths], **options), stored(paths, **options)
    truth = np.concatenate([model.score(block) for block in read([str(path) for path in paths], **options)])
    known = reading_settings(model.source, expand(str(file)))
    stream = read(file, features=model.features, **known)
    assert np.array_equal(np.concatenate([model.score(block) for block in stream]), truth)


def test_several_files_and_patterns_are_read(tmp_path: Path) -> None:
    block = random_block(300, 50, 4)
    for number, part in enumerate((block[:100], block[100:])):
        with BlocksWriter(tmp_path / f"{number}.blocks") as writer:
            writer.write(part)
    same_rows(concatenate(read(str(tmp_path / "*.blocks"))), block)
    shuffled = concatenate(read(str(tmp_path / "*.blocks"), shuffle=3))
    assert len(shuffled) == 300 and not np.array_equal(shuffled.labels, block.labels)  # type: ignore[arg-type]


def test_the_place_of_a_row_is_that_in_its_source(tmp_path: Path) -> None:
    paths, options = svmlight(tmp_path)
    file = stored(paths, **options)
    assert rows_of(read(file)) == rows_of(read(str(paths[0]), **options))
    with BlocksWriter(tmp_path / "u.blocks") as writer:
        writer.write(random_block(9000, 5, 2))
    places = [row[-1] for row in rows_of(read(tmp_path / "u.blocks"))]
    assert places[0] == f"{tmp_path}/u.blocks: row 0" and places[-1] == f"{tmp_path}/u.blocks: row 8999"


# -- files of other programs


def arrow_file(path: Path, columns: dict[str, Any], about: Any = {"version": 1}) -> Path:  # noqa: B006
    table = pyarrow.table(columns)
    if about is not None:
        table = table.replace_schema_metadata({KEY: json.dumps(about)})
    with pyarrow.ipc.new_file(str(path), table.schema) as out:
        out.write_table(table)
    return path


def test_a_minimal_file_suffices(tmp_path: Path) -> None:
    """Lists of any whole numbers, in any order; values and all else may be missing."""
    path = arrow_file(tmp_path / "t.blocks", {"label": [1, 0, 1, -1], "indices": [[5, 2], [], [7], [2, 2]]})
    block = concatenate(read(path))
    assert block.indptr.tolist() == [0, 2, 2, 3, 4]
    assert block.indices.tolist() == [2, 5, 7, 2] and block.values.tolist() == [1, 1, 1, 2]
    assert block.labels.tolist() == [1, -1, 1, -1]  # type: ignore[union-attr]
    assert trained(path).source["settings"]["classes"] == [-1.0, 1.0]


def test_all_columns_are_read(tmp_path: Path) -> None:
    columns = {
        "label": pyarrow.array([1, None, -1], pyarrow.int8()),
        "importance": [2.0, 1.0, None],
        "tag": ["a", None, "c"],
        "indices": [[0, 3], [1], [2]],
        "values": [[0.5, -1.0], [2.0], [3.0]],
    }
    path = arrow_file(tmp_path / "t.blocks", columns)
    stream = read(path)
    block = concatenate(stream)
    assert stream.unlabelled == 1
    assert block.indices.tolist() == [0, 3, 2] and block.values.tolist() == [0.5, -1, 3]
    assert block.importances.tolist() == [2, 1] and block.tags.tolist() == ["a", "c"]  # type: ignore[union-attr]
    assert [len(block) for block in read(path, labels="optional")] == [3]


def test_classes_are_read(tmp_path: Path) -> None:
    path = arrow_file(tmp_path / "t.blocks", {"class": ["a", "b", "c"], "indices": [[1], [2], [3]]})
    assert concatenate(read(path, classes="all")).classes.tolist() == ["a", "b", "c"]  # type: ignore[union-attr]
    with pytest.raises(DataError, match="its labels are classes, of which there may be many; pass classes='all'"):
        list(read(path))
    two = arrow_file(tmp_path / "u.blocks", {"label": [1, 0], "indices": [[1], [2]]})
    with pytest.raises(DataError, match="has two classes; drop classes='all'"):
        list(read(two, classes="all"))


GOOD = {"label": [1, -1], "indices": [[1], [2]]}


@pytest.mark.parametrize(
    ("columns", "about", "says"),
    [
        (GOOD, None, "is an Arrow file, but not of the format .blocks.*pass format='arrow'"),
        (GOOD, {"version": 2}, "written by format 2; this version reads up to 1. Upgrade rarestream"),
        (GOOD, {"version": "1"}, "its version is missing"),
        (GOOD, {}, "its version is missing"),
        (GOOD, [1], "its version is missing"),
        (GOOD, {"version": 1, "space": {"bits": 99}}, "damaged"),
        ({"label": [1]}, {"version": 1}, "there is no column indices"),
        ({"label": [1], "indices": [3]}, {"version": 1}, "the column indices is int64, not a list"),
        ({"label": [1], "indices": [[-3]]}, {"version": 1}, "feature index -3"),
        ({"label": [1], "indices": [[2**31]]}, {"version": 1}, "feature index 2147483648"),
        ({"label": [1, 1], "indices": [[1], None]}, {"version": 1}, "the column indices has nulls"),
        ({"label": [1], "indices": [[1, None]]}, {"version": 1}, "the column indices has nulls"),
        ({"label": [1], "indices": [["a"]]}, {"version": 1}, "damaged"),
        ({"label": [3], "indices": [[1]]}, {"version": 1}, "a label is neither -1, 0 nor 1"),
        ({"label": ["x"], "indices": [[1]]}, {"version": 1}, "the column label is string, not int8"),
        ({"label": [1], "indices": [[1]], "values": [[1.0, 2.0]]}, {"version": 1}, "have different lengths"),
        ({"label": [1], "indices": [[1]], "values": [[float("nan")]]}, {"version": 1}, "values must be finite"),
        ({"label": [1], "indices": [[1]], "importance": [-1.0]}, {"version": 1}, "has the importance -1.0"),
        ({"class": ["a", None], "indices": [[1], [2]]}, {"version": 1}, "the column class has nulls"),
    ],
    ids=str,
)
def test_what_breaks_a_rule_is_told(tmp_path: Path, columns: dict[str, Any], about: Any, says: str) -> None:
    path = arrow_file(tmp_path / "t.blocks", columns, about)
    with pytest.raises(DataError, match=says) as raised:
        list(read(path, classes="all" if "class" in columns else None))
    assert str(path) in str(raised.value) or "Block" in str(raised.value)


def test_labels_cannot_be_changed_any_more(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    file = stored(paths, **options)
    assert read(file).settings["classes"] is None
    for allowed in ({"positive": "yes"}, {"classes": ("no", "yes")}, {"classes": (None, "yes")}):
        stream = read(file, **allowed)
        assert sum(map(len, stream)) and stream.settings["classes"] in (["no", "yes"], None)
    for wrong in ({"positive": "no"}, {"classes": ("yes", "no")}, {"positive": 1}):
        with pytest.raises(DataError, match="label 'yes' counts as \\+1, which is in the file, but"):
            list(read(file, **wrong))
    file = stored(paths, positive="no", **options)
    stream = read([path for path in caches(tmp_path) if path != file] and file)
    assert sum(map(len, stream))


def test_the_base_of_columns_is_that_of_the_source(tmp_path: Path) -> None:
    paths, options = zero_based(tmp_path)
    file = stored(paths, **options)
    stream = read(file)
    list(stream)
    assert stream.settings["zero_based"] is True
    with pytest.raises(DataError, match="was made of columns that count from 0. Drop zero_based"):
        list(read(file, zero_based=False))


def test_rows_of_another_space_are_refused(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    file = stored(paths, **options)
    with pytest.raises(DataError, match="has rows of hashed features with 22 bits, but hashed features with 8 bits"):
        list(read(file, features=Hashed(8)))
    other = trained(str(paths[0]), **options | {"numbers": "raw"})
    with pytest.raises(DataError, match="made by another plan of the columns"):
        list(read(file, features=other.features))


def test_other_sources_than_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.blocks.gz").write_bytes(b"x")
    with pytest.raises(DataError, match="cannot be compressed. Decompress it first"):
        list(read(tmp_path / "t.blocks.gz"))
    with pytest.raises(DataError, match="are read from files, which can be mapped into memory"):
        list(read("-", format="blocks"))


# -- damaged files


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, int]:
    """A small file with names, tags, importances and lines; and its rows."""
    folder = tmp_path_factory.mktemp("intact")
    paths, options = csv(folder)
    path = stored(paths, **options)
    return folder / "damaged.blocks", path.read_bytes(), sum(map(len, read(path)))


def used(path: Path) -> int | None:
    """Read and learn a file; None if it is refused."""
    rows = 0
    model = Model("dual-auc")
    try:
        for block in read(path, threads=0):
            rows += len(block)
            model.learn(block)
            model.score(block)
        model.to_bytes()
    except RarestreamError:
        return None
    return rows


def test_a_file_cut_short_is_refused(intact: tuple[Path, bytes, int]) -> None:
    path, whole, rows = intact
    for size in [0, 1, 7, 8, 9, *range(16, len(whole), max(1, len(whole) // 150)), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="damaged.blocks: is cut short or damaged, or no .blocks file"):
            list(read(path))
    path.write_bytes(whole)
    assert used(path) == rows


@settings(max_examples=examples(400), deadline=None)
@given(data=st.data())
def test_no_changed_byte_does_harm(intact: tuple[Path, bytes, int], data: st.DataObject) -> None:
    """An error, or the same number of rows: never a crash."""
    path, whole, rows = intact
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.one_of(st.integers(0, len(whole) - 1), st.integers(0, min(4000, len(whole) - 1)),
                                 st.integers(max(0, len(whole) - 3000), len(whole) - 1)))  # fmt: skip
        damaged[at] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(damaged))
    assert used(path) in (None, rows)


@pytest.mark.parametrize("column", ["tag", "names"])
def test_where_texts_begin_is_checked(intact: tuple[Path, bytes, int], column: str) -> None:
    """Nobody follows the place of a text that is beyond the file."""
    path, whole, rows = intact
    data = pyarrow.py_buffer(whole)
    ends = pyarrow.ipc.open_file(data).get_batch(0).column(column).buffers()[1]
    at = ends.address - data.address
    for change in ([0, 0, 0, 129], [255, 255, 255, 127], [0, 0, 64, 0]):
        for number in (0, 1, 2):
            damaged = bytearray(whole)
            damaged[at + 4 * number : at + 4 * number + 4] = bytes(change)
            path.write_bytes(bytes(damaged))
            assert used(path) in (None, rows)


def test_a_file_that_is_written_to_while_it_is_used_does_no_harm(tmp_path: Path) -> None:
    """Indices are copied before they are checked, so what another program writes later is not followed."""
    path = tmp_path / "t.blocks"
    block = random_block(5000, 1000, 10)
    with BlocksWriter(path) as writer:
        writer.write(block)
    (found,) = list(read(path))
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(b"\xff" * (path.stat().st_size - 2000))
    same_rows(replace(found, values=block.values, labels=block.labels), block)
    assert found.sealed
    model = Model("dual-auc")
    with pytest.raises(DataError):  # values are shared: they are now NaN
        model.learn(replace(found, labels=block.labels))


@pytest.mark.parametrize("values", [False, True])
def test_pages_that_were_read_are_given_back(values: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So memory stays bounded; a Block that is kept has its rows all the same."""
    block = random_block(60_000, 500, 8)
    block = block if values else replace(block, values=np.ones_like(block.values))
    with BlocksWriter(tmp_path / "t.blocks") as writer:
        writer.write(block)
    monkeypatch.setattr(blocksfile, "FORGET", 100_000)
    file = blocksfile.BlocksFile(str(tmp_path / "t.blocks"))
    kept = [piece.block for piece in file.pieces()]
    assert file._forgotten > 0.6 * (tmp_path / "t.blocks").stat().st_size
    same_rows(concatenate(kept), block)
    stream = read(tmp_path / "t.blocks")
    shares = [stream.fraction for _ in stream]
    assert shares == sorted(shares) and 0 < shares[0] < 0.3 and stream.fraction == 1  # type: ignore[type-var,operator]


def test_a_block_of_a_file_can_be_kept(tmp_path: Path) -> None:
    block = random_block(20_000, 50, 3)
    with BlocksWriter(tmp_path / "t.blocks") as writer:
        writer.write(block)
    kept: list[Block] = list(read(tmp_path / "t.blocks"))
    (tmp_path / "t.blocks").unlink()
    same_rows(concatenate(kept), block)
