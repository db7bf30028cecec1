"""What all live streams do: labels, invalid rows, positions, places."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from rarestream import Model, follow, read
from rarestream.errors import DataError, OutputError, RowError
from rarestream.evaluate import TrainingRun, train
from rarestream.readers.live.addresses import is_address
from rarestream.readers.live.opening import open_live
from tests import children
from tests.readers.live import lines
from tests.readers.live.lines import blocks, collect, rows


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("".join(rows(0, 40)))
    return path


def test_invalid_rows_are_dead_letters_once_the_position_is_beyond_them(log, tmp_path):
    text = rows(0, 40)
    text[10:10] = ["nonsense\n"]
    text[25:25] = ["1 7:x\n", "2 8:1\n"]
    log.write_text("".join(text))
    letters = tmp_path / "letters.jsonl"
    stream = lines.follow(log, rows=20, dead_letters=letters)
    open_blocks = blocks(stream)
    next(open_blocks)
    stream.learned(15)
    stream.flush()
    (first,) = map(json.loads, letters.read_text().splitlines())
    reason = f"{log}:11:1: the label must be a number, got 'nonsense'."
    assert first == {"place": f"{log}:11", "reason": reason, "row": "nonsense"}
    letters.write_text(letters.read_text() + "what a killed program has written after its last save\n")
    again = lines.follow(log, position=stream.position)  # the file is remembered
    assert collect(again) == list(range(15, 40))
    assert [json.loads(line)["row"] for line in letters.read_text().splitlines()] == ["nonsense", "1 7:x", "2 8:1"]
    assert again.refused == 2


def test_a_row_too_many_ends_the_stream_before_it_and_nothing_is_lost(log):
    text = rows(0, 40)
    text[20:20] = ["nonsense\n", "more nonsense\n"]
    log.write_text("".join(text))
    stream, found = lines.follow(log, max_bad_rows=1), []
    with pytest.raises(DataError, match="2 invalid rows, more than max_bad_rows=1"):
        found.extend(blocks(stream))
    assert stream.position["line"] == 21
    again = lines.follow(log, max_bad_rows=1, position=stream.position)
    assert collect(again) == list(range(20, 40))


def test_a_file_for_dead_letters_that_cannot_be_written_is_an_error_at_once(log, tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        lines.follow(log, dead_letters=tmp_path / "nowhere" / "letters.jsonl")


def test_training_can_be_cut_at_any_row_and_gives_the_bits_of_training_on_the_file(log, tmp_path):
    whole = Model("dual-auc")
    train(whole, read(log))
    path = tmp_path / "m.rare"
    model = Model("dual-auc")
    while model.rows < 40:
        stream = follow(log, model=model, idle=0.3, rows=6)
        train(model, stream, save=path, save_every=1, max_rows=7)
        model = Model.load(path)
    assert (model.coef == whole.coef).all() and model.progress.auc == whole.progress.auc
    assert model.source["live"][str(log)]["position"]["line"] == 40


def test_a_model_that_learns_other_data_keeps_its_position(log, tmp_path):
    model = Model("dual-auc")
    train(model, follow(log, idle=0.2), max_rows=30)
    other = tmp_path / "other.svm"
    other.write_text("".join(rows(100, 120)))
    train(model, read(other))
    train(model, follow(log, model=model, idle=0.2))
    assert model.rows == 60 and model.source["live"][str(log)]["position"]["line"] == 40


def test_options_must_stay_as_they_were(log):
    model = Model("dual-auc")
    train(model, follow(log, idle=0.2, positive=1), max_rows=30)
    with pytest.raises(DataError, match="with positive=1.0 and must continue so, got -1"):
        follow(log, model=model, positive=-1)


def test_a_position_that_is_damaged_is_an_error(log):
    model = Model("dual-auc")
    train(model, follow(log, idle=0.2))
    model.source["live"][str(log)] = {"position": 7}
    with pytest.raises(DataError, match="invalid position"):
        follow(log, model=model)


def test_a_row_that_cannot_be_learned_is_named(tmp_path):
    log = tmp_path / "a.svm"
    log.write_text("1 1:1\n-1 2:1\n1 1:3e38 2:3e38\n")
    with pytest.raises(RowError, match=r"a\.svm:3: this row"):
        train(Model("dual-auc", scale="none"), follow(log, idle=0.3))


def test_rows_without_a_label_are_counted_and_passed(tmp_path):
    log = tmp_path / "a.jsonl"
    log.write_text('{"a": "x", "y": 1}\n{"a": "z"}\n{"a": "x", "y": 0}\n{"a": "z"}\n')
    stream = follow(log, label="y", idle=0.3)
    assert sum(map(len, blocks(stream))) == 2
    assert stream.unlabelled == 2 and stream.position["line"] == 4


def test_while_nothing_comes_a_run_has_steps_without_rows(log):
    run = TrainingRun(Model("dual-auc"), lines.follow(log, idle=0.5))
    sizes = [len(step.block) for step in run]
    assert sum(sizes) == 40 and 0 in sizes


def test_a_stream_is_iterated_once(log):
    stream = lines.follow(log)
    list(stream)
    with pytest.raises(DataError, match="only once"):
        list(stream)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_the_number_of_threads_changes_nothing(tmp_path, threads, monkeypatch):
    from rarestream.readers.live import file

    monkeypatch.setattr(file, "MOST_TEXT", 100)
    log = tmp_path / "a.svm"
    log.write_text("".join(rows(0, 400)))
    assert collect(lines.follow(log, threads=threads)) == list(range(400))


def test_addresses():
    assert is_address("kafka://a:1/b") and not is_address("C:/a") and not is_address("a.svm")
    with pytest.raises(DataError, match="idle must be"):
        open_live("a.svm", idle=0)
    with pytest.raises(DataError, match="rows must be"):
        open_live("a.svm", rows=0)


def test_columns_of_messages_must_be_named(tmp_path):
    from rarestream.readers.formats import load_format
    from rarestream.readers.live.file import FileSource
    from rarestream.readers.live.stream import LineStream

    class Messages(FileSource):
        headed = False

    csv = load_format("csv")
    with pytest.raises(DataError, match="messages have no heading"):
        LineStream(Messages(str(tmp_path / "a.csv")), csv, csv.make_options(label="y"))


def test_the_first_rows_decide_what_columns_become_and_later_rows_follow(tmp_path):
    log = tmp_path / "a.csv"
    log.write_text("n,y\n" + "".join(f"{i},{i % 2}\n" for i in range(30)))
    model = Model("dual-auc")
    train(model, follow(log, label="y", idle=0.3))
    with log.open("a") as file:
        file.write("31,1\n")
    train(model, follow(log, label="y", idle=0.3, model=model))
    whole = Model("dual-auc")
    train(whole, read(log, label="y", numeric=["n"], categorical=["n"]))
    assert model.rows == 31
    assert np.array_equal(model.coef, whole.coef)


def test_memory_stays_the_same_however_many_rows_come(tmp_path):
    code = (
        "import sys; from rarestream import Model, follow; from rarestream.evaluate import train\n"
        "train(Model('dual-auc'), follow('-', 'svmlight', zero_based=False), save=sys.argv[1], save_every=0.05)\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    text = "".join(rows(0, 5000))
    used = []
    for times in (40, 400):
        done = children.run([sys.executable, "-c", code, tmp_path / "m.rare"], input=text * times)
        assert done.returncode == 0, done.stderr
        used.append(int(done.stdout))
        assert Model.load(tmp_path / "m.rare").rows == 5000 * times
    assert used[1] < used[0] + 30_000  # kilobytes
