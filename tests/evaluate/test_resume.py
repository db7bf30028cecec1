"""Stopping and going on equals never having stopped, byte for byte."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import sys
import zlib
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rarestream import Model, read
from rarestream.errors import DataError
from rarestream.evaluate import Place, TrainingRun, place_in, reading_settings, train
from rarestream.readers.sources import Source, expand


def rows(first: int, last: int) -> str:
    """Small svmlight rows that differ from each other."""
    draw = random.Random(first)
    return "".join(
        f"{draw.choice((-1, 1))} {i % 50 + 1}:{draw.random():.3f} {i % 7 + 60}:1\n" for i in range(first, last)
    )


def gone_on(model: Model, path: object, **changes: object) -> TrainingRun:
    """What `train --resume` does."""
    model = Model.from_bytes(model.to_bytes())
    place = place_in(model.source, expand(path))
    run = TrainingRun(model, read(path, rows=64, **place.settings), place=place, **changes)
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


def test_bad_rows_that_were_skipped_are_skipped_again(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text(rows(0, 10) + "1 x:1\n" + rows(10, 300))
    model, whole = Model("dual-auc"), Model("dual-auc")
    train(model, read(path, max_bad_rows=1), max_rows=100)
    train(whole, read(path, max_bad_rows=1))
    assert gone_on(model, path).model.to_bytes() == whole.to_bytes()


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


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
@pytest.mark.parametrize("size", [30, 10_000])
@pytest.mark.parametrize("appended", [False, True])
def test_a_compressed_log_that_grew_goes_on_where_it_stopped(tmp_path, compress, size, appended):
    path = tmp_path / "log.svm.gz"
    path = path.with_suffix({gzip: ".gz", bz2: ".bz2", lzma: ".xz"}.get(sys.modules[compress.__module__], ".zst"))
    first, more = rows(0, size).encode(), rows(size, size + 500).encode()
    path.write_bytes(compress(first))
    model = Model("dual-auc")
    train(model, read(path))
    path.write_bytes(compress(first) + compress(more) if appended else compress(first + more))
    whole = Model("dual-auc")
    train(whole, read(path))
    run = gone_on(model, path)
    assert run.rows == 500
    assert run.model.to_bytes() == whole.to_bytes()
    path.write_bytes(compress(rows(1, size).encode()))
    assert not place_in(model.source, expand(path)).known


def test_a_file_known_by_its_stored_bytes_as_older_models_do_is_known_again(tmp_path):
    path = tmp_path / "log.svm.gz"
    data = gzip.compress(rows(0, 3000).encode(), mtime=0)
    for size in (len(data), len(data) + 5):
        path.write_bytes(data)
        model = Model("dual-auc")
        train(model, read(path), max_rows=100)
        entry = {"name": "log.svm.gz", "size": len(data), "crc32": zlib.crc32(data[: 1 << 16])}
        old = {word: model.source["settings"][word] for word in ("format", "zero_based", "positive", "shuffle")}
        model.source = {**model.source, "files": [entry], "settings": old}
        path.write_bytes(data.ljust(size, b"\0"))
        assert place_in(model.source, expand(path)).rows == 100
        assert gone_on(model, path).rows == 2900


def test_a_damaged_file_is_an_error_when_it_is_read_and_not_before(tmp_path):
    path = tmp_path / "log.svm.gz"
    data = gzip.compress(rows(0, 300).encode())
    path.write_bytes(data)
    model = Model("dual-auc")
    train(model, read(path), max_rows=100)
    for bad in (data[:5], b"no gzip at all", data[:200] + b"????" + data[204:], b""):
        path.write_bytes(bad)
        place_in(model.source, expand(path))
        assert len(read(path).sources) == 1
        with pytest.raises(DataError):
            list(read(path))


def test_a_line_that_was_being_written_is_learned_once_when_it_is_whole(tmp_path):
    path = tmp_path / "log.svm"
    text = rows(0, 300)
    path.write_text(text[:-5])
    model, whole = Model("dual-auc"), Model("dual-auc")
    run = train(model, read(path, finished=False))
    assert run.rows == 299
    assert not run.place.complete
    again = gone_on(model, path)
    assert (again.rows, again.place.complete) == (0, False)
    path.write_text(text + rows(300, 310))
    train(whole, read(path))
    run = gone_on(again.model, path)
    assert run.rows == 11
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
    with pytest.raises(DataError, match="has changed size since it was learned in shuffled order"):
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
        {"files": [{"name": "data.svm", "size": 1, "crc32": 1, "text": "x"}]},
        {"files": [{"name": "data.svm", "size": 1, "crc32": 1, "text": 1 << 40}]},
        {"files": ["data.svm"]},
        *(
            {"settings": {"format": None, "zero_based": None, "positive": None, "shuffle": None, **wrong}}
            for wrong in ({"classes": 3}, {"classes": [1, "two"]}, {"max_bad_rows": -1}, {"finished": 3})
        ),
    ],
)
def test_a_source_from_a_hostile_file_means_new_data(tmp_path, change):
    path = tmp_path / "data.svm"
    path.write_text(rows(0, 3))
    model = Model("dual-auc")
    train(model, read(path))
    assert place_in(model.source, expand(path)).known
    assert place_in({**model.source, **change}, expand(path)) == Place()


# -- another format, with options of its own and labels that are text


def table(path: Path, first: int, last: int) -> Path:
    path.write_text("a\tkind\n" + "".join(f"{i % 9}\t{'spam' if i % 4 == 0 else 'ham'}\n" for i in range(first, last)))
    return path


def test_labels_that_are_text_are_the_same_after_a_stop(tab_format, tmp_path):
    path = table(tmp_path / "a.tab", 0, 300)
    how = {"target": "kind", "base": 3}
    model, whole = Model("dual-auc"), Model("dual-auc")
    train(model, read(path, **how), max_rows=100)
    train(whole, read(path, **how))
    assert model.source["settings"]["classes"] == ["ham", "spam"]
    assert gone_on(model, path).model.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("wrong", [{"base": 12}, {"drop": "x", "base": "y"}, {"classes": ["a"]}, {"positive": []}])
def test_settings_of_a_format_are_checked_by_its_options(tab_format, tmp_path, wrong):
    path = table(tmp_path / "a.tab", 0, 300)
    model = Model("dual-auc")
    train(model, read(path, target="kind"))
    assert place_in(model.source, expand(path)).known
    settings = {**model.source["settings"], **wrong}
    assert place_in({**model.source, "settings": settings}, expand(path)) == Place()


def test_data_of_a_format_that_is_not_known_are_known_but_cannot_be_read(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text(rows(0, 30))
    model = Model("dual-auc")
    train(model, read(path))
    model.source = {**model.source, "settings": {**model.source["settings"], "format": "later"}}
    place = place_in(model.source, expand(path))
    assert place.known and place.settings["format"] == "later"
    with pytest.raises(DataError, match="format must be one of"):
        read(path, **{word: value for word, value in place.settings.items() if word != "zero_based"})


def test_other_data_are_read_with_what_the_model_remembers_where_their_format_has_it(tab_format, tmp_path):
    path = table(tmp_path / "a.tab", 0, 300)
    model, numbers = Model("dual-auc"), Model("dual-auc")
    train(model, read(path, target="kind", base=3, max_bad_rows=5, shuffle=7))
    labels = {"classes": ["ham", "spam"]}
    kept = {"target": "kind", "base": 3, "drop": [], "strict": False, **labels}
    assert reading_settings(model.source) == {"format": "tab", **kept}
    for name, expected in (("b.tab", kept), ("-", {"format": "tab", **kept}), ("b.svm", {})):
        source = Source(name, name, None)
        assert reading_settings(model.source, [source]) == expected
    assert reading_settings(model.source, [Source("b.svm", "b.svm", None)], "tab") == kept
    assert reading_settings(model.source, [Source("b.tab", "b.tab", None)], "svmlight") == {}
    svm = tmp_path / "a.svm"
    svm.write_text(rows(0, 30).replace("-1 ", "0 "))
    train(numbers, read(svm, zero_based=True))
    assert reading_settings(numbers.source) == {"zero_based": True, "classes": [None, 1]}
    assert reading_settings(numbers.source, expand(path)) == {"classes": [None, 1]}
