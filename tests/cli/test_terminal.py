"""What a person sees: in a terminal a table, a live line and colour, all within its width; elsewhere plain text."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import termios

import pytest

from rarestream.cli import look
from tests.cli.conftest import process, run, started


def seen(columns: int, *words: object) -> tuple[int, str]:
    """The exit code, and everything that the program wrote to a terminal of that width."""
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)}
    environment.pop("NO_COLOR", None)
    terminal, other_end = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    written = b""
    with started(*words, env=environment, stdin=other_end, stdout=other_end, stderr=other_end) as program:
        os.close(other_end)
        with contextlib.suppress(OSError):  # raised when the program has closed its end
            while more := os.read(terminal, 65536):
                written += more
    os.close(terminal)
    return program.returncode, written.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_training_draws_a_table_with_a_live_line_under_it(events, tmp_path):
    code, text = seen(80, "train", events, "-o", tmp_path / "m.rare")
    assert code == 0
    assert "\x1b[1m" in text
    assert "\r\x1b[K" in text
    lines = [line.rsplit("\r\x1b[K", 1)[-1] for line in plain(text).split("\n")]
    assert lines[0].split()[:2] == ["rows", "AUC"]
    assert [line.split()[0] for line in lines[1:7]] == ["1,000", "2,000", "4,000", "8,000", "16,000", "20,000"]
    assert lines[7].startswith("progressive AUC")
    drawn = re.split(r"\n|\r\x1b\[K", plain(text))
    assert max(len(line) for line in drawn if str(tmp_path) not in line) <= 80


def test_sentences_are_wrapped_at_words_in_a_terminal_only(events, tmp_path):
    words = ["train", events, "-o", tmp_path / "m.rare", "--learner", "ftrl"]
    code, text = seen(80, *words)
    assert code == 2
    lines = plain(text).splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(plain(text).split()) == " ".join(run(*words).stderr.split())
    assert run(*words).stderr.splitlines()[-1].startswith("Error: Invalid value for '--learner': must be one of")


def test_a_command_to_paste_is_never_wrapped(events, tmp_path):
    path = tmp_path / f"{'long' * 20}.rare"
    _, text = seen(80, "train", events, "-o", path, "--max-rows", 100)
    assert f"\n  rarestream train {events} --resume {path}\n" in plain(text)


def test_wrapping_counts_no_colour_and_keeps_every_word():
    assert look.wrap("\x1b[1mone two\x1b[0m three", 9) == ["\x1b[1mone two\x1b[0m", "three"]
    assert "".join(look.wrap("a " * 50 + "b", 10)).replace(" ", "") == "a" * 50 + "b"
    assert max(map(len, look.wrap("word " * 50, 23))) <= 23


@pytest.mark.parametrize("columns", [80, 100])
def test_the_demo_tells_its_story_within_the_width(columns):
    code, text = seen(columns, "demo", "--rows", 20_000)
    assert code == 0
    assert "\x1b[" in text
    assert max(map(len, plain(text).splitlines())) <= columns
    for said in ("best possible 0.", "dual-auc", "ftrl-auc", "The same file, byte for byte.", "correlate with 0."):
        assert said in " ".join(plain(text).split())


def test_the_demo_is_the_same_for_the_same_seed_but_for_the_clock():
    runs = [process("demo", "--rows", 10_000, "--seed", seed) for seed in (1, 1, 2)]
    assert [(one.returncode, one.stderr) for one in runs] == [(0, "")] * 3
    first, second, other = (one.stdout for one in runs)
    assert "leading: dual-" in first  # the race of auto ends later
    clocks = r"\d[\d.]* (ms|s|k|M)\b|[─ ]+|non-zeros/s|rows/s"
    assert re.sub(clocks, "", first) == re.sub(clocks, "", second)
    assert re.sub(clocks, "", first) != re.sub(clocks, "", other)
    assert "\x1b" not in first


def test_an_output_that_knows_only_ascii_is_no_error(trained, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = process("inspect", trained)
    assert done.returncode == 0, done.stderr
    assert "largest weights" in done.stdout


def test_no_color_is_honoured(trained, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("inspect", trained).stdout


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (812, "812"),
        (999.4, "999"),
        (999.6, "1.00 k"),
        (8123, "8.12 k"),
        (81_234_567, "81.2 M"),
        (5e12, "5.0 T"),
    ],
)
def test_short_numbers(number, text):
    assert look.short(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0421, "42 ms"), (0, "0 s"), (7, "7 s"), (5.04, "5.0 s"), (59.97, "1 min 00 s"), (3725, "1 h 02 min")],
)
def test_durations(seconds, text):
    assert look.duration(seconds) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"), [(1, 2, "50.0 %"), (1, 1, "100 %"), (1, 8130, "0.0123 %"), (0, 0, "-")]
)
def test_shares(part, whole, text):
    assert look.share(part, whole) == text


def test_bars_are_fine_to_an_eighth_and_never_vanish():
    assert look.bar(1, 1, 4) == "████"
    assert look.bar(0.5, 1, 4) == "██"
    assert look.bar(1e-9, 1, 4) == "▏"
    assert look.bar(0, 1, 4) == ""
    assert look.bar_left(0.375, 1, 4) == "  ▐█"


def test_a_curve_stays_in_its_frame_whatever_its_points():
    for points in ([(10, 0.7)], [(10, 0.7), (20, 0.7)], [(1, 0.2), (50, 0.95), (100, 0.9)]):
        lines = look.curve(points, 0.9, " best 0.9 ", 60, ("0", "100 rows"))
        assert {len(line) for line in lines} == {60}
        assert sum("best 0.9" in line for line in lines) == 1
        assert lines[-1].split() == ["0", "100", "rows"]
    assert look.curve([], 0.9, "", 60, ("", "")) == []


def test_a_table_wider_than_the_terminal_continues_its_last_column_below():
    heading, rows = ["AUC", "settings"], [["0.9", "learning_rate=1 beta=2 rate_power=3"], ["0.8", "default"]]
    assert look.table(rows, heading, left=(1,), columns=40) == [
        "AUC  settings",
        "0.9  learning_rate=1 beta=2 rate_power=3",
        "0.8  default",
    ]
    assert look.table(rows, heading, left=(1,), columns=30) == [
        "AUC  settings",
        "0.9  learning_rate=1 beta=2\n     rate_power=3",
        "0.8  default",
    ]
    wide = ["a" * 20, "note"]
    assert look.table([["b" * 20, "not tuned"], ["c" * 20, ""]], wide, left=(0, 1), columns=25) == [
        "a" * 20 + "\n    note",
        "b" * 20 + "\n    not tuned",
        "c" * 20,
    ]
