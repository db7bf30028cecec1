"""`rarestream train`: what it prints, what it saves, how it goes on, and what it does when stopped."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading

import numpy as np
import pytest

from rarestream import Auto, Model, read
from rarestream.cli import look
from rarestream.evaluate import train
from tests.cli.conftest import SHORT_RACE, process, run, started

DONE = ["rows", "positives", "progressive_auc", "auc_low", "auc_high", "nonzeros", "n_features", "seconds"]


def test_the_file_is_that_of_the_same_training_in_python(events, trained):
    model = Model(Auto(rows=16384))
    train(model, read(events))
    assert trained.read_bytes() == model.to_bytes()


def test_flags_reach_the_model(events, tmp_path):
    path = tmp_path / "m.rare"
    words = [
        "--learner",
        "ftrl-auc",
        "--set",
        "l1=0.5",
        "--set",
        "learning-rate=2",
        "--scale",
        "max",
        "--dtype",
        "float64",
    ]
    assert run("train", events, "-f", path, *words).exit_code == 0
    model = Model.load(path)
    assert (model.learner.name, model.scale, model.dtype) == ("ftrl-auc", "max", "float64")
    assert (model.learner.settings["l1"], model.learner.settings["learning_rate"]) == (0.5, 2.0)


@pytest.mark.parametrize("words", [("--budget", 70), ("--set", "budget=70")])
def test_a_budget_is_held(events, tmp_path, words):
    path = tmp_path / "m.rare"
    done = run("train", events, "-o", path, *words, "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert 0 < max(line["nonzeros"] for line in lines) <= 70
    settings = Model.load(path).learner.settings
    assert settings["budget"] == 70
    assert (settings["power"], settings["proximal"]) == (1.0, 0.5)  # what is best at small sizes
    assert run("train", events, "--resume", path, "--budget", 70).exit_code == 0
    assert "was trained with 70, not 71" in run("train", events, "--resume", path, "--budget", 71).stderr


def test_without_a_terminal_only_a_summary_is_said_and_on_stderr(events, tmp_path):
    done = run("train", events, "-o", tmp_path / "m.rare")
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("progressive AUC 0.")
    assert lines[2].startswith("auto: dual-") and " leads. The file has 8 settings, " in lines[2]
    assert "\x1b" not in done.stderr


def test_what_the_race_chose_is_said_in_few_words(events, tmp_path):
    done = run("train", events, "-o", tmp_path / "m.rare", *SHORT_RACE)
    chosen = done.stderr.splitlines()[2]
    assert chosen.startswith("auto: chose dual-") and chosen.endswith("after 16,384 rows")
    for learner in Auto.candidates():  # only settings that are not the learner's defaults
        assert len(f"auto: chose {look.described(learner)}") < 100


def test_progress_asked_for_comes_at_the_rows_asked_for(events, tmp_path):
    done = run("train", events, "-o", tmp_path / "m.rare", "-P", 6000)
    table = done.stderr.splitlines()[:-5]
    assert table[0].split()[:2] == ["rows", "AUC"]
    assert [line.split()[0] for line in table[1:]] == ["6,000", "12,000", "18,000", "20,000"]
    assert max(map(len, table)) < 80
    factor = run("train", events, "-o", tmp_path / "n.rare", "-P", "4.0").stderr.splitlines()[1:-5]
    assert [line.split()[0] for line in factor] == ["1,000", "4,000", "16,000", "20,000"]


def test_quiet_says_nothing(events, tmp_path):
    done = run("train", events, "-o", tmp_path / "m.rare", "--quiet")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_json_lines_have_stable_keys_and_end_with_done(events, tmp_path):
    done = run("train", events, "-o", tmp_path / "m.rare", "--json")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["event"] for record in records] == ["progress"] * 6 + ["done"]
    assert [record["rows"] for record in records] == [1000, 2000, 4000, 8000, 16_000, 20_000, 20_000]
    assert set(DONE) < set(records[-1])
    assert set(DONE) < set(records[0])
    model = Model.load(tmp_path / "m.rare")
    last = records[-1]
    assert (last["rows"], last["positives"], last["nonzeros"]) == (model.rows, model.positives, model.nonzeros)
    assert last["progressive_auc"] == float(model.progress.auc)
    assert last["auc_low"] < last["progressive_auc"] < last["auc_high"]


@pytest.mark.parametrize("flags", [[], ["--shuffle", 17], ["--shuffle", 17, "--passes", 2]])
def test_stopped_half_way_and_resumed_it_is_the_same_file(events, tmp_path, flags):
    whole, half = tmp_path / "whole.rare", tmp_path / "half.rare"
    assert run("train", events, *flags, "-o", whole).exit_code == 0
    stopped = run("train", events, *flags, "-o", half, "--max-rows", 9000)
    assert f"--resume {half}" in stopped.stderr
    assert run("train", events, "--resume", half).exit_code == 0  # no flag is repeated
    assert whole.read_bytes() == half.read_bytes()


def test_resuming_may_write_elsewhere_and_leave_the_old_file(events, tmp_path, trained):
    before = trained.read_bytes()
    again = tmp_path / "again.rare"
    done = run("train", events, "--resume", trained, "--passes", 2, "-o", again)
    assert done.exit_code == 0
    assert "], first pass only\n" in done.stderr
    assert float(Model.load(again).progress.auc) == float(Model.load(trained).progress.auc)
    assert Model.load(again).rows == 40_000
    assert trained.read_bytes() == before


def test_nothing_new_is_said_with_the_way_to_another_pass(events, trained):
    before = trained.read_bytes()
    done = run("train", events, "--resume", trained)
    assert done.exit_code == 0
    assert "Nothing new to learn" in done.stderr
    assert "--passes 2" in done.stderr
    assert trained.read_bytes() == before


@pytest.mark.parametrize(
    ("flag", "value", "kept"),
    [
        ("--learner", "ftrl-auc", "auto"),
        ("--set", "l1=0.5", "0.0"),
        ("--scale", "max", "unit"),
        ("--dtype", "float64", "float32"),
        ("--shuffle", "3", "without --shuffle"),
        ("--zero-based", None, "False"),
    ],
)
def test_a_setting_that_differs_from_the_models_is_wrong_usage(events, trained, flag, value, kept):
    before = trained.read_bytes()
    done = run("train", events, "--resume", trained, flag, *([value] if value else []))
    assert done.exit_code == 2
    assert kept in done.stderr
    assert trained.read_bytes() == before


def test_settings_that_agree_may_be_repeated(events, trained):
    words = ["--set", "l1=0", "--scale", "unit", "--dtype", "float32", "--one-based"]
    for name in ("auto", Model.load(trained).learner.name):  # that chose, and that was chosen
        assert run("train", events, "--resume", trained, "--learner", name, *words).exit_code == 0


def test_a_race_that_is_not_over_is_told_and_can_be_settled(events, tmp_path):
    path = tmp_path / "m.rare"
    done = run("train", events, "-o", path, "--max-rows", 5000)
    racing = Model.load(path)
    assert racing.learner.name == "auto"
    assert (
        f"auto: {look.described(racing.leader)} leads. The file has 24 settings, which race until row 262,144 at the latest; to "
        "keep only one, pass --settle.\n"
    ) in done.stderr
    assert run("train", events, "--resume", path, "--max-rows", 1000, "--settle").exit_code == 0
    settled = Model.load(path)
    assert settled.chosen_by == ("auto", 6000)
    assert settled.learner in Auto.candidates()
    assert len(settled.to_bytes()) < len(racing.to_bytes()) / 8


def test_a_race_that_never_ends_is_told_and_a_file_for_scoring_has_one_setting(events, tmp_path):
    path, words = tmp_path / "m.rare", ["--max-rows", 3000, "--set", "rows=2000", "--set", "keep=3"]
    done = run("train", events, "-o", path, *words)
    assert "The file has 3 settings, which race to the end; to keep only one, pass --settle." in done.stderr
    assert len(Model.load(path).candidates) == 3
    done = run("train", events, "-o", path, *words, "--scoring-only")
    assert " leads.\n" in done.stderr
    assert "--settle" not in done.stderr


@pytest.mark.parametrize("flags", [[], ["--quiet"]])
def test_settings_that_drop_out_are_a_line(events, tmp_path, flags):
    data, path = tmp_path / "large.svm", tmp_path / "m.rare"
    lines = events.read_text().splitlines(keepends=True)
    known = lines[0].split()[1].split(":")[0]  # a feature that has a weight
    data.write_text("".join([*lines[:500], f"1 {known}:100000\n", *lines[500:520]]))
    done = process("train", data, "-o", path, "--scale", "none", *flags)
    assert done.returncode == 0
    line = done.stderr.splitlines()[0]
    assert re.fullmatch(
        r"warning: auto: \d+ of 24 settings dropped out, the others continue: a row has values so large that its step "
        r"overflows float32 with --scale none. Use --scale unit or max.",
        line,
    )
    assert done.stderr.count("warning") == 1
    assert len(Model.load(path).candidates) == 24 - int(line.split()[2])
    assert Model.load(path).rows == 521


def test_settling_a_model_that_has_learned_everything_saves_it(events, tmp_path):
    path = tmp_path / "m.rare"
    few = tmp_path / "few.svm"
    few.write_text("".join(events.read_text().splitlines(keepends=True)[:2000]))
    assert run("train", few, "-o", path).exit_code == 0
    assert run("train", few, "--resume", path, "--settle").exit_code == 0
    assert Model.load(path).chosen_by == ("auto", 2000)


def test_a_file_of_one_class_keeps_the_labels_that_the_model_has_learned(tmp_path):
    both, one, path = tmp_path / "both.svm", tmp_path / "one.svm", tmp_path / "m.rare"
    both.write_text("1 1:1\n2 2:1\n" * 50)
    one.write_text("1 1:1\n" * 50)
    assert run("train", both, "-o", path).exit_code == 0
    assert run("train", one, "--resume", path).exit_code == 0
    assert (Model.load(path).rows, Model.load(path).positives) == (150, 50)
    for words in (["evaluate", path, one], ["prune", path, "--nonzeros", 1, "--on", one]):
        done = run(*words)
        assert "positive" in done.stderr and done.exit_code == 3  # one class alone: there is no AUC
    assert run("train", both, "--resume", path, "--positive", 2).exit_code == 0  # it agrees
    assert Model.load(path).positives == 100
    refused = run("train", one, "--resume", path, "--positive", 1)
    assert refused.exit_code == 2
    assert "has learned 2 as the positive label" in refused.stderr


def test_a_model_that_knows_only_label_1_refuses_to_take_it_for_negative(tmp_path):
    ones, both, path = tmp_path / "ones.svm", tmp_path / "both.svm", tmp_path / "m.rare"
    ones.write_text("1 1:1\n" * 5)
    both.write_text("1 1:1\n2 2:1\n")
    assert run("train", ones, "-o", path).exit_code == 0
    before = path.read_bytes()
    refused = run("train", both, "--resume", path)
    assert refused.exit_code == 3
    assert "both.svm:2:1: label 2, but 1 counts as +1" in refused.stderr
    assert path.read_bytes() == before
    assert run("train", both, "--resume", path, "--positive", 2).exit_code == 2
    assert run("train", both, "--resume", path, "--positive", 1).exit_code == 0
    zeros = tmp_path / "zeros.svm"
    zeros.write_text("0 1:1\n1 2:1\n")  # -1 or 0: each file decides
    assert run("train", zeros, "--resume", path).exit_code == 0


def test_a_last_line_without_line_end_is_left_out_until_it_is_whole(tmp_path):
    log, path = tmp_path / "log.svm", tmp_path / "m.rare"
    log.write_text("1 1:1\n-1 2:1\n1 3:0.2")
    done = run("train", log, "-o", path)
    assert done.exit_code == 0
    assert "log.svm:3: the last line has no line end" in done.stderr
    assert "--finished" in done.stderr
    assert Model.load(path).rows == 2
    finished = tmp_path / "finished.rare"
    assert run("train", log, "--resume", path, "-o", finished, "--finished").exit_code == 0
    assert Model.load(finished).rows == 3
    with log.open("a") as file:
        file.write("5\n")
    done = run("train", log, "--resume", path)
    assert "line end" not in done.stderr
    assert Model.load(path).rows == 3
    assert run("train", log, "-o", tmp_path / "whole.rare").exit_code == 0
    assert path.read_bytes() == (tmp_path / "whole.rare").read_bytes()


def test_a_file_of_one_unfinished_line_is_refused_with_a_way_on(tmp_path):
    log, path = tmp_path / "log.svm", tmp_path / "m.rare"
    log.write_text("1 1:1")
    done = run("train", log, "-o", path)
    assert done.exit_code == 3
    assert "no line end" in done.stderr and "--finished" in done.stderr
    assert run("train", log, "-o", path, "--finished").exit_code == 0
    log.write_text("-1 1:1\n1 2:1")
    assert run("race", log, "-o", path).exit_code == 3  # one class alone
    assert run("race", log, "-o", path, "--finished").exit_code == 0


def test_a_last_line_that_was_learned_as_finished_must_be_so_again(tmp_path):
    log, path = tmp_path / "log.svm", tmp_path / "m.rare"
    log.write_text("1 1:1\n-1 2:1")
    assert run("train", log, "-o", path, "--finished", "--max-rows", 2).exit_code == 0
    done = run("train", log, "--resume", path)
    assert done.exit_code == 3
    assert "there are only 1 rows" in done.stderr and "--finished" in done.stderr
    assert run("train", log, "--resume", path, "--finished").exit_code == 0


def test_a_shuffled_order_stays_that_of_the_rows_it_was_drawn_for(tmp_path):
    log, path = tmp_path / "log.svm", tmp_path / "m.rare"
    log.write_text("1 1:1\n-1 2:1\n" * 20 + "1 3:1")
    assert run("train", log, "-o", path, "--shuffle", 1, "--max-rows", 10).exit_code == 0
    done = run("train", log, "--resume", path, "--finished")
    assert done.exit_code == 2
    assert "without their last line" in done.stderr
    assert run("train", log, "--resume", path).exit_code == 0
    assert Model.load(path).rows == 40
    assert Model.load(path).source["complete"]


def test_going_on_as_told_skips_the_rows_that_were_skipped(tmp_path):
    data, path, whole = tmp_path / "some.svm", tmp_path / "m.rare", tmp_path / "whole.rare"
    data.write_text("1 1:1\n1 x:1\n-1 2:1\n1 3:1\n-1 x:1\n")
    assert run("train", data, "-o", whole, "--max-bad-rows", 2).exit_code == 0
    assert run("train", data, "-o", path, "--max-bad-rows", 2, "--max-rows", 1).exit_code == 0
    assert run("train", data, "--resume", path, "-o", tmp_path / "n.rare", "--max-bad-rows", 1).exit_code == 3
    assert run("train", data, "--resume", path).exit_code == 0
    assert path.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("shuffle", [[], ["--shuffle", 1]])
def test_a_resume_that_finds_nothing_new_keeps_that_all_is_learned(tmp_path, shuffle):
    data, path, whole = tmp_path / "some.svm", tmp_path / "m.rare", tmp_path / "whole.rare"
    data.write_text("1 1:1\n-1 2:1\n1 3:1\n")
    assert run("train", data, "-o", whole, *shuffle).exit_code == 0
    assert run("train", data, "-o", path, "--max-rows", 3, *shuffle).exit_code == 0
    assert run("train", data, "--resume", path).exit_code == 0
    assert path.read_bytes() == whole.read_bytes()


def test_rows_sorted_by_label_are_warned_of_and_the_warning_names_the_flag(tmp_path):
    path = tmp_path / "sorted.svm"
    path.write_text("1 1:1\n" * 500 + "-1 2:1\n" * 500)
    done = run("train", path, "-o", tmp_path / "m.rare", "--quiet")
    assert done.exit_code == 0
    assert "sorted by label" in done.stderr
    assert "--shuffle" in done.stderr
    assert "sorted by label" not in run("train", path, "-o", tmp_path / "m.rare", "--shuffle", 1).stderr


def test_one_class_alone_is_warned_of(tmp_path):
    path = tmp_path / "one.svm"
    path.write_text("-1 1:1\n-1 2:1\n")
    done = run("train", path, "-o", tmp_path / "m.rare", "--json")
    assert done.exit_code == 0
    assert "all 2 rows are negative" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["progressive_auc"] is None


def test_bad_rows_within_the_budget_are_skipped_and_listed(tmp_path):
    path = tmp_path / "some.svm"
    path.write_text("1 1:1\n-1 2:1\n1 x:1\n")
    done = run("train", path, "-o", tmp_path / "m.rare", "--max-bad-rows", 1)
    assert done.exit_code == 0
    assert "1 invalid row was skipped" in done.stderr
    assert "some.svm:3" in done.stderr
    assert Model.load(tmp_path / "m.rare").rows == 2


def test_scoring_only_is_small_and_says_it_cannot_go_on(events, tmp_path, trained):
    path = tmp_path / "small.rare"
    assert run("train", events, "-o", path, "--scoring-only").exit_code == 0
    assert path.stat().st_size < trained.stat().st_size
    refused = run("train", events, "--resume", path)
    assert refused.exit_code == 1
    assert "--scoring-only" in refused.stderr


def test_several_files_and_globs_are_one_stream(events, tmp_path, trained):
    lines = events.read_text().splitlines(keepends=True)
    for name, part in (("a.svm", lines[:7000]), ("b.svm", lines[7000:])):
        (tmp_path / name).write_text("".join(part))
    assert run("train", tmp_path / "*.svm", "-o", tmp_path / "m.rare", *SHORT_RACE).exit_code == 0
    assert np.array_equal(Model.load(tmp_path / "m.rare").coef, Model.load(trained).coef)


def test_standard_input_is_a_stream(events, tmp_path, trained):
    with events.open() as file:
        done = process("train", "-", "-o", tmp_path / "m.rare", *SHORT_RACE, stdin=file)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(Model.load(tmp_path / "m.rare").coef, Model.load(trained).coef)


def test_a_pipe_cannot_be_passed_over_twice(tmp_path):
    done = run("train", "-", "-o", tmp_path / "m.rare", "--passes", 2, stdin="1 1:1\n")
    assert done.exit_code == 2
    assert "Save it to a file first" in done.stderr


def test_save_every_leaves_a_model_to_go_on_from_when_a_later_row_is_refused(events, tmp_path, trained):
    data, path = tmp_path / "events.svm", tmp_path / "m.rare"
    text = events.read_text()
    data.write_text(text + "1 nonsense\n")
    done = run("train", data, "-o", path, "--save-every", 8000)
    assert done.exit_code == 3
    assert "events.svm:20001" in done.stderr
    assert "The model file has the first" in done.stderr
    saved = Model.load(path).rows
    assert 8000 <= saved < 20_000
    data.write_text(text + "1 1:1\n")
    assert run("train", data, "--resume", path).exit_code == 0
    assert Model.load(path).rows == 20_001


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_what_was_learned_and_resuming_equals_never_having_stopped(events, tmp_path, trained, number):
    path = tmp_path / "m.rare"
    # The table fills the pipe that nobody reads: the program cannot finish before the signal is there.
    with started("train", events, "-o", path, "--json", "-P", 10, *SHORT_RACE) as program:
        program.line()
        program.send_signal(number)
        stdout, stderr = program.communicate()
    assert program.returncode == 130
    assert "interrupted; what was learned is in" in stderr
    assert "Traceback" not in stderr
    last = json.loads(stdout.splitlines()[-1])
    assert last["event"] == "done"
    assert last["interrupted"]
    assert 0 < last["rows"] == Model.load(path).rows < 20_000
    assert run("train", events, "--resume", path).exit_code == 0
    assert path.read_bytes() == trained.read_bytes()


def test_a_signal_ends_the_wait_for_a_pipe_that_says_nothing_more(events, tmp_path):
    path = tmp_path / "m.rare"
    with started("train", "-", "-o", path, "--json", "-P", 1000, stdin=subprocess.PIPE) as program:
        assert program.stdin is not None
        # More than the chunks that are read before the first rows come out; the pipe stays open.
        feeder = threading.Thread(target=program.stdin.write, args=(events.read_text(),))
        feeder.start()
        rows = json.loads(program.line())["rows"]
        feeder.join()
        program.send_signal(signal.SIGINT)
        program.wait()
    assert program.returncode == 130
    assert Model.load(path).rows >= rows == 1000


@pytest.mark.parametrize("words", [(), ("--threads", 0), ("--shuffle", 1)])
def test_a_signal_on_a_stalled_pipe_saves_all_whole_lines_that_came(tmp_path, words):
    path = tmp_path / "m.rare"
    with started("train", "-", "-o", path, *words, stdin=subprocess.PIPE) as program:
        assert program.stdin is not None
        program.stdin.write("1 1:1\n-1 2:1\n1 3:1\n1 4")
        program.stdin.flush()
        program.until_catching(signal.SIGTERM)
        program.until_read()  # now it waits for more
        program.send_signal(signal.SIGINT)
        program.wait()
    assert program.returncode == 130
    assert Model.load(path).rows == 3


@pytest.mark.parametrize("said", ["", "1 1:1"])
def test_a_signal_before_the_first_row_saves_nothing(tmp_path, said):
    path = tmp_path / "m.rare"
    with started("train", "-", "-o", path, "-P", 1000, stdin=subprocess.PIPE) as program:
        assert program.stdin is not None
        program.stdin.write(said)
        program.until_catching(signal.SIGTERM)
        program.until_read()  # now it waits for more
        program.send_signal(signal.SIGINT)
        _, stderr = program.communicate()
    assert program.returncode == 130
    assert "nothing was saved" in stderr
    assert not path.exists()


def test_output_that_nobody_reads_any_more_does_not_cost_the_model(events, tmp_path):
    path = tmp_path / "m.rare"
    with started("train", events, "-o", path, "--json", "-P", 40) as program:
        assert program.stdout is not None
        program.line()
        program.stdout.close()
        assert "Traceback" not in "".join(program.lines("stderr"))
    assert Model.load(path).rows == 20_000
