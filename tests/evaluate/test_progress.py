"""Callbacks see what the model is at that moment, change nothing, and can end the run."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import sys

import numpy as np
import pytest

from rarestream import MissingExtraError, Model, auc, read
from rarestream.errors import DataError
from rarestream.evaluate import Progress, ProgressMeter, StopTraining, TrainingRun, marks_every, train
from rarestream.evaluate.progress import HEADING, Lines
from rarestream.evaluate.text import duration, share, short


def test_a_record_is_what_the_model_is_at_its_row(events):
    seen: list[Progress] = []
    model = Model("dual-auc")

    def check(progress: Progress) -> None:
        assert (progress.rows, progress.positives) == (model.rows, model.positives)
        assert (progress.nonzeros, progress.n_features) == (model.nonzeros, model.n_features)
        assert (progress.auc, progress.auc.low) == (model.progress.auc, model.progress.auc.low)
        seen.append(progress)

    run = train(model, read(events), on_step=check, every=3000)
    assert [progress.rows for progress in seen] == [3000, 6000, 9000, 12_000, 15_000, 18_000, 20_000]
    assert [progress.pass_number for progress in seen] == [1] * 7
    fractions = [progress.fraction for progress in seen]
    assert fractions == sorted(fractions) and fractions[-1] == 1
    assert all(progress.seconds >= 0 and progress.rows_per_second > 0 for progress in seen)
    assert not run.stopped and run.place.complete


def test_the_auc_since_last_is_that_of_the_rows_between_two_records(events):
    found = [(step.block.labels, step.scores) for step in TrainingRun(Model("dual-auc"), read(events))]
    labels, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    seen: list[Progress] = []
    train(Model("dual-auc"), read(events), on_step=seen.append, every=5000)
    for progress in seen:
        part = slice(progress.rows - 5000, progress.rows)
        assert float(progress.auc_since_last) == pytest.approx(auc(labels[part], scores[part]), abs=1e-12)


def test_callbacks_change_nothing(events):
    plain, watched = Model("dual-auc"), Model("dual-auc")
    train(plain, read(events), passes=2)
    rows: list[int] = []
    train(watched, read(events), passes=2, on_step=[lambda progress: rows.append(progress.rows), lambda _: False])
    assert rows == [1000, 2000, 4000, 8000, 16_000, 32_000, 40_000]
    assert plain.to_bytes() == watched.to_bytes()


def test_a_callback_ends_the_run_and_every_other_is_still_called(events):
    def stops_by_exception(progress: Progress) -> None:
        if progress.rows >= 4000:
            raise StopTraining

    for stop in (lambda progress: progress.rows >= 4000, lambda p: np.bool_(p.rows >= 4000), stops_by_exception):
        seen: list[Progress] = []
        model = Model("dual-auc")
        run = train(model, read(events), on_step=[stop, seen.append], every=2000)
        assert [progress.rows for progress in seen] == [2000, 4000]
        assert run.stopped and not run.interrupted and not run.place.complete
        assert run.rows == model.rows == model.source["rows"] == 4000
        again = Model("dual-auc")
        train(again, read(events), max_rows=4000)
        assert again.to_bytes() == model.to_bytes()


def test_only_true_ends_a_run(events):
    for answer in (1, "yes", [True], None, False):
        run = train(Model("dual-auc"), read(events), on_step=lambda _, answer=answer: answer, max_rows=4000, every=1000)
        assert not run.stopped and run.rows == 4000


def test_what_a_callback_raises_is_raised_and_the_rows_stay_learned(events):
    model = Model("dual-auc")

    def fails(progress: Progress) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        train(model, read(events), on_step=fails)
    assert model.rows == model.source["rows"] == 1000


def test_an_empty_stream_has_no_record(tmp_path):
    (tmp_path / "none.svm").write_text("")
    seen: list[Progress] = []
    with pytest.raises(DataError):
        train(Model("dual-auc"), read(tmp_path / "none.svm"), on_step=seen.append)
    assert not seen


def test_records_are_immutable_and_become_json(events):
    seen: list[Progress] = []
    train(Model("dual-auc"), read(events), on_step=seen.append, max_rows=1000)
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen[0].rows = 3
    record = json.loads(json.dumps(seen[0].as_dict(), allow_nan=False))
    assert list(record) == [
        *("rows", "positives", "progressive_auc", "auc_low", "auc_high", "nonzeros", "n_features", "pass"),
        *("auc_since_last", "rows_per_second", "seconds", "fraction"),
    ]
    one = Model("dual-auc")
    meter = ProgressMeter(one)
    block = next(iter(read(events)))[:1]
    meter.add(block, one.learn(block))
    unknown = meter.record()
    assert math.isnan(unknown.auc) and unknown.fraction is None
    assert json.loads(json.dumps(unknown.as_dict(), allow_nan=False))["progressive_auc"] is None


def test_a_meter_can_be_used_without_a_run(events):
    model, seen = Model("dual-auc"), []
    meter = ProgressMeter(model)
    for block in read(events):
        meter.add(block, model.learn(block))
        seen.append(meter.record(fraction=model.rows / 20_000))
    assert seen[-1].rows == meter.rows == meter.recorded_rows == 20_000
    assert seen[-1].auc == model.progress.auc


# -- what is shown


def test_lines_are_a_table(events, capsys):
    model = Model("dual-auc")
    train(model, read(events), progress="lines")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == HEADING
    assert [line.split()[0] for line in printed[1:]] == ["1,000", "2,000", "4,000", "8,000", "16,000", "20,000"]
    assert f"{float(model.progress.auc):.4f}" in printed[-1]
    assert len({len(line) for line in printed[1:]}) == 1
    assert max(map(len, printed)) <= 80


def test_the_table_has_a_line_before_anything_is_known(capsys):
    model = Model("dual-auc")
    Lines().mark(ProgressMeter(model).record())
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["0", "-"]


@pytest.mark.parametrize("stop", [None, 4000])
def test_a_bar_ends_with_the_auc(events, monkeypatch, stop):
    rich_progress = pytest.importorskip("rich.progress")
    from rich.console import Console

    out = io.StringIO()
    made = rich_progress.Progress
    monkeypatch.setattr(
        rich_progress, "Progress", lambda *args: made(*args, console=Console(file=out, force_terminal=True, width=100))
    )
    model = Model("dual-auc")
    run = train(model, read(events), progress="rich", on_step=lambda p: stop is not None and p.rows >= stop, every=1000)
    last = [line for line in out.getvalue().splitlines() if "rows" in line][-1]
    assert f"AUC {float(model.progress.auc):.4f} ±" in last
    assert run.stopped is (stop is not None)


def test_a_missing_package_is_named(events, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(MissingExtraError, match=r'pip install "rarestream\[rich\]"'):
        train(Model("dual-auc"), read(events), progress="rich")


def test_a_bar_in_a_notebook_needs_widgets(events, monkeypatch):
    console = pytest.importorskip("rich.console")
    monkeypatch.setattr(console.Console, "is_jupyter", True, raising=False)
    monkeypatch.setattr(console, "_is_jupyter", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "rarestream\[notebook\]"'):
        train(Model("dual-auc"), read(events), progress="rich")


# -- arguments


@pytest.mark.parametrize("every", [0, -3, 1.0, 0.5, math.nan, math.inf, True, "2"])
def test_senseless_marks_are_refused(events, every):
    with pytest.raises(ValueError, match="every must be"):
        train(Model("dual-auc"), read(events), on_step=print, every=every)


@pytest.mark.parametrize("wrong", [3, [print, None], "print"])
def test_what_cannot_be_called_is_refused(events, wrong):
    with pytest.raises(TypeError, match="on_step must be a callable or a list of callables"):
        train(Model("dual-auc"), read(events), on_step=wrong)
    with pytest.raises(ValueError, match="progress must be None or one of lines, rich, got 'bar'"):
        train(Model("dual-auc"), read(events), progress="bar")


def test_marks_are_regular_or_grow():
    regular, growing = marks_every(250), marks_every(1.5)
    assert [next(regular) for _ in range(3)] == [250, 500, 750]
    assert [next(growing) for _ in range(3)] == [1000, 1500, 2250]


def test_numbers_are_short():
    assert [short(n) for n in (7, 812, 8123, 81_234, 8.1e7)] == ["7", "812", "8.12 k", "81.2 k", "81.0 M"]
    assert [duration(s) for s in (0.0123, 3.44, 125.0, 7300)] == ["12 ms", "3.4 s", "2 min 05 s", "2 h 01 min"]
    assert [share(1, 2), share(1, 8000), share(0, 0)] == ["50.0 %", "0.0125 %", "-"]
