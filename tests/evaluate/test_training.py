"""Training is learning block after block, and nothing else; what it keeps about its data is enough to go on."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from rarestream import Model, auc, read
from rarestream.errors import DataError, RowError
from rarestream.evaluate import TrainingRun, doubling, train


def by_hand(path: Path, passes: int = 1) -> Model:
    model = Model("dual-auc")
    for _ in range(passes):
        for block in read(path):
            model.learn(block)
    return model


def test_training_equals_learning_block_after_block(events):
    model = Model("dual-auc")
    train(model, read(events), passes=2)
    other = by_hand(events, passes=2)
    assert model.coef.tobytes() == other.coef.tobytes()
    assert (model.rows, model.positives) == (other.rows, other.positives) == (40_000, other.positives)


def test_every_row_is_reported_once_with_the_score_it_had_before(events):
    labels, scores = [], []
    model = Model("dual-auc")
    for step in TrainingRun(model, read(events)):
        labels.append(step.block.labels)
        scores.append(step.scores)
    assert float(model.progress.auc) == auc(np.concatenate(labels), np.concatenate(scores))


def test_marks_come_at_the_counts_asked_for_and_change_nothing(events):
    plain, marked = Model("dual-auc"), Model("dual-auc")
    train(plain, read(events))
    counts = [marked.rows for step in TrainingRun(marked, read(events), marks=[1, 7, 1000, 8192, 19_999]) if step.mark]
    assert counts == [1, 7, 1000, 8192, 19_999]
    assert plain.to_bytes() == marked.to_bytes()


def test_marks_behind_the_rows_already_learned_are_passed_over(events):
    model = by_hand(events)
    counts = [model.rows for step in TrainingRun(model, read(events), marks=doubling(1000)) if step.mark]
    assert counts == [32_000]


def test_max_rows_is_exact(events):
    model = Model("dual-auc")
    run = train(model, read(events), max_rows=8193)
    assert run.rows == model.rows == model.source["rows"] == 8193
    assert not run.place.complete


def test_an_interrupt_ends_the_run_after_the_rows_at_hand(events):
    model = Model("dual-auc")
    run = TrainingRun(model, read(events, rows=1000))
    for _ in run:
        if run.rows == 3000:
            run.interrupt()
    assert run.interrupted
    assert run.rows == model.rows == model.source["rows"] == 3000


@pytest.mark.parametrize("shuffle", [None, 1])
@pytest.mark.parametrize("threads", [0, 2])
def test_an_interrupt_while_waiting_for_a_pipe_learns_what_has_come(events, threads, shuffle):
    rows = b"".join(events.read_bytes().splitlines(keepends=True)[:300])
    ear, mouth = os.pipe()
    with os.fdopen(ear, "rb", buffering=0) as file:
        model = Model("dual-auc")
        run = TrainingRun(model, read(file, rows=100, threads=threads, shuffle=shuffle))
        os.write(mouth, rows + b"1 1:1")  # a line that is not whole
        threading.Timer(0.4, run.interrupt).start()
        assert sum(len(step.block) for step in run) == 300
    os.close(mouth)
    assert run.interrupted
    assert model.rows == model.source["rows"] == 300
    assert not run.place.complete


def test_a_second_interrupt_ends_the_run_at_once(events):
    ear, mouth = os.pipe()
    with os.fdopen(ear, "rb", buffering=0) as file:
        os.write(mouth, b"1 1:1\n" * 1000)
        os.close(mouth)
        run = TrainingRun(Model("dual-auc"), read(file, rows=100))
        for _ in run:
            run.interrupt()
            if run.rows == 300:
                break
        assert run.rows == 200  # the first lets the rest through, the second does not


def test_fraction_runs_from_zero_to_one_over_all_passes(events):
    run = TrainingRun(Model("dual-auc"), read(events, rows=500), passes=2)
    fractions = [run.fraction for _ in run]
    assert fractions == sorted(fractions)
    assert 0 < fractions[0] < 0.6
    assert run.fraction == 1


def test_refused_rows_are_counted_once_over_several_passes(tmp_path):
    path = tmp_path / "some.svm"
    path.write_text("1 1:1\n-1 2:1\n1 nonsense\n-1 1:2\n")
    run = train(Model("dual-auc"), read(path, max_bad_rows=1), passes=3)
    assert run.rows == 9
    assert run.refused == 1
    assert "some.svm:3" in run.refusals[0]


def test_the_source_says_what_was_read_and_how(events):
    model = Model("dual-auc")
    train(model, read(events, shuffle=5), passes=2)
    source = model.source
    assert [entry["name"] for entry in source["files"]] == ["events.svm"]
    assert source["settings"] == {
        "format": None,
        "zero_based": False,
        "positive": None,
        "classes": [-1.0, 1.0],
        "max_bad_rows": 0,
        "shuffle": 5,
        "finished": True,
    }
    assert (source["passes"], source["pass"], source["rows"], source["complete"]) == (2, 2, 20_000, True)


@pytest.mark.parametrize("wrong", [{"passes": 0}, {"max_rows": 0}])
def test_senseless_counts_are_refused(events, wrong):
    with pytest.raises(ValueError, match="must be >= 1, got 0"):
        train(Model("dual-auc"), read(events), **wrong)


class Overflowing:
    """A model that cannot learn one row of the data."""

    def __init__(self, column: int) -> None:
        self.column, self.rows, self.source = column, 0, {}

    def learn(self, block, *, again=False):
        for row in range(len(block)):
            if self.column in block[row : row + 1].indices:
                raise RowError("Model.learn", row, "is too large.")
        self.rows += len(block)
        return np.zeros(len(block))


@pytest.mark.parametrize("marks", [[], [3, 5, 77, 78, 79, 80]])
@pytest.mark.parametrize("options", [{}, {"shuffle": 4}, {"shuffle": 4, "memory": 1 << 20}, {"threads": 0, "rows": 7}])
def test_a_row_that_cannot_be_learned_is_named_by_file_and_line(tmp_path, marks, options):
    for name in ("a.svm", "b.svm"):
        lines = [f"{i % 2} {i + 1 + 50 * (name == 'b.svm')}:1" for i in range(50)]
        lines[7:7] = ["# a comment", "", "1 refused"]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    for column, name, line in (
        (0, "a.svm", 1),
        (6, "a.svm", 7),
        (7, "a.svm", 11),
        (49, "a.svm", 53),
        (77, "b.svm", 31),
    ):
        run = TrainingRun(
            Overflowing(column), read([tmp_path / "a.svm", tmp_path / "b.svm"], max_bad_rows=2, **options), marks=marks
        )
        with pytest.raises(RowError, match=f"^{tmp_path / name}:{line}: this row is too large"):
            list(run)


def test_an_error_without_a_row_stays_as_it_is(events):
    class Refusing(Overflowing):
        def learn(self, block, *, again=False):
            raise DataError("no")

    with pytest.raises(DataError, match="^no$"):
        list(TrainingRun(Refusing(0), read(events)))


def test_doubling_needs_a_factor_above_one():
    with pytest.raises(DataError, match="factor"):
        next(doubling(10, 1.0))
