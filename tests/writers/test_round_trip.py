"""Rows that are written and read again are the same, bit for bit."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Block, Hashed, Model, convert, read
from rarestream.blocks import concatenate
from rarestream.writers.svmlight import SvmlightWriter
from rarestream.writers.vw import VwWriter
from tests.strategies import examples

# Floats of any bits, with those that are hard to write in few digits, and everyday ones.
HARD = [7.038531e-26, -7.038531e-26, 1e-45, 3.4028235e38, 1.1754942e-38, 16777216.0, 9.999999e9, 0.1, 1e7, 1234567.0]
FLOATS = st.one_of(st.sampled_from(HARD), st.floats(width=32, allow_nan=False, allow_infinity=False), st.just(1.0))
IMPORTANCES = st.one_of(st.just(1.0), st.just(0.0), st.floats(1e-100, 1e12), st.sampled_from([0.1, 2.5, 1e12]))
TAGS = st.one_of(st.just(-1), st.integers(0, 2**63 - 1), st.integers(0, 9))


@st.composite
def numbered_rows(draw: Any) -> Block:
    rows = draw(
        st.lists(
            st.tuples(
                st.dictionaries(st.integers(0, 2**31 - 2), FLOATS, max_size=6),
                st.sampled_from([-1, 1]),
                IMPORTANCES,
                TAGS,
            ),
            min_size=1,
            max_size=12,
        )
    )
    indptr = np.cumsum([0] + [len(row) for row, *_ in rows])
    indices = np.array([j for row, *_ in rows for j in sorted(row)], np.int32)
    values = np.array([row[j] for row, *_ in rows for j in sorted(row)], np.float32)
    width = int(indices.max()) + 1 if len(indices) else 0
    labels, importances, tags = (np.array([row[i] for row in rows]) for i in (1, 2, 3))
    return Block(indptr, indices, values, width, labels.astype(np.int8), importances.astype(float), tags, own=True)


def same(one: Block, other: Block) -> None:
    for field in ("indptr", "indices", "values"):
        assert getattr(one, field).tobytes() == getattr(other, field).tobytes(), field
    ones = np.ones(len(one))
    assert (one.labels == other.labels).all()
    assert (
        (ones if one.importances is None else one.importances)
        == (other.importances if other.importances is not None else ones)
    ).all()


def read_again(text: bytes, format: str, **options: Any) -> Block:
    return concatenate(read(io.BytesIO(text), format, **options))


@settings(max_examples=examples(300), deadline=None)
@given(numbered_rows())
def test_svmlight_gives_the_same_columns_values_labels_importances_and_tags(block: Block):
    out = io.BytesIO()
    SvmlightWriter(out).write(block)
    found = read_again(out.getvalue(), "svmlight", positive=1)
    same(found, block)
    none = np.full(len(block), -1)
    assert ((none if found.tags is None else found.tags) == block.tags).all()


def test_a_sample_of_all_floats_is_written_shortly_and_read_again():
    bits = np.arange(0, 0x7F800000, 9973, dtype=np.uint32)  # every exponent, and odd mantissas
    values = np.concatenate([bits.view(np.float32), -bits.view(np.float32)])
    rows = np.arange(len(values) + 1, dtype=np.int64)
    block = Block(rows, np.zeros(len(values), np.int32), values, 1, np.ones(len(values), np.int8), own=True)
    out = io.BytesIO()
    SvmlightWriter(out).write(block)
    lines = out.getvalue().decode().splitlines()
    texts = [line.partition(":")[2] for line in lines]
    again = np.array([float(text) for text in texts]).astype(np.float32)
    assert again.tobytes() == values.tobytes()
    assert max(map(len, texts)) <= 15
    scientific = [np.format_float_scientific(value, trim="-", exp_digits=2) for value in values[1::4000]]
    assert all(len(text) <= len(other) for text, other in zip(texts[1::4000], scientific, strict=True))


NAMES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(["a.com", "New York", "x:y", "a|b", "", "^", "a^b", "\x1f", "\n", "~2^3.5", "'q", "'", "#", "é"]),
    st.text("ab ^:|~", min_size=250, max_size=300),
)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.dictionaries(NAMES, NAMES, max_size=6), min_size=1, max_size=8),
    st.sampled_from([1, 7, 18, 22, 30]),
    st.booleans(),
)
def test_vw_text_gives_the_same_slots_whatever_the_names(rows: list[dict[str, str]], bits: int, names: bool):
    space = Hashed(bits, names=names)
    block = Block.of_dicts(rows, np.where(np.arange(len(rows)) % 2, 1, -1), features=space)
    out = io.BytesIO()
    writer = VwWriter(out)
    writer.write(block)
    text = out.getvalue()
    same(read_again(text, "vw", bits=bits, positive=1), block)
    if names:  # another number of bits has the same names, too, unless two shared a slot
        assert text.count(b"\n") == len(rows)


@settings(max_examples=examples(100), deadline=None)
@given(numbered_rows())
def test_vw_text_keeps_values_labels_importances_and_tags_of_columns(block: Block):
    out = io.BytesIO()
    VwWriter(out, first=1).write(block)
    lines = out.getvalue().decode().splitlines()
    for row, line in enumerate(lines):
        head, _, body = line.partition("|")
        found = {}
        for word in body.split():
            name, _, value = word.partition(":")
            found[int(name) - 1] = np.float32(value or 1)
        a, b = block.indptr[row], block.indptr[row + 1]
        wanted = dict(zip(block.indices[a:b].tolist(), block.values[a:b].tolist(), strict=True))
        assert found == {j: value for j, value in wanted.items() if value}
        words = head.split()
        tag = words.pop().removeprefix("'") if "'" in head else "-1"
        assert int(tag) == block.tags[row]
        assert [float(word) for word in words] == [block.labels[row], block.importances[row]][: len(words)]
        assert len(words) == 2 or block.importances[row] == 1


def test_a_feature_without_a_name_and_one_whose_name_was_lost_keep_their_slots(tmp_path):
    space = Hashed(22, name_bytes=300)
    rows = [{"site": f"s{number}.com", "n": ""} for number in range(50)]
    block = Block.of_dicts(rows, [number % 2 for number in range(50)], features=space)
    assert space.names.full
    out = io.BytesIO()
    writer = VwWriter(out)
    writer.write(block)
    same(read_again(out.getvalue(), "vw"), block)
    assert any("is not known" in note or "are not known" in note for note in writer.notes)
    nameless = b"1 |a x :3.5 :2\n-1 |b :1 y\n"
    block = read_again(nameless, "vw")
    out = io.BytesIO()
    VwWriter(out).write(block)
    same(read_again(out.getvalue(), "vw"), block)


# -- files

ROWS: list[dict[str, Any]] = [
    {
        "clicked": "yes" if number % 7 == 3 else "no",
        "site": f"s{number % 11}.com" if number % 5 else "two words",
        "age": number % 60,
        "price": 1.5 * number,
        "when": f"2026-01-{1 + number % 28:02}T10:00:00",
        "weight": 1.0 + number % 3,
        "id": f"r{number}",
        "number": number,
    }
    for number in range(300)
]


def write_table(path: Path) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(ROWS), path)
    elif path.suffix == ".arrow":
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.Table.from_pylist(ROWS)
        with pyarrow.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    else:
        lines = [",".join(ROWS[0]), *(",".join(map(str, row.values())) for row in ROWS)]
        path.write_text("\n".join(lines) + "\n")
    return path


TABLE = {"label": "clicked", "importance": "weight"}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
@pytest.mark.parametrize("to", ["vw", "svmlight"])
def test_a_table_and_what_it_is_converted_to_make_the_same_model(tmp_path, suffix, to):
    source = write_table(tmp_path / f"t{suffix}")
    options: dict[str, Any] = {**TABLE, "tag": "id" if to == "vw" else "number", "ignore": ["id"] if to != "vw" else []}
    out = tmp_path / ("out.vw" if to == "vw" else "out.svm")
    done = convert(source, out, **options)
    assert (done.to, done.rows, done.positives, done.unlabelled) == (to, 300, 43, 0)
    before, after = concatenate(read(source, **options)), concatenate(read(out))
    same(after, before)
    assert list(map(str, after.tags)) == list(map(str, before.tags))
    models = [Model("dual-auc"), Model("dual-auc")]
    scores = [model.learn(replace(block, space=None)) for model, block in zip(models, (before, after), strict=True)]
    assert scores[0].tobytes() == scores[1].tobytes()
    assert models[0].to_bytes("resumable") == models[1].to_bytes("resumable")


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_text_goes_through_all_formats_and_back(tmp_path, suffix):
    source = tmp_path / "rows.svm"
    source.write_text("+1 qid:3 cost:2.5 1:0.1 7:1e-20\n-1 3:1\n-1 qid:4 2:3.25\n")
    convert(source, tmp_path / f"a.svm{suffix}")
    convert(tmp_path / f"a.svm{suffix}", tmp_path / "b.svm")
    assert (tmp_path / "b.svm").read_bytes() == source.read_bytes()
    convert(source, tmp_path / f"c.vw{suffix}")
    convert(tmp_path / f"c.vw{suffix}", tmp_path / "d.vw")
    assert (tmp_path / "d.vw").read_text() == "1 2.5 '3| 1:0.1 7:1e-20\n-1 | 3\n-1 '4| 2:3.25\n"


def test_labelled_text_and_dicts_are_converted_too(tmp_path):
    text = tmp_path / "t.text"
    text.write_text("spam\tbuy now: cheap\nham\thello you\nham\tnow\n")
    convert(text, tmp_path / "t.vw")
    same(concatenate(read(tmp_path / "t.vw")), concatenate(read(text)))
    rows = [{"y": 1, "a": "x y"}, {"y": 0, "a": "z"}]
    convert(rows, tmp_path / "d.vw", label="y")
    same(concatenate(read(tmp_path / "d.vw")), concatenate(read(rows, label="y")))


def test_zero_based_columns_keep_their_numbers_as_names(tmp_path):
    (tmp_path / "z.svm").write_text("1 0:1 5:2\n-1 1:1\n")
    convert(tmp_path / "z.svm", tmp_path / "z.vw")
    assert (tmp_path / "z.vw").read_text() == "1 | 0 5:2\n-1 | 1\n"
    convert(tmp_path / "z.svm", tmp_path / "one.svm")
    assert (tmp_path / "one.svm").read_text() == "+1 1:1 6:2\n-1 2:1\n"
    same(concatenate(read(tmp_path / "one.svm")), concatenate(read(tmp_path / "z.svm")))
