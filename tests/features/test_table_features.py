"""What the cells of a table become: the core against the textbook of this folder."""

from __future__ import annotations

import csv
import io
import itertools
import math
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream import _native
from tests.features import textbook

BITS = 22
KINDS = {"category": 1, "number": 2, "text": 4, "date": 8}

plain_text = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12)
numbers = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-1000, 1000, places=3, allow_nan=False).map(str),
    st.sampled_from(["0", "-0", "0.0", "007", "5.", ".5", "1e5", "+3", "-0.0", "1E-3", "12.50", "00", "1e-320"]),
)
dates = st.one_of(
    st.datetimes(datetime(1600, 1, 1), datetime(2400, 1, 1)).map(lambda when: when.isoformat(" ", "minutes")),
    st.datetimes(datetime(1600, 1, 1), datetime(2400, 1, 1)).map(lambda when: when.isoformat()),
    st.dates().map(str),
    st.sampled_from(["2026-02-28T23:30Z", "2026-02-28T23:30:59.5+02:00", "2024-02-29", "2026-03-01 00:10-0530"]),
)


def table(rows: list[dict[str, str]], kinds: dict[str, list[str]], **more: object) -> tuple[np.ndarray, ...]:
    """The rows of a table of text cells, as the core encodes them."""
    names = list(kinds)
    columns = [(name, sum(KINDS[kind] for kind in kinds[name]), 0) for name in names]
    arguments = {
        "bits": BITS, "names": True, "columns": columns, "crosses": [], "missing": [], "raw": False, "counts": False,
        "open": False, "characters": False, "shortest": 1, "longest": 1,
    }  # fmt: skip
    parser = _native.TableParser(**(arguments | more))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows(rows)
    text = np.frombuffer(out.getvalue().encode(), np.uint8)
    return parser.parse_csv(
        text, columns=list(range(len(names))), delimiter=",", quote='"', skip_header=False, stop_after=1
    )


def encoded(rows: list[dict[str, str]], kinds: dict[str, list[str]], **more: object) -> list[dict[int, float]]:
    indptr, indices, values, *_, bad, _, _ = table(rows, kinds, **more)
    assert not bad
    return [dict(zip(indices[a:b].tolist(), values[a:b].tolist(), strict=True)) for a, b in itertools.pairwise(indptr)]


def agree(found: dict[int, float], expected: textbook.Features) -> None:
    slots = textbook.slots(expected, BITS)
    # A logarithm at the very edge of a bucket may round to either side, with a share of 1e-15 that float32 keeps.
    found = {slot: value for slot, value in found.items() if abs(value) > 1e-9}
    slots = {slot: value for slot, value in slots.items() if abs(value) > 1e-9}
    assert found.keys() == slots.keys()
    for slot, value in slots.items():
        assert found[slot] == pytest.approx(value, rel=2e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [
        ("", 0, 0),
        ("", 1, 0x514E28B7),
        ("hello", 0, 0x248BFA47),
        ("hello, world", 0, 0x149BBB7F),
        ("aaaa", 0x9747B28C, 0x5A97808A),
        ("abc", 0x9747B28C, 0xC84A62DD),
    ],
)
def test_the_hash_has_its_published_values(text: str, seed: int, expected: int) -> None:
    assert _native.murmur3(text.encode(), seed) == expected == textbook.murmur3(text, seed)


@given(plain_text, plain_text)
def test_slots_agree_with_the_textbook(namespace: str, name: str) -> None:
    assert _native.feature_hash(namespace.encode(), name.encode()) & (1 << BITS) - 1 == textbook.slot(
        namespace, name, BITS
    )


@given(numbers)
def test_a_cell_is_a_number_when_the_textbook_says_so(cell: str) -> None:
    rows, columns = _native.survey_csv(
        np.frombuffer(f"{cell}\n".encode(), np.uint8),
        names=["x"],
        missing=[],
        delimiter=",",
        quote='"',
        skip_header=False,
    )
    assert rows == 1
    _, whole, decimal, date, text, _, _ = columns[0]
    expected = (
        (1, 0, 0) if textbook.whole_name(cell) is not None else (0, 1, 0) if textbook.is_decimal(cell) else (0, 0, 1)
    )
    assert (whole, decimal, date + text) == expected


@given(
    numbers.filter(lambda cell: textbook.whole_name(cell) is not None or textbook.is_decimal(cell)).filter(
        lambda cell: math.isfinite(float(cell))
    )
)
def test_numbers_agree_with_the_textbook(cell: str) -> None:
    for kinds in (["number"], ["category", "number"]):
        agree(encoded([{"x": cell}], {"x": kinds})[0], textbook.cell_features("x", cell, kinds))
    if abs(float(cell)) < 3e38:
        expected = textbook.cell_features("x", cell, ["number"], "raw")
        agree(encoded([{"x": cell}], {"x": ["number"]}, raw=True)[0], expected)


@given(dates)
def test_dates_agree_with_the_textbook(cell: str) -> None:
    expected = textbook.date_features("when", cell)
    assert expected is not None
    agree(encoded([{"when": cell}], {"when": ["date"]})[0], expected)


def test_weekdays_are_those_of_the_calendar() -> None:
    first = datetime(1999, 12, 25)
    rows = [{"when": str((first + timedelta(days=day)).date())} for day in range(3000)]
    found = encoded(rows, {"when": ["date"]})
    for row, features in zip(rows, found, strict=True):
        agree(features, textbook.date_features("when", row["when"]) or {})


@given(plain_text, st.sampled_from(["words:1", "words:1-2", "words:2-3", "chars:1", "chars:2-4"]), st.booleans())
def test_text_agrees_with_the_textbook(cell: str, ngrams: str, counts: bool) -> None:
    kind, _, sizes = ngrams.partition(":")
    shortest, _, longest = sizes.partition("-")
    found = encoded(
        [{"note": cell}],
        {"note": ["text"]},
        characters=kind == "chars",
        shortest=int(shortest),
        longest=int(longest or shortest),
        counts=counts,
    )
    agree(found[0], textbook.cell_features("note", cell, ["text"], ngrams=ngrams, counts=counts))


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "site": plain_text,
                "n": st.sampled_from(["1", "2", "30", ""]),
                "price": st.sampled_from(["1.5", "-2", "", "0"]),
            }
        ),
        min_size=1,
        max_size=5,
    )
)
def test_rows_with_crosses_agree_with_the_textbook(rows: list[dict[str, str]]) -> None:
    kinds = {"site": ["category"], "n": ["category", "number"], "price": ["number"]}
    crosses = ["site*n", "n*price", "site*n*price"]
    names = list(kinds)
    arguments = [(cross, [names.index(name) for name in cross.split("*")]) for cross in crosses]
    for row, found in zip(rows, encoded(rows, kinds, crosses=arguments), strict=True):
        agree(found, textbook.row_features(row, kinds, crosses=crosses))


def test_buckets_are_continuous_and_sum_to_one() -> None:
    cells = [repr(float(x)) for x in np.geomspace(1e-5, 1e7, 5000)]
    rows = encoded([{"x": cell} for cell in cells], {"x": ["number"]})
    assert all(sum(row.values()) == pytest.approx(1, abs=1e-6) for row in rows)
    slots = sorted({slot for row in rows for slot in row})
    dense = np.array([[row.get(slot, 0.0) for slot in slots] for row in rows])
    assert np.abs(np.diff(dense, axis=0)).max() < 0.02  # neighbouring numbers have neighbouring features


def test_the_extremes_of_float64_have_buckets() -> None:
    for cell in ("5e-324", "1.7976931348623157e308", "-5e-324"):
        row = encoded([{"x": cell}], {"x": ["number"]})[0]
        assert sum(row.values()) == pytest.approx(1)


def test_names_are_those_of_the_features(tmp_path: object) -> None:
    rows = [{"site": "a.com", "n": "7", "price": "2.5"}]
    parsed = table(
        rows, {"site": ["category"], "n": ["category", "number"], "price": ["number"]}, crosses=[("site*n", [0, 1])]
    )
    names = _native.NameTable(BITS)
    names.add(parsed[-1])
    shown = set(names.names(parsed[1]))
    assert shown == {"site^a.com", "n^7", "n^~2^2.5", "n^~2^3", "price^~2^1", "price^~2^1.5", "site*n^a.com\x1f7"}


def test_a_dropped_row_leaves_no_names() -> None:
    parsed = table([{"site": "only-here", "price": "abc"}], {"site": ["category"], "price": ["number"]})
    assert parsed[-1] is None and len(parsed[-3]) == 1
