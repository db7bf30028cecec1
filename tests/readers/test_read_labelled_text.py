"""Lines of label, tab and free text: words as features, and what is said of lines that are wrong."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream import Block, DataError, Hashed, Model, read
from rarestream.blocks import concatenate
from rarestream.readers.formats import load_format
from rarestream.readers.sources import expand
from rarestream.readers.stream import Stream
from tests.features import textbook

ROWS = "spam\tWin a PRIZE now, win!\nham\tsee you at 5\nham\t\nham\tnaïve café 日本\n"


def stream_of(text: str | bytes, chunk: int = 1 << 20, **options: Any) -> Stream:
    format = load_format("text")
    data = text.encode() if isinstance(text, str) else text
    return Stream(expand(io.BytesIO(data)), format, format.make_options(**options), rows=8192, chunk=chunk)


def rows_of(stream: Stream) -> Block:
    return concatenate(list(stream))


def slots_of(block: Block) -> list[dict[int, float]]:
    return [
        dict(zip(block.indices[a:b].tolist(), block.values[a:b].tolist(), strict=True))
        for a, b in zip(block.indptr[:-1], block.indptr[1:], strict=True)
    ]


def expected(text: str, ngrams: str = "words:1", counts: bool = False) -> list[dict[int, float]]:
    cells = [line.split("\t", 1)[1] for line in text.split("\n") if line]
    rows = [textbook.cell_features("text", cell, ["text"], ngrams=ngrams, counts=counts) for cell in cells]
    return [textbook.slots(row, 22) for row in rows]


def test_words_are_features_of_the_namespace_text() -> None:
    stream = stream_of(ROWS)
    block = rows_of(stream)
    assert block.labels is not None and block.labels.tolist() == [1, -1, -1, -1]
    assert slots_of(block) == expected(ROWS)
    assert "spam" in stream.notes[0]  # which label counts as positive is said
    assert isinstance(stream.features, Hashed) and stream.features.names is not None
    assert stream.features.names.names(block.indices[block.indptr[1] : block.indptr[2]]) == [
        f"text^{word}" for word in sorted(["see", "you", "at", "5"], key=lambda word: textbook.slot("text", word, 22))
    ]


@pytest.mark.parametrize("ngrams", ["words:1", "words:1-2", "words:2", "chars:3", "chars:1-4"])
@pytest.mark.parametrize("counts", [False, True])
def test_ngrams_and_counts(ngrams: str, counts: bool) -> None:
    block = rows_of(stream_of(ROWS, ngrams=ngrams, counts=counts))
    assert slots_of(block) == expected(ROWS, ngrams, counts)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=20)


@given(
    lines=st.lists(texts, min_size=2, max_size=8),
    chunk=st.sampled_from([8, 64, 1 << 20]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_any_text_after_the_tab_is_read(lines: list[str], chunk: int, end: str) -> None:
    text = "".join(f"{number % 2}\t{line}{end}" for number, line in enumerate(lines))
    assert slots_of(rows_of(stream_of(text, chunk, positive=1))) == expected(text.replace("\r\n", "\n"))


def test_labels_are_text_or_numbers_and_an_empty_one_is_missing() -> None:
    assert rows_of(stream_of("1\ta\n0\tb\n")).labels.tolist() == [1, -1]  # type: ignore[union-attr]
    assert rows_of(stream_of("yes\ta\nno\tb\n")).labels.tolist() == [1, -1]  # type: ignore[union-attr]
    assert rows_of(stream_of("a\tx\nb\ty\n", positive="b")).labels.tolist() == [-1, 1]  # type: ignore[union-attr]
    stream = stream_of("1\ta\n\tunknown\n0\tb\n")
    assert len(rows_of(stream)) == 2
    assert stream.unlabelled == 1
    assert sum(len(block) for block in stream_of("1\ta\n\tunknown\n0\tb\n", labels="optional")) == 3


def test_blank_lines_are_skipped_and_the_last_line_end_may_be_missing() -> None:
    block = rows_of(stream_of("\n1\ta\r\n\r\n0\tb\tc"))
    assert slots_of(block) == expected("1\ta\n0\tb\tc")


@pytest.mark.parametrize("threads", [0, 3])
def test_threads_and_chunks_leave_no_trace(threads: int) -> None:
    text = "".join(f"{number % 3 == 0:d}\tword{number % 50} and word{number * 7 % 90}\n" for number in range(400))
    whole, cut = stream_of(text, threads=0, bits=8), stream_of(text, 50, threads=threads, bits=8, positive=1)
    assert slots_of(rows_of(whole)) == slots_of(rows_of(cut))
    tables = [stream.features.names for stream in (whole, cut)]
    assert tables[0].collisions == tables[1].collisions
    arrays = [table.to_arrays(np.arange(256, dtype=np.int32), True) for table in tables]
    assert all((one == other).all() for one, other in zip(*arrays, strict=True))


@pytest.mark.parametrize(
    ("line", "place", "said"),
    [
        (
            b"no tab here",
            "3:1",
            "a row is a label, a tab and text, but this one, which starts with 'no tab here', has no",
        ),
        (b"1\ta\0b", "3:4", "a NUL byte; this looks like binary data, or UTF-16, not text in UTF-8."),
        (b"1\tcaf\xe9", "3:6", "not UTF-8, '\\xe9'. Convert the file, for example with iconv -f latin1 -t utf8."),
    ],
)
def test_a_line_that_is_wrong_is_named_with_its_rule(line: bytes, place: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.text"
    path.write_bytes(b"1\ta\n0\tb\n" + line + b"\n1\tc\n")
    with pytest.raises(DataError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"{path}:{place}: ")
    assert said in str(caught.value)
    assert len(rows_of(read(path, max_bad_rows=1))) == 3


def test_a_model_keeps_how_its_text_was_split(tmp_path: Path) -> None:
    path = tmp_path / "rows.text"
    path.write_text(ROWS * 10)
    model = Model("ftrl-auc")
    for block in read(path, ngrams="words:1-2"):
        model.learn(block)
    assert isinstance(model.features, Hashed)
    (block,) = read(path, features=model.features)
    assert slots_of(block)[:4] == expected(ROWS, "words:1-2")
    assert model.score_one({"text": "see you at 5"}) == pytest.approx(float(model.score(block)[1]))
    with pytest.raises(DataError, match="ngrams must be 'words:1-2', as in the model"):
        list(read(path, features=model.features, ngrams="chars:3"))


def test_a_model_of_another_table_is_refused(tmp_path: Path) -> None:
    table, rows = tmp_path / "t.csv", tmp_path / "rows.text"
    table.write_text("y,site\n1,a.com\n0,b.com\n")
    rows.write_text(ROWS)
    stream = read(table, label="y")
    list(stream)
    with pytest.raises(DataError, match="trained on a table without a column 'text' of free text"):
        list(read(rows, features=stream.features))
