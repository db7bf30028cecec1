"""Every row of a stream is learned once, in order: the model is that of one machine, whatever is killed when."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from rarestream import DataError, Model, read
from rarestream.spark.streaming import stream_fit
from tests.children import run
from tests.spark.cluster import ROOT
from tests.spark.streams import ARGUMENTS, block_of, make_rows, read_stream, write_file

FILES = 4
TABLE = "site string, price double, clicked string"


def contents(model: Model | Path) -> bytes:
    """All bytes of a model but where its rows came from."""
    model = Model.load(model) if isinstance(model, Path) else model
    model.source = {}
    return model.to_bytes()


def sequential(files: int = FILES, first: int = 0) -> Model:
    """The model of one machine, still in its race of settings."""
    model = Model()
    for number in range(first, files):
        model.learn(block_of(make_rows(300, number)))
    return model


def write_files(folder: Path, files: int = FILES, first: int = 0) -> None:
    for number in range(first, files):
        write_file(folder / "rows", number, make_rows(300, number))


def fit(spark: Any, folder: Path, **more: Any) -> Any:
    stream = read_stream(spark, folder / "rows")
    arguments = {"checkpoint": folder / "checkpoint", **ARGUMENTS, **more}
    return stream_fit(stream, folder / "model.rare", **arguments)


def failure(query: Any) -> str:
    with pytest.raises(Exception, match="DataError") as caught:  # the class depends on the kind of session
        query.awaitTermination()
    return str(caught.value)


@pytest.mark.parametrize("kind", ["spark", "connect"])
def test_a_stream_gives_the_model_of_one_machine_and_goes_on_where_it_stopped(kind, request, tmp_path):
    session = request.getfixturevalue(kind)
    write_files(tmp_path, 2)
    fit(session, tmp_path).awaitTermination()
    assert contents(tmp_path / "model.rare") == contents(sequential(2))
    stored = Model.load(tmp_path / "model.rare").source
    assert stored["spark_stream"]["batch"] == 1
    assert stored["settings"]["classes"] == [0, 1]
    write_files(tmp_path, FILES, 2)
    fit(session, tmp_path).awaitTermination()
    assert contents(tmp_path / "model.rare") == contents(sequential())


def test_a_driver_killed_before_and_after_the_save_of_a_batch_learns_every_row_once(spark, tmp_path):
    write_files(tmp_path)
    driver = [sys.executable, "-m", "tests.spark.stream_driver", tmp_path]
    died = run([*driver, "before", 1], cwd=ROOT)
    assert died.returncode == -signal.SIGKILL
    assert contents(tmp_path / "model.rare") == contents(sequential(1))
    died = run([*driver, "after", 2], cwd=ROOT)
    assert died.returncode == -signal.SIGKILL
    assert contents(tmp_path / "model.rare") == contents(sequential(3))
    assert sorted(path.name for path in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")) == ["0", "1"]
    fit(spark, tmp_path).awaitTermination()
    assert contents(tmp_path / "model.rare") == contents(sequential())
    assert Model.load(tmp_path / "model.rare").rows == 300 * FILES


@pytest.mark.filterwarnings("ignore:.* counts as -1:UserWarning")
def test_a_table_is_learned_as_read_reads_it(spark, tmp_path):
    cells = [
        [(f"site{number % (3 + file)}.com", number / 7, "yes" if number % 5 == 0 else "no") for number in range(100)]
        for file in range(3)
    ]
    paths = [write_file(tmp_path / "rows", number, rows, TABLE) for number, rows in enumerate(cells)]
    stream = read_stream(spark, tmp_path / "rows", TABLE)
    query = stream_fit(
        stream,
        tmp_path / "model.rare",
        checkpoint=tmp_path / "checkpoint",
        label="clicked",
        learner="dual-logistic",
        bits=16,
    )
    query.awaitTermination()
    model = Model("dual-logistic")
    for path in paths:
        for block in read(path, label="clicked", bits=16, features=model.features):
            model.learn(block)
    assert contents(tmp_path / "model.rare") == contents(model)


def test_an_invalid_row_stops_the_query_with_its_place_and_nothing_of_its_batch_is_saved(spark, tmp_path):
    write_files(tmp_path, 1)
    bad = make_rows(300, 1)
    bad[250] = ([3, 4], [1.0, float("nan")], 1)
    write_file(tmp_path / "rows", 1, bad)
    message = failure(fit(spark, tmp_path))
    assert "stream_fit: batch 1 of the stream, of which nothing is saved: partition 0: row 250" in message
    assert contents(tmp_path / "model.rare") == contents(sequential(1))
    write_files(tmp_path, 2, 1)  # the file, corrected
    fit(spark, tmp_path).awaitTermination()
    assert contents(tmp_path / "model.rare") == contents(sequential(2))


def test_batches_without_rows_are_counted_and_change_nothing(spark, tmp_path):
    write_file(tmp_path / "rows", 0, [])
    write_files(tmp_path, 2, 1)
    write_file(tmp_path / "rows", 2, [])
    fit(spark, tmp_path).awaitTermination()
    assert contents(tmp_path / "model.rare") == contents(sequential(2, 1))
    assert Model.load(tmp_path / "model.rare").source["spark_stream"]["batch"] == 2


@pytest.mark.filterwarnings("ignore:.* counts as -1:UserWarning")
def test_labels_that_later_batches_could_turn_round_are_refused(spark, tmp_path):
    write_file(tmp_path / "rows", 0, [("a.com", 1.0, "no"), ("b.com", 2.0, "no")], TABLE)
    write_file(tmp_path / "rows", 1, [("a.com", 1.0, "no"), ("b.com", 2.0, "maybe")], TABLE)
    arguments = {"checkpoint": tmp_path / "checkpoint", "label": "clicked", "learner": "dual-auc"}
    stream = read_stream(spark, tmp_path / "rows", TABLE)
    one = failure(stream_fit(stream, tmp_path / "model.rare", **arguments))
    assert "nothing is saved: its rows have a single label" in one
    assert not (tmp_path / "model.rare").exists()
    stream_fit(stream, tmp_path / "model.rare", positive="maybe", **arguments).awaitTermination()
    model = Model.load(tmp_path / "model.rare")
    assert (model.rows, model.positives) == (4, 1)


def test_a_model_and_a_checkpoint_that_do_not_belong_together_are_refused(spark, tmp_path):
    write_files(tmp_path, 1)
    fit(spark, tmp_path).awaitTermination()
    other = failure(fit(spark, tmp_path, checkpoint=tmp_path / "new"))
    assert "has learned another stream, up to batch 0" in other
    write_files(tmp_path, 2, 1)
    (tmp_path / "model.rare").rename(tmp_path / "kept.rare")
    assert "is not there, but checkpoint" in failure(fit(spark, tmp_path))
    sequential(1).save(tmp_path / "model.rare")
    assert "has learned nothing of this stream, but checkpoint" in failure(fit(spark, tmp_path))
    (tmp_path / "kept.rare").rename(tmp_path / "model.rare")
    assert "has learner=" in failure(fit(spark, tmp_path, learner="ftrl-auc"))
    fit(spark, tmp_path).awaitTermination()
    assert contents(tmp_path / "model.rare") == contents(sequential(2))


def test_a_model_of_one_machine_goes_on_with_a_stream(spark, tmp_path):
    sequential(1).save(tmp_path / "model.rare")
    write_files(tmp_path, 2, 1)
    fit(spark, tmp_path).awaitTermination()
    assert contents(tmp_path / "model.rare") == contents(sequential(2))


def test_arguments_are_checked_before_the_query_starts(spark, tmp_path):
    frame = spark.createDataFrame(make_rows(3, 0), "indices array<int>, values array<float>, label int")
    with pytest.raises(DataError, match="the frame is not a stream"):
        stream_fit(frame, tmp_path / "model.rare", checkpoint=tmp_path / "c", **ARGUMENTS)
    stream = read_stream(spark, tmp_path)
    with pytest.raises(DataError, match="model_path must be a path on the file system of the driver, got 's3://a/b'"):
        stream_fit(stream, "s3://a/b", checkpoint=tmp_path / "c", **ARGUMENTS)
    with pytest.raises(ValueError, match="scale must be"):
        stream_fit(stream, tmp_path / "model.rare", checkpoint=tmp_path / "c", scale="big", **ARGUMENTS)
