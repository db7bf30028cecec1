"""Picking finds the rows and cells that the standard library's parsers find, and passes rows on as they are."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import struct
import termios
import threading
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream.errors import DataError
from rarestream.readers.picking import PickedRows, PickedTable, Wanted

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)
CELLS = st.one_of(TEXT, st.sampled_from(['"', ",", "\n", '""', "a,b", 'say "hi"', "", " x "]))


def picked(text: str | bytes, wanted: Wanted, **options: object) -> PickedRows:
    data = text.encode() if isinstance(text, str) else text
    (rows,) = PickedTable(io.BytesIO(data), wanted, max_bad_rows=10**6, **options)
    return rows


@given(st.lists(st.tuples(CELLS.filter(bool), CELLS, CELLS), min_size=1, max_size=8), st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=150, deadline=None)
def test_the_cells_of_csv_are_those_of_the_csv_module(rows: list[tuple[str, str, str]], end: str):
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator=end)
    writer.writerow(["key", "time", "one", "two"])
    for number, (key, one, two) in enumerate(rows):
        writer.writerow([key, number, one, two])
    found = picked(out.getvalue(), Wanted("key", "time"), format="csv", delimiter=",")
    assert [key.decode() for key in found.keys] == [row[0] for row in rows]
    assert found.times.tolist() == list(range(len(rows)))
    heading = f"key,time,one,two{end}"
    assert heading + "".join(row.decode() + end for row in found.rows) == out.getvalue()
    assert found.bad == []


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**15), 10**15), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)


@given(st.lists(st.tuples(TEXT.filter(bool), JSON), min_size=1, max_size=6), st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_cells_of_objects_are_those_of_the_json_module(rows: list[tuple[str, object]], ascii: bool):
    objects = [{"other": value, "key": key, "time": number} for number, (key, value) in enumerate(rows)]
    text = "".join(json.dumps(row, ensure_ascii=ascii) + "\n" for row in objects)
    found = picked(text, Wanted("key", "time"), format="jsonl")
    assert [key.decode() for key in found.keys] == [row[0] for row in rows]
    assert [json.loads(row + b"}") for row in found.rows] == objects


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-31T23:59:59Z", datetime.fromisoformat("2026-01-31T23:59:59+00:00").timestamp()),
        ("2026-01-31 23:59:59.250", datetime.fromisoformat("2026-01-31T23:59:59.250+00:00").timestamp()),
        ("2026-01-31T23:59:59.125+02:00", datetime.fromisoformat("2026-01-31T23:59:59.125+02:00").timestamp()),
        ("2026-01-31", datetime.fromisoformat("2026-01-31T00:00:00+00:00").timestamp()),
        ("1767225600", 1767225600.0),
        ("1767225600.5", 1767225600.5),
        ("1767225600500", 1767225600.5),
        ("1767225600500000", 1767225600.5),
        ("1767225600500000000", 1767225600.5),
        ("99999999999", 99999999999.0),
        ("100000000000", 100000000.0),
        ("-5", -5.0),
        ("0", 0.0),
    ],
)
def test_a_time_is_a_date_or_a_number_since_1970(text: str, seconds: float):
    assert picked(f"key,time\na,{text}\n", Wanted("key", "time"), format="csv").times.tolist() == [seconds]
    value = text if "-" not in text[1:] else f'"{text}"'
    assert picked(f'{{"key": "a", "time": {value}}}\n', Wanted("key", "time"), format="jsonl").times.tolist() == [
        seconds
    ]


@pytest.mark.parametrize("text", ["x", "nan", "inf", "2026-02-30", "2026-01-01T25:00", "007", "1e400"])
def test_what_is_no_time_is_an_invalid_row(text: str):
    found = picked(f"key,time\na,{text}\nb,1\n", Wanted("key", "time"), format="csv")
    assert found.keys == [b"b"] and len(found.bad) == 1 and "is no time" in found.bad[0]


def test_labels_and_lines():
    text = 'key,time,label\n\n"a\nb",1,x\n\nc,2,\nd,3,"y,"\n'
    found = picked(text, Wanted("key", "time", "label", rows=False), format="csv")
    assert found.keys == [b"a\nb", b"d"] and found.labels == [b"x", b"y,"] and found.rows == []
    assert found.lines.tolist() == [3, 7] and found.lines.dtype == np.int64
    assert found.bad == ["<file>:6:1: the label 'label' is missing. Every row needs one."]


def test_numbers_and_words_of_json_are_keys_as_they_are_written():
    text = "".join(f'{{"key": {key}, "time": 1}}\n' for key in ("12", "true", "1.5", '"12"', "null", "{}", "[1]"))
    found = picked(text, Wanted("key", "time"), format="jsonl")
    assert found.keys == [b"12", b"true", b"1.5", b"12"]
    assert [message.partition(": ")[2] for message in found.bad] == [
        "the key 'key' is missing. Every row needs one.",
        "'key' is a list or an object; one value is expected.",
        "'key' is a list or an object; one value is expected.",
    ]


def test_invalid_rows_of_the_format_are_named_by_its_parser():
    found = picked('{"key": 1, "time": 2}\n{"key": 1,}\n[]\n', Wanted("key", "time"), format="jsonl")
    assert len(found.keys) == 1 and "a key in double quotes is expected" in found.bad[0] and ":2:11:" in found.bad[0]
    assert "a line must be a JSON object" in found.bad[1]


def test_the_first_rows_of_a_pipe_are_waited_for():
    read_end, write_end = os.pipe()
    found: list[PickedRows] = []
    with open(read_end, "rb", buffering=0) as file:
        table = PickedTable(file, Wanted("key", ""))
        thread = threading.Thread(target=lambda: found.extend(table))
        thread.start()
        os.write(write_end, b"key,when\n")
        while struct.unpack("i", fcntl.ioctl(read_end, termios.FIONREAD, b"\0" * 4))[0]:
            pass  # until the heading has been read, alone
        os.write(write_end, b"a,2026-01-01\n")
        os.close(write_end)
        thread.join()
    assert [key for rows in found for key in rows.keys] == [b"a"] and table.wanted.time == "when"


def test_a_row_that_is_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rarestream.readers.picking.LONGEST_LINE", 1000)
    table = PickedTable(io.BytesIO(b'key,time\na,1\n"' + b"x" * (3 << 20)), Wanted("key", "time"), format="csv")
    with pytest.raises(DataError, match="never closed"):
        list(table)
