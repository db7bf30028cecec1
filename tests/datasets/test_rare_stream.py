"""make_rare_stream: the same rows in every form, labels that come late, and a best AUC that is one."""

from __future__ import annotations

import csv
import gzip
import hashlib
import itertools
import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import DataError, Model, auc, datasets, read
from rarestream.blocks import concatenate
from rarestream.datasets import RareStream, make_rare_stream
from rarestream.evaluate.synthetic import BLOCK, Planted

SMALL = {"fields": [2, 5, 40], "positives": 0.2, "seed": 3}


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, strict=True))


def test_it_is_the_planted_stream():
    made = concatenate(make_rare_stream(9000, seed=5, positives=0.1, drift=3000))
    planted = concatenate(part.block for part in Planted.plant(5, 0.1, drift=3000).rows(9000))
    assert (made.indices == planted.indices).all() and (made.labels == planted.labels).all()


def test_every_form_has_the_same_rows(tmp_path):
    stream = make_rare_stream(BLOCK + 100, **SMALL)
    block = concatenate(stream)
    dicts = list(stream.dicts())
    stream.to_csv(tmp_path / "rows.csv")
    stream.to_csv(tmp_path / "again.csv.gz")
    stream.to_jsonl(tmp_path / "rows.jsonl")
    stream.to_svmlight(tmp_path / "rows.svm")
    expected = [{"label": str(label), **row} for row, label in dicts]
    assert table(tmp_path / "rows.csv") == expected
    assert gzip.decompress((tmp_path / "again.csv.gz").read_bytes()) == (tmp_path / "rows.csv").read_bytes()
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert lines == [{"label": label, **row} for row, label in dicts]
    found = concatenate(read(tmp_path / "rows.svm"))
    assert (found.indices == block.indices).all() and (found.labels == block.labels).all()
    assert [label for _, label in dicts] == (block.labels > 0).astype(int).tolist()
    truth = stream.truth()  # by name the rows have the weights that they have by column
    by_name = [sum(truth.get(item, 0.0) for item in row.items()) for row, _ in dicts]
    by_column = stream.weights[block.indices.reshape(len(block), -1)].sum(axis=1)
    np.testing.assert_allclose(by_name, by_column, atol=1e-12)
    assert len(set(by_name)) > 50


def test_names_and_columns_are_learned_alike(tmp_path):
    stream = make_rare_stream(20_000, positives=0.1)
    stream.to_csv(tmp_path / "rows.csv")
    columns, names = Model("dual-auc"), Model("dual-auc")
    for block in stream:
        columns.learn(block)
    for block in read(tmp_path / "rows.csv", label="label"):
        names.learn(block)
    assert abs(columns.progress.auc - names.progress.auc) < 1e-3
    row, label = next(stream.dicts())
    names.learn_one(row, label)


def test_the_seed_decides_every_byte(tmp_path):
    """These digests are the same on every machine, in every version."""
    stream = make_rare_stream(3000, **SMALL, noise=0.1, drift=1000, label_delay=500.0, rate=0.5)
    stream.to_csv(tmp_path / "rows.csv")
    stream.events(tmp_path / "events.csv")
    stream.labels(tmp_path / "labels.csv")
    digests = [
        hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()[:16]
        for name in ("rows.csv", "events.csv", "labels.csv")
    ]
    assert digests == ["48bf04d30a4e2d16", "a6546990519bc80d", "a9f5a8893bf16529"]
    other = make_rare_stream(3000, **{**SMALL, "seed": 4})
    other.to_csv(tmp_path / "other.csv")
    assert (tmp_path / "other.csv").read_bytes() != (tmp_path / "rows.csv").read_bytes()


def test_the_best_auc_is_that_of_the_truth_and_noise_lowers_it():
    stream = make_rare_stream(30_000, positives=0.1)
    weights = stream.weights
    block = concatenate(stream)
    best = auc(block.labels, weights[block.indices.reshape(len(block), -1)].sum(axis=1))
    assert float(stream.best_auc()) == pytest.approx(best, abs=1e-6)
    assert stream.best_auc(10_000) != stream.best_auc()
    noisy = [float(make_rare_stream(30_000, positives=0.1, noise=noise).best_auc()) for noise in (0.0, 0.3, 1.0)]
    assert noisy[0] > noisy[1] + 0.05 > noisy[2] and abs(noisy[2] - 0.5) < 0.02
    with pytest.raises(ValueError, match="read-only"):
        weights[0] = 1


def test_a_learner_comes_close_to_the_best_auc_and_not_beyond():
    stream = make_rare_stream(60_000, positives=0.1)
    model = Model("dual-auc")
    for block in stream:
        model.learn(block)
    held_out = stream.held_out(20_000)
    block = concatenate(held_out)
    found, best = auc(block.labels, model.score(block)), held_out.best_auc()
    assert best - 0.05 < found < best
    another = held_out.held_out(100)
    assert another.part not in (0, 1, 2)  # part 2 is what the intercept was fitted to
    assert (concatenate(held_out)[:100].indices != concatenate(stream)[:100].indices).any()


def test_the_truth_is_by_name_and_turns_over_with_drift():
    stream = make_rare_stream(1000, **SMALL, planted=10, drift=4 * BLOCK)
    first, later = stream.truth(), stream.truth(8 * BLOCK)
    assert set(first) == set(later) and len(first) == 10
    assert all(first[name] != later[name] for name in first)
    sizes = [abs(weight) for weight in first.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert all(field in stream.fields and value.startswith("v") for field, value in first)
    assert sorted(first.values()) == sorted(stream.weights[stream.weights != 0].tolist())


def test_fields_have_names_and_sizes():
    assert make_rare_stream(10).fields[:2] == ["f01", "f02"] and len(make_rare_stream(10).fields) == 24
    assert make_rare_stream(10, fields=3).sizes[0] == 2
    assert make_rare_stream(10, fields=[7, 1]).sizes == [7, 1]
    assert make_rare_stream(10, fields=(2,) * 120).fields[-1] == "f120"
    assert len(make_rare_stream(17)) == 17
    assert repr(make_rare_stream(1000)) == "<RareStream: 1,000 rows, 24 fields, 0.02 positive>"
    assert isinstance(make_rare_stream(1), RareStream)


def parsed(rows: list[dict[str, str]]) -> list[tuple[int, int]]:
    """The time of every row, in seconds after the start, and the number of its event."""
    start = datetime(2026, 1, 1)
    return [
        (int((datetime.fromisoformat(row["time"]) - start).total_seconds()), int(row["id"].removeprefix("e")))
        for row in rows
    ]


@settings(max_examples=15, deadline=None)
@given(
    rows=st.integers(1, 2 * BLOCK + 10),
    delay=st.one_of(st.none(), st.floats(0, 50_000)),
    rate=st.sampled_from([0.25, 1.0, 7.0]),
    wait=st.one_of(st.none(), st.sampled_from([0.0, 100.0])),
    positives_only=st.booleans(),
)
def test_labels_come_once_in_order_and_never_before_their_event(
    tmp_path_factory, rows, delay, rate, wait, positives_only
):
    folder = tmp_path_factory.mktemp("late")
    stream = make_rare_stream(rows, **SMALL, label_delay=delay, rate=rate)
    stream.events(folder / "events.csv")
    written, late = stream.labels(folder / "labels.csv", wait=wait, positives_only=positives_only)
    events, labels = table(folder / "events.csv"), table(folder / "labels.csv")
    assert list(events[0]) == ["id", "time", *stream.fields]
    times = {event: time for time, event in parsed(events)}
    assert list(times) == list(range(rows)) and list(times.values()) == [int(i / rate) for i in range(rows)]
    arrivals = parsed(labels)
    assert arrivals == sorted(arrivals)
    truth = concatenate(stream).labels > 0
    wanted = set(np.flatnonzero(truth).tolist()) if positives_only else set(range(rows))
    came = {event for _, event in arrivals}
    assert len(came) == len(arrivals) == written and came <= wanted and late == len(wanted) - len(came)
    assert all(time >= times[event] for time, event in arrivals)
    assert all(int(row["label"]) == truth[event] for row, (_, event) in zip(labels, arrivals, strict=True))
    if wait is None:
        assert late == 0
    else:
        assert all(time <= times[rows - 1] + wait for time, _ in arrivals)
    if delay is None:
        assert [time - times[event] for time, event in arrivals] == [0] * written


def test_the_mean_delay_is_as_asked():
    delays = np.concatenate(list(make_rare_stream(60_000, **SMALL, label_delay=3600).delays()))
    assert abs(delays.mean() - 3600) < 60
    assert abs((delays > 3600).mean() - np.exp(-1)) < 0.01  # exponential: many are much later


def test_late_labels_hold_no_more_than_what_is_still_to_come():
    stream = make_rare_stream(40 * BLOCK, fields=[2], label_delay=100.0)
    largest = max(len(events) for events, _, _ in stream._arrivals(0.0, False, [0]))
    assert largest < 2 * BLOCK


def test_tables_as_json_lines_and_their_names(tmp_path):
    stream = make_rare_stream(5, **SMALL, label_delay=10)
    stream.events(tmp_path / "events.jsonl.gz")
    lines = gzip.decompress((tmp_path / "events.jsonl.gz").read_bytes()).decode().splitlines()
    row, _ = next(stream.dicts())
    assert json.loads(lines[0]) == {"id": "e0", "time": "2026-01-01T00:00:00", **row}
    stream.labels(tmp_path / "labels.jsonl", wait=None)
    assert set(json.loads((tmp_path / "labels.jsonl").read_text().splitlines()[0])) == {"id", "time", "label"}
    with pytest.raises(DataError, match=r"the name must end in .csv or .jsonl"):
        stream.events(tmp_path / "events.txt")
    with pytest.raises(DataError, match=r"plain or as .gz, not as .xz"):
        stream.to_csv(tmp_path / "rows.csv.xz")
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rows": 1e5}, "rows must be a whole number, got 100000.0"),
        ({"fields": [2.5]}, "fields must be a whole number, got 2.5"),
        ({"fields": "many"}, "fields must be a whole number, got 'm'"),
        ({"rows": 0}, "rows must be at least 1, got 0"),
        ({"positives": 0.0}, "positives must be between 0 and 1, got 0.0"),
        ({"positives": 1.0}, "positives must be between"),
        ({"drift": -1}, "drift must be >= 0 rows, got -1"),
        ({"noise": 1.5}, "noise must be between 0 and 1, got 1.5"),
        ({"noise": float("nan")}, "noise must be between 0 and 1, got nan"),
        ({"label_delay": -3.0}, "label_delay must be between 0 and 1e9 seconds, got -3.0"),
        ({"rate": 0.0}, "rate must be above 0"),
        ({"fields": 0}, "fields must be between 1 and 1,000, got 0"),
        ({"fields": []}, "fields must be at least one number of values"),
        ({"fields": [3, 0]}, "fields must be at least one number of values, each at least 1"),
        ({"fields": [10**9]}, "fields must be of at most 67,108,864 values together, got 1,000,000,000 values"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"planted": -1}, "planted must be at least 0"),
        ({"strength": -1.0}, "strength must be between"),
    ],
)
def test_parameters_out_of_range_are_refused(wrong, message):
    with pytest.raises(DataError, match=f"make_rare_stream: {message}"):
        make_rare_stream(**wrong)


def test_rows_are_made_when_they_are_needed():
    stream = make_rare_stream(10**12)  # which no memory holds
    assert len(next(iter(stream))) == BLOCK
    assert len(list(itertools.islice(stream.dicts(), 3))) == 3


def test_it_is_public():
    assert datasets.make_rare_stream is make_rare_stream
    assert "make_rare_stream" in datasets.__all__
