"""Stopping and going on equals never having stopped, byte for byte."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rarestream import Model, read
from rarestream.errors import DataError
from rarestream.evaluate import Place, Run, place_in, train
from rarestream.readers.sources import expand


def rows(first: int, last: int) -> str:
    """Small svmlight rows that differ from each other."""
    draw = random.Random(first)
    return "".join(
        f"{draw.choice((-1, 1))} {i % 50 + 1}:{draw.random():.3f} {i % 7 + 60}:1\n" for i in range(first, last)
    )


def gone_on(model: Model, path: object, **changes: object) -> Run:
    """What `train --resume` does."""
    model = Model.from_bytes(model.to_bytes())
    place = place_in(model.source, expand(path))
    run = Run(model, read(path, rows=64, **place.settings), place=place, **changes)
    for _ in run:
        pass
    return run


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    stops=st.lists(st.integers(1, 300), min_size=1, max_size=4),
    shuffle=st.sampled_from([None, 17]),
    passes=st.integers(1, 2),
    learner=st.sampled_from(["dual-auc", "ftrl-proximal"]),
)
def test_resuming_anywhere_equals_never_having_stopped(tmp_path, stops, shuffle, passes, learner):
    path = tmp_path / "data.svm"
    path.write_text(rows(0, 400))
    whole = Model(learner)
    train(whole, read(path, shuffle=shuffle), passes=passes)
    model = Model(learner)
    train(model, read(path, shuffle=shuffle), passes=passes, max_rows=stops[0])
    for stop in stops[1:]:
        model = gone_on(model, path, max_rows=stop).model
    model = gone_on(model, path).model
    assert model.to_bytes() == whole.to_bytes()


def test_more_passes_later_equal_as_many_at_once(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text(rows(0, 300))
    once, thrice = Model("dual-auc"), Model("dual-auc")
    train(once, read(path))
    train(thrice, read(path), passes=3)
    assert gone_on(once, path, passes=3).model.to_bytes() == thrice.to_bytes()


def test_data_learned_to_the_end_have_nothing_new(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text(rows(0, 300))
    model = Model("dual-auc")
    train(model, read(path))
    run = gone_on(model, path)
    assert run.rows == 0
    assert run.place.complete
    assert run.model.to_bytes() == model.to_bytes()


@pytest.mark.parametrize("size", [30, 10_000])  # below and beyond the 64 KiB that the checksum covers
def test_a_log_that_grew_goes_on_where_it_stopped(tmp_path, size):
    path = tmp_path / "log.svm"
    path.write_text(rows(0, size))
    model = Model("dual-auc")
    train(model, read(path))
    with path.open("a") as file:
        file.write(rows(size, size + 500))
    whole = Model("dual-auc")
    train(whole, read(path))
    run = gone_on(model, path)
    assert run.rows == 500
    assert run.model.to_bytes() == whole.to_bytes()


def test_a_log_that_got_a_successor_goes_on_in_it(tmp_path):
    first, second = tmp_path / "day1.svm", tmp_path / "day2.svm"
    first.write_text(rows(0, 300))
    second.write_text(rows(300, 500))
    model, whole = Model("dual-auc"), Model("dual-auc")
    train(model, read(first), max_rows=250)
    train(whole, read([first, second]))
    run = gone_on(model, [first, second])
    assert run.rows == 250
    assert run.model.to_bytes() == whole.to_bytes()


def test_other_data_are_learned_from_their_start(tmp_path):
    first, second = tmp_path / "day1.svm", tmp_path / "day2.svm"
    first.write_text(rows(0, 300))
    second.write_text(rows(300, 500))
    model = Model("dual-auc")
    train(model, read(first), max_rows=250)
    run = gone_on(model, second)
    assert run.rows == 200
    assert run.model.rows == 450
    assert run.model.source["files"][0]["name"] == "day2.svm"


def test_a_file_of_the_same_name_with_other_rows_is_other_data(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text(rows(0, 300))
    model = Model("dual-auc")
    train(model, read(path))
    path.write_text(rows(1, 400))
    assert not place_in(model.source, expand(path)).known
    path.write_text(rows(0, 200))  # rows of the head that was learned are gone
    assert not place_in(model.source, expand(path)).known


def test_a_file_that_moved_is_known_by_its_name_and_head(tmp_path):
    path, moved = tmp_path / "data.svm", tmp_path / "elsewhere" / "data.svm"
    path.write_text(rows(0, 300))
    model = Model("dual-auc")
    train(model, read(path), max_rows=100)
    moved.parent.mkdir()
    path.rename(moved)
    assert place_in(model.source, expand(moved)).rows == 100


def test_a_shuffled_file_that_grew_is_refused_with_a_way_on(tmp_path):
    path = tmp_path / "log.svm"
    path.write_text(rows(0, 300))
    model = Model("dual-auc")
    train(model, read(path, shuffle=1))
    with path.open("a") as file:
        file.write(rows(300, 310))
    with pytest.raises(DataError, match="another size than when it was learned in shuffled order"):
        place_in(model.source, expand(path))


def test_a_zero_based_file_stays_zero_based(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("1 0:1 3:1\n-1 2:1\n" * 100)
    model = Model("dual-auc")
    train(model, read(path), max_rows=10)
    assert model.source["settings"]["zero_based"] is True
    assert gone_on(model, path).model.n_features == 4


@pytest.mark.parametrize(
    "source",
    [{}, {"files": 3}, {"files": [{"name": "data.svm"}]}, {"files": [], "pass": "x"}, {"mine": "own notes"}],
)
def test_a_source_that_says_nothing_usable_means_new_data(tmp_path, source):
    path = tmp_path / "data.svm"
    path.write_text(rows(0, 3))
    assert place_in(source, expand(Path(path))) == Place()


@pytest.mark.parametrize(
    "change",
    [
        {"files": []},
        {"rows": -1},
        {"pass": "1"},
        {"passes": None},
        {"settings": {}},
        {"settings": {"format": 3, "zero_based": None, "positive": None, "shuffle": None}},
        {"settings": {"format": None, "zero_based": None, "positive": None, "shuffle": "x"}},
        {"files": [{"name": 1, "size": 1, "crc32": 1}]},
        {"files": [{"name": "data.svm", "size": "1", "crc32": 1}]},
    ],
)
def test_a_source_from_a_hostile_file_means_new_data(tmp_path, change):
    path = tmp_path / "data.svm"
    path.write_text(rows(0, 3))
    model = Model("dual-auc")
    train(model, read(path))
    assert place_in(model.source, expand(path)).known
    assert place_in({**model.source, **change}, expand(path)) == Place()
