"""Rows of many classes: labels as classes, in every format."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rarestream import Block, DataError, OneVsRest, read
from rarestream.blocks import concatenate
from tests.strategies import random_block

TOPICS = ["art", "sport", "law", "art", "food"]


def put(path, labels) -> str:
    """A file of two columns in the format of its suffix."""
    rows = [{"topic": label, "word": f"w{number % 7}"} for number, label in enumerate(labels)]
    suffix = path.suffix
    if suffix == ".jsonl":
        text = "".join(json.dumps(row) + "\n" for row in rows)
    elif suffix == ".csv":
        text = "topic,word\n" + "".join(f"{row['topic']},{row['word']}\n" for row in rows)
    elif suffix == ".vw":
        text = "".join(f"{row['topic']} |w {row['word']}\n" for row in rows)
    else:
        text = "".join(f"{row['topic']} {1 + number % 7}:1\n" for number, row in enumerate(rows))
    path.write_text(text)
    return str(path)


def classes_of(stream) -> list[object]:
    found = []
    for block in stream:
        assert block.labels is None
        found += block.classes.tolist()
    return found


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_classes_of_tables_are_text(tmp_path, suffix):
    path = put(tmp_path / f"topics{suffix}", TOPICS)
    stream = read(path, label="topic", classes="all")
    assert classes_of(stream) == TOPICS
    assert stream.settings["classes"] == "all"
    assert classes_of(read(path, **stream.settings)) == TOPICS


@pytest.mark.parametrize("suffix", [".svm", ".vw"])
def test_classes_of_svmlight_and_vw_are_numbers(tmp_path, suffix):
    assert classes_of(read(put(tmp_path / f"a{suffix}", [3, 1, 2, 7, 1]), classes="all")) == [3, 1, 2, 7, 1]
    assert classes_of(read(put(tmp_path / f"b{suffix}", [0.5, 1, 2]), classes="all")) == [0.5, 1.0, 2.0]


def test_numbers_in_tables_are_text_as_written(tmp_path):
    assert classes_of(read(put(tmp_path / "a.csv", ["1", "2", "x"]), label="topic", classes="all")) == ["1", "2", "x"]


def test_parquet_and_frames(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "topics.parquet"
    parquet.write_table(pyarrow.table({"topic": TOPICS, "n": [1, 2, 3, 4, 5]}), path)
    assert classes_of(read(path, label="topic", classes="all")) == TOPICS


def test_rows_without_a_class_are_left_out_and_counted(tmp_path):
    stream = read(put(tmp_path / "a.csv", ["art", "", "law"]), label="topic", classes="all")
    assert classes_of(stream) == ["art", "law"]
    assert stream.unlabelled == 1


def test_rows_to_score_need_no_class(tmp_path):
    stream = read(put(tmp_path / "a.csv", ["art", "", "law"]), label="topic", classes="all", labels="optional")
    assert [(len(block), block.classes) for block in stream] == [(3, None)]


@pytest.mark.parametrize("memory", [1 << 12, 1 << 28])
def test_a_shuffle_keeps_classes_with_their_rows(tmp_path, memory):
    labels = [f"c{number % 7}" for number in range(2000)]
    path = put(tmp_path / "a.csv", labels)
    plain = OneVsRest()
    for block in read(path, label="topic", classes="all", shuffle=3, memory=memory):
        assert block.classes is not None
        plain.learn(block)
    assert plain.rows == 2000
    assert plain.macro_auc > 0.95  # the word tells the class


def test_one_chunk_with_a_single_class_is_no_error(tmp_path):
    assert classes_of(read(put(tmp_path / "a.csv", ["art"] * 3), label="topic", classes="all")) == ["art"] * 3


def test_positive_and_all_classes_cannot_be_combined(tmp_path):
    with pytest.raises(DataError, match="cannot be combined with classes='all'"):
        read(put(tmp_path / "a.csv", TOPICS), label="topic", classes="all", positive="art")


def test_other_words_are_no_classes(tmp_path):
    with pytest.raises(DataError, match="classes must be two different labels, .* or 'all'"):
        read(put(tmp_path / "a.csv", TOPICS), label="topic", classes="some")


def test_blocks_keep_their_classes():
    block = random_block(6, 5, 2)
    labelled = Block.of(block.to_csr(5), classes=["a", "b", "c", "a", "b", "c"])
    assert labelled[1:3].classes.tolist() == ["b", "c"]
    assert labelled.take(np.array([5, 0])).classes.tolist() == ["c", "a"]
    assert concatenate([labelled[:2], labelled[2:]]).classes.tolist() == labelled.classes.tolist()
    with pytest.raises(DataError, match="1 of 2 blocks have classes"):
        concatenate([labelled, Block.of(block.to_csr(5))])
    with pytest.raises(DataError, match=r"6 rows need classes of shape"):
        Block.of(block.to_csr(5), classes=["a"])
